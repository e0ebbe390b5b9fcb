//! Reconciliation and interpolation of both traces, side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::Compared;
use crate::stats::{Spread, Tail};
use crate::summary::{Prediction, Summary};
use crate::trace::Trace;
use crate::trace::schema::{corrections, views};

/// How the predictions of both traces did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reconciliation {
    /// In A.
    pub a: Prediction,
    /// In B.
    pub b: Prediction,
    /// How many usercmds were run again after each correction, in A.
    pub reran_a: Option<Spread>,
    /// The same in B.
    pub reran_b: Option<Spread>,
    /// Which usercmds' predictions had to be corrected.
    pub corrected: Corrected,
    /// The causes of the corrections that only one of them needed.
    pub causes: Causes,
}

/// Usercmds whose prediction had to be corrected, among those that were checked in both traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Corrected {
    /// In both.
    pub both: u64,
    /// In A, and agreed in B.
    pub only_a: u64,
    /// In B, and agreed in A.
    pub only_b: u64,
    /// Agreed in both.
    pub neither: u64,
}

/// Causes of corrections, with how many there are of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// Of those in A only.
    pub only_a: BTreeMap<String, u64>,
    /// Of those in B only.
    pub only_b: BTreeMap<String, u64>,
}

/// How both traces drew the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interpolation {
    /// In A.
    pub a: Views,
    /// In B.
    pub b: Views,
    /// Views of the same entity in the same client frame that were compared.
    pub compared: u64,
    /// Views that are not in exactly the same place.
    pub moved: u64,
    /// How far apart the two traces drew the same entity in the same client frame, in units.
    pub distance_units: Option<Tail>,
    /// The farthest, in units.
    pub distance_max_units: Option<f32>,
}

/// What one trace drew.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Views {
    /// How many views there are.
    pub views: u64,
    /// How many were interpolated, extrapolated, held and so on.
    pub how: BTreeMap<String, u64>,
}

impl Reconciliation {
    pub(crate) fn of(a: &Trace, b: &Trace, corrections: Option<&Compared<'_>>) -> Reconciliation {
        let mut reconciliation = Reconciliation {
            a: Summary::of(a).prediction,
            b: Summary::of(b).prediction,
            reran_a: reran(a),
            reran_b: reran(b),
            ..Reconciliation::default()
        };
        let Some(pairing) = corrections.and_then(|c| c.pairing.as_ref()) else { return reconciliation };
        let [causes_a, causes_b] = [pairing.a, pairing.b].map(|table| corrections::Columns::read(table).cause);
        if causes_a.codes.is_empty() || causes_b.codes.is_empty() {
            return reconciliation;
        }
        let (corrected, causes) = (&mut reconciliation.corrected, &mut reconciliation.causes);
        for (i, j) in pairing.joined.pairs() {
            let (a, b) = (causes_a.get(i), causes_b.get(j));
            match (a == "none", b == "none") {
                (false, false) => corrected.both += 1,
                (false, true) => {
                    corrected.only_a += 1;
                    *causes.only_a.entry(a.to_owned()).or_default() += 1;
                }
                (true, false) => {
                    corrected.only_b += 1;
                    *causes.only_b.entry(b.to_owned()).or_default() += 1;
                }
                (true, true) => corrected.neither += 1,
            }
        }
        reconciliation
    }
}

impl Interpolation {
    pub(crate) fn of(a: &Trace, b: &Trace, views: Option<&Compared<'_>>) -> Interpolation {
        let of = |trace: &Trace| Views::of(&views::Columns::of(trace));
        let mut interpolation = Interpolation { a: of(a), b: of(b), ..Interpolation::default() };
        let Some(views) = views else { return interpolation };
        interpolation.compared = views.diff.rows.compared;
        let distances: Vec<f32> = match &views.pairing {
            // The same to the bit.
            None => vec![0.0; views.diff.rows.compared as usize],
            Some(pairing) => {
                let [place_a, place_b] = [pairing.a, pairing.b].map(|table| views::Columns::read(table).origin);
                if place_a.iter().chain(&place_b).any(|part| part.is_empty()) {
                    return interpolation;
                }
                let compared = pairing.joined.pairs().zip(&views.scan.pairs).filter(|(_, pair)| !pair.other_time);
                let apart = |((i, j), _): ((usize, usize), _)| at(place_a, i).distance(at(place_b, j));
                compared.map(apart).collect()
            }
        };
        interpolation.moved = distances.iter().filter(|d| **d > 0.0).count() as u64;
        interpolation.distance_max_units = distances.iter().copied().filter(|d| !d.is_nan()).reduce(f32::max);
        interpolation.distance_units = Tail::of(distances);
        interpolation
    }
}

impl Views {
    fn of(table: &views::Columns<'_>) -> Views {
        let mut views = Views { views: table.rows as u64, ..Views::default() };
        for how in table.how.iter() {
            match views.how.get_mut(how) {
                Some(count) => *count += 1,
                None => drop(views.how.insert(how.to_owned(), 1)),
            }
        }
        views
    }
}

fn reran(trace: &Trace) -> Option<Spread> {
    Spread::of(corrections::Columns::of(trace).reran.iter().filter(|n| **n > 0).map(|n| *n as f32))
}

fn at([x, y, z]: [&[f32]; 3], row: usize) -> glam::Vec3 {
    glam::Vec3::new(x[row], y[row], z[row])
}
