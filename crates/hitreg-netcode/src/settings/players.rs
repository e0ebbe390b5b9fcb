//! Single players' own settings: "we allow the user to ask for as many updates per second as he or she wants" (Bernier
//! 2001). The same applies to all other settings of the client.

use std::sync::Arc;

use super::keys::KEYS;
use super::nearest::key_hint;
use super::{SettingError, Settings};
use hitreg_log::record::split_of_player as split;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::PlayerId;

/// The prefixes of keys that can be set for single players: prediction, drawing, the client, and its updates.
pub(super) const OWN: &[&str] =
    &["prediction.", "interpolation.", "extrapolation.", "client.", "server.update_hz", "server.rate_bytes_per_s"];

/// Single players' own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Players(SortedMap<PlayerId, SortedMap<&'static str, String>>);

/// Returns whether a key can be set for a single player.
pub(crate) fn is_of_players(key: &str) -> bool {
    OWN.iter().any(|own| key.starts_with(own))
}

/// Removes the settings of removed players from a log's pairs, and renumbers those of the players after them.
pub fn without_players(pairs: &mut Vec<(String, String)>, removed: &SortedSet<usize>) {
    pairs.retain(|(key, _)| split(key).is_none_or(|(player, _)| !removed.contains(&usize::from(player.0))));
    for (key, _) in pairs {
        let renamed = split(key).map(|(player, own)| {
            let before = removed.iter().filter(|gone| **gone < usize::from(player.0)).count();
            format!("p{}.{own}", usize::from(player.0) - before)
        });
        if let Some(renamed) = renamed {
            *key = renamed;
        }
    }
}

impl Players {
    /// Returns whether no player has own settings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the own values of a setting.
    pub(super) fn forget(&mut self, key: &str) {
        self.0.values_mut().for_each(|own| {
            own.remove(key);
        });
        self.0.retain(|_, own| !own.is_empty());
    }

    /// Returns the settings as text, sorted by player.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        let of = |(player, own): (&PlayerId, &SortedMap<&str, String>)| {
            own.iter().map(|(key, value)| (format!("p{}.{key}", player.0), value.clone())).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of)
    }
}

impl Settings {
    /// Checks that no player beyond the session's `players` has own settings. Settings that the log already has in
    /// `own` are accepted.
    ///
    /// # Errors
    /// Names the first such player.
    pub(crate) fn check_players(&self, own: &Settings, players: usize) -> Result<(), SettingError> {
        let beyond = self
            .players
            .0
            .iter()
            .find(|(player, set)| usize::from(player.0) >= players && own.players.0.get(player) != Some(set));
        beyond.map_or(Ok(()), |(player, _)| Err(SettingError::NoSuchPlayer { player: *player, players }))
    }

    /// Returns the settings of one player: the common ones with the player's own applied.
    pub fn of_player(self: &Arc<Settings>, player: PlayerId) -> Arc<Settings> {
        let Some(own) = self.players.0.get(&player) else { return Arc::clone(self) };
        let mut settings = Settings { players: Players::default(), ..(**self).clone() };
        for (key, value) in own {
            let taken = settings.set(key, value);
            debug_assert_eq!(taken, Ok(()), "it was taken before");
        }
        Arc::new(settings)
    }

    pub(super) fn set_of_player(&mut self, player: PlayerId, key: &str, value: &str) -> Result<(), SettingError> {
        let Some(known) = KEYS.iter().find(|known| known.name == key) else {
            let hint = key_hint(key);
            return Err(SettingError::UnknownKey { key: format!("p{}.{key}", player.0), hint });
        };
        if !is_of_players(key) {
            return Err(SettingError::NotOfPlayers { key: key.to_owned() });
        }
        let mut own = self.clone();
        known.set(&mut own, value)?;
        self.players.0.entry(player).or_default().insert(known.name, known.get(&own));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
