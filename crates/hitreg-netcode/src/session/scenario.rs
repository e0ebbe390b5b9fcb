//! A scenario: the description of a synthetic session. It is read from TOML or built from command-line options.

use serde::{Deserialize, Deserializer, Serialize};

use crate::link::LinkModel;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::Micros;

/// The description of a synthetic session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The name of the settings preset.
    pub preset: String,
    /// The name of a built-in map, or the path of a map file, relative to the scenario file or the working folder. `None`
    /// for the game's default map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// The number of bots, from 1 to [`PLAYERS_MAX`].
    pub players: u16,
    /// The length in seconds of the session, at most [`SECONDS_MAX`].
    pub seconds: f64,
    /// The random seed.
    pub seed: u64,
    /// Settings that differ from the preset, as numbers, flags or text: `"interpolation.lerp_ms" = 50`.
    #[serde(deserialize_with = "as_text")]
    pub settings: SortedMap<String, String>,
    /// The link model for both directions of every connection, unless `links` overrides it.
    pub link: LinkModel,
    /// Link models by player; the last entry applies to all later players.
    pub links: Vec<LinkModel>,
}

/// The value of a setting as written in TOML.
#[derive(Deserialize)]
#[serde(untagged)]
enum ScenarioValue {
    Text(String),
    Flag(bool),
    Whole(i64),
    Number(f64),
}

fn as_text<'de, D: Deserializer<'de>>(values: D) -> Result<SortedMap<String, String>, D::Error> {
    let written = SortedMap::<String, ScenarioValue>::deserialize(values)?;
    let text = |value| match value {
        ScenarioValue::Text(text) => text,
        ScenarioValue::Flag(flag) => flag.to_string(),
        ScenarioValue::Whole(number) => number.to_string(),
        ScenarioValue::Number(number) => number.to_string(),
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
            settings: SortedMap::new(),
            link: LinkModel { delay_ms: 40.0, ..LinkModel::default() },
            links: Vec::new(),
        }
    }
}

/// The most players that a scenario may have.
pub const PLAYERS_MAX: u16 = 64;
/// The longest scenario, in seconds.
pub const SECONDS_MAX: f64 = 24.0 * 3600.0;

/// The reasons why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not a scenario.
    #[error("not a scenario: {0}\nAn example of a scenario is at the end of: hitreg record synth --help")]
    Syntax(String),
    /// A number is out of bounds.
    #[error("{what} cannot be {value}: a scenario takes {takes}")]
    OutOfBounds {
        /// The number's name.
        what: &'static str,
        /// Its value.
        value: String,
        /// Its bounds.
        takes: String,
    },
    /// A link is out of bounds.
    #[error(transparent)]
    Link(#[from] crate::link::ModelError),
}

impl Scenario {
    /// Parses a scenario from TOML.
    ///
    /// # Errors
    /// When the text is not TOML, has unknown keys, or has numbers out of bounds.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        // This does not use `serial`, because its errors have no line number, and people edit these files.
        let scenario: Scenario =
            toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string().trim().to_owned()))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Checks every number except the settings, which are checked when they are parsed.
    ///
    /// # Errors
    /// Names the first number that is out of bounds.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if !(1..=PLAYERS_MAX).contains(&self.players) {
            let takes = format!("1 to {PLAYERS_MAX}");
            return Err(ScenarioError::OutOfBounds { what: "players", value: self.players.to_string(), takes });
        }
        if !(0.1..=SECONDS_MAX).contains(&self.seconds) {
            let takes = format!("0.1 to {SECONDS_MAX}");
            return Err(ScenarioError::OutOfBounds { what: "seconds", value: self.seconds.to_string(), takes });
        }
        Ok([&self.link].into_iter().chain(&self.links).try_for_each(LinkModel::check)?)
    }

    /// Returns the length of the session.
    pub fn length(&self) -> Micros {
        Micros((self.seconds * 1e6) as i64)
    }

    /// Applies `change` to every link.
    pub fn change_links(&mut self, change: impl Fn(LinkModel) -> LinkModel) {
        self.link = change(std::mem::take(&mut self.link));
        self.links = std::mem::take(&mut self.links).into_iter().map(change).collect();
    }

    /// Returns the link model of one player.
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
    fn invalid_scenarios_are_refused() {
        for text in ["players = 0", "seconds = 1e9", "speed = 3", "[link]\ndelay_ms = -1.0"] {
            assert!(Scenario::parse(text).is_err(), "{text}");
        }
    }
}
