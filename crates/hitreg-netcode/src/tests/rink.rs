//! A small game for unit tests: skaters on ice, who shoot at each other with every fourth usercmd.

use glam::Vec3;

use crate::client::Client;
use crate::game::{
    Bots, Categorize, DamageShare, Effect, HitResult, Judge, PlacedBody, PlayerCommand, Reconcile, Scene, ShotVerdict,
    Simulate, Sink, WorldSink, body,
};
use crate::pipeline::Netcode;
use crate::server::Server;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, Usercmd};

body! {
    pub(crate) struct Skater {
        Movement origin: Vec3,
        Movement viewangles: Vec3,
        Status alive: bool,
        Status teleports: u32,
    }
}

/// A shot along the x axis. Every second one is a puck.
#[derive(Clone, Debug)]
pub(crate) struct Strike {
    command: CommandSeq,
    from: Vec3,
}

#[derive(Debug)]
pub(crate) struct Rink;

impl Simulate for Rink {
    const NAME: &'static str = "rink";
    type Rules = ();
    type World = Vec<(EntityId, Skater)>;
    type Body = Skater;
    type Input = Input;
    type Fire = Strike;

    fn spawn((): &(), _: Seed, players: u16) -> Self::World {
        let skater = |player| Skater { origin: Vec3::X * (50.0 * f32::from(player)), alive: true, ..Skater::default() };
        (0..players).map(|player| (EntityId(player), skater(player))).collect()
    }

    fn step_body(
        (): &(),
        scene: &Scene<'_, Skater>,
        skater: &Skater,
        command: &Usercmd,
        out: &mut impl Sink<Strike>,
    ) -> Skater {
        let Input { msec, forwardmove, viewangles, .. } = command.input;
        let origin = skater.origin + Vec3::Y * (forwardmove * f32::from(msec) / 1000.0);
        if scene.weapons && command.seq.0.is_multiple_of(4) {
            let entity = scene.player.entity();
            out.effect(Effect { kind: 1, entity, at: origin, predictable: true });
            out.fire(Strike { command: command.seq, from: origin });
        }
        Skater { origin, viewangles, ..*skater }
    }

    fn entities(world: &Self::World) -> &[(EntityId, Skater)] {
        world
    }

    fn run(run: &PlayerCommand<'_, Rink>, world: &mut Self::World, out: &mut impl Sink<Strike>) {
        run.step_in_place(world, out);
    }

    fn blend(from: &Skater, to: &Skater, fraction: f32) -> Skater {
        Skater { origin: from.origin.lerp(to.origin, fraction), ..*from }
    }

    fn save(_: &Self::World, _: &mut Vec<u32>) {}
}

/// The first skater is always hit.
fn hit(targets: &[(EntityId, Skater)]) -> ShotVerdict {
    let wound = |(target, _): &(EntityId, Skater)| DamageShare { target: *target, hitgroup: 0, damage: 1, pellets: 1 };
    ShotVerdict { reason: HitResult::Hit, wounds: targets.first().map(wound).into_iter().collect() }
}

impl Judge for Rink {
    fn judge((): &(), _: &Strike, targets: &[(EntityId, Skater)]) -> ShotVerdict {
        hit(targets)
    }

    /// The ice hides what is on its other side.
    fn sees((): &(), from: Vec3, skater: &Skater) -> Option<bool> {
        Some(from.z * skater.origin.z >= 0.0)
    }

    fn aim(strike: &Strike) -> (Vec3, Vec3) {
        (strike.from, Vec3::X)
    }

    fn is_projectile(strike: &Strike) -> bool {
        strike.command.0.is_multiple_of(8)
    }

    /// A puck is at its target at once.
    fn apply(
        (): &(),
        world: &mut Self::World,
        shooter: PlayerId,
        command: &Usercmd,
        strike: &Strike,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        if verdict.reason == HitResult::Launched {
            out.impact(shooter, command.seq, "puck", hit(world));
            out.effect(Effect { kind: 2, entity: shooter.entity(), at: strike.from, predictable: false });
        }
    }
}

impl Categorize for Rink {}
impl Reconcile for Rink {}

impl Netcode for Rink {
    type Server = Server<Rink>;
    type Client = Client<Rink>;
}

impl Bots for Rink {
    type Bot = ();

    fn bot((): &(), _: Seed, _: PlayerId) {}

    fn think(
        (): &mut (),
        (): &(),
        _: Option<&Skater>,
        _: &[(EntityId, PlacedBody<Skater>)],
        _: Micros,
        msec: u8,
    ) -> Input {
        Input { msec, forwardmove: 100.0, ..Input::default() }
    }
}
