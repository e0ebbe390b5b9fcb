//! Packs columns of whole numbers into few bytes. Each value is stored as its distance from a prediction, which uses
//! the one or two values before it. The distance is a varint of seven bits per byte. `web/data.js` reads the columns.

use serde::Serialize;

/// All columns of a page, one after the other.
#[derive(Debug, Default)]
pub(super) struct PageColumns {
    pub(super) bytes: Vec<u8>,
}

/// The location of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PackedColumn {
    at: usize,
    rows: usize,
    /// How many earlier values the prediction uses.
    order: u8,
    /// The size of the number 1, in the column's unit.
    unit: f64,
    /// The value of the number 0.
    #[serde(skip_serializing_if = "is_zero")]
    origin: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl PackedColumn {
    /// The same column with another value for the number 0.
    pub(super) fn with_origin(self, origin: f64) -> PackedColumn {
        PackedColumn { origin, ..self }
    }
}

impl PageColumns {
    /// Adds a column whose values are close to the value before.
    pub(super) fn push(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> PackedColumn {
        self.add(values, unit, 1)
    }

    /// Adds a column whose values change steadily.
    pub(super) fn push_steady(&mut self, values: impl IntoIterator<Item = i64>, unit: f64) -> PackedColumn {
        self.add(values, unit, 2)
    }

    fn add(&mut self, values: impl IntoIterator<Item = i64>, unit: f64, order: u8) -> PackedColumn {
        let (at, mut rows, mut before, mut step) = (self.bytes.len(), 0, 0i64, 0i64);
        for value in values {
            let moved = value.wrapping_sub(before);
            let surprise = if order == 2 { moved.wrapping_sub(step) } else { moved };
            (before, step, rows) = (value, moved, rows + 1);
            put_number(&mut self.bytes, surprise);
        }
        PackedColumn { at, rows, order, unit, origin: 0.0 }
    }

    /// Adds bytes, and returns their place.
    pub(super) fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() - bytes.len()
    }
}

/// Adds a number: seven bits per byte, lowest first, with the sign in the lowest bit.
pub(super) fn put_number(bytes: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    while left > 127 {
        bytes.push(left as u8 | 128);
        left >>= 7;
    }
    bytes.push(left as u8);
}

/// Converts a measured value to a whole number of units. NaN and values beyond the page's range are clamped.
pub(super) fn whole(value: impl Into<f64>, unit: f64) -> i64 {
    libm::round(value.into() / unit).clamp(-MOST, MOST) as i64
}

/// Sums of numbers up to this size are exact in a browser.
pub(super) const MOST: f64 = (1u64 << 40) as f64;

#[cfg(test)]
impl PackedColumn {
    /// The values of a column, as `web/data.js` restores them.
    pub(super) fn restored(&self, columns: &PageColumns) -> Vec<f64> {
        let (mut bytes, mut before, mut step) = (columns.bytes[self.at..].iter(), 0i64, 0i64);
        let mut number = || {
            let (mut number, mut shift) = (0u64, 0);
            loop {
                let byte = bytes.next().expect("a byte");
                number |= u64::from(byte & 127) << shift;
                shift += 7;
                if *byte < 128 {
                    return (number >> 1) as i64 ^ -((number & 1) as i64);
                }
            }
        };
        let value = |_| {
            step = if self.order == 2 { step + number() } else { number() };
            before += step;
            self.origin + before as f64 * self.unit
        };
        (0..self.rows).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_constant_steps_take_a_byte_each() {
        let mut columns = PageColumns::default();
        let steady = columns.push_steady((0..100).map(|tick| 1_000_000 + tick * 15_625), 1.0);
        let far = columns.push([i64::MIN, i64::MAX, 0], 1.0);
        assert_eq!((steady.at, steady.rows, far.rows), (0, 100, 3));
        assert!(far.at < 108, "{far:?}");
        assert_eq!([whole(f32::INFINITY, 0.5), whole(1.3, 0.5), whole(f32::NAN, 1.0)], [1 << 40, 3, 0]);
    }
}
