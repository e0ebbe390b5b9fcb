//! Columns of whole numbers as few bytes: each value as its distance from what the one or two before it lead to expect, in
//! as many bytes of seven bits as that takes. `web/data.js` reads them.

use serde::Serialize;

/// All columns of a page, one after the other.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) bytes: Vec<u8>,
}

/// Where one of them is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Column {
    at: usize,
    rows: usize,
    /// How many values before each lead to expect it.
    order: u8,
    /// What 1 means in it.
    unit: f64,
}

impl Column {
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl Columns {
    /// Adds a column whose values tend to be those before them.
    pub(super) fn push(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> Column {
        self.add(values, unit, 1)
    }

    /// Adds one whose values tend to go on as they went.
    pub(super) fn push_steady(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> Column {
        self.add(values, unit, 2)
    }

    fn add(&mut self, values: impl IntoIterator<Item = i64>, unit: f64, order: u8) -> Column {
        let (at, mut rows, mut before, mut step) = (self.bytes.len(), 0, 0i64, 0i64);
        for value in values {
            let moved = value.wrapping_sub(before);
            let surprise = if order == 2 { moved.wrapping_sub(step) } else { moved };
            (before, step, rows) = (value, moved, rows + 1);
            let mut left = ((surprise << 1) ^ (surprise >> 63)) as u64;
            while left > 127 {
                self.bytes.push(left as u8 | 128);
                left >>= 7;
            }
            self.bytes.push(left as u8);
        }
        Column { at, rows, order, unit }
    }
}

/// A measure in whole units; what is no number, or beyond all measure, is cut to the greatest that a page shows.
pub(super) fn whole(value: f32, unit: f64) -> i64 {
    libm::round(f64::from(value) / unit).clamp(-MOST, MOST) as i64
}

/// Numbers up to this are exact in a browser even when they are added up.
const MOST: f64 = (1u64 << 40) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_go_on_as_they_went_take_a_byte_each() {
        let mut columns = Columns::default();
        let steady = columns.push_steady((0..100).map(|tick| 1_000_000 + tick * 15_625), 1.0);
        let far = columns.push([i64::MIN, i64::MAX, 0], 1.0);
        assert_eq!((steady.at, steady.rows, far.rows), (0, 100, 3));
        assert!(far.at < 108, "{far:?}");
        assert_eq!([whole(f32::INFINITY, 0.5), whole(1.3, 0.5), whole(f32::NAN, 1.0)], [1 << 40, 3, 0]);
    }
}
