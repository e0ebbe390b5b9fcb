//! Collects in one pass what a streamed replay must know about a log in advance: its end, and how far apart related
//! records are. Memory use does not depend on the log's length.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::output::LOOK_BACK_MIN;
use super::{ReplayError, shots};
use crate::info::NumberSet;
use crate::protocol::Direction;
use crate::settings::Settings;
use hitreg_log::record::{
    ArrivalRecord, GapRecord, LogContents, PlayerRecords, Session, SessionChunk, SessionHeader, StateKey, States,
    TickRecord, floats_of, viewer_specific_fields, widest,
};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::TableSet;
use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};

/// The results of one pass over a log.
#[derive(Clone, Debug, Default)]
pub struct LogSurvey {
    /// Counts and links of each player.
    pub(super) players: Vec<PlayerSurvey>,
    /// The log's ticks.
    pub ticks: TickCounts,
    /// The initial states of the session, those of tick 0.
    pub(super) beginning: States,
    /// The fields whose values differ between viewers of one entity.
    pub hidden: SortedSet<String>,
    /// The oldest and the newest time so far.
    span: Option<(Micros, Micros)>,
    /// The first and the last time of any frame, arrival or tick.
    played: Option<(Micros, Micros)>,
    /// Whether the log begins inside a session.
    begins_inside: bool,
    /// The most time by which a chunk begins before the newest time of the chunks before it.
    pub(super) chunk_overlap: Micros,
    /// How far apart related records of the log are.
    bounds: ReorderBounds,
    /// Whether the states have floats.
    has_floats: bool,
    /// Whether a float in a state is a number.
    has_number: bool,
    /// Whether the replay needs the whole log in memory.
    needs_memory: bool,
    /// The missing parts so far, without those before the first tick.
    pub(super) gaps: Vec<GapRecord>,
}

/// The part of a survey that a replay from a keyframe needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SurveyCheckpoint {
    pub(super) players: Vec<PlayerCheckpoint>,
    played: Option<(Micros, Micros)>,
    chunk_overlap: Micros,
    longest: Micros,
}

/// One player's counts, and whether anything was sent in each direction. The order of the fields is part of the format
/// of keyframes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlayerCheckpoint {
    frames: u64,
    heard: u64,
    sends_up: bool,
    sends_down: bool,
}

/// One player's record counts and link directions.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayerSurvey {
    pub(super) frames: u64,
    pub(super) heard: u64,
    /// Frames whose input is active.
    active: u64,
    /// The usercmds of heard packets, each number once, and how many have active input.
    heard_usercmds: NumberSet,
    heard_active: u64,
    /// Both directions of the connection: up, then down.
    directions: [DirectionNumbers; 2],
    /// The first and the last usercmd of the player.
    pub(super) first_and_last_usercmd: Option<[CommandSeq; 2]>,
    /// Whether the player received a snapshot.
    has_snapshots: bool,
}

/// Counts and order of a log's ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct TickCounts {
    /// The number of ticks.
    pub count: u64,
    /// The number of ticks with a state hash.
    pub with_hash: u64,
    /// The first two successive ticks that are not in order.
    pub out_of_order: Option<[Tick; 2]>,
    first: Option<Micros>,
    last: Option<TickRecord>,
}

impl LogSurvey {
    /// Returns the survey of a log before its first chunk.
    pub fn new(header: &SessionHeader) -> LogSurvey {
        let as_they_arrived = header.side.is_some_and(|side| side.player.is_some());
        LogSurvey {
            players: vec![PlayerSurvey::default(); header.players.len()],
            bounds: ReorderBounds { as_they_arrived, ..ReorderBounds::default() },
            begins_inside: header.begins_inside(),
            needs_memory: header.holds() != LogContents::Whole || header.side.is_some(),
            ..LogSurvey::default()
        }
    }

    pub(super) fn checkpoint(&self) -> SurveyCheckpoint {
        let of = |player: &PlayerSurvey| PlayerCheckpoint {
            frames: player.frames,
            heard: player.heard,
            sends_up: player.sends(Direction::Up),
            sends_down: player.sends(Direction::Down),
        };
        SurveyCheckpoint {
            players: self.players.iter().map(of).collect(),
            played: self.played,
            chunk_overlap: self.chunk_overlap,
            longest: self.longest(),
        }
    }

    /// Returns the survey that a keyframe of a streamable log holds.
    pub(super) fn from_checkpoint(checkpoint: SurveyCheckpoint) -> LogSurvey {
        let of = |player: PlayerCheckpoint| PlayerSurvey {
            frames: player.frames,
            heard: player.heard,
            directions: [player.sends_up, player.sends_down]
                .map(|sends| DirectionNumbers { newest: sends.then_some(0), ..Default::default() }),
            ..PlayerSurvey::default()
        };
        LogSurvey {
            players: checkpoint.players.into_iter().map(of).collect(),
            span: checkpoint.played,
            played: checkpoint.played,
            chunk_overlap: checkpoint.chunk_overlap.max(Micros::ZERO),
            bounds: ReorderBounds {
                longest: checkpoint.longest.clamp(Micros::ZERO, FLIGHT_MAX),
                window: None,
                ..ReorderBounds::default()
            },
            ..LogSurvey::default()
        }
    }

    /// Returns the survey of a session in memory, whose states are in order.
    pub fn of(session: &Session) -> LogSurvey {
        let mut survey = LogSurvey::of_connections(session);
        survey.survey_states(&session.header, &session.states);
        survey
    }

    /// Returns what a closed loop must know of a session in memory: all but its states.
    pub(super) fn of_connections(session: &Session) -> LogSurvey {
        let mut survey = LogSurvey::new(&session.header);
        survey.survey_times(session);
        survey.survey_connections(session);
        survey.begin_with(&session.states);
        survey.end();
        survey
    }

    /// Adds the next chunk.
    pub fn add(&mut self, header: &SessionHeader, chunk: &mut SessionChunk) {
        chunk.states.put_in_order();
        self.survey_times(chunk);
        self.survey_connections(chunk);
        self.begin_with(&chunk.states);
        self.bounds.end_of_chunk(&chunk.states, &chunk.players);
        self.survey_states(header, &chunk.states);
    }

    fn survey_connections<H>(&mut self, chunk: &Session<H>) {
        self.gaps.extend(&chunk.gaps);
        // Initial states belong at the beginning: after the first tick, they prevent streaming.
        let begins = |key: &StateKey| key.tick == Tick(0);
        self.needs_memory |= self.ticks.count > 0 && chunk.states.keys().iter().any(begins);
        for tick in &chunk.ticks {
            self.ticks.add(tick);
        }
        if let Some(first) = self.ticks.first {
            self.gaps.retain(|gap| gap.to > first);
        }
        for (of, records) in self.players.iter_mut().zip(&chunk.players) {
            of.add(records, &mut self.bounds);
        }
    }

    fn survey_times<H>(&mut self, chunk: &Session<H>) {
        let of_chunk = chunk.time_span();
        if let (Some((first, _)), Some((_, newest))) = (of_chunk, self.span) {
            self.chunk_overlap = self.chunk_overlap.max(newest - first);
        }
        self.span = widest(self.span.into_iter().chain(of_chunk));
        self.played = widest(self.played.into_iter().chain(chunk.played()));
    }

    fn survey_states(&mut self, header: &SessionHeader, states: &States) {
        for (key, cells) in states.iter() {
            if self.has_number {
                break;
            }
            let fields = header.classes.get(usize::from(key.class.0)).map_or(&[][..], |class| &class.fields);
            for is_nan in floats_of(fields, cells) {
                self.has_floats = true;
                self.has_number |= !is_nan;
            }
        }
        self.hidden.extend(viewer_specific_fields(&header.classes, states).into_iter().map(str::to_owned));
    }

    /// Adds the initial states of a chunk.
    pub fn begin_with(&mut self, states: &States) {
        let begins = |(key, _): &(StateKey, &[u32])| key.tick == Tick(0);
        states.iter().filter(begins).for_each(|(key, cells)| self.beginning.push(key, cells));
    }

    /// Ends the survey after the last chunk.
    pub fn end(&mut self) {
        self.beginning.put_in_order();
    }

    /// Returns the first missing part of the log, see [`GapRecord::first_after`].
    pub fn first_gap(&self) -> Option<&GapRecord> {
        GapRecord::first_after(&self.gaps, self.ticks.first)
    }

    /// Returns the duration, as [`Session::duration`](hitreg_log::record::Session::duration).
    pub fn duration(&self) -> Micros {
        let first_tick = self.ticks.first.filter(|_| self.begins_inside);
        self.played.map_or(Micros::ZERO, |(first, last)| last - first_tick.unwrap_or(first))
    }

    /// Returns the times of the first and the last record.
    pub fn played(&self) -> Option<(Micros, Micros)> {
        self.played
    }

    /// Whether a closed loop can replay the log without holding it in memory. The log must hold the server and its
    /// clients, and each arrival must follow its packet closely enough.
    pub fn streams(&self) -> bool {
        !self.needs_memory && self.bounds.all_is_known
    }

    /// Returns how many chunks a reader of the clients' records must look back and ahead; `None` if a part is missing, or
    /// if the distance is unknown.
    pub fn reorder_window(&self) -> Option<ReorderWindow> {
        self.bounds.window.filter(|_| self.gaps.is_empty())
    }

    /// Returns the fixed cost in bytes of reading all chunks once for each playing player, however few records they
    /// hold.
    pub fn pass_bytes(&self) -> u64 {
        let playing = self.players.iter().filter(|player| player.first_and_last_usercmd.is_some()).count() as u64;
        let chunk_bytes = (self.players.len() * size_of::<PlayerRecords>()) as u64;
        playing.saturating_mul(chunk_bytes).saturating_mul(self.bounds.chunk.into())
    }

    /// An estimate by counts of what the trace of a replay with these tables takes in memory.
    pub fn trace_bytes(&self, tables: TableSet) -> usize {
        let counts = [self.frames(), self.ticks.count];
        let [frames, ticks] = counts.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        super::budget::trace_bytes(self.players.len(), frames, ticks, super::TYPICAL_CELLS, tables)
    }

    /// Returns the time from which a replay must record events for a part that begins at `at`. A shot in it may be at
    /// what its shooter saw as long before as the longest flight, and its cover depends on 3 s before that.
    pub fn needed_from(&self, at: Micros) -> Micros {
        at - LOOK_BACK_MIN.max(self.longest() + shots::SIGHT_SEARCH_MAX)
    }

    /// Returns the longest flight time of any packet or snapshot; `None` if the log does not tell it for all of them.
    pub(super) fn longest_flight(&self) -> Option<Micros> {
        self.bounds.all_is_known.then(|| self.longest())
    }

    /// Returns the longest known flight time of any packet or snapshot.
    pub(super) fn longest(&self) -> Micros {
        self.bounds.longest
    }

    /// Returns the first player whom the log knows only by the packets that the server received.
    pub fn first_heard_player(&self) -> Option<PlayerId> {
        (0..self.players.len()).find(|player| self.is_heard_only(*player)).map(|player| PlayerId(player as u16))
    }

    /// Whether any player received a snapshot.
    pub(super) fn has_snapshots(&self) -> bool {
        self.players.iter().any(|player| player.has_snapshots)
    }

    /// Frames of all players; of those who were only heard, packets.
    pub(super) fn frames(&self) -> u64 {
        self.players.iter().map(|player| player.frames.max(player.heard)).sum()
    }

    /// Returns the number of usercmds of all players.
    pub fn usercmds(&self) -> u64 {
        self.players.iter().map(|player| player.usercmds()[0]).sum()
    }

    /// Returns the number of usercmds with a key down, a button pressed, an impulse, or input of the game's own.
    pub fn active_usercmds(&self) -> u64 {
        self.players.iter().map(|player| player.usercmds()[1]).sum()
    }

    /// Whether the states have floats and all of them are NaN.
    pub fn is_all_nan(&self) -> bool {
        self.has_floats && !self.has_number
    }

    /// Whether any player has frames or heard packets.
    pub(super) fn has_input(&self) -> bool {
        self.players.iter().any(|player| player.frames + player.heard > 0)
    }

    pub(super) fn is_heard_only(&self, player: usize) -> bool {
        self.players.get(player).is_some_and(|player| player.frames == 0 && player.heard > 0)
    }
}

/// The most ticks of another rate, as a multiple of the recorded ticks converted to that rate. An overloaded server
/// leaves ticks out, so this may exceed 1.
const SKIPPED_TICKS_FACTOR_MAX: i64 = 16;
/// The number of ticks that a replay always accepts, however few were recorded.
const TICKS_FEW: i64 = 4096;

impl TickCounts {
    /// Returns the counts of a session in memory.
    pub(super) fn of(ticks: &[TickRecord]) -> TickCounts {
        let mut counts = TickCounts::default();
        ticks.iter().for_each(|tick| counts.add(tick));
        counts
    }

    /// Returns the number of ticks of a replay under these settings.
    pub(super) fn under(&self, header: &SessionHeader, settings: &Settings) -> Result<usize, ReplayError> {
        let other = self.at_another_rate(header, settings)?;
        let recorded = || usize::try_from(self.count).unwrap_or(usize::MAX);
        Ok(other.map_or_else(recorded, Iterator::count))
    }

    /// Returns the times of ticks over the recorded span, if these settings have another tick rate than the log.
    ///
    /// # Errors
    /// When the recorded ticks are too few for that many.
    pub(super) fn at_another_rate(
        &self,
        header: &SessionHeader,
        settings: &Settings,
    ) -> Result<Option<impl Iterator<Item = Micros> + use<>>, ReplayError> {
        let recorded = Settings::from_pairs(&header.settings).map(|settings| settings.server.tick_hz);
        let (hz, ticks) = (settings.server.tick_hz, self.count);
        let (Ok(recorded), Some(first), Some(last)) = (recorded, self.first, self.last) else {
            return Ok(None);
        };
        if recorded == hz {
            return Ok(None);
        }
        let wanted = hz.periods_in(last.at - first);
        let in_step = i128::from(ticks) * i128::from(hz.milli()) / i128::from(recorded.milli().max(1));
        if wanted > TICKS_FEW && i128::from(wanted) > in_step * i128::from(SKIPPED_TICKS_FACTOR_MAX) {
            return Err(ReplayError::FarApart { ticks: usize::try_from(ticks).unwrap_or(usize::MAX), wanted });
        }
        Ok(Some((0..).map(move |n| first + hz.period_start(n)).take_while(move |at| *at <= last.at)))
    }

    fn add(&mut self, tick: &TickRecord) {
        let disorder = self.last.filter(|last| tick.tick <= last.tick || tick.at < last.at);
        self.out_of_order = self.out_of_order.or(disorder.map(|last| [last.tick, tick.tick]));
        self.first = self.first.or(Some(tick.at));
        self.count += 1;
        self.with_hash += u64::from(tick.hash.is_some());
        self.last = Some(*tick);
    }
}

impl PlayerSurvey {
    /// Whether anything was sent in a direction.
    pub(super) fn sends(&self, direction: Direction) -> bool {
        self.directions[direction as usize].newest.is_some()
    }

    /// Returns the number of usercmds, and how many are active: by frames, or for a player without frames by what the
    /// server heard.
    fn usercmds(&self) -> [u64; 2] {
        match self.frames {
            0 => [self.heard_usercmds.count() as u64, self.heard_active],
            frames => [frames, self.active],
        }
    }

    fn add(&mut self, records: &PlayerRecords, bounds: &mut ReorderBounds) {
        self.frames += records.frames.len() as u64;
        self.heard += records.heard.len() as u64;
        self.has_snapshots |= !records.received.is_empty();
        if let [first, .., last] | [first @ last] = &records.frames[..] {
            let first = self.first_and_last_usercmd.map_or(first.command.seq, |[first, _]| first);
            self.first_and_last_usercmd = Some([first, last.command.seq]);
        }
        self.active += records.frames.iter().filter(|frame| frame.command.input.is_active()).count() as u64;
        for command in records.heard.iter().flat_map(|heard| &heard.commands) {
            let is_first = self.heard_usercmds.insert(command.seq.0);
            self.heard_active += u64::from(is_first && command.input.is_active());
        }
        let [up, down] = &mut self.directions;
        let sent = records.sent.iter().map(|packet| (packet.number, packet.at));
        let snapshots = records.snapshots.iter().map(|snapshot| (snapshot.seq.0, snapshot.at));
        // Open loop does not look up packets, so the upward direction does not change the window.
        let window = bounds.window;
        up.add(sent, &records.reached, bounds);
        bounds.window = window;
        down.add(snapshots, &records.received, bounds);
    }
}

/// The longest flight time that a survey follows. A log with slower packets must be replayed as a whole.
const FLIGHT_MAX: Micros = Micros::from_s(30);
/// The number of ticks to remember, to match snapshots with their states.
const TICKS_KEPT: usize = 4096;
/// The most arrivals that may precede the record of their packet.
const EARLY_ARRIVALS_MAX: usize = 1 << 16;

/// The most chunks between a snapshot and its arrival at the client, or between a snapshot and its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReorderWindow {
    pub(crate) back: u32,
    pub(crate) ahead: u32,
}

/// The distances measured so far.
///
/// Measures in chunks how far apart related records of a log are: a packet and its arrival; a snapshot, its states and
/// its arrival. A streamed replay reads ahead and keeps the log by these distances.
#[derive(Clone, Debug)]
struct ReorderBounds {
    /// The longest flight time of any packet or snapshot.
    longest: Micros,
    /// Whether no arrival comes before the record of its packet, or long after it.
    all_is_known: bool,
    /// `None` if the distances are unknown.
    window: Option<ReorderWindow>,
    /// Whether the log lists snapshots in the order of arrival, as a client's own log does.
    as_they_arrived: bool,
    /// The number of the current chunk.
    chunk: u32,
    states: TickChunks,
    snapshots: TickChunks,
}

/// The first chunk of each of the last ticks.
#[derive(Clone, Debug, Default)]
struct TickChunks {
    first: SortedMap<u32, u32>,
    /// The newest forgotten tick.
    forgotten: Option<u32>,
}

/// One direction of a player's connection.
#[derive(Clone, Debug, Default)]
struct DirectionNumbers {
    newest: Option<u32>,
    sent: SentPackets,
    /// The highest forgotten number.
    forgotten: Option<u32>,
    /// Arrivals before the record of their packet, with the chunk of the arrival. The record may also be missing.
    early: SortedMap<u32, u32>,
}

/// The packets of one direction that may still arrive.
#[derive(Clone, Debug, Default)]
struct SentPackets {
    /// In the order of their numbers, which is mostly the order of sending.
    packets: VecDeque<SentPacket>,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    number: u32,
    at: Micros,
    /// The chunk with its record.
    chunk: u32,
}

impl Default for ReorderBounds {
    fn default() -> ReorderBounds {
        ReorderBounds {
            longest: Micros::ZERO,
            all_is_known: true,
            window: Some(ReorderWindow::default()),
            as_they_arrived: false,
            chunk: 0,
            states: TickChunks::default(),
            snapshots: TickChunks::default(),
        }
    }
}

impl ReorderBounds {
    /// Measures the distances between states and snapshots of a chunk. Call it after [`PlayerSurvey::add`] for each player.
    fn end_of_chunk(&mut self, states: &States, players: &[PlayerRecords]) {
        let mut last = None;
        for tick in states.keys().iter().map(|key| key.tick.0) {
            if last.replace(tick) != Some(tick) {
                self.tick(tick, true);
            }
        }
        let snapshots = players.iter().flat_map(|player| &player.snapshots);
        let shown = snapshots.filter(|snapshot| !snapshot.entities.is_empty()).map(|snapshot| snapshot.tick.0);
        for tick in shown.collect::<SortedSet<u32>>() {
            self.tick(tick, false);
        }
        // Forgetting waits for the end of the chunk, because a chunk may hold any number of ticks.
        self.states.forget();
        self.snapshots.forget();
        self.chunk += 1;
    }

    /// Measures from the states (`is_state`) or snapshots of a tick to their counterpart.
    fn tick(&mut self, tick: u32, is_state: bool) {
        let (own, other) = match is_state {
            true => (&mut self.states, &self.snapshots),
            false => (&mut self.snapshots, &self.states),
        };
        let known = own.add(tick, self.chunk);
        let stands = other.first.get(&tick).map(|there| self.chunk - there);
        match (known && other.may_know(tick), stands) {
            (false, _) => self.window = None,
            (true, Some(apart)) if is_state => self.widen(0, apart),
            (true, Some(apart)) => self.widen(apart, 0),
            (true, None) => {}
        }
    }

    /// Widens the window to at least these numbers of chunks.
    fn widen(&mut self, back: u32, ahead: u32) {
        let wider =
            |window: ReorderWindow| ReorderWindow { back: window.back.max(back), ahead: window.ahead.max(ahead) };
        self.window = self.window.map(wider);
    }
}

impl TickChunks {
    /// Adds a tick, and returns whether its first chunk is known.
    fn add(&mut self, tick: u32, chunk: u32) -> bool {
        let known = self.may_know(tick);
        self.first.entry(tick).or_insert(chunk);
        known
    }

    fn forget(&mut self) {
        while self.first.len() > TICKS_KEPT {
            self.forgotten = self.first.pop_first().map(|(tick, _)| tick).max(self.forgotten);
        }
    }

    /// Whether the first chunk of the tick, if any, would be known.
    fn may_know(&self, tick: u32) -> bool {
        self.forgotten.is_none_or(|forgotten| tick > forgotten) || self.first.contains_key(&tick)
    }
}

impl DirectionNumbers {
    /// Handles a number that follows a greater one, or repeats.
    fn out_of_order(&self, number: u32, bounds: &mut ReorderBounds) {
        bounds.all_is_known = false;
        let is_known = self.sent.get(number).is_some() || self.forgotten.is_some_and(|forgotten| number <= forgotten);
        match self.sent.from(number).map(|packet| packet.chunk).min() {
            Some(first_after) if bounds.as_they_arrived && !is_known => bounds.widen(0, bounds.chunk - first_after),
            _ => bounds.window = None,
        }
    }

    fn add(
        &mut self,
        sent: impl Iterator<Item = (u32, Micros)>,
        arrivals: &[ArrivalRecord],
        bounds: &mut ReorderBounds,
    ) {
        let mut last = None;
        for (number, at) in sent {
            if self.newest.is_some_and(|newest| newest >= number) {
                self.out_of_order(number, bounds);
            }
            self.newest = self.newest.max(Some(number));
            self.sent.insert(SentPacket { number, at, chunk: bounds.chunk });
            if let Some(arrived) = self.early.remove(&number) {
                bounds.all_is_known = false;
                bounds.widen(0, bounds.chunk - arrived);
            }
            last = Some(at);
        }
        for arrival in arrivals {
            match self.sent.get(arrival.number) {
                Some(packet) => {
                    bounds.longest = bounds.longest.max(arrival.at - packet.at);
                    bounds.widen(bounds.chunk - packet.chunk, 0);
                }
                None => {
                    self.early.insert(arrival.number, bounds.chunk);
                    let is_of_long_ago = self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten);
                    if is_of_long_ago || self.early.len() > EARLY_ARRIVALS_MAX {
                        bounds.all_is_known = false;
                        bounds.window = None;
                    }
                }
            }
        }
        // Forgetting waits for the end of the chunk, because a chunk may last longer than [`FLIGHT_MAX`].
        let is_old = |sent: Micros| last.is_some_and(|last| sent + FLIGHT_MAX < last);
        while let Some(oldest) = self.sent.packets.pop_front_if(|oldest| is_old(oldest.at)) {
            self.forgotten = Some(oldest.number);
        }
    }
}

impl SentPackets {
    /// Returns the index of a number, or the index at which it belongs.
    fn index(&self, number: u32) -> Result<usize, usize> {
        // Numbers mostly have no gaps.
        let first = self.packets.front().map_or(0, |first| first.number);
        let index = number.saturating_sub(first) as usize;
        match self.packets.get(index) {
            Some(packet) if packet.number == number => Ok(index),
            _ => self.packets.binary_search_by_key(&number, |packet| packet.number),
        }
    }

    fn get(&self, number: u32) -> Option<&SentPacket> {
        self.index(number).ok().map(|index| &self.packets[index])
    }

    /// Returns the packets with this number or a higher one.
    fn from(&self, number: u32) -> impl Iterator<Item = &SentPacket> {
        self.packets.range(self.index(number).unwrap_or_else(|index| index)..)
    }

    /// Adds a packet. It replaces a packet with the same number.
    fn insert(&mut self, packet: SentPacket) {
        if self.packets.back().is_none_or(|last| last.number < packet.number) {
            self.packets.push_back(packet);
            return;
        }
        match self.index(packet.number) {
            Ok(index) => self.packets[index] = packet,
            Err(index) => self.packets.insert(index, packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_in_any_order_and_across_gaps() {
        let mut sent = SentPackets::default();
        for number in [5, 6, 9, 7, 12, 6] {
            sent.insert(SentPacket { number, at: Micros(number.into()), chunk: 0 });
        }
        let numbers: Vec<u32> = sent.packets.iter().map(|packet| packet.number).collect();
        assert_eq!(numbers, [5, 6, 7, 9, 12]);
        let found = |number: u32| sent.get(number).map(|packet| packet.at.0);
        assert_eq!([4, 5, 7, 8, 9, 12, 13].map(found), [None, Some(5), Some(7), None, Some(9), Some(12), None]);
        assert_eq!(sent.from(8).count(), 2);
    }
}
