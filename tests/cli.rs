//! The command line from outside: what it prints, where, and how it ends.

mod disc;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hitreg::cli::{Games, run_args};
use hitreg::log::Options;
use hitreg::store;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a recorded session, `a.hitlog`, and its trace, `a.hittrace`.
struct Folder {
    dir: TempDir,
}

impl Folder {
    fn empty() -> Folder {
        Folder { dir: TempDir::new().expect("a temporary folder") }
    }

    fn with_session() -> Folder {
        let folder = Folder::empty();
        folder.done("record synth -o a.hitlog --seconds 6 --delay-ms 50 --jitter-ms 4 --loss 1%");
        folder.done("replay a.hitlog -o a.hittrace");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitreg"));
        command.args(line.split_whitespace()).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("hitreg starts")
    }

    /// Runs what must succeed without a word on stderr, and gives its stdout.
    fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(code(&output), 0, "{line}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{line}");
        text(&output.stdout)
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(&format!("{line} --format json"))).expect("JSON alone on stdout")
    }

    /// Runs what must fail with a sentence, and leave the folder as it was.
    fn refused(&self, line: &str) -> String {
        let before = self.names();
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");
        assert_eq!(text(&output.stdout), "", "{line}");
        assert_eq!(self.names(), before, "{line} left something behind");
        said
    }

    fn names(&self) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(&self.dir).expect("listable").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ends by itself")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn exit_of(folder: &Folder, line: &str) -> i32 {
    code(&folder.run(line))
}

#[test]
fn commands_print_what_the_snapshots_say() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").run();
}

#[test]
fn the_readme_shows_what_hitreg_prints() {
    let readme = fs::read_to_string("README.md").expect("README.md");
    let folder = Folder::empty();
    fs::create_dir(folder.path("README.in")).unwrap();
    fs::create_dir(folder.path("README.out")).unwrap();
    // Speeds are of the machine that they were measured on.
    let lines = readme.lines().map(|line| match line.split_once(" times real time") {
        Some((before, after)) => {
            let number = before.rfind(' ').map_or(0, |space| space + 1);
            format!("{}[..] times real time{after}\n", &before[..number])
        }
        None => format!("{line}\n"),
    });
    fs::write(folder.path("README.md"), lines.collect::<String>()).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().unwrap();
    trycmd::TestCases::new().env("PATH", bin.display().to_string()).case(folder.path("README.md")).run();
}

#[test]
fn help_and_version_are_answers_and_wrong_usage_is_trouble() {
    let folder = Folder::empty();
    let commands = "quickstart record import info replay verify export recover settings completions man";
    for command in commands.split(' ') {
        let help = folder.done(&format!("{command} --help"));
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{command} --help is too wide:\n{help}");
        if command != "record" && command != "import" {
            assert!(help.contains("Examples:"), "{command} --help has no examples");
        }
    }
    assert!(folder.done("--version").starts_with("hitreg "));
    for wrong in ["", "frobnicate", "replay", "info a b", "verify", "export a --all", "replay a --mode sideways"] {
        folder.refused(wrong);
    }
}

#[test]
fn bad_input_is_told_in_a_sentence_and_leaves_nothing_behind() {
    let folder = Folder::with_session();
    fs::write(folder.path("text"), "not a log").unwrap();
    fs::write(folder.path("bad.map"), "{ \"classname\"").unwrap();
    fs::write(folder.path("bad.toml"), "players = 3\nspeed = 9\n").unwrap();
    fs::create_dir(folder.path("dir")).unwrap();
    let mut log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() / 2]).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 4;
    fs::write(folder.path("flipped.hitlog"), &log).unwrap();
    let cases = [
        ("replay a.hitlog --set interpolation.lerp=5", "did you mean `interpolation.lerp_ms`?"),
        ("replay a.hitlog --set server.tick_hz=0", "a whole number of Hz from 1 to 1000"),
        ("replay a.hitlog --set lerp", "is not of the form key=value"),
        ("replay a.hitlog --preset quak3", "did you mean `quake3`?"),
        ("replay a.hittrace", "a.hittrace: this is a trace, and a log is wanted here"),
        ("replay none", "none: there is no such file"),
        ("replay dir", "dir: this is a directory"),
        ("replay text", "text: this is no hitreg file"),
        ("replay cut.hitlog", "cut.hitlog: the file is cut off: everything before offset"),
        ("replay flipped.hitlog", "flipped.hitlog: corrupt at offset"),
        ("replay a.hitlog -o dir", "dir: this is a directory"),
        ("replay a.hitlog -o no/such/b.hittrace", "there is no directory no/such"),
        ("recover text -o b.hitlog", "text: this is no hitreg file"),
        ("recover a.hittrace -o b.hitlog", "a.hittrace: this is a trace, and a log is wanted here"),
        ("export a.hitlog --table shot", "a.hitlog: there is no table `shot`; there are ticks"),
        ("export a.hitlog -o b", "-o needs to know what to write"),
        ("settings --preset quak", "no preset is called `quak`"),
        ("settings nonsense", "no setting is called `nonsense`"),
        ("record synth -o dir", "dir: this is a directory"),
        ("record synth -o b --players 65", "a scenario cannot have players of 65: it takes 1 to 64"),
        ("record synth -o b --seconds nan", "a scenario cannot have seconds of NaN"),
        ("record synth -o b --delay-ms -1", "unexpected argument '-1'"),
        ("record synth -o b --delay-ms=-1", "link: delay_ms cannot be -1"),
        ("record synth -o b --loss 2", "such as 2%"),
        ("record synth -o b --scenario bad.toml", "bad.toml: not a scenario: TOML parse error at line 2"),
        ("record synth -o b --map bad.map", "bad.map: no rules can be made from this map"),
        ("record synth -o b --game chess", "no synthetic session of `chess` can be recorded"),
        ("verify a.hitlog --partition slice:3/2", "slice:K/N"),
        ("verify a.hitlog --partition slice:2/2", "slice 2 of 2 is empty"),
        ("verify dir", "dir: there is no *.hitlog"),
        ("verify a.hitlog --junit dir", "dir: this is a directory"),
    ];
    for (line, sentence) in cases {
        let said = folder.refused(line);
        assert!(said.contains(sentence), "{line}\nsaid      {said}\nnot       {sentence}");
    }
}

#[test]
fn demos_that_are_none_of_ours_are_told() {
    let folder = Folder::empty();
    let of_a_player = |protocol: i32, player: u8| {
        let mut message = [1u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
        message.push(11);
        message.extend(protocol.to_le_bytes());
        message.extend(1i32.to_le_bytes());
        message.extend(b"qw\0");
        message.push(player);
        message.extend(b"The Map\0");
        message.extend([800.0f32; 10].iter().flat_map(|v| v.to_le_bytes()));
        let mut demo = 0f32.to_le_bytes().to_vec();
        demo.push(1);
        demo.extend((message.len() as i32).to_le_bytes());
        demo.extend(message);
        demo
    };
    for (name, bytes) in [
        ("other.qwd", of_a_player(26, 0)),
        ("spectator.qwd", of_a_player(28, 0x80)),
        ("lobby.qwd", of_a_player(28, 0)),
        ("junk.qwd", b"This is a text and no demo".to_vec()),
        ("junk.bsp", b"neither".to_vec()),
        ("junk.qwd.xz", b"\xfd7zXZ\0\0\0".to_vec()),
    ] {
        fs::write(folder.path(name), bytes).unwrap();
    }
    let cases = [
        ("other.qwd --map junk.bsp", "other.qwd: byte 18: protocol version 26; only QuakeWorld's 28"),
        ("spectator.qwd --map junk.bsp", "spectator.qwd: byte 29: this demo was recorded by a spectator"),
        ("junk.qwd --map junk.bsp", "junk.qwd: byte 4: 32 is no kind of frame"),
        ("junk.qwd.xz --map junk.bsp", "junk.qwd.xz: "),
        ("lobby.qwd --map junk.bsp", "lobby.qwd: "),
        ("none.qwd --map junk.bsp", "none.qwd: there is no such file"),
        ("other.qwd --map none.bsp", "none.bsp: there is no such file"),
    ];
    for (line, sentence) in cases {
        let said = folder.refused(&format!("import qwd {line} -o a.hitlog"));
        assert!(said.contains(sentence), "{line}\nsaid      {said}\nnot       {sentence}");
    }
}

#[test]
fn a_real_demo_is_imported_and_replayed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/quakeworld");
    if !data.exists() {
        eprintln!("skipped: ../shared/data/quakeworld is not here");
        return;
    }
    let folder = Folder::empty();
    let demo = data.join("matches/demo22.qwd.xz");
    let import = |map: &str| {
        let map = data.join("maps").join(map);
        format!("import qwd {} --map {} -o a.hitlog", demo.display(), map.display())
    };
    let said = folder.refused(&import("e1m2.bsp.gz"));
    assert!(said.contains("e1m2.bsp.gz: the demo was played on `dm4`"), "{said}");
    folder.done(&import("dm4.bsp.gz"));
    let info = folder.json("info a.hitlog");
    let packets = &info["packets"];
    let figures = [&info["usercmds"], &packets["received"], &packets["lost"], &packets["choked"]];
    assert_eq!(figures.map(Value::as_u64), [43_904, 42_713, 1_191, 1_021].map(Some));
    let rtt = &info["rtt_ms"];
    let measured = [&rtt["p5"], &rtt["p50"], &rtt["p95"], &rtt["p99"]].map(|p| p.as_f64().unwrap_or(f64::NAN));
    for (measured, expected) in measured.into_iter().zip([42.0, 42.0, 42.0, 46.0]) {
        assert!((measured - expected).abs() <= 1.0, "{rtt}");
    }
    let replay = folder.json("replay a.hitlog");
    assert_eq!(replay["mode"], "open");
    assert!(replay["prediction"]["checked"].as_u64() > Some(40_000), "{replay:#}");
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_told() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    let folder = Folder::with_session();
    for line in [
        "record synth -o /dev/full --seconds 1",
        "replay a.hitlog -o /dev/full",
        "recover a.hitlog -o /dev/full",
        "export a.hitlog --table shots -o /dev/full",
    ] {
        let said = folder.refused(line);
        assert!(said.contains("/dev/full: the disk is full"), "{line}: {said}");
    }
    for line in ["info a.hitlog", "export a.hitlog --table views", "settings", "--help", "completions bash", "man"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = folder.command(line).stdout(full).output().unwrap();
        assert_eq!(code(&output), 128, "{line}");
        assert!(text(&output.stderr).contains("standard output cannot be written: the disk is full"), "{line}");
    }
}

#[test]
fn a_closed_pipe_is_told() {
    let folder = Folder::with_session();
    for line in ["export a.hitlog --table views", "info a.hitlog", "settings --format json", "completions zsh", "man"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = folder.command(line).stdout(writer).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {said}");
        assert!(said.contains("the output was closed before all of it was written"), "{line}: {said}");
    }
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
    for mode in ["off", "extrapolate", "two-point", "history"] {
        let score = &replay["interpolation"][mode];
        has(score, "samples error_units.p50 error_units.p95 error_units.p99");
    }
    assert_eq!((&replay["shots"]["fired"], &replay["shots"]["hit"]), (&info["shots"], &info["hits"]));
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

    let mut idle = store::read_log(&folder.path("a.hitlog")).unwrap();
    for player in &mut idle.players {
        for frame in &mut player.frames {
            let msec = frame.command.input.msec;
            frame.command.input = hitreg::usercmd::Input { msec, ..Default::default() };
        }
    }
    for tick in &mut idle.ticks {
        tick.hash = None;
    }
    store::save_log(&folder.path("idle.hitlog"), &idle, Options::whole()).unwrap();
    let untestable = folder.run("verify idle.hitlog");
    assert_eq!(code(&untestable), 125);
    assert!(text(&untestable.stdout).contains("nobody pressed a key"), "{}", text(&untestable.stdout));

    let mut bytes = fs::read(folder.path("a.hitlog")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(folder.path("broken.hitlog"), bytes).unwrap();
    assert_eq!(exit_of(&folder, "verify broken.hitlog"), 128);

    assert_eq!(exit_of(&folder, "verify a.hitlog idle.hitlog"), 125);
    assert_eq!(exit_of(&folder, "verify idle.hitlog b.hitlog a.hitlog"), 1);
    let all = folder.run("verify . --threads 2 --junit report.xml");
    assert_eq!(code(&all), 128);
    assert!(
        text(&all.stdout).ends_with("4 logs: 1 same, 1 differs, 1 untestable, 1 broken\n"),
        "{}",
        text(&all.stdout)
    );
    let report = fs::read_to_string(folder.path("report.xml")).unwrap();
    assert!(report.contains("tests=\"4\" skipped=\"1\" failures=\"1\" errors=\"1\""), "{report}");
    let halves = ["slice:1/2", "slice:2/2"].map(|slice| {
        let output = folder.run(&format!("verify . --format json --partition {slice}"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["logs"].as_array().unwrap().iter().map(|log| log["path"].to_string()).collect::<Vec<_>>()
    });
    assert_eq!(halves.map(|paths| paths.len()), [2, 2]);
}

#[test]
fn an_accepted_golden_is_never_taken_from_what_differs_from_its_log() {
    let folder = Folder::with_session();
    let mut log = store::read_log(&folder.path("a.hitlog")).unwrap();
    log.ticks[100].hash = Some(7);
    store::save_log(&folder.path("b.hitlog"), &log, Options::whole()).unwrap();
    let output = folder.run("verify b.hitlog --accept");
    assert_eq!(code(&output), 1);
    assert!(text(&output.stdout).contains("tick 101: the log has state hash 0000000000000007"));
    assert!(!folder.path("b.golden").exists());
}

#[test]
fn what_is_whole_of_a_cut_log_is_recovered() {
    let folder = Folder::with_session();
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() / 2]).unwrap();
    let info = folder.json("info cut.hitlog");
    assert!(info["warning"].as_str().unwrap().contains("everything before offset"), "{info:#}");
    let recovered = folder.json("recover cut.hitlog -o saved.hitlog");
    assert!(recovered["cut_off"]["bytes"].as_u64() > Some(0), "{recovered:#}");
    assert!((96..384).contains(&recovered["ticks"].as_u64().unwrap()), "{recovered:#}");
    let verified = folder.json("verify saved.hitlog");
    assert_eq!(verified["logs"][0]["verdict"], "same");
    assert_eq!(verified["logs"][0]["exercised"]["ticks"], recovered["ticks"]);
}

#[test]
fn tables_are_exported_from_a_trace_and_from_its_log_alike() {
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

#[test]
fn colour_goes_to_terminals_alone() {
    let folder = Folder::with_session();
    let output = folder.command("verify a.hitlog").env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!text(&output.stdout).contains('\u{1b}'), "NO_COLOR comes first");
    let output = folder.command("verify a.hitlog").env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(text(&output.stdout).contains('\u{1b}'), "there is colour to be left out");
    assert!(!folder.done("verify a.hitlog").contains('\u{1b}'));
}

#[test]
fn any_game_gets_the_same_commands() {
    let folder = Folder::empty();
    let games = Games::default().recording::<disc::Discs>(|map| match map {
        None => Ok(disc::Rules::default()),
        Some(map) => Err(format!("discs need no {}", map.path).into()),
    });
    let run =
        |line: &str| run_args(&games, std::iter::once("discs").chain(line.split_whitespace()).map(OsString::from));
    let log = folder.path("discs.hitlog");
    let log = log.display();
    assert_eq!(run(&format!("record synth -o {log} --seconds 3 --players 3")), 0);
    assert_eq!(run(&format!("verify {log} --accept --rollback 10")), 0);
    assert_eq!(run(&format!("record synth -o {log} --map {log}")), 128);
    // The built-in games do not play it, and say so.
    assert_eq!(exit_of(&folder, "verify discs.hitlog"), 125);
    let said = folder.refused("replay discs.hitlog");
    assert!(said.contains("the log is of the game `discs`, and this build plays"), "{said}");
    assert_eq!(folder.json("info discs.hitlog")["shots"], Value::Null);
}
