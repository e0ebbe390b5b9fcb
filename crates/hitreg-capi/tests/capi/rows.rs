//! Rows pushed through the C API are recorded like the recorder's own calls, and are read back unchanged.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};

use ::hitreg_log::record::*;
use ::hitreg_log::recorder::{Description, Recorder, RecorderOptions, Stream};
use ::hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use ::hitreg_log::usercmd::{Input, OwnCells, Usercmd};
use glam::Vec3;
use hitreg_capi::hitreg_code::*;
use hitreg_capi::hitreg_table::*;
use hitreg_capi::hitreg_value_kind::*;
use hitreg_capi::*;
use tempfile::TempDir;

const ROUNDS: u32 = 40;

fn number(number: impl Into<i64>) -> hitreg_value {
    let (kind, number) = (HITREG_VALUE_NUMBER as u16, number.into());
    hitreg_value { kind, item_bytes: 0, count: 0, data: hitreg_value_data { number } }
}

fn real(real: f32) -> hitreg_value {
    hitreg_value { kind: HITREG_VALUE_REAL as u16, item_bytes: 0, count: 0, data: hitreg_value_data { real } }
}

fn real64(real64: f64) -> hitreg_value {
    hitreg_value { kind: HITREG_VALUE_REAL64 as u16, data: hitreg_value_data { real64 }, ..number(0) }
}

fn words(text: &'static CStr) -> hitreg_value {
    hitreg_value { kind: HITREG_VALUE_TEXT as u16, data: hitreg_value_data { text: text.as_ptr() }, ..number(0) }
}

const SPELLS: [&CStr; 2] = [c"fire bolt", c""];

fn none() -> hitreg_value {
    hitreg_value { kind: HITREG_VALUE_NONE as u16, ..number(0) }
}

fn list<T>(items: &[T]) -> hitreg_value {
    let (item_bytes, count, data) = (size_of::<T>() as u16, items.len() as u32, items.as_ptr().cast());
    hitreg_value { kind: HITREG_VALUE_LIST as u16, item_bytes, count, data: hitreg_value_data { items: data } }
}

/// Lists of a round.
struct Lists {
    bytes: Vec<u8>,
    fields: Vec<hitreg_value>,
    entities: Vec<u16>,
    effects: Vec<hitreg_effect>,
    cells: Vec<u32>,
}

fn lists(round: u32) -> Lists {
    let effect = |kind| hitreg_effect { kind, entity: 7, predictable: kind % 2, x: 1.5, y: round as f32, z: -2.0 };
    Lists {
        bytes: (0..round % 20).map(|byte| byte as u8).collect(),
        fields: vec![real(round as f32 / 8.0), number(-i64::from(round))],
        entities: vec![0, 7],
        effects: (0..round % 3).map(effect).collect(),
        cells: vec![(round as f32).to_bits(), round],
    }
}

/// Returns the rows of a round: table, series, time and values.
fn rows(round: u32, of: &Lists) -> Vec<(hitreg_table, u32, i64, Vec<hitreg_value>)> {
    let (at, n) = (i64::from(round) * 10_000, number(round));
    let usercmd = vec![
        n,
        number(at - 30_000),
        number(100),
        number(10),
        real(-1.5),
        real(90.25),
        real(0.0),
        real(320.0),
        real(-200.5),
        real(0.125),
        number(round % 3),
        number(round % 7),
        list(&of.bytes),
        list(&of.fields),
    ];
    let shot = |reason: u32, target: i64| {
        let (impact, pellets) = if target < 0 { (number(1), none()) } else { (number(0), number(0)) };
        let known = vec![n, number(1), number(reason), number(target), number(3), number(-20), number(50_000)];
        [known, vec![words(c"rifle"), impact, pellets]].concat()
    };
    let damage = |attacker: i64, amount: i64, more: [hitreg_value; 5]| {
        [&[n, number(7), number(attacker), number(amount)][..], &more].concat()
    };
    let push = [words(c"rifle"), number(0), real(0.0), real(-1.5), real(0.0)];
    let hash = if round.is_multiple_of(2) { none() } else { number(i64::MIN + i64::from(round)) };
    vec![
        (HITREG_TABLE_FRAMES, 0, at, usercmd),
        (HITREG_TABLE_SENT, 0, at + 1, vec![n, n, number(1), number(round - 1), number(60)]),
        (HITREG_TABLE_PREDICTED, 0, at + 2, shot(round % 5, -1)),
        (HITREG_TABLE_REACHED, 0, at + 3, vec![n]),
        (HITREG_TABLE_EXECUTED, 0, 0, vec![n, n, number(round % 5)]),
        (HITREG_TABLE_JUDGED, 1, at + 4, shot(0, 7)),
        (HITREG_TABLE_TICKS, 0, at + 5, vec![n, hash]),
        (HITREG_TABLE_STATES, 0, 0, vec![n, number(-1), number(0), number(0), list(&of.cells)]),
        (HITREG_TABLE_STATES, 0, 0, vec![n, number(1), number(0), number(0), list(&of.cells)]),
        (HITREG_TABLE_DAMAGE, 0, at + 6, damage(-1, 20, [none(); 5])),
        (HITREG_TABLE_DAMAGE, 0, at + 6, damage(1, -5, push)),
        (HITREG_TABLE_PRESENCE, 1, at + 7, vec![n, number(round % 2)]),
        (
            HITREG_TABLE_SNAPSHOTS,
            1,
            at + 8,
            vec![n, n, number(at), number(round - 1), number(400), number(2), list(&of.entities), list(&of.effects)],
        ),
        (HITREG_TABLE_RECEIVED, 1, at + 9, vec![n]),
        (
            HITREG_TABLE_CUSTOM,
            5,
            at + 10,
            vec![number(-1_i64 << 40), real(0.5), real64(f64::from(round) / 3.0), words(SPELLS[round as usize % 2])],
        ),
    ]
}

/// Pushes the same rows by the recorder's own calls.
fn push_records(stream: &mut Stream, round: u32, of: &Lists) {
    let at = |by: i64| Micros(i64::from(round) * 10_000 + by);
    let [zero, one] = [0, 1].map(PlayerId);
    let (command, tick) = (CommandSeq(round), Tick(round));
    let input = Input {
        msec: 10,
        viewangles: Vec3::new(-1.5, 90.25, 0.0),
        forwardmove: 320.0,
        sidemove: -200.5,
        upmove: 0.125,
        buttons: (round % 3) as u16,
        impulse: (round % 7) as u8,
        own: OwnCells::default(),
    };
    let usercmd = Usercmd { seq: command, lerp_msec: 100, server_time: at(-30_000), input };
    let fields = [OwnValue::Float(round as f32 / 8.0), OwnValue::Number(-i64::from(round))];
    stream.usercmd_with_bytes(zero, at(0), usercmd, &fields, &of.bytes).unwrap();
    let rifle = stream.text("rifle").unwrap();
    let shot = |at, reason, target: Option<EntityId>| ShotRecord {
        command,
        at,
        index: 1,
        reason,
        target,
        hitgroup: 3,
        damage: -20,
        rewound: Micros(50_000),
        weapon: rifle,
        impact: target.is_none(),
        pellets: target.map(|_| 0),
    };
    let reasons = [HitResult::Hit, HitResult::HitWorld, HitResult::Missed, HitResult::AlreadyDead, HitResult::Launched];
    let how = [Execution::Run, Execution::StoodIn, Execution::Missing, Execution::Late, Execution::OverBudget];
    let state = |viewer| StateRecord { tick, viewer, entity: EntityId(0), class: ClassId(0), cells: of.cells.clone() };
    let damage = |attacker, amount| {
        let (weapon, armour, force) = match attacker {
            Some(_) => (rifle, Some(0), Some(Vec3::new(0.0, -1.5, 0.0))),
            None => Default::default(),
        };
        DamageRecord { tick, at: at(6), victim: EntityId(7), attacker, amount, weapon, armour, force }
    };
    let effect = |c: &hitreg_effect| Effect {
        kind: c.kind as u8,
        entity: EntityId(7),
        at: Vec3::new(c.x, c.y, c.z),
        predictable: c.predictable != 0,
    };
    let snapshot = SnapshotRecord {
        seq: SnapshotSeq(round),
        tick,
        at: at(8),
        server_time: at(0),
        ack: CommandSeq(round - 1),
        bytes: 400,
        choked: 2,
        entities: vec![EntityId(0), EntityId(7)],
        effects: of.effects.iter().map(effect).collect(),
        ..SnapshotRecord::default()
    };
    let packet =
        PacketRecord { number: round, at: at(1), newest: command, count: 1, ack: SnapshotSeq(round - 1), bytes: 60 };
    let change = if round.is_multiple_of(2) { Presence::Joined } else { Presence::Left };
    let hash = (round % 2 == 1).then(|| (i64::MIN + i64::from(round)).cast_unsigned());
    for record in [
        Record::Sent(zero, packet),
        Record::Predicted(zero, shot(at(2), reasons[round as usize % 5], None)),
        Record::Reached(zero, ArrivalRecord { number: round, at: at(3) }),
        Record::Executed(zero, ExecutionRecord { command, tick, how: how[round as usize % 5] }),
        Record::Judged(one, shot(at(4), HitResult::Hit, Some(EntityId(7)))),
        Record::Tick(TickRecord { tick, at: at(5), hash }),
        Record::State(state(None)),
        Record::State(state(Some(one))),
        Record::Damage(damage(None, 20)),
        Record::Damage(damage(Some(one), -5)),
        Record::Presence(one, PresenceRecord { tick, at: at(7), change }),
        Record::Snapshot(one, snapshot),
        Record::Received(one, ArrivalRecord { number: round, at: at(9) }),
    ] {
        stream.push(record).unwrap();
    }
    let spell = stream.text(SPELLS[round as usize % 2].to_str().unwrap()).unwrap();
    let values = [(u64::MAX << 40).into(), 0.5_f32.into(), (f64::from(round) / 3.0).into(), spell.into()];
    stream.row(0, 5, at(10), &values).unwrap();
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn message() -> String {
    // SAFETY: the text is valid until this thread's next failure.
    unsafe { CStr::from_ptr(hitreg_last_error()) }.to_string_lossy().into_owned()
}

fn must(code: hitreg_code) {
    assert_eq!(code, HITREG_OK, "{}", message());
}

/// Starts a recorder with two players, a class of two fields, two usercmd fields and a table `casts`.
fn begin(path: &Path) -> (*mut hitreg_recorder, *mut hitreg_stream) {
    let path = text(path.to_str().unwrap());
    let names = ["mygame", "p0", "p1", "player", "origin.x", "ammo", "lean", "stance", "casts"].map(text);
    let [game, p0, p1, class, x, ammo, lean, stance, casts] = names.each_ref().map(|name| name.as_ptr());
    let field = |name: *const c_char, value_type: hitreg_type, scope: hitreg_scope, meaning: hitreg_meaning| {
        hitreg_field { name, value_type: value_type as u32, scope: scope as u32, meaning: meaning as u32, unit: null() }
    };
    use hitreg_meaning::*;
    use hitreg_scope::*;
    use hitreg_type::*;
    let of_class = [
        field(x, HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION),
        field(ammo, HITREG_U32, HITREG_SCOPE_WEAPONS, HITREG_MEANING_COUNTER),
    ];
    let of_usercmds = [
        field(lean, HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_PLAIN),
        field(stance, HITREG_I32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_NAME),
    ];
    let columns = [(c"spell", HITREG_U64), (c"power", HITREG_F32), (c"weight", HITREG_F64), (c"name", HITREG_TEXT)]
        .map(|(name, value_type)| hitreg_column { name: name.as_ptr(), value_type: value_type as u32 });
    let options = hitreg_options { size: size_of::<hitreg_options>() as u32, patient: 1, ..Default::default() };
    let (mut recorder, mut stream) = (null_mut(), null_mut());
    // SAFETY: texts, arrays, structs and handles are valid.
    unsafe {
        let description = hitreg_description_new(game);
        must(hitreg_description_player(description, p0));
        must(hitreg_description_player(description, p1));
        must(hitreg_description_class(description, class, of_class.as_ptr(), 2));
        must(hitreg_description_usercmd_fields(description, of_usercmds.as_ptr(), 2));
        must(hitreg_description_usercmd_bytes(description));
        must(hitreg_description_table(description, casts, columns.as_ptr(), 4));
        must(hitreg_recorder_create(path.as_ptr(), description, &raw const options, &raw mut recorder));
        hitreg_description_free(description);
        must(hitreg_stream_new(recorder, &raw mut stream));
    }
    (recorder, stream)
}

fn end(recorder: *mut hitreg_recorder, stream: *mut hitreg_stream) {
    // SAFETY: both handles are valid, and this is their last use.
    unsafe {
        hitreg_stream_free(stream);
        must(hitreg_recorder_finish(recorder, null_mut()));
        hitreg_recorder_free(recorder);
    }
}

fn record_rows(path: &Path) {
    let (recorder, stream) = begin(path);
    for round in 1..=ROUNDS {
        let lists = lists(round);
        for (table, series, at, values) in rows(round, &lists) {
            // SAFETY: the stream and the array are valid.
            must(unsafe { hitreg_push_row(stream, table as u32, series, at, values.as_ptr(), values.len()) });
        }
    }
    end(recorder, stream);
}

fn record_records(path: &Path) {
    let field = |name, kind, scope, meaning| FieldSchema::new(name, kind, scope).meaning(meaning);
    let class = vec![
        field("origin.x", CellKind::F32, Scope::Movement, Meaning::Position),
        field("ammo", CellKind::U32, Scope::Weapons, Meaning::Counter),
    ];
    let columns =
        [("spell", CellKind::U64), ("power", CellKind::F32), ("weight", CellKind::F64), ("name", CellKind::Text)];
    let columns = columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    let description = Description::new("mygame")
        .player("p0")
        .player("p1")
        .class(Class::new("player", class))
        .usercmd_field(field("lean", CellKind::F32, Scope::Movement, Meaning::Plain))
        .usercmd_field(field("stance", CellKind::I32, Scope::Movement, Meaning::Name))
        .usercmd_bytes()
        .kind("casts", columns);
    let recorder = Recorder::create(path, description, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for round in 1..=ROUNDS {
        push_records(&mut stream, round, &lists(round));
    }
    drop(stream);
    recorder.finish().unwrap();
}

#[test]
fn rows_are_recorded_like_the_recorders_own_calls() {
    let folder = TempDir::new().unwrap();
    let [by_rows, by_records] = ["rows.hitlog", "records.hitlog"].map(|name| folder.path().join(name));
    record_rows(&by_rows);
    record_records(&by_records);
    let [by_rows, by_records] = [by_rows, by_records].map(|path| std::fs::read(path).unwrap());
    assert!(by_rows == by_records, "{} and {} bytes", by_rows.len(), by_records.len());
}

/// Usercmds have their own bytes and fields: a refused one leaves none behind, and numbers may repeat.
#[test]
fn bytes_and_fields_belong_to_their_usercmd() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bytes.hitlog");
    let (recorder, stream) = begin(&path);
    let table = hitreg_table::HITREG_TABLE_FRAMES as u32;
    let push = |at, seq: i64, bytes: &[u8], fields: &[hitreg_value]| {
        let numbers = [seq, 0, 0, 10].map(number);
        let row = [&numbers[..], &[real(0.0); 6], &[number(0), number(0), list(bytes), list(fields)]].concat();
        // SAFETY: the stream and the array are valid.
        unsafe { hitreg_push_row(stream, table, 0, at, row.as_ptr(), row.len()) }
    };
    let fields = |lean| [real(lean), number(1)];
    assert_eq!(push(10, 1, b"stale", &[number(1), number(1)]), HITREG_ERROR_MISFIT);
    assert_eq!(push(10, 1, b"stale", &[]), HITREG_ERROR_MISFIT, "one value for each field");
    let long = vec![7; 300_000];
    let pushed = [(1, &b""[..], 0.5), (2, b"first life", 1.0), (1, b"second life", 1.5), (3, &long[..], 2.0)];
    for (at, (seq, bytes, lean)) in (10..).zip(pushed) {
        must(push(at, seq, bytes, &fields(lean)));
    }
    end(recorder, stream);
    let (path, mut log) = (text(path.to_str().unwrap()), null_mut());
    // SAFETY: texts, handles and output pointers are valid, and the last two values are lists.
    unsafe {
        must(hitreg_log_open(path.as_ptr(), &raw mut log));
        for (index, (seq, bytes, lean)) in pushed.into_iter().enumerate() {
            let mut row = [none(); 14];
            must(hitreg_log_row(log, table, 0, index, null_mut(), row.as_mut_ptr(), 14));
            let found = match row[12].count {
                0 => &[],
                count => std::slice::from_raw_parts(row[12].data.items.cast::<u8>(), count as usize),
            };
            let found_lean = row[13].data.items.cast::<hitreg_value>().read().data.real;
            assert!((row[0].data.number, found, found_lean) == (seq, bytes, lean), "row {index}");
        }
        hitreg_log_free(log);
    }
}

/// Returns a value as text; lists with their items.
fn value_text(value: &hitreg_value) -> String {
    // SAFETY: the kind says which of the contents it is, and the items are valid.
    unsafe {
        match value.kind {
            0 => "none".to_owned(),
            1 => format!("{}", value.data.number),
            2 => format!("{:?}", value.data.real),
            4 => format!("{:?}", value.data.real64),
            5 => format!("{:?}", CStr::from_ptr(value.data.text)),
            _ if value.count == 0 => "[]".to_owned(),
            _ if usize::from(value.item_bytes) == size_of::<hitreg_value>() => {
                let items = std::slice::from_raw_parts(value.data.items.cast::<hitreg_value>(), value.count as usize);
                format!("{:?}", items.iter().map(value_text).collect::<Vec<_>>())
            }
            _ => {
                let bytes = usize::from(value.item_bytes) * value.count as usize;
                let items = std::slice::from_raw_parts(value.data.items.cast::<u8>(), bytes);
                format!("{}: {items:?}", value.item_bytes)
            }
        }
    }
}

#[test]
fn rows_are_read_back_unchanged() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.hitlog");
    record_rows(&path);
    let path = text(path.to_str().unwrap());
    let (mut log, mut custom) = (null_mut(), 0);
    // SAFETY: texts, output pointers and handles are valid.
    unsafe {
        must(hitreg_log_open(path.as_ptr(), &raw mut log));
        must(hitreg_log_table(log, text("casts").as_ptr(), &raw mut custom));
        assert_eq!(custom, HITREG_TABLE_CUSTOM as u32);
        assert_eq!(hitreg_log_table(log, text("frames").as_ptr(), &raw mut custom), HITREG_ERROR_NO_ROW);
    }
    let mut next = std::collections::BTreeMap::new();
    for round in 1..=ROUNDS {
        let lists = lists(round);
        for (table, series, at, values) in rows(round, &lists) {
            let index = next.entry((table as u32, series)).or_insert(0);
            let mut found = vec![none(); values.len()];
            let mut time = 0;
            // SAFETY: the log and the output pointers are valid.
            let code = unsafe {
                hitreg_log_row(log, table as u32, series, *index, &raw mut time, found.as_mut_ptr(), found.len())
            };
            must(code);
            *index += 1;
            let [found, pushed] = [found, values].map(|row| row.iter().map(value_text).collect::<Vec<_>>());
            assert_eq!((time, found), (at, pushed), "{table:?} of round {round}");
        }
    }
    for ((table, series), rows) in next {
        let (mut count, mut found) = (0, u32::MAX);
        // SAFETY: the log and the output pointers are valid.
        unsafe {
            must(hitreg_log_count(log, table, series, &raw mut count));
            let place = if table < HITREG_TABLE_CUSTOM as u32 { series as usize } else { 0 };
            must(hitreg_log_series(log, table, place, &raw mut found));
            assert_eq!(hitreg_log_series(log, table, 2, &raw mut found), HITREG_ERROR_NO_ROW);
            let after = hitreg_log_row(log, table, series, rows, null_mut(), null_mut(), 0);
            assert_eq!((count, found, after), (rows, series, HITREG_ERROR_NO_ROW));
        }
    }
    // SAFETY: the last use of the log.
    unsafe { hitreg_log_free(log) };
}

#[test]
fn a_usercmd_is_found_by_its_number_in_any_order_of_arrival() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("reordered.hitlog");
    let (recorder, stream) = begin(&path);
    let lists = lists(0);
    // The last number is used again, as by a player who rejoins.
    let arrived = [1_u32, 2, 4, 5, 3, 9, 8, 7, 6, 10, 4];
    for (place, seq) in (1_i64..).zip(arrived) {
        let mut values = rows(1, &lists).remove(0).3;
        values[0] = number(seq);
        values[12] = none();
        // SAFETY: the stream and the array are valid.
        must(unsafe { hitreg_push_row(stream, 0, 0, place * 1000, values.as_ptr(), values.len()) });
    }
    end(recorder, stream);
    let (path, mut log, mut index) = (text(path.to_str().unwrap()), null_mut(), usize::MAX);
    // SAFETY: texts, output pointers and handles are valid.
    unsafe {
        must(hitreg_log_open(path.as_ptr(), &raw mut log));
        for seq in 1..=10 {
            must(hitreg_log_usercmd_index(log, 0, seq, &raw mut index));
            assert_eq!(Some(index), arrived.iter().position(|number| *number == seq), "usercmd {seq}");
        }
        for (player, seq, says) in [(0, 0, "no usercmd 0"), (0, 11, "no usercmd 11"), (2, 1, "no player 2")] {
            assert_eq!(hitreg_log_usercmd_index(log, player, seq, &raw mut index), HITREG_ERROR_NO_ROW);
            assert!(message().contains(says), "{}", message());
        }
        hitreg_log_free(log);
    }
}

/// As the inline functions of the header write them.
#[test]
fn texts_and_doubles_take_two_cells_of_a_state() {
    let folder = TempDir::new().unwrap();
    let path = text(folder.path().join("wide.hitlog").to_str().unwrap());
    let field = |name: &'static CStr, value_type: hitreg_type| hitreg_field {
        name: name.as_ptr(),
        value_type: value_type as u32,
        scope: 0,
        meaning: 0,
        unit: null(),
    };
    let fields = [
        field(c"origin.x", hitreg_type::HITREG_F64),
        field(c"weapon", hitreg_type::HITREG_TEXT),
        field(c"alive", hitreg_type::HITREG_BOOL),
    ];
    let options = hitreg_options { size: size_of::<hitreg_options>() as u32, patient: 1, ..Default::default() };
    let (mut recorder, mut stream, mut log) = (null_mut(), null_mut(), null_mut());
    let bits = 0.1_f64.to_bits();
    let mut cells = [bits as u32, (bits >> 32) as u32, 0, 0, 1];
    // SAFETY: texts, arrays, structs and handles are valid.
    unsafe {
        let description = hitreg_description_new(c"mygame".as_ptr());
        must(hitreg_description_player(description, c"p0".as_ptr()));
        must(hitreg_description_class(description, c"player".as_ptr(), fields.as_ptr(), 3));
        must(hitreg_recorder_create(path.as_ptr(), description, &raw const options, &raw mut recorder));
        hitreg_description_free(description);
        must(hitreg_stream_new(recorder, &raw mut stream));
        must(hitreg_put_text(stream, c"rifle".as_ptr(), cells[2..].as_mut_ptr()));
        assert_eq!(hitreg_put_text(stream, null(), cells[2..].as_mut_ptr()), HITREG_ERROR_NULL);
        assert_eq!(hitreg_put_text(stream, c"x".as_ptr(), null_mut()), HITREG_ERROR_NULL);
        let ticks = [number(1), none()];
        must(hitreg_push_row(stream, HITREG_TABLE_TICKS as u32, 0, 10, ticks.as_ptr(), 2));
        let state = [number(1), number(-1), number(0), number(0), list(&cells)];
        must(hitreg_push_row(stream, HITREG_TABLE_STATES as u32, 0, 10, state.as_ptr(), 5));
        end(recorder, stream);
        must(hitreg_log_open(path.as_ptr(), &raw mut log));
        let mut found = [none(); 5];
        must(hitreg_log_row(log, HITREG_TABLE_STATES as u32, 0, 0, null_mut(), found.as_mut_ptr(), 5));
        assert_eq!(value_text(&found[4]), value_text(&state[4]));
        let read = found[4].data.items.cast::<u32>();
        assert_eq!(CStr::from_ptr(hitreg_log_text(log, read.add(2))), c"rifle");
        assert_eq!(CStr::from_ptr(hitreg_log_text(log, read)), c"");
        assert!(hitreg_log_text(log, null()).is_null() && hitreg_log_text(null(), read).is_null());
        hitreg_log_free(log);
    }
}

#[test]
fn a_row_that_does_not_match_its_table_is_refused() {
    let folder = TempDir::new().unwrap();
    let (recorder, stream) = begin(&folder.path().join("refused.hitlog"));
    let lists = lists(5);
    let good = rows(5, &lists);
    let row = |wanted: hitreg_table| good.iter().find(|(table, ..)| *table == wanted).unwrap().3.clone();
    let push = |table: u32, series, values: &[hitreg_value]| {
        // SAFETY: the stream and the array are valid.
        unsafe { hitreg_push_row(stream, table, series, 1000, values.as_ptr(), values.len()) }
    };
    let with = |table: hitreg_table, place: usize, value: hitreg_value| {
        let mut values = row(table);
        values[place] = value;
        push(table as u32, 0, &values)
    };
    let says = |code: hitreg_code, wanted: hitreg_code, words: &str| {
        assert!(code == wanted && message().contains(words), "{code:?}: {}", message());
    };
    says(push(99, 0, &[]), HITREG_ERROR_VALUE, "no table 99");
    // Fields of usercmds in the description are not a table.
    says(push(257, 0, &[real(1.0), number(1)]), HITREG_ERROR_MISFIT, "no custom kind");
    says(push(256, 0, &[number(1), number(1)]), HITREG_ERROR_MISFIT, "`casts`");
    says(push(256, 0, &[number(1), none()]), HITREG_ERROR_MISFIT, "a number, a float or a text");
    says(push(9, 0, &[number(1)]), HITREG_ERROR_MISFIT, "`ticks` has 2 values (tick, hash), not 1");
    says(push(9, 1, &row(HITREG_TABLE_TICKS)), HITREG_ERROR_VALUE, "no series but 0");
    says(push(4, 70_000, &[number(1)]), HITREG_ERROR_VALUE, "player is 70000");
    says(push(4, 2, &[number(1)]), HITREG_ERROR_MISFIT, "player 2");
    says(with(HITREG_TABLE_FRAMES, 3, number(256)), HITREG_ERROR_VALUE, "msec is 256");
    says(with(HITREG_TABLE_FRAMES, 5, number(1)), HITREG_ERROR_MISFIT, "yaw is not a float");
    says(with(HITREG_TABLE_FRAMES, 12, number(1)), HITREG_ERROR_MISFIT, "bytes is not a list");
    says(with(HITREG_TABLE_STATES, 4, list(&[1_u16, 2])), HITREG_ERROR_SIZE, "cells have 2 bytes, not 4");
    says(with(HITREG_TABLE_STATES, 1, number(-2)), HITREG_ERROR_VALUE, "viewer is -2");
    says(with(HITREG_TABLE_EXECUTED, 2, number(5)), HITREG_ERROR_VALUE, "no how 5");
    says(with(HITREG_TABLE_JUDGED, 2, number(-1)), HITREG_ERROR_VALUE, "no reason -1");
    says(with(HITREG_TABLE_JUDGED, 3, number(70_000)), HITREG_ERROR_VALUE, "target is 70000");
    says(with(HITREG_TABLE_JUDGED, 7, real(1.0)), HITREG_ERROR_MISFIT, "weapon is not a text or a number");
    says(with(HITREG_TABLE_JUDGED, 9, number(256)), HITREG_ERROR_VALUE, "pellets is 256");
    says(with(HITREG_TABLE_DAMAGE, 5, number(-1)), HITREG_ERROR_VALUE, "armour is -1");
    says(with(HITREG_TABLE_DAMAGE, 7, number(1)), HITREG_ERROR_MISFIT, "force is not a float");
    says(with(HITREG_TABLE_DAMAGE, 2, number(70_000)), HITREG_ERROR_VALUE, "attacker is 70000");
    let tick = |at_us, number_of: i64| {
        let values = [number(number_of), none()];
        // SAFETY: the stream and the array are valid.
        unsafe { hitreg_push_row(stream, 9, 0, at_us, values.as_ptr(), 2) }
    };
    must(tick(1000, 5));
    says(tick(2000, 4), HITREG_ERROR_MISFIT, "tick 4 at 2.000 ms does not follow tick 5 at 1.000 ms");
    must(tick(900, 4));
    // SAFETY: the stream is valid.
    says(unsafe { hitreg_push_row(stream, 9, 0, 1000, null(), 2) }, HITREG_ERROR_NULL, "values is null");
    end(recorder, stream);
}
