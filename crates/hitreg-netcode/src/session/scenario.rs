//! A scenario: what a synthetic session consists of. Written in TOML, or put together from the command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::link::LinkModel;
use hitreg_log::units::Micros;

/// A synthetic session before it is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The settings' preset.
    pub preset: String,
    /// One of the game's built-in maps, by name; none for its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// How many bots play.
    pub players: u16,
    /// How long, in seconds of the session.
    pub seconds: f64,
    /// Where all chances start from.
    pub seed: u64,
    /// Settings that differ from the preset, as numbers, flags or text: `"interpolation.lerp_ms" = 50`.
    #[serde(deserialize_with = "as_text")]
    pub settings: BTreeMap<String, String>,
    /// Both directions of every player's connection, unless `links` says otherwise.
    pub link: LinkModel,
    /// Players with connections of their own: player p takes the p-th, and the last serves all after it.
    pub links: Vec<LinkModel>,
}

/// A value of a setting, as people write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Flag(bool),
    Whole(i64),
    Number(f64),
}

fn as_text<'de, D: Deserializer<'de>>(values: D) -> Result<BTreeMap<String, String>, D::Error> {
    let written = BTreeMap::<String, Written>::deserialize(values)?;
    let text = |value| match value {
        Written::Text(text) => text,
        Written::Flag(flag) => flag.to_string(),
        Written::Whole(number) => number.to_string(),
        Written::Number(number) => number.to_string(),
    };
    Ok(written.into_iter().map(|(key, value)| (key, text(value))).collect())
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            preset: "half-life".to_owned(),
            map: None,
            players: 4,
            seconds: 20.0,
            seed: 1,
            settings: BTreeMap::new(),
            link: LinkModel { delay_ms: 40.0, ..LinkModel::default() },
            links: Vec::new(),
        }
    }
}

/// The most players that a scenario may have.
pub const PLAYERS_MAX: u16 = 64;
/// The longest scenario, in seconds.
pub const SECONDS_MAX: f64 = 24.0 * 3600.0;

/// A scenario that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not a scenario.
    #[error("not a scenario: {0}")]
    Syntax(String),
    /// A number out of bounds.
    #[error("a scenario cannot have {what} of {value}: it takes {takes}")]
    OutOfBounds {
        /// Which number.
        what: &'static str,
        /// The number.
        value: String,
        /// Its bounds.
        takes: String,
    },
    /// A link out of bounds.
    #[error(transparent)]
    Link(#[from] crate::link::ModelError),
}

impl Scenario {
    /// Reads a scenario's text.
    ///
    /// # Errors
    /// When it is not TOML, has keys that no scenario has, or numbers out of bounds.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        // Not by `serial`, whose errors have no line: people write these.
        let scenario: Scenario =
            toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string().trim().to_owned()))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Checks every number but the settings, which check themselves.
    ///
    /// # Errors
    /// Names the first that is out of bounds.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if !(1..=PLAYERS_MAX).contains(&self.players) {
            let takes = format!("1 to {PLAYERS_MAX}");
            return Err(ScenarioError::OutOfBounds { what: "players", value: self.players.to_string(), takes });
        }
        if !(0.1..=SECONDS_MAX).contains(&self.seconds) {
            let takes = format!("0.1 to {SECONDS_MAX}");
            return Err(ScenarioError::OutOfBounds { what: "seconds", value: self.seconds.to_string(), takes });
        }
        self.link.check()?;
        for link in &self.links {
            link.check()?;
        }
        Ok(())
    }

    /// How long it is.
    pub fn length(&self) -> Micros {
        Micros((self.seconds * 1e6) as i64)
    }

    /// Changes every connection alike.
    pub fn change_links(&mut self, change: impl Fn(LinkModel) -> LinkModel) {
        self.link = change(std::mem::take(&mut self.link));
        self.links = std::mem::take(&mut self.links).into_iter().map(change).collect();
    }

    /// The connection of one player.
    pub fn link_of(&self, player: u16) -> &LinkModel {
        self.links.get(usize::from(player)).or(self.links.last()).unwrap_or(&self.link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Jitter, Loss};

    #[test]
    fn a_scenario_is_read_from_toml() {
        let text = r#"
            players = 2
            seconds = 5.0
            [settings]
            "interpolation.lerp_ms" = "50"
            [[links]]
            delay_ms = 20.0
            [[links]]
            delay_ms = 80.0
            jitter = { exponential = 5.0 }
            loss = { burst = { enter = 0.01, leave = 0.3 } }
        "#;
        let scenario = Scenario::parse(text).expect("a good scenario");
        assert_eq!(scenario.link_of(0).delay_ms, 20.0);
        assert_eq!(scenario.link_of(5).jitter, Jitter::Exponential(5.0));
        assert_eq!(scenario.link_of(1).loss, Loss::Burst { enter: 0.01, leave: 0.3 });
    }

    #[test]
    fn settings_may_be_numbers_flags_and_text() {
        let text = "[settings]\n\"interpolation.lerp_ms\" = 50\n\"server.tick_hz\" = 31.25\n\"client.clock\" = \"drift\"\n\
                    \"lag_compensation.enabled\" = false";
        let scenario = Scenario::parse(text).expect("a good scenario");
        let settings = scenario.settings().expect("good settings");
        assert_eq!((settings.interpolation.lerp_ms, settings.lag_compensation.enabled), (50, false));
        assert_eq!(settings.client.clock, crate::settings::ClockMode::Drift);
        assert_eq!(scenario.settings["server.tick_hz"], "31.25");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in ["players = 0", "seconds = 1e9", "speed = 3", "[link]\ndelay_ms = -1.0"] {
            assert!(Scenario::parse(text).is_err(), "{text}");
        }
    }
}
