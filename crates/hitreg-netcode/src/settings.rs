//! The settings of a session: typed values under dotted names, each with bounds, a default and the source of the
//! default. A log carries all of them; a replay may change some.

mod choices;
mod engine_names;
mod keys;
mod kind;
mod nearest;
mod players;
mod preset;

pub use choices::{
    Among, ClockMode, Frames, InterpolationMode, OnLost, OnMissing, PredictionMode, Schedule, Sizes, Zone,
};
pub use engine_names::{ENGINE_NAMES, EngineName, engine_names};
pub use keys::{
    ClientSettings, ExtrapolationSettings, InterpolationSettings, KEYS, LagCompensation, PredictionSettings,
    ServerSettings, SettingKey, Settings, TeleportSettings, WireSettings,
};
pub use kind::ValueKind;
pub(crate) use players::is_of_players;
pub use players::{Players, without_players};
pub use preset::{PRESETS, Preset};

use engine_names::our_name;
use hitreg_log::record::split_of_player;
use hitreg_log::units::PlayerId;
use nearest::{key_hint, nearest};

/// The reasons why a setting cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The key is unknown.
    #[error("no setting is called `{key}`{hint}; `hitreg settings` lists them all")]
    UnknownKey {
        /// The given key.
        key: String,
        /// A hint with the nearest key, ready to print.
        hint: String,
    },
    /// The text is not a `key=value` pair.
    #[error("`{text}` has no value: write KEY=VALUE, such as interpolation.lerp_ms=100")]
    NotAPair {
        /// The given text.
        text: String,
    },
    /// The key cannot be set for a single player.
    #[error("`{key}` is the same for all players; only {own} can differ between players", own = players::OWN.join("*, "))]
    NotOfPlayers {
        /// The key.
        key: String,
    },
    /// The session does not have the player.
    #[error("there is no player p{player}: the session has {}", named(*players))]
    NoSuchPlayer {
        /// The player.
        player: PlayerId,
        /// The number of players.
        players: usize,
    },
    /// The key cannot have the value.
    #[error("`{key}` cannot be `{value}`: it takes {takes}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// The given value.
        value: String,
        /// The accepted values.
        takes: String,
    },
    /// The preset is unknown.
    #[error("no preset is called `{name}`{hint}; choose one of {known}")]
    UnknownPreset {
        /// The given name.
        name: String,
        /// A hint with the nearest name, ready to print.
        hint: String,
        /// The names of all presets.
        known: String,
    },
}

fn named(players: usize) -> String {
    match players {
        0 => "none".to_owned(),
        1 => "one player, p0".to_owned(),
        _ => format!("{players} players, p0 to p{}", players - 1),
    }
}

impl ServerSettings {
    /// Returns whether the zone of knowledge can hide any entity from a client.
    pub(crate) fn bounds_zones(&self) -> bool {
        self.zone != Zone::Everything || self.zone_units < keys::WIDEST_ZONE
    }
}

impl Settings {
    /// Returns the settings of a preset.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn preset(name: &str) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        settings.apply_preset(name)?;
        Ok(settings)
    }

    /// Returns the settings of a preset with this session's wire settings, which belong to the recording.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn under_preset(&self, name: &str) -> Result<Settings, SettingError> {
        Ok(Settings { wire: self.wire.clone(), ..Settings::preset(name)? })
    }

    /// Returns these settings, or those [under a preset](Settings::under_preset), with these `key=value` pairs. A pair
    /// of all players replaces the own values that players had, and a pair of one player comes after it.
    ///
    /// # Errors
    /// When no preset has that name, or a pair does not set a setting.
    pub fn with_changes<'p>(
        &self,
        preset: Option<&str>,
        pairs: impl IntoIterator<Item = &'p String>,
    ) -> Result<Settings, SettingError> {
        let mut settings = match preset {
            Some(name) => self.under_preset(name)?,
            None => self.clone(),
        };
        let pairs = pairs.into_iter().map(|pair| Settings::pair(pair)).collect::<Result<Vec<_>, _>>()?;
        pairs.iter().for_each(|(key, _)| settings.players.forget(key));
        pairs.iter().try_for_each(|(key, value)| settings.set(key, value))?;
        Ok(settings)
    }

    /// Returns the keys with values that differ from those of `other`, and these values. A player without an own value
    /// has the common one.
    pub fn changes_from(&self, other: &Settings) -> Vec<(String, String)> {
        let (own, others) = (self.to_pairs(), other.to_pairs());
        let value = |pairs: &[(String, String)], key: &str| {
            let of_all = split_of_player(key).map_or(key, |(_, of_all)| of_all);
            let found = |sought: &str| pairs.iter().find(|(key, _)| key == sought).map(|(_, value)| value.clone());
            found(key).or_else(|| found(of_all)).unwrap_or_default()
        };
        let gone = others.iter().filter(|(key, _)| !own.iter().any(|(known, _)| known == key));
        let keys = own.iter().chain(gone).map(|(key, _)| key);
        let changed = keys.map(|key| (key, value(&own, key))).filter(|(key, now)| *now != value(&others, key));
        changed.map(|(key, now)| (key.clone(), now)).collect()
    }

    /// Returns the interpolation delay behind the client's clock in ms; 0 in modes that do not interpolate.
    pub fn drawn_behind_ms(&self) -> i64 {
        match self.interpolation.mode {
            InterpolationMode::TwoPoint | InterpolationMode::LastRendered | InterpolationMode::History => {
                self.interpolation.lerp_ms
            }
            InterpolationMode::Off | InterpolationMode::Extrapolate | InterpolationMode::Category => 0,
        }
    }

    /// Returns whether usercmds carry the time of their tick, which is ahead of the snapshots that the client received.
    pub(crate) fn stamps_ticks(&self) -> bool {
        self.server.schedule == Schedule::Tick || self.client.clock == ClockMode::Calibrated
    }

    /// Returns whether clients predict weapons.
    pub(crate) fn predicts_weapons(&self) -> bool {
        self.prediction.mode == PredictionMode::Weapons
    }

    /// Sets the values of a preset and keeps all other settings.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn apply_preset(&mut self, name: &str) -> Result<(), SettingError> {
        let preset = PRESETS.iter().find(|p| p.name == name).ok_or_else(|| SettingError::UnknownPreset {
            name: name.to_owned(),
            hint: match name.to_ascii_lowercase().as_str() {
                "source" | "hl2" | "csgo" | "cs2" | "tf2" | "goldsrc" | "hl1" | "hl" | "cs16" => {
                    " (`half-life` is the closest)".to_owned()
                }
                _ => nearest(name, PRESETS.iter().map(|p| p.name)),
            },
            known: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
        })?;
        for (key, value, _) in preset.values {
            self.set(key, value)?;
        }
        Ok(())
    }

    /// Sets one key from text.
    ///
    /// # Errors
    /// When the key is unknown, or cannot have the value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        if let Some((player, key)) = split_of_player(key) {
            return self.set_of_player(player, key, value);
        }
        let found = KEYS.iter().find(|k| k.name == key).ok_or_else(|| SettingError::UnknownKey {
            key: key.to_owned(),
            hint: our_name(key).unwrap_or_else(|| key_hint(key)),
        })?;
        found.set(self, value)
    }

    /// Returns the accepted value nearest to a text. Returns `None` when the key is unknown or no value is near.
    pub fn nearest(key: &str, text: &str) -> Option<String> {
        KEYS.iter().find(|known| known.name == key)?.kind.nearest(text)
    }

    /// Sets one key from `key=value`.
    ///
    /// # Errors
    /// As [`Settings::set`], and when there is no `=`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SettingError> {
        let (key, value) = Settings::pair(pair)?;
        self.set(key, value)
    }

    /// Splits `key=value` without checking the key or the value.
    ///
    /// # Errors
    /// When there is no `=`.
    pub fn pair(text: &str) -> Result<(&str, &str), SettingError> {
        let pair = text.split_once('=').ok_or_else(|| SettingError::NotAPair { text: text.to_owned() })?;
        Ok((pair.0.trim(), pair.1.trim()))
    }

    /// Returns all settings as text for a log: first in the order of [`KEYS`], then those of single players.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        KEYS.iter().map(|key| (key.name.to_owned(), key.get(self))).chain(self.players.pairs()).collect()
    }

    /// Parses settings from a log's pairs. Keys that the log does not have keep their defaults. The exception is
    /// `wire.sizes`: a log without it uses nominal sizes. Keys that this build does not know are skipped;
    /// [`Settings::unknown`] names them.
    ///
    /// # Errors
    /// When a known key has an invalid value.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        settings.wire.sizes = Sizes::Nominal;
        for (key, value) in pairs {
            if Settings::is_known(key) {
                settings.set(key, value)?;
            }
        }
        Ok(settings)
    }

    /// Returns whether the key exists.
    pub fn is_known(key: &str) -> bool {
        let key = match split_of_player(key) {
            Some((_, key)) if is_of_players(key) => key,
            Some(_) | None => key,
        };
        KEYS.iter().any(|known| known.name == key)
    }

    /// Returns whether the key belongs to a known group, such as `interpolation.…`.
    pub fn is_named_like_one(key: &str) -> bool {
        let Some((group, _)) = key.split_once('.') else { return false };
        KEYS.iter().any(|known| known.name.split_once('.').is_some_and(|(own, _)| own == group))
    }

    /// Returns those of a log's pairs that this build does not know.
    pub fn unknown(pairs: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
        pairs.iter().filter(|(key, _)| !Settings::is_known(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_conversion_to_text() {
        for preset in PRESETS {
            let settings = Settings::preset(preset.name).expect(preset.name);
            assert_eq!(Settings::from_pairs(&settings.to_pairs()), Ok(settings));
        }
    }

    #[test]
    fn errors_of_keys_and_values_name_the_correct_ones() {
        let mut settings = Settings::default();
        let unknown = settings.set("interpolation.lerp", "100").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `interpolation.lerp_ms`?"), "{unknown}");
        let range = settings.set_pair("server.tick_hz=0").unwrap_err().to_string();
        assert_eq!(
            range,
            "`server.tick_hz` cannot be `0`: it takes a number of Hz from 1 to 1000, with at most three decimals"
        );
        let word = settings.set_pair("interpolation.mode=linear").unwrap_err().to_string();
        assert!(word.contains("off, extrapolate, two-point, last-rendered, history"), "{word}");
        assert_eq!(settings, Settings::default());
        let engine = settings.apply_preset("source").unwrap_err().to_string();
        assert!(engine.contains("`half-life` is the closest"), "{engine}");
    }

    #[test]
    fn flags_accept_0_and_1() {
        let mut settings = Settings::default();
        settings.set_pair("lag_compensation.enabled=0").unwrap();
        assert!(!settings.lag_compensation.enabled);
        settings.set_pair("lag_compensation.enabled=1").unwrap();
        assert!(settings.lag_compensation.enabled);
        assert!(settings.set_pair("lag_compensation.enabled=2").is_err());
    }
}
