//! Histograms of values, as bars of text.

use super::figures::{count, measure};
use super::page::Page;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::CountedValues;

/// The longest bar, in columns.
const LONGEST: u64 = 40;

/// The histograms of round trips and prediction errors.
pub fn distributions(round_trips_ms: &CountedValues, error_units: &CountedValues) -> Page {
    let mut page = histogram("round trip", "ms", round_trips_ms);
    page.append(histogram("prediction error", "units", error_units));
    page
}

/// The histogram of round trips, in milliseconds.
pub fn round_trips(ms: impl IntoIterator<Item = f32>) -> Page {
    let mut counted = CountedValues::default();
    ms.into_iter().for_each(|ms| counted.add(ms));
    histogram("round trip", "ms", &counted)
}

/// A bar for each step between the lowest and the highest value, and one for 0. Empty if all values are 0 or there are
/// none.
fn histogram(title: &str, unit: &str, values: &CountedValues) -> Page {
    let values = || values.iter().filter(|(value, _)| value.is_finite() && *value >= 0.0);
    let least = values().map(|(value, _)| value).find(|value| *value > 0.0);
    let mut page = Page::default();
    let Some((least, greatest)) = least.zip(values().map(|(value, _)| value).last()) else { return page };
    let steps = BinSteps::of(least, greatest);
    let mut counts: SortedMap<Option<i32>, u64> = SortedMap::new();
    for (value, count) in values() {
        *counts.entry((value > 0.0).then(|| steps.of_value(value))).or_default() += count;
    }
    let most = counts.values().max().copied().unwrap_or(1);
    let row = |step: Option<i32>| {
        let number = counts.get(&step).copied().unwrap_or(0);
        let bar = (number * LONGEST).div_ceil(most) as usize;
        let from = step.map_or("0".to_owned(), |step| format!("{} up", measure(steps.edge(step))));
        [from, count(number), "#".repeat(bar)]
    };
    let zeros = counts.contains_key(&None).then_some(None);
    let steps = (steps.of_value(least)..=steps.of_value(greatest)).map(Some);
    page.section(title, &[&format!(">{unit}"), ""], zeros.into_iter().chain(steps).map(row));
    page
}

/// Where one bar ends and the next begins.
#[derive(Clone, Copy)]
enum BinSteps {
    /// Steps at 1, 2, 5, 10, 20, ...
    Growing,
    /// Steps of this equal width.
    Even(f32),
}

/// If the greatest value is more than this many times the least, the steps grow.
const FAR_APART: f32 = 10.0;

/// The limit on the number of even steps.
const MOST_STEPS: f32 = 14.0;

impl BinSteps {
    fn of(least: f32, greatest: f32) -> BinSteps {
        if greatest > FAR_APART * least {
            return BinSteps::Growing;
        }
        let enough = |step: &i32| (greatest - least) / BinSteps::Growing.edge(*step) < MOST_STEPS;
        BinSteps::Even(BinSteps::Growing.edge((SMALLEST..=GREATEST).find(enough).unwrap_or(GREATEST)))
    }

    /// The lower edge of a step.
    fn edge(self, step: i32) -> f32 {
        match self {
            BinSteps::Growing => {
                [1.0, 2.0, 5.0][step.rem_euclid(3) as usize] * libm::powf(10.0, step.div_euclid(3) as f32)
            }
            BinSteps::Even(width) => step as f32 * width,
        }
    }

    fn of_value(self, value: f32) -> i32 {
        match self {
            BinSteps::Growing => (SMALLEST..=GREATEST).rev().find(|step| self.edge(*step) <= value).unwrap_or(SMALLEST),
            BinSteps::Even(width) => libm::floorf(value / width) as i32,
        }
    }
}

/// The smallest growing step, 0.01, which also holds all lower values.
const SMALLEST: i32 = -6;

/// The greatest growing step.
const GREATEST: i32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_one_bar() {
        let counted = |values: &[f32]| {
            let mut counted = CountedValues::default();
            values.iter().for_each(|value| counted.add(*value));
            counted
        };
        let page = histogram("error", "units", &counted(&[0.0, 0.0, 1.0, 1.9, 2.0, 70.0, f32::NAN])).text();
        let words = page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let bars = words.filter(|words| words.first().is_some_and(|word| word.parse::<f32>().is_ok()));
        let counts: Vec<String> = bars.map(|words| words[1 + usize::from(words[1] == "up")].to_owned()).collect();
        assert_eq!(counts, ["2", "2", "1", "0", "0", "0", "1"], "{page}");
        assert!(page.lines().all(|line| line.len() <= 80), "{page}");
        assert!(histogram("error", "units", &counted(&[])).text().is_empty());
        assert!(histogram("error", "units", &counted(&[0.0; 9])).text().is_empty());
    }

    #[test]
    fn close_values_have_even_bars() {
        let page = round_trips((0..100).map(|n| 103.0 + (n % 20) as f32).chain([131.0])).text();
        let expected = "\
round trip  ms
  100.0 up  10  ################
  105.0 up  25  ########################################
";
        assert!(page.starts_with(expected), "{page}");
        let near = round_trips([50.0, 50.001]).text();
        assert_eq!(near.lines().count(), 2, "{near}");
        assert!(round_trips([1e-30, 1e30, 7.0]).text().lines().all(|line| line.len() <= 80));
    }
}
