//! A sweep as people read it.

use super::page::Align::{Left, Right};
use super::page::{Align, Cell, Page};
use crate::stats::Spread;
use crate::sweep::{Figures, Sweep};

/// The headline figures, a row for each combination of values.
pub fn sweep_page(sweep: &Sweep) -> Page {
    let mut page = Page::default();
    let names = [
        "shots\nhit",
        "\nmissed*",
        "view\np50",
        "error\np95",
        "hits\nn",
        "in\nms",
        "cover\nunits",
        "corr.\nn",
        "\np95",
        "kB/s\ndown",
        "\nup",
    ];
    let columns: Vec<(&str, Align)> = names.iter().map(|name| (*name, Right)).collect();
    let row = |row: &crate::sweep::Row| -> Vec<Cell> {
        [row.values.join(" ")].into_iter().chain(figures(&row.figures)).map(Cell::from).collect()
    };
    let rows: Vec<Vec<Cell>> = sweep.rows.iter().map(row).collect();
    page.table(&[&[("", Left)], &columns[..]].concat(), &rows);
    page.blank();
    page.line(&format!("rows: {}", sweep.keys.join(" ")));
    page.line("* on target on the shooter's screen");
    page.line("errors in units; in cover: medians of time and way on the target's own screen");
    page.line("corr.: predictions that had to be corrected, and by how much");
    page.line("kB/s: of each player, from the server and to it");
    page
}

fn figures(f: &Figures) -> [String; 11] {
    let part = |spread: Option<Spread>, part: fn(Spread) -> f32, digits: usize| {
        spread.map_or("-".to_owned(), |spread| format!("{:.digits$}", part(spread)))
    };
    let kilobytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1e3));
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    [
        count((f.shots > 0).then_some(f.hits)),
        count(f.missed_on_target),
        part(f.view_error_units, |s| s.p50, 1),
        part(f.view_error_units, |s| s.p95, 1),
        count(f.hits_in_cover),
        part(f.in_cover_ms, |s| s.p50, 0),
        part(f.in_cover_units, |s| s.p50, 0),
        f.corrections.to_string(),
        part(f.correction_units, |s| s.p95, 2),
        kilobytes(f.down_bytes_per_s),
        kilobytes(f.up_bytes_per_s),
    ]
}
