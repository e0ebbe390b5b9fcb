//! QuakeWorld: reads client and server demos and maps, and runs the game's player movement. hitreg can thus replay and
//! explain the predictions of a real game.
//!
//! - [`QuakeWorldDemo::parse`] and [`QuakeMap::parse`] read files into checked types. [`import()`] converts them to a log.
//! - `movement` runs one step of movement as a pure function, and whole usercmds as a server does, with moving brush
//!   models before and triggers after.
//! - [`QuakeWorld`] is the game for the client pipeline. It compares predictions with rounded records, chooses the
//!   state to continue from, and explains corrections.
//!
//! The formats and the rules of movement follow the public id, MVDSV, ezQuake and KTX sources.

mod body;
mod demo;
mod diagnosis;
mod events;
mod import;
mod movement;
mod rounding;
mod surroundings;
#[cfg(test)]
mod tests;

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use crate::import::check_places;
use body::{FIRST_MODEL, command_of};
use diagnosis::{MissedPrediction, explain, lies_still};
use events::{effect_name, events_of};
use hitreg_engine::{Playable, replaying};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{
    AckedPrediction, BadCells, Body, Categorize, Class, ClassId, Explanation, FieldSchema, ImportedSessions, Judge,
    Moment, PlayerCommand, PredictionGrade, Reconcile, Scene, Scope, Simulate, Sink, SnapshotExtras, Touch, Wall,
    blend_angles,
};
use hitreg_netcode::pipeline::Netcode;
use movement::{MoveContacts, MoveOutcome, MoveRunner, SOLIDS_MAX, Surroundings, WorldSolid};
use rounding::resume;

pub use crate::bsp::MapError;
pub use crate::bsp::quake::{LeaningFace, MissingWall, MovingKind, MovingModel, QuakeMap, Trigger, TriggerEffect};
pub use body::{QuakeWorldBody, flag};
pub use demo::{
    DemoCut, DemoEnd, DemoEvent, DemoHit, DemoLevel, EffectKind, ExecutedUsercmd, Extensions, Mover, OriginWire,
    OtherLevels, OtherPlayer, OwnState, QuakeWorldDemo, QwdError, RecordedBy, SentCommand, ServerDescription,
    ServerExtensions, ServerPacket,
};
pub use import::{
    DemoImportError, ImportOptions, ImportResult, ServerTrait, TraitFinding, UnpackError, import, played_map, unpacked,
};
pub use movement::{Dialect, QuakeWorldMoveVars, QuakeWorldUsercmd};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<QuakeWorld>()
}

/// The game QuakeWorld.
#[derive(Clone, Copy, Debug)]
pub struct QuakeWorld;

impl Netcode for QuakeWorld {
    type Server = hitreg_netcode::server::Server<QuakeWorld>;
    type Client = hitreg_netcode::client::Client<QuakeWorld>;
}

impl Simulate for QuakeWorld {
    const NAME: &'static str = "quakeworld";
    type Rules = QuakeWorldRules;
    type World = Moment<QuakeWorldBody>;
    type Body = QuakeWorldBody;
    type Input = Input;
    type Fire = Infallible;

    const IMPORTED: Option<ImportedSessions<QuakeWorld>> = Some(ImportedSessions {
        rejudge: None,
        check_snapshot,
        is_rounded: true,
        draws_at_command_time: false,
        melee: &[],
    });

    /// A recording has no client-only fields, and of a brush model little more than its position.
    fn classes() -> Vec<Class> {
        let sent_fields = || QuakeWorldBody::fields().into_iter().filter(|field| field.scope != Scope::ClientOnly);
        let of_model = |field: &FieldSchema| matches!(field.name.split('.').next(), Some("origin" | "alive" | "flags"));
        vec![
            Class::new("entity", sent_fields().collect()),
            Class::new("brush_model", sent_fields().filter(of_model).collect()),
        ]
    }

    fn class(body: &QuakeWorldBody) -> ClassId {
        ClassId(u16::from(body.has(flag::MODEL)))
    }

    fn map_name(rules: &QuakeWorldRules) -> String {
        rules.map_stem().to_owned()
    }

    fn outline(rules: &QuakeWorldRules) -> Vec<Wall> {
        rules.map.walls(entity_of_model)
    }

    /// Before any player enters, every body is dead and at the map's origin.
    fn spawn(_rules: &QuakeWorldRules, _seed: Seed, players: u16) -> Moment<QuakeWorldBody> {
        Moment::empty(players)
    }

    fn step_body(
        rules: &QuakeWorldRules,
        scene: &Scene<'_, QuakeWorldBody>,
        body: &QuakeWorldBody,
        command: &Usercmd,
        out: &mut impl Sink<Infallible>,
    ) -> QuakeWorldBody {
        let solids = surroundings::solids(&rules.map, scene.entities, &[], scene.player.entity(), body);
        let moved = runner_of(rules, body, &solids).map_or(*body, |runner| {
            let mut run = MoveOutcome::after(body.player_state(), body.viewangles.to_array());
            runner.packets(&mut run, &[command_of(&command.input)]);
            touches(&rules.map, &solids, &run.touched, out);
            body.moved(&run.state)
        });
        QuakeWorldBody { viewangles: command.input.viewangles, ..moved }
    }

    fn entities(world: &Moment<QuakeWorldBody>) -> &[(EntityId, QuakeWorldBody)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, QuakeWorld>, world: &mut Moment<QuakeWorldBody>, out: &mut impl Sink<Infallible>) {
        run.step_in_place(&mut world.entities, out);
    }

    fn blend(from: &QuakeWorldBody, to: &QuakeWorldBody, fraction: f32) -> QuakeWorldBody {
        QuakeWorldBody {
            origin: from.origin.lerp(to.origin, fraction),
            velocity: from.velocity.lerp(to.velocity, fraction),
            viewangles: blend_angles(from.viewangles, to.viewangles, fraction),
            ..*to
        }
    }

    /// Extrapolates as QuakeWorld's client does: another player's last usercmd continues for half the elapsed time, at
    /// most 255 ms. Bodies without a usercmd move in a straight line.
    fn extrapolate(rules: &QuakeWorldRules, body: &QuakeWorldBody, dt: Micros) -> QuakeWorldBody {
        let Some(last) = body.last_command() else {
            return body.moved_by(body.velocity * dt.as_s_f64() as f32);
        };
        let passed = dt + Micros::from_ms(i64::from(body.age_ms));
        let cmd = QuakeWorldUsercmd { msec: (passed.0 / 2_000).clamp(0, 255) as u8, ..last };
        let runner = runner_of(rules, body, &[]);
        runner.map_or(*body, |runner| body.moved(&runner.run(&body.player_state(), &[cmd]).state))
    }

    fn save(world: &Moment<QuakeWorldBody>, words: &mut Vec<u32>) {
        world.save(words);
    }

    fn load(_rules: &QuakeWorldRules, words: &[u32]) -> Result<Option<Moment<QuakeWorldBody>>, BadCells> {
        Moment::load(words).map(Some)
    }

    fn effect_name(kind: u8) -> &'static str {
        effect_name(kind)
    }
}

impl Judge for QuakeWorld {}

impl Categorize for QuakeWorld {}

impl Reconcile for QuakeWorld {
    const GRADES: &str = "exact: on each axis within 1/8 unit of the middle of the recorded position's rounding range, with the same transmitted velocity; near: within 0.2 units of it and 1.5 units/s";

    fn on_ground(body: &QuakeWorldBody) -> bool {
        body.on_ground
    }

    fn grade(predicted: &QuakeWorldBody, authoritative: &QuakeWorldBody) -> Option<PredictionGrade> {
        Some(rounding::grade(&predicted.player_state(), authoritative))
    }

    /// Returns the prediction, moved into the rounding range of the recorded state.
    fn resume(rules: &QuakeWorldRules, acked: &AckedPrediction<'_, QuakeWorldBody>) -> QuakeWorldBody {
        let authoritative = acked.authoritative;
        let predicted = acked.predicted;
        let grade = rounding::grade(&predicted.player_state(), authoritative);
        let solids =
            surroundings::solids(&rules.map, &acked.surroundings(), &[], acked.scene.player.entity(), authoritative);
        let world = Surroundings { map: &rules.map, solids: &solids };
        let mut state = resume(&world, &predicted.player_state(), authoritative);
        let before = acked.before.iter().find(|(entity, _)| *entity == acked.scene.player.entity());
        state.corpse |= authoritative.has(flag::LIES) && before.is_none_or(|(_, before)| !before.has(flag::LIES));
        if grade == PredictionGrade::Miss && state.dead {
            let lies = MissedPrediction::new(rules, acked).and_then(|missed| lies_still(&missed));
            state.corpse = lies.unwrap_or(state.corpse);
        }
        QuakeWorldBody { flags: authoritative.flags, viewangles: predicted.viewangles, ..authoritative.moved(&state) }
    }

    fn carry(
        rules: &QuakeWorldRules,
        scene: &Scene<'_, QuakeWorldBody>,
        before: &[(EntityId, QuakeWorldBody)],
        body: &QuakeWorldBody,
    ) -> QuakeWorldBody {
        let solids = surroundings::solids(&rules.map, scene.entities, before, scene.player.entity(), body);
        let runner = runner_of(rules, body, &solids);
        runner.map_or(*body, |runner| body.moved(&runner.start(&body.player_state()).state))
    }

    fn explain(rules: &QuakeWorldRules, miss: &AckedPrediction<'_, QuakeWorldBody>) -> Option<Explanation> {
        MissedPrediction::new(rules, miss).map(|missed| explain(&missed))
    }
}

fn check_snapshot(bodies: &[(EntityId, QuakeWorldBody)], extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
    events_of(extras)?;
    check_places(bodies, QuakeWorldBody::is_finite)
}

/// Returns movement for a body. `None` where it cannot run: without movement settings, or from an invalid position.
fn runner_of<'a>(
    rules: &'a QuakeWorldRules,
    body: &QuakeWorldBody,
    solids: &'a [WorldSolid],
) -> Option<MoveRunner<'a>> {
    let vars = rules.move_vars.get(usize::from(body.move_vars))?;
    let world = Surroundings { map: &rules.map, solids };
    body.is_finite().then_some(MoveRunner { dialect: rules.server.dialect, vars, world })
}

fn touches(map: &QuakeMap, solids: &[WorldSolid], touched: &MoveContacts, out: &mut impl Sink<Infallible>) {
    let met = |index: usize| touched.solids & (1 << index) != 0;
    for (_, solid) in solids.iter().take(SOLIDS_MAX).enumerate().filter(|(index, _)| met(*index)) {
        match *solid {
            WorldSolid::Mover { model, .. } => out.touch(Touch::Mover(EntityId(FIRST_MODEL.0 + model))),
            WorldSolid::Player { slot, .. } => out.touch(Touch::Player(EntityId(u16::from(slot)))),
            WorldSolid::Wall(_) => {}
        }
    }
    if touched.water_edge {
        out.touch(Touch::WaterEdge);
    }
    let effect = touched.trigger.and_then(|trigger| map.triggers.get(usize::from(trigger))).map(|t| t.effect);
    if matches!(effect, Some(TriggerEffect::Teleport { .. })) {
        out.touch(Touch::Teleporter);
    }
}

/// Limit of client times in seconds; microseconds of larger times would overflow.
const LATEST_TIME_S: f32 = 1e9;

/// Everything that does not change during a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuakeWorldRules {
    /// The server's version and rules.
    pub server: ServerDescription,
    /// The levels played, in order, all on one map.
    pub levels: Vec<DemoLevel>,
    /// Movement settings in the order of their use.
    pub move_vars: Vec<QuakeWorldMoveVars>,
    /// Why the recording ends.
    pub end: DemoEnd,
    /// The map of the levels.
    pub map: QuakeMap,
    /// The recording player: the slot on the first level.
    pub player: PlayerId,
    /// Client time at the start of the session, in microseconds.
    pub start_us: i64,
    /// Number to add to a usercmd's number in the demo to get the log's, which starts at 1 or later.
    pub seq_shift: u32,
}

impl QuakeWorldRules {
    /// Returns the first level's map without folder and extension, such as `dm3`; empty when the server never named it.
    pub(crate) fn map_stem(&self) -> &str {
        self.levels.first().map_or("", |level| map_stem(&level.map))
    }

    /// Converts between slots and entities, in both directions. If a later level puts the recording player into another
    /// slot, the two slots change places, so that the player stays one entity.
    fn swap_slot(&self, level: u16, slot: u8) -> u8 {
        let first = self.player.0 as u8;
        let now = self.levels.get(usize::from(level)).map_or(first, |level| level.player);
        match slot {
            slot if slot == now => first,
            slot if slot == first => now,
            slot => slot,
        }
    }

    /// Returns the session time of client time `time_s`.
    pub(crate) fn at(&self, time_s: f32) -> Micros {
        Micros(micros(time_s).saturating_sub(self.start_us))
    }

    /// Returns the log's number of a usercmd; `None` if it exceeds 32 bits.
    fn log_seq(&self, seq: i32) -> Option<CommandSeq> {
        let shifted = i64::from(seq) + i64::from(self.seq_shift);
        u32::try_from(shifted).ok().map(CommandSeq)
    }
}

/// Returns client time in whole microseconds.
fn micros(time_s: f32) -> i64 {
    libm::round(f64::from(time_s) * 1e6) as i64
}

/// Returns the entity of a brush model; `None` if it exceeds the range of entity numbers.
fn entity_of_model(model: u16) -> Option<EntityId> {
    FIRST_MODEL.0.checked_add(model).map(EntityId)
}

/// Returns a file's name without folder and extension: `dm3` for `maps/dm3.bsp`, `DM3` for `DM3.bsp.gz`.
pub fn map_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    without_ending(without_ending(name, &[".gz", ".xz"]), &[".bsp"])
}

/// Returns a demo's file name without its extension: `duel` for `duel.qwd`, `DUEL` for `DUEL.MVD.GZ`.
pub fn demo_stem(name: &str) -> &str {
    without_ending(without_ending(name, &[".gz", ".xz"]), &[".qwd", ".mvd"])
}

/// Removes one of the endings, in upper or lower case.
fn without_ending<'a>(name: &'a str, endings: &[&str]) -> &'a str {
    let stem = |ending: &&str| {
        let (stem, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
        end.eq_ignore_ascii_case(ending).then_some(stem)
    };
    endings.iter().find_map(stem).unwrap_or(name)
}
