//! The three what-if modes: what each keeps, and what its counts of hits do not depend on.

use std::sync::Arc;

use super::sweep::run_sweep;
use crate::disc::{DiscRules, Discs};
use hitreg::link::LinkModel;
use hitreg::record::Session;
use hitreg::replay::{ReplayError, ReplayOptions, ReplayOutput, WhatIf, replay};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::sweep::{Axis, Sweep, SweepPlan};
use hitreg::trace::schema::shots;

/// Discs at constant distances, recorded with this interpolation delay in ms.
fn recorded_under(lerp_ms: &str) -> Session {
    recorded_with(&[("interpolation.lerp_ms", lerp_ms)])
}

fn recorded_with(settings: &[(&str, &str)]) -> Session {
    let link = LinkModel { delay_ms: 60.0, ..LinkModel::default() };
    let settings = settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario { seed: 8, seconds: 5.0, link, settings, ..Scenario::default() };
    let mut session = Session::new(scenario.header::<Discs>(&DiscRules::default()).expect("a good scenario"));
    record_synthetic::<Discs>(&scenario, &Arc::new(DiscRules::default()), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

fn own_settings(session: &Session) -> Settings {
    Settings::from_pairs(&session.header.settings).expect("recorded settings")
}

fn rejudge(session: &Session, change: &str) -> Result<ReplayOutput, ReplayError> {
    let mut settings = own_settings(session);
    settings.set_pair(change).expect("a good setting");
    replay::<Discs>(session, &ReplayOptions { rejudge: Some(settings), ..ReplayOptions::default() }, &mut |_| {})
}

fn sweep_values(session: &Session, what_if: WhatIf) -> Sweep {
    let axes = vec![Axis::parse("interpolation.lerp_ms=0,50,100", false).expect("an axis")];
    let plan = SweepPlan::new(axes, what_if, 3).expect("a plan");
    run_sweep(std::slice::from_ref(session), &plan, &|| {})
}

#[test]
fn rejudging_changes_only_the_results_of_shots() {
    let session = recorded_under("100");
    let plain = replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    let off = rejudge(&session, "lag_compensation.enabled=false").expect("a server to judge");
    assert_eq!(off.findings.first_difference, None, "the world went its own way");
    assert_eq!(off.findings.hashes_compared, session.ticks.len() as u64);
    for (before, after) in plain.trace.tables.iter().zip(&off.trace.tables) {
        assert_eq!(before == after, before.name != "shots", "table {}", before.name);
    }
    let (with, without) = (shots::Columns::of(&plain.trace), shots::Columns::of(&off.trace));
    assert!(with.rewind_us.iter().any(|us| *us > 200_000), "nothing was compensated");
    assert!(without.rewind_us.iter().all(|us| *us == 0), "something still is");
    let hits = |shots: &shots::Columns<'_>| shots.reason.iter().filter(|reason| *reason == "hit").count();
    assert!(hits(&with) > 2 * hits(&without), "{} and {}", hits(&with), hits(&without));
}

#[test]
fn rejudging_under_the_same_settings_equals_the_replay() {
    let session = recorded_under("100");
    let plain = replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    let mut same = rejudge(&session, "lag_compensation.enabled=true").expect("a server to judge");
    assert_eq!(same.trace.header.mode, "closed, rejudged");
    same.trace.header.mode.clone_from(&plain.trace.header.mode);
    assert_eq!(plain.trace.digest().to_string(), same.trace.digest().to_string());
}

#[test]
fn rejudging_uses_the_changed_interpolation_delay() {
    let by_tick = [("server.schedule", "tick"), ("client.lead_ms", "40")];
    for more in [&[][..], &by_tick] {
        let session = recorded_with(&[&[("interpolation.lerp_ms", "100")], more].concat());
        let rewinds = |lerp: &str| {
            let replayed = rejudge(&session, lerp).expect("a server to judge");
            shots::Columns::of(&replayed.trace).rewind_us.to_vec()
        };
        let (hundred, fifty) = (rewinds("interpolation.lerp_ms=100"), rewinds("interpolation.lerp_ms=50"));
        assert!(hundred.len() > 50);
        let less = hundred.iter().zip(&fifty).filter(|(before, after)| *before - *after == 50_000).count();
        assert!(less * 10 > hundred.len() * 9, "{less} of {}", hundred.len());
    }
}

#[test]
fn rejudging_uses_the_changed_interpolation_delay_of_one_player() {
    let session = recorded_under("100");
    let shots_of = |change: &str| {
        let replayed = rejudge(&session, change).expect("a server to judge");
        let shots = shots::Columns::of(&replayed.trace);
        shots.shooter.iter().copied().zip(shots.rewind_us.iter().copied()).collect::<Vec<_>>()
    };
    let (before, after) = (shots_of("interpolation.lerp_ms=100"), shots_of("p1.interpolation.lerp_ms=50"));
    let changed = before.iter().zip(&after).filter(|(before, after)| before.1 != after.1);
    let changed: Vec<u32> = changed.map(|(before, _)| before.0).collect();
    assert!(changed.len() > 10 && changed.iter().all(|shooter| *shooter == 1), "{changed:?}");
}

#[test]
fn settings_that_change_more_than_judging_are_refused() {
    let error = rejudge(&recorded_under("100"), "server.update_hz=10").expect_err("it changes what clients see");
    assert!(matches!(&error, ReplayError::NotForJudging { key } if key == "server.update_hz"), "{error}");
}

#[test]
fn new_sessions_of_bots_do_not_depend_on_the_recording() {
    let logs = [recorded_under("100"), recorded_under("0")];
    let [anew, replayed] =
        [WhatIf::Rerecord, WhatIf::Replay].map(|what_if| logs.each_ref().map(|log| sweep_values(log, what_if)));
    assert_eq!(anew[0].rows, anew[1].rows, "the recorded lerp affects new sessions");
    assert_ne!(replayed[0].rows, replayed[1].rows, "the recorded lerp does not show in replays");
    for row in &anew[0].rows {
        assert!(row.figures.shots > Some(3 * 50), "{:?}: {:?} shots of three sessions", row.values, row.figures.shots);
        assert!(row.figures.hit_share_ci95.is_some_and(|half| half > 0.0 && half < 0.5), "{row:?}");
    }
    assert!(replayed[0].rows.iter().all(|row| row.figures.hit_share_ci95.is_none()));
}

#[test]
fn replays_favour_the_setting_that_was_recorded() {
    // The reason for the three modes: a sweep over two logs of the same players favours the recorded setting of each.
    let best = |lerp: &str| {
        let sweep = sweep_values(&recorded_under(lerp), WhatIf::Replay);
        let best = sweep.rows.iter().max_by_key(|row| row.figures.hits).expect("rows");
        best.values[0].clone()
    };
    assert_eq!([best("0"), best("100")], ["0", "100"]);
}

#[test]
fn one_seed_has_no_confidence() {
    let axes = vec![Axis::parse("interpolation.lerp_ms=0", false).expect("an axis")];
    let plan = SweepPlan::new(axes, WhatIf::Rerecord, 1);
    assert!(plan.is_err_and(|error| error.contains("at least 2 seeds, not 1")));
}
