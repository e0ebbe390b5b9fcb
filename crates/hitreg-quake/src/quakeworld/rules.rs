//! What a log of a QuakeWorld recording holds beside its records: the server, its movement rules, the map, and how times
//! and numbers in the records relate to those of the demo.

use serde::{Deserialize, Serialize};

use super::body::FIRST_MODEL;
use crate::bsp::quake::Map;
use crate::quakeworld::demo::{DemoEnd, Level, Server};
use crate::quakeworld::movement::MoveVars;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

/// No client has run for longer; beyond it microseconds would not fit, in seconds.
pub(crate) const LATEST_TIME_S: f32 = 1e9;

/// All that does not change during a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Which server, which rules.
    pub server: Server,
    /// The levels played, in order.
    pub levels: Vec<Level>,
    /// Movement rules in the order in which they came into force.
    pub move_vars: Vec<MoveVars>,
    /// Why the recording stops where it does.
    pub end: DemoEnd,
    /// The map of the first level.
    pub map: Map,
    /// The recording player: the slot on the first level.
    pub player: PlayerId,
    /// Client time at the start of the session, in microseconds.
    pub start_us: i64,
    /// What to add to a usercmd's number in the demo to get the log's, which begins at 1 or later.
    pub seq_shift: u32,
}

impl Rules {
    /// The first level's map without folder and ending, such as `dm3`; empty when the server never named it.
    pub(crate) fn map_stem(&self) -> &str {
        self.levels.first().map_or("", |level| stem(&level.map))
    }

    /// Whether a level is played on the map that is here.
    pub(crate) fn is_here(&self, level: u16) -> bool {
        let map = |level: usize| self.levels.get(level).map(|level| level.map.as_str());
        map(usize::from(level)) == map(0)
    }

    /// The entity of a slot; also the slot of a player's entity. A later level may put the recording player into another
    /// slot: the two then change places, so that the player stays one entity.
    pub(crate) fn swap_slot(&self, level: u16, slot: u8) -> u8 {
        let first = self.player.0 as u8;
        let now = self.levels.get(usize::from(level)).map_or(first, |level| level.player);
        match slot {
            slot if slot == now => first,
            slot if slot == first => now,
            slot => slot,
        }
    }

    /// Session time of client time `time_s`.
    pub(crate) fn at(&self, time_s: f32) -> Micros {
        Micros(micros(time_s).saturating_sub(self.start_us))
    }

    /// The log's number of a usercmd; none beyond what 32 bits hold.
    pub(crate) fn log_seq(&self, seq: i32) -> Option<CommandSeq> {
        let shifted = i64::from(seq) + i64::from(self.seq_shift);
        u32::try_from(shifted).ok().map(CommandSeq)
    }
}

/// Client time in whole microseconds.
pub(crate) fn micros(time_s: f32) -> i64 {
    libm::round(f64::from(time_s) * 1e6) as i64
}

/// The entity of a brush model; none beyond what entity numbers hold.
pub(crate) fn entity_of_model(model: u16) -> Option<EntityId> {
    FIRST_MODEL.0.checked_add(model).map(EntityId)
}

/// A file's name without folder and ending: `dm3` of `maps/dm3.bsp` and `DM3.bsp.gz` alike, but for case.
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
