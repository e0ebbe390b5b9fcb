//! Shows the distributions of both traces side by side.

use super::figures::{clipped, count, counted, distance};
use super::page::Page;
use crate::corpus::paired;
use crate::diff::{InterpolationDiff, Reconciliation};
use hitreg_log::stats::Spread;

/// The table of both traces' predictions.
pub(super) fn reconciliation(both: &Reconciliation) -> Page {
    let (a, b) = (&both.a, &both.b);
    let mut page = Page::default();
    if a.checked + b.checked == 0 {
        return page;
    }
    let mut rows = vec![
        counts("predictions checked", a.checked, b.checked),
        counts("exact", a.exact, b.exact),
        counts("near", a.near, b.near),
    ];
    let causes = paired([&a.misses_by_cause, &b.misses_by_cause]);
    rows.extend(causes.into_iter().map(|(cause, [a, b])| counts(&format!("misses: {cause}"), a, b)));
    rows.extend(spread("error, units", a.error_units, b.error_units));
    rows.extend(spread("usercmds run again", both.reran_a, both.reran_b));
    page.section("reconciliation", &SIDES, rows);
    let c = &both.corrected;
    if c.both + c.only_a + c.only_b > 0 {
        let of = count(c.both + c.only_a + c.only_b + c.neither);
        let (both, only_a, only_b) = (count(c.both), count(c.only_a), count(c.only_b));
        page.note(
            2,
            &format!("corrected in both {both}, only in A {only_a}, only in B {only_b}, of {of} checked in both"),
        );
    }
    page
}

/// The table of both traces' views: how they drew the other entities.
pub(super) fn interpolation(both: &InterpolationDiff) -> Page {
    let mut page = Page::default();
    if both.a.views + both.b.views == 0 {
        return page;
    }
    let mut rows = vec![counts("views", both.a.views, both.b.views)];
    rows.extend(paired([&both.a.how, &both.b.how]).into_iter().map(|(how, [a, b])| counts(&how, a, b)));
    page.section("interpolation", &SIDES, rows);
    let compared = count(both.compared.saturating_sub(both.relocated));
    page.note(
        2,
        &match (both.moved, both.distance_units, both.distance_max_units) {
            _ if both.compared <= both.relocated => "nothing that both drew can be compared".to_owned(),
            (0, ..) => format!("drawn in the same places: all {compared} in both"),
            (moved, Some(apart), Some(max)) => format!(
                "drawn apart: {} of {compared}; distance p50 {}, p95 {}, p99 {}, max {} units",
                count(moved),
                distance(f64::from(apart.p50)),
                distance(f64::from(apart.p95)),
                distance(f64::from(apart.p99)),
                distance(f64::from(max)),
            ),
            (moved, ..) => format!("drawn apart: {} of {compared}", count(moved)),
        },
    );
    if both.relocated > 0 {
        let views = counted(both.relocated, "view");
        page.note(2, &format!("excluded: {views} of entities that spawned or teleported at another time in B"));
    }
    page
}

const SIDES: [&str; 2] = [">A", ">B"];

fn counts(what: &str, a: u64, b: u64) -> [String; 3] {
    [clipped(what, 40), count(a), count(b)]
}

fn spread(what: &str, a: Option<Spread>, b: Option<Spread>) -> Vec<[String; 3]> {
    type Part = fn(Spread) -> f32;
    let parts: [(&str, Part); 3] = [("p50", |s| s.p50), ("p95", |s| s.p95), ("max", |s| s.max)];
    let text = |spread: Option<Spread>, part: Part| spread.map_or("-".to_owned(), |s| distance(f64::from(part(s))));
    let row = |(name, part): &(&str, Part)| [format!("{what}, {name}"), text(a, *part), text(b, *part)];
    if a.is_none() && b.is_none() { Vec::new() } else { parts.iter().map(row).collect() }
}
