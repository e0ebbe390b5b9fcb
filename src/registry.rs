//! The games that `hitreg` has built in.

use crate::engine::Games;

/// Returns Arena, QuakeWorld and Quake III, each from its own crate.
pub fn built_in() -> Games {
    Games::default()
        .with(hitreg_arena::playable())
        .with(hitreg_quake::quakeworld::playable())
        .with(hitreg_quake::quake3::playable())
}
