//! The log contains every pushed record, ordered by time.

use std::io::Write;
use std::sync::{Arc, Mutex};

use hitreg::log::{read_session, recover};
use hitreg::record::{
    ArrivalRecord, CellKind, ClassId, DamageRecord, Execution, ExecutionRecord, FieldSchema, GapCause, HitResult,
    OwnValue, PacketRecord, Presence, PresenceRecord, Record, Scope, Session, ShotRecord, SnapshotRecord,
};
use hitreg::recorder::{Description, PushError, Recorder, RecorderOptions, Stream};
use hitreg::trace::{Digest, Table};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};

use super::{about, at, tick, usercmd};

/// Memory that outlives the recorder.
#[derive(Clone, Default)]
pub(super) struct SharedMemory(Arc<Mutex<Vec<u8>>>);

impl SharedMemory {
    pub(super) fn session(&self) -> Session {
        read_session(&self.0.lock().unwrap()[..]).expect("a whole log")
    }

    /// The session of a log whose end is missing.
    pub(super) fn recovered(&self) -> Session {
        recover(&self.0.lock().unwrap()).expect("something to recover").0
    }
}

impl Write for SharedMemory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_greatest_time_is_recorded() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(1), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let end = Micros(i64::MAX);
    stream.usercmd(PlayerId(0), end, usercmd(1)).unwrap();
    stream.tick(Tick(1), end, None).unwrap();
    assert_eq!(recorder.finish().unwrap().records, 2);
    let session = memory.session();
    assert_eq!((session.players[0].frames[0].at, session.ticks[0].at), (end, end));
}

/// Records of other times between them do not change the order of records without a time.
#[test]
fn records_without_a_time_keep_the_order_of_their_pushes() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(1), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    stream.tick(Tick(1), at(2), None).unwrap();
    for number in 1..=4 {
        let ran = ExecutionRecord { command: CommandSeq(number), tick: Tick(1), how: Execution::Run };
        stream.push(Record::Executed(PlayerId(0), ran)).unwrap();
        let judged = ShotRecord { command: CommandSeq(number), at: at(1), ..ShotRecord::default() };
        stream.push(Record::Judged(PlayerId(0), judged)).unwrap();
    }
    recorder.finish().unwrap();
    let ran: Vec<u32> = memory.session().players[0].executed.iter().map(|ran| ran.command.0).collect();
    assert_eq!(ran, [1, 2, 3, 4]);
}

/// A trace of what `push` records.
fn trace_of(push: impl FnOnce(&mut Stream)) -> hitreg::trace::Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hittrace");
    let recorder = Recorder::trace(&path, about(1), Digest::of_bytes(b"log")).unwrap();
    push(&mut recorder.stream());
    recorder.finish().unwrap();
    hitreg::store::read_trace(&path).unwrap()
}

#[test]
fn shots_and_damage_have_the_columns_that_the_game_pushes() {
    let trace = trace_of(|stream| {
        let [rocket, shotgun] = ["rocket", "shotgun"].map(|name| stream.text(name).unwrap());
        let shot = ShotRecord { command: CommandSeq(1), at: at(1), ..ShotRecord::default() };
        let launched = ShotRecord { reason: HitResult::Launched, weapon: rocket, ..shot };
        let impact = ShotRecord { impact: true, at: at(2), ..launched };
        let pellets = ShotRecord { index: 1, reason: HitResult::Hit, weapon: shotgun, pellets: Some(9), ..shot };
        let bare = ShotRecord { index: 2, reason: HitResult::Hit, ..shot };
        stream.push(Record::Predicted(PlayerId(0), ShotRecord { pellets: None, ..pellets })).unwrap();
        for shot in [launched, impact, ShotRecord { index: 1, ..impact }, pellets, bare] {
            stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
        }
        let fall = DamageRecord { tick: Tick(1), at: at(1), amount: 5, ..DamageRecord::default() };
        let (armour, force) = (Some(0), Some(glam::Vec3::new(0.0, -1.5, 0.0)));
        let hit = DamageRecord { attacker: Some(PlayerId(0)), weapon: rocket, armour, force, ..fall };
        for damage in [fall, hit] {
            stream.push(Record::Damage(damage)).unwrap();
        }
    });
    let shots = trace.table("shots").unwrap();
    let names =
        |table: &Table, name| (0..table.rows()).map(|row| table.names(name).get(row).to_owned()).collect::<Vec<_>>();
    assert_eq!(shots.u32s("index"), [0, 1, 2, 254, 255]);
    assert_eq!(shots.u32s("impact"), [0, 0, 0, 1, 1]);
    assert_eq!(names(shots, "weapon"), ["rocket", "shotgun", "", "rocket", "rocket"]);
    assert_eq!(shots.u32s("pellets"), [0, 9, 1, 0, 0], "a hit without a count is one pellet");
    assert!(shots.column("predicted_pellets").is_none(), "the client counts none");
    let damage = trace.table("damage").unwrap();
    assert_eq!(names(damage, "weapon"), ["", "rocket"]);
    let measures = ["armour", "force.x", "force.y", "force.z"].map(|name| damage.f32s(name));
    assert!(measures.iter().all(|cells| cells[0].is_nan()), "the fall has neither: {measures:?}");
    assert_eq!(measures.map(|cells| cells[1]), [0.0, 0.0, -1.5, 0.0]);
}

#[test]
fn a_game_without_weapons_and_pellets_has_no_columns_for_them() {
    let trace = trace_of(|stream| {
        stream.push(Record::Judged(PlayerId(0), ShotRecord::default())).unwrap();
        stream.push(Record::Damage(DamageRecord::default())).unwrap();
    });
    let has = |table, column| trace.table(table).unwrap().column(column).is_some();
    assert!(has("shots", "damage") && has("damage", "amount"));
    for column in ["weapon", "pellets", "predicted_pellets"] {
        assert!(!has("shots", column), "{column}");
    }
    for column in ["weapon", "armour", "force.x"] {
        assert!(!has("damage", column), "{column}");
    }
}

#[test]
fn shots_with_equal_indices_are_all_shown() {
    let trace = trace_of(|stream| {
        for impact in [false, true] {
            for _ in 0..400 {
                let shot = ShotRecord { command: CommandSeq(1), at: at(1), index: 200, impact, ..Default::default() };
                stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
            }
        }
    });
    let shots = trace.table("shots").unwrap();
    let indices: std::collections::BTreeSet<u32> = shots.u32s("index").iter().copied().collect();
    assert_eq!((shots.rows(), indices.len()), (800, 800));
}

#[test]
fn records_of_every_kind_come_back_unchanged() {
    let memory = SharedMemory::default();
    let recorder =
        Recorder::to(memory.clone(), about(2).setting("sv_gravity", "800"), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let (p1, now) = (PlayerId(1), at(1));
    let records = [
        Record::Sent(
            p1,
            PacketRecord { number: 1, at: now, newest: CommandSeq(1), count: 1, ..PacketRecord::default() },
        ),
        Record::Reached(p1, ArrivalRecord { number: 1, at: at(2) }),
        Record::Predicted(
            p1,
            ShotRecord { command: CommandSeq(1), at: now, reason: HitResult::Hit, ..Default::default() },
        ),
        Record::Judged(p1, ShotRecord { command: CommandSeq(1), at: at(2), damage: 7, ..ShotRecord::default() }),
        Record::Presence(p1, PresenceRecord { tick: Tick(1), at: now, change: Presence::Joined }),
        Record::Snapshot(p1, SnapshotRecord { seq: SnapshotSeq(1), tick: Tick(1), at: now, ..Default::default() }),
        Record::Received(p1, ArrivalRecord { number: 1, at: at(3) }),
        Record::Damage(DamageRecord { tick: Tick(1), at: now, attacker: Some(p1), amount: 7, ..Default::default() }),
        Record::Executed(p1, ExecutionRecord { command: CommandSeq(1), tick: Tick(1), how: Execution::Run }),
    ];
    tick(&mut stream, 2, 1).unwrap();
    records.iter().for_each(|record| stream.push(record.clone()).unwrap());
    let written = recorder.finish().unwrap();
    let session = memory.session();
    let mut expected = Session::new(session.header.clone());
    for player in 0..2 {
        let frame = hitreg::record::FrameRecord { at: now, command: usercmd(1), ..Default::default() };
        expected.push(Record::Frame(PlayerId(player), frame)).unwrap();
    }
    expected.ticks = session.ticks.clone();
    expected.states = session.states.clone();
    records.into_iter().for_each(|record| expected.push(record).unwrap());
    assert_eq!((session.ticks[0].hash, session.states.cells()), (Some(1), &[1f32.to_bits(), 0, 1f32.to_bits(), 1][..]));
    assert_eq!(session, expected);
    assert_eq!(session.header.settings[0], ("server.tick_hz".into(), "100".into()));
    assert_eq!(session.header.settings[1], ("sv_gravity".into(), "800".into()));
    assert_eq!((written.records, written.lost_records), (14, 0));
}

/// A game's own usercmd fields and record kinds, and bytes of any length.
#[test]
fn own_fields_and_kinds_of_a_game_are_recorded() {
    let memory = SharedMemory::default();
    let lean = FieldSchema::new("lean", CellKind::F32, Scope::Movement);
    let cast = vec![("spell".to_owned(), CellKind::U32), ("power".to_owned(), CellKind::F32)];
    let about = about(2).usercmd_field(lean).kind("casts", cast).usercmd_bytes();
    let recorder = Recorder::to(memory.clone(), about, RecorderOptions::patient()).unwrap();
    let casts = recorder.kind("casts").unwrap();
    let mut stream = recorder.stream();
    let bytes = |seq: u32| (0..seq % 21).map(|byte| (byte * seq) as u8).collect::<Vec<u8>>();
    for seq in 1..=1000 {
        let own = [OwnValue::Float(seq as f32 / 8.0)];
        stream.usercmd_with_bytes(PlayerId(0), at(seq), usercmd(seq), &own, &bytes(seq)).unwrap();
    }
    stream.row(casts, 1, at(1000), &[OwnValue::Number(9), OwnValue::Float(0.5)]).unwrap();
    recorder.finish().unwrap();
    let session = memory.session();
    let of = |kind: &str| session.unknown.iter().find(|records| records.kind == kind).expect("rows of that kind");
    let own = session.players[0].frames.iter().map(|frame| frame.command.input.own.stored());
    let leans: Vec<f32> = own.map(|cells| f32::from_bits(cells[0])).collect();
    assert_eq!(leans, (1..=1000).map(|seq| seq as f32 / 8.0).collect::<Vec<_>>());
    let found: Vec<&[u8]> = session.players[0].frames.iter().map(|frame| &*frame.bytes).collect();
    assert_eq!(found, (1..=1000).map(bytes).collect::<Vec<_>>());
    let casts = of("casts");
    let values: Vec<i64> = casts.columns.iter().map(|column| column.values[0]).collect();
    assert_eq!((&casts.series[..], &values[..]), (&[1][..], &[at(1000).0, 9, i64::from(0.5f32.to_bits())][..]));
}

/// Four threads with four players each; a fifth thread is the server.
#[test]
fn records_of_many_threads_are_in_order() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(16), RecorderOptions::patient()).unwrap();
    const COMMANDS: u32 = 3000;
    let barrier = std::sync::Barrier::new(5);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (mut stream, barrier) = (recorder.stream(), &barrier);
            scope.spawn(move || {
                for seq in 1..=COMMANDS {
                    // The times of threads differ by less than the window.
                    if seq % 10 == 1 {
                        barrier.wait();
                    }
                    for player in 0..4 {
                        let player = PlayerId(thread * 4 + player);
                        stream.usercmd(player, at(seq), usercmd(seq)).unwrap();
                    }
                }
            });
        }
        let (mut stream, barrier) = (recorder.stream(), &barrier);
        scope.spawn(move || {
            for number in 1..=COMMANDS {
                if number % 10 == 1 {
                    barrier.wait();
                }
                stream.tick(Tick(number), at(number), Some(1)).unwrap();
            }
        });
    });
    let written = recorder.finish().unwrap();
    assert_eq!(written.records, u64::from(COMMANDS) * 17);
    let session = memory.session();
    for player in &session.players {
        assert!(player.frames.iter().map(|frame| frame.command.seq.0).eq(1..=COMMANDS));
    }
    assert!(session.ticks.iter().map(|tick| tick.tick.0).eq(1..=COMMANDS));
    assert!(session.gaps.is_empty());
}

/// A network thread is 200 ms behind: the recorder sorts its records by time. Records beyond the window are refused.
#[test]
fn late_records_are_sorted_or_refused() {
    let memory = SharedMemory::default();
    let options = RecorderOptions::patient();
    let recorder = Recorder::to(memory.clone(), about(1), options).unwrap();
    let (mut server, mut network) = (recorder.stream(), recorder.stream());
    let behind = 20;
    for number in 1..=500u32 {
        server.tick(Tick(number), at(number), None).unwrap();
        if number > behind {
            let number = number - behind;
            // Each pair of usercmds is swapped.
            let swapped = if number.is_multiple_of(2) { number - 1 } else { number + 1 };
            network.usercmd(PlayerId(0), at(swapped), usercmd(swapped)).unwrap();
        }
    }
    // Meanwhile the recorder sees the later time and writes everything before the window.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let late = network.usercmd(PlayerId(0), at(470), usercmd(470)).unwrap_err();
    let output =
        "a record of 4700.000 ms is too late: everything before 4750.000 ms is written. Set a wider reorder window";
    assert_eq!(late.to_string(), output);
    let written = recorder.finish().unwrap();
    assert_eq!(written.late_records, 1);
    let session = memory.session();
    assert!(session.players[0].frames.iter().map(|frame| frame.command.seq.0).eq(1..=480));
    let [gap] = &session.gaps[..] else { panic!("{:?}", session.gaps) };
    assert_eq!((gap.from, gap.to, gap.why), (at(470) - Micros(1), at(470) + Micros(1), GapCause::Overrun));
}

/// A server that counts from 1 again, and one that goes back in time. What was recorded before is kept.
#[test]
fn ticks_that_contradict_earlier_ones_are_refused_with_their_states() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(1), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let body = |stream: &mut Stream, number: u32| stream.body(Tick(number), EntityId(0), ClassId(0), &[number, 0]);
    for number in 1..=10u32 {
        stream.tick(Tick(number), at(number), Some(7)).unwrap();
        body(&mut stream, number).unwrap();
    }
    let refused = [stream.tick(Tick(1), at(11), None), body(&mut stream, 1), stream.tick(Tick(11), at(9), None)];
    let done = ExecutionRecord { command: CommandSeq(1), tick: Tick(11), how: Execution::Run };
    let of_refused = stream.push(Record::Executed(PlayerId(0), done));
    let output = refused.map(|outcome| outcome.unwrap_err().to_string());
    let advice = "later ticks have higher numbers. When the server counts from 1 again, start a new recording or go on from the last number";
    assert_eq!(
        output,
        [
            format!("tick 1 at 110.000 ms does not follow tick 1 at 10.000 ms: {advice}"),
            "tick 1 was refused, and so are its states and usercmds".to_owned(),
            format!("tick 11 at 90.000 ms does not follow tick 10 at 100.000 ms: {advice}"),
        ]
    );
    assert_eq!(of_refused, Err(PushError::OfRefusedTick { tick: Tick(11) }));
    // A tick that is pushed twice is refused once; its states are not.
    assert!(stream.tick(Tick(10), at(10), None).is_err());
    stream.tick(Tick(11), at(11), Some(7)).unwrap();
    body(&mut stream, 11).unwrap();
    recorder.finish().unwrap();
    let session = memory.session();
    assert!(session.ticks.iter().map(|tick| (tick.tick.0, tick.at)).eq((1..=11).map(|number| (number, at(number)))));
    assert!(session.states.keys().iter().map(|key| key.tick.0).eq(1..=11));
    assert!(session.gaps.is_empty(), "{:?}", session.gaps);
}

/// Two threads take turns and one is behind; the server runs three ticks at once, pauses for an hour, and counts on.
#[test]
fn ticks_of_an_honest_server_are_recorded() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(2), RecorderOptions::patient()).unwrap();
    let mut threads = [recorder.stream(), recorder.stream()];
    for pair in 0..50u32 {
        for (place, number) in [(1, 2 * pair + 2), (0, 2 * pair + 1)] {
            threads[place].tick(Tick(number), at(number), None).unwrap();
        }
    }
    let [first, _] = &mut threads;
    for number in 101..=103 {
        first.tick(Tick(number), at(103), None).unwrap();
    }
    // A client's clock goes back by 100 ms, and the usercmds of two players alternate.
    for (player, seq, time) in [(0, 1, 103), (1, 1, 103), (0, 2, 93), (1, 2, 104), (0, 3, 94)] {
        first.usercmd(PlayerId(player), at(time), usercmd(seq)).unwrap();
    }
    let later = at(103) + Micros::from_s(3600);
    first.tick(Tick(104), later, None).unwrap();
    first.tick(Tick(9_000), later + Micros(1), None).unwrap();
    recorder.finish().unwrap();
    let session = memory.session();
    assert!(session.ticks.iter().map(|tick| tick.tick.0).eq((1..=104).chain([9_000])));
    assert_eq!(session.players.iter().map(|player| player.frames.len()).collect::<Vec<_>>(), [3, 2]);
}

/// A client learns of ticks from snapshots, which overtake each other.
#[test]
fn a_client_records_ticks_in_the_order_of_arrival() {
    let memory = SharedMemory::default();
    let recorder =
        Recorder::to(memory.clone(), about(1).client_side(7, PlayerId(0)), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (number, time) in [(2, 10), (1, 11), (2, 12)] {
        stream.tick(Tick(number), at(time), None).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(memory.session().ticks.len(), 3);
}

/// An authoritative server that knows no client frames.
#[test]
fn a_server_without_client_frames_records_arrivals() {
    let memory = SharedMemory::default();
    let about = Description::new("mygame").player("p0").usercmds_as_received();
    let recorder = Recorder::to(memory.clone(), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    stream.usercmd(PlayerId(0), Micros(5), usercmd(1)).unwrap();
    stream.tick(Tick(1), Micros(6), Some(7)).unwrap();
    recorder.finish().unwrap();
    let session = memory.session();
    assert_eq!(session.header.settings, [("recorder.usercmds".to_owned(), "as_received".to_owned())]);
    assert_eq!((session.players[0].frames.len(), session.ticks.len()), (1, 1));
}
