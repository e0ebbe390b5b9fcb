//! Finds packets that arrive once more.

/// The newest packets that arrived from a player.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivedPackets {
    newest: u32,
    /// A bit for each of the 64 packets before `newest`; the lowest is the packet just before it.
    before: u64,
}

impl ArrivedPackets {
    /// Returns whether the packet had not arrived yet. A packet far behind the newest counts as a new one.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        if number > self.newest {
            let steps = number - self.newest;
            let shifted = self.before.checked_shl(steps).unwrap_or_default();
            self.before = shifted | 1u64.checked_shl(steps - 1).unwrap_or_default();
            self.newest = number;
            return true;
        }
        let Some(place) = (self.newest - number).checked_sub(1) else { return false };
        let bit = 1u64.checked_shl(place).unwrap_or_default();
        let is_new = self.before & bit == 0;
        self.before |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_arrives_again_is_not_new() {
        let mut arrived = ArrivedPackets::default();
        let order = [1, 2, 2, 5, 3, 5, 3, 1, 4, 200, 199, 199, 5, 200];
        let new = order.map(|number| arrived.insert(number));
        let [yes, no] = [true, false];
        assert_eq!(new, [yes, yes, no, yes, yes, no, no, no, yes, yes, yes, no, yes, no]);
    }
}
