//! Any session or trace comes back identical after writing and reading.

use glam::Vec3;
use hitreg::game::{CellKind, Class, ClassId, Effect, FieldSchema, HitResult, Meaning, Scope};
use hitreg::log::{
    BackgroundLogWriter, FileKind, LogError, LogReader, LogWriter, RecoveredLog, WriteError, WriterOptions, kind_of,
    read_header, read_session, read_trace, recover, write_session, write_trace,
};
use hitreg::memory::MemoryLimit;
use hitreg::record::{
    ArrivalRecord, DamageRecord, Execution, ExecutionRecord, FrameRecord, GapCause, GapRecord, HEARD_COMMANDS_MAX,
    HeardRecord, Origin, OutOfSequence, PacketRecord, PlayerInfo, Presence, PresenceRecord, Record, Session,
    SessionHeader, ShotRecord, SnapshotRecord, StateRecord, TextCode, Texts, TickRecord, Timing, usercmd_fields,
};
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, OwnCells, Usercmd};
use proptest::prelude::*;

const PLAYERS: u16 = 3;
const EXECUTIONS: [Execution; 5] =
    [Execution::Run, Execution::StoodIn, Execution::Missing, Execution::Late, Execution::OverBudget];

fn header() -> impl Strategy<Value = SessionHeader> {
    let field =
        |kind| FieldSchema::new(format!("{kind:?}"), kind, Scope::Status).meaning(Meaning::Velocity).in_unit("m/s");
    let origin =
        prop_oneof![Just(Origin::Synthetic), Just(Origin::Live), ".*".prop_map(|format| Origin::Imported { format })];
    let settings = proptest::collection::vec((".*", ".*"), 0..4);
    let preset = proptest::option::of(".*");
    let rules = proptest::collection::vec(any::<u8>(), 0..40);
    (".*", rules, ".*", any::<u64>(), settings, preset, origin).prop_map(
        move |(game, rules, map, seed, settings, preset, origin)| SessionHeader {
            game,
            rules: rules.into(),
            map,
            seed: Seed(seed),
            settings,
            preset,
            players: (0..PLAYERS).map(|p| PlayerInfo { name: format!("p{p}"), recorded: p == 0 }).collect(),
            origin,
            side: None,
            classes: vec![
                Class::new("puck", [CellKind::F32, CellKind::F32, CellKind::I32, CellKind::U32].map(field).to_vec()),
                Class::new("goal", vec![field(CellKind::I32)]),
                Class::new("ball", [CellKind::F64, CellKind::I64, CellKind::U64, CellKind::Bool].map(field).to_vec()),
            ],
            usercmd: [usercmd_fields(), own_fields()].concat(),
            usercmd_bytes: true,
            unknown: Vec::new(),
        },
    )
}

/// Usual times of a session, and arbitrary times.
fn micros() -> impl Strategy<Value = Micros> {
    prop_oneof![4 => (0i64..5_000_000).prop_map(Micros), 1 => any::<i64>().prop_map(Micros)]
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..40, 1 => any::<u32>()]
}

/// Any bit pattern, such as NaNs with payloads, negative zero and denormals; and usual values of games.
fn float() -> impl Strategy<Value = f32> {
    prop_oneof![any::<u32>().prop_map(f32::from_bits), Just(-0.0f32), (-8000i16..8000).prop_map(|n| f32::from(n) / 8.0)]
}

fn vector() -> impl Strategy<Value = Vec3> {
    (float(), float(), float()).prop_map(|(x, y, z)| Vec3::new(x, y, z))
}

/// Cells of [`own_fields`], which are often 0.
fn own_cells() -> impl Strategy<Value = OwnCells> {
    let cell = || prop_oneof![Just(0u32), any::<u32>()];
    (cell(), cell(), cell(), cell(), any::<bool>())
        .prop_map(|(thrust, low, high, lean, held)| OwnCells::new(&[thrust, low, high, lean, held.into()]))
}

/// The usercmd fields of a game.
fn own_fields() -> Vec<FieldSchema> {
    let field = |name, kind| FieldSchema::new(name, kind, Scope::Movement);
    let kinds = [("thrust", CellKind::F32), ("aim", CellKind::F64), ("lean", CellKind::I32), ("held", CellKind::Bool)];
    kinds.map(|(name, kind)| field(name, kind)).to_vec()
}

fn frame() -> impl Strategy<Value = FrameRecord> {
    let moves = (vector(), vector());
    let bytes = proptest::collection::vec(any::<u8>(), 0..20);
    let small = (any::<u16>(), any::<u8>(), any::<u16>(), any::<u8>(), own_cells(), bytes);
    (micros(), number(), micros(), moves, small).prop_map(|(at, seq, server_time, (viewangles, moves), small)| {
        let (lerp_msec, msec, buttons, impulse, own, bytes) = small;
        let (forwardmove, sidemove, upmove) = (moves.x, moves.y, moves.z);
        let input = Input { msec, viewangles, forwardmove, sidemove, upmove, buttons, impulse, own };
        let command = Usercmd { seq: CommandSeq(seq), lerp_msec, server_time, input };
        FrameRecord { at, command, bytes: bytes.into() }
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

const WEAPON: &str = "shotgun";

fn weapon() -> impl Strategy<Value = TextCode> {
    prop_oneof![Just(TextCode::default()), Just(TextCode::of(WEAPON))]
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
    let execution = (number(), number(), proptest::sample::select(&EXECUTIONS[..]))
        .prop_map(|(command, tick, how)| ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), how });
    let tick = (number(), micros(), proptest::option::of(any::<u64>())).prop_map(|(tick, at, hash)| TickRecord {
        tick: Tick(tick),
        at,
        hash,
    });
    let cells = (float(), float(), any::<i32>(), any::<u32>())
        .prop_map(|(a, b, c, d)| vec![a.to_bits(), b.to_bits(), c as u32, d]);
    let rows = prop_oneof![
        3 => cells.prop_map(|cells| (ClassId(0), cells)),
        1 => any::<u32>().prop_map(|cell| (ClassId(1), vec![cell])),
        1 => proptest::collection::vec(any::<u32>(), 7).prop_map(|cells| (ClassId(2), cells)),
    ];
    let viewer = proptest::option::weighted(0.2, player());
    let state = (number(), viewer, 0u16..6, rows).prop_map(|(tick, viewer, entity, (class, cells))| StateRecord {
        tick: Tick(tick),
        viewer,
        entity: EntityId(entity),
        class,
        cells,
    });
    let shot = || {
        let reason = prop_oneof![Just(HitResult::Hit), Just(HitResult::Launched)];
        let target = proptest::option::of(any::<u16>().prop_map(EntityId));
        let more = (weapon(), any::<bool>(), proptest::option::of(any::<u8>()));
        (number(), micros(), any::<u8>(), reason, target, any::<u8>(), any::<i32>(), micros(), more).prop_map(
            |(command, at, index, reason, target, hitgroup, damage, rewound, (weapon, impact, pellets))| ShotRecord {
                command: CommandSeq(command),
                at,
                index,
                reason,
                target,
                hitgroup,
                damage,
                rewound,
                weapon,
                impact,
                pellets,
            },
        )
    };
    let presence = (number(), micros(), any::<bool>()).prop_map(|(tick, at, left)| PresenceRecord {
        tick: Tick(tick),
        at,
        change: if left { Presence::Left } else { Presence::Joined },
    });
    let force = proptest::option::of([any::<f32>(), any::<f32>(), any::<f32>()].prop_map(Vec3::from));
    let more = (weapon(), proptest::option::of(any::<u16>()), force);
    let damage = (number(), micros(), any::<u16>(), proptest::option::of(player()), any::<i32>(), more).prop_map(
        |(tick, at, victim, attacker, amount, (weapon, armour, force))| DamageRecord {
            tick: Tick(tick),
            at,
            victim: EntityId(victim),
            attacker,
            amount,
            weapon,
            armour,
            force,
        },
    );
    let gap = (micros(), micros(), proptest::option::of(player())).prop_map(|(from, to, player)| GapRecord {
        from,
        to,
        player,
        why: GapCause::Overrun,
    });
    let heard = (
        number(),
        micros(),
        number(),
        any::<u32>(),
        number(),
        proptest::collection::vec(frame(), 0..=HEARD_COMMANDS_MAX),
    )
        .prop_map(|(number, at, ack, received_before, first, frames)| {
            let of = |(seq, frame): (u32, FrameRecord)| Usercmd { seq: CommandSeq(seq), ..frame.command };
            let commands = (first % (u32::MAX - 64)..).zip(frames).map(of).collect();
            HeardRecord { number, at, ack: SnapshotSeq(ack), received_before, commands }
        });
    prop_oneof![
        (player(), heard).prop_map(|(p, r)| Record::Heard(p, r)),
        (player(), frame()).prop_map(|(p, r)| Record::Frame(p, r)),
        (player(), packet).prop_map(|(p, r)| Record::Sent(p, r)),
        (player(), arrival()).prop_map(|(p, r)| Record::Reached(p, r)),
        (player(), execution).prop_map(|(p, r)| Record::Executed(p, r)),
        (player(), snapshot()).prop_map(|(p, r)| Record::Snapshot(p, r)),
        (player(), arrival()).prop_map(|(p, r)| Record::Received(p, r)),
        tick.prop_map(Record::Tick),
        state.prop_map(Record::State),
        (player(), shot()).prop_map(|(p, r)| Record::Predicted(p, r)),
        (player(), shot()).prop_map(|(p, r)| Record::Judged(p, r)),
        (player(), presence).prop_map(|(p, r)| Record::Presence(p, r)),
        damage.prop_map(Record::Damage),
        gap.prop_map(Record::Gap),
    ]
}

fn options() -> impl Strategy<Value = WriterOptions> {
    (1i32..4, 1i64..3_000_000, 64usize..8192).prop_map(|(level, span, bytes)| WriterOptions {
        header_level: level,
        level,
        span: Micros(span),
        bytes,
    })
}

/// A session as text that shows every bit, because NaN is not equal to itself.
fn bits(session: &Session) -> Vec<u8> {
    let mut same = session.clone();
    // Floats are compared by their bits.
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

/// A log keeps only the texts that its records name.
fn with_texts_in_use(session: &Session) -> Session {
    let mut same = session.clone();
    let shots = || session.players.iter().flat_map(|player| player.predicted.iter().chain(&player.judged));
    let mut weapons = shots().map(|shot| shot.weapon).chain(session.damage.iter().map(|damage| damage.weapon));
    if !weapons.any(|weapon| weapon != TextCode::default()) {
        same.texts = Texts::default();
    }
    same
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
        session.texts.add(WEAPON).unwrap();
        writer.set_texts(&session.texts);
        background.set_texts(&session.texts);
        for record in &records {
            writer.push(record.clone()).unwrap();
            background.push(record.clone()).unwrap();
            session.push(record.clone()).unwrap();
        }
        session.put_in_order();
        let live = writer.finish().unwrap();
        prop_assert_eq!(&background.finish().unwrap(), &live);
        let read = read_session(&live[..]).unwrap();
        prop_assert!(bits(&read) == bits(&with_texts_in_use(&session)));
        let whole = write_session(Vec::new(), &session, options).unwrap();
        prop_assert!(bits(&read_session(&whole[..]).unwrap()) == bits(&with_texts_in_use(&session)));
        let (recovered, _) = recover(&live).unwrap();
        prop_assert!(bits(&recovered) == bits(&read));
        let saved = RecoveredLog::find(&live).unwrap();
        let saved = saved.write(Vec::new(), options, MemoryLimit::default(), &mut |_| {}).unwrap();
        prop_assert!(bits(&read_session(&saved[..]).unwrap()) == bits(&recovered));
        prop_assert_eq!(read_header(&whole[..]).unwrap(), session.header);
        prop_assert_eq!(kind_of(&whole), FileKind::Log);
    }

    #[test]
    fn any_trace_survives_a_round_trip(trace in trace()) {
        let bytes = write_trace(Vec::new(), &trace).unwrap();
        let back = read_trace(&bytes[..]).unwrap();
        prop_assert_eq!(&back.header, &trace.header);
        prop_assert_eq!(back.digest(), trace.digest());
        prop_assert_eq!(kind_of(&bytes), FileKind::Trace);
    }
}

fn column(rows: usize) -> impl Strategy<Value = Column> {
    // Some columns have more than 256 names.
    let names =
        prop_oneof![4 => 1usize..4, 1 => 250usize..300].prop_flat_map(|n| proptest::collection::vec(".{0,9}", n));
    let data = prop_oneof![
        proptest::collection::vec(number(), rows).prop_map(ColumnData::U32),
        proptest::collection::vec(any::<u64>(), rows).prop_map(ColumnData::U64),
        proptest::collection::vec(micros().prop_map(|at| at.0), rows).prop_map(ColumnData::I64),
        proptest::collection::vec(float(), rows).prop_map(ColumnData::F32),
        proptest::collection::vec(any::<f64>(), rows).prop_map(ColumnData::F64),
        proptest::collection::vec(any::<bool>(), rows).prop_map(ColumnData::Bool),
        (names, proptest::collection::vec(any::<u32>(), rows)).prop_map(|(names, codes)| {
            let codes = codes.into_iter().map(|code| code % names.len() as u32).collect();
            ColumnData::Name { names, codes }
        }),
    ];
    let name = prop_oneof![Just("player".to_owned()), Just("entity".to_owned()), ".*"];
    (name, data).prop_map(|(name, data)| Column::new(name, data))
}

fn trace() -> impl Strategy<Value = Trace> {
    let columns = (0usize..40).prop_flat_map(|rows| proptest::collection::vec(column(rows), 0..5));
    let unique = |mut columns: Vec<Column>| {
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        columns.dedup_by(|a, b| a.name == b.name);
        columns
    };
    (".*", ".*", proptest::collection::vec(columns, 0..4)).prop_map(move |(game, mode, tables)| Trace {
        header: TraceHeader { game, mode, log_digest: "00".into(), settings: Vec::new(), ..TraceHeader::default() },
        tables: tables
            .into_iter()
            .enumerate()
            .map(|(i, columns)| Table::new(format!("table{i}"), unique(columns)))
            .collect(),
    })
}

#[test]
fn a_long_trace_is_written_in_several_chunks() {
    let rows = 600_000u32;
    let columns = vec![
        Column::new("entity", ColumnData::U32((0..rows).map(|i| i % 16).collect())),
        Column::new("origin_x_units", ColumnData::F32((0..rows).map(|i| (i / 16) as f32 * 0.37).collect())),
    ];
    let trace = Trace { tables: vec![Table::new("bodies", columns)], ..Trace::default() };
    let bytes = write_trace(Vec::new(), &trace).unwrap();
    assert_eq!(read_trace(&bytes[..]).unwrap(), trace);
    assert!(bytes.len() < rows as usize * 2, "{} bytes", bytes.len());
}

#[test]
fn logs_traces_and_other_files_are_distinguished() {
    let log = write_session(Vec::new(), &crate::log_sessions::session(1, 3), WriterOptions::live()).unwrap();
    let trace = write_trace(Vec::new(), &Trace::default()).unwrap();
    let message = read_trace(&log[..]).unwrap_err().to_string();
    assert_eq!(message, "this is a log, but the command needs a trace: make one with `hitreg replay LOG -o TRACE`");
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
    let bytes = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
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
fn an_invalid_record_is_refused_without_side_effects() {
    let session = crate::log_sessions::session(1, 2);
    let mut writer = LogWriter::new(Vec::new(), &session.header, WriterOptions::live()).unwrap();
    let frame = session.players[0].frames[0].clone();
    let state = StateRecord::shared(Tick(1), EntityId(0), vec![1, 2, 3]);
    assert!(matches!(writer.push(Record::Frame(PlayerId(1), frame.clone())), Err(WriteError::Misfit(_))));
    let nobody = StateRecord { viewer: Some(PlayerId(1)), cells: vec![0; 12], ..state.clone() };
    let classless = StateRecord { class: ClassId(1), ..nobody.clone() };
    let mut owned = frame.clone();
    owned.command.input.own = OwnCells::new(&[7]);
    assert!(matches!(writer.push(Record::Frame(PlayerId(0), owned)), Err(WriteError::Misfit(_))));
    for state in [state, nobody, classless] {
        assert!(matches!(writer.push(Record::State(state)), Err(WriteError::Misfit(_))));
    }
    writer.push(Record::Frame(PlayerId(0), frame.clone())).unwrap();
    let back = read_session(&writer.finish().unwrap()[..]).unwrap();
    assert_eq!(back.players[0].frames, [frame]);
}
