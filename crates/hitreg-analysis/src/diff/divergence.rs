//! The first place where a table differs, with the details that a report shows.

use serde::Serialize;

use super::cell::{
    CellComparison, CellPair, CellValue, DifferenceClass, NumberComparison, double_ulps_apart, ulps_apart,
};
use super::clock::TickTimes;
use super::exactness::TraceComparison;
use super::pairing::{Pairing, RowSpot};
use super::place::{RowDump, RowPlace};
use super::scan::{DifferenceRun, ScanResult};
use super::settings::ChangedSetting;
use super::usercmds::UsercmdRow;
use hitreg_log::trace::schema::{errors, packets, ticks};

/// The first place where two traces, or two tables, differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// In A: the usercmds that ran in the divergence's tick, or the one usercmd that it concerns. Those of its entity
    /// come first; then the order is that of the times at which clients made them, and of the players.
    pub usercmds_a: Vec<UsercmdRow>,
    /// The same for B.
    pub usercmds_b: Vec<UsercmdRow>,
}

impl Divergence {
    /// The distance between two whole numbers, in the column's unit, with all its digits.
    pub(crate) fn whole_error(&self) -> Option<u128> {
        Some(self.a.as_ref()?.whole()?.abs_diff(self.b.as_ref()?.whole()?))
    }
}

/// What differs at a divergence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// A value differs.
    #[default]
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

/// A difference that repeats a changed setting, and is no effect of it.
pub(super) struct SettingEcho {
    /// The settings that it repeats. A setting may be one player's own.
    settings: &'static [&'static str],
    /// The table; `None` for every table with the column.
    table: Option<&'static str>,
    column: &'static str,
    what: DivergenceKind,
    /// Columns that follow from it in the same row.
    followers: &'static [&'static str],
    /// What carries the setting, as the beginning of a note.
    carrier: &'static str,
}

const ECHOES: &[SettingEcho] = &[
    SettingEcho {
        settings: &["interpolation.lerp_ms"],
        table: None,
        column: "lerp_msec",
        what: DivergenceKind::Value,
        followers: &[],
        carrier: "each usercmd carries the changed setting",
    },
    SettingEcho {
        settings: &["client.redundancy", "client.adaptive_redundancy"],
        table: Some(packets::NAME),
        column: "usercmds",
        what: DivergenceKind::Value,
        followers: &["bytes"],
        carrier: "each packet follows the changed setting",
    },
    SettingEcho {
        settings: &["server.tick_hz"],
        table: Some(ticks::NAME),
        column: "at_us",
        what: DivergenceKind::TimesDiffer,
        followers: &[],
        carrier: "each tick follows the changed setting",
    },
];

impl Divergence {
    /// Creates the divergence at a spot of one table. The caller adds the last agreeing row, and
    /// [`Divergence::look_around`] adds what other tables know.
    pub(crate) fn of(
        pairing: &Pairing<'_>,
        compared: &TraceComparison<'_>,
        scan: &ScanResult,
        spot: &RowSpot,
    ) -> Divergence {
        let mut found = Divergence {
            table: pairing.a.name.clone(),
            place: RowPlace::of(pairing, compared.clocks, spot),
            ..Divergence::default()
        };
        match (spot.a, spot.b) {
            (Some(_), None) => found.what = DivergenceKind::OnlyInA,
            (None, _) => found.what = DivergenceKind::OnlyInB,
            (Some(i), Some(j)) if !pairing.same_time(i as usize, j as usize) => {
                found.what = DivergenceKind::TimesDiffer;
                found.set(&values(pairing, "at_us", i as usize, j as usize));
            }
            (Some(i), Some(j)) => {
                let is_first = |run: &DifferenceRun<usize>| pairing.spot(run.first) == *spot;
                let differing = scan.columns.iter().filter(|(_, runs)| runs.iter().flatten().any(is_first));
                let mut all = differing.filter_map(|(name, _)| values(pairing, name, i as usize, j as usize));
                found.set(&all.next());
                found.others = all.collect();
            }
        }
        if let (Some(i), Some(j), Some(field)) = (spot.a, spot.b, &found.field) {
            found.measure(pairing, compared, &field.clone(), (i as usize, j as usize));
        }
        found
    }

    /// The changed setting that this divergence only repeats: nothing else differs in its row.
    pub(super) fn echo_of(&self, changed: &[ChangedSetting]) -> Option<&'static SettingEcho> {
        let is_changed = |of: &&str| changed.iter().any(|setting| setting.key.ends_with(of));
        ECHOES.iter().find(|echo| {
            self.what == echo.what
                && self.field.as_deref() == Some(echo.column)
                && echo.table.is_none_or(|table| self.table == table)
                && self.others.iter().all(|other| echo.followers.contains(&other.field.as_str()))
                && echo.settings.iter().any(&is_changed)
        })
    }

    /// Says what carries the changed setting that this divergence repeats; `None` if it is no echo.
    pub(super) fn echo_note(&self, changed: &[ChangedSetting]) -> Option<String> {
        let (echo, a, b) = (self.echo_of(changed)?, self.a.as_ref()?, self.b.as_ref()?);
        let number = |value: &CellValue| match value {
            CellValue::Integer(us) if echo.what == DivergenceKind::TimesDiffer => format!("{} ms", *us as f64 / 1e3),
            other => other.to_string(),
        };
        Some(format!("{}: {} is {} in A, {} in B", echo.carrier, echo.column, number(a), number(b)))
    }

    fn set(&mut self, values: &Option<Values>) {
        if let Some(Values { field, a, b }) = values.clone() {
            self.field = Some(field);
            self.a = Some(a);
            self.b = Some(b);
        }
    }

    fn measure(&mut self, pairing: &Pairing<'_>, compared: &TraceComparison<'_>, field: &str, (i, j): (usize, usize)) {
        let columns = pairing.a.column(field).zip(pairing.b.column(field));
        let cells = columns.and_then(|(a, b)| CellPair::of(&a.data, &b.data));
        // In the table of errors, each row holds the values of the field that it names.
        let of_field = pairing.a.column("field").filter(|_| pairing.a.name == errors::NAME);
        let name = of_field.and_then(|column| CellValue::at(column, i)).map(|name| name.to_string());
        let measure = match (&name, pairing.a.column(field)) {
            (Some(name), _) => compared.of_field(name),
            (None, Some(column)) => compared.of_column(column),
            (None, None) => NumberComparison::default(),
        };
        // The error is reported even within tolerance.
        let measure = NumberComparison { within: None, ..measure };
        if let Some(CellComparison::Differs { class, error }) = cells.map(|cells| cells.compare(i, j, measure)) {
            self.class = Some(class);
            self.error = error;
        }
        self.ulps = match (&self.a, &self.b) {
            (Some(CellValue::Float(a)), Some(CellValue::Float(b))) if a.is_finite() && b.is_finite() => {
                Some(ulps_apart(*a, *b))
            }
            (Some(CellValue::Double(a)), Some(CellValue::Double(b))) if a.is_finite() && b.is_finite() => {
                Some(double_ulps_apart(*a, *b))
            }
            _ => self.ulps,
        };
    }
}

fn values(pairing: &Pairing<'_>, name: &str, i: usize, j: usize) -> Option<Values> {
    let a = CellValue::at(pairing.a.column(name)?, i)?;
    let b = CellValue::at(pairing.b.column(name)?, j)?;
    Some(Values { field: name.to_owned(), a, b })
}

/// A row in which A and B agree, as a report shows it.
pub(crate) fn agreeing(pairing: &Pairing<'_>, clocks: [&TickTimes; 2], spot: &RowSpot) -> RowDump {
    let (table, row) = match spot.row() {
        Some((side, row)) => (pairing.table(side), row),
        None => (pairing.a, pairing.a.rows()),
    };
    RowDump::of(table, row, RowPlace::of(pairing, clocks, spot), &pairing.key.columns)
}
