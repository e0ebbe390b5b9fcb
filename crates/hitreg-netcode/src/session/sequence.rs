//! The steps of a tick and of a client frame: the order of pipeline calls, observer calls and sends. Live sessions,
//! synthetic sessions and replays share this code. They differ only in how packets travel ([`ServerEnds`],
//! [`ClientEnd`]).
//!
//! An [`Observer`] sees every event: recorders, tables, progress.

use std::sync::Arc;

use glam::Vec3;

use crate::game::{Body, Game, PlacedBody};
use crate::history::Frame;
use crate::packet::{ClientPacket, ReceivedPacket, Snapshot};
use crate::pipeline::{ClientFrameOutput, ClientPipeline, ReconcileOutcome, ServerPipeline, TickEvent, TickOutcome};
use crate::wire::{EncodeError, QueuedSnapshot, SnapshotBitCounts};
use hitreg_log::record::PacketRecord;
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Input;

/// A player's screen.
#[derive(Debug)]
pub struct PlayerScreen<'a, G: Game> {
    /// The player.
    pub player: PlayerId,
    /// The predicted own body; `None` before the first snapshot.
    pub own: Option<&'a G::Body>,
    /// The other entities as drawn, in ascending order of entity.
    pub others: &'a [(EntityId, PlacedBody<G::Body>)],
}

/// The server's ends of all connections.
pub trait ServerEnds<B> {
    /// The server ticked.
    fn ticked(&mut self, _at: Micros) {}

    /// Prepares a snapshot for sending, and sets its effects and warnings to those that are sent with it.
    fn pack(&mut self, at: Micros, player: PlayerId, snapshot: &mut Snapshot<B>) -> PackedSnapshot<B>;

    /// Sends the snapshot that was prepared last.
    fn send(&mut self, at: Micros, player: PlayerId, snapshot: Snapshot<B>);
}

/// A snapshot that is ready to send.
#[derive(Clone, Debug)]
pub struct PackedSnapshot<B> {
    /// The frame that the client has once it arrives, if no earlier one was lost; `None` when it cannot be sent.
    pub frame: Option<Arc<Frame<B>>>,
    /// Its datagrams; `None` when no datagrams are made.
    pub size: Option<SnapshotSize>,
}

impl<B> PackedSnapshot<B> {
    /// Packs a snapshot with all of its frame.
    pub fn whole(snapshot: &Snapshot<B>, size: Option<SnapshotSize>) -> PackedSnapshot<B> {
        PackedSnapshot { frame: Some(Arc::clone(&snapshot.frame)), size }
    }

    /// Packs a snapshot as datagrams. A snapshot that cannot be sent has a size of 0 bytes, and never arrives.
    pub fn encoded(queued: Result<QueuedSnapshot<B>, EncodeError>) -> PackedSnapshot<B> {
        let size = queued.as_ref().map_or_else(|_| SnapshotSize::default(), SnapshotSize::of);
        PackedSnapshot { frame: queued.ok().map(|queued| queued.frame), size: Some(size) }
    }
}

/// A client's end of its connection.
pub trait ClientEnd {
    /// Prepares a packet for sending and returns the size of its datagram in bytes. It then sets the packet's ack to
    /// the connection's. Returns `None` when no datagram is made. `predicted` is the predicted origin of the client's
    /// own body.
    fn pack(&mut self, at: Micros, packet: &mut ClientPacket, predicted: Option<Vec3>) -> Option<u16>;

    /// Sends the packet that was prepared last. Returns whether it will arrive; false if the link does not know that.
    fn send(&mut self, at: Micros, packet: ClientPacket) -> bool;
}

/// Runs one tick of the server and sends the snapshots that are due.
pub fn tick<G: Game>(
    server: &mut impl ServerPipeline<G>,
    ends: &mut impl ServerEnds<G::Body>,
    at: Micros,
    observer: &mut dyn Observer<G>,
) {
    let outcome = server.tick(at);
    let tick = outcome.tick;
    ends.ticked(at);
    while let Some(event) = server.poll_event() {
        observer.event(at, &SessionEvent::Server { tick, event: &event });
    }
    observer.event(at, &SessionEvent::Ticked { outcome, world: server.world() });
    while let Some((player, mut snapshot)) = server.poll_snapshot() {
        let PackedSnapshot { frame, size } = ends.pack(at, player, &mut snapshot);
        if let Some(frame) = frame {
            server.handle_sent(player, frame, size.map(|size| size.bytes));
        }
        let size = size.unwrap_or_else(|| SnapshotSize::nominal(snapshot.nominal_bytes()));
        observer.event(at, &SessionEvent::SnapshotSent { player, snapshot: &snapshot, size });
        ends.send(at, player, snapshot);
    }
}

/// Passes a client's packet to the server.
pub fn packet_reached<G: Game>(
    server: &mut impl ServerPipeline<G>,
    at: Micros,
    player: PlayerId,
    received: ReceivedPacket,
    observer: &mut dyn Observer<G>,
) {
    observer.event(at, &SessionEvent::PacketReached { player, packet: &received });
    server.handle_packet(at, player, received.packet);
}

/// How a frame gets its input.
#[derive(Debug)]
pub struct FrameInput<F> {
    /// Whether the input depends on what is drawn.
    pub needs_drawing: bool,
    /// Returns the input, given the screen.
    pub read: F,
}

/// Runs one frame of a client: it draws, takes the player's input, and sends a packet.
pub fn frame<G: Game>(
    client: &mut impl ClientPipeline<G>,
    end: &mut impl ClientEnd,
    at: Micros,
    player: PlayerId,
    input: FrameInput<impl FnOnce(&PlayerScreen<'_, G>) -> Input>,
    observer: &mut dyn Observer<G>,
) {
    // The observer is always asked, because it may record the time.
    if observer.needs_drawing(at) || input.needs_drawing {
        client.draw_others(at);
    } else {
        client.skip_drawing(at);
    }
    let input = (input.read)(&PlayerScreen { player, own: client.predicted(), others: client.drawn() });
    let output = client.command(at, &input);
    let screen = ScreenView { drawn: client.drawn(), drawn_at: client.drawn_at() };
    observer.event(at, &SessionEvent::Frame { player, output: &output, screen });
    let predicted = output.predicted.as_ref().map(Body::position_f32);
    let mut packet = output.packet;
    let packed = end.pack(at, &mut packet, predicted);
    if let Some(bytes) = packed {
        client.handle_sent(&packet, bytes);
    }
    let record = packet.record(at, packed.unwrap_or_else(|| packet.nominal_bytes()));
    let will_arrive = end.send(at, packet);
    if let Some(packet) = record {
        observer.event(at, &SessionEvent::PacketSent { player, packet, will_arrive });
    }
}

/// Passes a snapshot to its client. Returns whether it corrected a compared prediction.
pub fn snapshot_received<G: Game>(
    client: &mut impl ClientPipeline<G>,
    at: Micros,
    player: PlayerId,
    snapshot: &Snapshot<G::Body>,
    observer: &mut dyn Observer<G>,
) -> bool {
    let reconciled = client.handle_snapshot(at, snapshot);
    observer.event(at, &SessionEvent::SnapshotReceived { player, snapshot, reconciled: reconciled.as_ref() });
    reconciled.is_some_and(|outcome| outcome.comparison.is_some() && outcome.correction.is_some())
}

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
    /// Returns whether the observer uses what a client draws at this time. See [`FrameInput::needs_drawing`].
    fn needs_drawing(&mut self, _at: Micros) -> bool {
        true
    }

    /// Returns whether the session needs no more input.
    fn is_over(&self) -> bool {
        false
    }

    /// Something happened at `at`.
    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>);
}

/// An event of a session.
#[derive(Debug)]
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
        /// Whether the packet will arrive. False if that is not known yet, as in a live session.
        will_arrive: bool,
    },
    /// A client's packet reached the server.
    PacketReached {
        /// The client's player.
        player: PlayerId,
        /// The packet as the server received it.
        packet: &'a ReceivedPacket,
    },
    /// The server ran a usercmd, judged a shot, or did something else in a tick.
    Server {
        /// The tick.
        tick: Tick,
        /// What the server did.
        event: &'a TickEvent<G>,
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
