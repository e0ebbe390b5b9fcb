//! Files crafted to cost the most memory and time.

use std::fs;
use std::path::Path;

use hitreg::log::{self, WriterOptions};
use hitreg::record::{GapCause, GapRecord, RecordedSide, Session, SessionId, ShotRecord, TickRecord};
use hitreg::units::{CommandSeq, Micros, PlayerId, Tick};
use rmpv::Value;
use tempfile::TempDir;

use super::child::{run, run_within};
use super::container::{get, pack_chunks, set, unpack_chunks};
use super::sides;

/// The memory limit of any command. Commands that hold a session run under [`LIMIT_MIB`](super::child::LIMIT_MIB).
const MEMORY_BYTES_MAX: usize = 512 << 20;
/// The limit of all allocations of a command, a measure of work.
const ALLOCATED_BYTES_MAX: usize = 8 << 30;

/// The commands that read logs, in groups that take about the same time; `F` is the file.
const REPLAYS: &[&str] = &[
    "info F",
    "info F --replay",
    "replay F",
    "replay F -o out.hittrace",
    "replay F --mode open",
    "replay F --set server.tick_hz=1000",
    "replay F --record out.hitlog",
];
const COMPARISONS: &[&str] = &[
    "verify F",
    "diff F F",
    "diff F --b-set interpolation.lerp_ms=50",
    "bisect ticks F F",
    "merge F F -o out.hitlog",
    "sweep F --set interpolation.lerp_ms=50..100:50",
    "shrink F --while true -o out.hitlog",
];
const EXPORTS_AND_EXPLANATIONS: &[&str] = &[
    "export F --all -o out",
    "export F --perfetto -o out/time.json",
    "report F -o out/page.html",
    "report F --b-set interpolation.lerp_ms=50 -o out/page.html",
    "why F p0#20",
    "why F --correction 1 --player p1",
    "recover F -o out.hitlog",
];

const TRACE_COMMANDS: &[&str] = &[
    "info F",
    "diff F F",
    "bisect ticks F F",
    "export F --all -o out",
    "export F --perfetto -o out/time.json",
    "report F F -o out/page.html",
    "why F p0#20",
    "why F --correction 1 --player p1",
];

/// Runs a command and checks its limits.
fn run_bounded(folder: &Path, line: &str) -> (i32, String) {
    run_bounded_with_files(folder, line, &["f.hitlog", "f.hittrace"])
}

/// Runs a command in a folder with other files and checks its limits.
fn run_bounded_with_files(folder: &Path, line: &str, there: &[&str]) -> (i32, String) {
    let _ = fs::remove_dir_all(folder.join("out"));
    for name in ["out.hittrace", "out.hitlog"] {
        let _ = fs::remove_file(folder.join(name));
    }
    fs::create_dir(folder.join("out")).expect("a folder");
    let ran = run(folder, line);
    assert!(!ran.output.contains("panicked"), "{line}: {}", ran.output);
    assert!(ran.peak < MEMORY_BYTES_MAX, "{line}: {} MiB, exit {}: {}", ran.peak >> 20, ran.code, ran.output);
    assert!(
        ran.total < ALLOCATED_BYTES_MAX,
        "{line}: {} MiB in all, exit {}: {}",
        ran.total >> 20,
        ran.code,
        ran.output
    );
    assert!([0, 1, 125, 128].contains(&ran.code), "{line}: exit {}", ran.code);
    if ran.code == 128 && !line.starts_with("verify") {
        assert!(ran.output.contains(": ") && ran.output.len() < 4000, "{line}: {}", ran.output);
    }
    for entry in fs::read_dir(folder).expect("listable") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let named = there.contains(&&name[..]) || matches!(&name[..], "out" | "out.hitlog" | "out.hittrace");
        assert!(named, "{line} wrote {name}");
    }
    (ran.code, ran.output)
}

/// Runs every command on a file and checks its limits. With `refused`, all commands must fail with that text.
pub(crate) fn run_all_bounded(file: &[u8], of_traces: bool, refused: Option<&str>) {
    let (name, lines) = match of_traces {
        true => ("f.hittrace", TRACE_COMMANDS.to_vec()),
        false => ("f.hitlog", [REPLAYS, COMPARISONS, EXPORTS_AND_EXPLANATIONS].concat()),
    };
    run_each_bounded(file, (name, &lines), refused);
}

fn run_each_bounded(file: &[u8], (name, lines): (&str, &[&str]), refused: Option<&str>) {
    assert!(file.len() < 1 << 20, "{} bytes", file.len());
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join(name), file).expect("written");
    for line in lines {
        let (code, output) = run_bounded(folder.path(), &line.replace('F', name));
        // `merge` fails before it reads that far: the file is not the log of one side.
        if let Some(what) = refused.filter(|_| !line.starts_with("verify") && !line.starts_with("merge")) {
            assert!(code == 128 && output.contains(what), "{line}: exit {code}: {output}");
        }
    }
}

/// A test for each group of commands on a log that takes them some seconds each.
macro_rules! run_groups_bounded {
    ($name:ident, $file:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn replays() {
                run_each_bounded(&$file, ("f.hitlog", REPLAYS), None);
            }

            #[test]
            fn comparisons() {
                run_each_bounded(&$file, ("f.hitlog", COMPARISONS), None);
            }

            #[test]
            fn exports_and_explanations() {
                run_each_bounded(&$file, ("f.hitlog", EXPORTS_AND_EXPLANATIONS), None);
            }
        }
    };
}

/// A short session of two players.
pub(crate) fn short_log() -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    let ran = run(folder.path(), "record synth -o a.hitlog --players 2 --seconds 2 --delay-ms 40");
    assert_eq!(ran.code, 0, "{}", ran.output);
    fs::read(folder.path().join("a.hitlog")).expect("a log")
}

/// The short session with keyframes.
pub(crate) fn keyed_log() -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a.hitlog"), short_log()).expect("written");
    let ran = run(folder.path(), "keyframes a.hitlog --every 1 -o b.hitlog");
    assert_eq!(ran.code, 0, "{}", ran.output);
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

fn log_bytes(session: &Session) -> Vec<u8> {
    log::write_session(Vec::new(), session, WriterOptions::whole()).expect("written")
}

/// A log with a changed value in its header.
fn with_header(key: &str, value: Value) -> Vec<u8> {
    let mut chunks = unpack_chunks(&short_log());
    set(get(&mut chunks[0], "header"), key, value);
    pack_chunks(&chunks)
}

fn texts(count: usize) -> Value {
    Value::Array(vec![Value::from(""); count])
}

#[test]
fn unpacked_chunks_pack_into_the_same_file() {
    assert_eq!(log::read_session(&pack_chunks(&unpack_chunks(&short_log()))[..]).expect("a log"), session());
    let trace = short_trace();
    let again = log::read_trace(&pack_chunks(&unpack_chunks(&trace))[..]).expect("a trace");
    assert_eq!(again.digest(), log::read_trace(&trace[..]).expect("a trace").digest());
}

#[test]
fn headers_with_millions_of_entries_are_refused() {
    let pairs = Value::Array(vec![texts(2); 1_000_000]);
    run_all_bounded(&with_header("settings", pairs), false, Some("values"));
    let player = Value::Map(vec![("name".into(), "".into()), ("recorded".into(), true.into())]);
    run_all_bounded(&with_header("players", Value::Array(vec![player.clone(); 200_000])), false, Some("values"));
    run_all_bounded(&with_header("players", Value::Array(vec![player; 20_000])), false, Some("players"));
    let kinds = vec![Value::Array(vec!["".into(), texts(0)]); 1_000_000];
    run_all_bounded(&with_header("kinds", Value::Array(kinds)), false, Some("values"));
}

#[test]
fn rules_with_millions_of_entries_are_refused() {
    let rules = [vec![0x81, 0xA1, b'a', 0xDD, 0, 0x40, 0, 0], vec![0x90; 4 << 20]].concat();
    run_all_bounded(&with_header("rules", Value::Binary(rules)), false, None);
}

/// The maximum of players, with almost no records of each.
fn the_maximum_of_players() -> Vec<u8> {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::LOG_PLAYERS_MAX, player);
    session.players.resize_with(log::LOG_PLAYERS_MAX, Default::default);
    let ticks = session.ticks.clone();
    for n in 0..3 {
        session.ticks.extend(ticks.iter().map(|tick| TickRecord {
            tick: Tick(tick.tick.0 + 128 * (n + 1)),
            at: tick.at + Micros::from_s(2 * i64::from(n + 1)),
            hash: None,
        }));
    }
    log_bytes(&session)
}

run_groups_bounded!(the_maximum_of_players_without_records_stays_within_limits, the_maximum_of_players());

/// A trace of terabytes is refused before it is made, under the default limit of any machine.
#[test]
fn traces_larger_than_any_memory_are_refused() {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::LOG_PLAYERS_MAX, player);
    session.players.resize_with(log::LOG_PLAYERS_MAX, Default::default);
    let tick = |n: u32| TickRecord { tick: Tick(n + 1), at: Micros(i64::from(n) * 15_625), hash: None };
    session.ticks = (0..1_500_000).map(tick).collect();
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("f.hitlog"), log_bytes(&session)).expect("written");
    let ran = run_within(None, folder.path(), "shrink f.hitlog --while true -o out.hitlog");
    assert!(ran.code == 128 && ran.output.contains("f.hitlog: this needs about"), "{}: {}", ran.code, ran.output);
    assert!(ran.peak < MEMORY_BYTES_MAX, "{} MiB", ran.peak >> 20);
    assert!(!folder.path().join("out.hitlog").exists(), "shrink leaves something behind");
}

/// Ticks without hashes take almost no bytes in a file, and each becomes a row for each player. A quiet session of
/// hours is valid, so it is replayed. The work grows with its length; 400,000 ticks stay below the limit.
fn many_ticks() -> Vec<u8> {
    let mut session = session();
    let tick = |n: u32| TickRecord { tick: Tick(n + 1), at: Micros(i64::from(n) * 15_625), hash: None };
    session.ticks = (0..400_000).map(tick).collect();
    log_bytes(&session)
}

run_groups_bounded!(many_ticks_stay_within_limits, many_ticks());

#[test]
fn distant_ticks_do_not_make_replays_long() {
    for last in [Micros::from_s(1 << 30), Micros(i64::MAX), Micros(i64::MAX - 1)] {
        for first in [Micros::ZERO, Micros(i64::MIN)] {
            let mut session = session();
            session.ticks.first_mut().expect("a tick").at = first;
            session.ticks.last_mut().expect("a tick").at = last;
            run_all_bounded(&log_bytes(&session), false, None);
        }
    }
}

/// A game may record any time of a shot and of a gap, also many gaps of the whole time that there is.
#[test]
fn extreme_times_of_shots_and_gaps_stay_within_limits() {
    let mut session = session();
    session.header.game = "another".into();
    let times = [i64::MIN, -1, 0, i64::MAX - 1, i64::MAX].map(Micros);
    let shot = |(seq, at)| ShotRecord { command: CommandSeq(seq), at, ..ShotRecord::default() };
    for player in &mut session.players {
        player.judged = (20..).zip(times).map(shot).collect();
        player.predicted.clone_from(&player.judged);
    }
    let between = |from| times.map(|to| GapRecord { from, to, player: None, why: GapCause::Overrun });
    session.gaps = times.into_iter().flat_map(between).collect();
    session.gaps.push(GapRecord { player: Some(PlayerId(1)), ..session.gaps[4] });
    session.put_in_order();
    run_all_bounded(&log_bytes(&session), false, None);
}

/// The greatest time is valid in a log. `merge` fails and names the length of the session.
#[test]
fn the_greatest_time_is_read_and_merge_refuses_it() {
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
        let late_log = log_bytes(&session);
        assert!(log::read_session(&late_log[..]).expect("a log") == session, "all of it is there");
        fs::write(late, late_log).expect("written");
    };
    let whole: Vec<_> = logs.iter().map(|log| fs::read(log).expect("a log")).collect();
    for late in logs.iter().map(Some).chain([None]) {
        logs.iter().filter(|log| late.is_none_or(|late| late == *log)).for_each(|log| last_at_the_end(log));
        let names: Vec<_> = logs.iter().map(|log| log.file_name().expect("a name").to_str().expect("UTF-8")).collect();
        let (code, output) =
            run_bounded_with_files(folder.path(), &format!("merge {} -o out.hitlog", names.join(" ")), &names);
        assert!(code == 128 && output.contains("30,000 years"), "exit {code}: {output}");
        logs.iter().zip(&whole).for_each(|(log, whole)| fs::write(log, whole).expect("written"));
    }
}

/// All frames between two ticks, with every player on the screen.
#[test]
fn many_frames_stay_within_limits() {
    let mut session = session();
    let player = &mut session.players[0];
    let (first, last) = (player.frames[10].clone(), player.frames.pop().expect("a frame"));
    player.frames.truncate(11);
    for n in 1..600_000u32 {
        let mut frame = first.clone();
        frame.command.seq.0 += n;
        frame.at += Micros(i64::from(n) / 100_000);
        player.frames.push(frame);
    }
    player.frames.push(last);
    run_all_bounded(&log_bytes(&session), false, None);
}

/// Every table contains its first series many times.
#[test]
fn repeated_series_are_refused() {
    let mut chunks = unpack_chunks(&short_log());
    let Value::Map(entries) = &mut chunks[1] else { panic!("a map") };
    for (_, table) in entries.iter_mut() {
        if let Value::Array(parts) = table {
            let [Value::Array(ids), Value::Array(rows), _] = &mut parts[..] else { panic!("a table") };
            ids.extend(vec![ids[0].clone(); 200_000]);
            rows.extend(vec![Value::from(0); 200_000]);
        }
    }
    run_all_bounded(&pack_chunks(&chunks), false, None);
    let mut chunks = unpack_chunks(&short_trace());
    for chunk in &mut chunks[1..] {
        set(chunk, "series", Value::Array(vec!["player".into(); 100_000]));
        set(chunk, "rows", Value::from(200_000));
    }
    run_all_bounded(&pack_chunks(&chunks), true, Some("series"));
}

/// The maximum of chunks, all empty, in the log of a whole session or of one `side`. Commands that stream give an
/// answer. Commands that hold the session refuse it under the limit of these tests.
fn many_empty_chunks(side: Option<RecordedSide>) -> Vec<u8> {
    let mut session = session();
    let player = session.header.players[1].clone();
    session.header.players.resize(log::LOG_PLAYERS_MAX, player);
    session.header.side = side;
    session.players.resize_with(log::LOG_PLAYERS_MAX, Default::default);
    let mut chunks = unpack_chunks(&log_bytes(&session));
    chunks.truncate(2);
    let nothing = Vec::from([(Value::from("index"), 0.into()), (Value::from("before"), 0.into())]);
    chunks.resize(12_000, Value::Map(nothing));
    pack_chunks(&chunks)
}

run_groups_bounded!(many_empty_chunks_stay_within_limits, many_empty_chunks(None));

#[test]
fn a_merge_refuses_many_empty_chunks() {
    let folder = TempDir::new().expect("a folder");
    let side = RecordedSide { session: SessionId(1), player: None };
    fs::write(folder.path().join("f.hitlog"), many_empty_chunks(Some(side))).expect("written");
    let (code, output) = run_bounded(folder.path(), "merge f.hitlog -o out.hitlog");
    assert!(code == 128 && output.contains("memory"), "merge of a side: exit {code}: {output}");
}

/// A trace whose tables have so many rows and columns without values. Rows without columns take no bytes, and tables
/// and columns take only their names.
fn run_empty_tables(tables: impl Iterator<Item = (u32, u32, usize)>, refused: Option<&str>) {
    let chunk = |(name, rows, columns): (u32, u32, usize)| {
        let column = |n: usize| {
            let entries = [("name", n.to_string().into()), ("type", "u32".into()), ("transform", "packed".into())];
            let data = ("data", Value::Binary(Vec::new()));
            Value::Map(entries.into_iter().chain([data]).map(|(key, value)| (Value::from(key), value)).collect())
        };
        let entries = [
            ("index", Value::from(0)),
            ("before", 0.into()),
            ("table", name.to_string().into()),
            ("rows", rows.into()),
            ("columns", Value::Array((0..columns).map(column).collect())),
        ];
        Value::Map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
    };
    let chunks = [unpack_chunks(&short_trace()).swap_remove(0)].into_iter().chain(tables.map(chunk));
    run_all_bounded(&pack_chunks(&chunks.collect::<Vec<_>>()), true, refused);
}

#[test]
fn many_empty_columns_stay_within_limits() {
    run_empty_tables([(0, 0, 100_000)].into_iter(), Some("columns"));
    run_empty_tables((0..150).map(|_| (0, 0, 4000)), None);
}

#[test]
fn many_empty_tables_stay_within_limits() {
    run_empty_tables((0..3_000).map(|name| (name, 0, 1)), None);
}

#[test]
fn many_empty_rows_stay_within_limits() {
    run_empty_tables((0..64).map(|_| (0, 500_000, 2)), None);
    run_empty_tables((0..18).map(|name| (name, 500_000, 2)), None);
}
