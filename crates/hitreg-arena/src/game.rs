//! The arena as a [`Game`](hitreg_netcode::game::Game).

use glam::Vec3;

use super::body::{ArenaBody, BodyKind};
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::hitbox::Hitgroup;
use super::rules::ArenaRules;
use super::state::ArenaWorld;
use super::{arrow, bell, category, harm, judge, prop, rocket, spawn, step, walker};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{
    BadCells, Categorize, Category, FieldSchema, Judge, PlayerCommand, Reconcile, Scene, ShotVerdict, Simulate, Sink,
    Wall, WorldSink,
};

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

impl Judge for Arena {
    fn judge(rules: &ArenaRules, fire: &ArenaFire, targets: &[(EntityId, ArenaBody)]) -> ShotVerdict {
        judge::judge(rules, fire, targets)
    }

    fn is_target(body: &ArenaBody) -> bool {
        body.is_target()
    }

    fn sees(rules: &ArenaRules, from: Vec3, body: &ArenaBody) -> Option<bool> {
        Some(judge::sees_any_part(rules, from, body))
    }

    fn aim(fire: &ArenaFire) -> (Vec3, Vec3) {
        let line = fire.centre();
        (line.from, line.direction)
    }

    fn is_projectile(fire: &ArenaFire) -> bool {
        fire.flies
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
        harm::apply(rules, world, shooter, command, fire, verdict, out);
    }

    fn hitgroup_name(hitgroup: u8) -> &'static str {
        Hitgroup::name_of(hitgroup)
    }

    fn weapon_name(fire: &ArenaFire) -> &'static str {
        fire.weapon.name()
    }
}

impl Categorize for Arena {
    fn category(body: &ArenaBody, own: bool, field: &FieldSchema) -> Category {
        category::category(body, own, field)
    }

    fn simulate(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        category::simulate(rules, body, dt)
    }

    fn carry_out(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        walker::carry_out(rules, body, dt)
    }

    fn play(rules: &ArenaRules, defined: &ArenaBody, dt: Micros) -> ArenaBody {
        bell::play(rules, defined, dt)
    }

    fn final_state(_rules: &ArenaRules, body: &ArenaBody) -> Option<(ArenaBody, Micros)> {
        category::final_state(body)
    }

    fn reaction(rules: &ArenaRules, fire: &ArenaFire) -> Option<ArenaBody> {
        // Only the server decides whom an arrow hits.
        arrow::loose(rules, fire, &[]).map(|(body, _)| body).or_else(|| rocket::loose(rules, fire))
    }

    fn came_from(body: &ArenaBody) -> Option<(PlayerId, CommandSeq)> {
        matches!(body.kind, BodyKind::Arrow | BodyKind::Rocket).then(|| arrow::came_from(body))
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
