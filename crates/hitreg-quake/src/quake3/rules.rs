//! The constant data of a Quake III session in a log.

use serde::{Deserialize, Serialize};

use super::movement::PmoveSettings;
use super::protocol::Gamestate;
use crate::bsp::quake3::Quake3Map;

/// Everything that does not change during a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quake3Rules {
    /// Name of the map, without folder and extension.
    pub map_name: String,
    /// Name of the game as the server sends it: `baseoa` is OpenArena.
    pub game: String,
    /// Server frame rate, in Hz.
    pub server_hz: u16,
    /// Largest number of players.
    pub places: u16,
    /// The map, if it was given. Movement needs it.
    pub map: Option<Quake3Map>,
    /// Whether the server rewinds targets for hitscan weapons.
    pub unlagged: bool,
}

/// Numbers of the config strings with settings.
const SERVER_INFO: u16 = 0;
const SYSTEM_INFO: u16 = 1;
/// Entity numbers below this are players.
const MOST_PLACES: u16 = 64;
/// Bits of the setting `dmflags` (bg_public.h).
const NO_BUNNY: u32 = 128;
const FAST_WATER: u32 = 4096;

impl Quake3Rules {
    /// Returns the rules of a gamestate. Missing settings have the server program's defaults.
    pub(crate) fn of(gamestate: &Gamestate) -> Quake3Rules {
        let server = InfoString::of_server(gamestate);
        let system = InfoString::of(gamestate, SYSTEM_INFO);
        Quake3Rules {
            map_name: server.text("mapname").to_owned(),
            game: server.text("gamename").to_owned(),
            server_hz: system.number("sv_fps", 20).clamp(1, 1000) as u16,
            places: server.number("sv_maxclients", 8).clamp(1, i64::from(MOST_PLACES)) as u16,
            map: None,
            unlagged: server.number("g_delagHitscan", 0) != 0,
        }
    }
}

impl PmoveSettings {
    /// Returns the settings of player movement in the config strings. A server may change them during a level.
    pub(crate) fn of(gamestate: &Gamestate) -> PmoveSettings {
        let system = InfoString::of(gamestate, SYSTEM_INFO);
        let is_set = |name| system.number(name, 0) != 0;
        let dm_flags = InfoString::of_server(gamestate).number("dmflags", 0) as u32;
        PmoveSettings {
            float: is_set("pmove_float"),
            // The game's limits (cg_predict.c).
            fixed_ms: if is_set("pmove_fixed") { system.number("pmove_msec", 8).clamp(8, 33) as i32 } else { 0 },
            no_bunny: dm_flags & NO_BUNNY != 0,
            fast_water: dm_flags & FAST_WATER != 0,
        }
    }
}

/// Settings in the form `\key\value\key\value`.
#[derive(Clone, Debug)]
pub(crate) struct InfoString(String);

impl InfoString {
    pub(crate) fn new(text: &[u8]) -> InfoString {
        InfoString(String::from_utf8_lossy(text).into_owned())
    }

    fn of(gamestate: &Gamestate, index: u16) -> InfoString {
        InfoString::new(gamestate.strings.get(&index).map_or(&[][..], Vec::as_slice))
    }

    /// Returns the server's settings in a gamestate.
    pub(crate) fn of_server(gamestate: &Gamestate) -> InfoString {
        InfoString::of(gamestate, SERVER_INFO)
    }

    /// Returns the value of a setting; empty if it is absent.
    pub(crate) fn text(&self, key: &str) -> &str {
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
    fn settings_come_from_two_strings() {
        let mut gamestate = Gamestate::default();
        gamestate.strings.insert(0, b"\\sv_maxclients\\16\\mapname\\oa_dm1\\dmflags\\136".to_vec());
        gamestate.strings.insert(1, b"\\sv_fps\\40\\pmove_fixed\\1\\pmove_msec\\11\\pmove_float\\1".to_vec());
        let rules = Quake3Rules::of(&gamestate);
        assert_eq!((&*rules.map_name, rules.places, rules.server_hz, rules.unlagged), ("oa_dm1", 16, 40, false));
        let settings = PmoveSettings { float: true, fixed_ms: 11, no_bunny: true, fast_water: false };
        assert_eq!(PmoveSettings::of(&gamestate), settings);
        gamestate.strings.insert(1, b"sv_fps\\0".to_vec());
        assert_eq!(Quake3Rules::of(&gamestate).server_hz, 1, "what is out of bounds is taken to them");
        gamestate.strings.insert(1, b"\\pmove_fixed\\1\\pmove_msec\\2".to_vec());
        assert_eq!(PmoveSettings::of(&gamestate).fixed_ms, 8, "what is out of bounds is taken to them");
    }
}
