//! Observers of a running session: recorders, tables, progress.

use crate::game::{Game, PlacedBody};
use crate::packet::{HeardPacket, Snapshot};
use crate::pipeline::{ClientFrameOutput, Event, ReconcileOutcome, TickOutcome};
use crate::wire::{QueuedSnapshot, SnapshotBitCounts};
use hitreg_log::record::PacketRecord;
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};

/// A snapshot that is ready to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSize {
    /// The total size of its datagrams in bytes; a nominal size when no datagrams are made.
    pub bytes: u16,
    /// The number of changed entities, effects and warnings without room; 0 when no datagrams are made.
    pub left_out: u32,
    /// Whether the client's prediction matched the server's avatar after the acked usercmd. `None` when the client did
    /// not report a prediction, or no datagrams are made.
    pub saw_avatar_right: Option<bool>,
    /// The bits of its datagrams by purpose; `None` when no datagrams are made.
    pub bit_counts: Option<SnapshotBitCounts>,
}

impl SnapshotSize {
    /// Describes a snapshot without datagrams, with a nominal size in bytes.
    pub(crate) fn nominal(bytes: u16) -> SnapshotSize {
        SnapshotSize { bytes, ..SnapshotSize::default() }
    }

    /// Describes a snapshot that was sent as datagrams.
    pub fn of<B>(sent: &QueuedSnapshot<B>) -> SnapshotSize {
        let bytes = sent.bytes.min(usize::from(u16::MAX)) as u16;
        SnapshotSize {
            bytes,
            left_out: sent.left_out as u32,
            saw_avatar_right: sent.saw_avatar_right,
            bit_counts: Some(sent.bit_counts),
        }
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

/// Receives every event of a session, in order.
pub trait Observer<G: Game> {
    /// Returns whether the observer looks at what a client draws at this time. Otherwise it need not be drawn.
    fn looks(&mut self, _at: Micros) -> bool {
        true
    }

    /// Something happened at `at`.
    fn event(&mut self, at: Micros, event: SessionEvent<'_, G>);
}

/// An event of a session.
pub enum SessionEvent<'a, G: Game> {
    /// A client drew the others and made a usercmd.
    Frame {
        /// The client's player.
        player: PlayerId,
        /// What the client made.
        output: &'a ClientFrameOutput<G>,
        /// What the client drew.
        screen: ScreenView<'a, G::Body>,
    },
    /// A client sent a packet.
    PacketSent {
        /// The client's player.
        player: PlayerId,
        /// The packet.
        packet: PacketRecord,
    },
    /// A client's packet reached the server.
    PacketReached {
        /// The client's player.
        player: PlayerId,
        /// The packet as the server received it.
        packet: &'a HeardPacket,
    },
    /// The server ran a usercmd, judged a shot, or did something else in a tick.
    Server {
        /// The tick.
        tick: Tick,
        /// What the server did.
        event: &'a Event<G>,
    },
    /// The server finished a tick.
    Ticked {
        /// The tick and its hash.
        outcome: TickOutcome,
        /// The world after the tick.
        world: &'a G::World,
    },
    /// The server sent a snapshot.
    SnapshotSent {
        /// The player who will receive it.
        player: PlayerId,
        /// The snapshot, with the server's frame, and with the effects and warnings that its datagrams carry.
        snapshot: &'a Snapshot<G::Body>,
        /// The snapshot's size.
        size: SnapshotSize,
    },
    /// A snapshot reached its client.
    SnapshotReceived {
        /// The client's player.
        player: PlayerId,
        /// The snapshot.
        snapshot: &'a Snapshot<G::Body>,
        /// The result of reconciliation.
        reconciled: Option<&'a ReconcileOutcome>,
    },
}
