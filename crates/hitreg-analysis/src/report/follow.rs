//! The page of what follows from a divergence.

use super::divergence::is_time;
use super::figures::{clipped, count, counted, distance, ms, seconds};
use super::page::Page;
use crate::diff::{DifferenceClass, FieldDiff, RowPlace, TableDiff};
use hitreg_log::trace::schema::{bodies, frames};

/// Lists every column that differs: how often, for how many entities or players, by how much, from when to when, and
/// whether it heals.
pub(super) fn follow(tables: &[TableDiff]) -> Page {
    let mut page = Page::default();
    if tables.iter().all(|table| table.fields.is_empty()) {
        return page;
    }
    let rows = tables.iter().flat_map(|table| table.fields.iter().take(MOST_FIELDS).map(|field| row(table, field)));
    page.section("effects", &[">rows", ">who", ">largest", "from", "to", "then"], rows);
    for table in tables {
        if let Some(more) = table.fields.len().checked_sub(MOST_FIELDS).filter(|more| *more > 0) {
            page.note(2, &format!("and {} of {}", counted(more as u64, "more column"), clipped(&table.name, 40)));
        }
    }
    let spreads = |table: &&TableDiff| [bodies::NAME, frames::NAME].contains(&&*table.name) && table.spread.len() > 1;
    if let Some(table) = tables.iter().find(spreads) {
        page.note(2, &spread(table));
    }
    page
}

/// From one hour on, a time is not shown in milliseconds.
const LONG_US: f64 = 3.6e9;

/// How many columns of one table are listed.
const MOST_FIELDS: usize = 8;

fn row(table: &TableDiff, field: &FieldDiff) -> [String; 7] {
    let largest = field.largest.as_ref().map_or("-".to_owned(), |largest| match is_time(&field.field) {
        true if largest.error < LONG_US => ms(largest.error as i64),
        true => format!("{:.1e} s", largest.error / 1e6),
        false => distance(largest.error),
    });
    let then = match (field.class, field.healed) {
        (DifferenceClass::Drift, true) => "drift reconverges",
        (DifferenceClass::Drift, false) => "drifts",
        (DifferenceClass::Hash | DifferenceClass::Difference, true) => "reconverges",
        (DifferenceClass::Hash | DifferenceClass::Difference, false) => "persists",
    };
    let name = clipped(&format!("{}.{}", table.name, field.field), 32);
    let [rows, series] = [field.rows, field.series].map(count);
    [name, rows, series, largest, when(&field.first), when(&field.last), then.to_owned()]
}

fn when(place: &RowPlace) -> String {
    match (place.at_us, place.tick) {
        (Some(at), _) => seconds(at),
        (None, Some(tick)) => format!("tick {tick}"),
        (None, None) => "-".to_owned(),
    }
}

/// How far a divergence has spread, as text:
/// `spread of bodies: 3 columns of 1 entity at 0.453 s, 5 of 2 by 0.700 s, 9 of 4 by 1.375 s`.
fn spread(table: &TableDiff) -> String {
    let (Some(first), Some(last)) = (table.spread.first(), table.spread.last()) else { return String::new() };
    let at = |at_us: Option<i64>| at_us.map_or("an unknown time".to_owned(), seconds);
    let middle = table.spread.get(table.spread.len() / 2).filter(|_| table.spread.len() > 2);
    let middle = middle.map_or(String::new(), |m| format!(", {} of {} by {}", m.fields, m.series, at(m.at_us)));
    let who = match (table.name.as_str(), first.series) {
        (bodies::NAME, 1) => "entity",
        (bodies::NAME, _) => "entities",
        (_, 1) => "player",
        _ => "players",
    };
    format!(
        "spread of {}: {} of {} {who} at {}{middle}, {} of {} by {}",
        table.name,
        counted(first.fields, "column"),
        first.series,
        at(first.at_us),
        last.fields,
        last.series,
        at(last.at_us)
    )
}
