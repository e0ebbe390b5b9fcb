//! This version reads files of each format version, and of a later minor version.

#![expect(clippy::disallowed_methods, reason = "an environment variable asks for new fixtures")]

use std::io::Cursor;

use hitreg::game::{CellKind, Class, ClassId, FieldSchema, HitResult, Meaning, Scope};
use hitreg::log::{
    IndexedLog, KeyframeQuery, LogReader, TraceReader, WriterOptions, keyframes_of, read_session, read_trace, recover,
    write_session, write_trace,
};
use hitreg::record::{
    ArrivalRecord, DamageRecord, GapCause, GapRecord, HeardRecord, OutOfSequence, Presence, PresenceRecord, Record,
    RecordedSide, Session, SessionId, ShotRecord, StateRecord, Timing,
};
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId};
use rmpv::Value;

use crate::container::{get, pack_chunks, set, unpack_chunks};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat");

/// Each fixture was written by the version that it is named after; only those with `index` in their names have an
/// index. `HITREG_WRITE_COMPAT=1` writes those of the current version, which is correct only before its release.
#[test]
fn reads_logs_of_all_versions() {
    let session = example_session();
    let names = ["log-v1.0", "log-v1.0-keyframes", "log-v1.0-index"];
    let [plain, keyed, indexed] = names.map(|name| format!("{FOLDER}/{name}.hitlog"));
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        let bytes = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
        let bytes = crate::keyframes::with_keyframes(&bytes, &[crate::keyframes::keyframe(0)]);
        std::fs::write(&indexed, bytes).unwrap();
    }
    for path in [&plain, &keyed, &indexed] {
        let log = std::fs::read(path).unwrap();
        assert_eq!(LogReader::new(&log[..]).unwrap().format().to_string(), "1.0");
        assert_eq!(read_session(&log[..]).unwrap(), session);
    }
    for path in [&keyed, &indexed] {
        let log = std::fs::read(path).unwrap();
        let mut keyframes = Vec::new();
        keyframes_of(&log[..], &mut |keyframe| keyframes.push(keyframe)).unwrap();
        assert_eq!(keyframes, [crate::keyframes::keyframe(0)]);
        let found = IndexedLog::open(Cursor::new(log)).unwrap().keyframe(KeyframeQuery::First).unwrap();
        assert_eq!(found.unwrap().0.content, keyframes[0].content);
    }
}

/// See [`reads_logs_of_all_versions`].
#[test]
fn reads_traces_of_all_versions() {
    let trace = example_trace();
    let [plain, indexed] = ["trace-v1.0", "trace-v1.0-index"].map(|name| format!("{FOLDER}/{name}.hittrace"));
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        std::fs::write(&indexed, write_trace(Vec::new(), &trace).unwrap()).unwrap();
    }
    for path in [plain, indexed] {
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(TraceReader::new(&bytes[..]).unwrap().format().to_string(), "1.0");
        let read = read_trace(&bytes[..]).unwrap();
        // The views contain NaN, which is not equal to itself.
        assert_eq!(read.digest(), trace.digest());
        let own = |trace: &Trace| -> Vec<Table> {
            trace.tables.iter().filter(|table| ["spells", "packets"].contains(&&*table.name)).cloned().collect()
        };
        assert_eq!((&read.header, own(&read)), (&trace.header, own(&trace)));
        assert_eq!(own(&read).len(), 2);
    }
}

/// A current file with another version number, and with an unknown key in its header and in each chunk.
fn with_version(file: &[u8], major: u16, minor: u16) -> Vec<u8> {
    let mut chunks = unpack_chunks(file);
    set(&mut chunks[0], "format", Value::Array(vec![major.into(), minor.into()]));
    set(get(&mut chunks[0], "header"), "weather", Value::from("rain"));
    chunks[1..].iter_mut().for_each(|chunk| set(chunk, "weather", Value::from("snow")));
    pack_chunks(&chunks)
}

#[test]
fn reads_newer_minor_versions_and_refuses_newer_major_ones() {
    let (session, trace) = (example_session(), example_trace());
    let log = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
    let newer = with_version(&log, 1, 9);
    assert_eq!(LogReader::new(&newer[..]).unwrap().format().to_string(), "1.9");
    assert_eq!(read_session(&newer[..]).unwrap(), session);
    let (recovered, damage) = recover(&newer).unwrap();
    assert_eq!((recovered, damage.is_none()), (session, true));
    let written = write_trace(Vec::new(), &trace).unwrap();
    assert_eq!(read_trace(&with_version(&written, 1, 9)[..]).unwrap().digest(), trace.digest());
    for (major, minor, what) in [(2, 0, "use a newer hitreg"), (0, 1, "which does not exist")] {
        let refused = [
            read_session(&with_version(&log, major, minor)[..]).unwrap_err(),
            read_trace(&with_version(&written, major, minor)[..]).unwrap_err(),
        ];
        for error in refused {
            let output = error.to_string();
            assert!(output.contains(what) && output.contains(&format!("{major}.{minor}")), "{output}");
        }
    }
}

#[test]
fn refuses_a_text_that_is_missing_in_its_chunk() {
    let log = write_session(Vec::new(), &example_session(), WriterOptions::live()).unwrap();
    let mut chunks = unpack_chunks(&log);
    chunks[1..].iter_mut().for_each(|chunk| set(chunk, "texts", Value::Array(vec!["oil".into()])));
    let output = read_session(&pack_chunks(&chunks)[..]).unwrap_err().to_string();
    assert!(output.contains("column text: 2 is not the place of any text"), "{output}");
}

/// The Python program on the format page wrote this file.
#[test]
fn a_trace_by_another_program_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat/trace-v1.0-foreign.hittrace");
    let bytes = std::fs::read(path).unwrap();
    let trace = read_trace(&bytes[..]).unwrap();
    let columns = vec![
        Column::new("tick", ColumnData::U32(vec![1, 2, 3])),
        Column::new("hash", ColumnData::U64(vec![11, 22, 33])),
    ];
    assert_eq!(trace.tables, [Table::new("ticks", columns)]);
    assert_eq!(trace.header.game, "mygame");
    for length in 0..bytes.len() {
        assert!(read_trace(&bytes[..length]).is_err(), "cut at {length}");
    }
}

/// A trace with packed views, a table with its own keys, more than 256 names, and a table that is written on request.
pub(crate) fn example_trace() -> Trace {
    let columns = vec![
        Column::new("entity", ColumnData::U32((0..30).map(|i| i % 3).collect())),
        Column::new("at_us", ColumnData::I64((0..30).map(|i| i / 3 * 15_625).collect())),
        Column::new("hash", ColumnData::U64((0..30u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect())),
        Column::new("error_units", ColumnData::F32((0..30u8).map(|i| f32::from(i) / 7.0).collect())).in_unit("units"),
        Column::new("how", ColumnData::Name { names: vec!["held".into(), "interpolated".into()], codes: vec![1; 30] }),
    ];
    let names: Vec<String> = (0..300).map(|n| format!("entity {n}")).collect();
    let whom = ColumnData::Name { names, codes: (0..30).map(|row| row * 10 + 9).collect() };
    let exact = Column::new("exact", ColumnData::F64((0..30u8).map(|i| f64::from(i) / 7.0).collect())).in_unit("units");
    let lit = Column::new("lit", ColumnData::Bool((0..30).map(|i| i % 4 == 1).collect()));
    let arrived = Column::new("arrived", ColumnData::U32(vec![1; 30]));
    let packets = Table::new("packets", columns.iter().cloned().chain([arrived]).collect());
    let spells = Table::new("spells", columns.into_iter().chain([Column::new("whom", whom), exact, lit]).collect());
    let mut trace = crate::views::trace();
    trace.header = TraceHeader {
        game: "disc".into(),
        mode: "closed".into(),
        log_digest: "00".into(),
        settings: vec![("server.tick_hz".into(), "64".into())],
        ..TraceHeader::default()
    };
    trace.tables.extend([spells.keyed_by(["entity", "at_us"]), packets, Table::new("shots", vec![])]);
    trace
}

/// A session with records of every kind, written by one side.
pub(crate) fn example_session() -> Session {
    let mut session = with_received_packets(&with_all_kinds(&crate::log_sessions::session(2, 32)));
    for (snapshot, number) in session.players[1].snapshots.iter_mut().zip(-8i16..) {
        let warning = OutOfSequence { command: snapshot.ack, difference: number };
        let warnings = vec![warning; usize::from(number % 3 == 0)];
        snapshot.timing = Timing::new((number >= 0).then_some(number * 9 - 40), warnings);
    }
    session.header.side = Some(RecordedSide { session: SessionId(0x0123_4567_89ab_cdef), player: Some(PlayerId(1)) });
    session
}

/// The session with the server's records: each packet with the usercmds in it.
fn with_received_packets(session: &Session) -> Session {
    let mut all = session.clone();
    for player in &mut all.players {
        let of = |number: u32| player.sent.iter().find(|packet| packet.number == number);
        let heard = |arrival: &ArrivalRecord| {
            let packet = of(arrival.number)?;
            let first = (packet.newest.0 + 1).saturating_sub(packet.count.into());
            let commands = player.frames.iter().map(|frame| frame.command.clone());
            let commands = commands.filter(|command| (first..=packet.newest.0).contains(&command.seq.0)).collect();
            Some(HeardRecord { number: arrival.number, at: arrival.at, ack: packet.ack, received_before: 5, commands })
        };
        player.heard = player.reached.iter().filter_map(heard).collect();
        assert!(player.heard.iter().any(|heard| heard.commands.len() > 1));
    }
    all
}

/// The session with records of every kind, and with entities of another class that only one player sees.
fn with_all_kinds(session: &Session) -> Session {
    let mut all = session.clone();
    let lamp = FieldSchema::new("glow", CellKind::I32, Scope::Status).meaning(Meaning::Time).in_unit("s");
    let wide = CellKind::ALL[3..].iter().map(|kind| FieldSchema::new(kind.name(), *kind, Scope::Status));
    all.header.classes.push(Class::new("lamp", std::iter::once(lamp).chain(wide).collect()));
    let names = ["oil", "gas"].map(|name| all.texts.add(name).unwrap().0 as i64);
    for tick in session.ticks.iter().step_by(3) {
        let (shot, damage) = (tick.tick.0 as i32, tick.tick.0 as i32 % 7);
        let place = (f64::from(shot) / 3.0).to_bits() as i64;
        let values =
            [shot.into(), place, -i64::from(shot) << 33, i64::MIN + i64::from(shot), 1, names[shot as usize % 2]];
        let mut cells = Vec::new();
        let fields = &all.header.classes[1].fields;
        assert!(fields.iter().zip(values).all(|(field, value)| field.kind.put(value, &mut cells)));
        let lamp =
            StateRecord { tick: tick.tick, viewer: Some(PlayerId(1)), entity: EntityId(9), class: ClassId(1), cells };
        let judged = ShotRecord {
            command: CommandSeq(tick.tick.0),
            at: tick.at,
            reason: HitResult::Hit,
            target: Some(EntityId(1)),
            hitgroup: 2,
            damage,
            rewound: Micros(100_000 + i64::from(shot)),
            ..ShotRecord::default()
        };
        let predicted = ShotRecord { at: tick.at - Micros(30_000), rewound: Micros::ZERO, ..judged };
        let change = if shot < 5 { Presence::Joined } else { Presence::Left };
        let (tick, at, attacker) = (tick.tick, tick.at, Some(PlayerId(0)));
        for record in [
            Record::State(lamp),
            Record::Predicted(PlayerId(0), predicted),
            Record::Judged(PlayerId(0), judged),
            Record::Presence(PlayerId(1), PresenceRecord { tick, at, change }),
            Record::Damage(DamageRecord {
                tick,
                at,
                victim: EntityId(1),
                attacker,
                amount: damage,
                ..Default::default()
            }),
            Record::Gap(GapRecord { from: at, to: at + Micros(9), player: None, why: GapCause::Paused }),
        ] {
            all.push(record).expect("it fits");
        }
    }
    for snapshot in all.players[1].snapshots.iter_mut().filter(|s| (s.tick.0 - 1).is_multiple_of(3)) {
        snapshot.entities.push(EntityId(9));
    }
    all.put_in_order();
    all
}
