//! The result of a replay, the part of a session that it is limited to, and the reasons why a replay fails.

use super::REJUDGED;
use super::keyframes::BadKeyframe;
use crate::game::{BadCells, OtherFields};
use crate::pipeline::RollbackError;
use crate::settings::SettingError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::record::TakenName;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::CountedValues;
use hitreg_log::trace::schema::{TableSchema, corrections, errors, frames, ticks};
use hitreg_log::trace::{ColumnData, Table, Trace, TraceHeader};
use hitreg_log::units::{ClockTime, EntityId, Micros, PlayerId, Tick};

/// The result of a replay of a session in memory.
#[derive(Debug, Default)]
pub struct ReplayOutput {
    /// The output tables of the pipelines.
    pub trace: Trace,
    /// The result besides the rows, as a streamed replay reports it.
    pub findings: ReplayFindings,
    /// Open loop only: snapshots that moved the player's own prediction, in the order of players and times.
    pub jumps: Vec<Jump>,
}

/// The result of a replay, besides its rows.
#[derive(Clone, Debug, Default)]
pub struct ReplayFindings {
    /// The first tick whose replayed hash differs from the recorded one.
    pub first_difference: Option<HashDifference>,
    /// The number of recorded tick hashes that the replay compared.
    pub hashes_compared: u64,
    /// How many of these hashes belong to ticks before the replayed part.
    pub hashes_before: u64,
    /// Network traffic; `None` in open loop, and if the replay encoded no datagrams. See
    /// [`ReplayOptions::sizes`](super::ReplayOptions::sizes).
    pub traffic: Option<TrafficBytes>,
    /// The number of rollback checks.
    pub rollbacks: u32,
    /// The first rollback check that failed.
    pub rollback_error: Option<RollbackError>,
    /// Open loop only: how far snapshots moved players' own predictions, for the players who have such jumps.
    pub jumps: Vec<PlayerJumps>,
}

/// A snapshot that moved a player's newest prediction: rerunning the unacked usercmds from the snapshot gave another
/// position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// The predicting player.
    pub player: PlayerId,
    /// When the snapshot arrived.
    pub at: Micros,
    /// The distance moved, in units.
    pub units: f32,
}

/// The jumps of one player, as statistics of bounded size.
#[derive(Clone, Debug)]
pub struct PlayerJumps {
    /// The predicting player.
    pub player: PlayerId,
    /// The distances moved, in units.
    pub units: CountedValues,
}

impl PlayerJumps {
    /// Counts the jumps of each player. `jumps` must be in the order of players.
    pub fn of(jumps: &[Jump]) -> Vec<PlayerJumps> {
        let of_player = |jumps: &[Jump]| {
            let mut jumped = PlayerJumps { player: jumps.first()?.player, units: CountedValues::default() };
            jumps.iter().for_each(|jump| jumped.units.add(jump.units));
            Some(jumped)
        };
        jumps.chunk_by(|one, next| one.player == next.player).filter_map(of_player).collect()
    }
}

/// Bytes on the network: datagram sizes, or nominal sizes under `wire.sizes=nominal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficBytes {
    /// From all clients to the server.
    pub up_bytes: u64,
    /// From the server to all clients.
    pub down_bytes: u64,
}

/// A tick whose replayed hash differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashDifference {
    /// The tick.
    pub tick: Tick,
    /// Its time.
    pub at: Micros,
    /// Its recorded hash.
    pub recorded: u64,
    /// Its replayed hash; `None` if the replay ended earlier.
    pub replayed: Option<u64>,
}

/// A time for reading, rounded to a millisecond.
fn rounded(ClockTime(at): ClockTime) -> ClockTime {
    const MS: i64 = 1_000;
    ClockTime(Micros(at.0.saturating_add(MS / 2).div_euclid(MS).saturating_mul(MS)))
}

impl ReplayError {
    /// Returns whether the shots of the log cannot be judged under the other settings, although it can be replayed.
    pub fn is_about_judging(&self) -> bool {
        matches!(self, ReplayError::NoJudge | ReplayError::NoRejudging(_) | ReplayError::NotForJudging { .. })
    }
}

/// Why this build cannot replay a log, or not with these options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log is of another game.
    #[error("the log is of the game `{log}`, and this build plays `{build}`")]
    OtherGame {
        /// The log's game.
        log: String,
        /// This build's.
        build: &'static str,
    },
    /// This build cannot read the log's rules.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// The log's entities have other fields than this build's.
    #[error(transparent)]
    OtherFields(#[from] OtherFields),
    /// A field of this build's game has the name of another column.
    #[error(transparent)]
    TakenName(#[from] TakenName),
    /// A snapshot names an entity without a recorded state.
    #[error("player {viewer}'s snapshot of tick {tick} shows entity {entity}, but the log has no state of it")]
    NoState {
        /// The tick.
        tick: Tick,
        /// The entity.
        entity: EntityId,
        /// The receiver of the snapshot.
        viewer: PlayerId,
    },
    /// The game rejects a recorded body.
    #[error("tick {tick}: {source}")]
    BadState {
        /// The tick.
        tick: Tick,
        /// Why the game rejects it.
        source: BadCells,
    },
    /// The log holds a setting that this build does not know.
    #[error("the log's settings: {0}")]
    Settings(#[from] SettingError),
    /// A requested setting does not fit this session.
    #[error(transparent)]
    NotOfSession(SettingError),
    /// The log holds no server to replay.
    #[error("an imported recording has no server to run: use --mode open")]
    NoServer,
    /// A part of the log is missing, or related records are too far apart for a streamed replay.
    #[error("the log cannot be streamed: replay it from a file")]
    NotAsRead,
    /// The game's server has no rollback check.
    #[error("the server of `{0}` does not support rollback: leave out --rollback")]
    NoRollback(&'static str),
    /// The game has no bots in this build.
    #[error("`{0}` has no bots in this build to play the session again: use --what-if replay")]
    NoBots(&'static str),
    /// The game's server cannot judge under other settings.
    #[error("the server of `{0}` cannot judge shots under other settings: use --what-if replay")]
    NoRejudging(&'static str),
    /// A setting for rejudging affects more than the judging of shots.
    #[error(
        "`{key}` changes more than the hit test (only {} change just that): use --what-if replay or rerecord",
        REJUDGED.join("* and ")
    )]
    NotForJudging {
        /// The setting's key.
        key: String,
    },
    /// Open loop has no server that judges shots.
    #[error(
        "in open loop, no server judges shots: use --what-if replay, or replay a log that has the server in closed loop"
    )]
    NoJudge,
    /// The log is one client's side of the session; the server has its own log.
    #[error(
        "this is one client's side of a session, without the server: use --mode open, or merge all sides with `hitreg merge` first"
    )]
    ClientSide,
    /// The log is the server's side of the session; the clients have their own logs.
    #[error(
        "this is the server's side of a session, which lacks usercmds: merge all sides with `hitreg merge` first. If no client sent any, there is nothing to replay"
    )]
    ServerSide,
    /// The session does not begin at the spawn, and the game cannot begin from its recorded bodies.
    #[error("the log begins in the middle of a session, and this game cannot begin with its bodies")]
    NoBeginning,
    /// The replay needs more memory than the limit.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// A player has more frames in one second than a replay accepts.
    #[error(
        "player {player} has more than {} usercmds in one second at {at}: this is an error of the program that wrote the log",
        super::budget::FRAMES_PER_SECOND_MAX
    )]
    TooManyFrames {
        /// The player.
        player: PlayerId,
        /// The time of the first frame over the limit.
        at: ClockTime,
    },
    /// Players have more unacked usercmds than a replay keeps.
    #[error(
        "players have more than {} usercmds that no snapshot acks: the log cannot be replayed",
        super::budget::UNACKED_MAX
    )]
    TooManyUnacked,
    /// More ticks of more players than a replay goes through.
    #[error(
        "{ticks} ticks of {players} players exceed the limit of a replay (the limit on ticks times players is {}): this is an error of the program that wrote the log",
        super::budget::PLAYER_TICKS_MAX
    )]
    TooManyTicks {
        /// How many ticks.
        ticks: u64,
        /// How many players.
        players: u64,
    },
    /// More usercmds, each with a drawing of all players, than a replay accepts.
    #[error(
        "{usercmds} usercmds in a session of {players} players exceed the limit of a replay (the limit on usercmds times players is {}): this is an error of the program that wrote the log",
        super::budget::VIEWS_MAX
    )]
    TooManyUsercmds {
        /// How many usercmds.
        usercmds: u64,
        /// How many players.
        players: u64,
    },
    /// The requested tick rate gives too many ticks for the recorded ones.
    #[error("at the requested tick rate, its {ticks} ticks would become {wanted}: replay it at its own rate")]
    FarApart {
        /// The number of recorded ticks.
        ticks: usize,
        /// The number of ticks at the requested rate.
        wanted: i64,
    },
    /// The replay cannot begin at a keyframe.
    #[error(
        "the keyframe after tick {tick}, at {at}: {why}. To replace all keyframes, run: hitreg keyframes FILE -o new.hitlog"
    )]
    Keyframe {
        /// The tick.
        tick: Tick,
        /// The time of the tick.
        at: ClockTime,
        /// The reason.
        #[source]
        why: BadKeyframe,
    },
    /// The log lost the keyframe at which the replay begins.
    #[error("the log changed during the replay: its keyframe is gone. Run the command again")]
    NoKeyframe,
    /// The requested part ends before it begins.
    #[error("the part from {from} to {to} is empty: --to must be after --from")]
    EmptyPart {
        /// Its beginning.
        from: ClockTime,
        /// Its end.
        to: ClockTime,
    },
    /// The requested part is not within the session.
    #[error("{at} is not in the session, which is from {} to {}", rounded(*first), rounded(*last))]
    NotInSession {
        /// The requested time.
        at: ClockTime,
        /// The time of the session's first record.
        first: ClockTime,
        /// The time of the session's last record.
        last: ClockTime,
    },
    /// The log holds no usercmds.
    #[error(
        "the log has no usercmds, so there is nothing to replay: record them with the recorder (docs/recorder.md), or capture both directions of a session to import"
    )]
    NoInput,
}

/// The least time before a part on which its rows depend. Long flights make it longer.
pub(super) const LOOK_BACK_MIN: Micros = Micros::from_s(4);

/// A time range of a session. Its end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first time of the part.
    pub from: Micros,
    /// The end of the part, exclusive.
    pub to: Micros,
}

impl Part {
    /// The whole of any session.
    pub const WHOLE: Part = Part { from: Micros(i64::MIN), to: Micros(i64::MAX) };

    /// Replaces an open beginning by the session's first time, and limits the end to the session's end.
    #[must_use]
    pub fn within(self, played: Option<(Micros, Micros)>) -> Part {
        let (first, last) = played.unwrap_or_default();
        let from = if self.from == Part::WHOLE.from { first } else { self.from };
        Part { from, to: self.to.min(Micros(last.0.saturating_add(1))) }
    }

    /// Turns the header of a trace of the whole session into the header of the trace of this part.
    pub fn narrow(self, header: &mut TraceHeader, played: Option<(Micros, Micros)>) {
        let (whole, Part { from, to }) = (Part::WHOLE.within(played), self.within(played));
        header.part = (from > whole.from || to < whole.to).then_some([from, to]);
        header.gaps.retain(|gap| gap.from < self.to && gap.to > self.from);
    }

    /// Whether a time belongs to the part.
    pub fn has(self, at: Micros) -> bool {
        self.from <= at && (at < self.to || self.to == Part::WHOLE.to)
    }

    /// Refuses a part that ends before it begins, or that is not within the session. The end may exceed the last time by
    /// up to one second, to allow rounding.
    ///
    /// # Errors
    /// When the part is not valid. The error says why.
    pub fn check(self, played: Option<(Micros, Micros)>) -> Result<(), ReplayError> {
        let (first, last) = played.unwrap_or_default();
        let Part { from, to } = self;
        let asked = [from, to].map(|at| (at != Part::WHOLE.from && at != Part::WHOLE.to).then_some(at));
        let over = asked[0].filter(|at| *at > last).or(asked[1].filter(|at| at.0.saturating_sub(last.0) > 1_000_000));
        match over.or(asked[1].filter(|at| *at <= first)) {
            Some(at) => {
                Err(ReplayError::NotInSession { at: ClockTime(at), first: ClockTime(first), last: ClockTime(last) })
            }
            None if from >= to => Err(ReplayError::EmptyPart { from: ClockTime(from), to: ClockTime(to) }),
            None => Ok(()),
        }
    }

    /// Keeps only the rows of this part. A row without a time has the time of its tick (`bodies`, `executed`), frame
    /// (`views`, `variables`) or correction (`errors`).
    pub fn cut(self, trace: &mut Trace) {
        let times = |name: &str, columns: &[&str]| -> SortedMap<Vec<u32>, i64> {
            let Some(table) = trace.table(name) else { return SortedMap::new() };
            (0..table.rows()).zip(table.i64s("at_us")).map(|(row, at)| (key(table, columns, row), *at)).collect()
        };
        let (by_tick, by_command): (&[&str], &[&str]) = (&["tick"], &["player", "command"]);
        let of_ticks = times(ticks::NAME, by_tick);
        let of_frames = times(frames::NAME, by_command);
        let of_acks = times(corrections::NAME, by_command);
        for table in &mut trace.tables {
            let by_key = |columns: &[&str], times: &SortedMap<Vec<u32>, i64>| -> Vec<bool> {
                let at = |row: usize| times.get::<Vec<u32>>(&key(table, columns, row));
                (0..table.rows()).map(|row| at(row).is_some_and(|at| self.has(Micros(*at)))).collect()
            };
            let keep = match &*table.name {
                errors::NAME => by_key(by_command, &of_acks),
                _ if table.column("at_us").is_some() => {
                    table.i64s("at_us").iter().map(|at| self.has(Micros(*at))).collect()
                }
                _ if table.column("tick").is_some() => by_key(by_tick, &of_ticks),
                _ => by_key(by_command, &of_frames),
            };
            *table = table.select_where(keep.into_iter(), |keep| keep);
            let schema = TableSchema::of(&table.name);
            let is_optional = |name: &str| schema.and_then(|schema| schema.column(name)).is_some_and(|of| of.optional);
            table.columns.retain(|column| !is_optional(&column.name) || has_value(&column.data));
        }
    }
}

/// Whether any row of an optional column has a value.
fn has_value(column: &ColumnData) -> bool {
    match column {
        ColumnData::Name { names, codes } => {
            codes.iter().any(|code| names.get(*code as usize).is_some_and(|name| name != "none"))
        }
        ColumnData::F32(values) => values.iter().any(|value| !value.is_nan()),
        _ => true,
    }
}

/// The values of a row's key columns.
fn key(table: &Table, columns: &[&str], row: usize) -> Vec<u32> {
    columns.iter().filter_map(|column| table.u32s(column).get(row).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_the_whole_session_is_not_one_of_a_part() {
        let played = Some((Micros::from_s(1), Micros::from_s(60)));
        let end = Micros(60_000_001);
        let header_range = |from, to| {
            let mut header = TraceHeader::default();
            Part { from, to }.narrow(&mut header, played);
            header.part
        };
        assert_eq!(header_range(Part::WHOLE.from, Part::WHOLE.to), None);
        assert_eq!([header_range(Micros::ZERO, Part::WHOLE.to), header_range(Part::WHOLE.from, end)], [None, None]);
        assert_eq!(header_range(Micros::from_s(2), Part::WHOLE.to), Some([Micros::from_s(2), end]));
        assert_eq!(header_range(Micros::from_s(2), end + Micros::from_s(1)), Some([Micros::from_s(2), end]));
        assert_eq!(header_range(Part::WHOLE.from, Micros::from_s(60)), Some([Micros::from_s(1), Micros::from_s(60)]));
    }

    #[test]
    fn a_part_is_within_its_session() {
        let part = |from, to| Part { from: Micros::from_s(from), to: Micros::from_s(to) };
        let is_good = |part: Part| part.check(Some((Micros::ZERO, Micros::from_ms(59_500)))).is_ok();
        assert!([part(0, 60), part(59, 60), Part { from: Part::WHOLE.from, ..part(0, 1) }].into_iter().all(is_good));
        assert!(is_good(Part { to: Part::WHOLE.to, ..part(59, 0) }));
        assert!(part(0, 60).has(Micros(59_999_999)) && !part(0, 60).has(Micros::from_s(60)));
        assert!(Part::WHOLE.has(Micros(i64::MAX)) && Part::WHOLE.has(Micros(i64::MIN)));
        assert!(![part(1, 1), part(2, 1), part(60, 61), part(1, 61)].into_iter().any(is_good));
    }
}
