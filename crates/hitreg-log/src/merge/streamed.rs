//! The streaming merge, in two passes over the logs. The second pass produces the session that
//! [`merge`](super::merge) would return, as stretches that overlap in time. The memory use of both passes does not
//! depend on the logs' length.

use std::collections::VecDeque;

use super::offset::{self, OffsetBound, OffsetBounds};
use super::{
    AlignedClient, MergeError, Offset, SessionCut, SessionEnd, SideIndex, UnknownPacket, check_offset, is_in_time,
    longest,
};
use crate::record::{
    ArrivalRecord, ClockOwner, RecordStream, SessionHeader, SessionStretch, TickRecord, UnknownColumn, UnknownRecords,
};
use crate::recorder::usercmds_as_received_of;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// A source that reads the logs of a session's sides stretch by stretch. Indices are positions in the caller's list.
pub trait SideLogs {
    /// The read error.
    type Error;

    /// Returns the next stretch of a log; `None` after the last.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn next(&mut self, log: usize) -> Result<Option<SessionStretch>, Self::Error>;

    /// Restarts a log from its first stretch.
    ///
    /// # Errors
    /// When the log cannot be read again.
    fn rewind(&mut self, log: usize) -> Result<(), Self::Error>;
}

/// How to merge logs into one session: the result of the first pass.
#[derive(Clone, Debug)]
pub struct MergePlan {
    /// The merged session's header.
    pub header: SessionHeader,
    /// The clients, in the order of players.
    pub clients: Vec<AlignedClient>,
    /// Set when records of a log are left out, because another log ends much earlier.
    pub cut: Option<SessionCut>,
    /// The kinds and columns of unknown records, without rows, as [`StretchWriter`](crate::log::StretchWriter) needs
    /// them.
    pub unknown: Vec<UnknownRecords>,
    end: SessionEnd,
    sides: SideIndex,
    logs: Vec<LogProgress>,
    /// The newest usercmd that each client is known to have sent.
    last_sent: Vec<Option<CommandSeq>>,
    ticks_back: u32,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanFailure<E> {
    /// A log cannot be read.
    #[error("a log cannot be read")]
    Read(E),
    /// The logs are not the sides of one session.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Related records are too far apart or out of order. Use [`merge`](super::merge), which holds the logs in memory.
    #[error("these logs cannot be streamed")]
    Whole,
}

impl MergePlan {
    /// Runs the first pass over the logs with these headers.
    ///
    /// # Errors
    /// When the logs cannot be read, are not the sides of one session (see [`merge`](super::merge)), or cannot be
    /// merged as streams.
    pub fn of<L: SideLogs>(headers: &[&SessionHeader], logs: &mut L) -> Result<MergePlan, PlanFailure<L::Error>> {
        let survey = MergeSurvey::of(headers, logs)?;
        let offsets = survey.offsets()?;
        // The usercmds from before a late log are in the server's log, which streams do not share.
        if survey.players.iter().any(|player| player.begins_late) {
            return Err(PlanFailure::Whole);
        }
        let (_, last) = survey.ticks.ok_or(MergeError::NoTicks)?;
        let aligned = |(((player, log), offset), of): (_, &PlayerMerge)| {
            let (player, has_states) = (PlayerId(player), of.has_states);
            AlignedClient { player, log, offset, has_states, ..AlignedClient::default() }
        };
        let clients = (0..).zip(survey.sides.clients.iter().copied()).zip(offsets).zip(&survey.players);
        let clients: Vec<AlignedClient> = clients.map(aligned).collect();
        let ends = (survey.ends[survey.sides.server], longest(&clients, &survey.ends));
        let last_before = |until| last_before(until, &survey, logs).map_err(PlanFailure::Read);
        let end = SessionEnd::of(last, survey.unknown_packets(), ends, last_before)?;
        Ok(MergePlan {
            header: survey.header(headers[survey.sides.server]),
            clients,
            cut: end.cut,
            end,
            last_sent: survey.players.iter().map(|player| player.last_sent).collect(),
            ticks_back: survey.ticks_back,
            unknown: survey.unknown,
            logs: survey.logs,
            sides: survey.sides,
        })
    }

    /// Reads the logs again and passes the merged session to `to` in stretches. The time that accompanies a stretch is
    /// a lower bound on the times of all later stretches.
    ///
    /// # Errors
    /// When a log cannot be read again, or `to` returns an error.
    pub fn put_together<L: SideLogs, E: From<L::Error>>(
        &self,
        logs: &mut L,
        to: &mut dyn FnMut(SessionStretch, Micros) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = Vec::new();
        for log in 0..self.logs.len() {
            if let Some(part) = MergeInput::of(self, log) {
                logs.rewind(log)?;
                parts.push(part);
            }
        }
        // Records after the end of the session are not needed.
        let next = |parts: &[MergeInput]| {
            let least = (0..parts.len()).min_by_key(|index| parts[*index].bound);
            least.filter(|index| parts[*index].bound <= self.end.until)
        };
        while let Some(index) = next(&parts) {
            let part = &mut parts[index];
            let stretch = match part.chunks_left.checked_sub(1) {
                Some(left) => {
                    part.chunks_left = left;
                    logs.next(part.log)?
                }
                None => None,
            };
            let moved = match stretch {
                Some(stretch) => part.take(self, stretch),
                None => {
                    parts.remove(index);
                    SessionStretch::of(&self.header)
                }
            };
            let until = parts.iter().map(|part| part.bound).min().unwrap_or(Micros(i64::MAX));
            to(moved, until)?;
        }
        Ok(())
    }
}

/// Returns the last tick before a time.
fn last_before<L: SideLogs>(until: Micros, survey: &MergeSurvey, logs: &mut L) -> Result<Option<TickRecord>, L::Error> {
    let server = survey.sides.server;
    logs.rewind(server)?;
    let mut last = None;
    for _ in 0..survey.logs[server].chunks {
        let Some(stretch) = logs.next(server)? else { break };
        let before = stretch.ticks.partition_point(|tick| tick.at < until);
        last = before.checked_sub(1).map(|place| stretch.ticks[place]).or(last);
        if before < stretch.ticks.len() {
            break;
        }
    }
    Ok(last)
}

/// A log in the second pass.
struct MergeInput {
    log: usize,
    player: Option<usize>,
    offset: Micros,
    chunks_left: usize,
    seen: LogProgress,
    /// The most recent ticks of the server's log.
    ticks: VecDeque<TickRecord>,
    /// A lower bound on the times of all unread records.
    bound: Micros,
}

impl MergeInput {
    /// Returns `None` for the log of a client that the server never heard.
    fn of(plan: &MergePlan, log: usize) -> Option<MergeInput> {
        let player = plan.sides.player_of(log);
        let offset = match player {
            Some(player) => plan.clients[player].offset?.offset,
            None => Micros::ZERO,
        };
        Some(MergeInput {
            log,
            player,
            offset,
            chunks_left: plan.logs[log].chunks,
            seen: LogProgress::default(),
            ticks: VecDeque::new(),
            bound: Micros(i64::MIN),
        })
    }

    /// Returns the part of the log's next stretch that the session includes, on the server's clock.
    fn take(&mut self, plan: &MergePlan, stretch: SessionStretch) -> SessionStretch {
        let mut stretch = plan.sides.share(self.log, stretch);
        // The first pass has checked how far the chunks reach back.
        let _ = self.seen.add(&stretch);
        self.ticks.extend(&stretch.ticks);
        while self.ticks.len() > plan.ticks_back as usize + 1 {
            self.ticks.pop_front();
        }
        if let Some(player) = self.player {
            let records = &mut stretch.players[player];
            super::without_later(records, plan.last_sent[player]);
            records.move_by(ClockOwner::Client, self.offset);
            stretch.gaps.move_by(self.offset);
        }
        let timed = self.seen.newest.map(|newest| newest - plan.logs[self.log].back + self.offset);
        let of_ticks = if self.player.is_some() { timed } else { self.ticks.front().map(|tick| tick.at) };
        self.bound = timed.min(of_ticks).unwrap_or(self.bound);
        stretch.end_at(plan.end.tick, plan.end.until);
        stretch
    }
}

// The first pass of a streaming merge. It finds each client's clock offset and the data that the second pass needs. It
// reads the logs in parallel, so that memory use does not depend on their length.

/// The furthest, in time, that a chunk may reach back behind earlier chunks. Other logs are merged in memory.
const BACK_MOST: Micros = Micros::from_s(30);
/// The same limit in ticks.
const TICKS_BACK_MOST: u32 = 4096;
/// The pass reads on in a client's log when more snapshots than this were sent after the last one known to have
/// arrived.
const SNAPSHOTS_AHEAD: usize = 1024;

/// What the pass has read of a log.
#[derive(Clone, Copy, Debug, Default)]
struct LogProgress {
    /// Number of chunks.
    chunks: usize,
    /// The newest time.
    newest: Option<Micros>,
    /// The furthest, in time, that a chunk reaches back behind earlier chunks.
    back: Micros,
    has_ended: bool,
}

/// Data on one player from the server's log and from the player's own.
#[derive(Clone, Debug, Default)]
struct PlayerMerge {
    has_frames: bool,
    is_heard: bool,
    /// Whether the server's log has any record of the player.
    is_known: bool,
    is_reached: bool,
    up: PacketMatcher,
    down: PacketMatcher,
    above: OffsetBounds,
    below: OffsetBounds,
    /// Whether the client's log has usercmds, and packets.
    has_usercmds: bool,
    has_packets: bool,
    /// Whether the client's log has states.
    has_states: bool,
    /// Whether the server received packets that are older than the client's log.
    begins_late: bool,
    /// Arrival time of the first packet that is missing after the beginning of the client's log.
    unknown_at: Option<Micros>,
    /// The newest usercmd of the last packet that the client sent.
    last_sent: Option<CommandSeq>,
}

/// The state of the first pass.
struct MergeSurvey {
    sides: SideIndex,
    logs: Vec<LogProgress>,
    /// The newest time of each log, on its own clock.
    ends: Vec<Option<Micros>>,
    players: Vec<PlayerMerge>,
    /// The first and the last tick.
    ticks: Option<(TickRecord, TickRecord)>,
    /// The lowest tick that a record refers to.
    first_named: Option<Tick>,
    /// The most ticks that a chunk reaches back behind the last tick of earlier chunks.
    ticks_back: u32,
    /// Kinds and columns of unknown records, without rows.
    unknown: Vec<UnknownRecords>,
}

impl MergeSurvey {
    /// Reads all logs to their ends.
    fn of<L: SideLogs>(headers: &[&SessionHeader], logs: &mut L) -> Result<MergeSurvey, PlanFailure<L::Error>> {
        let sides = SideIndex::of(headers)?;
        let player = PlayerMerge { above: OffsetBounds::above(), ..PlayerMerge::default() };
        let mut survey = MergeSurvey {
            logs: vec![LogProgress::default(); headers.len()],
            ends: vec![None; headers.len()],
            players: vec![player; sides.clients.len()],
            ticks: None,
            first_named: None,
            ticks_back: 0,
            unknown: Vec::new(),
            sides,
        };
        let clients: Vec<(usize, usize)> =
            survey.sides.clients.iter().enumerate().filter_map(|(player, log)| Some((player, (*log)?))).collect();
        while !survey.logs[survey.sides.server].has_ended {
            survey.read(logs, survey.sides.server)?;
            for &(player, log) in &clients {
                while !survey.logs[log].has_ended && survey.players[player].is_behind() {
                    survey.read(logs, log)?;
                }
            }
        }
        for (_, log) in clients {
            while !survey.logs[log].has_ended {
                survey.read(logs, log)?;
            }
        }
        let is_known = |named: Tick| survey.ticks.is_none_or(|(first, _)| first.tick <= named);
        if survey.first_named.is_none_or(is_known) { Ok(survey) } else { Err(PlanFailure::Whole) }
    }

    /// Reads the next stretch of one log.
    fn read<L: SideLogs>(&mut self, logs: &mut L, log: usize) -> Result<(), PlanFailure<L::Error>> {
        let Some(stretch) = logs.next(log).map_err(PlanFailure::Read)? else {
            self.logs[log].has_ended = true;
            return self.end(log).ok_or(PlanFailure::Whole);
        };
        if !stretch.time_span().is_none_or(is_in_time) {
            return Err(MergeError::OutOfTime { log }.into());
        }
        // Rows of clients' own kinds and logs without packets are merged in memory.
        let has_own = |records: &UnknownRecords| !records.is_empty() && self.sides.own_kind(records).is_some();
        if self.sides.player_of(log).is_some() && stretch.unknown.iter().any(has_own) {
            return Err(PlanFailure::Whole);
        }
        self.ends[log] = self.ends[log].max(stretch.full_time_span().map(|(_, last)| last));
        if let Some(player) = self.sides.player_of(log) {
            self.players[player].has_states |= !stretch.states.is_empty();
        } else {
            // The merged session takes the input of players with a log from that log.
            for (of, records) in self.players.iter_mut().zip(&stretch.players) {
                of.has_frames |= !records.frames.is_empty();
                of.is_heard |= !records.heard.is_empty();
            }
        }
        let stretch = self.sides.share(log, stretch);
        self.add(log, &stretch).ok_or(PlanFailure::Whole)
    }

    /// Processes the next stretch of a log. `None` if the logs cannot be merged as streams.
    fn add(&mut self, log: usize, stretch: &SessionStretch) -> Option<()> {
        for records in &stretch.unknown {
            // Records without times come at the start of a log that is written in one piece.
            records.times()?;
            records.span(0..records.len()).is_none_or(is_in_time).then_some(())?;
            note_unknown(&mut self.unknown, records);
        }
        self.logs[log].add(stretch)?;
        match self.sides.player_of(log) {
            Some(player) => self.players[player].add_client(stretch, player),
            None => self.add_server(stretch),
        }
    }

    fn add_server(&mut self, stretch: &SessionStretch) -> Option<()> {
        let executed = stretch.players.iter().flat_map(|player| &player.executed).map(|executed| executed.tick);
        let named = executed.chain(stretch.states.keys().iter().map(|key| key.tick)).min();
        if let (Some(named), Some((_, last))) = (named, self.ticks) {
            self.ticks_back = self.ticks_back.max(last.tick.0.saturating_sub(named.0));
            (self.ticks_back <= TICKS_BACK_MOST).then_some(())?;
        }
        self.first_named = [self.first_named, named].into_iter().flatten().min();
        for tick in &stretch.ticks {
            let (first, last) = self.ticks.map_or((*tick, None), |(first, last)| (first, Some(last)));
            // The second pass requires consecutive ticks.
            let follows = |last: TickRecord| last.tick.0.checked_add(1) == Some(tick.tick.0) && last.at <= tick.at;
            last.is_none_or(follows).then_some(())?;
            self.ticks = Some((first, *tick));
        }
        for ((of, log), records) in self.players.iter_mut().zip(&self.sides.clients).zip(&stretch.players) {
            of.is_known |= !records.is_empty();
            if log.is_some() {
                of.is_reached |= !records.reached.is_empty();
                records.snapshots.iter().try_for_each(|sent| of.down.send(sent.seq.0, sent.at)).ok()?;
                records.reached.iter().try_for_each(|arrival| of.up.arrive(*arrival)).ok()?;
                of.look_up()?;
            }
        }
        Some(())
    }

    /// Notes the end of a log.
    fn end(&mut self, log: usize) -> Option<()> {
        match self.sides.player_of(log) {
            Some(player) => {
                let of = &mut self.players[player];
                (of.has_packets || !of.has_usercmds).then_some(())?;
                of.up.end_sending();
                of.look_up()?;
                of.down.end_receiving();
            }
            None => {
                for of in &mut self.players {
                    of.down.end_sending();
                    of.look_up()?;
                    of.up.end_receiving();
                }
            }
        }
        Some(())
    }

    /// Returns the offset of each client's clock from the server's.
    fn offsets(&self) -> Result<Vec<Option<Offset>>, MergeError> {
        self.sides.check_missing(|player| self.players[player].has_input())?;
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| match log {
            Some(log) => {
                let whose = (*log, PlayerId(player));
                check_offset(offset::between(&of.above.kept, &of.below.kept, whose)?, of.is_reached, whose)
            }
            None => Ok(None),
        };
        (0..).zip(&self.sides.clients).zip(&self.players).map(of).collect()
    }

    /// Returns the header of the merged session.
    fn header(&self, server: &SessionHeader) -> SessionHeader {
        let SideIndex { kinds, clients, .. } = &self.sides;
        let mut header = SessionHeader { side: None, unknown: kinds.clone(), ..server.clone() };
        for (player, log) in header.players.iter_mut().zip(clients) {
            player.recorded |= log.is_some();
        }
        let players = (0..).map(PlayerId).zip(self.players.iter().zip(&self.sides.clients));
        let received = players.filter(|(_, (of, log))| log.is_none() && of.has_frames);
        usercmds_as_received_of(&mut header.settings, received.map(|(player, _)| (player, None)));
        header
    }

    /// Returns the first packet of each client that the server received and that is missing after the beginning of the
    /// client's log.
    fn unknown_packets(&self) -> impl Iterator<Item = UnknownPacket> {
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| {
            let (log, is_heard) = ((*log)?, of.has_input());
            Some(UnknownPacket { arrived_at: of.unknown_at?, player: PlayerId(player), log, is_heard })
        };
        (0..).zip(&self.sides.clients).zip(&self.players).filter_map(of)
    }
}

/// Adds the kind and the columns of records to those that are known.
fn note_unknown(known: &mut Vec<UnknownRecords>, records: &UnknownRecords) {
    let empty = |column: &UnknownColumn| UnknownColumn { form: column.form, values: Vec::new() };
    match known.iter_mut().find(|known| known.kind == records.kind) {
        Some(known) => {
            let both = known.columns.iter_mut().zip(&records.columns);
            both.for_each(|(known, column)| known.see(column.form));
        }
        None => known.push(UnknownRecords {
            kind: records.kind.clone(),
            columns: records.columns.iter().map(empty).collect(),
            time_column: records.time_column,
            ..UnknownRecords::default()
        }),
    }
}

impl PlayerMerge {
    /// Returns whether the server's log has all input of the player: as it arrived, or because nobody was there.
    fn has_input(&self) -> bool {
        self.has_frames || self.is_heard || !self.is_known
    }

    /// Returns whether the client's log must be read before more of the server's.
    fn is_behind(&self) -> bool {
        self.up.waits_for_sender() || self.down.packets_in_flight() > SNAPSHOTS_AHEAD
    }

    fn add_client(&mut self, stretch: &SessionStretch, player: usize) -> Option<()> {
        let records = stretch.players.get(player)?;
        self.has_usercmds |= !records.frames.is_empty();
        self.has_packets |= !records.sent.is_empty();
        records.sent.iter().try_for_each(|packet| self.up.send(packet.number, packet.at)).ok()?;
        records.received.iter().try_for_each(|arrival| self.down.arrive(*arrival)).ok()?;
        self.last_sent = records.sent.last().map(|packet| packet.newest).or(self.last_sent);
        self.look_up()
    }

    /// Matches arrivals with their send times.
    fn look_up(&mut self) -> Option<()> {
        while let Some((arrival, sent_at)) = self.up.next().ok()? {
            match sent_at {
                Some(sent_at) => self.above.add(OffsetBound::above(sent_at, arrival.at)).ok()?,
                None if self.up.begins_after(arrival.number) => self.begins_late = true,
                None => self.unknown_at = self.unknown_at.or(Some(arrival.at)),
            }
        }
        while let Some((arrival, sent_at)) = self.down.next().ok()? {
            if let Some(sent_at) = sent_at {
                self.below.add(OffsetBound::below(sent_at, arrival.at)).ok()?;
            }
        }
        Some(())
    }
}

impl LogProgress {
    /// Notes the times of the next chunk's records. `None` if it reaches back too far.
    fn add(&mut self, stretch: &SessionStretch) -> Option<()> {
        self.chunks += 1;
        if let Some((first, last)) = stretch.full_time_span() {
            self.back = self.newest.map_or(self.back, |newest| self.back.max(newest - first));
            self.newest = self.newest.max(Some(last));
        }
        (self.back <= BACK_MOST).then_some(())
    }
}

// One direction of a client's connection. One log has the sent packets, another the arrivals.

/// Sent packets and arrivals that are not matched yet, in bounded queues.
#[derive(Clone, Debug, Default)]
struct PacketMatcher {
    /// Sent packets that may still arrive, by ascending number.
    sent: VecDeque<(u32, Micros)>,
    /// The first sent number.
    first: Option<u32>,
    /// The newest sent number.
    newest: Option<u32>,
    /// The newest number dropped from `sent`.
    forgotten: Option<u32>,
    /// The newest number that arrived.
    arrived: Option<u32>,
    /// Arrivals that are not matched yet.
    waiting: VecDeque<ArrivalRecord>,
    sends_no_more: bool,
    receives_no_more: bool,
}

/// The error for packets that cannot be matched as streams: numbers are out of order, or one log is too far ahead of
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnorderedPackets;

/// How many packets an arrival may be behind the newest arrival.
const KEPT_MOST: usize = 4096;

/// How many packets one log may be ahead of the other.
const AHEAD_MOST: usize = 1 << 16;

impl PacketMatcher {
    /// Adds a packet from the sender's log.
    fn send(&mut self, number: u32, at: Micros) -> Result<(), UnorderedPackets> {
        let is_next = self.newest.is_none_or(|newest| newest < number);
        (self.first, self.newest) = (self.first.or(Some(number)), Some(number));
        if !(self.receives_no_more && self.waiting.is_empty()) {
            self.sent.push_back((number, at));
        }
        if is_next && self.sent.len() <= AHEAD_MOST { Ok(()) } else { Err(UnorderedPackets) }
    }

    /// Adds an arrival from the receiver's log.
    fn arrive(&mut self, arrival: ArrivalRecord) -> Result<(), UnorderedPackets> {
        self.waiting.push_back(arrival);
        if self.waiting.len() <= AHEAD_MOST { Ok(()) } else { Err(UnorderedPackets) }
    }

    /// Notes the end of the sender's log.
    fn end_sending(&mut self) {
        self.sends_no_more = true;
    }

    /// Notes the end of the receiver's log.
    fn end_receiving(&mut self) {
        self.receives_no_more = true;
        if self.waiting.is_empty() {
            self.sent.clear();
        }
    }

    /// Returns whether an arrival waits for more of the sender's log.
    fn waits_for_sender(&self) -> bool {
        !self.sends_no_more && !self.waiting.is_empty()
    }

    /// Returns whether the sender's log begins after a packet.
    fn begins_after(&self, number: u32) -> bool {
        self.first.is_some_and(|first| number < first)
    }

    /// Returns how many packets were sent after the newest that arrived.
    fn packets_in_flight(&self) -> usize {
        let passed = self.arrived.map_or(0, |arrived| self.sent.partition_point(|(number, _)| *number <= arrived));
        self.sent.len() - passed
    }

    /// Returns the next arrival with its send time, which is `None` if the sender's log lacks the packet. Returns
    /// `None` until enough of the sender's log is read.
    fn next(&mut self) -> Result<Option<(ArrivalRecord, Option<Micros>)>, UnorderedPackets> {
        let is_known = |number: u32| self.sends_no_more || self.newest.is_some_and(|newest| newest >= number);
        let Some(arrival) = self.waiting.front().copied().filter(|arrival| is_known(arrival.number)) else {
            return Ok(None);
        };
        self.waiting.pop_front();
        self.arrived = self.arrived.max(Some(arrival.number));
        match self.sent.binary_search_by_key(&arrival.number, |(number, _)| *number) {
            Ok(place) => {
                let (_, at) = self.sent[place];
                let mut passed = self.sent.drain(..place.saturating_sub(KEPT_MOST));
                self.forgotten = passed.next_back().map(|(number, _)| number).or(self.forgotten);
                Ok(Some((arrival, Some(at))))
            }
            Err(_) if self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten) => Err(UnorderedPackets),
            Err(_) => Ok(Some((arrival, None))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u32) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros(i64::from(number) + 5) }
    }

    #[test]
    fn an_arrival_waits_for_its_packet_in_the_senders_log() {
        let mut packets = PacketMatcher::default();
        packets.arrive(arrival(3)).expect("near");
        assert_eq!((packets.next(), packets.waits_for_sender()), (Ok(None), true));
        packets.send(2, Micros(2)).expect("in order");
        assert_eq!(packets.next(), Ok(None));
        packets.send(3, Micros(3)).expect("in order");
        assert_eq!(packets.next(), Ok(Some((arrival(3), Some(Micros(3))))));
        packets.arrive(arrival(2)).expect("near");
        packets.arrive(arrival(1)).expect("near");
        packets.arrive(arrival(9)).expect("near");
        assert_eq!(packets.next(), Ok(Some((arrival(2), Some(Micros(2))))), "overtaken");
        assert_eq!(packets.next(), Ok(Some((arrival(1), None))), "not in the log");
        assert_eq!([1, 2, 9].map(|number| packets.begins_after(number)), [true, false, false]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (Ok(None), true));
        packets.end_sending();
        assert_eq!(packets.next(), Ok(Some((arrival(9), None))), "the log was cut off before it");
        assert!(!packets.waits_for_sender());
    }

    #[test]
    fn packets_too_far_out_of_order_are_an_error() {
        let mut packets = PacketMatcher::default();
        let sent = |packets: &mut PacketMatcher, numbers: std::ops::Range<u32>| {
            numbers.into_iter().try_for_each(|number| packets.send(number, Micros(i64::from(number))))
        };
        sent(&mut packets, 1..10_000).expect("near");
        packets.arrive(arrival(9_000)).expect("near");
        packets.arrive(arrival(9_000 - KEPT_MOST as u32)).expect("near");
        packets.arrive(arrival(8_999 - KEPT_MOST as u32)).expect("near");
        assert!(matches!(packets.next(), Ok(Some((_, Some(_))))));
        assert_eq!(packets.packets_in_flight(), 999);
        assert!(matches!(packets.next(), Ok(Some((_, Some(_))))));
        assert_eq!(packets.next(), Err(UnorderedPackets));
        assert_eq!(packets.send(9_999, Micros(0)), Err(UnorderedPackets), "out of order");
        assert_eq!(sent(&mut packets, 10_000..80_000), Err(UnorderedPackets), "far ahead");
        let mut gone = PacketMatcher::default();
        gone.end_receiving();
        assert_eq!((sent(&mut gone, 1..100_000), gone.sent.len()), (Ok(()), 0), "nobody receives it");
    }
}
