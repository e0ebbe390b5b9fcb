//! Live sessions: over real sockets, and the same bit for bit when they are replayed.

use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hitreg::arena::{Arena, ArenaRules};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::live::{Keeper, LiveError, LiveReport, Rates, live_header, record_live};
use hitreg::record::{Execution, Record, Session};
use hitreg::replay::{Options, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::units::Micros;

/// Keeps a session in memory.
struct InMemory {
    session: Session,
}

impl Keeper for InMemory {
    fn record(&mut self, record: &Record) -> ControlFlow<()> {
        self.session.push(record.clone()).expect("the session's own records");
        ControlFlow::Continue(())
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn show(&mut self, _: &Rates) {}
}

fn has_sockets() -> bool {
    let has = UdpSocket::bind("127.0.0.1:0").is_ok();
    if !has {
        eprintln!("skipped: no UDP socket is to be had here");
    }
    has
}

fn scenario(players: u16, seconds: f64, link: LinkModel) -> Scenario {
    Scenario { players, seconds, seed: 5, link, ..Scenario::default() }
}

fn bad_link() -> LinkModel {
    LinkModel {
        delay_ms: 30.0,
        jitter: Jitter::Exponential(10.0),
        loss: Loss::Random(0.05),
        duplicate: 0.03,
        reorder: 0.05,
        reorder_ms: 30.0,
        ..LinkModel::default()
    }
}

fn record(scenario: &Scenario) -> (Session, LiveReport) {
    let rules = Arc::new(ArenaRules::default());
    let header = live_header::<Arena>(scenario, &rules).expect("a good scenario");
    let mut keeper = InMemory { session: Session::new(header) };
    let report = record_live::<Arena>(scenario, &rules, 0, &AtomicBool::new(false), &mut keeper).expect("a session");
    (keeper.session, report)
}

/// What a replay runs of a session: all until the last tick.
fn until_last_tick(mut session: Session) -> Session {
    let end = session.ticks.last().map_or(Micros::ZERO, |tick| tick.at);
    for player in &mut session.players {
        player.frames.retain(|frame| frame.at <= end);
        player.sent.retain(|packet| packet.at <= end);
        player.reached.retain(|arrival| arrival.at <= end);
        player.received.retain(|arrival| arrival.at < end);
    }
    session
}

/// Everything that was recorded comes out again: on the server and in every client.
fn assert_replays(session: &Session) {
    let replayed = replay::<Arena>(session, &Options::default(), &mut |_| {}).expect("a log of this build");
    assert_eq!(replayed.first_difference, None);
    assert_eq!(replayed.hashes_compared, session.ticks.len() as u64);
    let again = rerecord::<Arena>(session, None).expect("a log of this build");
    let (again, session) = (until_last_tick(again), until_last_tick(session.clone()));
    assert!(again.ticks == session.ticks && again.states == session.states);
    for (again, recorded) in again.players.iter().zip(&session.players) {
        assert_eq!(again.frames, recorded.frames);
        assert_eq!(again.sent, recorded.sent);
        assert_eq!(again.reached, recorded.reached);
        assert_eq!(again.executed, recorded.executed);
        assert_eq!(again.snapshots, recorded.snapshots);
        assert_eq!(again.received, recorded.received);
    }
}

#[test]
fn a_live_session_replays_bit_for_bit() {
    if !has_sockets() {
        return;
    }
    let (session, report) = record(&scenario(3, 2.0, bad_link()));
    eprintln!("{report:?}");
    assert!(session.ticks.len() > 60, "{} ticks", session.ticks.len());
    assert_replays(&session);
    let all = |of: fn(&hitreg::record::PlayerRecords) -> usize| session.players.iter().map(of).sum::<usize>();
    assert!(all(|p| p.frames.len()) > 100);
    assert!(all(|p| p.reached.len()) > 100 && all(|p| p.received.len()) > 100);
    assert!(all(|p| p.executed.iter().filter(|e| e.how == Execution::Run).count()) > 100);
    // The links were as bad as they were asked to be: packets were lost, doubled and overtaken.
    let twice = |p: &hitreg::record::PlayerRecords| {
        let mut numbers: Vec<u32> = p.reached.iter().map(|a| a.number).collect();
        numbers.sort_unstable();
        numbers.windows(2).filter(|pair| pair[0] == pair[1]).count()
    };
    assert!(all(|p| p.sent.len()) > all(|p| p.reached.len()));
    assert!(session.players.iter().map(twice).sum::<usize>() > 0);
    assert!(all(|p| p.reached.windows(2).filter(|pair| pair[1].number < pair[0].number).count()) > 0);
}

#[test]
fn a_taken_port_is_said_to_be() {
    if !has_sockets() {
        return;
    }
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("its address").port();
    let rules = Arc::new(ArenaRules::default());
    let scenario = scenario(1, 1.0, LinkModel::default());
    let header = live_header::<Arena>(&scenario, &rules).expect("a good scenario");
    let mut keeper = InMemory { session: Session::new(header) };
    let ran = record_live::<Arena>(&scenario, &rules, port, &AtomicBool::new(false), &mut keeper);
    assert!(matches!(ran, Err(LiveError::PortTaken { .. })));
}
