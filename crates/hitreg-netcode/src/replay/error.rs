//! Errors of replays.

use super::REJUDGED;
use super::keyframes::BadKeyframe;

use crate::game::{BadCells, OtherFields};
use crate::settings::SettingError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::record::TakenName;
use hitreg_log::units::{ClockTime, EntityId, Micros, PlayerId, Tick};

/// A time for reading, rounded to a millisecond.
fn rounded(ClockTime(at): ClockTime) -> ClockTime {
    const MS: i64 = 1_000;
    ClockTime(Micros(at.0.saturating_add(MS / 2).div_euclid(MS).saturating_mul(MS)))
}

/// Why this build cannot replay a log, or not with these options.
#[derive(Debug, thiserror::Error)]
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
        "`{key}` changes more than the hit test (only {} change just that): use --what-if replay",
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
    #[error("this is the server's side of a session, without usercmds: merge all sides with `hitreg merge` first")]
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
        super::budget::MAX_FRAMES_PER_SECOND
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
        super::budget::MAX_UNACKED
    )]
    TooManyUnacked,
    /// More ticks of more players than a replay goes through.
    #[error(
        "{ticks} ticks of {players} players exceed the limit of a replay (the limit on ticks times players is {}): this is an error of the program that wrote the log",
        super::budget::MAX_PLAYER_TICKS
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
        super::budget::MAX_VIEWS
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
        "the keyframe after tick {tick}, at {at}: {why}. To replace all keyframes, run: hitreg keyframes LOG -o NEW"
    )]
    Keyframe {
        /// The tick.
        tick: Tick,
        /// The time of the tick.
        at: ClockTime,
        /// The reason.
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
    #[error("the log has no usercmds, so there is nothing to replay: record them with the recorder (docs/recorder.md)")]
    NoInput,
}
