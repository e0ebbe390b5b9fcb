//! The arena with a planted bug. The usercmd after a substitute for a lost one makes the player slightly faster, near another
//! living player. The bug needs two players and a lost packet.

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaFire, ArenaRules, ArenaWorld};
use hitreg::game::{
    BadCells, Categorize, Judge, PlayerCommand, Reconcile, Scene, ShotVerdict, Simulate, Sink, WorldSink,
};
use hitreg::sorted::SortedMap;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd};

/// The distance within which the other player counts as near, in units.
pub(crate) const NEAR_UNITS: f32 = 300.0;

#[derive(Debug)]
pub(crate) struct Patched;

/// The arena's world, with the time of each player's last usercmd.
#[derive(Debug)]
pub(crate) struct PatchedWorld {
    arena: ArenaWorld,
    last_times: SortedMap<PlayerId, Micros>,
}

impl PatchedWorld {
    fn of(arena: ArenaWorld) -> PatchedWorld {
        PatchedWorld { arena, last_times: SortedMap::new() }
    }
}

impl Simulate for Patched {
    const NAME: &'static str = Arena::NAME;
    type Rules = ArenaRules;
    type World = PatchedWorld;
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
        Arena::step_body(rules, scene, body, command, out)
    }

    fn map_name(rules: &ArenaRules) -> String {
        Arena::map_name(rules)
    }

    fn spawn(rules: &ArenaRules, seed: Seed, players: u16) -> PatchedWorld {
        PatchedWorld::of(Arena::spawn(rules, seed, players))
    }

    fn begin(rules: &ArenaRules, seed: Seed, players: &[(EntityId, ArenaBody)]) -> Option<PatchedWorld> {
        Arena::begin(rules, seed, players).map(PatchedWorld::of)
    }

    fn entities(world: &PatchedWorld) -> &[(EntityId, ArenaBody)] {
        Arena::entities(&world.arena)
    }

    fn run(run: &PlayerCommand<'_, Patched>, world: &mut PatchedWorld, out: &mut impl Sink<ArenaFire>) {
        let entities = world.arena.entities_mut();
        run.step_in_place(entities, out);
        // A substitute has the time of the usercmd after it. Before the first snapshot, all have time 0.
        let time = run.command.server_time;
        let follows_substitute = world.last_times.insert(run.player, time) == Some(time) && time > Micros::ZERO;
        let index = usize::from(run.player.0);
        let own = entities[index].1;
        let is_near = |(id, other): &(EntityId, ArenaBody)| {
            *id != run.player.entity() && other.is_target() && other.origin.distance(own.origin) < NEAR_UNITS
        };
        if follows_substitute && own.alive && entities.iter().any(is_near) {
            entities[index].1.velocity += Vec3::X;
        }
    }

    fn step_world(rules: &ArenaRules, world: &mut PatchedWorld, dt: Micros, out: &mut impl WorldSink) {
        Arena::step_world(rules, &mut world.arena, dt, out);
    }

    fn blend(from: &ArenaBody, to: &ArenaBody, fraction: f32) -> ArenaBody {
        Arena::blend(from, to, fraction)
    }

    fn save(world: &PatchedWorld, words: &mut Vec<u32>) {
        Arena::save(&world.arena, words);
    }

    fn load(rules: &ArenaRules, words: &[u32]) -> Result<Option<PatchedWorld>, BadCells> {
        Ok(Arena::load(rules, words)?.map(PatchedWorld::of))
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
        world: &mut PatchedWorld,
        shooter: PlayerId,
        command: &Usercmd,
        fire: &ArenaFire,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        Arena::apply(rules, &mut world.arena, shooter, command, fire, verdict, out);
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
