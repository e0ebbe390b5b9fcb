//! A game with fields of every type: recorded, exported, replayed by its own build, and compared bit for bit.

use hitreg::log::read_session;
use hitreg::record::{CellKind, Class, ClassId, FieldSchema, Meaning, OwnValue, Scope, TextCode, cells_of};
use hitreg::recorder::{Description, Recorder, RecorderOptions, Stream};
use hitreg::trace::Digest;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg::usercmd::{Input, Usercmd};
use serde_json::Value;

use super::folder::{Folder, text};

const TICKS: u32 = 60;
/// The tick in which the second build computes another position.
const WRONG_TICK: u32 = 40;

fn about() -> Description {
    let field = |name, kind| FieldSchema::new(name, kind, Scope::Movement);
    let fields = vec![
        field("origin.x", CellKind::F64).meaning(Meaning::Position),
        field("id", CellKind::U64),
        field("score", CellKind::I64),
        field("alive", CellKind::Bool),
        field("yaw", CellKind::F32).meaning(Meaning::Angle),
        field("ammo", CellKind::I32),
        field("weapon", CellKind::Text),
    ];
    let casts = [
        ("spell", CellKind::U64),
        ("power", CellKind::F64),
        ("cost", CellKind::I64),
        ("hit", CellKind::Bool),
        ("name", CellKind::Text),
    ];
    Description::new("mygame")
        .tick_hz(100)
        .player("p0")
        .class(Class::new("player", fields))
        .usercmd_field(field("aim", CellKind::F64).meaning(Meaning::Angle))
        .usercmd_field(field("target", CellKind::U64))
        .usercmd_field(field("taunt", CellKind::Text))
        .kind("casts", casts.map(|(name, kind)| (name.to_owned(), kind)).to_vec())
}

/// A value of a field.
#[derive(Clone, Copy)]
enum GameValue {
    Own(OwnValue),
    Text(&'static str),
}

impl<T: Into<OwnValue>> From<T> for GameValue {
    fn from(value: T) -> GameValue {
        GameValue::Own(value.into())
    }
}

fn pushed<const N: usize>(stream: &mut Stream, values: [GameValue; N]) -> [OwnValue; N] {
    values.map(|value| match value {
        GameValue::Own(value) => value,
        GameValue::Text(text) => stream.text(text).unwrap().into(),
    })
}

fn word(tick: u32) -> GameValue {
    GameValue::Text(["rifle", "", "a knife, \"long\"", "\u{201e}Messer\u{201c}"][tick as usize % 4])
}

/// The values of a body after a tick. The `f64` positions have no exact `f32`.
fn body(tick: u32, is_wrong: bool) -> [GameValue; 7] {
    let x = 1e9 + f64::from(tick) * 0.1;
    let x = if is_wrong && tick >= WRONG_TICK { x.next_up() } else { x };
    let (id, score) = (0xdead_beef_0000_0001 + u64::from(tick % 3), i64::from(tick) - (1 << 40));
    let (yaw, ammo) = (tick as f32 * 1.5, 5 - tick as i32);
    [x.into(), id.into(), score.into(), (!tick.is_multiple_of(7)).into(), yaw.into(), ammo.into(), word(tick)]
}

fn own_input(tick: u32) -> [GameValue; 3] {
    [(f64::from(tick) / 3.0).into(), (u64::MAX - u64::from(tick)).into(), word(tick + 1)]
}

fn cast(tick: u32) -> [GameValue; 5] {
    let (power, cost) = (-1.0 / f64::from(tick), -i64::from(tick) << 33);
    [u64::MAX.into(), power.into(), cost.into(), tick.is_multiple_of(2).into(), word(tick + 2)]
}

fn play(stream: &mut Stream, is_wrong: bool) {
    for tick in 1..=TICKS {
        let at = Micros::from_ms(10 * i64::from(tick));
        let input = Input { msec: 10, forwardmove: 320.0, ..Input::default() };
        let command = Usercmd { seq: CommandSeq(tick), input, ..Usercmd::default() };
        let own = pushed(stream, own_input(tick));
        stream.usercmd_with(PlayerId(0), at, command, &own).unwrap();
        stream.tick(Tick(tick), at, Some(u64::from(tick) + u64::from(is_wrong && tick >= WRONG_TICK))).unwrap();
        let values = pushed(stream, body(tick, is_wrong));
        stream.body_values(Tick(tick), EntityId(0), ClassId(0), &values).unwrap();
        let values = pushed(stream, cast(tick));
        stream.row(0, 0, at, &values).unwrap();
    }
}

/// The log, and two builds: one replays it as recorded, one with the change.
fn record_game() -> Folder {
    let folder = Folder::empty();
    let log = folder.path("a.hitlog");
    let recorder = Recorder::create(&log, about(), RecorderOptions::patient()).unwrap();
    play(&mut recorder.stream(), false);
    recorder.finish().unwrap();
    let digest = Digest::of_bytes(&std::fs::read(&log).unwrap());
    for (name, is_wrong) in [("good", false), ("bad", true)] {
        let recorder = Recorder::trace(&folder.path(&format!("{name}.hittrace")), about(), digest).unwrap();
        play(&mut recorder.stream(), is_wrong);
        recorder.finish().unwrap();
        #[cfg(unix)]
        crate::pucks::script(&folder.path(name), &format!("cp \"$(dirname \"$0\")\"/{name}.hittrace \"$4\""));
    }
    folder
}

/// A table in CSV: its first line, and the other lines as cells.
fn exported(folder: &Folder, file: &str, table: &str) -> (String, Vec<Vec<String>>) {
    let printed = folder.done(&format!("export {file} --table {table} --to csv"));
    let (names, lines) = printed.split_once('\n').expect("a line of names");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(lines.as_bytes());
    let rows = reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
    (names.to_owned(), rows)
}

/// Whether a text parses to exactly this value.
fn is_value(text: &str, kind: CellKind, value: GameValue) -> bool {
    let value = match value {
        GameValue::Text(value) => return kind == CellKind::Text && text == value,
        GameValue::Own(value) => value,
    };
    match (kind, value) {
        (CellKind::F64, OwnValue::Double(value)) => text.parse::<f64>().is_ok_and(|t| t.to_bits() == value.to_bits()),
        (CellKind::F32, OwnValue::Float(value)) => text.parse::<f32>().is_ok_and(|t| t.to_bits() == value.to_bits()),
        (CellKind::U64, OwnValue::Unsigned(value)) => text.parse() == Ok(value),
        (CellKind::Bool, OwnValue::Number(value)) => text.parse() == Ok(value == 1),
        (CellKind::I32 | CellKind::I64, OwnValue::Number(value)) => text.parse() == Ok(value),
        _ => false,
    }
}

#[test]
fn values_of_every_type_come_back_bit_for_bit() {
    let folder = record_game();
    let session = read_session(&std::fs::read(folder.path("a.hitlog")).unwrap()[..]).unwrap();
    let fields = &session.header.classes[0].fields;
    let kinds: Vec<CellKind> = fields.iter().map(|field| field.kind).collect();
    assert_eq!(session.states.len(), TICKS as usize);
    for (key, cells) in session.states.iter() {
        for ((field, place), value) in cells_of(fields).zip(body(key.tick.0, false)) {
            let mut expected = Vec::new();
            assert!(field.kind.put(number(value), &mut expected));
            assert_eq!(cells[place], expected, "{} of tick {}", field.name, key.tick);
        }
        let GameValue::Text(weapon) = body(key.tick.0, false)[6] else { panic!("a text") };
        assert_eq!(session.texts.get(TextCode::of(weapon)), weapon);
    }
    for file in ["a.hitlog", "good.hittrace"] {
        let (names, rows) = exported(&folder, file, "bodies");
        assert_eq!(
            (&*names, rows.len()),
            ("tick,entity,origin.x,id,score,alive,yaw,ammo,weapon", TICKS as usize),
            "{file}"
        );
        for (tick, row) in (1..).zip(&rows) {
            let values = row[2..].iter().zip(&kinds).zip(body(tick, false));
            values.for_each(|((text, kind), value)| assert!(is_value(text, *kind, value), "{file}: {row:?}"));
        }
        let (names, rows) = exported(&folder, file, "casts");
        assert_eq!((&*names, rows.len()), ("series,at_us,spell,power,cost,hit,name", TICKS as usize), "{file}");
        let kinds = [CellKind::U64, CellKind::F64, CellKind::I64, CellKind::Bool, CellKind::Text];
        for (tick, row) in (1..).zip(&rows) {
            let values = row[2..].iter().zip(kinds).zip(cast(tick));
            values.for_each(|((text, kind), value)| assert!(is_value(text, kind, value), "{file}: {row:?}"));
        }
        let (names, rows) = exported(&folder, file, "frames");
        assert!(names.ends_with(",aim,target,taunt"), "{file}: {names}");
        for (tick, row) in (1..).zip(&rows) {
            let values = row[row.len() - 3..].iter().zip([CellKind::F64, CellKind::U64, CellKind::Text]);
            let values = values.zip(own_input(tick));
            values.for_each(|((text, kind), value)| assert!(is_value(text, kind, value), "{file}: {row:?}"));
        }
    }
    // Many JSON readers lose bits of 64-bit numbers, so ids are text.
    let line = folder.done("export a.hitlog --table bodies");
    let first: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["alive"]), (&Value::from("16045690981097406466"), &Value::from(true)));
    assert_eq!(first["origin.x"].as_f64(), Some(1e9 + 0.1));
}

/// Types and values, read by DuckDB.
#[test]
#[cfg(feature = "parquet")]
fn parquet_columns_have_the_declared_types() {
    let Some(python) = crate::exports::duckdb() else { return };
    let folder = record_game();
    folder.done("export a.hitlog --table bodies --to parquet -o bodies.parquet");
    let types =
        ["origin.x", "id", "score", "alive", "yaw", "weapon"].map(|name| format!("typeof(\"{name}\")")).join(", ");
    let sql =
        format!("SELECT {types} FROM 'bodies.parquet' LIMIT 1; SELECT tick, \"origin.x\", id FROM 'bodies.parquet'");
    let answers = crate::exports::query_duckdb(&python, &folder, &sql);
    assert_eq!(answers[0][0], serde_json::json!(["DOUBLE", "UBIGINT", "BIGINT", "BOOLEAN", "FLOAT", "VARCHAR"]));
    for row in answers[1].as_array().expect("rows") {
        let [x, id, ..] = body(row[0].as_u64().expect("a tick") as u32, false);
        let read = [row[1].as_f64().map(GameValue::from), row[2].as_u64().map(GameValue::from)];
        assert_eq!(read.map(|value| value.map(number)), [x, id].map(|value| Some(number(value))));
    }
}

fn number(value: GameValue) -> i64 {
    match value {
        GameValue::Own(OwnValue::Number(number)) => number,
        GameValue::Own(OwnValue::Unsigned(number)) => number as i64,
        GameValue::Own(OwnValue::Float(float)) => float.to_bits().into(),
        GameValue::Own(OwnValue::Double(double)) => double.to_bits() as i64,
        GameValue::Own(OwnValue::Text(code)) => code.0 as i64,
        GameValue::Text(text) => TextCode::of(text).0 as i64,
    }
}

#[test]
fn values_outside_a_type_are_refused() {
    let folder = Folder::empty();
    let recorder = Recorder::create(&folder.path("a.hitlog"), about(), RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    stream.tick(Tick(1), Micros(10), None).unwrap();
    let values = pushed(&mut stream, body(1, false));
    let mut push = |place: usize, value: OwnValue| {
        let mut values = values;
        values[place] = value;
        stream.body_values(Tick(1), EntityId(0), ClassId(0), &values)
    };
    assert_eq!(push(0, 1.5f64.into()), Ok(()));
    let bad: [(usize, OwnValue); 6] = [
        (0, 1.5f32.into()),
        (1, TextCode::of("rifle").into()),
        (3, 2i32.into()),
        (4, 1.5f64.into()),
        (5, (1i64 << 31).into()),
        (6, 7u64.into()),
    ];
    for (place, value) in bad {
        let output = push(place, value).unwrap_err().to_string();
        assert!(output.contains("a row of `player` is"), "{output}");
        let types = output.replace(" (0 to 1)", "").replace(" (-2147483648 to 2147483647)", "");
        assert!(types.ends_with("and the description says f64, u64, i64, bool, f32, i32, text"), "{output}");
    }
    let (smallest, largest) = (i64::MIN, i64::MAX);
    let unsigned = [
        (1, (-5i64).into(), " -5, ".to_owned(), format!("u64 (0 to {}), i64", u64::MAX)),
        (2, u64::MAX.into(), format!(" {}, ", u64::MAX), format!("i64 ({smallest} to {largest}), bool")),
    ];
    for (place, value, found, range) in unsigned {
        let output = push(place, value).unwrap_err().to_string();
        assert!(output.contains(&found) && output.contains(&range), "{output}");
    }
    assert_eq!([push(1, 7i32.into()), push(2, 7u64.into())], [Ok(()), Ok(())]);
}

/// Like external builds of any game, the build is a command that writes a trace.
#[test]
#[cfg(unix)]
fn builds_with_columns_of_every_type_are_verified_compared_and_bisected() {
    let folder = record_game();
    let verified = folder.run("verify a.hitlog --build ./good");
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stdout));
    let verified = folder.run("verify a.hitlog --build ./bad");
    assert_eq!(verified.status.code(), Some(1), "{}", text(&verified.stdout));
    assert_eq!(folder.run("diff a.hitlog --no-cache --a ./good --b ./good").status.code(), Some(0));
    let (x, wrong) = (1e9 + f64::from(WRONG_TICK) * 0.1, (1e9 + f64::from(WRONG_TICK) * 0.1).next_up());
    let differs = folder.run("diff a.hitlog --no-cache --a ./good --b ./bad --verbose");
    let message = text(&differs.stdout);
    assert_eq!(differs.status.code(), Some(1), "{message}");
    for value in [x, wrong] {
        assert!(message.contains(&value.to_string()), "{value} in\n{message}");
    }
    let output = folder.run("diff a.hitlog --no-cache --a ./good --b ./bad --format json");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let bodies = found["tables"].as_array().expect("tables").iter().find(|table| table["name"] == "bodies");
    let first = &bodies.expect("bodies")["first"];
    assert_eq!(first["field"], "origin.x");
    // serde_json does not keep the last bit of doubles.
    let message = text(&output.stdout);
    assert!(message.contains(&format!("\"a\": {x:?}")) && message.contains(&format!("\"b\": {wrong:?}")), "{message}");
    assert_eq!((&first["ulps"], &first["place"]["tick"]), (&1.into(), &WRONG_TICK.into()), "{first}");
    let bisected = folder.run("bisect ticks a.hitlog --no-cache --a ./good --b ./bad");
    let message = text(&bisected.stdout);
    assert_eq!(bisected.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("tick {WRONG_TICK}")) && message.contains("origin.x"), "{message}");
}
