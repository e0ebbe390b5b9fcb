//! Memory: hitreg accepts every sound recording. It refuses work over the memory limit before the work starts, with
//! exit code 128.
#![cfg(unix)]

use std::process::{Command, Stdio};

use crate::folder::{Folder, code, text, word};
use crate::pucks::{example, script};

/// A setting that changes shots and predictions.
const CHANGED: &str = "--b-set lag_compensation.enabled=false";

/// A sweep in which bots play again, which takes the session and its trace in memory.
const PLAYED_AGAIN: &str = "--set interpolation.lerp_ms=50 --what-if rerecord --seeds 2";

/// The variable that sets the memory limit, in MiB, of commands that hold a session or trace.
const LIMIT: &str = "HITREG_MEMORY_MIB";

/// Writes a build that runs this program, with or without other settings.
fn build(folder: &Folder, name: &str, options: &str) {
    script(&folder.path(name), &format!("exec {} \"$@\" {options}", word(env!("CARGO_BIN_EXE_hitreg"))));
}

#[test]
fn every_command_takes_a_minute_of_sixteen_players() {
    let folder = Folder::empty();
    folder.done("record synth --players 16 --seconds 60 -o L.hitlog");
    folder.done("replay L.hitlog -o T.hittrace");
    build(&folder, "same", "");
    build(&folder, "other", "--set lag_compensation.enabled=false");
    let (diff, hits) = (format!("diff L.hitlog {CHANGED}"), format!("bisect ticks L.hitlog {CHANGED} --on hits"));
    let lines = [
        (0, "info L.hitlog"),
        (0, "verify L.hitlog --build ./same"),
        (0, "diff L.hitlog --b ./same"),
        (1, &diff),
        (0, "diff T.hittrace L.hitlog"),
        (0, "bisect ticks L.hitlog"),
        (0, "bisect ticks T.hittrace L.hitlog"),
        (1, &hits),
        (1, "bisect builds L.hitlog ./same ./other --no-cache"),
        (0, "report L.hitlog -o L.html"),
        (0, "report T.hittrace -o T.html"),
        (0, "why L.hitlog --at 30s"),
        (0, "sweep L.hitlog --set interpolation.lerp_ms=50"),
        (0, "sweep L.hitlog --set lag_compensation.enabled=false --what-if rejudge"),
    ];
    for (expected, line) in lines {
        let output = folder.run(line);
        assert_eq!(code(&output), expected, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn work_over_the_memory_limit_is_trouble_and_names_the_need() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 20 -o L.hitlog");
    folder.done("replay L.hitlog -o T.hittrace");
    build(&folder, "same", "");
    let good = text(&folder.run("verify L.hitlog").stdout);
    assert!(!good.contains("broken"), "{good}");
    let changed = |line: &str| format!("{line} {CHANGED}");
    let lines = [
        "verify L.hitlog --build ./same".to_owned(),
        "bisect builds L.hitlog ./same ./same --no-cache".to_owned(),
        changed("shrink L.hitlog -o small.hitlog"),
        "shrink L.hitlog -o small.hitlog --while true".to_owned(),
        format!("sweep L.hitlog {PLAYED_AGAIN}"),
    ];
    for line in lines {
        let before = folder.names();
        let output = folder.command(&line).env(LIMIT, "2").output().expect("hitreg starts");
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {}{said}", text(&output.stdout));
        let names_the_need =
            said.contains(".hitlog: this needs about ") || said.contains(".hittrace: this needs about ");
        assert!(names_the_need && said.contains("the limit is 2 MiB: set HITREG_MEMORY_MIB="), "{line}: {said}");
        assert!(!said.contains("panicked") && !said.contains("broken") && !said.contains("no trace"), "{line}: {said}");
        assert_eq!(text(&output.stdout), "", "{line}");
        assert_eq!(folder.names(), before, "{line} left something behind");
    }
}

/// The amount that a refusal names suffices. A sweep of many logs needs no more than that of one.
#[test]
fn the_need_that_a_refusal_names_suffices() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 20 -o L.hitlog");
    let (shrink, sweep) =
        (format!("shrink L.hitlog -o s.hitlog --force {CHANGED}"), format!("sweep L.hitlog {PLAYED_AGAIN}"));
    for line in [&shrink, &sweep] {
        let mut limit = "2".to_owned();
        // The first estimate, from counts, may be lower than a later one.
        for _ in 0..4 {
            let output = folder.command(line).env(LIMIT, &limit).output().expect("hitreg starts");
            if code(&output) != 128 {
                break;
            }
            let said = text(&output.stderr);
            let (_, named) = said.split_once("HITREG_MEMORY_MIB=").expect("a need");
            limit = named.split_whitespace().next().expect("a number").to_owned();
        }
        let logs = ["L.hitlog", "M.hitlog", "N.hitlog", "O.hitlog", "P.hitlog"];
        for copy in &logs[1..] {
            std::fs::copy(folder.path("L.hitlog"), folder.path(copy)).expect("copied");
        }
        let of_many = line.replace("L.hitlog", &logs.join(" "));
        for line in [Some(line), (line == &sweep).then_some(&of_many)].into_iter().flatten() {
            let output = folder.command(line).env(LIMIT, &limit).output().expect("hitreg starts");
            assert!([0, 1].contains(&code(&output)), "{line} with {limit} MiB: {}", text(&output.stderr));
        }
    }
}

/// Commands that stream a log need no limit.
#[test]
fn commands_that_stream_ignore_the_limit() {
    let folder = Folder::empty();
    folder.done("record synth --players 8 --seconds 60 -o L.hitlog");
    let changed = format!("report L.hitlog {CHANGED} -o both.html");
    let lines = [
        "info L.hitlog",
        "replay L.hitlog -o T.hittrace",
        "verify L.hitlog",
        "info T.hittrace",
        "report L.hitlog -o log.html",
        "report T.hittrace -o trace.html",
        &changed,
        "why L.hitlog --at 30s",
        "why L.hitlog p1 --correction 3",
        "why T.hittrace --at 30s",
        "sweep L.hitlog --set interpolation.lerp_ms=50,100",
        "sweep L.hitlog L.hitlog --set lag_compensation.enabled=false --what-if rejudge",
    ];
    for line in lines {
        let output = folder.command(line).env(LIMIT, "1").output().expect("hitreg starts");
        assert_eq!(code(&output), 0, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }
    let wrong = folder.command("info L.hitlog").env(LIMIT, "much").output().expect("hitreg starts");
    assert!(code(&wrong) == 128 && text(&wrong.stderr).contains("HITREG_MEMORY_MIB is \"much\""));
}

/// A lack of memory in a build says nothing about the build, so `git bisect run` must not skip it.
#[test]
fn a_builds_refusal_for_memory_is_trouble_too() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 20 -o L.hitlog");
    build(&folder, "same", "");
    let program = word(env!("CARGO_BIN_EXE_hitreg"));
    script(&folder.path("small"), &format!("exec env {LIMIT}=2 {program} sweep \"$2\" {PLAYED_AGAIN}"));
    script(&folder.path("mapless"), "echo error: no such map >&2; exit 128");
    let lines = |build: &str| {
        [
            format!("diff L.hitlog --b ./{build} --summary"),
            format!("report L.hitlog --b ./{build} -o page.html"),
            format!("verify L.hitlog --build ./{build}"),
            format!("bisect builds L.hitlog ./same ./{build} --no-cache"),
            format!("shrink L.hitlog -o small.hitlog --while true --build ./{build}"),
        ]
    };
    for line in lines("small") {
        let output = folder.run(&line);
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {}{said}", text(&output.stdout));
        let sentence = "L.hitlog: this needs about ";
        assert!(said.contains(sentence) && said.contains(", and the limit is 2 MiB: set HITREG_"), "{line}: {said}");
    }
    // Any other trouble of a build leaves the log untestable.
    for line in &lines("mapless")[..4] {
        let output = folder.run(line);
        assert_eq!(code(&output), 125, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

/// A build that is linked with the library follows the same limit: without it, no setting would make it read a long log.
#[test]
fn builds_of_other_games_follow_the_limit() {
    let folder = Folder::empty();
    let mut record = Command::new(example("tanks"));
    record.args(["record", "L.hitlog"]).current_dir(folder.dir.path());
    assert!(record.output().expect("tanks").status.success());
    let replay = |mib: &str| {
        let mut replay = Command::new(example("tanks"));
        replay.args(["replay", "L.hitlog", "-o", "T.hittrace"]).current_dir(folder.dir.path()).env(LIMIT, mib);
        let output = replay.output().expect("tanks");
        (code(&output), text(&output.stderr))
    };
    assert_eq!(replay("64").0, 0);
    let (refused, said) = replay("0");
    assert!(refused == 128 && said.contains("and the limit is 0 MiB: set HITREG_MEMORY_MIB="), "{refused}: {said}");
    let (wrong, said) = replay("much");
    assert!(wrong == 128 && said.contains("HITREG_MEMORY_MIB is \"much\""), "{wrong}: {said}");
}

/// `report` and `why` hold little of a session: their memory grows with what they show, and not with its rows.
#[cfg(target_os = "linux")]
#[test]
fn report_and_why_hold_little_of_a_session() {
    let folder = Folder::empty();
    folder.done("record synth --players 16 --seconds 20 --no-keyframes -o short.hitlog");
    folder.done("record synth --players 16 --seconds 100 --no-keyframes -o long.hitlog");
    let peak_mib = |line: &str| -> u64 {
        let mut child = folder.command(line).stdout(Stdio::null()).spawn().expect("hitreg starts");
        let (status, mut peak_kib) = (format!("/proc/{}/status", child.id()), 0);
        let ended = loop {
            // `/proc` has no such line after the end of the process.
            let now = std::fs::read_to_string(&status).unwrap_or_default();
            let of = now.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
            peak_kib = of.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0).max(peak_kib);
            if let Some(ended) = child.try_wait().expect("a child") {
                break ended;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        assert!(ended.success(), "{line}");
        peak_kib / 1024
    };
    // The rows of a further 80 seconds take 120 MiB.
    for (line, more) in [("why {} --at 10s", 16), ("report {} -o page.html --force", 60)] {
        let [short, long] = ["short.hitlog", "long.hitlog"].map(|log| peak_mib(&line.replace("{}", log)));
        assert!(short > 10 && long < short + more, "{line}: {short} MiB, and {long} MiB of a longer session");
    }
}
