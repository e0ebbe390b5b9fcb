//! Traces of builds that hitreg does not know.

use hitreg::diff::{DiffOptions, TraceDiff, TraceVerdict, diff};
use hitreg::log::{read_trace, write_trace};
use hitreg::record::{Execution, ExecutionRecord, OwnValue, Record, ShotRecord};
use hitreg::recorder::{Playback, PlaybackError, PlaybackStep, PushError, Recorder, RecorderOptions};
use hitreg::trace::{Column, ColumnData, Table, Trace};
use hitreg::units::{CommandSeq, PlayerId, Tick};

use super::{about, at, tick, usercmd};

fn trace(range: f32, keyed: bool) -> Trace {
    let columns = vec![
        Column::new("tick", ColumnData::U32(vec![1, 1, 2])),
        Column::new("player", ColumnData::U32(vec![0, 1, 0])),
        Column::new("range", ColumnData::F32(vec![300.0, range, 310.0])),
    ];
    let table = Table::new("spells", columns);
    let table = if keyed { table.keyed_by(["tick", "player"]) } else { table };
    let read = write_trace(Vec::new(), &Trace { tables: vec![table], ..Trace::default() }).unwrap();
    read_trace(&read[..]).unwrap()
}

/// A changed cell of a table with a key is one changed cell. Without a key it is a missing row on each side.
#[test]
fn own_tables_declare_the_key_of_their_rows() {
    let compare = |keyed| diff(&trace(250.0, keyed), &trace(251.0, keyed), &DiffOptions::default()).unwrap();
    let (keyed, bare) = (compare(true), compare(false));
    assert_eq!((keyed.verdict, bare.verdict), (TraceVerdict::Differs, TraceVerdict::Differs));
    let only = |diff: &TraceDiff| diff.tables.iter().map(|t| (t.rows.only_in_a, t.rows.only_in_b)).collect::<Vec<_>>();
    assert_eq!((only(&keyed), only(&bare)), (vec![(0, 0)], vec![(1, 1)]));
}

#[test]
fn an_unknown_key_column_is_refused() {
    let table = Table::new("spells", vec![Column::new("tick", ColumnData::U32(vec![1]))]).keyed_by(["caster"]);
    let error = write_trace(Vec::new(), &Trace { tables: vec![table], ..Trace::default() }).unwrap_err();
    assert!(error.to_string().contains("its key \"caster\" is not one of its columns"), "{error}");
}

fn digests(trace: &Trace) -> Vec<hitreg::trace::Digest> {
    trace.tables.iter().map(Table::digest).collect()
}

/// The server stalls for 5 s, and the next tick runs the usercmds of both players from that time. The build takes real
/// time for each, so that the recorder's thread runs between the usercmds of one player and those of the other.
#[test]
fn a_replay_of_a_stalled_tick_keeps_every_usercmd() {
    let folder = tempfile::tempdir().unwrap();
    let (log, to) = (folder.path().join("a.hitlog"), folder.path().join("a.hittrace"));
    let recorder = Recorder::create(&log, about(2), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let stalled = 500;
    for seq in 1..=stalled {
        for player in [PlayerId(0), PlayerId(1)] {
            stream.usercmd(player, at(seq), usercmd(seq)).unwrap();
        }
    }
    stream.tick(Tick(1), at(stalled), None).unwrap();
    for player in [PlayerId(0), PlayerId(1)] {
        for seq in (1..=stalled).map(CommandSeq) {
            let ran = ExecutionRecord { command: seq, tick: Tick(1), how: Execution::Run };
            stream.push(Record::Executed(player, ran)).unwrap();
        }
    }
    assert_eq!(recorder.finish().unwrap().late_records, 0);
    let mut play = Playback::open(&log, to.clone(), "mygame", Vec::new()).unwrap();
    let mut stream = play.begin(about(2)).unwrap();
    let other = Recorder::to(std::io::sink(), about(2), RecorderOptions::patient()).unwrap();
    assert_eq!(play.next(&mut other.stream()), Err(PushError::ForeignStream));
    while let Some(step) = play.next(&mut stream).unwrap() {
        match step {
            PlaybackStep::Input { frame, .. } if frame % 10 == 0 => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            PlaybackStep::Tick => stream.tick(play.now().tick, play.now().at, None).unwrap(),
            _ => {}
        }
    }
    drop(stream);
    play.finish().unwrap();
    let trace = hitreg::store::read_trace(&to).unwrap();
    let recorded = hitreg::recorded::all_records(&hitreg::store::read_log(&log).unwrap());
    let rows = |trace: &Trace| trace.tables.iter().map(|table| (table.name.clone(), table.rows())).collect::<Vec<_>>();
    assert_eq!(rows(&trace), rows(&recorded));
    assert_eq!(digests(&trace), digests(&recorded));
}

#[test]
fn a_playback_without_a_trace_cannot_finish() {
    let folder = tempfile::tempdir().unwrap();
    let (log, to) = (folder.path().join("a.hitlog"), folder.path().join("a.hittrace"));
    let recorder = Recorder::create(&log, about(1), RecorderOptions::patient()).unwrap();
    tick(&mut recorder.stream(), 1, 1).unwrap();
    recorder.finish().unwrap();
    let play = Playback::open(&log, to.clone(), "mygame", Vec::new()).unwrap();
    let error = play.finish().unwrap_err();
    assert!(matches!(error, PlaybackError::NotBegun) && error.exit_code() == 128, "{error}");
    assert!(!to.exists());
}

/// Usercmds, shots and rows that come long after newer ones are in the trace, in the order of their times.
#[test]
fn a_trace_takes_records_of_any_age() {
    let folder = tempfile::tempdir().unwrap();
    let digest = hitreg::trace::Digest::of_bytes(b"");
    let record = |name: &str, late: bool| {
        let to = folder.path().join(name);
        let about = about(1).kind("casts", Vec::new());
        let recorder = Recorder::trace(&to, about, digest).unwrap();
        let mut stream = recorder.stream();
        let mut push = |number: u32| {
            tick(&mut stream, 1, number).unwrap();
            stream.row(0, number, at(number), &[] as &[OwnValue]).unwrap();
            let shot = ShotRecord { command: CommandSeq(number), at: at(number), ..ShotRecord::default() };
            stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(30));
        };
        let (early, later) = ([1, 2], [2_000, 4_000, 8_000]);
        if late {
            later.into_iter().chain(early).for_each(&mut push);
        } else {
            early.into_iter().chain(later).for_each(&mut push);
        }
        drop(stream);
        assert_eq!(recorder.finish().unwrap().late_records, 0);
        hitreg::store::read_trace(&to).unwrap()
    };
    let (in_order, late) = (record("a.hittrace", false), record("b.hittrace", true));
    assert_eq!(digests(&late), digests(&in_order));
    assert_eq!(late.table("frames").unwrap().rows(), 5);
}
