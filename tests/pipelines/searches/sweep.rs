//! Sweeps and fairness: effects of settings on hits, errors and cover.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::built_in;
use crate::disc::{DiscRules, Discs};
use hitreg::arena::{Arena, ArenaRules};
use hitreg::engine::{self, Engine, Games, SurveyedLog};
use hitreg::fairness::Fairness;
use hitreg::info::SessionInfo;
use hitreg::link::{Jitter, LinkModel};
use hitreg::log::{WriterOptions, write_session};
use hitreg::memory::MemoryLimit;
use hitreg::record::Session;
use hitreg::replay::{ReplayOptions, ReplayOutput, WhatIf, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::sweep::{Axis, SEEDS, Sweep, SweepCell, SweepPlan};
use hitreg::trace::{ColumnData, Trace};

fn record_discs(scenario: &Scenario, rules: DiscRules) -> Session {
    let mut session = Session::new(scenario.header::<Discs>(&rules).expect("a good scenario"));
    record_synthetic::<Discs>(scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

fn discs(seed: u64) -> Session {
    let link = LinkModel { delay_ms: 60.0, jitter: Jitter::Exponential(5.0), ..LinkModel::default() };
    record_discs(&Scenario { seed, seconds: 6.0, link, ..Scenario::default() }, DiscRules::default())
}

/// Two near players and two far away, for long enough that some hits are around a corner.
fn arena() -> Session {
    let link = |delay_ms| LinkModel { delay_ms, ..LinkModel::default() };
    let links = vec![link(10.0), link(150.0), link(20.0), link(120.0), link(15.0), link(140.0)];
    let scenario = Scenario { seconds: 60.0, players: 6, links, ..Scenario::default() };
    built_in::record(&scenario, ArenaRules::default())
}

fn axes(texts: &[&str]) -> Vec<Axis> {
    texts.iter().map(|text| Axis::parse(text, false).expect(text)).collect()
}

fn plan(texts: &[&str]) -> SweepPlan {
    SweepPlan::new(axes(texts), WhatIf::Replay, SEEDS).expect("a good plan")
}

fn sweep_axes(sessions: &[Session], axes: &[&str]) -> Sweep {
    run_sweep(sessions, &plan(axes), &|| {})
}

pub(super) fn run_sweep(sessions: &[Session], plan: &SweepPlan, done: &(dyn Fn() + Sync)) -> Sweep {
    let games = Games::default().recording::<Discs>(|_| Ok(DiscRules::default()));
    let game = games.of(&sessions[0]).expect("discs");
    let folder = tempfile::tempdir().expect("a folder");
    let log = |(number, session): (usize, &Session)| {
        let path = folder.path().join(format!("{number}.hitlog"));
        let bytes = write_session(Vec::new(), session, WriterOptions::whole()).expect("memory takes all");
        std::fs::write(&path, bytes).expect("the folder takes files");
        Engine::new(&games).survey(&path).expect("a sound log")
    };
    let logs: Vec<SurveyedLog> = sessions.iter().enumerate().map(log).collect();
    let of_groups = |size, done| {
        let figures =
            |group| engine::sweep(game, group, plan, done).into_iter().map(|log| log.expect("a log of this build"));
        plan.sweep(&logs.chunks(size).flat_map(figures).collect::<Vec<_>>())
    };
    let sweep = of_groups(sessions.len(), done);
    if sessions.len() > 1 {
        assert_eq!(sweep, of_groups(1, &|| {}), "each log alone");
    }
    sweep
}

fn changed(session: &Session, change: &str) -> ReplayOptions {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    settings.set_pair(change).expect("a good setting");
    ReplayOptions { settings: Some(settings), sizes: true, ..ReplayOptions::default() }
}

fn replay_discs(session: &Session, change: &str) -> ReplayOutput {
    replay::<Discs>(session, &changed(session, change), &mut |_| {}).expect("a log of this build")
}

fn replay_arena(session: &Session, change: &str) -> ReplayOutput {
    built_in::replay(session, &changed(session, change)).expect("a log of this build")
}

/// The interval is over the seeds: the same log twice tells no more than once.
#[test]
fn a_confidence_interval_is_over_the_seeds_and_not_over_the_logs() {
    let plan = SweepPlan::new(axes(&["interpolation.lerp_ms=0"]), WhatIf::Rerecord, 4).expect("enough seeds");
    let intervals = |logs: &[Session]| -> Vec<Option<f64>> {
        run_sweep(logs, &plan, &|| {}).rows.iter().map(|row| row.figures.hit_share_ci95).collect()
    };
    let link = LinkModel { delay_ms: 60.0, ..LinkModel::default() };
    let log = record_discs(&Scenario { seconds: 40.0, link, ..Scenario::default() }, DiscRules::default());
    let once = intervals(std::slice::from_ref(&log));
    assert!(once.iter().all(Option::is_some), "{once:?}");
    assert_eq!(intervals(&[log.clone(), log.clone(), log]), once);
}

#[test]
fn a_sweep_of_one_point_is_the_plain_replay() {
    let session = discs(3);
    let replayed = replay_discs(&session, "interpolation.lerp_ms=40");
    let summary = Summary::of(&replayed.trace);
    let sweep = sweep_axes(std::slice::from_ref(&session), &["interpolation.lerp_ms=40"]);
    let [row] = &sweep.rows[..] else { panic!("{} rows", sweep.rows.len()) };
    let f = &row.figures;
    assert!(f.shots > Some(100) && f.hits > Some(0) && f.corrections > Some(0), "{f:?}");
    let (shots, exercised) = (&summary.shots, &summary.exercised);
    assert_eq!([f.shots, f.hits, f.usercmds], [shots.fired, shots.hit, Some(exercised.usercmds)]);
    assert_eq!([f.checked, f.corrections], [Some(summary.prediction.checked), exercised.corrections]);
    assert_eq!(f.view_error_units, summary.shots.view_error_units);
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    settings.set_pair("interpolation.lerp_ms=40").expect("a good setting");
    let recorded = rerecord::<Discs>(MemoryLimit::default(), &session, Some(&settings)).expect("a log of this build");
    let sent: u64 = recorded.players.iter().flat_map(|p| &p.snapshots).map(|s| u64::from(s.bytes)).sum();
    assert_eq!(replayed.findings.traffic.expect("a server ran").down_bytes, sent);
    let rate = sent as f64 / session.duration().as_s_f64() / 4.0;
    assert_eq!(f.down_bytes_per_s, Some(rate));
    assert_eq!(f.hits_in_cover, None, "the plane has no cover");
}

#[test]
fn points_are_in_order_for_any_number_of_threads() {
    let sessions = [discs(3), discs(4)];
    let axes =
        ["lag_compensation.enabled=true,false", "preset=half-life,dumb-client", "interpolation.lerp_ms=0..100:50"];
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        let done = AtomicUsize::new(0);
        let count = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        let sweep = pool.install(|| run_sweep(&sessions, &plan(&axes), &count));
        assert_eq!(done.into_inner(), 2 * 2 * 2 * 3);
        sweep
    };
    let sweep = with(1);
    assert_eq!(sweep, with(3));
    assert_eq!(sweep.keys, ["preset", "lag_compensation.enabled", "interpolation.lerp_ms"]);
    let values: Vec<String> = sweep.rows.iter().map(|row| row.values.join(" ")).collect();
    assert_eq!(values[..4], ["half-life true 0", "half-life true 50", "half-life true 100", "half-life false 0"]);
    assert_eq!(values.len(), 12);
    // The figures of two logs are the sums of each log's.
    let apart: Vec<u64> = sessions
        .iter()
        .map(|s| sweep_axes(std::slice::from_ref(s), &axes).rows[3].figures.shots.unwrap_or_default())
        .collect();
    assert_eq!(sweep.rows[3].figures.shots, Some(apart.iter().sum::<u64>()));
    // Without prediction there are no missed hits on the screen.
    assert_eq!(sweep.rows[6].figures.missed_on_target, None);
}

#[test]
fn without_lag_compensation_aimed_shots_miss() {
    let sweep = sweep_axes(&[discs(5)], &["lag_compensation.enabled=true,false"]);
    let missed: Vec<u64> = sweep.rows.iter().map(|row| row.figures.missed_on_target.expect("predicted")).collect();
    assert!(missed[1] > 20 && missed[0] * 4 < missed[1], "{missed:?}");
}

#[test]
fn a_sweep_is_written_as_text_csv_and_json() {
    let sweep = sweep_axes(&[discs(6)], &["preset=half-life,quakeworld", "interpolation.lerp_ms=0..100:100"]);
    let text = hitreg::report::sweep_page(&sweep).text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("\n  half-life 0"), "{text}");
    let table = sweep.table();
    let csv = table.to_csv();
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 5);
    assert!(
        lines[0].starts_with(
            "preset,interpolation.lerp_ms,what_if,usercmds,shots,launched,impacts,not_run,hits,hit_share,hit_share_ci95,"
        ),
        "{}",
        lines[0]
    );
    assert!(lines.iter().all(|line| line.matches(',').count() == table.columns.len() - 1));
    let json = serde_json::to_value(&table).expect("a table is JSON");
    assert_eq!(json[1]["interpolation.lerp_ms"], "100");
    assert_eq!(json[1]["hits"], sweep.rows[1].figures.hits.unwrap());
    assert!(json[0]["in_cover_ms_p50"].is_null());
    assert_eq!(SweepCell::Text("half-life".into()), table.rows[0][0]);
}

#[test]
fn invalid_plans_are_refused() {
    let plan = |texts: &[&str]| SweepPlan::new(axes(texts), WhatIf::Replay, SEEDS);
    let refused = |axes: &[&str], said: &str| assert!(plan(axes).is_err_and(|error| error.contains(said)), "{axes:?}");
    refused(&[], "nothing to sweep");
    refused(&["client.cmd_hz=1", "client.cmd_hz=2"], "`client.cmd_hz` is given twice");
    refused(&["client.cmd_hz=1", "client.redundancy=2", "server.tick_hz=3"], "3 settings are given");
    refused(&["client.cmd_hz=1..500", "server.tick_hz=1..500"], "250000 combinations");
}

#[test]
fn lag_compensation_causes_hits_around_corners() {
    let session = arena();
    let with = Fairness::of(&replay_arena(&session, "lag_compensation.enabled=true").trace);
    let without = Fairness::of(&replay_arena(&session, "lag_compensation.enabled=false").trace);
    eprintln!("with {:#?}\nwithout {:?}", with, without.all);
    assert!(with.all.hits > 20 && with.all.known == with.all.hits, "{:?}", with.all);
    assert!(with.all.in_cover > 0, "{:?}", with.all);
    // A target that the server hits at its present is in sight at its present.
    assert_eq!((without.all.in_cover, without.all.known > 0), (0, true), "{:?}", without.all);
    let (ms, units) = (with.all.in_cover_ms.expect("cover"), with.all.in_cover_units.expect("cover"));
    assert!(ms.max > 0.0 && ms.max < 1000.0 && units.max < 500.0, "{ms:?} {units:?}");
    let pair = |shooter, target| with.pairs.iter().find(|p| (p.shooter, p.target) == (shooter, target));
    for shots in &with.pairs {
        assert_eq!(pair(shots.shooter, shots.target), Some(shots));
    }
    assert_eq!(with.pairs.iter().map(|p| p.shots.hits).sum::<u64>(), with.all.hits);
    let latency = |player| with.pairs.iter().find(|p| p.shooter == player).and_then(|p| p.shooter_latency_ms);
    let (near, far) = (latency(0).expect("p0 hit a target"), latency(1).expect("p1 hit a target"));
    assert!((20.0..60.0).contains(&near) && (300.0..350.0).contains(&far), "{near} {far}");
    assert!(with.pairs.is_sorted_by(|a, b| a.later_by_ms() >= b.later_by_ms()));
}

/// A client's clock may run ahead of the server's. It does not change the round trips, and they exist without prediction.
#[test]
fn latencies_are_round_trips() {
    let link = LinkModel { delay_ms: 40.0, ..LinkModel::default() };
    let settings = [("server.schedule", "tick"), ("prediction.mode", "off")];
    for (setting, value) in settings {
        let settings = [(setting.to_owned(), value.to_owned())].into();
        let scenario = Scenario { seconds: 12.0, link: link.clone(), settings, ..Scenario::default() };
        let session = built_in::record(&scenario, ArenaRules::default());
        let expected = SessionInfo::of(&session).by_player;
        let options = ReplayOptions { network: true, ..ReplayOptions::default() };
        let pairs =
            Fairness::of(&replay::<Arena>(&session, &options, &mut |_| {}).expect("a log of this build").trace).pairs;
        assert!(pairs.len() > 1, "{pairs:?}");
        for pair in pairs {
            for (player, ms) in [(pair.shooter, pair.shooter_latency_ms), (pair.target, pair.target_latency_ms)] {
                let of_log = expected[player as usize].rtt_ms.p50.expect("acks");
                assert!(
                    (f64::from(ms.expect("acks")) - of_log).abs() < 1.0,
                    "{setting}: p{player} has {ms:?}, not {of_log} ms"
                );
            }
        }
    }
}

/// The values of a numeric column of any type.
fn column(trace: &Trace, table: &str, column: &str) -> Vec<f64> {
    match &trace.table(table).and_then(|t| t.column(column)).expect(column).data {
        ColumnData::U32(values) => values.iter().map(|v| f64::from(*v)).collect(),
        ColumnData::I64(values) => values.iter().map(|v| *v as f64).collect(),
        ColumnData::F32(values) => values.iter().map(|v| f64::from(*v)).collect(),
        ColumnData::F64(values) => values.clone(),
        ColumnData::Bool(_) | ColumnData::U64(_) => panic!("{column} holds flags or hashes"),
        ColumnData::Name { names, codes } => {
            let number = |name: &str| name.trim_start_matches('p').parse().unwrap_or(f64::NAN);
            codes.iter().map(|code| number(&names[*code as usize])).collect()
        }
    }
}

#[test]
fn time_in_cover_equals_that_of_the_targets_frames() {
    const CURTAIN_X: f32 = 20.0;
    let rules = DiscRules { ghosts: true, curtain_x: Some(CURTAIN_X), ..DiscRules::default() };
    let link = LinkModel { delay_ms: 90.0, ..LinkModel::default() };
    let session = record_discs(&Scenario { seconds: 20.0, link, ..Scenario::default() }, rules);
    let trace = replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build").trace;
    let [player, at, own_x] = ["player", "at_us", "own.origin.x"].map(|name| column(&trace, "frames", name));
    let [tick, entity, x] = ["tick", "entity", "origin.x"].map(|name| column(&trace, "bodies", name));
    let [shot_at, shot_tick, target, ms] =
        ["at_us", "tick", "target", "in_cover_ms"].map(|name| column(&trace, "shots", name));
    let (mut covered, mut open) = (0, 0);
    for shot in (0..ms.len()).filter(|shot| !target[*shot].is_nan()) {
        let body = (0..tick.len()).find(|row| tick[*row] == shot_tick[shot] - 1.0 && entity[*row] == target[shot]);
        if x[body.expect("the target was there")] < f64::from(CURTAIN_X) {
            assert!(ms[shot].is_nan(), "{}", ms[shot]);
            open += 1;
            continue;
        }
        let own = (0..at.len()).filter(|row| player[*row] == target[shot] && at[*row] <= shot_at[shot]);
        let hidden = own.rev().take_while(|row| own_x[*row] >= f64::from(CURTAIN_X) && shot_at[shot] - at[*row] <= 3e6);
        let since = hidden.last().map_or(shot_at[shot], |row| at[row]);
        assert!((ms[shot] - (shot_at[shot] - since) / 1000.0).abs() < 0.01, "{} {since}", ms[shot]);
        covered += 1;
    }
    assert!(covered > 20 && open > 20, "{covered} {open}");
}

#[test]
fn a_game_without_visibility_has_no_values_of_cover() {
    let trace: Trace = replay_discs(&discs(7), "interpolation.lerp_ms=100").trace;
    let shots = trace.table("shots").expect("shots");
    let Some(ColumnData::Name { names, codes }) = shots.column("visible_at_present").map(|c| &c.data) else {
        panic!("a column of names")
    };
    assert!(codes.iter().all(|code| names[*code as usize] == "unknown") && codes.len() > 100);
    let all = Fairness::of(&trace).all;
    assert!(all.hits > 0 && all.known == 0 && all.in_cover == 0);
}
