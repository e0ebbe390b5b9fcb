//! How far from each other in a log things stand that belong together: a packet and its arrival, and a snapshot, its states and
//! its arrival. Whoever replays a log as it is read looks so far ahead, and keeps so much of it.

use std::collections::{BTreeMap, BTreeSet};

use hitreg_log::record::{ArrivalRecord, PlayerRecords, States};
use hitreg_log::units::Micros;

/// A packet that has not arrived by then is looked up in the log as a whole.
pub(super) const LONGEST_FLIGHT: Micros = Micros::from_s(30);
/// So many ticks are remembered: a snapshot says which are its states.
const TICKS: usize = 4096;
/// So many arrivals may wait for what arrived.
const EARLY: usize = 1 << 16;

/// How many chunks back and ahead a snapshot stands from its arrival at the client, or its states from it, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Near {
    pub(crate) back: u32,
    pub(crate) ahead: u32,
}

/// What is known of a log so far.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// For how long a packet or snapshot was on its way at most.
    pub(super) longest: Micros,
    /// Whether of each arrival it is known what arrived, which stood before it.
    pub(super) all_is_known: bool,
    /// `None` where that cannot be told.
    pub(super) near: Option<Near>,
    as_they_arrived: bool,
    /// The chunk that is being looked at.
    chunk: u32,
    states: Ticks,
    snapshots: Ticks,
}

/// The chunks in which ticks come first, of the last so many.
#[derive(Clone, Debug, Default)]
struct Ticks {
    first: BTreeMap<u32, u32>,
    /// Up to which they have been forgotten.
    forgotten: Option<u32>,
}

/// Both directions of a player's connection, to the server first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways([Way; 2]);

/// One direction.
#[derive(Clone, Debug, Default)]
struct Way {
    newest: Option<u32>,
    /// What may still arrive: when it was sent, and in which chunk that stands.
    sent: BTreeMap<u32, (Micros, u32)>,
    /// Up to which number it has been forgotten.
    forgotten: Option<u32>,
    /// What arrived and has not been seen to be sent, and in which chunk it arrived.
    early: BTreeMap<u32, u32>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            longest: Micros::ZERO,
            all_is_known: true,
            near: Some(Near::default()),
            as_they_arrived: false,
            chunk: 0,
            states: Ticks::default(),
            snapshots: Ticks::default(),
        }
    }
}

impl Bounds {
    /// Of a log of which nothing was looked at; with whether snapshots stand in it as they arrived, which they do in a client's own.
    pub(super) fn new(as_they_arrived: bool) -> Bounds {
        Bounds { as_they_arrived, ..Bounds::default() }
    }

    /// Of a log of which not all was looked at.
    pub(super) fn of_part(longest: Micros) -> Bounds {
        Bounds { longest, near: None, ..Bounds::default() }
    }

    /// All ways have been told of a chunk: of its snapshots the ticks are looked at, and of its states.
    pub(super) fn end_of_chunk(&mut self, states: &States, players: &[PlayerRecords]) {
        let mut last = None;
        for tick in states.keys().iter().map(|key| key.tick.0) {
            if last.replace(tick) != Some(tick) {
                self.tick(tick, true);
            }
        }
        let snapshots = players.iter().flat_map(|player| &player.snapshots);
        let shown = snapshots.filter(|snapshot| !snapshot.entities.is_empty()).map(|snapshot| snapshot.tick.0);
        for tick in shown.collect::<BTreeSet<u32>>() {
            self.tick(tick, false);
        }
        // Not sooner: a chunk may hold any number of them.
        self.states.forget();
        self.snapshots.forget();
        self.chunk += 1;
    }

    /// States of a tick, or a snapshot.
    fn tick(&mut self, tick: u32, is_state: bool) {
        let (own, other) = match is_state {
            true => (&mut self.states, &self.snapshots),
            false => (&mut self.snapshots, &self.states),
        };
        let known = own.add(tick, self.chunk);
        let stands = other.first.get(&tick).map(|there| self.chunk - there);
        match (known && other.may_know(tick), stands) {
            (false, _) => self.near = None,
            (true, Some(apart)) if is_state => self.ahead(apart),
            (true, Some(apart)) => self.back(apart),
            (true, None) => {}
        }
    }

    /// How many have been looked at.
    pub(super) fn chunks(&self) -> u32 {
        self.chunk
    }

    fn back(&mut self, chunks: u32) {
        self.near = self.near.map(|near| Near { back: near.back.max(chunks), ..near });
    }

    fn ahead(&mut self, chunks: u32) {
        self.near = self.near.map(|near| Near { ahead: near.ahead.max(chunks), ..near });
    }
}

impl Ticks {
    /// Whether it is known where the first of it stood.
    fn add(&mut self, tick: u32, chunk: u32) -> bool {
        let known = self.may_know(tick);
        self.first.entry(tick).or_insert(chunk);
        known
    }

    fn forget(&mut self) {
        while self.first.len() > TICKS {
            self.forgotten = self.first.pop_first().map(|(tick, _)| tick).max(self.forgotten);
        }
    }

    /// Whether it would be known if the tick had been there.
    fn may_know(&self, tick: u32) -> bool {
        self.forgotten.is_none_or(|forgotten| tick > forgotten) || self.first.contains_key(&tick)
    }
}

impl Ways {
    pub(super) fn that_send(sends: [bool; 2]) -> Ways {
        Ways(sends.map(|sends| Way { newest: sends.then_some(0), ..Way::default() }))
    }

    /// Whether anything was sent.
    pub(super) fn send(&self) -> [bool; 2] {
        self.0.each_ref().map(|way| way.newest.is_some())
    }

    pub(super) fn add(&mut self, records: &PlayerRecords, bounds: &mut Bounds) {
        let [up, down] = &mut self.0;
        let sent = records.sent.iter().map(|packet| (packet.number, packet.at));
        let told = records.snapshots.iter().map(|snapshot| (snapshot.seq.0, snapshot.at));
        // Nobody looks packets up in open loop.
        let near = bounds.near;
        up.add(sent, &records.reached, bounds);
        bounds.near = near;
        down.add(told, &records.received, bounds);
    }
}

impl Way {
    /// A number comes after a greater one, or again.
    fn out_of_order(&self, number: u32, bounds: &mut Bounds) {
        bounds.all_is_known = false;
        let is_known = self.sent.contains_key(&number) || self.forgotten.is_some_and(|forgotten| number <= forgotten);
        match self.sent.range(number..).map(|(_, (_, chunk))| *chunk).min() {
            Some(first_after) if bounds.as_they_arrived && !is_known => bounds.ahead(bounds.chunk - first_after),
            _ => bounds.near = None,
        }
    }

    fn add(&mut self, sent: impl Iterator<Item = (u32, Micros)>, arrivals: &[ArrivalRecord], bounds: &mut Bounds) {
        let mut last = None;
        for (number, at) in sent {
            if self.newest.is_some_and(|newest| newest >= number) {
                self.out_of_order(number, bounds);
            }
            self.newest = self.newest.max(Some(number));
            self.sent.insert(number, (at, bounds.chunk));
            if let Some(arrived) = self.early.remove(&number) {
                bounds.ahead(bounds.chunk - arrived);
            }
            last = Some(at);
        }
        for arrival in arrivals {
            match self.sent.get(&arrival.number) {
                Some((sent, chunk)) => {
                    bounds.longest = bounds.longest.max(arrival.at - *sent);
                    bounds.back(bounds.chunk - chunk);
                }
                None => {
                    bounds.all_is_known = false;
                    self.early.insert(arrival.number, bounds.chunk);
                    let is_of_long_ago = self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten);
                    if is_of_long_ago || self.early.len() > EARLY {
                        bounds.near = None;
                    }
                }
            }
        }
        // Not sooner: a chunk may be longer than that.
        let is_old = |sent: Micros| last.is_some_and(|last| sent + LONGEST_FLIGHT < last);
        while let Some(oldest) = self.sent.first_entry().filter(|oldest| is_old(oldest.get().0)) {
            self.forgotten = Some(oldest.remove_entry().0);
        }
    }
}
