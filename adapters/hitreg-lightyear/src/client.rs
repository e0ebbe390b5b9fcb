//! The recording of a client.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bevy_app::{App, FixedLast, Plugin, PreUpdate};
use bevy_ecs::prelude::{IntoScheduleConfigs, Mut, On, Res, ResMut, Resource, With, World};
use hitreg_log::fields::EntityFields;
use hitreg_log::record::{CellKind, Execution, ExecutionRecord, OwnValue, Record, TickRecord};
use hitreg_log::recorder::{Description, PushError, Recorder, Stream};
use hitreg_log::units::{CommandSeq, PlayerId, Tick};
use lightyear::core::timeline::{LocalTimelineShift, Rollback, is_in_rollback};
use lightyear::prelude::input::native::{ActionState, InputMarker};
use lightyear::prelude::{
    Interpolated, InterpolationTimeline, LocalTimeline, LocalTimelineSync, NetworkTimeline, Predicted,
    PredictionManager, RollbackSystems,
};

use crate::recorder::{HitregRecorder, input_values, insert_recorder, usercmd};
use crate::{DrawnDelay, RecordedEntity, RecordedGame, RecordedInput};

/// The custom kind with one row for each rollback. The series is the player of the client.
///
/// | column | holds |
/// | --- | --- |
/// | `at_us` | time of the last tick before the rollback |
/// | `first_tick` | the first tick that was simulated again |
/// | `ticks` | number of ticks that were simulated again |
pub const ROLLBACKS: &str = "rollbacks";

/// The custom kind with one row for each field that a rollback changed, in the last tick before the rollback. The series is
/// the player of the client.
///
/// | column | holds |
/// | --- | --- |
/// | `at_us` | time of that tick |
/// | `entity` | number of the entity |
/// | `field` | name of the field |
/// | `predicted` | value before the rollback |
/// | `corrected` | value after the rollback |
pub const PREDICTION_ERRORS: &str = "prediction_errors";

/// The custom kind with one row for each tick in which the client interpolates. The series is the player of the client.
///
/// | column | holds |
/// | --- | --- |
/// | `at_us` | time of the tick |
/// | `server_tick` | the server's tick in which the client draws interpolated entities, with its fraction |
pub const DRAWN: &str = "drawn";

/// The kinds, in the order of the description. The game's own kinds come before them.
fn kinds() -> [(&'static str, Vec<(String, CellKind)>); 3] {
    use CellKind::{F64, Text, U32};
    let columns = |all: &[(&str, CellKind)]| all.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    [
        (ROLLBACKS, columns(&[("first_tick", U32), ("ticks", U32)])),
        (PREDICTION_ERRORS, columns(&[("entity", U32), ("field", Text), ("predicted", F64), ("corrected", F64)])),
        (DRAWN, columns(&[("server_tick", F64)])),
    ]
}

impl<I: RecordedInput> RecordedGame<I> {
    /// Returns the description of a client's recording: that of [`RecordedGame::describe`], with kinds for rollbacks.
    pub fn describe_client(&self) -> Description {
        kinds().into_iter().fold(self.describe(), |about, (name, columns)| about.kind(name, columns))
    }
}

/// Records the app of a client. Add it after `ClientPlugins`.
///
/// A tick enters the log when no rollback can simulate it again. Its bodies are then the predicted entities after the last
/// simulation of the tick, and the interpolated entities as the client drew them in the tick. Ticks have the server's numbers, and
/// begin when the client's timeline is synchronized and its player has an entity.
///
/// At `AppExit` the plugin ends the log, without the last ticks. [`HitregRecorder::end`] ends it earlier.
pub struct HitregClientRecorderPlugin<I> {
    game: RecordedGame<I>,
    player: u16,
    recorder: Mutex<Option<Recorder>>,
}

impl<I: RecordedInput> HitregClientRecorderPlugin<I> {
    /// Returns the plugin for the client of a player. `recorder` has the description of
    /// [`RecordedGame::describe_client`].
    pub fn new(game: RecordedGame<I>, player: u16, recorder: Recorder) -> HitregClientRecorderPlugin<I> {
        HitregClientRecorderPlugin { game, player, recorder: Mutex::new(Some(recorder)) }
    }
}

impl<I: RecordedInput> Plugin for HitregClientRecorderPlugin<I> {
    fn build(&self, app: &mut App) {
        insert_recorder(app, &self.recorder, true);
        app.insert_resource(ClientRecording {
            game: self.game.clone(),
            player: self.player,
            held: BTreeMap::new(),
            predicted: None,
            pushed: 0,
        });
        let rollback = record_rollback::<I>.after(RollbackSystems::Check).before(RollbackSystems::Rollback);
        app.add_systems(PreUpdate, rollback.run_if(is_in_rollback));
        app.add_systems(FixedLast, hold_tick::<I>);
        app.add_observer(|_: On<LocalTimelineShift>, mut session: ResMut<ClientRecording<I>>| {
            // The held ticks have numbers of another time.
            session.held.clear();
        });
    }
}

#[derive(Resource)]
struct ClientRecording<I: RecordedInput> {
    game: RecordedGame<I>,
    player: u16,
    /// The ticks that a rollback may simulate again.
    held: BTreeMap<u32, HeldTick<I>>,
    /// The last tick before the current rollback, with the bodies that were predicted for it.
    predicted: Option<(u32, Vec<EntityFields>)>,
    /// The last tick in the log.
    pushed: u32,
}

struct HeldTick<I> {
    input: I,
    predicted: Vec<EntityFields>,
    interpolated: Vec<EntityFields>,
    /// The server's tick in which the client draws interpolated entities.
    drawn: Option<f64>,
    /// First tick and number of ticks of the rollbacks after this tick.
    rollbacks: Vec<[u32; 2]>,
    errors: Vec<PredictionError>,
}

struct PredictionError {
    entity: u16,
    field: String,
    predicted: f64,
    corrected: f64,
}

fn record_rollback<I: RecordedInput>(
    timeline: Res<LocalTimeline>,
    manager: Res<PredictionManager>,
    mut session: ResMut<ClientRecording<I>>,
) {
    let now = timeline.tick().0;
    let Some(start) = manager.get_rollback_start_tick() else { return };
    session.predicted = session.held.get_mut(&now).map(|held| {
        held.rollbacks.push([start.0 + 1, now.saturating_sub(start.0)]);
        (now, held.predicted.clone())
    });
}

/// Holds the tick that was simulated, for the first time or again, and records the ticks that became final.
fn hold_tick<I: RecordedInput>(world: &mut World) {
    // Before that, ticks do not have the server's numbers.
    if !world.get_resource::<LocalTimelineSync>().is_some_and(LocalTimelineSync::is_synced) {
        return;
    }
    world.resource_scope(|world, mut session: Mut<ClientRecording<I>>| {
        let mut inputs = world.query_filtered::<(&RecordedEntity, &ActionState<I>), With<InputMarker<I>>>();
        let own = inputs.iter(world).find(|(number, _)| number.0 == session.player);
        let Some(input) = own.map(|(_, ActionState(input))| input.clone()) else { return };
        let now = world.resource::<LocalTimeline>().tick().0;
        let predicted = session.game.bodies_with::<With<Predicted>>(world, |_| true);
        if world.contains_resource::<Rollback>() {
            let errors = session.errors(now, &predicted);
            if let Some(held) = session.held.get_mut(&now) {
                held.errors.extend(errors);
                (held.input, held.predicted) = (input, predicted);
            }
            return;
        }
        let interpolated = session.game.bodies_with::<With<Interpolated>>(world, |_| true);
        let timeline = world.get_resource::<InterpolationTimeline>().filter(|timeline| timeline.is_synced());
        let drawn = timeline.map(|timeline| timeline.now());
        let drawn = drawn.map(|drawn| f64::from(drawn.tick().0) + f64::from(drawn.overstep().to_f32()));
        let (rollbacks, errors) = (Vec::new(), Vec::new());
        session.held.insert(now, HeldTick { input, predicted, interpolated, drawn, rollbacks, errors });
        let longest = world.get_resource::<PredictionManager>().map_or(0, |all| all.rollback_policy.max_rollback_ticks);
        let first_held = now.saturating_sub(longest.into());
        let mut recorder = world.resource_mut::<HitregRecorder>();
        while let Some(first) = session.held.first_entry().filter(|first| *first.key() < first_held) {
            let (tick, held) = first.remove_entry();
            if tick > session.pushed {
                session.pushed = tick;
                recorder.with_stream(|stream| session.push(stream, tick, held));
            }
        }
    });
}

impl<I: RecordedInput> ClientRecording<I> {
    /// Returns what the rollback that ends in this tick changed.
    fn errors(&mut self, tick: u32, corrected: &[EntityFields]) -> Vec<PredictionError> {
        let Some((_, predicted)) = self.predicted.take_if(|(last, _)| *last == tick) else { return Vec::new() };
        let mut errors = Vec::new();
        for before in &predicted {
            let same = |after: &&EntityFields| (after.entity, after.class) == (before.entity, before.class);
            let Some(after) = corrected.iter().find(same) else { continue };
            let values = before.values.iter().zip(&after.values).zip(self.game.field_names(before.class));
            errors.extend(values.filter(|((before, after), _)| before != after).map(
                |((predicted, corrected), field)| {
                    let (predicted, corrected) = (number(*predicted), number(*corrected));
                    PredictionError { entity: before.entity, field, predicted, corrected }
                },
            ));
        }
        errors
    }

    fn push(&self, stream: &mut Stream, tick: u32, held: HeldTick<I>) -> Result<(), PushError> {
        let (at, player, command) = (self.game.at(tick), PlayerId(self.player), CommandSeq(tick));
        let (series, first_kind) = (self.player.into(), self.game.own_kinds());
        let drawn = DrawnDelay { ticks: held.drawn.map_or(0.0, |drawn| f64::from(tick) - drawn) };
        stream.usercmd_with(player, at, usercmd(command, self.game.hz), &input_values(&held.input, drawn))?;
        let done = ExecutionRecord { command, tick: Tick(tick), how: Execution::Run };
        stream.push(Record::Executed(player, done))?;
        for rollback in held.rollbacks {
            stream.row(first_kind, series, at, &rollback.map(OwnValue::from))?;
        }
        for error in held.errors {
            let field = stream.text(&error.field)?.into();
            let row = [u32::from(error.entity).into(), field, error.predicted.into(), error.corrected.into()];
            stream.row(first_kind + 1, series, at, &row)?;
        }
        if let Some(drawn) = held.drawn {
            stream.row(first_kind + 2, series, at, &[drawn.into()])?;
        }
        let mut bodies = [held.predicted, held.interpolated].concat();
        bodies.sort_by_key(|body| body.entity);
        stream.tick_with_bodies(TickRecord { tick: Tick(tick), at, hash: None }, &bodies)
    }
}

fn number(value: OwnValue) -> f64 {
    match value {
        OwnValue::Number(number) => number as f64,
        OwnValue::Unsigned(number) => number as f64,
        OwnValue::Float(float) => float.into(),
        OwnValue::Double(double) => double,
        OwnValue::Text(code) => code.0 as f64,
    }
}
