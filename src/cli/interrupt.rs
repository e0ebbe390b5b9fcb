//! Ctrl-C while builds run: they end with all that they started, what is temporary is removed, and the exit code is 130.

use std::sync::{Mutex, PoisonError};

use super::Outcome;
use super::trouble::Trouble;
use crate::build::Stop;

/// What ends when the user interrupts. From the first call on Ctrl-C is listened to: the first one lets whoever runs
/// builds put things in order, the second one ends the program on the spot.
pub(super) fn stop() -> Result<Stop, Trouble> {
    static STOP: Mutex<Option<Stop>> = Mutex::new(None);
    let mut heard = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = &*heard {
        return Ok(stop.clone());
    }
    let stop = Stop::default();
    let to_stop = stop.clone();
    let handler = move || {
        if to_stop.is_stopped() {
            std::process::exit(Outcome::Interrupted as i32);
        }
        to_stop.stop();
    };
    ctrlc::set_handler(handler).map_err(|error| Trouble::Request(format!("Ctrl-C cannot be listened to: {error}")))?;
    *heard = Some(stop.clone());
    Ok(stop)
}
