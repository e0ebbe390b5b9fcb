//! Compares two traces: which tables differ, where the first divergence is, and what follows from it. The comparison
//! covers shots, reconciliation and interpolation.
//!
//! Rows are joined by key, never by position. Rows of different times are never compared. Predicted states are never
//! compared with authoritative states, because each table is compared only with the table of the same name.

mod cell;
mod changed;
mod clock;
mod distributions;
mod divergence;
mod equal;
mod exactness;
mod fold;
mod follow;
mod hits;
mod join;
mod keys;
mod kinds;
mod mark;
mod options;
mod owners;
mod pairing;
mod place;
mod relocations;
mod scan;
mod settings;
mod shape;
mod steps;
mod table;
mod usercmds;

use hitreg_log::sorted::{SortedMap, SortedSet};

use rayon::prelude::*;
use serde::Serialize;

pub use cell::{CellValue, DifferenceClass};
pub(crate) use cell::{DOUBLE_WHOLE_MAX, SINGLE_WHOLE_MAX};
pub use changed::ChangedShots;
use distributions::TraceTally;
pub use distributions::{Causes, CorrectedCounts, InterpolationDiff, Reconciliation, ViewCounts};
pub use divergence::{Divergence, DivergenceKind, Values};
pub use follow::{DivergenceSpread, FieldDiff, LargestError, SeriesDiff};
pub use hits::{ChangedShot, HitChanges, Outcome, ShotChange};
pub use keys::TraceSide;
pub use options::{DiffError, DiffOptions, DiffScope, Tolerance, Tolerances};
pub use place::{NamedValue, RowDump, RowPlace};
pub use settings::{ChangedSetting, settings_that_differ};
pub use shape::ColumnDifference;
pub use table::{RowCounts, Status, TableDiff};
pub use usercmds::UsercmdRow;
pub(crate) use usercmds::{find_usercmd, pick};

use clock::TickTimes;
use equal::EqualTables;
use exactness::TraceComparison;
use hitreg_log::trace::schema::{TableSchema, bodies, corrections, is_bodies, shots, ticks, views};
use hitreg_log::trace::{Table, TraceHeader, TraceSource, digest};
use keys::RowKey;
use relocations::Relocations;
use table::{ComparedTable, compare};

/// The differences between two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceDiff {
    /// The verdict on the traces.
    pub verdict: TraceVerdict,
    /// Why the traces cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// Whether rows that one trace lacks are left out ([`DiffOptions::overlap_only`]).
    #[serde(skip)]
    pub overlap_only: bool,
    /// Notes on what differs between the traces' logs, modes and settings.
    pub notes: Vec<String>,
    /// All settings of A and of B, to show how they differ.
    #[serde(skip)]
    pub settings: [Vec<(String, String)>; 2],
    /// Settings that differ although nothing else that was compared does.
    pub settings_without_effect: Vec<ChangedSetting>,
    /// The worst class of all differences. Hashes only count if nothing else differs, because they follow from the
    /// rest.
    pub worst: Option<DifferenceClass>,
    /// The first divergence in session time.
    pub first: Option<Divergence>,
    /// The differences by table: A's tables in A's order, then the tables that only B has.
    pub tables: Vec<TableDiff>,
    /// Counts of shots by their result in A and in B.
    pub hits: HitChanges,
    /// The predictions of both traces.
    pub reconciliation: Reconciliation,
    /// The views of both traces: how the other entities were drawn.
    pub interpolation: InterpolationDiff,
}

/// The verdict on two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceVerdict {
    /// Everything that was compared is equal, or within the given tolerances, and at least one row was compared.
    Same,
    /// Something differs.
    Differs,
    /// The traces cannot be compared.
    Untestable,
}

/// Compares two traces, in memory or in files; the result is the same. Rows of files are compared while they are read,
/// if they are in the order of ticks or of each player's usercmds. A table in another order is read into memory.
///
/// # Errors
/// When no compared column has the name of a tolerance, or a trace cannot be read.
pub fn diff(a: &dyn TraceSource, b: &dyn TraceSource, options: &DiffOptions) -> Result<TraceDiff, DiffError> {
    let (left, right) = (a.tables(), b.tables());
    let shapes: Vec<&Table> = left.iter().chain(&right).map(|(table, _)| *table).collect();
    options.tolerances.check(&shapes, options.on)?;
    let equal = EqualTables::of([a, b], [&left, &right], options.on);
    let clock = TickTimes::of(a).map_err(DiffError::Unread)?;
    let of_b = match equal.has(ticks::NAME) {
        true => clock.clone(),
        false => TickTimes::of(b).map_err(DiffError::Unread)?,
    };
    let clocks = [&clock, &of_b];
    let mut compared = compare_tables([a, b], [&left, &right], clocks, options, &equal)?;
    let changed = settings_that_differ([a, b].map(|trace| &trace.header().settings[..]));
    let firsts = || compared.iter().filter_map(|c| c.diff.first.as_ref());
    // An effect of a setting comes before the setting itself, which each usercmd or packet repeats.
    let first = firsts().min_by_key(|d| (d.echo_of(&changed).is_some(), order(d))).cloned();
    let echoes: SortedSet<String> = firsts().filter_map(|d| d.echo_note(&changed)).collect();
    let first = first.map(|found| with_surroundings(found, [a, b], clocks)).transpose()?;
    let hits = besides(&mut compared, shots::NAME).hits;
    let tallies = |of: &mut ComparedTable, name: &str| -> Result<[TraceTally; 2], DiffError> {
        let all = |trace| TraceTally::of(trace, name).map_err(DiffError::Unread);
        match of.tallies.take() {
            Some(tallies) => Ok(tallies),
            None if options.brief => Ok(Default::default()),
            None => Ok([all(a)?, all(b)?]),
        }
    };
    let mut acks = besides(&mut compared, corrections::NAME);
    let of_acks = tallies(&mut acks, corrections::NAME)?;
    let reconciliation = Reconciliation::of([&of_acks[0], &of_acks[1]], acks.causes);
    let mut drawn = besides(&mut compared, views::NAME);
    let of_drawn = tallies(&mut drawn, views::NAME)?;
    let interpolation = InterpolationDiff::of([&of_drawn[0], &of_drawn[1]], drawn.diff.rows.compared, &drawn.apart);
    let tables: Vec<TableDiff> = compared.into_iter().map(|c| c.diff).collect();
    let headers = [a.header(), b.header()];
    let (verdict, untestable) = judge(headers, &tables, options);
    let worst = worst(&tables);
    let mut found = TraceDiff {
        verdict,
        untestable,
        overlap_only: options.overlap_only,
        notes: notes(headers),
        settings: headers.map(|header| header.settings.clone()),
        settings_without_effect: Vec::new(),
        worst,
        first,
        tables,
        hits,
        reconciliation,
        interpolation,
    };
    found.notes.extend(echoes);
    found.note_settings(changed, options);
    Ok(found)
}

/// Takes a table's additional results out of `compared`, with its row counts. The table's differences stay there.
fn besides(compared: &mut [ComparedTable], name: &str) -> ComparedTable {
    let Some(of) = compared.iter_mut().find(|c| c.diff.name == name) else { return ComparedTable::default() };
    let besides = std::mem::take(of);
    let rows = besides.diff.rows;
    of.diff = besides.diff;
    ComparedTable { diff: TableDiff { rows, ..TableDiff::default() }, ..besides }
}

fn with_surroundings(
    mut found: Divergence,
    [a, b]: [&dyn TraceSource; 2],
    clocks: [&TickTimes; 2],
) -> Result<Divergence, DiffError> {
    let around = |trace, clock| usercmds::around(trace, &found, clock).map_err(DiffError::Unread);
    let around = [around(a, clocks[0])?, around(b, clocks[1])?];
    found.look_around([&around[0], &around[1]], clocks);
    Ok(found)
}

fn find<'t>(tables: &[(&'t Table, u64)], name: &str) -> Option<(&'t Table, u64)> {
    tables.iter().find(|(table, _)| table.name == name).copied()
}

/// The tables of a trace, without rows, each with its number of rows.
type TableList<'t> = [(&'t Table, u64)];

fn compare_tables(
    traces: [&dyn TraceSource; 2],
    [left, right]: [&TableList<'_>; 2],
    clocks: [&TickTimes; 2],
    options: &DiffOptions,
    equal: &EqualTables<'_>,
) -> Result<Vec<ComparedTable>, DiffError> {
    let relocations = relocations(traces, [left, right], clocks, options, equal).map_err(DiffError::Unread)?;
    let fields = fields(left.iter().chain(right));
    let tolerated_ticks = SortedSet::new();
    let mut comparison = TraceComparison { traces, clocks, options, fields, tolerated_ticks, relocations };
    let states = left.iter().filter(|(table, _)| is_bodies(&table.name) && !options.tolerances.is_empty());
    for (a, b) in states.filter_map(|a| Some((*a, find(right, &a.0.name)?))) {
        let tolerated = compare(&comparison, [a, b], false)?.tolerated;
        comparison.tolerated_ticks.extend(tolerated);
    }
    let counted = |(table, _): &&(&Table, u64)| options.on.has_table(&table.name);
    let compared_here: Vec<&(&Table, u64)> = left.iter().filter(counted).collect();
    let twice = |of: &TableList<'_>, name: &str| of.iter().filter(|(table, _)| table.name == name).count() > 1;
    let one = |of: &&(&Table, u64)| {
        let table = of.0;
        if twice(left, &table.name) || twice(right, &table.name) {
            return Ok(ComparedTable::twice(&table.name));
        }
        let Some(other) = find(right, &table.name) else {
            return Ok(ComparedTable::only(TraceSide::A, &table.name, of.1));
        };
        let key = RowKey::of(table, other.0);
        let is_same = equal.has_at_same_times(&table.name, &key);
        compare(&comparison, [**of, other], is_same)
    };
    let tables = compared_here.par_iter();
    let mut compared: Vec<ComparedTable> = tables.map(one).collect::<Result<_, _>>()?;
    let lacking = right.iter().filter(counted).filter(|(table, _)| find(left, &table.name).is_none());
    compared.extend(lacking.map(|(table, rows)| ComparedTable::only(TraceSide::B, &table.name, *rows)));
    Ok(compared)
}

/// The spawns and teleports of both traces, if views are compared by their rows.
fn relocations(
    [a, b]: [&dyn TraceSource; 2],
    [left, right]: [&TableList<'_>; 2],
    clocks: [&TickTimes; 2],
    options: &DiffOptions,
    equal: &EqualTables<'_>,
) -> Result<[Relocations; 2], String> {
    let key = find(left, views::NAME).zip(find(right, views::NAME)).map(|((a, _), (b, _))| RowKey::of(a, b));
    let is_read = |key: &RowKey| !(options.brief && equal.has_at_same_times(views::NAME, key));
    if !options.on.has_table(views::NAME) || !key.as_ref().is_some_and(is_read) {
        return Ok(Default::default());
    }
    let of_a = Relocations::of(a, clocks[0])?;
    match equal.has(ticks::NAME) && equal.has(bodies::NAME) {
        true => Ok([of_a.clone(), of_a]),
        false => Ok([of_a, Relocations::of(b, clocks[1])?]),
    }
}

/// The fields of bodies that have a unit, each with whether it is an angle.
fn fields<'t>(tables: impl Iterator<Item = &'t (&'t Table, u64)>) -> SortedMap<String, bool> {
    let columns = tables.filter(|(table, _)| is_bodies(&table.name)).flat_map(|(table, _)| &table.columns);
    columns.filter(|column| !column.unit.is_empty()).map(|column| (column.name.clone(), column.is_angle())).collect()
}

/// The sort key of divergences: session time, then the table's rank, by which causes come before effects.
fn order(divergence: &Divergence) -> (bool, Option<i64>, usize, String) {
    let at = divergence.place.at_us;
    let rank = TableSchema::of(&divergence.table).map_or(usize::MAX, |table| table.rank);
    (at.is_none(), at, rank, divergence.table.clone())
}

fn judge([a, b]: [&TraceHeader; 2], tables: &[TableDiff], options: &DiffOptions) -> (TraceVerdict, Option<String>) {
    let (game_a, game_b) = (&a.game, &b.game);
    if game_a != game_b && !game_a.is_empty() && !game_b.is_empty() {
        return (TraceVerdict::Untestable, Some(format!("A is a trace of the game `{game_a}`, and B of `{game_b}`")));
    }
    // A table outside of the digest may be missing. With `overlap_only`, missing tables do not count.
    let lacks = |t: &TableDiff| t.rows.a + t.rows.b > 0 && !options.overlap_only && digest::counts(&t.name);
    let differs = |t: &&TableDiff| match t.status {
        Status::Differs => true,
        Status::OnlyInA | Status::OnlyInB => lacks(t),
        Status::Same | Status::WithinTolerance | Status::Untestable => false,
    };
    if tables.iter().any(|t| differs(&t)) {
        return (TraceVerdict::Differs, None);
    }
    if let Some(table) = tables.iter().find(|t| t.status == Status::Untestable) {
        let reason = table.untestable.as_deref().unwrap_or_default();
        return (TraceVerdict::Untestable, Some(format!("table `{}`: {reason}", table.name)));
    }
    match tables.iter().map(|t| t.rows.compared).sum() {
        0 => (TraceVerdict::Untestable, Some("the traces have no rows in common that could be compared".to_owned())),
        1.. => (TraceVerdict::Same, None),
    }
}

fn worst(tables: &[TableDiff]) -> Option<DifferenceClass> {
    let lacks = |t: &TableDiff| t.rows.only_in_a + t.rows.only_in_b + t.rows.other_time > 0;
    if tables.iter().any(lacks) {
        return Some(DifferenceClass::Difference);
    }
    let classes = || tables.iter().flat_map(|t| &t.fields).map(|f| f.class);
    classes().filter(|class| *class != DifferenceClass::Hash).max().or_else(|| classes().max())
}

fn notes([a, b]: [&TraceHeader; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    if a.log_digest != b.log_digest && !a.log_digest.is_empty() && !b.log_digest.is_empty() {
        notes.push("A and B are replays of different logs".to_owned());
    }
    if a.mode != b.mode {
        let is_rejudged =
            |mode: &str, other: &str| mode.strip_suffix("rejudged").is_some_and(|mode| mode.contains(other));
        notes.push(match (&*a.mode, &*b.mode) {
            (a, b) if is_rejudged(b, a) => "B is rejudged: only results of shots can differ".to_owned(),
            (a, b) if is_rejudged(a, b) => "A is rejudged: only results of shots can differ".to_owned(),
            (a, b) => format!("A was replayed {a} loop, B {b} loop"),
        });
    }
    if a.part != b.part {
        let of = |header: &TraceHeader| {
            header.part_shown().map_or("of the whole session".to_owned(), |part| format!("of {part} only"))
        };
        notes.push(format!("A is a replay {}, B {}; rows outside the common part are on one side only", of(a), of(b)));
    }
    notes
}
