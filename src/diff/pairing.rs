//! The rows of one table in both traces: joined, timed, and in the order in which they happened.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::clock::Clock;
use super::join::Joined as Rows;
use super::keys::{Key, KeyCells, Side};
use crate::trace::Table;
use crate::trace::schema::Joined;

/// A row of either trace, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Its session time, the earlier one where the traces disagree.
    pub(crate) at_us: Option<i64>,
    /// The row in A.
    pub(crate) a: Option<u32>,
    /// The row in B.
    pub(crate) b: Option<u32>,
}

/// Both traces' rows of one table.
pub(crate) struct Pairing<'a> {
    pub(crate) a: &'a Table,
    pub(crate) b: &'a Table,
    pub(crate) key: Key,
    pub(crate) keys: KeyCells,
    pub(crate) joined: Rows,
    times: [Vec<Option<i64>>; 2],
    /// Whether the pairs are known to be in the order of their times already.
    in_time_order: bool,
}

impl<'a> Pairing<'a> {
    /// # Errors
    /// In words, when the rows cannot be told apart.
    pub(crate) fn of(a: &'a Table, b: &'a Table, key: Key, clocks: [&Clock; 2]) -> Result<Pairing<'a>, String> {
        let keys = KeyCells::of(&key, a, b)?;
        let joined = Rows::of(&keys, a.rows(), b.rows());
        let times = [clocks[0].of_rows(a), clocks[1].of_rows(b)];
        let is_ordered = |times: &[Option<i64>]| times.is_sorted() && times.first().is_none_or(|at| at.is_some());
        let in_time_order = joined.aligned == joined.len() && times.iter().all(|times| is_ordered(times));
        Ok(Pairing { a, b, key, keys, joined, times, in_time_order })
    }

    pub(crate) fn spot(&self, pair: usize) -> Spot {
        let (i, j) = self.joined.pair(pair);
        let at_us = match (self.times[0][i], self.times[1][j]) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Spot { at_us, a: Some(i as u32), b: Some(j as u32) }
    }

    pub(crate) fn spot_of(&self, side: Side, row: u32) -> Spot {
        let at_us = self.times[side as usize][row as usize];
        match side {
            Side::A => Spot { at_us, a: Some(row), b: None },
            Side::B => Spot { at_us, a: None, b: Some(row) },
        }
    }

    /// Whether a pair is of the same time, as far as that is known and matters.
    pub(crate) fn same_time(&self, i: usize, j: usize) -> bool {
        match (self.key.joined, self.times[0][i], self.times[1][j]) {
            (Joined::Always, ..) => true,
            (_, Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    /// The order in which rows happened: by time, then by key. Rows of unknown time come last.
    pub(crate) fn cmp(&self, x: &Spot, y: &Spot) -> Ordering {
        let time = match (x.at_us, y.at_us) {
            (Some(x), Some(y)) => x.cmp(&y),
            (x, y) => x.is_none().cmp(&y.is_none()),
        };
        time.then_with(|| match (x.row(), y.row()) {
            // Of rows with the same key a pair comes before one that is left over.
            (Some(p), Some(q)) => self.keys.cmp(p, q).then(y.is_pair().cmp(&x.is_pair())).then(p.1.cmp(&q.1)),
            (p, q) => p.is_none().cmp(&q.is_none()),
        })
    }

    /// Whose row it is, as the key columns have it.
    pub(crate) fn owner(&self, spot: &Spot) -> Owner {
        let part = |place: usize| {
            let part = self.key.series.get(place)?;
            let (side, row) = spot.row()?;
            Some(self.keys.part(*part, side, row))
        };
        (part(0), part(1))
    }

    /// The last pair of each owner among those that `compared` lets pass. Pairs before `since` may be left out.
    pub(crate) fn last_of_each(&self, since: &Spot, compared: impl Fn(usize) -> bool) -> BTreeMap<Owner, Spot> {
        let mut last: BTreeMap<Owner, Spot> = BTreeMap::new();
        for (_, spot) in self.back_to(since).filter(|(pair, _)| compared(*pair)) {
            let known = last.entry(self.owner(&spot)).or_insert(spot);
            if self.cmp(known, &spot).is_lt() {
                *known = spot;
            }
        }
        last
    }

    /// The last pair of the same owner before a spot among those that `agrees` lets pass.
    pub(crate) fn last_before(&self, spot: &Spot, agrees: impl Fn(usize) -> bool) -> Option<Spot> {
        let owner = self.owner(spot);
        let mut last: Option<Spot> = None;
        for pair in (0..self.joined.len()).rev() {
            let candidate = self.spot(pair);
            if self.in_time_order && last.is_some_and(|last| candidate.at_us < last.at_us) {
                break;
            }
            let later = |last: Spot| self.cmp(&last, &candidate).is_lt();
            if agrees(pair)
                && self.cmp(&candidate, spot).is_lt()
                && self.owner(&candidate) == owner
                && last.is_none_or(later)
            {
                last = Some(candidate);
            }
        }
        last
    }

    /// The pairs from the end back to a spot's time; all of them where their order is unknown.
    fn back_to(&self, since: &Spot) -> impl Iterator<Item = (usize, Spot)> {
        let in_reverse = (0..self.joined.len()).rev().map(|pair| (pair, self.spot(pair)));
        in_reverse.take_while(|(_, spot)| !self.in_time_order || spot.at_us >= since.at_us)
    }
}

/// Whose row it is: an entity, a player, or an entity on a player's screen.
pub(crate) type Owner = (Option<i64>, Option<i64>);

impl Spot {
    fn is_pair(&self) -> bool {
        self.a.is_some() && self.b.is_some()
    }

    /// The row in A, or in B where A has none.
    pub(crate) fn row(&self) -> Option<(Side, usize)> {
        match (self.a, self.b) {
            (Some(a), _) => Some((Side::A, a as usize)),
            (None, Some(b)) => Some((Side::B, b as usize)),
            (None, None) => None,
        }
    }
}
