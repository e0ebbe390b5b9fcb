//! Why a session cannot be replayed.

use super::REJUDGED;
use super::keyframes::BadKeyframe;

use crate::game::{BadCells, OtherFields};
use crate::settings::SettingError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::units::{ClockTime, EntityId, PlayerId, Tick};

/// A log that this build cannot replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is of another game.
    #[error("the log is of the game `{log}`, and this build plays `{build}`")]
    OtherGame {
        /// The log's game.
        log: String,
        /// This build's.
        build: &'static str,
    },
    /// The rules in it are not this build's.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// Its entities have other fields.
    #[error(transparent)]
    OtherFields(#[from] OtherFields),
    /// A snapshot names an entity of which there is no state.
    #[error("player {viewer}'s snapshot of tick {tick} shows entity {entity}, of which the log holds no state")]
    NoState {
        /// The tick.
        tick: Tick,
        /// The entity.
        entity: EntityId,
        /// Who was sent the snapshot.
        viewer: PlayerId,
    },
    /// A recorded body is not one.
    #[error("tick {tick}: {source}")]
    BadState {
        /// The tick.
        tick: Tick,
        /// What does not fit.
        source: BadCells,
    },
    /// A setting in the log is none of this build's.
    #[error("the log's settings: {0}")]
    Settings(#[from] SettingError),
    /// A setting that was asked for is none of this session's.
    #[error(transparent)]
    NotOfSession(SettingError),
    /// There is no server to replay.
    #[error("an imported recording has no server to run: replay it with --mode open")]
    NoServer,
    /// What belongs together in it stands too far apart, or a part is missing.
    #[error("the log cannot be replayed as it is read: replay it as a whole")]
    NotAsRead,
    /// The game's own server cannot check that.
    #[error("the server of `{0}` cannot be rolled back: leave --rollback out")]
    NoRollback(&'static str),
    /// Nobody can play it anew.
    #[error("`{0}` has no bots in this build that could play the session anew: ask with --what-if replay or rejudge")]
    NoBots(&'static str),
    /// The game's own server judges by its own settings alone.
    #[error("the server of `{0}` cannot judge shots under other settings than its own: ask with --what-if replay")]
    NoRejudging(&'static str),
    /// A setting that changes what happens, and not only how shots are judged.
    #[error(
        "`{key}` changes more than how recorded shots are judged ({} do that alone): ask with --what-if replay or rerecord",
        REJUDGED.join("* and ")
    )]
    NotForJudging {
        /// Its key.
        key: String,
    },
    /// Nobody judges a shot.
    #[error("in open loop no server judges shots again: leave --mode open out, or ask with --what-if replay")]
    NoJudge,
    /// There is one client, and the server has its own log.
    #[error(
        "this is one client's side of a session, without the server: replay it with --mode open, or merge all sides with `hitreg merge` first"
    )]
    ClientSide,
    /// There is a server, and the clients have their own logs.
    #[error(
        "this is the server's side of a session, without what the players did (it is from before format 2.1): make one log of all sides with `hitreg merge` first"
    )]
    ServerSide,
    /// It begins elsewhere than at the game's spawn.
    #[error("the log begins in the middle of a session, with players that this game cannot begin with")]
    NoBeginning,
    /// It does not fit into memory as a whole.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// More frames in a second than any game has.
    #[error(
        "player {player} has more than {} usercmds in one second at {at}: the program that wrote this log is at fault",
        super::budget::MAX_FRAMES_PER_SECOND
    )]
    TooManyFrames {
        /// Whose.
        player: PlayerId,
        /// When.
        at: ClockTime,
    },
    /// More usercmds without an ack than a replay keeps.
    #[error(
        "players have more than {} usercmds that no snapshot acks: the log cannot be replayed",
        super::budget::MAX_UNACKED
    )]
    TooManyUnacked,
    /// More ticks of more players than a replay goes through.
    #[error(
        "{ticks} ticks of {players} players are more than a replay goes through (the limit on ticks times players is {}): the program that wrote this log is at fault",
        super::budget::MAX_PLAYER_TICKS
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
        super::budget::MAX_VIEWS
    )]
    TooManyUsercmds {
        /// How many usercmds.
        usercmds: u64,
        /// How many players.
        players: u64,
    },
    /// Its ticks are few for the time between the first and the last.
    #[error(
        "its {ticks} ticks are so far apart that there would be {wanted} of them at the tick rate asked for; replay it at its own"
    )]
    FarApart {
        /// How many there are.
        ticks: usize,
        /// How many there would be.
        wanted: i64,
    },
    /// A keyframe that cannot be gone on from.
    #[error("the keyframe after tick {tick}, at {at}: {why}; `hitreg keyframes` makes all anew")]
    Keyframe {
        /// The tick.
        tick: Tick,
        /// When that was.
        at: ClockTime,
        /// What is wrong with it.
        why: BadKeyframe,
    },
    /// It has none any more.
    #[error("the log has lost the keyframe that its replay was to begin with")]
    NoKeyframe,
    /// A part that ends before it begins.
    #[error("a part of a session ends after it begins, and this one is from {from} to {to}")]
    EmptyPart {
        /// Its beginning.
        from: ClockTime,
        /// Its end.
        to: ClockTime,
    },
    /// A part that is not within the session.
    #[error("{at} is not in the session, which is from {first} to {last}")]
    NotInSession {
        /// What was asked for.
        at: ClockTime,
        /// The session's first record.
        first: ClockTime,
        /// The last.
        last: ClockTime,
    },
    /// It has nobody's input.
    #[error("the log holds no usercmd of any player, so there is nothing to replay")]
    NoInput,
}
