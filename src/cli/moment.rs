//! Parses session times.

use crate::units::Micros;

/// Parses a time: `75`, `75s`, `1:15`, `0:01:15.5` or `75500ms`.
pub(super) fn time(text: &str) -> Result<Micros, String> {
    let wrong = || format!("`{text}` is not a time: write 40:00 (minutes and seconds), 75.5s or 75500ms");
    if let Some(ms) = text.strip_suffix("ms") {
        let (whole, decimals) = decimal(ms, 3).ok_or_else(wrong)?;
        return Ok(Micros(whole * 1_000 + decimals));
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (last, before) = parts.split_last().ok_or_else(wrong)?;
    // Only plain seconds may have a unit.
    let last = if before.is_empty() { last.strip_suffix('s').unwrap_or(last) } else { last };
    let (seconds, decimals) = decimal(last, 6).ok_or_else(wrong)?;
    if before.len() > 2 {
        return Err(wrong());
    }
    let minutes = before.iter().try_fold(0, |sum, part| Some(sum * 60 + number(part)?)).ok_or_else(wrong)?;
    Ok(Micros((minutes * 60 + seconds) * 1_000_000 + decimals))
}

/// Parses a decimal number into its whole part and its fraction, scaled to `digits` digits.
fn decimal(text: &str, digits: usize) -> Option<(i64, i64)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if decimals.len() > digits {
        return None;
    }
    Some((number(whole)?, number(&format!("{decimals:0<digits$}"))?))
}

fn number(digits: &str) -> Option<i64> {
    let is_number = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
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
        ];
        for (text, us) in read {
            assert_eq!(time(text), Ok(Micros(us)), "{text}");
        }
        let wrong = [
            "",
            ":",
            "1:",
            "-1",
            "1:2:3:4",
            "1e3",
            "x",
            "s",
            "ms",
            "1:00s",
            "0.1234567",
            "0.1234ms",
            "9999999999",
            "1. 5",
        ];
        for wrong in wrong {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
