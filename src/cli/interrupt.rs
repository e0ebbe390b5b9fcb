//! Handles Ctrl-C, SIGTERM and SIGHUP: running jobs shut down, recordings are completed, and temporary files are
//! deleted.

mod signals;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::CommandOutcome;
use super::progress::Stopwatch;
use super::trouble::CommandError;
use crate::build::StopSignal;
use crate::store;

/// Signals within this time count as one. A terminal and a process that forwards signals to its group (make, a shell, a
/// container's init) can deliver one Ctrl-C twice.
const SAME_PRESS: Duration = Duration::from_secs(1);

/// Installs the handler that deletes temporary files when the program is interrupted.
pub(super) fn leave_nothing() -> Result<(), CommandError> {
    hear(listeners().get_or_insert_default())
}

/// Returns the stop that the first signal triggers, so that running builds can shut down. A second signal ends the
/// program at once. The handler is installed by the first call.
pub(super) fn stop() -> Result<StopSignal, CommandError> {
    static STOP: Mutex<Option<(StopSignal, InterruptListener)>> = Mutex::new(None);
    let mut heard = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((stop, _)) = &*heard {
        return Ok(stop.clone());
    }
    let stop = StopSignal::default();
    let to_stop = stop.clone();
    let listening = listen(move || to_stop.stop())?;
    *heard = Some((stop.clone(), listening));
    Ok(stop)
}

/// A flag that is set when a signal arrives during a recording. The recording then ends with a complete log.
pub(super) struct InterruptFlag {
    told: Arc<AtomicBool>,
    _listening: InterruptListener,
}

impl Deref for InterruptFlag {
    type Target = AtomicBool;
    fn deref(&self) -> &AtomicBool {
        &self.told
    }
}

/// Installs a handler for as long as the result lives. A second signal ends the program at once.
pub(super) fn stop_on_signal() -> Result<InterruptFlag, CommandError> {
    let told = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&told);
    let listening = listen(move || set.store(true, Ordering::Relaxed))?;
    Ok(InterruptFlag { told, _listening: listening })
}

/// The handlers to call at the first signal. The process has one system handler, but may run several commands.
#[derive(Default)]
struct Listeners {
    is_set: bool,
    first: Option<Stopwatch>,
    ends: Vec<(u64, Box<dyn Fn() + Send>)>,
    next: u64,
}

fn listeners() -> MutexGuard<'static, Option<Listeners>> {
    static LISTENERS: Mutex<Option<Listeners>> = Mutex::new(None);
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A registered handler. Dropping it removes the handler.
struct InterruptListener(u64);

impl Drop for InterruptListener {
    fn drop(&mut self) {
        if let Some(listeners) = &mut *listeners() {
            listeners.ends.retain(|(number, _)| *number != self.0);
        }
    }
}

fn listen(end: impl Fn() + Send + 'static) -> Result<InterruptListener, CommandError> {
    let mut listeners = listeners();
    let listeners = listeners.get_or_insert_default();
    hear(listeners)?;
    if listeners.ends.is_empty() {
        listeners.first = None;
    }
    let number = listeners.next;
    listeners.next += 1;
    listeners.ends.push((number, Box::new(end)));
    Ok(InterruptListener(number))
}

fn hear(listeners: &mut Listeners) -> Result<(), CommandError> {
    if !listeners.is_set {
        let set = signals::at_each(end_all);
        set.map_err(|error| CommandError::request(format!("signals cannot be listened to: {error}")))?;
        listeners.is_set = true;
    }
    Ok(())
}

/// Handles a signal.
fn end_all() {
    let mut listeners = listeners();
    let Some(listeners) = &mut *listeners else { return };
    match &listeners.first {
        Some(since) if since.elapsed_s() < SAME_PRESS.as_secs_f64() => {}
        None if !listeners.ends.is_empty() => {
            listeners.first = Some(Stopwatch::start());
            listeners.ends.iter().for_each(|(_, end)| end());
        }
        Some(_) | None => {
            store::remove_unnamed();
            std::process::exit(CommandOutcome::Interrupted as i32)
        }
    }
}
