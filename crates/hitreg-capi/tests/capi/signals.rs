//! Signals of the process reach the game's threads, not the recorder's.

use std::ptr::{null, null_mut};

use hitreg_capi::*;

/// Returns the blocked signals of each thread of this process with this name, as bits.
fn blocked_in(name: &str) -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.expect("a thread").path().join("status")).ok());
    let named = statuses.filter(|status| status.lines().next() == Some(&*format!("Name:\t{name}")));
    let blocked = named.map(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask");
        u64::from_str_radix(line, 16).expect("bits")
    });
    blocked.collect()
}

#[test]
fn the_recorders_thread_blocks_signals() {
    let own = |name: &str| std::fs::read_to_string("/proc/thread-self/status").expect(name);
    let before = own("the calling thread");
    let mut recorder = null_mut();
    // SAFETY: the name is a text, and the handles are valid or null.
    let status = unsafe {
        let description = hitreg_description_new(c"mygame".as_ptr());
        hitreg_description_player(description, c"p0".as_ptr());
        let code = hitreg_recorder_keep_last(5, description, null(), &raw mut recorder);
        hitreg_description_free(description);
        code
    };
    assert_eq!(status as u32, 0);
    let (interrupt, alarm, segv) = (1 << 1, 1 << 13, 1 << 10);
    // The thread answers, so it runs.
    // SAFETY: the handle is valid, and the path is a text.
    unsafe { hitreg_recorder_save(recorder, c"/nowhere/at.all".as_ptr()) };
    // Other tests of this process record in Rust, which has no way to block signals.
    let blocks = |mask: &u64| mask & interrupt != 0 && mask & alarm != 0 && mask & segv == 0;
    assert!(blocked_in("recorder").iter().any(blocks), "all but those of a crash");
    let mask = |status: &str| status.lines().find(|line| line.starts_with("SigBlk")).map(str::to_owned);
    assert_eq!(mask(&own("the calling thread")), mask(&before), "the caller's signals are as before");
    // SAFETY: the handle is valid.
    unsafe { hitreg_recorder_free(recorder) };
}
