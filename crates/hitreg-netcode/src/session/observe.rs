//! Whoever watches a session run: recorders, tables, progress.

use crate::game::{Game, Placed, Verdict};
use crate::packet::{HeardPacket, Snapshot};
use crate::pipeline::{Commanded, Judged, Reconciled, Ticked};
use crate::wire::{Sent, Told};
use hitreg_log::record::{ArrivalRecord, Execution, PacketRecord, Presence};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// A snapshot that was made ready to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// How many bytes its datagrams have in all; a nominal number where none are made.
    pub bytes: u16,
    /// Whether the client saw its avatar where the server had it after the usercmd that the snapshot acks. `None` where the
    /// client has not said, and where no datagrams are made.
    pub saw_avatar_right: Option<bool>,
    /// What the bits of its datagrams are for; `None` where none are made.
    pub told: Option<Told>,
}

impl Packed {
    /// What is not made: of so many bytes by name.
    pub(crate) fn nominal(bytes: u16) -> Packed {
        Packed { bytes, ..Packed::default() }
    }

    pub fn of(sent: &Sent) -> Packed {
        let bytes = sent.bytes.min(usize::from(u16::MAX)) as u16;
        Packed { bytes, saw_avatar_right: sent.saw_avatar_right, told: Some(sent.told) }
    }
}

/// The others on a client's screen.
#[derive(Debug)]
pub struct Shown<'a, B> {
    /// Where they were drawn, in ascending order of entity.
    pub drawn: &'a [(EntityId, Placed<B>)],
    /// The server time that was drawn; where drawing goes by category, each has its own in [`Placed::by`].
    pub drawn_at: Micros,
}

/// Is told everything that happens, in the order in which it happens. What it does not care for it leaves out.
#[expect(unused_variables, reason = "the names say what an observer is told, though the defaults do nothing with it")]
pub trait Observer<G: Game> {
    /// The server begins a tick.
    fn tick_begins(&mut self, at: Micros) {}
    /// Whether it looks at what a client draws at this time. What nobody looks at need not be drawn.
    fn looks(&mut self, at: Micros) -> bool {
        true
    }
    /// A client drew the others and made a usercmd.
    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>, shown: &Shown<'_, G::Body>) {}
    /// A client sent a packet.
    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {}
    /// A client's packet reached the server.
    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {}
    /// What it says, as the server hears it; told just after [`Observer::packet_reached`].
    fn packet_heard(&mut self, player: PlayerId, at: Micros, heard: &HeardPacket) {}
    /// The server dealt with a usercmd.
    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {}
    /// A player joined or left.
    fn presence(&mut self, player: PlayerId, at: Micros, tick: Tick, change: Presence) {}
    /// The server judged a shot.
    fn judged(&mut self, at: Micros, tick: Tick, judged: &Judged<G>) {}
    /// A projectile reached something.
    fn impact(
        &mut self,
        at: Micros,
        tick: Tick,
        shooter: PlayerId,
        command: CommandSeq,
        weapon: &'static str,
        verdict: &Verdict,
    ) {
    }
    /// The server finished a tick.
    fn ticked(&mut self, at: Micros, ticked: Ticked, world: &G::World) {}
    /// The server sent a snapshot.
    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: Packed) {}
    /// A snapshot reached its client.
    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&Reconciled>,
    ) {
    }
}
