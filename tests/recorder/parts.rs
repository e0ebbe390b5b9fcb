//! Parts of a session: rotated files, and the recent part in memory. Each part replays on its own.

use std::path::{Path, PathBuf};

use hitreg::info::SessionInfo;
use hitreg::record::{
    CellKind, Class, ClassId, Execution, ExecutionRecord, FieldSchema, FrameRecord, GapCause, OwnValue, Presence,
    PresenceRecord, Record, Scope, Session, TextCode,
};
use hitreg::recorder::{FinishError, Recorder, RecorderOptions, Rotation};
use hitreg::replay::LogSurvey;
use hitreg::store::read_log;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

use super::{about, at, end_tick, tick, usercmd};

/// The delay of usercmds, in ticks.
const DELAY_TICKS: u32 = 5;

/// Records a session of two players. The second joins late and leaves. Usercmds carry bytes and run some ticks after
/// they were made.
fn play(recorder: &Recorder, ticks: std::ops::RangeInclusive<u32>) {
    let mut stream = recorder.stream();
    let presence = |tick, change| PresenceRecord { tick: Tick(tick), at: at(tick), change };
    for number in ticks {
        if number == 50 || number == 900 {
            let change = if number == 50 { Presence::Joined } else { Presence::Left };
            stream.push(Record::Presence(PlayerId(1), presence(number, change))).unwrap();
        }
        for player in [PlayerId(0), PlayerId(1)] {
            let bytes = number.to_le_bytes();
            stream.usercmd_with_bytes(player, at(number), usercmd(number), &[], &bytes).unwrap();
        }
        end_tick(&mut stream, 2, number).unwrap();
        for player in [PlayerId(0), PlayerId(1)] {
            if number > DELAY_TICKS {
                let ran = ExecutionRecord {
                    command: CommandSeq(number - DELAY_TICKS),
                    tick: Tick(number),
                    how: Execution::Run,
                };
                stream.push(Record::Executed(player, ran)).unwrap();
            }
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Checks that a part can be replayed: it has all bodies, all joined players, and every executed usercmd with its
/// bytes.
fn assert_can_be_replayed(part: &Session, number: u32, after: u32) {
    let setting = |key: &str| part.header.settings.iter().find(|(known, _)| known == key).map(|(_, value)| &**value);
    assert_eq!(setting("recorder.part"), Some(number.to_string()).as_deref());
    assert_eq!(part.ticks[0].tick, Tick(after + 1));
    let first: Vec<_> = part.states.of_tick(Tick(0)).map(|(key, cells)| (key.entity.0, cells.to_vec())).collect();
    let presence = &part.players[1].presence;
    if after == 0 {
        assert_eq!((setting("recorder.begins_after_tick"), first.len()), (None, 0));
    } else {
        assert_eq!(setting("recorder.begins_after_tick"), Some(after.to_string()).as_deref());
        let x = (after as f32).to_bits();
        assert_eq!(first, [(0, vec![x, 0]), (1, vec![x, 1])], "the bodies after tick {after}");
        let here = (50..900).contains(&after);
        assert_eq!(presence.first().is_some_and(|p| p.change == Presence::Joined && p.tick == Tick(50)), here);
        // The usercmds that run later are older than the first tick.
        let covered = part.ticks.last().unwrap().at - part.ticks[0].at;
        assert!(part.players[0].frames[0].at < part.ticks[0].at);
        assert_eq!([part.duration(), LogSurvey::of(part).duration()], [covered; 2]);
        assert_eq!(SessionInfo::of(part).duration_us, covered.0);
    }
    for player in &part.players {
        for ran in &player.executed {
            let bytes =
                player.frames.iter().filter(|frame| frame.command.seq == ran.command).map(|frame| &*frame.bytes);
            let expected = [&ran.command.0.to_le_bytes()[..]];
            assert_eq!(bytes.collect::<Vec<_>>(), expected, "usercmd {} runs in part {number}", ran.command);
        }
        let ticks = |of: &ExecutionRecord| of.tick;
        assert!(player.executed.first().map(ticks) >= part.ticks.first().map(|tick| tick.tick));
    }
}

#[test]
fn rotated_files_are_complete_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("duel.hitlog");
    let mut options = RecorderOptions::patient();
    options.rotation = Some(Rotation { after: Micros::from_s(3), bytes: u64::MAX });
    let recorder = Recorder::create(&path, about(2).usercmd_bytes(), options).unwrap();
    play(&recorder, 1..=1000);
    recorder.finish().unwrap();
    let written = files(folder.path());
    let names: Vec<_> = written.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["duel-0001.hitlog", "duel-0002.hitlog", "duel-0003.hitlog", "duel-0004.hitlog"]);
    let mut next = 0;
    for (number, file) in (1..).zip(&written) {
        let part = read_log(file).unwrap();
        assert_can_be_replayed(&part, number, next);
        assert!(part.ticks.iter().map(|tick| tick.tick.0).eq(next + 1..=next + part.ticks.len() as u32));
        assert!(part.gaps.is_empty());
        next += part.ticks.len() as u32;
    }
    assert_eq!(next, 1000, "no tick is lost between the files");
    // A restarted server continues the numbering.
    let recorder = Recorder::create(&path, about(2).usercmd_bytes(), options).unwrap();
    play(&recorder, 1..=10);
    recorder.finish().unwrap();
    assert_eq!(files(folder.path()).len(), 5);
    assert!(folder.path().join("duel-0005.hitlog").exists());
}

#[test]
fn files_rotate_at_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = RecorderOptions::patient();
    options.rotation = Some(Rotation { after: Micros::from_s(3600), bytes: 4096 });
    let recorder = Recorder::create(&folder.path().join("long.hitlog"), about(2).usercmd_bytes(), options).unwrap();
    play(&recorder, 1..=12_000);
    let records = recorder.finish().unwrap().records;
    let parts: Vec<Session> = files(folder.path()).iter().map(|file| read_log(file).unwrap()).collect();
    // Sixteen chunks of a second may wait for the disk, and two more are being packed and filled.
    assert!(parts.len() >= 120 / 20, "{} files", parts.len());
    assert_eq!(parts.iter().map(|part| part.ticks.len()).sum::<usize>(), 12_000);
    // Two usercmds, a tick and two bodies in each tick; executions, and two changes of presence.
    assert_eq!(records, 12_000 * 5 + 2 * (12_000 - u64::from(DELAY_TICKS)) + 2, "each push counts once");
}

/// A session runs for a minute. Two requests save its last ten seconds.
#[test]
fn the_recent_part_is_saved_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Micros::from_s(10);
    let recorder = Recorder::keep_last(keep, about(2).usercmd_bytes(), RecorderOptions::patient()).unwrap();
    play(&recorder, 1..=500);
    let (early, late) = (folder.path().join("early.hitlog"), folder.path().join("late.hitlog"));
    recorder.save(&early).unwrap();
    assert_eq!(files(folder.path()), std::slice::from_ref(&early), "nothing is written before it is asked for");
    let early = read_log(&early).unwrap();
    assert_can_be_replayed(&early, 1, 0);
    assert_eq!((early.ticks.len(), early.gaps.len()), (500, 0), "all of it is there, up to the last push");
    play(&recorder, 501..=6000);
    // Records within the window of the newest are not sorted yet. In real time the recorder is at most one window
    // behind.
    std::thread::sleep(std::time::Duration::from_millis(100));
    recorder.save(&late).unwrap();
    let late = read_log(&late).unwrap();
    let begins = late.ticks[0].tick.0 - 1;
    let part: u32 = late.header.settings.iter().find(|(key, _)| key == "recorder.part").unwrap().1.parse().unwrap();
    assert_can_be_replayed(&late, part, begins);
    assert_eq!(late.ticks.last().unwrap().tick, Tick(6000));
    let kept = at(6000) - late.ticks[0].at;
    assert!(kept >= keep && kept < keep + Micros::from_s(2), "{kept} were kept");
    let [gap] = &late.gaps[..] else { panic!("{:?}", late.gaps) };
    assert_eq!((gap.from, gap.to, gap.why), (at(1), at(begins), GapCause::Paused));
    let twice = recorder.save(&folder.path().join("late.hitlog")).unwrap_err();
    assert!(matches!(twice, FinishError::Store(_)), "{twice}");
    recorder.finish().unwrap();
    assert_eq!(files(folder.path()).len(), 2);
}

/// A client records no ticks, and its clock may be behind zero.
#[test]
fn a_client_saves_its_recent_part() {
    let folder = tempfile::tempdir().unwrap();
    let about = about(1).client_side(7, PlayerId(0));
    let recorder = Recorder::keep_last(Micros::from_s(10), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let made = |number: u32| at(number) - Micros::from_s(1_000);
    (1..=6000).for_each(|number| stream.usercmd(PlayerId(0), made(number), usercmd(number)).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let path = folder.path().join("client.hitlog");
    recorder.save(&path).unwrap();
    let saved = read_log(&path).unwrap();
    let first = saved.players[0].frames[0].command.seq.0;
    assert!((4700..=5000).contains(&first), "{first}");
    let [gap] = &saved.gaps[..] else { panic!("{:?}", saved.gaps) };
    assert_eq!((gap.from, gap.to, gap.why), (made(1), made(first - 1), GapCause::Paused));
}

#[test]
fn a_save_without_a_recent_part_is_refused() {
    let recorder = Recorder::to(std::io::sink(), about(1), RecorderOptions::default()).unwrap();
    let refused = recorder.save(Path::new("nothing.hitlog")).unwrap_err();
    assert!(matches!(refused, FinishError::NothingKept), "{refused}");
}

/// A build that replays a log records a trace: the tables of the log.
#[test]
fn a_recorder_writes_traces() {
    let folder = tempfile::tempdir().unwrap();
    let (log, trace) = (folder.path().join("a.hitlog"), folder.path().join("a.hittrace"));
    let own = || {
        let lean =
            hitreg::record::FieldSchema::new("lean", hitreg::record::CellKind::F32, hitreg::record::Scope::Movement);
        about(2).usercmd_field(lean).kind("casts", vec![("spell".into(), hitreg::record::CellKind::U32)])
    };
    let push = |recorder: Recorder| {
        let mut stream = recorder.stream();
        for number in 1..=300 {
            let values = [OwnValue::Float(number as f32 / 8.0)];
            stream.usercmd_with(PlayerId(0), at(number), usercmd(number), &values).unwrap();
            tick(&mut stream, 0, number).unwrap();
            stream.body(Tick(number), PlayerId(1).entity(), Default::default(), &[number, 7]).unwrap();
            stream.row(0, 1, at(number), &[OwnValue::Number(number.into())]).unwrap();
            let shot = hitreg::record::ShotRecord { command: CommandSeq(number), at: at(number), ..Default::default() };
            stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
        }
        recorder.finish().unwrap();
    };
    push(Recorder::create(&log, own(), RecorderOptions::patient()).unwrap());
    let digest = hitreg::trace::Digest::of_bytes(&std::fs::read(&log).unwrap());
    push(Recorder::trace(&trace, own(), digest).unwrap());
    let (session, trace) = (read_log(&log).unwrap(), hitreg::store::read_trace(&trace).unwrap());
    assert_eq!((&*trace.header.game, &*trace.header.log_digest), ("mygame", &*digest.to_string()));
    let tables: Vec<_> = trace.tables.iter().map(|table| (&*table.name, table.rows())).collect();
    let expected = [("ticks", 300), ("bodies", 300), ("executed", 0), ("frames", 300), ("shots", 300), ("casts", 300)];
    assert_eq!(tables, expected);
    let digests = |tables: &[hitreg::trace::Table]| tables.iter().map(|table| table.digest()).collect::<Vec<_>>();
    let recorded_tables = hitreg::recorded::all_records(&session).tables;
    assert_eq!(digests(&trace.tables), digests(&recorded_tables), "a log and a trace of the same pushes say the same");
    let table = |name| trace.table(name).unwrap();
    assert_eq!(table("frames").f32s("lean")[8], 9.0 / 8.0);
    assert_eq!(table("casts").u32s("spell")[299], 300);
    assert_eq!((table("shots").u32s("tick")[9], table("shots").names("reason").get(9)), (10, "missed"));
    let frames: Vec<FrameRecord> = session.players[0].frames.clone();
    assert_eq!(frames.len(), table("frames").rows());
}

/// A stream names each text once, usually long before the records that use it.
#[test]
fn every_part_contains_the_texts_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let own = || {
        let weapon = FieldSchema::new("weapon", CellKind::Text, Scope::Status);
        about(1).class(Class::new("gun", vec![weapon])).kind("chat", vec![("words".into(), CellKind::Text)])
    };
    let play = |recorder: &Recorder| {
        let mut stream = recorder.stream();
        let [rifle, hello] = ["rifle", "hello"].map(|text| stream.text(text).unwrap());
        for number in 1..=1000 {
            tick(&mut stream, 1, number).unwrap();
            stream.body_values(Tick(number), EntityId(7), ClassId(1), &[rifle.into()]).unwrap();
            stream.row(0, 0, at(number), &[hello.into()]).unwrap();
        }
    };
    let check = |session: &Session, begins_after: Option<u32>| {
        let guns = session.states.iter().filter(|(key, _)| key.class == ClassId(1));
        let guns: Vec<(Tick, &str)> = guns
            .map(|(key, cells)| (key.tick, session.texts.get(TextCode(CellKind::Text.number(cells) as u64))))
            .collect();
        assert!(guns.len() >= session.ticks.len() && guns.iter().all(|(_, text)| *text == "rifle"), "{guns:?}");
        assert_eq!(guns[0].0 == Tick(0), begins_after.is_some());
        let chat = &session.unknown.iter().find(|records| records.kind == "chat").unwrap().columns[1];
        assert!(chat.values.len() >= session.ticks.len());
        assert!(chat.values.iter().all(|code| session.texts.get(TextCode(*code as u64)) == "hello"));
        assert_eq!(session.texts.len(), 2);
    };
    let mut options = RecorderOptions::patient();
    options.rotation = Some(Rotation { after: Micros::from_s(3), bytes: u64::MAX });
    let recorder = Recorder::create(&folder.path().join("a.hitlog"), own(), options).unwrap();
    play(&recorder);
    recorder.finish().unwrap();
    let written = files(folder.path());
    assert_eq!(written.len(), 4);
    for (file, begins_after) in written.iter().zip([None, Some(300), Some(600), Some(900)]) {
        check(&read_log(file).unwrap(), begins_after);
    }
    let recorder = Recorder::keep_last(Micros::from_s(4), own(), RecorderOptions::patient()).unwrap();
    play(&recorder);
    let saved = folder.path().join("saved.hitlog");
    recorder.save(&saved).unwrap();
    check(&read_log(&saved).unwrap(), Some(600));
}
