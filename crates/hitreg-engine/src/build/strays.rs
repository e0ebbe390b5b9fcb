//! Ends processes that a build started and that left its process group, as daemons do. They are found by a mark in
//! their environment, which child processes inherit unless they clear it.

use std::process::Command;

/// The environment variable with the marks of all runs that a process belongs to, outermost first.
const VARIABLE: &str = "HITREG_BUILD_RUNS";

/// The mark of one run of a build.
pub(super) struct ProcessMark {
    // Not read on systems where the environment of processes cannot be read.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    mark: String,
}

impl ProcessMark {
    /// Adds a new mark to a command's environment.
    #[expect(clippy::disallowed_methods, reason = "a build may itself run builds, and then both marks apply")]
    pub(super) fn mark(command: &mut Command) -> ProcessMark {
        use std::sync::atomic::{AtomicU64, Ordering};
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}.{};", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let mut all = std::env::var_os(VARIABLE).unwrap_or_default();
        all.push(&mark);
        command.env(VARIABLE, all);
        ProcessMark { mark }
    }

    /// Ends all processes that still have the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn end_all(&self) {
        // A process that starts another at this moment is found in the next round.
        for _ in 0..ROUNDS {
            if !self.end_visible() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn end_all(&self) {}

    #[cfg(target_os = "linux")]
    fn end_visible(&self) -> bool {
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let mut any = false;
        for process in processes.flatten() {
            let number = process.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.and_then(Pid::from_raw) else { continue };
            // Opened before its environment is read, so that the process number cannot go to another process in
            // between.
            let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if self.is_in(&std::fs::read(process.path().join("environ")).unwrap_or_default()) {
                // This fails if the process has already ended.
                any |= pidfd_send_signal(&held, Signal::KILL).is_ok();
            }
        }
        any
    }

    /// Whether a process environment, as the system shows it, has the mark.
    #[cfg(target_os = "linux")]
    fn is_in(&self, environment: &[u8]) -> bool {
        let ours = environment.split(|&byte| byte == 0).filter_map(|pair| pair.strip_prefix(VARIABLE.as_bytes()));
        let values = ours.filter_map(|rest| rest.strip_prefix(b"="));
        values.flat_map(|marks| marks.split_inclusive(|&byte| byte == b';')).any(|mark| mark == self.mark.as_bytes())
    }
}

/// How many times to search again for processes that were started in the meantime.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 100;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_only_as_a_complete_variable() {
        let mark = ProcessMark { mark: "12.3;".to_owned() };
        let found = |environment: &str| mark.is_in(environment.as_bytes());
        assert!(found("A=b\0HITREG_BUILD_RUNS=7.1;12.3;\0C=d\0"));
        assert!(found("HITREG_BUILD_RUNS=12.3;8.0;"));
        assert!(!found("HITREG_BUILD_RUNS=112.3;\0"));
        assert!(!found("HITREG_BUILD_RUNS=12.33;\0"));
        assert!(!found("OTHER_HITREG_BUILD_RUNS=12.3;\0"));
        assert!(!found(""));
    }
}
