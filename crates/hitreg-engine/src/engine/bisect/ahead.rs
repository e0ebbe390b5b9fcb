//! Runs probes concurrently: the one that a search waits for, and others that it may need next.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use crate::build::StopSignal;
use hitreg_log::sorted::SortedMap;

/// A function that runs one probe. The number is its slot, such as a worktree, which no other running probe uses.
pub(super) type ProbeFn<'env, K, T> = dyn Fn(&K, &StopSignal, usize) -> T + Sync + 'env;

/// Runs up to `jobs` probes at a time.
pub(super) struct ProbePool<'scope, 'env, K, T> {
    scope: &'scope Scope<'scope, 'env>,
    probe: &'env ProbeFn<'env, K, T>,
    stop: StopSignal,
    jobs: usize,
    running: SortedMap<K, RunningProbe>,
    done: SortedMap<K, T>,
    begun: usize,
    ended: Sender<FinishedProbe<K, T>>,
    endings: Receiver<FinishedProbe<K, T>>,
}

struct RunningProbe {
    stop: StopSignal,
    place: usize,
}

type FinishedProbe<K, T> = (K, Result<T, Box<dyn Any + Send>>);

impl<'scope, 'env, K: Ord + Clone + Send + 'scope, T: Send + 'scope> ProbePool<'scope, 'env, K, T> {
    /// Creates an idle runner. `stop` ends all its probes.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        probe: &'env ProbeFn<'env, K, T>,
        stop: &StopSignal,
        jobs: usize,
    ) -> ProbePool<'scope, 'env, K, T> {
        let (ended, endings) = channel();
        ProbePool {
            scope,
            probe,
            stop: stop.clone(),
            jobs: jobs.max(1),
            running: SortedMap::new(),
            done: SortedMap::new(),
            begun: 0,
            ended,
            endings,
        }
    }

    /// Waits for the result of `first`, and meanwhile runs the other wanted probes in free slots. Stops running probes
    /// that are not wanted.
    pub(super) fn get(&mut self, first: &K, wanted: &[K]) -> T {
        self.done.retain(|key, _| key == first || wanted.contains(key));
        loop {
            if let Some(found) = self.done.remove(first) {
                return found;
            }
            for (_, running) in self.running.iter().filter(|(key, _)| *key != first && !wanted.contains(key)) {
                running.stop.stop();
            }
            for key in std::iter::once(first).chain(wanted) {
                if self.running.len() < self.jobs && !self.running.contains_key(key) && !self.done.contains_key(key) {
                    self.begin(key);
                }
            }
            // At least one probe runs: `first`, or a stopped one that still holds its slot.
            let Ok((key, ended)) = self.endings.recv() else { unreachable!("a sender is kept for as long as this is") };
            let stopped = self.running.remove(&key).is_none_or(|running| running.stop.is_stopped());
            match ended {
                Ok(found) if !stopped || self.stop.is_stopped() => drop(self.done.insert(key, found)),
                Ok(_) => {}
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    /// Stops all running probes and waits for them.
    pub(super) fn end(&mut self) {
        self.stop_all();
        while !self.running.is_empty() {
            let Ok((key, _)) = self.endings.recv() else { unreachable!("a sender is kept for as long as this is") };
            self.running.remove(&key);
        }
    }

    /// The number of finished probes whose results were not used yet.
    pub(super) fn waiting(&self) -> usize {
        self.done.len()
    }

    /// The number of probes that were started, including speculative ones.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    fn begin(&mut self, key: &K) {
        let places = || self.running.values().map(|running| running.place);
        let place = (0..).find(|place| places().all(|taken| taken != *place)).unwrap_or_default();
        let stop = self.stop.part();
        self.running.insert(key.clone(), RunningProbe { stop: stop.clone(), place });
        self.begun += 1;
        let (probe, key, sender) = (self.probe, key.clone(), self.ended.clone());
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| probe(&key, &stop, place)));
            // The receiver is gone if the search has ended.
            let _ = sender.send((key.clone(), ended));
        };
        let thread = std::thread::Builder::new().spawn_scoped(self.scope, work.clone());
        // If the system allows no more threads, this one runs the probe.
        thread.map_or_else(|_| work(), drop);
    }
}

impl<K, T> ProbePool<'_, '_, K, T> {
    fn stop_all(&self) {
        for running in self.running.values() {
            running.stop.stop();
        }
    }
}

impl<K, T> Drop for ProbePool<'_, '_, K, T> {
    fn drop(&mut self) {
        self.stop_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    /// Sleeps for `ms` milliseconds, unless it is stopped.
    fn sleep(ms: u64, stop: &StopSignal) -> Result<(), ()> {
        for _ in 0..ms {
            if stop.is_stopped() {
                return Err(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[test]
    fn the_wanted_probe_is_awaited_and_others_are_ready_or_stopped() {
        let log: Mutex<Vec<(u64, bool)>> = Mutex::default();
        let probe = |ms: &u64, stop: &StopSignal, place: usize| {
            assert!(place < 3);
            let done = sleep(*ms, stop).is_ok();
            log.lock().unwrap().push((*ms, done));
            *ms * 10
        };
        std::thread::scope(|scope| {
            let mut ahead = ProbePool::new(scope, &probe, &StopSignal::default(), 3);
            assert_eq!(ahead.get(&60, &[1, 60_000, 2]), 600);
            assert_eq!((ahead.begun(), ahead.waiting() >= 1), (4, true));
            // The result of 3 is available; probes that are not wanted are stopped.
            assert_eq!(ahead.get(&1, &[3]), 10);
            assert_eq!(ahead.get(&3, &[50_000]), 30);
        });
        let log = log.into_inner().unwrap();
        assert!(log.contains(&(60_000, false)), "{log:?}");
        assert_eq!(log.iter().filter(|(_, done)| *done).count(), 4, "{log:?}");
        assert_eq!(log.len(), if log.contains(&(50_000, false)) { 6 } else { 5 }, "{log:?}");
    }

    #[test]
    fn one_at_a_time_runs_nothing_ahead() {
        let probe = |key: &u32, _: &StopSignal, place: usize| (*key, place);
        std::thread::scope(|scope| {
            let mut ahead = ProbePool::new(scope, &probe, &StopSignal::default(), 1);
            assert_eq!(ahead.get(&7, &[8, 9]), (7, 0));
            assert_eq!((ahead.begun(), ahead.waiting()), (1, 0));
        });
    }
}
