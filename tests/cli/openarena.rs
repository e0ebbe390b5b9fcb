//! A recorded OpenArena session: imported, and its shots compared, explained, reported and exported.

use std::process::Command;

use hitreg::log::read_session;
use hitreg::quake3::CaptureReader;

use super::folder::{Folder, code, text, word};
use super::report::page;

/// A folder with the log of the session in fixtures/openarena.
fn folder() -> Folder {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    let output = folder.done(&format!(
        "import quake3-udp {fixtures}/duel.trace.zst --map {fixtures}/hitreg_room.bsp --server-log {fixtures}/duel.server.log \
         -o duel.hitlog"
    ));
    assert!(output.contains("21 reported to shooters, 21 with their victim"), "{output}");
    folder
}

#[test]
fn every_command_shows_the_shots_of_a_real_game() {
    let folder = folder();
    let replay = folder.done("replay duel.hitlog");
    assert!(replay.contains("Hits that the recorded server reported") && !replay.contains("not explained"), "{replay}");
    let hits = folder.json("replay duel.hitlog")["hits_again"].as_array().expect("a list").clone();
    assert_eq!(hits.len(), 21);
    // `info` counts these shots as `replay` does.
    let (info, shots) = (folder.json("info duel.hitlog --replay"), folder.json("replay duel.hitlog")["shots"].clone());
    assert_eq!((&info["shots"], &info["hits"]), (&shots["fired"], &shots["hit"]));
    assert!(folder.done("info duel.hitlog").contains("run with --replay"));
    // Targets that only lag compensation hits.
    let alone: Vec<_> = hits.iter().filter(|hit| hit["at_present"] != hit["target"]).collect();
    assert!(!alone.is_empty());
    let diff = folder.run("diff duel.hitlog --b-set lag_compensation.enabled=false");
    let output = text(&diff.stdout);
    assert_eq!(code(&diff), 1, "{output}");
    for hit in &alone {
        let shot = format!("p{} #{} {}", hit["shooter"], hit["command"], hit["weapon"].as_str().expect("a name"));
        assert!(output.contains(&shot), "{shot}\n{output}");
        let why = folder.done(&format!("why duel.hitlog p{}#{}", hit["shooter"], hit["command"]));
        assert!(why.contains("machinegun") && why.contains(hit["target"].as_str().expect("a name")), "{why}");
        let words: Vec<&str> = why.split_whitespace().collect();
        assert!(words.join(" ").contains("arrival time not known"), "no proxy recorded the arrival: {why}");
    }
    // The player's `delta_angles` turn the view by half a turn. The server rewinds to the time that the usercmd carries,
    // which is the time at which the client drew.
    let frames = folder.done("export duel.hitlog --table frames");
    let made = frames.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("JSON"));
    let made = made.filter(|row| row["player"] == 0 && row["command"] == 290).collect::<Vec<_>>();
    let shot = folder.json("why duel.hitlog p0#290")["shot"].clone();
    let places = shot["places"].as_array().expect("places");
    let drawn_us = places[0]["at_us"].as_i64().expect("a time");
    assert_eq!((made.len(), made[0]["server_time_us"].as_i64()), (1, Some(drawn_us)));
    let judged_us = places[1]["at_us"].as_i64().expect("a time");
    assert!((judged_us - drawn_us).abs() < 1_000, "{shot:#}");
    let [ahead, right] = ["ahead_units", "right_units"].map(|name| places[0]["off"][name].as_f64().expect(name));
    assert!((277.0..279.0).contains(&ahead) && (-9.0..-8.0).contains(&right), "{shot:#}");
    // The nearest drawn position is not the judged one, because it is too near to where the screen drew the target.
    let shot = folder.json("why duel.hitlog p1#290")["shot"].clone();
    assert!(shot["view_error_units"].as_f64().is_some_and(|units| (0.4..0.5).contains(&units)), "{shot:#}");
    assert!(shot["places"][0]["origin"].is_array() && shot["places"][1]["origin"].is_null(), "{shot:#}");
    // Without the map nothing is predicted, so the angles are the usercmd's and the turn.
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    folder.done(&format!("import quake3-udp {fixtures}/duel.trace.zst -o mapless.hitlog"));
    let yaw = folder.json("why mapless.hitlog p0#290")["shot"]["line"]["yaw"].as_f64().expect("a yaw");
    // So a replay predicts nothing that could be compared with the recording.
    for line in ["diff mapless.hitlog", "bisect ticks mapless.hitlog"] {
        let output = folder.run(line);
        assert_eq!(code(&output), 125, "{line}");
        assert!(text(&output.stdout).contains("only recorded input in common"), "{line}");
    }
    let predicted = frames.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("JSON"));
    let predicted = predicted.filter(|row| row["player"] == 0 && row["command"] == 290);
    let predicted: Vec<_> = predicted.map(|row| row["own.viewangles.y"].as_f64().expect("a yaw")).collect();
    assert!(predicted.len() == 1 && (yaw - predicted[0]).abs() < 0.01, "{yaw} {predicted:?}");
    // Rewind limits of 0 ms, 20 ms, and more than the server remembers.
    let limits = |most: u32| -> (usize, i64) {
        let rows = folder.done(&format!("export duel.hitlog --table shots --set lag_compensation.max_unlag_ms={most}"));
        let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        let cut = rows.iter().filter(|row| row["limit"] == "max_unlag").count();
        (cut, rows.iter().filter_map(|row| row["rewind_us"].as_i64()).max().expect("a shot"))
    };
    let ((all, none), (some, short), (no, long)) = (limits(0), limits(20), limits(400));
    assert_eq!((none, no), (0, 0));
    assert!(
        all >= some && some > 0 && short == 20_000 && (20_000..400_000).contains(&long),
        "{all} {some} {short} {long}"
    );
    let csv = folder.done("export duel.hitlog --table shots --to csv");
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let given = head.iter().position(|column| *column == "given_damage").expect("the column");
    let damage = lines.filter_map(|line| line.split(',').nth(given)?.parse::<f32>().ok());
    assert_eq!(damage.collect::<Vec<_>>(), [7.0; 21], "as the server's log says");
    let (_, contents) = page(&folder, "duel.hitlog");
    let listed = contents["sides"][0]["shots"].as_array().expect("shots").clone();
    let hit = listed.iter().filter(|shot| shot["server"]["reason"] == "hit");
    assert_eq!((listed.len(), hit.count()), (254, 21));
}

/// A replay of the clients alone answers only what clients do, and how their recorded shots are judged.
#[test]
fn settings_that_a_replay_of_clients_cannot_answer_are_untestable() {
    let folder = folder();
    for (setting, reason) in [
        ("server.update_hz=10", "open loop runs no server"),
        ("p0.server.rate_bytes_per_s=2500", "open loop runs no server"),
        ("client.cmd_hz=30", "the log holds the usercmds that the clients sent"),
        ("client.redundancy=1", "the log holds the usercmds that the clients sent"),
    ] {
        let diff = folder.run(&format!("diff duel.hitlog --b-set {setting}"));
        let output = text(&diff.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code(&diff), 125, "{setting}: {output}");
        assert!(output.contains(reason) && !output.contains("changed nothing"), "{setting}: {output}");
        let replay = folder.json(&format!("replay duel.hitlog --set {setting}"))["unanswered"].clone();
        assert!(replay[0].as_str().is_some_and(|why| why.contains(reason)), "{setting}: {replay}");
        let sweep = folder.done(&format!("sweep duel.hitlog --set {setting}"));
        assert!(sweep.split_whitespace().collect::<Vec<_>>().join(" ").contains(reason), "{setting}: {sweep}");
        folder.done(&format!("report duel.hitlog --b-set {setting} -o page.html --force"));
    }
    // A setting that a replay can answer and that changes nothing.
    let diff = folder.run("diff duel.hitlog --b-set lag_compensation.max_unlag_ms=1400");
    assert_eq!(code(&diff), 0, "{}", text(&diff.stdout));
    assert!(text(&diff.stdout).contains("changed nothing"), "{}", text(&diff.stdout));
    assert!(folder.json("replay duel.hitlog")["unanswered"].is_null());
}

/// A usercmd carries the time that its client drew. Under another lerp, the server rewinds further by as much.
#[test]
fn another_lerp_moves_the_rewind() {
    let folder = folder();
    let rewinds = |options: &str| -> Vec<i64> {
        let rows = folder.done(&format!("export duel.hitlog --table shots {options}"));
        let rows = rows.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("JSON"));
        rows.map(|row| row["rewind_us"].as_i64().expect("a rewind")).collect()
    };
    let recorded = rewinds("");
    for what_if in ["replay", "rejudge"] {
        let later = rewinds(&format!("--set interpolation.lerp_ms=100 --what-if {what_if}"));
        assert_eq!(later, recorded.iter().map(|rewind| rewind + 50_000).collect::<Vec<_>>(), "{what_if}");
    }
    let replayed = folder.json("replay duel.hitlog --set interpolation.lerp_ms=100");
    let [median, most] = ["p50", "p95"].map(|part| replayed["shots"]["view_error_units"][part].as_f64().expect(part));
    assert!(median < 0.01 && most < 0.5, "{}", replayed["shots"]);
    let diff = folder.run("diff duel.hitlog --b-set interpolation.lerp_ms=100 --what-if rejudge");
    assert_eq!(code(&diff), 1, "{}", text(&diff.stdout));
}

/// A demo has only the hits that the server reported, without usercmds. Each has a name, and nothing judges them again.
#[test]
fn reported_hits_of_a_demo_have_names_and_are_not_compared() {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    folder.done(&format!("import quake3-demo {fixtures}/duel.dm_71 -o duel.hitlog"));
    let list = folder.refused("why duel.hitlog p0");
    assert!(list.contains("p0 fired p0#0, p0#0.1, p0#0.2, ") && list.contains("and 9 more"), "{list}");
    let why = folder.done("why duel.hitlog p0#0.3");
    assert!(why.starts_with("shot p0#0.3 (machinegun) at "), "{why}");
    for on in ["", "--on hits"] {
        let output = folder.run(&format!("diff duel.hitlog --b-set lag_compensation.enabled=false {on}"));
        assert_eq!(code(&output), 125, "{on}");
        let output = text(&output.stdout);
        assert!(output.contains("no shot was judged, so hits were not compared: the replay has no server"), "{output}");
        assert!(!output.contains("changed nothing"), "{output}");
    }
    // A golden of no usercmds shows nothing, so no command advises to accept one.
    let verified = text(&folder.run("verify duel.hitlog --accept").stdout);
    assert!(verified.contains("no golden") && !verified.contains("--accept"), "{verified}");
    // A part has the samples of its states.
    let samples = |part: &str| -> u64 {
        let modes = folder.json(&format!("replay duel.hitlog {part}"))["interpolation"].clone();
        modes["off"]["samples"].as_u64().expect("samples")
    };
    assert_eq!(samples("--to 15") + samples("--from 15"), samples(""));
    assert!(samples("--to 15") > 100 && samples("--from 15") > 100);
}

/// A replay of the clients alone sends nothing, so the exported packets and snapshots are the recorded ones.
#[test]
fn recorded_packets_and_snapshots_are_exported() {
    let folder = folder();
    let info = folder.json("info duel.hitlog");
    let shapes = folder.done("export duel.hitlog");
    for (table, direction) in [("packets", "packets_up"), ("snapshots", "packets")] {
        let rows = folder.done(&format!("export duel.hitlog --table {table}"));
        let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        assert!(rows.len() > 1_000, "{} rows of {table}", rows.len());
        assert_eq!(info[direction]["sent"], rows.len(), "{info}");
        assert!(shapes.lines().any(|line| line.trim_start().starts_with(table)), "{shapes}");
    }
}

/// Without the map, hitreg predicts nothing and knows only the shots that hit. It says so, and a golden still detects
/// changes of the result.
#[test]
fn a_session_without_its_map_is_compared_with_a_golden() {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    folder.done(&format!(
        "import quake3-udp {fixtures}/duel.trace.zst --server-log {fixtures}/duel.server.log -o duel.hitlog"
    ));
    let message = folder.done("replay duel.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("21 hits reported by the recorded server; misses are not known"), "{message}");
    assert!(message.contains("none of the 21 without projectiles can be judged: this needs a capture"), "{message}");
    assert!(message.contains("corrections not known"), "{message}");
    let unknown = folder.json("info duel.hitlog --replay")["shots_unknown"].clone();
    assert_eq!(unknown, "21 hits that the recorded server reported; misses are not known");
    // A hit is one shot, however many of its pellets have results.
    let mut session = read_session(&std::fs::read(folder.path("duel.hitlog")).expect("a log")[..]).expect("sound");
    let judged = &mut session.players.iter_mut().find(|player| !player.judged.is_empty()).expect("hits").judged;
    judged.insert(1, judged[0]);
    folder.save_log("pellets.hitlog", &session);
    let unknown =
        ["", " --replay"].map(|replay| folder.json(&format!("info pellets.hitlog{replay}"))["shots_unknown"].clone());
    let reported = "21 hits that the recorded server reported; misses are not known";
    assert_eq!(unknown, ["22 shot results of the recorded server; run with --replay to count the shots", reported]);
    assert_eq!(folder.json("replay pellets.hitlog")["shots"]["reported"], 21);
    // Only hits are known, so there is no hit rate.
    let replay = folder.json("replay duel.hitlog");
    let counts = ["reported", "fired", "hit"].map(|count| replay["shots"][count].as_u64());
    assert_eq!(counts, [Some(21), None, None]);
    assert_eq!(["shots", "hits"].map(|count| &replay["exercised"][count]), [&serde_json::Value::Null; 2]);
    let sweep = folder.json("sweep duel.hitlog --set interpolation.lerp_ms=50,100");
    assert!(sweep["rows"][0]["shots"].is_null() && sweep["rows"][0]["hit_share"].is_null(), "{sweep:#}");
    let output = folder.run("verify duel.hitlog");
    assert_eq!(code(&output), 125);
    assert!(text(&output.stdout).contains("next: ") && text(&output.stdout).contains("--accept"));
    let accepted = folder.json("verify duel.hitlog --accept");
    let log = &accepted["logs"][0];
    assert!(log["verdict"] == "accepted" && log["why"].is_null() && log["detail"].is_null(), "{accepted:#}");
    assert_eq!(folder.json("verify duel.hitlog")["logs"][0]["golden"], "compared");
    // Hits of a gun are not projectile impacts, even with several hits for one usercmd.
    let rows = folder.done("export duel.hitlog --table shots");
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert!(rows.iter().all(|row| row["index"] == 0 && row["impact"] == 0), "{rows:?}");
    // Nobody knows the rewind of these hits.
    assert!(rows.iter().all(|row| row["rewind_us"].is_null() && row["limit"].is_null()), "{rows:?}");
    assert!(rows.iter().all(|row| row["damage"] == 7), "{rows:?}");
    // They have the times and usercmds that they have with the map.
    let with_map = self::folder().done("export duel.hitlog --table shots");
    let with_map = with_map.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("JSON"));
    let hits: Vec<_> = with_map.filter(|row| row["given_target"] != "none").collect();
    let place = |row: &serde_json::Value| ["shooter", "command", "index", "at_us", "tick"].map(|of| row[of].clone());
    assert_eq!(rows.iter().map(place).collect::<Vec<_>>(), hits.iter().map(place).collect::<Vec<_>>());
    // Nothing is judged again, so other rules of judging are not answered.
    for setting in ["lag_compensation.enabled=false", "interpolation.lerp_ms=100"] {
        let diff = folder.run(&format!("diff duel.hitlog --b-set {setting} --what-if rejudge"));
        let output = text(&diff.stdout);
        assert_eq!(code(&diff), 125, "{output}");
        assert!(output.contains("no shot was judged, so a replay cannot answer"), "{output}");
        assert!(!output.contains("changed nothing"), "{output}");
    }
    let hit = &rows[0];
    let why = folder.done(&format!("why duel.hitlog p{}#{}", hit["shooter"], hit["command"]));
    assert!(why.starts_with("shot p") && !why.contains("projectile"), "{why}");
    assert!(why.contains("recorded      the recorded server reported a hit on p1 for 7"), "{why}");
    // The log does not contain the rewind, so `why` tests no other setting.
    assert!(why.contains("rewound       not known") && why.contains("rewind limit  not known"), "{why}");
    assert!(!why.contains("under other settings"), "{why}");
    let (_, contents) = page(&folder, "duel.hitlog");
    let shots = contents["sides"][0]["shots"].as_array().expect("shots").clone();
    let is_reported = |shot: &serde_json::Value| {
        shot["is_reported"] == true && shot["judged"]["rewind_us"].is_null() && shot["rejudged"].is_null()
    };
    assert!(!shots.is_empty() && shots.iter().all(is_reported), "{shots:#?}");
    // JSON also has no verdict for these shots, and no jumps of players without prediction.
    let page = folder.done("replay duel.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!page.contains("view error"), "{page}");
    let replay = folder.json("replay duel.hitlog");
    assert!(replay["hits_again"].as_array().expect("a list").iter().all(|hit| hit["judged"].is_null()), "{replay:#}");
    assert!(replay["jumps"].is_null(), "{replay:#}");
}

/// A map of another name is refused without `--force-map`.
#[test]
fn another_map_than_the_sessions_is_refused() {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena/hitreg_room.bsp"), folder.path("q3dm6.bsp"))
        .expect("a copy");
    let import = format!("import quake3-udp {fixtures}/duel.trace.zst -o duel.hitlog --map q3dm6.bsp");
    let why = folder.refused(&import);
    assert!(why.contains("q3dm6.bsp: the session was played on `hitreg_room`") && why.contains("--force-map"), "{why}");
    folder.done(&format!("{import} --force-map"));
}

/// hitreg notices a server log of another session or without damage lines.
#[test]
fn a_server_log_of_another_session_is_noticed() {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    let import = format!("import quake3-udp {fixtures}/duel.trace.zst -o duel.hitlog --force --server-log");
    let output = folder.done(&format!("{import} {fixtures}/duel.server.log"));
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("damage lines, 21 of them reported to a shooter"), "{output}");
    assert!(!output.contains("of another session"), "{output}");
    std::fs::write(folder.path("quiet.log"), "0: client connected\n").expect("a file");
    let refused = folder.run(&format!("{import} quiet.log"));
    let why = text(&refused.stderr);
    assert!(code(&refused) != 0 && why.contains("quiet.log: it has no damage lines"), "{why}");
    std::fs::write(folder.path("other.log"), "900: client:1 health:100 damage:7 armor:0\n".repeat(30)).expect("a file");
    let output = folder.done(&format!("{import} other.log"));
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("0 damage lines, 0 of them reported to a shooter"), "{output}");
    assert!(output.contains("not imported: 30 damage lines that no decoded snapshot follows"), "{output}");
    assert!(output.contains("fewer than half of the reported hits: it may be of another session"), "{output}");
}

/// Snapshots differ from earlier ones, so a capture with gaps has few that can be read.
#[test]
fn a_capture_with_gaps_is_noticed() {
    let folder = Folder::empty();
    let packed =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena/duel.trace.zst")).expect("a file");
    let mut capture = CaptureReader::new(&packed[..]).expect("a capture");
    let mut bytes = b"UDPTRC1\n".to_vec();
    let mut number = 0;
    while let Some(datagram) = capture.read().expect("a datagram") {
        number += 1;
        if number < 100 || number % 10 != 0 {
            bytes.extend(datagram.at_ns.to_le_bytes());
            bytes.push(datagram.direction as u8);
            bytes.extend(datagram.client.to_le_bytes());
            bytes.extend((datagram.bytes.len() as u16).to_le_bytes());
            bytes.extend(datagram.bytes);
        }
    }
    std::fs::write(folder.path("gaps.trace"), bytes).expect("a file");
    let output = folder.done("import quake3-udp gaps.trace -o duel.hitlog");
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        output.contains("over 5 % of the datagrams cannot be decoded, mostly because the capture lacks the snapshots"),
        "{output}"
    );
}

#[test]
fn an_import_that_cannot_be_written_leaves_nothing() {
    let folder = Folder::empty();
    let fixtures = word(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena"));
    // Files may have at most some kilobytes.
    let line = format!(
        "trap '' XFSZ; ulimit -f 8; exec {} import quake3-udp {fixtures}/duel.trace.zst -o duel.hitlog",
        word(env!("CARGO_BIN_EXE_hitreg"))
    );
    let output = Command::new("sh").args(["-c", &line]).current_dir(&folder.dir).output().expect("a shell");
    let said = text(&output.stderr);
    assert_eq!((code(&output), said.contains("recover")), (128, false), "{said}");
    assert!(said.contains("duel.hitlog"), "{said}");
    assert_eq!(std::fs::read_dir(&folder.dir).expect("a folder").count(), 0, "{said}");
}
