//! Session times as minutes and seconds.

use std::fmt;

use super::Micros;

/// Displays a session time as minutes and seconds: `40:00`, `0:07.5`.
#[derive(Clone, Copy, Debug)]
pub struct ClockTime(pub Micros);

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, us) = (if self.0.0 < 0 { "-" } else { "" }, self.0.0.unsigned_abs());
        let (minutes, seconds, rest) = (us / 60_000_000, us / 1_000_000 % 60, us % 1_000_000);
        write!(f, "{sign}{minutes}:{seconds:02}")?;
        match rest {
            0 => Ok(()),
            _ => f.write_str(format!(".{rest:06}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_options_accept_them() {
        let written =
            [0, 7_500_000, 2_400_000_000, 4_211_000_001, -1_000_000].map(|at| ClockTime(Micros(at)).to_string());
        assert_eq!(written, ["0:00", "0:07.5", "40:00", "70:11.000001", "-0:01"]);
    }
}
