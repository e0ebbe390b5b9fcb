//! The settings that a client requests for itself, the server's limits on them, and the welcome that the server sends to
//! each admitted client. Bernier (2001) lets each user choose the update rate "within some limit".
//!
//! The welcome holds everything that the client needs to play the same game, with digests to verify it. The client checks
//! every value before using it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use hitreg_log::hash::StateHasher;
use hitreg_log::record::{Origin, PlayerInfo, RecordedSide, SessionHeader, SessionId};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_netcode::game::{Game, GameInput};
use hitreg_netcode::session::scenario::{SCENARIO_PLAYERS_MAX, SCENARIO_SECONDS_MAX};
use hitreg_netcode::settings::{SettingError, Settings};
use hitreg_netcode::wire::{REQUEST_DATA_BYTES_MAX, WELCOME_BYTES_MAX};

/// The welcome, encoded as MessagePack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Welcome {
    session: SessionId,
    /// The map's name, for messages.
    map: String,
    /// A digest of the rules (including the map) and the fields, to check that both sides have the same.
    rules_digest: u64,
    seed: Seed,
    players: u16,
    /// The length of the session.
    pub(super) length: Micros,
    preset: Option<String>,
    /// The settings that differ from the preset.
    changed: Vec<(String, String)>,
    /// This player's own settings, as granted.
    pub(super) granted: OwnSettings,
    /// A digest of the settings, to check that both sides have the same values.
    settings_digest: u64,
}

/// The reasons why a client cannot use a welcome, or a server cannot create one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WelcomeError {
    /// The welcome cannot be decoded.
    #[error("the server's welcome cannot be read ({0}): use the same version of hitreg for server and client")]
    Unreadable(#[from] hitreg_log::serial::ReadError),
    /// A number is out of bounds.
    #[error("the server's welcome has an impossible value for {what}: {value}")]
    OutOfBounds {
        /// The number.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// The client has another map.
    #[error("the server plays the map `{server}`, and this client has `{client}`: give the server's map with --map")]
    OtherMap {
        /// The server's map.
        server: String,
        /// The client's map.
        client: String,
    },
    /// The maps have the same name, but the rules differ.
    #[error("server and client have different rules for `{map}`: use the same map file and the same version of hitreg")]
    OtherRules {
        /// The map's name.
        map: String,
    },
    /// The client does not have a setting of the server.
    #[error("the server's settings: {0}")]
    Setting(#[from] SettingError),
    /// The settings have the same text, but the values differ.
    #[error("server and client interpret the settings differently: use the same version of hitreg")]
    OtherSettings,
    /// The welcome does not fit into a datagram.
    #[error("too many settings differ from the preset to send them to clients: choose a closer preset")]
    TooLong,
    /// The welcome cannot be serialised.
    #[error("the welcome for clients cannot be encoded: {0}")]
    Unwritable(#[from] rmp_serde::encode::Error),
}

impl Welcome {
    /// Creates the welcome for the session of a server's log.
    pub(super) fn new(header: &SessionHeader, session: SessionId, length: Micros) -> Result<Welcome, WelcomeError> {
        let settings = Settings::from_pairs(&header.settings)?;
        let usual = preset(header.preset.as_deref())?.to_pairs();
        Ok(Welcome {
            session,
            map: header.map.clone(),
            rules_digest: rules_digest(header),
            seed: header.seed,
            players: header.players.len() as u16,
            length,
            preset: header.preset.clone(),
            changed: settings.to_pairs().into_iter().filter(|pair| !usual.contains(pair)).collect(),
            granted: OwnSettings::new(),
            settings_digest: settings_digest(&settings),
        })
    }

    /// Returns this welcome for a player with granted settings.
    pub(super) fn granting(
        &self,
        settings: &Settings,
        player: PlayerId,
        granted: OwnSettings,
    ) -> Result<Welcome, WelcomeError> {
        let settings_digest = settings_digest(&with_own(settings, player, &granted)?);
        Ok(Welcome { granted, settings_digest, ..self.clone() })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, WelcomeError> {
        let bytes = rmp_serde::to_vec_named(self)?;
        if bytes.len() <= WELCOME_BYTES_MAX { Ok(bytes) } else { Err(WelcomeError::TooLong) }
    }

    /// Decodes a welcome. The datagram's length bounds its size.
    pub(super) fn decode(bytes: &[u8]) -> Result<Welcome, WelcomeError> {
        Ok(hitreg_log::serial::from_msgpack(bytes)?)
    }

    /// Returns the log header for a client that plays by this welcome as `player`, with its own rules.
    pub(super) fn header<G: Game>(&self, rules: &G::Rules, player: PlayerId) -> Result<SessionHeader, WelcomeError> {
        let refuse = |what, value| Err(WelcomeError::OutOfBounds { what, value });
        if !(1..=SCENARIO_PLAYERS_MAX).contains(&self.players) {
            return refuse("the number of players", self.players.into());
        }
        if player.0 >= self.players {
            return refuse("the player's number", player.0.into());
        }
        if !(1..=Micros((SCENARIO_SECONDS_MAX * 1e6) as i64).0).contains(&self.length.0) {
            return refuse("the length in µs", self.length.0);
        }
        let mut settings = preset(self.preset.as_deref())?;
        for (key, value) in &self.changed {
            settings.set(key, value)?;
        }
        let settings = with_own(&settings, player, &self.granted)?;
        if settings_digest(&settings) != self.settings_digest {
            return Err(WelcomeError::OtherSettings);
        }
        let info = |p| PlayerInfo { name: format!("p{p}"), recorded: p == player.0 };
        let header = SessionHeader {
            game: G::NAME.to_owned(),
            rules: rmp_serde::to_vec_named(rules)?.into(),
            map: G::map_name(rules),
            seed: self.seed,
            settings: settings.to_pairs(),
            preset: self.preset.clone(),
            players: (0..self.players).map(info).collect(),
            origin: Origin::Live,
            side: Some(RecordedSide { session: self.session, player: Some(player) }),
            classes: G::classes(),
            usercmd: G::Input::usercmd_fields(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        };
        if rules_digest(&header) == self.rules_digest {
            Ok(header)
        } else if header.map != self.map {
            Err(WelcomeError::OtherMap { server: self.map.clone(), client: header.map })
        } else {
            Err(WelcomeError::OtherRules { map: header.map })
        }
    }
}

fn preset(name: Option<&str>) -> Result<Settings, SettingError> {
    name.map_or_else(|| Ok(Settings::default()), Settings::preset)
}

/// Returns the settings with a player's own settings applied.
pub(super) fn with_own(settings: &Settings, player: PlayerId, own: &OwnSettings) -> Result<Settings, SettingError> {
    let mut settings = settings.clone();
    for (key, value) in own {
        settings.set(&format!("p{player}.{key}"), value)?;
    }
    Ok(settings)
}

fn rules_digest(header: &SessionHeader) -> u64 {
    let mut hasher = StateHasher::new();
    hasher.bytes(&header.rules);
    for class in &header.classes {
        hasher.bytes(format!("{class:?}\n").as_bytes());
    }
    hasher.finish()
}

fn settings_digest(settings: &Settings) -> u64 {
    let mut hasher = StateHasher::new();
    for (key, value) in settings.to_pairs() {
        hasher.bytes(format!("{key}={value}\n").as_bytes());
    }
    hasher.finish()
}

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
pub(super) fn encode_requested(settings: &OwnSettings) -> Result<Vec<u8>, AskError> {
    let mut checked = Settings::default();
    for (key, value) in settings {
        checked.set(&format!("p0.{key}"), value)?;
    }
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = rmp_serde::to_vec(settings)?;
    if bytes.len() <= REQUEST_DATA_BYTES_MAX { Ok(bytes) } else { Err(AskError::TooMuch) }
}

/// Returns the settings that the server grants to a player: the valid part of its request, and the limits where the
/// session's own settings exceed them. Clamps values that are out of bounds. The request is untrusted.
pub(super) fn grant(request_data: &[u8], player: PlayerId, settings: &Settings, limits: GrantLimits) -> OwnSettings {
    let requested: OwnSettings = hitreg_log::serial::from_msgpack(request_data).unwrap_or_default();
    let server = Arc::new(settings.clone()).of_player(player).server.clone();
    let hz_max = limits.update_hz.filter(|most| *most < server.update_hz);
    let rate_max = limits.rate_bytes_per_s.filter(|most| *most < server.rate_bytes_per_s);
    let limited = [
        hz_max.map(|most| ("server.update_hz".to_owned(), most.to_string())),
        rate_max.map(|most| ("server.rate_bytes_per_s".to_owned(), most.to_string())),
    ];
    let requested = limited.into_iter().flatten().chain(requested);
    let mut granted = SortedMap::new();
    let mut settings = settings.clone();
    let ticks = settings.server.tick_hz;
    let limits = GrantLimits { update_hz: Some(limits.update_hz.map_or(ticks, |most| most.min(ticks))), ..limits };
    for (key, value) in requested {
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
    use hitreg_arena::{Arena, ArenaRules};
    use hitreg_netcode::session::scenario::Scenario;

    fn welcome(scenario: &Scenario) -> Welcome {
        let header = scenario.header::<Arena>(&ArenaRules::default()).expect("a good scenario");
        Welcome::new(&header, SessionId(7), Micros::from_s(20)).expect("settings of this build")
    }

    #[test]
    fn a_client_gets_the_servers_settings_and_its_own_number() {
        let mut scenario = Scenario::default();
        scenario.settings.insert("interpolation.lerp_ms".to_owned(), "50".to_owned());
        let bytes = welcome(&scenario).encode().expect("it is short");
        let read = Welcome::decode(&bytes).expect("it was just written");
        let header = read.header::<Arena>(&ArenaRules::default(), PlayerId(2)).expect("the same rules");
        assert_eq!(header.settings, scenario.settings().expect("good settings").to_pairs());
        assert_eq!(header.side, Some(RecordedSide { session: SessionId(7), player: Some(PlayerId(2)) }));
        assert_eq!(header.players.iter().map(|p| p.recorded).collect::<Vec<_>>(), [false, false, true, false]);
    }

    #[test]
    fn a_player_gets_only_its_own_granted_settings() {
        let common = welcome(&Scenario::default());
        let settings = Scenario::default().settings().expect("good settings");
        let own = vec![("client.cmd_hz".to_owned(), "30".to_owned())];
        let granting = common.granting(&settings, PlayerId(1), own).expect("a player's own");
        let header = granting.header::<Arena>(&ArenaRules::default(), PlayerId(1)).expect("the same settings");
        let pair = ("p1.client.cmd_hz".to_owned(), "30".to_owned());
        assert!(header.settings.contains(&pair));
        let others = common.header::<Arena>(&ArenaRules::default(), PlayerId(0)).expect("the same settings");
        assert!(!others.settings.contains(&pair));
        let mistaken = granting.header::<Arena>(&ArenaRules::default(), PlayerId(0));
        assert!(matches!(mistaken, Err(WelcomeError::OtherSettings)));
    }

    #[test]
    fn every_setting_can_be_changed_at_once() {
        // A datagram has room for all of these settings, and so for any selection.
        let mut welcome = welcome(&Scenario::default());
        welcome.preset = None;
        welcome.changed = Settings::preset("quakeworld").expect("a preset").to_pairs();
        welcome.encode().expect("it is short enough");
    }

    #[test]
    fn an_invalid_welcome_is_refused() {
        let refused = |change: fn(&mut Welcome), said: &str| {
            let mut bad = welcome(&Scenario::default());
            change(&mut bad);
            let error = bad.header::<Arena>(&ArenaRules::default(), PlayerId(0)).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        };
        refused(|w| w.players = 0, "the number of players: 0");
        refused(|w| w.players = 9_999, "the number of players: 9999");
        refused(|w| w.length = Micros(0), "the length in µs: 0");
        refused(|w| w.length = Micros(i64::MAX), "the length in µs: ");
        refused(|w| w.preset = Some("chess".to_owned()), "no preset is called `chess`");
        refused(|w| w.changed.push(("client.cmd_hz".to_owned(), "0".to_owned())), "cannot be `0`");
        refused(
            |w| w.changed.push(("client.cmd_hz".to_owned(), "50".to_owned())),
            "interpret the settings differently",
        );
        refused(
            |w| w.granted.push(("client.cmd_hz".to_owned(), "50".to_owned())),
            "interpret the settings differently",
        );
        refused(|w| w.granted.push(("server.tick_hz".to_owned(), "50".to_owned())), "is the same for all players");
        refused(|w| w.rules_digest += 1, "the same map file");
        refused(
            |w| {
                w.rules_digest += 1;
                w.map = "e1m1".to_owned()
            },
            "give the server's map",
        );
        let read = welcome(&Scenario::default()).header::<Arena>(&ArenaRules::default(), PlayerId(4));
        assert!(matches!(read, Err(WelcomeError::OutOfBounds { value: 4, .. })));
        assert!(Welcome::decode(&[0x93, 1]).is_err());
    }

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
        let bytes = encode_requested(&asked).expect("a player's own");
        assert_eq!(grant(&bytes, PlayerId(0), &common(), LIMITS), asked);
        assert!(encode_requested(&Vec::new()).expect("nothing").is_empty(), "who asks for nothing says nothing");
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
        let asked = encode_requested(&pairs(&[("server.update_hz", "12")])).expect("a player's own");
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
        let bytes = encode_requested(&pairs(&[("server.update_hz", "200")])).expect("a player's own");
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
        let refused = |key, value| encode_requested(&pairs(&[(key, value)])).expect_err(key).to_string();
        let for_all = refused("server.tick_hz", "20");
        assert!(for_all.contains("`server.tick_hz` is the same for all players; only prediction.*, "), "{for_all}");
        assert!(for_all.ends_with("client.*, server.update_hz, server.rate_bytes_per_s can differ between players"));
        assert!(refused("server.update_hz", "0").contains("it takes a number of Hz from 1 to 1000"));
        assert!(refused("server.updates", "20").contains("no setting is called"));
    }
}
