//! Logs of games with their own netcode, recorded through calls: commands show their contents and assume nothing more.

use std::fs;

use hitreg::engine::Engine;
use hitreg::log::{WriterOptions, read_session, write_session};
use hitreg::record::{
    ArrivalRecord, CellKind, Class, ClassId, Execution, ExecutionRecord, FieldSchema, GapCause, GapRecord, HitResult,
    Meaning, OwnValue, PacketRecord, Presence, PresenceRecord, Record, Scope, ShotRecord, SnapshotRecord, StateRecord,
};
use hitreg::recorder::{Description, Recorder, RecorderOptions};
use hitreg::replay::Part;
use hitreg::trace::Table;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};

use serde_json::json;

use super::folder::{Folder, text, word};
use super::report::page;

/// A second of one player, who receives another state at its end. The setting, the usercmd field and the record kind exist
/// only in this game.
fn record_game() -> Folder {
    let folder = Folder::empty();
    let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
    let about = Description::new("mygame").tick_hz(100).setting("sv_gravity", "800").player("p0");
    let about = about.class(Class::new("player", vec![x])).kind("casts", vec![("power".to_owned(), CellKind::F32)]);
    let about = about.usercmd_field(FieldSchema::new("lean", CellKind::F32, Scope::Movement));
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for tick in 1..=100u32 {
        let at = Micros::from_ms(10 * i64::from(tick));
        let command = Usercmd { seq: CommandSeq(tick), ..Usercmd::default() };
        stream.usercmd_with(PlayerId(0), at, command, &[OwnValue::Float(0.25)]).unwrap();
        stream.tick(Tick(tick), at, Some(7)).unwrap();
        stream.body(Tick(tick), EntityId(0), ClassId(0), &[(tick as f32).to_bits()]).unwrap();
        stream.row(0, 0, at, &[OwnValue::Float(1.5)]).unwrap();
    }
    let (tick, viewer) = (Tick(100), Some(PlayerId(0)));
    let masked = StateRecord { tick, viewer, entity: EntityId(0), class: ClassId(0), cells: vec![0] };
    stream.push(Record::State(masked)).unwrap();
    recorder.finish().unwrap();
    folder
}

#[test]
fn settings_and_records_of_an_unknown_game_are_shown() {
    let folder = record_game();
    let info = folder.run("info a.hitlog");
    let output = text(&info.stdout);
    assert!(output.contains("mygame, live") && output.contains("sv_gravity=800"), "{output}");
    assert!(output.contains("100 casts") && !output.contains("skipped") && !output.contains("preset"), "{output}");
    assert_eq!(text(&info.stderr), "");
}

#[test]
fn bytes_of_usercmds_are_counted_and_exported_with_their_usercmd() {
    let folder = Folder::empty();
    let about = Description::new("mygame").tick_hz(100).player("p0").usercmd_bytes();
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (tick, bytes) in (1..).zip([&[][..], &[1, 0xff], &[0; 1000]]) {
        let at = Micros::from_ms(10 * i64::from(tick));
        let command = Usercmd { seq: CommandSeq(tick), ..Usercmd::default() };
        stream.usercmd_with_bytes(PlayerId(0), at, command, &[], bytes).unwrap();
        stream.tick(Tick(tick), at, None).unwrap();
    }
    recorder.finish().unwrap();
    let info = text(&folder.run("info a.hitlog").stdout);
    assert!(info.contains("3, 2 with 1.0 kB of the game's own"), "{info}");
    let info = folder.json("info a.hitlog");
    assert_eq!([&info["usercmds_with_bytes"], &info["usercmd_bytes"]], [2, 1002]);
    let table = text(&folder.run("export a.hitlog --table usercmd_bytes --to csv").stdout);
    let zeros = "00".repeat(1000);
    assert_eq!(table, format!("player,at_us,command,bytes\n0,20000,2,01ff\n0,30000,3,{zeros}\n"));
}

#[test]
fn joins_and_gaps_are_exported() {
    let folder = Folder::empty();
    let about = Description::new("mygame").tick_hz(100).player("p0");
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (tick, change) in [(1, Presence::Joined), (2, Presence::Left)] {
        let at = Micros::from_ms(10 * i64::from(tick));
        stream.push(Record::Presence(PlayerId(0), PresenceRecord { tick: Tick(tick), at, change })).unwrap();
        stream.tick(Tick(tick), at, None).unwrap();
    }
    recorder.finish().unwrap();
    let table = |name: &str, log: &str| text(&folder.run(&format!("export {log} --table {name} --to csv")).stdout);
    assert_eq!(table("presence", "a.hitlog"), "player,tick,at_us,change\n0,1,10000,joined\n0,2,20000,left\n");
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).unwrap()[..]).unwrap();
    let gap = GapRecord { from: Micros(10_000), to: Micros(20_000), player: None, why: GapCause::Paused };
    session.gaps = vec![gap, GapRecord { from: Micros(12_000), player: Some(PlayerId(0)), ..gap }];
    let bytes = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
    fs::write(folder.path("gaps.hitlog"), bytes).unwrap();
    let gaps = "from_us,to_us,player,why\n10000,20000,all,paused\n12000,20000,p0,paused\n";
    assert_eq!(table("gaps", "gaps.hitlog"), gaps);
}

/// Another build may replay the log and find shots.
#[test]
fn shots_that_a_log_does_not_record_are_not_known() {
    let folder = record_game();
    for asked in ["p0", "p0#5", "--at 0.5s"] {
        let refused = folder.refused(&format!("why a.hitlog {asked}"));
        assert!(refused.contains("the log records no shots: name the build that replays it (--build)"), "{refused}");
    }
}

#[test]
fn a_page_of_a_part_has_the_records_of_the_part() {
    let folder = record_game();
    let (_, page) = page(&folder, "a.hitlog --from 0.2s --to tick:50");
    let tables = &page["sides"][0]["tables"];
    assert_eq!(*tables, json!([["ticks", 30], ["bodies", 30], ["executed", 0], ["frames", 30], ["casts", 30]]));
    let beyond = folder.run("report a.hitlog --from 5s -o page.html --force");
    let output = text(&beyond.stderr);
    assert!(beyond.status.code() == Some(128) && output.contains("0:05 is not in the session"), "{output}");
}

#[test]
fn records_of_an_unknown_game_are_exported_unchanged() {
    let folder = record_game();
    let listed = folder.json("export a.hitlog");
    let tables: Vec<(&str, u64)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["table"].as_str().unwrap(), t["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(tables, [("ticks", 100), ("bodies", 100), ("executed", 0), ("frames", 100), ("casts", 100)]);
    let frames = folder.run("export a.hitlog --table frames");
    assert!(text(&frames.stdout).lines().next().unwrap().contains("\"lean\":0.25"), "{}", text(&frames.stdout));
    let bodies = folder.done("export a.hitlog --table bodies --to csv");
    assert_eq!(bodies.lines().last(), Some("100,0,100"), "the state that all players share");
    let casts = folder.run("export a.hitlog --table casts --to csv");
    assert_eq!(text(&casts.stdout).lines().nth(1), Some("0,10000,1.5"));
    let refused = folder.refused("export a.hitlog --set interpolation.lerp_ms=50");
    assert!(refused.contains("the log is of the game `mygame`"), "{refused}");
}

/// The rows of a kind with the name of another table keep a table of their own.
#[test]
fn a_kind_with_the_name_of_a_table_of_traces_is_exported_beside_it() {
    let folder = record_game();
    let whole = read_session(&std::fs::read(folder.path("a.hitlog")).unwrap()[..]).unwrap();
    for name in ["ticks", "views", "packets", "bodies.grenade"] {
        let mut session = whole.clone();
        session.header.unknown[0].name = name.to_owned();
        session.unknown[0].kind = name.to_owned();
        if session.header.unknown[0].is_known_kind() {
            continue;
        }
        folder.save_log("b.hitlog", &session);
        let own = format!("own.{name}");
        let listed = folder.json("export b.hitlog");
        let names: Vec<&str> = listed.as_array().unwrap().iter().map(|t| t["table"].as_str().unwrap()).collect();
        assert!(names.contains(&&*own) && names.iter().filter(|known| **known == name).count() <= 1, "{names:?}");
        let casts = folder.done(&format!("export b.hitlog --table {own} --to csv"));
        assert_eq!(casts.lines().nth(1), Some("0,10000,1.5"));
    }
}

#[test]
fn packets_snapshots_and_times_of_an_unknown_game_are_exported() {
    let folder = Folder::empty();
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let (player, ms) = (PlayerId(1), Micros::from_ms);
    let command = Usercmd {
        seq: CommandSeq(4),
        server_time: ms(70),
        lerp_msec: 100,
        input: Input { msec: 10, ..Input::default() },
    };
    stream.usercmd(player, ms(100), command).unwrap();
    let packet = |number, at| PacketRecord { number, at, newest: CommandSeq(4), count: 3, ..PacketRecord::default() };
    stream.push(Record::Sent(player, PacketRecord { bytes: 61, ..packet(1, ms(100)) })).unwrap();
    stream.push(Record::Sent(player, packet(2, ms(110)))).unwrap();
    for at in [ms(131), ms(140)] {
        stream.push(Record::Reached(player, ArrivalRecord { number: 1, at })).unwrap();
    }
    let (tick, entities) = (Tick(1), vec![EntityId(0), EntityId(1)]);
    stream.tick(tick, ms(140), None).unwrap();
    let snapshot = SnapshotRecord { seq: SnapshotSeq(7), tick, at: ms(141), entities, ..SnapshotRecord::default() };
    stream.push(Record::Snapshot(player, snapshot)).unwrap();
    stream.push(Record::Received(player, ArrivalRecord { number: 7, at: ms(162) })).unwrap();
    recorder.finish().unwrap();
    let table = |name| folder.done(&format!("export a.hitlog --table {name} --to csv"));
    assert_eq!(
        table("packets"),
        "player,packet,at_us,arrived,took_ms,newest,usercmds,ack,bytes\n\
         1,1,100000,2,31,4,3,0,61\n1,2,110000,0,,4,3,0,0\n"
    );
    assert_eq!(
        table("snapshots"),
        "player,snapshot,at_us,arrived,took_ms,ack,entities,effects,choked,helper_ms,warnings\n\
         1,7,141000,1,21,0,2,0,0,,0\n"
    );
    let frames = table("frames");
    assert!(frames.starts_with("player,at_us,command,lerp_msec,msec,server_time_us,"), "{frames}");
    assert!(frames.contains("\n1,100000,4,100,10,70000,"), "{frames}");
}

/// Classes may declare a field of the same name with different types.
#[test]
fn classes_have_a_table_each_with_fields_of_their_own_types() {
    let folder = Folder::empty();
    let path = folder.path("a.hitlog");
    let health = |kind| vec![FieldSchema::new("health", kind, Scope::Status)];
    let about = Description::new("mygame").tick_hz(100).player("p0");
    let about = about.class(Class::new("player", health(CellKind::I32)));
    let about = about.class(Class::new("grenade", health(CellKind::F32)));
    let recorder = Recorder::create(&path, about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    stream.tick(Tick(1), Micros::from_ms(10), None).unwrap();
    stream.body(Tick(1), EntityId(0), ClassId(0), &[80]).unwrap();
    stream.body(Tick(1), EntityId(1), ClassId(1), &[0.5f32.to_bits()]).unwrap();
    recorder.finish().unwrap();
    let table = |name| folder.done(&format!("export a.hitlog --table {name} --to csv"));
    assert_eq!(table("bodies"), "tick,entity,health\n1,0,80\n");
    assert_eq!(table("bodies.grenade"), "tick,entity,health\n1,1,0.5\n");
    folder.done("report a.hitlog -o page.html");
}

#[test]
fn info_names_a_setting_with_an_invalid_value() {
    let folder = Folder::empty();
    let about = Description::new("mygame").setting("lag_compensation.enabled", "maybe").player("p0");
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    recorder.finish().unwrap();
    let info = folder.done("info a.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(info.contains("not valid: `lag_compensation.enabled` cannot be `maybe`: it takes "), "{info}");
}

/// Three shots over 980 ms, without frames or ticks. The players' names are empty.
fn record_shots_only(folder: &Folder) {
    let about = Description::new("mygame").tick_hz(100).player("").player("");
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (command, ms) in [(1, 10), (2, 500), (3, 990)] {
        let (command, at) = (CommandSeq(command), Micros::from_ms(ms));
        let shot = ShotRecord { command, at, reason: HitResult::Hit, target: Some(EntityId(1)), ..Default::default() };
        stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
    }
    recorder.finish().unwrap();
}

#[test]
fn a_log_without_frames_or_ticks_has_the_duration_of_its_records() {
    let folder = Folder::empty();
    record_shots_only(&folder);
    assert_eq!(folder.json("info a.hitlog")["duration_us"], 980_000);
    let about = Description::new("mygame").player("p0").kind("casts", vec![("power".to_owned(), CellKind::F32)]);
    let recorder = Recorder::create(&folder.path("b.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for ms in [-20, 230] {
        stream.row(0, 0, Micros::from_ms(ms), &[OwnValue::Float(1.5)]).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(folder.json("info b.hitlog")["duration_us"], 250_000);
}

#[test]
fn pages_leave_out_empty_names_and_lists() {
    let folder = Folder::empty();
    record_shots_only(&folder);
    let info = folder.done("info a.hitlog");
    assert!(info.contains("the log records no packets\n") && !info.contains("--format json"), "{info}");
    let why = folder.done("why a.hitlog p0#2");
    assert!(why.contains("p0#2") && !why.contains("p0 is") && !why.contains("  players"), "{why}");
    let folder = record_game();
    let info = folder.done("info a.hitlog");
    assert!(info.contains("the log records no packets; `hitreg info FILE --format json` lists usercmds by"), "{info}");
}

#[test]
fn a_log_of_an_unknown_game_has_no_keyframes_whatever_the_interval() {
    let folder = record_game();
    for every in [1, 60] {
        let refused = folder.refused(&format!("keyframes a.hitlog --every {every} -o b.hitlog"));
        assert!(refused.contains("the log is of the game `mygame`, and this build plays"), "{refused}");
    }
}

/// A game may record a shot when it happens, and the tick when it ends.
#[test]
fn recorded_shots_of_an_unknown_game_are_shown_with_their_tick() {
    let folder = Folder::empty();
    let path = folder.path("a.hitlog");
    let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
    let about = Description::new("mygame").tick_hz(100).player("p0").class(Class::new("player", vec![x]));
    let recorder = Recorder::create(&path, about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for tick in 1..=20u32 {
        let at = Micros::from_ms(10 * i64::from(tick));
        let command = CommandSeq(tick);
        stream.usercmd(PlayerId(0), at, Usercmd { seq: command, ..Usercmd::default() }).unwrap();
        let done = ExecutionRecord { command, tick: Tick(tick), how: Execution::Run };
        stream.push(Record::Executed(PlayerId(0), done)).unwrap();
        if tick % 5 == 0 {
            let shot =
                ShotRecord { command, at, reason: HitResult::Hit, target: Some(EntityId(0)), ..Default::default() };
            stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
        }
        if tick == 5 {
            let shot = ShotRecord { command, at, ..Default::default() };
            stream.push(Record::Predicted(PlayerId(0), shot)).unwrap();
        }
        stream.tick(Tick(tick), at + Micros(3), None).unwrap();
        stream.body(Tick(tick), EntityId(0), ClassId(0), &[(tick as f32).to_bits()]).unwrap();
    }
    recorder.finish().unwrap();
    let shots = text(&folder.run("export a.hitlog --table shots --to csv").stdout);
    let mut rows = csv::Reader::from_reader(shots.as_bytes());
    let place = |name: &str, headers: &csv::StringRecord| headers.iter().position(|header| header == name).unwrap();
    let headers = rows.headers().unwrap().clone();
    let places = [place("command", &headers), place("tick", &headers)];
    let ticks: Vec<[String; 2]> = rows.records().map(|row| places.map(|at| row.as_ref().unwrap()[at].into())).collect();
    assert_eq!(ticks, ["5", "10", "15", "20"].map(|tick| [tick.to_owned(), tick.to_owned()]));
    let info = folder.done("info a.hitlog");
    assert!(info.contains("4 shot results recorded") && info.contains("1 predicted shot, 4 shot results"), "{info}");
    let games = hitreg::registry::built_in();
    let engine = Engine::new(&games);
    let trace = engine.shown_records(&path, Part::WHOLE).expect("a log of an unknown game");
    assert_eq!(trace.table("shots").map(Table::rows), Some(4), "the page of report has them");
}

/// A setting of an unknown game goes to its build, with or without a dot in its name.
#[test]
#[cfg(unix)]
fn a_setting_of_an_unknown_game_goes_to_its_build() {
    let folder = record_game();
    let build = folder.path("build");
    crate::pucks::script(&build, "echo \"$@\" >&2; exit 3");
    let line = |pair: &str| format!("diff a.hitlog --no-cache --a {0} --b {0} --b-set {pair}", word(&build));
    for pair in ["sv_gravity=600", "sv_friction=3", "world.friction=3"] {
        let output = folder.run(&line(pair));
        assert_eq!(output.status.code(), Some(125), "{pair}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("failed (exit code 3)"), "{pair}: {}", text(&output.stdout));
    }
    let message = folder.refused(&line("interpolation.lerp=50"));
    assert!(message.contains("did you mean `interpolation.lerp_ms`?"), "{message}");
}
