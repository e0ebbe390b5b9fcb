//! Quake III as a game of the pipelines. Its sessions replay open loop, on the snapshots that each client received.
//! There is no server, so a world is only a set of bodies. Shots are judged again from the received states of other
//! players.

use std::convert::Infallible;

use super::aim::MELEE;
use super::body::Quake3Body;
use super::diagnosis::explain;
use super::hits::shots_again;
use super::movement::{MoveWorld, NO_ENTITY, WORLD, run};
use super::protocol::{Quake3Usercmd, entity};
use super::rules::Quake3Rules;
use super::surroundings::around;
use glam::Vec3;
use hitreg_log::units::{EntityId, Seed};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{
    AckedPrediction, BadCells, Body, Categorize, Cause, Class, ClassId, Evidence, ImportedSessions, Judge, Moment,
    PlayerCommand, PredictionGrade, Reconcile, Scene, Simulate, Sink, SnapshotExtras, Touch, input,
};
use hitreg_netcode::pipeline::Netcode;

/// Quake III's engine, as OpenArena uses it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3;

input! {
    /// A Quake III usercmd.
    pub struct Quake3Input {
        msec: u8,
        viewangles: Vec3,
        forwardmove: f32,
        sidemove: f32,
        upmove: f32,
        buttons: u16,
        /// The selected weapon.
        impulse: u8,
        /// The server time in the usercmd as sent. Movement runs up to it.
        sent_time_ms: i32 as Time,
    }
}

/// Value of an entity's `kind`: a moving part of the map (bg_public.h).
const MOVER: u32 = 4;
/// The game's threshold for a wrong prediction, in units (cg_predict.c).
const NEAR: f32 = 0.1;

impl Netcode for Quake3 {
    type Server = hitreg_netcode::server::Server<Quake3>;
    type Client = hitreg_netcode::client::Client<Quake3>;
}

impl Simulate for Quake3 {
    const NAME: &'static str = super::import::NAME;
    type Rules = Quake3Rules;
    type World = Moment<Quake3Body>;
    type Body = Quake3Body;
    type Input = Quake3Input;
    type Fire = Infallible;

    /// A player's own state is exact, but the positions of other players, which can block it, are sent in whole units.
    /// A usercmd has the time of the frame that was on screen before it was made (ioquake3's cl_main.c and cl_input.c).
    const IMPORTED: Option<ImportedSessions<Quake3>> = Some(ImportedSessions {
        rejudge: Some(shots_again),
        check_snapshot,
        is_rounded: true,
        draws_at_command_time: true,
        melee: MELEE,
    });

    fn classes() -> Vec<Class> {
        Quake3Body::classes()
    }

    fn class(body: &Quake3Body) -> ClassId {
        body.class()
    }

    fn map_name(rules: &Quake3Rules) -> String {
        rules.map_name.clone()
    }

    fn spawn(_rules: &Quake3Rules, _seed: Seed, players: u16) -> Moment<Quake3Body> {
        Moment::empty(players)
    }

    fn step_body(
        rules: &Quake3Rules,
        scene: &Scene<'_, Quake3Body>,
        body: &Quake3Body,
        command: &Usercmd<Quake3Input>,
        out: &mut impl Sink<Infallible>,
    ) -> Quake3Body {
        let mut met = Vec::new();
        let moved = moved(rules, scene.entities, scene.player.entity(), body, &command.input, &mut met);
        let triggers = if met.is_empty() { Vec::new() } else { around(scene.entities, scene.player.entity()).1 };
        for entity in met.into_iter().filter(|entity| *entity != WORLD && *entity != NO_ENTITY) {
            let id = EntityId(entity as u16);
            let is_trigger = triggers.iter().any(|trigger| trigger.entity == entity);
            out.touch(match entity {
                _ if is_trigger => Touch::Teleporter,
                player if player < u32::from(rules.places) => Touch::Player(id),
                _ => Touch::Mover(id),
            });
        }
        moved
    }

    /// Clients collide with other players where they draw them, and with map parts at their true position
    /// (cg_predict.c).
    fn is_met_as_drawn(rules: &Quake3Rules, entity: EntityId) -> bool {
        entity.0 < rules.places
    }

    /// Clients do not count the motion of the entity that carries them as an error (cg_predict.c and cg_ents.c).
    fn carrier(body: &Quake3Body, entities: &[(EntityId, Quake3Body)]) -> Option<EntityId> {
        let ground = EntityId(u16::try_from(body.player_state().ground).ok()?);
        entities.iter().find(|(id, on)| *id == ground && on.entity(entity("kind")) == MOVER).map(|(id, _)| *id)
    }

    fn entities(world: &Moment<Quake3Body>) -> &[(EntityId, Quake3Body)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, Quake3>, world: &mut Moment<Quake3Body>, out: &mut impl Sink<Infallible>) {
        run.step_in_place(&mut world.entities, out);
    }

    fn blend(from: &Quake3Body, to: &Quake3Body, fraction: f32) -> Quake3Body {
        let turn = (to.viewangles() - from.viewangles()).map(|degrees| degrees - 360.0 * libm::roundf(degrees / 360.0));
        let mut body = to.moved_to(from.origin().lerp(to.origin(), fraction).as_dvec3());
        body.set_velocity(from.velocity().lerp(to.velocity(), fraction));
        body.set_viewangles(from.viewangles() + turn * fraction);
        body
    }

    fn save(world: &Moment<Quake3Body>, words: &mut Vec<u32>) {
        world.save(words);
    }

    fn load(_rules: &Quake3Rules, words: &[u32]) -> Result<Option<Moment<Quake3Body>>, BadCells> {
        Moment::load(words).map(Some)
    }

    fn effect_name(_kind: u8) -> &'static str {
        "event"
    }
}

impl Judge for Quake3 {}

impl Categorize for Quake3 {}

impl Reconcile for Quake3 {
    const GRADES: &str =
        "exact: position and velocity to the bit; near: within 0.1 units, the game's own measure of a miss";

    fn on_ground(body: &Quake3Body) -> bool {
        body.player_state().ground != NO_ENTITY
    }

    /// Returns `None` if a state is that of another player whom a spectator follows.
    fn grade(predicted: &Quake3Body, authoritative: &Quake3Body) -> Option<PredictionGrade> {
        let (ours, theirs) = (predicted.player_state(), authoritative.player_state());
        let is_own = |body: &Quake3Body| body.is_own() && !body.is_absent();
        let is_own = is_own(predicted) && is_own(authoritative) && predicted.client() == authoritative.client();
        let grade = if (ours.origin, ours.velocity) == (theirs.origin, theirs.velocity) {
            PredictionGrade::Exact
        } else if ours.origin.distance(theirs.origin) <= NEAR {
            PredictionGrade::Near
        } else {
            PredictionGrade::Miss
        };
        is_own.then_some(grade)
    }

    fn explain(rules: &Quake3Rules, miss: &AckedPrediction<'_, Quake3Body>) -> Option<(Cause, Evidence)> {
        Some(explain(rules, miss))
    }
}

fn check_snapshot(bodies: &[(EntityId, Quake3Body)], _extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
    match bodies.iter().find(|(_, body)| !body.is_finite()) {
        Some((entity, _)) => Err(BadCells { what: "an entity at no place".to_owned(), found: u32::from(entity.0) }),
        None => Ok(()),
    }
}

/// Returns the body after a usercmd among other bodies. It returns the body unchanged if it is not the player's own, or
/// without a map.
pub(super) fn moved(
    rules: &Quake3Rules,
    entities: &[(EntityId, Quake3Body)],
    own: EntityId,
    body: &Quake3Body,
    input: &Quake3Input,
    met: &mut Vec<u32>,
) -> Quake3Body {
    let Some(map) = rules.map.as_ref().filter(|_| body.is_own() && !body.is_absent() && body.is_finite()) else {
        return *body;
    };
    let (solids, triggers) = around(entities, own);
    let world = MoveWorld { map, solids: &solids, triggers: &triggers };
    body.moved(&run(&world, body.settings(), &body.player_state(), &command_of(input), met))
}

/// Converts a usercmd back to the protocol's units, which movement uses.
fn command_of(input: &Quake3Input) -> Quake3Usercmd {
    let angle = |degrees: f32| libm::roundf(degrees * (65_536.0 / 360.0)) as i32 as u16;
    Quake3Usercmd {
        server_time: input.sent_time_ms,
        angles: input.viewangles.to_array().map(angle),
        forward: input.forwardmove as i8,
        right: input.sidemove as i8,
        up: input.upmove as i8,
        buttons: input.buttons,
        weapon: input.impulse,
    }
}
