//! Quake III as a game of the pipelines. Its sessions replay open loop, on the snapshots that each client received.
//! There is no server, so a world is only a set of bodies. Shots are judged again from the received states of other
//! players.

use super::body::BodyRow;
use super::diagnosis::explain;
use super::hits::shots_again;
use super::movement::{Command, NO_ENTITY, WORLD, World, run};
use super::protocol::entity;
use super::rules::Rules;
use super::surroundings::around;
use hitreg_log::record::Session;
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{
    Acked, BadCells, Body, Categorize, Cause, Class, ClassId, Evidence, Grade, Judge, Moment, Reconcile, Scene,
    ShotAgain, Simulate, Sink, SnapshotExtras, Touch, WorldSink,
};
use hitreg_netcode::pipeline::Netcode;

/// Quake III's engine, as OpenArena uses it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3;

/// A shot, which has no values because the pipelines judge none.
#[derive(Clone, Debug)]
pub enum Shot {}

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
    type Rules = Rules;
    type World = Moment<BodyRow>;
    type Body = BodyRow;
    type Fire = Shot;

    fn classes() -> Vec<Class> {
        BodyRow::classes()
    }

    fn class(body: &BodyRow) -> ClassId {
        body.class()
    }

    fn map_name(rules: &Rules) -> String {
        rules.map_name.clone()
    }

    fn spawn(_rules: &Rules, _seed: Seed, players: u16) -> Moment<BodyRow> {
        Moment::empty(players)
    }

    fn step_body(
        rules: &Rules,
        scene: &Scene<'_, BodyRow>,
        body: &BodyRow,
        command: &Usercmd,
        out: &mut impl Sink<Shot>,
    ) -> BodyRow {
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
    fn is_met_as_drawn(rules: &Rules, entity: EntityId) -> bool {
        entity.0 < rules.places
    }

    /// Clients do not count the motion of the entity that carries them as an error (cg_predict.c and cg_ents.c).
    fn carrier(body: &BodyRow, entities: &[(EntityId, BodyRow)]) -> Option<EntityId> {
        let ground = EntityId(u16::try_from(body.player_state().ground).ok()?);
        entities.iter().find(|(id, on)| *id == ground && on.entity(entity("kind")) == MOVER).map(|(id, _)| *id)
    }

    /// A usercmd has the time of the frame that was on screen before it was made (ioquake3's cl_main.c and cl_input.c).
    const DRAWN_AT_ITS_TIME: bool = true;

    fn entities(world: &Moment<BodyRow>) -> &[(EntityId, BodyRow)] {
        &world.entities
    }

    fn place_body(_rules: &Rules, world: &mut Moment<BodyRow>, player: PlayerId, body: BodyRow) {
        world.place(player, body);
    }

    fn step_world(_rules: &Rules, _world: &mut Moment<BodyRow>, _dt: Micros, _out: &mut impl WorldSink) {}

    fn blend(from: &BodyRow, to: &BodyRow, fraction: f32) -> BodyRow {
        let turn = (to.viewangles() - from.viewangles()).map(|degrees| degrees - 360.0 * libm::roundf(degrees / 360.0));
        let mut body = to.moved_to(from.origin().lerp(to.origin(), fraction));
        body.set_velocity(from.velocity().lerp(to.velocity(), fraction));
        body.set_viewangles(from.viewangles() + turn * fraction);
        body
    }

    fn save(world: &Moment<BodyRow>, words: &mut Vec<u32>) {
        world.save(words);
    }

    fn load(_rules: &Rules, words: &[u32]) -> Result<Option<Moment<BodyRow>>, BadCells> {
        Moment::load(words).map(Some)
    }

    fn effect_name(_kind: u8) -> &'static str {
        "event"
    }
}

impl Judge for Quake3 {
    const JUDGES_AGAIN: bool = true;

    fn shots_again(rules: &Rules, session: &Session, furthest: Option<Micros>) -> Result<Vec<ShotAgain>, BadCells> {
        shots_again(rules, session, furthest)
    }
}

impl Categorize for Quake3 {}

impl Reconcile for Quake3 {
    const GRADES: &str = "exact: to the bit; near: within 0.1 units, the game's own measure of a miss";
    /// A player's own state is exact, but the positions of other players, which can block it, are sent in whole units.
    const RECORDS_ARE_ROUNDED: bool = true;

    fn on_ground(body: &BodyRow) -> bool {
        body.player_state().ground != NO_ENTITY
    }

    /// Returns `None` if the state is that of another player whom the client watches.
    fn grade(predicted: &BodyRow, authoritative: &BodyRow) -> Option<Grade> {
        let (ours, theirs) = (predicted.player_state(), authoritative.player_state());
        let is_own = predicted.is_own() && authoritative.is_own() && predicted.client() == authoritative.client();
        let grade = if (ours.origin, ours.velocity) == (theirs.origin, theirs.velocity) {
            Grade::Exact
        } else if ours.origin.distance(theirs.origin) <= NEAR {
            Grade::Near
        } else {
            Grade::Miss
        };
        is_own.then_some(grade)
    }

    fn explain(rules: &Rules, miss: &Acked<'_, BodyRow>) -> Option<(Cause, Evidence)> {
        Some(explain(rules, miss))
    }

    fn check_snapshot(bodies: &[(EntityId, BodyRow)], _extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
        match bodies.iter().find(|(_, body)| !body.is_finite()) {
            Some((entity, _)) => Err(BadCells { what: "an entity at no place".to_owned(), found: u32::from(entity.0) }),
            None => Ok(()),
        }
    }
}

/// Returns the body after a usercmd among other bodies. It returns the body unchanged if it is not a player's own, or
/// without a map.
pub(super) fn moved(
    rules: &Rules,
    entities: &[(EntityId, BodyRow)],
    own: EntityId,
    body: &BodyRow,
    input: &Input,
    met: &mut Vec<u32>,
) -> BodyRow {
    let Some(map) = rules.map.as_ref().filter(|_| body.is_own() && body.is_finite()) else { return *body };
    let (solids, triggers) = around(entities, own);
    let world = World { map, solids: &solids, triggers: &triggers };
    body.moved(&run(&world, rules.movement(), &body.player_state(), &command_of(input), met))
}

/// Converts a usercmd to the form that movement uses.
fn command_of(input: &Input) -> Command {
    let angle = |degrees: f32| libm::roundf(degrees * (65_536.0 / 360.0)) as i32 as u16;
    Command {
        server_time: input.extra as i32,
        angles: input.viewangles.to_array().map(angle),
        forward: input.forwardmove as i8 as i32,
        right: input.sidemove as i8 as i32,
        up: input.upmove as i8 as i32,
        buttons: input.buttons,
    }
}
