//! What a log of a Quake III session holds beside its records.

use serde::{Deserialize, Serialize};

use super::movement::Settings;
use super::protocol::Gamestate;
use crate::bsp::quake3::Map;

/// All that does not change during a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// The map's name, without folder and ending.
    pub map_name: String,
    /// Which game it is, as the server says: `baseoa` is OpenArena.
    pub game: String,
    /// Server frames a second.
    pub server_hz: u16,
    /// How many may play.
    pub places: u16,
    /// Velocities stay as they are; otherwise they are rounded to whole numbers after each step.
    pub pmove_float: bool,
    /// Every usercmd's time is rounded up to a multiple of so many ms, if it is above 0.
    pub pmove_fixed_ms: u16,
    /// The server's flags: jumping, falling, friction.
    pub dm_flags: u32,
    /// The map, if it was given: without it nobody can be moved.
    pub map: Option<Map>,
    /// Whether the server rewinds targets for weapons that hit at once.
    pub unlagged: bool,
}

/// Config strings that hold settings.
const SERVER_INFO: u16 = 0;
const SYSTEM_INFO: u16 = 1;
/// Entities below are players.
const MOST_PLACES: u16 = 64;

impl Rules {
    /// As a gamestate tells them; what it leaves out is as the server's program has it.
    pub(crate) fn of(gamestate: &Gamestate) -> Rules {
        let server = Info::of(gamestate, SERVER_INFO);
        let system = Info::of(gamestate, SYSTEM_INFO);
        let fixed = if system.number("pmove_fixed", 0) != 0 { system.number("pmove_msec", 8) } else { 0 };
        Rules {
            map_name: server.text("mapname").to_owned(),
            game: server.text("gamename").to_owned(),
            server_hz: system.number("sv_fps", 20).clamp(1, 1000) as u16,
            places: server.number("sv_maxclients", 8).clamp(1, i64::from(MOST_PLACES)) as u16,
            pmove_float: system.number("pmove_float", 0) != 0,
            pmove_fixed_ms: fixed.clamp(0, 33) as u16,
            dm_flags: server.number("dmflags", 0) as u32,
            map: None,
            unlagged: server.number("g_delagHitscan", 0) != 0,
        }
    }
}

/// Bits of [`Rules::dm_flags`] (bg_public.h).
const NO_BUNNY: u32 = 128;
const FAST_WATER: u32 = 4096;

impl Rules {
    /// How players are moved.
    pub(crate) fn movement(&self) -> Settings {
        Settings {
            float: self.pmove_float,
            fixed_ms: i32::from(self.pmove_fixed_ms),
            no_bunny: self.dm_flags & NO_BUNNY != 0,
            fast_water: self.dm_flags & FAST_WATER != 0,
        }
    }
}

/// `\key\value\key\value`.
struct Info(String);

impl Info {
    fn of(gamestate: &Gamestate, index: u16) -> Info {
        Info(String::from_utf8_lossy(gamestate.strings.get(&index).map_or(&[][..], Vec::as_slice)).into_owned())
    }

    fn text(&self, key: &str) -> &str {
        let mut words = self.0.strip_prefix('\\').unwrap_or(&self.0).split('\\');
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if name.eq_ignore_ascii_case(key) {
                return value;
            }
        }
        ""
    }

    fn number(&self, key: &str, usual: i64) -> i64 {
        self.text(key).parse().unwrap_or(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_by_two_strings() {
        let mut gamestate = Gamestate::default();
        gamestate.strings.insert(0, b"\\sv_maxclients\\16\\mapname\\oa_dm1\\dmflags\\8".to_vec());
        gamestate.strings.insert(1, b"\\sv_fps\\40\\pmove_fixed\\1\\pmove_msec\\11\\pmove_float\\1".to_vec());
        let rules = Rules::of(&gamestate);
        assert_eq!((&*rules.map_name, rules.places, rules.server_hz, rules.dm_flags), ("oa_dm1", 16, 40, 8));
        assert_eq!((rules.pmove_fixed_ms, rules.pmove_float, rules.unlagged), (11, true, false));
        gamestate.strings.insert(1, b"sv_fps\\0".to_vec());
        assert_eq!(Rules::of(&gamestate).server_hz, 1, "what is out of bounds is taken to them");
    }
}
