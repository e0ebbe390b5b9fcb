//! What follows from a divergence: whether it persists or heals, how far it spreads, and the largest error.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cell::Class;
use super::clock::Clock;
use super::pairing::{Owner, Pairing, Spot};
use super::place::Place;
use super::scan::{Run, Scan};

/// What differs in one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldDiff {
    /// The column.
    pub field: String,
    /// How many rows differ in it.
    pub rows: u64,
    /// How many of these have drifted only.
    pub drifted: u64,
    /// The worst that happened to it.
    pub class: Class,
    /// How many entities or players it differs for.
    pub series: u64,
    /// The first row.
    pub first: Place,
    /// The last row.
    pub last: Place,
    /// The largest error, in the column's unit; `None` for names, hashes, and where there is nothing to subtract.
    pub largest: Option<Largest>,
    /// Whether every entity's or player's later rows agree again, to the end.
    pub healed: bool,
}

/// The largest error of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Largest {
    /// How large, in the column's unit.
    pub error: f64,
    /// Where.
    pub place: Place,
}

/// What differs in one column of one entity or player.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesDiff {
    /// The column.
    pub field: String,
    /// The player, where the table has rows by player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<u32>,
    /// The entity, where it has rows by entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// How many rows differ.
    pub rows: u64,
    /// The first.
    pub first: Place,
    /// The last.
    pub last: Place,
    /// The largest error, in the column's unit.
    pub largest: Option<f64>,
    /// Whether its later rows agree again, to the end.
    pub healed: bool,
}

/// How far a divergence has spread by some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// The session time.
    pub at_us: Option<i64>,
    /// How many entities or players had differed by then.
    pub series: u64,
    /// How many columns had differed by then.
    pub fields: u64,
}

impl FieldDiff {
    pub(crate) fn all(pairing: &Pairing<'_>, clocks: [&Clock; 2], scan: &Scan) -> Vec<FieldDiff> {
        let place = |spot: &Spot| Place::of(pairing, clocks, spot);
        let of_column = |(name, runs): &(String, std::collections::BTreeMap<Owner, Run>)| {
            let first = runs.values().map(|r| r.first).min_by(|x, y| pairing.cmp(x, y))?;
            let last = runs.values().map(|r| r.last).max_by(|x, y| pairing.cmp(x, y))?;
            let larger = |x: &(f64, Spot), y: &(f64, Spot)| x.0.total_cmp(&y.0).then_with(|| pairing.cmp(&y.1, &x.1));
            let largest = runs.values().filter_map(|r| r.largest).max_by(larger);
            Some(FieldDiff {
                field: name.clone(),
                rows: runs.values().map(|r| r.rows).sum(),
                drifted: runs.values().map(|r| r.drifted).sum(),
                class: runs.values().map(|r| r.class).max()?,
                series: runs.len() as u64,
                first: place(&first),
                last: place(&last),
                largest: largest.map(|(error, spot)| Largest { error, place: place(&spot) }),
                healed: false,
            })
        };
        scan.columns.iter().filter_map(of_column).collect()
    }
}

impl SeriesDiff {
    pub(crate) fn all(pairing: &Pairing<'_>, clocks: [&Clock; 2], scan: &Scan) -> Vec<SeriesDiff> {
        let ends = scan.columns.iter().flat_map(|(_, runs)| runs.values()).map(|run| run.last);
        let Some(first_end) = ends.min_by(|x, y| pairing.cmp(x, y)) else { return Vec::new() };
        let last_compared = pairing.last_of_each(&first_end, |pair| !scan.pairs[pair].other_time);
        let runs = scan.columns.iter().flat_map(|(name, runs)| runs.iter().map(move |(owner, run)| (name, owner, run)));
        let series = runs.map(|(name, owner, run)| {
            let first = Place::of(pairing, clocks, &run.first);
            let last = last_compared.get(owner);
            SeriesDiff {
                field: name.clone(),
                player: first.player,
                entity: first.entity,
                rows: run.rows,
                last: Place::of(pairing, clocks, &run.last),
                first,
                largest: run.largest.map(|(error, _)| error),
                healed: last.is_some_and(|last| pairing.cmp(last, &run.last).is_gt()),
            }
        });
        series.collect()
    }
}

impl Growth {
    /// A point for each time at which it reached another entity, player or column.
    pub(crate) fn of(pairing: &Pairing<'_>, scan: &Scan) -> Vec<Growth> {
        let runs = scan.columns.iter().enumerate();
        let mut firsts: Vec<(Spot, Owner, usize)> = runs
            .flat_map(|(column, (_, runs))| runs.iter().map(move |(owner, run)| (run.first, *owner, column)))
            .collect();
        firsts.sort_by(|x, y| pairing.cmp(&x.0, &y.0).then(x.2.cmp(&y.2)));
        let (mut owners, mut columns) = (BTreeSet::new(), BTreeSet::new());
        let mut spread: Vec<Growth> = Vec::new();
        for (spot, owner, column) in firsts {
            let grew = owners.insert(owner) | columns.insert(column);
            let reached = Growth { at_us: spot.at_us, series: owners.len() as u64, fields: columns.len() as u64 };
            match spread.last_mut() {
                Some(last) if last.at_us == spot.at_us => *last = reached,
                _ if grew => spread.push(reached),
                _ => {}
            }
        }
        spread
    }
}
