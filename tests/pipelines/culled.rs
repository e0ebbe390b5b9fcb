//! A server that sends each client other entities, of two classes, while players come and go. The log has everything
//! that was sent, and every command works on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::yard::Yard;
use hitreg::diff::{DiffOptions, TraceVerdict, diff};
use hitreg::log::{WriterOptions as LogOptions, read_session, write_session};
use hitreg::memory::MemoryLimit;
use hitreg::merge::merge;
use hitreg::record::{ClockOwner, Origin, PlayerRecords, Presence, RecordedSide, Session, SessionId};
use hitreg::replay::{ReplayError, ReplayMode, ReplayOptions, ReplayOutput, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::trace::ColumnData;
use hitreg::units::{EntityId, Micros, PlayerId};
use hitreg::verify;

const PLAYERS: u16 = 4;

fn session() -> Session {
    let scenario = Scenario { players: PLAYERS, seconds: 6.0, seed: 5, ..Scenario::default() };
    let mut session = Session::new(scenario.header::<Yard>(&()).expect("a good scenario"));
    record_synthetic::<Yard>(&scenario, &Arc::new(()), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session.put_in_order();
    session
}

fn replay_in_mode(session: &Session, mode: ReplayMode) -> ReplayOutput {
    let options =
        ReplayOptions { mode, rollback_every: (mode == ReplayMode::Closed).then_some(16), ..ReplayOptions::default() };
    replay::<Yard>(session, &options, &mut |_| {}).expect("a log of this build")
}

#[test]
fn everything_sent_to_any_client_is_in_the_log() {
    let session = session();
    // The clients received different snapshots: other entities, and other states of the same entities.
    let seen = |player: usize| session.players[player].snapshots.iter().map(|s| (s.tick, s.entities.clone()));
    let (first, second): (BTreeSet<_>, BTreeSet<_>) = (seen(0).collect(), seen(1).collect());
    assert!(second.difference(&first).count() > 50);
    let of_one: Vec<_> = session.states.iter().filter(|(key, _)| key.viewer.is_some()).collect();
    assert!(of_one.len() > 100, "{}", of_one.len());
    let classes: BTreeSet<_> = session.states.keys().iter().map(|key| key.class).collect();
    assert_eq!(classes.len(), 2);
    let mut joined = 0;
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let changes: Vec<Presence> = records.presence.iter().map(|record| record.change).collect();
        assert!(matches!(changes[..], [Presence::Joined, Presence::Left] | [Presence::Joined]), "{changes:?}");
        joined += changes.len();
        for snapshot in &records.snapshots {
            for entity in &snapshot.entities {
                assert!(
                    session.states.sent(snapshot.tick, player, *entity).next().is_some(),
                    "{player} {entity} {snapshot:?}"
                );
            }
        }
    }
    assert!(joined > usize::from(PLAYERS), "somebody leaves");
    for options in [LogOptions::live(), LogOptions::whole()] {
        let bytes = write_session(Vec::new(), &session, options).expect("memory takes everything");
        assert_eq!(read_session(&bytes[..]).expect("a good log"), session);
    }
    assert_eq!(rerecord::<Yard>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
}

#[test]
fn open_loop_shows_each_client_its_own_snapshots() {
    let session = session();
    let (closed, open) = (replay_in_mode(&session, ReplayMode::Closed), replay_in_mode(&session, ReplayMode::Open));
    assert_eq!(closed.findings.first_difference, None);
    assert_eq!(closed.findings.rollback_error, None);
    // The same snapshots arrive at the same times, so clients see and predict the same with and without a server.
    let same = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    for table in ["views", "frames"] {
        let only = |replayed: &ReplayOutput| {
            let mut trace = replayed.trace.clone();
            trace.tables.retain(|of| of.name == table);
            trace
        };
        let (closed, open) = (only(&closed), only(&open));
        assert_eq!(closed.tables[0].rows(), open.tables[0].rows(), "{table}");
        assert_eq!(diff(&closed, &open, &same).expect("no tolerance").verdict, TraceVerdict::Same, "{table}");
    }
    // The last player's screen shows the balls that only this player was near.
    let views = open.trace.table("views").expect("views");
    let numbers = |name: &str| match &views.column(name).expect(name).data {
        ColumnData::U32(numbers) => numbers.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let of = |player: u32| -> BTreeSet<u32> {
        let rows = numbers("player").into_iter().zip(numbers("entity"));
        rows.filter(|(by, entity)| *by == player && *entity >= 100).map(|(_, entity)| entity).collect()
    };
    assert!(!of(u32::from(PLAYERS) - 1).is_empty());
    assert_ne!(of(0), of(u32::from(PLAYERS) - 1));
}

#[test]
fn a_missing_state_is_an_error() {
    let mut session = session();
    // A snapshot that arrived, so that it must be drawn.
    let has_company = |s: &&hitreg::record::SnapshotRecord| s.entities.len() > 1;
    let last = session.players[2].snapshots.iter().find(has_company).expect("company").clone();
    let gone = *last.entities.last().expect("an entity");
    session.states.retain(|key| key.tick != last.tick || key.entity != gone);
    let replayed =
        replay::<Yard>(&session, &ReplayOptions { mode: ReplayMode::Open, ..ReplayOptions::default() }, &mut |_| {});
    let error = replayed.map(|_| ()).expect_err("it is to be shown");
    assert!(
        matches!(error, ReplayError::NoState { tick, entity, .. } if tick == last.tick && entity == gone),
        "{error}"
    );
}

#[test]
fn a_culled_session_verifies_and_other_input_differs() {
    let session = session();
    let replays = verify::THREADS.map(|_| replay_in_mode(&session, ReplayMode::Closed));
    let judged = crate::traces::verify_replays(&session, &replays, verify::VerifyReference::default());
    assert_eq!((judged.verdict, judged.detail), (verify::LogVerdict::Same, None));
    assert!(judged.exercised.shots > Some(0) && judged.exercised.hits > Some(0));
    let mut other = session.clone();
    other.players[1].frames[200].command.input.forwardmove += 64.0;
    let (a, b) = (replay_in_mode(&session, ReplayMode::Closed), replay_in_mode(&other, ReplayMode::Closed));
    let found = diff(&a.trace, &b.trace, &DiffOptions::default()).expect("no tolerance");
    assert_eq!(found.verdict, TraceVerdict::Differs);
    let recorded = hitreg::recorded::recorded(&session).expect("a log with a server");
    let overlap = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    let against_itself = diff(&recorded, &a.trace, &overlap).expect("no tolerance");
    assert_eq!((against_itself.verdict, against_itself.first), (TraceVerdict::Same, None));
}

#[test]
fn logs_of_culled_clients_merge() {
    let mut whole = session();
    whole.header.origin = Origin::Live;
    let of_side = |player| {
        let mut header = whole.header.clone();
        header.side = Some(RecordedSide { session: SessionId(4), player });
        Session::new(header)
    };
    let mut logs = vec![of_side(None)];
    logs[0].ticks.clone_from(&whole.ticks);
    logs[0].states = whole.states.clone();
    for (index, records) in whole.players.iter().enumerate() {
        logs[0].players[index] = PlayerRecords {
            frames: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            predicted: Vec::new(),
            ..records.clone()
        };
        let mut client = of_side(Some(PlayerId(index as u16)));
        let (frames, sent, received) = (records.frames.clone(), records.sent.clone(), records.received.clone());
        client.players[index] = PlayerRecords { frames, sent, received, ..PlayerRecords::default() };
        for stream in client.players[index].streams_mut() {
            stream.move_by(Micros(-77_777));
        }
        logs.push(client);
    }
    assert!(hitreg::record::OF_PLAYERS.iter().any(|(name, by)| *name == "presence" && *by == ClockOwner::Server));
    let merged = merge(logs).expect("sides of one session").session;
    assert_eq!(merged.states, whole.states);
    let presence = |session: &Session| session.players.iter().map(|p| p.presence.clone()).collect::<Vec<_>>();
    assert_eq!(presence(&merged), presence(&whole));
    let replayed = replay_in_mode(&merged, ReplayMode::Closed);
    assert_eq!(
        (replayed.findings.first_difference, replayed.findings.hashes_compared),
        (None, merged.ticks.len() as u64)
    );
    assert!(merged.states.keys().iter().any(|key| key.entity >= EntityId(100)));
}
