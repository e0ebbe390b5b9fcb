//! Functions for which the pipelines are compiled in this crate, together with the game. Unit tests of `hitreg-netcode`
//! include this crate's source, and do not need them.

use std::sync::Arc;

use hitreg_engine::engine::{Playable, recording};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{Observer, SynthError};

use super::{Arena, ArenaMap, ArenaRules};

/// The game, for commands: its logs are replayed, and its bots play on its own maps and on map files.
pub fn playable() -> Box<dyn Playable> {
    recording::<Arena>(|map| match map {
        None => Ok(ArenaRules::default()),
        Some(map) => {
            let name = std::path::Path::new(map.path).file_stem().unwrap_or_default().to_string_lossy();
            Ok(ArenaRules::new(ArenaMap::parse(&name, map.bytes)?))
        }
    })
}

/// Records bots under rules of the caller's own. The generic function of this name compiles the pipelines in the
/// calling crate; this one is compiled with the game.
///
/// # Errors
/// When the scenario is out of bounds.
pub fn record_synthetic(
    scenario: &Scenario,
    rules: &Arc<ArenaRules>,
    observer: &mut dyn Observer<Arena>,
) -> Result<(), SynthError> {
    hitreg_netcode::session::record_synthetic::<Arena>(scenario, rules, observer)
}
