//! Trouble: a message on stderr, exit code 128, and no files left behind.

use std::fs;
use std::path::Path;

use hitreg::store::{FileType, Targets};
use hitreg::trace::{Table, Trace};

use super::folder::{Folder, code, exit_of, text, word};
use super::habits::fed;

/// A log whose shots no server judges cannot be judged again.
#[test]
fn rejudging_without_a_server_is_untestable() {
    let folder = Folder::with_session();
    for line in [
        "replay a.hitlog --mode open --what-if rejudge --set lag_compensation.enabled=false",
        "export a.hitlog --table shots --mode open --what-if rejudge --set lag_compensation.enabled=false",
        "diff a.hitlog --open --what-if rejudge --b-set lag_compensation.enabled=false",
        "replay a.hitlog --what-if rejudge --set server.update_hz=10",
    ] {
        let output = folder.run(line);
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert_eq!(code(&output), 125, "{line}: {said}");
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = if line.contains("server.") { "changes more than the hit test" } else { "no server judges shots" };
        assert!(words.contains(reason), "{line}: {said}");
    }
}

#[test]
fn bad_input_is_reported_and_leaves_no_files() {
    let folder = Folder::with_session();
    fs::write(folder.path("text"), "not a log").unwrap();
    fs::write(folder.path("bad.map"), "{ \"classname\"").unwrap();
    fs::write(folder.path("bad.toml"), "players = 3\nspeed = 9\n").unwrap();
    fs::write(folder.path("unquoted.toml"), "[settings]\ninterpolation.lerp_ms = 50\n").unwrap();
    fs::write(folder.path("links.toml"), "players = 1\n[[links]]\ndelay_ms = 5.0\n[[links]]\ndelay_ms = 9.0\n")
        .unwrap();
    fs::create_dir(folder.path("dir")).unwrap();
    let mut log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() / 2]).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 4;
    fs::write(folder.path("flipped.hitlog"), &log).unwrap();
    let cases = [
        ("replay a.hitlog --set interpolation.lerp=5", "did you mean `interpolation.lerp_ms`?"),
        ("replay a.hitlog --set server.tick_hz=0", "a number of Hz from 1 to 1000, with at most three decimals"),
        ("replay a.hitlog --set lerp", "has no value: write KEY=VALUE"),
        ("replay a.hitlog --set p9.client.cmd_hz=30", "there is no player p9"),
        ("record synth -o b --players 2 --set p2.client.cmd_hz=30", "the session has 2 players, p0 to p1"),
        ("sweep a.hitlog --set p9.interpolation.lerp_ms=0,50", "there is no player p9"),
        ("sweep a.hitlog --set p9.interpolation.lerp_ms=0,50 --what-if rejudge", "there is no player p9"),
        (
            "sweep a.hitlog --what-if rerecord --seeds 1 --set interpolation.lerp_ms=0,50",
            "a confidence interval needs at least 2 seeds, not 1",
        ),
        ("replay a.hitlog --preset quak3", "did you mean `quake3`?"),
        ("replay a.hittrace", "a.hittrace: this is a trace, but the command needs a log"),
        ("replay none", "none: there is no such file"),
        ("replay dir", "dir: there is no *.hitlog"),
        ("replay text", "text: not a hitreg file"),
        ("replay cut.hitlog", "cut.hitlog: truncated at offset"),
        ("replay flipped.hitlog", "flipped.hitlog: corrupt at offset"),
        ("replay a.hitlog -o dir", "dir: this is a directory"),
        ("replay a.hitlog -o no/such/b.hittrace", "there is no directory no/such"),
        ("recover text -o b.hitlog", "text: not a hitreg file"),
        ("recover a.hittrace -o b.hitlog", "a.hittrace: this is a trace, but the command needs a log"),
        ("export a.hitlog --table shot", "a.hitlog: there is no table `shot`; there are ticks"),
        ("export a.hittrace --table shots --set interpolation.lerp_ms=0", "this is a trace, the result of a replay"),
        ("export a.hittrace --preset quake3", "this is a trace, the result of a replay"),
        ("export a.hittrace --what-if rejudge", "this is a trace, the result of a replay"),
        ("export a.hittrace --all -o tables --mode open", "this is a trace, the result of a replay"),
        ("export a.hitlog -o b", "-o needs --table NAME or --all"),
        ("settings --preset quak", "no preset is called `quak`"),
        ("settings nonsense", "no setting is called `nonsense`"),
        ("join localhost -o n.hitlog --set nonsense=1", "no setting is called `nonsense`"),
        ("record synth -o dir", "dir: this is a directory"),
        ("record synth -o b --players 65", "players cannot be 65: a scenario takes 1 to 64"),
        ("record synth -o b --seconds nan", "seconds cannot be NaN"),
        ("record synth -o b --delay-ms -1", "unexpected argument '-1'"),
        ("record synth -o b --delay-ms=-1", "link: delay_ms cannot be -1"),
        ("record synth -o b --loss 2", "such as 2%"),
        ("record synth -o b --scenario bad.toml", "bad.toml: not a scenario: TOML parse error at line 2"),
        ("record synth -o b --scenario unquoted.toml", "its key is quoted: \"interpolation.lerp_ms\" = 50"),
        (
            "record synth -o b --scenario links.toml",
            "the number of [[links]] cannot be 2: a scenario takes at most one",
        ),
        ("record synth -o b --map bad.map", "bad.map: the game cannot use this map"),
        ("record synth -o b --game chess", "`chess` has no bots in this build"),
        ("verify a.hitlog --partition slice:3/2", "slice:K/N"),
        ("verify dir", "dir: there is no *.hitlog"),
        ("verify a.hitlog --junit dir", "dir: this is a directory"),
    ];
    for (line, sentence) in cases {
        let said = folder.refused(line);
        assert!(said.contains(sentence), "{line}\nsaid      {said}\nnot       {sentence}");
    }
}

#[test]
fn demos_of_other_games_are_reported() {
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
        ("spectator.qwd --map junk.bsp", "junk.bsp: not a QuakeWorld map"),
        (
            "junk.qwd --map junk.bsp",
            "junk.qwd: not a QuakeWorld demo: it looks like text. `hitreg import qwd` takes .qwd",
        ),
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
fn names_in_a_trace_cannot_choose_paths() {
    let folder = Folder::empty();
    let outside = folder.path("outside");
    for name in ["../outside", "a/b", "..", "", "C:x", "new\nline", outside.to_str().unwrap()] {
        let tables = ["good", name].map(|name| Table::new(name, Vec::new()));
        let trace = Trace { tables: tables.into(), ..Trace::default() };
        let target =
            Targets::default().replacing_recordings().file(&folder.path("evil.hittrace"), FileType::Trace).unwrap();
        hitreg::store::save_trace(&target, &trace).unwrap();
        folder.done("export evil.hittrace --all -o tables --force");
        let outside = |path: &std::path::Path| path.exists();
        assert!(!outside(&folder.path("outside")) && !outside(&folder.path("b.jsonl")), "{name}");
        assert_eq!(folder.names(), ["evil.hittrace", "tables"], "{name}");
        std::fs::remove_dir_all(folder.path("tables")).unwrap();
    }
}

/// Every table has a file of its own, also if a file system does not tell capitals from small letters.
#[test]
fn each_table_has_a_file_whatever_its_name() {
    let folder = Folder::empty();
    let long = "é".repeat(300);
    let names = ["good", "Capital", "two words", "two%20words", "Größe", "a", "A", "", ".", &long, &format!("{long}!")];
    let tables = names.map(|name| Table::new(name, Vec::new()));
    let trace = Trace { tables: tables.into(), ..Trace::default() };
    let target = Targets::default().replacing_recordings().file(&folder.path("a.hittrace"), FileType::Trace).unwrap();
    hitreg::store::save_trace(&target, &trace).unwrap();
    folder.done("export a.hittrace --all --to csv -o tables");
    let files = fs::read_dir(folder.path("tables")).unwrap();
    let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    let lower: hitreg_log::sorted::SortedSet<String> = files.iter().map(|file| file.to_lowercase()).collect();
    assert_eq!((files.len(), lower.len()), (names.len(), names.len()), "{files:?}");
    for known in ["good.csv", "Capital.csv", "two%20words.csv", "two%2520words.csv", "Gr%c3%b6%c3%9fe.csv"] {
        assert!(files.contains(&known.to_owned()), "{known} in {files:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_reported() {
    if !Path::new("/dev/full").exists() {
        crate::note::skipped("there is no /dev/full here");
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
fn a_closed_pipe_ends_a_command_in_silence() {
    let folder = Folder::with_session();
    for line in ["export a.hitlog --table views", "info a.hitlog", "settings --format json", "completions zsh", "man"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = folder.command(line).stdout(writer).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(code(&output), 128, "{line}: {said}");
        assert_eq!(said, "", "{line}");
    }
}

/// A log may contain any name. Names cannot add lines or send commands to the terminal.
#[test]
fn names_in_a_log_print_no_control_characters() {
    let folder = Folder::with_session();
    let mut log = hitreg::store::read_log(&folder.path("a.hitlog")).unwrap();
    log.header.map = "yard\n  shots         900, all hit\u{1b}[2J\u{202e}".to_owned();
    log.header.settings.push(("client.\u{7}\nfuture".to_owned(), "\u{1b}]0;title\u{7}".to_owned()));
    folder.save_log("evil.hitlog", &log);
    for line in ["info evil.hitlog", "replay evil.hitlog", "verify evil.hitlog", "diff evil.hitlog evil.hitlog"] {
        let output = folder.run(line);
        for text in [text(&output.stdout), text(&output.stderr)] {
            assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{line}: {text:?}");
            assert!(!text.contains("\n  shots         900"), "{line}: {text}");
        }
    }
    assert!(text(&folder.run("info evil.hitlog --format json").stdout).contains("yard\\n  shots"));
}

/// Endless input is refused by its first bytes, or by a size limit.
#[test]
#[cfg(unix)]
fn endless_input_is_refused() {
    let folder = Folder::with_session();
    for line in [
        "info /dev/zero",
        "replay /dev/zero",
        "diff /dev/zero a.hitlog",
        "recover /dev/zero -o b.hitlog",
        "merge /dev/zero /dev/zero -o b.hitlog",
        "export /dev/zero --table ticks",
        "record synth --map /dev/zero -o b.hitlog",
        "record synth --scenario /dev/zero -o b.hitlog",
        "import qwd /dev/zero --map a.hitlog -o b.hitlog",
        "import qwd a.hitlog --map /dev/zero -o b.hitlog",
    ] {
        assert!(folder.refused(line).contains(": "), "{line}");
    }
    assert_eq!(exit_of(&folder, "verify /dev/zero"), 128);
}

/// An untestable build does not add lines to `--summary`.
#[test]
#[cfg(unix)]
fn the_summary_of_an_untestable_build_is_one_line() {
    let folder = Folder::with_session();
    crate::pucks::script(&folder.path("broken"), "echo no such map >&2; exit 3");
    let output = folder.run("diff a.hitlog --b ./broken --summary");
    let line = "untestable: ./broken: failed (exit code 3)\n";
    assert_eq!((code(&output), &*text(&output.stdout)), (125, line));
}

#[test]
fn options_without_effect_are_refused() {
    let folder = Folder::with_session();
    let build = word(env!("CARGO_BIN_EXE_hitreg"));
    let cases = [
        ("diff a.hitlog --a BUILD --b BUILD --what-if rejudge", "--what-if rejudge needs other settings"),
        ("bisect ticks a.hitlog --b BUILD --what-if rejudge", "--what-if rejudge needs other settings"),
        ("report a.hitlog --b BUILD --what-if rejudge -o new.html", "--what-if rejudge needs other settings"),
        ("shrink a.hitlog --b BUILD --what-if rejudge -o new.hitlog", "--what-if rejudge needs other settings"),
        ("replay a.hitlog --what-if rejudge", "add --set KEY=VALUE or --preset NAME"),
        ("why a.hitlog p0#95 --what-if rejudge", "add --set KEY=VALUE or --preset NAME"),
        ("export a.hitlog --table shots --what-if rejudge", "add --set KEY=VALUE or --preset NAME"),
        ("diff a.hitlog --server-build BUILD --open", "cannot be used with"),
        ("diff a.hitlog --client-build BUILD --open", "cannot be used with"),
        ("verify a.hitlog --build BUILD --whole", "cannot be used with"),
        ("verify a.hitlog --build BUILD --rollback 8", "cannot be used with"),
        ("shrink a.hitlog --while true --on hits -o new.hitlog", "cannot be used with"),
        ("shrink a.hitlog --while true --open -o new.hitlog", "cannot be used with"),
        ("replay a.hitlog --tables shots", "required"),
        ("diff a.hitlog --b-preset quake3 --time-limit 9", "--time-limit has no effect without a build"),
        ("diff a.hitlog --b-preset quake3 --cache c", "--cache has no effect without a build"),
        ("diff a.hittrace a.hitlog --no-cache", "--no-cache has no effect without a build"),
        ("bisect ticks a.hitlog --no-cache", "--no-cache has no effect without a build"),
        ("report a.hitlog --no-cache -o new.html", "--no-cache has no effect without a build"),
        ("report a.hitlog --from 1 --time-limit 9 -o new.html", "--time-limit has no effect without a build"),
        ("shrink a.hitlog --b-preset quake3 --time-limit 9 -o new.hitlog", "--time-limit has no effect without"),
        // Each candidate is another log, so no trace could come from a cache.
        ("shrink a.hitlog --b BUILD --cache c -o new.hitlog", "unexpected argument '--cache'"),
        ("shrink a.hitlog --b BUILD --no-cache -o new.hitlog", "unexpected argument '--no-cache'"),
        ("verify a.hitlog --time-limit 9", "required"),
        ("soak --length-ms 99", "99 is not in 100.."),
        ("diff a.hitlog --b-preset quake3 --on hits --tolerance yaw=1", "--on hits does not compare that column"),
        ("diff a.hitlog --b-preset quake3 --on hits --tolerance rewind_us=1", "--on hits does not compare"),
        ("diff a.hitlog --b-preset quake3 --on views --tolerance error_units=1", "--on views does not compare"),
        ("bisect ticks a.hitlog --b-preset quake3 --on state --tolerance drawn=1", "--on state does not compare"),
        ("diff a.hitlog --b-preset quake3 --summary --format json", "--summary has no effect with --format json"),
        ("diff a.hitlog --b-preset quake3 -v --format json", "--verbose has no effect with --format json"),
        ("verify a.hitlog -v --format json", "--verbose has no effect with --format json"),
        ("verify a.hitlog -q --format json", "--quiet has no effect with --format json"),
        ("replay a.hitlog --sizes --mode open", "--sizes needs the server, and --mode open runs only the clients"),
        ("replay a.hitlog --record n.hitlog --mode open", "--record needs the server, and --mode open runs only"),
        ("info a.hittrace --replay", "this is a trace"),
        ("export a.hitlog --to csv", "--to needs --table NAME or --all"),
        ("export a.hitlog --table shots --format json", "--format json has no effect on rows"),
        ("export a.hitlog --perfetto --format json", "--format json has no effect on a timeline"),
        ("completions bash --format json", "--format json has no effect on a script"),
        ("man --format json", "--format json has no effect on manual pages"),
        ("verify a.hitlog --time-limit 9 --rollback 8", "cannot be used with"),
        ("verify a.hitlog --time-limit 9 --whole", "cannot be used with"),
        ("claims --list --off", "cannot be used with"),
        ("import qwd a.qwd --force-map -o n.hitlog", "required"),
        ("record synth -o n.hitlog --seconds 3 --keyframes 5", "the first keyframe is after 5 s"),
        ("record synth -o /dev/stdout --seconds 3 --keyframes 1", "--keyframes needs a file"),
        ("record live -o n.hitlog --seconds 3 --keyframes 5", "the first keyframe is after 5 s"),
        ("record live -o n.hitlog --seconds 3 --keyframes 1 --no-keyframes", "cannot be used with"),
        (
            "record proxy --protocol quake3 --listen 127.0.0.1:0 --upstream 127.0.0.1:9 -o n.hitlog --seed 5 --delay-ms 9",
            "--seed has no effect without --jitter-ms, --loss or --reorder",
        ),
        (
            "join 127.0.0.1:9 -o n.hitlog --update-hz 20 --set server.update_hz=30",
            "--update-hz and --set server.update_hz request the same setting",
        ),
        ("join 127.0.0.1:9 -o n.hitlog --set interpolation.lerp_ms=9 --lerp-ms 9", "request the same setting"),
        ("serve -o n.hitlog --max-rate 100", "bytes/s from 500 to 10000000"),
        ("serve -o n.hitlog --max-update-hz 0.5", "Hz from 1 to 1000"),
    ];
    for (line, reason) in cases {
        let said = folder.refused(&line.replace("BUILD", &build));
        assert!(said.contains(reason), "{line}: {said}");
    }
    // Combinations in which the option has an effect are accepted.
    for line in [
        "diff a.hitlog --b BUILD --no-cache --time-limit 60 --on state --tolerance origin=1",
        "diff a.hitlog --a BUILD --cache kept --on views --tolerance origin=1",
        "diff a.hittrace a.hitlog --summary",
        "verify a.hitlog --build BUILD --time-limit 60",
    ] {
        assert!([0, 125].contains(&exit_of(&folder, &line.replace("BUILD", &build))), "{line}");
    }
    // Defaults in a config file apply only where they have an effect.
    fs::write(folder.path("hitreg.toml"), "[diff]\nno-cache = true\nsummary = true\ntime-limit = 60\n").unwrap();
    for line in ["diff a.hittrace a.hittrace", "diff a.hittrace a.hittrace --format json"] {
        assert_eq!(exit_of(&folder, line), 0, "{line}");
    }
    // What was typed overrides a default that it conflicts with, whichever of the two declares the conflict. Several
    // defaults may lack the same option.
    let build = &build;
    for (file, line) in [
        ("[verify]\nrollback = 8\nwhole = true\n", format!("verify a.hitlog --build {build}")),
        ("[verify]\nno-cache = true\ntime-limit = 20\n", "verify a.hitlog".to_owned()),
        ("[verify]\naccept = true\n", "verify a.hitlog --propose --force".to_owned()),
        ("[replay]\nfrom = \"1s\"\n", "replay a.hitlog --record b.hitlog".to_owned()),
        ("[diff]\nsummary = true\n", "diff a.hittrace a.hittrace --verbose".to_owned()),
        ("[diff]\nmax = [\"hits-changed=0\"]\nresults = \"nightly\"\n", "diff a.hittrace a.hittrace".to_owned()),
        ("[diff]\nmax = [\"hits-changed=0\"]\n", format!("diff a.hitlog --b {build} --verbose")),
    ] {
        fs::write(folder.path("hitreg.toml"), file).unwrap();
        let output = folder.run(&line);
        assert!([0, 1, 125].contains(&code(&output)), "{file}{line}: {}", text(&output.stderr));
    }
    assert!(!folder.path("nightly").exists());
}

/// Common mistakes, each with the advice of the message.
#[test]
fn error_messages_name_the_command_to_run() {
    let folder = Folder::with_session();
    fs::write(folder.path("hello.txt"), "hello\n").unwrap();
    fs::write(folder.path("gold.dem"), b"HLDEMO\0\x05\0\0\0\x30\0\0\0").unwrap();
    fs::write(folder.path("empty.hitlog"), "").unwrap();
    fs::write(folder.path("bad.toml"), "speed = 9\n").unwrap();
    fs::create_dir(folder.path("demos")).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("absent.hitlog", folder.path("dangling.hitlog")).unwrap();
        let said = folder.refused("info dangling.hitlog");
        assert!(said.contains("dangling.hitlog: this symbolic link leads to absent.hitlog, which does not"), "{said}");
        fs::remove_file(folder.path("dangling.hitlog")).unwrap();
    }
    // A message about one log of several has its path once, and in the command to run.
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::create_dir(folder.path("cut")).unwrap();
    fs::write(folder.path("cut/0.hitlog"), &log).unwrap();
    fs::write(folder.path("cut/1.hitlog"), &log[..log.len() / 2]).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("absent.hitlog", folder.path("cut/dangling.hitlog")).unwrap();
        let verified = text(&folder.run("verify cut").stdout);
        assert_eq!(verified.matches("dangling.hitlog").count(), 1, "{verified}");
    }
    for line in ["verify cut", "sweep cut --set interpolation.lerp_ms=0,50", "replay cut -o traces --format json"] {
        let output = folder.run(line);
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("hitreg recover cut/1.hitlog -o") && !said.contains("FILE"), "{line}: {said}");
    }
    let said = text(&folder.run("export cut --table none -o tables").stderr);
    assert!(said.contains("there is no table `none`"), "{said}");
    assert_eq!(fs::read_dir(folder.path("tables")).map_or(0, Iterator::count), 0, "no folder without a table");
    let cases = [
        ("verify nodir", "nodir: there is no such file; this folder has a.hitlog"),
        (
            "import qwd a.qwd --map x.bsp -o b.hitlog",
            "a.qwd: there is no such file; its folder has no file with the extension .qwd",
        ),
        ("import qwd sub/a.qwd --map x.bsp -o b.hitlog", "a.qwd: there is no such file; its folder sub does not exist"),
        ("verify a.hitlog --golden x", "to list the options, run: hitreg verify --help"),
        ("verify a.hitlog --hwole", "a similar argument exists: '--whole'"),
        ("record synth --duration 3", "to list the options, run: hitreg record synth --help"),
        (
            "verify x*.hitlog",
            "The shell did not expand this pattern: it is quoted, or no file matches; this folder has",
        ),
        ("info empty.hitlog", "or record a session with: hitreg record synth -o session.hitlog"),
        (
            "shrink a.hitlog --while nosuchcommand -o b.hitlog",
            "--while needs a command that exits 1 while the log shows",
        ),
        ("diff a.hitlog --b hello.txt", "hello.txt: this is a file that is not executable"),
        ("shrink a.hittrace -o b.hitlog", "a.hittrace: this is a trace, but the command needs a log"),
        ("shrink a.hitlog --b-preset quake3", "shrink a.hitlog --b-preset quake3 -o new.hitlog"),
        ("keyframes a.hitlog", "keyframes a.hitlog -o new.hitlog"),
        ("merge a.hitlog 'b c.hitlog'", "merge a.hitlog 'b c.hitlog' -o new.hitlog"),
        ("report a.hitlog", "report a.hitlog -o page.html"),
        ("record proxy", "for example: hitreg record proxy --protocol quake3 --listen 127.0.0.1:27970 --upstream"),
        ("record a.hitlog", "choose one of synth, live, proxy"),
        ("claims nosuch", "no claim is called `nosuch`; `hitreg claims --list` lists them"),
        ("claims dum-client", "did you mean `dumb-client`?"),
        ("step a.hitlog", "to list the options, run: hitreg step --help"),
        ("help nosuch", "to list the commands, run: hitreg --help"),
        ("a.hitlog", "to see what a file contains, run: hitreg info a.hitlog"),
        ("info a.hitlog a.hittrace", "this command takes one argument: run `hitreg info` once for each"),
        ("replay a.hitlog --until 3", "to list the options, run: hitreg replay --help"),
        ("replay a.hitlog --set", "to list the settings, run: hitreg settings"),
        ("export a.hitlog --table shots --format parquet", "to choose the format of rows, use --to parquet"),
        ("settings nosuch", "(the names begin with prediction, interpolation, "),
        ("record synth -o b.hitlog --scenario bad.toml", "at the end of: hitreg record synth --help"),
        ("bisect git a.hitlog v1..v2 --build-cmd make --artifact game", "not in a git repository: name the game's"),
        ("recover hello.txt", "hello.txt: not a hitreg file"),
        ("recover gone.hitlog", "gone.hitlog: there is no such file"),
        ("keyframes a.hitlog --every 60 -o b.hitlog", "use a shorter interval, such as --every 1"),
        ("why a.hitlog 1:03", "run: hitreg why a.hitlog --at 1:03"),
        ("replay missing.hitlog", "there is no such file; this folder has a.hitlog"),
        ("replay hello.txt", "looks like text. `hitreg import` converts demos to logs"),
        (
            "import qwd hello.txt -o b.hitlog",
            "hello.txt: not a QuakeWorld demo: it looks like text. `hitreg import qwd` takes",
        ),
        (
            "import qwd gold.dem -o b.hitlog",
            "gold.dem: not a QuakeWorld demo: it looks like a GoldSrc demo. `hitreg import",
        ),
        ("import qwd a.hitlog -o b.hitlog", "a.hitlog: not a QuakeWorld demo: it looks like a log of hitreg"),
        ("import quake3-demo hello.txt -o b.hitlog", "not a demo of Quake III: it looks like text"),
        ("import quake3-demo a.hitlog -o b.hitlog", "not a demo of Quake III: it looks like a log of hitreg"),
        ("import quake3-udp a.hitlog -o b.hitlog", "not a capture of datagrams: it looks like a log of hitreg"),
        ("import quake3-udp gold.dem -o b.hitlog", "not a capture of datagrams: it looks like a GoldSrc demo"),
        (
            "import gold.dem -o b.hitlog",
            "gold.dem: not a recording that hitreg recognises: it looks like a GoldSrc demo",
        ),
        ("import hello.txt -o b.hitlog", "hello.txt: not a recording that hitreg recognises: it looks like text"),
        ("import gone.qwd -o b.hitlog", "gone.qwd: there is no such file"),
        ("import qwd demos -o logs", "demos: there are no demos"),
        ("bisect gone.hitlog", "gone.hitlog: there is no such file; this folder has a.hitlog"),
        ("import a.hitlog -o b.hitlog", "a.hitlog: this is a file of hitreg already. Run: hitreg info a.hitlog"),
        ("record synth -o b.hitlog --seconds 10x", "write a number of seconds, such as 20 or 2.5"),
        ("review nowhere.hitlog", "nowhere.hitlog: there is no such file; this folder has a.hitlog"),
        ("diff a.hitlog --set interpolation.lerp_ms=50", "use --b-set KEY=VALUE for side B, or --a-set for side A"),
        ("bisect ticks a.hitlog --preset quake3", "use --b-preset NAME for side B"),
        ("report a.hitlog --set interpolation.lerp_ms=50 -o b.html", "use --b-set KEY=VALUE"),
        ("replay a.hitlog --preset source", "`half-life` is the closest"),
        ("replay a.hitlog --from 40:00", "which is from 0:00.016 to 0:06"),
        ("why a.hitlog", "name a shot (p0#95), a player (p0)"),
        ("why a.hitlog p0#9999", "the nearest are p0#"),
        ("why a.hitlog hello", "`hello` does not name a shot"),
        ("why a.hitlog p1#x", "To list the shots of p1, run: hitreg why a.hitlog p1"),
        ("export a.hitlog --table shots --to xlsx", "[possible values: jsonl, csv, parquet]"),
        ("diff a.hitlog --on hit", "[possible values: any, state, hits, corrections, views, network]"),
        ("replay a.hitlog -o hello.txt", "hello.txt: exists and is not a hitreg trace; not overwritten"),
    ];
    for (line, said) in cases {
        let message = folder.refused(line);
        assert!(message.contains(said), "{line}: {message}");
    }
    let shell = folder.refused("completions tcsh");
    assert!(shell.contains("zsh]") && !shell.contains("similar"), "{shell}");
    let shots = folder.refused("why a.hitlog p0");
    let name = shots.rsplit(' ').next().expect("words").trim();
    assert!(shots.contains("p0 fired p0#") && name.starts_with("p0#"), "{shots}");
    // The named command works as printed, and in the other order.
    let page = folder.done(&format!("why a.hitlog {name}"));
    assert_eq!(folder.done(&format!("why {name} a.hitlog")), page);
    assert!(!folder.done("replay a.hitlog --set lag_compensation.enabled=1 --format json").is_empty());
    // Without a subcommand, `bisect` selects one by the file.
    assert_eq!(folder.done("bisect a.hitlog"), folder.done("bisect ticks a.hitlog"));
}

/// A build that fails is answered with its contract and the command that tests it.
#[test]
#[cfg(unix)]
fn a_failing_build_is_answered_with_the_command_that_tests_it() {
    let folder = Folder::with_session();
    crate::pucks::script(&folder.path("broken"), "exit 3");
    let command = "next: ./broken replay a.hitlog -o test.hittrace";
    for line in ["diff a.hitlog --b ./broken", "verify a.hitlog --build ./broken", "bisect ticks a.hitlog --b ./broken"]
    {
        let output = folder.run(line);
        let said = text(&output.stdout);
        assert!(code(&output) == 125 && said.contains(command), "{line}: {said}");
    }
    let page = text(&folder.run("bisect builds a.hitlog ./broken ./broken").stdout);
    assert!(page.contains("next: BUILD replay LOG -o test.hittrace"), "{page}");
    let page = text(&folder.run("bisect builds a.hitlog ./broken ./broken --while '{build} verify {}; exit 5'").stdout);
    assert!(page.contains("next: BUILD verify a.hitlog; exit 5") && !page.contains("replay LOG"), "{page}");

    // The command has the options with which the build failed.
    let options = "--preset quake3 --set lag_compensation.max_unlag_ms=150 --what-if rejudge";
    let sides = options.replace("--preset", "--b-preset").replace("--set", "--b-set");
    for line in [format!("diff a.hitlog --b ./broken {sides}"), format!("diff . --b ./broken {sides}")] {
        let page = text(&folder.run(&line).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            page.contains("./broken replay ") && page.contains(&format!("a.hitlog {options} -o test.hittrace")),
            "{line}: {page}"
        );
    }
    let page = text(&folder.run("diff a.hitlog --server-build ./broken").stdout);
    assert!(page.contains("next: ./broken replay a.hitlog --record test.hitlog"), "{page}");
}

/// A disk that is full in one of the later runs says nothing about a build.
#[test]
#[cfg(unix)]
fn a_full_disk_breaks_no_point_of_the_contract() {
    let folder = Folder::with_session();
    let build = word(env!("CARGO_BIN_EXE_hitreg"));
    for fails in ["[ \"$3\" = --record ]", "test -s ran"] {
        fs::write(folder.path("ran"), "").expect("it is written");
        let script =
            format!("if {fails}; then echo 'the disk is full' >&2; exit 128; fi; echo >> ran; exec {build} \"$@\"");
        crate::pucks::script(&folder.path("build"), &script);
        let said = folder.refused("check ./build a.hitlog");
        assert!(said.contains("the build cannot be run: the disk is full"), "{fails}: {said}");
    }
}

/// Empty standard input is named.
#[test]
fn empty_standard_input_is_named() {
    let folder = Folder::empty();
    let piped = fed(&folder, "replay -", b"");
    let said = String::from_utf8(piped.stderr).unwrap();
    assert!(said.contains("standard input: not a hitreg file: it is empty. Check the command that wrote it"), "{said}");
    assert_eq!(piped.status.code(), Some(128));
}

/// A path that cannot be written is answered with what to name.
#[test]
#[cfg(target_os = "linux")]
fn a_path_that_cannot_be_written_is_answered() {
    let folder = Folder::with_session();
    let said = folder.refused("replay a.hitlog -o /proc/x");
    assert!(
        said.contains("/proc/x: cannot be written") && said.contains("name a file in a folder that you can"),
        "{said}"
    );
}

/// The error about a damaged log names the command that saves its undamaged part.
#[test]
fn the_command_for_a_damaged_log_runs() {
    let folder = Folder::with_session();
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() - 3_000]).unwrap();
    let message = folder.refused("replay cut.hitlog");
    let (_, command) = message.trim_end().split_once("run: hitreg ").expect("a command");
    assert_eq!(command, "recover cut.hitlog -o fixed.hitlog");
    fs::create_dir(folder.path("logs")).unwrap();
    for log in ["a.hitlog", "cut.hitlog"] {
        fs::copy(folder.path(log), folder.path(&format!("logs/{log}"))).unwrap();
    }
    for corpus in ["verify logs", "diff logs --b-set interpolation.lerp_ms=50"] {
        let printed = String::from_utf8(folder.run(&format!("{corpus} --format json")).stdout).unwrap();
        assert!(printed.contains("run: hitreg recover logs/cut.hitlog -o fixed.hitlog"), "{corpus}: {printed}");
    }
    // hitreg cannot read a pipe twice.
    let piped = fed(&folder, "replay -", &log[..log.len() - 3_000]);
    let said = String::from_utf8(piped.stderr).unwrap();
    let advice = "write the log to FILE, then run: hitreg recover FILE -o fixed.hitlog";
    assert!(piped.status.code() == Some(128) && said.contains(advice), "{said}");
    folder.done(command);
    folder.done("info fixed.hitlog");
}

/// A damaged trace cannot be recovered, but a replay makes it again.
#[test]
fn the_error_about_a_damaged_trace_does_not_advise_recovery() {
    let folder = Folder::with_session();
    let trace = fs::read(folder.path("a.hittrace")).unwrap();
    let mut flipped = trace.clone();
    flipped[trace.len() / 2] ^= 1;
    fs::write(folder.path("damaged.hittrace"), flipped).unwrap();
    fs::write(folder.path("cut.hittrace"), &trace[..trace.len() - 3_000]).unwrap();
    for line in [
        "info damaged.hittrace",
        "info cut.hittrace",
        "diff a.hittrace damaged.hittrace",
        "diff cut.hittrace a.hittrace",
        "export cut.hittrace --table shots",
        "why damaged.hittrace --at 1s",
        "report cut.hittrace -o page.html",
    ] {
        let said = folder.refused(line);
        assert!(said.ends_with("To make the trace again, run: hitreg replay LOG -o TRACE\n"), "{line}: {said}");
        assert!(!said.contains("recover"), "{line}: {said}");
    }
}

/// Help lists global options last, and only for commands on which they have an effect.
#[test]
fn help_lists_global_options_last_and_only_where_they_apply() {
    let folder = Folder::empty();
    for (command, options) in [
        ("info", &["--format", "--color", "--config"][..]),
        ("settings", &["--format", "--color", "--config"]),
        ("record synth", &["--format", "--color", "--config", "--force"]),
        ("diff", &["--format", "--color", "--config", "--force"]),
        ("completions", &[]),
        ("man", &[]),
        ("bisect", &[]),
    ] {
        let help = folder.done(&format!("{command} --help"));
        let (before, global) = help.split_once("\nGlobal options:\n").unwrap_or((&help, ""));
        for option in ["--format", "--color", "--config", "--force"] {
            let line = format!("\n      {option}");
            assert!(!before.contains(&format!("{line} ")), "{command}: {option} before the last section");
            assert_eq!(format!("\n{global}").contains(&line), options.contains(&option), "{command} {option}:\n{help}");
        }
        // Aliases may add them to any command.
        folder.done(&format!("{command} --color never --help"));
    }
}
