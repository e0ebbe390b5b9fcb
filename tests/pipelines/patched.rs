//! The arena with a planted bug. A substitute for a lost usercmd near another living player makes the player slightly
//! faster. The bug needs two players and a lost packet.

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaFire, ArenaRules, ArenaWorld};
use hitreg::game::{
    BadCells, Categorize, Judge, PlayerCommand, Reconcile, Scene, ShotVerdict, Simulate, Sink, WorldSink,
};
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd};

/// The distance within which the other player counts as near, in units.
pub(crate) const NEAR_UNITS: f32 = 300.0;

#[derive(Debug)]
pub(crate) struct Patched;

impl Simulate for Patched {
    const NAME: &'static str = Arena::NAME;
    type Rules = ArenaRules;
    type World = ArenaWorld;
    type Body = ArenaBody;
    type Input = Input;
    type Fire = ArenaFire;

    fn step_body(
        rules: &ArenaRules,
        scene: &Scene<'_, ArenaBody>,
        body: &ArenaBody,
        command: &Usercmd,
        out: &mut impl Sink<ArenaFire>,
    ) -> ArenaBody {
        let mut next = Arena::step_body(rules, scene, body, command, out);
        // Clients draw others 100 ms behind. Only a substitute usercmd has no drawing time.
        let stands_in = command.lerp_msec == 0;
        let near = |(id, other): &(EntityId, ArenaBody)| {
            *id != scene.player.entity() && other.is_target() && other.origin.distance(next.origin) < NEAR_UNITS
        };
        if stands_in && next.alive && scene.entities.iter().any(near) {
            next.velocity += Vec3::X;
        }
        next
    }

    fn map_name(rules: &ArenaRules) -> String {
        Arena::map_name(rules)
    }

    fn spawn(rules: &ArenaRules, seed: Seed, players: u16) -> ArenaWorld {
        Arena::spawn(rules, seed, players)
    }

    fn begin(rules: &ArenaRules, seed: Seed, players: &[(EntityId, ArenaBody)]) -> Option<ArenaWorld> {
        Arena::begin(rules, seed, players)
    }

    fn entities(world: &ArenaWorld) -> &[(EntityId, ArenaBody)] {
        Arena::entities(world)
    }

    fn run(run: &PlayerCommand<'_, Patched>, world: &mut ArenaWorld, out: &mut impl Sink<ArenaFire>) {
        run.step_in_place(world.entities_mut(), out);
    }

    fn step_world(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
        Arena::step_world(rules, world, dt, out);
    }

    fn blend(from: &ArenaBody, to: &ArenaBody, fraction: f32) -> ArenaBody {
        Arena::blend(from, to, fraction)
    }

    fn save(world: &ArenaWorld, words: &mut Vec<u32>) {
        Arena::save(world, words);
    }

    fn load(rules: &ArenaRules, words: &[u32]) -> Result<Option<ArenaWorld>, BadCells> {
        Arena::load(rules, words)
    }

    fn effect_name(kind: u8) -> &'static str {
        Arena::effect_name(kind)
    }
}

impl Judge for Patched {
    fn judge(rules: &ArenaRules, fire: &ArenaFire, targets: &[(EntityId, ArenaBody)]) -> ShotVerdict {
        Arena::judge(rules, fire, targets)
    }

    fn is_target(body: &ArenaBody) -> bool {
        Arena::is_target(body)
    }

    fn aim(fire: &ArenaFire) -> (Vec3, Vec3) {
        Arena::aim(fire)
    }

    fn is_projectile(fire: &ArenaFire) -> bool {
        Arena::is_projectile(fire)
    }

    fn apply(
        rules: &ArenaRules,
        world: &mut ArenaWorld,
        shooter: PlayerId,
        command: &Usercmd,
        fire: &ArenaFire,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        Arena::apply(rules, world, shooter, command, fire, verdict, out);
    }

    fn hitgroup_name(hitgroup: u8) -> &'static str {
        Arena::hitgroup_name(hitgroup)
    }

    fn weapon_name(fire: &ArenaFire) -> &'static str {
        Arena::weapon_name(fire)
    }
}

impl Categorize for Patched {}

impl Reconcile for Patched {
    fn on_ground(body: &ArenaBody) -> bool {
        Arena::on_ground(body)
    }
}

impl hitreg::pipeline::Netcode for Patched {
    type Server = hitreg::server::Server<Patched>;
    type Client = hitreg::client::Client<Patched>;
}
