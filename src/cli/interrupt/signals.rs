//! Receives the system's signals to end the program.

/// Calls `action` at each signal, on its own thread. An ignored SIGHUP stays ignored, for `nohup`. SIGINT is always
/// handled: a shell script starts background processes with SIGINT ignored, and `kill -INT` must still work.
#[cfg(unix)]
pub(super) fn at_each(action: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A write beyond the limit on the size of files then fails, and the command removes what it wrote.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))?;
    let listen = move || signals.forever().for_each(|_| action());
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen);
    thread.map(drop).map_err(|error| std::io::Error::new(error.kind(), format!("no thread can be started: {error}")))
}

/// Calls `action` at each Ctrl-C, on other systems.
#[cfg(not(unix))]
pub(super) fn at_each(action: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(action)
}

/// Whether this process ignores a signal. False on systems without `/proc`.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    let ignored = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal - 1)) != 0
}
