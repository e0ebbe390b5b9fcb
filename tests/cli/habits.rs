//! Conventions of command-line programs: a config file, standard streams, colour, completions, a build's own name.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use hitreg::log::{read_session, read_trace};

use super::folder::{Folder, code, exit_of, text, word};
use super::pucks::example;

/// Runs a command with bytes as standard input.
pub(crate) fn fed(folder: &Folder, line: &str, input: &[u8]) -> Output {
    let mut command = folder.command(line);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    })
}

fn config(folder: &Folder, text: &str) {
    fs::write(folder.path("hitreg.toml"), text).unwrap();
}

#[test]
fn defaults_come_from_the_nearest_file_upwards() {
    let folder = Folder::empty();
    config(
        &folder,
        "format = \"json\"\n[verify]\nrequire-golden = true\nquiet = true\n[record.synth]\nplayers = 2\nseconds = 1\n\
         set = [\"server.tick_hz=32\", \"client.cmd_hz=50\"]\n[replay]\noutput = \"kept.hittrace\"\n",
    );
    fs::create_dir(folder.path("below")).unwrap();
    let below = |line: &str| {
        let mut command = folder.command(line);
        command.current_dir(folder.path("below")).output().unwrap()
    };
    let recorded = below("record synth -o a.hitlog");
    let recorded: serde_json::Value = serde_json::from_slice(&recorded.stdout).expect("JSON, as the file says");
    assert_eq!((&recorded["players"], &recorded["ticks"]), (&2.into(), &32.into()));
    assert_eq!(code(&below("verify a.hitlog")), 125, "a golden is required");
    assert_eq!(code(&below("verify a.hitlog --config none")), 0);
    // Command-line options override the file, together with the options that they exclude.
    let typed = below("verify a.hitlog --format text --verbose");
    assert!(text(&typed.stdout).contains("untestable a.hitlog"), "{}", text(&typed.stderr));
    // Paths in the file are relative to its folder.
    assert_eq!(code(&below("replay a.hitlog")), 0);
    assert!(folder.path("kept.hittrace").exists() && !folder.path("below/kept.hittrace").exists());
}

#[test]
fn unknown_config_keys_are_refused_with_the_nearest_name() {
    let folder = Folder::empty();
    for (file, said) in [
        ("[verfy]\n", "hitreg.toml: line 1: there is no command `verfy` (did you mean `verify`?)"),
        ("\n[verify]\nrolback = 1\n", "hitreg.toml: line 3: there is no option `rolback` (did you mean `rollback`?)"),
        ("[verify]\naccept = \"yes\"\n", "hitreg.toml: line 2: `accept` must be true or false"),
        ("[verify]\naccept = [true]\n", "hitreg.toml: line 2: `accept` must be true or false"),
        ("[replay]\noutput = true\n", "hitreg.toml: line 2: `output` must be a path, as text"),
        ("[replay]\noutput = 5\n", "hitreg.toml: line 2: `output` must be a path, as text"),
        ("[record.synth]\nplayers = true\n", "hitreg.toml: line 2: `players` must be a text, a number, or a list"),
        ("[serve]\nseed = 2026-11-25\n", "hitreg.toml: line 2: `seed` must be a text, a number, or a list"),
        ("\n\n[verify]\nrollback = \"many\"\n", "hitreg.toml: line 4: `rollback`: invalid value 'many' for"),
        ("[verify]\nrollback = 0\n", "hitreg.toml: line 2: `rollback`: invalid value '0' for"),
        ("format = \"yaml\"\n", "hitreg.toml: line 1: `format`: invalid value 'yaml' for"),
        (
            "[serve]\nport = [1, 2]\n",
            "hitreg.toml: line 2: `port`: the argument '--port <PORT>' cannot be used multiple",
        ),
        ("config = \"x\"\n", "line 1: there is no option `config`\n"),
        ("verify = [", "hitreg.toml: TOML parse error"),
    ] {
        config(&folder, file);
        let refused = folder.refused("settings");
        assert!(refused.contains(said), "{file}: {refused}");
    }
    config(&folder, "[verify]\naccept = true\npropose = true\n");
    let refused = folder.refused("verify a.hitlog");
    assert!(
        refused.contains("cannot be used with") && refused.contains("hitreg.toml: this file adds --accept --propose"),
        "{refused}"
    );
    assert!(folder.refused("settings --config nowhere.toml").contains("nowhere.toml: there is no such file"));
    fs::write(folder.path("other.toml"), "format = \"json\"\n").unwrap();
    assert!(folder.done("settings --config other.toml").starts_with('['));
}

#[test]
fn defaults_mean_what_the_options_mean() {
    let folder = Folder::empty();
    // A built-in map is no file, unless there is one.
    config(&folder, "[record.synth]\nmap = \"orchard\"\nplayers = 2\nseconds = 1\n");
    assert_eq!(folder.json("record synth -o a.hitlog")["map"], "orchard");
    config(&folder, "[record.synth]\nmap = \"mine.map\"\n");
    assert!(folder.refused("record synth -o b.hitlog").contains("mine.map: there is no such file"));
    // A dash is a standard stream.
    config(&folder, "[replay]\noutput = \"-\"\n");
    let replayed = folder.run("replay a.hitlog");
    assert!(read_trace(&replayed.stdout[..]).is_ok() && !folder.path("-").exists());
    // The table of a command overrides the tables around it.
    config(&folder, "format = \"json\"\n[verify]\nformat = \"text\"\n");
    assert!(folder.done("verify a.hitlog").starts_with("ok "));
    assert!(folder.done("info a.hitlog").starts_with('{'));
    // A default without the option that it needs is left out.
    config(
        &folder,
        "[verify]\ntime-limit = 60\nrerecord = true\n[replay]\ntables = [\"shots\"]\n[sweep]\nseeds = 3\n\
         [record.synth]\nkeyframes = 5\nplayers = 2\n[join]\nupdate-hz = 20\n",
    );
    folder.done("verify a.hitlog");
    folder.done("sweep a.hitlog --set interpolation.lerp_ms=50");
    assert_eq!(folder.json("record synth -o short.hitlog --seconds 1")["keyframes"], 0);
    assert_eq!(folder.json("record synth -o long.hitlog --seconds 6")["keyframes"], 1);
    folder.done("replay a.hitlog");
    folder.done("replay a.hitlog -o shots.hittrace");
    assert_eq!(folder.json("info shots.hittrace")["tables"].as_array().map(Vec::len), Some(1));
    let refused = folder.refused("verify a.hitlog --require-golden --partition");
    assert!(refused.contains("a value is required for '--partition"), "{refused}");
    // An artifact is relative to a worktree, not to the file.
    config(&folder, "[bisect.git]\nbuild-cmd = \"make\"\nartifact = \"out/game\"\n");
    let refused = folder.refused("bisect git a.hitlog a..b");
    assert!(refused.contains("not in a git repository"), "{refused}");
}

#[test]
fn a_typed_list_overrides_the_same_keys_of_the_file() {
    let folder = Folder::empty();
    config(
        &folder,
        "[record.synth]\nplayers = 2\nseconds = 1\nset = [\"server.tick_hz=32\", \"client.cmd_hz=50\"]\n\
         [verify]\nmax = [\"corrections=0%\"]\n[replay]\ntables = [\"ticks\"]\n",
    );
    folder.done(
        "record synth -o a.hitlog --set client.cmd_hz=40 --set server.update_hz=10 --set interpolation.lerp_ms=20",
    );
    let changed = folder.json("info a.hitlog")["settings_changed"].to_string();
    for pair in ["server.tick_hz\",\"32", "client.cmd_hz\",\"40", "interpolation.lerp_ms\",\"20"] {
        assert!(changed.contains(pair), "{changed}");
    }
    // A threshold of the file stays, unless the same figure is typed.
    let thresholds = |line: &str| {
        let output = folder.run(&format!("{line} --format json"));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["summary"]["thresholds"].as_array().map(Vec::len)
    };
    assert_eq!(thresholds("verify a.hitlog --max view-error-p95=500"), Some(2));
    assert_eq!(thresholds("verify a.hitlog --max corrections=100%"), Some(1));
    // Values without keys replace the list.
    folder.done("replay a.hitlog -o part.hittrace --tables shots");
    assert_eq!(folder.json("info part.hittrace")["tables"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_typed_scenario_overrides_the_session_of_the_file() {
    let folder = Folder::empty();
    config(
        &folder,
        "[record.synth]\npreset = \"quake3\"\nplayers = 3\nseconds = 2\nseed = 9\ndelay-ms = 5\nmap = \"orchard\"\n\
         set = [\"server.tick_hz=32\"]\n",
    );
    fs::write(folder.path("s.toml"), "players = 5\nseconds = 1.0\n[settings]\n\"server.tick_hz\" = 50\n").unwrap();
    folder.done("record synth --scenario s.toml -o a.hitlog");
    folder.done("record synth --scenario s.toml -o b.hitlog --config none");
    assert_eq!(fs::read(folder.path("a.hitlog")).unwrap(), fs::read(folder.path("b.hitlog")).unwrap());
    assert_eq!(folder.json("record synth --scenario s.toml -o c.hitlog --players 2")["players"], 2);
    // In the file itself, options change the scenario, as on the command line.
    config(&folder, "[record.synth]\nscenario = \"s.toml\"\nplayers = 3\n");
    assert_eq!(folder.json("record synth -o d.hitlog")["players"], 3);
}

#[test]
fn an_error_about_a_value_of_the_file_names_the_file() {
    let folder = Folder::with_session();
    for (file, line, added) in [
        (
            "[record.synth]\nset = [\"server.tick_hzz=32\", \"client.cmd_hz=50\"]\n",
            "record synth",
            "--set=server.tick_hzz=32",
        ),
        ("[record.synth]\npreset = \"quak\"\nseconds = 1\n", "record synth", "--preset=quak"),
        ("[record.synth]\nplayers = 100\n", "record synth", "--players=100"),
        ("[record.synth]\nmap = \"nope\"\n", "record synth", "--map=nope"),
        ("[diff]\nwhat-if = \"rejudge\"\n", "diff a.hitlog", "--what-if=rejudge"),
    ] {
        config(&folder, file);
        let refused = folder.refused(line);
        assert!(refused.contains(&format!("hitreg.toml: this file adds {added}\n")), "{refused}");
    }
    // An output of rows has no effect where the tables are listed.
    config(&folder, "[export]\noutput = \"rows\"\n");
    assert!(folder.done("export a.hitlog").contains("shots"));
    config(&folder, "[record.synth]\nseconds = 1\n");
    // The message about players has `1 to 64`, which says nothing about the seconds.
    for line in ["record synth --preset quak", "record synth --players 0"] {
        let refused = folder.refused(line);
        assert!(!refused.contains("this file adds"), "{refused}");
    }
}

/// A build obeys its arguments, not a config file in its working folder.
#[test]
fn builds_ignore_the_config_file() {
    let folder = Folder::with_session();
    config(&folder, "[replay]\nset = [\"lag_compensation.enabled=false\"]\n");
    let build = word(env!("CARGO_BIN_EXE_hitreg"));
    assert_eq!(exit_of(&folder, &format!("diff a.hittrace a.hitlog --b {build} --no-cache")), 0);
    assert_eq!(exit_of(&folder, "replay a.hitlog -o other.hittrace"), 0);
    assert_eq!(exit_of(&folder, "diff a.hittrace other.hittrace"), 1, "by hand the file counts");
}

#[test]
fn a_dash_is_a_standard_stream() {
    let folder = Folder::with_session();
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    let info = fed(&folder, "info - --format json", &log);
    assert!(text(&info.stdout).contains("\"kind\": \"log\""), "{}", text(&info.stderr));
    let replayed = fed(&folder, "replay - -o -", &log);
    let trace = fs::read(folder.path("a.hittrace")).unwrap();
    // A piped log is read once, so the whole trace is written at the end, and its rows have another order.
    let read = |bytes: &[u8]| read_trace(bytes).expect("the trace, and nothing else");
    assert_eq!(read(&replayed.stdout).digest(), read(&trace).digest());
    assert!(text(&replayed.stderr).contains("closed loop"), "the page is on stderr");
    let exported = fed(&folder, "export - --table ticks --to csv", &replayed.stdout);
    assert!(text(&exported.stdout).starts_with("tick,at_us,hash\n"));
    let saved = fed(&folder, "recover - -o - --format json", &log);
    assert!(read_session(&saved.stdout[..]).unwrap() == read_session(&log[..]).unwrap());
    // A session of a minute would have keyframes, which a stream cannot have.
    let recorded = folder.run("record synth --seconds 60 --players 2 -o -");
    assert_eq!((code(&recorded), read_session(&recorded.stdout[..]).is_ok()), (0, true), "{}", text(&recorded.stderr));
    assert!(!folder.path("-").exists());
}

#[test]
fn the_color_option_decides_about_colour() {
    let folder = Folder::with_session();
    assert!(!folder.done("info a.hitlog").contains('\x1b'), "no terminal");
    assert!(folder.done("info a.hitlog --color always").contains('\x1b'));
    let mut forbidden = folder.command("info a.hitlog --color auto");
    assert!(
        !text(&forbidden.env("NO_COLOR", "1").env("CLICOLOR_FORCE", "0").output().unwrap().stdout).contains('\x1b')
    );
}

#[test]
fn completions_know_presets_settings_and_tables() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.done(&format!("completions {shell}"));
        for word in ["half-life", "interpolation.lerp_ms", "corrections"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // After the first log, zsh still completes options.
        assert!(shell != "zsh" || script.contains("'*:logs -- ") && !script.contains("'*::logs"), "{script}");
    }
}

#[test]
fn a_server_on_port_0_prints_its_port() {
    let folder = Folder::empty();
    let mut command = folder.command("serve -o s.hitlog --players 1 --port 0 --bind 127.0.0.1");
    let mut server = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}"));
    let address: std::net::SocketAddr = address.parse().unwrap();
    assert!(address.port() > 0 && address.ip().is_loopback());
}

#[test]
fn files_of_other_programs_are_recognized() {
    let folder = Folder::empty();
    let demo = [&0.5f32.to_le_bytes()[..], &[1], &300u32.to_le_bytes(), &[1, 0, 0, 0, 1, 0, 0, 0], &[11, 28], &[0; 64]];
    fs::write(folder.path("x"), demo.concat()).unwrap();
    for command in
        ["info x", "replay x", "verify x", "diff x x", "export x", "recover x -o y", "bisect ticks x", "merge x x -o y"]
    {
        let output = folder.run(command);
        let said = text(&output.stdout) + &text(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("it looks like a QuakeWorld demo. To import it, run: hitreg import qwd"),
            "{command}: {said}"
        );
        assert_eq!(code(&output), 128, "{command}");
    }
}

/// A game's build shows its own name in version, help and completions.
#[test]
fn a_build_shows_its_own_name() {
    let said = |arguments: &[&str]| {
        let output = std::process::Command::new(example("pucks")).args(arguments).output().unwrap();
        text(&output.stdout)
    };
    assert_eq!(said(&["--version"]), format!("pucks (hitreg {})\n", env!("CARGO_PKG_VERSION")));
    let help = said(&["verify", "--help"]);
    assert!(help.contains("Usage: pucks verify") && help.contains("\n  pucks verify match.hitlog\n"), "{help}");
    assert!(!help.contains("hitreg verify"), "{help}");
    assert!(!said(&["record", "synth", "--help"]).contains("courtyard"), "that is arena's");
    assert!(said(&["completions", "bash"]).contains("complete -F _pucks"));
    assert!(said(&["man"]).contains(".TH pucks 1"));
}

/// On Linux a file name may be any bytes.
#[test]
#[cfg(target_os = "linux")]
fn file_names_that_are_not_unicode_are_accepted() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::with_session();
    let name = std::ffi::OsStr::from_bytes(b"a\xFFb.hitlog");
    fs::copy(folder.path("a.hitlog"), folder.dir.path().join(name)).unwrap();
    let run = |line: &str, after: &str| {
        let mut command = folder.command(line);
        command.arg(name).args(after.split_whitespace()).output().unwrap()
    };
    for (line, after) in [
        ("info", ""),
        ("replay", ""),
        ("verify", "--junit out.xml"),
        ("recover", "-o b.hitlog"),
        ("diff", "a.hitlog --overlap"),
        ("export", "--table shots"),
        ("sweep", "--set interpolation.lerp_ms=50,100"),
        ("bisect ticks", ""),
        ("shrink", "--b-set lag_compensation.enabled=false -o small.hitlog"),
    ] {
        // `export` has formats of its own.
        let formats: &[&str] = if line == "export" { &[""] } else { &["--format text", "--format json"] };
        for format in formats {
            let output = run(line, &format!("{after} {format} --force"));
            assert!([0, 1].contains(&code(&output)), "{line} {format}: {}", text(&output.stderr));
        }
    }
    let info: serde_json::Value = serde_json::from_slice(&run("info", "--format json").stdout).unwrap();
    assert_eq!(info["path"], "a\u{FFFD}b.hitlog");
}

/// A reader such as `head` may close the pipe early. The command then prints no message.
#[test]
fn a_closed_pipe_prints_no_message() {
    let folder = Folder::empty();
    let recorded = folder.command("record synth --players 8 --seconds 10 -o a.hitlog").output().unwrap();
    assert_eq!(code(&recorded), 0, "{}", text(&recorded.stderr));
    for line in ["export a.hitlog --table views --to csv", "export a.hitlog --table views", "recover a.hitlog -o -"] {
        let mut child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert_eq!((code(&ended), text(&ended.stderr)), (128, String::new()), "{line}");
    }
}

#[test]
fn a_trace_of_a_part_names_the_part() {
    let folder = Folder::empty();
    let run = |line: &str| {
        let out = folder.command(line).output().unwrap();
        let words: Vec<String> = text(&out.stdout).split_whitespace().map(str::to_owned).collect();
        (code(&out), words.join(" "))
    };
    assert_eq!(run("record synth --players 2 --seconds 4 -o a.hitlog").0, 0);
    assert_eq!(run("replay a.hitlog -o whole.hittrace").0, 0);
    assert_eq!(run("replay a.hitlog --from 0:01 --to 0:02 -o part.hittrace").0, 0);
    assert!(run("info part.hittrace").1.contains("part 0:01 to 0:02 alone"));
    assert!(!run("info whole.hittrace").1.contains("alone"));
    let (ended, said) = run("diff part.hittrace whole.hittrace --summary");
    assert_eq!(
        (ended, &*said),
        (1, "differs: A and B are different parts of a session; --overlap compares common rows")
    );
    assert_eq!(run("diff part.hittrace whole.hittrace --overlap").0, 0);
    let (ended, said) = run("diff whole.hittrace part.hittrace");
    assert!(!said.contains("changed, the first"), "{said}");
    assert!(ended == 1 && said.contains("A is a replay of the whole session, B of 0:01 to 0:02 only"), "{said}");
    // hitreg replays a log for the part that the trace has.
    for line in ["diff a.hitlog part.hittrace", "diff part.hittrace a.hitlog"] {
        let (ended, said) = run(line);
        assert!(ended == 0 && !said.contains("alone"), "{line}: {said}");
    }
    assert_eq!(run("diff a.hitlog whole.hittrace").0, 0);
}
