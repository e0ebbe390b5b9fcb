//! Compares the columns of a joined table in one pass.

use std::cmp::Ordering;
use std::sync::Arc;

use super::cell::{CellComparison, DifferenceClass};
use super::clock::UNKNOWN;
use super::exactness::{ColumnPair, TraceComparison};
use super::join::PairRun;
use super::keys::TraceSide;
use super::mark::{RowMark, by_time};
use super::owners::OwnerMap;
use super::pairing::{Owner, Pairing};
use hitreg_log::trace::schema::JoinRule;

/// The result of one pass. Pairs are named by their index in the join.
pub(crate) struct ScanResult {
    /// The owners of the pairs.
    pub(crate) owners: Vec<Owner>,
    /// The last compared pair of each owner.
    pub(crate) last: Vec<Option<usize>>,
    /// For each compared column: the differences by owner.
    pub(crate) columns: Vec<(String, OwnerRuns)>,
    /// The result for each pair.
    pub(crate) pairs: Vec<PairResult>,
    /// The index of each pair's owner.
    owner_of: Vec<u32>,
    /// Whether the pairs of each owner are in the order in which they happened.
    in_order: bool,
}

/// The differences in one column, for each owner of [`ScanResult::owners`].
type OwnerRuns = Vec<Option<DifferenceRun<usize>>>;

/// The differences in one column of one owner.
#[derive(Clone, Debug)]
pub(crate) struct DifferenceRun<S> {
    pub(crate) rows: u64,
    pub(crate) drifted: u64,
    pub(crate) class: DifferenceClass,
    pub(crate) first: S,
    pub(crate) last: S,
    pub(crate) largest: Option<(f64, S)>,
}

/// The result for one pair of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairResult {
    /// A cell differs.
    pub(crate) differs: bool,
    /// A cell differs within tolerance.
    pub(crate) within: bool,
    /// The rows have different times, so nothing else was compared.
    pub(crate) other_time: bool,
}

const BLOCK_ROWS: usize = 1024;

impl ScanResult {
    pub(crate) fn of(pairing: &Pairing<'_>, compared: &TraceComparison<'_>) -> ScanResult {
        let mut scan = ScanResult::of_owners(pairing);
        for column in &pairing.a.columns {
            let is_time = column.name == "at_us" && pairing.key.joined == JoinRule::AtSameTime;
            if is_time || pairing.key.columns.contains(&column.name) || !compared.options.on.has_column(&column.name) {
                continue;
            }
            if let Some(cells) = ColumnPair::of(pairing.a, pairing.b, &column.name, compared) {
                let runs = scan.column(pairing, &cells);
                scan.columns.push((column.name.clone(), runs));
            }
        }
        scan
    }

    /// Finds the owner of each pair, and the pairs of rows with different times.
    fn of_owners(pairing: &Pairing<'_>) -> ScanResult {
        let count = pairing.joined.len();
        let (mut owners, mut last, mut in_order) = (Vec::new(), Vec::new(), true);
        let (mut pairs, mut owner_of) = (vec![PairResult::default(); count], vec![0u32; count]);
        let mut places: OwnerMap<OwnerMap<u32>> = OwnerMap::default();
        // For each owner: its last pair, with the time.
        let mut before: Vec<(usize, i64)> = Vec::new();
        let timed = pairing.key.joined != JoinRule::Always;
        for &PairRun { first, a, b, rows } in &pairing.joined.runs {
            let (times_a, times_b) = (&pairing.times[0][a..][..rows], &pairing.times[1][b..][..rows]);
            let results = pairs[first..][..rows].iter_mut().zip(&mut owner_of[first..][..rows]);
            for (row, ((at_a, at_b), (result, owner))) in times_a.iter().zip(times_b).zip(results).enumerate() {
                let (pair, time) = (first + row, *at_a.min(at_b));
                let whose = pairing.owner_in(TraceSide::A, a + row);
                let of_first = places.or_insert_with(whose.0.unwrap_or_default(), OwnerMap::default);
                *owner = *of_first.or_insert_with(whose.1.unwrap_or_default(), || {
                    owners.push(whose);
                    last.push(None);
                    before.push((pair, time));
                    (owners.len() - 1) as u32
                });
                let place = *owner as usize;
                let known = std::mem::replace(&mut before[place], (pair, time));
                in_order &= known.1 < time || !pairing.is_later(known.0, pair);
                result.other_time = timed && at_a != at_b && *at_a != UNKNOWN && *at_b != UNKNOWN;
                if !result.other_time {
                    let last = &mut last[place];
                    if in_order || last.is_none_or(|last| pairing.is_later(pair, last)) {
                        *last = Some(pair);
                    }
                }
            }
        }
        ScanResult { owners, last, columns: Vec::new(), pairs, owner_of, in_order }
    }

    /// Whether a pair was compared and is equal.
    pub(crate) fn agrees(&self, pair: usize) -> bool {
        !self.pairs[pair].differs && !self.pairs[pair].other_time
    }

    fn column(&mut self, pairing: &Pairing<'_>, column: &ColumnPair<'_>) -> OwnerRuns {
        let mut runs: OwnerRuns = vec![None; self.owners.len()];
        let mut unlike = Vec::with_capacity(BLOCK_ROWS);
        let (pairs, owner_of, in_order) = (&mut self.pairs, &self.owner_of, self.in_order);
        for &PairRun { first, a, b, rows } in &pairing.joined.runs {
            for start in (0..rows).step_by(BLOCK_ROWS) {
                let count = BLOCK_ROWS.min(rows - start);
                let (a, b, first) = (a + start, b + start, first + start);
                if column.same_bits(a, b, count) {
                    continue;
                }
                unlike.clear();
                column.compare_rows(a, b, count, &mut unlike);
                for (row, compared) in unlike.drain(..) {
                    let pair = first + row as usize;
                    let flags = &mut pairs[pair];
                    if flags.other_time {
                        continue;
                    }
                    match compared {
                        CellComparison::Same => {}
                        CellComparison::Within => flags.within = true,
                        CellComparison::Differs { class, error } => {
                            flags.differs = true;
                            match &mut runs[owner_of[pair] as usize] {
                                Some(run) if in_order => run.add_later(class, error, pair),
                                Some(run) => run.add(pairing, class, error, pair),
                                none => *none = Some(DifferenceRun::new(class, error, pair)),
                            }
                        }
                    }
                }
            }
        }
        runs
    }
}

impl DifferenceRun<usize> {
    fn new(class: DifferenceClass, error: Option<f64>, pair: usize) -> DifferenceRun<usize> {
        let largest = error.map(|error| (error, pair));
        let drifted = u64::from(class == DifferenceClass::Drift);
        DifferenceRun { rows: 1, drifted, class, first: pair, last: pair, largest }
    }

    fn add(&mut self, pairing: &Pairing<'_>, class: DifferenceClass, error: Option<f64>, pair: usize) {
        let (first, last, largest) = (self.first, self.last, self.largest);
        self.add_later(class, error, pair);
        self.first = if pairing.is_later(first, pair) { pair } else { first };
        self.last = if pairing.is_later(last, pair) { last } else { pair };
        if let (Some((most, at)), Some(error)) = (largest, error)
            && error.total_cmp(&most).is_eq()
            && pairing.is_later(at, pair)
        {
            self.largest = Some((error, pair));
        }
    }

    /// Adds a pair that happened after all others.
    fn add_later(&mut self, class: DifferenceClass, error: Option<f64>, pair: usize) {
        self.rows += 1;
        self.drifted += u64::from(class == DifferenceClass::Drift);
        self.class = self.class.max(class);
        self.last = pair;
        if let Some(error) = error
            && self.largest.is_none_or(|(most, _)| error.total_cmp(&most).is_gt())
        {
            self.largest = Some((error, pair));
        }
    }
}

impl DifferenceRun<Arc<RowMark>> {
    /// Converts a run to marks, which remain valid after its rows are dropped.
    pub(crate) fn of(run: &DifferenceRun<usize>, mut mark: impl FnMut(usize) -> Arc<RowMark>) -> Self {
        let DifferenceRun { rows, drifted, class, first, last, largest } = *run;
        let largest = largest.map(|(error, pair)| (error, mark(pair)));
        DifferenceRun { rows, drifted, class, first: mark(first), last: mark(last), largest }
    }

    /// Merges a run of other rows.
    pub(crate) fn join(
        &mut self,
        other: &DifferenceRun<usize>,
        pairing: &Pairing<'_>,
        mut mark: impl FnMut(usize) -> Arc<RowMark>,
    ) {
        self.rows += other.rows;
        self.drifted += other.drifted;
        self.class = self.class.max(other.class);
        // Rows mostly come in the order of their times, and a mark costs more than a time.
        if by_time(pairing.spot(other.first).at_us, self.first.at_us()).is_le() {
            let first = mark(other.first);
            if first.cmp(&self.first).is_lt() {
                self.first = first;
            }
        }
        let last = mark(other.last);
        if last.cmp(&self.last).is_gt() {
            self.last = last;
        }
        if let Some((error, pair)) = other.largest
            && self.largest.as_ref().is_none_or(|(most, _)| error.total_cmp(most).is_ge())
        {
            let other = (error, mark(pair));
            if self.largest.as_ref().is_none_or(|known| larger(&other, known).is_gt()) {
                self.largest = Some(other);
            }
        }
    }
}

/// Orders errors by size. Among equal errors, the earlier one is the greater.
pub(crate) fn larger(x: &(f64, Arc<RowMark>), y: &(f64, Arc<RowMark>)) -> Ordering {
    x.0.total_cmp(&y.0).then_with(|| y.1.cmp(&x.1))
}
