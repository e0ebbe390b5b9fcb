//! Signals of the process, which belong to the game's threads.

/// Blocks the signals of the calling thread until it is dropped, except those of its own faults. A thread that starts
/// meanwhile never receives any.
pub(crate) struct BlockedSignals {
    #[cfg(unix)]
    before: libc::sigset_t,
}

impl BlockedSignals {
    #[cfg(unix)]
    pub(crate) fn new() -> BlockedSignals {
        // SAFETY: both sets are valid, and zeros are a set. The calls cannot fail with these arguments.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS] {
                libc::sigdelset(&raw mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            BlockedSignals { before }
        }
    }

    /// There are no signals of a process.
    #[cfg(not(unix))]
    pub(crate) fn new() -> BlockedSignals {
        BlockedSignals {}
    }
}

#[cfg(unix)]
impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is one that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
