//! Output files: commands never overwrite their inputs or files of other programs, and overwrite a recording only with
//! `--force`.

use std::fs;
use std::path::Path;

use super::folder::{Folder, exit_of, text, word};

/// Every command that writes a file, up to its output option, with its inputs.
const COMMANDS: &[(&str, &[&str])] = &[
    ("record synth --scenario duel.toml --map my.map -o", &["duel.toml", "my.map"]),
    ("record live --scenario duel.toml --map my.map -o", &["duel.toml", "my.map"]),
    ("serve --port 0 --scenario duel.toml --map my.map -o", &["duel.toml", "my.map"]),
    ("join 127.0.0.1:9 --map my.map -o", &["my.map"]),
    ("merge a.hitlog b.hitlog -o", &["a.hitlog", "b.hitlog"]),
    ("import qwd duel.qwd --map dm4.bsp -o", &["duel.qwd", "dm4.bsp"]),
    ("import quake3-udp duel.trace --server-log server.log -o", &["duel.trace", "server.log"]),
    ("import quake3-demo duel.dm_71 -o", &["duel.dm_71"]),
    ("record proxy --protocol quake3 --listen 127.0.0.1:0 --upstream 127.0.0.1:9 --map maps.pk3 -o", &["maps.pk3"]),
    ("replay a.hitlog -o", &["a.hitlog"]),
    ("replay a.hitlog --record", &["a.hitlog"]),
    ("verify a.hitlog b.hitlog --junit", &["a.hitlog", "b.hitlog"]),
    ("diff a.hitlog b.hitlog --junit", &["a.hitlog", "b.hitlog"]),
    ("diff a.hittrace b.hittrace --junit", &["a.hittrace", "b.hittrace"]),
    ("diff a.hitlog --b build --junit", &["a.hitlog", "build"]),
    ("shrink a.hitlog --while true -o", &["a.hitlog"]),
    ("shrink a.hitlog --b build -o", &["a.hitlog", "build"]),
    ("sweep a.hitlog b.hitlog --set interpolation.lerp_ms=50,100 --csv", &["a.hitlog", "b.hitlog"]),
    ("sweep a.hitlog b.hitlog --set interpolation.lerp_ms=50,100 --report", &["a.hitlog", "b.hitlog"]),
    ("sweep a.hitlog --set interpolation.lerp_ms=50,100 --markdown", &["a.hitlog"]),
    ("why a.hitlog --at 1s --svg", &["a.hitlog"]),
    ("report a.hitlog b.hitlog -o", &["a.hitlog", "b.hitlog"]),
    ("report a.hitlog --b build -o", &["a.hitlog", "build"]),
    ("step a.hitlog --player 0 --command 1 -o", &["a.hitlog"]),
    ("export a.hittrace --table shots -o", &["a.hittrace"]),
    ("export a.hitlog --table shots -o", &["a.hitlog"]),
    ("recover a.hitlog -o", &["a.hitlog"]),
];

fn prepared() -> Folder {
    let folder = Folder::empty();
    folder.done("record synth -o a.hitlog --seconds 1");
    folder.done("replay a.hitlog -o a.hittrace");
    for name in ["b.hitlog", "b.hittrace"] {
        fs::copy(folder.path(&name.replace('b', "a")), folder.path(name)).unwrap();
    }
    fs::write(folder.path("duel.toml"), "players = 2\nseconds = 1.0\n").unwrap();
    for name in ["my.map", "duel.qwd", "dm4.bsp", "duel.trace", "duel.dm_71", "server.log", "maps.pk3", "build"] {
        fs::write(folder.path(name), format!("#!/bin/sh\n# {name}\n")).unwrap();
    }
    folder
}

/// Other paths of a file: spellings, symbolic links and hard links.
fn other_names(folder: &Folder, name: &str) -> Vec<String> {
    let link = |link: &str, make: fn(&Path, &Path) -> std::io::Result<()>| {
        let _ = fs::remove_file(folder.path(link));
        make(&folder.path(name), &folder.path(link)).expect("links");
        link.to_owned()
    };
    let folder_name = folder.dir.path().file_name().unwrap().to_string_lossy();
    let mut names = vec![
        name.to_owned(),
        format!("./{name}"),
        format!("../{folder_name}/{name}"),
        word(folder.path(name)),
        link("hard", |to, link| fs::hard_link(to, link)),
    ];
    #[cfg(unix)]
    {
        names.push(link("soft", |to, link| std::os::unix::fs::symlink(to, link)));
    }
    names
}

#[test]
fn no_command_writes_over_its_input() {
    let folder = prepared();
    for (command, inputs) in COMMANDS {
        for input in *inputs {
            let before = fs::read(folder.path(input)).unwrap();
            for name in other_names(&folder, input) {
                for force in ["", " --force"] {
                    let line = format!("{command} {name}{force}");
                    let said = folder.refused(&line);
                    assert!(said.contains("is an input of the command"), "{line}: {said}");
                    assert_eq!(fs::read(folder.path(input)).unwrap(), before, "{line}");
                }
            }
        }
    }
}

#[test]
fn files_of_another_kind_are_never_replaced() {
    let folder = prepared();
    let foreign: [(&str, &[u8]); 3] =
        [("hello.txt", b"hello\n"), ("people.csv", b"name,age\nada,36\n"), ("golden", b"hitreg golden 1\n")];
    for (name, bytes) in foreign {
        fs::write(folder.path(name), bytes).unwrap();
    }
    folder.done("record synth -o c.hitlog --seconds 1");
    let recorded = fs::read(folder.path("c.hitlog")).unwrap();
    let commands = COMMANDS.iter().map(|(command, _)| *command).chain(["quickstart -o"]);
    for command in commands {
        for (name, bytes) in foreign {
            for force in ["", " --force"] {
                let line = format!("{command} {name}{force}");
                let said = folder.refused(&line);
                assert!(said.contains("not overwritten"), "{line}: {said}");
                assert_eq!(fs::read(folder.path(name)).unwrap(), bytes, "{line}");
            }
        }
        folder.refused(&format!("{command} c.hitlog"));
        assert_eq!(fs::read(folder.path("c.hitlog")).unwrap(), recorded, "{command}");
    }
    // This also holds when file names depend on the content.
    fs::create_dir(folder.path("tables")).unwrap();
    fs::write(folder.path("tables/shots.jsonl"), "{\"name\": \"ada\"}\n").unwrap();
    let said = text(&folder.run("export a.hittrace --all -o tables --force").stderr);
    assert!(said.contains("shots.jsonl: exists and is not a hitreg table"), "{said}");
    assert_eq!(fs::read_dir(folder.path("tables")).unwrap().count(), 1, "nothing is written where not all can be");
    // Of tables, only one with the same columns is replaced.
    folder.done("export a.hittrace --table bodies --to csv -o bodies.csv");
    let bodies = String::from_utf8(fs::read(folder.path("bodies.csv")).unwrap()).unwrap();
    for (table, name, before) in [
        ("ticks", "ticks.csv", "tick,note\n1,\"hand-made\"\n"),
        ("ticks", "ticks.csv", "tick,at_us,hash,note\n1,2,3,mine\n"),
        ("ticks", "ticks.csv", &*bodies),
        ("bodies", "bodies.csv", "tick,entity,note\n1,2,mine\n"),
        ("executed", "executed.csv", "player,command\n0,1\n"),
        ("ticks", "ticks.jsonl", "{\"tick\":1,\"note\":\"tick\\\":\"}\n"),
    ] {
        fs::write(folder.path(name), before).unwrap();
        let format = name.rsplit_once('.').unwrap().1;
        for from in ["a.hittrace", "a.hitlog"] {
            let said = folder.refused(&format!("export {from} --table {table} --to {format} -o {name} --force"));
            assert!(said.contains("is not a hitreg table with the same columns"), "{said}");
            assert_eq!(fs::read(folder.path(name)).unwrap(), before.as_bytes(), "{name}");
        }
    }
    fs::create_dir(folder.path("pages")).unwrap();
    fs::write(folder.path("pages/hitreg-info.1"), "my notes\n").unwrap();
    let said = text(&folder.run("man -o pages").stderr);
    assert!(said.contains("hitreg-info.1: exists and is not a hitreg manual page"), "{said}");
    assert_eq!(fs::read_dir(folder.path("pages")).unwrap().count(), 1, "nothing is written where not all can be");
    fs::write(folder.path("a.golden"), "my notes\n").unwrap();
    let said = text(&folder.run("verify a.hitlog --accept").stderr);
    assert!(said.contains("a.golden: exists and is not a hitreg golden"), "{said}");
    assert_eq!(fs::read(folder.path("a.golden")).unwrap(), b"my notes\n");
    // The check precedes all replays, so no other golden is written either.
    assert_eq!(exit_of(&folder, "verify b.hitlog a.hitlog --accept"), 128);
    assert!(!folder.path("b.golden").exists());
}

#[test]
fn only_recordings_need_force_to_be_replaced() {
    let folder = prepared();
    // The tables of a game that this build does not know lack columns.
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/compat/log-v1.0.hitlog"), folder.path("other.hitlog"))
        .unwrap();
    fs::write(folder.path("empty"), "").unwrap();
    for (first, again) in [
        ("record synth --seconds 1 -o c.hitlog", "record synth --seconds 1 --seed 2 -o c.hitlog"),
        ("replay a.hitlog -o c.hittrace", "replay a.hitlog --set interpolation.lerp_ms=50 -o c.hittrace"),
    ] {
        folder.done(first);
        let name = first.split_whitespace().last().unwrap();
        let before = fs::read(folder.path(name)).unwrap();
        let said = folder.refused(again);
        assert!(said.contains("exists already: name another file, or replace it with --force"), "{said}");
        assert_eq!(fs::read(folder.path(name)).unwrap(), before);
        folder.done(&format!("{again} --force"));
        assert_ne!(fs::read(folder.path(name)).unwrap(), before);
    }
    assert!(folder.refused("replay a.hitlog -o both --record ./both").contains("two outputs have this path"));
    for line in [
        "export a.hittrace --table shots -o shots.jsonl",
        "export a.hittrace --table shots --to csv -o shots.csv",
        "export a.hittrace --all -o tables",
        "export a.hitlog --table bodies --to csv -o bodies.csv",
        "export other.hitlog --all -o others",
        "export other.hitlog --table frames --to csv -o frames.csv",
        "sweep a.hitlog --set interpolation.lerp_ms=50,100 --csv sweep.csv",
        "verify a.hitlog --junit report.xml",
        "diff a.hittrace b.hittrace --junit diff.xml",
        "verify a.hitlog --accept",
        "man -o .",
        "record synth --seconds 1 -o empty --force",
    ] {
        assert_eq!(exit_of(&folder, line), 0, "{line}");
        assert_eq!(exit_of(&folder, line), 0, "a second time: {line}");
    }
}

#[cfg(unix)]
#[test]
fn a_quickstart_fits_the_terminal() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::empty();
    for program in ["hitreg", "target/release/hitreg"] {
        let ran = folder.command("quickstart").arg0(program).output().unwrap();
        let page = text(&ran.stdout);
        assert!(
            page.contains(&format!("  {program} verify quickstart.hitlog")) && page.contains("every shot"),
            "{page}"
        );
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }
}

#[test]
#[cfg(unix)]
fn a_quickstart_waits_for_no_reader_of_a_pipe() {
    let folder = Folder::empty();
    let made = std::process::Command::new("mkfifo").arg(folder.path("quickstart.hitlog")).status();
    assert!(made.expect("it runs").success());
    for line in ["quickstart", "quickstart -o quickstart.hitlog", "quickstart -o -"] {
        assert!(folder.refused(line).contains("use the path of a file"), "{line}");
    }
}

#[test]
fn a_quickstart_replaces_only_the_log_of_another() {
    let folder = Folder::empty();
    folder.done("quickstart");
    folder.done("quickstart --seed 2");
    let recorded = fs::read(folder.path("quickstart.hitlog")).unwrap();
    folder.done("record synth --seconds 1 -o mine.hitlog");
    assert!(folder.refused("quickstart -o mine.hitlog").contains("this log exists already"));
    assert!(folder.refused("quickstart -o quickstart.hitlog").contains("this log exists already"));
    assert_eq!(fs::read(folder.path("quickstart.hitlog")).unwrap(), recorded);
    for scenario in ["--seconds 21", "", "--delay-ms 50 --jitter-ms 30 --loss 1%", "--seconds 5 --seed 9"] {
        folder.done(&format!("record synth {scenario} -o quickstart.hitlog --force"));
        let recorded = fs::read(folder.path("quickstart.hitlog")).unwrap();
        assert!(folder.refused("quickstart").contains("this log exists already"), "{scenario}");
        assert_eq!(fs::read(folder.path("quickstart.hitlog")).unwrap(), recorded, "{scenario}");
    }
}
