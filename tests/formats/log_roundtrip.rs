//! What is written comes back identical, whatever it is; and what older versions wrote can still be read.

#![expect(clippy::disallowed_methods, reason = "writing the fixtures anew is asked for by an environment variable")]

use glam::Vec3;
use hitreg::game::{CellKind, Effect, Field, Scope};
use hitreg::log::{
    BackgroundLogWriter, FileKind, LogError, LogReader, LogWriter, Options, WriteError, kind_of, read_header,
    read_session, read_trace, version_of, write_session, write_trace,
};
use hitreg::record::{
    ArrivalRecord, Execution, ExecutionRecord, FrameRecord, Header, Origin, OutOfSequence, PacketRecord, PlayerInfo,
    Record, Session, SessionId, Side, SnapshotRecord, StateRecord, TickRecord, Timing,
};
use hitreg::trace::{Column, Data, Table, Trace, TraceHeader};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};
use proptest::prelude::*;

const PLAYERS: u16 = 3;

fn header() -> impl Strategy<Value = Header> {
    let origin =
        prop_oneof![Just(Origin::Synthetic), Just(Origin::Live), ".*".prop_map(|format| Origin::Imported { format })];
    let settings = proptest::collection::vec((".*", ".*"), 0..4);
    let preset = proptest::option::of(".*");
    let rules = proptest::collection::vec(any::<u8>(), 0..40);
    (".*", rules, ".*", any::<u64>(), settings, preset, origin).prop_map(
        |(game, rules, map, seed, settings, preset, origin)| Header {
            game,
            rules,
            map,
            seed: Seed(seed),
            settings,
            preset,
            players: (0..PLAYERS).map(|p| PlayerInfo { name: format!("p{p}"), recorded: p == 0 }).collect(),
            origin,
            side: None,
            fields: [CellKind::F32, CellKind::F32, CellKind::I32, CellKind::U32]
                .map(|kind| Field { name: format!("{kind:?}"), kind, scope: Scope::Status })
                .to_vec(),
        },
    )
}

/// Times as a session has them, and times from anywhere.
fn micros() -> impl Strategy<Value = Micros> {
    prop_oneof![4 => (0i64..5_000_000).prop_map(Micros), 1 => any::<i64>().prop_map(Micros)]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..40, 1 => any::<u32>()]
}

/// Any bit pattern: NaNs with payloads, negative zero, denormals; and values as games have them.
fn float() -> impl Strategy<Value = f32> {
    prop_oneof![any::<u32>().prop_map(f32::from_bits), Just(-0.0f32), (-8000i16..8000).prop_map(|n| f32::from(n) / 8.0)]
}

fn vector() -> impl Strategy<Value = Vec3> {
    (float(), float(), float()).prop_map(|(x, y, z)| Vec3::new(x, y, z))
}

fn frame() -> impl Strategy<Value = FrameRecord> {
    let moves = (vector(), vector());
    let small = (any::<u16>(), any::<u8>(), any::<u16>(), any::<u8>(), number());
    (micros(), number(), micros(), moves, small).prop_map(|(at, seq, server_time, (viewangles, moves), small)| {
        let (lerp_msec, msec, buttons, impulse, extra) = small;
        let (forwardmove, sidemove, upmove) = (moves.x, moves.y, moves.z);
        let input = Input { msec, viewangles, forwardmove, sidemove, upmove, buttons, impulse, extra };
        FrameRecord { at, command: Usercmd { seq: CommandSeq(seq), lerp_msec, server_time, input } }
    })
}

fn snapshot() -> impl Strategy<Value = SnapshotRecord> {
    let effect = (any::<u8>(), any::<u16>(), vector(), any::<bool>())
        .prop_map(|(kind, entity, at, predictable)| Effect { kind, entity: EntityId(entity), at, predictable });
    let lists = (
        proptest::collection::vec((0u16..5).prop_map(EntityId), 0..4),
        proptest::collection::vec(effect, 0..3),
        proptest::collection::vec(any::<u8>(), 0..9),
        proptest::option::of(any::<i16>()),
        proptest::collection::vec((any::<u32>(), any::<i16>()), 0..3),
    );
    (number(), number(), micros(), micros(), number(), any::<u16>(), any::<u8>(), lists).prop_map(
        |(seq, tick, at, server_time, ack, bytes, choked, (entities, effects, extra, helper_ms, warnings))| {
            SnapshotRecord {
                seq: SnapshotSeq(seq),
                tick: Tick(tick),
                at,
                server_time,
                ack: CommandSeq(ack),
                bytes,
                choked,
                entities,
                effects,
                extra,
                timing: Timing::new(
                    helper_ms,
                    warnings
                        .into_iter()
                        .map(|(command, difference)| OutOfSequence { command: CommandSeq(command), difference })
                        .collect(),
                ),
            }
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let player = || (0..PLAYERS).prop_map(PlayerId);
    let arrival = || (number(), micros()).prop_map(|(number, at)| ArrivalRecord { number, at });
    let packet = (number(), micros(), number(), any::<u8>(), number(), any::<u16>()).prop_map(
        |(number, at, newest, count, ack, bytes)| PacketRecord {
            number,
            at,
            newest: CommandSeq(newest),
            count,
            ack: SnapshotSeq(ack),
            bytes,
        },
    );
    let execution = (number(), number(), 0u8..5).prop_map(|(command, tick, how)| ExecutionRecord {
        command: CommandSeq(command),
        tick: Tick(tick),
        how: Execution::from_code(how).unwrap(),
    });
    let tick = (number(), micros(), proptest::option::of(any::<u64>())).prop_map(|(tick, at, hash)| TickRecord {
        tick: Tick(tick),
        at,
        hash,
    });
    let cells = (float(), float(), any::<i32>(), any::<u32>())
        .prop_map(|(a, b, c, d)| vec![a.to_bits(), b.to_bits(), c as u32, d]);
    let state = (number(), 0u16..6, cells).prop_map(|(tick, entity, cells)| StateRecord {
        tick: Tick(tick),
        entity: EntityId(entity),
        cells,
    });
    prop_oneof![
        (player(), frame()).prop_map(|(p, r)| Record::Frame(p, r)),
        (player(), packet).prop_map(|(p, r)| Record::Sent(p, r)),
        (player(), arrival()).prop_map(|(p, r)| Record::Reached(p, r)),
        (player(), execution).prop_map(|(p, r)| Record::Executed(p, r)),
        (player(), snapshot()).prop_map(|(p, r)| Record::Snapshot(p, r)),
        (player(), arrival()).prop_map(|(p, r)| Record::Received(p, r)),
        tick.prop_map(Record::Tick),
        state.prop_map(Record::State),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    (1i32..4, 1i64..3_000_000, 64usize..8192).prop_map(|(level, span, bytes)| Options {
        level,
        span: Micros(span),
        bytes,
    })
}

/// Sessions are compared as text that shows every bit, since a NaN is not equal to itself.
fn bits(session: &Session) -> Vec<u8> {
    let mut same = session.clone();
    let mut floats = Vec::new();
    let mut take = |v: &mut Vec3| floats.extend(std::mem::take(v).to_array().map(f32::to_bits));
    for player in &mut same.players {
        for frame in &mut player.frames {
            let input = &mut frame.command.input;
            take(&mut input.viewangles);
            take(&mut Vec3::new(input.forwardmove, input.sidemove, input.upmove));
            (input.forwardmove, input.sidemove, input.upmove) = (0.0, 0.0, 0.0);
        }
        for effect in player.snapshots.iter_mut().flat_map(|s| &mut s.effects) {
            take(&mut effect.at);
        }
    }
    format!("{same:?}{floats:?}").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_session_comes_back_from_any_writer(
        header in header(),
        records in proptest::collection::vec(record(), 0..120),
        options in options(),
    ) {
        let mut session = Session::new(header);
        let mut writer = LogWriter::new(Vec::new(), &session.header, options).unwrap();
        let mut background = BackgroundLogWriter::new(Vec::new(), &session.header, options).unwrap();
        for record in &records {
            writer.push(record).unwrap();
            background.push(record).unwrap();
            session.push(record.clone()).unwrap();
        }
        let live = writer.finish().unwrap();
        prop_assert_eq!(&background.finish().unwrap(), &live);
        prop_assert!(bits(&read_session(&live[..]).unwrap()) == bits(&session));
        let whole = write_session(Vec::new(), &session, options).unwrap();
        prop_assert!(bits(&read_session(&whole[..]).unwrap()) == bits(&session));
        prop_assert_eq!(read_header(&whole[..]).unwrap(), session.header);
        prop_assert_eq!(kind_of(&whole), FileKind::Log);
    }

    #[test]
    fn any_trace_comes_back(trace in trace()) {
        let bytes = write_trace(Vec::new(), &trace).unwrap();
        let back = read_trace(&bytes[..]).unwrap();
        prop_assert_eq!(&back.header, &trace.header);
        prop_assert_eq!(back.digest(), trace.digest());
        prop_assert_eq!(kind_of(&bytes), FileKind::Trace);
    }
}

fn column(rows: usize) -> impl Strategy<Value = Column> {
    // More names than a byte can tell apart, too.
    let names =
        prop_oneof![4 => 1usize..4, 1 => 250usize..300].prop_flat_map(|n| proptest::collection::vec(".{0,9}", n));
    let data = prop_oneof![
        proptest::collection::vec(number(), rows).prop_map(Data::U32),
        proptest::collection::vec(any::<u64>(), rows).prop_map(Data::U64),
        proptest::collection::vec(micros().prop_map(|at| at.0), rows).prop_map(Data::I64),
        proptest::collection::vec(float(), rows).prop_map(Data::F32),
        (names, proptest::collection::vec(any::<u32>(), rows)).prop_map(|(names, codes)| {
            let codes = codes.into_iter().map(|code| code % names.len() as u32).collect();
            Data::Name { names, codes }
        }),
    ];
    let name = prop_oneof![Just("player".to_owned()), Just("entity".to_owned()), ".*"];
    (name, data).prop_map(|(name, data)| Column { name, data })
}

fn trace() -> impl Strategy<Value = Trace> {
    let columns = (0usize..40).prop_flat_map(|rows| proptest::collection::vec(column(rows), 0..5));
    let unique = |mut columns: Vec<Column>| {
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        columns.dedup_by(|a, b| a.name == b.name);
        columns
    };
    (".*", ".*", proptest::collection::vec(columns, 0..4)).prop_map(move |(game, mode, tables)| Trace {
        header: TraceHeader { game, mode, log_digest: "00".into(), settings: Vec::new() },
        tables: tables
            .into_iter()
            .enumerate()
            .map(|(i, columns)| Table { name: format!("table{i}"), columns: unique(columns) })
            .collect(),
    })
}

#[test]
fn a_long_trace_is_written_in_several_chunks() {
    let rows = 600_000u32;
    let columns = vec![
        Column { name: "entity".into(), data: Data::U32((0..rows).map(|i| i % 16).collect()) },
        Column { name: "origin_x_units".into(), data: Data::F32((0..rows).map(|i| (i / 16) as f32 * 0.37).collect()) },
    ];
    let trace = Trace { tables: vec![Table { name: "bodies".into(), columns }], ..Trace::default() };
    let bytes = write_trace(Vec::new(), &trace).unwrap();
    assert_eq!(read_trace(&bytes[..]).unwrap(), trace);
    assert!(bytes.len() < rows as usize * 2, "{} bytes", bytes.len());
}

#[test]
fn a_log_is_not_a_trace_and_neither_is_anything_else() {
    let log = write_session(Vec::new(), &crate::log_sessions::session(1, 3), Options::live()).unwrap();
    let trace = write_trace(Vec::new(), &Trace::default()).unwrap();
    let message = read_trace(&log[..]).unwrap_err().to_string();
    assert_eq!(message, "this is a log, and a trace is wanted here: make one with `hitreg replay LOG -o TRACE`");
    assert!(matches!(read_session(&trace[..]), Err(LogError::WrongKind { found: FileKind::Trace, .. })));
    for other in [&b""[..], b"x", b"PK\x03\x04 and so on", &zstd::bulk::compress(b"text", 3).unwrap()] {
        assert_eq!(kind_of(other), FileKind::Other);
        assert!(read_session(other).is_err());
    }
    assert!(matches!(read_session(&b"hello, world"[..]), Err(LogError::NotHitreg { .. })));
}

#[test]
fn a_long_log_is_read_chunk_by_chunk() {
    let session = crate::log_sessions::session(2, 320);
    let bytes = write_session(Vec::new(), &session, Options::live()).unwrap();
    let mut reader = LogReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.header(), &session.header);
    let (mut chunks, mut frames) = (0, 0);
    while let Some(chunk) = reader.next_chunk().unwrap() {
        chunks += 1;
        frames += chunk.players.iter().map(|p| p.frames.len()).sum::<usize>();
    }
    assert_eq!(frames, 640);
    assert!(chunks >= 5, "five seconds in {chunks} chunks");
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_harms_nothing() {
    let session = crate::log_sessions::session(1, 2);
    let mut writer = LogWriter::new(Vec::new(), &session.header, Options::live()).unwrap();
    let frame = session.players[0].frames[0];
    let state = StateRecord { tick: Tick(1), entity: EntityId(0), cells: vec![1, 2, 3] };
    assert!(matches!(writer.push(&Record::Frame(PlayerId(1), frame)), Err(WriteError::Misfit(_))));
    assert!(matches!(writer.push(&Record::State(state)), Err(WriteError::Misfit(_))));
    writer.push(&Record::Frame(PlayerId(0), frame)).unwrap();
    let back = read_session(&writer.finish().unwrap()[..]).unwrap();
    assert_eq!(back.players[0].frames, [frame]);
}

/// Each version's fixture was written by that version. `HITREG_WRITE_COMPAT=1` writes the current one anew, which is
/// only right when its version has not been released.
#[test]
fn the_logs_of_all_versions_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat");
    let session = crate::log_sessions::session(2, 32);
    // 1.1 brought logs of one side, and what snapshots say of their client's timing.
    let mut one_side = session.clone();
    for (snapshot, number) in one_side.players[1].snapshots.iter_mut().zip(-8i16..) {
        let warning = OutOfSequence { command: snapshot.ack, difference: number };
        let warnings = vec![warning; usize::from(number % 3 == 0)];
        snapshot.timing = Timing::new((number >= 0).then_some(number * 9 - 40), warnings);
    }
    one_side.header.side = Some(Side { session: SessionId(0x0123_4567_89ab_cdef), player: Some(PlayerId(1)) });
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        let bytes = write_session(Vec::new(), &one_side, Options::live()).unwrap();
        std::fs::write(format!("{folder}/log-v1.1.hitlog"), bytes).unwrap();
    }
    for (version, session) in [("1.0", session), ("1.1", one_side)] {
        let log = std::fs::read(format!("{folder}/log-v{version}.hitlog")).unwrap();
        assert_eq!(read_session(&log[..]).unwrap(), session);
        assert_eq!(version_of(&log).map(|v| v.to_string()).as_deref(), Some(version));
    }
    assert_eq!((version_of(b""), version_of(b"some text")), (None, None));
}

#[test]
fn the_traces_of_all_versions_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat");
    // 1.2 brought columns of more names than a byte can tell apart.
    let mut many_names = small_trace();
    let names: Vec<String> = (0..300).map(|n| format!("entity {n}")).collect();
    let data = Data::Name { names, codes: (0..30).map(|row| row * 10 + 9).collect() };
    many_names.tables[0].columns.push(Column::new("whom", data));
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        std::fs::write(format!("{folder}/trace-v1.2.hittrace"), write_trace(Vec::new(), &many_names).unwrap()).unwrap();
    }
    for (version, expected) in [("1.0", small_trace()), ("1.1", small_trace()), ("1.2", many_names)] {
        let trace = std::fs::read(format!("{folder}/trace-v{version}.hittrace")).unwrap();
        assert_eq!(read_trace(&trace[..]).unwrap(), expected);
        assert_eq!(version_of(&trace).map(|v| v.to_string()).as_deref(), Some(version));
    }
}

/// Written by the Python on the format page.
#[test]
fn a_trace_by_another_program_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat/trace-v1.0-foreign.hittrace");
    let bytes = std::fs::read(path).unwrap();
    let trace = read_trace(&bytes[..]).unwrap();
    let columns = vec![
        Column { name: "tick".into(), data: Data::U32(vec![1, 2, 3]) },
        Column { name: "hash".into(), data: Data::U64(vec![11, 22, 33]) },
    ];
    assert_eq!(trace.tables, [Table { name: "ticks".into(), columns }]);
    assert_eq!(trace.header.game, "mygame");
    for length in 0..bytes.len() {
        assert!(read_trace(&bytes[..length]).is_err(), "cut at {length}");
    }
}

fn small_trace() -> Trace {
    let columns = vec![
        Column { name: "entity".into(), data: Data::U32((0..30).map(|i| i % 3).collect()) },
        Column { name: "at_us".into(), data: Data::I64((0..30).map(|i| i / 3 * 15_625).collect()) },
        Column {
            name: "hash".into(),
            data: Data::U64((0..30u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()),
        },
        Column { name: "error_units".into(), data: Data::F32((0..30u8).map(|i| f32::from(i) / 7.0).collect()) },
        Column {
            name: "how".into(),
            data: Data::Name { names: vec!["held".into(), "interpolated".into()], codes: vec![1; 30] },
        },
    ];
    let header = TraceHeader {
        game: "disc".into(),
        mode: "closed".into(),
        log_digest: "00".into(),
        settings: vec![("server.tick_hz".into(), "64".into())],
    };
    Trace {
        header,
        tables: vec![Table { name: "views".into(), columns }, Table { name: "shots".into(), columns: vec![] }],
    }
}
