//! The facts of a log against which its replays are judged.

use hitreg_analysis::summary::Coverage;
use hitreg_log::record::{Execution, ExecutionRecord, LogContents, PlayerRecords, Session, SessionHeader};
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::{CommandSeq, Micros, Tick};
use hitreg_netcode::replay::{LogSurvey, TickCounts};

/// The facts of a log against which its replays are judged.
#[derive(Clone, Debug, Default)]
pub struct LogFacts {
    /// The number of ticks with a state hash.
    pub(super) with_hash: u64,
    /// Whether any hash is not 0.
    pub(super) has_hashes: bool,
    pub(super) usercmds: u64,
    pub(super) active_usercmds: u64,
    /// Whether the log knows a player only by the packets that the server received.
    pub(super) has_heard_player: bool,
    /// A contradiction in the log.
    pub(super) contradiction: Option<String>,
    pub(super) hole: Option<MissingPart>,
    pub(super) has_server: bool,
}

/// The first missing part of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingPart {
    pub(super) from: Micros,
    pub(super) to: Micros,
    pub(super) ticks_before: u64,
}

impl LogFacts {
    /// The facts of a surveyed log. `ticks_before` is the number of ticks before its first missing part.
    pub fn of_log(header: &SessionHeader, survey: &LogSurvey, ticks_before: u64) -> LogFacts {
        let TickCounts { with_hash, has_hashes, out_of_order, .. } = survey.ticks;
        let contradiction = match out_of_order {
            Some([before, after]) => Some(disorder(before, after)),
            None => survey.is_all_nan().then(|| ALL_NAN.to_owned()),
        };
        LogFacts {
            with_hash,
            has_hashes,
            usercmds: survey.usercmds(),
            active_usercmds: survey.active_usercmds(),
            has_heard_player: survey.first_heard_player().is_some(),
            contradiction,
            hole: survey.first_hole().map(|gap| MissingPart { from: gap.from, to: gap.to, ticks_before }),
            has_server: header.holds() == LogContents::Whole,
        }
    }

    /// The counts of a replay of the whole log. Usercmds are counted in the log if the replay has no client frames of some
    /// players, or no active one: another build's trace may lack their table.
    #[must_use]
    pub fn completed(&self, exercised: Coverage) -> Coverage {
        let lacks_players = self.has_heard_player && exercised.ticks > 0;
        match lacks_players || exercised.active_usercmds == 0 {
            true => Coverage { usercmds: self.usercmds, active_usercmds: self.active_usercmds, ..exercised },
            false => exercised,
        }
    }
}

const ALL_NAN: &str = "every recorded state is NaN";

fn disorder(before: Tick, after: Tick) -> String {
    format!("its ticks are out of order: after tick {before} comes tick {after}")
}

/// Describes the first usercmd that a log records as run but does not hold. Returns `None` if the log holds every usercmd
/// up to its first missing part. A log that begins inside a session may run usercmds that were made before it begins.
pub(super) fn missing_usercmd(session: &Session) -> Option<String> {
    let until = session.first_hole().map(|hole| hole.from);
    let is_before = |tick: Tick| {
        let place = session.ticks.partition_point(|of| of.tick < tick);
        until.is_none_or(|until| session.ticks.get(place).is_some_and(|of| of.at <= until))
    };
    let of_player = |(player, records): (usize, &PlayerRecords)| {
        let heard = records.heard.iter().flat_map(|packet| &packet.commands).map(|command| command.seq);
        let made = records.frames.iter().map(|frame| frame.command.seq);
        let held: SortedSet<CommandSeq> = made.chain(heard).collect();
        let first = *held.first()?;
        let ran = records.executed.iter().filter(|done| done.how == Execution::Run && is_before(done.tick));
        let is_missing = |done: &&ExecutionRecord| done.command > first && !held.contains(&done.command);
        let missing = ran.filter(is_missing).min_by_key(|done| done.tick)?;
        Some((missing.tick, player, missing.command))
    };
    let missing = session.players.iter().enumerate().filter_map(of_player).min_by_key(|(tick, ..)| *tick);
    missing.map(|(tick, player, command)| {
        format!("it records p{player} #{command} as run in tick {tick}, but does not hold this usercmd")
    })
}
