//! Compares the columns of a joined table in one pass.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::cell::{CellComparison, DifferenceClass};
use super::exactness::{ColumnPair, TableExactness};
use super::mark::RowMark;
use super::pairing::{Owner, Pairing, RowSpot};
use hitreg_log::trace::schema::JoinRule;

/// The result of one pass.
#[derive(Default)]
pub(crate) struct ScanResult {
    /// For each compared column: the differences by owner.
    pub(crate) columns: Vec<(String, BTreeMap<Owner, DifferenceRun<RowSpot>>)>,
    /// The result for each pair.
    pub(crate) pairs: Vec<PairResult>,
}

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
    pub(crate) fn of(pairing: &Pairing<'_>, exactness: &TableExactness<'_>) -> ScanResult {
        let mut scan = ScanResult { columns: Vec::new(), pairs: vec![PairResult::default(); pairing.joined.len()] };
        if pairing.key.joined != JoinRule::Always {
            for (pair, (i, j)) in scan.pairs.iter_mut().zip(pairing.joined.pairs()) {
                pair.other_time = !pairing.same_time(i, j);
            }
        }
        for column in &pairing.a.columns {
            let is_time = column.name == "at_us" && pairing.key.joined == JoinRule::AtSameTime;
            if is_time || pairing.key.columns.contains(&column.name) || !exactness.on.has_column(&column.name) {
                continue;
            }
            if let Some(compared) = ColumnPair::of(pairing.a, pairing.b, &column.name, exactness) {
                let runs = scan.column(pairing, &compared);
                scan.columns.push((column.name.clone(), runs));
            }
        }
        scan
    }

    /// Whether a pair was compared and is equal.
    pub(crate) fn agrees(&self, pair: usize) -> bool {
        !self.pairs[pair].differs && !self.pairs[pair].other_time
    }

    fn column(&mut self, pairing: &Pairing<'_>, column: &ColumnPair<'_>) -> BTreeMap<Owner, DifferenceRun<RowSpot>> {
        let mut runs = BTreeMap::new();
        let mut start = 0;
        while start < pairing.joined.len() {
            let end = (start + BLOCK_ROWS).min(pairing.joined.len());
            if end > pairing.joined.aligned || !column.same_bits(start..end) {
                for pair in start..end {
                    self.cell(pairing, pair, column, &mut runs);
                }
            }
            start = end;
        }
        runs
    }

    fn cell(
        &mut self,
        pairing: &Pairing<'_>,
        pair: usize,
        column: &ColumnPair<'_>,
        runs: &mut BTreeMap<Owner, DifferenceRun<RowSpot>>,
    ) {
        let flags = &mut self.pairs[pair];
        if flags.other_time {
            return;
        }
        let (i, j) = pairing.joined.pair(pair);
        match column.compare(i, j) {
            CellComparison::Same => {}
            CellComparison::Within => flags.within = true,
            CellComparison::Differs { class, error } => {
                flags.differs = true;
                let spot = pairing.spot(pair);
                runs.entry(pairing.owner(&spot))
                    .and_modify(|run| run.add(pairing, class, error, spot))
                    .or_insert_with(|| DifferenceRun::new(class, error, spot));
            }
        }
    }
}

impl DifferenceRun<RowSpot> {
    fn new(class: DifferenceClass, error: Option<f64>, spot: RowSpot) -> DifferenceRun<RowSpot> {
        let largest = error.map(|error| (error, spot));
        DifferenceRun {
            rows: 1,
            drifted: u64::from(class == DifferenceClass::Drift),
            class,
            first: spot,
            last: spot,
            largest,
        }
    }

    fn add(&mut self, pairing: &Pairing<'_>, class: DifferenceClass, error: Option<f64>, spot: RowSpot) {
        self.rows += 1;
        self.drifted += u64::from(class == DifferenceClass::Drift);
        self.class = self.class.max(class);
        if pairing.cmp(&spot, &self.first).is_lt() {
            self.first = spot;
        }
        if pairing.cmp(&spot, &self.last).is_gt() {
            self.last = spot;
        }
        if let Some(error) = error {
            let larger = self
                .largest
                .is_none_or(|(most, at)| error.total_cmp(&most).then_with(|| pairing.cmp(&at, &spot)).is_gt());
            if larger {
                self.largest = Some((error, spot));
            }
        }
    }
}

impl DifferenceRun<RowMark> {
    /// Converts a run to marks, which remain valid after its rows are dropped.
    pub(crate) fn of(run: &DifferenceRun<RowSpot>, mark: impl Fn(&RowSpot) -> RowMark) -> DifferenceRun<RowMark> {
        let largest = run.largest.map(|(error, spot)| (error, mark(&spot)));
        let DifferenceRun { rows, drifted, class, first, last, .. } = run;
        DifferenceRun { rows: *rows, drifted: *drifted, class: *class, first: mark(first), last: mark(last), largest }
    }

    /// Merges a run of other rows.
    pub(crate) fn join(&mut self, other: DifferenceRun<RowMark>) {
        self.rows += other.rows;
        self.drifted += other.drifted;
        self.class = self.class.max(other.class);
        if other.first.cmp(&self.first).is_lt() {
            self.first = other.first;
        }
        if other.last.cmp(&self.last).is_gt() {
            self.last = other.last;
        }
        if let Some(other) = other.largest
            && self.largest.as_ref().is_none_or(|known| larger(&other, known).is_gt())
        {
            self.largest = Some(other);
        }
    }
}

/// Orders errors by size. Among equal errors, the earlier one is the greater.
pub(crate) fn larger(x: &(f64, RowMark), y: &(f64, RowMark)) -> Ordering {
    x.0.total_cmp(&y.0).then_with(|| y.1.cmp(&x.1))
}
