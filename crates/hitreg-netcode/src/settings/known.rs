//! Detection of hitreg's own keys.

use super::keys::KEYS;
use super::{Settings, is_of_players};

impl Settings {
    /// Returns whether the key exists.
    pub fn is_known(key: &str) -> bool {
        let key = match hitreg_log::record::split_of_player(key) {
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
