//! Errors of replays.

use super::REJUDGED;
use super::keyframes::BadKeyframe;

use crate::game::{BadCells, OtherFields};
use crate::settings::SettingError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::units::{ClockTime, EntityId, PlayerId, Tick};

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
    /// A snapshot names an entity without a recorded state.
    #[error("player {viewer}'s snapshot of tick {tick} shows entity {entity}, of which the log holds no state")]
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
    #[error("an imported recording has no server to run: replay it with --mode open")]
    NoServer,
    /// A part of the log is missing, or related records are too far apart for a streamed replay.
    #[error("the log cannot be replayed as it is read: replay it as a whole")]
    NotAsRead,
    /// The game's server has no rollback check.
    #[error("the server of `{0}` cannot be rolled back: leave --rollback out")]
    NoRollback(&'static str),
    /// The game has no bots in this build.
    #[error("`{0}` has no bots in this build that could play the session anew: ask with --what-if replay or rejudge")]
    NoBots(&'static str),
    /// The game's server cannot judge under other settings.
    #[error("the server of `{0}` cannot judge shots under other settings than its own: ask with --what-if replay")]
    NoRejudging(&'static str),
    /// A setting for rejudging affects more than the judging of shots.
    #[error(
        "`{key}` changes more than how recorded shots are judged ({} do that alone): ask with --what-if replay or rerecord",
        REJUDGED.join("* and ")
    )]
    NotForJudging {
        /// The setting's key.
        key: String,
    },
    /// Open loop has no server that judges shots.
    #[error("in open loop no server judges shots again: leave --mode open out, or ask with --what-if replay")]
    NoJudge,
    /// The log is one client's side of the session; the server has its own log.
    #[error(
        "this is one client's side of a session, without the server: replay it with --mode open, or merge all sides with `hitreg merge` first"
    )]
    ClientSide,
    /// The log is the server's side of the session; the clients have their own logs.
    #[error(
        "this is the server's side of a session, without what the players did (it is from before format 2.1): make one log of all sides with `hitreg merge` first"
    )]
    ServerSide,
    /// The session does not begin at the spawn, and the game cannot begin from its recorded bodies.
    #[error("the log begins in the middle of a session, with players that this game cannot begin with")]
    NoBeginning,
    /// The replay needs more memory than the limit.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// A player has more frames in one second than a replay accepts.
    #[error(
        "player {player} has more than {} usercmds in one second at {at}: the program that wrote this log is at fault",
        super::work::MAX_FRAMES_PER_SECOND
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
        super::work::MAX_UNACKED
    )]
    TooManyUnacked,
    /// More ticks of more players than a replay goes through.
    #[error(
        "{ticks} ticks of {players} players are more than a replay goes through (the limit on ticks times players is {}): the program that wrote this log is at fault",
        super::work::MAX_PLAYER_TICKS
    )]
    TooManyTicks {
        /// How many ticks.
        ticks: u64,
        /// How many players.
        players: u64,
    },
    /// More usercmds, each of which draws all players, than a replay goes through.
    #[error(
        "{usercmds} usercmds in a session of {players} players are more than a replay goes through (the limit on usercmds times players is {}): the program that wrote this log is at fault",
        super::work::MAX_VIEWS
    )]
    TooManyUsercmds {
        /// How many usercmds.
        usercmds: u64,
        /// How many players.
        players: u64,
    },
    /// The requested tick rate gives too many ticks for the recorded ones.
    #[error(
        "its {ticks} ticks are so far apart that there would be {wanted} of them at the tick rate asked for; replay it at its own"
    )]
    FarApart {
        /// The number of recorded ticks.
        ticks: usize,
        /// The number of ticks at the requested rate.
        wanted: i64,
    },
    /// The replay cannot begin at a keyframe.
    #[error("the keyframe after tick {tick}, at {at}: {why}; `hitreg keyframes` makes all anew")]
    Keyframe {
        /// The tick.
        tick: Tick,
        /// The time of the tick.
        at: ClockTime,
        /// The reason.
        why: BadKeyframe,
    },
    /// The log lost the keyframe at which the replay begins.
    #[error("the log has lost the keyframe that its replay was to begin with")]
    NoKeyframe,
    /// The requested part ends before it begins.
    #[error("a part of a session ends after it begins, and this one is from {from} to {to}")]
    EmptyPart {
        /// Its beginning.
        from: ClockTime,
        /// Its end.
        to: ClockTime,
    },
    /// The requested part is not within the session.
    #[error("{at} is not in the session, which is from {first} to {last}")]
    NotInSession {
        /// The requested time.
        at: ClockTime,
        /// The time of the session's first record.
        first: ClockTime,
        /// The time of the session's last record.
        last: ClockTime,
    },
    /// The log holds no usercmds.
    #[error("the log holds no usercmd of any player, so there is nothing to replay")]
    NoInput,
}
