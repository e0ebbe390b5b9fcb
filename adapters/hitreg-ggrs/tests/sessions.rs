//! Sessions of GGRS over UDP and in sync tests: what the recorder writes, and what replays of it give.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hitreg_ggrs::ggrs::{
    DesyncDetection, Frame, GameStateCell, GgrsEvent, GgrsRequest, InputStatus, PlayerType, SessionBuilder,
    SessionState, SpectatorSession, SyncTestSession,
};
use hitreg_ggrs::hitreg_log::log::{read_session, read_trace};
use hitreg_ggrs::hitreg_log::record::{Class, Presence, Session, UnknownRecords};
use hitreg_ggrs::hitreg_log::recorded::all_records;
use hitreg_ggrs::hitreg_log::recorder::{PushError, Recorder, RecorderOptions};
use hitreg_ggrs::hitreg_log::trace::schema::ticks;
use hitreg_ggrs::hitreg_log::trace::{Table, Trace};
use hitreg_ggrs::hitreg_log::units::{Micros, Tick};
use hitreg_ggrs::{EntityFields, GgrsRecorder, ROLLBACKS, RecordError, RecordedGame, RecordedSession};

#[path = "../examples/ships_bug.rs"]
#[expect(dead_code, reason = "whole programs, of which the tests use the games")]
mod ships_bug;
mod socket;
use ships_bug::ShipsWithBug;
use ships_bug::ships::{DRAG, HZ, Net, Pad, Ships, pad};
use socket::LossySocket;

const FRAMES: i32 = 400;

fn new_recorder(path: &Path) -> GgrsRecorder<Ships> {
    let about = hitreg_ggrs::describe::<Ships>(2, HZ).setting(DRAG, "0.98");
    GgrsRecorder::new(Recorder::create(path, about, RecorderOptions::patient()).unwrap(), HZ)
}

/// One peer: player 0 or 1, with its own game, socket and log.
struct Peer {
    player: usize,
    session: hitreg_ggrs::ggrs::P2PSession<Net>,
    game: Ships,
    recorder: GgrsRecorder<Ships>,
}

impl Peer {
    /// Simulates one frame if the session runs.
    fn step(&mut self) {
        self.session.poll_remote_clients();
        if self.session.current_state() != SessionState::Running {
            return std::thread::sleep(Duration::from_millis(1));
        }
        let is_desync = |event| matches!(event, GgrsEvent::DesyncDetected { .. });
        assert!(!self.session.events().any(is_desync), "the peers' checksums differ");
        let before = self.session.current_frame();
        self.session.add_local_input(self.player, pad(self.player, before)).unwrap();
        let requests = self.session.advance_frame().unwrap();
        // Inputs that arrive here are not in the requests yet.
        self.session.poll_remote_clients();
        self.recorder.handle(&mut self.game, &self.session, requests).unwrap();
        if self.session.current_frame() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Prediction {
    Usual,
    SparseSaving,
    /// Lockstep: no frame is simulated before all its inputs are known.
    None,
}

/// Two peers that exchange datagrams with delay and loss, and a spectator of the first.
struct Match {
    peers: [Peer; 2],
    spectator: SpectatorSession<Net>,
    watched: Ships,
    watching: GgrsRecorder<Ships>,
}

impl Match {
    fn new(folder: &Path, prediction: Prediction) -> Match {
        let sockets = [1, 2, 3].map(LossySocket::new);
        let addresses = sockets.each_ref().map(LossySocket::address);
        let [first, second, third] = sockets;
        let peer = |player: usize, socket| {
            let mut builder = SessionBuilder::<Net>::new()
                .with_input_delay(1)
                .with_max_prediction_window(if prediction == Prediction::None { 0 } else { 8 })
                .with_sparse_saving_mode(prediction == Prediction::SparseSaving)
                .with_desync_detection_mode(DesyncDetection::On { interval: 10 })
                .with_disconnect_timeout(Duration::from_secs(30))
                .add_player(PlayerType::Local, player)
                .and_then(|builder| builder.add_player(PlayerType::Remote(addresses[1 - player]), 1 - player))
                .unwrap();
            if player == 0 {
                builder = builder.add_player(PlayerType::Spectator(addresses[2]), 2).unwrap();
            }
            Peer {
                player,
                session: builder.start_p2p_session(socket).unwrap(),
                game: Ships::new("0.98"),
                recorder: new_recorder(&folder.join(format!("p{player}.hitlog"))),
            }
        };
        let builder = SessionBuilder::<Net>::new().with_disconnect_timeout(Duration::from_secs(30));
        let builder = builder.with_max_frames_behind(20).and_then(|builder| builder.with_catchup_speed(3)).unwrap();
        Match {
            peers: [peer(0, first), peer(1, second)],
            spectator: builder.start_spectator_session(addresses[0], third),
            watched: Ships::new("0.98"),
            watching: new_recorder(&folder.join("spectator.hitlog")),
        }
    }

    fn watch(&mut self) {
        self.spectator.poll_remote_clients();
        if let Ok(requests) = self.spectator.advance_frame() {
            self.watching.handle(&mut self.watched, &self.spectator, requests).unwrap();
        }
    }

    /// Steps those peers until each has simulated `frames` frames and the spectator nearly as many.
    fn run(&mut self, peers: std::ops::Range<usize>, frames: i32) {
        for _ in 0..100 * FRAMES {
            let is_behind = |peer: &Peer| peer.session.current_frame() < frames;
            if !self.peers[peers.clone()].iter().any(is_behind) && self.spectator.current_frame() > frames - 30 {
                return;
            }
            // A spectator that is 60 frames behind is lost.
            let watched = self.spectator.current_frame();
            for peer in &mut self.peers[peers.clone()] {
                if peer.session.current_frame() < watched + 40 {
                    peer.step();
                } else {
                    peer.session.poll_remote_clients();
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            self.watch();
        }
        panic!("the session stalled at frame {}", self.peers[peers.start].session.current_frame());
    }

    fn finish(self) {
        for recorder in self.peers.map(|peer| peer.recorder).into_iter().chain([self.watching]) {
            let written = recorder.finish().unwrap();
            assert_eq!((written.lost_records, written.late_records), (0, 0));
        }
    }
}

fn session(path: &Path) -> Session {
    read_session(&std::fs::read(path).unwrap()[..]).unwrap()
}

fn rollbacks(session: &Session) -> Option<&UnknownRecords> {
    session.unknown.iter().find(|rows| rows.kind == ROLLBACKS)
}

/// The session without what only one peer knows, up to a tick.
fn common(path: &Path, end: Tick) -> Session {
    let mut session = session(path);
    let at = session.ticks.iter().find(|tick| tick.tick == end).unwrap().at;
    session.end_at(end, at);
    session.unknown.clear();
    session.texts = Default::default();
    session
}

fn replayed<G: RecordedGame>(log: &Path, new: fn(&str) -> G) -> Trace {
    let to = log.with_extension("hittrace");
    let args = ["replay".into(), log.into(), "-o".into(), to.clone().into()];
    hitreg_ggrs::replay::<G>(args as [OsString; 4], |play| new(play.setting(DRAG).unwrap())).unwrap();
    read_trace(&std::fs::read(to).unwrap()[..]).unwrap()
}

fn tables_but_rollbacks(trace: Trace) -> Vec<Table> {
    trace.tables.into_iter().filter(|table| table.name != ROLLBACKS).collect()
}

/// Compares every recorded input with what the players did, one frame of input delay later.
fn assert_inputs(log: &Path) {
    for (player, records) in session(log).players.iter().enumerate() {
        for frame in &records.frames {
            let stored = frame.command.input.own.stored();
            let [thrust, brake] = [0, 1].map(|cell| stored.get(cell).copied().unwrap_or(0));
            let made = frame.command.seq.0 as i32 - 2;
            let right = if made < 0 { Pad::default() } else { pad(player, made) };
            assert_eq!((thrust as i32, brake == 1), (right.thrust.into(), right.brake), "{log:?}: {frame:?}");
        }
    }
}

/// Replays a log, and compares every recorded tick, body, usercmd and execution with the replay.
fn assert_replays(log: &Path) {
    let session = session(log);
    assert!(session.ticks.iter().all(|tick| tick.hash.is_some()));
    assert_eq!(tables_but_rollbacks(replayed(log, Ships::new)), tables_but_rollbacks(all_records(&session)));
}

/// The program that the variable `HITREG` names, with results of its own in `folder`.
fn hitreg(folder: &Path) -> Option<impl Fn(&[&str]) -> (i32, String)> {
    #[expect(clippy::disallowed_methods, reason = "tests are not simulations")]
    let program = PathBuf::from(std::env::var_os("HITREG").filter(|name| !name.is_empty())?);
    let folder = folder.to_owned();
    Some(move |args: &[&str]| {
        let run = Command::new(&program).args(args).current_dir(&folder).env("XDG_CACHE_HOME", &folder).output();
        let run = run.unwrap_or_else(|error| panic!("HITREG={}: {error}", program.display()));
        let said = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
        (run.status.code().unwrap_or(-1), said)
    })
}

/// The path of an example, which cargo builds before the tests.
fn example(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let path =
        test.ancestors().nth(2).unwrap().join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    path.to_str().unwrap().to_owned()
}

#[test]
fn peers_and_a_spectator_record_the_same_session_which_replays() {
    for (prediction, frames) in
        [(Prediction::Usual, FRAMES), (Prediction::SparseSaving, FRAMES), (Prediction::None, 80)]
    {
        let folder = tempfile::tempdir().unwrap();
        let logs = ["p0.hitlog", "p1.hitlog", "spectator.hitlog"].map(|name| folder.path().join(name));
        let mut session_of_three = Match::new(folder.path(), prediction);
        session_of_three.run(0..2, frames);
        session_of_three.finish();

        let ends = logs.each_ref().map(|log| session(log).ticks.last().unwrap().tick);
        let shortest = ends.into_iter().min().unwrap();
        assert!(shortest.0 > frames as u32 - 40, "{ends:?}");
        let commons = logs.each_ref().map(|log| common(log, shortest));
        assert_eq!(commons[0], commons[1], "{prediction:?}");
        assert_eq!(commons[0], commons[2], "{prediction:?}");
        for log in &logs[..2] {
            let session = session(log);
            let Some(rows) = rollbacks(&session) else {
                assert_eq!(prediction, Prediction::None, "delay and loss cause rollbacks");
                continue;
            };
            let [_, first, frames, wrong] = &rows.columns[..] else { panic!("{} columns", rows.columns.len()) };
            let is_misprediction = |row: usize| wrong.values[row] > 0;
            assert!((0..rows.len()).filter(|row| is_misprediction(*row)).count() > 10, "{} rollbacks", rows.len());
            for row in 0..rows.len() {
                assert!((1..=8).contains(&frames.values[row]) && first.values[row] >= 1);
            }
            // Each peer predicts the other.
            let remote = u32::from(log == &logs[0]);
            assert!((0..rows.len()).filter(|row| is_misprediction(*row)).all(|row| rows.series[row] == remote));
        }
        assert!(rollbacks(&session(&logs[2])).is_none(), "a spectator predicts nothing");
        for log in &logs {
            assert_inputs(log);
            assert_replays(log);
        }
    }
}

#[test]
fn a_planted_bug_is_found_in_the_frame_in_which_it_acts() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("p1.hitlog");
    let mut two = Match::new(folder.path(), Prediction::Usual);
    two.run(0..2, FRAMES);
    two.finish();
    // The input delay is 1 frame, and tick 1 is frame 0.
    let first_brake = (0..).find(|frame| pad(0, *frame).brake).unwrap() as usize + 2;
    let [right, wrong] = [replayed(&log, Ships::new), replayed(&log, |drag| ShipsWithBug(Ships::new(drag)))];
    let hashes = [&right, &wrong].map(|trace| ticks::Columns::of(trace).hash.to_vec());
    let differs = hashes[0].iter().zip(&hashes[1]).position(|(right, wrong)| right != wrong);
    assert_eq!(differs.map(|row| row + 1), Some(first_brake));

    let Some(hitreg) = hitreg(folder.path()) else {
        return eprintln!("skipped: HITREG does not name hitreg, so no command of hitreg runs");
    };
    let (ships, bug) = (&*example("ships"), &*example("ships_bug"));
    let expect = |code: i32, text: &str, args: &[&str]| {
        let (found, said) = hitreg(args);
        assert!(found == code && said.contains(text), "{args:?}: exit code {found}\n{said}");
    };
    expect(0, "3 ok", &["verify", "p0.hitlog", "p1.hitlog", "spectator.hitlog", "--build", ships]);
    expect(0, "begins after tick", &["check", ships, "p0.hitlog"]);
    expect(0, "same", &["diff", "p0.hitlog", "--a", ships, "--b", ships]);
    expect(1, &format!("tick {first_brake}"), &["verify", "p1.hitlog", "--build", bug]);
    expect(1, &format!("tick {first_brake}"), &["diff", "p1.hitlog", "--a", ships, "--b", bug]);
    expect(1, &format!("tick {first_brake}"), &["bisect", "ticks", "p1.hitlog", "--a", ships, "--b", bug]);
    expect(1, "", &["diff", "p0.hitlog", "--a", ships, "--b", ships, "--b-set", "ships.drag=0.981"]);
}

#[test]
fn a_lost_player_is_recorded_as_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("p0.hitlog");
    let mut two = Match::new(folder.path(), Prediction::Usual);
    two.run(0..2, 100);
    two.peers[0].session.disconnect_player(1).unwrap();
    two.run(0..1, 200);
    two.finish();
    let recorded = session(&log);
    let [joined, left] = &recorded.players[1].presence[..] else { panic!("{:?}", recorded.players[1].presence) };
    assert_eq!((joined.tick, joined.change, left.change), (Tick(1), Presence::Joined, Presence::Left));
    assert!((90..=110).contains(&left.tick.0), "{left:?}");
    let has_left = |own: &[u32]| own.get(2) == Some(&1);
    let frames = &recorded.players[1].frames;
    assert!(frames.iter().all(|f| has_left(f.command.input.own.stored()) == (f.command.seq.0 >= left.tick.0)));
    assert_eq!(recorded.players[0].presence.len(), 1);
    assert!(recorded.ticks.len() > 180);
    assert_replays(&log);
    assert_eq!(common(&log, Tick(150)), common(&folder.path().join("spectator.hitlog"), Tick(150)));
}

fn sync_test(check_distance: usize) -> SyncTestSession<Net> {
    SessionBuilder::<Net>::new().with_check_distance(check_distance).start_synctest_session().unwrap()
}

fn requests_of(session: &mut SyncTestSession<Net>) -> Vec<GgrsRequest<Net>> {
    for player in 0..2 {
        session.add_local_input(player, pad(player, session.current_frame())).unwrap();
    }
    session.advance_frame().unwrap()
}

#[test]
fn a_sync_test_is_recorded_with_its_forced_rollbacks() {
    for check_distance in [0, 4] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("sync.hitlog");
        let (mut session_in_test, mut game) = (sync_test(check_distance), Ships::new("0.98"));
        let mut recorder = new_recorder(&log);
        for _ in 0..200 {
            let requests = requests_of(&mut session_in_test);
            recorder.handle(&mut game, &session_in_test, requests).unwrap();
        }
        recorder.finish().unwrap();
        let recorded = session(&log);
        assert!(recorded.ticks.len() >= 199, "{} ticks", recorded.ticks.len());
        assert_eq!(recorded.ticks[59].at, Micros(1_000_000));
        let rows = rollbacks(&recorded);
        assert_eq!(rows.is_some(), check_distance > 0);
        if let Some(rows) = rows {
            assert!(rows.len() > 190, "{} rollbacks", rows.len());
            assert!(rows.columns[2].values.iter().all(|frames| *frames == 4));
            assert!(rows.columns[3].values.iter().all(|wrong| *wrong == 0));
        }
        assert_replays(&log);
    }
}

/// Ships that are listed in the order in which they came, which is not that of their numbers.
struct UnsortedShips {
    ships: Ships,
    order: Vec<u16>,
}

impl RecordedGame for UnsortedShips {
    type Config = Net;
    const NAME: &'static str = Ships::NAME;

    fn save(&self) -> Ships {
        self.ships.save()
    }

    fn load(&mut self, state: &Ships) {
        self.ships.load(state);
    }

    fn advance(&mut self, inputs: &[(Pad, InputStatus)]) {
        self.ships.advance(inputs);
    }

    fn classes() -> Vec<Class> {
        Ships::classes()
    }

    fn bodies(&self) -> Vec<EntityFields> {
        let all = self.ships.bodies();
        self.order.iter().map(|ship| all[usize::from(*ship)].clone()).collect()
    }

    fn restore(&mut self, body: &EntityFields) -> bool {
        self.order.push(body.entity);
        self.ships.restore(body)
    }
}

#[test]
fn a_flight_recorder_saves_the_end_of_a_session_which_replays() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("end.hitlog");
    let about = hitreg_ggrs::describe::<Ships>(2, HZ).setting(DRAG, "0.98");
    let kept = Recorder::keep_last(Micros::from_s(2), about, RecorderOptions::patient()).unwrap();
    let mut recorder = GgrsRecorder::new(kept, HZ);
    let mut session_in_test = sync_test(2);
    let mut game = UnsortedShips { ships: Ships::new("0.98"), order: vec![1, 0] };
    for _ in 0..400 {
        let requests = requests_of(&mut session_in_test);
        recorder.handle(&mut game, &session_in_test, requests).unwrap();
    }
    recorder.recorder().save(&log).unwrap();
    recorder.finish().unwrap();
    let recorded = session(&log);
    assert!(recorded.ticks[0].tick.0 > 200, "{:?}", recorded.ticks[0]);
    let hashes: Vec<u64> = recorded.ticks.iter().filter_map(|tick| tick.hash).collect();
    let restored = |drag: &str| UnsortedShips { ships: Ships::new(drag), order: Vec::new() };
    assert_eq!(ticks::Columns::of(&replayed(&log, restored)).hash, hashes);
}

/// A session whose requests a test makes.
struct Script {
    next: Frame,
    confirmed: Frame,
}

impl RecordedSession for Script {
    fn next_frame(&self) -> Frame {
        self.next
    }

    fn longest_rollback(&self) -> usize {
        8
    }

    fn newest_confirmed(&self) -> Frame {
        self.confirmed
    }
}

#[test]
fn a_prediction_is_not_recorded_although_its_input_has_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let cells = [(); 3].map(|()| GameStateCell::default());
    let save = |cell: usize, frame| GgrsRequest::SaveGameState { cell: cells[cell].clone(), frame };
    let load = |cell: usize, frame| GgrsRequest::LoadGameState { cell: cells[cell].clone(), frame };
    let advance = |thrust, status| {
        let pad = Pad { thrust, brake: false };
        GgrsRequest::AdvanceFrame { inputs: vec![(pad, InputStatus::Confirmed), (pad, status)] }
    };
    for calls in [1, 2] {
        let log = folder.path().join(format!("{calls}.hitlog"));
        let (mut recorder, mut game) = (new_recorder(&log), Ships::new("0.98"));
        // The input of frame 0 arrives after the session made these requests.
        let requests = vec![save(0, 0), advance(1, InputStatus::Predicted)];
        recorder.handle(&mut game, &Script { next: 1, confirmed: 0 }, requests).unwrap();
        if calls == 2 {
            let again = vec![load(0, 0), save(2, 0), advance(-1, InputStatus::Confirmed), save(1, 1)];
            let requests = again.into_iter().chain([advance(1, InputStatus::Predicted)]).collect();
            recorder.handle(&mut game, &Script { next: 2, confirmed: 0 }, requests).unwrap();
            let states = [0, 2].map(|cell: usize| format!("{:?}", cells[cell]));
            assert!(states[0] == states[1] && states[0].contains("checksum: Some"), "{states:?}");
        }
        recorder.finish().unwrap();
        let frames = &session(&log).players[1].frames;
        let thrusts: Vec<i32> = frames.iter().map(|frame| frame.command.input.own.stored()[0] as i32).collect();
        assert_eq!(thrusts, [-1][..calls - 1]);
    }
}

#[test]
fn missed_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut session_in_test, mut game) = (sync_test(0), Ships::new("0.98"));
    let mut recorder = new_recorder(&folder.path().join("sync.hitlog"));
    let first = requests_of(&mut session_in_test);
    recorder.handle(&mut game, &session_in_test, first).unwrap();
    drop(requests_of(&mut session_in_test));
    for frame in 3..6 {
        let later = requests_of(&mut session_in_test);
        let refused = recorder.handle(&mut game, &session_in_test, later);
        let Err(RecordError::OutOfStep { session, recorder }) = refused else { panic!("{refused:?}") };
        assert_eq!((session, recorder), (frame, 2), "the recorder holds nothing of earlier calls");
    }
    recorder.finish().unwrap();
    assert_eq!(read_session(&std::fs::read(folder.path().join("sync.hitlog")).unwrap()[..]).unwrap().ticks.len(), 1);
}

#[test]
fn a_refused_record_does_not_stop_the_game() {
    let folder = tempfile::tempdir().unwrap();
    // Two ships, and a description of one player.
    let about = hitreg_ggrs::describe::<Ships>(1, HZ);
    let recorder = Recorder::create(&folder.path().join("one.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut recorder = GgrsRecorder::<Ships>::new(recorder, HZ);
    let (mut session_in_test, mut game) = (sync_test(0), Ships::new("0.98"));
    for _ in 0..30 {
        let requests = requests_of(&mut session_in_test);
        let refused = recorder.handle(&mut game, &session_in_test, requests);
        assert!(matches!(refused, Err(RecordError::Push(PushError::Misfit(_)))), "{refused:?}");
    }
    assert!(game.ships[0].vx != 0.0);
}

#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../README.md");
    let program = include_str!("../examples/ships.rs");
    assert!(
        readme.contains(&format!("```rust\n{program}```\n")),
        "README.md has another program than examples/ships.rs"
    );
}
