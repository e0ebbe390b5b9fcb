//! The welcome that a server sends to each admitted client: everything that the client needs to play the same game,
//! with digests to verify it. The client checks every value before using it.

use serde::{Deserialize, Serialize};

use super::own::OwnSettings;
use hitreg_log::hash::StateHasher;
use hitreg_log::record::{Origin, PlayerInfo, RecordedSide, SessionHeader, SessionId};
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::game::{Game, GameInput};
use hitreg_netcode::session::scenario::{PLAYERS_MAX, SECONDS_MAX};
use hitreg_netcode::settings::{SettingError, Settings};
use hitreg_netcode::wire::WELCOME_BYTES_MAX;

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
    length: Micros,
    preset: Option<String>,
    /// The settings that differ from the preset.
    changed: Vec<(String, String)>,
    /// This player's own settings, as granted.
    granted: OwnSettings,
    /// A digest of the settings, to check that both sides have the same values.
    settings_digest: u64,
}

/// The reasons why a client cannot use a welcome, or a server cannot create one.
#[derive(Debug, thiserror::Error)]
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
        let usual = match &header.preset {
            Some(name) => Settings::preset(name)?,
            None => Settings::default(),
        };
        let usual = usual.to_pairs();
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

    /// Returns the player's own settings.
    pub(super) fn granted(&self) -> &OwnSettings {
        &self.granted
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, WelcomeError> {
        let bytes = rmp_serde::to_vec_named(self)?;
        if bytes.len() <= WELCOME_BYTES_MAX { Ok(bytes) } else { Err(WelcomeError::TooLong) }
    }

    /// Decodes a welcome. The datagram's length bounds its size.
    pub(super) fn decode(bytes: &[u8]) -> Result<Welcome, WelcomeError> {
        Ok(hitreg_log::serial::from_msgpack(bytes)?)
    }

    /// Returns the length of the session.
    pub(super) fn length(&self) -> Micros {
        self.length
    }

    /// Returns the log header for a client that plays by this welcome as `player`, with its own rules.
    pub(super) fn header<G: Game>(&self, rules: &G::Rules, player: PlayerId) -> Result<SessionHeader, WelcomeError> {
        let refuse = |what, value| Err(WelcomeError::OutOfBounds { what, value });
        if !(1..=PLAYERS_MAX).contains(&self.players) {
            return refuse("the number of players", self.players.into());
        }
        if player.0 >= self.players {
            return refuse("the player's number", player.0.into());
        }
        if !(1..=Micros((SECONDS_MAX * 1e6) as i64).0).contains(&self.length.0) {
            return refuse("the length in µs", self.length.0);
        }
        let mut settings = match &self.preset {
            Some(name) => Settings::preset(name)?,
            None => Settings::default(),
        };
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
}
