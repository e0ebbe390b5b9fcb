//! Sessions of lightyear over UDP and scripted ones: what the recorder writes, and what replays of it give.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bevy::prelude::*;
use bevy::time::TimeUpdateStrategy;
use hitreg_lightyear::hitreg_log::log::{read_session, read_trace};
use hitreg_lightyear::hitreg_log::record::{
    CellKind, Execution, HitResult, NumberForm, Presence, Record, Session, ShotRecord, StateKey, UnknownColumn,
};
use hitreg_lightyear::hitreg_log::recorder::{PlaybackError, Recorder, RecorderOptions};
use hitreg_lightyear::hitreg_log::trace::Trace;
use hitreg_lightyear::hitreg_log::trace::schema::{shots, ticks};
use hitreg_lightyear::hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_lightyear::{
    Components, DRAWN, DrawnDelay, HitregRecorder, HitregRecorderPlugin, HitregReplay, PREDICTION_ERRORS, ROLLBACKS,
    RecordError, RecordedEntity, RecordedGame,
};
use lightyear::core::plugin::CorePlugins;
use lightyear::core::time::PositiveTickDelta;
use lightyear::prelude::input::native::{ActionState, NativeBuffer};
use lightyear::prelude::{
    ControlledBy, InterpolationDelay, Lifetime, LinkConditionerConfig, LocalTimeline, Predicted, RecvLinkConditioner,
    is_in_rollback,
};

#[path = "../examples/sleds_bug.rs"]
#[expect(dead_code, reason = "whole programs, of which the tests use the apps")]
mod sleds_bug;
use sleds_bug::simulation_with_bug;
use sleds_bug::sleds::{DRAG, HZ, Pad, Sled, client, join, pad, recorded, server, simulation};

const TICKS: u32 = 400;
/// All clients have joined by this tick.
const JOINED: u32 = 60;
/// The oldest input that lightyear repeats. A pad changes every 9 ticks, so this is one of the last three inputs.
const LATE_TICKS_MAX: u32 = 18;

fn session(path: &Path) -> Session {
    read_session(&std::fs::read(path).unwrap()[..]).unwrap()
}

/// Replays a log with the app that `new` makes for the drag.
fn replay(log: &Path, new: fn(&mut App, &str)) -> Result<Trace, PlaybackError> {
    let to = log.with_extension("hittrace");
    let args = ["replay".into(), log.into(), OsString::from("-o"), to.clone().into()];
    let play = HitregReplay::new(recorded(), join);
    play.run(args, |play| {
        let mut app = App::new();
        new(&mut app, play.setting(DRAG).unwrap());
        app
    })?;
    Ok(read_trace(&std::fs::read(to).unwrap()[..]).unwrap())
}

fn replayed(log: &Path, new: fn(&mut App, &str)) -> Trace {
    replay(log, new).unwrap()
}

fn hashes(session: &Session) -> Vec<u64> {
    session.ticks.iter().filter_map(|tick| tick.hash).collect()
}

fn assert_replays(log: &Path) {
    let recorded = session(log);
    let hashes = hashes(&recorded);
    assert_eq!(hashes.len(), recorded.ticks.len());
    assert_eq!(ticks::Columns::of(&replayed(log, simulation)).hash, hashes);
}

/// A prediction that the server corrects.
fn push_predicted_sled(now: Res<LocalTimeline>, mut sleds: Query<&mut Sled, With<Predicted>>) {
    if now.tick().0 == 200 {
        sleds.iter_mut().for_each(|mut sled| sled.x += 0.5);
    }
}

/// Runs a server and two clients that exchange datagrams with delay, jitter and loss, until the server has simulated
/// `TICKS` ticks. Returns the time of the longest update of all apps after the clients have joined.
fn play(log: &Path) -> Duration {
    #[expect(clippy::disallowed_types, reason = "the tests exchange datagrams")]
    let port = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap().port();
    let conditioner = || {
        let config = LinkConditionerConfig::default().with_incoming_latency(Duration::from_millis(30));
        RecvLinkConditioner::new(config.with_incoming_jitter(Duration::from_millis(10)).with_fixed_loss(0.05))
    };
    let mut server = server(port, log, Some(conditioner()));
    let mut clients = [0, 1].map(|player: u16| {
        let log = log.with_extension(format!("p{player}.hitlog"));
        client(player, port, &log, Some(conditioner()))
    });
    clients[0].add_systems(FixedUpdate, push_predicted_sled.run_if(not(is_in_rollback)));
    // Shared systems push records of their own, and clients ignore them.
    let push_row = |mut recorder: ResMut<HitregRecorder>| recorder.row(99, 0, &[]);
    clients[1].add_systems(FixedUpdate, push_row);
    for app in clients.iter_mut().chain([&mut server]) {
        app.finish();
        app.cleanup();
    }
    #[expect(clippy::disallowed_methods, reason = "the session runs in real time")]
    let now = Instant::now;
    let (begin, mut longest) = (now(), Duration::ZERO);
    while server.world().resource::<LocalTimeline>().tick().0 < TICKS {
        assert!(begin.elapsed() < Duration::from_secs(30), "the server simulates too slowly");
        let begin = now();
        server.update();
        clients.iter_mut().for_each(App::update);
        std::thread::sleep(Duration::from_millis(2));
        if server.world().resource::<LocalTimeline>().tick().0 >= JOINED {
            longest = longest.max(begin.elapsed());
        }
    }
    for app in clients.iter_mut().chain([&mut server]) {
        let mut recorder = app.world_mut().resource_mut::<HitregRecorder>();
        let written = recorder.end().unwrap();
        assert_eq!((written.lost_records, written.dropped_chunks, written.late_records), (0, 0, 0));
        assert!(matches!(recorder.end(), Err(RecordError::Ended)));
    }
    longest
}

/// Returns a function that runs hitreg in a folder, and returns its exit code and output.
fn hitreg(folder: &Path) -> Option<impl Fn(&[&str]) -> (i32, String)> {
    #[expect(clippy::disallowed_methods, reason = "tests are not simulations")]
    let hitreg = std::env::var_os("HITREG").filter(|path| !path.is_empty())?;
    let folder = folder.to_owned();
    Some(move |args: &[&str]| {
        let output = Command::new(&hitreg).current_dir(&folder).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), text)
    })
}

fn example(name: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    let examples: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples");
    examples.join(name).into_os_string().into_string().unwrap()
}

#[test]
fn a_server_with_two_clients_records_a_session_in_which_a_planted_bug_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("sleds.hitlog");
    let longest = play(&log);

    let recorded = session(&log);
    assert_eq!(recorded.ticks[59].at, Micros(1_000_000));
    for (player, records) in (0..).zip(&recorded.players) {
        let [joined] = &records.presence[..] else { panic!("{:?}", records.presence) };
        assert_eq!(joined.change, Presence::Joined);
        let ran = records.executed.iter().filter(|done| done.how == Execution::Run).count();
        assert!(ran > 100, "player {player}: {ran} inputs of {TICKS} ticks");
        // The first inputs are those of a pad that no client has moved yet. If a client sends no message with a tick in
        // time, lightyear repeats an earlier input.
        let mut from_client = 0;
        for frame in &records.frames[20..] {
            let cells_of = |tick: u32| {
                let Pad { thrust, brake } = pad(player, tick);
                [thrust as i32 as u32, brake.into()]
            };
            let (tick, mut stored) = (frame.command.seq.0, [0; 2]);
            frame.command.input.own.write(&mut stored);
            from_client += usize::from(stored == cells_of(tick));
            let is_recent = (tick.saturating_sub(LATE_TICKS_MAX)..=tick).any(|made| stored == cells_of(made));
            assert!(is_recent || stored == [0, 0], "player {player}, tick {tick}: {stored:?}");
        }
        assert!(from_client > 100, "player {player}: {from_client} inputs as the client made them");
    }
    assert_replays(&log);

    // The first tick in which the bug acts: player 0 brakes, and its sled moves.
    let moves = |tick: u32| {
        let mut states = recorded.states.keys().iter().zip(0..);
        let state = states.find(|(key, _)| key.tick.0 == tick && key.entity.0 == 0);
        state.is_some_and(|(_, state)| f32::from_bits(recorded.states.cells_of(state)[1]) != 0.0)
    };
    let records = &recorded.players[0];
    let brakes_of = |command: CommandSeq| {
        let frame = records.frames.iter().find(|frame| frame.command.seq == command);
        frame.is_some_and(|frame| frame.command.input.own.stored().get(1) == Some(&1))
    };
    let mut brakes = false;
    let mut braking = records.executed.iter().filter_map(|done| {
        // An input acts until the next one runs.
        brakes = if done.how == Execution::Run { brakes_of(done.command) } else { brakes };
        brakes.then_some(done.tick.0)
    });
    let first = braking.find(|tick| moves(tick - 1)).unwrap();
    let (good, bad) = (hashes(&recorded), replayed(&log, simulation_with_bug));
    let different = good.iter().zip(ticks::Columns::of(&bad).hash).position(|(good, bad)| good != bad);
    let index = recorded.ticks.iter().position(|tick| tick.tick.0 == first);
    assert_eq!(different, index);

    for player in [0, 1] {
        let refused = replay(&log.with_extension(format!("p{player}.hitlog")), simulation).unwrap_err();
        assert!(matches!(refused, PlaybackError::NotJoined { player: PlayerId(of), .. } if of == player), "{refused}");
        assert_eq!(refused.exit_code(), 125);
    }
    // After a longer pause, predictions and the delays of drawing are other ones.
    match longest < Duration::from_millis(50) {
        true => check_clients(&log, &recorded),
        false => {
            eprintln!("skipped: rollbacks of the clients, because the machine is busy: an update took {longest:?}")
        }
    }

    let Some(hitreg) = hitreg(folder.path()) else { return };
    let (sleds, sleds_bug) = (example("sleds"), example("sleds_bug"));
    let (code, text) = hitreg(&["verify", "--build", &sleds, "sleds.hitlog"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = hitreg(&["check", &sleds, "sleds.hitlog"]);
    assert_eq!(code, 0, "{text}");
    let builds = ["--a", &*sleds, "--b", &*sleds_bug];
    let (code, text) = hitreg(&[&["diff", "sleds.hitlog"][..], &builds].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(&format!("tick {first}")) && text.contains("entity 0, origin.x"), "{text}");
    let (_, text) = hitreg(&[&["bisect", "ticks", "sleds.hitlog"][..], &builds].concat());
    assert!(text.contains(&format!("tick {first}")), "{text}");
}

/// A custom kind of a log: its columns as numbers.
fn columns<const N: usize>(session: &Session, kind: &str) -> [Vec<f64>; N] {
    let records = session.unknown.iter().find(|records| records.kind == kind).unwrap();
    let number = |column: &UnknownColumn, value: i64| match column.form {
        NumberForm::F64 => f64::from_bits(value as u64),
        _ => value as f64,
    };
    let all = records.columns.iter().map(|column| column.values.iter().map(|value| number(column, *value)).collect());
    all.collect::<Vec<_>>().try_into().unwrap()
}

fn check_clients(log: &Path, server: &Session) {
    let of_server: BTreeMap<(u32, u16), usize> =
        server.states.keys().iter().zip(0..).map(|(key, state)| ((key.tick.0, key.entity.0), state)).collect();
    for player in [0, 1] {
        let client = session(&log.with_extension(format!("p{player}.hitlog")));
        let ticks = client.ticks.len();
        assert!(ticks > 200 && client.ticks.windows(2).all(|pair| pair[1].tick > pair[0].tick), "{ticks} ticks");
        assert_eq!(client.players[usize::from(player)].frames.len(), ticks);
        // In the end, the client predicted nearly every state as the server simulated it.
        let own = client.states.keys().iter().zip(0..).filter(|(key, _)| key.entity.0 == player);
        let is_same = |(key, state): &(&StateKey, usize)| {
            let there = of_server.get(&(key.tick.0, player));
            there.is_some_and(|there| server.states.cells_of(*there) == client.states.cells_of(*state))
        };
        let (same, all) = (own.clone().filter(is_same).count(), own.count());
        assert!(all == ticks && same * 10 > all * 8, "player {player}: {same} of {all} states in {ticks} ticks");

        let [at, drawn] = columns(&client, DRAWN);
        // The server knows what the client draws, to nearly a tick.
        let drawn_at: BTreeMap<u32, f64> =
            at.iter().map(|at| (at * f64::from(HZ) / 1e6).ceil() as u32).zip(drawn.clone()).collect();
        let delays = server.players[usize::from(player)].frames.iter().filter_map(|frame| {
            let (seq, place) = (frame.command.seq.0, 2..4);
            let delay = f64::from_bits(frame.command.input.own.number(CellKind::F64, place) as u64);
            Some(f64::from(seq) - delay - drawn_at.get(&seq)?)
        });
        let (near, far): (Vec<f64>, Vec<f64>) = delays.partition(|error| error.abs() < 3.0);
        assert!(near.len() > 4 * far.len(), "{near:?}, {far:?}");

        assert!(drawn.len() > 200);
        let now = at.iter().map(|at| (at * f64::from(HZ) / 1e6).ceil());
        let behind = now.zip(drawn).map(|(now, drawn)| now - drawn).filter(|behind| (0.0..40.0).contains(behind));
        assert!(behind.count() > ticks * 9 / 10);
    }

    let client = session(&log.with_extension("p0.hitlog"));
    let [at, first, again] = columns(&client, ROLLBACKS);
    // The first rollback after the push: it begins up to 20 ticks later, or before the push if an input was late.
    let last = |row: usize| first[row] + again[row] - 1.0;
    let corrected = (0..first.len()).find(|row| last(*row) >= 200.0).unwrap();
    assert!(first[corrected] <= 220.0, "{first:?}");
    assert!((1.0..=20.0).contains(&again[corrected]), "{again:?}");
    assert_eq!(at[corrected], (last(corrected) * 1e6 / f64::from(HZ)).floor());
    let [errors_at, entities, fields, predicted, right] = columns::<5>(&client, PREDICTION_ERRORS);
    let x = client.texts.iter().find(|(_, name)| *name == "origin.x").unwrap().0.0 as i64 as f64;
    let error = (0..fields.len()).find(|row| errors_at[*row] == at[corrected] && fields[*row] == x).unwrap();
    assert_eq!(entities[error], 0.0);
    let moved = predicted[error] - right[error];
    assert!((0.3..0.7).contains(&moved.abs()), "{moved}");
}

/// An app without a network whose inputs a test sets: the server's fixed schedules, with the recorder.
fn scripted(game: RecordedGame<Pad>, recorder: Recorder) -> App {
    let mut app = App::new();
    app.add_plugins(CorePlugins { tick_duration: Duration::from_secs(1) / HZ });
    app.insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs(1) / HZ));
    app.add_plugins(HitregRecorderPlugin::new(game, recorder));
    simulation(&mut app, "0.98");
    app.add_systems(FixedPreUpdate, apply);
    app.finish();
    app.cleanup();
    app
}

/// What lightyear's `update_action_state` does.
fn apply(now: Res<LocalTimeline>, mut pads: Query<(&mut ActionState<Pad>, &NativeBuffer<Pad>)>) {
    for (mut state, buffer) in &mut pads {
        if let Some(pad) = buffer.predict(now.tick(), Duration::from_secs(1) / HZ) {
            *state = pad;
        }
    }
}

fn file(path: &Path, game: &RecordedGame<Pad>) -> Recorder {
    Recorder::create(path, game.describe().setting(DRAG, "0.98"), RecorderOptions::patient()).unwrap()
}

fn run(app: &mut App, ticks: u32) {
    let end = app.world().resource::<LocalTimeline>().tick().0 + ticks;
    while app.world().resource::<LocalTimeline>().tick().0 < end {
        app.update();
    }
}

#[test]
fn inputs_that_did_not_arrive_and_players_who_leave_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("script.hitlog");
    let mut app = scripted(recorded(), file(&log, &recorded()));
    run(&mut app, 5);
    let world = app.world_mut();
    let first = join(world, 0);
    world.entity_mut(first).insert(RecordedEntity(0));
    run(&mut app, 3);
    let mut buffer = NativeBuffer::<Pad>::default();
    let now = app.world().resource::<LocalTimeline>().tick();
    let thrust = |thrust| ActionState(Pad { thrust, brake: false });
    buffer.set(now + 1, thrust(1));
    buffer.set(now + 2, thrust(-1));
    buffer.set_empty(now + 3);
    buffer.set(now + 4, thrust(1));
    app.world_mut().entity_mut(first).insert(buffer);
    run(&mut app, 6);
    app.world_mut().despawn(first);
    run(&mut app, 4);
    let world = app.world_mut();
    let again = join(world, 0);
    world.entity_mut(again).insert(RecordedEntity(0));
    run(&mut app, 2);
    // The game ends.
    app.world_mut().write_message(AppExit::Success);
    app.update();

    let recorded = session(&log);
    let records = &recorded.players[0];
    let presence: Vec<_> = records.presence.iter().map(|presence| (presence.tick.0, presence.change)).collect();
    assert_eq!(presence, [(6, Presence::Joined), (15, Presence::Left), (19, Presence::Joined)]);
    let executed: Vec<_> = records.executed.iter().map(|done| (done.tick.0, done.how)).collect();
    let (run, stood_in) = (Execution::Run, Execution::StoodIn);
    assert_eq!(executed, [(9, run), (10, run), (11, stood_in), (12, run), (13, stood_in), (14, stood_in)]);
    assert_eq!(records.frames.iter().map(|frame| frame.command.seq.0).collect::<Vec<_>>(), [9, 10, 12]);
    let of_players: BTreeMap<u32, usize> = recorded.states.keys().iter().fold(BTreeMap::new(), |mut all, key| {
        *all.entry(key.tick.0).or_default() += 1;
        all
    });
    assert_eq!(
        of_players.into_iter().collect::<Vec<_>>(),
        (6..15).chain(19..22).map(|tick| (tick, 1)).collect::<Vec<_>>()
    );
    assert_replays(&log);
}

#[test]
fn a_late_input_is_recorded_with_its_own_tick() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("late.hitlog");
    let mut app = scripted(recorded(), file(&log, &recorded()));
    let world = app.world_mut();
    let sled = join(world, 0);
    world.entity_mut(sled).insert((RecordedEntity(0), NativeBuffer::<Pad>::default()));
    // Each input arrives before the tick of its row. The server runs the newest one until the next arrives.
    for (tick, arrives) in [(1, Some((1, 1))), (2, None), (3, None), (4, Some((2, -1))), (5, Some((5, 1))), (6, None)] {
        if let Some((of, thrust)) = arrives {
            let mut buffer = app.world_mut().get_mut::<NativeBuffer<Pad>>(sled).unwrap();
            buffer.set(lightyear::prelude::Tick(of), ActionState(Pad { thrust, brake: false }));
        }
        run(&mut app, 1);
        assert_eq!(app.world().resource::<LocalTimeline>().tick().0, tick);
    }
    app.world_mut().resource_mut::<HitregRecorder>().end().unwrap();

    let recorded = session(&log);
    let records = &recorded.players[0];
    let executed: Vec<_> =
        records.executed.iter().map(|done| (done.tick.0, done.command.0, done.how == Execution::Run)).collect();
    assert_eq!(executed, [(1, 1, true), (2, 2, false), (3, 3, false), (4, 2, true), (5, 5, true), (6, 6, false)]);
    let made = records.frames.iter().map(|frame| (frame.command.seq.0, frame.command.input.own.stored()[0] as i32));
    assert_eq!(made.collect::<Vec<_>>(), [(1, 1), (2, -1), (5, 1)]);
    assert_replays(&log);
}

#[derive(Component)]
struct Shell {
    x: f64,
}
hitreg_lightyear::fields!(Shell { x: f64 as Position "origin.x" });

#[derive(Component)]
struct Fuse {
    ticks: u8,
}
hitreg_lightyear::fields!(Fuse { ticks: u8 });

/// The game with shells, which are entities of the simulation.
fn with_shells() -> RecordedGame<Pad> {
    recorded().class("shell", Components::of::<Shell>().and::<Fuse>())
}

fn fire(now: Res<LocalTimeline>, mut shells: Query<(Entity, &mut Shell, &mut Fuse)>, mut commands: Commands) {
    for (entity, mut shell, mut fuse) in &mut shells {
        shell.x += 0.5;
        fuse.ticks -= 1;
        if fuse.ticks == 0 {
            commands.entity(entity).despawn();
        }
    }
    let shot = now.tick().0 / 10;
    if now.tick().0.is_multiple_of(10) {
        commands.spawn((Shell { x: f64::from(shot) }, Fuse { ticks: 15 }, RecordedEntity(2 + shot as u16)));
    }
}

#[test]
fn entities_of_the_simulation_are_recorded_with_all_their_components() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("shells.hitlog");
    let mut app = scripted(with_shells(), file(&log, &with_shells()));
    app.add_systems(FixedUpdate, fire);
    run(&mut app, 60);
    app.world_mut().resource_mut::<HitregRecorder>().end().unwrap();
    let recorded = session(&log);
    let shells = recorded.states.keys().iter().filter(|key| key.class.0 == 1 && key.entity.0 == 3);
    assert_eq!(shells.map(|key| key.tick.0).collect::<Vec<_>>(), (10..25).collect::<Vec<_>>());

    let to = folder.path().join("shells.hittrace");
    let args = ["replay".into(), log.into(), OsString::from("-o"), to.clone().into()];
    let new_app = || {
        let mut app = App::new();
        simulation(&mut app, "0.98");
        app.add_systems(FixedUpdate, fire);
        app
    };
    HitregReplay::new(with_shells(), join).run(args, |_| new_app()).unwrap();
    let trace = read_trace(&std::fs::read(to).unwrap()[..]).unwrap();
    assert_eq!(ticks::Columns::of(&trace).hash, hashes(&recorded));
}

/// A shot at sled 1, where the shooter saw it: a system with lag compensation.
fn shoot(
    mut past: Local<BTreeMap<u32, f32>>,
    timeline: Res<LocalTimeline>,
    sleds: Query<(&RecordedEntity, &Sled, &ActionState<Pad>, &DrawnDelay)>,
    mut recorder: ResMut<HitregRecorder>,
) {
    let now = timeline.tick().0;
    for (number, sled, pad, drawn) in &sleds {
        if number.0 == 1 {
            past.insert(now, sled.x);
        } else if pad.brake {
            let (before, part) = drawn.interpolation_delay().tick_and_overstep(timeline.tick());
            assert!((f64::from(before.0) + f64::from(part) + drawn.ticks - f64::from(now)).abs() < 1e-4);
            let seen = past.get(&before.0).copied().unwrap_or_default();
            let tick = recorder.now();
            assert_eq!((tick.tick.0, tick.hash), (now, None));
            let is_hit = seen as i32 % 2 == 0;
            let shot = ShotRecord {
                command: CommandSeq(now),
                at: tick.at,
                reason: if is_hit { HitResult::Hit } else { HitResult::Missed },
                target: is_hit.then_some(EntityId(1)),
                rewound: Micros((drawn.ticks * 1e6) as i64 / i64::from(HZ)),
                ..ShotRecord::default()
            };
            recorder.push(Record::Judged(PlayerId(0), shot));
            recorder.row(0, 0, &[seen.into()]);
        }
    }
}

#[test]
fn shots_with_lag_compensation_are_recorded_and_replay_with_the_same_delays() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("shots.hitlog");
    let game = || recorded().kind("rewinds", &[("seen", CellKind::F32)]);
    let mut app = scripted(game(), file(&log, &game()));
    app.add_systems(FixedPostUpdate, shoot);
    let world = app.world_mut();
    let delay = |delay| InterpolationDelay { delay };
    let link = world.spawn(delay(PositiveTickDelta::lit("7.75"))).id();
    let controlled = ControlledBy { owner: link, lifetime: Lifetime::default() };
    let sleds = [1, 0].map(|player| {
        let sled = join(world, player);
        world.entity_mut(sled).insert((RecordedEntity(player), controlled));
        sled
    });
    for tick in 1..=200 {
        if tick == 150 {
            app.world_mut().entity_mut(link).insert(delay(PositiveTickDelta::lit("3")));
        }
        for (sled, player) in sleds.iter().zip([1, 0]) {
            let mut buffer = NativeBuffer::<Pad>::default();
            buffer.set(tick.into(), ActionState(pad(player, tick)));
            app.world_mut().entity_mut(*sled).insert(buffer);
        }
        run(&mut app, 1);
    }
    app.world_mut().resource_mut::<HitregRecorder>().end().unwrap();
    let recorded = session(&log);
    let judged = &recorded.players[0].judged;
    let rewound: BTreeSet<i64> = judged.iter().map(|shot| shot.rewound.0).collect();
    assert!(judged.len() > 20 && judged.iter().any(|shot| shot.reason == HitResult::Hit), "{judged:?}");
    assert_eq!(rewound.into_iter().collect::<Vec<_>>(), [50_000, 129_166]);

    let to = folder.path().join("shots.hittrace");
    let args = ["replay".into(), log.into(), OsString::from("-o"), to.clone().into()];
    let replay = HitregReplay::new(game(), join).run(args, |_| {
        let mut app = App::new();
        simulation(&mut app, "0.98");
        app.add_systems(FixedPostUpdate, shoot);
        app
    });
    replay.unwrap();
    let trace = read_trace(&std::fs::read(to).unwrap()[..]).unwrap();
    assert_eq!(ticks::Columns::of(&trace).hash, hashes(&recorded));
    let shots = shots::Columns::of(&trace);
    assert_eq!(shots.rewind_us, judged.iter().map(|shot| shot.rewound.0).collect::<Vec<_>>());
    assert_eq!(trace.table("rewinds").unwrap().rows(), judged.len());
}

#[test]
fn a_flight_recorder_saves_the_end_of_a_session_which_replays() {
    let folder = tempfile::tempdir().unwrap();
    for has_shells in [false, true] {
        let log = folder.path().join(format!("end-{has_shells}.hitlog"));
        let about = with_shells().describe().setting(DRAG, "0.98");
        let kept = Recorder::keep_last(Micros::from_s(2), about, RecorderOptions::patient()).unwrap();
        let mut app = scripted(with_shells(), kept);
        if has_shells {
            app.add_systems(FixedUpdate, fire);
        }
        let mut buffer = NativeBuffer::<Pad>::default();
        let world = app.world_mut();
        let sled = join(world, 1);
        world.entity_mut(sled).insert(RecordedEntity(1));
        for tick in 1..=400 {
            buffer.set((tick).into(), ActionState(pad(1, tick)));
            app.world_mut().entity_mut(sled).insert(std::mem::take(&mut buffer));
            run(&mut app, 1);
        }
        app.world().resource::<HitregRecorder>().recorder().unwrap().save(&log).unwrap();
        let recorded = session(&log);
        assert!(recorded.ticks[0].tick.0 > 200, "{:?}", recorded.ticks[0]);
        let args = ["replay".into(), log.clone().into(), OsString::from("-o"), log.with_extension("hittrace").into()];
        let mut new_app = App::new();
        simulation(&mut new_app, "0.98");
        let result = HitregReplay::new(with_shells(), join).run(args, |_| new_app);
        if has_shells {
            let Err(error @ PlaybackError::NotRestored { entity: 2.. }) = &result else { panic!("{result:?}") };
            assert_eq!(error.exit_code(), 125);
        } else {
            result.unwrap();
            let trace = read_trace(&std::fs::read(log.with_extension("hittrace")).unwrap()[..]).unwrap();
            assert_eq!(ticks::Columns::of(&trace).hash, hashes(&recorded));
        }
    }
}

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../README.md");
    let program = include_str!("../examples/sleds.rs");
    assert!(
        readme.contains(&format!("```rust\n{program}```\n")),
        "README.md has another program than examples/sleds.rs"
    );
}
