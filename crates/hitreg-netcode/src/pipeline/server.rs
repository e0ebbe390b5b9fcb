//! What a server puts out.

use crate::game::{Game, Verdict};
use hitreg_log::record::{Execution, Presence};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick, named};

/// What happened during a tick, in the order in which it happened.
#[derive(Debug)]
pub enum Event<G: Game> {
    /// A usercmd was dealt with.
    Executed {
        /// Whose.
        player: PlayerId,
        /// Which.
        command: CommandSeq,
        /// How.
        how: Execution,
    },
    /// A player joined or left.
    Presence {
        /// Who.
        player: PlayerId,
        /// Which of both.
        change: Presence,
    },
    /// A shot was judged.
    Judged(Judged<G>),
    /// A projectile reached something.
    Impact {
        /// Who launched it.
        shooter: PlayerId,
        /// With which usercmd.
        command: CommandSeq,
        /// From which weapon.
        weapon: &'static str,
        /// What became of it.
        verdict: Verdict,
    },
}

/// One shot and what the server made of it.
#[derive(Debug)]
pub struct Judged<G: Game> {
    /// Who fired.
    pub shooter: PlayerId,
    /// With which usercmd.
    pub command: CommandSeq,
    /// Which of the shots of that usercmd, from 0.
    pub index: u8,
    /// The shot.
    pub fire: G::Fire,
    /// What the server decided.
    pub verdict: Verdict,
    /// Against what.
    pub rewind: Rewind<G::Body>,
}

/// The outcome of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// Which tick it was.
    pub tick: Tick,
    /// The hash of the world after it.
    pub hash: u64,
}

/// The targets that a shot was judged against.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewind<B> {
    /// How far back they were; zero when they stood in the present.
    pub by: Micros,
    /// What kept the rewind from reaching what the shooter saw.
    pub limit: Limit,
    /// The others as the shot was judged against them, in ascending order of id.
    pub targets: Vec<(EntityId, B)>,
    /// Those among them who stood in the present because they were teleported or died and came back since.
    pub left_in_present: Vec<EntityId>,
}

/// What kept a rewind from reaching what the shooter saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Nothing.
    None,
    /// Lag compensation is off, or the shot is a projectile.
    Off,
    /// `lag_compensation.max_unlag_ms`.
    MaxUnlag,
    /// The usercmd's time disagreed with the measured latency, which counted instead.
    Claim,
    /// Nothing so old is remembered; the oldest known frame counted.
    Oldest,
}

named!(Limit {
    None = "none",
    Off = "off",
    MaxUnlag = "max_unlag",
    Claim = "claim",
    Oldest = "oldest",
});

/// What a rollback check has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollbacks {
    /// How many times the world was restored and run again.
    pub checked: u32,
    /// The first check that failed.
    pub failed: Option<RollbackError>,
}

/// A rollback that came out differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollbackError {
    /// The saved words are no world.
    #[error("the world saved before tick {tick} cannot be loaded: {why}")]
    Load {
        /// The tick.
        tick: Tick,
        /// What does not fit.
        why: String,
    },
    /// Another world came out.
    #[error(
        "tick {tick}, restored and run again from {from} ticks before, hashes to {again:016x} instead of {first:016x}"
    )]
    Differs {
        /// The tick.
        tick: Tick,
        /// How many ticks were run again.
        from: u32,
        /// Its hash in the session.
        first: u64,
        /// Its hash after the rollback.
        again: u64,
    },
}
