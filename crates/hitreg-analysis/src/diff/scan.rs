//! Compares the columns of a joined table in one pass.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::cell::{Class, Compared};
use super::exactness::{Column, Exactness};
use super::mark::Mark;
use super::pairing::{Owner, Pairing, Spot};
use hitreg_log::trace::schema::Joined;

/// The result of one pass.
#[derive(Default)]
pub(crate) struct Scan {
    /// For each compared column: the differences by owner.
    pub(crate) columns: Vec<(String, BTreeMap<Owner, Run<Spot>>)>,
    /// The result for each pair.
    pub(crate) pairs: Vec<Pair>,
}

/// The differences in one column of one owner.
#[derive(Clone, Debug)]
pub(crate) struct Run<S> {
    pub(crate) rows: u64,
    pub(crate) drifted: u64,
    pub(crate) class: Class,
    pub(crate) first: S,
    pub(crate) last: S,
    pub(crate) largest: Option<(f64, S)>,
}

/// The result for one pair of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    /// A cell differs.
    pub(crate) differs: bool,
    /// A cell differs within tolerance.
    pub(crate) within: bool,
    /// The rows have different times, so nothing else was compared.
    pub(crate) other_time: bool,
}

const BLOCK_ROWS: usize = 1024;

impl Scan {
    pub(crate) fn of(pairing: &Pairing<'_>, exactness: &Exactness<'_>) -> Scan {
        let mut scan = Scan { columns: Vec::new(), pairs: vec![Pair::default(); pairing.joined.len()] };
        if pairing.key.joined != Joined::Always {
            for (pair, (i, j)) in scan.pairs.iter_mut().zip(pairing.joined.pairs()) {
                pair.other_time = !pairing.same_time(i, j);
            }
        }
        for column in &pairing.a.columns {
            let is_time = column.name == "at_us" && pairing.key.joined == Joined::AtSameTime;
            if is_time || pairing.key.columns.contains(&column.name) || !exactness.on.has_column(&column.name) {
                continue;
            }
            if let Some(compared) = Column::of(pairing.a, pairing.b, &column.name, exactness) {
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

    fn column(&mut self, pairing: &Pairing<'_>, column: &Column<'_>) -> BTreeMap<Owner, Run<Spot>> {
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

    fn cell(&mut self, pairing: &Pairing<'_>, pair: usize, column: &Column<'_>, runs: &mut BTreeMap<Owner, Run<Spot>>) {
        let flags = &mut self.pairs[pair];
        if flags.other_time {
            return;
        }
        let (i, j) = pairing.joined.pair(pair);
        match column.compare(i, j) {
            Compared::Same => {}
            Compared::Within => flags.within = true,
            Compared::Differs { class, error } => {
                flags.differs = true;
                let spot = pairing.spot(pair);
                runs.entry(pairing.owner(&spot))
                    .and_modify(|run| run.add(pairing, class, error, spot))
                    .or_insert_with(|| Run::new(class, error, spot));
            }
        }
    }
}

impl Run<Spot> {
    fn new(class: Class, error: Option<f64>, spot: Spot) -> Run<Spot> {
        let largest = error.map(|error| (error, spot));
        Run { rows: 1, drifted: u64::from(class == Class::Drift), class, first: spot, last: spot, largest }
    }

    fn add(&mut self, pairing: &Pairing<'_>, class: Class, error: Option<f64>, spot: Spot) {
        self.rows += 1;
        self.drifted += u64::from(class == Class::Drift);
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

impl Run<Mark> {
    /// Converts a run to marks, which remain valid after its rows are dropped.
    pub(crate) fn of(run: &Run<Spot>, mark: impl Fn(&Spot) -> Mark) -> Run<Mark> {
        let largest = run.largest.map(|(error, spot)| (error, mark(&spot)));
        let Run { rows, drifted, class, first, last, .. } = run;
        Run { rows: *rows, drifted: *drifted, class: *class, first: mark(first), last: mark(last), largest }
    }

    /// Merges a run of other rows.
    pub(crate) fn join(&mut self, other: Run<Mark>) {
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
pub(crate) fn larger(x: &(f64, Mark), y: &(f64, Mark)) -> Ordering {
    x.0.total_cmp(&y.0).then_with(|| y.1.cmp(&x.1))
}
