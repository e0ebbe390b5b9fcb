//! A merge in two passes over the logs. The first pass finds each client's clock offset and the end of the session. The
//! second pass produces the session.
//!
//! Both passes read the logs side by side, as streams: the memory use does not depend on the logs' length, and the
//! second pass produces chunks that overlap in time. Logs whose related records are too far apart are read one after
//! another. The first pass then forgets nothing, and the second pass produces one chunk.

use std::collections::VecDeque;

use super::survey::{ClientPart, LogProgress, MergeSurvey, PlayerMerge};
use super::{AlignedClient, MergeError, MergeErrorKind, SessionCut, SessionEnd, SideIndex};
use crate::record::{
    ClockOwner, EventTime, FrameRecord, GapCause, GapRecord, RecordStream, SessionChunk, SessionHeader, TickRecord,
    UnknownRecords,
};
use crate::sorted::SortedMap;
use crate::units::{CommandSeq, Micros};

/// A source that reads the logs of a session's sides chunk by chunk. Indices are positions in the caller's list.
pub trait SideLogs {
    /// The read error.
    type Error: From<MergeError>;

    /// Returns the next chunk of a log; `None` after the last. It opens a log that is closed.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn next(&mut self, log: usize) -> Result<Option<SessionChunk>, Self::Error>;

    /// Closes a log. Its next chunk is then the first.
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
    /// The kinds and columns of unknown records, without rows, as [`MergeWriter`](crate::log::MergeWriter) needs
    /// them.
    pub unknown: Vec<UnknownRecords>,
    /// Whether the session is put together in memory, because the logs cannot be merged as streams.
    pub in_memory: bool,
    end: SessionEnd,
    sides: SideIndex,
    logs: Vec<LogProgress>,
    /// The origin of each player's usercmds.
    usercmds: Vec<UsercmdShares>,
    /// What each client contributes, if the server's log is a part of the session.
    parts: Option<Vec<ClientPart>>,
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
        let mut clients: Vec<AlignedClient> = survey.clients().collect::<Result<_, _>>()?;
        for (client, of) in clients.iter().zip(&survey.players) {
            if let Some(log) = client.log.filter(|_| client.begins_late && !of.has_frames) {
                return Err(MergeErrorKind::BeginsLate { player: client.player }.of(log).into());
            }
        }
        let (_, last) = survey.ticks.ok_or(MergeError { log: None, kind: MergeErrorKind::NoTicks })?;
        let end = |client: &AlignedClient| Some(survey.ends[client.log?]? + client.offset?.offset);
        let ends = (survey.ends[survey.sides.server], clients.iter().filter_map(end).max());
        let end = SessionEnd::of(last, survey.unknown_packets(), ends, |until| last_before(until, &survey, logs))?;
        for (player, client) in clients.iter_mut().enumerate() {
            let is_heard = client.log.is_some() && survey.has_input(player);
            client.without = if is_heard { end.without(client.player, last) } else { None };
        }
        let parts = survey.client_parts(headers[survey.sides.server]);
        let begins_at = parts.as_ref().and_then(|parts| Some(parts.first()?.begins_at));
        let shares = clients.iter().zip(&survey.players).map(|(client, of)| UsercmdShares::of(client, of, begins_at));
        let usercmds: Vec<UsercmdShares> = shares.collect();
        Ok(MergePlan {
            header: survey.header(headers[survey.sides.server], &clients, &usercmds),
            clients,
            cut: end.cut,
            end,
            usercmds,
            parts,
            ticks_back: survey.ticks_back,
            unknown: survey.unknown,
            in_memory: survey.in_memory,
            logs: survey.logs,
            sides: survey.sides,
        })
    }

    /// Reads the logs again and passes the merged session to `to` in chunks. The time that accompanies a chunk is
    /// a lower bound on the times of all later chunks.
    ///
    /// # Errors
    /// When a log cannot be read again, or `to` returns an error.
    pub fn put_together<L: SideLogs>(
        &self,
        logs: &mut L,
        to: &mut dyn FnMut(SessionChunk, Micros) -> Result<(), L::Error>,
    ) -> Result<(), L::Error> {
        let mut parts: Vec<MergeInput> = self.sides.all().filter_map(|log| MergeInput::of(self, log)).collect();
        parts.iter().for_each(|part| logs.close(part.log));
        let mut whole = self.in_memory.then(|| SessionChunk::of(&self.header));
        // Records after the end of the session are not needed.
        let next = |parts: &[MergeInput]| {
            let least = (0..parts.len()).min_by_key(|index| parts[*index].bound);
            least.filter(|index| parts[*index].bound <= self.end.until)
        };
        while let Some(index) = next(&parts) {
            let part = &mut parts[index];
            let chunk = match part.chunks_left.checked_sub(1) {
                Some(left) => {
                    part.chunks_left = left;
                    logs.next(part.log)?
                }
                None => None,
            };
            let moved = match chunk {
                Some(chunk) => part.take(self, chunk),
                None => {
                    logs.close(parts.remove(index).log);
                    SessionChunk::of(&self.header)
                }
            };
            match &mut whole {
                Some(whole) => whole.append(moved),
                None => to(moved, parts.iter().map(|part| part.bound).min().unwrap_or(Micros(i64::MAX)))?,
            }
        }
        let Some(mut whole) = whole else { return Ok(()) };
        for ((client, shares), records) in self.clients.iter().zip(&self.usercmds).zip(&mut whole.players) {
            if client.is_by_ticks || shares.has_filled_gap() {
                records.frames.sort_by_key(|frame| frame.command.seq);
            }
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
        let Some(chunk) = logs.next(server)? else { break };
        let before = chunk.ticks.partition_point(|tick| tick.at < until);
        last = before.checked_sub(1).map(|place| chunk.ticks[place]).or(last);
        if before < chunk.ticks.len() {
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

    /// Returns the part of the log's next chunk that the session includes, on the server's clock.
    fn take(&mut self, plan: &MergePlan, chunk: SessionChunk) -> SessionChunk {
        let mut chunk = plan.sides.share(self.log, chunk);
        let is_first = self.seen.chunks == 0;
        self.seen.add(&chunk);
        if !plan.in_memory {
            self.note_bound(plan, &chunk);
        }
        match self.player {
            Some(player) => {
                let UsercmdShares { last, began_late, .. } = &plan.usercmds[player];
                let records = &mut chunk.players[player];
                records.frames.retain(|frame| Some(frame.command.seq) <= *last);
                records.move_by(ClockOwner::Client, self.offset);
                chunk.unknown.iter_mut().for_each(|records| records.move_by(self.offset));
                chunk.gaps.move_by(self.offset);
                if let Some(parts) = &plan.parts {
                    parts[player].begin(player, &mut chunk);
                }
                if let Some(begun) = began_late {
                    // The gap takes the place of those that a flight recorder left there.
                    chunk.gaps.retain(|gap| gap.to > begun.to);
                    chunk.gaps.extend(is_first.then_some(*begun));
                }
            }
            None => {
                let with_log = plan.clients.iter().zip(&plan.usercmds).zip(&mut chunk.players);
                for ((_, shares), records) in with_log.filter(|((client, _), _)| client.log.is_some()) {
                    records.frames.retain_mut(|frame| shares.take_received(frame));
                    records.heard.clear();
                }
            }
        }
        chunk.end_at(plan.end.tick, plan.end.until);
        chunk
    }

    fn note_bound(&mut self, plan: &MergePlan, chunk: &SessionChunk) {
        self.ticks.extend(&chunk.ticks);
        while self.ticks.len() > plan.ticks_back as usize + 1 {
            self.ticks.pop_front();
        }
        let timed = self.seen.newest.map(|newest| newest - plan.logs[self.log].back + self.offset);
        let of_ticks = if self.player.is_some() { timed } else { self.ticks.front().map(|tick| tick.at) };
        self.bound = timed.min(of_ticks).unwrap_or(self.bound);
    }
}

/// Which usercmds of a player with a client's log come from which log.
#[derive(Clone, Debug, Default)]
pub(super) struct UsercmdShares {
    /// The last usercmd that is kept of the client's log. A truncated log can end between a usercmd and its packet.
    /// Without the packet's fate the usercmd cannot be replayed.
    last: Option<CommandSeq>,
    /// The usercmds of the server's log that the client's log lacks. Between usercmds of the client, each has an estimate of
    /// the time at which the client made it; the others keep the times of their arrivals.
    of_server: SortedMap<CommandSeq, Option<Micros>>,
    /// The gap before the client's log if it begins late.
    began_late: Option<GapRecord>,
}

impl UsercmdShares {
    fn of(client: &AlignedClient, of: &PlayerMerge, begins_at: Option<Micros>) -> UsercmdShares {
        let Some(offset) = client.offset else { return UsercmdShares::default() };
        // Without packets, the server's records show which usercmds arrived.
        let last = if client.is_by_ticks { of.last_heard } else { of.last_sent };
        let is_sent = |(seq, _): &(CommandSeq, Micros)| client.is_by_ticks || Some(*seq) <= last;
        let own: SortedMap<CommandSeq, Micros> = of.usercmds.iter().copied().filter(is_sent).collect();
        let received = |seq: CommandSeq| {
            let (before, after) = (own.range(..seq).next_back(), own.range(seq..).next());
            match (before, after) {
                (_, Some((next, _))) if *next == seq => None,
                (_, None) => client.is_by_ticks.then_some((seq, None)),
                (Some(before), Some(after)) if !client.is_by_ticks => {
                    let made_at = || time_between(before, after, seq) + offset.offset;
                    (!of.has_numbers_again()).then(|| (seq, Some(made_at())))
                }
                _ => Some((seq, None)),
            }
        };
        let first_of_server = of.first_of_server.max(begins_at.filter(|_| of.first_of_server.is_some()));
        let began_late = first_of_server.zip(of.first_of_client).filter(|_| client.begins_late);
        let gap = |(from, to): (Micros, Micros)| {
            let (to, player) = (to + offset.offset, Some(client.player));
            GapRecord { from, to, player, why: GapCause::BeganLate }
        };
        UsercmdShares {
            last,
            of_server: of.usercmds_of_server.iter().copied().filter_map(received).collect(),
            began_late: began_late.map(gap).filter(|gap| gap.from < gap.to),
        }
    }

    /// Returns the last usercmd that has the time of its arrival.
    pub(super) fn last_as_received(&self) -> Option<CommandSeq> {
        let as_received = self.of_server.iter().filter(|(_, made_at)| made_at.is_none());
        as_received.map(|(seq, _)| *seq).max()
    }

    fn has_filled_gap(&self) -> bool {
        self.of_server.values().any(Option::is_some)
    }

    /// Returns whether a usercmd of the server's log is kept, and sets its time.
    fn take_received(&self, frame: &mut FrameRecord) -> bool {
        let made_at = self.of_server.get(&frame.command.seq);
        frame.at = made_at.copied().flatten().unwrap_or(frame.at);
        made_at.is_some()
    }
}

/// Estimates when a client made a usercmd, from usercmds before and after it.
fn time_between(
    (before, from): (&CommandSeq, &Micros),
    (after, to): (&CommandSeq, &Micros),
    seq: CommandSeq,
) -> Micros {
    let [passed, all] = [seq, *after].map(|seq| i64::from(seq.0 - before.0));
    *from + Micros((to.0 - from.0) / all * passed)
}

impl ClientPart {
    /// Removes a client's records from before the part.
    fn begin(&self, player: usize, chunk: &mut SessionChunk) {
        let (records, begins_at) = (&mut chunk.players[player], self.begins_at);
        let runs = |seq: CommandSeq| self.usercmd.is_some_and(|first| first <= seq);
        let arrives = |number: u32| self.packet.is_some_and(|first| first <= number);
        let was_sent = |number: u32| self.snapshot.is_none_or(|first| first <= number);
        records.frames.retain(|frame| frame.at >= begins_at || runs(frame.command.seq));
        records.predicted.retain(|shot| shot.at >= begins_at || runs(shot.command));
        records.sent.retain(|packet| packet.at >= begins_at || arrives(packet.number));
        records.received.retain(|arrival| arrival.at >= begins_at && was_sent(arrival.number));
        chunk.gaps.retain(|gap| gap.to > begins_at);
        chunk.gaps.iter_mut().for_each(|gap| gap.from = gap.from.max(begins_at));
        let is_later = |when: EventTime| !matches!(when, EventTime::At(at) if at < begins_at);
        chunk.unknown.iter_mut().for_each(|records| records.retain(&is_later));
    }
}
