//! Counts how often each of a client's recent packets arrived.

use std::collections::VecDeque;

use crate::state::value;

/// A packet this many numbers older than the newest is too old to count.
pub(crate) const PACKETS_REMEMBERED: u32 = 256;
/// The most arrivals that count for one packet: the packet and one duplicate made by the network. A log has no room for
/// more.
pub(crate) const ARRIVALS_MAX: u8 = 2;

/// The arrivals of one client's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// The number of the newest packet received.
    newest: u32,
    /// The arrivals of each recent packet, newest last.
    came: VecDeque<u8>,
}

impl Arrivals {
    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    /// Counts an arrival. Returns false when the packet arrived too often or is too old.
    pub(super) fn count(&mut self, number: u32) -> bool {
        if number == 0 || number.saturating_add(PACKETS_REMEMBERED) <= self.newest {
            return false;
        }
        if number > self.newest {
            let new = (number - self.newest).min(PACKETS_REMEMBERED);
            self.came.extend(std::iter::repeat_n(0, new as usize));
            let excess = self.came.len().saturating_sub(PACKETS_REMEMBERED as usize);
            self.came.drain(..excess);
            self.newest = number;
        }
        let back = (self.newest - number) as usize;
        let Some(times) = self.came.len().checked_sub(back + 1).and_then(|index| self.came.get_mut(index)) else {
            return false;
        };
        let counts = *times < ARRIVALS_MAX;
        *times += u8::from(counts);
        counts
    }
}

value!(Arrivals { newest, came });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_counts_at_most_twice_and_old_ones_do_not() {
        let mut arrivals = Arrivals::default();
        let mut counts = |number| arrivals.count(number);
        assert_eq!(
            [counts(3), counts(1), counts(3), counts(3), counts(1), counts(1)],
            [true, true, true, false, true, false]
        );
        assert!(!counts(0));
        for number in 4..=400 {
            assert!(counts(number), "{number}");
        }
        assert_eq!(
            [counts(144), counts(145), counts(145), counts(400), counts(400)],
            [false, true, false, true, false]
        );
    }
}
