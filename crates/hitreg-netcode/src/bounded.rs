//! Queues of bounded length.

use std::collections::VecDeque;

/// Appends a value. Beyond `most` values, removes the oldest one and returns it.
#[inline]
pub(crate) fn push_bounded<T>(queue: &mut VecDeque<T>, value: T, most: usize) -> Option<T> {
    queue.push_back(value);
    if queue.len() > most { queue.pop_front() } else { None }
}
