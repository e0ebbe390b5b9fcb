//! Real-time priority for threads on which datagrams wait. When other programs keep all cores busy (for example two
//! games on one machine), such threads would otherwise wait for milliseconds.

use thread_priority::ThreadPriority;

/// Requests real-time scheduling for the calling thread. Returns whether the system granted it. Most systems require a
/// privilege (on Linux `CAP_SYS_NICE`, or a limit `rtprio` above 0).
#[cfg(unix)]
pub(super) fn run_at_once() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };

    // The lowest real-time priority is enough to precede all normal threads.
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Requests the highest priority for the calling thread. Returns whether the system granted it.
#[cfg(not(unix))]
pub(super) fn run_at_once() -> bool {
    ThreadPriority::Max.set_for_current().is_ok()
}
