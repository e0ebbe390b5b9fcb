//! Client frames, packets and their arrivals.

use crate::units::{CommandSeq, Micros, SnapshotSeq};
use crate::usercmd::Usercmd;

/// One client frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameRecord {
    /// Time at which the client made the usercmd.
    pub at: Micros,
    /// The usercmd.
    pub command: Usercmd,
}

/// One packet from a client. It carries the usercmds `newest - count + 1 ..= newest`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRecord {
    /// Packet number, counted per client from 1.
    pub number: u32,
    /// Send time.
    pub at: Micros,
    /// The newest usercmd in it.
    pub newest: CommandSeq,
    /// Number of usercmds in it: the newest and repeats of those before it.
    pub count: u8,
    /// The newest snapshot that the client had received.
    pub ack: SnapshotSeq,
    /// Total bytes of its datagrams, with seals, without UDP/IP headers. Nominal if `wire.sizes` says so or is missing.
    pub bytes: u16,
}

/// The arrival of a packet. A duplicated packet arrives twice, a lost one never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Number of the packet: [`PacketRecord::number`] or [`SnapshotRecord::seq`](super::SnapshotRecord::seq).
    pub number: u32,
    /// Arrival time.
    pub at: Micros,
}
