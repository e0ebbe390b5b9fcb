//! Files made to be as bad as can be thought of.

use std::fs;
use std::path::Path;

use hitreg::log::{self, WriterOptions};
use hitreg::record::{RecordedSide, Session, SessionId, TickRecord};
use hitreg::units::{Micros, PlayerId, Tick};
use rmpv::Value;
use tempfile::TempDir;

use super::child::{run, run_within};
use super::container::{apart, get, set, together};
use super::sides;

/// The most memory of any command, streaming or holding: commands that hold run under [`LIMIT_MIB`](super::child::LIMIT_MIB).
const MOST_MEMORY: usize = 512 << 20;
/// What it may ask for in all: work that matters does not go without memory.
const MOST_WORK: usize = 8 << 30;

/// The commands that read logs; `F` stands for the file.
const OF_LOGS: &[&str] = &[
    "info F",
    "info F --replay",
    "replay F",
    "replay F -o out.hittrace",
    "replay F --mode open",
    "replay F --set server.tick_hz=1000",
    "replay F --record out.hitlog",
    "verify F",
    "diff F F",
    "diff F --b-set interpolation.lerp_ms=50",
    "bisect ticks F F",
    "export F --all -o out",
    "export F --perfetto -o out/time.json",
    "report F -o out/page.html",
    "report F --b-set interpolation.lerp_ms=50 -o out/page.html",
    "why F p0#20",
    "why F --correction 1 --player p1",
    "recover F -o out.hitlog",
    "merge F F -o out.hitlog",
    "sweep F --set interpolation.lerp_ms=50..100:50",
    "shrink F --while true -o out.hitlog",
];

const OF_TRACES: &[&str] = &[
    "info F",
    "diff F F",
    "bisect ticks F F",
    "export F --all -o out",
    "export F --perfetto -o out/time.json",
    "report F F -o out/page.html",
    "why F p0#20",
    "why F --correction 1 --player p1",
];

/// Holds a command to its bounds.
fn bounded(folder: &Path, line: &str) -> (i32, String) {
    bounded_beside(folder, line, &["f.hitlog", "f.hittrace"])
}

/// The same in a folder where other files stand.
fn bounded_beside(folder: &Path, line: &str, there: &[&str]) -> (i32, String) {
    let _ = fs::remove_dir_all(folder.join("out"));
    for name in ["out.hittrace", "out.hitlog"] {
        let _ = fs::remove_file(folder.join(name));
    }
    fs::create_dir(folder.join("out")).expect("a folder");
    let ran = run(folder, line);
    assert!(!ran.said.contains("panicked"), "{line}: {}", ran.said);
    assert!(ran.peak < MOST_MEMORY, "{line}: {} MiB, exit {}: {}", ran.peak >> 20, ran.code, ran.said);
    assert!(ran.total < MOST_WORK, "{line}: {} MiB in all, exit {}: {}", ran.total >> 20, ran.code, ran.said);
    assert!([0, 1, 125, 128].contains(&ran.code), "{line}: exit {}", ran.code);
    if ran.code == 128 && !line.starts_with("verify") {
        assert!(ran.said.contains(": ") && ran.said.len() < 4000, "{line}: {}", ran.said);
    }
    for entry in fs::read_dir(folder).expect("listable") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let named = there.contains(&&name[..]) || matches!(&name[..], "out" | "out.hitlog" | "out.hittrace");
        assert!(named, "{line} wrote {name}");
    }
    (ran.code, ran.said)
}

/// Holds every command to its bounds on a file. `refused` is what all of them say of it, where they do.
pub(crate) fn all_bounded(file: &[u8], of_traces: bool, refused: Option<&str>) {
    assert!(file.len() < 1 << 20, "{} bytes", file.len());
    let folder = TempDir::new().expect("a folder");
    let (name, lines) = if of_traces { ("f.hittrace", OF_TRACES) } else { ("f.hitlog", OF_LOGS) };
    fs::write(folder.path().join(name), file).expect("written");
    for line in lines {
        let (code, said) = bounded(folder.path(), &line.replace('F', name));
        // That it is no side of a session `merge` says before it reads on.
        if let Some(what) = refused.filter(|_| !line.starts_with("verify") && !line.starts_with("merge")) {
            assert!(code == 128 && said.contains(what), "{line}: exit {code}: {said}");
        }
    }
}

/// A short session of two players.
pub(crate) fn short_log() -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    let ran = run(folder.path(), "record synth -o a.hitlog --players 2 --seconds 2 --delay-ms 40");
    assert_eq!(ran.code, 0, "{}", ran.said);
    fs::read(folder.path().join("a.hitlog")).expect("a log")
}

/// The same with states to begin from.
pub(crate) fn keyed_log() -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a.hitlog"), short_log()).expect("written");
    let ran = run(folder.path(), "keyframes a.hitlog --every 1 -o b.hitlog");
    assert_eq!(ran.code, 0, "{}", ran.said);
    fs::read(folder.path().join("b.hitlog")).expect("a log")
}

pub(crate) fn short_trace() -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a.hitlog"), short_log()).expect("written");
    assert_eq!(run(folder.path(), "replay a.hitlog -o a.hittrace").code, 0);
    fs::read(folder.path().join("a.hittrace")).expect("a trace")
}

fn session() -> Session {
    log::read_session(&short_log()[..]).expect("a log")
}

fn written(session: &Session) -> Vec<u8> {
    log::write_session(Vec::new(), session, WriterOptions::whole()).expect("written")
}

/// A log with another header.
fn with_header(key: &str, value: Value) -> Vec<u8> {
    let mut chunks = apart(&short_log());
    set(get(&mut chunks[0], "header"), key, value);
    together(&chunks)
}

fn texts(count: usize) -> Value {
    Value::Array(vec![Value::from(""); count])
}

#[test]
fn what_is_taken_apart_and_put_together_is_the_same() {
    assert_eq!(log::read_session(&together(&apart(&short_log()))[..]).expect("a log"), session());
    let trace = short_trace();
    let again = log::read_trace(&together(&apart(&trace))[..]).expect("a trace");
    assert_eq!(again.digest(), log::read_trace(&trace[..]).expect("a trace").digest());
}

#[test]
fn headers_of_millions_are_refused() {
    let pairs = Value::Array(vec![texts(2); 1_000_000]);
    all_bounded(&with_header("settings", pairs), false, Some("values"));
    let player = Value::Map(vec![("name".into(), "".into()), ("recorded".into(), true.into())]);
    all_bounded(&with_header("players", Value::Array(vec![player.clone(); 200_000])), false, Some("values"));
    all_bounded(&with_header("players", Value::Array(vec![player; 20_000])), false, Some("players"));
    let kinds = vec![Value::Array(vec!["".into(), texts(0)]); 1_000_000];
    all_bounded(&with_header("kinds", Value::Array(kinds)), false, Some("values"));
}

#[test]
fn rules_of_millions_are_refused() {
    let rules = [vec![0x81, 0xA1, b'a', 0xDD, 0, 0x40, 0, 0], vec![0x90; 4 << 20]].concat();
    all_bounded(&with_header("rules", Value::Binary(rules)), false, None);
}

/// As many players as may be, and as little of each as can be.
#[test]
fn as_many_players_as_may_be_of_whom_nothing_is_known() {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::MAX_PLAYERS, player);
    session.players.resize_with(log::MAX_PLAYERS, Default::default);
    let ticks = session.ticks.clone();
    for n in 0..3 {
        session.ticks.extend(ticks.iter().map(|tick| TickRecord {
            tick: Tick(tick.tick.0 + 128 * (n + 1)),
            at: tick.at + Micros::from_s(2 * i64::from(n + 1)),
            hash: None,
        }));
    }
    all_bounded(&written(&session), false, None);
}

/// A trace of terabytes is refused under the limit of any machine, before it is made.
#[test]
fn what_no_machine_holds_is_refused_by_its_own_limit() {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::MAX_PLAYERS, player);
    session.players.resize_with(log::MAX_PLAYERS, Default::default);
    let tick = |n: u32| TickRecord { tick: Tick(n + 1), at: Micros(i64::from(n) * 15_625), hash: None };
    session.ticks = (0..1_500_000).map(tick).collect();
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("f.hitlog"), written(&session)).expect("written");
    for line in ["bisect ticks f.hitlog --b-set interpolation.lerp_ms=50", "shrink f.hitlog --while true -o out.hitlog"]
    {
        let ran = run_within(None, folder.path(), line);
        assert!(
            ran.code == 128 && ran.said.contains("f.hitlog: this needs about"),
            "{line}: {}: {}",
            ran.code,
            ran.said
        );
        assert!(ran.peak < MOST_MEMORY, "{line}: {} MiB", ran.peak >> 20);
        assert!(!folder.path().join("out.hitlog").exists(), "{line} leaves something behind");
    }
}

/// Ticks without hashes cost next to nothing in a file, and each becomes a row for each player. A quiet session of
/// hours is honest, so it is replayed: the work grows with its length, and 400,000 ticks stay below the bound.
#[test]
fn many_ticks() {
    let mut session = session();
    let tick = |n: u32| TickRecord { tick: Tick(n + 1), at: Micros(i64::from(n) * 15_625), hash: None };
    session.ticks = (0..400_000).map(tick).collect();
    let file = written(&session);
    all_bounded(&file, false, None);
}

#[test]
fn ticks_far_apart_are_no_reason_to_replay_all_between_them() {
    for last in [Micros::from_s(1 << 30), Micros(i64::MAX), Micros(i64::MAX - 1)] {
        for first in [Micros::ZERO, Micros(i64::MIN)] {
            let mut session = session();
            session.ticks.first_mut().expect("a tick").at = first;
            session.ticks.last_mut().expect("a tick").at = last;
            all_bounded(&written(&session), false, None);
        }
    }
}

/// The last moment that a number can tell is one, too: it is written, and whoever puts sides together says what it is.
#[test]
fn the_end_of_time_ends() {
    let folder = TempDir::new().expect("a folder");
    sides::write(2.0, 2, folder.path()).expect("sides");
    let logs: Vec<_> =
        fs::read_dir(folder.path()).expect("listable").map(|entry| entry.expect("an entry").path()).collect();
    let end = Micros(i64::MAX);
    let last_at_the_end = |late: &Path| {
        let mut session = log::read_session(&fs::read(late).expect("a log")[..]).expect("a log");
        session.ticks.iter_mut().next_back().into_iter().for_each(|tick| tick.at = end);
        for player in &mut session.players {
            player.frames.iter_mut().next_back().into_iter().for_each(|frame| frame.at = end);
            player.received.iter_mut().next_back().into_iter().for_each(|arrival| arrival.at = end);
        }
        let worse = written(&session);
        assert!(log::read_session(&worse[..]).expect("a log") == session, "all of it is there");
        fs::write(late, worse).expect("written");
    };
    let whole: Vec<_> = logs.iter().map(|log| fs::read(log).expect("a log")).collect();
    for late in logs.iter().map(Some).chain([None]) {
        logs.iter().filter(|log| late.is_none_or(|late| late == *log)).for_each(|log| last_at_the_end(log));
        let names: Vec<_> = logs.iter().map(|log| log.file_name().expect("a name").to_str().expect("UTF-8")).collect();
        let (code, said) = bounded_beside(folder.path(), &format!("merge {} -o out.hitlog", names.join(" ")), &names);
        assert!(code == 128 && said.contains("30,000 years"), "exit {code}: {said}");
        logs.iter().zip(&whole).for_each(|(log, whole)| fs::write(log, whole).expect("written"));
    }
}

/// All frames between two ticks, with everyone on the screen.
#[test]
fn many_frames() {
    let mut session = session();
    let player = session.of(PlayerId(0)).expect("a player");
    let (first, last) = (player.frames[10].clone(), player.frames.pop().expect("a frame"));
    player.frames.truncate(11);
    for n in 1..600_000u32 {
        let mut frame = first.clone();
        frame.command.seq.0 += n;
        frame.at += Micros(i64::from(n) / 100_000);
        player.frames.push(frame);
    }
    player.frames.push(last);
    all_bounded(&written(&session), false, None);
}

/// Every table names its first series again and again.
#[test]
fn series_that_stand_there_again_and_again_are_refused() {
    let mut chunks = apart(&short_log());
    let Value::Map(entries) = &mut chunks[1] else { panic!("a map") };
    for (_, table) in entries.iter_mut() {
        if let Value::Array(parts) = table {
            let [Value::Array(ids), Value::Array(rows), _] = &mut parts[..] else { panic!("a table") };
            ids.extend(vec![ids[0].clone(); 200_000]);
            rows.extend(vec![Value::from(0); 200_000]);
        }
    }
    all_bounded(&together(&chunks), false, None);
    let mut chunks = apart(&short_trace());
    for chunk in &mut chunks[1..] {
        set(chunk, "series", Value::Array(vec!["player".into(); 100_000]));
        set(chunk, "rows", Value::from(200_000));
    }
    all_bounded(&together(&chunks), true, Some("series"));
}

/// Chunks of which there are as many as fit, with nothing in them.
#[test]
fn many_chunks_of_nothing() {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::MAX_PLAYERS, player);
    session.players.resize_with(log::MAX_PLAYERS, Default::default);
    let many = |session: &Session| {
        let mut chunks = apart(&written(session));
        chunks.truncate(2);
        let nothing = Vec::from([(Value::from("index"), 0.into()), (Value::from("before"), 0.into())]);
        chunks.resize(12_000, Value::Map(nothing));
        together(&chunks)
    };
    session.header.side = Some(RecordedSide { session: SessionId(1), player: None });
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("f.hitlog"), many(&session)).expect("written");
    let (code, said) = bounded(folder.path(), "merge f.hitlog -o out.hitlog");
    assert!(code == 128 && said.contains("memory"), "merge of a side: exit {code}: {said}");
    session.header.side = None;
    // Commands that stream answer; those that hold the session refuse it under the limit of these tests.
    all_bounded(&many(&session), false, None);
}

/// Rows of no length cost nothing, and tables and columns only their names.
#[test]
fn many_rows_and_columns_of_nothing() {
    let trace = apart(&short_trace());
    let chunk = |table: String, rows: u32, columns: usize| {
        let column = |n: usize| {
            let entries = [("name", n.to_string().into()), ("type", "u32".into()), ("transform", "packed".into())];
            let data = ("data", Value::Binary(Vec::new()));
            Value::Map(entries.into_iter().chain([data]).map(|(key, value)| (Value::from(key), value)).collect())
        };
        let entries = [
            ("index", Value::from(0)),
            ("before", 0.into()),
            ("table", table.into()),
            ("rows", rows.into()),
            ("columns", Value::Array((0..columns).map(column).collect())),
        ];
        Value::Map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
    };
    let file = |chunks: Vec<Value>| together(&[vec![trace[0].clone()], chunks].concat());
    all_bounded(&file(vec![chunk("a".into(), 0, 100_000)]), true, Some("columns"));
    all_bounded(&file((0..150).map(|_| chunk("a".into(), 0, 4000)).collect()), true, None);
    all_bounded(&file((0..3_000).map(|n| chunk(n.to_string(), 0, 1)).collect()), true, None);
    all_bounded(&file((0..64).map(|_| chunk("a".into(), 500_000, 2)).collect()), true, None);
    all_bounded(&file((0..18).map(|n| chunk(n.to_string(), 500_000, 2)).collect()), true, None);
}
