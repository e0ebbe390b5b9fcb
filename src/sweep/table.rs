//! A sweep as a table of named columns, for files, and as text, for people.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Figures, Sweep};
use crate::stats::Spread;

/// Rows of named columns. Serializes as a list of rows, each a map from column to value.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' names: what was varied, then the figures with their units.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A setting's value.
    Text(String),
    /// How many.
    Count(u64),
    /// A measure.
    Number(f64),
    /// Nothing was measured.
    None,
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct RowOf<'a>(&'a [String], &'a [Cell]);
        impl Serialize for RowOf<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.len()))?;
                for (column, cell) in self.0.iter().zip(self.1) {
                    map.serialize_entry(column, cell)?;
                }
                map.end()
            }
        }
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            rows.serialize_element(&RowOf(&self.columns, row))?;
        }
        rows.end()
    }
}

impl Table {
    /// The table in CSV after RFC 4180, with a line of names; what was not measured is empty.
    pub fn to_csv(&self) -> String {
        let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        };
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => quoted(text),
            Cell::Count(count) => count.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::None => String::new(),
        };
        let header = self.columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(","));
        [header].into_iter().chain(rows).map(|line| line + "\r\n").collect()
    }
}

impl Sweep {
    /// All figures, each in a column of its own.
    pub fn table(&self) -> Table {
        let of_nothing = figures(&Figures::default());
        let names = of_nothing.into_iter().map(|(name, _)| name.to_owned());
        let row = |row: &super::Row| {
            let values = row.values.iter().cloned().map(Cell::Text);
            values.chain(figures(&row.figures).into_iter().map(|(_, cell)| cell)).collect()
        };
        Table { columns: self.keys.iter().cloned().chain(names).collect(), rows: self.rows.iter().map(row).collect() }
    }

    /// The headline figures in lines of at most 80 columns; where the values of a row need more room than there is, they
    /// have a line of their own.
    pub fn text(&self) -> String {
        const LABEL: usize = 14;
        let mut text = format!(
            "{:LABEL$}{:>14}{:>12}{:>16}{:>13}{:>11}\n{:LABEL$}{:>6}{:>8}{:>6}{:>6}{:>5}{:>5}{:>6}{:>6}{:>7}{:>6}{:>5}\n",
            "",
            "shots",
            "view error",
            "hits in cover",
            "corrections",
            "kB/s",
            "",
            "hit",
            "missed*",
            "p50",
            "p95",
            "n",
            "ms",
            "units",
            "n",
            "p95",
            "down",
            "up",
        );
        for row in &self.rows {
            let label = row.values.join(" ");
            if label.chars().count() > LABEL {
                let _ = writeln!(text, "{label}");
                let _ = write!(text, "{:LABEL$}", "");
            } else {
                let _ = write!(text, "{label:LABEL$}");
            }
            let f = &row.figures;
            let part = |spread: Option<Spread>, part: fn(Spread) -> f32, digits: usize| {
                spread.map_or("-".to_owned(), |spread| format!("{:.digits$}", part(spread)))
            };
            let kilobytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1e3));
            let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
            let _ = writeln!(
                text,
                "{:>6}{:>8}{:>6}{:>6}{:>5}{:>5}{:>6}{:>6}{:>7}{:>6}{:>5}",
                count((f.shots > 0).then_some(f.hits)),
                count(f.missed_on_target),
                part(f.view_error_units, |s| s.p50, 1),
                part(f.view_error_units, |s| s.p95, 1),
                count(f.hits_in_cover),
                part(f.in_cover_ms, |s| s.p50, 0),
                part(f.in_cover_units, |s| s.p50, 0),
                f.corrections,
                part(f.correction_units, |s| s.p95, 2),
                kilobytes(f.down_bytes_per_s),
                kilobytes(f.up_bytes_per_s),
            );
        }
        let _ = write!(
            text,
            "\nrows: {}\n* on target on the shooter's screen\nerrors in units; in cover: medians of time and way on the target's own screen\nkB/s: of each player, from the server and to it\n",
            self.keys.join(" ")
        );
        text
    }
}

fn figures(f: &Figures) -> Vec<(&'static str, Cell)> {
    let count = |count: Option<u64>| count.map_or(Cell::None, Cell::Count);
    let number = |number: Option<f64>| number.map_or(Cell::None, Cell::Number);
    // The nearest short decimal of a single, so that 0.1 is not written as 0.10000000149011612.
    let short = |value: f32| value.to_string().parse().ok();
    let part = |spread: Option<Spread>, part: fn(Spread) -> f32| number(spread.and_then(|s| short(part(s))));
    let (view, ms, units) = (f.view_error_units, f.in_cover_ms, f.in_cover_units);
    vec![
        ("usercmds", Cell::Count(f.usercmds)),
        ("shots", Cell::Count(f.shots)),
        ("hits", Cell::Count(f.hits)),
        ("missed_on_target", count(f.missed_on_target)),
        ("view_error_units_p50", part(view, |s| s.p50)),
        ("view_error_units_p95", part(view, |s| s.p95)),
        ("view_error_units_max", part(view, |s| s.max)),
        ("hits_in_cover", count(f.hits_in_cover)),
        ("in_cover_ms_p50", part(ms, |s| s.p50)),
        ("in_cover_ms_max", part(ms, |s| s.max)),
        ("in_cover_units_p50", part(units, |s| s.p50)),
        ("in_cover_units_max", part(units, |s| s.max)),
        ("predictions_checked", Cell::Count(f.checked)),
        ("corrections", Cell::Count(f.corrections)),
        ("correction_units_p50", part(f.correction_units, |s| s.p50)),
        ("correction_units_p95", part(f.correction_units, |s| s.p95)),
        ("correction_units_max", part(f.correction_units, |s| s.max)),
        ("down_bytes_per_s", number(f.down_bytes_per_s)),
        ("up_bytes_per_s", number(f.up_bytes_per_s)),
    ]
}
