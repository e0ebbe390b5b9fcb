//! Runs games and builds: the games of a program behind one trait ([`engine::Playable`]), other builds as processes
//! ([`build`]), [`verify`], [`shrink`], [`sweep`], and the searches of `hitreg bisect` ([`bisect`]).

pub mod bisect;
pub mod build;
mod comparison;
mod contract;
pub mod corpus;
mod effects;
pub mod engine;
mod games;
mod merge;
mod moment;
mod shown;
pub mod shrink;
mod surveyed_log;
pub mod sweep;
pub mod verify;

/// Runs numbered jobs, at most `at_once` at a time, and returns their results in order. A free thread takes the next
/// job, so the jobs may take different times.
pub(crate) fn in_order<T: Send>(jobs: usize, at_once: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    use rayon::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let next = AtomicUsize::new(0);
    let some = |_| -> Vec<(usize, T)> {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|number| *number < jobs).map(|number| (number, run(number))).collect()
    };
    let mut all: Vec<_> = (0..at_once.max(1)).into_par_iter().with_max_len(1).flat_map_iter(some).collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, made)| made).collect()
}
