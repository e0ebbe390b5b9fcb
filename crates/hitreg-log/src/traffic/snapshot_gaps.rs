//! The lost snapshots of a receiver's recording.

use std::collections::VecDeque;

use super::{SentRow, put};

/// The limit on a player's lost snapshots beyond the number of received ones.
const MOST_LOST_BESIDE: u32 = 1 << 12;
/// A server reports an update that it held back at most this long ago.
const REPORTED_AFTER_US: i64 = 10_000_000;

/// Finds the lost snapshots among received ones: as many as each gap has numbers beyond the updates that were held back.
/// Their send times are spread over the gap.
#[derive(Debug, Default)]
pub(super) struct SnapshotGaps {
    last: Option<(u32, i64)>,
    held_back: u64,
    /// The number of lost snapshots so far, less the received ones. A crafted file may claim any gap.
    excess: i64,
    /// The recent lost snapshots: number and time.
    lost: VecDeque<(u32, i64)>,
}

impl SnapshotGaps {
    /// Adds a received snapshot to `sent`, and before it the lost ones.
    pub(super) fn add(&mut self, row: SentRow, sent: &mut VecDeque<SentRow>) {
        let (number, sent_us, _, choked) = row;
        self.excess -= 1;
        self.held_back += u64::from(choked);
        if let Some((before, before_us)) = self.last {
            let missing = u64::from(number.saturating_sub(before).saturating_sub(1));
            let lost = missing.saturating_sub(self.held_back);
            self.held_back -= missing - lost;
            let most = u32::try_from(i64::from(MOST_LOST_BESIDE) - self.excess).unwrap_or(0);
            let lost = u32::try_from(lost).unwrap_or(u32::MAX).min(most);
            self.excess += i64::from(lost);
            for n in 1..=lost {
                let share = i64::from(n) * sent_us.saturating_sub(before_us) / i64::from(lost + 1);
                let at_us = before_us.saturating_add(share);
                self.lost.push_back((before + n, at_us));
                put(sent, (before + n, at_us, 0, 0));
            }
        }
        self.last = Some((number, sent_us));
        put(sent, row);
        self.remove_held_back(sent);
    }

    /// Removes the newest lost snapshots from `sent` if the last received one reports more updates held back than its own
    /// gap has. During a change of level, a QuakeWorld server reports them late.
    fn remove_held_back(&mut self, sent: &mut VecDeque<SentRow>) {
        let Some((_, now_us)) = self.last else { return };
        while self.lost.pop_front_if(|(_, at)| now_us.saturating_sub(*at) > REPORTED_AFTER_US).is_some() {}
        while self.held_back > 0 {
            let Some((number, _)) = self.lost.pop_back() else { return };
            if let Ok(place) = sent.binary_search_by_key(&number, |row| row.0) {
                sent.remove(place);
                self.held_back -= 1;
                self.excess -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_a_receivers_recording_are_lost_snapshots() {
        let received =
            [(10, 1_000, 50, 3), (11, 2_000, 50, 0), (14, 8_000, 50, 0), (18, 9_000, 50, 2), (19, 9_500, 50, 0)];
        let with_lost = |rows: &[SentRow]| {
            let (mut all, mut gaps) = (VecDeque::new(), SnapshotGaps::default());
            rows.iter().for_each(|row| gaps.add(*row, &mut all));
            all
        };
        let all = with_lost(&received);
        let lost: Vec<_> = all.iter().filter(|(_, _, bytes, _)| *bytes == 0).map(|row| (row.0, row.1)).collect();
        // The first row's three were held back before the recording began, and cover the first gap's two and one more.
        assert_eq!(lost, []);
        let lost: Vec<_> =
            with_lost(&received[1..]).iter().filter(|row| row.2 == 0).map(|row| (row.0, row.1)).collect();
        assert_eq!(lost, [(12, 4_000), (13, 6_000), (15, 8_500)]);
    }

    #[test]
    fn updates_that_are_reported_late_as_held_back_are_not_lost() {
        let (mut gaps, mut sent) = (SnapshotGaps::default(), VecDeque::new());
        let rows = [(1, 0, 50, 0), (4, 20_000_000, 50, 0), (8, 21_000_000, 50, 0), (10, 22_000_000, 50, 3)];
        rows.into_iter().for_each(|row| gaps.add(row, &mut sent));
        let numbers: Vec<u32> = sent.iter().map(|row| row.0).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 8, 10], "one of the last gap, two of the gap before");
    }
}
