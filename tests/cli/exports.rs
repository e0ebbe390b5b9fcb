//! Other programs can read the output of `export`: timelines follow Perfetto's rules, and DuckDB reads the tables.
#![expect(clippy::disallowed_methods, reason = "the environment names the Python to use")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use hitreg::recorder::{Description, Recorder, RecorderOptions};
use hitreg::trace::Digest;
use hitreg::units::{Micros, Tick};
use serde_json::Value;

use super::folder::{Folder, exit_of, text};
use super::habits::fed;

fn events(folder: &Folder, line: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(&folder.done(&format!("export {line} --perfetto"))).expect("JSON");
    file["traceEvents"].as_array().expect("events").clone()
}

fn number(event: &Value, key: &str) -> i64 {
    event[key].as_i64().unwrap_or_else(|| panic!("{key} of {event}"))
}

fn of_kind<'e>(events: &'e [Value], kinds: &'e [&str]) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(|event| kinds.contains(&event["ph"].as_str().expect("a kind")))
}

/// The slices of each track, ordered by time.
fn slices(events: &[Value]) -> BTreeMap<(i64, i64), Vec<(i64, i64)>> {
    let mut tracks: BTreeMap<(i64, i64), Vec<(i64, i64)>> = BTreeMap::new();
    for event in of_kind(events, &["X"]) {
        let (from, dur) = (number(event, "ts"), number(event, "dur"));
        assert!(dur >= 0, "{event}");
        tracks.entry((number(event, "pid"), number(event, "tid"))).or_default().push((from, from + dur));
    }
    tracks.values_mut().for_each(|track| track.sort_unstable());
    tracks
}

#[test]
fn a_timeline_follows_the_rules_of_its_format() {
    let folder = Folder::with_session();
    let events = events(&folder, "a.hitlog");
    let tracks = slices(&events);
    for (track, slices) in &tracks {
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "slices of {track:?} overlap");
    }
    let open_at = |event: &Value| {
        let at = number(event, "ts");
        let of_track = &tracks[&(number(event, "pid"), number(event, "tid"))];
        of_track.iter().any(|(from, to)| (*from..=*to).contains(&at))
    };
    let mut arrows: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    for event in of_kind(&events, &["s", "t", "f"]) {
        assert!(open_at(event), "an arrow is outside of all slices: {event}");
        let station = (event["ph"].as_str().expect("a kind").to_owned(), number(event, "ts"));
        arrows.entry(event["id"].as_str().expect("an id").to_owned()).or_default().push(station);
    }
    let whole = arrows.values().filter(|stations| stations.iter().map(|(kind, _)| kind.as_str()).eq(["s", "t", "f"]));
    assert!(whole.count() > 100, "arrows go from usercmd over tick to ack");
    assert!(arrows.values().all(|stations| stations.is_sorted_by_key(|(_, at)| *at)), "no arrow goes back in time");
    let mut spans: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    for event in of_kind(&events, &["b", "e"]) {
        let id = format!("{} {} {}", event["pid"], event["cat"], event["id"]);
        spans.entry(id).or_default().push((event["ph"].as_str().expect("a kind").to_owned(), number(event, "ts")));
    }
    assert!(spans.len() > 100);
    for (id, span) in &spans {
        assert!(span.len() == 2 && span[0].0 == "b" && span[1].0 == "e" && span[0].1 <= span[1].1, "{id}: {span:?}");
    }
    // The timeline contains every row.
    let rows: BTreeMap<String, u64> = folder
        .json("export a.hittrace")
        .as_array()
        .expect("tables")
        .iter()
        .map(|table| (table["table"].as_str().expect("a name").to_owned(), table["rows"].as_u64().expect("a number")))
        .collect();
    let on = |pid: &dyn Fn(i64) -> bool, tid: i64| {
        tracks
            .iter()
            .filter(|(track, _)| pid(track.0) && track.1 == tid)
            .map(|(_, slices)| slices.len() as u64)
            .sum::<u64>()
    };
    assert_eq!(on(&|pid| pid == 1, 1), rows["ticks"]);
    assert_eq!(on(&|pid| pid > 1, 1), rows["frames"]);
    assert_eq!(on(&|pid| pid > 1, 2), rows["corrections"]);
    assert_eq!(spans.keys().filter(|id| id.contains("\"shots\"")).count() as u64, rows["shots"]);
    let named: Vec<&Value> = of_kind(&events, &["M"]).filter(|event| event["name"] == "process_name").collect();
    assert_eq!(named.len(), 5, "the server and four players: {named:?}");
}

#[test]
fn acks_of_one_time_have_slices_and_arrows_of_their_own() {
    let folder = Folder::empty();
    let link = "--loss 3% --jitter-ms 20 --delay-ms 60";
    folder.done(&format!("record synth -o a.hitlog --players 6 --seconds 10 --seed 3 {link}"));
    let acks = folder.done("export a.hitlog --table corrections --to csv");
    let names: Vec<&str> = acks.lines().next().expect("names").split(',').collect();
    let [player, at] = ["player", "at_us"].map(|name| names.iter().position(|known| *known == name).expect("a column"));
    let rows = acks.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>());
    let times: Vec<(String, String)> = rows.map(|row| (row[player].to_owned(), row[at].to_owned())).collect();
    assert!(times.iter().collect::<BTreeSet<_>>().len() < times.len(), "no acks of one time");
    let events = events(&folder, "a.hitlog");
    let of_acks = slices(&events).into_iter().filter(|((pid, tid), _)| *pid > 1 && *tid == 2);
    let begun: BTreeSet<(i64, i64)> = of_acks
        .flat_map(|((pid, _), slices)| {
            assert!(slices.iter().all(|(from, to)| from < to), "a slice without a duration");
            slices.into_iter().map(move |(from, _)| (pid, from))
        })
        .collect();
    assert_eq!(begun.len(), times.len());
    let ends: Vec<_> = of_kind(&events, &["f"]).map(|event| (number(event, "pid"), number(event, "ts"))).collect();
    assert!(ends.iter().all(|end| begun.contains(end)), "an arrow ends within a slice");
    assert_eq!(ends.iter().collect::<BTreeSet<_>>().len(), ends.len(), "two arrows end in one slice");
}

#[test]
fn a_timeline_names_nominal_sizes() {
    let folder = Folder::empty();
    for (sizes, name) in [("nominal", "nominal bytes"), ("datagrams", "bytes")] {
        folder.done(&format!("record synth --players 2 --seconds 2 --set wire.sizes={sizes} -o {sizes}.hitlog"));
        let events = events(&folder, &format!("{sizes}.hitlog"));
        let sent = of_kind(&events, &["b"]).filter(|event| event["cat"] == "packets up");
        let bytes: Vec<Option<u64>> = sent.map(|event| event["args"][name].as_u64()).collect();
        assert!(bytes.len() > 100 && bytes.iter().all(|bytes| *bytes > Some(0)), "{sizes}: {bytes:?}");
    }
}

#[test]
fn no_arrow_goes_through_a_tick_that_did_not_run_its_usercmd() {
    let folder = Folder::empty();
    folder.done("record synth --preset nereids --players 4 --seconds 8 --jitter-ms 30 --loss 4% -o a.hitlog");
    let rows = folder.done("export a.hitlog --table executed");
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).expect("JSON"));
    let (run, unrun): (Vec<Value>, Vec<Value>) = rows.partition(|row| row["how"] == "run");
    let id = |row: &Value| format!("p{}#{}", row["player"], row["command"]);
    let run: BTreeSet<String> = run.iter().map(id).collect();
    assert!(run.len() > 100 && unrun.iter().filter(|row| !run.contains(&id(row))).count() > 10, "{}", unrun.len());
    let events = events(&folder, "a.hitlog");
    let mut passed = of_kind(&events, &["t"]).map(|event| event["id"].as_str().expect("an id"));
    assert!(passed.all(|id| run.contains(id)));
}

/// The timeline of a file, which hitreg reads player by player, has the bytes of a timeline of a pipe, which it reads
/// into memory.
#[test]
fn a_streamed_timeline_equals_one_made_in_memory() {
    let folder = Folder::empty();
    folder.done("record synth -o a.hitlog --players 10 --seconds 60 --delay-ms 60 --jitter-ms 15 --loss 5%");
    folder.done("replay a.hitlog -o a.hittrace");
    // hitreg reads shorter traces into memory.
    assert!(std::fs::read(folder.path("a.hittrace")).expect("it was written").len() > 1 << 20);
    let piped = |name: &str, options: &str| {
        let file = std::fs::read(folder.path(name)).expect("it was written");
        text(&fed(&folder, &format!("export - --perfetto {options}"), &file).stdout)
    };
    for (name, options) in [("a.hitlog", ""), ("a.hitlog", "--set interpolation.lerp_ms=50"), ("a.hittrace", "")] {
        let whole = piped(name, options);
        assert!(whole.len() > 1_000_000 && whole.contains("lost"), "{} bytes", whole.len());
        let streamed = folder.done(&format!("export {name} --perfetto {options}"));
        assert!(streamed == whole, "{name} {options}: another time line");
        folder.done(&format!("export {name} --perfetto {options} -o line.json"));
        assert_eq!(std::fs::read_to_string(folder.path("line.json")).expect("it was written"), whole);
    }
}

/// With and without `--record`, which keeps the session in memory.
#[test]
fn a_trace_has_the_requested_tables() {
    let folder = Folder::with_session();
    let tables = |name: &str| -> Vec<String> {
        let tables = folder.json(&format!("export {name}"));
        let names = tables.as_array().expect("tables").iter().map(|table| table["table"].as_str().expect("a name"));
        names.map(str::to_owned).collect()
    };
    assert!(tables("a.hittrace").len() > 8);
    for more in ["", "--record again.hitlog"] {
        folder.done(&format!("replay a.hitlog -o some.hittrace --tables shots,views {more}"));
        assert_eq!(tables("some.hittrace"), ["views", "shots"]);
        for table in ["views", "shots"] {
            let rows = |name: &str| folder.done(&format!("export {name} --table {table}"));
            assert!(rows("some.hittrace") == rows("a.hittrace"), "{table} {more}");
        }
        std::fs::remove_file(folder.path("some.hittrace")).expect("it was written");
    }
    let output = folder.run("replay a.hitlog -o some.hittrace --tables shots,bullets");
    assert_eq!(output.status.code(), Some(128));
    assert!(text(&output.stderr).contains("no table `bullets`"), "{}", text(&output.stderr));
    assert!(!folder.path("some.hittrace").exists());
}

/// A Python with duckdb.
pub(crate) fn duckdb() -> Option<String> {
    let python = std::env::var("HITREG_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_duckdb = Command::new(&python).args(["-c", "import duckdb"]).output();
    let found = has_duckdb.is_ok_and(|output| output.status.success()).then_some(python);
    if found.is_none() {
        crate::note::skipped("there is no Python with duckdb (HITREG_TEST_PYTHON may name one)");
    }
    found
}

/// The answers of DuckDB to SQL queries.
pub(crate) fn query_duckdb(python: &str, folder: &Folder, sql: &str) -> Value {
    let script = "import duckdb, json, sys\n\
        asked = [duckdb.sql(q) for q in sys.argv[1].split(';') if q.strip()]\n\
        print(json.dumps([a and a.fetchall() for a in asked], default=str))";
    let output = Command::new(python).args(["-c", script, sql]).current_dir(&folder.dir).output().expect("python");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).expect("JSON")
}

/// Without `--to`, the extension of the output names the format, as readers of the file expect.
#[test]
fn the_extension_of_an_output_chooses_its_format() {
    let folder = Folder::with_session();
    for (options, as_to) in [
        ("-o shots.csv", "csv"),
        ("-o shots.JSONL", "jsonl"),
        ("-o shots.csv --to jsonl", "jsonl"),
        ("-o shots", "jsonl"),
    ] {
        let _ = std::fs::remove_file(folder.path("shots.csv"));
        folder.done(&format!("export a.hittrace --table shots {options}"));
        let name = options.split(' ').nth(1).expect("a name");
        let written = std::fs::read_to_string(folder.path(name)).expect("rows");
        assert_eq!(written, folder.done(&format!("export a.hittrace --table shots --to {as_to}")), "{options}");
    }
    let parquet = folder.run("export a.hittrace --table shots -o shots.parquet");
    match cfg!(feature = "parquet") {
        true => assert!(std::fs::read(folder.path("shots.parquet")).expect("a table").ends_with(b"PAR1")),
        false => assert!(text(&parquet.stderr).contains("built without Parquet"), "{}", text(&parquet.stderr)),
    }
}

#[test]
fn the_queries_of_the_documentation_run_in_duckdb() {
    let Some(python) = duckdb() else { return };
    let folder = Folder::with_session();
    folder.done("export a.hittrace --all --to csv -o tables");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let docs = std::fs::read_to_string(docs).expect("docs");
    let sql = docs.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).expect("queries");
    let answers = query_duckdb(&python, &folder, sql);
    let hits: i64 = answers[0].as_array().expect("rows").iter().map(|row| row[2].as_i64().expect("a number")).sum();
    let expected = folder.done("export a.hittrace --table shots");
    let shots = expected.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let expected = shots.filter(|shot| shot["reason"] == "hit" && shot["impact"] == 0).count();
    assert_eq!(hits, expected as i64);
    assert!(answers[1].as_array().is_some_and(|rows| !rows.is_empty()), "{answers}");
}

#[test]
#[cfg(feature = "parquet")]
fn a_parquet_file_of_another_program_is_not_replaced() {
    let folder = Folder::with_session();
    let export = "export a.hittrace --table shots --to parquet -o shots.parquet";
    folder.done(export);
    folder.done(export);
    let own = std::fs::read(folder.path("shots.parquet")).expect("a table");
    let foreign = String::from_utf8_lossy(&own).replace("hitreg version ", "parquet-mr vers");
    for foreign in [foreign.as_bytes(), &b"PAR1----PAR1"[..]] {
        std::fs::write(folder.path("shots.parquet"), foreign).expect("written");
        for force in ["", " --force"] {
            let refused = folder.refused(&format!("{export}{force}"));
            assert!(refused.contains("Parquet file of hitreg"), "{refused}");
        }
        assert_eq!(std::fs::read(folder.path("shots.parquet")).expect("the same file"), foreign);
    }
}

/// DuckDB finds the same values in a table's Parquet and CSV files.
#[test]
#[cfg(feature = "parquet")]
fn parquet_files_equal_csv_files() {
    let Some(python) = duckdb() else { return };
    let folder = Folder::with_session();
    folder.done("export a.hittrace --all --to csv -o csv");
    folder.done("export a.hittrace --all --to parquet -o parquet");
    folder.done("export a.hittrace --table shots --to parquet -o parquet/shots.parquet");
    for table in ["ticks", "bodies", "executed", "frames", "corrections", "errors", "views", "shots", "effects"] {
        let columns = match table {
            // DuckDB reads the 16-digit hashes in CSV as text.
            "ticks" => "tick, at_us",
            _ => "*",
        };
        let (csv, parquet) = (format!("read_csv('csv/{table}.csv')"), format!("'parquet/{table}.parquet'"));
        // The CSV text is converted to the column types of the Parquet file.
        let sql = format!(
            "CREATE TABLE t AS SELECT {columns} FROM {parquet} LIMIT 0; INSERT INTO t SELECT {columns} FROM {csv}; \
             SELECT count(*) FROM {parquet}; SELECT count(*) FROM t; \
             SELECT count(*) FROM (SELECT {columns} FROM {parquet} EXCEPT ALL SELECT * FROM t)"
        );
        let answers = query_duckdb(&python, &folder, &sql);
        assert_eq!(answers[2], answers[3], "{table}");
        assert_eq!(answers[4][0][0], 0, "{table}: {answers}");
    }
    let sql =
        "SELECT decode(value) FROM parquet_kv_metadata('parquet/shots.parquet') WHERE decode(key) = 'hitreg.units'";
    let answers = query_duckdb(&python, &folder, sql);
    let units: Value = serde_json::from_str(answers[0][0][0].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&units["at_us"], &units["aim_off_degrees"], units.get("weapon")),
        (&"µs".into(), &"degrees".into(), None)
    );
    assert!(folder.refused("export a.hittrace --table shots --to parquet -o csv/shots.csv").contains("Parquet file"));
}

/// An engine that hashes its state in every n-th of 600 ticks: a trace, or a log.
fn every_nth_hash(folder: &Folder, name: &str, nth: u32, hash: impl Fn(u32) -> u64) {
    let about = Description::new("mygame").tick_hz(60).player("p0");
    let path = folder.path(name);
    let recorder = match name.ends_with("trace") {
        true => Recorder::trace(&path, about, Digest::of_bytes(b"log")),
        false => Recorder::create(&path, about, RecorderOptions::patient()),
    };
    let recorder = recorder.expect("a file");
    let mut stream = recorder.stream();
    for tick in 1..=600u32 {
        let hash = tick.is_multiple_of(nth).then(|| hash(tick));
        stream.tick(Tick(tick), Micros::from_ms(16 * i64::from(tick)), hash).expect("recorded");
    }
    drop(stream);
    recorder.finish().expect("whole");
}

#[test]
fn ticks_without_a_hash_have_no_value_and_are_not_compared() {
    let folder = Folder::empty();
    let hash = |tick: u32| 1000 + u64::from(tick);
    every_nth_hash(&folder, "a.hitlog", 150, hash);
    let rows = folder.done("export a.hitlog --table ticks --to jsonl");
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let hashes = rows.iter().filter(|row| !row["hash"].is_null()).map(|row| (&row["tick"], &row["hash"]));
    let hashes: Vec<String> = hashes.map(|(tick, hash)| format!("{tick} {hash}")).collect();
    assert_eq!((rows.len(), hashes.len(), &*hashes[0]), (600, 4, "150 \"000000000000047e\""));
    let csv = folder.done("export a.hitlog --table ticks --to csv");
    assert!(csv.contains("\n149,2384000,\n150,2400000,000000000000047e\n"), "{csv}");

    every_nth_hash(&folder, "a.hittrace", 4, hash);
    every_nth_hash(&folder, "same.hittrace", 6, hash);
    every_nth_hash(&folder, "other.hittrace", 6, |tick| hash(tick) + u64::from(tick >= 60));
    assert_eq!(exit_of(&folder, "diff a.hittrace same.hittrace"), 0);
    assert_eq!(exit_of(&folder, "diff a.hittrace other.hittrace"), 1);
    let found = folder.run("diff a.hittrace other.hittrace");
    assert!(text(&found.stdout).contains("tick 60"), "{}", text(&found.stdout));
}
