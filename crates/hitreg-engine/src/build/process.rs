//! Runs one child process in its own process group or job, with a time limit, and ends it with all processes that it
//! started.
#![expect(clippy::disallowed_methods, reason = "a time limit is about real time, and nothing else reads the clock")]

use std::collections::VecDeque;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[cfg(windows)]
use process_wrap::std::JobObject;
#[cfg(unix)]
use process_wrap::std::ProcessGroup;
use process_wrap::std::{ChildWrapper, CommandWrap};
#[cfg(unix)]
use rustix::io::Errno;

/// How long to wait for the pipes of a process that has ended.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// How long a process group may take to end after SIGTERM, for example to remove temporary files.
#[cfg(unix)]
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait for an executable that another process still holds open for writing.
const BUSY: Duration = Duration::from_secs(2);

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct ProcessResult {
    pub(crate) ended: ProcessEnd,
    /// The last lines of its stderr.
    pub(crate) last_words: Vec<String>,
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
pub(crate) fn run(mut command: Command, limit: Duration, stop: &StopSignal) -> std::io::Result<ProcessResult> {
    if stop.is_stopped() {
        return Ok(ProcessResult { ended: ProcessEnd::Stopped, last_words: Vec::new() });
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mark = ProcessMark::mark(&mut command);
    let mut child = WatchedProcess { child: spawn(command)?, mark };
    let tail = child.child.stderr().take().map(PipeTail::of).transpose()?;
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = child.child.try_wait()? {
            break ended(status);
        }
        let cut = match stop.is_stopped() {
            true => Some(ProcessEnd::Stopped),
            false => (started.elapsed() >= limit).then_some(ProcessEnd::TimeLimit(limit)),
        };
        if let Some(cut) = cut {
            #[cfg(unix)]
            child.terminate()?;
            break cut;
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

/// Starts a command in its own process group or, on Windows, a job. A file that was just copied may still be open for
/// writing in a child that another thread is starting, so this retries.
fn spawn(command: Command) -> std::io::Result<Box<dyn ChildWrapper>> {
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(JobObject);
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

#[cfg(unix)]
impl WatchedProcess {
    /// Sends SIGTERM to the process group, and waits until it is empty or [`GRACE`] is over.
    fn terminate(&mut self) -> std::io::Result<()> {
        use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return Ok(()) };
        let since = Instant::now();
        // Both fail if no process of the group is left.
        let mut is_there = kill_process_group(group, Signal::TERM).is_ok();
        while is_there && since.elapsed() < GRACE {
            // A process that has ended stays in its group until its parent knows.
            self.child.try_wait()?;
            std::thread::sleep(Duration::from_millis(1));
            is_there = test_kill_process_group(group).is_ok();
        }
        Ok(())
    }
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
pub(crate) fn signal_name(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal);
    name.map_or_else(|| format!("signal {signal}"), |name| format!("signal {signal}, {name}"))
}

/// Whether this process or the system has too many open files. `ErrorKind` has no stable name for it.
#[cfg(unix)]
pub(super) fn has_too_many_files(error: &std::io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    number.is_some_and(|number| [Errno::MFILE, Errno::NFILE].contains(&number))
}

#[cfg(not(unix))]
pub(super) fn has_too_many_files(_: &std::io::Error) -> bool {
    false
}

#[cfg(unix)]
pub(crate) fn is_executable(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
pub(crate) fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

/// Stops the processes that were started with it. Clones stop the same processes.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    stopped: Arc<AtomicBool>,
    whole: Option<Arc<StopSignal>>,
}

impl StopSignal {
    /// A part of this stop. It can be stopped separately, and stopping the whole stops it too.
    #[must_use]
    pub fn part(&self) -> StopSignal {
        StopSignal { stopped: Arc::default(), whole: Some(Arc::new(self.clone())) }
    }

    /// Ends all processes that run with this stop, and prevents new ones.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether this stop, or the whole that it is part of, has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.whole.as_ref().is_some_and(|whole| whole.is_stopped())
    }
}

/// The environment variable with the marks of all runs that a process belongs to, outermost first.
const VARIABLE: &str = "HITREG_BUILD_RUNS";

/// The mark of one run of a build, in the environment of its process. Child processes inherit it unless they clear it.
/// It shows which processes the build started, also those that left its process group, as daemons do.
struct ProcessMark {
    // Not read on systems where the environment of processes cannot be read.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    mark: String,
}

impl ProcessMark {
    /// Adds a new mark to a command's environment.
    #[expect(clippy::disallowed_methods, reason = "a build may itself run builds, and then both marks apply")]
    fn mark(command: &mut Command) -> ProcessMark {
        use std::sync::atomic::{AtomicU64, Ordering};
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}.{};", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut all = std::env::var_os(VARIABLE).unwrap_or_default();
        all.push(&mark);
        command.env(VARIABLE, all);
        ProcessMark { mark }
    }

    /// Ends all processes that still have the mark.
    #[cfg(target_os = "linux")]
    fn end_all(&self) {
        // A process that starts another at this moment is found in the next round.
        for _ in 0..ROUNDS {
            if !self.end_visible() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn end_all(&self) {}

    #[cfg(target_os = "linux")]
    fn end_visible(&self) -> bool {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let mut any = false;
        for process in processes.flatten() {
            let number = process.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.and_then(Pid::from_raw) else { continue };
            // Opened before its environment is read, so that the process number cannot go to another process in
            // between.
            let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if self.is_in(&std::fs::read(process.path().join("environ")).unwrap_or_default()) {
                // This fails if the process has already ended.
                any |= pidfd_send_signal(&held, Signal::KILL).is_ok();
            }
        }
        any
    }

    /// Whether a process environment, as the system shows it, has the mark.
    #[cfg(target_os = "linux")]
    fn is_in(&self, environment: &[u8]) -> bool {
        let ours = environment.split(|&byte| byte == 0).filter_map(|pair| pair.strip_prefix(VARIABLE.as_bytes()));
        let values = ours.filter_map(|rest| rest.strip_prefix(b"="));
        values.flat_map(|marks| marks.split_inclusive(|&byte| byte == b';')).any(|mark| mark == self.mark.as_bytes())
    }
}

/// How many times to search again for processes that were started in the meantime.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 100;

/// How many bytes are kept.
const KEPT_BYTES: usize = 8 << 10;
/// The beginning of the line after the message of a panic in Rust without a backtrace.
const BACKTRACE_NOTE: &str = "note: run with `RUST_BACKTRACE=";
/// The beginnings of the first and the last line of a backtrace in Rust.
const BACKTRACE: [&str; 2] = ["stack backtrace:", "note: Some details are omitted"];
/// How many lines are shown.
const LINES: usize = 8;
/// The limit on the length of a shown line, in characters.
const LINE_CHARS: usize = 400;

/// Reads a pipe to its end on its own thread, so that the writer never blocks, and keeps the end of the output.
struct PipeTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl PipeTail {
    /// Starts to read a pipe.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn of(mut pipe: impl Read + Send + 'static) -> std::io::Result<PipeTail> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let keeping = Arc::clone(&kept);
        let reader = std::thread::Builder::new().spawn(move || {
            let mut block = [0u8; 4096];
            // After a read error, no more output can be expected.
            while let Ok(count @ 1..) = pipe.read(&mut block) {
                let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&block[..count]);
                let surplus = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..surplus);
            }
        })?;
        Ok(PipeTail { kept, reader })
    }

    /// Whether the other end of the pipe is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.reader.is_finished()
    }

    /// The last lines so far, without control characters.
    pub(crate) fn lines(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&bytes)).to_string();
        let mut in_backtrace = false;
        let is_of_interest = |line: &&str| {
            let was_in_backtrace = in_backtrace;
            in_backtrace = line.starts_with(BACKTRACE[0]) || in_backtrace && !line.starts_with(BACKTRACE[1]);
            !(line.is_empty() || was_in_backtrace || in_backtrace || line.starts_with(BACKTRACE_NOTE))
        };
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(is_of_interest).collect();
        lines[lines.len().saturating_sub(LINES)..].iter().map(|line| printable(line)).collect()
    }
}

fn printable(line: &str) -> String {
    line.chars().take(LINE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn sh(script: &str, limit: Duration) -> ProcessResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit, &StopSignal::default()).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn exits_and_signals_are_distinguished() {
        let long = Duration::from_secs(20);
        let ran = sh("echo a >&2; echo lost; echo b >&2; exit 7", long);
        assert_eq!((ran.ended, ran.last_words), (ProcessEnd::Exit(7), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(sh("kill -SEGV $$", long).ended, ProcessEnd::Signal(11));
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        for after in [note, "stack backtrace:\n   0: main\nnote: Some details are omitted"] {
            let panics =
                format!("echo 'panicked at src/main.rs:1:1:' >&2; echo boom >&2; echo '{after}' >&2; exit 101");
            assert_eq!(sh(&panics, long).last_words.last().map(String::as_str), Some("boom"));
        }
    }

    #[cfg(unix)]
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

    #[cfg(unix)]
    #[test]
    fn a_build_can_remove_its_files_before_it_is_ended() {
        let limit = Duration::from_millis(200);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cc.s");
        // The shell ends at once. Its child needs a moment, as a compiler's driver does.
        let child = format!("trap \"sleep 0.2; rm {}; exit\" TERM; while :; do sleep 0.01; done", file.display());
        let ran = sh(&format!("touch {}; sh -c '{child}' & wait", file.display()), limit);
        assert_eq!((ran.ended, file.exists()), (ProcessEnd::TimeLimit(limit), false));
        let started = Instant::now();
        assert_eq!(sh("trap '' TERM; while :; do sleep 0.01; done", limit).ended, ProcessEnd::TimeLimit(limit));
        assert!(started.elapsed() >= limit + GRACE, "{:?}", started.elapsed());
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

    #[cfg(unix)]
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mark_is_found_only_as_a_complete_variable() {
        let mark = ProcessMark { mark: "12.3;".to_owned() };
        let found = |environment: &str| mark.is_in(environment.as_bytes());
        assert!(found("A=b\0HITREG_BUILD_RUNS=7.1;12.3;\0C=d\0"));
        assert!(found("HITREG_BUILD_RUNS=12.3;8.0;"));
        assert!(!found("HITREG_BUILD_RUNS=112.3;\0"));
        assert!(!found("HITREG_BUILD_RUNS=12.33;\0"));
        assert!(!found("OTHER_HITREG_BUILD_RUNS=12.3;\0"));
        assert!(!found(""));
    }

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..10_000).map(|n| format!("line {n}\n\n")).collect();
        let tail = PipeTail::of(std::io::Cursor::new(format!("{text}\x1b[31mred\x1b[0m\x07\n"))).unwrap();
        while !tail.is_closed() {
            std::thread::yield_now();
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[7].as_str()), (8, "line 9993", "red"));
    }
}
