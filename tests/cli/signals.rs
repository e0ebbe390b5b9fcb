//! Signals of the programs that tests start: a hangup ends them, however the tests themselves were started.
#![cfg(unix)]

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGHUP;

/// Makes programs that start from here on end at a hangup, as they do in a terminal. `nohup` lets every program ignore it. A
/// program that starts takes an ignored signal over, but not one that is handled, so the tests handle it.
pub(crate) fn hangups_end_programs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if hangups_are_ignored() {
            signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false))).expect("a handler");
        }
    });
}

/// Where Linux does not say so, hangups count as ignored.
#[expect(clippy::disallowed_methods, reason = "tests ask the system how they were started")]
fn hangups_are_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
