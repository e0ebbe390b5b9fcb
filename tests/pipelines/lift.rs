//! A game with a lift that carries players. Clients know the lift only from snapshots, and the carried players do not
//! count as mispredicted.

use std::convert::Infallible;
use std::sync::Arc;

use glam::Vec3;
use hitreg::game::{
    Bots, Categorize, Judge, PlacedBody, PlayerCommand, Reconcile, Scene, Simulate, Sink, Touch, WorldSink, body,
};
use hitreg::link::LinkModel;
use hitreg::record::Session;
use hitreg::replay::{ReplayMode, ReplayOptions, replay};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::trace::schema::{corrections, frames};
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd};

/// The lift's movement in a tick. Its sums are exact in single precision.
const LIFT_UNITS: f32 = 0.5;

body! {
    /// A player, or the lift.
    struct Rider {
        Movement origin: Vec3,
        Movement is_on_lift: bool,
        Status alive: bool,
        Status is_lift: bool,
    }
}

#[derive(Debug)]
struct Lift;

fn lift_of(riders: &[(EntityId, Rider)]) -> Option<&(EntityId, Rider)> {
    riders.iter().find(|(_, rider)| rider.is_lift)
}

impl Simulate for Lift {
    const NAME: &'static str = "lift";
    type Rules = ();
    type World = Vec<(EntityId, Rider)>;
    type Body = Rider;
    type Input = Input;
    type Fire = Infallible;

    /// Player 0 stands next to the lift, and the others on it.
    fn spawn((): &(), _: Seed, players: u16) -> Vec<(EntityId, Rider)> {
        let at = |x| Rider { origin: Vec3::X * x, alive: true, ..Rider::default() };
        let riders = (0..players).map(|p| (EntityId(p), at(if p == 0 { 900.0 } else { 0.0 })));
        riders.chain([(EntityId(players), Rider { is_lift: true, ..at(0.0) })]).collect()
    }

    fn step_body(
        (): &(),
        scene: &Scene<'_, Rider>,
        body: &Rider,
        command: &Usercmd,
        out: &mut impl Sink<Infallible>,
    ) -> Rider {
        let mut next = *body;
        next.origin.y += command.input.sidemove * f32::from(command.input.msec) / 1000.0;
        let lift = lift_of(scene.entities).filter(|(_, lift)| (lift.origin.x - next.origin.x).abs() < 64.0);
        next.is_on_lift = lift.is_some();
        if let Some((id, _)) = lift {
            out.touch(Touch::Mover(*id));
        }
        next
    }

    fn carrier(body: &Rider, entities: &[(EntityId, Rider)]) -> Option<EntityId> {
        lift_of(entities).filter(|_| body.is_on_lift).map(|(id, _)| *id)
    }

    fn entities(world: &Vec<(EntityId, Rider)>) -> &[(EntityId, Rider)] {
        world
    }

    fn run(run: &PlayerCommand<'_, Lift>, world: &mut Vec<(EntityId, Rider)>, out: &mut impl Sink<Infallible>) {
        run.step_in_place(world, out);
    }

    fn step_world((): &(), world: &mut Vec<(EntityId, Rider)>, _: Micros, _: &mut impl WorldSink) {
        for (_, rider) in world.iter_mut().filter(|(_, rider)| rider.is_lift || rider.is_on_lift) {
            rider.origin.x += LIFT_UNITS;
        }
    }

    fn save(world: &Vec<(EntityId, Rider)>, words: &mut Vec<u32>) {
        use hitreg::game::Body;
        world.iter().for_each(|(_, rider)| rider.append_to(words));
    }
}

impl Judge for Lift {}

impl Categorize for Lift {}

impl Reconcile for Lift {}

impl hitreg::pipeline::Netcode for Lift {
    type Server = hitreg::server::Server<Lift>;
    type Client = hitreg::client::Client<Lift>;
}

impl Bots for Lift {
    type Bot = ();

    fn bot((): &(), _: Seed, _: PlayerId) {}

    fn think(
        (): &mut (),
        (): &(),
        _: Option<&Rider>,
        _: &[(EntityId, PlacedBody<Rider>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        let sidemove = if now.0 / 500_000 % 2 == 0 { 100.0 } else { -70.0 };
        Input { msec, sidemove, ..Input::default() }
    }
}

#[test]
fn a_carried_player_is_predicted_and_drawn_without_corrections() {
    let scenario = Scenario {
        players: 3,
        seconds: 6.0,
        link: LinkModel { delay_ms: 60.0, ..LinkModel::default() },
        ..Scenario::default()
    };
    let mut session = Session::new(scenario.header::<Lift>(&()).expect("a good scenario"));
    record_synthetic::<Lift>(&scenario, &Arc::new(()), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    let replayed = replay::<Lift>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    let open = ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() };
    let alone = replay::<Lift>(&session, &open, &mut |_| {}).expect("a log of this build");
    // Players get on the lift with their first usercmds.
    assert!(alone.jumps.iter().all(|jump| jump.at < Micros::from_ms(200)), "{:?}", alone.jumps);
    let acks = corrections::Columns::of(&replayed.trace);
    for player in 0..3 {
        let of_player = || (0..acks.rows).filter(|row| acks.player[*row] == player);
        assert!(of_player().count() > 90, "{}", of_player().count());
        // A session begins before the first snapshot shows the lift.
        let wrong: Vec<_> = of_player().filter(|row| acks.result.get(*row) != "exact").collect();
        assert_eq!(wrong.len(), 0, "p{player}: {:?} at {:?} us", wrong, wrong.first().map(|row| acks.at_us[*row]));
    }
    // The lift moves by 32 units in a second, and by 1.6 between two snapshots.
    let drawn = frames::Columns::of(&replayed.trace);
    let places: Vec<f32> = (0..drawn.rows)
        .filter(|row| drawn.player[*row] == 1 && drawn.at_us[*row] > 1_000_000)
        .map(|row| drawn.drawn[0][row])
        .collect();
    let steps: Vec<f32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.len() > 300 && steps.iter().all(|step| (0.1..1.1).contains(step)), "{steps:?}");
}
