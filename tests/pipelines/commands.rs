//! The command line of a build that contains its own game.

use std::ffi::OsString;

use hitreg::cli::{Games, Program};
use serde_json::Value;

use crate::disc::{DiscRules, Discs};
use crate::folder::{Folder, exit_of, word, words};

#[test]
fn any_game_gets_the_same_commands() {
    let folder = Folder::empty();
    let games = Games::default().recording::<Discs>(|map| match map {
        None => Ok(DiscRules::default()),
        Some(map) => Err(format!("discs need no {}", map.path).into()),
    });
    let run = |line: &str| {
        let args = std::iter::once("discs".to_owned()).chain(words(line));
        Program::new("discs", "1.0").run_args(&games, args.map(OsString::from))
    };
    let log = word(folder.path("discs.hitlog"));
    assert_eq!(run(&format!("record synth -o {log} --seconds 3 --players 3")), 0);
    let again = word(folder.path("again.hitlog"));
    assert_eq!(run(&format!("record synth -o {again} --seconds 1")), 0, "a second recording of one program");
    assert_eq!(run(&format!("verify {log} --accept --rollback 10")), 0);
    assert_eq!(run(&format!("record synth -o {log} --map {log}")), 128);
    // hitreg does not know the game, and says so.
    assert_eq!(exit_of(&folder, "verify discs.hitlog"), 125);
    let output = folder.refused("replay discs.hitlog");
    assert!(output.contains("the log is of the game `discs`, and this build plays"), "{output}");
    assert_eq!(folder.json("info discs.hitlog")["shots"], Value::Null);
}
