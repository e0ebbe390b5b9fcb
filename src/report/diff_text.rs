//! A comparison of two traces in words.

use super::divergence_text::{divergence, owner, place};
use super::follow_text::follow;
use super::hits_text::hits;
use super::side_by_side::{interpolation, reconciliation};
use super::text::{WIDTH, clipped, counted, grouped, seconds, wrapped};
use crate::diff::{Class, Divergence, Status, TableDiff, TraceDiff, Verdict};

/// One line for CI: `differs at tick 812 (12.688 s): bodies, entity 1, origin.x; hits 40 | 39`.
pub fn diff_line(diff: &TraceDiff) -> String {
    let rows: u64 = diff.tables.iter().map(|t| t.rows.compared).sum();
    let within: u64 = diff.tables.iter().map(|t| t.rows.within_tolerance).sum();
    let line = match diff.verdict {
        Verdict::Untestable => format!("untestable: {}", diff.untestable.as_deref().unwrap_or("nothing to compare")),
        Verdict::Same if within > 0 => {
            format!("same: {}, {} within tolerance", counted(rows, "row"), grouped(within))
        }
        Verdict::Same => format!("same: {}, {}", counted(diff.tables.len() as u64, "table"), counted(rows, "row")),
        Verdict::Differs => match &diff.first {
            Some(first) => {
                let drift = if diff.worst == Some(Class::Drift) { "; drift only" } else { "" };
                format!("differs {}{}{drift}", first_words(first), hit_words(diff))
            }
            None => format!("differs: {}", shape_words(diff)),
        },
    };
    clipped(&line, WIDTH)
}

/// The report: the line for CI, the tables, the first divergence, what follows from it, shots, and distributions.
pub fn diff_text(diff: &TraceDiff) -> String {
    let mut text = diff_line(diff) + "\n";
    for note in &diff.notes {
        text.push_str(&wrapped("  ", note));
    }
    let mut section = |part: String| {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    };
    section(tables(diff));
    if diff.verdict == Verdict::Untestable {
        return text;
    }
    section(diff.first.as_ref().map(divergence).unwrap_or_default());
    section(follow(&diff.tables));
    section(hits(&diff.hits));
    section(reconciliation(&diff.reconciliation));
    section(interpolation(&diff.interpolation));
    text
}

fn first_words(first: &Divergence) -> String {
    let tick = first.place.tick.map(|tick| format!("at tick {tick}"));
    let at = match (tick, first.place.at_us.map(seconds)) {
        (Some(tick), Some(at)) => format!("{tick} ({at})"),
        (tick, at) => tick.or(at.map(|at| format!("at {at}"))).unwrap_or_default(),
    };
    let what = [Some(first.table.clone()), owner(&first.place), first.field.clone()];
    format!("{at}: {}", what.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn hit_words(diff: &TraceDiff) -> String {
    let hits = &diff.hits;
    let alike = hits.both + hits.other_target + hits.other_wound;
    match hits.changed.len() {
        0 => String::new(),
        _ => format!("; hits {} | {}", alike + hits.only_a, alike + hits.only_b),
    }
}

fn shape_words(diff: &TraceDiff) -> String {
    let named = |table: &&TableDiff| !matches!(table.status, Status::Same | Status::WithinTolerance);
    let names: Vec<String> = diff.tables.iter().filter(named).map(|t| format!("{} {}", t.name, judgement(t))).collect();
    names.join(", ")
}

fn tables(diff: &TraceDiff) -> String {
    let mut text = format!(
        "{:<12} {:>10} {:>10} {:>10} {:>8} {:>8}  \n",
        "table", "rows in A", "rows in B", "differing", "only A", "only B"
    );
    for table in &diff.tables {
        let rows = &table.rows;
        let line = format!(
            "{:<12} {:>10} {:>10} {:>10} {:>8} {:>8}  {}",
            clipped(&table.name, 12),
            grouped(rows.a),
            grouped(rows.b),
            grouped(rows.differing),
            grouped(rows.only_in_a),
            grouped(rows.only_in_b),
            from(table),
        );
        text.push_str(&clipped(&line, WIDTH));
        text.push('\n');
        details(table, &mut text);
    }
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn judgement(table: &TableDiff) -> &'static str {
    match table.status {
        Status::Same => "same",
        Status::WithinTolerance => "within",
        Status::Differs => "differs",
        Status::OnlyInA => "only in A",
        Status::OnlyInB => "only in B",
        Status::Untestable => "untestable",
    }
}

/// The judgement, or when it begins to differ.
fn from(table: &TableDiff) -> String {
    let at = table.first.as_ref().and_then(|first| first.place.at_us);
    match (table.status, at) {
        (Status::Differs, Some(at)) => format!("from {}", seconds(at)),
        _ => judgement(table).to_owned(),
    }
}

fn details(table: &TableDiff, text: &mut String) {
    let mut detail = |line: String| text.push_str(&wrapped("  ", &line));
    if let Some(reason) = &table.untestable {
        detail(reason.clone());
    }
    let shape = &table.shape;
    for (columns, what) in
        [(&shape.only_in_a, "only in A"), (&shape.only_in_b, "only in B"), (&shape.other_type, "of another type in B")]
    {
        if !columns.is_empty() {
            detail(format!("columns {what}: {}", columns.join(", ")));
        }
    }
    if table.rows.other_time > 0 {
        detail(format!("not compared, because they are of different times: {}", counted(table.rows.other_time, "row")));
    }
    if table.rows.within_tolerance > 0 {
        detail(format!("within tolerance: {}", counted(table.rows.within_tolerance, "row")));
    }
}

/// Where a table first differs, in one line.
pub(crate) fn table_line(table: &TableDiff) -> String {
    match &table.first {
        Some(first) => {
            let field = first.field.as_ref().map_or(String::new(), |field| format!(", {field}"));
            format!("{}{field}", place(&table.name, &first.place))
        }
        None => format!("{} {}", table.name, judgement(table)),
    }
}
