//! What clients do, and what becomes of what they send.

use super::Recorded;
use super::stream::When;
use crate::units::{CommandSeq, Micros, SnapshotSeq};
use crate::usercmd::Usercmd;

/// One client frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameRecord {
    /// When the client made the usercmd.
    pub at: Micros,
    /// The usercmd.
    pub command: Usercmd,
}

/// One packet from a client. It carries the usercmds `newest - count + 1 ..= newest`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRecord {
    /// Its number, counted per client from 1.
    pub number: u32,
    /// When it left.
    pub at: Micros,
    /// The newest usercmd in it.
    pub newest: CommandSeq,
    /// How many usercmds it carries, the newest and repeats of those before it.
    pub count: u8,
    /// The newest snapshot that the client had.
    pub ack: SnapshotSeq,
    /// The bytes of its datagrams, seals included, UDP/IP headers not; nominal where `wire.sizes` says so or is missing.
    pub bytes: u16,
}

/// The arrival of a packet; a duplicated packet arrives twice, a lost one never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Which packet: [`PacketRecord::number`] or [`SnapshotRecord::seq`](super::SnapshotRecord::seq).
    pub number: u32,
    /// When it arrived.
    pub at: Micros,
}

impl Recorded for FrameRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

impl Recorded for PacketRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}

impl Recorded for ArrivalRecord {
    fn when(&self) -> When {
        When::At(self.at)
    }

    fn move_by(&mut self, by: Micros) {
        self.at += by;
    }
}
