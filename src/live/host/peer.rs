//! What the server's end of the wire knows of one client.

use std::collections::VecDeque;

use super::super::envelope;
use crate::packet::{ClientPacket, Snapshot};
use crate::units::{CommandSeq, PlayerId};
use crate::wire::{
    ClientReference, MESSAGE_BYTES_MAX, Networked, OutOfSeqWarning, Perceived, Sender, Wrapping16, decode_commands,
    fragments,
};

/// How many packets back a late one may be.
const PACKETS_REMEMBERED: u32 = 256;
/// For how many usercmds it is remembered where their clients saw their avatars.
const PERCEIVED_REMEMBERED: usize = 128;
/// How often one packet counts: once, and once more if the way doubled it. A log has room for no more.
const ARRIVALS_MAX: u8 = 2;

/// A snapshot, ready to be sealed and sent.
pub(super) struct Closed {
    pub(super) datagrams: Vec<Vec<u8>>,
    /// False when there was no room for all that is new.
    pub(super) is_whole: bool,
}

/// One client.
pub(super) struct Peer<B> {
    sender: Sender<B>,
    reference: ClientReference,
    /// How often each of the last packets came, the newest last; the newest is [`ClientReference::number`].
    came: VecDeque<u8>,
    /// Where the client says that its avatar was after each of its last usercmds.
    perceived: VecDeque<(CommandSeq, Perceived)>,
}

impl<B: Networked> Peer<B> {
    pub(super) fn new(player: PlayerId, players: u16) -> Peer<B> {
        Peer {
            sender: Sender::new(player, players),
            reference: ClientReference::default(),
            came: VecDeque::new(),
            perceived: VecDeque::new(),
        }
    }

    /// The packet in a datagram, as the pipeline is to have it; `None` when the datagram is not what an honest client
    /// would send, or not as often.
    pub(super) fn open(&mut self, datagram: &[u8]) -> Option<ClientPacket> {
        let (datagram, newest_whole) = envelope::open_up(datagram)?;
        let message = decode_commands(datagram, &self.reference).ok()?;
        let received = message.received();
        let mut packet = message.packet;
        if newest_whole > packet.ack || !self.counts(packet.number) {
            return None;
        }
        packet.ack = newest_whole;
        if let Some(newest) = packet.commands.last() {
            self.reference.command = self.reference.command.max(newest.seq);
            if let Some(perceived) = message.perceived {
                self.remember(newest.seq, perceived);
            }
        }
        self.sender.handle_ack(&received);
        Some(packet)
    }

    /// Whether the client saw its avatar where the server had it after the usercmd that a snapshot acks, each told once.
    /// `None` where the client has not said.
    pub(super) fn saw(&mut self, ack: CommandSeq, avatar: &B) -> Option<bool> {
        let place = self.perceived.iter().position(|(seq, _)| *seq == ack)?;
        let (_, perceived) = self.perceived.remove(place)?;
        Some(match perceived {
            Perceived::OriginEighths(_) => perceived == Perceived::origin(avatar.origin()),
            Perceived::Hash(_) => perceived == Perceived::hash(avatar),
        })
    }

    fn remember(&mut self, seq: CommandSeq, perceived: Perceived) {
        if self.perceived.len() == PERCEIVED_REMEMBERED {
            self.perceived.pop_front();
        }
        self.perceived.push_back((seq, perceived));
    }

    /// The datagrams of a snapshot, not yet sealed; `None` when it cannot be sent: then it never arrives, and the log says
    /// so.
    pub(super) fn close(&mut self, snapshot: &Snapshot<B>) -> Option<Closed> {
        for warning in &snapshot.warnings {
            let index = Wrapping16::of(warning.command.0);
            self.sender.warn(OutOfSeqWarning { index, difference: warning.difference });
        }
        let budget = MESSAGE_BYTES_MAX - envelope::DOWN_BYTES;
        let encoded = self.sender.encode(snapshot, snapshot.helper_ms, budget).ok()?;
        self.reference.sent = snapshot.seq;
        let is_whole = encoded.deferred.is_empty() && encoded.warnings_dropped == 0;
        let datagrams = fragments(snapshot.seq, envelope::close_down(encoded.datagram, is_whole))?;
        Some(Closed { datagrams, is_whole })
    }

    /// Counts an arrival; false when it is one too many, or too old to know.
    fn counts(&mut self, number: u32) -> bool {
        let newest = self.reference.number;
        if number == 0 || number + PACKETS_REMEMBERED <= newest {
            return false;
        }
        if number > newest {
            for _ in newest..number.min(newest + PACKETS_REMEMBERED) {
                self.came.push_back(0);
            }
            let excess = self.came.len().saturating_sub(PACKETS_REMEMBERED as usize);
            self.came.drain(..excess);
            self.reference.number = number;
        }
        let back = (self.reference.number - number) as usize;
        let Some(times) = self.came.len().checked_sub(back + 1).and_then(|index| self.came.get_mut(index)) else {
            return false;
        };
        *times += 1;
        *times <= ARRIVALS_MAX || {
            *times = ARRIVALS_MAX;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaBody;
    use crate::units::{CommandSeq, SnapshotSeq};
    use crate::usercmd::Usercmd;
    use crate::wire::{ClientMessage, encode_commands};

    fn datagram(number: u32, ack: u32, newest_whole: u32) -> Vec<u8> {
        let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
        let packet = ClientPacket { number, ack: SnapshotSeq(ack), commands: vec![command] };
        let message = ClientMessage { packet, received_before: 0, perceived: None };
        envelope::close_up(encode_commands(&message).expect("one usercmd"), SnapshotSeq(newest_whole))
    }

    #[test]
    fn a_packet_counts_twice_at_most_and_not_when_it_is_old() {
        let mut peer = Peer::<ArenaBody>::new(PlayerId(0), 1);
        let mut counts = |number| peer.open(&datagram(number, 0, 0)).is_some();
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

    #[test]
    fn an_avatar_is_compared_once_and_only_where_its_client_said() {
        let mut peer = Peer::<ArenaBody>::new(PlayerId(0), 1);
        let here = ArenaBody { origin: glam::Vec3::new(8.0, 1.5, 0.0), ..ArenaBody::default() };
        let there = ArenaBody { origin: glam::Vec3::new(8.0, 2.0, 0.0), ..here };
        for seq in [1, 2] {
            let command = Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
            let packet = ClientPacket { number: seq, ack: SnapshotSeq(0), commands: vec![command] };
            let perceived = Some(Perceived::origin(here.origin));
            let message = ClientMessage { packet, received_before: 0, perceived };
            let datagram = encode_commands(&message).expect("one usercmd");
            assert!(peer.open(&envelope::close_up(datagram, SnapshotSeq(0))).is_some());
        }
        assert_eq!(peer.saw(CommandSeq(1), &here), Some(true));
        assert_eq!(peer.saw(CommandSeq(2), &there), Some(false));
        assert_eq!((peer.saw(CommandSeq(1), &here), peer.saw(CommandSeq(3), &here)), (None, None));
    }

    #[test]
    fn the_pipeline_is_told_the_newest_whole_snapshot() {
        let mut peer = Peer::<ArenaBody>::new(PlayerId(0), 1);
        let packet = peer.open(&datagram(1, 7, 5)).expect("a good packet");
        assert_eq!(packet.ack, SnapshotSeq(5));
        assert!(peer.open(&datagram(2, 5, 7)).is_none());
    }
}
