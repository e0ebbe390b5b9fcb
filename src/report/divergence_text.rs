//! A divergence in words.

use super::text::{clipped, listed, measure, seconds, wrapped};
use crate::diff::{Class, Divergence, Named, Place, Ran, Row, What};

/// Where it is: `bodies, tick 812, 12.688 s, entity 1`.
pub(crate) fn place(table: &str, place: &Place) -> String {
    let mut parts = vec![table.to_owned()];
    parts.extend(place.tick.map(|tick| format!("tick {tick}")));
    parts.extend(place.at_us.map(seconds));
    parts.extend(owner(place));
    parts.extend(place.key.iter().map(|Named { name, value }| format!("{name} {value}")));
    parts.join(", ")
}

/// Whose it is: `p1 #733`, `entity 1`, or both.
pub(crate) fn owner(place: &Place) -> Option<String> {
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

/// The whole block.
pub(crate) fn divergence(first: &Divergence) -> String {
    let mut text = wrapped("", &format!("first divergence: {}", place(&first.table, &first.place)));
    text.push_str(&values(first));
    if !first.others.is_empty() {
        let others: Vec<&str> = first.others.iter().map(|o| o.field.as_str()).take(MOST_OTHERS).collect();
        let rest = first.others.len().saturating_sub(MOST_OTHERS);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        text.push_str(&wrapped("  ", &format!("the same row differs in {}{more}", others.join(", "))));
    }
    let fields: Vec<&str> =
        first.field.iter().chain(first.others.iter().map(|o| &o.field)).map(String::as_str).collect();
    if let Some(row) = &first.last_agreeing {
        text.push_str(&last("last agreeing row", row, &fields));
    }
    if let Some(row) = &first.last_state {
        text.push_str(&last("last state before it", row, &fields));
    }
    text.push_str(&usercmds(first));
    text
}

const MOST_OTHERS: usize = 6;

fn values(first: &Divergence) -> String {
    let line =
        |side: &str, value: &dyn std::fmt::Display| clipped(&format!("    {side}  {value}"), super::text::WIDTH) + "\n";
    match (first.what, &first.field, &first.a, &first.b) {
        (What::OnlyInA, ..) => "  B lacks this row\n".to_owned(),
        (What::OnlyInB, ..) => "  A lacks this row\n".to_owned(),
        (what, Some(field), Some(a), Some(b)) => {
            let how = match what {
                What::TimesDiffer => "not of the same time, so nothing else in it is compared".to_owned(),
                _ => how(first),
            };
            format!("{}{}{}", wrapped("  ", &format!("{field}: {how}")), line("A", a), line("B", b))
        }
        _ => String::new(),
    }
}

fn how(first: &Divergence) -> String {
    let class = match first.class {
        Some(Class::Drift) => "drift",
        Some(Class::Hash) => "another hash",
        Some(Class::Difference) | None => "difference",
    };
    match (first.error, first.ulps) {
        (Some(error), Some(1)) => format!("{class}, {} apart, neighbouring floats", measure(error)),
        (Some(error), Some(ulps)) => format!("{class}, {} apart, {ulps} floats", measure(error)),
        (Some(error), None) => format!("{class}, {error} apart"),
        (None, _) => class.to_owned(),
    }
}

/// A row, with the fields that matter first and no more than a few lines of it.
fn last(title: &str, row: &Row, fields: &[&str]) -> String {
    let mut text = wrapped("  ", &format!("{title}: {}", place(&row.table, &row.place)));
    let (first, rest): (Vec<&Named>, Vec<&Named>) = row.values.iter().partition(|v| fields.contains(&v.name.as_str()));
    let shown: Vec<String> = first.iter().chain(&rest).map(|v| format!("{} {}", v.name, v.value)).collect();
    let more = shown.len().saturating_sub(MOST_VALUES);
    let mut values: Vec<String> = shown.into_iter().take(MOST_VALUES).collect();
    if more > 0 {
        values.push(format!("and {more} more"));
    }
    text.push_str(&listed("    ", &values));
    text
}

const MOST_VALUES: usize = 12;

fn usercmds(first: &Divergence) -> String {
    let (a, b) = (&first.usercmds_a, &first.usercmds_b);
    let title = if first.place.command.is_some() { "usercmd" } else { "usercmds in that tick" };
    match (a.is_empty() && b.is_empty(), a == b) {
        (true, _) => String::new(),
        (false, true) => list(&format!("{title}, the same in A and B"), a),
        (false, false) => list(&format!("{title} in A"), a) + &list(&format!("{title} in B"), b),
    }
}

fn list(title: &str, usercmds: &[Ran]) -> String {
    let mut text = format!("  {title}\n");
    for ran in usercmds.iter().take(MOST_USERCMDS) {
        let how = ran.how.as_ref().map_or(String::new(), |how| format!(" {how}"));
        let mut words: Vec<String> = ran.input.iter().map(|v| format!("{} {}", v.name, v.value)).collect();
        let who = format!("p{} #{}{how}", ran.player, ran.command);
        match words.first_mut() {
            Some(first) => *first = format!("{who}: {first}"),
            None => words.push(who),
        }
        text.push_str(&listed("    ", &words));
    }
    match usercmds.len() {
        0 => text.push_str("    none\n"),
        n if n > MOST_USERCMDS => text.push_str(&format!("    and {} more\n", n - MOST_USERCMDS)),
        _ => {}
    }
    text
}

const MOST_USERCMDS: usize = 8;
