//! Handles Ctrl-C, SIGTERM and SIGHUP: running jobs shut down, recordings are completed, and temporary files are
//! deleted.

mod signals;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::CommandOutcome;
use super::progress::Stopwatch;
use super::trouble::CommandError;
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
            let set = signals::at_each(end_all);
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
            std::process::exit(CommandOutcome::Interrupted as i32)
        }
    }
}
