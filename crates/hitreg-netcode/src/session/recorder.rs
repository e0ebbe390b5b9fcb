//! Converts the events of a session into log records.

use std::sync::Arc;

use super::{Observer, SessionEvent};
use crate::game::{ClassId, Game, StateRows};
use crate::history::Frame;
use crate::pipeline::{Event, TickOutcome};
use hitreg_log::record::{
    ArrivalRecord, ExecutionRecord, FrameRecord, PresenceRecord, Record, SnapshotRecord, StateRecord, TickRecord,
    Timing,
};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::{EntityId, Micros, PlayerId};

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
    shared: SortedMap<EntityId, (ClassId, Vec<u32>)>,
    /// Unused cell vectors, kept for reuse.
    spare: Vec<Vec<u32>>,
    /// The last recorded snapshot's frame. Most servers send the same frame to all clients.
    last: Option<Arc<Frame<G::Body>>>,
    /// Players whose packets are also recorded as the server received them.
    heard: SortedSet<PlayerId>,
}

impl<'a, S: RecordSink + ?Sized, G: Game> SessionRecorder<'a, S, G> {
    /// Creates a recorder that writes into `sink`.
    pub fn new(sink: &'a mut S) -> SessionRecorder<'a, S, G> {
        let (shared, spare) = (SortedMap::new(), Vec::new());
        SessionRecorder { sink, rows: StateRows::own::<G>(), shared, spare, last: None, heard: SortedSet::new() }
    }

    /// Also records the contents of these players' packets as the server received them. A log needs them when it is
    /// replayed without those clients' own records.
    #[must_use]
    pub fn with_heard(mut self, players: impl IntoIterator<Item = PlayerId>) -> Self {
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

    fn event(&mut self, at: Micros, event: SessionEvent<'_, G>) {
        let record = match event {
            SessionEvent::Frame { player, output, .. } => {
                Record::Frame(player, FrameRecord { at, command: output.command.clone() })
            }
            SessionEvent::PacketSent { player, packet } => Record::Sent(player, packet),
            SessionEvent::PacketReached { player, packet: heard } => {
                self.sink.record(Record::Reached(player, ArrivalRecord { number: heard.packet.number, at }));
                if !self.heard.contains(&player) {
                    return;
                }
                Record::Heard(player, heard.record(at))
            }
            SessionEvent::Server { tick, event } => match *event {
                Event::Executed { player, command, how } => {
                    Record::Executed(player, ExecutionRecord { command, tick, how })
                }
                Event::Presence { player, change } => Record::Presence(player, PresenceRecord { tick, at, change }),
                Event::Judged(_) | Event::Impact { .. } => return,
            },
            SessionEvent::Ticked { outcome: TickOutcome { tick, hash }, .. } => {
                Record::Tick(TickRecord { tick, at, hash: Some(hash) })
            }
            SessionEvent::SnapshotSent { player, snapshot, size } => {
                let frame = &snapshot.frame;
                self.states(player, frame);
                let record = SnapshotRecord {
                    seq: snapshot.seq,
                    tick: frame.tick,
                    at,
                    server_time: frame.server_time,
                    ack: snapshot.ack,
                    bytes: size.bytes,
                    choked: snapshot.choked,
                    entities: frame.entities.iter().map(|(id, _)| *id).collect(),
                    effects: snapshot.effects.clone(),
                    extra: Vec::new(),
                    timing: Timing::new(snapshot.helper_ms, snapshot.warnings.clone()),
                };
                Record::Snapshot(player, record)
            }
            SessionEvent::SnapshotReceived { player, snapshot, .. } => {
                Record::Received(player, ArrivalRecord { number: snapshot.seq.0, at })
            }
        };
        self.sink.record(record);
    }
}
