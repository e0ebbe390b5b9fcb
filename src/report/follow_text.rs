//! What follows from a divergence, in words.

use super::text::{WIDTH, clipped, counted, grouped, measure, seconds};
use crate::diff::{Class, FieldDiff, Place, TableDiff};

/// Every column that differs: how often, for how many, how far, from when to when, and whether it heals.
pub(crate) fn follow(tables: &[TableDiff]) -> String {
    let fields: Vec<(&TableDiff, &FieldDiff)> =
        tables.iter().flat_map(|table| table.fields.iter().map(move |field| (table, field))).collect();
    if fields.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{:<26} {:>8} {:>4} {:>9}  {:<10} {:<10} {}\n",
        "what follows", "rows", "who", "largest", "from", "to", "then"
    );
    for (table, field) in fields.iter().take(MOST_FIELDS) {
        text.push_str(&line(table, field));
    }
    if fields.len() > MOST_FIELDS {
        text.push_str(&format!("  and {}\n", counted((fields.len() - MOST_FIELDS) as u64, "more column")));
    }
    for table in tables.iter().filter(|table| table.spread.len() > 1) {
        text.push_str(&spread(table));
    }
    text
}

const MOST_FIELDS: usize = 24;

fn line(table: &TableDiff, field: &FieldDiff) -> String {
    let largest = field.largest.as_ref().map_or("-".to_owned(), |largest| measure(largest.error));
    let then = match (field.class, field.healed) {
        (Class::Drift, true) => "heals, drift",
        (Class::Drift, false) => "drifts",
        (Class::Hash | Class::Difference, true) => "heals",
        (Class::Hash | Class::Difference, false) => "persists",
    };
    let line = format!(
        "{:<26} {:>8} {:>4} {:>9}  {:<10} {:<10} {then}",
        clipped(&format!("{}.{}", table.name, field.field), 26),
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

/// `bodies spreads to 1 of entities or players and 2 columns at 0.050 s, 4 and 9 by 0.080 s`.
fn spread(table: &TableDiff) -> String {
    let (Some(first), Some(last)) = (table.spread.first(), table.spread.last()) else { return String::new() };
    let at = |at_us: Option<i64>| at_us.map_or("an unknown time".to_owned(), seconds);
    let middle = table.spread.get(table.spread.len() / 2).filter(|_| table.spread.len() > 4);
    let middle = middle.map_or(String::new(), |m| format!(", {} in {} by {}", m.fields, m.series, at(m.at_us)));
    let words = format!(
        "spread of {}: {} in {} at {}{middle}, {} in {} by {}",
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
