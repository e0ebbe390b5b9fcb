//! Ctrl-C, SIGTERM and SIGHUP: builds end with all their child processes, no temporary file remains, and the exit code
//! is 130. An interrupted soak reports its progress.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes, and print the duration")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::pucks::{example, hitreg, json, lines, script, session};
use crate::repository::{Commit, git, history};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::folder::word;

/// A folder with a log, and one for temporary files.
struct InterruptedRun {
    folder: tempfile::TempDir,
    log: PathBuf,
}

impl InterruptedRun {
    fn new() -> InterruptedRun {
        let folder = tempfile::tempdir().unwrap();
        let log = session(folder.path());
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        InterruptedRun { folder, log }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A script that writes the process ids of itself and its child, and then sleeps.
    fn hanging(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        script(&path, &self.hang());
        path
    }

    fn hang(&self) -> String {
        let pids = self.path("pids");
        format!("sleep 300 &\necho $! >> {0}\necho $$ >> {0}\nwait", word(pids))
    }

    fn interrupted(&self, command: &mut Command, hanging: usize) -> (Option<i32>, String) {
        self.end_by(Signal::INT, command, hanging)
    }

    /// Sends a signal after `hanging` scripts have started. Checks that all their processes have ended.
    fn end_by(&self, signal: Signal, command: &mut Command, hanging: usize) -> (Option<i32>, String) {
        let _ = std::fs::remove_file(self.path("pids"));
        let child = command.env("TMPDIR", self.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().expect("the command");
        wait_for("the builds to begin", || lines(&self.path("pids")) >= 2 * hanging);
        let started = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        for pid in std::fs::read_to_string(self.path("pids")).unwrap().lines() {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            wait_for("a build to end", || has_ended(pid));
        }
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "an interrupted build is no result");
        let left: Vec<_> = std::fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns whether a process has ended. Its parent may not have asked for its exit code yet.
fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(pid).is_err() || stat.contains(") Z ")
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn diff_and_bisect_builds_end_with_their_child_processes() {
    let place = InterruptedRun::new();
    let (a, b) = (place.hanging("a"), place.hanging("b"));
    let mut diff = hitreg();
    diff.arg("diff").arg(&place.log).arg("--a").arg(&a).arg("--b").arg(&b).arg("--cache").arg(place.path("cache"));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        assert_eq!(place.end_by(signal, &mut diff, 2), (Some(130), "error: interrupted\n".to_owned()), "{signal:?}");
    }
    for command in ["builds", "ticks"] {
        let mut bisect = hitreg();
        bisect.args(["bisect", command]).arg(&place.log).arg("--cache").arg(place.path("cache"));
        match command {
            "builds" => bisect.args([&a, &b, &a, &b]).args(["--jobs", "2"]),
            _ => bisect.arg("--a").arg(&a).arg("--b").arg(&b),
        };
        assert_eq!(place.interrupted(&mut bisect, 2), (Some(130), "error: interrupted\n".to_owned()));
    }
    // For a client on another build's server, hitreg makes a log in a temporary folder.
    let mut across = hitreg();
    across.arg("diff").arg(&place.log).arg("--server-build").arg(example("pucks")).arg("--client-build").arg(&b);
    across.arg("--no-cache");
    assert_eq!(place.interrupted(&mut across, 1).0, Some(130));
}

#[test]
fn shrink_ends_with_the_command_that_it_asks() {
    let place = InterruptedRun::new();
    let small = place.path("small.hitlog");
    let mut shrink = Command::new(example("pucks"));
    shrink.arg("shrink").arg(&place.log).arg("-o").arg(&small).arg("--while").arg(place.hang());
    assert_eq!(place.interrupted(&mut shrink, 1), (Some(130), "error: interrupted\n".to_owned()));
    assert!(!small.exists());
    let mut shrink = Command::new(example("pucks"));
    shrink.arg("shrink").arg(&place.log).arg("-o").arg(&small).arg("--b").arg(place.hanging("b"));
    assert_eq!(place.interrupted(&mut shrink, 1).0, Some(130));
    assert!(!small.exists());
}

#[test]
fn an_interrupted_bisect_git_resumes() {
    let place = InterruptedRun::new();
    let repository = place.path("repository");
    history(&repository, 30, |n| {
        let number = if n < 21 { 1 } else { 99 };
        let build = word(example("pucks_bug"));
        Commit::with("game.sh", &format!("#!/bin/sh\nPUCKS_VERSION={number} exec {build} \"$@\"\n"))
    });
    let before = [git(&repository, &["status", "--porcelain=v2"]), git(&repository, &["rev-parse", "HEAD"])];
    // While the file `hang` exists, the third build sleeps.
    let (count, hang) = (place.path("count"), place.path("hang"));
    std::fs::write(&hang, "").unwrap();
    let build = format!(
        "echo x >> {count}\nif test -e {hang} && test $(wc -l < {count}) -ge 3; then\n{}\nfi\ncp game.sh game",
        place.hang(),
        count = word(&count),
        hang = word(&hang),
    );
    let bisect = || {
        let mut bisect = hitreg();
        bisect.args(["bisect", "git"]).arg(&place.log).arg("main~29..main").arg("--repo").arg(&repository);
        bisect.args(["--build-cmd", &build, "--artifact", "game", "--cache"]).arg(place.path("cache"));
        bisect
    };
    let output = "error: interrupted: run the same command again to resume\n";
    assert_eq!(place.interrupted(&mut bisect(), 1), (Some(130), output.to_owned()));
    // The search keeps its answers. The interrupted build is not an answer.
    let searches = std::fs::read_dir(place.path("cache").join("bisect")).unwrap();
    let kept: Vec<PathBuf> = searches.map(|entry| entry.unwrap().path().join("state.json")).collect();
    let state: serde_json::Value = serde_json::from_slice(&std::fs::read(&kept[0]).unwrap()).unwrap();
    assert_eq!((kept.len(), state["answers"].as_array().unwrap().len()), (1, 1), "{state}");
    assert_eq!(lines(&count), 3);
    std::fs::remove_file(&hang).unwrap();
    let (found, code) = json(&mut bisect());
    assert_eq!((found["subject"].as_str(), found["resumed"].as_u64(), code), (Some("Change number 21"), Some(1), 1));
    // The search does not build the good end and the first probe again. Their last replays do, like that of the first bad
    // commit.
    assert_eq!(lines(&count) as u64, 1 + found["probes"].as_u64().unwrap() + 1 + 2);
    let after = [git(&repository, &["status", "--porcelain=v2"]), git(&repository, &["rev-parse", "HEAD"])];
    assert_eq!(before, after);
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
    assert!(!Path::new(&kept[0]).exists());
}

/// An interrupted command removes its unfinished output and keeps an existing file.
#[test]
fn unfinished_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut record = hitreg();
    record.args(["record", "synth", "--seconds", "300", "-o"]).arg(path("log.hitlog"));
    assert!(record.output().unwrap().status.success());
    std::fs::copy(path("log.hitlog"), path("there.hitlog")).unwrap();
    let names = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let writing = [
        (vec!["replay"], "new.hittrace", Signal::INT),
        (vec!["recover"], "there.hitlog", Signal::TERM),
        (vec!["export", "--table", "views"], "new.csv", Signal::HUP),
    ];
    for (command, to, signal) in writing {
        let mut writes = hitreg();
        writes.args(&command).arg(path("log.hitlog")).args(["--force", "-o"]).arg(path(to)).stdout(Stdio::null());
        let child = writes.stderr(Stdio::piped()).spawn().unwrap();
        wait_for("a file to be begun", || names().len() > before.len());
        assert!(before.contains(to) || !names().contains(to), "{:?}", names());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(130), &b"error: interrupted\n"[..]), "{command:?}");
        assert_eq!(names(), before, "{command:?}");
    }
    assert_eq!(std::fs::read(path("there.hitlog")).unwrap(), std::fs::read(path("log.hitlog")).unwrap());
}

/// `nohup` asks programs to ignore SIGHUP. A script's background programs ignore Ctrl-C, but hitreg handles it.
#[test]
#[cfg(target_os = "linux")]
fn an_ignored_hangup_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = path("log.hitlog");
    assert!(hitreg().args(["record", "synth", "--seconds", "300", "-o"]).arg(&log).output().unwrap().status.success());
    for (signal, trace, comes_to, said) in [
        (Signal::HUP, path("a.hittrace"), 0, &b""[..]),
        (Signal::INT, path("b.hittrace"), 130, b"error: interrupted\n"),
    ] {
        let before = std::fs::read_dir(folder.path()).unwrap().count();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_hitreg"), "replay"]);
        let child = shell.arg(&log).arg("-o").arg(&trace).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("a file to be begun", || std::fs::read_dir(folder.path()).unwrap().count() > before);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let came_to = (output.status.code(), &*output.stderr, trace.exists());
        assert_eq!(came_to, (Some(comes_to), said, comes_to == 0), "{signal:?}");
    }
}

#[test]
fn soak_ends_after_the_last_seed() {
    let last = u64::MAX.to_string();
    let (found, code) = json(hitreg().args(["soak", "--seeds", "5", "--length-ms", "100", "--seed", &last]));
    assert_eq!((found["seeds"].as_u64(), code), (Some(1), 0), "{found}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_soak_reports_its_progress() {
    let mut soak = hitreg();
    soak.args(["soak", "--seed", "1", "--seconds", "3600", "--format", "json"]).stdout(Stdio::piped());
    let child = soak.spawn().expect("the command");
    // A third of a second of CPU is far more than the work before the first seed.
    let works = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        after_name.split_whitespace().nth(11).unwrap().parse::<u64>().unwrap() >= 33
    };
    wait_for("it to be at work", works);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // The soak finishes the seeds that it began; there may be none.
    assert_eq!((&report["interrupted"], &report["found"]), (&true.into(), &serde_json::Value::Null), "{report}");
    assert_eq!(output.status.code(), Some(130), "{report}");
}
