//! A row that is remembered when the rows around it are gone: where it is, and what orders it among the others.

use std::cmp::Ordering;

use super::place::Place;

/// A row of either trace, or of both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) rank: Rank,
    pub(crate) place: Place,
}

/// What orders a row among the others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rank {
    /// Its session time, the earlier one where the traces disagree.
    pub(crate) at_us: Option<i64>,
    pub(crate) key: Vec<Part>,
    /// It is of both traces.
    pub(crate) is_pair: bool,
    /// Its place in A, or in B where A has none.
    pub(crate) row: u64,
}

/// A cell of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(i64),
    Name(String),
}

impl Mark {
    /// Its session time.
    pub(crate) fn at_us(&self) -> Option<i64> {
        self.rank.at_us
    }

    /// As their ranks.
    pub(crate) fn cmp(&self, other: &Mark) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Rank {
    /// The order in which rows happened: by time, then by key. Rows of unknown time come last; of rows with the same key a pair
    /// comes before one that is left over.
    pub(crate) fn cmp(&self, other: &Rank) -> Ordering {
        by_time(self.at_us, other.at_us)
            .then_with(|| self.key.cmp(&other.key))
            .then_with(|| other.is_pair.cmp(&self.is_pair))
            .then_with(|| self.row.cmp(&other.row))
    }
}

/// By time, the unknown ones last.
pub(crate) fn by_time(x: Option<i64>, y: Option<i64>) -> Ordering {
    match (x, y) {
        (Some(x), Some(y)) => x.cmp(&y),
        (x, y) => x.is_none().cmp(&y.is_none()),
    }
}
