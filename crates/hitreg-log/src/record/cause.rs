//! Why a prediction went wrong, as tables name it.

use crate::units::named;

/// Why a prediction was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A usercmd never reached the server. The server ran another usercmd in its place, or none.
    InputLost,
    /// A usercmd or a snapshot arrived late.
    InputLate,
    /// The server moved the player to another place at once.
    Teleport,
    /// The player died or respawned.
    SpawnOrDeath,
    /// A shot pushed the player.
    Knockback,
    /// Another player was in the way, or was in another place than the client had it.
    OtherPlayer,
    /// A moving part of the map was in the way.
    Mover,
    /// The body crossed the surface of water.
    WaterEdge,
    /// The recorded state is rounded, and the rounding changed the result.
    Quantisation,
    /// No other cause has evidence.
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
