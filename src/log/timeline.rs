//! Cuts a session into chunks: where one ends while recording, and how a whole session is merged in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chunk::{PlayerStretch, Stretch, snapshot_bytes};
use super::error::WriteError;
use super::limits::MAX_RECORD_BYTES;
use super::writer::Options;
use crate::record::{ArrivalRecord, ExecutionRecord, FrameRecord, PacketRecord, Record, Session, TickRecord};
use crate::units::{Micros, Tick};

/// How full the chunk being made is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    options: Options,
    first: Option<Micros>,
    bytes: usize,
}

impl Filling {
    pub(super) fn new(options: Options) -> Filling {
        Filling { options, first: None, bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Begins with the next chunk.
    pub(super) fn restart(&mut self) {
        *self = Filling::new(self.options);
    }

    /// Counts a record of so many bytes in; true when the chunk must end before it.
    pub(super) fn add(&mut self, at: Option<Micros>, bytes: usize) -> Result<bool, WriteError> {
        if bytes > MAX_RECORD_BYTES {
            return Err(WriteError::RecordTooLarge { bytes });
        }
        let span = match (self.first, at) {
            (Some(first), Some(at)) => at.0.abs_diff(first.0),
            _ => 0,
        };
        let too_long = span >= self.options.span.0.unsigned_abs();
        let too_large = self.bytes + bytes > self.options.bytes.min(MAX_RECORD_BYTES);
        let ends = self.bytes > 0 && (too_long || too_large);
        if ends {
            self.restart();
        }
        self.first = self.first.or(at);
        self.bytes += bytes;
        Ok(ends)
    }
}

/// When a record happened, as far as it says so itself, and its size in memory.
pub(super) fn weigh(record: &Record) -> (Option<Micros>, usize) {
    match record {
        Record::Frame(_, r) => (Some(r.at), size_of::<FrameRecord>()),
        Record::Sent(_, r) => (Some(r.at), size_of::<PacketRecord>()),
        Record::Reached(_, r) | Record::Received(_, r) => (Some(r.at), size_of::<ArrivalRecord>()),
        Record::Executed(..) => (None, size_of::<ExecutionRecord>()),
        Record::Snapshot(_, r) => (Some(r.at), snapshot_bytes(r)),
        Record::Tick(r) => (Some(r.at), size_of::<TickRecord>()),
        Record::State(r) => (None, state_bytes(r.cells.len())),
    }
}

fn state_bytes(width: usize) -> usize {
    8 + 4 * width
}

/// A kind of record, in the order in which those of one moment are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Frame,
    Sent,
    Reached,
    Executed,
    State,
    Tick,
    Snapshot,
    Received,
}

/// The records of one kind, of one player or of the server.
#[derive(Clone, Copy, Debug)]
struct Stream {
    kind: Kind,
    player: usize,
    /// The first record of the chunk being made.
    start: usize,
    /// The next record.
    next: usize,
}

/// A whole session as stretches, in time order.
pub(super) struct Timeline<'a> {
    session: &'a Session,
    filling: Filling,
    streams: Vec<Stream>,
    /// The next record of each stream that has one; the earliest first.
    queue: BinaryHeap<Reverse<(Micros, Kind, usize)>>,
    tick_times: Vec<(Tick, Micros)>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(session: &'a Session, options: Options) -> Timeline<'a> {
        let of_players = [Kind::Frame, Kind::Sent, Kind::Reached, Kind::Executed, Kind::Snapshot, Kind::Received];
        let stream = |kind, player| Stream { kind, player, start: 0, next: 0 };
        let mut streams = vec![stream(Kind::State, 0), stream(Kind::Tick, 0)];
        for player in 0..session.players.len() {
            streams.extend(of_players.map(|kind| stream(kind, player)));
        }
        let (filling, tick_times) = (Filling::new(options), tick_times(session));
        let mut timeline = Timeline { session, filling, streams, queue: BinaryHeap::new(), tick_times };
        (0..timeline.streams.len()).for_each(|stream| timeline.enqueue(stream));
        timeline
    }

    fn enqueue(&mut self, index: usize) {
        let stream = self.streams[index];
        if let Some((at, _)) = self.record(stream) {
            // What has no time goes along with what has been taken last.
            self.queue.push(Reverse((at.unwrap_or(Micros(i64::MIN)), stream.kind, index)));
        }
    }

    /// When a stream's next record happened, and its size.
    fn record(&self, stream: Stream) -> Option<(Option<Micros>, usize)> {
        let (session, next) = (self.session, stream.next);
        let player = session.players.get(stream.player);
        match stream.kind {
            Kind::Frame => player?.frames.get(next).map(|r| (Some(r.at), size_of::<FrameRecord>())),
            Kind::Sent => player?.sent.get(next).map(|r| (Some(r.at), size_of::<PacketRecord>())),
            Kind::Reached => player?.reached.get(next).map(|r| (Some(r.at), size_of::<ArrivalRecord>())),
            Kind::Executed => {
                player?.executed.get(next).map(|r| (self.tick_time(r.tick), size_of::<ExecutionRecord>()))
            }
            Kind::Snapshot => player?.snapshots.get(next).map(|r| (Some(r.at), snapshot_bytes(r))),
            Kind::Received => player?.received.get(next).map(|r| (Some(r.at), size_of::<ArrivalRecord>())),
            Kind::Tick => session.ticks.get(next).map(|r| (Some(r.at), size_of::<TickRecord>())),
            Kind::State => {
                let (tick, _) = session.states.keys.get(next)?;
                Some((self.tick_time(*tick), state_bytes(session.states.width)))
            }
        }
    }

    fn tick_time(&self, tick: Tick) -> Option<Micros> {
        let place = self.tick_times.binary_search_by_key(&tick, |&(tick, _)| tick).ok()?;
        Some(self.tick_times[place].1)
    }

    /// What has been taken since the last chunk.
    fn cut(&mut self) -> Stretch<'a> {
        let session = self.session;
        let mut stretch = Stretch {
            players: vec![PlayerStretch::default(); session.players.len()],
            fields: &session.header.fields,
            ..Stretch::default()
        };
        for stream in &mut self.streams {
            let taken = stream.start..stream.next;
            stream.start = stream.next;
            let mut of = session.players.get(stream.player).zip(stretch.players.get_mut(stream.player));
            match (stream.kind, &mut of) {
                (Kind::Frame, Some((from, to))) => to.frames = &from.frames[taken],
                (Kind::Sent, Some((from, to))) => to.sent = &from.sent[taken],
                (Kind::Reached, Some((from, to))) => to.reached = &from.reached[taken],
                (Kind::Executed, Some((from, to))) => to.executed = &from.executed[taken],
                (Kind::Snapshot, Some((from, to))) => to.snapshots = &from.snapshots[taken],
                (Kind::Received, Some((from, to))) => to.received = &from.received[taken],
                (Kind::Tick, _) => stretch.ticks = &session.ticks[taken],
                (Kind::State, _) => {
                    let width = session.states.width;
                    stretch.cells = &session.states.cells[taken.start * width..taken.end * width];
                    stretch.keys = &session.states.keys[taken];
                }
                // A player's stream exists only where the player does.
                (_, None) => {}
            }
        }
        stretch
    }
}

impl<'a> Timeline<'a> {
    /// The next stretch; `None` when there is no record left.
    pub(super) fn next(&mut self) -> Result<Option<Stretch<'a>>, WriteError> {
        while let Some(Reverse((at, _, index))) = self.queue.pop() {
            let Some((_, bytes)) = self.record(self.streams[index]) else { continue };
            let at = Some(at).filter(|at| at.0 != i64::MIN);
            let full = self.filling.add(at, bytes)?.then(|| self.cut());
            self.streams[index].next += 1;
            self.enqueue(index);
            if full.is_some() {
                return Ok(full);
            }
        }
        let last = (!self.filling.is_empty()).then(|| self.cut());
        self.filling.restart();
        Ok(last)
    }
}

/// When each tick was: as the server says, or else by the snapshots that carry it.
fn tick_times(session: &Session) -> Vec<(Tick, Micros)> {
    let mut times: Vec<(Tick, Micros)> = session.ticks.iter().map(|t| (t.tick, t.at)).collect();
    if times.is_empty() {
        let snapshots = session.players.iter().flat_map(|player| &player.snapshots);
        times.extend(snapshots.map(|s| (s.tick, s.at)));
    }
    times.sort_unstable();
    times.dedup_by_key(|&mut (tick, _)| tick);
    times
}
