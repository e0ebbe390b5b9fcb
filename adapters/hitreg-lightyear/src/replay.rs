//! The replay of a log: a build.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use bevy_app::{App, FixedMain, PluginsState, PostStartup, PreStartup, Startup};
use bevy_ecs::entity::Entity;
use bevy_ecs::world::World;
use bevy_time::{Fixed, Time};
use hitreg_log::fields::{EntityFields, FieldValue, InputReader};
use hitreg_log::record::{CellKind, TickRecord, usercmd_fields};
use hitreg_log::recorder::{Playback, PlaybackError, PlaybackStep};
use lightyear::core::plugin::CorePlugins;
use lightyear::prelude::LocalTimeline;
use lightyear::prelude::input::native::ActionState;

use crate::game::insert_input;
use crate::{DRAWN_DELAY, DrawnDelay, HitregRecorder, RecordedEntity, RecordedGame, RecordedInput};

/// A build that replays logs of a game: it runs the fixed schedules of an app, without a network and without waiting.
pub struct HitregReplay<I, J> {
    game: RecordedGame<I>,
    join: J,
}

impl<I: RecordedInput, J: FnMut(&mut World, u16) -> Entity> HitregReplay<I, J> {
    /// Returns a build. `join` spawns the entity of a player who joins, with the components that it has on the server; the
    /// replay adds [`RecordedEntity`] and the input.
    pub fn new(game: RecordedGame<I>, join: J) -> HitregReplay<I, J> {
        HitregReplay { game, join }
    }

    /// Replays the log that the arguments name: `replay LOG -o TRACE`, and any number of `--set KEY=VALUE`. `args` does not
    /// include the program's name. `new` returns the app with the simulation; [`Playback::setting`] has the settings.
    ///
    /// The app runs its startup schedules, then `FixedMain` once for each tick. `Time` and `LocalTimeline` advance as on
    /// the server.
    ///
    /// # Errors
    /// When the arguments are others, the log cannot be read, is of another game or is a client's, or the trace cannot be
    /// written.
    pub fn run(
        self,
        args: impl IntoIterator<Item = OsString>,
        new: impl FnOnce(&Playback) -> App,
    ) -> Result<(), PlaybackError> {
        let HitregReplay { game, mut join } = self;
        let mut play = Playback::from_args(args, &game.name)?;
        let header = &play.session().header;
        let mut about = game.describe_game().seed(header.seed.0).map(header.map.clone(), header.rules.to_vec());
        let own = header.usercmd.iter().skip(usercmd_fields().len()).cloned();
        about = own.fold(about, |about, field| about.usercmd_field(field));
        about = header.settings.iter().fold(about, |about, (key, value)| about.setting(key, value));
        let reader = InputReader::new(&header.usercmd);
        let mut app = new(&play);
        start(&mut app, Duration::from_secs(1) / game.hz);
        let world = app.world_mut();
        let stream = play.begin(about)?;
        world.insert_resource(HitregRecorder::of_replay(stream));
        let mut players = BTreeMap::new();
        let mut spawn = |world: &mut World, player: u16| {
            let entity = join(world, player);
            let mut entity = world.entity_mut(entity);
            entity.insert(RecordedEntity(player));
            insert_input::<I>(&mut entity);
            entity.id()
        };
        loop {
            let mut recorder = world.resource_mut::<HitregRecorder>();
            let step = recorder.stream().map_or(Ok(None), |stream| play.next(stream)).map_err(PlaybackError::from)?;
            recorder.set_now(play.now());
            let Some(step) = step else { break };
            match step {
                PlaybackStep::Restore(state) => {
                    let body = EntityFields::of_state(play.session(), state);
                    if body.entity >= game.players {
                        return Err(PlaybackError::NotRestored { entity: body.entity });
                    }
                    let entity = *players.entry(body.entity).or_insert_with(|| spawn(world, body.entity));
                    game.restore(&mut world.entity_mut(entity), &body);
                }
                PlaybackStep::Join(player) => {
                    players.entry(player.0).or_insert_with(|| spawn(world, player.0));
                }
                PlaybackStep::Leave(player) => {
                    players.remove(&player.0).map(|entity| world.despawn(entity));
                }
                PlaybackStep::Input { player, frame, .. } => {
                    let command = &play.session().players[usize::from(player.0)].frames[frame].command;
                    let tick = play.now().tick;
                    let entity = players.get(&player.0).ok_or(PlaybackError::NotJoined { player, tick })?;
                    // The simulation of this build may have despawned the entity.
                    if let Ok(mut entity) = world.get_entity_mut(*entity) {
                        let drawn = reader.value(command, DRAWN_DELAY, CellKind::F64).map_or(0.0, f64::from_own);
                        entity.insert((ActionState::<I>(reader.read(command)), DrawnDelay { ticks: drawn }));
                    }
                }
                PlaybackStep::Tick => {
                    run_tick(world, play.now().tick.0);
                    let bodies = game.bodies(world, |player| players.contains_key(&player));
                    let end = TickRecord { hash: Some(EntityFields::hash_all(&bodies)), ..play.now() };
                    let mut recorder = world.resource_mut::<HitregRecorder>();
                    recorder.with_stream(|stream| stream.tick_with_bodies(end, &bodies));
                }
                _ => {}
            }
        }
        let recorder = world.remove_resource::<HitregRecorder>();
        recorder.map_or(Ok(()), HitregRecorder::into_result).map_err(PlaybackError::from)?;
        play.finish()
    }
}

/// Makes the app ready for its first tick.
fn start(app: &mut App, tick_duration: Duration) {
    if !app.world().contains_resource::<LocalTimeline>() {
        app.add_plugins(CorePlugins { tick_duration });
    }
    if app.plugins_state() != PluginsState::Cleaned {
        app.finish();
        app.cleanup();
    }
    let world = app.world_mut();
    // An app without startup systems has no such schedules.
    let _ = world.try_run_schedule(PreStartup);
    let _ = world.try_run_schedule(Startup);
    let _ = world.try_run_schedule(PostStartup);
}

/// Runs the fixed schedules of one tick.
fn run_tick(world: &mut World, tick: u32) {
    let mut timeline = world.resource_mut::<LocalTimeline>();
    let skipped = tick.saturating_sub(1).saturating_sub(timeline.tick().0);
    timeline.apply_delta(skipped.cast_signed());
    let mut fixed = world.resource_mut::<Time<Fixed>>();
    let timestep = fixed.timestep();
    fixed.advance_by(timestep * skipped);
    fixed.advance_by(timestep);
    *world.resource_mut::<Time>() = world.resource::<Time<Fixed>>().as_generic();
    world.run_schedule(FixedMain);
}
