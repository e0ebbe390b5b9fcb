//! The command line of a build that contains its own game.

use std::error::Error;
use std::ffi::OsString;

use hitreg::cli::{Games, Program};
use hitreg::engine::{Engine, GameError};
use hitreg::live::LiveError;
use hitreg::memory::MemoryLimit;
use hitreg::replay::{ReplayError, ReplayOptions};
use hitreg::session::scenario::Scenario;
use hitreg::wire::Refusal;
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

#[test]
fn an_error_of_a_game_has_its_cause() {
    let games = Games::default().recording::<Discs>(|_| Err("discs need no map".into()));
    let bots = games.recordable(None).expect("discs have bots");
    let refused = |scenario: Scenario| bots.set_up(&scenario, None).map(drop).unwrap_err();
    let no_map = refused(Scenario::default());
    assert!(matches!(&no_map, GameError::Map(cause) if cause.to_string() == "discs need no map"), "{no_map}");
    let no_players = refused(Scenario { players: 0, ..Scenario::default() });
    assert!(matches!(no_players, GameError::Scenario(_)), "{no_players}");
    let why = Refusal::Full { slots: 2 };
    let full = LiveError::Refused { server: ([127, 0, 0, 1], 27500).into(), why: why.clone() };
    assert_eq!(full.source().and_then(|cause| cause.downcast_ref()), Some(&why));
}

/// Jobs of one process may have limits of their own.
#[test]
fn two_memory_limits_in_one_process_hold_each_for_its_own_games() {
    let folder = Folder::empty();
    folder.done("record synth -o a.hitlog --seconds 2 --players 2");
    let games = hitreg::registry::built_in();
    let [little, enough] = [4 << 10, 1 << 30].map(|bytes| games.clone().within(MemoryLimit::of_bytes(bytes)));
    let session = Engine::new(&enough).read_log(&folder.path("a.hitlog")).expect("a log of this build").session;
    let hold = |games: &Games, has_room: bool| {
        let read = Engine::new(games).read_log(&folder.path("a.hitlog"));
        let game = games.of(&session).expect("arena");
        let replayed =
            game.replay(&session, &ReplayOptions { memory: games.memory(), ..ReplayOptions::default() }, &mut |_| {});
        let rerecorded = game.rerecord(games.memory(), &session, None);
        let refused = [replayed.map(drop).err(), rerecorded.map(drop).err()];
        let is_for_memory = |error: &Option<ReplayError>| matches!(error, Some(ReplayError::NeedsMemory(_)));
        match has_room {
            true => assert!(read.is_ok() && refused.iter().all(Option::is_none), "{refused:?}"),
            false => assert!(
                read.is_err_and(|error| error.to_string().contains("the limit is 0 MiB"))
                    && refused.iter().all(is_for_memory),
                "{refused:?}"
            ),
        }
    };
    let hold = &hold;
    std::thread::scope(|scope| {
        for (games, has_room) in [(&little, false), (&enough, true), (&little, false), (&enough, true)] {
            scope.spawn(move || (0..8).for_each(|_| hold(games, has_room)));
        }
    });
}
