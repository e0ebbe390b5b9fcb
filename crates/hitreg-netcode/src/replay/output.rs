//! The result of a replay.

use crate::pipeline::RollbackError;
use hitreg_log::stats::CountedValues;
use hitreg_log::trace::Trace;
use hitreg_log::units::{Micros, PlayerId, Tick};

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
