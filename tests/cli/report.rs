//! `report`: a page is one file without requests, shows the values of its trace, and escapes every name.
//! `browser` tests it in a browser.
#![expect(clippy::disallowed_methods, reason = "the environment names the Python to use")]

use std::fs;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hitreg::log::{read_session, read_trace, write_trace};
use hitreg::record::{CellKind, Class, ClassId, FieldSchema, GapRecord, Origin, PlayerRecords, Scope};
use hitreg::recorder::{Description, Recorder, RecorderOptions};
use hitreg::sorted::SortedMap;
use hitreg::trace::schema::shots;
use hitreg::trace::{Column, ColumnData, Table, Trace};
use hitreg::units::{EntityId, Micros, Tick};
use serde_json::Value;

use super::folder::Folder;
use super::pucks;

/// The page without its data, and the data as JSON.
fn split_page(page: &str) -> (String, Value) {
    let (head, rest) = page.split_once("id=\"data\">").expect("data");
    let (data, tail) = rest.split_once('<').expect("its end");
    let packed = STANDARD.decode(data).expect("base64");
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("zlib");
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four")) as usize;
    let mut contents: Value = serde_json::from_slice(&bytes[4..4 + length]).expect("JSON");
    for side in contents["sides"].as_array_mut().into_iter().flatten() {
        for records in ["shots", "corrections"] {
            side[records] = Records::unpacked(&side[records], &bytes[4 + length..]);
        }
    }
    (format!("{head}{tail}"), contents)
}

/// Reads packed records, as `web/data.js` does.
struct Records<'a> {
    packed: &'a Value,
    kinds: Vec<u8>,
    last: Vec<i64>,
    numbers: &'a [u8],
    measures: &'a [u8],
}

impl Records<'_> {
    fn unpacked(packed: &Value, bytes: &[u8]) -> Value {
        let from = |name: &str| &bytes[packed[name].as_u64().expect("a place") as usize..];
        let kinds = packed["kinds"].as_str().expect("kinds").as_bytes().to_vec();
        let last = vec![0; kinds.len()];
        let (numbers, measures) = (from("numbers_at"), from("measures_at"));
        let mut records = Records { packed, kinds, last, numbers, measures };
        let mut shape = 0;
        let record = |_| {
            shape += records.number();
            records.value(&packed["shapes"][shape as usize])
        };
        (0..packed["records"].as_u64().expect("a count")).map(record).collect()
    }

    fn number(&mut self) -> i64 {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.numbers[0];
            self.numbers = &self.numbers[1..];
            number |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return (number >> 1) as i64 ^ -((number & 1) as i64);
            }
        }
    }

    fn value(&mut self, shape: &Value) -> Value {
        match shape {
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, field)| (name.clone(), self.value(field))).collect())
            }
            code => match code.as_i64().expect("a code") {
                -1 => Value::Null,
                -2 => Value::Array(Vec::new()),
                field => self.field(field as usize),
            },
        }
    }

    fn field(&mut self, field: usize) -> Value {
        if self.kinds[field] == b'f' {
            let (measure, rest) = self.measures.split_at(4);
            self.measures = rest;
            let measure = f32::from_le_bytes(measure.try_into().expect("four"));
            // In JSON, a measure has as few digits as tell it from its neighbours.
            return serde_json::from_str(&format!("{measure:?}")).expect("a number");
        }
        if self.kinds[field] == b'd' {
            let (measure, rest) = self.measures.split_at(8);
            self.measures = rest;
            return f64::from_le_bytes(measure.try_into().expect("eight")).into();
        }
        self.last[field] += self.number();
        let number = self.last[field];
        match self.kinds[field] {
            b't' => self.packed["texts"][number as usize].clone(),
            b'b' => (number == 1).into(),
            _ => number.into(),
        }
    }
}

pub(crate) fn page(folder: &Folder, line: &str) -> (String, Value) {
    folder.done(&format!("report {line} -o page.html --force"));
    split_page(&fs::read_to_string(folder.path("page.html")).expect("UTF-8"))
}

/// The data of a page.
pub(crate) fn contents(page: &Path) -> Value {
    split_page(&fs::read_to_string(page).expect("UTF-8")).1
}

fn trace_in(path: &Path) -> Trace {
    read_trace(&fs::read(path).expect("a trace")[..]).expect("sound")
}

fn save(trace: &Trace, path: &Path) {
    fs::write(path, write_trace(Vec::new(), trace).expect("written")).expect("written");
}

#[test]
fn a_page_makes_no_request_and_has_every_shot_and_correction() {
    let folder = Folder::with_session();
    let (skeleton, contents) = page(&folder, "a.hitlog");
    assert!(skeleton.contains("default-src 'none'"), "nothing may be fetched");
    for word in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!skeleton.contains(word), "the page has {word}");
    }
    let side = &contents["sides"][0];
    let trace = trace_in(&folder.path("a.hittrace"));
    let table = shots::Columns::of(&trace);
    let listed = side["shots"].as_array().expect("shots");
    assert!(!listed.is_empty());
    assert_eq!(listed.len(), table.rows);
    for (row, shot) in listed.iter().enumerate() {
        assert_eq!(shot["server"]["reason"], table.reason.get(row));
        assert_eq!(shot["command"], table.command[row]);
    }
    let name = format!("p{}#{}", listed[0]["shooter"], listed[0]["command"]);
    let why = folder.json(&format!("why a.hitlog {name}"));
    assert_eq!(why["answer"], listed[0]["answer"], "one word on a shot");
    assert!(why["rejudged"][0]["server"].is_object());
    assert_eq!(why["rejudged"], listed[0]["rejudged"], "and on what it would have been");
    let corrected = trace.table("corrections").expect("corrections").u32s("fields").iter().filter(|n| **n > 0).count();
    assert_eq!(side["corrections"].as_array().map(Vec::len), Some(corrected));
    assert_eq!(side["notes"], Value::Array(vec![]), "of a whole log all is known");
    assert_eq!(side["thinned"], Value::Array(vec![]), "and a short session is shown exactly");
    assert_eq!(why["shot"]["places"], listed[0]["places"]);
    assert_eq!(why["shot"]["drawn_from"], listed[0]["drawn_from"]);
    let correction = &side["corrections"][1];
    let asked = format!("p{} --correction {}", correction["player"], correction["number"]);
    assert_eq!(folder.json(&format!("why a.hitlog {asked}"))["correction"]["errors"], correction["errors"]);
    let (_, of_trace) = page(&folder, "a.hittrace");
    assert_eq!(of_trace["sides"][0]["tables"], side["tables"], "a log and its trace have the same tables");
    assert!(contents["walls"]["of"]["rows"].as_u64().is_some_and(|walls| walls > 50));
    assert!(!side["packets"].as_array().expect("packets").is_empty());

    // The page of the trace has the same shots, without the fields that need the log.
    let (again, contents) = page(&folder, "a.hittrace");
    assert_eq!(skeleton, again);
    let without_log = |shots: &Value| -> Vec<Value> {
        let mut shots = shots.as_array().expect("shots").clone();
        for shot in &mut shots {
            for known_by_log in ["carried", "drawn_from", "rejudged"] {
                shot[known_by_log].take();
            }
        }
        shots
    };
    assert!(side["shots"][0]["carried"]["arrived_us"].is_i64());
    assert_eq!(without_log(&contents["sides"][0]["shots"]), without_log(&side["shots"]));
    let notes = contents["sides"][0]["notes"].to_string();
    assert!(notes.contains("walls: a trace has no map") && !notes.contains("packets"), "{notes}");
}

/// The page of a part equals the page of the whole log for that time, with and without a keyframe.
#[test]
fn a_page_of_a_part_shows_only_the_part() {
    let folder = Folder::empty();
    let synth = "record synth --players 4 --seconds 16 --delay-ms 50 --jitter-ms 4 --loss 1% --no-keyframes -o";
    folder.done(&format!("{synth} a.hitlog"));
    folder.done("keyframes a.hitlog --every 5 -o keyed.hitlog");
    // The replay of this log restarts before it reads a record.
    folder.done(&format!("{synth} encoded.hitlog --set client.adaptive_redundancy=true"));
    for (log, of) in [("a.hitlog", "a.hitlog"), ("keyed.hitlog", "a.hitlog"), ("encoded.hitlog", "encoded.hitlog")] {
        let (_, all) = page(&folder, of);
        // The aim point is interpolated between rows. At the edge of the part, one row is missing.
        let within =
            |shot: &&Value| (9_500_000..13_500_000).contains(&shot["made"]["at_us"].as_i64().unwrap_or_default());
        let shots = |page: &Value| -> Vec<Value> {
            page["sides"][0]["shots"].as_array().expect("shots").iter().filter(within).cloned().collect()
        };
        assert!(shots(&all).len() > 5, "{} shots", shots(&all).len());
        let (_, part) = page(&folder, &format!("{log} --from 0:09 --to 0:14"));
        assert_eq!(shots(&part), shots(&all), "{log}");
        let side = &part["sides"][0];
        assert_eq!([&side["is_part"], &all["sides"][0]["is_part"]], [true, false].map(Value::from).each_ref());
        let first = side["shots"][0]["made"]["at_us"].as_i64().expect("a time");
        assert!((9_000_000..10_500_000).contains(&first), "{first}: no earlier shot");
        assert!(side["shots"].as_array().map(Vec::len) < all["sides"][0]["shots"].as_array().map(Vec::len));
        let packets = |page: &Value| -> u64 {
            let all = page["sides"][0]["packets"].as_array().expect("packets");
            all.iter().map(|packets| packets["sent_us"]["rows"].as_u64().expect("rows")).sum()
        };
        let replayed = folder.done(&format!("replay {log} --from 0:09 --to 0:14 --format json"));
        let network = serde_json::from_str::<Value>(&replayed).expect("JSON")["network"].clone();
        let sent = ["up", "down"].map(|way| network[way]["sent"].as_u64().expect("packets")).iter().sum::<u64>();
        assert_eq!((packets(&part), packets(&all) > 2 * sent), (sent, true), "{log}");
        assert_eq!(side["notes"], Value::Array(vec![]));
        assert_eq!(part["walls"]["of"]["rows"], all["walls"]["of"]["rows"]);
    }
    // A streamed replay and one in memory give the same page.
    assert!(page(&folder, "a.hitlog") == page(&folder, "a.hitlog --from 0:00"));
    let refused = folder.run("report a.hitlog keyed.hitlog --from 0:09 -o page.html --force");
    let output = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(128) && output.contains("a part of one log"), "{output}");
    folder.done("replay a.hitlog -o a.hittrace");
    let refused = folder.run("report a.hittrace --from 0:09 -o page.html --force");
    let output = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(128) && output.contains("a whole trace"), "{output}");
    let beyond = folder.run("report a.hitlog --from 5:00 -o page.html --force");
    let output = String::from_utf8_lossy(&beyond.stderr);
    assert!(beyond.status.code() == Some(128) && output.contains("5:00"), "{output}");
}

/// Parts begin between launches and their impacts, and end while packets are in flight.
#[test]
fn the_counts_of_a_part_are_those_of_replay() {
    let folder = Folder::empty();
    folder.done("record synth --players 16 --seconds 12 --seed 2 --jitter-ms 10 --loss 4% -o a.hitlog");
    for part in ["--from 3 --to 6", "--from 4 --to 7", "--from 6 --to 9"] {
        let replayed = folder.json(&format!("replay a.hitlog {part}"));
        let (_, contents) = page(&folder, &format!("a.hitlog {part}"));
        let side = &contents["sides"][0];
        let rows = |table: &str| side[table].as_array().expect("rows").clone();
        for count in ["fired", "hit"] {
            let of_players: u64 =
                rows("shot_counts").iter().map(|player| player[count].as_u64().expect("a count")).sum();
            assert_eq!(Some(of_players), replayed["shots"][count].as_u64(), "{count}, {part}");
        }
        let packets = rows("packets");
        for way in ["up", "down"] {
            let listed = packets.iter().filter(|packets| packets["way"] == way);
            let listed: u64 = listed.map(|packets| packets["sent_us"]["rows"].as_u64().expect("rows")).sum();
            // Later packets of the session arrived, so both know which of these are lost.
            let network = &replayed["network"][way];
            assert_eq!(
                (Some(listed), network["in_flight"].as_u64()),
                (network["sent"].as_u64(), Some(0)),
                "{way}, {part}"
            );
        }
    }
}

/// Also with packets in flight at the end, and when a gap begins. Nothing arrives in the log of a server.
#[test]
fn a_page_has_all_packets_that_info_counts() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 8 --loss 2% --set server.rate_bytes_per_s=3000 -o a.hitlog");
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).expect("a log")[..]).expect("sound");
    session.players.iter_mut().for_each(|player| {
        let gap = Micros::from_s(3)..Micros::from_s(4);
        player.frames.retain(|frame| !gap.contains(&frame.at));
        player.sent.retain(|packet| !gap.contains(&packet.at));
        player.reached.retain(|arrival| !gap.contains(&arrival.at));
        player.snapshots.retain(|snapshot| !gap.contains(&snapshot.at));
        player.received.retain(|arrival| !gap.contains(&arrival.at));
    });
    session.gaps.push(GapRecord { from: Micros::from_s(3), to: Micros::from_s(4), ..GapRecord::default() });
    folder.save_log("gap.hitlog", &session);
    session.players.iter_mut().for_each(|player| {
        player.reached.clear();
        player.received.clear();
    });
    folder.save_log("sent.hitlog", &session);
    for log in ["a", "gap", "sent"] {
        let info = folder.json(&format!("info {log}.hitlog"));
        let sent = session_packets(&folder.path(&format!("{log}.hitlog")));
        let (_, contents) = page(&folder, &format!("{log}.hitlog"));
        let packets = contents["sides"][0]["packets"].as_array().expect("packets").clone();
        for (way, counts) in [("up", "packets_up"), ("down", "packets")] {
            let of_way = || packets.iter().filter(|packets| packets["way"] == way);
            let rows: u64 = of_way().map(|packets| packets["sent_us"]["rows"].as_u64().expect("rows")).sum();
            assert_eq!(rows, sent[way], "{log}, {way}");
            let missing: Option<u64> = of_way().map(|packets| packets["missing"].as_u64()).sum();
            assert_eq!(missing, info[counts]["lost"].as_u64(), "{log}, {way}");
        }
    }
    // The trace has the packets of the log.
    folder.done("replay a.hitlog -o a.hittrace");
    let rows = |line: &str| -> Vec<Value> {
        let (_, contents) = page(&folder, line);
        let packets = contents["sides"][0]["packets"].as_array().expect("packets").clone();
        packets.iter().map(|of| serde_json::json!([of["sent_us"]["rows"], of["missing"]])).collect()
    };
    assert_eq!(rows("a.hittrace"), rows("a.hitlog"));
}

/// The numbers of the packets that a log has, to and from the server.
fn session_packets(log: &Path) -> SortedMap<&'static str, u64> {
    let session = read_session(&fs::read(log).expect("a log")[..]).expect("sound");
    let sum = |of: fn(&PlayerRecords) -> usize| session.players.iter().map(|player| of(player) as u64).sum();
    [("up", sum(|player| player.sent.len())), ("down", sum(|player| player.snapshots.len()))].into_iter().collect()
}

/// A trace knows which part of its session is missing, and a part has the usercmds and snapshots of its time.
#[test]
fn the_page_of_a_trace_has_the_gaps_and_round_trips_of_its_log() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 8 --delay-ms 60 --jitter-ms 10 --loss 4% -o a.hitlog");
    let side = |line: &str| page(&folder, line).1["sides"][0].clone();
    folder.done("replay a.hitlog --from 3 --to 6 -o part.hittrace");
    let [of_log, of_trace] = ["a.hitlog --from 3 --to 6", "part.hittrace"].map(|line| {
        let trips = side(line)["round_trips"].as_array().expect("players").clone();
        trips.iter().map(|of| serde_json::json!([of["player"], of["took_us"]["rows"], of["all"]])).collect::<Vec<_>>()
    });
    assert_eq!(of_log, of_trace);
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).expect("a log")[..]).expect("sound");
    session.gaps.push(GapRecord { from: Micros::from_s(4), to: Micros::from_s(5), ..GapRecord::default() });
    folder.save_log("gap.hitlog", &session);
    folder.run("replay gap.hitlog -o gap.hittrace");
    let [of_log, of_trace] = ["gap.hitlog", "gap.hittrace"].map(side);
    assert_eq!(of_log["gaps"].as_array().map(Vec::len), Some(1));
    assert_eq!(of_trace["gaps"], of_log["gaps"]);
    assert!(of_trace["notes"].to_string().contains("a part is missing, from 0:04 to 0:05"), "{}", of_trace["notes"]);
    for (part, gaps) in [("--to 3", 0), ("--from 2 --to 6", 1)] {
        folder.run(&format!("replay gap.hitlog {part} -o part.hittrace --force"));
        assert_eq!(side("part.hittrace")["gaps"].as_array().map(Vec::len), Some(gaps), "{part}");
    }
}

/// A client that predicts nothing has no corrections, as `replay` says.
#[test]
fn a_page_knows_that_there_were_no_corrections() {
    let folder = Folder::empty();
    folder.done("record synth --preset dumb-client --players 2 --seconds 3 -o a.hitlog");
    assert_eq!(folder.json("replay a.hitlog")["exercised"]["corrections"], 0);
    let (_, contents) = page(&folder, "a.hitlog");
    let side = &contents["sides"][0];
    assert!(!side["notes"].to_string().contains("corrections"), "{}", side["notes"]);
    assert!(side["tables"].as_array().expect("tables").contains(&serde_json::json!(["corrections", 0])));
}

/// A page of a long session lists every shot and correction, and says what it draws more coarsely.
#[test]
fn a_page_of_a_long_session_lists_all_and_draws_less() {
    let folder = Folder::empty();
    folder.done("record synth --players 16 --seconds 20 -o short.hitlog");
    folder.done("record synth --players 64 --seconds 20 -o long.hitlog");
    let thinned = |line: &str| page(&folder, line).1["sides"][0]["thinned"].to_string();
    assert_eq!(thinned("short.hitlog"), "[]");
    let (_, contents) = page(&folder, "long.hitlog");
    let side = &contents["sides"][0];
    let notes = side["thinned"].to_string();
    assert!(notes.contains("what screens showed is coarser than in a short session"), "{notes}");
    let points = |paths: &str| -> u64 {
        let all = side[paths].as_array().expect("paths");
        all.iter().map(|path| path["step"]["rows"].as_u64().expect("rows")).sum()
    };
    assert!((100_000..=1_000_000).contains(&points("views")), "{} points", points("views"));
    let replayed = folder.json("replay long.hitlog");
    let list = |name: &str| side[name].as_array().expect("a list").clone();
    let agrees = |shot: &&Value| shot["answer"].as_str().expect("words").contains("lient and server agree");
    assert_eq!(list("shots").iter().filter(agrees).count() as u64, replayed["shots"]["agreed"], "one rule");
    let fired = |shot: &&Value| shot["is_impact"] == false && shot["server"]["reason"] != "not run";
    assert_eq!(list("shots").iter().filter(fired).count() as u64, replayed["shots"]["fired"].as_u64().expect("shots"));
}

#[test]
fn a_page_of_two_sides_has_the_differences_of_diff() {
    let folder = Folder::with_session();
    let sides = "a.hitlog --b-set lag_compensation.enabled=false";
    let (_, contents) = page(&folder, sides);
    let diff = folder.differs(&format!("diff {sides}"));
    assert_eq!(contents["sides"].as_array().map(Vec::len), Some(2));
    assert_eq!(contents["difference"]["hits"], diff["hits"]);
    assert_eq!(contents["difference"]["first"]["place"], diff["first"]["place"]);
    assert!(!diff["hits"]["changed"].as_array().expect("changed").is_empty());
    let answer = contents["difference"]["answer"].as_str().expect("an answer");
    assert!(answer.contains("--what-if replay"), "no count of hits without its name: {answer}");
    // Both sides' shots are judged under other rules, those of A as on a page of its own.
    let rejudged = |side: &Value| -> Vec<Value> {
        side["shots"].as_array().expect("shots").iter().map(|shot| shot["rejudged"].clone()).collect()
    };
    let (_, alone) = page(&folder, "a.hitlog");
    let [a, b] = [0, 1].map(|side| rejudged(&contents["sides"][side]));
    assert!(a[0][0]["server"].is_object() && a == rejudged(&alone["sides"][0]));
    assert!(b.iter().any(|shot| shot[0]["what"] == "with lag compensation"), "{b:?}");
}

#[test]
fn names_in_a_trace_are_escaped() {
    let folder = Folder::with_session();
    let mut trace = trace_in(&folder.path("a.hittrace"));
    let (skeleton, _) = page(&folder, "a.hittrace");
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`\\u2028\u{2028}-->";
    trace.header.game = hostile.into();
    trace.header.mode = hostile.into();
    trace.header.settings = vec![(hostile.into(), hostile.into())];
    for column in trace.tables.iter_mut().flat_map(|table| &mut table.columns) {
        if let ColumnData::Name { names, .. } = &mut column.data {
            names.iter_mut().for_each(|name| name.push_str(hostile));
        }
    }
    trace.tables.push(Table::new(hostile, vec![Column::new(hostile, ColumnData::U32(vec![1]))]));
    save(&trace, &folder.path("hostile.hittrace"));
    let (of_hostile, contents) = page(&folder, "hostile.hittrace");
    assert_eq!(skeleton, of_hostile);
    assert_eq!(contents["sides"][0]["game"], hostile, "names are shown unchanged");
}

#[test]
fn an_unknown_game_is_shown_from_its_log() {
    let folder = Folder::with_session();
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).expect("a log")[..]).expect("sound");
    session.header.game = "somebody else's".into();
    folder.save_log("other.hitlog", &session);
    let (_, contents) = page(&folder, "other.hitlog");
    let side = &contents["sides"][0];
    assert!(side["bodies"].as_array().is_some_and(|bodies| bodies.len() >= 2), "the sent bodies are shown");
    assert!(!side["packets"].as_array().expect("packets").is_empty());
    let notes = side["notes"].to_string();
    assert!(notes.contains("this build plays") && notes.contains("`shots`"), "{notes}");
    assert!(notes.contains("walls: this build has none for the map ") && !notes.contains("a trace has"), "{notes}");
}

/// A QuakeWorld server's packet has the number of the client packet that it answers.
#[test]
fn missing_numbers_of_a_quakeworld_client_have_no_reply() {
    let folder = Folder::with_session();
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).expect("a log")[..]).expect("sound");
    session.header.game = "a QuakeWorld game".into();
    for (format, missing, other) in [("qwd", "no reply", "lost"), ("mvd", "lost", "no reply")] {
        session.header.origin = Origin::Imported { format: format.into() };
        session.players.iter_mut().for_each(|player| {
            player.sent.clear();
            player.snapshots.retain(|snapshot| snapshot.seq.0 % 7 != 3);
            player.received.retain(|arrival| arrival.number % 7 != 3);
        });
        folder.save_log("demo.hitlog", &session);
        let (_, contents) = page(&folder, "demo.hitlog");
        assert_eq!(contents["sides"][0]["missing_down"], missing);
        let timeline = folder.done("export demo.hitlog --perfetto");
        let named = |name: &str| timeline.matches(&format!(r#""name":"{name}""#)).count();
        assert!(named(missing) > 100 && named(other) == 0, "{format}: {} of {missing}", named(missing));
    }
}

#[test]
fn a_trace_of_a_build_in_another_language_is_shown() {
    let Some(python) = std::env::var_os("HITREG_TEST_PYTHON") else {
        crate::note::skipped("there is no Python with msgpack and zstandard (HITREG_TEST_PYTHON may name one)");
        return;
    };
    let folder = Folder::empty();
    let log = pucks::session(folder.dir.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pucks.py");
    let mut build = std::process::Command::new(python);
    let built = build.arg(script).arg("replay").arg(log).arg("-o").arg(folder.path("py.hittrace")).output();
    assert!(built.expect("python").status.success());
    let (_, contents) = page(&folder, "py.hittrace");
    let side = &contents["sides"][0];
    assert_eq!(side["bodies"].as_array().map(Vec::len), Some(6));
    let notes = side["notes"].to_string();
    assert!(notes.contains("`frames` has no rows") && notes.contains("`views`"), "{notes}");
}

#[test]
fn an_empty_trace_makes_an_empty_page() {
    let folder = Folder::empty();
    save(&Trace::default(), &folder.path("empty.hittrace"));
    let (_, contents) = page(&folder, "empty.hittrace");
    assert!(contents["sides"][0]["notes"].as_array().expect("notes").len() > 5);
    assert!(folder.refused("report missing.hitlog -o page2.html").contains("missing.hitlog"));
    fs::write(folder.path("notes.html"), "<!doctype html><title>mine</title>").expect("written");
    assert!(
        folder.refused("report empty.hittrace -o notes.html").contains("notes.html: exists and is not a hitreg report")
    );
}

/// A game in a plane has one view angle, or two.
#[test]
fn a_page_shows_view_directions_in_a_plane() {
    for (angles, turned) in [(&["viewangles"][..], true), (&["viewangles.x", "viewangles.y"], true), (&["turn"], false)]
    {
        let folder = Folder::empty();
        let field = |name: &str| FieldSchema::new(name, CellKind::F32, Scope::Movement);
        let fields = ["origin.x", "origin.y"].iter().chain(angles).map(|name| field(name)).collect();
        let about = Description::new("mygame").player("p0").class(Class::new("player", fields));
        let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).expect("a file");
        let mut stream = recorder.stream();
        for tick in 1..=20u32 {
            stream.tick(Tick(tick), Micros::from_ms(10 * i64::from(tick)), None).expect("recorded");
            let cells = vec![(tick as f32).to_bits(); 2 + angles.len()];
            stream.body(Tick(tick), EntityId(0), ClassId(0), &cells).expect("recorded");
        }
        drop(stream);
        recorder.finish().expect("whole");
        let (_, contents) = page(&folder, "a.hitlog");
        assert_eq!(contents["sides"][0]["bodies"][0]["yaw"].is_null(), !turned, "{angles:?}");
    }
}
