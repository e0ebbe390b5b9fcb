//! The recording of a server.

use std::sync::Mutex;

use bevy_app::{App, AppExit, FixedLast, FixedPreUpdate, Last, Plugin};
use bevy_ecs::message::Messages;
use bevy_ecs::prelude::{
    Add, Commands, EntityWorldMut, IntoScheduleConfigs, Mut, On, Query, Res, ResMut, Resource, World,
};
use hitreg_log::fields::{EntityFields, Fields};
use hitreg_log::record::{Execution, ExecutionRecord, OwnValue, Presence, PresenceRecord, Record, TickRecord};
use hitreg_log::recorder::{FinishError, PushError, Recorder, RecordingSummary, Stream};
use hitreg_log::units::{CommandSeq, PlayerId, Tick};
use hitreg_log::usercmd::{Input, Usercmd};
use lightyear::prelude::input::native::{ActionState, NativeBuffer};
use lightyear::prelude::input::server::InputSystems;
use lightyear::prelude::{ControlledBy, InterpolationDelay, LocalTimeline};

use crate::game::insert_input;
use crate::{DrawnDelay, RecordedEntity, RecordedGame, RecordedInput};

/// Records the app of a server. Add it after `ServerPlugins`.
///
/// At `AppExit` the plugin ends the log. [`HitregRecorder::end`] ends it earlier.
pub struct HitregRecorderPlugin<I> {
    game: RecordedGame<I>,
    recorder: Mutex<Option<Recorder>>,
}

impl<I: RecordedInput> HitregRecorderPlugin<I> {
    /// Returns the plugin. `recorder` has the description of [`RecordedGame::describe`].
    pub fn new(game: RecordedGame<I>, recorder: Recorder) -> HitregRecorderPlugin<I> {
        HitregRecorderPlugin { game, recorder: Mutex::new(Some(recorder)) }
    }
}

impl<I: RecordedInput> Plugin for HitregRecorderPlugin<I> {
    fn build(&self, app: &mut App) {
        insert_recorder(app, &self.recorder, false);
        app.insert_resource(ServerRecording {
            players: (0..self.game.players).map(|_| RecordedPlayer::<I>::default()).collect(),
            game: self.game.clone(),
        });
        app.add_observer(insert_inputs::<I>);
        app.add_systems(FixedPreUpdate, record_inputs::<I>.after(InputSystems::UpdateActionState));
        app.add_systems(FixedLast, record_tick::<I>);
    }
}

/// Starts the recording of an app that a plugin builds.
pub(crate) fn insert_recorder(app: &mut App, recorder: &Mutex<Option<Recorder>>, is_client: bool) {
    let recorder = recorder.lock().ok().and_then(|mut recorder| recorder.take());
    let stream = Mutex::new(recorder.as_ref().map(Recorder::stream));
    app.insert_resource(HitregRecorder { stream, recorder, error: None, now: TickRecord::default(), is_client });
    app.add_systems(Last, end_at_exit);
}

/// The recording of an app, as a resource.
#[derive(Resource)]
pub struct HitregRecorder {
    /// Never locked: a resource must be `Sync`, and a stream is not.
    stream: Mutex<Option<Stream>>,
    recorder: Option<Recorder>,
    error: Option<PushError>,
    now: TickRecord,
    /// Whether the app is a client, which may simulate a tick again.
    is_client: bool,
}

/// Why a recording is not complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A record was refused. The log lacks it.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The log cannot be written.
    #[error(transparent)]
    Finish(#[from] FinishError),
    /// The recording has ended before.
    #[error("the recording has ended")]
    Ended,
}

impl HitregRecorder {
    /// The recorder, for its counters and [`Recorder::save`]; `None` after the end.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// The tick that runs, without its hash, for records of your own.
    pub fn now(&self) -> TickRecord {
        self.now
    }

    /// Pushes a record of your own, such as a shot or damage, from a system of the fixed schedules. Replays push it into
    /// their trace. Clients ignore it, because they may simulate the tick again.
    pub fn push(&mut self, record: Record) {
        if !self.is_client {
            self.with_stream(|stream| stream.push(record));
        }
    }

    /// Pushes a row of a kind that [`RecordedGame::kind`] declares, at the tick that runs. As with
    /// [`HitregRecorder::push`], clients ignore it.
    pub fn row(&mut self, kind: usize, series: u32, values: &[OwnValue]) {
        let at = self.now.at;
        if !self.is_client {
            self.with_stream(|stream| stream.row(kind, series, at, values));
        }
    }

    /// The stream, for texts; `None` after the end.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        self.stream.get_mut().ok()?.as_mut()
    }

    /// The first record that was refused.
    pub fn error(&self) -> Option<&PushError> {
        self.error.as_ref()
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The first write error, or the first record that was refused.
    pub fn end(&mut self) -> Result<RecordingSummary, RecordError> {
        let recorder = self.recorder.take().ok_or(RecordError::Ended)?;
        self.stream = Mutex::new(None);
        let written = recorder.finish()?;
        self.error.take().map_or(Ok(written), |error| Err(error.into()))
    }

    /// Returns the resource of a replay, for records of the game's own.
    pub(crate) fn of_replay(stream: Stream) -> HitregRecorder {
        HitregRecorder {
            stream: Mutex::new(Some(stream)),
            recorder: None,
            error: None,
            now: TickRecord::default(),
            is_client: false,
        }
    }

    pub(crate) fn set_now(&mut self, now: TickRecord) {
        self.now = TickRecord { hash: None, ..now };
    }

    /// Returns the first refused record as an error.
    pub(crate) fn into_result(self) -> Result<(), PushError> {
        self.error.map_or(Ok(()), Err)
    }

    pub(crate) fn with_stream(&mut self, push: impl FnOnce(&mut Stream) -> Result<(), PushError>) {
        if let Some(Err(error)) = self.stream().map(push) {
            self.error.get_or_insert(error);
        }
    }
}

#[derive(Resource)]
struct ServerRecording<I: RecordedInput> {
    game: RecordedGame<I>,
    players: Vec<RecordedPlayer<I>>,
}

struct RecordedPlayer<I> {
    is_present: bool,
    /// The last input that ran and its usercmd, if one did.
    ran: Option<(CommandSeq, I)>,
}

impl<I> Default for RecordedPlayer<I> {
    fn default() -> RecordedPlayer<I> {
        RecordedPlayer { is_present: false, ran: None }
    }
}

fn insert_inputs<I: RecordedInput>(
    added: On<Add, RecordedEntity>,
    entities: Query<&RecordedEntity>,
    session: Res<ServerRecording<I>>,
    mut commands: Commands,
) {
    if entities.get(added.entity).is_ok_and(|number| number.0 < session.game.players) {
        commands.entity(added.entity).queue(|mut entity: EntityWorldMut| insert_input::<I>(&mut entity));
    }
}

type PlayerInput<'a, I> =
    (&'a RecordedEntity, &'a ActionState<I>, &'a mut DrawnDelay, Option<&'a NativeBuffer<I>>, Option<&'a ControlledBy>);

/// Records which players are there, and the inputs that run in this tick.
fn record_inputs<I: RecordedInput>(
    timeline: Res<LocalTimeline>,
    mut session: ResMut<ServerRecording<I>>,
    mut recorder: ResMut<HitregRecorder>,
    mut entities: Query<PlayerInput<I>>,
    links: Query<&InterpolationDelay>,
) {
    let ServerRecording { game, players } = &mut *session;
    let now = timeline.tick();
    let (tick, at, due) = (Tick(now.0), game.at(now.0), CommandSeq(now.0));
    recorder.set_now(TickRecord { tick, at, hash: None });
    for (number, player) in (0..).zip(players) {
        let id = PlayerId(number);
        let entity = entities.iter_mut().find(|(entity, ..)| entity.0 == number);
        if player.is_present != entity.is_some() {
            *player = RecordedPlayer { is_present: entity.is_some(), ran: None };
            let change = if player.is_present { Presence::Joined } else { Presence::Left };
            recorder.with_stream(|stream| stream.push(Record::Presence(id, PresenceRecord { tick, at, change })));
        }
        let Some((_, ActionState(input), mut drawn, buffer, controlled)) = entity else { continue };
        let has_arrived = buffer.is_some_and(|buffer| buffer.get(now).is_some());
        // lightyear runs the newest input in place of one that has not arrived. That input may itself be late.
        let newest =
            buffer.and_then(NativeBuffer::get_last_with_tick).filter(|(_, ActionState(newest))| newest == input);
        let newest = newest.map(|(tick, _)| CommandSeq(tick.0)).filter(|newest| *newest < due);
        let (command, how) = match (&player.ran, newest) {
            _ if has_arrived => (due, Execution::Run),
            (Some((_, ran)), _) if ran == input => (due, Execution::StoodIn),
            (None, _) if *input == I::default() => continue,
            (Some((before, _)), Some(late)) if late > *before => (late, Execution::Run),
            (None, Some(late)) => (late, Execution::Run),
            // The game changed the input.
            (Some(_) | None, _) => (due, Execution::Run),
        };
        if how == Execution::Run {
            if let Some(InterpolationDelay { delay }) = controlled.and_then(|by| links.get(by.owner).ok()) {
                drawn.ticks = f64::from(delay.tick_diff()) + f64::from(delay.overstep().to_f32());
            }
            let usercmd = usercmd(command, game.hz);
            recorder.with_stream(|stream| stream.usercmd_with(id, at, usercmd, &input_values(input, *drawn)));
            player.ran = Some((command, input.clone()));
        }
        recorder.with_stream(|stream| stream.push(Record::Executed(id, ExecutionRecord { command, tick, how })));
    }
}

/// Returns the values of the usercmd fields.
pub(crate) fn input_values(input: &impl Fields, drawn: DrawnDelay) -> Vec<OwnValue> {
    let mut values = input.values();
    values.push(drawn.ticks.into());
    values
}

/// Returns a usercmd without input.
pub(crate) fn usercmd(seq: CommandSeq, hz: u32) -> Usercmd {
    let msec = u8::try_from(1_000 / hz).unwrap_or(u8::MAX);
    Usercmd { seq, input: Input { msec, ..Input::default() }, ..Usercmd::default() }
}

fn record_tick<I: RecordedInput>(world: &mut World) {
    world.resource_scope(|world, session: Mut<ServerRecording<I>>| {
        let tick = world.resource::<LocalTimeline>().tick().0;
        let bodies = session.game.bodies(world, |player| session.players[usize::from(player)].is_present);
        let end =
            TickRecord { tick: Tick(tick), at: session.game.at(tick), hash: Some(EntityFields::hash_all(&bodies)) };
        world.resource_mut::<HitregRecorder>().with_stream(|stream| stream.tick_with_bodies(end, &bodies));
    });
}

fn end_at_exit(exits: Option<Res<Messages<AppExit>>>, mut recorder: ResMut<HitregRecorder>) {
    if exits.is_some_and(|exits| !exits.is_empty())
        && let Err(error) = recorder.end()
        && !matches!(error, RecordError::Ended)
    {
        eprintln!("the recording is not complete: {error}");
    }
}
