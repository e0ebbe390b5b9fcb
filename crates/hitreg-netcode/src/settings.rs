//! The settings of a session: typed values under dotted names, each with bounds, a default and the source of the
//! default. A log carries all of them; a replay may change some.
//!
//! Single players may have settings of their own: "we allow the user to ask for as many updates per second as he or she
//! wants" (Bernier 2001). The same applies to all other settings of the client.

mod keys;
mod names;

pub use keys::{
    Among, ClientSettings, ClockMode, ExtrapolationSettings, Frames, InterpolationMode, InterpolationSettings, KEYS,
    LagCompensation, OnLost, OnMissing, PRESETS, PredictionMode, PredictionSettings, Preset, Schedule, ServerSettings,
    SettingKey, Settings, Sizes, TeleportSettings, ValueKind, WireSettings, Zone,
};
pub use names::{ENGINE_NAMES, EngineName, engine_names};

use std::sync::Arc;

use hitreg_log::record::split_of_player;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::PlayerId;
use names::{key_hint, nearest, our_name};

/// The reasons why a setting cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    #[error("`{key}` is the same for all players; only {} can differ between players", own_keys())]
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
        settings.players.retain(|_, own| {
            own.retain(|key, _| !pairs.iter().any(|(replaced, _)| replaced == key));
            !own.is_empty()
        });
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
        let (player, of_all) = split_of_player(key).map_or((None, key), |(player, of_all)| (Some(player), of_all));
        let Some(known) = Settings::key(of_all) else {
            let hint = our_name(key).unwrap_or_else(|| key_hint(of_all));
            let key = player.map_or_else(|| key.to_owned(), |player| format!("p{player}.{of_all}"));
            return Err(SettingError::UnknownKey { key, hint });
        };
        let Some(player) = player else { return known.set(self, value) };
        if !is_of_players(of_all) {
            return Err(SettingError::NotOfPlayers { key: of_all.to_owned() });
        }
        let mut own = self.clone();
        known.set(&mut own, value)?;
        self.players.entry(player).or_default().insert(known.name, known.get(&own));
        Ok(())
    }

    fn key(name: &str) -> Option<&'static SettingKey> {
        KEYS.iter().find(|known| known.name == name)
    }

    /// Returns the accepted value nearest to a text. Returns `None` when the key is unknown or no value is near.
    pub fn nearest(key: &str, text: &str) -> Option<String> {
        Settings::key(key)?.kind.nearest(text)
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
        let mut pairs: Vec<_> = KEYS.iter().map(|key| (key.name.to_owned(), key.get(self))).collect();
        for (player, own) in &self.players {
            pairs.extend(own.iter().map(|(key, value)| (format!("p{}.{key}", player.0), value.clone())));
        }
        pairs
    }

    /// Checks that no player beyond the session's `players` has own settings. Settings that the log already has in
    /// `own` are accepted.
    ///
    /// # Errors
    /// Names the first such player.
    pub(crate) fn check_players(&self, own: &Settings, players: usize) -> Result<(), SettingError> {
        let is_beyond =
            |(player, set): &(&PlayerId, _)| usize::from(player.0) >= players && own.players.get(player) != Some(*set);
        let beyond = self.players.iter().find(is_beyond);
        beyond.map_or(Ok(()), |(player, _)| Err(SettingError::NoSuchPlayer { player: *player, players }))
    }

    /// Returns the settings of one player: the common ones with the player's own applied.
    pub fn of_player(self: &Arc<Settings>, player: PlayerId) -> Arc<Settings> {
        let Some(own) = self.players.get(&player) else { return Arc::clone(self) };
        let mut settings = Settings { players: SortedMap::new(), ..(**self).clone() };
        for (key, value) in own {
            let taken = settings.set(key, value);
            debug_assert_eq!(taken, Ok(()), "it was taken before");
        }
        Arc::new(settings)
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
        let of_player = split_of_player(key).filter(|(_, of_all)| is_of_players(of_all));
        Settings::key(of_player.map_or(key, |(_, of_all)| of_all)).is_some()
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

/// The prefixes of keys that can be set for single players: prediction, drawing, the client, and its updates.
const OWN: &[&str] =
    &["prediction.", "interpolation.", "extrapolation.", "client.", "server.update_hz", "server.rate_bytes_per_s"];

/// The keys that can be set for single players, as text: `client.*, server.update_hz`.
fn own_keys() -> String {
    let name = |own: &&str| format!("{own}{}", if own.ends_with('.') { "*" } else { "" });
    OWN.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns whether a key can be set for a single player.
fn is_of_players(key: &str) -> bool {
    OWN.iter().any(|own| key.starts_with(own))
}

/// Removes the settings of removed players from a log's pairs, and renumbers those of the players after them.
pub fn without_players(pairs: &mut Vec<(String, String)>, removed: &SortedSet<usize>) {
    pairs.retain(|(key, _)| split_of_player(key).is_none_or(|(player, _)| !removed.contains(&usize::from(player.0))));
    for (key, _) in pairs {
        let renamed = split_of_player(key).map(|(player, own)| {
            let before = removed.iter().filter(|gone| **gone < usize::from(player.0)).count();
            format!("p{}.{own}", usize::from(player.0) - before)
        });
        if let Some(renamed) = renamed {
            *key = renamed;
        }
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

    fn pairs(texts: &[&str]) -> Vec<(String, String)> {
        let split = |text: &&str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        texts.iter().filter_map(split).collect()
    }

    #[test]
    fn own_settings_apply_to_their_player_only() {
        let mut settings = Settings::default();
        settings.set_pair("p2.interpolation.lerp_ms=50").expect("a player's own");
        settings.set_pair("p2.server.update_hz=50").expect("a player's own");
        let settings = Arc::new(settings);
        assert_eq!(settings.of_player(PlayerId(2)).interpolation.lerp_ms, 50);
        assert_eq!(settings.of_player(PlayerId(1)), Arc::clone(&settings));
        assert_eq!(Settings::from_pairs(&settings.to_pairs()).as_ref(), Ok(&*settings));
        let changes = settings.changes_from(&Settings::default());
        assert_eq!(changes, pairs(&["p2.interpolation.lerp_ms=50", "p2.server.update_hz=50"]));
        let changes = Settings::default().changes_from(&settings);
        assert_eq!(changes, pairs(&["p2.interpolation.lerp_ms=100", "p2.server.update_hz=20"]));
    }

    /// A preset replaces the own settings of players, also when the common settings are already its own.
    #[test]
    fn changes_name_the_common_value_of_a_player_without_an_own_one() {
        let mut recorded = Settings::preset("half-life").expect("a preset");
        let common = recorded.clone();
        for pair in ["p0.interpolation.lerp_ms=200", "p1.prediction.mode=off", "p2.interpolation.lerp_ms=100"] {
            recorded.set_pair(pair).expect("a player's own");
        }
        let changed = recorded.with_changes(Some("half-life"), []).expect("a preset");
        assert_eq!(changed, common);
        assert_eq!(common.interpolation.lerp_ms, 100);
        let common = pairs(&["p0.interpolation.lerp_ms=100", "p1.prediction.mode=weapons"]);
        assert_eq!(changed.changes_from(&recorded), common);
        let own = pairs(&["p0.interpolation.lerp_ms=200", "p1.prediction.mode=off"]);
        assert_eq!(recorded.changes_from(&changed), own);
        assert!(recorded.changes_from(&recorded).is_empty());
    }

    /// `--set interpolation.lerp_ms=50` sets all players, in any order of the pairs, except those that it names.
    #[test]
    fn a_common_change_replaces_own_values() {
        let mut recorded = Settings::default();
        for pair in ["p0.interpolation.lerp_ms=200", "p1.interpolation.lerp_ms=20", "p1.prediction.mode=off"] {
            recorded.set_pair(pair).expect("a player's own");
        }
        let asked = ["p2.interpolation.lerp_ms=30", "interpolation.lerp_ms=50"].map(str::to_owned);
        let changed = recorded.with_changes(None, &asked).expect("known settings");
        let expected = [
            "interpolation.lerp_ms=50",
            "p2.interpolation.lerp_ms=30",
            "p0.interpolation.lerp_ms=50",
            "p1.interpolation.lerp_ms=50",
        ];
        assert_eq!(changed.changes_from(&recorded), pairs(&expected));
        let changed = Arc::new(changed);
        assert_eq!([0, 1, 2].map(|player| changed.of_player(PlayerId(player)).interpolation.lerp_ms), [50, 50, 30]);
    }

    #[test]
    fn players_that_a_session_lacks_are_refused_unless_its_log_has_them() {
        let own = Settings::default();
        let mut asked = own.clone();
        asked.set_pair("p1.client.cmd_hz=30").expect("a player's own");
        assert_eq!(asked.check_players(&own, 2), Ok(()));
        let refused = asked.check_players(&own, 1).unwrap_err().to_string();
        assert_eq!(refused, "there is no player p1: the session has one player, p0");
        asked.set_pair("p9.client.cmd_hz=30").expect("a player's own");
        let refused = asked.check_players(&own, 4).unwrap_err().to_string();
        assert_eq!(refused, "there is no player p9: the session has 4 players, p0 to p3");
        assert_eq!(asked.check_players(&asked, 1), Ok(()));
    }

    #[test]
    fn settings_follow_players_to_their_new_numbers() {
        let pair = |key: &str| (key.to_owned(), "1".to_owned());
        let mut pairs =
            ["client.cmd_hz", "p0.client.cmd_hz", "p1.a", "p3.b", "p4.client.lead_ms", "pots.c"].map(pair).to_vec();
        without_players(&mut pairs, &SortedSet::from([1, 3]));
        assert_eq!(pairs, ["client.cmd_hz", "p0.client.cmd_hz", "p2.client.lead_ms", "pots.c"].map(pair));
    }

    #[test]
    fn settings_of_the_whole_session_and_unknown_ones_are_refused() {
        let mut settings = Settings::default();
        for wrong in ["p2.server.tick_hz=32", "p2.lag_compensation.enabled=false", "p2.nothing=1", "p2.client.cmd_hz=x"]
        {
            assert!(settings.set_pair(wrong).is_err(), "{wrong}");
        }
        assert_eq!(settings, Settings::default());
        assert!(Settings::is_known("p2.client.cmd_hz") && !Settings::is_known("p2.server.tick_hz"));
    }
}
