//! Cuts a session into chunks: ends chunks while recording, and merges a whole session in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use super::chunk::SessionSlice;
use super::error::WriteError;
use super::limits::MAX_RECORD_BYTES;
use super::writer::WriterOptions;
use crate::record::{EventTime, OF_PLAYERS, OF_SESSION, RecordStream, Session, UnknownKind, state_bytes};
use crate::units::{Micros, Tick};

/// The fill state of the current chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkFill {
    options: WriterOptions,
    first: Option<Micros>,
    bytes: usize,
}

impl ChunkFill {
    pub(super) fn new(options: WriterOptions) -> ChunkFill {
        ChunkFill { options, first: None, bytes: 0 }
    }

    /// Starts the next chunk.
    pub(super) fn restart(&mut self) {
        *self = ChunkFill::new(self.options);
    }

    /// Counts a record of `bytes` bytes. Returns true if the chunk must end before it.
    pub(super) fn add(&mut self, when: EventTime, bytes: usize) -> Result<bool, WriteError> {
        let at = if let EventTime::At(at) = when { Some(at) } else { None };
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

/// A list of a session. The order is that of records with equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RecordList {
    /// A list of a player: the index of its kind, then the player.
    Player(usize, usize),
    States,
    Own(usize),
    /// Like `Player`, for kinds that follow from a tick.
    After(usize, usize),
    Unknown(usize),
}

/// A list, and how much of it was taken.
#[derive(Clone, Debug)]
struct ListCursor {
    list: RecordList,
    /// From the current chunk's first record to the next record.
    range: Range<usize>,
    /// The time at which the next record is queued.
    queued: Option<Micros>,
}

/// A session in parts, in time order. The session is complete, or it grows after the records already taken.
pub(super) struct Timeline {
    filling: ChunkFill,
    taken: Vec<ListCursor>,
    /// The next record of each list that has one, the earliest first.
    queue: BinaryHeap<Reverse<(Micros, RecordList, usize)>>,
    /// The times of ticks that records may still refer to, ascending.
    tick_times: VecDeque<(Tick, Micros)>,
    /// Whether more ticks may follow.
    grows: bool,
}

impl Timeline {
    /// Returns the timeline of a complete session.
    pub(super) fn whole<H>(session: &Session<H>, kinds: &[UnknownKind], options: WriterOptions) -> Timeline {
        let mut timeline = Timeline { grows: false, ..Timeline::growing(session, options) };
        timeline.tick_times = tick_times(session).into();
        timeline.enqueue_all(session, kinds);
        timeline
    }

    /// Returns the timeline of a growing session. Its lists must already include all kinds that will follow.
    pub(super) fn growing<H>(session: &Session<H>, options: WriterOptions) -> Timeline {
        let after_tick = OF_PLAYERS.iter().position(|(name, _)| *name == "snapshots").unwrap_or(OF_PLAYERS.len());
        let of_player = |player| {
            let list = move |kind| {
                if kind < after_tick { RecordList::Player(kind, player) } else { RecordList::After(kind, player) }
            };
            (0..OF_PLAYERS.len()).map(list)
        };
        let mut lists = vec![RecordList::States];
        lists.extend((0..OF_SESSION.len()).map(RecordList::Own));
        lists.extend((0..session.unknown.len()).map(RecordList::Unknown));
        lists.extend((0..session.players.len()).flat_map(of_player));
        let taken = lists.into_iter().map(|list| ListCursor { list, range: 0..0, queued: None }).collect();
        let (filling, queue, tick_times) = (ChunkFill::new(options), BinaryHeap::new(), VecDeque::new());
        Timeline { filling, taken, queue, tick_times, grows: true }
    }

    /// Handles growth of the session; `ticks` are its next ticks.
    pub(super) fn enqueue_added<H>(&mut self, session: &Session<H>, kinds: &[UnknownKind], ticks: &[(Tick, Micros)]) {
        self.tick_times.extend(ticks);
        self.enqueue_all(session, kinds);
    }

    /// Handles the end of growth.
    pub(super) fn finish_input<H>(&mut self, session: &Session<H>, kinds: &[UnknownKind]) {
        self.grows = false;
        self.enqueue_all(session, kinds);
    }

    fn enqueue_all<H>(&mut self, session: &Session<H>, kinds: &[UnknownKind]) {
        for index in 0..self.taken.len() {
            // Lists that are sorted on arrival may have another record in front.
            let may_change = matches!(self.taken[index].list, RecordList::States | RecordList::Unknown(_));
            if self.taken[index].queued.is_none() || may_change {
                self.enqueue(session, kinds, index);
            }
        }
    }

    fn enqueue<H>(&mut self, session: &Session<H>, kinds: &[UnknownKind], index: usize) {
        let ListCursor { list, range, queued } = &self.taken[index];
        let Some((when, _)) = record(session, kinds, *list, range.end) else { return };
        let at = match when {
            Some(EventTime::At(at)) => at,
            Some(EventTime::In(tick)) => match self.tick_time(tick) {
                Some(at) => at,
                None if self.grows && self.tick_times.back().is_none_or(|(last, _)| *last < tick) => return,
                None => UNTIMED,
            },
            None => UNTIMED,
        };
        if *queued != Some(at) {
            self.queue.push(Reverse((at, *list, index)));
            self.taken[index].queued = Some(at);
        }
    }

    fn tick_time(&self, tick: Tick) -> Option<Micros> {
        let place = self.tick_times.binary_search_by_key(&tick, |&(tick, _)| tick).ok()?;
        Some(self.tick_times[place].1)
    }

    /// Returns the records taken since the last chunk.
    fn cut<'a, H>(&mut self, session: &'a Session<H>) -> SessionSlice<'a> {
        let mut part = SessionSlice::none(session);
        for ListCursor { list, range, .. } in &mut self.taken {
            let of_chunk = std::mem::replace(range, range.end..range.end);
            match *list {
                RecordList::Player(kind, player) | RecordList::After(kind, player) => {
                    part.players[player][kind] = of_chunk
                }
                RecordList::Own(kind) => part.own[kind] = of_chunk,
                RecordList::States => part.states = of_chunk,
                RecordList::Unknown(which) => part.unknown[which] = of_chunk,
            }
        }
        part
    }

    /// Returns the next full part of the records before `until`, or of all records; `None` if no more parts are full.
    pub(super) fn next<'a, H>(
        &mut self,
        session: &'a Session<H>,
        kinds: &[UnknownKind],
        until: Option<Micros>,
    ) -> Result<Option<SessionSlice<'a>>, WriteError> {
        let is_due = |at: Micros| until.is_none_or(|until| at < until);
        while let Some(&Reverse((at, list, index))) = self.queue.peek().filter(|Reverse((at, ..))| is_due(*at)) {
            self.queue.pop();
            if self.taken[index].queued != Some(at) {
                continue;
            }
            self.taken[index].queued = None;
            let Some((_, bytes)) = record(session, kinds, list, self.taken[index].range.end) else { continue };
            let when = if at == UNTIMED { EventTime::In(Tick(0)) } else { EventTime::At(at) };
            let full = self.filling.add(when, bytes)?.then(|| self.cut(session));
            self.taken[index].range.end += 1;
            self.enqueue(session, kinds, index);
            if full.is_some() {
                return Ok(full);
            }
        }
        Ok(None)
    }

    /// Returns the records taken for a part that is not full.
    pub(super) fn last<'a, H>(&mut self, session: &'a Session<H>) -> Option<SessionSlice<'a>> {
        let last = (self.filling.bytes > 0).then(|| self.cut(session));
        self.filling.restart();
        last
    }

    /// Removes the records that parts already hold, and the ticks before `before`, from the session.
    pub(super) fn forget<H>(&mut self, session: &mut Session<H>, before: Micros) {
        for ListCursor { list, range, .. } in &mut self.taken {
            let passed = range.start;
            *range = 0..range.end - passed;
            match *list {
                RecordList::Player(kind, player) | RecordList::After(kind, player) => {
                    session.players[player].streams_mut()[kind].drop_first(passed);
                }
                RecordList::Own(kind) => session.streams_mut()[kind].drop_first(passed),
                RecordList::States => session.states.drop_first(passed),
                RecordList::Unknown(which) => session.unknown[which].drop_first(passed),
            }
        }
        let passed = self.tick_times.partition_point(|(_, at)| *at < before);
        self.tick_times.drain(..passed);
    }
}

/// The time of records without a time; they join the records taken last.
const UNTIMED: Micros = Micros(i64::MIN);

/// Returns the time of a list's record, if known, and its size; `None` after the last record.
fn record<H>(
    session: &Session<H>,
    kinds: &[UnknownKind],
    list: RecordList,
    index: usize,
) -> Option<(Option<EventTime>, usize)> {
    let of = |stream: &dyn RecordStream| Some((Some(stream.when(index)?), stream.bytes(index..index + 1)));
    match list {
        RecordList::Player(kind, player) | RecordList::After(kind, player) => {
            of(session.players.get(player)?.streams()[kind])
        }
        RecordList::Own(kind) => of(session.streams()[kind]),
        RecordList::States => {
            let key = session.states.keys().get(index)?;
            Some((Some(EventTime::In(key.tick)), state_bytes(session.states.cells_of(index).len())))
        }
        RecordList::Unknown(which) => {
            let records = session.unknown.get(which).filter(|records| index < records.len())?;
            // Rows of a kind that the header does not declare are not written.
            kinds.iter().find(|kind| kind.name == records.kind)?;
            let at = records.times(kinds).map(|times| EventTime::At(Micros(times[index])));
            Some((at, size_of::<i64>() * (1 + records.columns.len())))
        }
    }
}

/// Returns the time of each tick from the server's ticks, or else from the snapshots.
fn tick_times<H>(session: &Session<H>) -> Vec<(Tick, Micros)> {
    let mut times: Vec<(Tick, Micros)> = session.ticks.iter().map(|t| (t.tick, t.at)).collect();
    if times.is_empty() {
        let snapshots = session.players.iter().flat_map(|player| &player.snapshots);
        times.extend(snapshots.map(|s| (s.tick, s.at)));
    }
    times.sort_unstable();
    times.dedup_by_key(|&mut (tick, _)| tick);
    times
}
