//! Signals of the programs that tests start: a hangup ends them, even if the tests run under `nohup`.
#![cfg(unix)]

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGHUP;

/// Makes programs that start from now on end at a hangup, as in a terminal. Under `nohup` every program ignores it. A
/// new process inherits an ignored signal, but not a handled one, so the tests handle it.
pub(crate) fn hangups_end_programs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if hangups_are_ignored() {
            signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false))).expect("a handler");
        }
    });
}

/// Hangups count as ignored unless `/proc` says that they are not.
fn hangups_are_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
