//! What older versions wrote can still be read.

#![expect(clippy::disallowed_methods, reason = "writing the fixtures anew is asked for by an environment variable")]

use hitreg::game::{CellKind, Class, ClassId, FieldSchema, Meaning, Reason, Scope};
use hitreg::log::{WriterOptions, read_session, read_trace, version_of, write_session, write_trace};
use hitreg::record::{
    ArrivalRecord, DamageRecord, GapCause, GapRecord, HeardRecord, OutOfSequence, Presence, PresenceRecord, Record,
    RecordedSide, Session, SessionId, ShotRecord, StateRecord, Timing,
};
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId};

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
    one_side.header.side = Some(RecordedSide { session: SessionId(0x0123_4567_89ab_cdef), player: Some(PlayerId(1)) });
    // 2.0 brought classes, states for one viewer alone, and more kinds of records.
    let everything = of_all_kinds(&session);
    // 2.1 brought what a server heard.
    let heard = with_what_was_heard(&everything);
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        let bytes = write_session(Vec::new(), &heard, WriterOptions::live()).unwrap();
        std::fs::write(format!("{folder}/log-v2.1.hitlog"), &bytes).unwrap();
        // 2.2 brought keyframes.
        let keyed = crate::keyframes::with_keyframes(&bytes, &[crate::keyframes::keyframe(0)]);
        std::fs::write(format!("{folder}/log-v2.2.hitlog"), keyed).unwrap();
    }
    let keyed = heard.clone();
    let version = |file: &[u8]| version_of(file).map(|v| v.to_string());
    for (name, session) in [("1.0", session), ("1.1", one_side), ("2.0", everything), ("2.1", heard), ("2.2", keyed)] {
        let log = std::fs::read(format!("{folder}/log-v{name}.hitlog")).unwrap();
        assert_eq!(read_session(&log[..]).unwrap(), session);
        assert_eq!(version(&log).as_deref(), Some(name));
    }
    // 1.2 brought columns of more names than a byte can tell apart, and units.
    let mut many_names = small_trace();
    many_names.tables[0].columns[3].unit = "units".into();
    let names: Vec<String> = (0..300).map(|n| format!("entity {n}")).collect();
    let data = ColumnData::Name { names, codes: (0..30).map(|row| row * 10 + 9).collect() };
    many_names.tables[0].columns.push(Column::new("whom", data));
    // 1.4 brought tables of a build's own that name their keys.
    let mut keyed = many_names.clone();
    keyed.tables.push(Table::new("spells", small_trace().tables.remove(0).columns).keyed_by(["entity", "at_us"]));
    // 1.5 brought tables of what went over the network.
    let mut network = keyed.clone();
    let arrived = Column::new("arrived", ColumnData::U32(vec![1; 30]));
    let columns = small_trace().tables.remove(0).columns.into_iter().chain([arrived]).collect();
    network.tables.push(Table::new("packets", columns));
    // Since 2.0 a table may be in parts that do not stand together, names may come later, and so may a column of names.
    let views = &small_trace().tables[0];
    let later = |names: &[&str], code| in_place(views, names, code);
    let mut in_parts = small_trace();
    in_parts.tables[0] = later(&["held"], 0);
    in_parts.tables[0].append(later(&["held", "interpolated"], 1)).unwrap();
    // 3.0 packs views against what they were drawn between.
    let drawn = crate::drawn::trace();
    if std::env::var_os("HITREG_WRITE_COMPAT").is_some() {
        std::fs::write(format!("{folder}/trace-v3.0.hittrace"), write_trace(Vec::new(), &drawn).unwrap()).unwrap();
    }
    // 1.3 names misses as engines do.
    let mut misses = small_trace();
    let names = ["hit", "hit the world", "missed"].map(str::to_owned).to_vec();
    misses.tables[1].columns.push(Column::new("reason", ColumnData::Name { names, codes: vec![0, 1, 2, 2] }));
    let traces = [
        ("1.0", small_trace()),
        ("1.1", small_trace()),
        ("1.2", many_names),
        ("1.3", misses),
        ("1.4", keyed),
        ("1.5", network),
        ("2.0", in_parts),
    ];
    for (name, expected) in traces {
        let trace = std::fs::read(format!("{folder}/trace-v{name}.hittrace")).unwrap();
        assert_eq!(read_trace(&trace[..]).unwrap(), expected);
        assert_eq!(version(&trace).as_deref(), Some(name));
    }
    // It has rows that are no numbers.
    let read = std::fs::read(format!("{folder}/trace-v3.0.hittrace")).unwrap();
    assert_eq!(read_trace(&read[..]).unwrap().digest(), drawn.digest());
    assert_eq!(version(&read).as_deref(), Some("3.0"));
    assert_eq!((version_of(b""), version_of(b"some text")), (None, None));
}

/// Written by the Python on the format page.
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

/// The same rows, all drawn in one way.
fn in_place(table: &Table, names: &[&str], code: u32) -> Table {
    let mut table = table.clone();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    table.columns[4].data = ColumnData::Name { names, codes: vec![code; 30] };
    table
}

fn small_trace() -> Trace {
    let columns = vec![
        Column::new("entity", ColumnData::U32((0..30).map(|i| i % 3).collect())),
        Column::new("at_us", ColumnData::I64((0..30).map(|i| i / 3 * 15_625).collect())),
        Column::new("hash", ColumnData::U64((0..30u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect())),
        Column::new("error_units", ColumnData::F32((0..30u8).map(|i| f32::from(i) / 7.0).collect())),
        Column::new("how", ColumnData::Name { names: vec!["held".into(), "interpolated".into()], codes: vec![1; 30] }),
    ];
    let header = TraceHeader {
        game: "disc".into(),
        mode: "closed".into(),
        log_digest: "00".into(),
        settings: vec![("server.tick_hz".into(), "64".into())],
        ..TraceHeader::default()
    };
    Trace { header, tables: vec![Table::new("views", columns), Table::new("shots", vec![])] }
}

/// The same, with what the server heard: each packet with the usercmds that it says it carries.
fn with_what_was_heard(session: &Session) -> Session {
    let mut all = session.clone();
    for player in &mut all.players {
        let of = |number: u32| player.sent.iter().find(|packet| packet.number == number);
        let heard = |arrival: &ArrivalRecord| {
            let packet = of(arrival.number)?;
            let first = (packet.newest.0 + 1).saturating_sub(packet.count.into());
            let commands = player.frames.iter().map(|frame| frame.command);
            let commands = commands.filter(|command| (first..=packet.newest.0).contains(&command.seq.0)).collect();
            Some(HeardRecord { number: arrival.number, at: arrival.at, ack: packet.ack, received_before: 5, commands })
        };
        player.heard = player.reached.iter().filter_map(heard).collect();
        assert!(player.heard.iter().any(|heard| heard.commands.len() > 1));
    }
    all
}

/// The session with records of every kind that 2.0 has, and entities of another class that one player alone is shown.
fn of_all_kinds(session: &Session) -> Session {
    let mut all = session.clone();
    let lamp = FieldSchema::new("glow", CellKind::I32, Scope::Status).meaning(Meaning::Time).in_unit("s");
    all.header.classes.push(Class::new("lamp", vec![lamp]));
    for tick in session.ticks.iter().step_by(3) {
        let (shot, damage) = (tick.tick.0 as i32, tick.tick.0 as i32 % 7);
        let lamp = StateRecord {
            tick: tick.tick,
            viewer: Some(PlayerId(1)),
            entity: EntityId(9),
            class: ClassId(1),
            cells: vec![shot as u32],
        };
        let judged = ShotRecord {
            command: CommandSeq(tick.tick.0),
            at: tick.at,
            reason: Reason::Hit,
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
            Record::Damage(DamageRecord { tick, at, victim: EntityId(1), attacker, amount: damage }),
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
