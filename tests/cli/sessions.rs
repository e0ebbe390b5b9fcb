//! Two files are comparable if they belong to one session. Others are untestable without `--force`.

use std::fs;

use hitreg::record::Origin;
use hitreg::units::Seed;

use super::folder::{Folder, code, exit_of, text};
use super::sides;

/// The page that refuses to compare two files of different sessions.
fn refusal(folder: &Folder, line: &str) -> String {
    let output = folder.run(line);
    let page = text(&output.stdout);
    assert_eq!(code(&output), 125, "{line}: {page}{}", text(&output.stderr));
    // A summary is one line.
    assert!(page.contains("add --force") || line.contains("--summary"), "{line}: {page}");
    assert!(
        page.contains("different sessions, so nothing can be concluded: ") && !page.contains("cause"),
        "{line}: {page}"
    );
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_comparable(folder: &Folder, files: &str) {
    for command in ["diff", "bisect ticks"] {
        let output = folder.run(&format!("{command} {files}"));
        assert!([0, 1].contains(&code(&output)), "{command} {files}: {}", text(&output.stdout));
    }
}

#[test]
fn sessions_of_two_seeds_are_untestable() {
    let folder = Folder::empty();
    for seed in [1, 2] {
        folder.done(&format!("record synth -o {seed}.hitlog --players 2 --seconds 3 --seed {seed}"));
        folder.done(&format!("replay {seed}.hitlog -o {seed}.hittrace"));
    }
    for files in ["1.hitlog 2.hitlog", "1.hittrace 2.hittrace", "1.hittrace 2.hitlog", "1.hitlog 2.hittrace"] {
        for command in ["diff", "bisect ticks", "report -o page.html", "diff --on hits", "diff --summary"] {
            let message = refusal(&folder, &format!("{command} {files}"));
            assert!(message.contains("nothing can be concluded: the seed is 1 in A, 2 in B"), "{message}");
        }
        assert!(!folder.path("page.html").exists());
        for command in ["diff", "bisect ticks"] {
            assert_eq!(exit_of(&folder, &format!("{command} {files} --force")), 1, "{command} {files}");
        }
    }
    let output = folder.run("diff 1.hitlog 2.hitlog --format json");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&found["verdict"], found.get("side")), (&"untestable".into(), None), "{found:#}");
    let message = refusal(&folder, "diff 1.hitlog 2.hitlog --junit out.xml");
    assert!(
        message.contains("the seed is 1 in A")
            && fs::read_to_string(folder.path("out.xml")).unwrap().contains("seed is 1")
    );
    // Another map is another session.
    folder.done("record synth -o map.hitlog --players 2 --seconds 3 --seed 1 --map courtyard");
    let [one, other] = ["1", "map"].map(|name| folder.json(&format!("info {name}.hitlog"))["map"].clone());
    if one != other {
        assert!(refusal(&folder, "diff 1.hitlog map.hitlog").contains("nothing can be concluded: the map is "));
    }
}

#[test]
fn copies_parts_and_other_settings_of_one_scenario_are_comparable() {
    let folder = Folder::empty();
    let scenario = "record synth --players 2 --seconds 4 --seed 7";
    folder.done(&format!("{scenario} -o a.hitlog"));
    folder.done("replay a.hitlog -o a.hittrace");
    folder.done(&format!("{scenario} --set interpolation.lerp_ms=50 --delay-ms 90 -o set.hitlog"));
    folder.done("replay a.hitlog --from 1 --to 2 -o part.hittrace");
    folder.done("keyframes a.hitlog --every 1 -o keyed.hitlog");
    folder.done("shrink a.hitlog --while 'exit 1' -o small.hitlog");
    let log = fs::read(folder.path("a.hitlog")).unwrap();
    fs::write(folder.path("cut.hitlog"), &log[..log.len() * 3 / 4]).unwrap();
    folder.run("recover cut.hitlog -o recovered.hitlog");
    for other in ["a.hittrace", "set.hitlog", "part.hittrace", "keyed.hitlog", "recovered.hitlog", "small.hitlog"] {
        is_comparable(&folder, &format!("a.hitlog {other}"));
        is_comparable(&folder, &format!("{other} a.hittrace"));
    }
}

/// Sessions of people have no seed. Their usercmds identify them.
#[test]
fn usercmds_distinguish_live_sessions() {
    let folder = Folder::empty();
    let live = |name: &str, seed: u32| {
        folder.done(&format!("record synth -o {name}.hitlog --players 2 --seconds 4 --seed {seed}"));
        let mut log = hitreg::store::read_log(&folder.path(&format!("{name}.hitlog"))).unwrap();
        (log.header.origin, log.header.seed) = (Origin::Live, Seed(0));
        folder.save_log(&format!("{name}.hitlog"), &log);
        folder.done(&format!("replay {name}.hitlog -o {name}.hittrace"));
        log
    };
    let a = live("a", 1);
    live("b", 2);
    for files in ["a.hitlog b.hitlog", "a.hittrace b.hittrace", "a.hittrace b.hitlog"] {
        for command in ["diff", "bisect ticks", "diff --on hits"] {
            let output = refusal(&folder, &format!("{command} {files}"));
            assert!(output.contains("% of one file's usercmds are in the other"), "{output}");
        }
    }
    // The same usercmds under other settings, and a part of them.
    let mut set = a.clone();
    for (key, value) in &mut set.header.settings {
        if key == "interpolation.lerp_ms" {
            *value = "50".to_owned();
        }
    }
    folder.save_log("set.hitlog", &set);
    folder.done("replay b.hitlog --from 1 --to 2 -o part.hittrace");
    is_comparable(&folder, "a.hitlog set.hitlog");
    is_comparable(&folder, "b.hitlog part.hittrace");
    refusal(&folder, "diff a.hitlog part.hittrace");
}

#[test]
fn the_sides_of_a_session_and_their_merged_log_are_comparable() {
    let folder = Folder::empty();
    sides::write(5.0, 2, folder.dir.path()).expect("a session");
    folder.done("merge server.hitlog client0.hitlog client1.hitlog -o merged.hitlog");
    folder.done("merge client1.hitlog client0.hitlog server.hitlog -o again.hitlog");
    is_comparable(&folder, "merged.hitlog again.hitlog");
    is_comparable(&folder, "merged.hitlog server.hitlog");
}

/// All commands count a server's own log alike. Values that only clients know are unknown.
#[test]
fn all_commands_count_a_servers_own_log_alike() {
    let folder = Folder::empty();
    sides::write(5.0, 3, folder.dir.path()).expect("a session");
    let (replay, info) = (folder.json("replay server.hitlog"), folder.json("info server.hitlog --replay"));
    let verify: serde_json::Value =
        serde_json::from_slice(&folder.run("verify server.hitlog --format json").stdout).expect("JSON");
    assert_eq!(replay["exercised"], verify["logs"][0]["exercised"]);
    assert!(replay["exercised"]["active_usercmds"].as_u64().is_some_and(|active| active > 100), "{replay:#}");
    assert_eq!(info["usercmds"], replay["exercised"]["usercmds"]);
    assert_eq!(info["shots"], replay["shots"]["fired"]);
    assert_eq!(info["hits"], replay["shots"]["hit"]);
    assert!(replay["exercised"]["corrections"].is_null(), "{replay:#}");
    let (_, page) = super::report::page(&folder, "server.hitlog");
    let side = &page["sides"][0];
    assert_eq!(side["knows_corrections"], false);
    let notes = side["notes"].to_string();
    assert!(notes.contains("corrections: no ack was compared with a prediction"), "{notes}");
    let shots = side["shots"].as_array().expect("shots");
    let is_not_known = |shot: &serde_json::Value| {
        shot["screen"]["reason"] == ""
            && shot["answer"].as_str().is_some_and(|answer| answer.contains("screen is not known"))
    };
    assert!(shots.iter().filter(|shot| shot["is_impact"] == false).all(is_not_known), "{shots:#?}");

    let log = hitreg::store::read_log(&folder.path("server.hitlog")).unwrap();
    let sent: usize = log.players.iter().map(|player| player.snapshots.len()).sum();
    assert_eq!(info["packets"]["sent"], sent, "{info:#}");
    let unknown = [&info["packets"]["received"], &info["packets"]["lost"], &info["packets_up"]["sent"]];
    assert!(unknown.iter().all(|value| value.is_null()), "{info:#}");
    assert!(info["packets_up"]["received"].as_u64().is_some_and(|received| received > 100), "{info:#}");
    assert_eq!(info["by_player"].as_array().map(Vec::len), Some(3));
    let page = folder.done("info server.hitlog");
    let of_first = page.lines().find(|line| line.trim_start().starts_with("p0 ")).expect("a row");
    let cells: Vec<&str> = of_first.split_whitespace().skip(3).collect();
    assert_eq!(cells, ["-", "0", "-", "-", "-", "-", "-", "-"], "{page}");
    assert!(page.contains("run with --replay to count"), "{page}");
}

#[test]
fn options_may_change_the_players_of_a_scenario_with_links() {
    let folder = Folder::empty();
    let links = "[[links]]\ndelay_ms = 5.0\n".repeat(5);
    fs::write(folder.path("links.toml"), format!("seconds = 1.0\n{links}")).unwrap();
    folder.done("record synth --scenario links.toml --players 5 -o a.hitlog");
    for line in ["record synth --scenario links.toml -o b", "record synth --scenario links.toml --players 2 -o b"] {
        assert!(folder.refused(line).contains("the number of [[links]] cannot be 5"), "{line}");
    }
}

/// One seed over two links gives two comparable logs. Their difference does not blame the build.
#[test]
fn no_build_is_blamed_for_a_difference_between_two_logs() {
    let folder = Folder::empty();
    folder.done("record synth -o a.hitlog --seconds 3 --delay-ms 50 --jitter-ms 4");
    folder.done("record synth -o b.hitlog --seconds 3");
    let output = folder.run("bisect ticks a.hitlog b.hitlog");
    let page = text(&output.stdout);
    assert_eq!(code(&output), 1, "{page}");
    assert!(page.contains("A and B are replays of different logs") && !page.contains("cause: build"), "{page}");
}
