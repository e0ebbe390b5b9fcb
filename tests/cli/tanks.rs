//! A game that hitreg does not know, with five classes, text columns, 64-bit ids, doubles and y down: each job on its logs.

use std::process::Command;

use hitreg::log::{read_session, write_trace};
use hitreg::record::{
    FrameRecord, GapCause, GapRecord, HeardRecord, PlayerRecords, RecordedSide, Session, SessionId, SnapshotRecord,
    StateKey,
};
use hitreg::trace::{ColumnData, Table, Trace};
use hitreg::units::{Micros, PlayerId, SnapshotSeq};
use serde_json::Value;

use super::folder::{Folder, code, text, word};
use super::pucks::example;

/// A folder with a session of the game, `a.hitlog`.
fn recorded(seconds: u32) -> Folder {
    let folder = Folder::empty();
    let mut record = Command::new(example("tanks"));
    let output =
        record.arg("record").arg(folder.path("a.hitlog")).arg(seconds.to_string()).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    folder
}

/// The words of a page, without its line breaks.
fn flat(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn builds() -> String {
    format!("--a {} --b {}", word(example("tanks")), word(example("tanks_bug")))
}

fn session(folder: &Folder, name: &str) -> Session {
    read_session(&std::fs::read(folder.path(name)).expect("a log")[..]).expect("readable")
}

#[test]
fn a_build_with_playback_replays_every_class_as_recorded() {
    let folder = recorded(20);
    let verified = folder.done(&format!("verify a.hitlog --build {}", word(example("tanks"))));
    assert!(verified.contains("1,000 of 1,000 tick hashes match"), "{verified}");
    let listed = folder.json("export a.hitlog");
    let tables: Vec<&str> = listed.as_array().unwrap().iter().map(|table| table["table"].as_str().unwrap()).collect();
    let classes = ["bodies", "bodies.shell", "bodies.mine", "bodies.crate", "bodies.flag"];
    assert_eq!(tables[..6], [&["ticks"][..], &classes].concat());
    folder.done("export a.hitlog --all --to csv -o tables");
    assert!(folder.path("tables/bodies.mine.csv").exists());
    let mines = folder.done("export a.hitlog --table bodies.mine --to csv");
    let names = "tick,entity,origin.x,origin.y,velocity.x,velocity.y,owner,command,ticks_left";
    assert_eq!(mines.lines().next(), Some(names), "no field of another class");
    let tank = folder.done("export a.hitlog --table bodies --to csv");
    assert!(tank.lines().any(|line| line.contains("howitzer") && line.contains("18072382354684379136")), "{tank}");
}

/// The recorded states of every class are compared with the build's, also if the tick hashes agree.
#[test]
fn a_recorded_state_of_any_class_may_differ_from_the_builds() {
    let folder = recorded(4);
    let whole = session(&folder, "a.hitlog");
    let mut classes: Vec<u16> = whole.states.keys().iter().map(|key| key.class.0).collect();
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() > 2, "{classes:?}");
    for class in classes {
        let mut changed = whole.clone();
        let of_class = |row: &usize| changed.states.keys()[*row].class.0 == class;
        let row = (0..changed.states.len()).rev().find(of_class).expect("a state of the class");
        let before: usize = (0..row).map(|row| changed.states.cells_of(row).len()).sum();
        changed.states.cells_mut()[before] ^= 1;
        folder.save_log("changed.hitlog", &changed);
        let output = folder.run(&format!("verify changed.hitlog --build {} --format json", word(example("tanks"))));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let log = &report["logs"][0];
        assert_eq!((code(&output), log["why"].as_str()), (1, Some("recorded_state")), "class {class}: {report:#}");
    }
}

/// A build whose trace has fewer or more bodies than the log, or other ones in a log without tick hashes.
#[cfg(unix)]
#[test]
fn a_build_has_the_recorded_bodies_and_no_others() {
    let folder = recorded(4);
    let mut whole = session(&folder, "a.hitlog");
    let trace = folder.path("t.hittrace");
    let replay = |trace: &std::path::Path| {
        let mut replay = Command::new(example("tanks"));
        assert!(replay.arg("replay").arg(folder.path("a.hitlog")).arg("-o").arg(trace).status().unwrap().success());
        hitreg::store::read_trace(trace).expect("a trace")
    };
    let mut replayed = replay(&trace);
    // The build answers with this trace, whatever log it gets.
    replayed.header.log_digest.clear();
    super::pucks::script(&folder.path("build"), &format!("cp {} \"$4\"", word(&trace)));
    let judged = |log: &str, changed: &Trace| {
        std::fs::write(&trace, write_trace(Vec::new(), changed).unwrap()).unwrap();
        let output = folder.run(&format!("verify {log} --build ./build --format json"));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checked: Value =
            serde_json::from_slice(&folder.run(&format!("check ./build {log} --format json")).stdout).unwrap();
        let mut points = checked["points"].as_array().unwrap().iter();
        let bodies = points.find(|point| point["point"] == "bodies as recorded").unwrap();
        let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (of(&report["logs"][0]["why"]), of(&bodies["result"]), of(&report["logs"][0]["detail"]))
    };
    let of_class = |changed: &mut Trace, change: &dyn Fn(&Table) -> Table| {
        let mines = changed.tables.iter_mut().find(|table| table.name == "bodies.mine").expect("mines");
        *mines = change(mines);
    };
    let (ok, differs) = (("", "ok"), ("recorded_state", "wrong"));
    let check = |log: &str, changed: &Trace, expected: (&str, &str), says: &str| {
        let (why, bodies, detail) = judged(log, changed);
        assert_eq!((&*why, &*bodies), expected, "{detail}");
        assert!(detail.contains(says), "{detail}");
    };
    check("a.hitlog", &replayed, ok, "");
    // A row less.
    let mut lacking = replayed.clone();
    of_class(&mut lacking, &|mines| mines.select(&(0..mines.rows() as u32 - 1).collect::<Vec<_>>()));
    check("a.hitlog", &lacking, differs, "in `bodies.mine`, first in tick");
    // A class without bodies, and a class that the build does not write.
    let mut without = replayed.clone();
    of_class(&mut without, &Table::without_rows);
    check("a.hitlog", &without, differs, "the replay lacks entity");
    without.tables.retain(|table| table.name != "bodies.mine");
    check("a.hitlog", &without, ("", "absent"), "");
    // A row that the log lacks: in a tick without bodies of its class, no body is known.
    let mines = |tick| whole.states.of_tick(tick).filter(|(key, _)| key.class.0 == 2).count();
    let is_one_of_two = |key: &&StateKey| key.class.0 == 2 && mines(key.tick) > 1;
    let mine = whole.states.keys().iter().find(is_one_of_two).copied().expect("two mines");
    whole.states.retain(|key| *key != mine);
    folder.save_log("fewer.hitlog", &whole);
    check(
        "fewer.hitlog",
        &replayed,
        differs,
        &format!("first in tick {}: the log lacks entity {}", mine.tick, mine.entity.0),
    );
    let mut sparse = whole.clone();
    sparse.states.retain(|key| key.tick.0 % 10 == 5 && key.tick != mine.tick);
    folder.save_log("sparse.hitlog", &sparse);
    check("sparse.hitlog", &replayed, ok, "");
    // A class that is recorded in some ticks only.
    let mut rare = session(&folder, "a.hitlog");
    rare.states.retain(|key| key.class.0 != 2 || key.tick == mine.tick);
    folder.save_log("rare.hitlog", &rare);
    check("rare.hitlog", &replayed, ok, "");
    // A log with the bodies that were sent: one client did not get the mine.
    let mut sent = whole.clone();
    for tick in &whole.ticks {
        let mut entities: Vec<_> = whole.states.of_tick(tick.tick).map(|(key, _)| key.entity).collect();
        entities.dedup();
        let seq = SnapshotSeq(tick.tick.0);
        sent.players[0].snapshots.push(SnapshotRecord {
            seq,
            tick: tick.tick,
            at: tick.at,
            entities,
            ..SnapshotRecord::default()
        });
    }
    folder.save_log("sent.hitlog", &sent);
    check("sent.hitlog", &replayed, ok, "");
    // Snapshots without the body of their own player.
    sent.players[0].snapshots.iter_mut().for_each(|snapshot| snapshot.entities.retain(|entity| entity.0 > 0));
    folder.save_log("sent.hitlog", &sent);
    check("sent.hitlog", &replayed, ok, "");
    check("sent.hitlog", &lacking, differs, "the replay lacks entity");
    // A snapshot also has a body for a player without an avatar.
    let tanks = lacking.tables.iter_mut().find(|table| table.name == "bodies").expect("tanks");
    let player = tanks.select(&(1..tanks.rows() as u32).collect::<Vec<_>>());
    lacking.clone_from(&replayed);
    *lacking.tables.iter_mut().find(|table| table.name == "bodies").expect("tanks") = player;
    check("sent.hitlog", &lacking, ok, "");
    check("a.hitlog", &lacking, differs, "the replay lacks entity 0");
    // The earliest difference is named: that body is missing long before another one differs.
    let tanks = lacking.tables.iter_mut().find(|table| table.name == "bodies").expect("tanks");
    let last = tanks.columns.iter_mut().find_map(|column| match &mut column.data {
        ColumnData::F64(values) => values.last_mut(),
        _ => None,
    });
    *last.expect("a position") += 1.0;
    check("a.hitlog", &lacking, differs, "the replay lacks entity 0");
    // After a missing part, nothing is known.
    let mut cut = whole.clone();
    let gap = |from| GapRecord { from, to: from + Micros(1), player: None, why: GapCause::Overrun };
    cut.gaps.push(gap(whole.ticks[mine.tick.0 as usize - 2].at));
    folder.save_log("cut.hitlog", &cut);
    check("cut.hitlog", &replayed, ("gap", "ok"), "");

    // A player without usercmds may be a bot that the build runs.
    let mut bot = session(&folder, "a.hitlog");
    bot.players[0].frames.clear();
    folder.save_log("bot.hitlog", &bot);
    check("bot.hitlog", &replayed, ok, "");
    let output = folder.run(&format!("verify bot.hitlog --build {}", word(example("tanks"))));
    let page = flat(&text(&output.stdout));
    assert!(code(&output) == 128 && page.contains("it records p0 #1 as run in tick"), "{page}");
    // The build plays the bot, and has a fault later.
    bot.ticks.last_mut().expect("ticks").hash = Some(7);
    folder.save_log("bot.hitlog", &bot);
    check("bot.hitlog", &replayed, ("recorded_state", "ok"), "the log has state hash 0000000000000007");

    // Without tick hashes, the bodies are the reference.
    let mut unhashed = session(&folder, "a.hitlog");
    unhashed.ticks.iter_mut().for_each(|tick| tick.hash = None);
    folder.save_log("unhashed.hitlog", &unhashed);
    check("unhashed.hitlog", &replayed, ("needs_golden", "ok"), "are as recorded");
    check("unhashed.hitlog", &lacking, differs, "the replay lacks entity");
    let output = folder.run("verify unhashed.hitlog --build ./build --accept");
    assert!(code(&output) == 1 && !folder.path("unhashed.golden").exists(), "{}", text(&output.stdout));
}

#[test]
fn two_builds_differ_in_a_field_of_the_class_that_the_bug_concerns() {
    let folder = recorded(20);
    let found = folder.run(&format!("diff a.hitlog {} --format json", builds()));
    assert_eq!(code(&found), 1, "{}", text(&found.stderr));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((&found["first"]["table"], &found["first"]["field"]), (&"bodies".into(), &"health".into()), "{found}");
    let bisected = folder.run(&format!("bisect ticks a.hitlog {} --on state", builds()));
    let page = text(&bisected.stdout);
    assert_eq!(code(&bisected), 1, "{page}");
    assert!(page.contains("health") && page.contains("First divergence: bodies, tick"), "{page}");
}

/// A smaller log keeps fields, rows and joins of the game's own, and plays in the game.
#[test]
fn shrink_cuts_a_log_and_keeps_its_own_records() {
    let folder = recorded(20);
    let shrunk = folder.done(&format!("shrink a.hitlog -o small.hitlog {} --on state", builds()));
    assert!(shrunk.contains("a first difference in bodies"), "{shrunk}");
    let (whole, small) = (session(&folder, "a.hitlog"), session(&folder, "small.hitlog"));
    let with_input = |session: &Session| session.players.iter().filter(|player| !player.frames.is_empty()).count();
    assert!(with_input(&small) <= 3, "{} players", with_input(&small));
    assert!(small.ticks.len() * 10 <= whole.ticks.len(), "{} ticks", small.ticks.len());
    assert_eq!(small.players.len(), whole.players.len(), "players keep their numbers");
    assert!(small.players.iter().any(|player| !player.presence.is_empty()), "joins stay");
    let rows = |session: &Session| session.unknown.iter().map(|kind| kind.len()).sum::<usize>();
    assert!(rows(&small) > 0 && rows(&small) < rows(&whole), "rows of the game's own stay");
    let own = |session: &Session| {
        session.players.iter().flat_map(|player| &player.frames).any(|f| !f.command.input.own.stored().is_empty())
    };
    assert!(own(&whole), "usercmds have fields of the game's own");
    // Bodies and results of shots do not follow from the remaining input.
    assert!(small.states.keys().iter().all(|key| key.tick.0 == 0), "{:?}", small.states.keys());
    assert!(small.players.iter().all(|player| player.judged.is_empty()));
    let again = folder.run(&format!("diff small.hitlog {} --on state", builds()));
    assert_eq!(code(&again), 1, "{}", text(&again.stdout));
}

#[test]
fn a_command_decides_without_a_build_what_stays() {
    let folder = recorded(4);
    let condition = word(folder.path("few.sh"));
    #[cfg(unix)]
    super::pucks::script(&folder.path("few.sh"), "test $(wc -c < \"$1\") -gt 2000 && exit 1; exit 0");
    folder.done(&format!("shrink a.hitlog -o small.hitlog --while {}", word(format!("{condition} {{}}"))));
    assert!(session(&folder, "small.hitlog").ticks.len() < 200);
    // What the problem needs stays, also in fields of the game's own.
    #[cfg(unix)]
    {
        let program = word(env!("CARGO_BIN_EXE_hitreg"));
        let has_taunt = format!("{program} export \"$1\" --table frames | grep -q 'wait for it' && exit 1; exit 0");
        super::pucks::script(&folder.path("taunt.sh"), &has_taunt);
        let condition = word(format!("{} {{}}", word(folder.path("taunt.sh"))));
        folder.done(&format!("shrink a.hitlog -o taunt.hitlog --while {condition}"));
        let taunt = folder.done("export taunt.hitlog --table frames");
        assert!(taunt.contains("wait for it"), "{taunt}");
        assert!(session(&folder, "taunt.hitlog").ticks.len() < 10);
    }
}

#[test]
fn check_names_each_point_of_the_contract() {
    let folder = recorded(4);
    let good = folder.json(&format!("check {} a.hitlog", word(example("tanks"))));
    assert_eq!((&good["wrong"], &good["absent"]), (&Value::from(0), &Value::from(2)), "{good:#}");
    #[cfg(unix)]
    {
        let build = word(example("tanks"));
        // Each script breaks one point.
        let scripts = [
            ("unknown command", format!("[ \"$1\" = replay ] || exit 0; exec {build} \"$@\"")),
            ("unknown setting", format!("exec {build} \"$1\" \"$2\" \"$3\" \"$4\"")),
            ("takes --set", format!("exec {build} \"$1\" \"$2\" \"$3\" \"$4\"")),
            ("refuses another game", format!("exec {build} \"$1\" {} \"$3\" \"$4\"", word(folder.path("a.hitlog")))),
            (
                "refuses a damaged log",
                format!("{build} \"$@\" || {build} replay {} -o \"$4\"", word(folder.path("a.hitlog"))),
            ),
            ("replays the log", "exit 3".to_owned()),
            ("hashes as recorded", format!("exec {} \"$@\"", word(example("tanks_bug")))),
        ];
        let folder = &folder;
        let long = recorded(20);
        for (point, script) in scripts {
            let log = if point == "hashes as recorded" { &long } else { folder };
            super::pucks::script(&log.path("build"), &script);
            let output = log.run("check ./build a.hitlog --format json");
            assert_eq!(code(&output), 1, "{point}: {}", text(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            let of = report["points"].as_array().unwrap().iter().find(|known| known["point"] == point);
            assert_eq!(of.unwrap()["result"], "wrong", "{point}: {report:#}");
        }
    }
}

/// A build that knows only `replay` is never called otherwise.
#[cfg(unix)]
#[test]
fn no_command_calls_what_a_build_does_not_declare() {
    let folder = recorded(20);
    let calls = folder.path("calls.txt");
    for (name, game) in [("good", "tanks"), ("bad", "tanks_bug")] {
        let script = format!("echo \"$1\" >> {}\nexec {} \"$@\"", word(&calls), word(example(game)));
        super::pucks::script(&folder.path(name), &script);
    }
    let lines = [
        "diff a.hitlog --a ./good --b ./bad",
        "bisect ticks a.hitlog --a ./good --b ./bad",
        "bisect builds a.hitlog ./good ./bad",
        "shrink a.hitlog -o small.hitlog --a ./good --b ./bad --on hits",
        "verify a.hitlog --build ./good",
        "why a.hitlog p0 --build ./good",
    ];
    for line in lines {
        let output = folder.run(line);
        assert!(!text(&output.stderr).contains("panicked"), "{line}: {}", text(&output.stderr));
    }
    // The search comes as far as running usercmds again, and says why it does not.
    let page = flat(&text(&folder.run(lines[1]).stdout));
    assert!(page.contains("could not run the usercmds again: it does not declare the command `step`"), "{page}");
    let calls = std::fs::read_to_string(calls).expect("the calls");
    assert!(calls.lines().count() > 10 && calls.lines().all(|command| command == "replay"), "{calls}");
}

/// `tanks` declares no `record`, and its traces have no corrections.
#[cfg(unix)]
#[test]
fn verify_advises_and_counts_what_a_build_has() {
    let folder = recorded(4);
    let [good, bad] = ["tanks", "tanks_bug"].map(|game| word(example(game)));
    let mut log = session(&folder, "a.hitlog");
    log.ticks.iter_mut().for_each(|tick| tick.hash = tick.hash.map(|hash| hash ^ 1));
    folder.save_log("other.hitlog", &log);
    for option in ["--accept", "--propose"] {
        let output = folder.run(&format!("verify other.hitlog --build {bad} {option}"));
        let page = text(&output.stdout);
        assert!(
            code(&output) == 1 && page.contains("the log has state hash") && !page.contains("--rerecord"),
            "{page}"
        );
        assert!(
            flat(&page).contains("No golden is written: the log has other states, and this build cannot"),
            "{page}"
        );
    }
    let output = folder.run(&format!("verify a.hitlog --build {good} --max corrections=0%"));
    let page = flat(&text(&output.stdout));
    assert_eq!(code(&output), 125, "{page}");
    assert!(page.contains("unknown corrections: not measured"), "{page}");
    assert!(folder.done(&format!("verify a.hitlog --build {good}")).contains("corrections not known"));
    let whole = session(&folder, "a.hitlog");
    let middle = whole.ticks[whole.ticks.len() / 2].at;
    let mut cut = whole;
    cut.gaps.push(GapRecord { from: middle, to: middle + Micros(1), player: None, why: GapCause::Overrun });
    folder.save_log("cut.hitlog", &cut);
    let page = flat(&text(&folder.run(&format!("verify cut.hitlog --build {good}")).stdout));
    let compared = page.split_once(" of 200 tick hashes").expect("a count").0.rsplit(' ').next();
    assert!(page.contains(&format!(": {} of its 200 ticks could be compared", compared.expect("a count"))), "{page}");
}

/// Usercmds run again among entities of all classes, in builds that declare `step`.
#[cfg(unix)]
#[test]
fn usercmds_run_again_among_entities_of_every_class() {
    let folder = recorded(20);
    for (name, game) in [("good", "tanks"), ("bad", "tanks_bug")] {
        let trace = folder.path(&format!("{name}.hittrace"));
        let replayed =
            Command::new(example(game)).arg("replay").arg(folder.path("a.hitlog")).arg("-o").arg(&trace).status();
        assert!(replayed.expect("it starts").success());
        let mut replayed = hitreg::store::read_trace(&trace).expect("a trace");
        replayed.header.capabilities = vec!["step".to_owned()];
        std::fs::write(&trace, write_trace(Vec::new(), &replayed).expect("memory takes it")).expect("it is written");
        // A usercmd leaves its player's body as it is.
        let script = format!(
            "if [ \"$1\" = replay ]; then exec cp {} \"$4\"; fi\n\
             for arg in \"$@\"; do case \"$arg\" in --player=*) player=${{arg#--player=}};; esac; done\n\
             for arg in \"$@\"; do echo \"$arg\" >> {}; case \"$arg\" in\n\
             --body=$player=*) echo \"{{\\\"cells\\\": [${{arg#--body=$player=}}]}}\" > \"$4\";; esac; done",
            word(&trace),
            word(folder.path("steps.txt"))
        );
        super::pucks::script(&folder.path(name), &script);
    }
    let page = text(&folder.run("bisect ticks a.hitlog --a ./good --b ./bad --on state").stdout);
    let compared = "both builds run the usercmds alike in `step_body`; `run`, which was not compared, or a later part of the tick differs";
    assert!(flat(&page).contains(compared), "{page}");
    let steps = std::fs::read_to_string(folder.path("steps.txt")).expect("builds were called");
    for class in ["crate", "flag", "mine"] {
        assert!(steps.lines().any(|arg| arg.starts_with("--body=") && arg.contains(&format!("/{class}="))), "{steps}");
    }
    // All players of the tick are listed, with their own fields.
    let usercmds: Vec<&str> = page.lines().filter(|line| line.starts_with("    p")).collect();
    assert!(usercmds.len() >= 5 && usercmds.iter().all(|line| line.contains("executed")), "{page}");
    assert!(page.contains("aim "), "{page}");
}

/// A sweep runs a build with settings of its own, and says what its traces lack.
#[test]
fn a_sweep_by_a_build_has_the_figures_of_its_tables() {
    let folder = recorded(20);
    let build = word(example("tanks"));
    let line = format!("sweep a.hitlog --build {build} --set tanks.friction=1..3");
    let page = flat(&folder.done(&line));
    assert!(page.contains("rows: tanks.friction"), "{page}");
    let absent = page.split_once("not in the build's traces: ").expect("a list").1;
    assert!(absent.starts_with("predictions_checked, corrections,"), "{absent}");
    assert!(absent.contains("down_bytes_per_s"), "{absent}");
    let rows = folder.json(&format!("{line} --no-cache"));
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for (row, friction) in rows.iter().zip(["1", "2", "3"]) {
        assert_eq!((&row["tanks.friction"], &row["what_if"]), (&friction.into(), &"replay".into()));
        assert!(row["usercmds"].as_u64() > Some(1000) && row["shots"].as_u64() > Some(0), "{row}");
        assert!(row["corrections"].is_null() && row["predictions_checked"].is_null(), "{row}");
    }
    assert!(rows.iter().any(|row| row["hits"] != rows[0]["hits"]), "friction changes who is hit: {rows:?}");
    // As one replay has it.
    let replayed = Command::new(example("tanks"))
        .args(["replay", "a.hitlog", "-o", "b.hittrace", "--set", "tanks.friction=3"])
        .current_dir(folder.path("."))
        .status();
    assert!(replayed.expect("it starts").success());
    let shots = folder.done("export b.hittrace --table shots --to csv");
    assert_eq!(rows[2]["shots"], shots.lines().count() - 1);
    let unknown = folder.run(&format!("sweep a.hitlog --build {build} --set no.such=1,2"));
    assert_eq!(code(&unknown), 125, "{}", text(&unknown.stdout));
    for (more, said) in [
        ("--build BUILD --set interpolation.lerp=1,2", "did you mean `interpolation.lerp_ms`?"),
        ("--build BUILD --set tanks.friction=1,2 --what-if rerecord", "a build has no bots"),
        ("--set interpolation.lerp_ms=1,2 --no-cache", "--no-cache has no effect without a build"),
        ("--build ./none --set tanks.friction=1,2", "no such build"),
    ] {
        let message = folder.refused(&format!("sweep a.hitlog {}", more.replace("BUILD", &build)));
        assert!(message.contains(said), "{more}: {message}");
    }
}

/// A shot of an unknown game is explained from its log, and as a build replays it.
#[test]
fn why_explains_shots_by_the_log_or_by_a_build() {
    let folder = recorded(20);
    let shots = folder.done("export a.hitlog --table shots --to csv");
    let keys = shots.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let names = shots.lines().next().expect("names").split(',').collect::<Vec<_>>();
    let place = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let first = keys.into_iter().next().expect("a shot");
    let shot = format!("p{}#{}", first[place("shooter")], first[place("command")]);
    let (tanks, bug) = (word(example("tanks")), word(example("tanks_bug")));
    let recorded = folder.done(&format!("why a.hitlog {shot}"));
    let replayed = folder.done(&format!("why a.hitlog {shot} --build {tanks}"));
    for page in [&recorded, &replayed] {
        assert!(
            page.contains("25 damage") && page.contains("In the plane") && page.contains("P = on the server after"),
            "{page}"
        );
        assert!(!page.contains("From above") && !page.contains("view_ofs_z"), "{page}");
    }
    let refused = folder.refused(&format!("why a.hitlog {shot} --set tanks.friction=3"));
    assert!(refused.contains("the log is of the game `tanks`"), "{refused}");
    let changed = folder.run(&format!("why a.hitlog {shot} --build {tanks} --set tanks.friction=3 --format json"));
    assert!(code(&changed) == 0 || code(&changed) == 128, "the shot may not exist then: {}", text(&changed.stderr));
    let missing = folder.run(&format!("why a.hitlog {shot} --build {bug} --set no.such=3"));
    assert_eq!(code(&missing), 125, "{}", text(&missing.stdout));
}

/// A build can replay neither a server's log without usercmds nor a client's log without the server.
#[test]
fn one_side_of_a_session_is_untestable_with_a_build() {
    let folder = recorded(4);
    let side = |player| Some(RecordedSide { session: SessionId(7), player });
    let mut server = session(&folder, "a.hitlog");
    server.header.side = side(None);
    for player in &mut server.players {
        let PlayerRecords { executed, presence, .. } = std::mem::take(player);
        *player = PlayerRecords { executed, presence, ..PlayerRecords::default() };
    }
    // As a listen server records it: with the usercmds of one player.
    let mut heard = server.clone();
    let mut client = session(&folder, "a.hitlog");
    heard.players[0].heard = client.players[0].frames.iter().map(heard_alone).collect();
    folder.save_log("heard.hitlog", &heard);
    client.header.side = side(Some(PlayerId(0)));
    (client.ticks, client.states) = Default::default();
    client.players.iter_mut().skip(1).for_each(|player| *player = PlayerRecords::default());
    let build = word(example("tanks"));
    for (log, reason) in [
        (server, "this is the server's side of a session, which lacks usercmds: "),
        (client, "this is one client's side of a session, without the server: "),
    ] {
        folder.save_log("side.hitlog", &log);
        for command in [
            format!("verify side.hitlog --build {build}"),
            format!("diff side.hitlog {}", builds()),
            format!("bisect ticks side.hitlog {}", builds()),
        ] {
            let output = folder.run(&command);
            let page = flat(&text(&output.stdout));
            assert_eq!(code(&output), 125, "{command}: {page}{}", text(&output.stderr));
            assert!(
                page.contains(reason) && !page.contains("--accept") && !page.contains("next:"),
                "{command}: {page}"
            );
        }
        assert!(folder.refused(&format!("check {build} side.hitlog")).contains(reason));
    }
    let lacks = "this is the server's side of a session, which lacks usercmds: merge";
    let output = folder.run(&format!("verify heard.hitlog --build {build}"));
    let page = flat(&text(&output.stdout));
    assert!(code(&output) == 125 && page.contains(lacks) && !page.contains("next:"), "{page}");
    assert!(folder.refused(&format!("check {build} heard.hitlog")).contains(lacks));
}

/// A packet with the usercmd of a frame.
fn heard_alone(frame: &FrameRecord) -> HeardRecord {
    let (number, commands) = (frame.command.seq.0, vec![frame.command.clone()]);
    HeardRecord { number, at: frame.at, ack: SnapshotSeq(0), received_before: 0, commands }
}
