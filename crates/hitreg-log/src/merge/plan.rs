//! A merge in two passes over the logs. The first pass finds each client's clock offset and the end of the session. The
//! second pass produces the session.
//!
//! Both passes read the logs side by side, as streams: the memory use does not depend on the logs' length, and the
//! second pass produces stretches that overlap in time. Logs whose related records are too far apart are read one after
//! another. The first pass then forgets nothing, and the second pass produces one stretch.

use std::collections::VecDeque;

use super::offset::{self, OffsetBound, OffsetBounds};
use super::{AlignedClient, MergeError, SessionCut, SessionEnd, SideIndex, UnknownPacket, is_in_time};
use crate::record::{
    ArrivalRecord, ClockOwner, GapCause, GapRecord, PlayerRecords, RecordStream, SessionHeader, SessionStretch,
    TickRecord, USERCMD_BYTES, UnknownColumn, UnknownRecords, widest,
};
use crate::recorder::usercmds_as_received_of;
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// A source that reads the logs of a session's sides stretch by stretch. Indices are positions in the caller's list.
pub trait SideLogs {
    /// The read error.
    type Error: From<MergeError>;

    /// Returns the next stretch of a log; `None` after the last. It opens a log that is closed.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn next(&mut self, log: usize) -> Result<Option<SessionStretch>, Self::Error>;

    /// Closes a log. Its next stretch is then the first.
    fn close(&mut self, log: usize);
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
    /// Whether the session is put together in memory, because the logs cannot be merged as streams.
    pub in_memory: bool,
    end: SessionEnd,
    sides: SideIndex,
    logs: Vec<LogProgress>,
    /// The origin of each player's usercmds.
    usercmds: Vec<UsercmdShares>,
    ticks_back: u32,
}

impl MergePlan {
    /// Runs the first pass over the logs with these headers.
    ///
    /// # Errors
    /// When the logs cannot be read, or are not the sides of one session (see [`merge`](super::merge)).
    pub fn of<L: SideLogs>(headers: &[&SessionHeader], logs: &mut L) -> Result<MergePlan, L::Error> {
        MergePlan::new(headers, logs, false)
    }

    /// Returns a plan that puts the session together in memory, or as a stream if possible.
    pub(super) fn new<L: SideLogs>(
        headers: &[&SessionHeader],
        logs: &mut L,
        in_memory: bool,
    ) -> Result<MergePlan, L::Error> {
        let survey = MergeSurvey::of(headers, logs, in_memory)?;
        survey.sides.check_missing(|player| survey.has_input(player))?;
        let clients: Vec<AlignedClient> = survey.clients().collect::<Result<_, _>>()?;
        for (client, of) in clients.iter().zip(&survey.players) {
            if let Some(log) = client.log.filter(|_| client.begins_late && !of.has_frames) {
                return Err(MergeError::BeginsLate { log, player: client.player }.into());
            }
        }
        let (_, last) = survey.ticks.ok_or(MergeError::NoTicks)?;
        let end = |client: &AlignedClient| Some(survey.ends[client.log?]? + client.offset?.offset);
        let ends = (survey.ends[survey.sides.server], clients.iter().filter_map(end).max());
        let end = SessionEnd::of(last, survey.unknown_packets(), ends, |until| last_before(until, &survey, logs))?;
        let shares = clients.iter().zip(&survey.players).map(|(client, of)| UsercmdShares::of(client, of));
        let usercmds: Vec<UsercmdShares> = shares.collect();
        Ok(MergePlan {
            header: survey.header(headers[survey.sides.server], &clients, &usercmds),
            clients,
            cut: end.cut,
            end,
            usercmds,
            ticks_back: survey.ticks_back,
            unknown: survey.unknown,
            in_memory: survey.in_memory,
            logs: survey.logs,
            sides: survey.sides,
        })
    }

    /// Reads the logs again and passes the merged session to `to` in stretches. The time that accompanies a stretch is
    /// a lower bound on the times of all later stretches.
    ///
    /// # Errors
    /// When a log cannot be read again, or `to` returns an error.
    pub fn put_together<L: SideLogs>(
        &self,
        logs: &mut L,
        to: &mut dyn FnMut(SessionStretch, Micros) -> Result<(), L::Error>,
    ) -> Result<(), L::Error> {
        let mut parts: Vec<MergeInput> = self.sides.all().filter_map(|log| MergeInput::of(self, log)).collect();
        parts.iter().for_each(|part| logs.close(part.log));
        let mut whole = self.in_memory.then(|| SessionStretch::of(&self.header));
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
                    logs.close(parts.remove(index).log);
                    SessionStretch::of(&self.header)
                }
            };
            match &mut whole {
                Some(whole) => whole.append(moved),
                None => to(moved, parts.iter().map(|part| part.bound).min().unwrap_or(Micros(i64::MAX)))?,
            }
        }
        let Some(mut whole) = whole else { return Ok(()) };
        let by_ticks = self.clients.iter().zip(&mut whole.players).filter(|(client, _)| client.is_by_ticks);
        for (_, records) in by_ticks {
            records.frames.sort_by_key(|frame| frame.command.seq);
        }
        to(whole, Micros(i64::MAX))
    }
}

/// Returns the last tick before a time.
fn last_before<L: SideLogs>(until: Micros, survey: &MergeSurvey, logs: &mut L) -> Result<Option<TickRecord>, L::Error> {
    let server = survey.sides.server;
    logs.close(server);
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
    /// A lower bound on the times of all unread records. In memory it is the least time until the log is read.
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
        let is_first = self.seen.chunks == 0;
        self.seen.add(&stretch);
        if !plan.in_memory {
            self.note_bound(plan, &stretch);
        }
        match self.player {
            Some(player) => {
                let UsercmdShares { last, began_late, .. } = &plan.usercmds[player];
                let records = &mut stretch.players[player];
                records.frames.retain(|frame| Some(frame.command.seq) <= *last);
                records.move_by(ClockOwner::Client, self.offset);
                stretch.unknown.iter_mut().for_each(|records| records.move_by(self.offset));
                stretch.gaps.move_by(self.offset);
                if let Some(begun) = began_late {
                    // The gap takes the place of those that a flight recorder left there.
                    stretch.gaps.retain(|gap| gap.to > begun.to);
                    stretch.gaps.extend(is_first.then_some(*begun));
                }
            }
            None => {
                let with_log = plan.clients.iter().zip(&plan.usercmds).zip(&mut stretch.players);
                for ((_, shares), records) in with_log.filter(|((client, _), _)| client.log.is_some()) {
                    records.frames.retain(|frame| shares.of_server.contains(&frame.command.seq));
                    records.heard.clear();
                }
                let bytes = stretch.unknown.iter_mut().filter(|records| records.kind == USERCMD_BYTES);
                bytes.for_each(|records| drop_bytes(records, &plan.usercmds));
            }
        }
        stretch.end_at(plan.end.tick, plan.end.until);
        stretch
    }

    fn note_bound(&mut self, plan: &MergePlan, stretch: &SessionStretch) {
        self.ticks.extend(&stretch.ticks);
        while self.ticks.len() > plan.ticks_back as usize + 1 {
            self.ticks.pop_front();
        }
        let timed = self.seen.newest.map(|newest| newest - plan.logs[self.log].back + self.offset);
        let of_ticks = if self.player.is_some() { timed } else { self.ticks.front().map(|tick| tick.at) };
        self.bound = timed.min(of_ticks).unwrap_or(self.bound);
    }
}

/// Removes the server's extra bytes of the usercmds whose bytes are in a client's log.
fn drop_bytes(records: &mut UnknownRecords, shares: &[UsercmdShares]) {
    let is_own = |row: usize| {
        let command = records.columns.get(1).map(|commands| CommandSeq(commands.values[row] as u32));
        let own = shares.get(records.series[row] as usize).and_then(|shares| shares.with_bytes.as_ref());
        own.is_some_and(|own| command.is_none_or(|command| own.contains(&command)))
    };
    let kept: Vec<usize> = (0..records.len()).filter(|row| !is_own(*row)).collect();
    *records = records.rows(&kept);
}

/// Which usercmds of a player with a client's log come from which log.
#[derive(Clone, Debug, Default)]
struct UsercmdShares {
    /// The last usercmd that is kept of the client's log. A truncated log can end between a usercmd and its packet.
    /// Without the packet's fate the usercmd cannot be replayed.
    last: Option<CommandSeq>,
    /// The usercmds of the server's log that the client's log lacks.
    of_server: SortedSet<CommandSeq>,
    /// The usercmds of the client's log, if the log has extra bytes of usercmds.
    with_bytes: Option<SortedSet<CommandSeq>>,
    /// The gap before the client's log if it begins late.
    began_late: Option<GapRecord>,
}

impl UsercmdShares {
    fn of(client: &AlignedClient, of: &PlayerMerge) -> UsercmdShares {
        let Some(offset) = client.offset else { return UsercmdShares::default() };
        // Without packets, the server's records show which usercmds arrived.
        let last = if client.is_by_ticks { of.last_heard } else { of.last_sent };
        let is_sent = |seq: &CommandSeq| client.is_by_ticks || Some(*seq) <= last;
        let own: SortedSet<CommandSeq> = of.usercmds.iter().copied().filter(is_sent).collect();
        let first = own.first().filter(|_| client.begins_late);
        let is_of_server = |seq: &CommandSeq| match client.is_by_ticks {
            true => !own.contains(seq),
            false => first.is_some_and(|first| seq < first),
        };
        let began_late = of.first_of_server.zip(of.first_of_client).filter(|_| client.begins_late);
        UsercmdShares {
            last,
            of_server: of.usercmds_of_server.iter().copied().filter(is_of_server).collect(),
            began_late: began_late.map(|(from, to)| {
                let (to, player) = (to + offset.offset, Some(client.player));
                GapRecord { from, to, player, why: GapCause::BeganLate }
            }),
            with_bytes: of.has_bytes.then_some(own),
        }
    }
}

// The first pass. It finds each client's clock offset and the data that the second pass needs.

/// The furthest, in time, that a chunk may reach back behind earlier chunks of a stream.
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
    is_executed: bool,
    up: PacketMatcher,
    down: PacketMatcher,
    above: OffsetBounds,
    below: OffsetBounds,
    /// Whether the client's log has usercmds, extra bytes of usercmds, packets, and states.
    has_usercmds: bool,
    has_bytes: bool,
    has_packets: bool,
    has_states: bool,
    /// Whether the server received packets that are older than the client's log.
    begins_late: bool,
    /// Arrival time of the first packet that is missing after the beginning of the client's log.
    unknown_at: Option<Micros>,
    /// The newest usercmd of the last packet that the client sent.
    last_sent: Option<CommandSeq>,
    // Only in memory: the client's ticks, and the usercmds and the earliest time of each log.
    ticks: Vec<TickRecord>,
    usercmds: Vec<CommandSeq>,
    usercmds_of_server: Vec<CommandSeq>,
    /// The newest usercmd that the server received or handled.
    last_heard: Option<CommandSeq>,
    first_of_client: Option<Micros>,
    first_of_server: Option<Micros>,
}

/// The state of the first pass.
struct MergeSurvey {
    sides: SideIndex,
    /// Whether the pass reads the logs one after another and forgets nothing.
    in_memory: bool,
    /// Whether the logs can be merged as streams.
    is_stream: bool,
    logs: Vec<LogProgress>,
    /// The newest time of each log, on its own clock.
    ends: Vec<Option<Micros>>,
    players: Vec<PlayerMerge>,
    /// The first and the last tick.
    ticks: Option<(TickRecord, TickRecord)>,
    /// All ticks; only in memory.
    all_ticks: Vec<TickRecord>,
    /// The lowest tick that a record refers to.
    first_named: Option<Tick>,
    /// The most ticks that a chunk reaches back behind the last tick of earlier chunks.
    ticks_back: u32,
    /// Kinds and columns of unknown records, without rows.
    unknown: Vec<UnknownRecords>,
}

impl MergeSurvey {
    /// Reads all logs to their ends: side by side if possible.
    fn of<L: SideLogs>(headers: &[&SessionHeader], logs: &mut L, in_memory: bool) -> Result<MergeSurvey, L::Error> {
        let sides = SideIndex::of(headers)?;
        sides.all().for_each(|log| logs.close(log));
        let mut survey = MergeSurvey {
            logs: vec![LogProgress::default(); headers.len()],
            ends: vec![None; headers.len()],
            players: sides.clients.iter().map(|log| PlayerMerge::new(log.is_some())).collect(),
            ticks: None,
            all_ticks: Vec::new(),
            first_named: None,
            ticks_back: 0,
            unknown: Vec::new(),
            sides,
            in_memory,
            is_stream: true,
        };
        while let Some(log) = survey.next_log() {
            survey.read(logs, log)?;
            if !survey.in_memory && !survey.is_stream {
                return MergeSurvey::of(headers, logs, true);
            }
        }
        Ok(survey)
    }

    /// Returns the log to read next.
    fn next_log(&self) -> Option<usize> {
        let is_unread = |log: &usize| !self.logs[*log].has_ended;
        let clients = self.sides.clients.iter().zip(&self.players);
        let mut behind = clients.filter_map(|(log, of)| log.filter(|log| is_unread(log) && of.is_behind()));
        let first_behind = if self.in_memory { None } else { behind.next() };
        first_behind.or_else(|| self.sides.all().find(is_unread))
    }

    /// Reads the next stretch of one log.
    fn read<L: SideLogs>(&mut self, logs: &mut L, log: usize) -> Result<(), L::Error> {
        let Some(mut stretch) = logs.next(log)? else {
            logs.close(log);
            self.end(log);
            return Ok(());
        };
        if !stretch.time_span().is_none_or(is_in_time) {
            return Err(MergeError::OutOfTime { log }.into());
        }
        self.ends[log] = self.ends[log].max(stretch.full_time_span().map(|(_, last)| last));
        let player = self.sides.player_of(log);
        if let Some(of) = player.map(|player| &mut self.players[player]) {
            of.has_states |= !stretch.states.is_empty();
            if self.in_memory {
                of.ticks.append(&mut stretch.ticks);
            }
        }
        let stretch = self.sides.share(log, stretch);
        for records in stretch.unknown.iter().filter(|records| !records.is_empty()) {
            // Records without times come at the start of a log that is written in one piece. The rows of several logs
            // are in the order of time only if all are known.
            let is_timed = records.times().is_some() && records.span(0..records.len()).is_none_or(is_in_time);
            self.is_stream &= is_timed && player.is_none();
            note_unknown(&mut self.unknown, records);
        }
        self.is_stream &= self.logs[log].add(&stretch);
        match player {
            Some(player) => self.players[player].add_client(&stretch, player, self.in_memory),
            None => self.add_server(&stretch),
        }
        if !self.in_memory {
            self.match_packets(log);
        }
        Ok(())
    }

    fn add_server(&mut self, stretch: &SessionStretch) {
        let executed = stretch.players.iter().flat_map(|player| &player.executed).map(|executed| executed.tick);
        let named = executed.chain(stretch.states.keys().iter().map(|key| key.tick)).min();
        if let (Some(named), Some((_, last))) = (named, self.ticks) {
            self.ticks_back = self.ticks_back.max(last.tick.0.saturating_sub(named.0));
            self.is_stream &= self.ticks_back <= TICKS_BACK_MOST;
        }
        self.first_named = [self.first_named, named].into_iter().flatten().min();
        for tick in &stretch.ticks {
            let (first, last) = self.ticks.map_or((*tick, None), |(first, last)| (first, Some(last)));
            // The second pass requires consecutive ticks.
            let follows = |last: TickRecord| last.tick.0.checked_add(1) == Some(tick.tick.0) && last.at <= tick.at;
            self.is_stream &= last.is_none_or(follows);
            self.ticks = Some((first, *tick));
        }
        if self.in_memory {
            self.all_ticks.extend(&stretch.ticks);
        }
        for (of, records) in self.players.iter_mut().zip(&stretch.players) {
            of.add_server(records, self.in_memory);
        }
    }

    /// Notes the end of a log.
    fn end(&mut self, log: usize) {
        self.logs[log].has_ended = true;
        match self.sides.player_of(log) {
            Some(player) => {
                let of = &mut self.players[player];
                self.is_stream &= !of.has_no_packets();
                (of.up.sends_no_more, of.down.receives_no_more) = (true, true);
            }
            None => {
                let is_known = |named: Tick| self.ticks.is_none_or(|(first, _)| first.tick <= named);
                self.is_stream &= self.first_named.is_none_or(is_known);
                for of in &mut self.players {
                    (of.down.sends_no_more, of.up.receives_no_more) = (true, true);
                }
            }
        }
        self.match_packets(log);
    }

    /// Matches packets of the players whom a log concerns. In memory, this waits for the end of the client's log.
    fn match_packets(&mut self, log: usize) {
        let players = self.sides.player_of(log).map_or(0..self.players.len(), |player| player..player + 1);
        for of in &mut self.players[players] {
            of.look_up();
            if !self.in_memory {
                self.is_stream &= of.forget();
            }
        }
    }

    /// Returns the clients with the offsets of their clocks.
    fn clients(&self) -> impl Iterator<Item = Result<AlignedClient, MergeError>> {
        let players = (0..).map(PlayerId).zip(self.sides.clients.iter().zip(&self.players));
        players.map(|(player, (log, of))| {
            let Some(log) = *log else { return Ok(AlignedClient { player, ..AlignedClient::default() }) };
            let offset = match of.has_no_packets() {
                true => offset::by_ticks(&of.ticks, &self.all_ticks),
                false => offset::between(&of.above.kept, &of.below.kept, (log, player))?,
            };
            // A client that the server never heard does not affect the session.
            if offset.is_none() && of.is_reached {
                return Err(MergeError::Unbounded { log, player });
            }
            let (is_by_ticks, begins_late) = (of.has_no_packets() && offset.is_some(), of.begins_late);
            let has_states = of.has_states;
            Ok(AlignedClient { player, log: Some(log), offset, is_by_ticks, begins_late, has_states })
        })
    }

    /// Returns the header of the merged session.
    fn header(&self, server: &SessionHeader, clients: &[AlignedClient], shares: &[UsercmdShares]) -> SessionHeader {
        let mut header = SessionHeader { side: None, unknown: self.sides.kinds.clone(), ..server.clone() };
        for (player, client) in header.players.iter_mut().zip(clients) {
            player.recorded |= client.log.is_some();
        }
        // The players with usercmds of the server's log, each with the last of them if later ones are the client's.
        let received = clients.iter().zip(shares).zip(&self.players).filter_map(|((client, shares), of)| {
            let until = match client.log {
                None => of.has_frames.then_some(None)?,
                Some(_) => Some(*shares.of_server.last()?).filter(|_| !client.is_by_ticks),
            };
            Some((client.player, until))
        });
        usercmds_as_received_of(&mut header.settings, received);
        header
    }

    /// Returns whether the server's log has all input of a player: as it arrived, or because nobody was there or sent any.
    fn has_input(&self, player: usize) -> bool {
        let of = &self.players[player];
        let records_executed = self.players.iter().any(|other| other.is_executed);
        let sent_nothing = records_executed && !of.is_executed && !of.is_reached;
        of.has_frames || of.is_heard || !of.is_known || sent_nothing
    }

    /// Returns the first packet of each client that the server received and that is missing after the beginning of the
    /// client's log.
    fn unknown_packets(&self) -> impl Iterator<Item = UnknownPacket> {
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| {
            let (log, is_heard) = ((*log)?, self.has_input(player.into()));
            let arrived_at = of.unknown_at.filter(|_| !of.has_no_packets())?;
            Some(UnknownPacket { arrived_at, player: PlayerId(player), log, is_heard })
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
    /// Returns the data before the first stretch. A missing log has ended.
    fn new(has_log: bool) -> PlayerMerge {
        let up = PacketMatcher { sends_no_more: !has_log, ..PacketMatcher::default() };
        let down = PacketMatcher { receives_no_more: !has_log, ..PacketMatcher::default() };
        PlayerMerge { up, down, above: OffsetBounds::above(), ..PlayerMerge::default() }
    }

    /// Returns whether the client's log has usercmds but no packets: its program does not record them.
    fn has_no_packets(&self) -> bool {
        self.has_usercmds && !self.has_packets
    }

    /// Returns whether the client's log must be read before more of the server's.
    fn is_behind(&self) -> bool {
        self.up.waits_for_sender() || self.down.packets_in_flight() > SNAPSHOTS_AHEAD
    }

    fn add_client(&mut self, stretch: &SessionStretch, player: usize, in_memory: bool) {
        let records = &stretch.players[player];
        self.has_usercmds |= !records.frames.is_empty();
        self.has_packets |= !records.sent.is_empty();
        self.has_bytes |= stretch.unknown.iter().any(|records| records.kind == USERCMD_BYTES);
        records.sent.iter().for_each(|packet| self.up.send(packet.number, packet.at));
        self.down.waiting.extend(&records.received);
        self.last_sent = records.sent.last().map(|packet| packet.newest).or(self.last_sent);
        if in_memory {
            self.first_of_client = earliest(self.first_of_client, records);
            self.usercmds.extend(records.frames.iter().map(|frame| frame.command.seq));
        }
    }

    fn add_server(&mut self, records: &PlayerRecords, in_memory: bool) {
        self.has_frames |= !records.frames.is_empty();
        self.is_heard |= !records.heard.is_empty();
        self.is_known |= !records.is_empty();
        self.is_reached |= !records.reached.is_empty();
        self.is_executed |= !records.executed.is_empty();
        records.snapshots.iter().for_each(|sent| self.down.send(sent.seq.0, sent.at));
        self.up.waiting.extend(&records.reached);
        if in_memory {
            let heard = records.frames.iter().map(|frame| frame.command.seq);
            let executed = records.executed.iter().map(|executed| executed.command);
            self.last_heard = self.last_heard.max(heard.clone().chain(executed).max());
            self.first_of_server = earliest(self.first_of_server, records);
            self.usercmds_of_server.extend(heard);
        }
    }

    /// Matches arrivals with their send times.
    fn look_up(&mut self) {
        while let Some((arrival, sent_at)) = self.up.next() {
            let is_earlier = self.up.begins_after(arrival.number);
            self.begins_late |= is_earlier;
            match sent_at {
                Some(sent_at) => self.above.kept.push(OffsetBound::above(sent_at, arrival.at)),
                None => self.unknown_at = self.unknown_at.or(Some(arrival.at).filter(|_| !is_earlier)),
            }
        }
        while let Some((arrival, sent_at)) = self.down.next() {
            self.below.kept.extend(sent_at.map(|sent_at| OffsetBound::below(sent_at, arrival.at)));
        }
    }

    /// Drops what a stream no longer needs. Returns false if the logs cannot be merged as streams: too much is left, or
    /// usercmds from before a late log are in the server's log.
    fn forget(&mut self) -> bool {
        let is_little = [self.up.forget(), self.down.forget(), self.above.reduce(), self.below.reduce()];
        is_little == [true; 4] && !self.begins_late
    }
}

/// Returns the earliest time of a player's records and of `other`.
fn earliest(other: Option<Micros>, records: &PlayerRecords) -> Option<Micros> {
    let spans = records.streams().into_iter().filter_map(|list| list.span(0..list.len()));
    [other, widest(spans).map(|(first, _)| first)].into_iter().flatten().min()
}

impl LogProgress {
    /// Notes the times of the next chunk's records. Returns false if it reaches back too far for a stream.
    fn add(&mut self, stretch: &SessionStretch) -> bool {
        self.chunks += 1;
        if let Some((first, last)) = stretch.full_time_span() {
            self.back = self.newest.map_or(self.back, |newest| self.back.max(newest - first));
            self.newest = self.newest.max(Some(last));
        }
        self.back <= BACK_MOST
    }
}

// One direction of a client's connection. One log has the sent packets, another the arrivals.

/// Sent packets and arrivals that are not matched yet. A stream forgets the packets that can no longer arrive.
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
    /// Whether the sender's log has been read.
    sends_no_more: bool,
    /// Whether the receiver's log has been read.
    receives_no_more: bool,
    /// Whether numbers are not ascending, or a forgotten packet arrived.
    is_unordered: bool,
}

/// How many packets an arrival may be behind the newest arrival in a stream.
const KEPT_MOST: usize = 4096;

/// How many packets one log may be ahead of the other in a stream.
const AHEAD_MOST: usize = 1 << 16;

impl PacketMatcher {
    /// Adds a packet from the sender's log.
    fn send(&mut self, number: u32, at: Micros) {
        self.is_unordered |= self.newest.is_some_and(|newest| newest >= number);
        (self.first, self.newest) = (self.first.or(Some(number)), Some(number));
        self.sent.push_back((number, at));
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
    fn next(&mut self) -> Option<(ArrivalRecord, Option<Micros>)> {
        let is_known = |number: u32| self.sends_no_more || self.newest.is_some_and(|newest| newest >= number);
        let arrival = self.waiting.pop_front_if(|arrival| is_known(arrival.number))?;
        self.arrived = self.arrived.max(Some(arrival.number));
        self.is_unordered |= self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten);
        let place = self.sent.binary_search_by_key(&arrival.number, |(number, _)| *number);
        Some((arrival, place.ok().map(|place| self.sent[place].1)))
    }

    /// Drops the packets that can no longer arrive. Returns false if this is a stream of packets out of order, or one
    /// log is too far ahead of the other.
    fn forget(&mut self) -> bool {
        let passed = (self.sent.len() - self.packets_in_flight()).saturating_sub(KEPT_MOST + 1);
        let mut passed = self.sent.drain(..passed);
        self.forgotten = passed.next_back().map(|(number, _)| number).or(self.forgotten);
        drop(passed);
        if self.receives_no_more && self.waiting.is_empty() {
            self.sent.clear();
        }
        !self.is_unordered && self.sent.len().max(self.waiting.len()) <= AHEAD_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u32) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros(i64::from(number) + 5) }
    }

    /// A connection of which these numbers arrived.
    fn arrived(numbers: &[u32]) -> PacketMatcher {
        PacketMatcher { waiting: numbers.iter().copied().map(arrival).collect(), ..PacketMatcher::default() }
    }

    #[test]
    fn an_arrival_waits_for_its_packet_in_the_senders_log() {
        let mut packets = arrived(&[3]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.send(2, Micros(2));
        assert_eq!(packets.next(), None);
        packets.send(3, Micros(3));
        assert_eq!(packets.next(), Some((arrival(3), Some(Micros(3)))));
        packets.waiting.extend([2, 1, 9].map(arrival));
        assert_eq!(packets.next(), Some((arrival(2), Some(Micros(2)))), "overtaken");
        assert_eq!(packets.next(), Some((arrival(1), None)), "not in the log");
        assert_eq!([1, 2, 9].map(|number| packets.begins_after(number)), [true, false, false]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.sends_no_more = true;
        assert_eq!(packets.next(), Some((arrival(9), None)), "the log was cut off before it");
        assert!(!packets.waits_for_sender() && packets.forget());
    }

    #[test]
    fn packets_too_far_out_of_order_are_no_stream() {
        let sent = |packets: &mut PacketMatcher, numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| packets.send(number, Micros(i64::from(number))));
            packets.forget()
        };
        let last_kept = 9_000 - KEPT_MOST as u32;
        let mut packets = arrived(&[9_000]);
        sent(&mut packets, 1..10_000);
        assert!(packets.next().is_some() && packets.forget());
        assert_eq!(packets.packets_in_flight(), 999);
        packets.waiting.extend([last_kept, last_kept - 1].map(arrival));
        assert!(matches!(packets.next(), Some((_, Some(_)))) && packets.forget());
        assert!(matches!(packets.next(), Some((_, None))) && !packets.forget(), "it is forgotten");
        let mut packets = arrived(&[]);
        assert!(sent(&mut packets, 1..10) && !sent(&mut packets, 9..10), "out of order");
        assert!(!sent(&mut arrived(&[]), 1..80_000), "far ahead");
        let mut gone = PacketMatcher { receives_no_more: true, ..PacketMatcher::default() };
        assert_eq!((sent(&mut gone, 1..100_000), gone.sent.len()), (true, 0), "nobody receives it");
    }
}
