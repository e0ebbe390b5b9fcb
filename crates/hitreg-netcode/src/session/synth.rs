//! Recording of synthetic sessions: bots on modelled links in virtual time.

use std::sync::Arc;

use super::bots::BotInput;
use super::scenario::{Scenario, ScenarioError};
use super::{Links, Machine, Observer};
use crate::game::{Bots, Game, GameInput};
use crate::link::ModelledLink;
use crate::pipeline::{Netcode, Setup};
use crate::settings::{SettingError, Settings};
use hitreg_log::record::{Origin, PlayerInfo, SessionHeader, TakenName};
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use super::*;
    use crate::client::Client;
    use crate::game::{Body, Categorize, Judge, PlayerCommand, Reconcile, Scene, Simulate, Sink, body, input};
    use crate::replay::{ReplayOptions, replay};
    use crate::server::Server;
    use hitreg_log::record::Session;
    use hitreg_log::units::EntityId;
    use hitreg_log::usercmd::Usercmd;

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
