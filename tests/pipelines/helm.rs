//! A game with its own input type: ships with positions in doubles and 64-bit ids. The helms have no `upmove` and no
//! `impulse`. Sessions are recorded, replayed, verified, compared and bisected, and results depend on the game's own
//! input fields.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use glam::{DVec2, Vec2};
use hitreg::bisect::bisect_ticks;
use hitreg::diff::{DiffOptions, DifferenceClass, TraceVerdict, UsercmdRow, diff};
use hitreg::engine::{Engine, Games};
use hitreg::game::{
    BadCells, Body, Bots, Categorize, GameInput, Judge, PlacedBody, PlayerCommand, Reconcile, Scene, Simulate, Sink,
    StateRows, body, cells, input,
};
use hitreg::log::{WriterOptions, read_session, write_keyframes, write_trace};
use hitreg::memory::MemoryLimit;
use hitreg::record::{Session, StateKey};
use hitreg::recorded::recorded;
use hitreg::replay::{
    KeyframeSchedule, Part, ReorderWindow, ReplayAttempt, ReplayMode, ReplayOptions, ReplayOutput, replay, rerecord,
};
use hitreg::rng::Rng;
use hitreg::score::score;
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::trace::schema::{corrections, own_input};
use hitreg::trace::{ColumnData, Trace, TraceHeader};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, Tick};
use hitreg::usercmd::{Input, OwnCells, Usercmd};
use hitreg::verify::LogVerdict;

use crate::keyframed_logs::verified;
use crate::streams;

cells! {
    /// The sail setting.
    pub(crate) enum Sail { Furled, Half, Full }
}

input! {
    /// The orders of a helmsman.
    pub(crate) struct Helm {
        msec: u8,
        rudder: f32 as Angle,
        thrust: f64 as Velocity("m/s"),
        /// The id of the followed ship.
        target: u64 as Name,
        sail: Sail,
        buttons: u16,
    }
}

body! {
    pub(crate) struct Ship {
        Status id: u64,
        Movement origin: DVec2,
        Movement east: f64 as Position("m"),
        Movement north: f64 as Position("m"),
        Movement course: f32 as Angle,
        Status following: u64 as Name,
    }
}

#[derive(serde::Serialize, serde::Deserialize, Clone, Default, Debug)]
pub(crate) struct Sea {
    /// The usercmd of the first ship at which a wrong build moves too far east.
    wrong_at: Option<u32>,
    /// The distance of the fleet from the world's origin, along both axes.
    far_units: f64,
}

pub(crate) struct Fleet {
    ships: Vec<(EntityId, Ship)>,
}

#[derive(Debug)]
pub(crate) struct Ships;

impl Simulate for Ships {
    const NAME: &'static str = "ships";
    type Rules = Sea;
    type World = Fleet;
    type Body = Ship;
    type Input = Helm;
    type Fire = Infallible;

    fn spawn(rules: &Sea, _: Seed, players: u16) -> Fleet {
        let ship = |p| {
            let offset = 100.0 * f64::from(p);
            let origin = DVec2::new(rules.far_units, rules.far_units + offset);
            Ship { id: ship_id(p), origin, north: 1e7 + offset, ..Ship::default() }
        };
        Fleet { ships: (0..players).map(|p| (EntityId(p), ship(p))).collect() }
    }

    fn step_body(
        rules: &Sea,
        scene: &Scene<'_, Ship>,
        ship: &Ship,
        command: &Usercmd<Helm>,
        _: &mut impl Sink<Infallible>,
    ) -> Ship {
        let Helm { msec, rudder, thrust, target, sail, buttons } = command.input;
        let seconds = f64::from(msec) / 1000.0;
        let speed = thrust * [0.0, 0.5, 1.0][sail as usize] + f64::from(buttons);
        let course = ship.course + rudder * seconds as f32;
        let angle = f64::from(course).to_radians();
        let mut east = ship.east + speed * libm::cos(angle) * seconds;
        if scene.player == PlayerId(0) && rules.wrong_at == Some(command.seq.0) {
            east = east.next_up();
        }
        let north = ship.north + speed * libm::sin(angle) * seconds;
        // The least difference of `east` is none of `origin`.
        let near = Vec2::new(east as f32, (north - 1e7) as f32);
        let origin = near.as_dvec2() + rules.far_units;
        Ship { id: ship.id, origin, east, north, course, following: target }
    }

    fn entities(world: &Fleet) -> &[(EntityId, Ship)] {
        &world.ships
    }

    fn run(run: &PlayerCommand<'_, Ships>, world: &mut Fleet, out: &mut impl Sink<Infallible>) {
        run.step_in_place(&mut world.ships, out);
    }

    fn save(world: &Fleet, words: &mut Vec<u32>) {
        for (_, ship) in &world.ships {
            let start = words.len();
            words.resize(start + Ship::CELLS, 0);
            ship.write(&mut words[start..]);
        }
    }

    fn load(_: &Sea, words: &[u32]) -> Result<Option<Fleet>, BadCells> {
        let ships = words.chunks(Ship::CELLS).map(Ship::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Fleet { ships: (0..).map(EntityId).zip(ships).collect() }))
    }
}

impl Judge for Ships {}
impl Categorize for Ships {}
impl Reconcile for Ships {}

impl hitreg::pipeline::Netcode for Ships {
    type Server = hitreg::server::Server<Ships>;
    type Client = hitreg::client::Client<Ships>;
}

impl Bots for Ships {
    type Bot = (Rng, Micros, Helm);

    fn bot(_: &Sea, seed: Seed, player: PlayerId) -> Self::Bot {
        (Rng::new(seed, u64::from(player.0)), Micros::ZERO, Helm::default())
    }

    fn think(
        (rng, turn_at, helm): &mut Self::Bot,
        _: &Sea,
        _: Option<&Ship>,
        others: &[(EntityId, PlacedBody<Ship>)],
        now: Micros,
        msec: u8,
    ) -> Helm {
        if now >= *turn_at {
            *turn_at = now + Micros::from_ms(100 + rng.below(300) as i64);
            helm.rudder = rng.signed_f32() * 90.0;
            helm.thrust = 20.0 * rng.unit_f64();
            helm.sail = [Sail::Furled, Sail::Half, Sail::Full][rng.below(3) as usize];
        }
        helm.target = others.first().map_or(0, |(_, placed)| placed.body.id);
        Helm { msec, ..*helm }
    }
}

/// An id of more than 32 bits.
fn ship_id(player: u16) -> u64 {
    0xfee1_dead_0000_0001 + u64::from(player)
}

fn scenario(preset: &str) -> Scenario {
    Scenario {
        players: 3,
        seconds: 12.0,
        seed: 21,
        preset: preset.to_owned(),
        link: streams::bad_link(),
        ..Scenario::default()
    }
}

fn record_with<'s>(session: &'s mut Session, scenario: &Scenario, hears: bool) -> &'s Session {
    let mut recorder = SessionRecorder::new(session);
    if hears {
        recorder = recorder.with_heard((0..scenario.players).map(PlayerId));
    }
    record_synthetic::<Ships>(scenario, &Arc::default(), &mut recorder).expect("a good scenario");
    session
}

fn session(preset: &str) -> Session {
    let scenario = scenario(preset);
    let mut session = Session::new(scenario.header::<Ships>(&Sea::default()).expect("a good scenario"));
    record_with(&mut session, &scenario, false);
    session.put_in_order();
    session
}

fn replay_with(session: &Session, options: &ReplayOptions) -> ReplayOutput {
    replay::<Ships>(session, options, &mut |_| {}).expect("a log of this build")
}

fn trace(session: &Session) -> Trace {
    replay_with(session, &ReplayOptions::default()).trace
}

/// The usercmds of a session, as the game reads them.
fn helms(session: &Session) -> Vec<Helm> {
    session.players.iter().flat_map(|player| &player.frames).map(|f| Helm::read(&f.command.input)).collect()
}

#[test]
fn own_input_is_recorded_and_replayed_bit_for_bit() {
    for preset in ["half-life", "nereids", "quakeworld"] {
        let session = session(preset);
        let helms = helms(&session);
        assert!(helms.iter().any(|helm| helm.sail == Sail::Full && helm.target == ship_id(1)), "{preset}");
        assert!(helms.iter().any(|helm| f64::from(helm.thrust as f32) != helm.thrust), "{preset}: doubles");
        let bytes = streams::file(&session, Micros::from_ms(400));
        let read = read_session(&bytes[..]).expect("a sound log");
        assert!(read == session, "{preset}: the log holds it");
        assert_eq!(read.header.own_usercmd_fields(), Helm::own_fields());
        // Datagrams also carry the game's own cells, so a replay with encoding gives the same result.
        for (sizes, rollback_every) in [(false, Some(16)), (true, None)] {
            let options = ReplayOptions { sizes, rollback_every, ..ReplayOptions::default() };
            let output = replay_with(&read, &options);
            assert_eq!(output.findings.first_difference, None, "{preset}");
            assert_eq!(output.findings.hashes_compared, session.ticks.len() as u64, "{preset}");
            assert_eq!(output.findings.rollback_error, None, "{preset}");
        }
        let again = rerecord::<Ships>(MemoryLimit::default(), &session, None).expect("a log of this build");
        assert!(again.players[1].frames == session.players[1].frames, "{preset}");
        assert_eq!(again.header.usercmd, session.header.usercmd);
    }
}

/// A single cannot tell places 8 units apart at this distance; a double can tell 1.5e-8 units.
const FAR_UNITS: f64 = 1e8;

#[test]
fn errors_far_from_the_origin_are_those_near_it() {
    let measured = |far_units: f64| {
        let (scenario, rules) = (scenario("half-life"), Sea { far_units, ..Sea::default() });
        let mut session = Session::new(scenario.header::<Ships>(&rules).expect("a good scenario"));
        let rules = Arc::new(rules);
        record_synthetic::<Ships>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
        session.put_in_order();
        let trace = trace(&session);
        let rows = corrections::Columns::of(&trace);
        let results: Vec<String> = rows.result.iter().map(str::to_owned).collect();
        let scores = score::<Ships>(
            &session.header,
            ReorderWindow::default(),
            &mut |take| take(session.clone().without_header()),
            &rules,
            &Settings::default(),
            Part::WHOLE,
        )
        .expect("sound states");
        let tails = scores.into_iter().map(|score| score.error_units.expect("drawn"));
        let drawn: Vec<f32> = tails.flat_map(|tail| [tail.p50, tail.p95, tail.p99]).collect();
        (results, rows.error_units.to_vec(), drawn)
    };
    let ((results, errors, drawn), far) = (measured(0.0), measured(FAR_UNITS));
    assert!(results.iter().any(|result| result == "near") && drawn.iter().any(|error| *error > 0.0), "{drawn:?}");
    assert_eq!(results, far.0);
    let is_same = |(near, far): (&f32, &f32)| (near - far).abs() < 1e-4;
    assert!(errors.iter().zip(&far.1).all(is_same), "{:?}", errors.iter().zip(&far.1).find(|pair| !is_same(*pair)));
    assert!(drawn.iter().zip(&far.2).all(is_same), "{drawn:?}, not {:?}", far.2);
}

#[test]
fn traces_show_own_input_beside_the_fixed_fields() {
    let session = session("half-life");
    let trace = trace(&session);
    let frames = trace.table("frames").expect("frames");
    let (players, commands) = (frames.u32s("player"), frames.u32s("command"));
    let column = |name: &str| &frames.column(name).unwrap_or_else(|| panic!("no {name}")).data;
    let (ColumnData::F32(rudder), ColumnData::F64(thrust), ColumnData::U64(target), ColumnData::U32(sail)) =
        (column("rudder"), column("thrust"), column("target"), column("sail"))
    else {
        panic!("other types")
    };
    assert_eq!(frames.column("thrust").map(|column| column.unit.as_str()), Some("m/s"));
    for row in 0..frames.rows() {
        let of = &session.players[players[row] as usize].frames;
        let frame = of.iter().find(|frame| frame.command.seq == CommandSeq(commands[row])).expect("recorded");
        let helm = Helm::read(&frame.command.input);
        let shown = (rudder[row], thrust[row], target[row], sail[row]);
        assert_eq!(shown, (helm.rudder, helm.thrust, helm.target, helm.sail as u32));
    }
}

/// Every command reads the game's 64-bit values as single columns, with all their digits.
#[test]
fn values_of_64_bits_are_exported_bit_for_bit() {
    let session = session("half-life");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let (log, traced) = (folder.path().join("a.hitlog"), folder.path().join("a.hittrace"));
    std::fs::write(&log, streams::file(&session, Micros::from_ms(400))).expect("written");
    let trace = trace(&session);
    std::fs::write(&traced, write_trace(Vec::new(), &trace).expect("written")).expect("written");
    // The rows of a table: the columns with these names, as text.
    let exported = |file: &Path, table: &str, names: &[&str]| -> Vec<Vec<String>> {
        let file = file.to_str().expect("UTF-8");
        let run = Command::new(env!("CARGO_BIN_EXE_hitreg"))
            .args(["export", file, "--table", table, "--to", "csv"])
            .output()
            .expect("the command runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout).expect("UTF-8");
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let columns = rows.next().expect("a line of names");
        let place = |name: &&str| columns.iter().position(|column| column == name).expect("a column");
        let places: Vec<usize> = names.iter().map(place).collect();
        rows.map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect()
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let double = |text: &str| text.parse::<f64>().expect("a number").to_bits();
    for file in [&log, &traced] {
        let rows = exported(file, "frames", &["player", "command", "thrust", "target"]);
        assert!(rows.len() > 1_000, "{}", rows.len());
        for row in rows {
            let of = &session.players[row[0].parse::<usize>().expect("a player")].frames;
            let frame = of.iter().find(|frame| frame.command.seq.0.to_string() == row[1]).expect("recorded");
            let helm = Helm::read(&frame.command.input);
            assert_eq!((double(&row[2]), number(&row[3])), (helm.thrust.to_bits(), helm.target));
        }
    }
    let states = StateRows::new::<Ships>(&session.header.classes).expect("the classes of this build");
    let ship = |(key, cells): (StateKey, &[u32])| {
        let ship = states.read::<Ships>(key.class, cells).expect("a ship").expect("a known class");
        ([key.tick.0.to_string(), key.entity.0.to_string()], ship)
    };
    let recorded: BTreeMap<[String; 2], Ship> = session.states.iter().map(ship).collect();
    for file in [&log, &traced] {
        let mut found = 0;
        for row in exported(file, "bodies", &["tick", "entity", "id", "east", "north"]) {
            // A trace has the ships of every tick, and the log those that it sent.
            let Some(ship) = recorded.get(&[row[0].clone(), row[1].clone()]) else { continue };
            found += 1;
            assert_eq!(
                (number(&row[2]), double(&row[3]), double(&row[4])),
                (ship.id, ship.east.to_bits(), ship.north.to_bits())
            );
        }
        assert_eq!(found, recorded.len());
    }
}

/// A tolerance on a double excuses its last bit.
#[test]
fn doubles_are_compared_within_a_tolerance() {
    let session = session("half-life");
    let mut wrong = session.clone();
    wrong.header.rules =
        rmp_serde::to_vec_named(&Sea { wrong_at: Some(200), ..Sea::default() }).expect("MessagePack").into();
    let (good, wrong) = (trace(&session), trace(&wrong));
    let within = |text: &str| {
        let tolerances = [text.parse().expect("a tolerance")].into_iter().collect();
        diff(&good, &wrong, &DiffOptions { tolerances, ..DiffOptions::default() }).expect("a column")
    };
    let found = within("east=1e-9");
    assert_eq!(found.verdict, TraceVerdict::Same, "{:?}", found.first);
    let first = within("east=1e-30").first.expect("the last bit differs");
    assert_eq!((first.field.as_deref(), first.class), (Some("own.east"), Some(DifferenceClass::Drift)));
}

/// With keyframes, in parts, from a keyframe, and under other settings.
#[test]
fn logs_with_own_input_are_verified_in_legs_and_cut_in_parts() {
    let session = session("half-life");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let [plain, keyed] = ["a.hitlog", "k.hitlog"].map(|name| folder.path().join(name));
    let bytes = streams::file(&session, Micros::from_ms(400));
    std::fs::write(&plain, &bytes).expect("written");
    let games = Games::default().recording::<Ships>(|_| Ok(Sea::default()));
    let engine = Engine::new(&games);
    let log = engine.survey(&plain).expect("a sound log");
    let schedule = KeyframeSchedule::Every(Micros::from_s(2));
    let keyframes = engine.keyframes(&log, &schedule, &mut |_| {}).expect("a log of this build");
    assert!(keyframes.len() >= 4, "{}", keyframes.len());
    std::fs::write(
        &keyed,
        write_keyframes(&bytes[..], Vec::new(), &keyframes, WriterOptions::live()).expect("written"),
    )
    .expect("written");
    for threads in [1, 3] {
        let reports = verified(&engine, &[plain.clone(), keyed.clone()], (None, false), threads);
        assert!(reports.iter().all(|report| report.verdict == LogVerdict::Same), "{reports:?}");
    }
    let part = Part { from: Micros::from_ms(7_300), to: Micros::from_s(9) };
    let cut = |path: &Path| {
        let log = engine.survey_from(path, part.from).expect("a log");
        let game = games.of_header(&log.header).expect("a log of this build");
        let options = ReplayOptions { part: Some(part), network: true, ..ReplayOptions::default() };
        let mut trace = Trace::default();
        let mut put = |_: &TraceHeader, rows| trace.append(rows).expect("rows of one replay");
        let ran = log
            .replay_rows(game, ReplayAttempt { options: &options, encodes: false }, &mut put)
            .expect("it can be replayed");
        assert!(ran.is_some(), "no datagram matters");
        trace
    };
    let (from_start, from_keyframe) = (cut(&plain), cut(&keyed));
    // Compared as text, because NaN is not equal to itself.
    let tables = |trace: &Trace| format!("{:?}", trace.tables);
    assert!(tables(&from_start) == tables(&from_keyframe), "a keyframe holds the own input");
    let whole = replay_with(&session, &ReplayOptions { part: Some(part), ..ReplayOptions::default() }).trace;
    let rows = |trace: &Trace| trace.table("frames").map(|frames| frames.columns.clone());
    assert_eq!(rows(&whole), rows(&from_start));

    let settings = Settings::preset("quakeworld").expect("a preset");
    let other = ReplayOptions { settings: Some(settings), ..ReplayOptions::default() };
    assert_eq!(rows(&replay_with(&session, &other).trace).map(|columns| columns.len()), rows(&whole).map(|c| c.len()));
    let open = replay_with(&session, &ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() }).trace;
    let corrections = open.table("corrections").expect("an open loop compares").names("result");
    assert!(corrections.iter().filter(|result| *result == "exact").count() > 100);
}

#[test]
fn a_change_of_an_own_field_is_named() {
    let session = session("half-life");
    let with = |change: &dyn Fn(&mut Helm)| {
        let mut other = session.clone();
        let input = &mut other.players[1].frames[60].command.input;
        let mut helm = Helm::read(input);
        change(&mut helm);
        *input = helm.write();
        trace(&other)
    };
    let good = trace(&session);
    let helm = Helm::read(&session.players[1].frames[60].command.input);
    assert!(diff(&good, &good, &DiffOptions::default()).expect("no tolerance").first.is_none());
    type Change = fn(&mut Helm);
    let changes: [(&str, Change); 3] = [
        ("rudder of usercmd 61 of p1 is", |helm| helm.rudder += 45.0),
        ("thrust of usercmd 61 of p1 is", |helm| helm.thrust = helm.thrust.next_up()),
        ("target of usercmd 61 of p1 is", |helm| helm.target ^= 1),
    ];
    for (evidence, change) in changes {
        let found = bisect_ticks(&good, &with(&change), &DiffOptions::default(), None).expect("no tolerance");
        let cause = found.cause.expect("a cause");
        assert_eq!(cause.cause.name(), "other_input", "{evidence}: {helm:?}");
        assert!(cause.evidence.starts_with(evidence), "{}", cause.evidence);
    }
}

#[test]
fn a_wrong_build_is_bisected_to_its_tick_and_field() {
    let session = session("half-life");
    let mut wrong = session.clone();
    let rules = Sea { wrong_at: Some(200), ..Sea::default() };
    wrong.header.rules = rmp_serde::to_vec_named(&rules).expect("MessagePack").into();
    let found = bisect_ticks(&trace(&session), &trace(&wrong), &DiffOptions::default(), None).expect("no tolerance");
    // The client's prediction is the first to run it.
    let first = found.first.expect("they differ");
    assert_eq!((&*first.table, first.place.player, first.place.command), ("frames", Some(0), Some(200)));
    assert_eq!(first.field.as_deref(), Some("own.east"));
}

/// A recording lists usercmds player by player, and a replay lists them as they ran.
#[test]
fn a_recording_lists_the_same_usercmds_as_its_replay() {
    let session = session("half-life");
    let log = recorded(&session).expect("a log with a server");
    let overlap = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    let played = trace(&session);
    let frames = [&log, &played].map(|trace| trace.table("frames").expect("frames"));
    let [recorded, replayed] = frames.map(|frames| own_input(frames).map(|c| (&*c.name, &*c.unit)).collect::<Vec<_>>());
    let own = ["rudder", "thrust", "target", "sail"];
    assert_eq!(recorded.iter().map(|(name, _)| *name).collect::<Vec<_>>(), own);
    assert!(replayed.starts_with(&recorded), "{replayed:?}");
    assert!(diff(&log, &played, &overlap).expect("no tolerance").first.is_none());

    // A tick in which one player ran several usercmds, and others ran some.
    let mut ran: BTreeMap<Tick, Vec<usize>> = BTreeMap::new();
    for (player, records) in session.players.iter().enumerate() {
        records.executed.iter().for_each(|done| ran.entry(done.tick).or_default().push(player));
    }
    let is_mixed = |players: &[usize]| players.len() > 3 && players.iter().any(|player| *player != players[0]);
    let tick = session.states.keys().iter().map(|key| key.tick).find(|tick| is_mixed(ran.get(tick).map_or(&[], |p| p)));
    let tick = tick.expect("such a tick").0;
    let mut wrong = played.clone();
    let bodies = wrong.tables.iter_mut().find(|table| table.name == "bodies").expect("bodies");
    let keys = bodies.u32s("tick").iter().zip(bodies.u32s("entity"));
    let row = keys.zip(0..).find(|(key, _)| *key == (&tick, &1)).expect("a state").1;
    let course = bodies.columns.iter_mut().find(|column| column.name == "course").expect("a column");
    let ColumnData::F32(course) = &mut course.data else { panic!("another type") };
    course[row] += 1.0;
    let found = bisect_ticks(&log, &wrong, &overlap, None).expect("no tolerance");
    let first = found.first.expect("they differ");
    assert_eq!((&*first.table, first.place.tick), ("bodies", Some(tick)));
    assert_eq!(first.usercmds_a, first.usercmds_b);
    let names = |usercmd: &UsercmdRow| usercmd.input.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    assert!(first.usercmds_a.iter().all(|usercmd| names(usercmd).ends_with(&own.map(str::to_owned))));
    let made = |usercmd: &UsercmdRow| {
        let frames = &session.players[usercmd.player as usize].frames;
        let frame = frames.iter().find(|frame| frame.command.seq.0 == usercmd.command).expect("recorded");
        (usercmd.player != 1, frame.at, usercmd.player, usercmd.command)
    };
    assert!(first.usercmds_a.is_sorted_by_key(made), "{:?}", first.usercmds_a);
}

/// A server's log replays without the clients' logs.
#[test]
fn a_servers_log_alone_replays_own_input() {
    let scenario = scenario("half-life");
    let mut session = Session::new(scenario.header::<Ships>(&Sea::default()).expect("a good scenario"));
    record_with(&mut session, &scenario, true);
    session.put_in_order();
    for player in &mut session.players {
        (player.frames, player.sent, player.received) = Default::default();
    }
    let bytes = streams::file(&session, Micros::from_ms(400));
    let read = read_session(&bytes[..]).expect("a sound log");
    assert!(read == session);
    let heard = || read.players.iter().flat_map(|player| &player.heard).flat_map(|heard| &heard.commands);
    assert!(heard().any(|command| Helm::read(&command.input).sail == Sail::Full));
    let output = replay_with(&read, &ReplayOptions::default());
    assert_eq!((output.findings.first_difference, output.findings.hashes_compared), (None, session.ticks.len() as u64));
}

#[test]
fn a_log_without_the_games_fields_is_refused() {
    let mut session = session("half-life");
    let place = session.header.usercmd.iter().position(|field| field.name == "rudder").expect("declared");
    session.header.usercmd[place].name = "tiller".to_owned();
    let refused = |session: &Session| {
        replay::<Ships>(session, &ReplayOptions::default(), &mut |_| {}).expect_err("another input").to_string()
    };
    let field = "log and build have different usercmds: field `rudder` (f32, Movement) of the build is";
    let renamed = refused(&session);
    assert!(renamed.contains(&format!("{field} `tiller` (f32, Movement) in the log")), "{renamed}");
    session.header.usercmd.truncate(place);
    let missing = refused(&session);
    assert!(missing.contains(&format!("{field} missing in the log")), "{missing}");
}

#[test]
fn only_cells_of_the_games_fields_are_input() {
    let input = |cells: &[u32]| Input { own: OwnCells::new(cells), ..Input::default() };
    let full = Helm { sail: Sail::Full, ..Helm::default() }.write();
    assert_eq!((full.own.stored().len(), Helm::check(&full)), (6, Ok(())));
    let bad = Helm::check(&input(&[0, 0, 0, 0, 0, 3])).expect_err("there is no such sail");
    assert_eq!((bad.what.as_str(), bad.found), ("sail", 3));
    assert!(Helm::check(&input(&[0, 0, 0, 0, 0, 1, 1])).is_err(), "a cell too many");
    assert!(Input::check(&input(&[1])).is_err() && Input::check(&input(&[0, 0])).is_ok());
    assert_eq!(Helm::read(&input(&[0, 0, 0, 0, 0, 3])).sail, Sail::Furled);
}
