//! Boats, a first game on hitreg's traits. It has an input type of its own, and no shots.

use std::convert::Infallible;
use std::process::ExitCode;

use hitreg::game::{
    BadCells, Body, Bots, Categorize, Judge, PlacedBody, PlayerCommand, Reconcile, Scene, Simulate, Sink, body, input,
};
use hitreg::glam::Vec2;
use hitreg::rng::Rng;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::Usercmd;

input! {
    /// What a player does in one client frame.
    pub(crate) struct Helm {
        msec: u8,
        rudder: f32 as Angle,
        throttle: f32,
    }
}

body! {
    /// A boat.
    pub(crate) struct Boat {
        Movement origin: Vec2,
        Movement velocity: Vec2,
        Movement course: f32 as Angle,
    }
}

/// The settings of a session.
#[derive(serde::Serialize, serde::Deserialize, Clone, Default, Debug)]
pub(crate) struct Lake {}

/// The world.
pub(crate) struct Boats {
    boats: Vec<(EntityId, Boat)>,
}

#[derive(Debug)]
pub(crate) struct BoatGame;

impl Simulate for BoatGame {
    const NAME: &'static str = "boats";
    type Rules = Lake;
    type World = Boats;
    type Body = Boat;
    type Input = Helm;
    type Fire = Infallible;

    fn spawn(_: &Lake, _: Seed, players: u16) -> Boats {
        let boat = |p| Boat { origin: Vec2::new(0.0, 40.0 * f32::from(p)), ..Boat::default() };
        Boats { boats: (0..players).map(|p| (EntityId(p), boat(p))).collect() }
    }

    fn step_body(
        _: &Lake,
        _: &Scene<'_, Boat>,
        boat: &Boat,
        command: &Usercmd<Helm>,
        _: &mut impl Sink<Infallible>,
    ) -> Boat {
        let Helm { msec, rudder, throttle } = command.input;
        let seconds = f32::from(msec) / 1000.0;
        let course = boat.course + rudder * seconds;
        let ahead = Vec2::new(libm::cosf(course.to_radians()), libm::sinf(course.to_radians()));
        let velocity = boat.velocity * (1.0 - 0.5 * seconds) + ahead * throttle * seconds;
        Boat { origin: boat.origin + velocity * seconds, velocity, course }
    }

    fn entities(world: &Boats) -> &[(EntityId, Boat)] {
        &world.boats
    }

    fn run(run: &PlayerCommand<'_, BoatGame>, world: &mut Boats, out: &mut impl Sink<Infallible>) {
        run.step_in_place(&mut world.boats, out);
    }

    fn save(world: &Boats, words: &mut Vec<u32>) {
        for (_, boat) in &world.boats {
            let start = words.len();
            words.resize(start + Boat::CELLS, 0);
            boat.write(&mut words[start..]);
        }
    }

    fn load(_: &Lake, words: &[u32]) -> Result<Option<Boats>, BadCells> {
        let boats = words.chunks(Boat::CELLS).map(Boat::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Boats { boats: (0..).map(EntityId).zip(boats).collect() }))
    }
}

// The game has no shots, and clients draw and predict it as usual.
impl Judge for BoatGame {}
impl Categorize for BoatGame {}
impl Reconcile for BoatGame {}

impl hitreg::pipeline::Netcode for BoatGame {
    type Server = hitreg::server::Server<BoatGame>;
    type Client = hitreg::client::Client<BoatGame>;
}

/// A bot chooses another course every second.
impl Bots for BoatGame {
    type Bot = (Rng, Micros, Helm);

    fn bot(_: &Lake, seed: Seed, player: PlayerId) -> Self::Bot {
        (Rng::new(seed, u64::from(player.0)), Micros::ZERO, Helm::default())
    }

    fn think(
        (rng, turn_at, helm): &mut Self::Bot,
        _: &Lake,
        _: Option<&Boat>,
        _: &[(EntityId, PlacedBody<Boat>)],
        now: Micros,
        msec: u8,
    ) -> Helm {
        if now >= *turn_at {
            *turn_at = now + Micros::from_s(1);
            helm.rudder = rng.signed_f32() * 90.0;
            helm.throttle = 20.0 + rng.signed_f32() * 20.0;
        }
        Helm { msec, ..*helm }
    }
}

fn main() -> ExitCode {
    hitreg::cli::main::<BoatGame>()
}
