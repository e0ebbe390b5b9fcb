//! Histograms of values, as bars of text.

use super::figures::{count, measure};
use super::page::Page;
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
    let edges = edges(least, greatest);
    let (mut zeros, mut counts) = (0, vec![0; edges.len()]);
    for (value, count) in values() {
        *(if value > 0.0 { &mut counts[bar_of(value, &edges)] } else { &mut zeros }) += count;
    }
    let most = counts.iter().copied().fold(zeros, u64::max);
    let row = |(from, number): (String, u64)| {
        let bar = (number * LONGEST).div_ceil(most) as usize;
        [from, count(number), "#".repeat(bar)]
    };
    let zeros = (zeros > 0).then(|| ("0".to_owned(), zeros));
    let bars = edges.iter().zip(counts).map(|(edge, number)| (format!("{} up", measure(*edge)), number));
    page.section(title, &[&format!(">{unit}"), ""], zeros.into_iter().chain(bars).map(row));
    page
}

/// If the greatest value is more than this many times the least, the steps grow.
const FAR_APART: f32 = 10.0;

/// The limit on the number of even steps.
const MOST_STEPS: u8 = 14;

/// The lower edges of the bars, from the bar of the least value to that of the greatest. They are 1, 2, 5, 10 and so on,
/// or the multiples of one of these numbers.
fn edges(least: f32, greatest: f32) -> Vec<f32> {
    let growing =
        |step: i32| [1.0, 2.0, 5.0][step.rem_euclid(3) as usize] * libm::pow(10.0, f64::from(step.div_euclid(3)));
    let mut edges: Vec<f32> = if greatest > FAR_APART * least {
        (SMALLEST..=GREATEST).map(|step| growing(step) as f32).collect()
    } else {
        let [least, greatest] = [least, greatest].map(f64::from);
        let is_enough = |width: &f64| (greatest - least) / width < MOST_STEPS.into();
        let width = (SMALLEST..=GREATEST).map(growing).find(is_enough).unwrap_or(growing(GREATEST));
        let first = libm::floor(least / width) - 1.0;
        (0..=MOST_STEPS + 2).map(|step| ((first + f64::from(step)) * width) as f32).collect()
    };
    edges.truncate(bar_of(greatest, &edges) + 1);
    edges.drain(..bar_of(least, &edges));
    edges
}

/// The bar of a value, by the edges of all bars. The first bar also holds all lower values.
fn bar_of(value: f32, edges: &[f32]) -> usize {
    edges.partition_point(|edge| *edge <= value).saturating_sub(1)
}

/// The smallest growing step, 0.01.
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

    /// A value at a printed edge belongs to the bar that begins there.
    #[test]
    fn a_bar_begins_at_its_edge() {
        for width in ["0.01", "0.02", "0.05", "0.1", "2"] {
            let width_units: f64 = width.parse().expect("a number");
            for first in 13..200 {
                let values = [0, 1, 9].map(|step| ((f64::from(first + step) * width_units) * 1e3).round() as f32 / 1e3);
                let edges = edges(values[0], values[2]);
                assert_eq!(values.map(|value| bar_of(value, &edges)), [0, 1, 9], "{values:?}: {edges:?}");
            }
        }
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
