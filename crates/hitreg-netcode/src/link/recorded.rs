//! A recorded link, looked up by send time. A packet that was not recorded gets the delay of the packet sent at or just
//! before its time. A build or setting that sends other packets can therefore use the recording too.

use super::{Fate, Link};
use hitreg_log::record::{ArrivalRecord, ArrivalTable, PacketRecord, SnapshotRecord};
use hitreg_log::units::Micros;

/// One recorded direction.
#[derive(Clone, Debug)]
pub struct RecordedLink {
    /// The send times and fates of the packets, in the order of sending.
    sent: Vec<(Micros, Fate)>,
    /// The number of recorded packets sent at or before the last lookup.
    passed: usize,
}

impl RecordedLink {
    /// Creates the direction from a client to the server.
    pub fn up(sent: &[PacketRecord], arrivals: &[ArrivalRecord]) -> RecordedLink {
        Self::new(sent.iter().map(|p| (p.number, p.at)), arrivals)
    }

    /// Creates the direction from the server to a client.
    pub fn down(sent: &[SnapshotRecord], arrivals: &[ArrivalRecord]) -> RecordedLink {
        Self::new(sent.iter().map(|s| (s.seq.0, s.at)), arrivals)
    }

    fn new(sent: impl Iterator<Item = (u32, Micros)>, arrivals: &[ArrivalRecord]) -> RecordedLink {
        let fates = ArrivalTable::new(arrivals);
        let sent = sent
            .map(|(number, at)| {
                let mut arrivals = fates.of(number);
                (at, Fate { first: arrivals.next(), second: arrivals.next() })
            })
            .collect();
        RecordedLink { sent, passed: 0 }
    }
}

impl Link for RecordedLink {
    fn send(&mut self, at: Micros, _bytes: u16) -> Fate {
        while self.sent.get(self.passed).is_some_and(|(sent, _)| *sent <= at) {
            self.passed += 1;
        }
        let Some((sent, fate)) = self.sent.get(self.passed.saturating_sub(1)) else {
            return Fate::LOST;
        };
        fate.of_other(*sent, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::units::{CommandSeq, SnapshotSeq};

    fn link() -> RecordedLink {
        let packet = |number, ms| PacketRecord {
            number,
            at: Micros::from_ms(ms),
            newest: CommandSeq(number),
            count: 1,
            ack: SnapshotSeq(0),
            bytes: 60,
        };
        let arrival = |number, ms| ArrivalRecord { number, at: Micros::from_ms(ms) };
        let sent = [packet(1, 0), packet(2, 10), packet(3, 20)];
        RecordedLink::up(&sent, &[arrival(1, 40), arrival(3, 55), arrival(3, 56)])
    }

    #[test]
    fn the_same_packets_have_the_same_fates() {
        let mut link = link();
        let arrivals: Vec<Vec<i64>> =
            [0, 10, 20].map(|ms| link.send(Micros::from_ms(ms), 60).arrivals().map(|a| a.0 / 1000).collect()).to_vec();
        assert_eq!(arrivals, [vec![40], vec![], vec![55, 56]]);
    }

    #[test]
    fn other_packets_share_the_fate_of_the_one_before() {
        let mut link = link();
        let mut at = |ms| link.send(Micros::from_ms(ms), 60).first.map(|a| a.0 / 1000);
        assert_eq!([at(5), at(15), at(30)], [Some(45), None, Some(65)]);
    }
}
