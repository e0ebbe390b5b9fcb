//! Bands of latency, to group shots by their shooter's connection.

use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

/// The width of a band, in ms.
const WIDTH_MS: u32 = 50;
/// The start of the last band, which has no end, in ms.
const LAST_MS: u32 = 300;

/// A band of round-trip latency, named by its start in ms: `0`, `50`, and so on up to `300` for 300 ms and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LatencyBand(u32);

impl LatencyBand {
    /// The band of a latency in ms.
    pub(crate) fn of_ms(latency_ms: f32) -> LatencyBand {
        // The cast takes negative values and NaN as 0.
        LatencyBand((latency_ms as u32 / WIDTH_MS * WIDTH_MS).min(LAST_MS))
    }
}

impl Display for LatencyBand {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            LAST_MS => write!(f, "{LAST_MS} ms and more"),
            from => write!(f, "{from} to {} ms", from + WIDTH_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_have_both_ends() {
        let names = [0.0, 49.9, 50.0, 299.0, 300.0, 4e9, -3.0].map(|ms| LatencyBand::of_ms(ms).to_string());
        let last = "300 ms and more";
        assert_eq!(names, ["0 to 50 ms", "0 to 50 ms", "50 to 100 ms", "250 to 300 ms", last, last, "0 to 50 ms"]);
    }
}
