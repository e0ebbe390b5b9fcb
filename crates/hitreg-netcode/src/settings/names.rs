//! Hints for unknown names of settings: the nearest name, and the names in other engines. Programmers of Source or Quake
//! find a setting by names such as `cl_interp`.

use serde::Serialize;

use super::keys::KEYS;

/// Another engine's name for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EngineName {
    /// The engine, or the game.
    pub engine: &'static str,
    /// The name of its console variable.
    pub name: &'static str,
    /// The key of the setting.
    #[serde(skip)]
    pub key: &'static str,
    /// How the meanings differ; empty when they do not.
    pub note: &'static str,
}

const fn of(engine: &'static str, name: &'static str, key: &'static str, note: &'static str) -> EngineName {
    EngineName { engine, name, key, note }
}

const SECONDS: &str = "in seconds there: 0.1 is 100";

/// All known names. A name with different meanings in two engines is listed twice.
pub const ENGINE_NAMES: &[EngineName] = &[
    of("Source", "cl_interp", "interpolation.lerp_ms", SECONDS),
    of(
        "Source",
        "cl_interp_ratio",
        "interpolation.lerp_ms",
        "the greater of cl_interp and cl_interp_ratio / cl_updaterate counts there",
    ),
    of("Half-Life", "ex_interp", "interpolation.lerp_ms", SECONDS),
    of("Source", "cl_interpolate", "interpolation.mode", "0 there is off"),
    of("QuakeWorld", "cl_nolerp", "interpolation.mode", "1 there is off"),
    of("Source", "cl_extrapolate", "interpolation.on_missing", "1 there is extrapolate, 0 is hold"),
    of("Source", "cl_extrapolate_amount", "extrapolation.max_ms", SECONDS),
    of("Source", "cl_updaterate", "server.update_hz", ""),
    of("Half-Life", "cl_updaterate", "server.update_hz", ""),
    of("Quake III", "snaps", "server.update_hz", ""),
    of("Source", "-tickrate", "server.tick_hz", ""),
    of("Quake III", "sv_fps", "server.tick_hz", ""),
    of("Source", "rate", "server.rate_bytes_per_s", ""),
    of("Half-Life", "rate", "server.rate_bytes_per_s", ""),
    of("QuakeWorld", "rate", "server.rate_bytes_per_s", ""),
    of("Quake III", "rate", "server.rate_bytes_per_s", ""),
    of("Source", "sv_maxusrcmdprocessticks", "server.command_credit_ms", "in ticks there"),
    of("Source", "cl_cmdrate", "client.cmd_hz", "packets a second there; a client here sends one a frame"),
    of("Half-Life", "cl_cmdrate", "client.cmd_hz", "packets a second there; a client here sends one a frame"),
    of("Quake III", "cl_maxpackets", "client.cmd_hz", "packets a second there; a client here sends one a frame"),
    of(
        "Half-Life",
        "cl_cmdbackup",
        "client.redundancy",
        "counts the repeated usercmds there, and the new one too here",
    ),
    of("Quake III", "cl_packetdup", "client.redundancy", "counts the repeated packets there, and the new one too here"),
    of("QuakeWorld", "cl_c2spps", "client.cmd_hz", "packets a second there; a client here sends one a frame"),
    of("Source", "cl_predict", "prediction.mode", "0 there is off"),
    of("Source", "cl_predictweapons", "prediction.mode", "1 there is weapons, 0 is movement"),
    of("Half-Life", "cl_lw", "prediction.mode", "1 there is weapons, 0 is movement"),
    of("QuakeWorld", "cl_nopred", "prediction.mode", "1 there is off"),
    of("Quake III", "cg_nopredict", "prediction.mode", "1 there is off"),
    of("QuakeWorld", "pushlatency", "prediction.push_latency_ms", "the same, also negative there"),
    of("Source", "cl_smooth", "prediction.smooth_ms", "0 there is 0"),
    of("Source", "cl_smoothtime", "prediction.smooth_ms", SECONDS),
    of("Quake III", "cg_errordecay", "prediction.smooth_ms", ""),
    of("Source", "sv_unlag", "lag_compensation.enabled", ""),
    of("Half-Life", "sv_unlag", "lag_compensation.enabled", ""),
    of("Half-Life", "cl_lc", "lag_compensation.enabled", "each client's own choice there"),
    of("OpenArena", "g_delagHitscan", "lag_compensation.enabled", ""),
    of("OpenArena", "cg_delag", "lag_compensation.enabled", "each client's own choice there"),
    of("Source", "sv_maxunlag", "lag_compensation.max_unlag_ms", "in seconds there: 0.5 is 500"),
    of("Half-Life", "sv_maxunlag", "lag_compensation.max_unlag_ms", "in seconds there: 0.5 is 500"),
    of("Source", "sv_lagcompensation_teleport_dist", "teleport.distance_units", ""),
];

/// Returns the entries with this name, ignoring case.
pub fn engine_names(name: &str) -> impl Iterator<Item = &'static EngineName> {
    ENGINE_NAMES.iter().filter(move |known| known.name.eq_ignore_ascii_case(name))
}

/// Returns a printable hint with hitreg's key for another engine's name.
pub(super) fn our_name(name: &str) -> Option<String> {
    let known = engine_names(name).next()?;
    let note = if known.note.is_empty() { String::new() } else { format!("; {}", known.note) };
    Some(format!(" ({} has that; here it is `{}`{note})", known.engine, known.key))
}

/// Returns ` (did you mean ...?)` with the nearest of `names`, or an empty text when none is near.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    most_alike(names.map(|name| (strsim::jaro_winkler(word, name), name))).unwrap_or_default()
}

/// Returns ` (did you mean ...?)` with the key nearest to a word, or ` (...)` with the first words of all keys. The word
/// may be a whole key, a part of one such as `lerp`, or another engine's name without its prefix such as `cmdrate`.
pub(super) fn key_hint(word: &str) -> String {
    let typed = plain(word);
    let of_engine = ENGINE_NAMES.iter().find(|known| plain_without_prefix(known.name) == typed);
    let nearest = match of_engine {
        Some(known) => most_alike([(1.0, known.key)].into_iter()),
        None => most_alike(KEYS.iter().map(|key| (similarity(word, key.name), key.name))),
    };
    nearest.unwrap_or_else(|| {
        let mut groups: Vec<&str> = KEYS.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).collect();
        groups.dedup();
        format!(" (the names begin with {})", groups.join(", "))
    })
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
    use crate::settings::{KEYS, Settings};

    #[test]
    fn engine_names_refer_to_settings_and_are_not_settings() {
        for name in ENGINE_NAMES {
            assert!(KEYS.iter().any(|key| key.name == name.key), "{name:?}");
            assert!(KEYS.iter().all(|key| key.name != name.name), "{name:?}");
        }
        let twice = |a: &EngineName| ENGINE_NAMES.iter().filter(|b| (a.engine, a.name) == (b.engine, b.name)).count();
        assert!(ENGINE_NAMES.iter().all(|name| twice(name) == 1));
    }

    #[test]
    fn an_engine_name_is_refused_with_the_name_of_the_setting() {
        let error = Settings::default().set("CL_interp", "0.05").expect_err("a key of Source");
        assert!(error.to_string().contains("`interpolation.lerp_ms`"), "{error}");
        assert!(error.to_string().contains("in seconds there"), "{error}");
    }

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
            assert_eq!(key_hint(word), format!(" (did you mean `{key}`?)"), "{word}");
        }
        for hint in ["", "xyz"].map(key_hint) {
            assert!(hint.starts_with(" (the names begin with prediction, interpolation, "), "{hint}");
        }
    }
}
