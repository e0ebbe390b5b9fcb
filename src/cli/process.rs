//! The process of a command: its signals, and its threads within what the system allows.
#![expect(clippy::disallowed_methods, reason = "the number of threads does not affect results")]

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::progress::Stopwatch;
use super::{CommandError, CommandOutcome};
use crate::build::StopSignal;
use crate::store;

/// Signals within this time count as one. A terminal and a process that forwards signals to its group (make, a shell, a
/// container's init) can deliver one Ctrl-C twice.
const SAME_PRESS: Duration = Duration::from_secs(1);

/// What the first signal stops. The process has one system handler, but may run several commands.
struct Listeners {
    is_set: bool,
    first: Option<Stopwatch>,
    /// The stop of running builds, once there is one.
    builds: Option<StopSignal>,
    /// The flags of running recordings. A flag that its recording has dropped no longer counts.
    recordings: Vec<Weak<AtomicBool>>,
}

impl Listeners {
    fn lock() -> MutexGuard<'static, Listeners> {
        static LISTENERS: Mutex<Listeners> =
            Mutex::new(Listeners { is_set: false, first: None, builds: None, recordings: Vec::new() });
        LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_handler(&mut self) -> Result<(), CommandError> {
        if !self.is_set {
            let set = at_each(end_all);
            set.map_err(|error| CommandError::request(format!("signals cannot be listened to: {error}")))?;
            self.is_set = true;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.builds.is_none() && self.recordings.iter().all(|flag| flag.strong_count() == 0)
    }

    /// Prepares for another listener. The first listener after none waits for its own first signal.
    fn begin(&mut self) -> Result<(), CommandError> {
        self.set_handler()?;
        if self.is_empty() {
            self.first = None;
            self.recordings.clear();
        }
        Ok(())
    }
}

/// Installs the handler that deletes temporary files when the program is interrupted.
pub(super) fn leave_nothing() -> Result<(), CommandError> {
    Listeners::lock().set_handler()
}

/// Returns the stop that the first signal triggers, so that running builds can shut down. A second signal ends the
/// program at once. The handler is installed by the first call.
pub(super) fn stop() -> Result<StopSignal, CommandError> {
    let mut listeners = Listeners::lock();
    listeners.begin()?;
    Ok(listeners.builds.get_or_insert_default().clone())
}

/// Returns a flag that is set when a signal arrives while the flag lives. The recording then ends with a complete log.
/// A second signal ends the program at once.
pub(super) fn stop_on_signal() -> Result<Arc<AtomicBool>, CommandError> {
    let mut listeners = Listeners::lock();
    listeners.begin()?;
    let flag = Arc::new(AtomicBool::new(false));
    listeners.recordings.push(Arc::downgrade(&flag));
    Ok(flag)
}

/// Handles a signal.
fn end_all() {
    let mut listeners = Listeners::lock();
    match &listeners.first {
        Some(since) if since.elapsed_s() < SAME_PRESS.as_secs_f64() => {}
        None if !listeners.is_empty() => {
            listeners.first = Some(Stopwatch::start());
            listeners.builds.iter().for_each(StopSignal::stop);
            let flags = listeners.recordings.iter().filter_map(Weak::upgrade);
            flags.for_each(|flag| flag.store(true, Ordering::Relaxed));
        }
        Some(_) | None => {
            store::remove_unnamed();
            if std::io::stderr().is_terminal() {
                // A progress bar may be in the line.
                let _ = write!(std::io::stderr(), "\r\x1b[2K");
            }
            CommandError::Interrupted { resumes: false }.print();
            std::process::exit(CommandOutcome::Interrupted as i32)
        }
    }
}

/// Calls `action` at each signal, on its own thread. An ignored SIGHUP stays ignored, for `nohup`. SIGINT is always
/// handled: a shell script starts background processes with SIGINT ignored, and `kill -INT` must still work.
#[cfg(unix)]
fn at_each(action: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A write beyond the limit on the size of files then fails, and the command removes what it wrote.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    let listen = move || signals.forever().for_each(|_| action());
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen);
    thread.map(drop).map_err(|error| std::io::Error::new(error.kind(), format!("no thread can be started: {error}")))
}

/// Calls `action` at each Ctrl-C, on other systems.
#[cfg(not(unix))]
fn at_each(action: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(action)
}

/// Whether this process ignores a signal. False on systems without `/proc`.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    let ignored = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal - 1)) != 0
}

/// The number of threads to leave for readers and writers of files.
const SPARE_THREADS: usize = 4;

/// Starts the threads that all commands share: one on each core, or as many as `RAYON_NUM_THREADS` says. If the system
/// allows fewer, there are fewer.
///
/// # Errors
/// When the system allows no thread.
pub(super) fn start_threads() -> Result<(), CommandError> {
    let requested = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let wanted = requested.filter(|number| *number > 0).or_else(|| available_parallelism().map(usize::from).ok());
    let wanted = wanted.unwrap_or(1);
    let mut threads = Vec::new();
    let mut failed = None;
    while failed.is_none() && threads.len() < wanted + SPARE_THREADS {
        match WaitingThread::start() {
            Ok(thread) => threads.push(thread),
            Err(error) => failed = Some(error),
        }
    }
    let used = threads.len().saturating_sub(SPARE_THREADS).max(1);
    threads.drain(used.min(threads.len())..).for_each(WaitingThread::end);
    if let (true, Some(error)) = (threads.is_empty(), failed) {
        return Err(CommandError::request(format!(
            "no thread can be started: {error}: allow more processes or memory"
        )));
    }
    let mut waiting = threads.into_iter();
    let built = ThreadPoolBuilder::new().num_threads(used).spawn_handler(|work| match waiting.next() {
        Some(thread) => thread.run(work),
        None => Err(std::io::ErrorKind::WouldBlock.into()),
    });
    // A program that runs several commands has its threads already.
    _ = built.build_global();
    Ok(())
}

/// A thread that waits for its work.
struct WaitingThread {
    work: Sender<ThreadBuilder>,
    thread: JoinHandle<()>,
}

impl WaitingThread {
    fn start() -> std::io::Result<WaitingThread> {
        let (work, waiting): (_, Receiver<ThreadBuilder>) = channel();
        let thread = Builder::new().spawn(move || waiting.into_iter().for_each(ThreadBuilder::run))?;
        Ok(WaitingThread { work, thread })
    }

    fn run(self, work: ThreadBuilder) -> std::io::Result<()> {
        self.work.send(work).map_err(|_| std::io::ErrorKind::WouldBlock.into())
    }

    /// Ends the thread, so that another can start.
    fn end(self) {
        drop(self.work);
        // It runs nothing that can panic.
        _ = self.thread.join();
    }
}
