//! The settings that a client requests for itself, and the server's limits on them. Bernier (2001) lets each user
//! choose the update rate "within some limit".

use std::sync::Arc;

use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Hz, PlayerId};
use hitreg_netcode::settings::{SettingError, Settings};
use hitreg_netcode::wire::ASKED_BYTES_MAX;

/// The highest rates that a server grants. A client never gets more than one snapshot per tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantLimits {
    /// The most snapshots per second.
    pub update_hz: Option<Hz>,
    /// The most bytes per second.
    pub rate_bytes_per_s: Option<i64>,
}

/// One player's own settings, as requested or granted: pairs of a key without the player, and a value.
pub type OwnSettings = Vec<(String, String)>;

/// Encodes the requested settings for a confirm.
///
/// # Errors
/// When a setting is unknown, has an invalid value or cannot be set per player, or when the request does not fit into a
/// datagram.
pub(super) fn encode(asked: &OwnSettings) -> Result<Vec<u8>, AskError> {
    let mut checked = Settings::default();
    for (key, value) in asked {
        checked.set(&format!("p0.{key}"), value)?;
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = rmp_serde::to_vec(asked)?;
    if bytes.len() <= ASKED_BYTES_MAX { Ok(bytes) } else { Err(AskError::TooMuch) }
}

/// Returns the settings that the server grants to a player: the valid part of its request, and the limits where the
/// session's own settings exceed them. Clamps values that are out of bounds. The request is untrusted.
pub(super) fn grant(asked: &[u8], player: PlayerId, settings: &Settings, limits: GrantLimits) -> OwnSettings {
    let asked: OwnSettings = hitreg_log::serial::from_msgpack(asked).unwrap_or_default();
    let unasked = Arc::new(settings.clone()).of_player(player).server.clone();
    let unasked = [
        limits.update_hz.filter(|most| *most < unasked.update_hz).map(|most| ("server.update_hz", most.to_string())),
        limits
            .rate_bytes_per_s
            .filter(|most| *most < unasked.rate_bytes_per_s)
            .map(|most| ("server.rate_bytes_per_s", most.to_string())),
    ];
    let asked = unasked.into_iter().flatten().map(|(key, most)| (key.to_owned(), most)).chain(asked);
    let mut granted = SortedMap::new();
    let mut settings = settings.clone();
    let ticks = settings.server.tick_hz;
    let limits = GrantLimits { update_hz: Some(limits.update_hz.map_or(ticks, |most| most.min(ticks))), ..limits };
    for (key, value) in asked {
        let Some(value) = Settings::nearest(&key, &within(&key, value, limits)) else { continue };
        if settings.set(&format!("p{player}.{key}"), &value).is_ok() {
            granted.insert(key, value);
        }
    }
    granted.into_iter().collect()
}

/// The reasons why a client cannot request its settings.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A setting is unknown or invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The settings do not fit into a datagram.
    #[error("the requested settings do not fit into a datagram: request fewer")]
    TooMuch,
    /// The settings cannot be serialised.
    #[error("the request to the server cannot be encoded: {0}")]
    Unwritable(#[from] rmp_serde::encode::Error),
}

fn within(key: &str, value: String, limits: GrantLimits) -> String {
    let most = match key {
        "server.update_hz" => limits.update_hz.map(|most| most.to_string()),
        "server.rate_bytes_per_s" => limits.rate_bytes_per_s.map(|most| most.to_string()),
        _ => None,
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let is_more = |most: &String| number(&value) > number(most);
    most.filter(is_more).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: GrantLimits = GrantLimits { update_hz: Hz::from_milli(50_000), rate_bytes_per_s: Some(50_000) };

    fn pairs(pairs: &[(&str, &str)]) -> OwnSettings {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// Settings that are within the limits.
    fn common() -> Settings {
        let mut settings = Settings::default();
        settings.set_pair("server.rate_bytes_per_s=40000").expect("a setting");
        settings
    }

    fn granted(asked: &[(&str, &str)]) -> OwnSettings {
        let bytes = rmp_serde::to_vec(&pairs(asked)).expect("it can be written");
        grant(&bytes, PlayerId(1), &common(), LIMITS)
    }

    #[test]
    fn requests_within_the_limits_are_granted() {
        let asked = pairs(&[("interpolation.lerp_ms", "50"), ("server.update_hz", "31.25")]);
        let bytes = encode(&asked).expect("a player's own");
        assert_eq!(grant(&bytes, PlayerId(0), &common(), LIMITS), asked);
        assert!(encode(&Vec::new()).expect("nothing").is_empty(), "who asks for nothing says nothing");
        assert!(grant(&[], PlayerId(0), &common(), LIMITS).is_empty());
    }

    #[test]
    fn limits_hold_for_players_that_request_nothing() {
        let mut settings = Settings::default();
        for pair in ["server.update_hz=40", "p1.server.update_hz=10", "server.rate_bytes_per_s=60000"] {
            settings.set_pair(pair).expect("a setting");
        }
        let limits = GrantLimits { update_hz: Hz::from_milli(15_000), rate_bytes_per_s: Some(50_000) };
        let both = pairs(&[("server.rate_bytes_per_s", "50000"), ("server.update_hz", "15")]);
        assert_eq!(grant(&[], PlayerId(0), &settings, limits), both);
        assert_eq!(grant(&[], PlayerId(1), &settings, limits), both[..1], "its own rate is lower");
        let asked = encode(&pairs(&[("server.update_hz", "12")])).expect("a player's own");
        assert_eq!(grant(&asked, PlayerId(0), &settings, limits)[1].1, "12");
    }

    #[test]
    fn requests_beyond_a_limit_get_the_limit() {
        let cases = [
            ("server.update_hz", "500", "50"),
            ("server.update_hz", "1e300", "50"),
            ("server.update_hz", "0", "1"),
            ("server.update_hz", "-3", "1"),
            ("server.update_hz", "0.0001", "1"),
            ("server.rate_bytes_per_s", "60000", "50000"),
            ("server.rate_bytes_per_s", "9223372036854775807", "50000"),
            ("server.rate_bytes_per_s", "-9223372036854775808", "500"),
            ("interpolation.lerp_ms", "5000", "1000"),
            ("client.cmd_hz", "100000", "1000"),
        ];
        for (key, asked, given) in cases {
            assert_eq!(granted(&[(key, asked)]), pairs(&[(key, given)]), "{key}={asked}");
        }
    }

    #[test]
    fn no_client_gets_more_than_a_snapshot_per_tick() {
        let bytes = encode(&pairs(&[("server.update_hz", "200")])).expect("a player's own");
        let of = |limits| grant(&bytes, PlayerId(0), &common(), limits);
        assert_eq!(of(GrantLimits::default()), pairs(&[("server.update_hz", "64")]));
        assert_eq!(
            of(GrantLimits { update_hz: Hz::from_milli(100_000), ..LIMITS }),
            pairs(&[("server.update_hz", "64")])
        );
    }

    #[test]
    fn meaningless_requests_are_ignored() {
        for value in ["NaN", "inf", "-inf", "1e999", "", "many", "20 ", "0x20", "\u{0}"] {
            assert_eq!(granted(&[("server.update_hz", value)]), [], "{value}");
            assert_eq!(granted(&[("interpolation.lerp_ms", value)]), [], "{value}");
            assert_eq!(granted(&[("interpolation.mode", value)]), [], "{value}");
        }
        for key in ["server.tick_hz", "lag_compensation.enabled", "p0.server.update_hz", "p7.client.cmd_hz", "", "."] {
            assert_eq!(granted(&[(key, "20"), (key, "true")]), [], "{key}");
        }
        let twice = [("server.update_hz", "20"), ("server.update_hz", "30"), ("client.cmd_hz", "NaN")];
        assert_eq!(granted(&twice), pairs(&[("server.update_hz", "30")]), "the last word counts");
        for bytes in [&[0x93, 1][..], &[0xDF, 0xFF, 0xFF, 0xFF, 0xFF], &[0xC1; 1024]] {
            assert_eq!(grant(bytes, PlayerId(0), &common(), LIMITS), [], "{bytes:?}");
        }
    }

    #[test]
    fn impossible_requests_are_refused() {
        let refused = |key, value| encode(&pairs(&[(key, value)])).expect_err(key).to_string();
        assert!(refused("server.tick_hz", "20").contains("is the same for all players"));
        assert!(refused("server.update_hz", "0").contains("it takes a number of Hz from 1 to 1000"));
        assert!(refused("server.updates", "20").contains("no setting is called"));
    }
}
