//! The constant data of a QuakeWorld recording in a log: the server, its movement settings and the map. It also relates
//! times and numbers of the records to those of the demo.

use serde::{Deserialize, Serialize};

use super::body::FIRST_MODEL;
use crate::bsp::quake::QuakeMap;
use crate::quakeworld::demo::{DemoEnd, DemoLevel, ServerDescription};
use crate::quakeworld::movement::QuakeWorldMoveVars;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

/// Limit of client times in seconds; microseconds of larger times would overflow.
pub(crate) const LATEST_TIME_S: f32 = 1e9;

/// Everything that does not change during a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuakeWorldRules {
    /// The server's version and rules.
    pub server: ServerDescription,
    /// The levels played, in order, all on one map.
    pub levels: Vec<DemoLevel>,
    /// Movement settings in the order of their use.
    pub move_vars: Vec<QuakeWorldMoveVars>,
    /// Why the recording ends.
    pub end: DemoEnd,
    /// The map of the levels.
    pub map: QuakeMap,
    /// The recording player: the slot on the first level.
    pub player: PlayerId,
    /// Client time at the start of the session, in microseconds.
    pub start_us: i64,
    /// Number to add to a usercmd's number in the demo to get the log's, which starts at 1 or later.
    pub seq_shift: u32,
}

impl QuakeWorldRules {
    /// Returns the first level's map without folder and extension, such as `dm3`; empty when the server never named it.
    pub(crate) fn map_stem(&self) -> &str {
        self.levels.first().map_or("", |level| stem(&level.map))
    }

    /// Converts between slots and entities, in both directions. If a later level puts the recording player into another
    /// slot, the two slots change places, so that the player stays one entity.
    pub(crate) fn swap_slot(&self, level: u16, slot: u8) -> u8 {
        let first = self.player.0 as u8;
        let now = self.levels.get(usize::from(level)).map_or(first, |level| level.player);
        match slot {
            slot if slot == now => first,
            slot if slot == first => now,
            slot => slot,
        }
    }

    /// Returns the session time of client time `time_s`.
    pub(crate) fn at(&self, time_s: f32) -> Micros {
        Micros(micros(time_s).saturating_sub(self.start_us))
    }

    /// Returns the log's number of a usercmd; `None` if it exceeds 32 bits.
    pub(crate) fn log_seq(&self, seq: i32) -> Option<CommandSeq> {
        let shifted = i64::from(seq) + i64::from(self.seq_shift);
        u32::try_from(shifted).ok().map(CommandSeq)
    }
}

/// Returns client time in whole microseconds.
pub(crate) fn micros(time_s: f32) -> i64 {
    libm::round(f64::from(time_s) * 1e6) as i64
}

/// Returns the entity of a brush model; `None` if it exceeds the range of entity numbers.
pub(crate) fn entity_of_model(model: u16) -> Option<EntityId> {
    FIRST_MODEL.0.checked_add(model).map(EntityId)
}

/// Returns a file's name without folder and extension: `dm3` for `maps/dm3.bsp`, `DM3` for `DM3.bsp.gz`.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".xz")).unwrap_or(name);
    name.strip_suffix(".bsp").or_else(|| name.strip_suffix(".BSP")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_known_by_its_stem() {
        assert_eq!(["maps/dm3.bsp", "C:\\id1\\dm3.bsp.gz", "dm3", "DM3.BSP"].map(stem), ["dm3", "dm3", "dm3", "DM3"]);
    }
}
