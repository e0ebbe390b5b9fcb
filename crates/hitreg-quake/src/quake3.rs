//! Quake III: reads the traffic between clients and servers of its engine, so that sessions of an unmodified game
//! become logs. Tested with OpenArena.
//!
//! - [`Quake3Listener`] decodes datagrams that it observes between clients and server, and produces records.
//! - [`survey`] and [`import()`] read captures of such datagrams, and demos.
//!
//! The protocol and the rules follow the public ioquake3 and OpenArena sources.

mod aim;
mod body;
mod diagnosis;
mod hits;
mod import;
mod listener;
mod movement;
mod protocol;
mod recording;
#[cfg(test)]
mod tests;

use std::convert::Infallible;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::import::check_places;
use aim::MELEE;
use body::{Quake3Input, command_of};
use diagnosis::explain;
use hitreg_engine::{Playable, replaying};
use hitreg_log::units::{EntityId, Seed};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{
    AckedPrediction, BadCells, Body, Categorize, Class, ClassId, Explanation, ImportedSessions, Judge, Moment,
    PlayerCommand, PredictionGrade, Reconcile, Scene, Simulate, Sink, SnapshotExtras, Touch, blend_angles,
};
use hitreg_netcode::pipeline::Netcode;
use hits::rejudge_shots;
use movement::{EntitySolid, MoveWorld, NO_ENTITY, PmoveSettings, PushTrigger, SolidShape, WORLD, run};
use protocol::{Gamestate, entity};

pub use crate::bsp::MapError;
pub use crate::bsp::quake3::{Quake3Map, check_maps, map_from};
pub use body::Quake3Body;
pub use import::{Overview, Quake3ImportError, RecordingKind, header, import, survey};
pub use listener::{DamageLine, ListenerCounts, Quake3Listener, ServerLog, UndecodedDatagram};
pub use protocol::{BitReadError, MessageError, UndecodedReason};
pub use recording::{CaptureError, CaptureReader, CapturedDatagram};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<Quake3>()
}

/// Quake III's engine, as OpenArena uses it.
#[derive(Clone, Copy, Debug)]
pub struct Quake3;

/// Value of an entity's `kind`: a moving part of the map (bg_public.h).
const MOVER: u32 = 4;
/// The game's threshold for a wrong prediction, in units (cg_predict.c).
const NEAR_UNITS_MAX: f32 = 0.1;

impl Netcode for Quake3 {
    type Server = hitreg_netcode::server::Server<Quake3>;
    type Client = hitreg_netcode::client::Client<Quake3>;
}

impl Simulate for Quake3 {
    const NAME: &'static str = "quake3";
    type Rules = Quake3Rules;
    type World = Moment<Quake3Body>;
    type Body = Quake3Body;
    type Input = Quake3Input;
    type Fire = Infallible;

    /// A player's own state is exact, but the positions of other players, which can block it, are sent in whole units.
    /// A usercmd has the time of the frame that was on screen before it was made (ioquake3's cl_main.c and cl_input.c).
    const IMPORTED: Option<ImportedSessions<Quake3>> = Some(ImportedSessions {
        rejudge: Some(rejudge_shots),
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
    fn collides_where_drawn(rules: &Quake3Rules, entity: EntityId) -> bool {
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
        let mut body = to.moved_to(from.position_f32().lerp(to.position_f32(), fraction).as_dvec3());
        body.set_velocity(from.velocity().lerp(to.velocity(), fraction));
        body.set_viewangles(blend_angles(from.viewangles(), to.viewangles(), fraction));
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
        } else if ours.origin.distance(theirs.origin) <= NEAR_UNITS_MAX {
            PredictionGrade::Near
        } else {
            PredictionGrade::Miss
        };
        is_own.then_some(grade)
    }

    fn explain(rules: &Quake3Rules, miss: &AckedPrediction<'_, Quake3Body>) -> Option<Explanation> {
        Some(explain(rules, miss))
    }
}

fn check_snapshot(bodies: &[(EntityId, Quake3Body)], _extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
    check_places(bodies, Quake3Body::is_finite)
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

/// Values of an entity's `kind` (bg_public.h: `entityType_t`).
const ITEM: u32 = 2;
const MISSILE: u32 = 3;
const PUSH_TRIGGER: u32 = 8;
const TELEPORT_TRIGGER: u32 = 9;

/// Value of an entity's `solid` for a map model; `modelindex` has its number.
const PART_OF_MAP: u32 = 0xff_ffff;

/// Returns everything except the player `own`.
pub(crate) fn around(entities: &[(EntityId, Quake3Body)], own: EntityId) -> (Vec<EntitySolid>, Vec<PushTrigger>) {
    let (mut solids, mut triggers) = (Vec::new(), Vec::new());
    for (id, body) in entities.iter().filter(|(id, body)| *id != own && !body.is_own()) {
        let (solid, kind) = (body.entity(entity("solid")), body.entity(entity("kind")));
        let (number, origin) = (u32::from(id.0), body.position_f32());
        let model = body.entity(entity("modelindex")) as usize;
        match kind {
            ITEM | MISSILE => {}
            PUSH_TRIGGER | TELEPORT_TRIGGER => {
                let throws = [entity("origin2.x"), entity("origin2.y"), entity("origin2.z")];
                let throws = Vec3::from_array(throws.map(|cell| f32::from_bits(body.entity(cell))));
                let throws = (kind == PUSH_TRIGGER).then_some(throws);
                triggers.push(PushTrigger { entity: number, origin, model, throws });
            }
            _ if solid == PART_OF_MAP => {
                solids.push(EntitySolid { entity: number, origin, shape: SolidShape::Model(model) })
            }
            _ if solid != 0 => {
                let (mins, maxs) = box_of(solid);
                solids.push(EntitySolid { entity: number, origin, shape: SolidShape::Body { mins, maxs } });
            }
            _ => {}
        }
    }
    (solids, triggers)
}

/// Decodes a box from one number: its sideways extent, its downward extent, and its upward extent plus 32 (sv_world.c).
fn box_of(solid: u32) -> (Vec3, Vec3) {
    let byte = |shift: u32| (solid >> shift & 255) as f32;
    let (aside, down, up) = (byte(0), byte(8), byte(16) - 32.0);
    (Vec3::new(-aside, -aside, -down), Vec3::new(aside, aside, up))
}

/// Everything that does not change during a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quake3Rules {
    /// Name of the map, without folder and extension.
    pub map_name: String,
    /// Name of the game as the server sends it: `baseoa` is OpenArena.
    pub game: String,
    /// Server frame rate, in Hz.
    pub server_hz: u16,
    /// Largest number of players.
    pub places: u16,
    /// The map, if it was given. Movement needs it.
    pub map: Option<Quake3Map>,
    /// Whether the server rewinds targets for hitscan weapons.
    pub unlagged: bool,
}

/// Numbers of the config strings with settings.
const SERVER_INFO: u16 = 0;
const SYSTEM_INFO: u16 = 1;
/// Entity numbers below this are players.
const PLAYERS_MAX: u16 = 64;
/// Bits of the setting `dmflags` (bg_public.h).
const NO_BUNNY: u32 = 128;
const FAST_WATER: u32 = 4096;

impl Quake3Rules {
    /// Returns the rules of a gamestate. Missing settings have the server program's defaults.
    pub(crate) fn of(gamestate: &Gamestate) -> Quake3Rules {
        let server = InfoString::of_server(gamestate);
        let system = InfoString::of(gamestate, SYSTEM_INFO);
        Quake3Rules {
            map_name: server.text("mapname").to_owned(),
            game: server.text("gamename").to_owned(),
            server_hz: system.number("sv_fps", 20).clamp(1, 1000) as u16,
            places: server.number("sv_maxclients", 8).clamp(1, i64::from(PLAYERS_MAX)) as u16,
            map: None,
            unlagged: server.number("g_delagHitscan", 0) != 0,
        }
    }
}

impl PmoveSettings {
    /// Returns the settings of player movement in the config strings. A server may change them during a level.
    pub(crate) fn of(gamestate: &Gamestate) -> PmoveSettings {
        let system = InfoString::of(gamestate, SYSTEM_INFO);
        let is_set = |name| system.number(name, 0) != 0;
        let dm_flags = InfoString::of_server(gamestate).number("dmflags", 0) as u32;
        PmoveSettings {
            float: is_set("pmove_float"),
            // The game's limits (cg_predict.c).
            fixed_ms: if is_set("pmove_fixed") { system.number("pmove_msec", 8).clamp(8, 33) as i32 } else { 0 },
            no_bunny: dm_flags & NO_BUNNY != 0,
            fast_water: dm_flags & FAST_WATER != 0,
        }
    }
}

/// Settings in the form `\key\value\key\value`.
#[derive(Clone, Debug)]
struct InfoString(String);

impl InfoString {
    pub(crate) fn new(text: &[u8]) -> InfoString {
        InfoString(String::from_utf8_lossy(text).into_owned())
    }

    fn of(gamestate: &Gamestate, index: u16) -> InfoString {
        InfoString::new(gamestate.strings.get(&index).map_or(&[][..], Vec::as_slice))
    }

    /// Returns the server's settings in a gamestate.
    fn of_server(gamestate: &Gamestate) -> InfoString {
        InfoString::of(gamestate, SERVER_INFO)
    }

    /// Returns the value of a setting; empty if it is absent.
    pub(crate) fn text(&self, key: &str) -> &str {
        let mut words = self.0.strip_prefix('\\').unwrap_or(&self.0).split('\\');
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if name.eq_ignore_ascii_case(key) {
                return value;
            }
        }
        ""
    }

    fn number(&self, key: &str, usual: i64) -> i64 {
        self.text(key).parse().unwrap_or(usual)
    }
}
