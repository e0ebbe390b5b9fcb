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
    /// Ticks, damage and gaps, in the order of [`OF_SESSION`].
    pub(super) own: [&'a dyn RecordStream; OF_SESSION.len()],
    pub(super) unknown: &'a [UnknownRecords],
    pub(super) texts: &'a Texts,
}

impl<'a> SessionRecords<'a> {
    fn of<H>(session: &'a Session<H>) -> SessionRecords<'a> {
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = session;
        SessionRecords { players, states, ticks, damage, gaps, own: session.streams(), unknown, texts }
    }
}

/// The ranges of a session's records in a chunk.
pub(crate) struct SessionSlice<'a> {
    pub(super) session: SessionRecords<'a>,
    /// For each player, by kind.
    pub(crate) players: Vec<[Range<usize>; OF_PLAYERS.len()]>,
    /// For the whole session, by kind.
    pub(crate) own: [Range<usize>; OF_SESSION.len()],
    pub(crate) states: Range<usize>,
    /// For each entry of [`Session::unknown`].
    pub(crate) unknown: Vec<Range<usize>>,
}

impl<'a> SessionSlice<'a> {
    /// Returns the part with all records of a session.
    pub(crate) fn whole<H>(session: &'a Session<H>) -> SessionSlice<'a> {
        let all = |player: &PlayerRecords| player.streams().map(|stream| 0..stream.len());
        SessionSlice {
            session: SessionRecords::of(session),
            players: session.players.iter().map(all).collect(),
            own: session.streams().map(|stream| 0..stream.len()),
            states: 0..session.states.len(),
            unknown: session.unknown.iter().map(|records| 0..records.len()).collect(),
        }
    }

    /// Returns the part without records.
    pub(crate) fn none<H>(session: &'a Session<H>) -> SessionSlice<'a> {
        SessionSlice {
            session: SessionRecords::of(session),
            players: session.players.iter().map(|_| std::array::from_fn(|_| 0..0)).collect(),
            own: std::array::from_fn(|_| 0..0),
            states: 0..0,
            unknown: session.unknown.iter().map(|_| 0..0).collect(),
        }
    }

    pub(super) fn state_keys(&self) -> &'a [StateKey] {
        &self.session.states.keys()[self.states.clone()]
    }

    /// Returns the records of one player and kind.
    pub(super) fn of_player<T>(&self, player: usize, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> &'a [T] {
        let ranges = self.session.players.get(player).zip(self.players.get(player)).zip(place_of(kind));
        ranges.map_or(&[], |((records, ranges), place)| &of(records)[ranges[place].clone()])
    }

    /// Returns the records of all players who have some of a kind.
    pub(super) fn of_players<T>(&self, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> RecordSeries<'a, T> {
        let mut series = RecordSeries::new();
        let Some(place) = place_of(kind) else { return series };
        for (player, (records, ranges)) in (0..).zip(self.session.players.iter().zip(&self.players)) {
            if !ranges[place].is_empty() {
                series.push((player, &of(records)[ranges[place].clone()]));
            }
        }
        series
    }
}

/// Returns the index of a kind in [`OF_PLAYERS`].
fn place_of(kind: &str) -> Option<usize> {
    OF_PLAYERS.iter().position(|(name, _)| *name == kind)
}
