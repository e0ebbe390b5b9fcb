//! The system's way of telling a program to end. What whoever started it wants ignored is ignored: SIGHUP under `nohup`, Ctrl-C
//! in the background of a script.

/// Calls this at each of them, one after the other, on a thread of its own.
#[cfg(unix)]
pub(super) fn at_each(told: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = ignored();
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = signal_hook::iterator::Signals::new(heard)?;
    let listen = move || signals.forever().for_each(|_| told());
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

/// The same where the system has other means.
#[cfg(not(unix))]
pub(super) fn at_each(told: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(told)
}

/// Which signals this process ignores, the first one in the lowest bit; none where the system does not say it in a file.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}
