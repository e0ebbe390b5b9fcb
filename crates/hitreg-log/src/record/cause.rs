//! Why a prediction went wrong, as tables name it.

use crate::units::named;

/// Why a prediction was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A usercmd never reached the server, which ran another in its place or none.
    InputLost,
    /// A usercmd was held up on its way, or snapshots were.
    InputLate,
    /// The player was put elsewhere.
    Teleport,
    /// The player died or came back.
    SpawnOrDeath,
    /// Somebody's shot pushed the player.
    Knockback,
    /// Another player was in the way, or was not where the client thought.
    OtherPlayer,
    /// A moving part of the map was in the way.
    Mover,
    /// The surface of water was crossed.
    WaterEdge,
    /// The recorded state is rounded, and the rounding decided.
    Quantisation,
    /// None of these has evidence.
    Unknown,
}

named!(Cause {
    InputLost = "input_lost",
    InputLate = "input_late",
    Teleport = "teleport",
    SpawnOrDeath = "spawn_or_death",
    Knockback = "knockback",
    OtherPlayer = "other_player",
    Mover = "mover",
    WaterEdge = "water_edge",
    Quantisation = "quantisation",
    Unknown = "unknown",
});
