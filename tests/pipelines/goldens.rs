//! The committed sessions replay as recorded and as accepted, and equal new recordings of their scenarios.
//! Change a golden only with a reason: `hitreg verify fixtures/sessions --accept` writes new ones for review.

use std::path::{Path, PathBuf};

use crate::built_in::{record, replay};
use hitreg::arena::{ArenaMap, ArenaRules};
use hitreg::replay::ReplayOptions;
use hitreg::session::scenario::Scenario;
use hitreg::store;
use hitreg::verify::{LogVerdict, THREADS, VerifyReference};

fn sessions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions");
    let files = std::fs::read_dir(folder).expect("the fixtures").map(|entry| entry.expect("an entry").path());
    let logs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ending| ending == "hitlog")).collect();
    assert!(logs.len() >= 4, "{} sessions are fewer than there were", logs.len());
    logs
}

#[test]
fn every_session_replays_as_recorded_and_as_accepted() {
    for path in sessions() {
        let session = store::read_log(&path).expect("a sound log");
        let golden = std::fs::read_to_string(path.with_extension("golden")).expect("its golden");
        let options = ReplayOptions { rollback_every: Some(8), ..ReplayOptions::default() };
        let once = |_| replay(&session, &options);
        let replays: Vec<_> = THREADS.into_iter().map(once).collect::<Result<_, _>>().expect("a replay");
        let against = VerifyReference { golden: Some(&golden), rollback: true };
        let verified = crate::traces::verify_replays(&session, &replays, against);
        assert_eq!(verified.verdict, LogVerdict::Same, "{}: {:?}", path.display(), verified.detail);
        assert!(verified.exercised.shots > Some(0) && verified.exercised.hits > Some(0) && verified.rollbacks > 0);
    }
}

#[test]
fn every_session_equals_a_new_recording_of_its_scenario() {
    for path in sessions() {
        let text = std::fs::read_to_string(path.with_extension("toml")).expect("its scenario");
        let scenario = Scenario::parse(&text).expect("a good scenario");
        let rules = match scenario.map.as_deref() {
            None => ArenaRules::default(),
            Some("orchard") => ArenaRules::new(ArenaMap::orchard()),
            Some(other) => panic!("{other} is no built-in map"),
        };
        let session = record(&scenario, rules);
        let recorded = store::read_log(&path).expect("a sound log");
        assert!(session == recorded, "{} differs from a new recording", path.display());
    }
}

#[test]
fn a_golden_that_differs_is_shown() {
    let path = sessions().remove(0);
    let session = store::read_log(&path).expect("a sound log");
    let golden = std::fs::read_to_string(path.with_extension("golden")).expect("its golden").replace("hit p", "hit q");
    let once = |_| replay(&session, &ReplayOptions::default()).expect("a replay");
    let against = VerifyReference { golden: Some(&golden), rollback: false };
    let verified = crate::traces::verify_replays(&session, &THREADS.map(once), against);
    assert_eq!(verified.verdict, LogVerdict::Differs);
    assert!(verified.difference.is_some_and(|found| {
        let lines = found.to_string();
        lines.contains("-") && lines.contains("hit q")
    }));
}
