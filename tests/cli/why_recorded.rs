//! `why` of logs of games with their own netcode: it answers from the log's own records.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use hitreg::record::{
    CellKind, Class, ClassId, Execution, ExecutionRecord, FieldSchema, HitResult, Meaning, OwnValue, PacketRecord,
    Record, Scope, ShotRecord,
};
use hitreg::recorder::{Description, Recorder, RecorderOptions};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg::usercmd::{Input, Usercmd};
use serde_json::{Value, json};

use super::folder::Folder;
use super::{note, report};

/// A second of two players. Usercmd 1 launches a rocket that hits in tick 20; usercmd 5 hits at once.
fn record(described: impl FnOnce(Description) -> Description) -> Folder {
    let folder = Folder::empty();
    let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let about = described(about.class(Class::new("player", vec![x])));
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let [rocket, needler] = ["rocket", "needler"].map(|name| stream.text(name).unwrap());
    for tick in 1..=100u32 {
        let at = Micros::from_ms(10 * i64::from(tick));
        let command = CommandSeq(tick);
        stream.usercmd(PlayerId(0), at - Micros::from_ms(6), Usercmd { seq: command, ..Usercmd::default() }).unwrap();
        stream.tick(Tick(tick), at, None).unwrap();
        let done = ExecutionRecord { command, tick: Tick(tick), how: Execution::Run };
        stream.push(Record::Executed(PlayerId(0), done)).unwrap();
        let hit = ShotRecord { at, reason: HitResult::Hit, target: Some(EntityId(1)), damage: 9, ..Default::default() };
        let launched = ShotRecord { reason: HitResult::Launched, target: None, damage: 0, ..hit };
        let shot = match tick {
            1 => Some(ShotRecord { command, weapon: rocket, ..launched }),
            5 => Some(ShotRecord { command, weapon: needler, rewound: Micros::from_ms(30), ..hit }),
            20 => Some(ShotRecord { command: CommandSeq(1), weapon: rocket, impact: true, ..hit }),
            _ => None,
        };
        if let Some(shot) = shot {
            stream.push(Record::Judged(PlayerId(0), shot)).unwrap();
        }
        for entity in [EntityId(0), EntityId(1)] {
            stream.body(Tick(tick), entity, ClassId(0), &[(tick as f32).to_bits()]).unwrap();
        }
    }
    recorder.finish().unwrap();
    folder
}

#[test]
fn a_recorded_shot_has_the_name_of_its_weapon() {
    let folder = record(|about| about);
    let page = folder.done("why a.hitlog p0#5");
    assert!(page.contains("shot p0#5 (needler) at 0.050 s"), "{page}");
    let json = folder.json("why a.hitlog p0#1.255");
    assert_eq!((&json["shot"]["weapon"], &json["shot"]["is_impact"]), (&"rocket".into(), &true.into()));
    assert_eq!(folder.json("why a.hitlog 'p0#1 impact'"), json, "the name of the impact on a page");
}

/// Tick 1 ran the usercmd, and the rocket hit in tick 20.
#[test]
fn an_impact_has_the_tick_that_ran_its_usercmd_and_its_own() {
    let folder = record(|about| about);
    let page = folder.done("why a.hitlog p0#1.255");
    assert!(page.contains("executed      tick 1 (0.010 s), 6.0 ms after the client made it"), "{page}");
    assert!(page.contains("impact        tick 20 (0.200 s), 196 ms after the client made it"), "{page}");
    assert!(!page.contains("rewound") && !page.contains("view error  "), "{page}");
}

/// A recorded shot has no limit of its rewind, and the log does not say what was drawn.
#[test]
fn values_that_a_game_does_not_record_are_not_known() {
    let folder = record(|about| about);
    let page = folder.done("why a.hitlog p0#5");
    assert!(page.contains("rewound       30 ms, to 0.020 s"), "{page}");
    assert!(page.contains("rewind limit  not known"), "{page}");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("view error not known: there is no record of what p0's screen drew"), "{page}");
    assert!(!folder.done("export a.hitlog --table shots --to csv").contains("limit"));
}

#[test]
fn usercmds_with_the_times_of_their_arrivals_are_said_to_arrive() {
    let folder = record(Description::usercmds_as_received);
    let page = folder.done("why a.hitlog p0#5");
    assert!(page.contains("usercmd       #5, arrived at 0.044 s"), "{page}");
    assert!(page.contains("executed      tick 5 (0.050 s)\n") && !page.contains("made"), "{page}");
    assert_eq!(folder.json("why a.hitlog p0#5")["usercmds_as_received"], true);
    let info = folder.done("info a.hitlog");
    assert!(info.contains("usercmds      100, with the times of their arrivals\n"), "{info}");
}

/// The words are those of the scripts, which node runs.
#[test]
fn a_page_says_of_usercmds_what_why_says() {
    for (described, expected) in [
        (Description::usercmds_as_received as fn(Description) -> Description, ["#5, arrived at 0.044 s", "tick 5 "]),
        (|about| about, ["#5, made at 0.044 s", "tick 5, 6.0 ms after the client made it "]),
        // What a merged log says of the players without a log.
        (|about| about.setting("recorder.usercmds.p0", "as_received"), ["#5, arrived at 0.044 s", "tick 5 "]),
        (|about| about.setting("recorder.usercmds.p1", "as_received"), ["#5, made at 0.044 s", "tick 5, 6.0 ms "]),
        (|about| about.setting("recorder.usercmds.p0", "as_received_until_5"), ["#5, arrived at 0.044 s", "tick 5 "]),
        (
            |about| about.setting("recorder.usercmds.p0", "as_received_until_4"),
            ["#5, made at 0.044 s", "tick 5, 6.0 ms "],
        ),
    ] {
        let (_, contents) = report::page(&record(described), "a.hitlog");
        let shots = contents["sides"][0]["shots"].as_array().expect("shots");
        let mut shot = shots.iter().find(|shot| shot["command"] == 5).expect("the shot").clone();
        (shot["side"], shot["name"], shot["at_us"]) = (0.into(), "p0#5".into(), 50_000.into());
        let mut correction = json!({ "side": 0, "player": 0, "number": 1, "of": 1, "command": 5, "made_us": 44_000, "cause": "", "errors": [] });
        for unknown in ["at_us", "commands", "on_ground", "error_units", "velocity_error_units_per_s", "reran"] {
            correction[unknown] = Value::Null;
        }
        let selected = [("shot", shot), ("correction", correction)];
        let selected = selected.map(|(kind, item)| json!({ "kind": kind, "item": item }));
        let words = words_of(&json!({ "contents": contents, "selected": selected }));
        if words.is_empty() {
            return;
        }
        let [shot, correction] = words.lines().collect::<Vec<_>>()[..] else { panic!("{words}") };
        assert!(expected.iter().all(|words| shot.contains(words)), "{shot}");
        assert!(correction.contains(expected[0]), "{correction}");
    }
}

/// A usercmd that ran without firing, a launch, and a usercmd that the server repeated.
#[test]
fn a_page_says_of_shots_what_why_says() {
    let folder = Folder::empty();
    folder.done("record synth --seed 2 --players 4 --seconds 15 --delay-ms 50 --jitter-ms 10 --loss 5% -o a.hitlog");
    let (_, contents) = report::page(&folder, "a.hitlog");
    let shots = contents["sides"][0]["shots"].as_array().expect("shots");
    let mut kinds = std::collections::BTreeSet::new();
    for shot in shots {
        let judged = match (&shot["judged"], &shot["server"]["reason"]) {
            (Value::Null, _) => "not judged",
            (_, reason) if reason == "launched" => "launched",
            _ => "judged",
        };
        if shot["is_impact"] == true || !kinds.insert((judged, shot["executed"].is_null())) {
            continue;
        }
        let name = format!("p{}#{}", shot["shooter"], shot["command"]);
        let page = folder.done(&format!("why a.hitlog {name}")).split_whitespace().collect::<Vec<_>>().join(" ");
        let mut item = shot.clone();
        (item["side"], item["name"], item["at_us"]) = (0.into(), name.into(), 0.into());
        let words = words_of(&json!({ "contents": contents, "selected": [{ "kind": "shot", "item": item }] }));
        for words_of_why in ["executed", "limit_words", "without_view_error"] {
            let Some(said) = shot[words_of_why].as_str() else { continue };
            // `why` has no view error of a shot that was not judged.
            let is_shown = judged != "not judged" || words_of_why == "executed";
            assert!(!is_shown || page.contains(said), "{said}: {page}");
            assert!(!is_shown || words.is_empty() || words.contains(said), "{said}: {words}");
        }
    }
    assert!(
        ["judged", "not judged", "launched"].iter().all(|kind| kinds.iter().any(|(of, _)| of == kind)),
        "{kinds:?}"
    );
}

/// The lanes of a chart count what happened, not the marks that are drawn of a long session.
#[test]
fn lanes_count_exactly_although_few_marks_are_drawn() {
    let packets = |player: u32, missing: u64, choked_updates: u64| {
        json!({ "player": player, "way": "down", "sent_us": [10, 20], "transit_us": [-1, 5], "is_missing": [1, 0],
            "choked": [0, 3], "missing": missing, "choked_updates": choked_updates })
    };
    let unrun = |player: u32, how: &str, count: u64, step: &[u32]| json!({ "player": player, "how": how, "count": count, "step": step });
    let side = |packets: Value, unrun: Value| {
        json!({ "packets": packets, "unrun": unrun, "ticks_us": [0, 10], "missing_down": "lost", "settings": [],
            "corrections": [], "acks": [], "round_trips": [], "ran": [], "gaps": [] })
    };
    let a = side(
        json!([packets(0, 400, 5), packets(1, 6, 7)]),
        json!([unrun(0, "over_budget", 1, &[]), unrun(0, "stood_in", 258_338, &[0, 1]), unrun(1, "stood_in", 3, &[1])]),
    );
    let b = side(json!([packets(1, 2, 0)]), json!([unrun(0, "stood_in", 4, &[1])]));
    let words = words_of(&json!({ "sides": [a, b] }));
    let expected = [
        "lost down A 406 B 2 3",
        "choked down A 12 B 0 3",
        "over budget A 1 B 0 0",
        "stood in A 258341 B 4 4",
        "lost down A 6 B 2 3",
        "choked down A 7 B 0 3",
        "over budget A 0 B 0 0",
        "stood in A 3 B 0 4",
    ];
    assert!(words.is_empty() || words.lines().collect::<Vec<_>>() == expected, "{words}");
}

/// Lines break where a player was away.
#[test]
fn charts_break_over_an_absence() {
    let away =
        |from: i64, us: i64| -> Vec<i64> { (0..100).map(|n| n * 100_000 + if n < from { 0 } else { us }).collect() };
    let words = words_of(&json!({ "lines": [away(50, 9_000_000), away(50, 1_500_000), [0, 9_000_000]] }));
    assert!(["", "50\n\n\n"].contains(&&*words), "{words}");
}

/// A page counts and lists as many changed shots as `diff` and a corpus do: without those that hit on neither side.
#[test]
fn a_shot_that_hits_on_neither_side_is_no_changed_shot_of_a_page() {
    let changes = ["only_a", "other_reason", "only_b", "other_target", "other_reason", "other_wound"];
    let changed: Vec<Value> = changes.iter().map(|change| json!({ "change": change })).collect();
    let words = words_of(&json!({ "differences": [{ "hits": { "changed": changed } }] }));
    assert!(["", "only_a only_b other_target other_wound\n"].contains(&&*words), "{words}");
}

/// What the page's scripts say of the selected items; empty without node.
fn words_of(selected: &Value) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/why_words.mjs");
    let mut node = Command::new("node");
    node.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut node) = node.spawn() else {
        note::skipped("node is not on the path; it runs the scripts of pages");
        return String::new();
    };
    node.stdin.take().expect("a pipe").write_all(selected.to_string().as_bytes()).expect("written");
    let output = node.wait_with_output().expect("node");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Positions far from 0 are measured from the shooter's eyes in double precision.
#[test]
fn places_far_from_zero_keep_the_precision_of_their_columns() {
    let folder = Folder::empty();
    let far = 2_000_000_053.125_f64;
    let field = |name: &str| FieldSchema::new(name, CellKind::F64, Scope::Movement);
    let fields = ["origin.x", "origin.y", "origin.z", "view_ofs_z"].map(field).to_vec();
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let about = about.class(Class::new("player", fields));
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    let input = Input { viewangles: glam::Vec3::new(0.0, 180.0, 0.0), ..Input::default() };
    for tick in 1..=20u32 {
        let (at, command) = (Micros::from_ms(10 * i64::from(tick)), CommandSeq(tick));
        stream.usercmd(PlayerId(0), at, Usercmd { seq: command, input: input.clone(), ..Usercmd::default() }).unwrap();
        stream.tick(Tick(tick), at, None).unwrap();
        for (entity, x, z) in [(0, far, 0.0), (1, far - 54.0, 28.0)] {
            let values = [x, far, z, 28.0].map(OwnValue::Double);
            stream.body_values(Tick(tick), EntityId(entity), ClassId(0), &values).unwrap();
        }
        let done = ExecutionRecord { command, tick: Tick(tick), how: Execution::Run };
        stream.push(Record::Executed(PlayerId(0), done)).unwrap();
    }
    let hit =
        ShotRecord { at: Micros::from_ms(50), reason: HitResult::Hit, target: Some(EntityId(1)), ..Default::default() };
    stream.push(Record::Judged(PlayerId(0), ShotRecord { command: CommandSeq(5), ..hit })).unwrap();
    recorder.finish().unwrap();
    let (_, contents) = report::page(&folder, "a.hitlog");
    let of_page = contents["sides"][0]["shots"][0].clone();
    for shot in [folder.json("why a.hitlog p0#5")["shot"].clone(), of_page] {
        let from = [0, 1, 2].map(|axis| shot["line"]["from"][axis].as_f64());
        assert_eq!((from, &shot["line"]["has_height"]), ([far, far, 28.0].map(Some), &json!(true)), "{shot}");
        for place in [&shot["places"][1], &shot["places"][2]] {
            assert_eq!(place["origin"][0].as_f64(), Some(far - 54.0), "{place}");
            let [ahead, up] = ["ahead_units", "up_units"].map(|name| place["off"][name].as_f64().unwrap());
            assert!((ahead - 54.0).abs() < 0.01 && up.abs() < 0.01, "{place}");
        }
    }
}

/// Only players have the names of players.
#[test]
fn a_target_that_is_no_player_is_named_as_an_entity() {
    let folder = Folder::empty();
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (command, target) in [(1, 1), (2, 2), (3, 500)] {
        let (command, at) = (CommandSeq(command), Micros::from_ms(10 * i64::from(command)));
        stream.usercmd(PlayerId(0), at, Usercmd { seq: command, ..Usercmd::default() }).unwrap();
        let target = Some(EntityId(target));
        let hit = ShotRecord { command, at, reason: HitResult::Hit, target, ..Default::default() };
        stream.push(Record::Judged(PlayerId(0), hit)).unwrap();
    }
    recorder.finish().unwrap();
    let exported = folder.done("export a.hitlog --table shots --to csv");
    let names = ["p1", "entity 2", "entity 500"];
    assert!(names.iter().all(|name| exported.contains(&format!("hit,{name},"))), "{exported}");
    let (timeline, (_, page)) = (folder.done("export a.hitlog --perfetto"), report::page(&folder, "a.hitlog"));
    for (row, name) in names.into_iter().enumerate() {
        let why = folder.done(&format!("why a.hitlog p0#{}", row + 1));
        assert!(why.contains(&format!("hit {name}")) && !why.contains("this player"), "{why}");
        assert!(timeline.contains(&format!("hit {name}")), "{timeline}");
        assert_eq!(page["sides"][0]["shots"][row]["server"]["target"], name);
    }
}

/// A client's log has no record of how the server judged its shots.
#[test]
fn a_shot_in_a_clients_log_is_not_known_to_be_judged() {
    let folder = Folder::empty();
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let about = about.client_side(7, PlayerId(1));
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for number in 1..=50u32 {
        let at = Micros::from_ms(10 * i64::from(number));
        let command = CommandSeq(number);
        stream.usercmd(PlayerId(1), at, Usercmd { seq: command, ..Usercmd::default() }).unwrap();
        let packet = PacketRecord { number, at, newest: command, count: 1, bytes: 40, ..PacketRecord::default() };
        stream.push(Record::Sent(PlayerId(1), packet)).unwrap();
        if number == 5 {
            let missed = ShotRecord { at, command, reason: HitResult::Missed, ..ShotRecord::default() };
            stream.push(Record::Predicted(PlayerId(1), missed)).unwrap();
        }
    }
    recorder.finish().unwrap();
    let page = folder.done("why a.hitlog p1#5").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("Not judged here, because the log is one client's side"), "{page}");
    assert!(page.contains("executed not known: the log is one client's side") && !page.contains("never"), "{page}");
    assert_eq!(folder.json("why a.hitlog p1#5")["mode"], "recorded, open");
    for output in ["--table shots", "--perfetto"].map(|what| folder.done(&format!("export a.hitlog {what}"))) {
        assert!(output.contains("no server") && !output.contains("not run"), "{output}");
    }
    let (_, contents) = report::page(&folder, "a.hitlog");
    let side = &contents["sides"][0];
    assert_eq!((&side["is_open"], &side["mode"]), (&true.into(), &"recorded by a client".into()));
    let notes = side["notes"].to_string();
    assert!(notes.contains("hits: the log is one client's side") && !notes.contains("no log with packets"), "{notes}");
}

/// Nothing replayed the log, so the page does not name a loop.
#[test]
fn a_page_of_a_log_that_was_not_replayed_says_recorded() {
    let (_, contents) = report::page(&record(|about| about), "a.hitlog");
    assert_eq!(contents["sides"][0]["mode"], "recorded");
}

/// The corrections of a game: p1's second is the third row.
fn record_corrections(with_fields: bool) -> Folder {
    let folder = Folder::empty();
    let kinds = [("player", CellKind::U32), ("command", CellKind::U32), ("result", CellKind::Text)];
    let fields = with_fields.then_some(("fields", CellKind::U32));
    let kinds = kinds.into_iter().chain([("cause", CellKind::Text)]).chain(fields);
    let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
    let about = about.kind("corrections", kinds.map(|(name, kind)| (name.to_owned(), kind)).collect());
    let recorder = Recorder::create(&folder.path("a.hitlog"), about, RecorderOptions::patient()).unwrap();
    let mut stream = recorder.stream();
    for (number, result) in (1..).zip(["miss", "exact", "near"]) {
        let (at, command) = (Micros::from_ms(100 * i64::from(number)), CommandSeq(number));
        stream.usercmd(PlayerId(1), at, Usercmd { seq: command, ..Usercmd::default() }).unwrap();
        stream.tick(Tick(number), at, None).unwrap();
        let [result_text, push] = [result, "push"].map(|text| OwnValue::Text(stream.text(text).unwrap()));
        let [player, command] = [1, i64::from(number)].map(OwnValue::Number);
        let fields = with_fields.then_some(OwnValue::Number(i64::from(result != "exact")));
        let row: Vec<_> = [player, command, result_text, push].into_iter().chain(fields).collect();
        stream.row(0, 1, at + Micros::from_ms(50), &row).unwrap();
    }
    recorder.finish().unwrap();
    folder
}

#[test]
fn corrections_that_a_game_records_are_explained() {
    for with_fields in [true, false] {
        let folder = record_corrections(with_fields);
        let page = folder.done("why a.hitlog p1 --correction 2");
        assert!(page.contains("correction 2 of 2 of p1 at 0.350 s"), "{page}");
        assert!(page.contains("#3, made at 0.300 s"), "{page}");
        assert!(page.contains("push: usercmd #3 was predicted with an unknown error."), "{page}");
        let (_, contents) = report::page(&folder, "a.hitlog");
        assert_eq!(contents["sides"][0]["corrections"].as_array().map(Vec::len), Some(2));
        let refused = folder.refused("why a.hitlog p1 --correction 3");
        assert!(refused.contains("p1 has only 2 corrections, not 3; players with corrections: p1 (2)"), "{refused}");
    }
    let refused = record(|about| about).refused("why a.hitlog p0 --correction 1");
    assert!(refused.contains("the log does not record corrections"), "{refused}");
}
