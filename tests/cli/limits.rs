//! Limits of the machine and changing inputs: few threads, small files, no temporary folder, replaced logs, signals.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests start and wait for processes")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::corpus::corpus;
use super::corpus_faults::make_build_with_data;
use super::folder::{Folder, code, text, word};
use super::note;
use super::pucks::script;

/// Starts `hitreg` as another user who may have few processes.
fn with_processes(folder: &Folder, processes: usize, line: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", "prlimit"]).arg(format!("--nproc={processes}"));
    command.arg(env!("CARGO_BIN_EXE_hitreg")).args(super::folder::words(line)).current_dir(&folder.dir);
    command
}

#[test]
fn a_folder_that_cannot_be_read_is_a_problem_and_the_other_logs_are_judged() {
    let folder = corpus(1);
    fs::create_dir(folder.path("logs/closed")).expect("a folder");
    fs::write(folder.path("logs/closed/1.hitlog"), "-").expect("written");
    fs::set_permissions(folder.dir.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
    fs::set_permissions(folder.path("logs/closed"), fs::Permissions::from_mode(0o000)).expect("permissions");
    let verify = |logs: &str| with_processes(&folder, 1000, &format!("verify {logs} --junit report.xml")).output();
    if !verify("logs/0.hitlog").is_ok_and(|output| output.status.success()) {
        note::skipped("this user cannot run programs as another user");
        return;
    }
    for logs in ["logs", "'logs/*'", "'logs/**/*.hitlog'"] {
        let output = verify(logs).expect("it starts");
        let page = text(&output.stdout);
        assert_eq!(code(&output), 128, "{logs}: {}", text(&output.stderr));
        assert!(page.contains("1 log: 1 ok") && page.contains("logs/closed: "), "{logs}: {page}");
        let report = fs::read_to_string(folder.path("report.xml")).expect("a report");
        assert!(report.contains("logs/closed: "), "{logs}: {report}");
    }
    let output = with_processes(&folder, 1000, "verify logs/closed").output().expect("it starts");
    assert!(code(&output) == 128 && text(&output.stderr).contains("logs/closed: "), "{}", text(&output.stderr));
    // Proposals and demos in other folders are still found.
    fs::write(folder.path("logs/0.golden.new"), "hitreg golden 1\n\nproposed for log none\n").expect("written");
    fs::write(folder.path("logs/0.qwd"), "no demo").expect("written");
    for (line, page_has) in [
        ("review logs", &["logs/0.golden"][..]),
        ("import qwd logs --map absent.bsp -o demos", &["not imported: logs/closed: ", "not imported: logs/0.qwd: "]),
        ("import qwd logs/closed --map absent.bsp -o demos", &["not imported: logs/closed: "]),
    ] {
        let output = with_processes(&folder, 1000, line).output().expect("it starts");
        let [page, said] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
        assert_eq!(code(&output), 128, "{line}: {said}");
        assert!(page_has.iter().all(|part| page.contains(part)), "{line}: {page}");
        assert!((page + &said).contains("logs/closed: "), "{line}: {said}");
    }
}

#[test]
fn too_few_threads_are_an_error_and_no_crash() {
    let folder = Folder::with_session();
    fs::set_permissions(folder.dir.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
    let first = with_processes(&folder, 1000, "info a.hitlog").output();
    if !first.as_ref().is_ok_and(|output| output.status.success()) {
        note::skipped("this user cannot run programs as another user");
        return;
    }
    let before = folder.names();
    let mut ends = Vec::new();
    for processes in 1..=8 {
        for line in [
            "verify a.hitlog",
            "replay a.hitlog",
            "diff a.hitlog --b-set interpolation.lerp_ms=50",
            "sweep a.hitlog --set interpolation.lerp_ms=50,100",
            "record synth -o new.hitlog --seconds 2",
        ] {
            let output = with_processes(&folder, processes, line).output().expect("it starts");
            let said = text(&output.stderr);
            let end = output.status.code();
            assert!(matches!(end, Some(0 | 1 | 128)), "{processes}: {line}: {end:?}: {said}");
            assert!(end != Some(128) || said.contains("thread"), "{processes}: {line}: {said}");
            if folder.path("new.hitlog").exists() {
                fs::remove_file(folder.path("new.hitlog")).expect("removed");
            }
            assert_eq!(folder.names(), before, "{processes}: {line} left something behind");
            ends.push(end == Some(128));
        }
    }
    assert!(ends.contains(&true) && ends.contains(&false), "{ends:?}");
}

#[test]
fn a_recording_beyond_the_limit_on_files_says_so_and_leaves_nothing() {
    let folder = Folder::empty();
    let hitreg = word(env!("CARGO_BIN_EXE_hitreg"));
    let line = format!("ulimit -f 8; exec {hitreg} record synth -o a.hitlog --seconds 120");
    let output = Command::new("sh").args(["-c", &line]).current_dir(&folder.dir).output().expect("a shell");
    let said = text(&output.stderr);
    assert_eq!(code(&output), 128, "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn a_log_that_is_replaced_during_a_command_is_an_error() {
    let folder = Folder::with_session();
    folder.done("record synth -o other.hitlog --seconds 6 --seed 9");
    fs::copy(folder.path("a.hitlog"), folder.path("before.hitlog")).expect("copied");
    let hitreg = word(env!("CARGO_BIN_EXE_hitreg"));
    script(&folder.path("game"), &format!("cp other.hitlog new && mv new a.hitlog\nexec {hitreg} \"$@\""));
    for line in [
        "diff a.hitlog --b ./game",
        "diff a.hitlog --b ./game --format json",
        "diff a.hitlog --b ./game --max hits-changed=0",
        "report a.hitlog --b ./game -o page.html",
        "check ./game a.hitlog",
    ] {
        fs::copy(folder.path("before.hitlog"), folder.path("a.hitlog")).expect("copied");
        let output = folder.run(line);
        let said = text(&output.stderr);
        assert_eq!((code(&output), text(&output.stdout).as_str()), (128, ""), "{line}: {said}");
        assert!(said.contains("a.hitlog: the file changed while it was read"), "{line}: {said}");
        assert!(!folder.path("page.html").exists(), "{line}");
    }
}

#[test]
fn the_first_signal_ends_a_sweep() {
    let folder = Folder::empty();
    folder.done("record synth -o a.hitlog --seconds 120");
    let mut command = folder.command("sweep a.hitlog --set interpolation.lerp_ms=0..100:1");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hitreg");
    std::thread::sleep(Duration::from_secs(1));
    let (pid, since) = (Pid::from_child(&child), Instant::now());
    kill_process(pid, Signal::INT).expect("sent");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[test]
fn verdicts_that_may_come_from_the_machine_are_not_reused() {
    let folder = corpus(1);
    make_build_with_data(&folder);
    let line = "verify logs --build ./game --time-limit 0.001 --results kept";
    assert_eq!(code(&folder.run(line)), 125);
    let diff = "diff logs --b ./game --time-limit 0.001 --results kept";
    assert_eq!(code(&folder.run(diff)), 125);
    let kept = fs::read_to_string(folder.path("kept/results.jsonl")).expect("results");
    assert!(kept.lines().count() == 2 && kept.lines().all(|row| row.contains("\"is_reusable\":false")), "{kept}");
    for line in ["verify logs --build ./game", "diff logs/0.hitlog --b ./game --no-cache"] {
        let output = folder.command(line).env("TMPDIR", folder.path("absent")).output().expect("hitreg");
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {said}{}", text(&output.stdout));
        assert!(said.contains("absent"), "{line}: {said}");
    }
}

#[test]
fn a_config_file_that_cannot_be_read_is_an_error() {
    let folder = Folder::with_session();
    let config = folder.path("hitreg.toml");
    std::os::unix::fs::symlink("absent", &config).expect("a link");
    assert!(folder.refused("info a.hitlog").contains("hitreg.toml"));
    fs::remove_file(&config).expect("removed");
    fs::create_dir(&config).expect("a folder");
    assert!(folder.refused("info a.hitlog").contains("hitreg.toml"));
}

#[test]
fn advice_has_quotes_and_standard_output_its_name() {
    let folder = Folder::with_session();
    let advice = folder.refused("replay a.hitlog -o 'no folder/a.hittrace'");
    assert!(advice.contains("Run: mkdir -p 'no folder'"), "{advice}");
    let output = folder.refused("serve -o -");
    assert!(output.contains("standard output: "), "{output}");
}

#[test]
fn a_golden_without_a_last_line_end_is_the_same() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept");
    let golden = fs::read_to_string(folder.path("a.golden")).expect("a golden");
    fs::write(folder.path("a.golden"), golden.trim_end()).expect("written");
    folder.done("verify a.hitlog");
}

#[test]
fn a_check_notes_nothing_about_its_own_logs() {
    let folder = Folder::with_session();
    folder.done(&format!("check {} a.hitlog", word(env!("CARGO_BIN_EXE_hitreg"))));
}
