//! What follows from a divergence: whether it persists or heals, how far it spreads, and the largest error.

use std::sync::Arc;

use hitreg_log::sorted::{SortedMap, SortedSet};

use serde::Serialize;

use super::cell::DifferenceClass;
use super::mark::RowMark;
use super::pairing::Owner;
use super::place::RowPlace;
use super::scan::{DifferenceRun, larger};

/// Differences in one column, by the owner of the rows.
pub(crate) type ColumnRuns = SortedMap<Owner, DifferenceRun<Arc<RowMark>>>;

/// The differences in one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldDiff {
    /// The column.
    pub field: String,
    /// How many rows differ in it.
    pub rows: u64,
    /// How many of these rows have only drifted.
    pub drifted: u64,
    /// The worst class of its differences.
    pub class: DifferenceClass,
    /// For how many entities or players it differs.
    pub series: u64,
    /// The first differing row.
    pub first: RowPlace,
    /// The last differing row.
    pub last: RowPlace,
    /// The largest error, in the column's unit; `None` for names, hashes and values that cannot be subtracted.
    pub largest: Option<LargestError>,
    /// Whether all entities and players agree again after their last difference, up to the end.
    pub healed: bool,
}

/// The largest error of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LargestError {
    /// The error, in the column's unit.
    pub error: f64,
    /// The place of the row.
    pub place: RowPlace,
}

/// The differences in one column of one entity or player.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesDiff {
    /// The column.
    pub field: String,
    /// The player, if the table has rows by player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<u32>,
    /// The entity, if the table has rows by entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// How many rows differ.
    pub rows: u64,
    /// The first differing row.
    pub first: RowPlace,
    /// The last differing row.
    pub last: RowPlace,
    /// The largest error, in the column's unit.
    pub largest: Option<f64>,
    /// Whether later rows of this entity or player agree again, up to the end.
    pub healed: bool,
}

/// How far a divergence has spread at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DivergenceSpread {
    /// The session time.
    pub at_us: Option<i64>,
    /// How many entities or players have differed up to this time.
    pub series: u64,
    /// How many columns have differed up to this time.
    pub fields: u64,
}

impl FieldDiff {
    pub(crate) fn all(columns: &[(String, ColumnRuns)]) -> Vec<FieldDiff> {
        let of_column = |(name, runs): &(String, ColumnRuns)| {
            let first = runs.values().map(|r| &r.first).min_by(|x, y| x.cmp(y))?;
            let last = runs.values().map(|r| &r.last).max_by(|x, y| x.cmp(y))?;
            let largest = runs.values().filter_map(|r| r.largest.as_ref()).max_by(|x, y| larger(x, y));
            Some(FieldDiff {
                field: name.clone(),
                rows: runs.values().map(|r| r.rows).sum(),
                drifted: runs.values().map(|r| r.drifted).sum(),
                class: runs.values().map(|r| r.class).max()?,
                series: runs.len() as u64,
                first: first.place.clone(),
                last: last.place.clone(),
                largest: largest.map(|(error, mark)| LargestError { error: *error, place: mark.place.clone() }),
                healed: false,
            })
        };
        columns.iter().filter_map(of_column).collect()
    }
}

impl SeriesDiff {
    /// The differences by column and owner. `last` holds the last compared pair of each owner.
    pub(crate) fn all(columns: &[(String, ColumnRuns)], last: &SortedMap<Owner, Arc<RowMark>>) -> Vec<SeriesDiff> {
        let runs = columns.iter().flat_map(|(name, runs)| runs.iter().map(move |(owner, run)| (name, owner, run)));
        let series = runs.map(|(name, owner, run)| SeriesDiff {
            field: name.clone(),
            player: run.first.place.player,
            entity: run.first.place.entity,
            rows: run.rows,
            first: run.first.place.clone(),
            last: run.last.place.clone(),
            largest: run.largest.as_ref().map(|(error, _)| *error),
            healed: last.get(owner).is_some_and(|last| last.cmp(&run.last).is_gt()),
        });
        series.collect()
    }
}

impl DivergenceSpread {
    /// One point for each time at which the divergence reached another entity, player or column.
    pub(crate) fn of(columns: &[(String, ColumnRuns)]) -> Vec<DivergenceSpread> {
        let runs = columns.iter().enumerate();
        let mut firsts: Vec<(&Arc<RowMark>, Owner, usize)> = runs
            .flat_map(|(column, (_, runs))| runs.iter().map(move |(owner, run)| (&run.first, *owner, column)))
            .collect();
        firsts.sort_by(|x, y| x.0.cmp(y.0).then(x.2.cmp(&y.2)));
        let (mut owners, mut columns) = (SortedSet::new(), SortedSet::new());
        let mut spread: Vec<DivergenceSpread> = Vec::new();
        for (mark, owner, column) in firsts {
            let grew = owners.insert(owner) | columns.insert(column);
            let reached =
                DivergenceSpread { at_us: mark.at_us(), series: owners.len() as u64, fields: columns.len() as u64 };
            match spread.last_mut() {
                Some(last) if last.at_us == mark.at_us() => *last = reached,
                _ if grew => spread.push(reached),
                _ => {}
            }
        }
        spread
    }
}
