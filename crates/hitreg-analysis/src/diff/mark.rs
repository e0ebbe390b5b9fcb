//! A record of a row's place and sort order, kept after the row itself is dropped.

use std::cmp::Ordering;

use super::place::Place;

/// A row of one trace, or a pair of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) rank: Rank,
    pub(crate) place: Place,
}

/// The sort key of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rank {
    /// The session time in microseconds; the earlier time if the traces differ.
    pub(crate) at_us: Option<i64>,
    pub(crate) key: Vec<Part>,
    /// Whether both traces have the row.
    pub(crate) is_pair: bool,
    /// The row number in A, or in B if A lacks the row.
    pub(crate) row: u64,
}

/// A cell of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(i64),
    Name(String),
}

impl Mark {
    /// The session time, in microseconds.
    pub(crate) fn at_us(&self) -> Option<i64> {
        self.rank.at_us
    }

    /// Compares the ranks.
    pub(crate) fn cmp(&self, other: &Mark) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Rank {
    /// The order in which rows happened: by time, then by key. Rows of unknown time come last. For equal keys, a pair
    /// comes before an unpaired row.
    pub(crate) fn cmp(&self, other: &Rank) -> Ordering {
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
