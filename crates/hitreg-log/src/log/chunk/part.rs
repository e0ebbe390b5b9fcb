//! The part of a session that becomes a chunk: ranges of records in a stretch or in a whole session.

use std::ops::Range;

use super::RecordSeries;
use crate::record::{
    DamageRecord, GapRecord, OF_PLAYERS, OF_SESSION, PlayerRecords, RecordStream, Session, StateKey, States, Texts,
    TickRecord, UnknownRecords,
};

/// A range of records of one kind.
pub(super) type RecordRange<'a> = (&'a dyn RecordStream, Range<usize>);

/// The records of a session, with or without a header. Code that encodes them is compiled once.
#[derive(Clone, Copy)]
pub(super) struct SessionRecords<'a> {
    pub(super) players: &'a [PlayerRecords],
    pub(super) states: &'a States,
    pub(super) ticks: &'a [TickRecord],
    pub(super) damage: &'a [DamageRecord],
    pub(super) gaps: &'a [GapRecord],
    pub(super) unknown: &'a [UnknownRecords],
    pub(super) texts: &'a Texts,
}

/// The ranges of a session's records in a chunk.
pub(crate) struct SessionSlice<'a> {
    pub(super) session: SessionRecords<'a>,
    /// Each list of the session with its range, in the order of [`Session::lists`].
    lists: Vec<RecordRange<'a>>,
}

impl<'a> SessionSlice<'a> {
    /// Returns the part with all records of a session.
    pub(crate) fn whole<H>(session: &'a Session<H>) -> SessionSlice<'a> {
        SessionSlice::new(session, session.lists().map(|list| 0..list.len()))
    }

    /// Returns the part with these ranges of the session's lists.
    pub(crate) fn new<H>(session: &'a Session<H>, ranges: impl Iterator<Item = Range<usize>>) -> SessionSlice<'a> {
        let lists = session.lists().zip(ranges).collect();
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = session;
        SessionSlice { session: SessionRecords { players, states, ticks, damage, gaps, unknown, texts }, lists }
    }

    /// Returns the lists of one kind, by player.
    pub(super) fn of_kind(&self, kind: usize) -> impl Iterator<Item = RecordRange<'a>> {
        let of_players = &self.lists[..self.session.players.len() * OF_PLAYERS.len()];
        of_players.iter().skip(kind).step_by(OF_PLAYERS.len()).cloned()
    }

    /// Returns the session's own lists, in the order of [`OF_SESSION`], then the states, then unknown kinds.
    fn of_session(&self) -> &[RecordRange<'a>] {
        &self.lists[self.session.players.len() * OF_PLAYERS.len()..]
    }

    /// Returns the session's own lists, in the order of [`OF_SESSION`].
    pub(super) fn own(&self) -> &[RecordRange<'a>] {
        &self.of_session()[..OF_SESSION.len()]
    }

    pub(super) fn states(&self) -> Range<usize> {
        self.of_session()[OF_SESSION.len()].1.clone()
    }

    pub(super) fn state_keys(&self) -> &'a [StateKey] {
        &self.session.states.keys()[self.states()]
    }

    /// Returns the records of unknown kinds, each with its range.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&'a UnknownRecords, Range<usize>)> {
        let ranges = self.of_session()[OF_SESSION.len() + 1..].iter().map(|(_, range)| range.clone());
        self.session.unknown.iter().zip(ranges)
    }

    /// Returns the records of one player and kind.
    pub(super) fn of_player<T>(&self, player: usize, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> &'a [T] {
        let list = place_of(kind).and_then(|kind| self.of_kind(kind).nth(player));
        self.session.players.get(player).zip(list).map_or(&[], |(records, (_, range))| &of(records)[range])
    }

    /// Returns the records of all players who have some of a kind.
    pub(super) fn of_players<T>(&self, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> RecordSeries<'a, T> {
        let lists = place_of(kind).into_iter().flat_map(|kind| self.of_kind(kind));
        let series = (0..).zip(self.session.players.iter().zip(lists));
        series.map(|(player, (records, (_, range)))| (player, &of(records)[range])).collect()
    }
}

/// Returns the index of a kind in [`OF_PLAYERS`].
fn place_of(kind: &str) -> Option<usize> {
    OF_PLAYERS.iter().position(|(name, _)| *name == kind)
}
