//! Observers of a running session: recorders, tables, progress.

use crate::game::{Game, PlacedBody, ShotVerdict};
use crate::packet::{HeardPacket, Snapshot};
use crate::pipeline::{ClientFrameOutput, JudgedShot, ReconcileOutcome, TickOutcome};
use crate::wire::{QueuedSnapshot, SnapshotBitCounts};
use hitreg_log::record::{ArrivalRecord, Execution, PacketRecord, Presence};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// A snapshot that is ready to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSize {
    /// The total size of its datagrams in bytes; a nominal size when no datagrams are made.
    pub bytes: u16,
    /// Whether the client's prediction matched the server's avatar after the acked usercmd. `None` when the client did
    /// not report a prediction, or no datagrams are made.
    pub saw_avatar_right: Option<bool>,
    /// The bits of its datagrams by purpose; `None` when no datagrams are made.
    pub told: Option<SnapshotBitCounts>,
}

impl SnapshotSize {
    /// Describes a snapshot without datagrams, with a nominal size in bytes.
    pub(crate) fn nominal(bytes: u16) -> SnapshotSize {
        SnapshotSize { bytes, ..SnapshotSize::default() }
    }

    /// Describes a snapshot that was sent as datagrams.
    pub fn of(sent: &QueuedSnapshot) -> SnapshotSize {
        let bytes = sent.bytes.min(usize::from(u16::MAX)) as u16;
        SnapshotSize { bytes, saw_avatar_right: sent.saw_avatar_right, told: Some(sent.told) }
    }
}

/// The other entities on a client's screen.
#[derive(Debug)]
pub struct ScreenView<'a, B> {
    /// The entities as drawn, in ascending order of entity.
    pub drawn: &'a [(EntityId, PlacedBody<B>)],
    /// The server time at which they were drawn. When drawing by category, each has its own time in [`PlacedBody::by`].
    pub drawn_at: Micros,
}

/// Receives every event of a session, in order. The default methods ignore the event.
#[expect(unused_variables, reason = "the names document the parameters; the default methods do nothing")]
pub trait Observer<G: Game> {
    /// The server begins a tick.
    fn tick_begins(&mut self, at: Micros) {}
    /// Returns whether the observer looks at what a client draws at this time. Otherwise it need not be drawn.
    fn looks(&mut self, at: Micros) -> bool {
        true
    }

    /// A client drew the others and made a usercmd.
    fn frame(
        &mut self,
        player: PlayerId,
        at: Micros,
        commanded: &ClientFrameOutput<G>,
        shown: &ScreenView<'_, G::Body>,
    ) {
    }

    /// A client sent a packet.
    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {}
    /// A client's packet reached the server.
    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {}
    /// The contents of a packet as the server received it; called just after [`Observer::packet_reached`].
    fn packet_heard(&mut self, player: PlayerId, at: Micros, heard: &HeardPacket) {}
    /// The server ran or dropped a usercmd.
    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {}
    /// A player joined or left.
    fn presence(&mut self, player: PlayerId, at: Micros, tick: Tick, change: Presence) {}
    /// The server judged a shot.
    fn judged(&mut self, at: Micros, tick: Tick, judged: &JudgedShot<G>) {}
    /// A projectile hit something.
    fn impact(
        &mut self,
        at: Micros,
        tick: Tick,
        shooter: PlayerId,
        command: CommandSeq,
        weapon: &'static str,
        verdict: &ShotVerdict,
    ) {
    }

    /// The server finished a tick.
    fn ticked(&mut self, at: Micros, ticked: TickOutcome, world: &G::World) {}
    /// The server sent a snapshot.
    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: SnapshotSize) {}
    /// A snapshot reached its client.
    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        reconciled: Option<&ReconcileOutcome>,
    ) {
    }
}
