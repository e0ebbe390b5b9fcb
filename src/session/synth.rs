//! Recording a synthetic session: bots on modelled links in virtual time.

use std::sync::Arc;

use super::scenario::{Scenario, ScenarioError};
use super::{Hands, Links, Machine, Observer, Screen};
use crate::game::{Bots, Game};
use crate::link::ModelledLink;
use crate::pipeline::{Netcode, Setup};
use crate::record::{Header, Origin, PlayerInfo, usercmd_fields};
use crate::rng::Rng;
use crate::settings::{SettingError, Settings};
use crate::units::{Hz, Micros, PlayerId, Seed};
use crate::usercmd::Input;

/// A synthetic session that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    /// The scenario is out of bounds.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A setting is not to be had.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The game's rules cannot be stored.
    #[error("the game's rules cannot be stored: {0}")]
    Rules(#[from] rmp_serde::encode::Error),
}

impl Scenario {
    /// The settings: the preset's, with what the scenario changes.
    ///
    /// # Errors
    /// When a preset, key or value is not to be had.
    pub fn settings(&self) -> Result<Settings, SettingError> {
        let mut settings = Settings::preset(&self.preset)?;
        for (key, value) in &self.settings {
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    /// The header of the log that the scenario gives.
    ///
    /// # Errors
    /// When the scenario is out of bounds or a setting is not to be had.
    pub fn header<G: Game>(&self, rules: &G::Rules) -> Result<Header, SynthError> {
        self.check()?;
        let player = |p| PlayerInfo { name: format!("p{p}"), recorded: true };
        Ok(Header {
            game: G::NAME.to_owned(),
            rules: rmp_serde::to_vec_named(rules)?,
            map: G::map_name(rules),
            seed: Seed(self.seed),
            settings: self.settings()?.to_pairs(),
            preset: Some(self.preset.clone()),
            players: (0..self.players).map(player).collect(),
            origin: Origin::Synthetic,
            side: None,
            classes: G::classes(),
            usercmd: usercmd_fields(),
            unknown: Vec::new(),
        })
    }
}

/// Runs a scenario from beginning to end.
///
/// # Errors
/// As [`Scenario::header`].
pub fn record_synthetic<G: Bots + Netcode>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    observer: &mut impl Observer<G>,
) -> Result<(), SynthError> {
    scenario.check()?;
    let settings = Arc::new(scenario.settings()?);
    let seed = Seed(scenario.seed);
    let link = |player: u16, direction: u64| {
        let stream = 0x6c69_6e6b_0000_0000 | (u64::from(player) << 1) | direction;
        ModelledLink::new(scenario.link_of(player).clone(), seed, stream)
    };
    let links = (0..scenario.players).map(|p| Links { up: link(p, 0), down: link(p, 1) }).collect();
    let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(&settings), seed };
    let mut machine = Machine::<G, ModelledLink>::new(&setup, links);
    let end = scenario.length();
    let ticks = (1..).map(|n| settings.server.tick_hz.turn(n)).take_while(|at| *at <= end);
    let mut hands = BotHands::<G>::new(scenario, Arc::clone(rules), &settings);
    machine.run(ticks, &mut hands, observer);
    Ok(())
}

/// Bots at regular frames, each with its own phase, so that no two clients run in step.
struct BotHands<G: Bots> {
    rules: Arc<G::Rules>,
    bots: Vec<BotPlayer<G>>,
    cmd_hz: Hz,
}

struct BotPlayer<G: Bots> {
    bot: G::Bot,
    phase: Micros,
    frames: i64,
    /// The end of the last frame, in whole milliseconds: usercmds cover whole ones, and over time none is lost.
    last_ms: i64,
}

impl<G: Bots> BotHands<G> {
    fn new(scenario: &Scenario, rules: Arc<G::Rules>, settings: &Settings) -> BotHands<G> {
        let seed = Seed(scenario.seed);
        let cmd_hz = settings.client.cmd_hz;
        let bots = (0u16..)
            .zip(G::bots(&rules, seed, scenario.players))
            .map(|(p, bot)| {
                let phase = Rng::new(seed, 0x7068_6173_0000_0000 | u64::from(p)).below(cmd_hz.interval().0 as u64);
                let phase = Micros(phase as i64);
                BotPlayer { bot, phase, frames: 0, last_ms: phase.0 / 1000 }
            })
            .collect();
        BotHands { rules, bots, cmd_hz }
    }
}

impl<G: Bots> Hands<G> for BotHands<G> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let bot = &mut self.bots[usize::from(player.0)];
        bot.frames += 1;
        Some(bot.phase + self.cmd_hz.turn(bot.frames))
    }

    fn input(&mut self, at: Micros, screen: &Screen<'_, G>) -> Input {
        let bot = &mut self.bots[usize::from(screen.player.0)];
        let now_ms = at.0 / 1000;
        let msec = (now_ms - bot.last_ms).clamp(0, 255) as u8;
        bot.last_ms = now_ms;
        G::think(&mut bot.bot, &self.rules, screen.own, screen.others, at, msec)
    }
}
