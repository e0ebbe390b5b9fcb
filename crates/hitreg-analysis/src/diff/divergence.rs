//! The first place where a table differs, with the details that a report shows.

use serde::Serialize;

use super::cell::{CellComparison, CellPair, CellValue, DifferenceClass, NumberComparison, ulps_apart};
use super::clock::TickTimes;
use super::exactness::TableExactness;
use super::keys::TraceSide;
use super::pairing::{Pairing, RowSpot};
use super::place::{RowDump, RowPlace};
use super::scan::ScanResult;
use super::settings::ChangedSetting;
use super::usercmds::UsercmdRow;
use hitreg_log::trace::schema::errors;

/// The first place where two traces, or two tables, differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// The name of the table.
    pub table: String,
    /// The place in the session.
    pub place: RowPlace,
    /// Whether a value differs, a row is missing or the times differ.
    pub what: DivergenceKind,
    /// The column; if several differ in the row, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value in A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<CellValue>,
    /// The value in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<CellValue>,
    /// The class of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<DifferenceClass>,
    /// The distance between the values, in the column's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// How many representable floats lie between the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulps: Option<u64>,
    /// The other columns that differ in the same row.
    pub others: Vec<Values>,
    /// The last earlier row of the same entity or player in which A and B agree.
    pub last_agreeing: Option<RowDump>,
    /// The last earlier authoritative state of the divergence's entity, if it is a row of another table.
    pub last_state: Option<RowDump>,
    /// In A: the usercmds that ran in the divergence's tick, or the one usercmd that it concerns.
    pub usercmds_a: Vec<UsercmdRow>,
    /// The same for B.
    pub usercmds_b: Vec<UsercmdRow>,
}

/// What differs at a divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// A value differs.
    Value,
    /// B lacks the row.
    OnlyInA,
    /// A lacks the row.
    OnlyInB,
    /// The rows have different times; nothing else in them is compared.
    TimesDiffer,
}

/// A column's values in both traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Values {
    /// The column.
    pub field: String,
    /// The value in A.
    pub a: CellValue,
    /// The value in B.
    pub b: CellValue,
}

/// The column of usercmds that says how far behind a client draws the others.
const LERP: &str = "lerp_msec";
/// The setting that it repeats, which may be one player's own.
const LERP_SETTING: &str = "interpolation.lerp_ms";

impl Divergence {
    /// Creates the divergence at a spot of one table. The caller adds the last agreeing row, and
    /// [`Divergence::look_around`] adds what other tables know.
    pub(crate) fn of(
        pairing: &Pairing<'_>,
        clocks: [&TickTimes; 2],
        scan: &ScanResult,
        exactness: &TableExactness<'_>,
        spot: &RowSpot,
    ) -> Divergence {
        let mut found = Divergence {
            table: pairing.a.name.clone(),
            place: RowPlace::of(pairing, clocks, spot),
            what: DivergenceKind::Value,
            field: None,
            a: None,
            b: None,
            class: None,
            error: None,
            ulps: None,
            others: Vec::new(),
            last_agreeing: None,
            last_state: None,
            usercmds_a: Vec::new(),
            usercmds_b: Vec::new(),
        };
        match (spot.a, spot.b) {
            (Some(_), None) => found.what = DivergenceKind::OnlyInA,
            (None, _) => found.what = DivergenceKind::OnlyInB,
            (Some(i), Some(j)) if !pairing.same_time(i as usize, j as usize) => {
                found.what = DivergenceKind::TimesDiffer;
                found.set(&values(pairing, "at_us", i as usize, j as usize));
            }
            (Some(i), Some(j)) => {
                let differing = scan.columns.iter().filter(|(_, runs)| runs.values().any(|run| run.first == *spot));
                let mut all = differing.filter_map(|(name, _)| values(pairing, name, i as usize, j as usize));
                found.set(&all.next());
                found.others = all.collect();
            }
        }
        if let (Some(i), Some(j), Some(field)) = (spot.a, spot.b, &found.field) {
            found.measure(pairing, exactness, &field.clone(), (i as usize, j as usize));
        }
        found
    }

    /// Whether nothing differs in its row but the setting that each usercmd carries, and that setting was changed.
    pub(super) fn is_echo_of(&self, changed: &[ChangedSetting]) -> bool {
        let is_it = self.what == DivergenceKind::Value && self.field.as_deref() == Some(LERP) && self.others.is_empty();
        is_it && changed.iter().any(|setting| setting.key.ends_with(LERP_SETTING))
    }

    /// Says that usercmds carry the changed setting.
    pub(super) fn echo_note(&self) -> Option<String> {
        let (a, b) = (self.a.as_ref()?, self.b.as_ref()?);
        Some(format!("each usercmd carries the changed setting: {LERP} is {a} in A, {b} in B"))
    }

    fn set(&mut self, values: &Option<Values>) {
        if let Some(Values { field, a, b }) = values.clone() {
            self.field = Some(field);
            self.a = Some(a);
            self.b = Some(b);
        }
    }

    fn measure(&mut self, pairing: &Pairing<'_>, exactness: &TableExactness<'_>, field: &str, (i, j): (usize, usize)) {
        let columns = pairing.a.column(field).zip(pairing.b.column(field));
        let cells = columns.and_then(|(a, b)| CellPair::of(&a.data, &b.data));
        // In the table of errors, each row holds the values of the field that it names.
        let of_field = pairing.a.column("field").filter(|_| pairing.a.name == errors::NAME);
        let name = of_field.and_then(|column| CellValue::at(column, i)).map(|name| name.to_string());
        let measure = match (&name, pairing.a.column(field)) {
            (Some(name), _) => exactness.of_field(name),
            (None, Some(column)) => exactness.of_column(column),
            (None, None) => NumberComparison::default(),
        };
        // The error is reported even within tolerance.
        let measure = NumberComparison { within: None, ..measure };
        if let Some(CellComparison::Differs { class, error }) = cells.map(|cells| cells.compare(i, j, measure)) {
            self.class = Some(class);
            self.error = error;
        }
        if let (Some(CellValue::Float(a)), Some(CellValue::Float(b))) = (&self.a, &self.b)
            && a.is_finite()
            && b.is_finite()
        {
            self.ulps = Some(ulps_apart(*a, *b));
        }
    }
}

fn values(pairing: &Pairing<'_>, name: &str, i: usize, j: usize) -> Option<Values> {
    let a = CellValue::at(pairing.a.column(name)?, i)?;
    let b = CellValue::at(pairing.b.column(name)?, j)?;
    Some(Values { field: name.to_owned(), a, b })
}

/// The last row before a spot, of the same entity or player, in which A and B agree.
pub(crate) fn last_agreeing(
    pairing: &Pairing<'_>,
    clocks: [&TickTimes; 2],
    scan: &ScanResult,
    spot: &RowSpot,
) -> Option<RowDump> {
    let last = pairing.last_before(spot, |pair| scan.agrees(pair))?;
    Some(agreeing(pairing, clocks, &last))
}

/// A row in which A and B agree, as a report shows it.
pub(crate) fn agreeing(pairing: &Pairing<'_>, clocks: [&TickTimes; 2], spot: &RowSpot) -> RowDump {
    let (table, row) = match spot.row() {
        Some((TraceSide::B, row)) => (pairing.b, row),
        Some((TraceSide::A, row)) => (pairing.a, row),
        None => (pairing.a, pairing.a.rows()),
    };
    RowDump::of(table, row, RowPlace::of(pairing, clocks, spot), &pairing.key.columns)
}
