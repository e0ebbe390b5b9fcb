//! Converts the events of a session into log records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Observer, ScreenView, SnapshotSize};
use crate::game::{ClassId, Game, StateRows};
use crate::history::Frame;
use crate::packet::{HeardPacket, Snapshot};
use crate::pipeline::{ClientFrameOutput, ReconcileOutcome, TickOutcome};
use hitreg_log::record::{
    ArrivalRecord, Execution, ExecutionRecord, FrameRecord, PacketRecord, Presence, PresenceRecord, Record,
    SnapshotRecord, StateRecord, TickRecord, Timing,
};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

/// Takes the records of a session.
pub trait RecordSink {
    /// Takes one record. A sink that fails keeps its error and reports it at its end.
    fn record(&mut self, record: Record);
}

impl RecordSink for hitreg_log::record::Session {
    fn record(&mut self, record: Record) {
        let pushed = self.push(record);
        debug_assert_eq!(pushed, Ok(()), "a session's own recorder knows its header");
    }
}

/// An [`Observer`] that records.
pub struct SessionRecorder<'a, S: ?Sized, G: Game> {
    sink: &'a mut S,
    rows: StateRows,
    /// The states of the last tick that were the same for every client that received the entity.
    shared: BTreeMap<EntityId, (ClassId, Vec<u32>)>,
    /// Unused cell vectors, kept for reuse.
    spare: Vec<Vec<u32>>,
    /// The last recorded snapshot's frame. Most servers send the same frame to all clients.
    last: Option<Arc<Frame<G::Body>>>,
    /// Players whose packets are also recorded as the server received them.
    heard: BTreeSet<PlayerId>,
}

impl<'a, S: RecordSink + ?Sized, G: Game> SessionRecorder<'a, S, G> {
    /// Creates a recorder that writes into `sink`.
    pub fn new(sink: &'a mut S) -> SessionRecorder<'a, S, G> {
        let (shared, spare) = (BTreeMap::new(), Vec::new());
        SessionRecorder { sink, rows: StateRows::own::<G>(), shared, spare, last: None, heard: BTreeSet::new() }
    }

    /// Also records the contents of these players' packets as the server received them. A log needs them when it is
    /// replayed without those clients' own records.
    #[must_use]
    pub fn hearing(mut self, players: impl IntoIterator<Item = PlayerId>) -> Self {
        self.heard.extend(players);
        self
    }

    /// Records those states of a snapshot that no earlier snapshot of this tick had: new states, and states that only
    /// this client receives.
    fn states(&mut self, viewer: PlayerId, frame: &Arc<Frame<G::Body>>) {
        let tick = frame.tick;
        match self.last.replace(Arc::clone(frame)) {
            Some(last) if Arc::ptr_eq(&last, frame) => return,
            Some(last) if last.tick == tick => {}
            _ => self.spare.extend(std::mem::take(&mut self.shared).into_values().map(|(_, cells)| cells)),
        }
        for (entity, body) in &frame.entities {
            let mut cells = Vec::new();
            let class = self.rows.write::<G>(body, &mut cells);
            let viewer = match self.shared.get(entity) {
                Some((of, shared)) if (*of, shared) == (class, &cells) => continue,
                Some(_) => Some(viewer),
                None => None,
            };
            if viewer.is_none() {
                let mut kept = self.spare.pop().unwrap_or_default();
                kept.clone_from(&cells);
                self.shared.insert(*entity, (class, kept));
            }
            self.sink.record(Record::State(StateRecord { tick, viewer, entity: *entity, class, cells }));
        }
    }
}

impl<G: Game, S: RecordSink + ?Sized> Observer<G> for SessionRecorder<'_, S, G> {
    /// A log does not contain what clients draw.
    fn looks(&mut self, _at: Micros) -> bool {
        false
    }

    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &ClientFrameOutput<G>, _: &ScreenView<'_, G::Body>) {
        self.sink.record(Record::Frame(player, FrameRecord { at, command: commanded.command.clone() }));
    }

    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {
        self.sink.record(Record::Sent(player, packet));
    }

    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {
        self.sink.record(Record::Reached(player, arrival));
    }

    fn packet_heard(&mut self, player: PlayerId, at: Micros, heard: &HeardPacket) {
        if self.heard.contains(&player) {
            self.sink.record(Record::Heard(player, heard.record(at)));
        }
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        self.sink.record(Record::Executed(player, ExecutionRecord { command, tick, how }));
    }

    fn presence(&mut self, player: PlayerId, at: Micros, tick: Tick, change: Presence) {
        self.sink.record(Record::Presence(player, PresenceRecord { tick, at, change }));
    }

    fn ticked(&mut self, at: Micros, ticked: TickOutcome, _world: &G::World) {
        self.sink.record(Record::Tick(TickRecord { tick: ticked.tick, at, hash: Some(ticked.hash) }));
    }

    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, packed: SnapshotSize) {
        let frame = &snapshot.frame;
        self.states(player, frame);
        let record = SnapshotRecord {
            seq: snapshot.seq,
            tick: frame.tick,
            at,
            server_time: frame.server_time,
            ack: snapshot.ack,
            bytes: packed.bytes,
            choked: snapshot.choked,
            entities: frame.entities.iter().map(|(id, _)| *id).collect(),
            effects: snapshot.effects.clone(),
            extra: Vec::new(),
            timing: Timing::new(snapshot.helper_ms, snapshot.warnings.clone()),
        };
        self.sink.record(Record::Snapshot(player, record));
    }

    fn snapshot_received(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        _: Option<&ReconcileOutcome>,
    ) {
        self.sink.record(Record::Received(player, ArrivalRecord { number: snapshot.seq.0, at }));
    }
}
