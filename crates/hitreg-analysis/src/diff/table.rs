//! The comparison of one table. It takes rows step by step; rows in memory make one step.
//!
//! Equal tables are only counted. Other tables are read with growing [`ReorderTolerance`]. Each level is tried without the
//! marks of all owners, and once more with them if the times of an owner's rows go back.

use std::sync::Arc;

use serde::Serialize;

use super::clock::{RowTimes, TickTimes, known};
use super::columns::{ColumnDifference, TraceComparison, unsound};
use super::distributions::{DrawnDistance, Reconciliation, TraceTally};
use super::divergence::{Divergence, agreeing};
use super::hits::{ChangedShots, HitChanges, ShotComparison, TextTable};
use super::join::{KeyCells, OwnerMap, OwnerRun, RowKey, TraceSide};
use super::options::{DiffError, DiffOptions, DiffScope};
use super::pairing::{Owner, Pairing, RowDump, RowMark, RowSpot, by_time};
use super::scan::{ColumnRuns, DifferenceRun, DivergenceSpread, FieldDiff, PairResult, ScanResult, SeriesDiff};
use super::steps::{ReorderTolerance, StepStop, TableWalk};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{JoinRule, corrections, is_bodies, shots, views};
use hitreg_log::trace::{Table, TraceReadError, TraceSource};

/// The differences in one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableDiff {
    /// Its name.
    pub name: String,
    /// The verdict on the table.
    pub status: TableStatus,
    /// Why the table cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The columns by which rows are identified.
    pub key: Vec<String>,
    /// The differences between the columns.
    pub shape: ColumnDifference,
    /// The numbers of rows, by result.
    pub rows: RowCounts,
    /// The first difference in session time.
    pub first: Option<Divergence>,
    /// The differences by column.
    pub fields: Vec<FieldDiff>,
    /// The differences by column and by entity or player.
    pub series: Vec<SeriesDiff>,
    /// How far the divergence has spread over time.
    pub spread: Vec<DivergenceSpread>,
}

/// The verdict on one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableStatus {
    /// The same rows with the same values, in any order.
    #[default]
    Same,
    /// Some values differ, all within tolerance.
    WithinTolerance,
    /// A value, row or column differs.
    Differs,
    /// B has no such table.
    OnlyInA,
    /// A has no such table.
    OnlyInB,
    /// The table cannot be judged.
    Untestable,
}

/// The numbers of rows, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowCounts {
    /// Rows in A.
    pub a: u64,
    /// Rows in B.
    pub b: u64,
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs in which a value differs.
    pub differing: u64,
    /// Pairs in which values differ only within tolerance.
    pub within_tolerance: u64,
    /// Rows that B lacks.
    pub only_in_a: u64,
    /// Rows that A lacks.
    pub only_in_b: u64,
    /// Pairs that were not compared because their times differ.
    pub other_time: u64,
}

/// A compared table, with further results from its rows.
#[derive(Default)]
pub(crate) struct ComparedTable {
    pub(crate) diff: TableDiff,
    /// Ticks whose bodies differ only within tolerance.
    pub(crate) tolerated: SortedSet<u32>,
    /// For the table of shots: the counts.
    pub(crate) hits: HitChanges,
    /// For the table of corrections: which trace needed them, and why.
    pub(crate) reconciliation: Reconciliation,
    /// For the table of views: the distances.
    pub(crate) apart: DrawnDistance,
    /// Counts of each side, independent of the other side; `None` if they were not computed.
    pub(crate) tallies: Option<[TraceTally; 2]>,
}

impl ComparedTable {
    /// The result for a table that one trace lacks.
    pub(crate) fn only_on(side: TraceSide, name: &str, count: u64) -> ComparedTable {
        let (status, rows) = match side {
            TraceSide::A => (TableStatus::OnlyInA, RowCounts { a: count, ..RowCounts::default() }),
            TraceSide::B => (TableStatus::OnlyInB, RowCounts { b: count, ..RowCounts::default() }),
        };
        ComparedTable {
            diff: TableDiff { name: name.to_owned(), status, rows, ..TableDiff::default() },
            ..ComparedTable::default()
        }
    }

    /// The result for a table that a trace has more than once.
    pub(crate) fn listed_twice(name: &str) -> ComparedTable {
        let diff = TableDiff { name: name.to_owned(), ..TableDiff::default() };
        ComparedTable::untestable(diff, "a trace has it more than once".to_owned())
    }

    fn untestable(mut diff: TableDiff, reason: String) -> ComparedTable {
        diff.status = TableStatus::Untestable;
        diff.untestable = Some(reason);
        diff.rows.compared = 0;
        ComparedTable { diff, ..ComparedTable::default() }
    }
}

/// Compares a table that both traces have.
pub(crate) fn compare(
    comparison: &TraceComparison<'_>,
    [(a, rows_a), (b, rows_b)]: [(&Table, u64); 2],
) -> Result<ComparedTable, DiffError> {
    let key = RowKey::of(a, b);
    let mut diff = TableDiff {
        name: a.name.clone(),
        key: key.columns.clone(),
        shape: ColumnDifference::of(a, b),
        ..TableDiff::default()
    };
    (diff.rows.a, diff.rows.b) = (rows_a, rows_b);
    let unkeyed = KeyCells::of(&key, &a.without_rows(), &b.without_rows()).err();
    if let Some(reason) = unsound("A", a).or_else(|| unsound("B", b)).or(unkeyed) {
        return Ok(ComparedTable::untestable(diff, reason));
    }
    if comparison.equal.has_at_same_times(&a.name, &key) {
        let counts_rows = match a.name.as_str() {
            // Its counts say whether any shot was judged.
            shots::NAME => true,
            corrections::NAME | views::NAME => !comparison.options.brief,
            _ => false,
        };
        return TableFold::new(diff, &key, comparison, false).finish_equal(counts_rows, a).map_err(DiffError::from);
    }
    for tolerance in ReorderTolerance::levels(comparison.traces).iter().copied() {
        for keeps_all_marks in [false, true] {
            let fold = TableFold::new(diff.clone(), &key, comparison, keeps_all_marks);
            match fold.step_by_step([a, b], tolerance) {
                Ok(table) => return Ok(table),
                Err(StepStop::TimesGoBack) => {}
                Err(StepStop::OutOfOrder) => break,
                Err(StepStop::Unread(error)) => return Err(error.into()),
            }
        }
    }
    Err(TraceReadError(format!("the rows of `{}` cannot be put in order", a.name)).into())
}

/// One table of both traces, as far as its rows have been compared.
struct TableFold<'o> {
    key: &'o RowKey,
    comparison: &'o TraceComparison<'o>,
    found: ComparedTable,
    /// For each compared column of A: its differences, by owner.
    columns: Vec<(String, ColumnRuns)>,
    /// The last compared pair of each owner, for owners with differences or for all.
    last: SortedMap<Owner, Arc<RowMark>>,
    /// The owners with differences.
    differing: SortedSet<Owner>,
    /// Whether `last` is kept for every owner, from the first row on. A second try needs it when times go back.
    keeps_all_marks: bool,
    /// Whether all rows make one step.
    is_one_step: bool,
    first: Option<FirstDifference>,
    /// Collects the changed shots.
    changed: ChangedShots,
    /// The names in shots, each stored once.
    texts: TextTable,
    /// How many rows of each trace have been compared.
    rows_before: [u64; 2],
    /// For each trace and owner: the time of its last row. `None` after a row with an earlier time than the row before.
    last_times: Option<[OwnerMap<i64>; 2]>,
}

/// The first difference so far.
struct FirstDifference {
    mark: RowMark,
    owner: Owner,
    divergence: Divergence,
}

impl<'o> TableFold<'o> {
    fn new(
        diff: TableDiff,
        key: &'o RowKey,
        comparison: &'o TraceComparison<'o>,
        keeps_all_marks: bool,
    ) -> TableFold<'o> {
        let found = ComparedTable { diff, tallies: Some(Default::default()), ..ComparedTable::default() };
        TableFold {
            key,
            comparison,
            found,
            columns: Vec::new(),
            last: SortedMap::new(),
            differing: SortedSet::new(),
            keeps_all_marks,
            is_one_step: false,
            first: None,
            changed: ChangedShots::default(),
            texts: TextTable::default(),
            rows_before: [0; 2],
            last_times: Some(Default::default()),
        }
    }

    /// Compares the rows of both traces step by step.
    fn step_by_step(mut self, shapes: [&Table; 2], tolerance: ReorderTolerance) -> Result<ComparedTable, StepStop> {
        self.is_one_step = tolerance == ReorderTolerance::Whole;
        if shapes[0].name == shots::NAME {
            self.changed = ChangedShots::kept(ShotComparison::of(self.comparison, tolerance));
        }
        let TraceComparison { traces, clocks, .. } = *self.comparison;
        each_step(traces, shapes, self.key, clocks, tolerance, &mut |rows, times, _| {
            self.add(rows, times);
            true
        })?;
        // The last pair of an owner can be found in later rows only if rows are in the order of their times.
        if self.first.is_some() && self.last_times.is_none() && !self.keeps_all_marks {
            return Err(StepStop::TimesGoBack);
        }
        if let Some(mut first) = self.first.take() {
            first.divergence.last_agreeing = self.last_agreeing(shapes, tolerance, &first)?;
            self.first = Some(first);
        }
        Ok(self.finish())
    }

    /// The result for a table that is equal in both traces. `counts_rows` says whether its rows are read and counted.
    fn finish_equal(mut self, counts_rows: bool, shape: &Table) -> Result<ComparedTable, TraceReadError> {
        self.found.diff.rows.compared = self.found.diff.rows.a;
        if !counts_rows {
            self.found.tallies = None;
            return Ok(self.finish());
        }
        let trace = self.comparison.traces[0];
        let mut tally = TraceTally::default();
        let times = RowTimes::of(trace, self.comparison.clocks[0], shape, false);
        let mut next = trace.rows(&shape.name, &[]);
        while let Some(rows) = next()? {
            let rows = shape.filled(rows);
            tally.add(&rows);
            if rows.name == views::NAME {
                self.found.apart.add_same(&rows, &self.comparison.relocations);
                continue;
            }
            let pairing = Pairing::of([&rows, &rows], self.rows_before, self.key, [&times, &times])?;
            match rows.name.as_str() {
                shots::NAME => self.found.hits.add(&pairing, self.comparison.options, &mut self.texts, &mut |_, _| {}),
                _ => self.found.reconciliation.add(&pairing),
            }
        }
        self.found.tallies = Some([tally.clone(), tally]);
        Ok(self.finish())
    }

    /// Compares a group of rows that is complete: no row outside belongs to one inside.
    fn add(&mut self, [a, b]: [&Table; 2], times: [&RowTimes<'_>; 2]) {
        if let Some(tallies) = &mut self.found.tallies {
            tallies[0].add(a);
            tallies[1].add(b);
        }
        let before = self.rows_before;
        self.rows_before = [before[0] + a.rows() as u64, before[1] + b.rows() as u64];
        // The caller has checked that these tables have a key.
        let Ok(pairing) = Pairing::of([a, b], before, self.key, times) else { return };
        let scan = ScanResult::of(&pairing, self.comparison);
        count(&mut self.found.diff.rows, &pairing, &scan);
        if !self.is_one_step {
            self.note_times(&pairing);
        }
        match a.name.as_str() {
            name if is_bodies(name) && !self.comparison.options.tolerances.is_empty() => {
                self.found.tolerated.extend(tolerated_ticks(&pairing, &scan));
            }
            shots::NAME => {
                let mut note = |rank, shot| self.changed.note(rank, shot);
                self.found.hits.add(&pairing, self.comparison.options, &mut self.texts, &mut note);
            }
            corrections::NAME => self.found.reconciliation.add(&pairing),
            views::NAME => self.found.apart.add(&pairing, &scan, &self.comparison.relocations),
            _ => {}
        }
        self.add_first(&pairing, &scan);
        self.add_runs(&pairing, &scan);
    }

    fn add_first(&mut self, pairing: &Pairing<'_>, scan: &ScanResult) {
        let Some(spot) = first_spot(pairing, scan, self.comparison.options) else { return };
        let mark = pairing.mark(&spot, self.comparison.clocks);
        if self.first.as_ref().is_some_and(|known| known.mark.cmp(&mark).is_le()) {
            return;
        }
        let divergence = Divergence::of(pairing, self.comparison, scan, &spot);
        self.first = Some(FirstDifference { mark, owner: pairing.owner(&spot), divergence });
    }

    fn add_runs(&mut self, pairing: &Pairing<'_>, scan: &ScanResult) {
        let mut marks: SortedMap<usize, Arc<RowMark>> = SortedMap::new();
        let mut mark = |pair: usize| {
            let new = || Arc::new(pairing.mark(&pairing.spot(pair), self.comparison.clocks));
            Arc::clone(marks.entry(pair).or_insert_with(new))
        };
        for (name, runs) in &scan.columns {
            let place = self.columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                self.columns.push((name.clone(), ColumnRuns::new()));
                self.columns.len() - 1
            });
            let known = &mut self.columns[place].1;
            for (owner, run) in scan.owners.iter().zip(runs).filter(|(_, run)| run.rows > 0) {
                match known.get_mut(owner) {
                    Some(known) => known.join(run, pairing, &mut mark),
                    None => {
                        known.insert(*owner, DifferenceRun::of(run, &mut mark));
                        self.differing.insert(*owner);
                    }
                }
            }
        }
        for (owner, pair) in scan.owners.iter().zip(&scan.last).filter_map(|(owner, last)| Some((owner, (*last)?))) {
            if self.keeps_all_marks || self.differing.contains(owner) {
                let mark = mark(pair);
                let known = self.last.entry(*owner).or_insert_with(|| Arc::clone(&mark));
                if known.cmp(&mark).is_lt() {
                    *known = mark;
                }
            }
        }
    }

    /// Checks whether the rows of each player or entity are in the order of their times.
    fn note_times(&mut self, pairing: &Pairing<'_>) {
        let Some(known) = &mut self.last_times else { return };
        for side in [TraceSide::A, TraceSide::B] {
            let times = &pairing.times[side as usize];
            let mut now: OwnerMap<[i64; 2]> = OwnerMap::default();
            let owner = pairing.key.series.first().copied();
            pairing.keys.each_run(owner, side, 0..times.len(), |OwnerRun { owner, rows }| {
                let [first, last] = now.or_insert_with(owner, || [times[rows.start]; 2]);
                for at in &times[rows] {
                    (*first, *last) = ((*first).min(*at), (*last).max(*at));
                }
            });
            for (whose, [first, last]) in now.iter() {
                let before = known[side as usize].or_insert_with(whose, || *first);
                if first < before {
                    self.last_times = None;
                    return;
                }
                *before = *last;
            }
        }
    }

    /// The last agreeing row of the same entity or player before the first difference. It needs a second pass, after
    /// the first difference is known.
    fn last_agreeing(
        &self,
        shapes: [&Table; 2],
        tolerance: ReorderTolerance,
        first: &FirstDifference,
    ) -> Result<Option<RowDump>, StepStop> {
        let mut found: Option<(RowMark, RowDump)> = None;
        let in_order = self.last_times.is_some();
        let mut past = [false; 2];
        let TraceComparison { traces, clocks, .. } = *self.comparison;
        each_step(traces, shapes, self.key, clocks, tolerance, &mut |[a, b], times, before| {
            let Ok(cells) = KeyCells::of(self.key, a, b) else { return true };
            let numbers = [(TraceSide::A, a), (TraceSide::B, b)]
                .map(|(side, table)| cells.rows_of(side, table.rows(), &self.key.series, first.owner));
            let rows = [a.select(&numbers[0]), b.select(&numbers[1])];
            // Rows of other owners do not matter: only rows of one owner are in the order of their times.
            for side in 0..2 {
                let is_later = |at: &i64| by_time(known(*at), first.mark.at_us()).is_gt();
                past[side] |= rows[side].rows() > 0 && times[side].of_rows(&rows[side]).iter().all(is_later);
            }
            if in_order && past == [true, true] {
                return false;
            }
            let Ok(pairing) = Pairing::of([&rows[0], &rows[1]], before, self.key, times) else { return true };
            let pairing = pairing.numbered(numbers);
            let scan = ScanResult::of(&pairing, self.comparison);
            for pair in (0..pairing.join.len()).filter(|pair| scan.agrees(*pair)) {
                let spot = pairing.spot(pair);
                let is_later = found.as_ref().is_none_or(|(known, _)| by_time(known.at_us(), spot.at_us).is_le());
                if !is_later || by_time(spot.at_us, first.mark.at_us()).is_gt() {
                    continue;
                }
                let mark = pairing.mark(&spot, self.comparison.clocks);
                if mark.cmp(&first.mark).is_lt() && found.as_ref().is_none_or(|(known, _)| known.cmp(&mark).is_lt()) {
                    found = Some((mark, agreeing(&pairing, self.comparison.clocks, &spot)));
                }
            }
            true
        })?;
        Ok(found.map(|(_, row)| row))
    }

    /// The result, after all rows.
    fn finish(mut self) -> ComparedTable {
        self.changed.end();
        self.found.hits.changed = self.changed;
        let diff = &mut self.found.diff;
        diff.status = status(diff, self.key.join_rule, self.comparison.options);
        if diff.status == TableStatus::Untestable {
            diff.untestable = Some("no two of its rows are of the same time".to_owned());
        }
        let is_same = matches!(diff.status, TableStatus::Same | TableStatus::WithinTolerance);
        if is_same
            && self.comparison.options.on == DiffScope::Hits
            && diff.rows.compared > 0
            && self.found.hits.judged == 0
        {
            diff.status = TableStatus::Untestable;
            let reason = "no replay judged any of its shots; a replay in closed loop judges them";
            diff.untestable = Some(reason.to_owned());
        }
        diff.first = self.first.map(|first| first.divergence);
        diff.fields = FieldDiff::all(&self.columns);
        diff.series = SeriesDiff::all(&self.columns, &self.last);
        diff.spread = DivergenceSpread::of(&self.columns);
        for field in &mut diff.fields {
            field.healed = diff.series.iter().filter(|s| s.field == field.field).all(|s| s.healed);
        }
        self.found
    }
}

/// Receives rows of both traces, with their times and the number of rows before them. Returns whether to continue.
type TakeRows<'t> = dyn FnMut([&Table; 2], [&RowTimes<'_>; 2], [u64; 2]) -> bool + 't;

/// Passes the rows of both traces to `take` step by step, with their times and the number of rows before them. Stops
/// when `take` returns false.
pub(super) fn each_step(
    traces: [&dyn TraceSource; 2],
    shapes: [&Table; 2],
    key: &RowKey,
    clocks: [&TickTimes; 2],
    tolerance: ReorderTolerance,
    take: &mut TakeRows<'_>,
) -> Result<(), StepStop> {
    if let [Some(_), Some(_)] = traces.map(TraceSource::in_memory) {
        let times = [0, 1].map(|side| RowTimes::of(traces[side], clocks[side], shapes[side], true));
        take(shapes, [&times[0], &times[1]], [0; 2]);
        return Ok(());
    }
    let mut steps = TableWalk::of(traces, shapes, key, tolerance)?;
    let whole = steps.is_whole();
    let mut times = [0, 1].map(|side| RowTimes::of(traces[side], clocks[side], shapes[side], whole));
    let mut before = [0; 2];
    while let Some(step) = steps.next()? {
        for (times, rows) in times.iter_mut().zip(&step.rows) {
            times.advance(rows)?;
        }
        let [a, b] = &step.rows;
        if !take([a, b], [&times[0], &times[1]], before) {
            return Ok(());
        }
        before = [before[0] + a.rows() as u64, before[1] + b.rows() as u64];
        if steps.ordered_by() == Some(("player", "command")) {
            times.iter_mut().for_each(|times| times.forget(&step.returned_below));
        }
    }
    Ok(())
}

fn count(rows: &mut RowCounts, pairing: &Pairing<'_>, scan: &ScanResult) {
    for pair in &scan.pairs {
        rows.other_time += u64::from(pair.other_time);
        rows.differing += u64::from(pair.differs);
        rows.within_tolerance += u64::from(pair.within && !pair.differs);
    }
    rows.compared += scan.pairs.iter().filter(|pair| !pair.other_time).count() as u64;
    rows.only_in_a += pairing.join.only_a.len() as u64;
    rows.only_in_b += pairing.join.only_b.len() as u64;
}

fn status(diff: &TableDiff, join_rule: JoinRule, options: &DiffOptions) -> TableStatus {
    let rows = &diff.rows;
    let lacks = rows.only_in_a + rows.only_in_b > 0 || diff.shape.lacks(options.on);
    let at_other_times = join_rule == JoinRule::AtSameTime && rows.other_time > 0;
    if rows.differing > 0 || at_other_times || diff.shape.types_differ(options.on) || (lacks && !options.overlap_only) {
        TableStatus::Differs
    } else if join_rule == JoinRule::WithTheirTime && rows.compared == 0 && rows.other_time > 0 {
        // No pair could be compared, which does not mean that the tables are equal.
        TableStatus::Untestable
    } else if rows.within_tolerance > 0 {
        TableStatus::WithinTolerance
    } else {
        TableStatus::Same
    }
}

/// The first difference: a value, a missing row, or a pair whose times differ.
fn first_spot(pairing: &Pairing<'_>, scan: &ScanResult, options: &DiffOptions) -> Option<RowSpot> {
    let values = scan
        .columns
        .iter()
        .flat_map(|(_, runs)| runs.iter().filter(|run| run.rows > 0))
        .map(|run| pairing.spot(run.first));
    let timed = pairing.key.join_rule == JoinRule::AtSameTime;
    let other_time = (0..scan.pairs.len()).filter(|&p| timed && scan.pairs[p].other_time).map(|p| pairing.spot(p));
    values.chain(pairing.lone(options)).chain(other_time).min_by(|x, y| pairing.cmp(x, y))
}

/// Ticks whose bodies differ only within tolerance.
fn tolerated_ticks(pairing: &Pairing<'_>, scan: &ScanResult) -> SortedSet<u32> {
    let ticks = pairing.a.u32s("tick");
    let of = |row: usize| ticks.get(row).copied();
    let rows = |which: &dyn Fn(&PairResult) -> bool| -> SortedSet<u32> {
        let pairs = (0..scan.pairs.len()).filter(|pair| which(&scan.pairs[*pair]));
        pairs.filter_map(|pair| of(pairing.join.pair(pair).0)).collect()
    };
    let (mut within, differing) = (rows(&|p| p.within), rows(&|p| p.differs || p.other_time));
    within.retain(|tick| !differing.contains(tick));
    within
}
