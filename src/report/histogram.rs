//! How values are spread, as bars of text.

use super::figures::{count, measure};
use super::page::Align::{Left, Right};
use super::page::{Cell, Page};
use crate::trace::schema::{corrections, frames};
use crate::trace::{Series, Trace};

/// The longest bar, in columns.
const LONGEST: u64 = 40;

/// How round trips and prediction errors of a trace are spread.
pub fn spreads(trace: &Trace) -> Page {
    let (acks, frames) = (corrections::Columns::of(trace), frames::Columns::of(trace));
    let made = Series::of_one(frames.player, frames.command);
    let round_trip = |row: usize| {
        let of_it = [*acks.player.get(row)?, 0];
        let made = *frames.at_us.get(made.at(of_it, *acks.command.get(row)?).next()?)?;
        Some(acks.at_us.get(row)?.saturating_sub(made) as f32 / 1e3)
    };
    let mut page = histogram("round trip", "ms", (0..acks.rows).filter_map(round_trip));
    page.append(histogram("prediction error", "units", acks.error_units.iter().copied()));
    page
}

/// A bar for each step of 1, 2, 5, 10, 20, ... that some values are in, and one for those that are 0. Empty where there are no
/// values.
fn histogram(title: &str, unit: &str, values: impl IntoIterator<Item = f32>) -> Page {
    let mut counts: std::collections::BTreeMap<i32, u64> = std::collections::BTreeMap::new();
    for value in values.into_iter().filter(|value| value.is_finite() && *value >= 0.0) {
        *counts.entry(step_of(value)).or_default() += 1;
    }
    let mut page = Page::default();
    let (Some(first), Some(last)) = (counts.keys().find(|step| **step > NONE), counts.keys().next_back()) else {
        return page;
    };
    let most = counts.values().max().copied().unwrap_or(1);
    let zeros = counts.contains_key(&NONE).then_some(NONE);
    let row = |step: i32| -> Vec<Cell> {
        let number = counts.get(&step).copied().unwrap_or(0);
        let bar = (number * LONGEST).div_ceil(most) as usize;
        let from = if step == NONE { "0".to_owned() } else { format!("{} up", measure(edge(step))) };
        vec![from.into(), count(number).into(), "#".repeat(bar).into()]
    };
    let rows: Vec<Vec<Cell>> = zeros.into_iter().chain(*first..=*last).map(row).collect();
    page.section(title, &[(unit, Right), ("", Left)], &rows);
    page
}

/// The step of what is 0, or as good as that.
const NONE: i32 = -7;

/// Three steps to each power of ten.
fn edge(step: i32) -> f32 {
    [1.0, 2.0, 5.0][step.rem_euclid(3) as usize] * libm::powf(10.0, step.div_euclid(3) as f32)
}

fn step_of(value: f32) -> i32 {
    (NONE + 1..30).rev().find(|step| edge(*step) <= value).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_one_bar() {
        let page = histogram("error", "units", [0.0, 0.0, 1.0, 1.9, 2.0, 70.0, f32::NAN]).text();
        let words = page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let bars = words.filter(|words| words.first().is_some_and(|word| word.parse::<f32>().is_ok()));
        let counts: Vec<String> = bars.map(|words| words[1 + usize::from(words[1] == "up")].to_owned()).collect();
        assert_eq!(counts, ["2", "2", "1", "0", "0", "0", "1"], "{page}");
        assert!(page.lines().all(|line| line.len() <= 80), "{page}");
        assert!(histogram("error", "units", []).text().is_empty());
    }
}
