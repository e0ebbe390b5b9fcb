//! The arena as a [`Game`](hitreg_netcode::game::Game): its steps, the drawing category of each field of its bodies, and
//! its sounds and visual effects.

use glam::Vec3;

use crate::body::{ArenaBody, BodyKind};
use crate::rules::ArenaRules;
use crate::shot::ArenaFire;
use crate::solid::{Solid, SolidHull};
use crate::state::ArenaWorld;
use crate::step::{teleport, walk, wield};
use crate::{projectile, prop, state};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{
    BadCells, Categorize, Category, Effect, FieldSchema, PlayerCommand, Reconcile, Scene, Simulate, Sink, Wall,
    WorldSink, blend_angles,
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
        state::spawn(rules, seed, players)
    }

    fn begin(rules: &ArenaRules, seed: Seed, players: &[(EntityId, ArenaBody)]) -> Option<ArenaWorld> {
        // Projectiles in flight are dropped, because their shooters were not recorded. Props are as at the first tick.
        let mut world = ArenaWorld::new(seed, u16::try_from(players.len()).ok()?);
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
        // A NaN or infinite angle would spread into shots and from there into the world.
        let viewangles = command.input.viewangles.map(|angle| if angle.is_finite() { angle } else { 0.0 });
        let mut next = ArenaBody { viewangles, ..*body };
        // Dead players fall and slide, but their input is ignored.
        let input = match body.alive {
            true => Input { viewangles, ..command.input.clone() },
            false => Input { msec: command.input.msec, ..Input::default() },
        };
        walk(rules, scene, &mut next, &input, out);
        if next.alive {
            teleport(rules, scene, &mut next, out);
            if scene.weapons {
                wield(rules, scene, &mut next, command, out);
            }
        }
        next
    }

    fn entities(world: &ArenaWorld) -> &[(EntityId, ArenaBody)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, Arena>, world: &mut ArenaWorld, out: &mut impl Sink<ArenaFire>) {
        run.step_in_place(world.entities_mut(), out);
    }

    fn step_world(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
        projectile::fly_rockets(rules, world, dt, out);
        projectile::fly_arrows(rules, world, dt, out);
        prop::step(rules, world, dt, out);
        state::respawn(rules, world, dt, out);
    }

    // Inlined, it writes a drawn body where the body stays. A screen has one for each other player.
    #[inline(always)]
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
        ArenaEffect::NAMES.get(usize::from(kind)).copied().unwrap_or("unknown")
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

impl hitreg_netcode::pipeline::Netcode for Arena {
    type Server = hitreg_netcode::server::Server<Arena>;
    type Client = hitreg_netcode::client::Client<Arena>;
}

impl Categorize for Arena {
    fn category(body: &ArenaBody, own: bool, field: &FieldSchema) -> Category {
        let variable = field.name.split('.').next().unwrap_or_default();
        match (body.kind, variable) {
            (BodyKind::Rocket, "origin") => Category::Simulated,
            (BodyKind::Player | BodyKind::Rocket, _) => Category::by_default(own, field.scope),
            (BodyKind::Tree, _) => Category::Constant,
            (BodyKind::Apple, "origin" | "velocity" | "on_ground") => Category::Simulated,
            (BodyKind::Bell, "event_in_us") => Category::SelfContained,
            (BodyKind::Bell, "kind" | "origin") => Category::Constant,
            (BodyKind::Walker, "origin" | "velocity" | "viewangles" | "on_ground") => Category::DeterministicAi,
            (BodyKind::Arrow, "origin" | "velocity") => Category::Inverted,
            (BodyKind::Apple | BodyKind::Bell | BodyKind::Walker | BodyKind::Arrow, _) => Category::Authoritative,
        }
    }

    /// Returns a body after `dt` of physics alone. It supports players too, although no category draws them so.
    /// Players usually stop, turn or jump in the meantime, and a jump shorter than a round trip would never be visible.
    fn simulate(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        match body.kind {
            BodyKind::Apple => prop::simulate_apple(rules, body, dt),
            BodyKind::Arrow => projectile::simulate_arrow(body, dt),
            BodyKind::Player if !body.on_ground => prop::fall(rules, body.hull(), body, dt),
            BodyKind::Player | BodyKind::Rocket => {
                let to = body.origin + body.velocity * dt.as_s_f64() as f32;
                let hull = if body.kind == BodyKind::Rocket { SolidHull::Point } else { body.hull() };
                ArenaBody { origin: rules.map.solid().sweep(hull, body.origin, to).end, ..*body }
            }
            BodyKind::Tree | BodyKind::Bell | BodyKind::Walker => *body,
        }
    }

    fn carry_out(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
        prop::carry_out(rules, body, dt)
    }

    fn play(rules: &ArenaRules, defined: &ArenaBody, dt: Micros) -> ArenaBody {
        prop::play_bell(rules, defined, dt)
    }

    fn final_state(_rules: &ArenaRules, body: &ArenaBody) -> Option<(ArenaBody, Micros)> {
        let left = Micros(i64::from(body.event_in_us.max(0)));
        (body.kind == BodyKind::Arrow).then(|| (projectile::simulate_arrow(body, left), left))
    }

    fn reaction(rules: &ArenaRules, fire: &ArenaFire) -> Option<ArenaBody> {
        // Only the server decides whom an arrow hits.
        projectile::loose(rules, fire, &[]).map(|(body, _)| body)
    }

    fn came_from(body: &ArenaBody) -> Option<(PlayerId, CommandSeq)> {
        matches!(body.kind, BodyKind::Arrow | BodyKind::Rocket).then(|| projectile::came_from(body))
    }
}

hitreg_log::named! {
    /// A sound or a visual effect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ArenaEffect {
        /// A pistol shot.
        Pistol = "pistol",
        /// A shotgun shot.
        Shotgun = "shotgun",
        /// A rocket launch.
        Launcher = "launcher",
        /// A shot with an empty weapon.
        DryFire = "dry fire",
        /// A reload.
        Reload = "reload",
        /// A change of weapon.
        Switch = "switch",
        /// A jump.
        Jump = "jump",
        /// A footstep.
        Footstep = "footstep",
        /// A landing.
        Land = "land",
        /// A passage through a teleporter.
        Teleport = "teleport",
        /// The tone that signals a hit to the shooter, as in Quake III.
        HitTone = "hit tone",
        /// A player taking damage.
        Pain = "pain",
        /// A player's death.
        Death = "death",
        /// A respawn.
        Respawn = "respawn",
        /// A rocket's explosion.
        Explosion = "explosion",
        /// An arrow's hit.
        ArrowHit = "arrow hit",
        /// The start of a bell's ringing.
        Bell = "bell",
    }
}

impl ArenaEffect {
    pub(crate) fn by(self, entity: EntityId, at: Vec3) -> Effect {
        // Shared code causes all other effects, so that a predicting client plays them without the server.
        let is_server_only = matches!(
            self,
            ArenaEffect::HitTone
                | ArenaEffect::Pain
                | ArenaEffect::Death
                | ArenaEffect::Respawn
                | ArenaEffect::Explosion
                | ArenaEffect::ArrowHit
                | ArenaEffect::Bell
        );
        Effect { kind: self as u8, entity, at, predictable: !is_server_only }
    }
}

/// The game, for commands: its logs are replayed, and its bots play on its own maps and on map files.
#[cfg(not(test))]
pub fn playable() -> Box<dyn hitreg_engine::Playable> {
    use super::map::ArenaMap;

    hitreg_engine::recording::<Arena>(|map| match map {
        None => Ok(ArenaRules::default()),
        Some(map) => {
            let name = std::path::Path::new(map.path).file_stem().unwrap_or_default().to_string_lossy();
            Ok(ArenaRules::new(ArenaMap::parse(&name, map.bytes)?))
        }
    })
}

/// Records bots under rules of the caller's own. The generic function of this name compiles the pipelines in the
/// calling crate; this one is compiled with the game.
///
/// # Errors
/// When the scenario is out of bounds.
#[cfg(not(test))]
pub fn record_synthetic(
    scenario: &hitreg_netcode::session::scenario::Scenario,
    rules: &std::sync::Arc<ArenaRules>,
    observer: &mut dyn hitreg_netcode::session::Observer<Arena>,
) -> Result<(), hitreg_netcode::session::SynthError> {
    hitreg_netcode::session::record_synthetic::<Arena>(scenario, rules, observer)
}
