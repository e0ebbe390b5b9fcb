//! A proxy between clients and a server of no particular game: forwarded datagrams, records and reports.

#![expect(clippy::disallowed_types, reason = "clients and a server have their own sockets")]

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::stage::has_sockets;
use hitreg::link::{LinkModel, Loss};
use hitreg::live::{LiveSink, ProxyOptions, ProxyReport, SessionRates, proxy};
use hitreg::protocol::{Direction, HeardCounts, PassingDatagram, SessionListener};
use hitreg::record::{ArrivalRecord, EventTime, Origin, PlayerInfo, Record, SessionHeader};
use hitreg::rng::Rng;
use hitreg::units::{Micros, PlayerId, Seed};

/// A listener that does not decode datagrams, and records their passing.
#[derive(Default)]
struct PassingCounter {
    heard: HeardCounts,
    is_begun: bool,
}

impl SessionListener for PassingCounter {
    fn hear(&mut self, passing: &PassingDatagram, out: &mut dyn FnMut(Record)) {
        self.heard.datagrams += 1;
        self.heard.players = self.heard.players.max(u64::from(passing.client) + 1);
        let arrival = |at| ArrivalRecord { number: passing.bytes.len() as u32, at };
        if let (Some(at), Direction::Up) = (passing.released, passing.direction) {
            out(Record::Reached(PlayerId(passing.client), arrival(at)));
        }
        if let (Some(at), Direction::Down) = (passing.released, passing.direction) {
            out(Record::Received(PlayerId(passing.client), arrival(at)));
        }
    }

    fn header(&mut self) -> Option<Result<SessionHeader, String>> {
        if std::mem::replace(&mut self.is_begun, true) {
            return None;
        }
        let player = |p| PlayerInfo { name: format!("p{p}"), recorded: true };
        Some(Ok(SessionHeader {
            game: "none".into(),
            rules: Vec::new().into(),
            map: String::new(),
            seed: Seed(0),
            settings: Vec::new(),
            preset: None,
            players: (0..4).map(player).collect(),
            origin: Origin::Imported { format: "test".into() },
            side: None,
            classes: Vec::new(),
            usercmd: Vec::new(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        }))
    }

    fn heard(&self) -> HeardCounts {
        self.heard
    }

    fn finish(&mut self, _out: &mut dyn FnMut(Record)) {}
}

/// Keeps the records, and reports the address of the proxy.
struct RecordedSession {
    listening: Sender<SocketAddr>,
    records: Vec<Record>,
    is_begun: bool,
}

impl LiveSink for RecordedSession {
    fn begin(&mut self, _header: &SessionHeader) -> ControlFlow<()> {
        self.is_begun = true;
        ControlFlow::Continue(())
    }

    fn listening(&mut self, address: SocketAddr) {
        self.listening.send(address).expect("somebody waits");
    }

    fn record(&mut self, record: Record) -> ControlFlow<()> {
        assert!(self.is_begun, "a record before the header");
        self.records.push(record);
        ControlFlow::Continue(())
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn show(&mut self, _rates: &SessionRates) {}
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    socket
}

/// The server's answer to a datagram.
fn answer(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().map(|byte| byte ^ 0x55).collect()
}

/// Runs `clients` through a proxy to a server that answers each datagram.
fn run_proxy(link: LinkModel, clients: impl Fn(SocketAddr) + Send) -> (ProxyReport, Vec<Record>, usize) {
    let server = socket();
    server.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let options = ProxyOptions {
        listen: "127.0.0.1:0".parse().expect("an address"),
        upstream: server.local_addr().expect("an address"),
        link,
        seed: Seed(7),
        length: None,
    };
    let stop = AtomicBool::new(false);
    let (listening, at) = channel();
    let mut sink = RecordedSession { listening, records: Vec::new(), is_begun: false };
    let (report, peers) = std::thread::scope(|scope| {
        let serves = scope.spawn(|| {
            let (mut bytes, mut peers) = (vec![0; 65_535], std::collections::BTreeSet::new());
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = server.recv_from(&mut bytes) else { continue };
                peers.insert(from);
                server.send_to(&answer(&bytes[..length]), from).expect("it is sent");
            }
            peers.len()
        });
        let stop = &stop;
        scope.spawn(move || {
            clients(at.recv().expect("the proxy listens"));
            stop.store(true, Ordering::Relaxed);
        });
        let report = proxy(&options, &mut PassingCounter::default(), stop, &mut sink).expect("it ran");
        (report, serves.join().expect("it served"))
    });
    (report, sink.records, peers)
}

#[test]
fn datagrams_of_any_content_pass_unchanged() {
    if !has_sockets() {
        return;
    }
    let (report, records, peers) = run_proxy(LinkModel::default(), |proxy| {
        let clients = [socket(), socket(), socket()];
        let mut rng = Rng::new(Seed(1), 0);
        let mut back = vec![0; 65_535];
        for turn in 0..300 {
            // Very long datagrams and one of a single byte are among them.
            let length = [1, 1_400, 9_000, 60_000, 1 + rng.below(1_400) as usize][turn % 5];
            let sent: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            let client = &clients[turn % 3];
            client.send_to(&sent, proxy).expect("it is sent");
            let (length, from) = client.recv_from(&mut back).expect("the server answers");
            assert!(from == proxy && back[..length] == answer(&sent), "turn {turn}");
        }
    });
    eprintln!("{report:?}");
    assert_eq!(peers, 3, "the server tells clients apart");
    assert_eq!((report.clients, report.heard.datagrams), (3, 600));
    assert_eq!([report.up, report.down].map(|way| (way.datagrams, way.forwarded)), [(300, 300); 2]);
    assert_eq!((report.lost_on_purpose, report.unrecorded, report.refused), (0, 0, 0));
    assert_eq!(records.len(), 600);
    assert!(report.added.is_some());
}

/// Server browsers send one query each, from hundreds of addresses.
#[test]
fn a_new_client_replaces_the_most_silent_one() {
    if !has_sockets() {
        return;
    }
    let (report, ..) = run_proxy(LinkModel::default(), |proxy| {
        let mut back = [0; 8];
        let mut ask = |client: &UdpSocket| {
            client.send_to(&[1, 2, 3], proxy).expect("it is sent");
            client.recv_from(&mut back).expect("the server answers");
        };
        let player = socket();
        // Sockets that stay open have different ports.
        let browsers: Vec<UdpSocket> = (0..300).map(|_| socket()).collect();
        for browser in &browsers {
            ask(browser);
            ask(&player);
        }
        let late = socket();
        ask(&late);
    });
    eprintln!("{report:?}");
    assert_eq!((report.clients, report.refused), (302, 0), "the player keeps its socket");
}

#[test]
fn delays_and_losses_are_applied_and_recorded() {
    if !has_sockets() {
        return;
    }
    const DELAY: Micros = Micros::from_ms(30);
    let link = LinkModel { delay_ms: 30.0, loss: Loss::Random(0.2), ..LinkModel::default() };
    let (report, records, _) = run_proxy(link, |proxy| {
        let client = socket();
        client.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        (0..200u8).for_each(|n| drop(client.send_to(&[n, 1, 2, n], proxy)));
        let mut back = [0; 100];
        while client.recv_from(&mut back).is_ok() {}
    });
    eprintln!("{report:?}");
    assert_eq!(report.up.datagrams, 200);
    assert!((15..70).contains(&(200 - report.up.forwarded)), "{}", report.up.forwarded);
    assert_eq!(report.down.datagrams, report.up.forwarded);
    assert_eq!(report.lost_on_purpose, 200 - report.up.forwarded + (report.down.datagrams - report.down.forwarded));
    assert_eq!(records.len() as u64, report.up.forwarded + report.down.forwarded);
    let at = |record: &Record| if let EventTime::At(at) = record.when() { at } else { unreachable!("they have times") };
    assert!(records.iter().map(at).is_sorted(), "records come in the order of their times");
    // Both directions have a delay, so an answer comes after the delay of its question and its own.
    let first = |of: fn(&Record) -> bool| records.iter().find(|record| of(record)).map(at).expect("one");
    let reached = first(|record| matches!(record, Record::Reached(..)));
    let received = first(|record| matches!(record, Record::Received(..)));
    assert!(reached >= DELAY && received >= reached + DELAY, "{reached:?} {received:?}");
}
