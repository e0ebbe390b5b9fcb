//! Which keys are hitreg's own.

use super::keys::KEYS;
use super::{Settings, is_of_players};

impl Settings {
    /// Whether there is such a key.
    pub fn is_known(key: &str) -> bool {
        let key = match hitreg_log::record::split_of_player(key) {
            Some((_, key)) if is_of_players(key) => key,
            Some(_) | None => key,
        };
        KEYS.iter().any(|known| known.name == key)
    }

    /// Whether it belongs to a group of keys: `interpolation.…`.
    pub fn is_named_like_one(key: &str) -> bool {
        let group = |key: &str| key.split_once('.').map(|(group, _)| group.to_owned());
        group(key).is_none() || KEYS.iter().any(|known| group(known.name) == group(key))
    }

    /// Those of a log's pairs that this build does not know.
    pub fn unknown(pairs: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
        pairs.iter().filter(|(key, _)| !Settings::is_known(key))
    }
}
