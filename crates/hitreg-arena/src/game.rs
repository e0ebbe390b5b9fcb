//! The arena as a [`Game`](hitreg_netcode::game::Game).

use glam::Vec3;

use super::body::ArenaBody;
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::rules::ArenaRules;
use super::state::ArenaWorld;
use super::{arrow, prop, rocket, spawn, step};
use hitreg_log::units::{EntityId, Micros, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{BadCells, PlayerCommand, Reconcile, Scene, Simulate, Sink, Wall, WorldSink};

/// The built-in game.
#[derive(Clone, Copy, Debug)]
pub struct Arena;

impl Simulate for Arena {
    const NAME: &'static str = "arena";
    type Rules = ArenaRules;
    type World = ArenaWorld;
    type Body = ArenaBody;
    type Input = Input;
    type Fire = ArenaFire;

    fn map_name(rules: &ArenaRules) -> String {
        rules.map.name().to_owned()
    }

    fn outline(rules: &ArenaRules) -> Vec<Wall> {
        rules.map.walls()
    }

    fn spawn(rules: &ArenaRules, seed: Seed, players: u16) -> ArenaWorld {
        spawn::spawn(rules, seed, players)
    }

    fn begin(rules: &ArenaRules, seed: Seed, players: &[(EntityId, ArenaBody)]) -> Option<ArenaWorld> {
        // Projectiles in flight are dropped, because their shooters were not recorded. Props are as at the first tick.
        let mut world = ArenaWorld { players: u16::try_from(players.len()).ok()?, ..ArenaWorld::empty(seed) };
        world.entities.extend_from_slice(players);
        prop::place(rules, &mut world);
        Some(world)
    }

    fn step_body(
        rules: &ArenaRules,
        scene: &Scene<'_, ArenaBody>,
        body: &ArenaBody,
        command: &Usercmd,
        out: &mut impl Sink<ArenaFire>,
    ) -> ArenaBody {
        step::step_body(rules, scene, body, command, out)
    }

    fn entities(world: &ArenaWorld) -> &[(EntityId, ArenaBody)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, Arena>, world: &mut ArenaWorld, out: &mut impl Sink<ArenaFire>) {
        run.step_in_place(world.entities_mut(), out);
    }

    fn step_world(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
        rocket::fly(rules, world, dt, out);
        arrow::fly(rules, world, dt, out);
        prop::step(rules, world, dt, out);
        spawn::respawn(rules, world, dt, out);
    }

    #[inline]
    fn blend(from: &ArenaBody, to: &ArenaBody, fraction: f32) -> ArenaBody {
        if fraction >= 1.0 {
            return *to;
        }
        if fraction <= 0.0 || from.kind != to.kind {
            return *from;
        }
        // Stance and life change when the later sample is reached, in drawing and in judging alike.
        let mut between = *from;
        between.origin += (to.origin - from.origin) * fraction;
        between.velocity += (to.velocity - from.velocity) * fraction;
        between.viewangles = blend_angles(from.viewangles, to.viewangles, fraction);
        between.view_ofs_z += (to.view_ofs_z - from.view_ofs_z) * fraction;
        between
    }

    fn save(world: &ArenaWorld, words: &mut Vec<u32>) {
        world.save(words);
    }

    fn load(_rules: &ArenaRules, words: &[u32]) -> Result<Option<ArenaWorld>, BadCells> {
        ArenaWorld::load(words).map(Some)
    }

    fn effect_name(kind: u8) -> &'static str {
        ArenaEffect::name_of(kind)
    }
}

impl Reconcile for Arena {
    fn on_ground(body: &ArenaBody) -> bool {
        body.on_ground
    }

    fn was_hurt(before: &ArenaBody, after: &ArenaBody) -> bool {
        after.health < before.health
    }
}

/// Interpolates each angle the short way round.
#[inline]
fn blend_angles(from: Vec3, to: Vec3, fraction: f32) -> Vec3 {
    let by = to - from;
    // Differences below half a turn need no correction.
    let turn = match by.abs().cmplt(Vec3::splat(180.0)).all() {
        true => by,
        false => by.map(|by| by - 360.0 * libm::roundf(by / 360.0)),
    };
    from + turn * fraction
}

impl hitreg_netcode::pipeline::Netcode for Arena {
    type Server = hitreg_netcode::server::Server<Arena>;
    type Client = hitreg_netcode::client::Client<Arena>;
}
