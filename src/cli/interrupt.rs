//! Being told to end, by Ctrl-C, SIGTERM or SIGHUP: what runs is put in order, what was recorded is kept, and what is not whole
//! goes.

mod signals;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Outcome;
use super::progress::Stopwatch;
use super::trouble::Trouble;
use crate::build::Stop;
use crate::store;

/// One press of Ctrl-C may come twice, from the terminal and from whoever passes it on to a process group (make, a shell, a
/// container's init): what comes so soon after the first is no second one.
const SAME_PRESS: Duration = Duration::from_secs(1);

/// From here on nothing temporary is left when the program is told to end.
pub(super) fn leave_nothing() -> Result<(), Trouble> {
    hear(listeners().get_or_insert_default())
}

/// What ends when the program is told to end. From the first call on it is listened to: the first time lets whoever runs
/// builds put things in order, the second one ends the program on the spot.
pub(super) fn stop() -> Result<Stop, Trouble> {
    static STOP: Mutex<Option<(Stop, Listening)>> = Mutex::new(None);
    let mut heard = STOP.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((stop, _)) = &*heard {
        return Ok(stop.clone());
    }
    let stop = Stop::default();
    let to_stop = stop.clone();
    let listening = listen(move || to_stop.stop())?;
    *heard = Some((stop.clone(), listening));
    Ok(stop)
}

/// Whether the program was told to end while something was recorded, so that the recording ends whole.
pub(super) struct Told {
    told: Arc<AtomicBool>,
    _listening: Listening,
}

impl Deref for Told {
    type Target = AtomicBool;
    fn deref(&self) -> &AtomicBool {
        &self.told
    }
}

/// Listens for as long as the result lives: a second time, and whatever comes after that, ends the program on the spot.
pub(super) fn stop_when_told() -> Result<Told, Trouble> {
    let told = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&told);
    let listening = listen(move || set.store(true, Ordering::Relaxed))?;
    Ok(Told { told, _listening: listening })
}

/// Who is told first. The program's handler can be set but once, and one program may run several commands.
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

/// One of them; dropped, it is told no more.
struct Listening(u64);

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(listeners) = &mut *listeners() {
            listeners.ends.retain(|(number, _)| *number != self.0);
        }
    }
}

fn listen(end: impl Fn() + Send + 'static) -> Result<Listening, Trouble> {
    let mut listeners = listeners();
    let listeners = listeners.get_or_insert_default();
    hear(listeners)?;
    if listeners.ends.is_empty() {
        listeners.first = None;
    }
    let number = listeners.next;
    listeners.next += 1;
    listeners.ends.push((number, Box::new(end)));
    Ok(Listening(number))
}

fn hear(listeners: &mut Listeners) -> Result<(), Trouble> {
    if !listeners.is_set {
        let set = signals::at_each(end_all);
        set.map_err(|error| Trouble::Request(format!("signals cannot be listened to: {error}")))?;
        listeners.is_set = true;
    }
    Ok(())
}

/// What a signal does.
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
            std::process::exit(Outcome::Interrupted as i32)
        }
    }
}
