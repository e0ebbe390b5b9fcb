//! The games that `hitreg` has built in.

use crate::engine::Games;

/// Arena, QuakeWorld and Quake III, each as its own crate makes it.
pub fn built_in() -> Games {
    Games::default()
        .with(hitreg_arena::playable())
        .with(hitreg_quake::quakeworld::playable())
        .with(hitreg_quake::quake3::playable())
}
