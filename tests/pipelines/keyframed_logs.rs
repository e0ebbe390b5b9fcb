//! Logs with keyframes in the engine: verified by the replay that runs anyway, and replayed from any keyframe.

use std::path::{Path, PathBuf};

use hitreg::corpus::{CorpusRun, JudgedLog, LogRow, VerifiedCorpus};
use hitreg::engine::{Engine, ExplainedLog, Games, SurveyedLog};
use hitreg::log::{WriterOptions as LogOptions, write_keyframes};
use hitreg::memory::MemoryLimit;
use hitreg::record::{Keyframe, Session, StateKey};
use hitreg::replay::{KeyframeSchedule, Part, ReplayAttempt, ReplayOptions, WhatIf, rerecord};
use hitreg::sweep::{Axis, SweepPlan, sweep};
use hitreg::trace::{Table, Trace};
use hitreg::units::{EntityId, Micros, Tick};
use hitreg::verify::{GoldenUpdate, LogReport, LogVerdict, VerifyOptions};
use hitreg::why::WhyQuery;
use tempfile::TempDir;

use crate::disc::{Disc, DiscRules, Discs, StepCounter};
use crate::{streams, traces};

fn games() -> Games {
    Games::default().recording::<Discs>(|_| Ok(DiscRules::default()))
}

/// A session in a folder, as a log without keyframes, `a.hitlog`, and one with them.
struct KeyframedLogs {
    folder: TempDir,
    keyframes: Vec<Keyframe>,
}

impl KeyframedLogs {
    fn of(session: &Session) -> KeyframedLogs {
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::write(folder.path().join("a.hitlog"), streams::file(session, Micros::from_ms(400))).expect("written");
        let games = games();
        let engine = Engine::new(&games);
        let log = engine.survey(&folder.path().join("a.hitlog")).expect("a sound log");
        let keyframes = engine
            .keyframes(&log, &KeyframeSchedule::Every(Micros::from_s(2)), &mut |_| {})
            .expect("a log of this build");
        assert!(keyframes.len() >= 3, "{}", keyframes.len());
        let logs = KeyframedLogs { folder, keyframes };
        logs.write("k.hitlog", &logs.keyframes);
        logs
    }

    fn write(&self, name: &str, keyframes: &[Keyframe]) {
        let log = std::fs::read(self.folder.path().join("a.hitlog")).expect("it was written");
        let keyed = write_keyframes(&log[..], Vec::new(), keyframes, LogOptions::live()).expect("written");
        std::fs::write(self.folder.path().join(name), keyed).expect("written");
    }

    /// Writes the log with keyframes of a version that this build does not read.
    fn write_unreadable(&self, name: &str) {
        let mut keyframes = self.keyframes.clone();
        // The first value of a keyframe's content is its version.
        keyframes.iter_mut().for_each(|keyframe| keyframe.content[1] = 99);
        self.write(name, &keyframes);
    }

    fn verified(&self, name: &str, rollback_every: Option<u32>) -> LogReport {
        self.verified_by(name, rollback_every, true, 1)
    }

    /// Verifies in legs, with a number of threads.
    fn verified_in_legs(&self, name: &str, threads: usize) -> LogReport {
        self.verified_by(name, None, false, threads)
    }

    fn verified_by(&self, name: &str, rollback_every: Option<u32>, whole: bool, threads: usize) -> LogReport {
        let games = games();
        let logs = [self.folder.path().join(name)];
        verified(&Engine::new(&games), &logs, (rollback_every, whole), threads).remove(0)
    }
}

/// Verifies logs on this many threads.
pub(crate) fn verified(
    engine: &Engine<'_>,
    logs: &[PathBuf],
    (rollback_every, whole): (Option<u32>, bool),
    threads: usize,
) -> Vec<LogReport> {
    judged(engine, logs, &VerifyOptions { rollback_every, whole, ..PLAIN }, threads)
}

/// Compares replays, and writes nothing.
const PLAIN: VerifyOptions<'_> = VerifyOptions {
    build: None,
    keep: GoldenUpdate::Nothing,
    needs_golden: false,
    rollback_every: None,
    whole: false,
    clock: &|| 0.0,
};

fn judged(engine: &Engine<'_>, logs: &[PathBuf], verify: &VerifyOptions<'_>, threads: usize) -> Vec<LogReport> {
    let judge = VerifiedCorpus::new(verify, engine, logs, LogRow::default(), false, &|_| String::new());
    let run = CorpusRun { threads, results: None, stop: &engine.runner.stop };
    let judged = run.judge(logs, &judge.expect("nothing is written"), &|_| {}).expect("they can be verified");
    judged.logs.into_iter().map(JudgedLog::verified).collect()
}

/// The other logs are judged all the same.
#[test]
fn a_log_whose_game_panics_is_broken() {
    let (mut session, folder) = (traces::session(3, 2.0, DiscRules::default()), TempDir::new().expect("a folder"));
    let paths = ["a.hitlog", "panics.hitlog"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], streams::file(&session, Micros::from_ms(400))).expect("written");
    let panics = DiscRules { panics: true, ..DiscRules::default() };
    session.header.rules = rmp_serde::to_vec_named(&panics).expect("MessagePack").into();
    std::fs::write(&paths[1], streams::file(&session, Micros::from_ms(400))).expect("written");
    let games = games();
    let proposals = ["a.golden.new", "panics.golden.new"].map(|name| folder.path().join(name));
    proposals.iter().for_each(|proposal| std::fs::write(proposal, "hitreg golden 1\n").expect("written"));
    let propose = VerifyOptions { keep: GoldenUpdate::Propose { rerecord: false }, ..PLAIN };
    judged(&Engine::new(&games), &paths, &propose, 1);
    assert_eq!(proposals.map(|proposal| proposal.exists()), [true, false], "a panic proposes nothing");
    let reports = verified(&Engine::new(&games), &paths, (None, false), 1);
    assert_eq!([reports[0].verdict, reports[1].verdict], [LogVerdict::Same, LogVerdict::Broken], "{reports:?}");
    let detail = reports[1].detail.as_deref().expect("the message");
    assert!(detail.contains("the game panicked: two discs have one number"), "{detail}");
    let surveyed = paths.each_ref().map(|path| Engine::new(&games).survey(path).expect("a log"));
    let lerp = Axis::parse("interpolation.lerp_ms=0,50", false).expect("a setting");
    let plan = SweepPlan::new(vec![lerp], WhatIf::Replay, 2).expect("a plan");
    let game = games.of_header(&surveyed[0].header).expect("discs");
    let swept = sweep(game, &surveyed, &plan, &|| {});
    assert!(swept[0].is_ok(), "{:?}", swept[0]);
    let error = swept[1].as_ref().map_err(ToString::to_string).err().unwrap_or_default();
    assert!(error.contains("the game panicked: two discs have one number"), "{error}");
}

/// A full replay of a log with keyframes runs no more usercmds than one without, and detects a wrong keyframe.
#[test]
fn keyframes_are_verified_without_another_replay() {
    let counter = StepCounter::Keyframes;
    let logs =
        KeyframedLogs::of(&traces::session(3, 9.0, DiscRules { counter: Some(counter), ..DiscRules::default() }));
    let steps = |name| {
        let before = counter.steps();
        assert_eq!(logs.verified(name, None).verdict, LogVerdict::Same, "{name}");
        counter.steps() - before
    };
    let without = steps("a.hitlog");
    assert!(without > 1_000, "{without}");
    assert_eq!(steps("k.hitlog"), without);

    let good = &logs.keyframes;
    let forge = |change: &dyn Fn(&mut Keyframe)| {
        let mut forged = good.clone();
        change(&mut forged[1]);
        logs.write("forged.hitlog", &forged);
    };
    let forgeries: [&dyn Fn(&mut Keyframe); 4] = [
        &|keyframe| keyframe.content = good[2].content.clone(),
        &|keyframe| keyframe.at += Micros(1),
        // A replay would continue without the records that the keyframe refers to.
        &|keyframe| keyframe.next_chunk += 1,
        &|keyframe| keyframe.tick = keyframe.tick.next(),
    ];
    logs.write_unreadable("old.hitlog");
    let plain = logs.verified("a.hitlog", None);
    for report in [logs.verified("old.hitlog", None), logs.verified_in_legs("old.hitlog", 1)] {
        assert_eq!((report.verdict, report.keyframes, report.legs), (LogVerdict::Same, None, None), "{report:?}");
        assert_eq!((report.digest, report.hashes_compared), (plain.digest.clone(), plain.hashes_compared));
    }
    // The rollback check is not part of the state.
    for rollback_every in [None, Some(16)] {
        let report = logs.verified("k.hitlog", rollback_every);
        assert_eq!((report.verdict, report.rollbacks > 10), (LogVerdict::Same, rollback_every.is_some()));
        for forgery in forgeries {
            forge(forgery);
            let report = logs.verified("forged.hitlog", rollback_every);
            assert_eq!(report.verdict, LogVerdict::Differs, "{report:?}");
            assert!(report.detail.is_some_and(|detail| detail.contains("the keyframe after tick")));
        }
    }
}

/// Verification by legs costs one replay and the usercmds before each leg. It gives the result of a full replay, finds
/// every difference, and names the first tick.
#[test]
fn a_log_with_keyframes_is_verified_in_legs() {
    let counter = StepCounter::Legs;
    let session = traces::session(3, 64.0, DiscRules { counter: Some(counter), ..DiscRules::default() });
    let logs = KeyframedLogs::of(&session);
    let before = counter.steps();
    let plain = logs.verified("a.hitlog", None);
    let twice = counter.steps() - before;
    let report = logs.verified_in_legs("k.hitlog", 1);
    let once = counter.steps() - before - twice;
    assert!(once * 10 < twice * 7, "{once} steps, and {twice} as a whole");
    assert_eq!((report.verdict, report.keyframes), (LogVerdict::Same, Some(logs.keyframes.len())), "{report:?}");
    assert_eq!(report.legs, Some(2), "{report:?}");
    assert_eq!((report.digest, plain.legs), (None, None));
    assert_eq!((report.hashes_compared, report.exercised), (plain.hashes_compared, plain.exercised));
    let in_words = |report: &LogReport| serde_json::to_string(report).expect("it can be written");
    assert_eq!(in_words(&logs.verified_in_legs("k.hitlog", 3)), in_words(&logs.verified_in_legs("k.hitlog", 1)));

    // A wrong keyframe at the start of a leg, at its end, and within it.
    for forged in 0..logs.keyframes.len() {
        let mut keyframes = logs.keyframes.clone();
        keyframes[forged].content = logs.keyframes[(forged + 1) % keyframes.len()].content.clone();
        logs.write("forged.hitlog", &keyframes);
        let report = logs.verified_in_legs("forged.hitlog", 2);
        let tick = keyframes[forged].tick;
        assert_eq!(report.verdict, LogVerdict::Differs, "{report:?}");
        let detail = report.detail.expect("what differs");
        assert!(detail.starts_with(&format!("the keyframe after tick {tick} ")), "{forged}: {detail}");
    }

    let forge = |change: &dyn Fn(&mut Session)| {
        let mut forged = session.clone();
        change(&mut forged);
        let log = streams::file(&forged, Micros::from_ms(400));
        let keyed = write_keyframes(&log[..], Vec::new(), &logs.keyframes, LogOptions::live()).expect("written");
        std::fs::write(logs.folder.path().join("forged.hitlog"), keyed).expect("written");
        logs.verified_in_legs("forged.hitlog", 2)
    };
    let (ticks, frames) = (session.ticks.len(), session.players[1].frames.len());
    for tick in [3, ticks / 3, ticks / 2, ticks - 2] {
        let report = forge(&|session| session.ticks[tick].hash = Some(7));
        assert_eq!(report.verdict, LogVerdict::Differs, "{report:?}");
        assert!(
            report.detail.is_some_and(|detail| detail.starts_with(&format!("tick {}: ", session.ticks[tick].tick)))
        );
    }
    let mut states = session.clone();
    let moved = frames * 2 / 3;
    let at = states.players[1].executed[moved];
    states.players[1].executed[moved].tick = at.tick.next();
    let report = forge(&|session| session.players[1].executed.clone_from(&states.players[1].executed));
    assert_eq!(report.verdict, LogVerdict::Broken, "{report:?}");
}

/// Keyframes count corrections, so one of them is found without a replay of the whole session.
#[test]
fn a_correction_of_a_log_with_keyframes_is_found_in_a_part() {
    let counter = StepCounter::Corrections;
    let session = traces::session(3, 64.0, DiscRules { counter: Some(counter), ..DiscRules::default() });
    let logs = KeyframedLogs::of(&session);
    logs.write_unreadable("old.hitlog");
    let games = games();
    let steps = |name: &str, player: u32, number: u32| {
        let (engine, path) = (Engine::new(&games), logs.folder.path().join(name));
        let game = games.of_header(&session.header).expect("discs");
        let before = counter.steps();
        let log = ExplainedLog::new(&engine, &path, game, ReplayOptions::default()).expect("a log of this build");
        let found = log.find(&WhyQuery::Correction { player, number });
        let frames = found.map(|found| found.trace.table("frames").map(Table::rows));
        (counter.steps() - before, frames.map_err(|error| error.to_string().replace(name, "LOG")))
    };
    for (player, number, is_there) in [(0, 1, true), (0, 2, true), (1, 1, true), (1, 9_999, false)] {
        let [(whole, of_whole), (part, of_part)] = ["a.hitlog", "k.hitlog"].map(|name| steps(name, player, number));
        assert!(part * 2 < whole, "p{player} {number}: {part} steps, and {whole} for the whole session");
        assert_eq!(of_part, of_whole);
        assert_eq!(steps("old.hitlog", player, number).1, of_whole);
        assert_eq!(of_part.is_ok(), is_there, "{of_part:?}");
    }
}

fn replay_part(log: &SurveyedLog, games: &Games, part: Part) -> Trace {
    let mut trace = Trace::default();
    let options = ReplayOptions { part: Some(part), ..ReplayOptions::default() };
    let game = games.of_header(&log.header).expect("discs");
    let mut put = |_: &_, rows| trace.append(rows).expect("the same columns");
    let ran = log.replay_rows(game, ReplayAttempt { options: &options, encodes: false }, &mut put);
    assert_eq!(ran.expect("a log of this build").expect("nothing depended on bytes").first_difference, None);
    trace
}

/// The first keyframe contains the facts of a survey, so a part before it does not need one.
#[test]
fn a_part_before_the_first_keyframe_needs_no_survey() {
    let mut session = traces::session(4, 9.0, DiscRules::default());
    let row = hitreg::game::StateRows::own::<Discs>();
    for entity in 0..session.players.len() as u16 {
        let disc =
            Disc { origin: glam::Vec3::new(70.0, 90.0 * f32::from(entity), 0.0), alive: true, ..Disc::default() };
        let mut cells = Vec::new();
        let class = row.write::<Discs>(&disc, &mut cells);
        session.states.push(StateKey { tick: Tick(0), viewer: None, entity: EntityId(entity), class }, &cells);
    }
    session.put_in_order();
    let session = rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("it can be run again");
    let logs = KeyframedLogs::of(&session);
    let games = games();
    let engine = Engine::new(&games);
    let path = |name: &str| logs.folder.path().join(name);
    let surveyed = |path: &Path, at| engine.survey_from(path, at).expect("a sound log");
    let first = logs.keyframes[0].at;
    let part = Part { from: Micros::from_ms(500), to: first };
    let whole = replay_part(&surveyed(&path("a.hitlog"), part.from), &games, part);
    assert!(whole.table("bodies").is_some_and(|bodies| bodies.rows() > 100));
    // Damage after the first keyframe does not affect a part before it.
    let mut bytes = std::fs::read(path("k.hitlog")).expect("it was written");
    let late = bytes.len() * 3 / 4;
    bytes[late] ^= 0x55;
    std::fs::write(path("damaged.hitlog"), &bytes).expect("written");
    assert!(engine.survey(&path("damaged.hitlog")).is_err());
    logs.write_unreadable("old.hitlog");
    for name in ["k.hitlog", "damaged.hitlog", "old.hitlog"] {
        assert_eq!(replay_part(&surveyed(&path(name), part.from), &games, part).digest(), whole.digest(), "{name}");
        // A replay that cannot use the keyframe starts at the beginning of the log, with the same result.
        let again = surveyed(&path(name), first).from_its_beginning().expect("a sound beginning");
        assert_eq!(replay_part(&again, &games, part).digest(), whole.digest(), "{name}");
    }
    for (tick, at) in session.ticks.iter().map(|tick| (tick.tick, tick.at)) {
        assert_eq!(engine.time_of(&path("k.hitlog"), tick).expect("a sound log"), Some(at));
        if at < first {
            assert_eq!(engine.time_of(&path("damaged.hitlog"), tick).expect("sound so far"), Some(at));
        }
    }
    assert_eq!(engine.time_of(&path("k.hitlog"), Tick(100_000)).expect("a sound log"), None);
}
