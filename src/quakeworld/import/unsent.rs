//! Brush models that a server does not send for a moment though they are in reach: on their way through walls, or one of too
//! many. Between where they were last seen and where they are seen next, they moved on evenly.

use std::collections::BTreeMap;

use crate::quakeworld::demo::{Demo, Mover};

/// What stays away for longer may have been anywhere, in seconds.
const LONGEST_S: f32 = 1.0;

/// Where unsent brush models were, by the index of the packet that lacks them.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    by_packet: BTreeMap<usize, Vec<Mover>>,
}

impl Unsent {
    /// Looks for short absences in a demo.
    pub(super) fn find(demo: &Demo) -> Unsent {
        let mut unsent = Unsent::default();
        let mut last: BTreeMap<u16, (usize, [f32; 3])> = BTreeMap::new();
        for (index, packet) in demo.packets.iter().enumerate() {
            for mover in packet.movers.of(&demo.movers) {
                if let Some((from, was)) = last.insert(mover.model, (index, mover.origin)) {
                    unsent.fill(demo, from..index, was, mover);
                }
            }
        }
        unsent
    }

    fn fill(&mut self, demo: &Demo, gap: std::ops::Range<usize>, was: [f32; 3], now: &Mover) {
        let [first, last] = [&demo.packets[gap.start], &demo.packets[gap.end]];
        let long_s = last.time_s - first.time_s;
        if first.level != last.level || !(0.0..=LONGEST_S).contains(&long_s) {
            return;
        }
        for index in gap.skip(1) {
            let share = ((demo.packets[index].time_s - first.time_s) / long_s.max(0.001)).clamp(0.0, 1.0);
            let origin = [0, 1, 2].map(|n| was[n] + share * (now.origin[n] - was[n]));
            self.by_packet.entry(index).or_default().push(Mover { model: now.model, origin });
        }
    }

    /// The models that the packet of this index lacks.
    pub(super) fn of(&self, index: usize) -> &[Mover] {
        self.by_packet.get(&index).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quakeworld::UserCmd;
    use crate::quakeworld::testing::DemoWriter;

    #[test]
    fn what_is_missing_for_a_moment_moved_on_evenly() {
        let mut writer = DemoWriter::default();
        writer.signon();
        writer.sequences(1);
        writer.command(1.0, &UserCmd::default());
        let lift = |height: u8| vec![47, 40, 0x88, 4, 2, height * 8, 0, 0, 0];
        let times = [(1.0, lift(2)), (1.1, vec![]), (1.2, lift(6)), (4.0, vec![]), (5.0, lift(9))];
        for (n, (time_s, messages)) in times.iter().enumerate() {
            writer.packet(*time_s, n as u32 + 2, 1, messages);
        }
        let demo = Demo::parse(&writer.bytes).expect("good");
        let unsent = Unsent::find(&demo);
        let height = |index: usize| unsent.of(index).iter().map(|mover| mover.origin[2]).collect::<Vec<_>>();
        assert!((height(2)[0] - 4.0).abs() < 0.01, "{:?}", height(2));
        assert_eq!((height(1), height(4)), (vec![], vec![]), "sent, and away for too long");
    }
}
