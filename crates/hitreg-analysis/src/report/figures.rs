//! Formats figures for people, and draws histograms of them as bars of text.

use textwrap::core::display_width;

use super::page::Page;
use hitreg_log::stats::CountedValues;
use hitreg_log::units::Micros;

/// A count with separators: `12,345`.
pub fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with a noun: `1 shot`, `2 shots`.
pub fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(number))
}

/// The mode of a trace: `closed loop`, `open loop`, `closed loop, rejudged`, or `recorded`.
pub fn replay_mode(mode: &str) -> String {
    match mode.split_once(", ") {
        None if mode.is_empty() => "unknown loop".to_owned(),
        None if mode == "recorded" => mode.to_owned(),
        Some(("recorded", _)) => "recorded by a client".to_owned(),
        Some((mode, rejudged)) => format!("{mode} loop, {rejudged}"),
        None => format!("{mode} loop"),
    }
}

/// A share in percent: `99.8 %`, or `-` if the whole is 0. Only everything is 100 %, and only nothing is 0 %.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match percent {
        _ if part == 0 || part == whole => format!("{percent:.0} %"),
        p if p < 0.01 => "< 0.01 %".to_owned(),
        p if p > 99.99 => "> 99.99 %".to_owned(),
        p if !(0.1..=99.9).contains(&p) => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// A size in bytes: `812 B`, `58.3 kB`, `1.9 MB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}

/// A duration: `47 ms`, `20.0 s`, `19 min 58 s`, `2 h 03 min`.
pub fn duration(span: Micros) -> String {
    let seconds = span.as_s_f64();
    let whole = seconds.round() as u64;
    match whole {
        _ if span < Micros::from_ms(1_000) => format!("{:.0} ms", 1_000.0 * seconds),
        0..120 => format!("{seconds:.1} s"),
        120..7_200 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// A speed: `447 times real time`.
pub fn speed(factor: f64) -> String {
    let number = if factor < 10.0 { format!("{factor:.1}") } else { count(factor as u64) };
    format!("{number} times real time")
}

/// A measured value with about three digits: `0`, `0.0008`, `0.25`, `12.3`, `1234`.
pub fn measure(value: f32) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.0001 => format!("{value:.0e}"),
        _ => format!("{value:.*}", decimals(value)),
    }
}

/// The number of decimals of a measure.
fn decimals(value: f32) -> usize {
    match value.abs() {
        v if v < 0.1 => 4,
        v if v < 10.0 => 2,
        v if v < 1_000.0 => 1,
        _ => 0,
    }
}

/// A measure with its largest error: `8 ±2`.
pub fn measure_within(value: f32, uncertainty: f32) -> String {
    if uncertainty == 0.0 { measure(value) } else { within(value.into(), decimals(value), uncertainty) }
}

/// A value with its largest error, and only the decimals that are known. An error that is smaller than the last of
/// `decimals` is not shown.
pub fn within(value: f64, decimals: usize, uncertainty: f32) -> String {
    match (0..=decimals).find(|known| 0.1f32.powi(*known as i32) <= uncertainty) {
        Some(known) => format!("{value:.known$} ±{uncertainty:.known$}"),
        None => format!("{value:.decimals$}"),
    }
}

/// A session time from microseconds: `12.688 s`.
pub fn seconds(at_us: i64) -> String {
    format!("{:.3} s", at_us as f64 / 1e6)
}

/// The distance between two values: three decimals for usual sizes, else a power of ten.
pub fn distance(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (0.001..1e3).contains(&size) => format!("{value:.3}"),
        size if (1e3..1e7).contains(&size) => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// A time from microseconds, such as `-83.152 ms`. It keeps all digits, with at least one after the point.
pub fn ms(time_us: i64) -> String {
    let (sign, size) = (if time_us < 0 { "-" } else { "" }, time_us.unsigned_abs());
    let fraction = format!("{:03}", size % 1000);
    let (first, rest) = fraction.split_at(1);
    format!("{sign}{}.{first}{} ms", size / 1000, rest.trim_end_matches('0'))
}

/// A time from microseconds, for reading: `53 ms`, and with one decimal below 10 ms.
pub(crate) fn rounded_ms(time_us: i64) -> String {
    let ms = time_us as f64 / 1e3;
    if ms.abs() < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// Cuts a text to at most `most` columns.
pub fn clipped(text: &str, most: usize) -> String {
    if display_width(text) <= most {
        return text.to_owned();
    }
    let fits = |end: &usize| display_width(&text[..*end]) < most;
    let end = text.char_indices().map(|(at, _)| at).take_while(fits).last().unwrap_or_default();
    format!("{}…", &text[..end])
}

/// The longest bar, in columns.
const BAR_COLUMNS_MAX: u64 = 40;

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
        let bar = (number * BAR_COLUMNS_MAX).div_ceil(most) as usize;
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
const STEPS_MAX: u8 = 14;

/// The lower edges of the bars, from the bar of the least value to that of the greatest. They are 1, 2, 5, 10 and so on,
/// or the multiples of one of these numbers.
fn edges(least: f32, greatest: f32) -> Vec<f32> {
    let growing =
        |step: i32| [1.0, 2.0, 5.0][step.rem_euclid(3) as usize] * libm::pow(10.0, f64::from(step.div_euclid(3)));
    let mut edges: Vec<f32> = if greatest > FAR_APART * least {
        (GROWING_MIN..=GROWING_MAX).map(|step| growing(step) as f32).collect()
    } else {
        let [least, greatest] = [least, greatest].map(f64::from);
        let is_enough = |width: &f64| (greatest - least) / width < STEPS_MAX.into();
        let width = (GROWING_MIN..=GROWING_MAX).map(growing).find(is_enough).unwrap_or(growing(GROWING_MAX));
        let first = libm::floor(least / width) - 1.0;
        (0..=STEPS_MAX + 2).map(|step| ((first + f64::from(step)) * width) as f32).collect()
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
const GROWING_MIN: i32 = -6;

/// The greatest growing step.
const GROWING_MAX: i32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncertain_measure_has_only_its_known_decimals() {
        let shown = [(8.06, 2.0), (8.06, 0.5), (0.0945, 0.0625), (123.4, 0.0625), (0.0, 0.0), (5e-5, 0.0)];
        let expected = ["8 ±2", "8.1 ±0.5", "0.09 ±0.06", "123.4", "0", "5e-5"];
        assert_eq!(shown.map(|(value, uncertainty)| measure_within(value, uncertainty)), expected);
        assert_eq!(within(-25_000_010.0, 2, 2.0), "-25000010 ±2");
    }

    #[test]
    fn counts_have_separated_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(|n: u64| count(n)), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "shot"), counted(0, "shot")], ["1 shot", "0 shots"]);
    }

    #[test]
    fn only_all_is_a_hundred_percent() {
        assert_eq!(share(100_000, 100_000), "100 %");
        assert_eq!(share(99_999, 100_000), "> 99.99 %");
        assert_eq!(share(1, 1_000_000), "< 0.01 %");
        assert_eq!(share(5, 10_000), "0.05 %");
        assert_eq!(share(0, 7), "0 %");
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn spans_and_sizes_are_short() {
        assert_eq!(duration(Micros(46_875)), "47 ms");
        assert_eq!(duration(Micros::from_ms(19_950)), "19.9 s");
        assert_eq!(duration(Micros::from_s(1_198)), "19 min 58 s");
        assert_eq!(duration(Micros::from_ms(179_984)), "3 min 00 s", "one tick short of it");
        assert_eq!(duration(Micros::from_s(7_380)), "2 h 03 min");
        assert_eq!([812, 58_349, 1_912_000].map(bytes), ["812 B", "58.3 kB", "1.91 MB"]);
        assert_eq!([0.0, 0.00083, 0.25, 12.34].map(measure), ["0", "0.0008", "0.25", "12.3"]);
    }

    #[test]
    fn times_lose_no_digit() {
        assert_eq!(
            [-83_152, 0, 120_000, 1, -950].map(ms),
            ["-83.152 ms", "0.0 ms", "120.0 ms", "0.001 ms", "-0.95 ms"]
        );
    }

    #[test]
    fn times_for_reading_are_rounded() {
        assert_eq!([53_135, 9_949, 9_950, 0, -950].map(rounded_ms), ["53 ms", "9.9 ms", "10 ms", "0.0 ms", "-0.9 ms"]);
    }

    #[test]
    fn large_and_small_numbers_are_readable() {
        assert_eq!([0.0, 0.5, 1e-5, 21500.0, 2e7].map(distance), ["0", "0.500", "1.00e-5", "21500", "2.00e7"]);
        assert_eq!(["abc", "日本語", "日本語の"].map(|text| clipped(text, 6)), ["abc", "日本語", "日本…"]);
        assert_eq!((clipped("abcdef", 4).as_str(), seconds(12_688_000).as_str()), ("abc…", "12.688 s"));
    }

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
