//! `merge` of files, which it streams, and of pipes, which it reads into memory.

use std::fs;
use std::process::Stdio;

use hitreg::log::read_session;
use hitreg::record::{
    ArrivalRecord, CellKind, Class, ClassId, FieldSchema, GapRecord, HitResult, Origin, PacketRecord, PlayerRecords,
    Record, RecordedSide, Scope, Session, SessionId, ShotRecord, SnapshotRecord,
};
use hitreg::recorder::{Description, Recorder, RecorderOptions};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};
use serde_json::Value;

use super::folder::{Folder, code, text};
use super::sides;

/// Merges, with the server's log through a pipe.
fn piped(folder: &Folder, line: &str) -> Value {
    let server = fs::read(folder.path("server.hitlog")).expect("a log");
    let mut child = folder
        .command(&format!("{line} --format json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hitreg starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let fed = std::thread::spawn(move || std::io::Write::write_all(&mut pipe, &server));
    let output = child.wait_with_output().expect("it ends");
    fed.join().expect("a thread").expect("all of it is read");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON alone on stdout")
}

/// Compares the reports of two merges, except for the paths.
fn assert_alike(mut one: Value, mut other: Value) {
    for output in [&mut one, &mut other] {
        output["path"] = Value::Null;
    }
    assert_eq!(one, other);
}

#[test]
fn streamed_logs_merge_as_logs_in_memory_do() {
    let folder = Folder::empty();
    sides::write(9.0, 3, folder.dir.path()).expect("a session");
    let clients = "client0.hitlog client1.hitlog client2.hitlog";
    let streamed = folder.json(&format!("merge {clients} server.hitlog -o a.hitlog"));
    let in_memory = piped(&folder, &format!("merge {clients} - -o b.hitlog"));
    let log = |name: &str| fs::read(folder.path(name)).expect("a log");
    assert!(log("a.hitlog") == log("b.hitlog"));
    assert!(streamed["ticks"].as_u64().is_some_and(|ticks| ticks > 500) && streamed["ends_early"].is_null());
    assert_eq!(streamed["cut_off"], serde_json::json!([]));
    assert_alike(streamed, in_memory);
    assert!(folder.done("verify a.hitlog").contains("1 ok"));

    // One log is truncated and one is missing.
    let whole = log("client1.hitlog");
    fs::write(folder.path("client1.hitlog"), &whole[..whole.len() / 2]).expect("written");
    let streamed = folder.json("merge client0.hitlog client1.hitlog server.hitlog -o c.hitlog");
    let in_memory = piped(&folder, "merge client0.hitlog client1.hitlog - -o d.hitlog");
    assert!(log("c.hitlog") == log("d.hitlog"));
    assert_eq!(streamed["cut_off"], serde_json::json!(["client1.hitlog"]));
    let ends_early = &streamed["ends_early"];
    let [at_us, without_us] = ["at_us", "without_us"].map(|key| ends_early[key].as_i64().expect("a time"));
    assert_eq!(ends_early["player"], 1);
    assert_eq!(streamed["clients"][2]["path"], Value::Null);
    assert!(streamed["clients"][2]["usercmds"].is_null() && streamed["clients"][0]["usercmds"].is_u64());
    let rest = folder.json("merge client0.hitlog server.hitlog -o rest.hitlog");
    let kept_us = rest["duration_us"].as_i64().zip(streamed["duration_us"].as_i64()).map(|(rest, cut)| rest - cut);
    assert!(kept_us.is_some_and(|kept| (kept - (without_us - at_us)).abs() < 100_000), "{kept_us:?} {ends_early}");
    let page = folder.done("merge client0.hitlog client1.hitlog server.hitlog -o page.hitlog");
    assert!(page.contains("without client1.hitlog, the merge keeps 9.0 s: leave this log out"), "{page}");
    assert_alike(streamed, in_memory);
    assert!(folder.done("verify c.hitlog").contains("1 ok"));
}

/// The server heard the usercmds of a client without a log.
#[test]
fn usercmds_of_a_client_without_a_log_count() {
    let folder = Folder::empty();
    sides::write(9.0, 3, folder.dir.path()).expect("a session");
    folder.json("merge client0.hitlog client1.hitlog server.hitlog -o m.hitlog");
    for log in ["server.hitlog", "m.hitlog"] {
        let (info, replayed) = (folder.json(&format!("info {log}")), folder.json(&format!("replay {log}")));
        let exercised = &replayed["exercised"];
        assert!(info["usercmds"].as_u64().is_some_and(|usercmds| usercmds > 1_000), "{info:#}");
        assert_eq!(exercised["usercmds"], info["usercmds"], "{log}");
        assert!(exercised["active_usercmds"].as_u64() > Some(900), "{exercised:#}");
    }
    // A part counts what was due on the server.
    let part = |log: &str| {
        let part = folder.json(&format!("replay {log} --from 2 --to 6"));
        part["exercised"]["usercmds"].as_u64().expect("a number")
    };
    let (heard, merged) = (part("server.hitlog"), part("m.hitlog"));
    assert!(heard > 500 && heard.abs_diff(merged) < heard / 50, "{heard} {merged}");
    let refused = folder.refused("keyframes m.hitlog -o k.hitlog --every 5");
    assert!(refused.contains("because it has only what the server received from p2: merge"), "{refused}");
}

/// No replay shows what a setting of a client does if the client's log is missing.
#[test]
fn settings_of_clients_without_a_log_are_untestable() {
    let folder = Folder::empty();
    sides::write(6.0, 2, folder.dir.path()).expect("a session");
    folder.json("merge client0.hitlog server.hitlog -o part.hitlog");
    folder.json("merge client0.hitlog client1.hitlog server.hitlog -o all.hitlog");
    for (line, expected) in [
        ("server.hitlog --b-set interpolation.lerp_ms=0", 125),
        ("server.hitlog --b-set p1.client.redundancy=1", 125),
        ("server.hitlog --b-set interpolation.lerp_ms=0 --b-set lag_compensation.enabled=false", 1),
        ("part.hitlog --b-set p1.interpolation.lerp_ms=0", 125),
        ("part.hitlog --b-set interpolation.lerp_ms=0", 1),
        ("all.hitlog --b-set p1.interpolation.lerp_ms=0", 1),
    ] {
        let output = folder.run(&format!("diff {line}"));
        let page = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code(&output), expected, "{line}: {page}");
        let is_named = page.contains("the log lacks the clients that use these settings");
        assert_eq!(is_named, expected == 125 || line.contains("enabled"), "{line}: {page}");
    }
    assert_eq!(code(&folder.run("bisect ticks server.hitlog --b-set interpolation.lerp_ms=0")), 125);
    let lacks = "the log lacks the clients that use these settings, so a replay cannot answer interpolation.lerp_ms";
    let replayed = folder.json("replay server.hitlog --set interpolation.lerp_ms=0");
    assert_eq!(replayed["unanswered"], serde_json::json!([lacks]));
    let swept = |rest: &str| folder.json(&format!("sweep server.hitlog --set interpolation.lerp_ms=0,50 {rest}"));
    assert_eq!(swept("")[1]["unanswered"], lacks);
    // Another log that can answer does not make the sums an answer.
    let both = folder.json("sweep server.hitlog all.hitlog --set interpolation.lerp_ms=0,50");
    assert_eq!(both[1]["unanswered"], lacks);
    assert!(folder.json("sweep all.hitlog --set interpolation.lerp_ms=0,50")[1]["unanswered"].is_null());
    // The time by which the server rewinds a shot depends on the setting.
    assert!(swept("--what-if rejudge")[1]["unanswered"].is_null());
}

/// A page about the server's own log reports that log alone. It does not report packets to clients as lost.
#[test]
fn a_servers_own_log_shows_only_what_it_contains() {
    let folder = Folder::empty();
    sides::write(6.0, 2, folder.dir.path()).expect("a session");
    let usercmds = folder.json("info server.hitlog")["usercmds"].as_u64().expect("a number");
    let output = folder.json("replay server.hitlog");
    assert!(usercmds > 100 && output["exercised"]["usercmds"] == usercmds, "{output:#}");
    let (up, down) = (&output["network"]["up"], &output["network"]["down"]);
    assert!(down["sent"].as_u64() > Some(10) && down["lost"].is_null() && down["in_flight"].is_null(), "{output:#}");
    assert!(["sent", "lost", "in_flight"].iter().all(|count| up[count].is_null()), "{output:#}");
    assert_eq!([&up["players_unknown"], &down["players_unknown"]], [2, 2]);
    assert!(output["network"]["usercmds_per_packet"].is_null(), "{output:#}");
    let shots = &output["shots"];
    assert!(shots["fired"].as_u64() > Some(0) && shots["rewound"].is_u64(), "{output:#}");
    for screen in ["predicted", "predicted_hit", "agreed", "not_run"] {
        assert!(shots[screen].is_null(), "{screen}: {output:#}");
    }
    let page = folder.done("replay server.hitlog");
    for text in ["the log has no packets of clients", "arrivals not known", "no prediction of a shot"] {
        assert!(page.contains(text), "{page}");
    }
    assert_eq!(folder.json("verify server.hitlog")["logs"][0]["verdict"], "same");

    // No prediction was compared, so corrections are not known, wherever they are counted.
    let swept = folder.json("sweep server.hitlog --set interpolation.lerp_ms=50");
    assert!(["corrections", "up_bytes_per_s"].iter().all(|figure| swept[0][figure].is_null()), "{swept:#}");
    assert!(swept[0]["shots"].is_u64() && swept[0]["down_bytes_per_s"].is_number(), "{swept:#}");
    // Nor does the log change the share of corrections of other logs.
    folder.done("merge server.hitlog client0.hitlog client1.hitlog -o all.hitlog");
    let corrections = folder.json("replay all.hitlog")["exercised"]["corrections"].as_u64().expect("a number");
    let share = format!("corrections={:.3}%", 100.0 * (corrections as f64 - 0.5) / usercmds as f64);
    for logs in ["all.hitlog", "all.hitlog server.hitlog"] {
        let swept = folder.run(&format!("sweep {logs} --set lag_compensation.max_unlag_ms=200 --max {share}"));
        assert_eq!(code(&swept), 1, "{logs}: {}", text(&swept.stdout));
    }
    // The bytes that clients send are an average of the clients whose packets are known.
    folder.done("merge server.hitlog client0.hitlog -o one.hitlog");
    folder.done("merge server.hitlog client1.hitlog -o other.hitlog");
    let bytes_sent = |logs: &str| {
        let swept = folder.json(&format!("sweep {logs} --set lag_compensation.max_unlag_ms=200"));
        swept[0]["up_bytes_per_s"].as_f64().expect("a number")
    };
    let of_all = bytes_sent("all.hitlog");
    for logs in ["all.hitlog server.hitlog", "one.hitlog other.hitlog"] {
        let share = bytes_sent(logs) / of_all;
        assert!((share - 1.0).abs() < 0.02, "{logs}: {share}");
    }
    fs::create_dir(folder.path("logs")).expect("a folder");
    fs::copy(folder.path("server.hitlog"), folder.path("logs/server.hitlog")).expect("copied");
    for (command, known) in [
        ("verify logs --verbose", "corrections not known"),
        ("diff logs --b-set lag_compensation.max_unlag_ms=400", "corrections, share of usercmds - -"),
    ] {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let [first, reused] = [(); 2].map(|()| words(folder.done(&format!("{command} --results kept"))));
        assert!(first.contains(known) && !first.contains("0 corrections"), "{command}: {first}");
        assert_eq!(first, reused, "{command}");
    }
    let rows = fs::read_to_string(folder.path("kept/results.jsonl")).expect("rows");
    for side in ["a", "b"] {
        let unknown = format!("\"corrections_{side}\":null");
        assert!(rows.contains(&unknown) && !rows.contains(&format!("\"corrections_{side}\":0")), "{rows}");
    }
    let counted = format!("\"usercmds\":{usercmds},");
    assert_eq!(rows.matches(&counted).count(), rows.matches("\"row\":\"log\"").count(), "{rows}");
}

/// A client's own log does not say which usercmds the server ran, and has the times of the client's clock.
#[test]
fn a_clients_own_log_does_not_know_what_was_judged() {
    let folder = Folder::with_session();
    let hits = |player: &u16| {
        folder.save_log("client.hitlog", &client_side(&folder, *player));
        folder.json("replay client.hitlog")["shots"]["predicted_hit"] != 0
    };
    let player = (0..4).find(hits).expect("a player with a hit");
    for replay in ["replay client.hitlog", "replay a.hitlog --mode open"] {
        let shots = &folder.json(replay)["shots"];
        for name in ["fired", "launched", "impacts", "not_run", "hit", "agreed", "rewound", "view_error_units"] {
            assert!(shots[name].is_null(), "{name} of {shots}");
        }
        assert!(shots["predicted"].as_u64() > shots["predicted_hit"].as_u64(), "{shots}");
        let exported = folder.done(&format!("{} --table shots", replay.replacen("replay", "export", 1)));
        assert!(exported.contains("no server") && !exported.contains("not run"), "{exported}");
        let page = folder.done(replay);
        assert!(page.contains("server        not known: the replay has no server"), "{page}");
        assert!(!page.contains("not run") && !page.contains("0 shots"), "{page}");
    }
    let replayed = folder.json("replay client.hitlog");
    assert!(replayed["fairness"].is_null(), "{replayed:#}");
    assert_eq!([&replayed["exercised"]["shots"], &replayed["exercised"]["hits"]], [&Value::Null; 2]);
    folder.done("verify client.hitlog --accept");
    let golden = fs::read_to_string(folder.path("client.golden")).expect("a golden");
    let on_screen = format!("shots hit on screen      {:>9}\n", replayed["shots"]["predicted_hit"].to_string());
    assert!(golden.contains(&on_screen) && golden.contains("; on screen: hit"), "{golden}");
    for unknown in ["shots fired", "not run", "shots hit  "] {
        assert!(!golden.contains(unknown), "{unknown}: {golden}");
    }
    // The server's acks in the log are no replay that could be side A.
    fs::create_dir(folder.path("logs")).expect("a folder");
    fs::copy(folder.path("client.hitlog"), folder.path("logs/client.hitlog")).expect("copied");
    let corpus = folder.json("diff logs");
    assert!(corpus["a"].is_null() && corpus["b"]["corrections"].is_u64(), "{corpus:#}");
    let several = folder.done("replay a.hitlog client.hitlog --mode open");
    assert_eq!(several.lines().filter(|line| line.contains("  -     -")).count(), 3, "{several}");
    let swept = folder.json("sweep client.hitlog --set interpolation.lerp_ms=50");
    let row = &swept[0];
    for name in ["shots", "launched", "impacts", "not_run", "hits", "hit_share"] {
        assert!(row[name].is_null(), "{name} of {row}");
    }
    assert!(row["usercmds"].as_u64() > Some(0), "{row}");

    let listed = folder.refused(&format!("why client.hitlog p{player}"));
    let (_, line) = listed.trim().rsplit_once("hitreg ").expect("a command");
    let shot = &folder.json(line)["shot"];
    assert!(shot["judged"].is_null() && shot["server"]["reason"] == "", "{shot}");
    let why = folder.done(line).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("Not judged here, because the log is one client's side, without the server."), "{why}");
    assert!(why.contains("Merge it with the server's log (`hitreg merge`)"), "{why}");

    // Only times of one clock have a difference.
    let ages = |line: &str| -> Vec<Value> {
        let (_, page) = super::report::page(&folder, line);
        let shots = page["sides"][0]["shots"].as_array().expect("shots").iter();
        let drawn = shots.filter(|shot| shot["shooter"] == player && !shot["drawn"].is_null());
        drawn.map(|shot| shot["drawn"]["age_us"].clone()).collect()
    };
    let (own, whole) = (ages("client.hitlog"), ages("a.hitlog --open"));
    assert!(!own.is_empty() && own.iter().all(Value::is_null), "{own:?}");
    assert!(!whole.is_empty() && whole.iter().all(|age| age.as_i64() > Some(0)), "{whole:?}");
}

/// The log that a client of the folder's session leaves. The client's clock is half a second behind the server's.
fn client_side(folder: &Folder, player: u16) -> Session {
    let mut session = read_session(&fs::read(folder.path("a.hitlog")).expect("a log")[..]).expect("a session");
    session.header.origin = Origin::Live;
    session.header.side = Some(RecordedSide { session: SessionId(1), player: Some(PlayerId(player)) });
    session.ticks.clear();
    for (index, records) in session.players.iter_mut().enumerate() {
        let all = std::mem::take(records);
        if index == usize::from(player) {
            let (frames, sent, received) = (all.frames, all.sent, all.received);
            *records = PlayerRecords { frames, sent, received, ..PlayerRecords::default() };
            records.streams_mut().into_iter().for_each(|stream| stream.move_by(Micros::from_ms(-500)));
            records.snapshots = all.snapshots;
        }
    }
    session
}

/// Packets to a player without a client's log are not in flight, because their arrivals are not known.
#[test]
fn packets_of_missing_client_logs_do_not_count() {
    let folder = Folder::empty();
    sides::write(9.0, 3, folder.dir.path()).expect("a session");
    folder.done("merge server.hitlog client0.hitlog client1.hitlog client2.hitlog -o all.hitlog");
    folder.done("merge server.hitlog client0.hitlog -o one.hitlog");
    let [all, one] = ["all", "one"].map(|log| folder.json(&format!("info {log}.hitlog")));
    let down = &folder.json("replay one.hitlog")["network"]["down"];
    for packets in ["packets", "packets_up"] {
        assert_eq!(one[packets], all["by_player"][0][packets], "{packets}");
    }
    for count in ["sent", "lost"] {
        assert_eq!(down[count], one["packets"][count], "{count} of {down}");
    }
    for way in ["up", "down"] {
        let unknown =
            |log: &str| folder.json(&format!("replay {log}.hitlog"))["network"][way]["players_unknown"].clone();
        assert_eq!([unknown("one"), unknown("all")], [2, 0], "{way}");
    }
    let page = folder.done("replay one.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
    for way in ["packets", "arrivals"] {
        assert!(page.contains(&format!("; {way} of 2 other players not known")), "{page}");
    }
}

/// The client of p0 recorded. Of p1 there is only what the server received.
#[test]
fn a_missing_log_changes_only_what_is_said_of_its_player() {
    let folder = Folder::empty();
    let record = |name: &str, begins: u32, side: fn(Description) -> Description| {
        let health = FieldSchema::new("health", CellKind::I32, Scope::Status);
        let about = Description::new("mygame").tick_hz(100).player("p0").player("p1");
        let about = side(about.class(Class::new("player", vec![health])));
        let recorder = Recorder::create(&folder.path(name), about, RecorderOptions::patient()).unwrap();
        let (mut stream, first) = (recorder.stream(), PlayerId(0));
        let is_server = name == "server.hitlog";
        for number in begins..=100 {
            let (at, command) = (Micros::from_ms(10 * i64::from(number)), CommandSeq(number));
            let before = |ms| at - Micros::from_ms(ms);
            for player in if is_server { vec![first, PlayerId(1)] } else { vec![first] } {
                let made = before(if is_server { 4 } else { 6 });
                stream.usercmd(player, made, Usercmd { seq: command, ..Usercmd::default() }).unwrap();
                let shot = ShotRecord { at, command, reason: HitResult::Hit, ..ShotRecord::default() };
                if is_server && number == 5 {
                    stream.push(Record::Judged(player, shot)).unwrap();
                }
            }
            let snapshot =
                SnapshotRecord { at, seq: SnapshotSeq(number), tick: Tick(number), ack: command, ..Default::default() };
            let packet = PacketRecord { number, at: before(5), newest: command, count: 1, ..PacketRecord::default() };
            let arrived = |at: Micros| ArrivalRecord { number, at };
            let packets = match is_server {
                true => [Record::Reached(first, arrived(before(4))), Record::Snapshot(first, snapshot)],
                false => [Record::Sent(first, packet), Record::Received(first, arrived(at + Micros::from_ms(1)))],
            };
            packets.into_iter().for_each(|record| stream.push(record).unwrap());
            if begins > 1 {
                stream.body(Tick(number), EntityId(1), ClassId(0), &[100]).unwrap();
            }
            if is_server {
                stream.tick(Tick(number), at, None).unwrap();
            }
        }
        recorder.finish().unwrap();
    };
    record("server.hitlog", 1, |about| about.server_side(3).usercmds_as_received());
    record("client0.hitlog", 1, |about| about.client_side(3, PlayerId(0)));
    folder.done("merge server.hitlog client0.hitlog -o m.hitlog");
    let usercmd = |shot: &str| {
        let page = folder.done(&format!("why m.hitlog {shot}"));
        let line = page.lines().find(|line| line.trim_start().starts_with("usercmd")).map(str::to_owned);
        line.unwrap_or(page)
    };
    assert!(usercmd("p0#5").contains("#5, made at 0.044 s"), "{}", usercmd("p0#5"));
    assert!(usercmd("p1#5").contains("#5, arrived at 0.046 s"), "{}", usercmd("p1#5"));
    let info = folder.done("info m.hitlog");
    assert!(info.contains("usercmds      200, those of p1 with the times of their arrivals\n"), "{info}");
    assert!(info.contains("round trip: from making a usercmd to receiving its ack\n"), "{info}");

    // A log with states begins late. Arrivals before it are not known.
    record("late0.hitlog", 61, |about| about.client_side(3, PlayerId(0)));
    let page = folder.done("merge server.hitlog late0.hitlog -o late.hitlog");
    assert!(page.contains("p0: the client's log begins late, and the server's log provides"), "{page}");
    assert!(page.contains("p0: the client's log has states, which are left out"), "{page}");
    let info = folder.done("info late.hitlog");
    assert!(info.contains("200, those of p0 up to #60, p1 with the times of their arrivals\n"), "{info}");
    let info = folder.json("info late.hitlog");
    let [gap, packets] = [&info["gaps"], &info["packets"]];
    assert_eq!([&packets["sent"], &packets["lost"]].map(Value::as_u64), [Some(40), Some(0)], "{packets}");
    assert_eq!((gap.as_array().map(Vec::len), gap[0]["player"].as_u64()), (Some(1), Some(0)), "{gap}");
}

/// Parts of a rotation have the settings of their place. Client p0 recorded from before the part on, and the log of its
/// usercmds has a gap.
#[test]
fn parts_gaps_and_contradictions_of_logs_are_named() {
    let folder = Folder::empty();
    let record = |name: &str, side: fn(Description) -> Description, after: u32, lies: bool, pauses: bool| {
        let health = FieldSchema::new("health", CellKind::I32, Scope::Status);
        let mut about = Description::new("mygame").tick_hz(100).player("p0").player("p1").player("p2").player("p3");
        if after > 0 {
            about = about.setting("recorder.begins_after_tick", after.to_string());
        }
        let about = side(about.class(Class::new("player", vec![health])));
        let is_server = name.starts_with("server");
        let recorder = Recorder::create(&folder.path(name), about, RecorderOptions::patient()).unwrap();
        let mut stream = recorder.stream();
        for number in after + 1..=100 {
            let (at, command) = (Micros::from_ms(10 * i64::from(number)), CommandSeq(number));
            let before = |ms| at - Micros::from_ms(ms);
            let input = Input { buttons: if lies { 2 } else { 1 }, ..Input::default() };
            let usercmd = || Usercmd { seq: command, input: input.clone(), ..Usercmd::default() };
            if pauses && number == 61 {
                let gap = GapRecord { from: Micros::from_ms(494), to: Micros::from_ms(604), ..GapRecord::default() };
                stream.push(Record::Gap(gap)).unwrap();
            }
            for player in (0..if is_server { 4 } else { 1 }).map(PlayerId) {
                let packet =
                    PacketRecord { number, at: before(5), newest: command, count: 1, ..PacketRecord::default() };
                let snapshot =
                    SnapshotRecord { at, seq: SnapshotSeq(number), tick: Tick(number), ..Default::default() };
                let arrived = |at: Micros| ArrivalRecord { number, at };
                let records = match is_server {
                    true => vec![Record::Reached(player, arrived(before(3))), Record::Snapshot(player, snapshot)],
                    false => {
                        vec![Record::Sent(player, packet), Record::Received(player, arrived(at + Micros::from_ms(2)))]
                    }
                };
                if is_server || !pauses || !(50..=60).contains(&number) {
                    stream.usercmd(player, before(if is_server { 3 } else { 6 }), usercmd()).unwrap();
                    records.into_iter().for_each(|record| stream.push(record).unwrap());
                }
            }
            if is_server {
                stream.tick(Tick(number), at, None).unwrap();
            }
        }
        recorder.finish().unwrap();
    };
    let server: fn(Description) -> Description = |about| about.server_side(3).usercmds_as_received();
    let client: fn(Description) -> Description = |about| about.client_side(3, PlayerId(0));
    record("server.hitlog", server, 0, false, false);
    record("server-2.hitlog", server, 50, false, false);
    record("c0.hitlog", client, 0, false, false);
    record("gap.hitlog", client, 0, false, true);
    record("liar.hitlog", client, 0, true, false);

    let merged = folder.json("merge server-2.hitlog c0.hitlog -o part.hitlog");
    assert_eq!((&merged["clients"][0]["usercmds"], &merged["usercmds"]), (&50.into(), &200.into()), "{merged:#}");
    let info = folder.json("info part.hitlog");
    let lost = ["packets", "packets_up"].map(|way| [info[way]["sent"].as_u64(), info[way]["lost"].as_u64()]);
    assert_eq!(lost, [[Some(50), Some(0)]; 2], "{info:#}");

    let page = folder.done("merge server.hitlog gap.hitlog -o g.hitlog");
    assert!(!page.contains("ends early"), "{page}");
    assert!(page.contains("records of p0 are missing from 0:00.49"), "{page}");
    assert!(page.contains("verify judges the session up to 0:00.49"), "{page}");
    assert!(page.contains("a merge without gap.hitlog keeps"), "{page}");
    let merged = folder.json("merge server.hitlog gap.hitlog -o g.hitlog --force");
    assert_eq!((&merged["gaps"][0]["player"], &merged["clients"][0]["without_us"]), (&0.into(), &1_000_000.into()));
    let info = folder.json("info g.hitlog");
    assert_eq!((&info["usercmds"], &info["gaps"][0]["player"]), (&400.into(), &0.into()), "{info:#}");

    let page = folder.done("merge server.hitlog liar.hitlog -o l.hitlog");
    assert!(page.contains("100 of 100 usercmds that the server received differ in liar.hitlog"), "{page}");
    assert!(page.contains("may be of another run") && !page.contains("missing"), "{page}");
    let output = folder.refused("merge server.hitlog server-2.hitlog c0.hitlog -o none");
    assert!(output.contains("or another part of the same: merge takes one log of each side"), "{output}");
    let output = folder.refused("merge server.hitlog c0.hitlog gap.hitlog -o none");
    assert!(output.contains("merge takes one log of each side"), "{output}");

    let page = folder.done("info g.hitlog");
    assert!(page.contains("400, those of p1, p2, p3 with the times of their arrivals"), "{page}");
}
