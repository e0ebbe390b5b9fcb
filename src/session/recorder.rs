//! Turns what happens in a session into log records.

use super::{Observer, Shown};
use crate::game::{Body, Game};
use crate::packet::Snapshot;
use crate::pipeline::{Commanded, Reconciled, Ticked};
use crate::record::{
    ArrivalRecord, Execution, ExecutionRecord, FrameRecord, PacketRecord, Record, SnapshotRecord, StateRecord,
    TickRecord, Timing,
};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// Takes records as they come.
pub trait RecordSink {
    /// Takes one record. A sink that failed keeps its error and says so at its end.
    fn record(&mut self, record: Record);
}

impl RecordSink for crate::record::Session {
    fn record(&mut self, record: Record) {
        let pushed = self.push(record);
        debug_assert_eq!(pushed, Ok(()), "a session's own recorder knows its header");
    }
}

/// An [`Observer`] that records.
pub struct Recorder<'a, S> {
    sink: &'a mut S,
    /// The last tick whose states were recorded.
    states_of: Option<Tick>,
}

impl<'a, S: RecordSink> Recorder<'a, S> {
    /// A recorder into `sink`.
    pub fn new(sink: &'a mut S) -> Recorder<'a, S> {
        Recorder { sink, states_of: None }
    }
}

impl<G: Game, S: RecordSink> Observer<G> for Recorder<'_, S> {
    fn frame(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>, _: &Shown<'_, G::Body>) {
        self.sink.record(Record::Frame(player, FrameRecord { at, command: commanded.command }));
    }

    fn packet_sent(&mut self, player: PlayerId, packet: PacketRecord) {
        self.sink.record(Record::Sent(player, packet));
    }

    fn packet_reached(&mut self, player: PlayerId, arrival: ArrivalRecord) {
        self.sink.record(Record::Reached(player, arrival));
    }

    fn executed(&mut self, player: PlayerId, command: CommandSeq, tick: Tick, how: Execution) {
        self.sink.record(Record::Executed(player, ExecutionRecord { command, tick, how }));
    }

    fn ticked(&mut self, at: Micros, ticked: Ticked, _world: &G::World) {
        self.sink.record(Record::Tick(TickRecord { tick: ticked.tick, at, hash: Some(ticked.hash) }));
    }

    fn snapshot_sent(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>, bytes: u16) {
        let frame = &snapshot.frame;
        if self.states_of != Some(frame.tick) {
            self.states_of = Some(frame.tick);
            for (entity, body) in &frame.entities {
                let mut cells = vec![0; G::Body::CELLS];
                body.write(&mut cells);
                self.sink.record(Record::State(StateRecord { tick: frame.tick, entity: *entity, cells }));
            }
        }
        let record = SnapshotRecord {
            seq: snapshot.seq,
            tick: frame.tick,
            at,
            server_time: frame.server_time,
            ack: snapshot.ack,
            bytes,
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
        _: Option<&Reconciled>,
    ) {
        self.sink.record(Record::Received(player, ArrivalRecord { number: snapshot.seq.0, at }));
    }
}
