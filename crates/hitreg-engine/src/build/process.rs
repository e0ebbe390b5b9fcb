//! Runs one child process in its own process group or job, with a time limit, and ends it with all processes that it
//! started.
#![expect(clippy::disallowed_methods, reason = "a time limit is about real time, and nothing else reads the clock")]

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

#[cfg(windows)]
use process_wrap::std::JobObject;
#[cfg(unix)]
use process_wrap::std::ProcessGroup;
use process_wrap::std::{ChildWrapper, CommandWrap};

use super::stop::StopSignal;
use super::strays::ProcessMark;
use super::tail::PipeTail;

/// How long to wait for the pipes of a process that has ended.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// How long to wait for an executable that another process still holds open for writing.
const BUSY: Duration = Duration::from_secs(2);

/// A process that has ended.
#[derive(Debug)]
pub(super) struct ProcessResult {
    pub(super) ended: ProcessEnd,
    /// The last lines of its stderr.
    pub(super) last_words: Vec<String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Exit(i32),
    Signal(i32),
    /// It was killed because it ran longer than this.
    TimeLimit(Duration),
    /// It was killed because its [`StopSignal`] was stopped.
    Stopped,
}

/// Runs a command without input and discards its stdout.
pub(super) fn run(mut command: Command, limit: Duration, stop: &StopSignal) -> std::io::Result<ProcessResult> {
    if stop.is_stopped() {
        return Ok(ProcessResult { ended: ProcessEnd::Stopped, last_words: Vec::new() });
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mark = ProcessMark::mark(&mut command);
    let mut child = WatchedProcess { child: spawn(in_process_group(command))?, mark };
    let tail = child.child.stderr().take().map(PipeTail::of).transpose()?;
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = child.child.try_wait()? {
            break ended(status);
        }
        if stop.is_stopped() {
            break ProcessEnd::Stopped;
        }
        if started.elapsed() >= limit {
            break ProcessEnd::TimeLimit(limit);
        }
        std::thread::sleep(pause(started.elapsed()));
    };
    drop(child);
    let last_words = tail.map_or(Vec::new(), |tail| {
        let since = Instant::now();
        while !tail.is_closed() && since.elapsed() < AFTERWARDS {
            std::thread::sleep(Duration::from_millis(1));
        }
        tail.lines()
    });
    Ok(ProcessResult { ended, last_words })
}

/// Starts a command. A file that was just copied may still be open for writing in a child that another thread is
/// starting, so this retries.
fn spawn(mut command: CommandWrap) -> std::io::Result<Box<dyn ChildWrapper>> {
    let started = Instant::now();
    loop {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && started.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(10));
            }
            spawned => return spawned,
        }
    }
}

/// The time until the next check. It grows with the running time: short processes are noticed at once, and long ones
/// cost few checks.
fn pause(elapsed: Duration) -> Duration {
    (elapsed / 20).clamp(Duration::from_micros(500), Duration::from_millis(20))
}

/// A child process that is ended together with its own children when this is dropped.
struct WatchedProcess {
    child: Box<dyn ChildWrapper>,
    mark: ProcessMark,
}

impl Drop for WatchedProcess {
    fn drop(&mut self) {
        // Fails if no process of the group is left, which is the goal.
        let _ = self.child.start_kill();
        // The process has ended or is about to; its exit status is known or not needed.
        let _ = self.child.wait();
        self.mark.end_all();
    }
}

/// Wraps the command in its own process group or, on Windows, a job.
fn in_process_group(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(JobObject);
    command
}

#[cfg(unix)]
fn ended(status: ExitStatus) -> ProcessEnd {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Exit(code),
        (None, Some(signal)) => ProcessEnd::Signal(signal),
        (None, None) => ProcessEnd::Exit(status.into_raw()),
    }
}

#[cfg(not(unix))]
fn ended(status: ExitStatus) -> ProcessEnd {
    status.code().map_or(ProcessEnd::Signal(0), ProcessEnd::Exit)
}

/// The signal with its name, such as `signal 11, SIGSEGV`.
pub(super) fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 10] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    match NAMES.iter().find(|(number, _)| *number == signal) {
        Some((_, name)) => format!("signal {signal}, {name}"),
        None => format!("signal {signal}"),
    }
}

#[cfg(unix)]
pub(super) fn is_executable(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
pub(super) fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> ProcessResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, &StopSignal::default()).unwrap()
    }

    #[test]
    fn exits_and_signals_are_distinguished() {
        let long = Duration::from_secs(20);
        let ran = sh("echo a >&2; echo lost; echo b >&2; exit 7", long);
        assert_eq!((ran.ended, ran.last_words), (ProcessEnd::Exit(7), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(sh("kill -SEGV $$", long).ended, ProcessEnd::Signal(11));
    }

    #[test]
    fn a_hanging_build_is_ended_with_its_child_processes() {
        let limit = Duration::from_millis(200);
        let folder = tempfile::tempdir().unwrap();
        let alive = folder.path().join("alive");
        let script = format!("(sleep 2; touch {}) & echo waiting >&2; wait; sleep 60", alive.display());
        let started = Instant::now();
        let ran = sh(&script, limit);
        assert_eq!((ran.ended, ran.last_words), (ProcessEnd::TimeLimit(limit), vec!["waiting".to_owned()]));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        std::thread::sleep(Duration::from_millis(2500));
        assert!(!alive.exists());
    }

    /// Starts a process like a daemon: in its own session, without a parent.
    #[cfg(target_os = "linux")]
    #[test]
    fn processes_outside_the_group_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (began, alive) = (folder.path().join("began"), folder.path().join("alive"));
        let stray = format!("touch {}; sleep 2; touch {}", began.display(), alive.display());
        let script = format!("(setsid sh -c '{stray}' &); while [ ! -e {} ]; do sleep 0.01; done", began.display());
        assert_eq!(sh(&script, Duration::from_secs(60)).ended, ProcessEnd::Exit(0));
        assert!(began.exists());
        std::thread::sleep(Duration::from_millis(2500));
        assert!(!alive.exists(), "what had left the group went on");
    }

    #[test]
    fn a_stop_ends_the_build_and_prevents_new_ones() {
        let all = StopSignal::default();
        let one = all.part();
        let running = one.clone();
        let started = Instant::now();
        let ran = std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            command.arg("60");
            run(command, Duration::from_secs(60), &running)
        });
        std::thread::sleep(Duration::from_millis(50));
        one.stop();
        assert_eq!(ran.join().unwrap().unwrap().ended, ProcessEnd::Stopped);
        assert!(started.elapsed() < Duration::from_secs(20));
        assert!(one.is_stopped() && !all.is_stopped());
        let ended = run(Command::new("no-such-program-at-all"), Duration::from_secs(1), &one).unwrap().ended;
        assert_eq!(ended, ProcessEnd::Stopped);
    }
}
