//! Sessions split into the logs of their sides, each with its own clock, and merged again.

use std::sync::Arc;

use crate::built_in::{replay, rerecord};
use hitreg::arena::{Arena, ArenaRules, record_synthetic};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::merge::{MergeError, MergeErrorKind, MergedSession, merge};
use hitreg::record::{Origin, PlayerInfo, PlayerRecords, RecordedSide, Session, SessionHeader, SessionId};
use hitreg::replay::ReplayOptions;
use hitreg::session::SessionRecorder;
use hitreg::session::scenario::Scenario;
use hitreg::units::{Micros, PlayerId};

const CLOCKS: [Micros; 3] = [Micros(-1_234_567), Micros(0), Micros(98_765_432_101)];

/// A session over bad links.
fn session() -> Session {
    let (scenario, rules) = scenario();
    let header = scenario.header::<Arena>(&rules).expect("a good scenario");
    let mut session = Session::new(SessionHeader { origin: Origin::Live, ..header });
    record_synthetic(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    session
}

fn scenario() -> (Scenario, Arc<ArenaRules>) {
    let link = LinkModel {
        delay_ms: 30.0,
        jitter: Jitter::Exponential(8.0),
        loss: Loss::Random(0.05),
        duplicate: 0.03,
        reorder: 0.05,
        reorder_ms: 20.0,
        ..LinkModel::default()
    };
    let scenario = Scenario { players: 3, seconds: 4.0, seed: 3, link, ..Scenario::default() };
    (scenario, Arc::new(ArenaRules::default()))
}

fn log_of_side(session: &Session, player: Option<PlayerId>) -> Session {
    Session::new(SessionHeader { side: Some(RecordedSide { session: SessionId(9), player }), ..session.header.clone() })
}

/// The logs of the server and the clients, with the clocks shifted back.
fn sides(session: &Session, clocks: [Micros; 3]) -> Vec<Session> {
    let mut server = log_of_side(session, None);
    server.ticks.clone_from(&session.ticks);
    server.states = session.states.clone();
    let mut sides = Vec::new();
    for (index, (all, clock)) in session.players.iter().zip(clocks).enumerate() {
        let (reached, executed, snapshots) = (all.reached.clone(), all.executed.clone(), all.snapshots.clone());
        server.players[index] = PlayerRecords { reached, executed, snapshots, ..PlayerRecords::default() };
        let mut client = log_of_side(session, Some(PlayerId(index as u16)));
        let mine = &mut client.players[index];
        mine.frames =
            all.frames.iter().map(|f| hitreg::record::FrameRecord { at: f.at - clock, ..f.clone() }).collect();
        mine.sent = all.sent.iter().map(|p| hitreg::record::PacketRecord { at: p.at - clock, ..*p }).collect();
        mine.received = all.received.iter().map(|a| hitreg::record::ArrivalRecord { at: a.at - clock, ..*a }).collect();
        sides.push(client);
    }
    sides.insert(0, server);
    sides
}

fn assert_replays(merged: &MergedSession) {
    let replayed = replay(&merged.session, &ReplayOptions::default()).expect("a log of this build");
    assert_eq!(replayed.findings.first_difference, None);
    assert_eq!(replayed.findings.hashes_compared, merged.session.ticks.len() as u64);
}

#[test]
fn a_merged_session_replays_for_any_clocks() {
    let whole = session();
    let merged = merge(sides(&whole, CLOCKS)).expect("sides of one session");
    assert_eq!(merged.cut, None);
    assert_eq!(merged.session.ticks, whole.ticks);
    assert_eq!(merged.session.header, whole.header);
    assert_replays(&merged);
    for (client, clock) in merged.clients.iter().zip(CLOCKS) {
        let found = client.offset.expect("it was heard");
        let error = found.error.expect("packets of both directions").0;
        assert!((found.offset - clock).0.abs() <= error, "{found:?}");
        assert!((29_000..40_000).contains(&error), "half of twice 30 ms: {found:?}");
    }
}

/// Wherever a client's log ends, the rest of the session replays and contains everything that can be replayed.
#[test]
fn a_session_replays_up_to_the_end_of_a_truncated_clients_log() {
    let whole = session();
    let frames = whole.players[1].frames.len();
    for cut in (0..frames).step_by(7).chain(frames - 12..frames) {
        for keeps_packet in [true, false] {
            let mut logs = sides(&whole, CLOCKS);
            let client = &mut logs[2].players[1];
            client.frames.truncate(cut + 1);
            client.sent.truncate(cut + usize::from(keeps_packet));
            let until = client.frames[cut].at;
            client.received.retain(|arrival| arrival.at <= until);
            let merged = match merge(logs) {
                Ok(merged) => merged,
                Err(MergeError {
                    log: Some(2),
                    kind: MergeErrorKind::NothingLeft | MergeErrorKind::Unbounded { .. },
                }) if cut < 8 => {
                    continue;
                }
                Err(error) => panic!("cut after frame {cut}: {error}"),
            };
            assert_replays(&merged);
            let end = merged.session.ticks.last().expect("a tick").at;
            assert!(end + Micros::from_ms(16) >= until + CLOCKS[1], "frame {cut} at {until:?}, end {end:?}");
            assert_eq!(
                merged.cut.map(|cut| cut.at),
                Some(end).filter(|_| end < whole.ticks.last().expect("a tick").at)
            );
        }
    }
}

#[test]
fn a_session_replays_up_to_the_end_of_a_truncated_servers_log() {
    let whole = session();
    for cut in (1..whole.ticks.len()).step_by(11) {
        let mut logs = sides(&whole, CLOCKS);
        let server = &mut logs[0];
        let until = server.ticks[cut - 1].at;
        server.ticks.truncate(cut);
        for player in &mut server.players {
            player.reached.retain(|arrival| arrival.at <= until);
            player.snapshots.retain(|snapshot| snapshot.at <= until);
            player.executed.retain(|executed| executed.tick.0 as usize <= cut);
        }
        match merge(logs) {
            Ok(merged) => {
                assert_eq!(merged.session.ticks.len(), cut);
                // Before the first frame of any player there is nothing to replay.
                if merged.session.players.iter().any(|player| !player.frames.is_empty()) {
                    assert_replays(&merged);
                } else {
                    assert!(cut < 8);
                }
            }
            Err(error) => assert!(matches!(error.kind, MergeErrorKind::Unbounded { .. }) && cut < 8, "{cut}: {error}"),
        }
    }
}

/// The session with the server's records of received packets.
fn session_with_received() -> Session {
    let whole = session();
    let mut heard = Session::new(whole.header.clone());
    let mut again = SessionRecorder::new(&mut heard).with_heard((0..3).map(PlayerId));
    let (scenario, rules) = scenario();
    record_synthetic(&scenario, &rules, &mut again).expect("a good scenario");
    assert_eq!(heard.ticks, whole.ticks);
    heard
}

fn sides_with_received() -> Vec<Session> {
    let heard = session_with_received();
    let mut logs = sides(&heard, CLOCKS);
    for (server, all) in logs[0].players.iter_mut().zip(&heard.players) {
        assert_eq!(all.heard.len(), all.reached.len());
        server.heard.clone_from(&all.heard);
    }
    logs
}

/// The result depends only on what the server received, not on predictions or clients' clocks.
#[test]
fn a_servers_log_with_received_packets_replays_alone() {
    let server = sides_with_received().swap_remove(0);
    let replayed = replay(&server, &ReplayOptions::default()).expect("a log of this build");
    assert_eq!(
        (replayed.findings.first_difference, replayed.findings.hashes_compared),
        (None, server.ticks.len() as u64)
    );
    let with_sizes = ReplayOptions { sizes: true, ..ReplayOptions::default() };
    let replayed = replay(&server, &with_sizes).expect("a log of this build");
    assert_eq!(
        (replayed.findings.first_difference, replayed.findings.hashes_compared),
        (None, server.ticks.len() as u64)
    );
    // A session with one other received usercmd differs.
    let mut other = server;
    let heard = other.players[1].heard.iter_mut().filter(|heard| !heard.commands.is_empty()).nth(40).expect("a packet");
    heard.commands.iter_mut().for_each(|command| command.input.forwardmove = -command.input.forwardmove);
    heard.commands.iter_mut().for_each(|command| command.input.viewangles.y += 90.0);
    let replayed = replay(&other, &ReplayOptions::default()).expect("a log of this build");
    assert!(replayed.findings.first_difference.is_some());
}

#[test]
fn a_client_without_a_log_replays_from_the_servers_records() {
    let whole = session_with_received();
    for missing in [vec![2], vec![1, 3], vec![1, 2, 3]] {
        let mut logs = sides_with_received();
        missing.iter().rev().for_each(|log| drop(logs.remove(*log)));
        let merged = merge(logs).expect("the server has the missing usercmds");
        assert_eq!(merged.session.ticks, whole.ticks);
        assert_replays(&merged);
        let without = merged.clients.iter().filter(|client| client.log.is_none());
        assert_eq!(without.map(|client| usize::from(client.player.0) + 1).collect::<Vec<_>>(), missing);
        for (player, records) in merged.session.players.iter().enumerate() {
            assert_eq!(records.is_heard_only(), missing.contains(&(player + 1)));
            assert_eq!(records.heard.is_empty(), !records.is_heard_only());
        }
        // A new recording from the merged input is the same.
        let again = rerecord(&merged.session).expect("a log of this build");
        assert_eq!(again.ticks, merged.session.ticks);
        let heard = |session: &Session| session.players.iter().map(|records| records.heard.clone()).collect::<Vec<_>>();
        assert_eq!(heard(&again), heard(&merged.session));
    }
}

#[test]
fn clocks_that_drift_and_times_out_of_bounds_are_errors() {
    let whole = session();
    let mut logs = sides(&whole, CLOCKS);
    // 5 % slow, which is more than the round trip allows within 4 s.
    for packet in &mut logs[1].players[0].sent {
        packet.at = Micros(packet.at.0 * 95 / 100);
    }
    for arrival in &mut logs[1].players[0].received {
        arrival.at = Micros(arrival.at.0 * 95 / 100);
    }
    let error = merge(logs).expect_err("no one offset fits");
    assert_eq!(error.log, Some(1));
    assert!(matches!(error.kind, MergeErrorKind::Drift { player: PlayerId(0), is_steady: true, .. }), "{error}");
    assert!(error.to_string().contains("drift apart by 5"), "{error}");
    let mut logs = sides(&whole, CLOCKS);
    logs[3].players[2].sent[5].at = Micros(i64::MIN);
    assert_eq!(merge(logs), Err(MergeErrorKind::OutOfTime.of(3)));
}

/// Settings of the recorder concern one log, and a side need not know all settings.
/// As a client that died before it sent anything.
#[test]
fn a_client_that_sent_nothing_needs_no_log() {
    let mut logs = sides(&session(), CLOCKS);
    logs.remove(2);
    let silent = &mut logs[0].players[1];
    let snapshots = std::mem::take(&mut silent.snapshots);
    assert!(!snapshots.is_empty() && !silent.executed.is_empty());
    *silent = PlayerRecords { snapshots, ..PlayerRecords::default() };
    let merged = merge(logs.clone()).expect("the server's log has all input");
    assert_eq!(merged.clients[1].log, None);
    assert!(merged.session.players[1].frames.is_empty());
    // A server that records no executions does not tell that a player sent nothing.
    logs[0].players.iter_mut().for_each(|player| player.executed.clear());
    assert!(matches!(merge(logs), Err(MergeError { kind: MergeErrorKind::Missing { .. }, .. })));
}

#[test]
fn an_unused_slot_needs_no_log_and_sides_may_know_fewer_settings() {
    let whole = session();
    let expected = merge(sides(&whole, CLOCKS)).expect("one session").session;
    let mut logs = sides(&whole, CLOCKS);
    let slot = PlayerInfo { name: "p3".to_owned(), recorded: false };
    for log in &mut logs {
        log.header.players.push(slot.clone());
        log.players.push(PlayerRecords::default());
    }
    logs[1].header.settings.push(("recorder.usercmds".to_owned(), "as_received".to_owned()));
    logs[1].header.settings.remove(0);
    let merged = merge(logs).expect("an empty slot").session;
    assert_eq!(merged.header.players.len(), expected.header.players.len() + 1);
    assert_eq!(merged.players[..expected.players.len()], expected.players[..]);
}

#[test]
fn sides_of_other_builds_and_sessions_are_refused() {
    let whole = session();
    let refused = |change: fn(&mut Vec<Session>)| {
        let mut logs = sides(&whole, CLOCKS);
        change(&mut logs);
        merge(logs).expect_err("they do not belong together")
    };
    assert_eq!(
        refused(|logs| logs[1].header.rules = vec![0].into()),
        MergeErrorKind::OtherBuild { what: "rules" }.of(1)
    );
    let (key, there) = sides(&whole, CLOCKS)[0].header.settings[0].clone();
    let here = format!("{there}0");
    assert_eq!(
        refused(|logs| logs[2].header.settings[0].1.push('0')),
        MergeErrorKind::OtherSetting { key, here, there }.of(2)
    );
    assert_eq!(refused(|logs| logs[0].ticks.clear()).kind, MergeErrorKind::NoTicks);
    let other = RecordedSide { session: SessionId(8), player: Some(PlayerId(0)) };
    assert_eq!(other.session.to_string(), "0000000000000008");
    assert_eq!(
        refused(|logs| logs[1].header.side = Some(RecordedSide { session: SessionId(8), player: Some(PlayerId(0)) })),
        MergeErrorKind::OtherSession.of(1)
    );
    let missing = MergeErrorKind::Missing { players: vec![PlayerId(1)], all: 3 };
    assert_eq!(refused(|logs| drop(logs.remove(2))), MergeError { log: None, kind: missing });
}
