//! Options that select a part of a session.

use super::moment::time;
use super::trouble::CommandError;
use crate::replay::Part;
use crate::units::{Micros, Tick};

/// From when to when.
#[derive(clap::Args)]
pub(super) struct PartArgs {
    /// Start of the part, in session time: `40:00`, `75.5s`, `75500ms`, `75500000us`, or `tick:5000`
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    from: Option<PartBound>,
    /// End of the part (exclusive)
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    to: Option<PartBound>,
}

/// A position in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PartBound {
    At(Micros),
    Tick(Tick),
}

impl PartArgs {
    /// The requested part; `None` if no part is requested. `time_of` returns the time of a tick.
    pub(super) fn of(
        &self,
        time_of: impl Fn(Tick) -> Result<Option<Micros>, CommandError>,
    ) -> Result<Option<Part>, CommandError> {
        let time = |moment: Option<PartBound>, otherwise: Micros| match moment {
            None => Ok(otherwise),
            Some(PartBound::At(at)) => Ok(at),
            Some(PartBound::Tick(tick)) => time_of(tick)?.ok_or_else(|| {
                CommandError::request(format!(
                    "the session has no tick {tick} whose time is in the log: give a time (--from 8.19s)"
                ))
            }),
        };
        if self.is_whole() {
            return Ok(None);
        }
        Ok(Some(Part { from: time(self.from, Part::WHOLE.from)?, to: time(self.to, Part::WHOLE.to)? }))
    }

    /// Whether the whole session is requested.
    pub(super) fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// Parses a time, or a tick such as `tick:5000`.
fn moment(text: &str) -> Result<PartBound, String> {
    match text.strip_prefix("tick:") {
        Some(tick) => tick
            .parse()
            .map(|tick| PartBound::Tick(Tick(tick)))
            .map_err(|_| format!("`{text}` is not a tick: write tick:5000, for example")),
        None => time(text).map(PartBound::At).map_err(|wrong| format!("{wrong}, or tick:5000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_written_form() {
        assert_eq!(moment("40:00"), Ok(PartBound::At(Micros(2_400_000_000))));
        assert_eq!(moment("tick:90"), Ok(PartBound::Tick(Tick(90))));
        for wrong in ["", "1:", "tick:", "tick:-1", "x"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
