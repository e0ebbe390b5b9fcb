//! Sessions of the built-in game: bots on modelled links, recorded, replayed and compared.

use std::collections::BTreeSet;

use crate::built_in::{record, replay};
use hitreg::arena::{Arena, ArenaMap, ArenaRules};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::record::Session;
use hitreg::replay::{ReplayMode, ReplayOptions, ReplayOutput, WhatIf};
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::trace::schema::{corrections, effects, executed, shots, snapshots};

fn replay_with(session: &Session, change: &[&str]) -> ReplayOutput {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    for pair in change {
        settings.set_pair(pair).expect("a good setting");
    }
    let options = ReplayOptions { settings: Some(settings), rollback_every: Some(16), ..ReplayOptions::default() };
    replay(session, &options).expect("a log of this build")
}

fn constant(delay_ms: f64) -> LinkModel {
    LinkModel { delay_ms, ..LinkModel::default() }
}

#[test]
fn a_fight_replays_bit_for_bit() {
    let link = LinkModel { jitter: Jitter::Exponential(4.0), loss: Loss::Random(0.02), ..constant(40.0) };
    let session = record(&Scenario { link, seconds: 30.0, ..Scenario::default() }, ArenaRules::default());
    let replayed = replay_with(&session, &[]);
    assert_eq!(replayed.findings.first_difference, None);
    assert_eq!(replayed.findings.rollback_error, None);
    let summary = Summary::of(&replayed.trace);
    eprintln!("{summary:#?}");
    assert!(summary.shots.fired > Some(50) && summary.shots.hit > Some(10), "{:?}", summary.shots);
    assert_eq!(replayed.trace.digest(), replay_with(&session, &[]).trace.digest());
}

#[test]
fn shots_on_a_constant_link_are_judged_against_drawn_positions() {
    for (seed, delay_ms) in [(1, 15.0), (2, 40.0), (3, 85.0), (4, 130.0)] {
        let session = record(
            &Scenario { link: constant(delay_ms), seconds: 20.0, seed, ..Scenario::default() },
            ArenaRules::default(),
        );
        let shots = Summary::of(&replay_with(&session, &[]).trace).shots;
        let error = shots.view_error_units.expect("shots were rewound");
        assert!(shots.fired > Some(20) && error.max < 1e-3, "at {delay_ms} ms: {shots:?}");
    }
}

/// Clients extrapolate between slow updates, and when they draw the present. The server extrapolates, too.
#[test]
fn shots_at_extrapolated_targets_are_judged_against_drawn_positions() {
    for (update_hz, lerp_ms, delay_ms) in
        [("2", "100", 40.0), ("20", "0", 0.0), ("20", "0", 60.0), ("100", "1000", 200.0)]
    {
        let mut scenario = Scenario { link: constant(delay_ms), seconds: 40.0, ..Scenario::default() };
        let limit = ("lag_compensation.max_unlag_ms", "1500");
        for (key, value) in [("server.update_hz", update_hz), ("interpolation.lerp_ms", lerp_ms), limit] {
            scenario.settings.insert(key.to_owned(), value.to_owned());
        }
        let shots = Summary::of(&replay_with(&record(&scenario, ArenaRules::default()), &[]).trace).shots;
        let error = shots.view_error_units.expect("shots were rewound");
        assert!(shots.fired > Some(20) && error.max < 1e-3, "{update_hz} Hz, {lerp_ms} ms: {shots:?}");
    }
}

/// A usercmd that waits for its tick is judged by the snapshots that its client had when it made the usercmd.
#[test]
fn shots_on_a_tick_schedule_are_judged_against_drawn_positions() {
    let settings = [("server.schedule", "tick"), ("interpolation.lerp_ms", "0")];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let scenario = Scenario { link: constant(60.0), seconds: 40.0, settings, ..Scenario::default() };
    let shots = Summary::of(&replay_with(&record(&scenario, ArenaRules::default()), &[]).trace).shots;
    let error = shots.view_error_units.expect("shots were rewound");
    // The drawn time is rounded to milliseconds.
    assert!(shots.fired > Some(20) && error.max < 0.5, "{shots:?}");
}

/// A shot's verdict under a longer limit is only recorded, also when bursts of loss leave clients without snapshots.
#[test]
fn judging_under_a_longer_limit_does_not_change_the_session() {
    let link = LinkModel { loss: Loss::Burst { enter: 0.01, leave: 0.06 }, ..constant(60.0) };
    let session = record(&Scenario { players: 4, seconds: 40.0, link, ..Scenario::default() }, ArenaRules::default());
    let mut longest = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    longest.set("lag_compensation.max_unlag_ms", "1500").expect("a setting");
    let limits = |rejudged: bool| {
        let settings = rejudged.then(|| longest.clone());
        let replayed =
            replay(&session, &ReplayOptions::default().under(settings, WhatIf::Rejudge)).expect("a log of this build");
        assert_eq!(replayed.findings.first_difference, None);
        let table = shots::Columns::of(&replayed.trace);
        let is_limited = |row: &usize| table.limit.get(*row) == "max_unlag";
        let ran = executed::Columns::of(&replayed.trace);
        let stood_in: BTreeSet<_> = (0..ran.rows)
            .filter(|row| ran.how.get(*row) == "stood_in")
            .map(|row| (ran.player[row], ran.command[row]))
            .collect();
        // Stand-ins have the view of another usercmd. A later packet may bring a usercmd, and with it a newer ack.
        let is_stand_in = |row: usize| stood_in.contains(&(table.shooter[row], table.command[row]));
        let unlimited = |row: &usize| table.limit.get(*row) == "none" && !is_stand_in(*row);
        let is_off = |row: &usize| unlimited(row) && table.view_error_units[*row] > 1e-3;
        let [all, off] = [(0..table.rows).filter(unlimited).count(), (0..table.rows).filter(is_off).count()];
        assert!(all > 50 && off <= 2, "{off} of {all} shots are judged elsewhere");
        (0..table.rows).filter(is_limited).count()
    };
    let (own, longest) = (limits(false), limits(true));
    assert!(own > longest, "{own} and {longest} limited shots");
}

/// With a short limit of prediction, usercmds are acked before a client runs them. Their effects are heard all the same,
/// and each shot has one row.
#[test]
fn a_player_hears_its_own_shots_whatever_it_predicts() {
    for push_ms in ["-10000", "-50", "-20", "0"] {
        let mut scenario = Scenario { players: 3, seconds: 40.0, seed: 2, link: constant(60.0), ..Scenario::default() };
        scenario.settings.insert("prediction.push_latency_ms".to_owned(), push_ms.to_owned());
        let replayed = replay_with(&record(&scenario, ArenaRules::default()), &[]);
        let (heard, fired) = (effects::Columns::of(&replayed.trace), shots::Columns::of(&replayed.trace));
        let own = (0..heard.rows).filter(|row| heard.player[*row] == heard.entity[*row]);
        let own_fired =
            own.clone().filter(|row| ["pistol", "shotgun", "launcher"].contains(&heard.kind.get(*row))).count();
        let own_steps = own.filter(|row| heard.kind.get(*row) == "footstep").count();
        let mut keys: Vec<_> =
            (0..fired.rows).map(|row| (fired.shooter[row], fired.command[row], fired.index[row])).collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        // The server fires nearly all that a client predicts.
        let not_run = fired.reason.iter().filter(|reason| *reason == "not run").count();
        assert!(keys.len() == all && not_run <= 4, "{push_ms} ms: {not_run} of {all}");
        assert!(own_fired > 20 && own_steps > 100, "{push_ms} ms: {own_fired} shots, {own_steps} steps");
    }
}

/// A session whose snapshots have no room for all.
fn without_room() -> Session {
    let settings = [("wire.message_max_bytes", "400")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let (players, link) = (24, constant(60.0));
    let scenario = Scenario { players, link, seconds: 10.0, seed: 3, settings, ..Scenario::default() };
    record(&scenario, ArenaRules::default())
}

#[test]
fn the_table_of_snapshots_counts_the_effects_that_clients_play() {
    let options = ReplayOptions { network: true, sizes: true, ..ReplayOptions::default() };
    let trace = replay(&without_room(), &options).expect("a log of this build").trace;
    let (sent, played) = (snapshots::Columns::of(&trace), effects::Columns::of(&trace));
    let arrived = (0..sent.rows).filter(|row| sent.arrived[*row] > 0);
    let in_snapshots: u32 = arrived.map(|row| sent.effects[row]).sum();
    let not_predicted = played.predicted.iter().filter(|predicted| **predicted == 0).count();
    assert_eq!(in_snapshots as usize, not_predicted);
    assert!(sent.left_out.iter().filter(|left_out| **left_out > 0).count() > 1_000);
}

/// Entities without room stand still on the client's screen until a snapshot has room for them.
#[test]
fn shots_at_waiting_entities_are_judged_against_drawn_positions() {
    let replayed = replay_with(&without_room(), &[]);
    assert_eq!(replayed.findings.first_difference, None);
    let shots = Summary::of(&replayed.trace).shots;
    let error = shots.view_error_units.expect("shots were rewound");
    assert!(shots.fired > Some(100) && error.max < 1e-3, "{shots:?}");
}

#[test]
fn without_interference_or_loss_prediction_equals_the_server() {
    let rules = ArenaRules { player_collision: false, knockback_units_s: 0.0, ..ArenaRules::default() };
    let session = record(&Scenario { link: constant(60.0), seconds: 20.0, ..Scenario::default() }, rules);
    let prediction = Summary::of(&replay_with(&session, &[]).trace).prediction;
    assert!(prediction.checked > 1000);
    let unexplained: u64 =
        prediction.misses_by_cause.iter().filter(|(cause, _)| *cause != "spawn_or_death").map(|(_, count)| count).sum();
    assert_eq!(unexplained, 0, "{prediction:?}");
}

/// On another map nearly every prediction is corrected and no hypothesis explains it. After a thousand failures, the
/// search for causes stops.
#[test]
fn the_search_for_causes_has_a_limit() {
    let mut scenario = Scenario { players: 1, seconds: 40.0, link: constant(20.0), ..Scenario::default() };
    scenario.settings.insert("server.update_hz".to_owned(), "60".to_owned());
    let mut session = record(&scenario, ArenaRules::default());
    let elsewhere = scenario.header::<Arena>(&ArenaRules::new(ArenaMap::orchard())).expect("a good scenario");
    let evidence = |session: &Session| {
        let options = ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() };
        let trace = replay(session, &options).expect("a log of this build").trace;
        let corrections = corrections::Columns::of(&trace);
        let both = corrections.cause.iter().zip(corrections.evidence.iter());
        let unknown: Vec<String> =
            both.filter(|(cause, _)| *cause == "unknown").map(|(_, evidence)| evidence.to_owned()).collect();
        unknown
    };
    assert!(!evidence(&session).contains(&"not looked into".to_owned()));
    session.header.rules = elsewhere.rules;
    session.header.map = elsewhere.map;
    let evidence = evidence(&session);
    let looked = evidence.iter().position(|evidence| evidence == "not looked into").expect("many misses");
    assert!((900..1000).contains(&looked), "{looked} unknown ones before");
    assert!(evidence[looked..].iter().all(|evidence| evidence == "not looked into"));
}

/// A place behind an edge looks near, but walking straight does not lead there.
#[test]
fn bots_do_not_stay_before_a_place_that_they_cannot_reach() {
    for seed in [3, 5] {
        let scenario = Scenario { players: 2, seconds: 240.0, seed, ..Scenario::default() };
        let session = record(&scenario, ArenaRules::default());
        let trace = replay_with(&session, &[]).trace;
        let shots = shots::Columns::of(&trace);
        for minute in 0..4 {
            let within = minute * 60_000_000..(minute + 1) * 60_000_000;
            let fired = shots.at_us.iter().filter(|at| within.contains(*at)).count();
            assert!(fired > 0, "seed {seed}: no shot in minute {minute} of {}", shots.rows);
        }
    }
}
