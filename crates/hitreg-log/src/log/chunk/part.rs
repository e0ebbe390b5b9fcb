//! The part of a session that becomes a chunk: ranges of records in a stretch or in a whole session.

use std::ops::Range;

use super::RecordSeries;
use crate::record::{
    DamageRecord, GapRecord, OF_PLAYERS, OF_SESSION, PlayerRecords, Session, StateKey, States, Texts, TickRecord,
    UnknownRecords,
};

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

impl<'a> SessionRecords<'a> {
    fn of<H>(session: &'a Session<H>) -> SessionRecords<'a> {
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = session;
        SessionRecords { players, states, ticks, damage, gaps, unknown, texts }
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

    pub(super) fn of_player<T>(
        &self,
        player: usize,
        kind: usize,
        of: impl Fn(&'a PlayerRecords) -> &'a Vec<T>,
    ) -> &'a [T] {
        match (self.session.players.get(player), self.players.get(player)) {
            (Some(records), Some(ranges)) => &of(records)[ranges[kind].clone()],
            _ => &[],
        }
    }

    pub(super) fn of_players<T>(
        &self,
        kind: usize,
        of: impl Fn(&'a PlayerRecords) -> &'a Vec<T>,
    ) -> RecordSeries<'a, T> {
        let records = (0..self.players.len()).map(|player| (player as u32, self.of_player(player, kind, &of)));
        records.filter(|(_, records)| !records.is_empty()).collect()
    }
}
