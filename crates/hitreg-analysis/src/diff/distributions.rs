//! Compares reconciliation and interpolation of both traces.

use serde::Serialize;

use super::pairing::Pairing;
use super::relocations::{RelocationSearch, Relocations};
use super::scan::ScanResult;
use crate::summary::{PredictionSummary, SummaryBuilder};
use crate::why::is_corrected;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::{CountedValues, Spread, Tail};
use hitreg_log::trace::schema::{corrections, views};
use hitreg_log::trace::{Table, TraceSource, each_part};

/// The predictions of both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reconciliation {
    /// The predictions in A.
    pub a: PredictionSummary,
    /// The predictions in B.
    pub b: PredictionSummary,
    /// How many usercmds were run again after each correction, in A.
    pub reran_a: Option<Spread>,
    /// The same for B.
    pub reran_b: Option<Spread>,
    /// Which usercmds' predictions were corrected.
    pub corrected: CorrectedCounts,
    /// The causes of corrections that only one trace needed.
    pub causes: Causes,
}

/// Counts of usercmds by where their prediction was corrected. Only usercmds that were checked in both traces count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CorrectedCounts {
    /// Corrected in both traces.
    pub both: u64,
    /// Corrected in A only.
    pub only_a: u64,
    /// Corrected in B only.
    pub only_b: u64,
    /// Corrected in neither trace.
    pub neither: u64,
}

/// The causes of corrections, with the number of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// Corrections in A only.
    pub only_a: SortedMap<String, u64>,
    /// Corrections in B only.
    pub only_b: SortedMap<String, u64>,
}

/// How both traces drew the other entities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterpolationDiff {
    /// The views in A.
    pub a: ViewCounts,
    /// The views in B.
    pub b: ViewCounts,
    /// How many views of the same entity in the same client frame were compared.
    pub compared: u64,
    /// How many of them were not in exactly the same place.
    pub moved: u64,
    /// How many of them are views of an entity that spawned or teleported in one trace only, or at another time. They do
    /// not count in `moved`, and have no distance.
    pub relocated: u64,
    /// Distance between the places at which the traces drew the same entity in the same client frame, in units.
    pub distance_units: Option<Tail>,
    /// The largest distance, in units.
    pub distance_max_units: Option<f32>,
}

/// The views of one trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewCounts {
    /// How many views there are.
    pub views: u64,
    /// How many views were interpolated, extrapolated, held and so on.
    pub how: SortedMap<String, u64>,
}

impl Reconciliation {
    pub(crate) fn of(tallies: [&TraceTally; 2], distinct: CorrectionOverlap) -> Reconciliation {
        let [a, b] = tallies.map(|tally| tally.prediction.summary().prediction);
        let [reran_a, reran_b] = tallies.map(|tally| tally.reran.spread());
        Reconciliation { a, b, reran_a, reran_b, corrected: distinct.corrected, causes: distinct.causes }
    }
}

/// Counts corrected usercmds by trace, and the causes of corrections in one trace only.
#[derive(Default)]
pub(crate) struct CorrectionOverlap {
    corrected: CorrectedCounts,
    causes: Causes,
}

impl CorrectionOverlap {
    pub(crate) fn add(&mut self, pairing: &Pairing<'_>) {
        let [acks_a, acks_b] = [pairing.a, pairing.b].map(corrections::Columns::read);
        if acks_a.cause.codes.is_empty() || acks_b.cause.codes.is_empty() {
            return;
        }
        let CorrectionOverlap { corrected, causes } = self;
        for (i, j) in pairing.joined.pairs() {
            let (a, b) = (acks_a.cause.get(i), acks_b.cause.get(j));
            match (is_corrected(&acks_a, i), is_corrected(&acks_b, j)) {
                (true, true) => corrected.both += 1,
                (true, false) => {
                    corrected.only_a += 1;
                    *causes.only_a.entry(a.to_owned()).or_default() += 1;
                }
                (false, true) => {
                    corrected.only_b += 1;
                    *causes.only_b.entry(b.to_owned()).or_default() += 1;
                }
                (false, false) => corrected.neither += 1,
            }
        }
    }
}

impl InterpolationDiff {
    pub(crate) fn of([a, b]: [&TraceTally; 2], compared: u64, apart: &DrawnDistance) -> InterpolationDiff {
        InterpolationDiff {
            a: a.views.clone(),
            b: b.views.clone(),
            compared,
            moved: apart.moved,
            relocated: apart.relocated,
            distance_units: apart.units.tail(),
            distance_max_units: apart.most,
        }
    }
}

/// Collects distances between the two traces' views.
#[derive(Default)]
pub(crate) struct DrawnDistance {
    moved: u64,
    relocated: u64,
    units: CountedValues,
    most: Option<f32>,
}

impl DrawnDistance {
    pub(crate) fn add(&mut self, pairing: &Pairing<'_>, scan: &ScanResult, relocations: &[Relocations; 2]) {
        let views = [pairing.a, pairing.b].map(views::Columns::read);
        let compared = pairing.joined.pairs().zip(&scan.pairs).filter(|(_, pair)| !pair.other_time);
        self.add_views(&views, compared.map(|(rows, _)| rows), relocations);
    }

    fn add_views(
        &mut self,
        [a, b]: &[views::Columns<'_>; 2],
        pairs: impl Iterator<Item = (usize, usize)>,
        relocations: &[Relocations; 2],
    ) {
        if a.origin.iter().chain(&b.origin).any(|part| part.is_empty()) {
            return;
        }
        // The last relocation of the drawn entity up to the time at which it is drawn.
        let last = |of: &mut RelocationSearch<'_>, views: &views::Columns<'_>, row: usize| {
            of.last(*views.entity.get(row)?, *views.drawn_at_us.get(row)?)
        };
        let [mut in_a, mut in_b] = relocations.each_ref().map(Relocations::search);
        let across =
            [a, b].map(|views| views.how.names.iter().position(|how| how == "teleported").map(|code| code as u32));
        let is_across = |side: usize, views: &views::Columns<'_>, row: usize| {
            across[side].is_some() && views.how.codes.get(row).copied() == across[side]
        };
        for (i, j) in pairs {
            let is_other = last(&mut in_a, a, i) != last(&mut in_b, b, j);
            match is_other || is_across(0, a, i) != is_across(1, b, j) {
                true => self.relocated += 1,
                false => self.note(at(a.origin, i).distance(at(b.origin, j))),
            }
        }
    }

    /// Adds views that are equal in both traces.
    pub(crate) fn add_same(&mut self, table: &Table, relocations: &[Relocations; 2]) {
        let views = [table; 2].map(views::Columns::read);
        self.add_views(&views, (0..table.rows()).map(|row| (row, row)), relocations);
    }

    fn note(&mut self, units: f32) {
        self.moved += u64::from(units > 0.0);
        self.units.add(units);
        if !units.is_nan() {
            self.most = Some(self.most.map_or(units, |most| most.max(units)));
        }
    }
}

/// Counts one trace's predictions and views, independent of the other trace.
#[derive(Clone, Default)]
pub(crate) struct TraceTally {
    prediction: SummaryBuilder,
    reran: CountedValues,
    views: ViewCounts,
}

impl TraceTally {
    /// Counts all rows of a table.
    pub(crate) fn of(trace: &dyn TraceSource, table: &str) -> Result<TraceTally, String> {
        let mut tally = TraceTally::default();
        each_part(trace, table, (&[], None), &mut |rows| {
            tally.add(rows);
            Ok(())
        })?;
        Ok(tally)
    }

    pub(crate) fn add(&mut self, rows: &Table) {
        match rows.name.as_str() {
            corrections::NAME => {
                self.prediction.add(rows);
                let reran = corrections::Columns::read(rows).reran.iter();
                reran.filter(|n| **n > 0).for_each(|n| self.reran.add(*n as f32));
            }
            views::NAME => self.views.add(&views::Columns::read(rows)),
            _ => {}
        }
    }
}

impl ViewCounts {
    fn add(&mut self, table: &views::Columns<'_>) {
        self.views += table.rows as u64;
        let mut counts = vec![0u64; table.how.names.len() + 1];
        let unnamed = counts.len() - 1;
        table.how.codes.iter().for_each(|code| counts[(*code as usize).min(unnamed)] += 1);
        let names = table.how.names.iter().map(String::as_str).chain([""]);
        for (how, count) in names.zip(counts).filter(|(_, count)| *count > 0) {
            *self.how.entry(how.to_owned()).or_default() += count;
        }
    }
}

fn at([x, y, z]: [&[f32]; 3], row: usize) -> glam::Vec3 {
    glam::Vec3::new(x[row], y[row], z[row])
}
