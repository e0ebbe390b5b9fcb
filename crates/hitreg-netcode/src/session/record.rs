//! Records of a session: from its events, and on to a writer thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::{Observer, SessionEvent};
use crate::game::{ClassId, Game, StateRows};
use crate::history::Frame;
use crate::pipeline::{TickEvent, TickOutcome};
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

hitreg_log::partial_debug!([S: ?Sized, G: Game] SessionRecorder<'_, S, G> {});

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
    fn needs_drawing(&mut self, _at: Micros) -> bool {
        false
    }

    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>) {
        let record = match *event {
            SessionEvent::Frame { player, output, .. } => {
                Record::Frame(player, FrameRecord { at, command: output.command.clone(), ..FrameRecord::default() })
            }
            SessionEvent::PacketSent { player, packet, .. } => Record::Sent(player, packet),
            SessionEvent::PacketReached { player, packet: received } => {
                self.sink.record(Record::Reached(player, ArrivalRecord { number: received.packet.number, at }));
                if !self.heard.contains(&player) {
                    return;
                }
                Record::Heard(player, received.record(at))
            }
            SessionEvent::Server { tick, event } => match *event {
                TickEvent::Executed { player, command, how } => {
                    Record::Executed(player, ExecutionRecord { command, tick, how })
                }
                TickEvent::Presence { player, change } => Record::Presence(player, PresenceRecord { tick, at, change }),
                TickEvent::Judged(_) | TickEvent::Impact { .. } => return,
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

/// The number of records in a batch.
const BATCH_RECORDS: usize = 512;
/// The most batches that may wait; beyond this, the session's thread blocks.
const WAITING_BATCHES_MAX: usize = 64;

/// Hands records in batches to a writer thread, which lays out, compresses and writes them. Dropping it hands over the last
/// batch.
#[derive(Debug)]
pub struct RecordBatcher {
    batch: Vec<Record>,
    full: SyncSender<Vec<Record>>,
    used: Receiver<Vec<Record>>,
}

/// The end of the thread that takes records.
#[derive(Debug)]
pub struct BatchReceiver {
    full: Receiver<Vec<Record>>,
    used: Sender<Vec<Record>>,
}

impl RecordBatcher {
    /// Creates both ends.
    pub fn new() -> (RecordBatcher, BatchReceiver) {
        let ((full, to_take), (used, to_fill)) = (sync_channel(WAITING_BATCHES_MAX), channel());
        let batch = Vec::with_capacity(BATCH_RECORDS);
        (RecordBatcher { batch, full, used: to_fill }, BatchReceiver { full: to_take, used })
    }

    #[cold]
    fn hand_over(&mut self) {
        let empty = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH_RECORDS));
        // A receiver that has ended reports its own error.
        let _ = self.full.send(std::mem::replace(&mut self.batch, empty));
    }
}

impl RecordSink for RecordBatcher {
    #[inline]
    fn record(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == BATCH_RECORDS {
            self.hand_over();
        }
    }
}

impl Drop for RecordBatcher {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl BatchReceiver {
    /// Passes every record to `take`, in order, until there are no more or `take` fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each<E>(self, mut take: impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        for mut batch in self.full {
            batch.drain(..).try_for_each(&mut take)?;
            // The sender may have ended, and then needs no empty batch.
            let _ = self.used.send(batch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::units::Tick;

    fn tick(number: u32) -> Record {
        Record::Tick(TickRecord { tick: Tick(number), at: Micros(number.into()), hash: None })
    }

    #[test]
    fn records_keep_their_order() {
        for count in [0, 1, BATCH_RECORDS as u32, 100_000] {
            let (mut batches, handed) = RecordBatcher::new();
            let taking = std::thread::spawn(move || {
                let mut taken = Vec::new();
                handed.each::<()>(|record| {
                    taken.push(record.clone());
                    Ok(())
                })?;
                Ok::<_, ()>(taken)
            });
            (0..count).for_each(|number| batches.record(tick(number)));
            drop(batches);
            assert_eq!(taking.join().expect("it does not panic"), Ok((0..count).map(tick).collect()));
        }
    }

    #[test]
    fn a_stopped_receiver_stops_no_sender() {
        let (mut batches, handed) = RecordBatcher::new();
        let taking = std::thread::spawn(move || handed.each(|_| Err("full")));
        (0..200_000).for_each(|number| batches.record(tick(number)));
        assert_eq!(taking.join().expect("it does not panic"), Err("full"));
    }
}
