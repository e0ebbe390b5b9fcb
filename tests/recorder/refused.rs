//! Invalid records are refused with a message, without side effects.

use hitreg::record::{ArrivalRecord, CellKind, Class, ClassId, FieldSchema, OwnValue, Record, Scope};
use hitreg::recorder::{Description, FinishError, PushError, Recorder, RecorderOptions};
use hitreg::units::{EntityId, Micros, PlayerId, Tick};
use hitreg::usercmd::Usercmd;

use super::records::SharedMemory;
use super::{about, tick, usercmd};

#[test]
fn invalid_records_are_refused_without_side_effects() {
    let memory = SharedMemory::default();
    let own = about(2).kind("casts", vec![("spell".to_owned(), CellKind::U32), ("power".to_owned(), CellKind::F32)]);
    let recorder = Recorder::to(memory.clone(), own, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let now = Micros(10);
    let refused = [
        stream.usercmd(PlayerId(2), now, usercmd(1)),
        stream.push(Record::Reached(PlayerId(9), ArrivalRecord { number: 1, at: now })),
        stream.tick(Tick(0), now, None),
        stream.body(Tick(1), EntityId(0), ClassId(0), &[1]),
        stream.body(Tick(1), EntityId(0), ClassId(1), &[1, 2]),
        stream.row(1, 0, now, &[]),
        stream.row(0, 0, now, &[OwnValue::Number(1)]),
        stream.row(0, 0, now, &[OwnValue::Float(1.0), OwnValue::Number(1)]),
        stream.usercmd_with_bytes(PlayerId(0), now, usercmd(1), &[], &[1]),
        stream.usercmd_with(PlayerId(0), now, usercmd(1), &[OwnValue::Number(1)]),
    ];
    let output = refused.map(|outcome| outcome.unwrap_err().to_string());
    assert_eq!(
        output,
        [
            "a record of player 2, but the session has 2 players",
            "a record of player 9, but the session has 2 players",
            "there is no tick 0: ticks count from 1",
            "a state of 1 cells, but the fields of class 0 have 2",
            "a state of class 1, but the number of classes is 1",
            "there is no custom kind 1: the description declares 1, numbered from 0",
            "a row of `casts` is 1, and the description says u32, f32",
            "a row of `casts` is a float, 1, and the description says u32, f32",
            "a usercmd has bytes of its own, but the description does not declare them",
            "a row of `frames` is 1, and the description says nothing",
        ]
    );
    tick(&mut stream, 2, 1).unwrap();
    assert_eq!(recorder.finish().unwrap().records, 5);
    assert_eq!(memory.session().players[1].frames.len(), 1);
    let after = stream.usercmd(PlayerId(0), now, usercmd(2)).unwrap_err();
    assert_eq!(after.to_string(), "the recording is finished: nothing more is recorded");
}

#[test]
fn invalid_descriptions_are_refused() {
    let x = || FieldSchema::new("x", CellKind::F32, Scope::Movement);
    let column = |name: &str| vec![(name.to_owned(), CellKind::U32)];
    let cases = [
        (Description::new("g"), "the session has no players: call `player` for each one"),
        (about(201), "it has 201 players, and a session has at most 200"),
        (Description::new("").player("p"), "the game has no name"),
        (about(1).class(Class::new("c", vec![x(), x()])), "class `c` has two fields of one name"),
        (
            about(1).usercmd_field(FieldSchema::new("yaw", CellKind::F32, Scope::Movement)),
            "a usercmd has two fields of one name",
        ),
        (about(1).kind("k", column("a")).kind("k", column("a")), "two kinds of records have one name"),
        (about(1).kind("k", column("at_us")), "kind `k` has two columns of one name (each has `at_us` and `series`)"),
        (about(1).kind("k", column("series")), "kind `k` has two columns of one name (each has `at_us` and `series`)"),
        (
            about(1).class(Class::new("npc", vec![FieldSchema::new("tick", CellKind::U32, Scope::Status)])),
            "class `npc` has a field called `tick`, and the table `bodies` has another column of that name: rename the field",
        ),
        (
            about(1).usercmd_field(FieldSchema::new("ran", CellKind::U32, Scope::Movement)),
            "a usercmd has a field called `ran`, and the table `frames` has another column of that name: rename the field",
        ),
        (about(1).kind("ticks", column("a")), "`ticks` is a kind that every log has"),
        (about(1).setting("", "x"), "a setting is called ``: its name needs words with dots between them"),
        (about(1).setting("sv..x", "1"), "a setting is called `sv..x`: its name needs words with dots between them"),
        (about(1).setting("sv x", "1"), "a setting is called `sv x`: its name needs words with dots between them"),
        (about(1).client_side(7, PlayerId(1)), "it is the side of player 1, and there are 1 players"),
    ];
    for (about, output) in cases {
        let error = Recorder::to(Vec::new(), about, RecorderOptions::default()).unwrap_err();
        assert!(matches!(error, FinishError::Description(_)), "{error}");
        assert_eq!(error.to_string(), format!("the description of the session: {output}"));
    }
}

/// A file that another one replaced must not become the log.
#[test]
#[cfg(unix)]
fn a_file_that_is_gone_at_the_end_is_the_stated_reason() {
    for is_replaced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (path, part) = (folder.path().join("a.hitlog"), folder.path().join("a.hitlog.part"));
        let recorder = Recorder::create(&path, about(1), RecorderOptions::default()).unwrap();
        tick(&mut recorder.stream(), 1, 1).unwrap();
        std::fs::rename(&part, folder.path().join("moved.part")).unwrap();
        if is_replaced {
            std::fs::write(&part, "something else").unwrap();
        }
        let error = recorder.finish().unwrap_err().to_string();
        assert!(error.contains("a.hitlog.part: this file was deleted, renamed or replaced"), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn a_second_recording_to_a_file_of_this_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let _first = Recorder::create(&path, about(1), RecorderOptions::default()).unwrap();
    let error = Recorder::create(&path, about(1), RecorderOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a recording to this file is running") && !error.contains("process"), "{error}");
}

#[test]
fn usercmd_0_and_senseless_spans_are_refused() {
    let recorder = Recorder::to(Vec::new(), about(1), RecorderOptions::default()).unwrap();
    let zero = recorder.stream().usercmd(PlayerId(0), Micros(1), Usercmd::default());
    assert_eq!(zero, Err(PushError::UsercmdZero));
    for seconds in [-5, 0, 1_000_001] {
        let error = Recorder::keep_last(Micros::from_s(seconds), about(1), RecorderOptions::default()).unwrap_err();
        assert!(error.to_string().contains("a flight recorder keeps from 1 s to 1000000 s"), "{seconds}: {error}");
    }
    assert!(Recorder::keep_last(Micros::from_s(1_000_000), about(1), RecorderOptions::default()).is_ok());
}

#[test]
fn a_recording_gets_its_name_when_complete_and_replaces_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hitlog");
    let recorder = Recorder::create(&path, about(1), RecorderOptions::default()).unwrap();
    assert!(!path.exists() && folder.path().join("a.hitlog.part").exists());
    tick(&mut recorder.stream(), 1, 1).unwrap();
    recorder.finish().unwrap();
    assert!(path.exists() && !folder.path().join("a.hitlog.part").exists());
    assert!(matches!(Recorder::create(&path, about(1), RecorderOptions::default()), Err(FinishError::Store(_))));
}

#[test]
fn a_log_with_the_name_of_an_unfinished_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut rotated = RecorderOptions::patient();
    rotated.rotation = Some(hitreg::recorder::Rotation::default());
    for options in [RecorderOptions::patient(), rotated] {
        let refused = Recorder::create(&folder.path().join("a.hitlog.part"), about(1), options).unwrap_err();
        assert!(refused.to_string().contains("a name that ends in .part"), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn damage_by_an_unknown_player_is_refused() {
    let recorder = Recorder::to(std::io::sink(), about(2), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let damage =
        |attacker| Record::Damage(hitreg::record::DamageRecord { attacker, ..hitreg::record::DamageRecord::default() });
    assert!(stream.push(damage(None)).is_ok() && stream.push(damage(Some(PlayerId(1)))).is_ok());
    let refused = stream.push(damage(Some(PlayerId(2)))).unwrap_err().to_string();
    assert_eq!(refused, "a record of player 2, but the session has 2 players");
}
