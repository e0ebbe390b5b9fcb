//! Reconciliation and interpolation of both traces, side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::Compared;
use crate::stats::{Spread, Tail};
use crate::summary::{Prediction, Summary};
use crate::trace::{Data, Table, Trace};

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
        let Some((causes_a, causes_b)) = names(pairing.a, "cause").zip(names(pairing.b, "cause")) else {
            return reconciliation;
        };
        let (corrected, causes) = (&mut reconciliation.corrected, &mut reconciliation.causes);
        for (i, j) in pairing.joined.pairs() {
            let (a, b) = (causes_a.of(i), causes_b.of(j));
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
        let of = |trace: &Trace| trace.table("views").map(Views::of).unwrap_or_default();
        let mut interpolation = Interpolation { a: of(a), b: of(b), ..Interpolation::default() };
        let Some(views) = views else { return interpolation };
        interpolation.compared = views.diff.rows.compared;
        let distances: Vec<f32> = match &views.pairing {
            // The same to the bit.
            None => vec![0.0; views.diff.rows.compared as usize],
            Some(pairing) => {
                let Some((place_a, place_b)) = place(pairing.a).zip(place(pairing.b)) else { return interpolation };
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
    fn of(table: &Table) -> Views {
        let mut views = Views { views: table.rows() as u64, ..Views::default() };
        if let Some(how) = names(table, "how") {
            for row in 0..table.rows() {
                *views.how.entry(how.of(row).to_owned()).or_default() += 1;
            }
        }
        views
    }
}

fn reran(trace: &Trace) -> Option<Spread> {
    let Some(Data::U32(reran)) = trace.table("corrections")?.column("reran").map(|c| &c.data) else { return None };
    Spread::of(reran.iter().filter(|n| **n > 0).map(|n| *n as f32))
}

#[derive(Clone, Copy)]
struct Names<'a> {
    names: &'a [String],
    codes: &'a [u8],
}

impl<'a> Names<'a> {
    fn of(self, row: usize) -> &'a str {
        self.codes.get(row).and_then(|code| self.names.get(usize::from(*code))).map_or("", String::as_str)
    }
}

fn names<'a>(table: &'a Table, name: &str) -> Option<Names<'a>> {
    match &table.column(name)?.data {
        Data::Name { names, codes } => Some(Names { names, codes }),
        _ => None,
    }
}

fn place(table: &Table) -> Option<[&[f32]; 3]> {
    let part = |name| match table.column(name).map(|c| &c.data) {
        Some(Data::F32(values)) => Some(values.as_slice()),
        _ => None,
    };
    Some([part("origin.x")?, part("origin.y")?, part("origin.z")?])
}

fn at([x, y, z]: [&[f32]; 3], row: usize) -> glam::Vec3 {
    glam::Vec3::new(x[row], y[row], z[row])
}
