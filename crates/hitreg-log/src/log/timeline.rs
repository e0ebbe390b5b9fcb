//! Cuts a session into chunks: ends chunks while recording, and merges a whole session in time order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use super::chunk::SessionSlice;
use super::error::MAX_RECORD_BYTES;
use super::error::WriteError;
use super::writer::WriterOptions;
use crate::record::{EventTime, OF_PLAYERS, OF_SESSION, RecordStream, Session, UnknownKind};
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

/// The kinds of lists. The order is that of records with equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListGroup {
    /// A list of a player.
    Player,
    States,
    Own,
    /// A list of a player whose records follow from a tick.
    AfterTick,
    Unknown,
}

/// The order of records with equal times: the group of their list, then the index of its kind, then the player.
type ListRank = (ListGroup, usize, usize);

/// A list of a session, and how much of it was taken.
#[derive(Clone, Debug)]
struct ListCursor {
    rank: ListRank,
    /// Whether the header declares the kind. Rows of other kinds are not written.
    is_declared: bool,
    /// From the current chunk's first record to the next record.
    range: Range<usize>,
    /// The time at which the next record is queued.
    queued: Option<Micros>,
}

/// A session in parts, in time order. The session is complete, or it grows after the records already taken.
pub(super) struct Timeline {
    filling: ChunkFill,
    /// In the order of [`Session::lists`].
    taken: Vec<ListCursor>,
    /// The next record of each list that has one, the earliest first, with the index of the list.
    queue: BinaryHeap<Reverse<(Micros, ListRank, usize)>>,
    /// The times of ticks that records may still refer to, ascending.
    tick_times: VecDeque<(Tick, Micros)>,
    /// Whether more ticks may follow.
    grows: bool,
}

impl Timeline {
    /// Returns the timeline of a complete session. `kinds` are the unknown kinds that its header declares.
    pub(super) fn whole<H>(session: &Session<H>, kinds: &[UnknownKind], options: WriterOptions) -> Timeline {
        let mut timeline = Timeline::growing(session, kinds, options);
        timeline.tick_times = tick_times(session).into();
        timeline.finish_input(session);
        timeline
    }

    /// Returns the timeline of a growing session. Its lists must already include all kinds that will follow.
    pub(super) fn growing<H>(session: &Session<H>, kinds: &[UnknownKind], options: WriterOptions) -> Timeline {
        let after_tick = OF_PLAYERS.iter().position(|(name, _)| *name == "snapshots").unwrap_or(OF_PLAYERS.len());
        let group = |kind| if kind < after_tick { ListGroup::Player } else { ListGroup::AfterTick };
        let of_player = |player| (0..OF_PLAYERS.len()).map(move |kind| ((group(kind), kind, player), true));
        let is_declared = |name: &str| kinds.iter().any(|kind| kind.name == name);
        let unknown = session.unknown.iter().enumerate();
        let unknown = unknown.map(|(kind, of)| ((ListGroup::Unknown, kind, 0), is_declared(&of.kind)));
        let lists = (0..session.players.len()).flat_map(of_player);
        let lists = lists.chain((0..OF_SESSION.len()).map(|kind| ((ListGroup::Own, kind, 0), true)));
        let lists = lists.chain([((ListGroup::States, 0, 0), true)]).chain(unknown);
        let taken = lists.map(|(rank, is_declared)| ListCursor { rank, is_declared, range: 0..0, queued: None });
        let (taken, filling) = (taken.collect(), ChunkFill::new(options));
        Timeline { filling, taken, queue: BinaryHeap::new(), tick_times: VecDeque::new(), grows: true }
    }

    /// Handles growth of the session; `ticks` are its next ticks.
    pub(super) fn enqueue_added<H>(&mut self, session: &Session<H>, ticks: &[(Tick, Micros)]) {
        self.tick_times.extend(ticks);
        self.enqueue_all(session);
    }

    /// Handles the end of growth.
    pub(super) fn finish_input<H>(&mut self, session: &Session<H>) {
        self.grows = false;
        self.enqueue_all(session);
    }

    fn enqueue_all<H>(&mut self, session: &Session<H>) {
        for (index, list) in session.lists().enumerate().take(self.taken.len()) {
            let ListCursor { rank: (group, ..), queued, .. } = self.taken[index];
            // Lists that are sorted on arrival may have another record in front.
            if queued.is_none() || matches!(group, ListGroup::States | ListGroup::Unknown) {
                self.enqueue(list, index);
            }
        }
    }

    fn enqueue(&mut self, list: &dyn RecordStream, index: usize) {
        let ListCursor { rank, is_declared, ref range, queued } = self.taken[index];
        if range.end >= list.len() || !is_declared {
            return;
        }
        let at = match list.when(range.end) {
            Some(EventTime::At(at)) => at,
            Some(EventTime::In(tick)) => match self.tick_time(tick) {
                Some(at) => at,
                None if self.grows && self.tick_times.back().is_none_or(|(last, _)| *last < tick) => return,
                None => UNTIMED,
            },
            None => UNTIMED,
        };
        if queued != Some(at) {
            self.queue.push(Reverse((at, rank, index)));
            self.taken[index].queued = Some(at);
        }
    }

    fn tick_time(&self, tick: Tick) -> Option<Micros> {
        let place = self.tick_times.binary_search_by_key(&tick, |&(tick, _)| tick).ok()?;
        Some(self.tick_times[place].1)
    }

    /// Returns the records taken since the last chunk.
    fn cut<'a, H>(&mut self, session: &'a Session<H>) -> SessionSlice<'a> {
        let cut = |ListCursor { range, .. }: &mut ListCursor| std::mem::replace(range, range.end..range.end);
        SessionSlice::new(session, self.taken.iter_mut().map(cut))
    }

    /// Returns the next full part of the records before `until`, or of all records; `None` if no more parts are full.
    pub(super) fn next<'a, H>(
        &mut self,
        session: &'a Session<H>,
        until: Option<Micros>,
    ) -> Result<Option<SessionSlice<'a>>, WriteError> {
        let lists: Vec<&dyn RecordStream> = session.lists().collect();
        let is_due = |at: Micros| until.is_none_or(|until| at < until);
        while let Some(&Reverse((at, _, index))) = self.queue.peek().filter(|Reverse((at, ..))| is_due(*at)) {
            self.queue.pop();
            if self.taken[index].queued != Some(at) {
                continue;
            }
            self.taken[index].queued = None;
            let row = self.taken[index].range.end;
            let when = if at == UNTIMED { EventTime::In(Tick(0)) } else { EventTime::At(at) };
            let full = self.filling.add(when, lists[index].bytes(row..row + 1))?.then(|| self.cut(session));
            self.taken[index].range.end += 1;
            self.enqueue(lists[index], index);
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
        for (ListCursor { range, .. }, list) in self.taken.iter_mut().zip(session.lists_mut()) {
            list.drop_first(range.start);
            *range = 0..range.len();
        }
        let passed = self.tick_times.partition_point(|(_, at)| *at < before);
        self.tick_times.drain(..passed);
    }
}

/// The time of records without a time; they join the records taken last.
const UNTIMED: Micros = Micros(i64::MIN);

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
