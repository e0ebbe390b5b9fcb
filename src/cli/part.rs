//! Options that ask for a part of a session.

use super::trouble::Trouble;
use crate::replay::Part;
use crate::units::{Micros, Tick};

/// From when to when.
#[derive(clap::Args)]
pub(super) struct PartArgs {
    /// Only what happens from this time of the session on: `40:00`, seconds, or `tick:5000`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Moment>,
    /// Only what happens before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Moment>,
}

/// When something is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    At(Micros),
    Tick(Tick),
}

impl PartArgs {
    /// The part that is asked for, where one is. `time_of` knows when a tick was.
    pub(super) fn of(
        &self,
        time_of: impl Fn(Tick) -> Result<Option<Micros>, Trouble>,
    ) -> Result<Option<Part>, Trouble> {
        let time = |moment: Option<Moment>, otherwise: Micros| match moment {
            None => Ok(otherwise),
            Some(Moment::At(at)) => Ok(at),
            Some(Moment::Tick(tick)) => {
                time_of(tick)?.ok_or_else(|| Trouble::Request(format!("the session has no tick {tick}")))
            }
        };
        if self.is_whole() {
            return Ok(None);
        }
        Ok(Some(Part { from: time(self.from, Part::WHOLE.from)?, to: time(self.to, Part::WHOLE.to)? }))
    }

    /// Whether no part is asked for.
    pub(super) fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// Reads `75`, `1:15`, `0:01:15.5`, `tick:5000`.
fn moment(text: &str) -> Result<Moment, String> {
    let wrong = || format!("`{text}` is no time: write minutes and seconds, as 40:00, or seconds, or tick:5000");
    if let Some(tick) = text.strip_prefix("tick:") {
        return tick.parse().map(|tick| Moment::Tick(Tick(tick))).map_err(|_| wrong());
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (last, before) = parts.split_last().ok_or_else(wrong)?;
    let (seconds, decimals) = last.split_once('.').unwrap_or((last, "0"));
    let number = |digits: &str| -> Result<i64, String> {
        let is_number = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)
    };
    if before.len() > 2 || decimals.len() > 6 {
        return Err(wrong());
    }
    let mut whole = 0;
    for part in before.iter().chain([&seconds]) {
        whole = whole * 60 + number(part)?;
    }
    let decimals = number(&format!("{decimals:0<6}"))?;
    Ok(Moment::At(Micros(whole * 1_000_000 + decimals)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        let at = |us| Ok(Moment::At(Micros(us)));
        assert_eq!(moment("40:00"), at(2_400_000_000));
        assert_eq!(moment("1:02:03.25"), at(3_723_250_000));
        assert_eq!(moment("75"), at(75_000_000));
        assert_eq!(moment("0.5"), at(500_000));
        assert_eq!(moment("tick:90"), Ok(Moment::Tick(Tick(90))));
        for wrong in ["", ":", "1:", "-1", "1:2:3:4", "1e3", "tick:", "tick:-1", "x", "0.1234567", "9999999999"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
