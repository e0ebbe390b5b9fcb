//! Ascending whole numbers with counts, in a compact form.

use hitreg_log::varint::{Cursor, put_varint};

/// Ascending numbers, each with its count.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedCounts {
    /// For each number: the distance from the previous one (the first from 0), and its count.
    bytes: Vec<u8>,
    len: usize,
    last: i64,
}

impl PackedCounts {
    /// How many different numbers there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, (number, count): (i64, u64)) {
        put_varint(&mut self.bytes, number.wrapping_sub(self.last) as u64);
        put_varint(&mut self.bytes, count);
        (self.len, self.last) = (self.len + 1, number);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let (mut from, mut last) = (Cursor::new(&self.bytes), 0i64);
        std::iter::from_fn(move || {
            last = last.wrapping_add(from.varint().ok()? as i64);
            Some((last, from.varint().ok()?))
        })
    }
}

/// Merges two ascending sequences. Counts of equal numbers are added.
pub(super) fn merged(known: impl Iterator<Item = (i64, u64)>, new: impl Iterator<Item = (i64, u64)>) -> PackedCounts {
    let mut all = PackedCounts::default();
    let mut open: Option<(i64, u64)> = None;
    let mut put = |(number, count): (i64, u64)| match &mut open {
        Some((last, before)) if *last == number => *before += count,
        open => open.replace((number, count)).into_iter().for_each(|done| all.push(done)),
    };
    let mut known = known.peekable();
    for next in new {
        while let Some(smaller) = known.next_if(|(number, _)| *number <= next.0) {
            put(smaller);
        }
        put(next);
    }
    known.for_each(put);
    open.into_iter().for_each(|done| all.push(done));
    all
}
