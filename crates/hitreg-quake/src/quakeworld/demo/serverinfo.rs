//! Extracts a server's code version and movement settings from its info string.

use super::protocol::ServerExtensions;
use crate::quakeworld::movement::Dialect;

/// The keys that affect movement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerInfo {
    pub(crate) version: String,
    extensions: u32,
    jump_floor: f32,
    air_step: bool,
    slide_fix: bool,
    bunny_speed_cap: f32,
    kteams: bool,
    landing_fix: bool,
}

impl ServerInfo {
    /// Reads `\key\value\key\value...`; ignores other keys.
    pub(crate) fn read(&mut self, info: &[u8]) {
        let mut parts = info.split(|&byte| byte == b'\\').skip(1);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            self.set(key, value);
        }
    }

    /// Applies one key.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let number = || value.parse::<f32>().ok().filter(|n| n.is_finite()).unwrap_or(0.0);
        match key {
            b"*version" => {
                self.version = value.chars().take(64).filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
            }
            b"*z_ext" => self.extensions = value.parse().unwrap_or(0),
            b"pm_ktjump" => self.jump_floor = number().clamp(0.0, 1.0),
            b"pm_airstep" => self.air_step = number() != 0.0,
            b"pm_slidefix" => self.slide_fix = number() != 0.0,
            b"pm_bunnyspeedcap" => self.bunny_speed_cap = number().max(0.0),
            // QWExtended, the ancestor of MVDSV, and QuakeForge fixed landings in their movement code.
            b"*qwe_version" | b"*qf_version" => self.landing_fix = true,
            // "Forbidden player dirtywork", a setting that only KTeams and its descendants have.
            b"fpd" => self.kteams = true,
            _ => {}
        }
    }

    pub(crate) fn server_extensions(&self) -> ServerExtensions {
        ServerExtensions(self.extensions)
    }

    /// Returns the movement code according to the server; a demo gives better evidence. Servers that announce ZQuake's
    /// extensions, or whose name shows that they descend from it, run its movement.
    pub(crate) fn dialect(&self) -> Dialect {
        let version = self.version.to_ascii_lowercase();
        let reworked =
            self.extensions != 0 || ["mvdsv", "ezquake", "zquake", "fte"].iter().any(|n| version.contains(n));
        if !reworked {
            return Dialect::Classic {
                soft_landing: self.kteams,
                soft_jump: self.kteams,
                landing_fix: self.landing_fix,
            };
        }
        let ServerInfo { jump_floor, air_step, slide_fix, bunny_speed_cap, .. } = *self;
        Dialect::Reworked { jump_floor, air_step, slide_fix, bunny_speed_cap }
    }

    /// Returns the name of a proxy that took the server's place, according to its version string.
    pub(crate) fn proxy(&self) -> Option<&'static str> {
        let version = self.version.to_ascii_lowercase();
        ["qizmo", "qwfwd", "qtv", "eztv"].into_iter().find(|name| version.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides_the_movement_code() {
        let mut info = ServerInfo::default();
        info.read(br"\maxfps\77\*version\2.30\*gamedir\qw\fpd\34");
        assert_eq!(
            (info.version.as_str(), info.dialect(), info.proxy()),
            ("2.30", Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false }, None)
        );
        info.read(br"\*version\2.40\*qwe_version\0.147 Beta");
        assert!(matches!(info.dialect(), Dialect::Classic { landing_fix: true, .. }));
        info.read(br"\*version\MVDSV 1.20-dev\*z_ext\511\pm_ktjump\1");
        let Dialect::Reworked { jump_floor, air_step, .. } = info.dialect() else { panic!("reworked") };
        assert_eq!((jump_floor, air_step, info.server_extensions().says_jump_held()), (1.0, false, true));
        info.read(br"\*version\QTV 1.12");
        assert_eq!(info.proxy(), Some("qtv"));
    }
}
