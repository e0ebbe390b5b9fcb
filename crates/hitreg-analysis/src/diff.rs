//! Compares two traces: which tables differ, where the first divergence is, and what follows from it. The comparison
//! covers shots, reconciliation and interpolation.
//!
//! Rows are joined by key, never by position. Rows of different times are never compared. Predicted states are never
//! compared with authoritative states, because each table is compared only with the table of the same name.

mod cell;
mod clock;
mod columns;
mod distributions;
mod divergence;
mod hits;
mod join;
mod options;
mod pairing;
mod scan;
mod steps;
mod table;

use rayon::prelude::*;
use serde::Serialize;

use cell::CellPair;
use clock::TickTimes;
use columns::TraceComparison;
use distributions::{Relocations, TraceTally};
use hitreg_log::record::{split_of_player, value_of_setting};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{JoinRule, TableSchema, bodies, corrections, frames, is_bodies, shots, ticks, views};
use hitreg_log::trace::{Table, Trace, TraceHeader, TraceReadError, TraceSource, digest, each_part};
use hitreg_log::units::{ClockTime, Micros};
use join::RowKey;
use table::{ComparedTable, compare};

pub use cell::{CellValue, DifferenceClass};
pub(crate) use cell::{DOUBLE_WHOLE_MAX, SINGLE_WHOLE_MAX};
pub use columns::ColumnDifference;
pub use distributions::{Causes, CorrectedCounts, InterpolationDiff, Reconciliation, ViewCounts};
pub use divergence::{ColumnValues, Divergence, DivergenceKind, UsercmdRow};
pub(crate) use divergence::{find_usercmd, pick};
pub use hits::{ChangedShot, ChangedShots, HitChanges, ShotChange, ShotOutcome};
pub use join::TraceSide;
pub use options::{DiffError, DiffOptions, DiffScope, Tolerance, Tolerances};
pub use pairing::{NamedValue, RowDump, RowPlace};
pub use scan::{DivergenceSpread, FieldDiff, LargestError, SeriesDiff};
pub use table::{RowCounts, TableDiff, TableStatus};

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
    /// Whether the traces are of different parts of the session, and the rows of one part count as differences.
    #[serde(skip)]
    pub is_of_other_parts: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceVerdict {
    /// Everything that was compared is equal, or within the given tolerances, and at least one row was compared.
    Same,
    /// The traces cannot be compared, or are equal although settings differ whose effect no replay of the log shows.
    Untestable,
    /// Something differs.
    Differs,
}

/// Compares two traces, in memory or in files; the result is the same. Rows of files are compared while they are read,
/// if they are in the order of ticks or of each player's usercmds. A table in another order is read into memory.
///
/// # Errors
/// When no compared column has the name of a tolerance, or a trace cannot be read.
pub fn diff(a: &dyn TraceSource, b: &dyn TraceSource, options: &DiffOptions) -> Result<TraceDiff, DiffError> {
    let (tables_a, tables_b) = (a.tables(), b.tables());
    let shapes: Vec<&Table> = tables_a.iter().chain(&tables_b).map(|(table, _)| *table).collect();
    options.tolerances.check(&shapes, options.on)?;
    let equal = EqualTables::of([a, b], [&tables_a, &tables_b], options.on);
    let clock_a = TickTimes::of(a)?;
    let clock_b = if equal.has(ticks::NAME) { clock_a.clone() } else { TickTimes::of(b)? };
    let clocks = [&clock_a, &clock_b];
    let comparison = TraceComparison {
        traces: [a, b],
        clocks,
        options,
        equal,
        fields: fields(&shapes),
        tolerated_ticks: SortedSet::new(),
        relocations: Default::default(),
    };
    let mut compared = compare_tables(comparison, [&tables_a, &tables_b])?;
    let changed = settings_that_differ([a, b].map(|trace| &trace.header().settings[..]));
    let first_of_tables = || compared.iter().filter_map(|c| c.diff.first.as_ref());
    // An effect of a setting comes before the setting itself, which each usercmd or packet repeats.
    let mut first = first_of_tables().min_by_key(|d| (d.echo_of(&changed).is_some(), sort_key(d))).cloned();
    let echoes: SortedSet<String> = first_of_tables().filter_map(|d| d.echo_note(&changed)).collect();
    if let Some(first) = &mut first {
        first.look_around([a, b], clocks)?;
    }
    let hits = take_extra_results(&mut compared, shots::NAME).hits;
    let mut with_tallies = |name: &str| -> Result<(ComparedTable, [TraceTally; 2]), DiffError> {
        let mut table = take_extra_results(&mut compared, name);
        let tally = |trace| TraceTally::of(trace, name);
        let tallies = match table.tallies.take() {
            Some(tallies) => tallies,
            None if options.brief => Default::default(),
            None => [tally(a)?, tally(b)?],
        };
        Ok((table, tallies))
    };
    let (corrections, correction_tallies) = with_tallies(corrections::NAME)?;
    let reconciliation = corrections.reconciliation.with_tallies(&correction_tallies);
    let (views, view_tallies) = with_tallies(views::NAME)?;
    let interpolation = InterpolationDiff::of(view_tallies, views.diff.rows.compared, &views.apart);
    let tables: Vec<TableDiff> = compared.into_iter().map(|c| c.diff).collect();
    let headers = [a.header(), b.header()];
    let replayed_rows = count_rows_of_replay([a, b], &tables, &hits)?;
    // If no shots were compared, they decide nothing.
    let has_judged_shots = hits.judged > 0 || !options.on.has_table(shots::NAME);
    let clients = if changed.is_empty() { None } else { clients_of([a, b])? };
    let scopes = headers.map(|header| header.scope(has_judged_shots, clients.clone()));
    let scope = scopes.into_iter().max_by_key(|scope| (scope.is_open, scope.is_rejudged)).unwrap_or_default();
    let unanswered = scope.unanswered(changed.iter().filter_map(ChangedSetting::key_of_both)).sentences();
    let (verdict, untestable) = match judge(headers, &tables, replayed_rows, options) {
        (TraceVerdict::Same, _) if !unanswered.is_empty() => (TraceVerdict::Untestable, Some(unanswered.join("; "))),
        judged => judged,
    };
    let worst = worst(&tables);
    let mut found = TraceDiff {
        verdict,
        untestable,
        overlap_only: options.overlap_only,
        is_of_other_parts: headers[0].part != headers[1].part && !options.overlap_only,
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
    let is_open = headers.iter().any(|header| header.is_open());
    if !changed.is_empty() && is_open && options.on.has_table(shots::NAME) && found.hits.judged == 0 {
        found.notes.push("no shot was judged, so hits were not compared: the replay has no server".to_owned());
    }
    found.note_settings(changed, options);
    if found.verdict == TraceVerdict::Differs {
        found.notes.extend(unanswered);
    }
    Ok(found)
}

/// The players whose clients ran on any side: they had a body, or drew entities. Other usercmds are copies of recorded
/// input. `None` if the frames of a trace do not say who had a body.
fn clients_of(traces: [&dyn TraceSource; 2]) -> Result<Option<SortedSet<u32>>, TraceReadError> {
    let mut clients = SortedSet::new();
    for trace in traces {
        if find(&trace.tables(), frames::NAME).is_none_or(|(table, _)| table.column("has_body").is_none()) {
            return Ok(None);
        }
        let mut without_body = SortedSet::new();
        each_part(trace, frames::NAME, (&["player", "has_body"], None), &mut |rows| {
            let frames = frames::Columns::read(rows);
            for (player, has_body) in frames.player.iter().zip(frames.has_body) {
                let players = if *has_body != 0 { &mut clients } else { &mut without_body };
                players.insert(*player);
            }
            Ok(())
        })?;
        // The table of views is large, and nearly every client has a body.
        if without_body.iter().any(|player| !clients.contains(player)) {
            each_part(trace, views::NAME, (&["player"], None), &mut |rows| {
                clients.extend(views::Columns::read(rows).player);
                Ok(())
            })?;
        }
    }
    Ok(Some(clients))
}

/// Takes a table's additional results out of `compared`, with its row counts. The table's differences stay there.
fn take_extra_results(compared: &mut [ComparedTable], name: &str) -> ComparedTable {
    let Some(table) = compared.iter_mut().find(|c| c.diff.name == name) else { return ComparedTable::default() };
    let taken = std::mem::take(table);
    let rows = taken.diff.rows;
    table.diff = taken.diff;
    ComparedTable { diff: TableDiff { rows, ..TableDiff::default() }, ..taken }
}

fn find<'t>(tables: &[(&'t Table, u64)], name: &str) -> Option<(&'t Table, u64)> {
    tables.iter().find(|(table, _)| table.name == name).copied()
}

/// The tables of a trace, without rows, each with its number of rows.
type TableList<'t> = [(&'t Table, u64)];

fn compare_tables(
    mut comparison: TraceComparison<'_>,
    [tables_a, tables_b]: [&TableList<'_>; 2],
) -> Result<Vec<ComparedTable>, DiffError> {
    comparison.relocations = relocations(&comparison, [tables_a, tables_b])?;
    let options = comparison.options;
    let states = tables_a.iter().filter(|(table, _)| is_bodies(&table.name) && !options.tolerances.is_empty());
    for (a, b) in states.filter_map(|a| Some((*a, find(tables_b, &a.0.name)?))) {
        let tolerated = compare(&comparison, [a, b])?.tolerated;
        comparison.tolerated_ticks.extend(tolerated);
    }
    let counted = |(table, _): &&(&Table, u64)| options.on.has_table(&table.name);
    let is_listed_twice = |name: &str| {
        [tables_a, tables_b].iter().any(|list| list.iter().filter(|(table, _)| table.name == name).count() > 1)
    };
    let compare_table = |(table, rows): (&Table, u64)| match find(tables_b, &table.name) {
        _ if is_listed_twice(&table.name) => Ok(ComparedTable::listed_twice(&table.name)),
        None => Ok(ComparedTable::only_on(TraceSide::A, &table.name, rows)),
        Some(other) => compare(&comparison, [(table, rows), other]),
    };
    let compared_here: Vec<(&Table, u64)> = tables_a.iter().filter(counted).copied().collect();
    let mut compared: Vec<ComparedTable> =
        compared_here.into_par_iter().map(compare_table).collect::<Result<_, _>>()?;
    let lacking = tables_b.iter().filter(counted).filter(|(table, _)| find(tables_a, &table.name).is_none());
    compared.extend(lacking.map(|(table, rows)| ComparedTable::only_on(TraceSide::B, &table.name, *rows)));
    Ok(compared)
}

/// The spawns and teleports of both traces, if views are compared by their rows.
fn relocations(
    TraceComparison { traces: [a, b], clocks, options, equal, .. }: &TraceComparison<'_>,
    [tables_a, tables_b]: [&TableList<'_>; 2],
) -> Result<[Relocations; 2], TraceReadError> {
    let key = find(tables_a, views::NAME).zip(find(tables_b, views::NAME)).map(|((a, _), (b, _))| RowKey::of(a, b));
    let is_read = |key: &RowKey| !(options.brief && equal.has_at_same_times(views::NAME, key));
    if !options.on.has_table(views::NAME) || !key.as_ref().is_some_and(is_read) {
        return Ok(Default::default());
    }
    let of_a = Relocations::of(*a, clocks[0])?;
    match equal.has(ticks::NAME) && equal.has(bodies::NAME) {
        true => Ok([of_a.clone(), of_a]),
        false => Ok([of_a, Relocations::of(*b, clocks[1])?]),
    }
}

/// The fields of bodies that have a unit, each with whether it is an angle.
fn fields(shapes: &[&Table]) -> SortedMap<String, bool> {
    let columns = shapes.iter().filter(|table| is_bodies(&table.name)).flat_map(|table| &table.columns);
    columns.filter(|column| !column.unit.is_empty()).map(|column| (column.name.clone(), column.is_angle())).collect()
}

/// The sort key of divergences: session time, then the table's rank, by which causes come before effects. Divergences of
/// unknown time come last.
fn sort_key(divergence: &Divergence) -> (bool, Option<i64>, usize, &str) {
    let rank = TableSchema::of(&divergence.table).map_or(usize::MAX, |table| table.rank);
    let at_us = divergence.place.at_us;
    (at_us.is_none(), at_us, rank, &divergence.table)
}

fn judge(
    [a, b]: [&TraceHeader; 2],
    tables: &[TableDiff],
    replayed_rows: u64,
    options: &DiffOptions,
) -> (TraceVerdict, Option<String>) {
    let (game_a, game_b) = (&a.game, &b.game);
    if game_a != game_b && !game_a.is_empty() && !game_b.is_empty() {
        return (TraceVerdict::Untestable, Some(format!("A is a trace of the game `{game_a}`, and B of `{game_b}`")));
    }
    // A table outside of the digest may be missing. With `overlap_only`, missing tables do not count.
    let lacks = |t: &TableDiff| t.rows.a + t.rows.b > 0 && !options.overlap_only && digest::counts(&t.name);
    let differs = |t: &&TableDiff| match t.status {
        TableStatus::Differs => true,
        TableStatus::OnlyInA | TableStatus::OnlyInB => lacks(t),
        TableStatus::Same | TableStatus::WithinTolerance | TableStatus::Untestable => false,
    };
    if tables.iter().any(|t| differs(&t)) {
        return (TraceVerdict::Differs, None);
    }
    if let Some(table) = tables.iter().find(|t| t.status == TableStatus::Untestable) {
        let reason = table.untestable.as_deref().unwrap_or_default();
        return (TraceVerdict::Untestable, Some(format!("table `{}`: {reason}", table.name)));
    }
    let reason = match replayed_rows {
        1.. => return (TraceVerdict::Same, None),
        0 if tables.iter().any(|t| t.rows.compared > 0) => {
            "the traces have only recorded input in common: no client predicted, and no shot was judged"
        }
        0 => "the traces have no rows in common that could be compared",
    };
    (TraceVerdict::Untestable, Some(reason.to_owned()))
}

/// The number of compared rows that a replay made. Equal rows of recorded input say nothing about a replay: usercmds for
/// which no client had a body, and hits that only the recorded server reported.
fn count_rows_of_replay(
    traces: [&dyn TraceSource; 2],
    tables: &[TableDiff],
    hits: &HitChanges,
) -> Result<u64, TraceReadError> {
    let (usercmds, others): (Vec<&TableDiff>, Vec<&TableDiff>) = tables.iter().partition(|t| t.name == frames::NAME);
    let compared = |tables: Vec<&TableDiff>| tables.iter().map(|t| t.rows.compared).sum::<u64>();
    let others = compared(others).saturating_sub(hits.reported);
    // All usercmds are read only if nothing else was compared.
    match others == 0 && has_own_bodies(traces[0])? && has_own_bodies(traces[1])? {
        true => Ok(compared(usercmds)),
        false => Ok(others),
    }
}

/// Whether a client had a body in any frame.
fn has_own_bodies(trace: &dyn TraceSource) -> Result<bool, TraceReadError> {
    let mut found = false;
    each_part(trace, frames::NAME, (&["has_body"], None), &mut |rows| {
        found |= rows.u32s("has_body").iter().any(|has_body| *has_body != 0);
        Ok(())
    })?;
    Ok(found)
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
    if a.is_of_same_log(b) == Some(false) {
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

/// A setting with different values in both traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedSetting {
    /// Its key.
    pub key: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}

/// The value of a setting that a trace does not have: its build may not know it.
const UNSET: &str = "unset";

impl ChangedSetting {
    /// The key, if both traces have the setting.
    fn key_of_both(&self) -> Option<&str> {
        (self.a != UNSET && self.b != UNSET).then_some(&*self.key)
    }
}

/// The settings of two traces that differ, with both values. A player without an own value of a setting has the common
/// one.
pub fn settings_that_differ([a, b]: [&[(String, String)]; 2]) -> Vec<ChangedSetting> {
    let of = |settings: &[(String, String)], key: &str| {
        let common = || value_of_setting(settings, split_of_player(key)?.1);
        value_of_setting(settings, key).or_else(common).unwrap_or(UNSET).to_owned()
    };
    let keys: SortedSet<&String> = a.iter().chain(b).map(|(key, _)| key).collect();
    let both = keys.into_iter().map(|key| ChangedSetting { key: key.clone(), a: of(a, key), b: of(b, key) });
    both.filter(|changed| changed.a != changed.b).collect()
}

impl TraceDiff {
    /// Records that the change of a setting made no difference, in the whole log or up to a time.
    pub fn changed_nothing(&mut self, setting: ChangedSetting, options: &DiffOptions, until: Option<Micros>) {
        let note = setting.to_string();
        self.notes.retain(|known| *known != note);
        let ChangedSetting { key, a, b } = &setting;
        let scope = scope(options);
        self.notes.push(match until {
            None => format!("{key} {a} → {b} changed nothing {scope}"),
            Some(until) => {
                let until = ClockTime(until);
                format!("{key} {a} → {b} alone changed nothing {scope} up to {until}; --verbose tries the rest")
            }
        });
        self.settings_without_effect.push(setting);
    }

    /// The notes, except notes that only list changed settings.
    pub(crate) fn notes_besides_settings(&self) -> Vec<&String> {
        let changed = settings_that_differ([&self.settings[0], &self.settings[1]]);
        let changed: SortedSet<String> = changed.iter().map(ChangedSetting::to_string).collect();
        self.notes.iter().filter(|note| !changed.contains(*note)).collect()
    }

    /// Notes the settings that differ. If nothing else differs, none of them had an effect.
    fn note_settings(&mut self, settings: Vec<ChangedSetting>, options: &DiffOptions) {
        for setting in settings {
            match self.verdict {
                TraceVerdict::Same => self.changed_nothing(setting, options, None),
                TraceVerdict::Differs | TraceVerdict::Untestable => self.notes.push(setting.to_string()),
            }
        }
    }
}

impl std::fmt::Display for ChangedSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {} in A, {} in B", self.key, self.a, self.b)
    }
}

/// Describes the compared part of the traces.
fn scope(options: &DiffOptions) -> String {
    let what = match options.on {
        DiffScope::Any => "in this log",
        DiffScope::State => "in the state",
        DiffScope::Hits => "in the hits",
        DiffScope::Corrections => "in the corrections",
        DiffScope::Views => "in the views",
        DiffScope::Network => "on the network",
    };
    let beyond = if options.tolerances.is_empty() { "" } else { " beyond the tolerance" };
    format!("{what}{beyond}")
}

/// The tables that are equal to the bit in both traces, with the same rows in the same order.
struct EqualTables<'t> {
    names: Vec<&'t str>,
    /// Whether the ticks and client frames of both traces have the same times, row by row.
    anchored: bool,
}

impl<'t> EqualTables<'t> {
    /// Compares whole columns in memory, and packed chunks in files. Tables of other sources are not known to be equal.
    pub(super) fn of(
        traces: [&dyn TraceSource; 2],
        [tables_a, tables_b]: [&TableList<'t>; 2],
        on: DiffScope,
    ) -> EqualTables<'t> {
        let with_times = [ticks::NAME, frames::NAME, bodies::NAME];
        let is_needed = |name: &str| on.has_table(name) || with_times.contains(&name);
        let of_both = tables_a.par_iter().filter(|(table, _)| is_needed(&table.name));
        let of_both = of_both.filter_map(|(table, _)| Some((*table, find(tables_b, &table.name)?.0)));
        let names = |is_same: &(dyn Fn(&Table, &Table) -> bool + Sync)| -> Vec<&'t str> {
            of_both.clone().filter(|(a, b)| is_same(a, b)).map(|(a, _)| a.name.as_str()).collect()
        };
        match (traces.map(TraceSource::in_memory), traces.map(TraceSource::in_file)) {
            ([Some(a), Some(b)], _) => EqualTables { names: names(&same_bits), anchored: have_same_times(a, b) },
            (_, [Some(a), Some(b)]) => {
                // A file that cannot be read is reported when its rows are read.
                let names = names(&|table, _| a.has_same_rows(b, &table.name).unwrap_or(false));
                let same = |name: &str| match (find(tables_a, name), find(tables_b, name)) {
                    (None, None) => true,
                    _ => names.contains(&name),
                };
                EqualTables { anchored: same(ticks::NAME) && same(frames::NAME), names }
            }
            _ => EqualTables { names: Vec::new(), anchored: false },
        }
    }

    /// Whether a table is equal.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether a table is equal, and its rows have the same times in both traces.
    fn has_at_same_times(&self, name: &str, key: &RowKey) -> bool {
        self.has(name) && (key.join_rule != JoinRule::WithTheirTime || self.anchored)
    }
}

fn have_same_times(a: &Trace, b: &Trace) -> bool {
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
            let rows = 0..a.data.len();
            let same = |cells: CellPair<'_>| cells.same_bits(rows.clone(), rows);
            a.name == b.name && a.data.len() == b.data.len() && CellPair::of(&a.data, &b.data).is_some_and(same)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_without_an_own_value_has_the_common_one() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let common = pairs(&[("interpolation.lerp_ms", "100")]);
        let own = pairs(&[
            ("interpolation.lerp_ms", "100"),
            ("p1.interpolation.lerp_ms", "100"),
            ("p2.interpolation.lerp_ms", "50"),
            ("p2.other", "1"),
        ]);
        let changed = settings_that_differ([&common, &own]).iter().map(ChangedSetting::to_string).collect::<Vec<_>>();
        assert_eq!(changed, ["p2.interpolation.lerp_ms is 100 in A, 50 in B", "p2.other is unset in A, 1 in B"]);
    }
}
