//! The system's way of telling a program to end.

/// Calls this at each of them, one after the other, on a thread of its own. SIGHUP that is ignored stays so, which is what `nohup`
/// asks for; a script that starts something in the background has Ctrl-C ignored, too, and still ends it by `kill -INT`.
#[cfg(unix)]
pub(super) fn at_each(told: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    let listen = move || signals.forever().for_each(|_| told());
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

/// The same where the system has other means.
#[cfg(not(unix))]
pub(super) fn at_each(told: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(told)
}

/// Whether this process ignores a signal; not where the system does not say so in a file.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first signal is the lowest bit.
    let ignored = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal - 1)) != 0
}
