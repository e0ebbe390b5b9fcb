//! Results: figures, verdicts, files.

use std::fs;
use std::path::Path;

use hitreg::store;
use serde_json::Value;

use super::folder::{Folder, code, exit_of, text, word};

#[test]
fn a_real_demo_is_imported_and_replayed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.exists() {
        crate::note::skipped("../shared/data is not here");
        return;
    }
    let folder = Folder::empty();
    let demo = data.join("matches/demo22.qwd.xz");
    let import = |map: &str| {
        let map = data.join("maps").join(map);
        format!("import qwd {} --map {} -o a.hitlog", word(&demo), word(map))
    };
    let output = folder.refused(&import("e1m2.bsp.gz"));
    assert!(output.contains("e1m2.bsp.gz: the demo was played on `dm4`"), "{output}");
    folder.done(&import("dm4.bsp.gz"));
    let info = folder.json("info a.hitlog");
    let packets = &info["packets"];
    let figures = [&info["usercmds"], &packets["received"], &packets["lost"], &packets["choked"]];
    assert_eq!(figures.map(Value::as_u64), [43_904, 42_778, 105, 1_021].map(Some));
    let page = folder.done("info a.hitlog");
    assert!(page.contains("no reply  choked") && page.contains("43,904       105   1,021"), "{page}");
    // `info` and a timeline count the same packets.
    let log = hitreg::store::read_log(&folder.path("a.hitlog")).expect("a log");
    let packets = hitreg::traffic::of_session(&log);
    let lost = packets.iter().filter(|packet| !packet.is_up && packet.is_missing).count();
    assert_eq!((packets.iter().filter(|packet| !packet.is_up).count(), lost), (42_778 + 105, 105));
    let rtt = &info["rtt_ms"];
    let measured = [&rtt["p5"], &rtt["p50"], &rtt["p95"], &rtt["p99"]].map(|p| p.as_f64().unwrap_or(f64::NAN));
    for (measured, expected) in measured.into_iter().zip([42.0, 42.0, 42.0, 56.0]) {
        assert!((measured - expected).abs() <= 1.0, "{rtt}");
    }
    let replay = folder.json("replay a.hitlog");
    assert_eq!(replay["mode"], "open");
    assert!(replay["prediction"]["checked"].as_u64() > Some(40_000), "{replay:#}");
    // `bisect` finds the first correction without a cause, with the server's state and the predicted state.
    let found = folder.differs("bisect ticks a.hitlog");
    assert_eq!(found["cause"]["cause"], "unknown", "{found:#}");
    assert!(found["b"].as_str().is_some_and(|b| b.contains(" corrections, 3 without a cause")), "{found:#}");
    assert_eq!(
        (&found["first"]["table"], found["first"]["usercmds_a"].as_array().map(Vec::len)),
        (&"corrections".into(), Some(1))
    );
}

#[test]
fn a_folder_of_demos_is_imported_in_one_go() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.exists() {
        crate::note::skipped("../shared/data is not here");
        return;
    }
    let folder = Folder::empty();
    let line = |demos: &str| format!("import qwd {demos} --maps {} -o logs", word(data.join("maps")));
    let drills = word(data.join("drills"));
    let imported = folder.json(&line(&drills));
    let logs = imported["logs"].as_array().expect("a list");
    assert_eq!((logs.len(), imported["refused"].as_array().map(Vec::len)), (12, Some(0)));
    assert!(
        logs.iter()
            .all(|log| log["map"] == "dm3" && Path::new(log["path"].as_str().expect("a path")).starts_with("logs"))
    );
    assert!(folder.path("logs/highbridge-to-rl.hitlog").is_file());
    let again = folder.run(&line(&format!("{drills} --format json")));
    let again_json: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    let refused = again_json["refused"].as_array().expect("a list");
    let is_there = |refused: &Value| refused["why"].as_str().is_some_and(|why| why.contains("this log exists already"));
    assert_eq!((code(&again), refused.iter().filter(|refused| is_there(refused)).count()), (128, 12), "{again_json:#}");

    // hitreg names demos that it cannot import, and imports the rest.
    fs::write(folder.path("junk.qwd"), "no demo").expect("written");
    let demo = word(data.join("matches/demo09.qwd.xz"));
    // It also names a second demo of the same name. A truncated demo is imported up to its end, packed or not.
    let packed = fs::read(data.join("matches/demo22.qwd.xz")).expect("the demo");
    fs::write(folder.path("cut.qwd.xz"), &packed[..packed.len() / 3]).expect("written");
    let output = folder.run(&line(&format!("junk.qwd {demo} cut.qwd.xz {demo}")));
    let message = text(&output.stdout);
    assert_eq!(code(&output), 128);
    assert!(message.contains("not imported: junk.qwd: "), "{message}");
    assert!(
        message.contains("demo09.hitlog is already the log of ")
            && message.contains("the demo is truncated: it was imported up to byte"),
        "{message}"
    );
    assert!(folder.path("logs/demo09.hitlog").is_file());
    let usercmds = |log: &str| folder.json(&format!("info logs/{log}.hitlog"))["usercmds"].as_u64();
    let (cut, whole) = (usercmds("cut").expect("a number"), 43_904);
    assert!((whole / 8..whole / 2).contains(&cut), "{cut}");
    // The map is at fault, but the demo is named first.
    let (drill, map) = (word(data.join("drills/ring-to-ratop.qwd")), word(data.join("maps/dm3.bsp.gz")));
    let output = folder.run(&format!("import qwd {drill} {demo} --map {map} -o one-map"));
    let message = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("not imported: {}: ", data.join("matches/demo09.qwd.xz").display());
    assert!(code(&output) == 128 && message.contains(&named) && message.contains("`e1m2`"), "{message}");
    let message = folder.refused(&format!("import qwd {demo} --maps junk.qwd -o b.hitlog"));
    assert!(message.contains("this is a file: give a folder to --maps"), "{message}");

    fs::create_dir(folder.path("empty")).expect("a folder");
    let message = folder.refused(&format!("import qwd {demo} --maps empty -o b.hitlog"));
    assert!(message.contains("played on `e1m2`, and there is no e1m2.bsp below empty"), "{message}");
    let message = folder.refused("import qwd empty --maps empty -o logs");
    assert!(message.contains("there are no demos"), "{message}");
}

#[test]
fn json_has_the_fields_that_programs_rely_on() {
    let folder = Folder::with_session();
    let has = |value: &Value, fields: &str| {
        for field in fields.split_whitespace() {
            let found = field.split('.').try_fold(value, |value, key| value.get(key));
            assert!(found.is_some(), "no {field} in {value:#}");
        }
    };
    let info = folder.json("info a.hitlog");
    has(
        &info,
        "format_version game preset players duration_us ticks usercmds packets.sent packets.lost packets.choked",
    );
    has(&info, "rtt_ms.p5 rtt_ms.p50 rtt_ms.p95 rtt_ms.p99 shots hits size_bytes bytes_per_usercmd");
    assert_eq!(
        (info["players"].as_u64(), info["ticks"].as_u64(), info["game"].as_str()),
        (Some(4), Some(384), Some("arena"))
    );
    let rtt = info["rtt_ms"]["p50"].as_f64().unwrap();
    assert!((100.0..140.0).contains(&rtt), "two ways of 50 ms, jitter and a tick make {rtt} ms");

    let replay = folder.json("replay a.hitlog");
    has(&replay, "digest real_time_factor shots.fired shots.hit");
    has(&replay, "shots.view_error_units.p50 shots.view_error_units.p95 shots.view_error_units.max");
    has(&replay, "prediction.checked prediction.exact prediction.near prediction.misses_by_cause");
    has(&replay, "prediction.error_units.p50 prediction.error_units.p95 prediction.error_units.max");
    has(&replay, "prediction.ground.checked prediction.ground.exact prediction.ground.near");
    has(&replay, "prediction.air.checked prediction.air.exact prediction.air.near");
    has(&replay["drawn"][0], "by views error_units.p50 error_units.p95 error_units.p99");
    has(
        &replay,
        "network.up.sent network.up.lost network.up.took_ms.p50 network.usercmds_per_packet network.down.sent",
    );
    let open = folder.json("replay a.hitlog --mode open");
    // No server runs, so packets are those of the log.
    let exported = |mode: &str| folder.done(&format!("export a.hitlog --table packets --to csv {mode}"));
    assert!(exported("--mode open").lines().count() > 100);
    assert_eq!(exported("--mode open").lines().count(), exported("").lines().count());
    for mode in ["off", "extrapolate", "two-point", "history"] {
        let score = &open["interpolation"][mode];
        has(score, "samples error_units.p50 error_units.p95 error_units.p99");
    }
    assert_eq!((&info["shots"], &info["hits"]), (&Value::Null, &Value::Null), "no replay was requested");
    let replayed = folder.json("info a.hitlog --replay");
    assert_eq!((&replay["shots"]["fired"], &replay["shots"]["hit"]), (&replayed["shots"], &replayed["hits"]));
    assert_eq!(replay["digest"], folder.json("info a.hittrace")["digest"]);

    let verify = folder.json("verify a.hitlog");
    let log = &verify["logs"][0];
    has(
        log,
        "path verdict digest exercised.ticks exercised.usercmds exercised.corrections exercised.shots exercised.hits",
    );
    assert_eq!((&log["verdict"], &log["digest"]), (&Value::from("same"), &replay["digest"]));
}

#[test]
fn the_worst_verdict_decides_the_exit_code() {
    let folder = Folder::with_session();
    folder.done("verify a.hitlog --accept --rollback 5");
    let golden = fs::read_to_string(folder.path("a.golden")).unwrap();
    assert!(golden.contains("shots fired"), "{golden}");
    folder.done("verify a.hitlog");

    fs::copy(folder.path("a.hitlog"), folder.path("b.hitlog")).unwrap();
    fs::write(folder.path("b.golden"), golden.replace("usercmds", "user commands")).unwrap();
    let differs = folder.run("verify b.hitlog");
    assert_eq!(code(&differs), 1);
    assert!(text(&differs.stdout).contains("-user commands"), "the difference is shown:\n{}", text(&differs.stdout));

    let mut unhashed = store::read_log(&folder.path("a.hitlog")).unwrap();
    for tick in &mut unhashed.ticks {
        tick.hash = None;
    }
    folder.save_log("unhashed.hitlog", &unhashed);
    let untestable = folder.run("verify unhashed.hitlog");
    assert_eq!(code(&untestable), 125);
    assert!(text(&untestable.stdout).contains("no state hashes and no golden"), "{}", text(&untestable.stdout));

    let mut bytes = fs::read(folder.path("a.hitlog")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path("broken.hitlog"), bytes).unwrap();
    assert_eq!(exit_of(&folder, "verify broken.hitlog"), 128);

    assert_eq!(exit_of(&folder, "verify a.hitlog unhashed.hitlog"), 125);
    assert_eq!(exit_of(&folder, "verify unhashed.hitlog b.hitlog a.hitlog"), 1);
    let all = folder.run("verify . --threads 2 --junit report.xml");
    assert_eq!(code(&all), 128);
    assert!(
        text(&all.stdout).ends_with("4 logs: 1 ok, 1 different, 1 untestable, 1 broken\n"),
        "{}",
        text(&all.stdout)
    );
    let report = fs::read_to_string(folder.path("report.xml")).unwrap();
    assert!(report.contains("tests=\"4\" skipped=\"0\" failures=\"1\" errors=\"2\""), "{report}");
    let halves = ["slice:1/2", "slice:2/2"].map(|slice| {
        let output = folder.run(&format!("verify . --format json --partition {slice}"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["logs"].as_array().unwrap().iter().map(|log| log["path"].to_string()).collect::<Vec<_>>()
    });
    assert_eq!(halves.map(|paths| paths.len()), [2, 2]);
}

#[test]
fn accept_refuses_a_log_that_replays_differently() {
    let folder = Folder::with_session();
    let mut log = store::read_log(&folder.path("a.hitlog")).unwrap();
    log.ticks[100].hash = Some(7);
    folder.save_log("b.hitlog", &log);
    let output = folder.run("verify b.hitlog --accept");
    assert_eq!(code(&output), 1);
    assert!(text(&output.stdout).contains("tick 101: the log has state hash 0000000000000007"));
    assert!(!folder.path("b.golden").exists());
}

#[test]
fn complete_chunks_of_a_truncated_log_are_recovered() {
    let folder = Folder::with_session();
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() / 2]).unwrap();
    let info = folder.json("info cut.hitlog");
    assert!(info["warning"].as_str().unwrap().contains("truncated at offset"), "{info:#}");
    let recovered = folder.json("recover cut.hitlog -o saved.hitlog");
    assert!(recovered["cut_off"]["bytes"].as_u64() > Some(0), "{recovered:#}");
    assert!((96..384).contains(&recovered["ticks"].as_u64().unwrap()), "{recovered:#}");
    let verified = folder.json("verify saved.hitlog");
    assert_eq!(verified["logs"][0]["verdict"], "same");
    assert_eq!(verified["logs"][0]["exercised"]["ticks"], recovered["ticks"]);
}

#[test]
fn a_trace_and_its_log_export_the_same_tables() {
    let folder = Folder::with_session();
    let from_log = folder.done("export a.hitlog --table shots");
    assert_eq!(from_log, folder.done("export a.hittrace --table shots"));
    assert!(from_log.lines().count() > 5);
    for line in from_log.lines() {
        let shot: Value = serde_json::from_str(line).expect("a line is an object");
        assert!(shot["reason"].is_string() && shot["rewind_us"].is_i64(), "{shot}");
    }
    folder.done("export a.hittrace --all --to csv -o tables");
    let csv = fs::read_to_string(folder.path("tables/ticks.csv")).unwrap();
    assert_eq!((csv.lines().next(), csv.lines().count()), (Some("tick,at_us,hash"), 385));
    let under = folder.done("export a.hitlog --table shots --set lag_compensation.enabled=false");
    assert_ne!(from_log, under);
}

#[test]
fn scenarios_and_options_make_the_same_log() {
    let folder = Folder::empty();
    let toml = "players = 2\nseconds = 2.0\nseed = 9\npreset = \"quake3\"\n[settings]\n\"server.update_hz\" = \"30\"\n\
                [link]\ndelay_ms = 30.0\njitter = { exponential = 2.0 }\nloss = { random = 0.05 }\n";
    fs::write(folder.path("s.toml"), toml).unwrap();
    folder.done("record synth -o a.hitlog --scenario s.toml");
    let options = "--players 2 --seconds 2 --seed 9 --preset quake3 --set server.update_hz=30";
    folder.done(&format!("record synth -o b.hitlog {options} --delay-ms 30 --jitter-ms 2 --loss 5%"));
    assert_eq!(fs::read(folder.path("a.hitlog")).unwrap(), fs::read(folder.path("b.hitlog")).unwrap());
    folder.done("record synth -o c.hitlog --scenario s.toml --seed 10");
    assert_ne!(fs::read(folder.path("a.hitlog")).unwrap(), fs::read(folder.path("c.hitlog")).unwrap());
    let info = folder.json("info a.hitlog");
    assert_eq!(info["settings_changed"], serde_json::json!([["server.update_hz", "30"]]));
}

/// Shots without a verdict of a server cannot agree.
#[test]
fn hits_that_were_not_judged_are_untestable() {
    let folder = Folder::with_session();
    let build = word(env!("CARGO_BIN_EXE_hitreg"));
    for command in ["diff", "bisect ticks"] {
        let line = format!("{command} a.hitlog --b {build} --on hits");
        assert_eq!(exit_of(&folder, &line), 0, "{line}");
        let output = folder.run(&format!("{line} --open"));
        assert_eq!(code(&output), 125, "{line} --open");
        assert!(text(&output.stdout).contains("no replay judged any of its shots"), "{}", text(&output.stdout));
    }
}

/// Effects of a changed setting precede the setting's own copy in each usercmd.
#[test]
fn the_first_difference_is_an_effect_of_a_changed_setting() {
    let folder = Folder::with_session();
    let found = folder.differs("diff a.hitlog --b-set interpolation.lerp_ms=50");
    assert_ne!(found["first"]["field"], "lerp_msec", "{found:#}");
    let notes: Vec<&str> = found["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let echo = "each usercmd carries the changed setting: lerp_msec is 100 in A, 50 in B";
    assert!(notes.contains(&echo), "{notes:?}");
}

/// A setting that gives the same first values after another usercmd is not alone the cause.
#[test]
fn a_setting_is_the_only_cause_only_if_it_has_the_named_effect() {
    let folder = Folder::empty();
    folder.done("record synth --players 6 --seconds 4 --seed 3 --loss 2% --jitter-ms 8 --delay-ms 50 -o a.hitlog");
    let bisect = "bisect ticks a.hitlog --on state --b-set client.redundancy=1 --b-set";
    let alone = "client.redundancy is 3 in A, 1 in B, and alone gives this difference";
    for (other, how, is_alone) in
        [("interpolation.lerp_ms=90", "stood_in in B", true), ("server.on_lost_command=skip", "missing in B", false)]
    {
        let found = folder.differs(&format!("{bisect} {other}"));
        let evidence = found["cause"]["evidence"].as_str().expect("evidence");
        assert!(evidence.contains(how), "{other}: {evidence}");
        assert_eq!(evidence.contains(alone), is_alone, "{other}: {evidence}");
    }
}

/// The same for the number of usercmds in each packet, and for the times of ticks.
#[test]
fn the_first_difference_of_a_preset_is_an_effect() {
    let folder = Folder::with_session();
    let cases = [
        ("client.redundancy=2", "packets", "each packet follows the changed setting: usercmds is 3 in A, 2 in B"),
        ("server.tick_hz=32", "ticks", "each tick follows the changed setting: at_us is "),
    ];
    for (setting, table, echo) in cases {
        let found = folder.differs(&format!("diff a.hitlog --b-set {setting} --b-set interpolation.lerp_ms=50"));
        assert_ne!(found["first"]["table"], table, "{setting}: {found:#}");
        let notes = found["notes"].as_array().expect("notes");
        assert!(notes.iter().filter_map(Value::as_str).any(|note| note.starts_with(echo)), "{setting}: {notes:?}");
    }
    let page = text(&folder.run("diff a.hitlog --b-preset quake3").stdout);
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}: {page}"));
    assert!(place("first difference: ") < place("@@ settings @@"), "{page}");
}

/// hitreg looks for a scenario's map beside the scenario, then in the working folder.
#[test]
fn a_scenario_names_a_map_file_by_its_own_folder() {
    let folder = Folder::empty();
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/hitreg-arena/maps/courtyard.map");
    fs::create_dir_all(folder.path("scenarios/maps")).expect("a folder");
    fs::copy(&map, folder.path("scenarios/maps/ok.map")).expect("a map");
    fs::write(folder.path("scenarios/a.toml"), "map = \"maps/ok.map\"\nseconds = 1.0\n").expect("a scenario");
    folder.done("record synth --scenario scenarios/a.toml -o beside.hitlog");
    fs::rename(folder.path("scenarios/maps"), folder.path("maps")).expect("moved");
    folder.done("record synth --scenario scenarios/a.toml -o here.hitlog");
    assert_eq!(folder.json("info here.hitlog")["map"], folder.json("info beside.hitlog")["map"]);
    fs::remove_dir_all(folder.path("maps")).expect("removed");
    let output = folder.refused("record synth --scenario scenarios/a.toml -o none.hitlog");
    assert!(output.contains("there is neither scenarios/maps/ok.map nor maps/ok.map"), "{output}");
}

/// A target that respawned after it was drawn is judged elsewhere, which says nothing about the shooter's view.
#[test]
fn a_respawn_is_no_view_error() {
    let folder = Folder::empty();
    folder
        .done("record synth --players 64 --seconds 3 --delay-ms 60 --set lag_compensation.enabled=false -o off.hitlog");
    let errors = &folder.json("replay off.hitlog")["shots"]["view_error_units"];
    let [p50, max] = ["p50", "max"].map(|name| errors[name].as_f64().expect("a distance"));
    assert!(p50 > 30.0 && max < 400.0, "{errors}");
}
