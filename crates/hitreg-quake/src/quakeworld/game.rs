//! QuakeWorld as a game of the pipelines. Its recordings replay open loop. There is no server, so a world is only a set
//! of bodies that do not move. Demos do not record the targets of shots, so hitreg judges none.

use std::convert::Infallible;

use super::body::{FIRST_MODEL, QuakeWorldBody, command_of, flag};
use super::diagnosis::{MissedPrediction, explain, lies_still};
use super::extra::{effect_name, events_of};
use super::movement::{MOST_SOLIDS, MoveContacts, MoveRunner, QuakeWorldUsercmd, Surroundings, WorldSolid};
use super::rounding::{self, resume};
use super::rules::{QuakeWorldRules, entity_of_model};
use super::surroundings;
use crate::bsp::quake::{QuakeMap, TriggerEffect};
use hitreg_log::units::{EntityId, Micros, Seed};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{
    AckedPrediction, BadCells, Body, Categorize, Cause, Class, ClassId, Evidence, FieldSchema, ImportedSessions, Judge,
    Moment, PlayerCommand, PredictionGrade, Reconcile, Scene, Scope, Simulate, Sink, SnapshotExtras, Touch, Wall,
};
use hitreg_netcode::pipeline::Netcode;

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
        let mut run = |runner: &MoveRunner<'_>, cmd: &QuakeWorldUsercmd| {
            let run = runner.run_after(&body.player_state(), body.viewangles.to_array(), cmd);
            touches(&rules.map, &solids, &run.touched, out);
            body.moved(&run.state)
        };
        let moved = with_runner(rules, body, &solids, |runner| run(runner, &command_of(&command.input)));
        QuakeWorldBody { viewangles: command.input.viewangles, ..moved.unwrap_or(*body) }
    }

    fn entities(world: &Moment<QuakeWorldBody>) -> &[(EntityId, QuakeWorldBody)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, QuakeWorld>, world: &mut Moment<QuakeWorldBody>, out: &mut impl Sink<Infallible>) {
        run.step_in_place(&mut world.entities, out);
    }

    fn blend(from: &QuakeWorldBody, to: &QuakeWorldBody, fraction: f32) -> QuakeWorldBody {
        let turn = (to.viewangles - from.viewangles).map(|degrees| degrees - 360.0 * libm::roundf(degrees / 360.0));
        QuakeWorldBody {
            origin: from.origin.lerp(to.origin, fraction),
            velocity: from.velocity.lerp(to.velocity, fraction),
            viewangles: from.viewangles + turn * fraction,
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
        let run = |runner: &MoveRunner<'_>| body.moved(&runner.run(&body.player_state(), &[cmd]).state);
        with_runner(rules, body, &[], run).unwrap_or(*body)
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
        let carried = with_runner(rules, body, &solids, |runner| body.moved(&runner.start(&body.player_state()).state));
        carried.unwrap_or(*body)
    }

    fn explain(rules: &QuakeWorldRules, miss: &AckedPrediction<'_, QuakeWorldBody>) -> Option<(Cause, Evidence)> {
        MissedPrediction::new(rules, miss).map(|missed| explain(&missed))
    }
}

fn check_snapshot(bodies: &[(EntityId, QuakeWorldBody)], extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
    events_of(extras)?;
    match bodies.iter().find(|(_, body)| !body.is_finite()) {
        Some((entity, _)) => Err(BadCells { what: "an entity at no place".to_owned(), found: u32::from(entity.0) }),
        None => Ok(()),
    }
}

/// Runs movement on a body. `None` where it cannot run: on a level whose map the log does not hold, without movement
/// settings, or from an invalid position.
pub(super) fn with_runner<T>(
    rules: &QuakeWorldRules,
    body: &QuakeWorldBody,
    solids: &[WorldSolid],
    run: impl FnOnce(&MoveRunner<'_>) -> T,
) -> Option<T> {
    let vars = rules.move_vars.get(usize::from(body.move_vars))?;
    let world = Surroundings { map: &rules.map, solids };
    body.is_finite().then(|| run(&MoveRunner { dialect: rules.server.dialect, vars, world }))
}

fn touches(map: &QuakeMap, solids: &[WorldSolid], touched: &MoveContacts, out: &mut impl Sink<Infallible>) {
    let met = |index: usize| touched.solids & (1 << index) != 0;
    for (_, solid) in solids.iter().take(MOST_SOLIDS).enumerate().filter(|(index, _)| met(*index)) {
        match *solid {
            WorldSolid::Mover { model, .. } => out.touch(Touch::Mover(EntityId(FIRST_MODEL.0 + model))),
            WorldSolid::Player { slot, .. } => out.touch(Touch::Player(EntityId(u16::from(slot)))),
            WorldSolid::Wall(_) => {}
        }
    }
    if touched.water_edge {
        out.touch(Touch::WaterEdge);
    }
    let effect = touched.trigger.and_then(|trigger| map.triggers().get(usize::from(trigger))).map(|t| t.effect);
    if matches!(effect, Some(TriggerEffect::Teleport { .. })) {
        out.touch(Touch::Teleporter);
    }
}
