//! Suggestions for mistyped names.

use super::engine_names::ENGINE_NAMES;
use super::keys::KEYS;

/// Returns ` (did you mean ...?)` with the nearest of `names`, or an empty text when none is near.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    most_alike(names.map(|name| (strsim::jaro_winkler(word, name), name))).unwrap_or_default()
}

/// Returns ` (did you mean ...?)` with the key nearest to a word, or ` (...)` with the first words of all keys.
pub(super) fn key_hint(word: &str) -> String {
    nearest_key(word).unwrap_or_else(groups)
}

/// Returns ` (did you mean ...?)` with the key nearest to a word, or `None` when none is near. The word may be a
/// whole key, a part of one such as `lerp`, or another engine's name without its prefix such as `cmdrate`.
fn nearest_key(word: &str) -> Option<String> {
    let typed = plain(word);
    let by_engine = ENGINE_NAMES.iter().map(|known| (plain_without_prefix(known.name), known.key));
    match by_engine.into_iter().find(|(name, _)| *name == typed) {
        Some((_, key)) => most_alike([(1.0, key)].into_iter()),
        None => most_alike(KEYS.iter().map(|key| (similarity(word, key.name), key.name))),
    }
}

/// Returns ` (…)` with the first words of all keys.
fn groups() -> String {
    let mut groups: Vec<&str> = KEYS.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).collect();
    groups.dedup();
    format!(" (the names begin with {})", groups.join(", "))
}

fn most_alike<'a>(names: impl Iterator<Item = (f64, &'a str)>) -> Option<String> {
    names
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!(" (did you mean `{name}`?)"))
}

/// How much a word resembles a key, from 0 to 1: as a whole, by its last part, or as consecutive words of that part.
fn similarity(word: &str, key: &str) -> f64 {
    let last = |name: &str| plain(name.rsplit('.').next().unwrap_or(name));
    let (typed, part) = (last(word), last(key));
    let words: Vec<&str> = key.rsplit('.').next().unwrap_or(key).split('_').collect();
    let begins = (0..words.len()).any(|at| words[at..].concat().starts_with(&typed));
    let of_part = match !typed.is_empty() && begins {
        // The more of the part was typed, the better.
        true => 0.9 + 0.1 * typed.len() as f64 / part.len() as f64,
        false => strsim::jaro_winkler(&typed, &part),
    };
    let whole = strsim::jaro_winkler(&word.to_ascii_lowercase(), key);
    // In a whole key, the group counts too, unless the part is right.
    let of_part = if word.contains('.') && typed != part { 0.9 * of_part } else { of_part };
    whole.max(of_part)
}

/// A name in lower case, without separators.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Another engine's name without its prefix, such as `cmdrate` of `cl_cmdrate`.
fn plain_without_prefix(name: &str) -> String {
    let prefixes = ["cl_", "sv_", "cg_", "ex_", "g_"];
    plain(prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_key_of_a_part() {
        let cases = [
            ("lerp", "interpolation.lerp_ms"),
            ("lerp_ms", "interpolation.lerp_ms"),
            ("Lerp-Ms", "interpolation.lerp_ms"),
            ("interp", "interpolation.lerp_ms"),
            ("interpolation.lerp", "interpolation.lerp_ms"),
            ("client.lerp_ms", "interpolation.lerp_ms"),
            ("cmd_hz", "client.cmd_hz"),
            ("cmdrate", "client.cmd_hz"),
            ("cmd_rate", "client.cmd_hz"),
            ("update_rate", "server.update_hz"),
            ("updaterate", "server.update_hz"),
            ("update_hz", "server.update_hz"),
            ("tickrate", "server.tick_hz"),
            ("tick", "server.tick_hz"),
            ("rate_bytes", "server.rate_bytes_per_s"),
            ("enabled", "lag_compensation.enabled"),
            ("lagcomp", "lag_compensation.enabled"),
            ("max_unlag_ms", "lag_compensation.max_unlag_ms"),
            ("smooth", "prediction.smooth_ms"),
            ("redundency", "client.redundancy"),
        ];
        for (word, key) in cases {
            assert_eq!(nearest_key(word), Some(format!(" (did you mean `{key}`?)")), "{word}");
        }
        assert_eq!(["", "xyz"].map(nearest_key), [None, None]);
        assert!(groups().starts_with(" (the names begin with prediction, interpolation, "), "{}", groups());
    }
}
