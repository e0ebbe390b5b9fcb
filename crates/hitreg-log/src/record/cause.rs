//! Why a prediction went wrong, as tables name it.

use crate::units::named;

named! {
    /// Why a prediction was wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Cause {
        /// A usercmd never reached the server. The server ran another usercmd in its place, or none.
        InputLost = "input_lost",
        /// A usercmd or a snapshot arrived late.
        InputLate = "input_late",
        /// The server refused a usercmd, because the player had used up its simulation time.
        InputRefused = "input_refused",
        /// The server moved the player to another place at once.
        Teleport = "teleport",
        /// The player died or respawned.
        SpawnOrDeath = "spawn_or_death",
        /// A shot pushed the player.
        Knockback = "knockback",
        /// Another player was in the way, or was in another place than the client had it.
        OtherPlayer = "other_player",
        /// A moving part of the map was in the way.
        Mover = "mover",
        /// The body crossed the surface of water.
        WaterEdge = "water_edge",
        /// The recorded state is rounded, and the rounding changed the result.
        Quantisation = "quantisation",
        /// No other cause has evidence.
        Unknown = "unknown",
    }
}
