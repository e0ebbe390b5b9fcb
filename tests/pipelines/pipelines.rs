//! The pipelines in virtual time, with a game whose results are known.

use std::sync::Arc;

use crate::disc::{DiscRules, Discs};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::memory::MemoryLimit;
use hitreg::record::{Execution, Session};
use hitreg::replay::{ReplayOptions, ReplayOutput, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::trace::schema::corrections;
use proptest::prelude::*;

pub(crate) fn record(scenario: &Scenario, rules: DiscRules) -> Session {
    let header = scenario.header::<Discs>(&rules).expect("a good scenario");
    let mut session = Session::new(header);
    record_synthetic::<Discs>(scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

fn replay_with(session: &Session, options: &ReplayOptions) -> ReplayOutput {
    replay::<Discs>(session, options, &mut |_| {}).expect("a log of this build")
}

fn summary(session: &Session, change: &[&str]) -> Summary {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    for pair in change {
        settings.set_pair(pair).expect("a good setting");
    }
    Summary::of(&replay_with(session, &ReplayOptions { settings: Some(settings), ..ReplayOptions::default() }).trace)
}

fn scenario(seed: u64, link: LinkModel) -> Scenario {
    Scenario { players: 4, seconds: 8.0, seed, link, ..Scenario::default() }
}

fn bad_link() -> LinkModel {
    LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(6.0),
        loss: Loss::Burst { enter: 0.02, leave: 0.3 },
        duplicate: 0.02,
        reorder: 0.03,
        reorder_ms: 20.0,
        ..LinkModel::default()
    }
}

#[test]
fn a_replay_equals_the_recording() {
    let session = record(&scenario(3, bad_link()), DiscRules { push_units: 4.0, ..DiscRules::default() });
    let replayed = replay_with(&session, &ReplayOptions::default());
    assert_eq!(replayed.findings.first_difference, None);
    assert_eq!(replayed.findings.hashes_compared, session.ticks.len() as u64);
    assert!(replayed.findings.hashes_compared > 500);
    let digests: Vec<_> = (0..3).map(|_| replay_with(&session, &ReplayOptions::default()).trace.digest()).collect();
    assert!(digests.iter().all(|d| *d == replayed.trace.digest()));
}

#[test]
fn recording_a_replay_gives_the_same_log() {
    let session = record(&scenario(31, bad_link()), DiscRules { push_units: 4.0, ..DiscRules::default() });
    assert_eq!(rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
}

#[test]
fn a_replay_detects_other_input() {
    let mut session = record(&scenario(3, LinkModel::default()), DiscRules::default());
    let frame = &mut session.players[2].frames[100];
    frame.command.input.forwardmove += 0.25;
    let difference = replay_with(&session, &ReplayOptions::default())
        .findings
        .first_difference
        .expect("another input, another world");
    assert!(difference.tick.0 > 90 && difference.tick.0 < 120, "{difference:?}");
}

#[test]
fn predictions_are_exact_without_losses_and_collisions() {
    let mut lonely = scenario(5, LinkModel { delay_ms: 70.0, ..LinkModel::default() });
    lonely.players = 1;
    let summary = summary(&record(&lonely, DiscRules::default()), &[]);
    assert!(summary.prediction.checked > 100);
    assert_eq!(summary.prediction.exact, summary.prediction.checked);
}

#[test]
fn lag_compensation_restores_the_shooters_view() {
    let session = record(
        &scenario(7, LinkModel { delay_ms: 60.0, ..LinkModel::default() }),
        DiscRules { ghosts: true, ..DiscRules::default() },
    );
    let with = summary(&session, &[]);
    let spread = with.shots.view_error_units.expect("shots were rewound");
    assert!(with.shots.fired > Some(100), "{:?}", with.shots);
    assert!(spread.max < 1e-3, "{spread:?}");
    assert_eq!(with.shots.agreed, with.shots.fired);
    let without = summary(&session, &["lag_compensation.enabled=false"]);
    let spread = without.shots.view_error_units.expect("shots were judged");
    assert!(spread.p50 > 5.0, "{spread:?}");
    let [without, with] = [without, with].map(|of| of.shots.hit.expect("shots were judged"));
    assert!(without * 2 < with, "{without} {with}");
}

#[test]
fn a_lost_packet_loses_no_input_if_a_repeat_arrives() {
    let lossy = LinkModel { loss: Loss::Random(0.1), delay_ms: 30.0, ..LinkModel::default() };
    let how_many = |redundancy: &str, how| {
        let mut scenario = scenario(11, lossy.clone());
        scenario.settings.insert("client.redundancy".to_owned(), redundancy.to_owned());
        let session = record(&scenario, DiscRules::default());
        session.players.iter().flat_map(|p| &p.executed).filter(|e| e.how == how).count()
    };
    assert!(how_many("1", Execution::StoodIn) > 100);
    assert!(how_many("4", Execution::StoodIn) < 3);
    assert!(how_many("4", Execution::Run) > 2000);
}

#[test]
fn corrections_have_their_true_cause() {
    let mut scenario = scenario(13, LinkModel { loss: Loss::Random(0.1), delay_ms: 30.0, ..LinkModel::default() });
    scenario.settings.insert("client.redundancy".to_owned(), "1".to_owned());
    let causes = summary(&record(&scenario, DiscRules::default()), &[]).prediction.misses_by_cause;
    assert!(causes.get("input_lost").is_some_and(|n| *n > 30), "{causes:?}");
    let pushed = record(
        &self::scenario(17, LinkModel { delay_ms: 40.0, ..LinkModel::default() }),
        DiscRules { push_units: 8.0, ..DiscRules::default() },
    );
    let causes = summary(&pushed, &[]).prediction.misses_by_cause;
    assert!(causes.get("knockback").is_some_and(|n| *n > 20), "{causes:?}");
    assert!(!causes.contains_key("input_lost"), "{causes:?}");
}

/// Other players push this one between the usercmds that it sends.
#[test]
fn a_snapshot_that_repeats_an_ack_and_moves_the_player_is_a_correction() {
    let mut scenario = scenario(17, LinkModel { delay_ms: 40.0, ..LinkModel::default() });
    scenario.settings.insert("client.cmd_hz".to_owned(), "10".to_owned());
    scenario.settings.insert("server.update_hz".to_owned(), "64".to_owned());
    let session = record(&scenario, DiscRules { push_units: 8.0, ..DiscRules::default() });
    let trace = replay_with(&session, &ReplayOptions::default()).trace;
    let rows = corrections::Columns::of(&trace);
    let repeated = |row: &usize| rows.commands[*row] == 0;
    let (mut pushed, mut exact) = (0, 0);
    for row in (0..rows.rows).filter(repeated) {
        pushed += usize::from(rows.cause.get(row) == "knockback" && rows.reran[row] > 0);
        exact += usize::from(rows.fields[row] == 0);
    }
    assert!(pushed > 20, "{pushed} of {} rows", rows.rows);
    assert_eq!(exact, 0, "a repeated ack that corrects nothing has a row");
}

/// Usercmds that arrived are not lost, and usercmds lost in two places of one ack are.
#[test]
fn corrections_say_why_the_server_did_not_run_a_usercmd() {
    let causes = |link: LinkModel, settings: &[(&str, &str)]| {
        let mut scenario = scenario(13, link);
        let settings = settings.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        scenario.settings.extend(settings);
        let session = record(&scenario, DiscRules { ghosts: true, ..DiscRules::default() });
        let causes = summary(&session, &[]).prediction.misses_by_cause;
        let open = ReplayOptions { mode: hitreg::replay::ReplayMode::Open, ..ReplayOptions::default() };
        let open = Summary::of(&replay_with(&session, &open).trace).prediction.misses_by_cause;
        assert_eq!(open, causes, "an open loop knows what the recorded server ran");
        causes
    };
    let jittery = LinkModel { delay_ms: 30.0, jitter: Jitter::Uniform(30.0), ..LinkModel::default() };
    let refused = causes(jittery.clone(), &[("server.command_credit_ms", "4")]);
    assert!(refused.get("input_refused").is_some_and(|n| *n > 30), "{refused:?}");
    assert!(!refused.contains_key("input_lost") && !refused.contains_key("unknown"), "{refused:?}");
    let late = causes(jittery, &[("server.schedule", "tick"), ("client.lead_ms", "0")]);
    assert!(late.get("input_late").is_some_and(|n| *n > 30), "{late:?}");
    assert!(!late.contains_key("unknown"), "{late:?}");
    let lossy = LinkModel { loss: Loss::Random(0.3), delay_ms: 30.0, ..LinkModel::default() };
    let lost = causes(lossy, &[("client.redundancy", "1")]);
    assert!(lost.get("input_lost").is_some_and(|n| *n > 30) && !lost.contains_key("unknown"), "{lost:?}");
}

/// The server replaces usercmds that later ones overtake, and acks them before they arrive.
#[test]
fn overtaken_usercmds_are_late_and_not_lost() {
    let link = LinkModel { delay_ms: 5.0, reorder: 0.05, reorder_ms: 40.0, ..LinkModel::default() };
    let mut scenario = scenario(13, link);
    let settings = [("client.redundancy", "1"), ("server.update_hz", "64")];
    scenario.settings.extend(settings.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let session = record(&scenario, DiscRules { ghosts: true, ..DiscRules::default() });
    let causes = summary(&session, &[]).prediction.misses_by_cause;
    assert!(causes.get("input_late").is_some_and(|n| *n > 10), "{causes:?}");
    assert!(!causes.contains_key("input_lost"), "{causes:?}");
}

#[test]
fn the_rollback_check_finds_a_field_missing_in_the_save() {
    let check = |forgets| {
        let session =
            record(&scenario(19, LinkModel::default()), DiscRules { forgets, push_units: 1.0, ..DiscRules::default() });
        let replayed = replay_with(&session, &ReplayOptions { rollback_every: Some(7), ..ReplayOptions::default() });
        assert_eq!(replayed.findings.rollbacks, session.ticks.len() as u32 / 7);
        replayed.findings.rollback_error
    };
    assert_eq!(check(false), None);
    assert!(check(true).is_some());
}

#[test]
fn open_loop_needs_no_server() {
    let session = record(&scenario(23, LinkModel { delay_ms: 35.0, ..LinkModel::default() }), DiscRules::default());
    let options = ReplayOptions { mode: hitreg::replay::ReplayMode::Open, ..ReplayOptions::default() };
    let open = Summary::of(&replay_with(&session, &options).trace);
    let closed = summary(&session, &[]);
    assert!(open.exercised.ticks == 0 && open.prediction.checked > 300);
    assert_eq!(open.prediction.exact + open.prediction.near, closed.prediction.exact + closed.prediction.near);
}

#[test]
fn prediction_off_predicts_nothing_and_pushes_cause_corrections() {
    let mut one = scenario(29, LinkModel { delay_ms: 100.0, ..LinkModel::default() });
    one.players = 1;
    let session = record(&one, DiscRules::default());
    let ran = |change: &[&str]| {
        let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
        for pair in change {
            settings.set_pair(pair).expect("a good setting");
        }
        let trace =
            replay_with(&session, &ReplayOptions { settings: Some(settings), ..ReplayOptions::default() }).trace;
        Summary::of(&trace).prediction.checked
    };
    assert_eq!(ran(&["prediction.mode=off"]), 0);
    assert!(ran(&["prediction.push_latency_ms=-100"]) > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_session_replays_to_its_hashes(
        seed in any::<u64>(),
        players in 1u16..6,
        delay_ms in 0.0..200.0f64,
        loss in 0.0..0.3f64,
        jitter_ms in 0.0..40.0f64,
        reorder in 0.0..0.2f64,
        cmd_hz in 10u32..150,
        update_hz in 5u32..70,
    ) {
        let link = LinkModel {
            delay_ms,
            jitter: Jitter::Uniform(jitter_ms),
            loss: Loss::Random(loss),
            reorder,
            reorder_ms: 30.0,
            duplicate: 0.05,
            ..LinkModel::default()
        };
        let mut scenario = Scenario { players, seconds: 2.0, seed, link, ..Scenario::default() };
        scenario.settings.insert("client.cmd_hz".to_owned(), cmd_hz.to_string());
        scenario.settings.insert("server.update_hz".to_owned(), update_hz.to_string());
        let session = record(&scenario, DiscRules { push_units: 3.0, ..DiscRules::default() });
        let replayed = replay_with(&session, &ReplayOptions::default());
        prop_assert_eq!(replayed.findings.first_difference, None);
        prop_assert_eq!(replayed.findings.hashes_compared, session.ticks.len() as u64);
    }
}
