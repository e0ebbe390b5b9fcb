//! A game with its own netcode is a build like any other: `examples/pucks_delay` is recorded, replayed and compared.

use crate::pucks::{example, json};
use std::path::Path;
use std::process::Command;

fn run(build: &str, args: &[&str], folder: &Path) -> (serde_json::Value, i32) {
    json(Command::new(example(build)).args(args).current_dir(folder))
}

#[test]
fn a_game_with_its_own_netcode_is_recorded_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let synth = ["record", "synth", "-o", "synth.hitlog", "--players", "6", "--seconds", "12"];
    assert_eq!(run("pucks_delay", &synth, at).1, 0);
    let live = ["record", "live", "-o", "live.hitlog", "--players", "3", "--seconds", "2", "--delay-ms", "20"];
    assert_eq!(run("pucks_delay", &[&live[..], &["--loss", "3%"]].concat(), at).1, 0);
    let (verified, code) = run("pucks_delay", &["verify", "synth.hitlog", "live.hitlog"], at);
    assert_eq!(code, 0, "{verified}");
    // The game predicts nothing, so there are no corrections; shots are judged.
    let (replayed, _) = run("pucks_delay", &["replay", "synth.hitlog", "-o", "synth.hittrace"], at);
    assert_eq!(replayed["exercised"]["corrections"], 0, "{replayed}");
    assert!(replayed["exercised"]["hits"].as_u64() > Some(0), "{replayed}");
}

#[test]
fn explains_a_shot_of_a_server_that_judges_under_no_other_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let synth = ["record", "synth", "-o", "game.hitlog", "--players", "2", "--seconds", "4"];
    assert_eq!(run("pucks_delay", &synth, folder.path()).1, 0);
    let (why, code) = run("pucks_delay", &["why", "game.hitlog", "--at", "2s"], folder.path());
    assert_eq!(code, 0, "{why}");
    assert!(why["shot"]["server"]["reason"].is_string() && why.get("rejudged").is_none(), "{why}");
    let asked = ["why", "game.hitlog", "--at", "2s", "--what-if", "rejudge", "--set", "lag_compensation.enabled=false"];
    let output = Command::new(example("pucks_delay")).args(asked).current_dir(folder.path()).output().expect("a build");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cannot judge shots under other settings") && !output.status.success(), "{message}");
}

#[test]
fn another_netcode_is_another_build() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let synth = ["record", "synth", "-o", "game.hitlog", "--players", "6", "--seconds", "6"];
    assert_eq!(run("pucks_delay", &synth, at).1, 0);
    let other = example("pucks");
    let (differs, code) = run("pucks_delay", &["diff", "game.hitlog", "--b", &other.to_string_lossy()], at);
    assert_eq!(code, 1, "{differs}");
    assert_eq!(run("pucks", &["verify", "game.hitlog"], at).1, 1);
}

#[test]
fn an_unsupported_check_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let synth = ["record", "synth", "-o", "game.hitlog", "--players", "2", "--seconds", "2"];
    assert_eq!(run("pucks_delay", &synth, folder.path()).1, 0);
    let args = ["verify", "game.hitlog", "--rollback", "8"];
    let output = Command::new(example("pucks_delay")).args(args).current_dir(folder.path()).output().expect("a build");
    let message = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(message.contains("does not support rollback"), "{message}");
    assert_ne!(output.status.code(), Some(0));
}
