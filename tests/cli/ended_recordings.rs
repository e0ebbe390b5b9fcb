//! Recordings that end from outside. A signal ends them with a complete log; a kill leaves a file that `recover` can
//! repair.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests wait for processes")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::folder::{Folder, code, text};

/// A running real-time recording.
fn start_real_time_recording(folder: &Folder) -> Child {
    start_recording(folder, "record live -o live.hitlog --players 2 --seconds 60")
}

/// A running recording to `live.hitlog`.
fn start_recording(folder: &Folder, line: &str) -> Child {
    let mut command = folder.command(line);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hitreg starts");
    let started = Instant::now();
    // The file contains more than the header: at least a second of the session.
    while fs::metadata(folder.path("live.hitlog.part")).map_or(0, |meta| meta.len()) < 4_000 {
        assert!(started.elapsed() < Duration::from_secs(40), "it does not record");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_signal_ends_a_recording_with_a_complete_log() {
    let folder = Folder::empty();
    let twice = [Signal::INT, Signal::INT];
    let live = "record live -o live.hitlog --players 2 --seconds 60";
    // A recorded hour takes more than a minute of real time.
    let synth = "record synth -o live.hitlog --players 16 --seconds 3600";
    for (line, signals) in
        [(live, &[Signal::TERM][..]), (live, &[Signal::HUP]), (live, &twice), (synth, &[Signal::TERM]), (synth, &twice)]
    {
        let child = start_recording(&folder, line);
        for signal in signals {
            send(&child, *signal);
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 0, "{signals:?}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("ended by Ctrl-C or a signal"), "{}", text(&output.stdout));
        assert_eq!(folder.names(), ["live.hitlog"], "{signals:?}");
        folder.done("verify live.hitlog");
        fs::remove_file(folder.path("live.hitlog")).unwrap();
    }
}

#[test]
fn a_killed_recording_is_named_and_recovered() {
    let folder = Folder::empty();
    let mut child = start_real_time_recording(&folder);
    let output = folder.refused("recover live.hitlog.part");
    assert!(output.contains("live.hitlog.part: this recording is still running"), "{output}");
    folder.done("recover live.hitlog.part -o now.hitlog");
    child.kill().unwrap();
    child.wait().unwrap();
    let output = folder.refused("info live.hitlog");
    assert!(output.contains("Run: hitreg recover live.hitlog.part"), "{output}");
    let output = folder.refused("record synth -o live.hitlog --seconds 1");
    assert!(output.contains("Run: hitreg recover live.hitlog.part; if"), "{output}");
    // `recover` to another name copies the log.
    folder.done("recover live.hitlog.part -o copy.hitlog");
    let printed = folder.done("recover live.hitlog.part");
    assert!(printed.contains("live.hitlog.part"), "{printed}");
    assert_eq!(folder.names(), ["copy.hitlog", "live.hitlog", "now.hitlog"]);
    assert_eq!(fs::read(folder.path("copy.hitlog")).unwrap(), fs::read(folder.path("live.hitlog")).unwrap());
    folder.done("record synth -o live.hitlog --seconds 1 --force");
}

/// Tests of hangups also pass if the test process ignores hangups.
#[test]
fn tests_of_hangups_pass_under_nohup() {
    let mut tests = Command::new("sh");
    tests.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(std::env::current_exe().expect("these tests"));
    tests.args(["--exact", "ended_recordings::a_signal_ends_a_recording_with_a_complete_log"]);
    let output = tests.output().expect("a shell");
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && message.contains("1 passed"), "{message}");
}
