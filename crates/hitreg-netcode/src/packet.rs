//! What servers and clients say to each other, as values. How it looks on a socket is the wire's business.

use std::sync::Arc;

use crate::game::{Effect, SnapshotExtras};
use crate::history::Frame;
use hitreg_log::record::{HeardRecord, OutOfSequence, PacketRecord};
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_log::usercmd::Usercmd;

/// From a client: its newest usercmd, and repeats of those before it in case they were lost.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientPacket {
    /// Counted from 1.
    pub number: u32,
    /// The newest snapshot that the client has.
    pub ack: SnapshotSeq,
    /// The usercmds, oldest first; their numbers are consecutive.
    pub commands: Vec<Usercmd>,
}

/// A client's packet as the server hears it, with what else it says of snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardPacket {
    /// The packet.
    pub packet: ClientPacket,
    /// Which of the 32 snapshots before [`ClientPacket::ack`] the client has too, the lowest bit for the one just before.
    pub received_before: u32,
}

impl HeardPacket {
    /// What a log says of it when it arrives at `at`.
    pub fn record(&self, at: Micros) -> HeardRecord {
        let HeardPacket { packet, received_before } = self;
        HeardRecord {
            number: packet.number,
            at,
            ack: packet.ack,
            received_before: *received_before,
            commands: packet.commands.clone(),
        }
    }

    /// What a log says of it, back again.
    pub fn of(record: &HeardRecord) -> HeardPacket {
        let packet = ClientPacket { number: record.number, ack: record.ack, commands: record.commands.clone() };
        HeardPacket { packet, received_before: record.received_before }
    }
}

impl ClientPacket {
    /// What a log says of the packet when it leaves at `at` with this size; `None` of one without usercmds, which no client
    /// sends.
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

    /// The size that counts where no datagrams are made (`wire.sizes=nominal`, and in logs from before there were any):
    /// UDP/IP and netchan headers of 42 bytes and 16 for each usercmd, what Half-Life and QuakeWorld clients send on
    /// average.
    pub fn nominal_bytes(&self) -> u16 {
        (42 + 16 * self.commands.len()).min(usize::from(u16::MAX)) as u16
    }
}

/// From the server: the world as one client is to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<B> {
    /// Counted per client from 1.
    pub seq: SnapshotSeq,
    /// The newest usercmd of the client that had run.
    pub ack: CommandSeq,
    /// The entities; the client's own body is among them, less what only clients know.
    pub frame: Arc<Frame<B>>,
    /// Sounds and sights since the last snapshot.
    pub effects: Vec<Effect>,
    /// How many updates were held back before this one because the rate was used up.
    pub choked: u8,
    /// NeREIDS's calibration helper: how many ms before its tick the client's input arrives, with the jitter taken out.
    /// `None` while the server cannot tell, and where usercmds run on arrival.
    pub helper_ms: Option<i16>,
    /// Usercmds that came at a time when they could not be used, since the last snapshot.
    pub warnings: Vec<OutOfSequence>,
    /// What the client's line did to its packets; `None` where no client asks for it (`client.adaptive_redundancy`).
    pub echo: Option<Echo>,
    /// What else it tells, in the game's own encoding: evidence for [`Reconcile::explain`](crate::game::Reconcile::explain).
    pub extra: Vec<u8>,
}

/// What a server says of a client's packets, so that the client knows its line: the round trip without the time for which
/// usercmds wait for their tick, and the loss on the way up, which no ack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The lower 16 bits of the number of the newest packet that came.
    pub packet: u16,
    /// How long the server had it when the snapshot left, in ms.
    pub held_ms: u16,
    /// How many numbers were passed over so far, for packets that were lost or overtaken; counted round at 16 bits.
    pub lost: u16,
}

impl<B> Snapshot<B> {
    /// What it tells beside bodies.
    pub fn extras(&self) -> SnapshotExtras<'_> {
        SnapshotExtras { effects: &self.effects, choked: self.choked, extra: &self.extra }
    }

    /// The size that counts where no datagrams are made: headers of 50 bytes, 20 for each entity and 8 for each effect.
    pub fn nominal_bytes(&self) -> u16 {
        (50 + 20 * self.frame.entities.len() + 8 * self.effects.len()).min(usize::from(u16::MAX)) as u16
    }
}
