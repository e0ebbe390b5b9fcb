//! What follows from a divergence, in words.

use super::text::{WIDTH, clipped, counted, grouped, measure, seconds};
use crate::diff::{Class, FieldDiff, Place, TableDiff};

/// Every column that differs: how often, for how many, how far, from when to when, and whether it heals.
pub(crate) fn follow(tables: &[TableDiff]) -> String {
    if tables.iter().all(|table| table.fields.is_empty()) {
        return String::new();
    }
    let mut text = format!(
        "{:<24} {:>8} {:>4} {:>8}  {:<9} {:<9} {}\n",
        "what follows", "rows", "who", "largest", "from", "to", "then"
    );
    for table in tables {
        for field in table.fields.iter().take(MOST_FIELDS) {
            text.push_str(&line(table, field));
        }
        if let Some(more) = table.fields.len().checked_sub(MOST_FIELDS).filter(|more| *more > 0) {
            let name = clipped(&table.name, 40);
            text.push_str(&format!("  and {} of {name}\n", counted(more as u64, "more column")));
        }
    }
    let spreads = |table: &&TableDiff| matches!(table.name.as_str(), "bodies" | "frames") && table.spread.len() > 1;
    text.push_str(&tables.iter().find(spreads).map(spread).unwrap_or_default());
    text
}

/// How many columns of one table are listed.
const MOST_FIELDS: usize = 8;

fn line(table: &TableDiff, field: &FieldDiff) -> String {
    let largest = field.largest.as_ref().map_or("-".to_owned(), |largest| measure(largest.error));
    let then = match (field.class, field.healed) {
        (Class::Drift, true) => "drift heals",
        (Class::Drift, false) => "drifts",
        (Class::Hash | Class::Difference, true) => "heals",
        (Class::Hash | Class::Difference, false) => "persists",
    };
    let line = format!(
        "{:<24} {:>8} {:>4} {:>8}  {:<9} {:<9} {then}",
        clipped(&format!("{}.{}", table.name, field.field), 24),
        grouped(field.rows),
        grouped(field.series),
        largest,
        when(&field.first),
        when(&field.last),
    );
    clipped(&line, WIDTH) + "\n"
}

fn when(place: &Place) -> String {
    match (place.at_us, place.tick) {
        (Some(at), _) => seconds(at),
        (None, Some(tick)) => format!("tick {tick}"),
        (None, None) => "-".to_owned(),
    }
}

/// `spread of bodies: 3 columns of 1 entity at 0.453 s, 5 of 2 by 0.700 s, 9 of 4 by 1.375 s`.
fn spread(table: &TableDiff) -> String {
    let (Some(first), Some(last)) = (table.spread.first(), table.spread.last()) else { return String::new() };
    let at = |at_us: Option<i64>| at_us.map_or("an unknown time".to_owned(), seconds);
    let middle = table.spread.get(table.spread.len() / 2).filter(|_| table.spread.len() > 2);
    let middle = middle.map_or(String::new(), |m| format!(", {} of {} by {}", m.fields, m.series, at(m.at_us)));
    let who = match (table.name.as_str(), first.series) {
        ("bodies", 1) => "entity",
        ("bodies", _) => "entities",
        (_, 1) => "player",
        _ => "players",
    };
    let words = format!(
        "spread of {}: {} of {} {who} at {}{middle}, {} of {} by {}",
        table.name,
        counted(first.fields, "column"),
        first.series,
        at(first.at_us),
        last.fields,
        last.series,
        at(last.at_us)
    );
    super::text::wrapped("  ", &words)
}
