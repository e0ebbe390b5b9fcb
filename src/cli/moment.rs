//! Parses session times.

use crate::units::{ClockTime, Micros};

/// The earliest and the latest time, as an error shows them.
const LIMITS: [ClockTime; 2] = [ClockTime(Micros(i64::MIN)), ClockTime(Micros(i64::MAX))];

/// Parses a session time: `75`, `75 s`, `1:15`, `0:01:15.5`, `75500ms` or `75500000us`, each with or without a minus
/// sign. Digits after a whole microsecond are dropped, because ticks whose times do not end there are recorded in the
/// same way.
pub(super) fn time(text: &str) -> Result<Micros, String> {
    let wrong = || format!("`{text}` is not a time: write 40:00 (minutes and seconds), 75.5s, 75500ms or 75500000us");
    let (sign, length) = text.strip_prefix('-').map_or((1, text), |length| (-1, length));
    let us = sign * micros(length).ok_or_else(wrong)?;
    let [first, last] = LIMITS;
    let too_far = |_| format!("`{text}` is too far: write a time from {first} to {last}");
    i64::try_from(us).map(Micros).map_err(too_far)
}

/// Parses a time without a sign into microseconds.
fn micros(text: &str) -> Option<i128> {
    for (unit, digits) in [("ms", 3), ("us", 0), ("µs", 0)] {
        if let Some(count) = text.strip_suffix(unit) {
            return decimal(count.trim_end(), digits);
        }
    }
    let (before, last) = text.rsplit_once(':').map_or((None, text), |(before, last)| (Some(before), last));
    let Some(before) = before else {
        // Only plain seconds may have a unit.
        return decimal(last.strip_suffix('s').map_or(last, str::trim_end), 6);
    };
    let (hours, minutes) = before.split_once(':').unwrap_or(("0", before));
    let minutes = number(hours)?.saturating_mul(60).saturating_add(number(minutes)?);
    Some(minutes.saturating_mul(60_000_000).saturating_add(decimal(last, 6)?))
}

/// Parses a decimal number and multiplies it by ten to the power of `digits`. Later digits are dropped.
fn decimal(text: &str, digits: usize) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    number(decimals)?;
    let kept = &decimals[..decimals.len().min(digits)];
    let fraction = number(&format!("0{kept:0<digits$}"))?;
    Some(number(whole)?.saturating_mul(10_i128.pow(digits as u32)).saturating_add(fraction))
}

/// Parses digits. A number that does not fit becomes the largest that does.
fn number(digits: &str) -> Option<i128> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i128::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_written_form() {
        let read = [
            ("40:00", 2_400_000_000),
            ("1:02:03.25", 3_723_250_000),
            ("75", 75_000_000),
            ("75s", 75_000_000),
            ("0.5", 500_000),
            ("1.55s", 1_550_000),
            ("1550ms", 1_550_000),
            ("0.125ms", 125),
            ("1550000us", 1_550_000),
            ("-7 µs", -7),
            ("1764000000.200 s", 1_764_000_000_200_000),
            ("1764000000200 ms", 1_764_000_000_200_000),
            ("-4.6", -4_600_000),
            ("-4.600 s", -4_600_000),
            ("-0:04.6", -4_600_000),
            ("-1:00:00", -3_600_000_000),
            ("-0.125ms", -125),
            ("2.4921875", 2_492_187),
            ("-2.4921875s", -2_492_187),
            ("0:02.4921875", 2_492_187),
            ("0.1239ms", 123),
            ("9223372036854.775807", i64::MAX),
            ("-9223372036854.775808s", i64::MIN),
            ("9223372036854775.807ms", i64::MAX),
        ];
        for (text, us) in read {
            assert_eq!(time(text), Ok(Micros(us)), "{text}");
        }
        let wrong = [
            "", ":", "1:", "-", "--1", "- 1", "1:-2", "1:2:3:4", "1::2", "1e3", "x", "s", "ms", "1:00s", "1:00 s",
            "0.12345x", "1.", "1. 5",
        ];
        for wrong in wrong {
            assert!(time(wrong).is_err_and(|why| why.contains("is not a time")), "{wrong}");
        }
    }

    #[test]
    fn times_outside_the_range_are_refused_as_too_far() {
        let nines = "9".repeat(60);
        let far = ["9223372036854.775808", "-9223372036854.775809", "153722867281:00", "9223372036854776ms", &nines];
        let clock = format!("{nines}:{nines}:{nines}");
        for text in far.into_iter().chain([&*clock]) {
            assert!(time(text).is_err_and(|why| why.contains("is too far: write a time from -")), "{text}");
        }
    }

    #[test]
    fn every_printed_time_is_read() {
        for us in [0, 1, -1, 7_500_000, -4_600_000, 2_400_000_000, 1_764_000_000_200_000, i64::MIN, i64::MAX] {
            let at = Micros(us);
            assert_eq!(time(&ClockTime(at).to_string()), Ok(at));
            let whole_ms = Micros(us / 1_000 * 1_000);
            let [seconds, ms] = [us.unsigned_abs() / 1_000_000, us.unsigned_abs() / 1_000 % 1_000];
            let sign = if us < 0 { "-" } else { "" };
            assert_eq!(time(&format!("{sign}{seconds}.{ms:03} s")), Ok(whole_ms));
        }
    }
}
