//! The pages of a divergence and of a bisection to the tick.

use super::figures::{clipped, counted, distance, ms, seconds};
use super::layout::WIDTH;
use super::page::Page;
use crate::bisect::{RerunResult, TickBisection};
use crate::diff::{
    CellValue, DifferenceClass, Divergence, DivergenceKind, NamedValue, RowDump, RowPlace, TraceSide, TraceVerdict,
    UsercmdRow,
};

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

/// The place of a divergence with its field: `views, 12.688 s, p0 #2, entity 1, drawn_at_us`.
pub(crate) fn divergence_place(first: &Divergence) -> String {
    let field = first.field.iter().map(|field| format!(", {field}"));
    [place(&first.table, &first.place)].into_iter().chain(field).collect()
}

/// The page of the first divergence, with its values and its context.
pub(super) fn divergence(page: &mut Page, first: &Divergence) {
    page.blank();
    page.note(0, &format!("first divergence: {}", place(&first.table, &first.place)));
    values(page, first);
    context(page, first);
}

/// The rest of the differing row, the last agreeing rows, and the usercmds.
fn context(page: &mut Page, first: &Divergence) {
    if !first.others.is_empty() {
        let others: Vec<&str> = first.others.iter().map(|o| o.field.as_str()).take(OTHERS_MAX).collect();
        let rest = first.others.len().saturating_sub(OTHERS_MAX);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        page.note(2, &format!("also different in this row: {}{more}", others.join(", ")));
    }
    let fields: Vec<&str> =
        first.field.iter().chain(first.others.iter().map(|o| &o.field)).map(String::as_str).collect();
    if let Some(row) = &first.last_agreeing {
        last(page, "last agreeing row", row, &fields);
    }
    if let Some(row) = &first.last_state {
        last(page, "last state before it", row, &fields);
    }
    usercmds(page, first);
}

const OTHERS_MAX: usize = 6;

/// The values of both sides.
pub(super) fn values(page: &mut Page, first: &Divergence) {
    match (first.what, &first.field, &first.a, &first.b) {
        (DivergenceKind::OnlyInA, ..) => page.line("  B lacks this row"),
        (DivergenceKind::OnlyInB, ..) => page.line("  A lacks this row"),
        (what, Some(field), Some(a), Some(b)) => {
            let how = match what {
                DivergenceKind::TimesDiffer => format!("{field} differs, so the rest of the row is not compared"),
                _ => how(field, first),
            };
            page.note(2, &how);
            for (side, value) in [("A", a), ("B", b)] {
                page.line(&clipped(&format!("    {side}  {}", shown(field, value)), WIDTH));
            }
        }
        _ => {}
    }
}

/// The size of a difference: `origin.x differs by 0.250 (drift, 3 ULPs)`.
fn how(field: &str, first: &Divergence) -> String {
    let by = match (first.error, first.ulps) {
        (Some(error), Some(_)) => format!(" by {}", distance(error)),
        (Some(error), None) if is_time(field) => format!(" by {}", ms(error as i64)),
        (Some(error), None) => {
            format!(" by {}", first.whole_error().map_or(error.to_string(), |whole| whole.to_string()))
        }
        (None, _) => String::new(),
    };
    let drift = (first.class == Some(DifferenceClass::Drift)).then(|| "drift".to_owned());
    let ulps = first.ulps.map(|ulps| counted(ulps, "ULP"));
    let words: Vec<String> = drift.into_iter().chain(ulps).collect();
    match words.is_empty() {
        true => format!("{field} differs{by}"),
        false => format!("{field} differs{by} ({})", words.join(", ")),
    }
}

/// Whether a value is 0, and so left out of a list that only shows the context of a difference.
fn is_zero(value: &CellValue) -> bool {
    match value {
        CellValue::Flag(flag) => !flag,
        CellValue::Name(name) => name.is_empty(),
        CellValue::Hash(_) => false,
        number => number.whole() == Some(0),
    }
}

fn is_nan(value: &CellValue) -> bool {
    match value {
        CellValue::Float(number) => number.is_nan(),
        CellValue::Double(number) => number.is_nan(),
        _ => false,
    }
}

/// A row with the important fields first, limited to a few lines.
fn last(page: &mut Page, title: &str, row: &RowDump, fields: &[&str]) {
    page.note(2, &format!("{title}: {}", place(&row.table, &row.place)));
    let known = row.values.iter().filter(|v| !is_nan(&v.value));
    let (first, rest): (Vec<&NamedValue>, Vec<&NamedValue>) = known.partition(|v| fields.contains(&v.name.as_str()));
    let rest: Vec<&NamedValue> = rest.into_iter().filter(|v| !is_zero(&v.value)).collect();
    let shown: Vec<String> = first.iter().chain(&rest).map(|v| named(v)).collect();
    let more = shown.len().saturating_sub(VALUES_MAX);
    let mut values: Vec<String> = shown.into_iter().take(VALUES_MAX).collect();
    if more > 0 {
        values.push(format!("and {more} more"));
    }
    page.list(4, values);
}

const VALUES_MAX: usize = 12;

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
    for ran in usercmds.iter().take(USERCMDS_MAX) {
        let how = ran.how.as_ref().map_or(String::new(), |how| {
            format!(" {}", if how == "run" { "executed".to_owned() } else { how.replace('_', " ") })
        });
        let input = ran.input.iter().filter(|v| !is_zero(&v.value));
        let mut words: Vec<String> = input.map(named).collect();
        let who = format!("p{} #{}{how}", ran.player, ran.command);
        match words.first_mut() {
            Some(first) => *first = format!("{who}: {first}"),
            None => words.push(who),
        }
        page.list(4, words);
    }
    match usercmds.len() {
        0 => page.line("    none"),
        n if n > USERCMDS_MAX => page.line(&format!("    and {} more", n - USERCMDS_MAX)),
        _ => {}
    }
}

const USERCMDS_MAX: usize = 8;

/// The page of a `bisect ticks` result.
pub fn bisect_page(found: &TickBisection) -> Page {
    let mut page = Page::default();
    let first = match (&found.verdict, &found.first) {
        (TraceVerdict::Differs, Some(first)) => first,
        (TraceVerdict::Differs, None) => {
            page.line("the sides have different tables or columns, but no different row");
            return page;
        }
        (TraceVerdict::Same, _) => {
            page.line(&match found.ticks_compared {
                // Clients' recordings have no server ticks.
                0 => "same".to_owned(),
                ticks => format!("same: all {} agree", counted(ticks, "tick")),
            });
            return page;
        }
        (TraceVerdict::Untestable, _) => {
            let reason = found.untestable.as_deref().unwrap_or("nothing to compare");
            page.note(0, &format!("untestable: {reason}"));
            return page;
        }
    };
    page.note(0, &format!("First divergence: {}", place(&first.table, &first.place)));
    values(&mut page, first);
    if let Some(cause) = &found.cause {
        page.note(0, &format!("cause: {} ({})", cause.cause.name(), cause.evidence));
    }
    if let Some(RerunResult::Failed { build, reason }) = &found.reran {
        let side = match build {
            TraceSide::A => "A",
            TraceSide::B => "B",
        };
        page.note(0, &format!("the build of {side} could not run the usercmds again: {reason}"));
    }
    for note in &found.notes {
        // The evidence can already name a changed setting.
        if found.cause.as_ref().is_none_or(|cause| !cause.evidence.contains(note)) {
            page.note(2, note);
        }
    }
    context(&mut page, first);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_divergence_tells_players_from_entities() {
        let of = |player, entity| {
            let place = RowPlace { at_us: Some(350_000), player, command: Some(2), entity, ..RowPlace::default() };
            let field = Some("drawn_at_us".to_owned());
            divergence_place(&Divergence { table: "views".to_owned(), field, place, ..Divergence::default() })
        };
        assert_eq!(of(Some(0), Some(17)), "views, 0.350 s, p0 #2, entity 17, drawn_at_us");
        assert_eq!(of(Some(0), None), "views, 0.350 s, p0 #2, drawn_at_us");
    }

    #[test]
    fn whole_numbers_of_64_bits_differ_by_all_digits() {
        let [a, b] = [u64::MAX, 0].map(|value| Some(CellValue::Unsigned(value)));
        let first = Divergence { a, b, error: Some(u64::MAX as f64), ..Divergence::default() };
        assert_eq!(how("id", &first), "id differs by 18446744073709551615");
    }
}
