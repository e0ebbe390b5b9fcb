//! A log with parts of a later version: a setting, an entity class, fields of entities and usercmds, a column and a
//! record kind. No command refuses it. Commands name the parts that they ignore, and keep them when they rewrite a log.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hitreg::arena::{Arena, ArenaRules};
use hitreg::game::{CellKind, Class, ClassId, FieldSchema, Meaning, Scope};
use hitreg::log::{WriterOptions, read_session, write_session};
use hitreg::record::{
    NumberForm, PlayerRecords, RecordedSide, Session, SessionId, StateKey, States, UnknownColumn, UnknownKind,
    UnknownRecords,
};
use hitreg::session::SessionRecorder;
use hitreg::session::scenario::Scenario;
use hitreg::units::{EntityId, PlayerId, Tick};
use hitreg::usercmd::OwnCells;
use rmpv::Value;

use crate::container::{pack_chunks, set, unpack_chunks};

/// The unknown parts that every command names.
const UNKNOWN_PARTS: [&str; 3] = ["setting physics.wind_kmh=12", "column grip of `frames`", "records of kind `chat`"];
/// The unknown parts that commands with the game's code name as well.
const UNKNOWN_PARTS_OF_THE_GAME: [&str; 3] =
    ["usercmd field `lean` in degrees", "field `mood` of class `entity`", "class `drone`"];

fn session() -> Session {
    let scenario = Scenario { players: 2, seconds: 3.0, seed: 8, ..Scenario::default() };
    let rules = ArenaRules::default();
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    hitreg::arena::record_synthetic(&scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session.put_in_order();
    session
}

/// The session with the parts of a later version.
fn add_unknown_parts(mut session: Session) -> Session {
    let header = &mut session.header;
    header.settings.push(("physics.wind_kmh".to_owned(), "12".to_owned()));
    let angle = |name| FieldSchema::new(name, CellKind::F32, Scope::Status).meaning(Meaning::Angle);
    header.classes[0].fields.push(angle("mood"));
    header.classes.push(Class::new("drone", vec![angle("tilt")]));
    header.usercmd.push(angle("lean"));
    let kind = |name: &str, columns: &[&str]| UnknownKind {
        name: name.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        fields: Vec::new(),
    };
    header.unknown = vec![kind("frames", &["grip"]), kind("chat", &["at_us", "words"])];
    let mut states = States::default();
    for (key, cells) in session.states.iter() {
        states.push(key, &[cells, &[1.5f32.to_bits()]].concat());
    }
    for tick in (5..60).step_by(5) {
        let key = StateKey { tick: Tick(tick), entity: EntityId(700), class: ClassId(1), viewer: None };
        states.push(key, &[(tick as f32).to_bits()]);
    }
    session.states = states;
    session.put_in_order();
    let mut grip = UnknownRecords { kind: "frames".to_owned(), ..UnknownRecords::default() };
    let mut values = Vec::new();
    for (player, records) in session.players.iter_mut().enumerate() {
        for frame in &mut records.frames {
            let seq = frame.command.seq.0;
            frame.command.input.own = OwnCells::new(&[(seq as f32 / 7.0).to_bits()]);
            grip.series.push(player as u32);
            grip.keys.push(seq.into());
            values.push(i64::from((seq as f32 / 3.0).to_bits()));
        }
    }
    grip.columns = vec![UnknownColumn { form: NumberForm::F32, values }];
    let at = UnknownColumn { form: NumberForm::Integer, values: vec![100_000, 200_000, 2_500_000] };
    let words = UnknownColumn { form: NumberForm::Integer, values: vec![7, -3, i64::MAX] };
    let chat = UnknownRecords {
        kind: "chat".to_owned(),
        series: vec![0, 1, 0],
        keys: vec![0; 3],
        columns: vec![at, words],
        time_column: Some(0),
    };
    session.unknown = vec![grip, chat];
    session
}

/// Writes the session as a file of a later minor version.
fn write(path: &Path, session: &Session, options: WriterOptions) {
    let bytes = write_session(Vec::new(), session, options).expect("memory takes everything");
    let mut chunks = unpack_chunks(&bytes);
    set(&mut chunks[0], "format", Value::Array(vec![1.into(), 9.into()]));
    std::fs::write(path, pack_chunks(&chunks)).expect("a folder");
}

fn read(path: &Path) -> Session {
    read_session(&std::fs::read(path).expect("a file")[..]).expect("a good log")
}

/// Sorts records of unknown kinds. Their order within a chunk may change; their players do not.
fn sorted(mut session: Session) -> Session {
    for records in &mut session.unknown {
        let mut rows: Vec<_> = (0..records.series.len())
            .map(|row| {
                (records.series[row], records.keys[row], records.columns.iter().map(|c| c.values[row]).collect())
            })
            .collect::<Vec<(u32, i64, Vec<i64>)>>();
        rows.sort();
        records.series = rows.iter().map(|row| row.0).collect();
        records.keys = rows.iter().map(|row| row.1).collect();
        for (place, column) in records.columns.iter_mut().enumerate() {
            column.values = rows.iter().map(|row| row.2[place]).collect();
        }
    }
    session.unknown.sort_by(|a, b| a.kind.cmp(&b.kind));
    session
}

#[test]
fn unknown_parts_survive_a_rewrite() {
    let session = add_unknown_parts(session());
    for options in [WriterOptions::live(), WriterOptions::whole()] {
        let bytes = write_session(Vec::new(), &session, options).expect("memory takes everything");
        let back = read_session(&bytes[..]).expect("a good log");
        assert_eq!(back.header, session.header);
        assert_eq!(sorted(back), sorted(session.clone()));
    }
}

#[test]
fn every_command_names_the_unknown_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let future = add_unknown_parts(session());
    write(&at.join("future.hitlog"), &future, WriterOptions::live());
    let own = env!("CARGO_BIN_EXE_hitreg");
    let run = |args: &[&str], codes: &[i32]| -> String {
        let output = Command::new(own).args(args).current_dir(at).output().expect("a command");
        let message = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.code().is_some_and(|code| codes.contains(&code)),
            "{args:?}: {:?}\n{message}",
            output.status
        );
        for part in UNKNOWN_PARTS {
            assert!(message.contains(part), "{args:?} does not say {part}:\n{message}");
        }
        message
    };
    for args in
        [&["info", "future.hitlog"][..], &["replay", "future.hitlog"], &["replay", "future.hitlog", "--mode", "open"]]
    {
        let message = run(args, &[0]);
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in UNKNOWN_PARTS_OF_THE_GAME {
            assert!(message.contains(part), "{args:?} does not say {part}:\n{message}");
        }
    }
    assert!(run(&["verify", "future.hitlog", "--rollback", "16"], &[0]).contains("1 ok"));
    run(&["diff", "future.hitlog", "--b-preset", "quake3"], &[1]);
    run(&["diff", "future.hitlog", "--b", own, "--no-cache"], &[0]);
    run(&["bisect", "ticks", "future.hitlog", "--b-preset", "quake3"], &[1]);
    run(&["bisect", "ticks", "future.hitlog"], &[0]);
    run(&["bisect", "builds", "future.hitlog", own, own, "--no-cache"], &[0, 1, 125]);
    run(&["export", "future.hitlog", "--table", "shots"], &[0]);
    run(&["sweep", "future.hitlog", "--set", "interpolation.lerp_ms=0..100:100"], &[0]);
    run(&["shrink", "future.hitlog", "-o", "small.hitlog", "--b-preset", "quake3", "--on", "hits"], &[0, 128]);
    run(&["recover", "future.hitlog", "-o", "recovered.hitlog"], &[0]);
    assert_eq!(sorted(read(&at.join("recovered.hitlog"))), sorted(future.clone()));
    // A new recording keeps the parts that still apply: the settings and classes of the log.
    run(&["replay", "future.hitlog", "--record", "again.hitlog"], &[0]);
    let again = read(&at.join("again.hitlog")).header;
    assert!(again.settings.iter().any(|(key, _)| key == "physics.wind_kmh"));
    for (name, side) in sides(&future) {
        write(&at.join(name), &side, WriterOptions::live());
    }
    run(&["merge", "server.hitlog", "p0.hitlog", "p1.hitlog", "-o", "merged.hitlog"], &[0]);
    let merged = read(&at.join("merged.hitlog"));
    assert_eq!(merged.header.settings, future.header.settings);
    assert_eq!((&merged.header.classes, &merged.header.unknown), (&future.header.classes, &future.header.unknown));
    assert_eq!(merged.states, future.states);
    assert_eq!(sorted(merged).unknown, sorted(future).unknown);
}

/// A game may record kinds of its own in a session of this build's pipelines.
#[test]
fn declared_kinds_of_the_game_are_counted_and_not_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = session();
    let fields = vec![FieldSchema::new("at_us", CellKind::I64, Scope::Status)];
    session.header.unknown = vec![UnknownKind { name: "goals".to_owned(), columns: vec!["at_us".to_owned()], fields }];
    let at = UnknownColumn { form: NumberForm::Integer, values: vec![100_000, 200_000] };
    let (kind, columns) = ("goals".to_owned(), vec![at]);
    session.unknown =
        vec![UnknownRecords { kind, series: vec![0; 2], keys: vec![0; 2], columns, time_column: Some(0) }];
    let bytes = write_session(Vec::new(), &session, WriterOptions::whole()).expect("memory takes everything");
    std::fs::write(folder.path().join("goals.hitlog"), bytes).expect("a folder");
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hitreg")).args(args).current_dir(folder.path()).output();
        let output = output.expect("a command");
        let message = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !message.contains("skipped"), "{args:?}:\n{message}");
        message
    };
    assert!(run(&["info", "goals.hitlog"]).contains("2 goals"));
    run(&["replay", "goals.hitlog"]);
}

fn sides(session: &Session) -> Vec<(&'static str, Session)> {
    let of_side = |player| {
        let side = Some(RecordedSide { session: SessionId(5), player });
        let mut of = Session::new(session.header.clone());
        of.header.side = side;
        of
    };
    let mut server = of_side(None);
    (server.ticks, server.states) = (session.ticks.clone(), session.states.clone());
    server.unknown = session.unknown.iter().filter(|records| records.kind == "chat").cloned().collect();
    let mut sides = Vec::new();
    for (index, records) in session.players.iter().enumerate() {
        let (frames, sent, received) = (records.frames.clone(), records.sent.clone(), records.received.clone());
        let of_server = PlayerRecords { frames: Vec::new(), sent: Vec::new(), received: Vec::new(), ..records.clone() };
        server.players[index] = of_server;
        let mut client = of_side(Some(PlayerId(index as u16)));
        client.players[index] = PlayerRecords { frames, sent, received, ..PlayerRecords::default() };
        let mut grip = session.unknown.iter().find(|records| records.kind == "frames").expect("there is").clone();
        let mine: Vec<bool> = grip.series.iter().map(|player| *player as usize == index).collect();
        let keep = |values: &mut Vec<i64>| {
            let mut mine = mine.iter();
            values.retain(|_| *mine.next().unwrap_or(&false));
        };
        keep(&mut grip.keys);
        grip.columns.iter_mut().for_each(|column| keep(&mut column.values));
        grip.series.retain(|player| *player as usize == index);
        client.unknown = vec![grip];
        sides.push((["p0.hitlog", "p1.hitlog"][index], client));
    }
    sides.push(("server.hitlog", server));
    sides
}
