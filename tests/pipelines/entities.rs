//! A world of an engine, with entities and components: recorded, replayed, verified, rolled back and compared like any
//! other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::drift::{Drift, DriftRules, FIRST_ID, ROCKS};
use hitreg::diff::{DiffOptions, TraceVerdict, diff};
use hitreg::log::{WriterOptions as LogOptions, read_session, write_session};
use hitreg::record::Session;
use hitreg::replay::{ReplayError, ReplayMode, ReplayOptions, ReplayOutput, replay};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::summary::Summary;
use hitreg::trace::ColumnData;
use hitreg::trace::schema::corrections;
use hitreg::verify;

const PLAYERS: u16 = 3;
/// By this time all players have their first ship and know it.
const FIRST_SHIPS_US: i64 = 500_000;

type EntityGame = Drift<600>;
type Softer = Drift<599>;

fn session(rules: DriftRules) -> Session {
    let settings = [("server.rate_bytes_per_s".to_owned(), "1000000".to_owned())].into();
    let scenario = Scenario { players: PLAYERS, seconds: 4.0, seed: 11, settings, ..Scenario::default() };
    let mut session = Session::new(scenario.header::<EntityGame>(&rules).expect("a good scenario"));
    record_synthetic::<EntityGame>(&scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session.put_in_order();
    session
}

fn replay_with_rollback(session: &Session, rollback_every: Option<u32>) -> ReplayOutput {
    let options = ReplayOptions { mode: ReplayMode::Closed, rollback_every, ..ReplayOptions::default() };
    replay::<EntityGame>(session, &options, &mut |_| {}).expect("a log of this build")
}

#[test]
fn an_engines_world_is_recorded_and_verified() {
    let session = session(DriftRules::default());
    let bytes = write_session(Vec::new(), &session, LogOptions::live()).expect("memory takes everything");
    let session_again = read_session(&bytes[..]).expect("a good log");
    assert_eq!(session_again, session);
    let replays = verify::THREADS.map(|_| replay_with_rollback(&session_again, Some(8)));
    assert_eq!(replays[0].findings.rollback_error, None);
    assert!(replays[0].findings.rollbacks > 20, "{}", replays[0].findings.rollbacks);
    let judged = crate::traces::verify_replays(&session, &replays, verify::VerifyReference::default());
    assert_eq!((judged.verdict, judged.detail), (verify::LogVerdict::Same, None));
    assert!(
        judged.exercised.shots > Some(20) && judged.exercised.hits > Some(5) && judged.exercised.corrections > Some(5)
    );
    // Clients predict their own ships, but not collisions with unknown rocks and shots.
    let prediction = Summary::of(&replays[0].trace).prediction;
    assert!(prediction.checked > 150 && 10 * prediction.exact > 8 * prediction.checked, "{prediction:?}");
    assert!(prediction.misses_by_cause.contains_key("mover"), "{prediction:?}");
    let classes: BTreeSet<_> = session.states.keys().iter().map(|key| key.class).collect();
    assert_eq!(classes.len(), 2);
}

#[test]
fn the_trace_has_the_engines_components() {
    let trace = replay_with_rollback(&session(DriftRules::default()), None).trace;
    let bodies = trace.table("bodies").expect("bodies");
    let column = |name: &str| {
        let column = bodies.u32s(name);
        assert_eq!(column.len(), bodies.rows(), "{name}");
        column
    };
    let [tick, number] = ["tick", "entity"].map(column);
    let ColumnData::U64(id) = &bodies.column("id").expect("ids").data else { panic!("another type") };
    let [kind, shield, gun, stone] = ["kind", "shield", "gun", "stone"].map(column);
    assert_eq!(bodies.f32s("stone.turned.w").len(), bodies.rows());
    let mut ids: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut owners: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let (mut with_avatar, mut shields, mut in_tick) = (0, [0, 0], BTreeMap::<u32, usize>::new());
    for row in 0..bodies.rows() {
        let id = id[row];
        *in_tick.entry(tick[row]).or_default() += 1;
        assert!(id >= FIRST_ID, "every row is of an entity");
        with_avatar += usize::from(number[row] < u32::from(PLAYERS));
        assert_eq!((gun[row], stone[row]), (1 - kind[row], kind[row]), "a ship has a gun, a rock is of stone");
        if kind[row] == 0 {
            shields[shield[row] as usize] += 1;
            assert!(number[row] < u32::from(PLAYERS));
        }
        ids.entry(id).or_default().insert(number[row]);
        owners.entry(number[row]).or_default().insert(id);
    }
    assert!(in_tick.values().all(|count| *count > 1_024), "{in_tick:?}");
    let gone = in_tick.len() * usize::from(PLAYERS) - with_avatar;
    assert!(gone > 20, "ships are shot, and their players without one for a while: {gone}");
    assert!(shields.iter().all(|count| *count > 50), "shields come and go: {shields:?}");
    // The engine reuses ids for other entities. No entity number belongs to two entities at a time.
    assert!(ids.values().filter(|numbers| numbers.len() > 1).count() > 10);
    assert!(owners.iter().all(|(number, ids)| *number < u32::from(PLAYERS) || ids.len() == 1));
    assert!(owners.keys().max().is_some_and(|last| *last as usize > ROCKS));
}

#[test]
fn players_without_an_avatar_are_in_no_figure() {
    let trace = replay_with_rollback(&session(DriftRules::default()), None).trace;
    let frames = trace.table("frames").expect("frames");
    let ColumnData::U64(own) = &frames.column("own.id").expect("ids").data else { panic!("another type") };
    let with_body: Vec<bool> = frames.u32s("has_body").iter().map(|has_body| *has_body == 1).collect();
    assert_eq!(with_body, own.iter().map(|id| *id != 0).collect::<Vec<_>>());
    assert!(with_body.iter().filter(|with_body| !**with_body).count() > 20);

    // The default body is in the middle of the plane, where no ship ever is.
    let views = trace.table("views").expect("views");
    let [x, y] = ["origin.x", "origin.y"].map(|axis| views.f32s(axis));
    assert!(!x.iter().zip(y).any(|place| place == (&0.0, &0.0)));

    let made: BTreeMap<_, _> = frames
        .u32s("player")
        .iter()
        .zip(frames.u32s("command"))
        .zip(frames.i64s("at_us").iter().zip(with_body))
        .collect();
    let acks = corrections::Columns::of(&trace);
    // A snapshot since the usercmd was made can have given the player a ship, with which the usercmd ran again.
    let has_ship_at_ack = |row: usize| {
        let mut later = made.range((&acks.player[row], &acks.command[row])..);
        let next = later.find(|((player, _), (at_us, _))| (*player, *at_us) >= (&acks.player[row], &acks.at_us[row]));
        next.is_some_and(|((player, _), (_, with_body))| *player == &acks.player[row] && *with_body)
    };
    let mut deaths = 0;
    for row in 0..acks.rows {
        let (made_us, with_body) = made[&(&acks.player[row], &acks.command[row])];
        let is_before_first_snapshot = *made_us < FIRST_SHIPS_US;
        let name = format!("p{}#{}", acks.player[row], acks.command[row]);
        assert!(with_body || is_before_first_snapshot || has_ship_at_ack(row), "{name}");
        // A client without a ship predicts none. A client with a ship can lose it.
        if acks.cause.get(row) == "spawn_or_death" {
            assert!(with_body, "{name}");
            deaths += 1;
        }
    }
    assert!(deaths > 0);
}

#[test]
fn a_shot_at_a_ship_that_died_since_finds_it_dead() {
    let trace = replay_with_rollback(&session(DriftRules::default()), None).trace;
    let shots = trace.table("shots").expect("shots");
    let ColumnData::Name { names, codes } = &shots.column("reason").expect("reasons").data else { panic!("names") };
    let dead = codes.iter().filter(|code| names[**code as usize] == "already dead").count();
    assert!(dead > 0, "{names:?}");
}

#[test]
fn another_build_differs_at_the_first_bounce() {
    let session = session(DriftRules::default());
    let ours = replay_with_rollback(&session, None).trace;
    let theirs = replay::<Softer>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this game").trace;
    let found = diff(&ours, &theirs, &DiffOptions::default()).expect("no tolerance");
    assert_eq!(found.verdict, TraceVerdict::Differs);
    let first = found.first.expect("a place");
    // The first entity that a ship bounced off.
    assert!(first.field.as_ref().is_some_and(|field| field.contains("velocity")), "{first:?}");
}

#[test]
fn state_missing_in_hidden_words_is_found() {
    let replayed = replay_with_rollback(&session(DriftRules { forgets: true, ..DriftRules::default() }), Some(8));
    assert_eq!(replayed.findings.first_difference, None);
    assert!(replayed.findings.rollback_error.is_some());
}

#[test]
fn a_world_that_cannot_be_restored_offers_no_rollback() {
    let session = session(DriftRules { only_forward: true, ..DriftRules::default() });
    assert_eq!(replay_with_rollback(&session, None).findings.first_difference, None);
    let options = ReplayOptions { rollback_every: Some(8), ..ReplayOptions::default() };
    let refused = replay::<EntityGame>(&session, &options, &mut |_| {}).map(|_| ());
    assert!(matches!(refused, Err(ReplayError::NoRollback("drift"))), "{refused:?}");
}
