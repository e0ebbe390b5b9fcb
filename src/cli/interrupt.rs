//! Being told to end, by Ctrl-C, SIGTERM or SIGHUP: what runs is put in order, and what was recorded is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Outcome;
use super::progress::Stopwatch;
use super::trouble::Trouble;
use crate::build::Stop;

/// One press of Ctrl-C may come twice, from the terminal and from whoever passes it on to a process group (make, a shell, a
/// container's init): what comes so soon after the first is no second one.
const SAME_PRESS: Duration = Duration::from_secs(1);

/// What ends when the program is told to end. From the first call on it is listened to: the first time lets whoever runs
/// builds or records put things in order, the second one ends the program on the spot.
pub(super) fn stop() -> Result<Stop, Trouble> {
    static STOP: Mutex<Option<Stop>> = Mutex::new(None);
    let mut heard = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = &*heard {
        return Ok(stop.clone());
    }
    let stop = Stop::default();
    let to_stop = stop.clone();
    listen(move || to_stop.stop())?;
    *heard = Some(stop.clone());
    Ok(stop)
}

/// Set when the program is told to end, by Ctrl-C, SIGTERM or SIGHUP.
pub(super) fn stop_when_told() -> Result<Arc<AtomicBool>, Trouble> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    listen(move || set.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// Calls `end` the first time that the program is told to end, and ends it on the spot the second time.
pub(super) fn listen(end: impl Fn() + Send + 'static) -> Result<(), Trouble> {
    let mut first: Option<Stopwatch> = None;
    let handler = move || match &first {
        None => {
            first = Some(Stopwatch::start());
            end();
        }
        Some(since) if since.elapsed_s() < SAME_PRESS.as_secs_f64() => {}
        Some(_) => std::process::exit(Outcome::Interrupted as i32),
    };
    ctrlc::set_handler(handler).map_err(|error| Trouble::Request(format!("signals cannot be listened to: {error}")))
}
