//! What changed between two traces: which tables, where first, what follows from it, which shots came out differently,
//! and how reconciliation and interpolation compare.
//!
//! Rows are joined by key, never by position. Rows of different times are never compared, and neither are predicted with
//! authoritative states: each table is held against the table of its name.

mod cell;
mod clock;
mod distributions;
mod divergence;
mod exactness;
mod follow;
mod hits;
mod join;
mod keys;
mod kinds;
mod options;
mod pairing;
mod place;
mod scan;
mod settings;
mod shape;
mod table;
mod usercmds;

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "pipelines")]
use rayon::prelude::*;
use serde::Serialize;

pub use cell::{Class, Value};
pub use distributions::{Causes, Corrected, Interpolation, Reconciliation, Views};
pub use divergence::{Divergence, Values, What};
pub use follow::{FieldDiff, Growth, Largest, SeriesDiff};
pub use hits::{Change, ChangedShot, Hits, Outcome};
pub use keys::Side;
pub use options::{DiffError, DiffOptions, On, Tolerance, Tolerances};
pub use place::{Named, Place, Row};
pub use settings::{ChangedSetting, settings_that_differ};
pub use shape::Shape;
pub use table::{Rows, Status, TableDiff};
pub use usercmds::Ran;

use crate::trace::schema::{FIRST, Joined, TableSchema, bodies, corrections, frames, shots, ticks, views};
use crate::trace::{Table, Trace};
use clock::Clock;
use exactness::Exactness;
use keys::Key;
use table::{Compared, compare};

/// What changed between two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceDiff {
    /// The judgement.
    pub verdict: Verdict,
    /// Why they cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// What a reader should know of the traces: that they are of different logs, modes or settings.
    pub notes: Vec<String>,
    /// All settings of A and of B, for showing how they differ.
    #[serde(skip)]
    pub settings: [Vec<(String, String)>; 2],
    /// Settings that differ and made no difference at all to what was compared.
    pub settings_without_effect: Vec<ChangedSetting>,
    /// The worst of all differences. Hashes only count where nothing else differs, because they follow from the rest.
    pub worst: Option<Class>,
    /// The first divergence in session time.
    pub first: Option<Divergence>,
    /// Table by table, in the order of A, then those that only B has.
    pub tables: Vec<TableDiff>,
    /// Shots that hit in both, in one, or in none.
    pub hits: Hits,
    /// How the predictions did.
    pub reconciliation: Reconciliation,
    /// How the others were drawn.
    pub interpolation: Interpolation,
}

/// The judgement on two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that was compared is the same, or within the tolerances asked for; and something was compared.
    Same,
    /// Something differs.
    Differs,
    /// They cannot be judged.
    Untestable,
}

/// Compares two traces.
///
/// # Errors
/// When a tolerance is about a column that neither trace has.
pub fn diff(a: &Trace, b: &Trace, options: &DiffOptions) -> Result<TraceDiff, DiffError> {
    options.tolerances.check(a, b)?;
    let clocks = [Clock::of(a), Clock::of(b)];
    let mut compared = compare_tables(a, b, [&clocks[0], &clocks[1]], options);
    let first = compared.iter().filter_map(|c| c.diff.first.as_ref()).min_by_key(|d| order(d)).cloned();
    let first = first.map(|mut divergence| {
        divergence.look_around([a, b], [&clocks[0], &clocks[1]]);
        divergence
    });
    let hits = Hits::of(find(&compared, shots::NAME));
    let reconciliation = Reconciliation::of(a, b, find(&compared, corrections::NAME));
    let interpolation = Interpolation::of(a, b, find(&compared, views::NAME));
    let tables: Vec<TableDiff> = compared.drain(..).map(|c| c.diff).collect();
    let (verdict, untestable) = judge(a, b, &tables, options);
    let worst = worst(&tables);
    let mut found = TraceDiff {
        verdict,
        untestable,
        notes: notes(a, b),
        settings: [a, b].map(|trace| trace.header.settings.clone()),
        settings_without_effect: Vec::new(),
        worst,
        first,
        tables,
        hits,
        reconciliation,
        interpolation,
    };
    found.note_settings(settings_that_differ([&a.header.settings, &b.header.settings]), options);
    Ok(found)
}

fn find<'t, 'a>(compared: &'t [Compared<'a>], name: &str) -> Option<&'t Compared<'a>> {
    compared.iter().find(|c| c.diff.name == name)
}

fn compare_tables<'a>(a: &'a Trace, b: &'a Trace, clocks: [&Clock; 2], options: &DiffOptions) -> Vec<Compared<'a>> {
    let none = BTreeSet::new();
    let fields = fields(a, b);
    let exactness = |tolerated_ticks| Exactness {
        tolerances: &options.tolerances,
        on: options.on,
        fields: &fields,
        tolerated_ticks,
    };
    let tolerated = match (a.table(bodies::NAME), b.table(bodies::NAME)) {
        (Some(a), Some(b)) if !options.tolerances.is_empty() => {
            tolerated_ticks(&compare(a, b, clocks, options, &exactness(&none)))
        }
        _ => BTreeSet::new(),
    };
    let counted = |table: &&Table| options.on.has_table(&table.name);
    let left: Vec<&Table> = a.tables.iter().filter(counted).collect();
    let anchored = anchored(a, b);
    let one = |table: &&'a Table| match b.table(&table.name) {
        _ if has_twice(a, &table.name) || has_twice(b, &table.name) => Compared::twice(table),
        Some(other) => {
            let key = Key::of(table, other, options);
            let judged_alone = key.joined != Joined::WithTheirTime || anchored;
            // Shots and corrections are joined even when they are the same, because they are counted side by side.
            let counted = [shots::NAME, corrections::NAME].contains(&table.name.as_str());
            if judged_alone && !counted && same_bits(table, other) {
                Compared::same(table, &key)
            } else {
                compare(table, other, clocks, options, &exactness(&tolerated))
            }
        }
        None => Compared::only(Side::A, table),
    };
    #[cfg(feature = "pipelines")]
    let tables = left.par_iter();
    #[cfg(not(feature = "pipelines"))]
    let tables = left.iter();
    let mut compared: Vec<Compared<'a>> = tables.map(one).collect();
    let right = b.tables.iter().filter(counted).filter(|table| a.table(&table.name).is_none());
    compared.extend(right.map(|table| Compared::only(Side::B, table)));
    compared
}

/// The fields of bodies that say what they are measured in, and whether they are angles.
fn fields(a: &Trace, b: &Trace) -> BTreeMap<String, bool> {
    let columns = [a, b].into_iter().filter_map(|trace| trace.table(bodies::NAME)).flat_map(|table| &table.columns);
    columns.filter(|column| !column.unit.is_empty()).map(|column| (column.name.clone(), column.is_angle())).collect()
}

fn has_twice(trace: &Trace, name: &str) -> bool {
    trace.tables.iter().filter(|table| table.name == name).count() > 1
}

/// Ticks whose bodies differ, and all of them within tolerance.
fn tolerated_ticks(bodies: &Compared<'_>) -> BTreeSet<u32> {
    let Some(pairing) = &bodies.pairing else { return BTreeSet::new() };
    let ticks = pairing.a.u32s("tick");
    let of = |row: usize| ticks.get(row).copied();
    let rows = |which: &dyn Fn(&scan::Pair) -> bool| -> BTreeSet<u32> {
        let pairs = (0..bodies.scan.pairs.len()).filter(|pair| which(&bodies.scan.pairs[*pair]));
        pairs.filter_map(|pair| of(pairing.joined.pair(pair).0)).collect()
    };
    let (within, differing) = (rows(&|p| p.within), rows(&|p| p.differs || p.other_time));
    within.difference(&differing).copied().collect()
}

/// Whether the two traces' ticks and client frames are of the same times, row by row.
fn anchored(a: &Trace, b: &Trace) -> bool {
    let same = |name: &str, columns: &[&str]| match (a.table(name), b.table(name)) {
        (Some(a), Some(b)) => columns.iter().all(|column| match (a.column(column), b.column(column)) {
            (Some(a), Some(b)) => a.data == b.data,
            (a, b) => a.is_none() && b.is_none(),
        }),
        (a, b) => a.is_none() && b.is_none(),
    };
    same(ticks::NAME, &["tick", "at_us"]) && same(frames::NAME, &["player", "command", "at_us"])
}

fn same_bits(a: &Table, b: &Table) -> bool {
    a.columns.len() == b.columns.len()
        && a.columns.iter().zip(&b.columns).all(|(a, b)| {
            let cells = cell::Cells::of(&a.data, &b.data);
            let same = |cells: cell::Cells<'_>| cells.same_bits(0..a.data.len());
            a.name == b.name && a.data.len() == b.data.len() && cells.is_some_and(same)
        })
}

/// The order of divergences: by session time, and among those of one moment by what may have led to what.
fn order(divergence: &Divergence) -> (bool, Option<i64>, usize, String) {
    let at = divergence.place.at_us;
    let rank = TableSchema::of(&divergence.table).map_or(usize::MAX, |table| table.rank);
    (at.is_none(), at, rank, divergence.table.clone())
}

fn judge(a: &Trace, b: &Trace, tables: &[TableDiff], options: &DiffOptions) -> (Verdict, Option<String>) {
    let (game_a, game_b) = (&a.header.game, &b.header.game);
    if game_a != game_b && !game_a.is_empty() && !game_b.is_empty() {
        return (Verdict::Untestable, Some(format!("A is a trace of the game `{game_a}`, and B of `{game_b}`")));
    }
    // What came into the format later an older build cannot have, and who did not ask for it does not.
    let is_later = |name: &str| TableSchema::of(name).is_some_and(|table| table.since != FIRST);
    let lacks = |t: &TableDiff| t.rows.a + t.rows.b > 0 && !options.overlap_only && !is_later(&t.name);
    let differs = |t: &&TableDiff| match t.status {
        Status::Differs => true,
        Status::OnlyInA | Status::OnlyInB => lacks(t),
        Status::Same | Status::WithinTolerance | Status::Untestable => false,
    };
    if tables.iter().any(|t| differs(&t)) {
        return (Verdict::Differs, None);
    }
    if let Some(table) = tables.iter().find(|t| t.status == Status::Untestable) {
        let reason = table.untestable.as_deref().unwrap_or_default();
        return (Verdict::Untestable, Some(format!("table `{}`: {reason}", table.name)));
    }
    match tables.iter().map(|t| t.rows.compared).sum() {
        0 => (Verdict::Untestable, Some("the traces have no rows in common that could be compared".to_owned())),
        1.. => (Verdict::Same, None),
    }
}

fn worst(tables: &[TableDiff]) -> Option<Class> {
    let lacks = |t: &TableDiff| t.rows.only_in_a + t.rows.only_in_b + t.rows.other_time > 0;
    if tables.iter().any(lacks) {
        return Some(Class::Difference);
    }
    let classes = || tables.iter().flat_map(|t| &t.fields).map(|f| f.class);
    classes().filter(|class| *class != Class::Hash).max().or_else(|| classes().max())
}

fn notes(a: &Trace, b: &Trace) -> Vec<String> {
    let (a, b) = (&a.header, &b.header);
    let mut notes = Vec::new();
    if a.log_digest != b.log_digest && !a.log_digest.is_empty() && !b.log_digest.is_empty() {
        notes.push("they are replays of different logs".to_owned());
    }
    if a.mode != b.mode {
        notes.push(format!("A is a replay in {} loop, and B in {} loop", a.mode, b.mode));
    }
    notes
}
