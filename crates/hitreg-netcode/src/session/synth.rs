//! Recording of synthetic sessions: bots on modelled links in virtual time.

use std::sync::Arc;

use super::bots::BotInput;
use super::scenario::{Scenario, ScenarioError};
use super::{Links, Machine, Observer};
use crate::game::{Bots, Game, GameInput};
use crate::link::ModelledLink;
use crate::pipeline::{Netcode, Setup};
use crate::settings::{SettingError, Settings};
use hitreg_log::record::{Origin, PlayerInfo, SessionHeader};
use hitreg_log::units::{PlayerId, Seed};

/// The reasons why a synthetic session cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    /// The scenario is out of bounds.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A setting is not available.
    #[error(transparent)]
    Setting(#[from] SettingError),
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
    /// When the scenario is out of bounds or a setting is not available.
    pub fn header<G: Game>(&self, rules: &G::Rules) -> Result<SessionHeader, SynthError> {
        self.check()?;
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
            classes: G::classes(),
            usercmd: G::Input::usercmd_fields(),
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
    let links = (0..scenario.players).map(|p| Links::modelled(scenario.link_of(p), seed, PlayerId(p))).collect();
    let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(&settings), seed };
    let mut machine = Machine::<G, ModelledLink>::new(&setup, links);
    let end = scenario.length();
    let ticks = (1..).map(|n| settings.server.tick_hz.turn(n)).take_while(|at| *at <= end && may_continue());
    let bots = G::bots(rules, seed, scenario.players);
    let mut input = BotInput::<G>::of(bots, seed, Arc::clone(rules), &settings);
    machine.run(ticks, &mut input, observer);
    Ok(())
}
