//! Live sessions over real sockets replay bit for bit.

#![expect(clippy::disallowed_types, reason = "the attacker has its own sockets")]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::stage::{InMemory, has_sockets, record};
use hitreg::arena::{Arena, ArenaRules};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::live::{LiveError, live_header, record_live};
use hitreg::memory::MemoryLimit;
use hitreg::packet::ClientPacket;
use hitreg::record::{Execution, Session};
use hitreg::replay::{ReplayOptions, replay, rerecord};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::units::{CommandSeq, Micros, Seed, SnapshotSeq};
use hitreg::usercmd::Usercmd;
use hitreg::wire::{
    CONFIRM_BYTES, ClientMessage, ConnectMachine, ConnectOptions, Key, LeaveReason, encode_commands, encode_disconnect,
    seal,
};

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

/// The session up to its last tick, which is the part that a replay runs. At equal times, packets reach the server before
/// its tick, and frames follow the tick.
fn until_last_tick(mut session: Session) -> Session {
    let end = session.ticks.last().map_or(Micros::ZERO, |tick| tick.at);
    for player in &mut session.players {
        player.frames.retain(|frame| frame.at < end);
        player.sent.retain(|packet| packet.at < end);
        player.reached.retain(|arrival| arrival.at <= end);
        player.received.retain(|arrival| arrival.at < end);
    }
    session
}

/// Checks that a replay reproduces every record of the server and of each client.
fn assert_replays(session: &Session) {
    let replayed = replay::<Arena>(session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    assert_eq!(replayed.findings.first_difference, None);
    assert_eq!(replayed.findings.hashes_compared, session.ticks.len() as u64);
    let again = rerecord::<Arena>(MemoryLimit::default(), session, None).expect("a log of this build");
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
    // The link worked as configured: packets were lost, doubled and reordered.
    let twice = |p: &hitreg::record::PlayerRecords| {
        let mut numbers: Vec<u32> = p.reached.iter().map(|a| a.number).collect();
        numbers.sort_unstable();
        numbers.windows(2).filter(|pair| pair[0] == pair[1]).count()
    };
    assert!(all(|p| p.sent.len()) > all(|p| p.reached.len()));
    let repeated = session.players.iter().map(twice).sum::<usize>();
    assert!(repeated > 0);
    // A datagram that came twice is used once.
    let server = report.server.expect("a server");
    assert_eq!([server.received, server.repeated], [all(|p| p.reached.len()) - repeated, repeated].map(|n| n as u64));
    assert!(all(|p| p.reached.windows(2).filter(|pair| pair[1].number < pair[0].number).count()) > 0);
}

#[test]
fn snapshots_longer_than_a_datagram_arrive_complete() {
    if !has_sockets() {
        return;
    }
    // This many bodies need more than one datagram, especially with late acks.
    let (session, report) = record(&scenario(48, 1.5, bad_link()));
    eprintln!("{report:?}");
    let (server, clients) = (report.server.expect("a server"), report.clients.expect("clients"));
    let snapshots = server.snapshots;
    assert!(snapshots.in_fragments > 100, "{snapshots:?}");
    assert_eq!(snapshots.whole, snapshots.sent);
    assert!(server.sent.datagrams >= snapshots.sent + snapshots.in_fragments);
    // More snapshots arrived than fit in single datagrams, so clients joined fragments.
    assert!(clients.snapshots > snapshots.sent - snapshots.in_fragments, "{clients:?}");
    assert!(session.players.iter().all(|player| !player.received.is_empty()));
    assert_replays(&session);
}

#[test]
fn a_port_in_use_is_reported() {
    if !has_sockets() {
        return;
    }
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("its address").port();
    let rules = Arc::new(ArenaRules::default());
    let scenario = scenario(1, 1.0, LinkModel::default());
    let header = live_header::<Arena>(&scenario, &rules).expect("a good scenario");
    let mut sink = InMemory { session: Session::new(header) };
    let ran = record_live::<Arena>(&scenario, &rules, port, &AtomicBool::new(false), &mut sink);
    assert!(matches!(ran, Err(LiveError::PortTaken { .. })));
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("its address").port()
}

/// Datagrams for the attacker to change: of every kind, valid except for their keys.
fn seeds() -> Vec<Vec<u8>> {
    let mut connecting = ConnectMachine::new(ConnectOptions::new("arena"), 7, Micros::ZERO);
    let command = |seq| Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
    let packet = ClientPacket { number: 9, ack: SnapshotSeq(3), commands: (7..10).map(command).collect() };
    let live = ClientMessage { packet, received_before: 3, perceived: None };
    let live = encode_commands(&live).expect("three usercmds");
    let mut seeds = vec![
        connecting.poll_datagram(Micros::ZERO).expect("a first datagram"),
        seal(Key(1, 2), live),
        seal(Key(1, 2), encode_disconnect(LeaveReason::Done)),
    ];
    let mut confirm = vec![0; CONFIRM_BYTES];
    confirm[..seeds[0].len()].copy_from_slice(&seeds[0]);
    confirm[4] = 3;
    seeds.push(confirm);
    seeds
}

/// Random bytes, and valid datagrams: truncated, changed, extended or repeated.
fn attack_datagram(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len() as u64) as usize].clone();
    match rng.below(5) {
        0 => bytes = (0..rng.below(1400)).map(|_| rng.next_u64() as u8).collect(),
        1 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
        2 => {
            for _ in 0..=rng.below(8) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        3 => bytes.extend((0..rng.below(64)).map(|_| rng.next_u64() as u8)),
        _ => {}
    }
    bytes
}

/// Runs a session for some seconds. An attacker sends as many datagrams as time allows, up to `most`.
fn play_under_attack(seconds: f64, most: u64) {
    let (stop, port) = (AtomicBool::new(false), free_port());
    let scenario = scenario(3, seconds, bad_link());
    let rules = Arc::new(ArenaRules::default());
    let header = live_header::<Arena>(&scenario, &rules).expect("a good scenario");
    let mut sink = InMemory { session: Session::new(header) };
    let over = AtomicBool::new(false);
    let (report, fired) = std::thread::scope(|scope| {
        let enemy = scope.spawn(|| {
            let sockets: Vec<UdpSocket> = (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a socket")).collect();
            let (mut rng, seeds, mut fired) = (Rng::new(Seed(11), 0), seeds(), 0);
            // The clients are connected now, so the attack meets a running session.
            std::thread::sleep(Duration::from_millis(300));
            while fired < most && !over.load(Ordering::Relaxed) {
                let socket = &sockets[fired as usize % sockets.len()];
                let sent = socket.send_to(&attack_datagram(&mut rng, &seeds), ("127.0.0.1", port));
                fired += u64::from(sent.is_ok());
                // The attacker sleeps sometimes, because other processes need the machine.
                if fired.is_multiple_of(64) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            fired
        });
        let report = record_live::<Arena>(&scenario, &rules, port, &stop, &mut sink).expect("a session");
        over.store(true, Ordering::Relaxed);
        (report, enemy.join().expect("an enemy without accidents"))
    });
    eprintln!("{fired} datagrams fired: {report:?}");
    assert_eq!(fired, most, "the session was over before");
    assert!(report.server.expect("a server").refused > fired / 4, "most of them reach the server");
    let session = sink.session;
    assert!(session.ticks.len() as f64 > 20.0 * seconds);
    assert!(session.players.iter().all(|p| p.reached.len() > 20 && p.received.len() > 20));
    assert_replays(&session);
}

#[test]
fn attack_datagrams_harm_no_session() {
    if has_sockets() {
        play_under_attack(6.0, 50_000);
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_million_attack_datagrams_harm_no_session() {
    if has_sockets() {
        play_under_attack(120.0, 1_000_000);
    }
}

#[test]
fn a_stopped_session_is_complete() {
    if !has_sockets() {
        return;
    }
    let stop = AtomicBool::new(false);
    let scenario = scenario(2, 60.0, bad_link());
    let rules = Arc::new(ArenaRules::default());
    let header = live_header::<Arena>(&scenario, &rules).expect("a good scenario");
    let mut sink = InMemory { session: Session::new(header) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(1_500));
            stop.store(true, Ordering::Relaxed);
        });
        record_live::<Arena>(&scenario, &rules, 0, &stop, &mut sink).expect("a session");
    });
    assert!((30..400).contains(&sink.session.ticks.len()), "{} ticks", sink.session.ticks.len());
    assert_replays(&sink.session);
}
