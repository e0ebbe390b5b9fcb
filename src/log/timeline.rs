//! Cuts a session into chunks: where one ends while recording, and how a whole session is merged in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::chunk::Part;
use super::error::WriteError;
use super::limits::MAX_RECORD_BYTES;
use super::writer::Options;
use crate::record::{Header, OF_PLAYERS, OF_SESSION, Session, Stream, When, state_bytes};
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
    pub(super) fn add(&mut self, when: When, bytes: usize) -> Result<bool, WriteError> {
        let at = if let When::At(at) = when { Some(at) } else { None };
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

/// Which list of a session, in the order in which records of one moment are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    /// Of a player: its place among the kinds, then the player.
    Player(usize, usize),
    States,
    Own(usize),
    /// A player's kinds that follow from a tick.
    After(usize, usize),
    Unknown(usize),
}

/// A list, and how far it has been taken.
#[derive(Clone, Debug)]
struct Taken {
    list: List,
    /// From the first record of the chunk being made to the next record.
    range: Range<usize>,
}

/// A whole session as parts, in time order.
pub(super) struct Timeline<'a> {
    session: &'a Session,
    filling: Filling,
    taken: Vec<Taken>,
    /// The next record of each list that has one; the earliest first.
    queue: BinaryHeap<Reverse<(Micros, List, usize)>>,
    tick_times: Vec<(Tick, Micros)>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(session: &'a Session, options: Options) -> Timeline<'a> {
        let after_tick = OF_PLAYERS.iter().position(|(name, _)| *name == "snapshots").unwrap_or(OF_PLAYERS.len());
        let of_player = |player| {
            let list =
                move |kind| if kind < after_tick { List::Player(kind, player) } else { List::After(kind, player) };
            (0..OF_PLAYERS.len()).map(list)
        };
        let mut lists = vec![List::States];
        lists.extend((0..OF_SESSION.len()).map(List::Own));
        lists.extend((0..session.unknown.len()).map(List::Unknown));
        lists.extend((0..session.players.len()).flat_map(of_player));
        let taken = lists.into_iter().map(|list| Taken { list, range: 0..0 }).collect();
        let (filling, tick_times) = (Filling::new(options), tick_times(session));
        let mut timeline = Timeline { session, filling, taken, queue: BinaryHeap::new(), tick_times };
        (0..timeline.taken.len()).for_each(|index| timeline.enqueue(index));
        timeline
    }

    fn enqueue(&mut self, index: usize) {
        let Taken { list, range } = &self.taken[index];
        if let Some((at, _)) = self.record(*list, range.end) {
            // What has no time goes along with what has been taken last.
            self.queue.push(Reverse((at.unwrap_or(Micros(i64::MIN)), *list, index)));
        }
    }

    /// When a record of a list happened, and its size; `None` after the last.
    fn record(&self, list: List, index: usize) -> Option<(Option<Micros>, usize)> {
        let session = self.session;
        let of = |stream: &dyn Stream| {
            let at = match stream.when(index)? {
                When::At(at) => Some(at),
                When::In(tick) => self.tick_time(tick),
            };
            Some((at, stream.bytes(index..index + 1)))
        };
        match list {
            List::Player(kind, player) | List::After(kind, player) => of(session.players.get(player)?.streams()[kind]),
            List::Own(kind) => of(session.streams()[kind]),
            List::States => {
                let key = session.states.keys().get(index)?;
                Some((self.tick_time(key.tick), state_bytes(session.states.cells_of(index).len())))
            }
            List::Unknown(which) => {
                let records = session.unknown.get(which).filter(|records| index < records.len())?;
                let kind = session.header.unknown.iter().find(|kind| kind.name == records.kind)?;
                let at = records.times(kind).map(|times| Micros(times[index]));
                Some((at, size_of::<i64>() * (1 + records.columns.len())))
            }
        }
    }

    fn tick_time(&self, tick: Tick) -> Option<Micros> {
        let place = self.tick_times.binary_search_by_key(&tick, |&(tick, _)| tick).ok()?;
        Some(self.tick_times[place].1)
    }

    /// What has been taken since the last chunk.
    fn cut(&mut self) -> Part<'a, Header> {
        let mut part = Part::none(self.session);
        for Taken { list, range } in &mut self.taken {
            let of_chunk = std::mem::replace(range, range.end..range.end);
            match *list {
                List::Player(kind, player) | List::After(kind, player) => part.players[player][kind] = of_chunk,
                List::Own(kind) => part.own[kind] = of_chunk,
                List::States => part.states = of_chunk,
                List::Unknown(which) => part.unknown[which] = of_chunk,
            }
        }
        part
    }

    /// The next part; `None` when there is no record left.
    pub(super) fn next(&mut self) -> Result<Option<Part<'a, Header>>, WriteError> {
        while let Some(Reverse((at, list, index))) = self.queue.pop() {
            let Some((_, bytes)) = self.record(list, self.taken[index].range.end) else { continue };
            let when = if at.0 == i64::MIN { When::In(Tick(0)) } else { When::At(at) };
            let full = self.filling.add(when, bytes)?.then(|| self.cut());
            self.taken[index].range.end += 1;
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
