//! The page of a divergence.

use super::figures::{clipped, count, distance, ms, seconds};
use super::layout::WIDTH;
use super::page::Page;
use crate::diff::{CellValue, DifferenceClass, Divergence, DivergenceKind, NamedValue, RowDump, RowPlace, UsercmdRow};

/// The place of a row: `bodies, tick 812, 12.688 s, entity 1`.
pub(super) fn place(table: &str, place: &RowPlace) -> String {
    let mut parts = vec![table.to_owned()];
    parts.extend(place.tick.map(|tick| format!("tick {tick}")));
    parts.extend(place.at_us.map(seconds));
    parts.extend(owner(place));
    parts.extend(place.key.iter().map(|NamedValue { name, value }| format!("{name} {value}")));
    parts.join(", ")
}

/// The owner of a row: `p1 #733`, `entity 1`, or both.
pub(super) fn owner(place: &RowPlace) -> Option<String> {
    let player = match (place.player, place.command) {
        (Some(player), Some(command)) => Some(format!("p{player} #{command}")),
        (Some(player), None) => Some(format!("p{player}")),
        (None, command) => command.map(|command| format!("#{command}")),
    };
    let entity = place.entity.map(|entity| format!("entity {entity}"));
    match (player, entity) {
        (Some(player), Some(entity)) => Some(format!("{player}, {entity}")),
        (player, entity) => player.or(entity),
    }
}

/// The page of the first divergence, with its values and its context.
pub(super) fn divergence(first: &Divergence) -> Page {
    let mut page = Page::default();
    page.blank();
    page.note(0, &format!("first divergence: {}", place(&first.table, &first.place)));
    values(&mut page, first);
    if !first.others.is_empty() {
        let others: Vec<&str> = first.others.iter().map(|o| o.field.as_str()).take(MOST_OTHERS).collect();
        let rest = first.others.len().saturating_sub(MOST_OTHERS);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        page.note(2, &format!("the same row differs in {}{more}", others.join(", ")));
    }
    let fields: Vec<&str> =
        first.field.iter().chain(first.others.iter().map(|o| &o.field)).map(String::as_str).collect();
    if let Some(row) = &first.last_agreeing {
        last(&mut page, "last agreeing row", row, &fields);
    }
    if let Some(row) = &first.last_state {
        last(&mut page, "last state before it", row, &fields);
    }
    usercmds(&mut page, first);
    page
}

const MOST_OTHERS: usize = 6;

/// The values of both sides.
pub(super) fn values(page: &mut Page, first: &Divergence) {
    match (first.what, &first.field, &first.a, &first.b) {
        (DivergenceKind::OnlyInA, ..) => page.line("  B lacks this row"),
        (DivergenceKind::OnlyInB, ..) => page.line("  A lacks this row"),
        (what, Some(field), Some(a), Some(b)) => {
            let how = match what {
                DivergenceKind::TimesDiffer => "not of the same time, so nothing else in it is compared".to_owned(),
                _ => how(first),
            };
            page.note(2, &format!("{field}: {how}"));
            for (side, value) in [("A", a), ("B", b)] {
                page.line(&clipped(&format!("    {side}  {}", shown(field, value)), WIDTH));
            }
        }
        _ => {}
    }
}

fn how(first: &Divergence) -> String {
    let class = match first.class {
        Some(DifferenceClass::Drift) => "drift",
        Some(DifferenceClass::Hash) => "another hash",
        Some(DifferenceClass::Difference) | None => "difference",
    };
    match (first.error, first.ulps) {
        (Some(error), Some(1)) => format!("{class}, {} apart, 1 ULP", distance(error)),
        (Some(error), Some(ulps)) => format!("{class}, {} apart, {} ULPs", distance(error), count(ulps)),
        (Some(error), None) if first.field.as_deref().is_some_and(is_time) => {
            format!("{class}, {} apart", ms(error as i64))
        }
        (Some(error), None) => format!("{class}, {error} apart"),
        (None, _) => class.to_owned(),
    }
}

/// A row with the important fields first, limited to a few lines.
fn last(page: &mut Page, title: &str, row: &RowDump, fields: &[&str]) {
    page.note(2, &format!("{title}: {}", place(&row.table, &row.place)));
    let known = row.values.iter().filter(|v| !matches!(v.value, CellValue::Float(value) if value.is_nan()));
    let (first, rest): (Vec<&NamedValue>, Vec<&NamedValue>) = known.partition(|v| fields.contains(&v.name.as_str()));
    let shown: Vec<String> = first.iter().chain(&rest).map(|v| named(v)).collect();
    let more = shown.len().saturating_sub(MOST_VALUES);
    let mut values: Vec<String> = shown.into_iter().take(MOST_VALUES).collect();
    if more > 0 {
        values.push(format!("and {more} more"));
    }
    page.list(4, values);
}

const MOST_VALUES: usize = 12;

/// A value with its name: `drawn_at -83.152 ms`, `yaw 90`.
fn named(NamedValue { name, value }: &NamedValue) -> String {
    format!("{} {}", name.strip_suffix(TIME).unwrap_or(name), shown(name, value))
}

/// A value as text. Columns in microseconds are shown in milliseconds.
fn shown(column: &str, value: &CellValue) -> String {
    match value {
        CellValue::Integer(time_us) if is_time(column) => ms(*time_us),
        value => value.to_string(),
    }
}

/// The suffix of columns in microseconds.
const TIME: &str = "_us";

pub(super) fn is_time(column: &str) -> bool {
    column.ends_with(TIME)
}

fn usercmds(page: &mut Page, first: &Divergence) {
    let (a, b) = (&first.usercmds_a, &first.usercmds_b);
    let title = if first.place.command.is_some() { "usercmd" } else { "usercmds in that tick" };
    match (a.is_empty() && b.is_empty(), a == b) {
        (true, _) => {}
        (false, true) => list(page, &format!("{title}, the same in A and B"), a),
        (false, false) => {
            list(page, &format!("{title} in A"), a);
            list(page, &format!("{title} in B"), b);
        }
    }
}

fn list(page: &mut Page, title: &str, usercmds: &[UsercmdRow]) {
    page.line(&format!("  {title}"));
    for ran in usercmds.iter().take(MOST_USERCMDS) {
        let how = ran.how.as_ref().map_or(String::new(), |how| format!(" {how}"));
        let mut words: Vec<String> = ran.input.iter().map(named).collect();
        let who = format!("p{} #{}{how}", ran.player, ran.command);
        match words.first_mut() {
            Some(first) => *first = format!("{who}: {first}"),
            None => words.push(who),
        }
        page.list(4, words);
    }
    match usercmds.len() {
        0 => page.line("    none"),
        n if n > MOST_USERCMDS => page.line(&format!("    and {} more", n - MOST_USERCMDS)),
        _ => {}
    }
}

const MOST_USERCMDS: usize = 8;
