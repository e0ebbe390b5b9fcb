//! Faults while a corpus is judged: logs that vanish or change, killed runs, full disks, and mixed logs.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hitreg::store::LineFile;
use serde_json::Value;

use super::corpus::{CHANGE, corpus, sorted};
use super::folder::{Folder, code, text, word};
use super::pucks::{example, script, session};

#[test]
fn logs_that_vanish_or_change_while_they_are_read_are_broken_and_the_rest_goes_on() {
    let folder = corpus(3);
    let before: Vec<_> = (0..3).map(|n| fs::read(folder.path(&format!("logs/{n}.hitlog"))).expect("a log")).collect();
    // The longest log comes first. Its build removes another log, and one build changes the log that it replays.
    let sizes: Vec<usize> = before.iter().map(Vec::len).collect();
    let longest = (0..3).max_by_key(|n| sizes[*n]).expect("a log");
    let (vanishes, changes) = ((longest + 1) % 3, (longest + 2) % 3);
    let log = |number: usize| word(folder.path(&format!("logs/{number}.hitlog")));
    for (change, what) in [("printf x >>", "grows"), ("touch -d '2001-01-01'", "is replaced")] {
        script(
            &folder.path("game"),
            &format!(
                "case \"$2\" in *{longest}.hitlog) rm -f {} ;; *{changes}.hitlog) {change} {} ;; esac\nexec {} \"$@\"",
                log(vanishes),
                log(changes),
                word(env!("CARGO_BIN_EXE_hitreg"))
            ),
        );
        for line in ["verify logs --build ./game --threads 1", "diff logs --b ./game --threads 1"] {
            for (number, bytes) in before.iter().enumerate() {
                fs::write(folder.path(&format!("logs/{number}.hitlog")), bytes).expect("written");
            }
            let output = folder.run(&format!("{line} --format json"));
            let page: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let page = page.get("summary").unwrap_or(&page);
            assert_eq!(code(&output), 128, "{line}: a log {what}: {page}");
            assert_eq!([&page["logs"]["same"], &page["logs"]["broken"]], [1, 2].map(Value::from).each_ref(), "{page}");
            let detail = |number: usize| {
                let name = format!("logs/{number}.hitlog");
                let of_log =
                    page["unjudged"].as_array().expect("a list").iter().find(|log| log["log"] == name.as_str());
                of_log.and_then(|log| log["detail"].as_str()).unwrap_or_else(|| panic!("{name}: {page}")).to_owned()
            };
            assert!(
                detail(vanishes).starts_with("the file disappeared during the run"),
                "{line}: {}",
                detail(vanishes)
            );
            assert!(detail(changes).starts_with("the file changed while it was read"), "{line}: {}", detail(changes));
        }
    }
}

#[test]
fn a_killed_run_resumes_with_the_rest() {
    let folder = corpus(6);
    for copy in 6..18 {
        fs::copy(folder.path(&format!("logs/{}.hitlog", copy % 6)), folder.path(&format!("logs/{copy}.hitlog")))
            .expect("copied");
    }
    let line = |results: &str| format!("diff logs {CHANGE} --threads 1 --results {results}");
    let page = text(&folder.run(&line("whole")).stdout);
    let rows = |results: &str| {
        let text = fs::read_to_string(folder.path(&format!("{results}/results.jsonl"))).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"row\":\"log\"")).count()
    };
    let mut killed = 0;
    for after in [1, 4, 9] {
        let mut child =
            folder.command(&line("killed")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hitreg");
        let started = Instant::now();
        while rows("killed") < after && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        killed += u32::from(!child.wait().expect("ended").success() && rows("killed") < 18);
    }
    assert!(killed > 0, "every run ended before it could be killed");
    let kept = fs::read_to_string(folder.path("killed/results.jsonl")).expect("rows");
    // A torn group of rows is not part of what is kept.
    let complete = kept.rfind("\"row\":\"log\"").map_or(0, |at| at + kept[at..].find('\n').map_or(0, |end| end + 1));
    assert_eq!(text(&folder.run(&line("killed")).stdout), page);
    let resumed = fs::read_to_string(folder.path("killed/results.jsonl")).expect("rows");
    assert!(resumed.starts_with(&kept[..complete]), "no log is judged again");
    assert_eq!(rows("killed"), 18);
    assert_eq!(sorted(&folder, "killed/results.jsonl"), sorted(&folder, "whole/results.jsonl"));
}

/// Ten logs in `logs`.
fn ten_logs() -> Folder {
    let folder = corpus(2);
    for copy in 2..10 {
        fs::copy(folder.path(&format!("logs/{}.hitlog", copy % 2)), folder.path(&format!("logs/{copy}.hitlog")))
            .expect("copied");
    }
    folder
}

/// Runs `verify` in a shell after commands that limit the results folder, and then without the limit.
fn verify_with_full_results(folder: &Folder, shell: &[&str], limit: &str) {
    let line = format!("{limit}; exec {} verify logs --results kept --threads 1", word(env!("CARGO_BIN_EXE_hitreg")));
    let output = Command::new(shell[0]).args(&shell[1..]).arg(line).current_dir(&folder.dir).output().expect("a shell");
    let page = text(&output.stdout);
    assert_eq!(code(&output), 128, "{page}{}", text(&output.stderr));
    assert!(page.contains("10 logs: 10 ok"), "the rest is judged: {page}");
    assert_eq!(page.matches("problem  results are no longer kept: kept/").count(), 1, "{page}");
    let page = folder.done("verify logs --results kept");
    assert!(page.starts_with("\n10 logs: 10 ok") || page.starts_with("10 logs: 10 ok"), "{page}");
    assert_eq!(sorted(folder, "kept/results.jsonl").len(), 10);
}

#[test]
fn a_run_whose_results_cannot_grow_judges_all_logs() {
    verify_with_full_results(&ten_logs(), &["sh", "-c"], "trap '' XFSZ; ulimit -f 4");
}

#[test]
fn a_run_on_a_full_disk_judges_all_logs() {
    let folder = ten_logs();
    fs::create_dir(folder.path("kept")).expect("a folder");
    let shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let mount = "mount -t tmpfs -o size=8k tmpfs kept";
    let may_mount = Command::new(shell[0]).args(&shell[1..]).arg(mount).current_dir(&folder.dir).output();
    if !may_mount.is_ok_and(|output| output.status.success()) {
        crate::note::skipped("a small disk cannot be mounted here (unshare --user --mount)");
        return;
    }
    verify_with_full_results(&folder, &shell, mount);
}

/// A limit of the size of files fails as a full disk does.
#[test]
fn goldens_that_cannot_be_written_break_no_log() {
    let folder = corpus(2);
    for option in ["--accept", "--propose"] {
        let program = word(env!("CARGO_BIN_EXE_hitreg"));
        let line = format!("trap '' XFSZ; ulimit -f 0; exec {program} verify logs {option} --threads 1");
        let output = Command::new("sh").args(["-c", &line]).current_dir(&folder.dir).output().expect("a shell");
        let message = text(&output.stderr);
        assert_eq!((code(&output), text(&output.stdout)), (128, String::new()), "{option}: {message}");
        let file = ["logs/0.golden", "logs/1.golden"].iter().any(|file| message.starts_with(&format!("error: {file}")));
        assert!(file && message.contains("cannot be written"), "{option}: {message}");
    }
}

#[test]
fn results_of_another_version_and_of_another_process_are_refused() {
    let folder = corpus(1);
    fs::create_dir(folder.path("kept")).expect("a folder");
    fs::write(folder.path("kept/results.jsonl"), "{\"v\":2,\"row\":\"log\"}\n").expect("written");
    for line in ["verify logs --results kept".to_owned(), format!("diff logs {CHANGE} --results kept")] {
        let refused = folder.refused(&line);
        assert!(
            refused.contains("kept/results.jsonl: line 1: it is of version 2, and this build reads version 1"),
            "{refused}"
        );
        assert_eq!(refused.lines().count(), 1, "{refused}");
    }
    let held = LineFile::open(&folder.path("kept/results.jsonl"), &mut |_, _| true).expect("a file");
    let refused = folder.refused("verify logs --results kept");
    assert!(refused.contains("kept/results.jsonl: another process writes to this file"), "{refused}");
    drop(held);
}

#[test]
fn a_mixed_corpus_judges_each_log_as_alone() {
    let folder = corpus(2);
    let mut names = vec!["0", "1", "foreign", "damaged", "torn", "pucks", "openarena"];
    fs::copy("fixtures/compat/log-v1.0.hitlog", folder.path("logs/foreign.hitlog")).expect("a fixture");
    let bytes = fs::read(folder.path("logs/0.hitlog")).expect("a log");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 0xff;
    fs::write(folder.path("logs/damaged.hitlog"), damaged).expect("written");
    fs::write(folder.path("logs/torn.hitlog"), &bytes[..bytes.len() / 2]).expect("written");
    fs::rename(session(folder.dir.path()), folder.path("logs/pucks.hitlog")).expect("renamed");
    let fixtures = word(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/openarena"));
    let import = format!(
        "import quake3-udp {fixtures}/duel.trace.zst --map {fixtures}/hitreg_room.bsp -o logs/openarena.hitlog"
    );
    assert_eq!(code(&folder.run(&import)), 0);
    let quakeworld = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    match quakeworld.exists() {
        true => {
            let demo = word(quakeworld.join("drills/highbridge-to-rl.qwd"));
            let maps = word(quakeworld.join("maps"));
            let output = folder.run(&format!("import qwd {demo} --maps {maps} -o logs/quakeworld.hitlog"));
            assert_eq!(code(&output), 0, "{}", text(&output.stderr));
            names.push("quakeworld");
        }
        false => crate::note::skipped("../shared/data is not here, so the mixed corpus has no QuakeWorld demo"),
    }
    let pucks = word(example("pucks"));
    for (kept, command, options) in [
        ("own", "verify", String::new()),
        ("set", "diff", "--b-set lag_compensation.max_unlag_ms=10".to_owned()),
        ("build", "verify", format!("--build {pucks}")),
        ("sides", "diff", format!("--a {pucks} --b {pucks}")),
    ] {
        let output = folder.run(&format!("{command} logs {options} --results {kept} --format json"));
        assert_eq!(code(&output), 128, "{command} {options}: {}", text(&output.stderr));
        let page: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let page = page.get("summary").unwrap_or(&page);
        assert_eq!(page["logs"]["total"], names.len(), "{page}");
        let rows: Vec<Value> = sorted(&folder, &format!("{kept}/results.jsonl"))
            .iter()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .filter(|row: &Value| row["row"] == "log")
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        for name in &names {
            let path = format!("logs/{name}.hitlog");
            let alone = code(&folder.run(&format!("{command} {path} {options}")));
            let verdict = match alone {
                0 => "same",
                1 => "differs",
                125 => "untestable",
                _ => "broken",
            };
            // The verdict on a log that cannot be read is not kept.
            let row = rows.iter().find(|row| row["log"] == path.as_str());
            let unjudged = page["unjudged"].as_array().expect("a list").iter().find(|row| row["log"] == path.as_str());
            let row = row.or(unjudged).unwrap_or_else(|| panic!("{command} {options}: no row for {name}: {page}"));
            assert_eq!(row["verdict"], verdict, "{command} {options}: {name}: {row}");
            seen.insert(verdict);
        }
        assert!(seen.contains("broken") && seen.len() >= 2, "{command} {options}: {seen:?}");
    }
}

#[test]
fn results_of_two_folders_know_logs_by_their_absolute_paths() {
    let folder = corpus(1);
    let whole = fs::read(folder.path("logs/0.hitlog")).expect("a log");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let exits = [("x", whole), ("y", damaged)].map(|(name, bytes)| {
        fs::create_dir_all(folder.path(&format!("{name}/logs"))).expect("a folder");
        let log = folder.path(&format!("{name}/logs/0.hitlog"));
        fs::write(&log, bytes).expect("written");
        let touched = Command::new("touch").arg("-r").arg(folder.path("logs/0.hitlog")).arg(&log).status();
        assert!(touched.expect("touch").success());
        let mut command = folder.command("verify logs --results ../kept");
        code(&command.current_dir(folder.path(name)).output().expect("hitreg"))
    });
    assert_eq!(exits, [0, 128], "the log of the second folder is damaged");
}

/// Makes `game`, a program that is no script, and reads the file `data`.
pub(crate) fn make_build_with_data(folder: &Folder) {
    let source = format!(
        "#include <stdio.h>\n#include <unistd.h>\n\
         int main(int count, char **words) {{\n\
           char line[200], *all[64];\n\
           int n = 0;\n\
           for (int i = 0; i < count; i++) all[n++] = words[i];\n\
           all[0] = \"{}\";\n\
           FILE *data = fopen(\"data\", \"r\");\n\
           if (data && fgets(line, sizeof line, data)) all[n++] = \"--set\", all[n++] = line;\n\
           all[n] = NULL;\n\
           return execv(all[0], all);\n\
         }}\n",
        env!("CARGO_BIN_EXE_hitreg")
    );
    fs::write(folder.path("game.c"), source).expect("written");
    let made = Command::new("cc").args(["-o", "game", "game.c"]).current_dir(folder.dir.path()).output();
    let made = made.expect("a C compiler");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

#[test]
fn without_a_cache_verdicts_on_builds_are_not_reused() {
    let folder = corpus(3);
    make_build_with_data(&folder);
    let lines =
        ["diff logs --b ./game --no-cache --results kept", "verify logs --build ./game --no-cache --results kept"];
    for line in lines {
        fs::write(folder.path("data"), "").expect("written");
        folder.done(line);
        fs::write(folder.path("data"), "lag_compensation.enabled=false").expect("written");
        let output = folder.run(line);
        assert_eq!(code(&output), 1, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }
    let page = folder.run("diff logs --b ./game --no-cache --reports pages --format json");
    let page: Value = serde_json::from_slice(&page.stdout).expect("JSON");
    let report = page["worst"][0]["report"].as_str().expect("a command");
    assert!(report.ends_with("--b ./game --no-cache"), "{report}");
    assert_eq!(page["problems"], Value::from(Vec::<Value>::new()), "{page}");
}

#[test]
fn a_trace_among_logs_is_broken_and_the_logs_are_compared() {
    let folder = corpus(1);
    folder.done("replay logs/0.hitlog -o a.hittrace");
    fs::rename(folder.path("a.hittrace"), folder.path("logs/trace.hitlog")).expect("renamed");
    let output = folder.run(&format!("diff logs {CHANGE}"));
    let page = text(&output.stdout);
    assert!(page.contains("logs/trace.hitlog") && page.contains("this is a trace"), "{page}{}", text(&output.stderr));
}
