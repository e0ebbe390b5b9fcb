//! A scenario: the description of a synthetic session, with bots on modelled links in virtual time. It is read from TOML or
//! built from command-line options.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::bots::BotInput;
use super::{Links, Machine, Observer};
use crate::game::{Bots, Game, GameInput};
use crate::link::{LinkModel, ModelledLink};
use crate::pipeline::{Netcode, Setup};
use crate::settings::{SettingError, Settings};
use hitreg_log::record::{Origin, PlayerInfo, SessionHeader, TakenName};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Micros, PlayerId, Seed};

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
    /// The number of bots, from 1 to [`SCENARIO_PLAYERS_MAX`].
    pub players: u16,
    /// The length in seconds of the session, at most [`SCENARIO_SECONDS_MAX`].
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
#[serde(
    untagged,
    expecting = "a setting is a number, true, false or text, and its key is quoted: \"interpolation.lerp_ms\" = 50"
)]
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
pub const SCENARIO_PLAYERS_MAX: u16 = 64;
/// The longest scenario, in seconds.
pub const SCENARIO_SECONDS_MAX: f64 = 24.0 * 3600.0;

/// The reasons why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// Parses a scenario from TOML. Options may still change the number of players, so only [`check`](Scenario::check)
    /// compares it with the number of links.
    ///
    /// # Errors
    /// When the text is not TOML, has unknown keys, or numbers out of bounds.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        // This does not use `serial`, because its errors have no line number, and people edit these files.
        let scenario: Scenario =
            toml::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string().trim().to_owned()))?;
        scenario.check_numbers()?;
        Ok(scenario)
    }

    /// Checks every number except the settings, which are checked when they are parsed.
    ///
    /// # Errors
    /// Names the first number that is out of bounds, or says that there are more links than players.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_numbers()?;
        let (links, players) = (self.links.len(), self.players);
        if links > usize::from(players) {
            let (what, takes) = ("the number of [[links]]", format!("at most one for each of {players} players"));
            return Err(ScenarioError::OutOfBounds { what, value: links.to_string(), takes });
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ScenarioError> {
        if !(1..=SCENARIO_PLAYERS_MAX).contains(&self.players) {
            let takes = format!("1 to {SCENARIO_PLAYERS_MAX}");
            return Err(ScenarioError::OutOfBounds { what: "players", value: self.players.to_string(), takes });
        }
        if !(0.1..=SCENARIO_SECONDS_MAX).contains(&self.seconds) {
            let takes = format!("0.1 to {SCENARIO_SECONDS_MAX}");
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
    pub fn link_of(&self, player: PlayerId) -> &LinkModel {
        self.links.get(usize::from(player.0)).or(self.links.last()).unwrap_or(&self.link)
    }
}

/// The reasons why a synthetic session cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// The scenario is out of bounds.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A setting is not available.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A field of the game has the name of another column.
    #[error(transparent)]
    TakenName(#[from] TakenName),
    /// The game's rules cannot be serialised.
    #[error("the game's rules cannot be stored: {0}")]
    Rules(#[from] rmp_serde::encode::Error),
}

impl Scenario {
    /// Returns the preset's settings with the scenario's changes.
    ///
    /// # Errors
    /// When a preset, key or value is not available.
    pub fn settings(&self) -> Result<Settings, SettingError> {
        let mut settings = Settings::preset(&self.preset)?;
        for (key, value) in &self.settings {
            settings.set(key, value)?;
        }
        settings.check_players(&Settings::default(), usize::from(self.players))?;
        Ok(settings)
    }

    /// Returns the header of the scenario's log.
    ///
    /// # Errors
    /// When the scenario is out of bounds, a setting is not available, or a field of the game has a taken name.
    pub fn header<G: Game>(&self, rules: &G::Rules) -> Result<SessionHeader, SynthError> {
        self.check()?;
        let (classes, usercmd) = (G::classes(), G::Input::usercmd_fields());
        TakenName::check(&classes, &G::Input::own_fields())?;
        let player = |p| PlayerInfo { name: format!("p{p}"), recorded: true };
        Ok(SessionHeader {
            game: G::NAME.to_owned(),
            rules: rmp_serde::to_vec_named(rules)?.into(),
            map: G::map_name(rules),
            seed: Seed(self.seed),
            settings: self.settings()?.to_pairs(),
            preset: Some(self.preset.clone()),
            players: (0..self.players).map(player).collect(),
            origin: Origin::Synthetic,
            side: None,
            classes,
            usercmd,
            usercmd_bytes: false,
            unknown: Vec::new(),
        })
    }
}

/// Runs a scenario to its end.
///
/// # Errors
/// As [`Scenario::header`].
pub fn record_synthetic<G: Bots + Netcode>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    observer: &mut dyn Observer<G>,
) -> Result<(), SynthError> {
    record_synthetic_while::<G>(scenario, rules, observer, &|| true)
}

/// Like [`record_synthetic`], but stops when `may_continue` returns false. It is called once per tick. A session that
/// stops early is complete up to that tick.
///
/// # Errors
/// As [`record_synthetic`].
pub fn record_synthetic_while<G: Bots + Netcode>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    observer: &mut dyn Observer<G>,
    may_continue: &dyn Fn() -> bool,
) -> Result<(), SynthError> {
    scenario.check()?;
    let settings = Arc::new(scenario.settings()?);
    let seed = Seed(scenario.seed);
    let links = (0..scenario.players)
        .map(PlayerId)
        .map(|player| Links::modelled(scenario.link_of(player), seed, player))
        .collect();
    let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(&settings), seed };
    let mut machine = Machine::<G, ModelledLink>::new(&setup, links);
    let end = scenario.length();
    let ticks = (1..).map(|n| settings.server.tick_hz.period_start(n)).take_while(|at| *at <= end && may_continue());
    let bots = G::bots(rules, seed, scenario.players);
    let mut input = BotInput::<G>::of(bots, seed, Arc::clone(rules), &settings);
    machine.run(ticks, &mut input, observer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use crate::client::Client;
    use crate::game::{Body, Categorize, Judge, PlayerCommand, Reconcile, Scene, Simulate, Sink, body, input};
    use crate::link::{Jitter, Loss};
    use crate::replay::{ReplayOptions, replay};
    use crate::server::Server;
    use hitreg_log::record::Session;
    use hitreg_log::units::EntityId;
    use hitreg_log::usercmd::Usercmd;

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
        assert_eq!(scenario.link_of(PlayerId(0)).delay_ms, 20.0);
        assert_eq!(scenario.link_of(PlayerId(5)).jitter, Jitter::Exponential(5.0));
        assert_eq!(scenario.link_of(PlayerId(1)).loss, Loss::Burst { enter: 0.01, leave: 0.3 });
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

    body! {
        struct Plain {
            Status hp: u32,
        }
    }
    body! {
        struct WithTick {
            Status tick: u32,
        }
    }
    input! {
        struct Pad {
            msec: u8,
            push: i8,
        }
    }
    input! {
        struct WithYaw {
            msec: u8,
            yaw: f64,
        }
    }

    /// A game whose bodies and inputs have these fields.
    struct Named<B, I>(PhantomData<(B, I)>);

    impl<B: Body + Default, I: GameInput> Simulate for Named<B, I> {
        const NAME: &'static str = "named";
        type Rules = ();
        type World = Vec<(EntityId, B)>;
        type Body = B;
        type Input = I;
        type Fire = Infallible;

        fn spawn((): &(), _: Seed, players: u16) -> Self::World {
            (0..players).map(|player| (EntityId(player), B::default())).collect()
        }

        fn step_body((): &(), _: &Scene<'_, B>, body: &B, _: &Usercmd<I>, _: &mut impl Sink<Infallible>) -> B {
            body.clone()
        }

        fn entities(world: &Self::World) -> &[(EntityId, B)] {
            world
        }

        fn run(run: &PlayerCommand<'_, Self>, world: &mut Self::World, out: &mut impl Sink<Infallible>) {
            run.step_in_place(world, out);
        }

        fn save(_: &Self::World, _: &mut Vec<u32>) {}
    }

    impl<B: Body + Default, I: GameInput> Judge for Named<B, I> {}
    impl<B: Body + Default, I: GameInput> Categorize for Named<B, I> {}
    impl<B: Body + Default, I: GameInput> Reconcile for Named<B, I> {}

    impl<B: Body + Default, I: GameInput> Netcode for Named<B, I> {
        type Server = Server<Self>;
        type Client = Client<Self>;
    }

    /// Returns why a game cannot record, and why it cannot replay a log of an older build.
    fn refusals<B: Body + Default, I: GameInput>() -> (String, String) {
        let recorded = Scenario::default().header::<Named<B, I>>(&()).expect_err("a taken name").to_string();
        let log = Session::new(Scenario::default().header::<Named<Plain, Pad>>(&()).expect("free names"));
        let replayed = replay::<Named<B, I>>(&log, &ReplayOptions::default(), &mut |_| {});
        (recorded, replayed.expect_err("a taken name").to_string())
    }

    #[test]
    fn a_game_with_taken_names_neither_records_nor_replays() {
        let body = "class `entity` has a field called `tick`, and the table `bodies` has another column of that name";
        let input = "a usercmd has a field called `yaw`, and the table `frames` has another column of that name";
        let error = |what: &str| (format!("{what}: rename the field"), format!("{what}: rename the field"));
        assert_eq!(refusals::<WithTick, Pad>(), error(body));
        assert_eq!(refusals::<Plain, WithYaw>(), error(input));
    }
}
