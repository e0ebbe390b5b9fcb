//! The messages between servers and clients, as values. The wire module defines their encoding.

use std::sync::Arc;

use crate::game::{Effect, SnapshotExtras};
use crate::history::Frame;
use hitreg_log::record::{HeardRecord, OutOfSequence, PacketRecord};
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_log::usercmd::Usercmd;

/// The server time of the usercmds of a client that has no clock, because it has received no snapshot.
pub(crate) const NO_CLOCK: Micros = Micros::ZERO;

/// A client's packet: its newest usercmd, with repeats of earlier ones in case they were lost.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientPacket {
    /// The packet's number, counted from 1.
    pub number: u32,
    /// The newest snapshot that the client has.
    pub ack: SnapshotSeq,
    /// The usercmds, oldest first, with consecutive numbers.
    pub commands: Vec<Usercmd>,
}

/// A client's packet as the server receives it, with its snapshot acks.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedPacket {
    /// The packet.
    pub packet: ClientPacket,
    /// Which of the 32 snapshots before [`ClientPacket::ack`] the client has received. The lowest bit is the snapshot
    /// just before the ack.
    pub received_before: u32,
}

impl ReceivedPacket {
    /// Returns the log record of the packet, which arrived at `at`.
    pub fn record(&self, at: Micros) -> HeardRecord {
        let ReceivedPacket { packet, received_before } = self;
        HeardRecord {
            number: packet.number,
            at,
            ack: packet.ack,
            received_before: *received_before,
            commands: packet.commands.clone(),
        }
    }

    /// Restores the packet from its log record.
    pub fn of(record: &HeardRecord) -> ReceivedPacket {
        let packet = ClientPacket { number: record.number, ack: record.ack, commands: record.commands.clone() };
        ReceivedPacket { packet, received_before: record.received_before }
    }
}

impl ClientPacket {
    /// Returns the log record of the packet, sent at `at` with this size in bytes. Returns `None` for a packet without
    /// usercmds, which no client sends.
    pub fn record(&self, at: Micros, bytes: u16) -> Option<PacketRecord> {
        Some(PacketRecord {
            number: self.number,
            at,
            newest: self.commands.last()?.seq,
            count: self.commands.len() as u8,
            ack: self.ack,
            bytes,
        })
    }

    /// Returns the nominal size in bytes, used when no datagrams are made (`wire.sizes=nominal`, and in logs without
    /// that setting). It counts 42 bytes of UDP/IP and netchan headers and 16 bytes per usercmd, the average of
    /// Half-Life and QuakeWorld clients.
    pub fn nominal_bytes(&self) -> u16 {
        (42 + 16 * self.commands.len()).min(usize::from(u16::MAX)) as u16
    }
}

/// A snapshot: the state of the world that the server sends to one client.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<B> {
    /// The snapshot's number, counted per client from 1.
    pub seq: SnapshotSeq,
    /// The newest usercmd of this client that had run.
    pub ack: CommandSeq,
    /// The entities, including the client's own body, without client-only fields.
    pub frame: Arc<Frame<B>>,
    /// Effects since the last snapshot.
    pub effects: Vec<Effect>,
    /// The number of snapshots that the rate held back before this one.
    pub choked: u8,
    /// NeREIDS's calibration helper: how many ms before its tick the client's input arrives, with jitter filtered out.
    /// `None` while the server does not know it, and when usercmds run on arrival.
    pub helper_ms: Option<i16>,
    /// Usercmds since the last snapshot that arrived too early or too late to be used.
    pub warnings: Vec<OutOfSequence>,
    /// The echo of the client's packets; `None` unless the client requests it (`client.adaptive_redundancy`).
    pub echo: Option<Echo>,
    /// Additional data in the game's own encoding: evidence for
    /// [`Reconcile::explain`](crate::game::Reconcile::explain).
    pub extra: Vec<u8>,
}

/// The server's report about a client's packets, from which the client measures its line. It gives the round trip
/// without the wait of usercmds for their tick, and the loss on the way up. Acks show neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The lower 16 bits of the number of the newest packet received.
    pub packet: u16,
    /// How long the server held that packet before it sent the snapshot, in ms.
    pub held_ms: u16,
    /// The number of packet numbers skipped so far because of loss or reordering, modulo 2^16.
    pub lost: u16,
}

impl<B> Snapshot<B> {
    /// Returns a snapshot with a frame and nothing else: no effects, warnings or echo, and no data of the game's own.
    pub fn new(seq: SnapshotSeq, ack: CommandSeq, frame: Arc<Frame<B>>) -> Snapshot<B> {
        Snapshot {
            seq,
            ack,
            frame,
            effects: Vec::new(),
            choked: 0,
            helper_ms: None,
            warnings: Vec::new(),
            echo: None,
            extra: Vec::new(),
        }
    }

    /// Returns the parts of the snapshot other than bodies.
    pub fn extras(&self) -> SnapshotExtras<'_> {
        SnapshotExtras { effects: &self.effects, choked: self.choked, extra: &self.extra }
    }

    /// Returns the nominal size in bytes, used when no datagrams are made: headers of 50 bytes, 20 bytes per entity and
    /// 8 per effect.
    pub fn nominal_bytes(&self) -> u16 {
        (50 + 20 * self.frame.entities.len() + 8 * self.effects.len()).min(usize::from(u16::MAX)) as u16
    }
}
