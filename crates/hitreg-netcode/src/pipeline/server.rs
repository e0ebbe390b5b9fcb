//! The output of a server.

use crate::game::{Game, ShotVerdict};
use hitreg_log::record::{Execution, Presence};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick, named};

/// An event of a tick, in the order in which events happen.
#[derive(Debug)]
pub enum Event<G: Game> {
    /// The server ran, replaced or dropped a usercmd.
    Executed {
        /// The player.
        player: PlayerId,
        /// The usercmd.
        command: CommandSeq,
        /// How the server handled it.
        how: Execution,
    },
    /// A player joined or left.
    Presence {
        /// The player.
        player: PlayerId,
        /// Whether the player joined or left.
        change: Presence,
    },
    /// A shot was judged.
    Judged(JudgedShot<G>),
    /// A projectile hit something.
    Impact {
        /// The player who fired it.
        shooter: PlayerId,
        /// The usercmd that fired it.
        command: CommandSeq,
        /// The weapon.
        weapon: &'static str,
        /// The outcome.
        verdict: ShotVerdict,
    },
}

/// One shot and the server's verdict.
#[derive(Debug)]
pub struct JudgedShot<G: Game> {
    /// The shooter.
    pub shooter: PlayerId,
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// The index of the shot within the usercmd, from 0.
    pub index: u8,
    /// The shot.
    pub fire: G::Fire,
    /// The server's verdict.
    pub verdict: ShotVerdict,
    /// The targets that it was judged against.
    pub rewind: Rewind<G::Body>,
    /// The verdicts under the settings of [`ServerPipeline::also_judge`](super::ServerPipeline::also_judge), in order.
    pub also: Vec<ShotVerdict>,
}

/// The outcome of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickOutcome {
    /// The tick.
    pub tick: Tick,
    /// The hash of the world after the tick.
    pub hash: u64,
}

/// The targets that a shot was judged against.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewind<B> {
    /// The rewind; zero when the targets are in the present.
    pub by: Micros,
    /// The limit that kept the rewind from reaching the shooter's view.
    pub limit: Limit,
    /// The targets as judged, in ascending order of id.
    pub targets: Vec<(EntityId, B)>,
    /// The targets left in the present because they were teleported, or died and respawned, since the shooter's view.
    pub left_in_present: Vec<EntityId>,
}

named! {
    /// The limit that kept a rewind from reaching the shooter's view.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Limit {
        /// No limit applied.
        None = "none",
        /// Lag compensation is off, or the shot is a projectile.
        Off = "off",
        /// `lag_compensation.max_unlag_ms`.
        MaxUnlag = "max_unlag",
        /// The usercmd's time disagreed with the measured latency, so the latency was used.
        Claim = "claim",
        /// The history does not go back far enough, so the oldest frame was used.
        Oldest = "oldest",
    }
}

/// The results of a rollback check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollbacks {
    /// The number of times that the world was restored and run again.
    pub checked: u32,
    /// The first check that failed.
    pub failed: Option<RollbackError>,
}

/// A failed rollback check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// The saved words are not a valid world.
    #[error("the world saved before tick {tick} cannot be loaded: {why}")]
    Load {
        /// The tick.
        tick: Tick,
        /// The reason.
        why: String,
    },
    /// The second run gave another world.
    #[error(
        "tick {tick}, restored and run again from {from} ticks before, hashes to {again:016x} instead of {first:016x}"
    )]
    Differs {
        /// The tick.
        tick: Tick,
        /// The number of ticks that were run again.
        from: u32,
        /// The hash of the tick in the session.
        first: u64,
        /// The hash of the tick after the rollback.
        again: u64,
    },
}
