//! What a replay came to.

use crate::pipeline::RollbackError;
use hitreg_log::stats::Counted;
use hitreg_log::trace::Trace;
use hitreg_log::units::{Micros, PlayerId, Tick};

/// What a replay came to.
#[derive(Debug)]
pub struct Replayed {
    /// All that the pipelines put out.
    pub trace: Trace,
    /// The first tick whose hash is not the recorded one.
    pub first_difference: Option<HashDifference>,
    /// How many recorded tick hashes there were to compare.
    pub hashes_compared: u64,
    /// What went over the network; `None` in open loop, where nothing does, and where [`Options::sizes`](super::Options::sizes) did not ask.
    pub traffic: Option<Traffic>,
    /// How often the world was restored and run again.
    pub rollbacks: u32,
    /// The first rollback that came out differently.
    pub rollback_error: Option<RollbackError>,
    /// Of open loop: where a snapshot moved what its player saw of himself, in the order of players and times.
    pub jumps: Vec<Jump>,
}

/// A snapshot that moved the newest prediction: the same usercmds, run again from what it told, led elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// Whose prediction.
    pub player: PlayerId,
    /// When the snapshot came.
    pub at: Micros,
    /// How far it moved.
    pub units: f32,
}

/// The jumps of one player, of which there may be any number.
#[derive(Clone, Debug)]
pub struct Jumped {
    /// Whose predictions.
    pub player: PlayerId,
    /// How far they moved, in units.
    pub units: Counted,
}

impl Jumped {
    /// Of jumps in the order of players.
    pub fn of(jumps: &[Jump]) -> Vec<Jumped> {
        let of_player = |jumps: &[Jump]| {
            let mut jumped = Jumped { player: jumps.first()?.player, units: Counted::default() };
            jumps.iter().for_each(|jump| jumped.units.add(jump.units));
            Some(jumped)
        };
        jumps.chunk_by(|one, next| one.player == next.player).filter_map(of_player).collect()
    }
}

/// Bytes on the network: those of the datagrams, or nominal ones under `wire.sizes=nominal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From all clients to the server.
    pub up_bytes: u64,
    /// From the server to all clients.
    pub down_bytes: u64,
}

/// A tick that came out differently than it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashDifference {
    /// The tick.
    pub tick: Tick,
    /// Its recorded hash.
    pub recorded: u64,
    /// The hash that it has now; `None` when the replay did not get that far.
    pub replayed: Option<u64>,
}
