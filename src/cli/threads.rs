//! The threads of a command, within what the system allows.
#![expect(clippy::disallowed_methods, reason = "the number of threads does not affect results")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::trouble::CommandError;

/// The number of threads to leave for readers and writers of files.
const SPARE_THREADS: usize = 4;

/// Starts the threads that all commands share: one on each core, or as many as `RAYON_NUM_THREADS` says. If the system
/// allows fewer, there are fewer.
///
/// # Errors
/// When the system allows no thread.
pub(super) fn start() -> Result<(), CommandError> {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let wanted = asked.filter(|number| *number > 0).or_else(|| available_parallelism().map(usize::from).ok());
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
