//! The second pass of a streaming merge. It produces the session that [`merge`](super::merge) would return, as
//! stretches that overlap in time. The memory use of both passes does not depend on the logs' length.

use std::collections::VecDeque;

use super::end::SessionEnd;
use super::survey::{LogProgress, MergeSurvey};
use super::{AlignedClient, MergeError, SessionCut, longest};
use crate::record::{ClockOwner, SessionHeader, SessionStretch, TickRecord, UnknownRecords};
use crate::units::{CommandSeq, Micros, PlayerId};

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
    sides: super::SideIndex,
    logs: Vec<LogProgress>,
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
        if survey.begins_late() {
            return Err(PlanFailure::Whole);
        }
        let (_, last) = survey.ticks.ok_or(MergeError::NoTicks)?;
        let aligned = |((player, log), offset)| {
            let player = PlayerId(player);
            AlignedClient { player, log, offset, is_by_ticks: false, begins_late: false }
        };
        let clients: Vec<AlignedClient> =
            (0..).zip(survey.sides.clients.iter().copied()).zip(offsets).map(aligned).collect();
        let ends = (survey.ends[survey.sides.server], longest(&clients, &survey.ends));
        let last_before = |until| last_before(until, &survey, logs).map_err(PlanFailure::Read);
        let end = SessionEnd::of(last, survey.unknown_packets(), ends, last_before)?;
        Ok(MergePlan {
            header: survey.header(headers[survey.sides.server]),
            clients,
            cut: end.cut,
            end,
            last_sent: survey.last_sent(),
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
        }
        let timed = self.seen.newest.map(|newest| newest - plan.logs[self.log].back + self.offset);
        let of_ticks = if self.player.is_some() { timed } else { self.ticks.front().map(|tick| tick.at) };
        self.bound = timed.min(of_ticks).unwrap_or(self.bound);
        plan.end.apply(&mut stretch);
        stretch
    }
}
