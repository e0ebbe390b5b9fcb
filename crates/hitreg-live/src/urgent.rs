//! Threads that datagrams wait for. Other programs keep them waiting for milliseconds where all cores are busy, as two games on
//! one machine make them, unless the system is asked to run them as soon as there is something to do.

use thread_priority::ThreadPriority;

/// Asks for the calling thread; whether that was granted. Most systems want a privilege for it (on Linux `CAP_SYS_NICE`, or a limit
/// `rtprio` above 0).
#[cfg(unix)]
pub(super) fn run_at_once() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };

    // The least of the policy is enough to come before all that is not of it.
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// The same.
#[cfg(not(unix))]
pub(super) fn run_at_once() -> bool {
    ThreadPriority::Max.set_for_current().is_ok()
}
