//! Joins the rows of two tables by key.

use super::keys::{KeyCells, TraceSide};

/// Pairs of rows with equal keys. If a key occurs more than once, rows are paired in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowJoin {
    /// How many first rows have the same keys in the same order.
    pub(crate) aligned: usize,
    /// The other pairs.
    rest: Vec<(u32, u32)>,
    /// Rows that B lacks.
    pub(crate) only_a: Vec<u32>,
    /// Rows that A lacks.
    pub(crate) only_b: Vec<u32>,
}

impl RowJoin {
    /// Joins two tables with these numbers of rows.
    pub(crate) fn of(keys: &KeyCells, rows_a: usize, rows_b: usize) -> RowJoin {
        let aligned = keys.common_prefix(rows_a.min(rows_b));
        let mut joined = RowJoin { aligned, ..RowJoin::default() };
        let a = sorted(keys, TraceSide::A, aligned..rows_a);
        let b = sorted(keys, TraceSide::B, aligned..rows_b);
        let (mut left, mut right) = (a.iter().copied().peekable(), b.iter().copied().peekable());
        while let (Some(&i), Some(&j)) = (left.peek(), right.peek()) {
            match keys.cmp((TraceSide::A, i as usize), (TraceSide::B, j as usize)) {
                std::cmp::Ordering::Less => joined.only_a.extend(left.next()),
                std::cmp::Ordering::Greater => joined.only_b.extend(right.next()),
                std::cmp::Ordering::Equal => joined.rest.extend(left.next().zip(right.next())),
            }
        }
        joined.only_a.extend(left);
        joined.only_b.extend(right);
        joined
    }

    /// How many pairs there are.
    pub(crate) fn len(&self) -> usize {
        self.aligned + self.rest.len()
    }

    /// The rows of a pair in A and in B.
    pub(crate) fn pair(&self, index: usize) -> (usize, usize) {
        match index.checked_sub(self.aligned) {
            None => (index, index),
            Some(index) => (self.rest[index].0 as usize, self.rest[index].1 as usize),
        }
    }

    /// All pairs.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.len()).map(|index| self.pair(index))
    }
}

fn sorted(keys: &KeyCells, side: TraceSide, rows: std::ops::Range<usize>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.map(|row| row as u32).collect();
    rows.sort_unstable_by(|x, y| keys.cmp((side, *x as usize), (side, *y as usize)).then(x.cmp(y)));
    rows
}
