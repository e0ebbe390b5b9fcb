//! Distributions of both traces, side by side.

use std::collections::BTreeMap;

use super::text::{grouped, measure, wrapped};
use crate::diff::{Interpolation, Reconciliation};
use crate::stats::Spread;

/// How the predictions did.
pub(crate) fn reconciliation(both: &Reconciliation) -> String {
    let (a, b) = (&both.a, &both.b);
    if a.checked + b.checked == 0 {
        return String::new();
    }
    let mut text = head("reconciliation");
    text.push_str(&counts("predictions checked", a.checked, b.checked));
    text.push_str(&counts("exact", a.exact, b.exact));
    text.push_str(&counts("near", a.near, b.near));
    for (cause, (a, b)) in merged(&a.misses_by_cause, &b.misses_by_cause) {
        text.push_str(&counts(&format!("corrected: {cause}"), a, b));
    }
    text.push_str(&spread("error, units", a.error_units, b.error_units));
    text.push_str(&spread("usercmds run again", both.reran_a, both.reran_b));
    let c = &both.corrected;
    if c.both + c.only_a + c.only_b > 0 {
        let words = format!(
            "corrected in both {}, only in A {}, only in B {}",
            grouped(c.both),
            grouped(c.only_a),
            grouped(c.only_b)
        );
        text.push_str(&wrapped("  ", &words));
    }
    text
}

/// How the others were drawn.
pub(crate) fn interpolation(both: &Interpolation) -> String {
    if both.a.views + both.b.views == 0 {
        return String::new();
    }
    let mut text = head("interpolation");
    text.push_str(&counts("views", both.a.views, both.b.views));
    for (how, (a, b)) in merged(&both.a.how, &both.b.how) {
        text.push_str(&counts(&how, a, b));
    }
    let words = match (both.moved, both.distance_units, both.distance_max_units) {
        (0, ..) => format!("drawn in the same places: all {} in both", grouped(both.compared)),
        (moved, Some(apart), Some(max)) => format!(
            "drawn apart: {} of {}; distance p50 {}, p95 {}, p99 {}, max {} units",
            grouped(moved),
            grouped(both.compared),
            measure(f64::from(apart.p50)),
            measure(f64::from(apart.p95)),
            measure(f64::from(apart.p99)),
            measure(f64::from(max)),
        ),
        (moved, ..) => format!("drawn apart: {} of {}", grouped(moved), grouped(both.compared)),
    };
    text.push_str(&wrapped("  ", &words));
    text
}

fn head(title: &str) -> String {
    format!("{title:<30} {:>12} {:>12}\n", "A", "B")
}

fn counts(what: &str, a: u64, b: u64) -> String {
    format!("  {what:<28} {:>12} {:>12}\n", grouped(a), grouped(b))
}

fn spread(what: &str, a: Option<Spread>, b: Option<Spread>) -> String {
    type Part = fn(Spread) -> f32;
    let parts: [(&str, Part); 3] = [("p50", |s| s.p50), ("p95", |s| s.p95), ("max", |s| s.max)];
    let text = |spread: Option<Spread>, part: Part| spread.map_or("-".to_owned(), |s| measure(f64::from(part(s))));
    if a.is_none() && b.is_none() {
        return String::new();
    }
    let line = |(name, part): (&str, Part)| {
        format!("  {:<28} {:>12} {:>12}\n", format!("{what}, {name}"), text(a, part), text(b, part))
    };
    parts.into_iter().map(line).collect()
}

fn merged(a: &BTreeMap<String, u64>, b: &BTreeMap<String, u64>) -> BTreeMap<String, (u64, u64)> {
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, count) in a {
        both.entry(name.clone()).or_default().0 += count;
    }
    for (name, count) in b {
        both.entry(name.clone()).or_default().1 += count;
    }
    both
}
