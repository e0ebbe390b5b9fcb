//! A record of a row's place and sort order, kept after the row itself is dropped.

use std::cmp::Ordering;

use super::place::RowPlace;

/// A row of one trace, or a pair of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowMark {
    pub(crate) rank: RowRank,
    pub(crate) place: RowPlace,
}

/// The sort key of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowRank {
    /// The session time in microseconds; the earlier time if the traces differ.
    pub(crate) at_us: Option<i64>,
    pub(crate) key: Vec<KeyPart>,
    /// Whether both traces have the row.
    pub(crate) is_pair: bool,
    /// The row number in A, or in B if A lacks the row.
    pub(crate) row: u64,
}

/// A cell of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyPart {
    Number(i64),
    Name(String),
}

impl RowMark {
    /// The session time, in microseconds.
    pub(crate) fn at_us(&self) -> Option<i64> {
        self.rank.at_us
    }

    /// Compares the ranks.
    pub(crate) fn cmp(&self, other: &RowMark) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl RowRank {
    /// The order in which rows happened: by time, then by key. Rows of unknown time come last. For equal keys, a pair
    /// comes before an unpaired row.
    pub(crate) fn cmp(&self, other: &RowRank) -> Ordering {
        by_time(self.at_us, other.at_us)
            .then_with(|| self.key.cmp(&other.key))
            .then_with(|| other.is_pair.cmp(&self.is_pair))
            .then_with(|| self.row.cmp(&other.row))
    }
}

/// Compares by time. Unknown times come last.
pub(crate) fn by_time(x: Option<i64>, y: Option<i64>) -> Ordering {
    match (x, y) {
        (Some(x), Some(y)) => x.cmp(&y),
        (x, y) => x.is_none().cmp(&y.is_none()),
    }
}
