//! One of nine players floods the server with the most harmful datagrams that a client can send. The session of the
//! other eight is unaffected.
#![cfg(unix)]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the attacker has its own socket and clock")]

use std::net::UdpSocket;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hitreg::arena::ArenaBody;
use hitreg::packet::ClientPacket;
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, Micros, Seed, SnapshotSeq};
use hitreg::usercmd::Usercmd;
use hitreg::wire::{COMMANDS_MAX, ClientConnection, ClientEvent, ConnectOptions};
use serde_json::Value;

use crate::join::{SessionFolder, assert_done};

/// The memory limit of the server during the attack.
const MEMORY_KIB: u64 = 100 << 10;

/// The attacker's next datagram: usercmds with far, old or random times and random claims, as many as fit; a
/// repetition; a wrong seal; or a connection request.
fn attack_datagram(
    rng: &mut Rng,
    connection: &mut ClientConnection<ArenaBody>,
    before: &[u8],
    seq: &mut u32,
) -> Vec<u8> {
    match rng.below(8) {
        0 => return before.to_vec(),
        1 => {
            let mut bytes = before.to_vec();
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8));
            return bytes;
        }
        2 => {
            let mut other = ClientConnection::<ArenaBody>::new(ConnectOptions::new("arena"), rng.next_u64(), Micros(0));
            other.handle_timeout(Micros(0));
            return other.poll_transmit().unwrap_or_default();
        }
        3 => *seq = seq.wrapping_add(32_767),
        4 => *seq = seq.wrapping_sub(rng.below(40_000) as u32).max(1),
        _ => *seq = seq.wrapping_add(rng.below(64) as u32),
    }
    let count = 1 + rng.below(COMMANDS_MAX as u64) as u32;
    let command = |n: u32| Usercmd {
        seq: CommandSeq(seq.wrapping_add(n).max(1)),
        server_time: Micros(any_time(*seq, n)),
        ..Usercmd::default()
    };
    let packet = ClientPacket {
        number: rng.next_u64() as u32,
        ack: SnapshotSeq(rng.next_u64() as u32 & 0xff),
        commands: (0..count).map(command).collect(),
    };
    // Packets that the encoding cannot express are not sent.
    let _ = connection.send_packet_as_is(&packet, None);
    connection.poll_transmit().unwrap_or_default()
}

/// A random time, from seconds to centuries away.
fn any_time(seq: u32, n: u32) -> i64 {
    let any = Rng::new(Seed(u64::from(seq) << 8 | u64::from(n)), 1).next_u64();
    if any & 1 == 0 { (any >> 1) as i64 % 60_000_000 } else { any as i64 }
}

/// Impossible requests, some of them malformed.
fn impossible_request(rng: &mut Rng) -> Vec<u8> {
    let keys =
        ["server.update_hz", "server.rate_bytes_per_s", "client.cmd_hz", "server.tick_hz", "p0.client.cmd_hz", ""];
    let values = ["NaN", "0", "-1", "1e300", "9223372036854775807", "inf", "64", "\0"];
    let one = |rng: &mut Rng| (keys[rng.below(6) as usize], values[rng.below(8) as usize]);
    let pairs: Vec<(&str, &str)> = (0..rng.below(40)).map(|_| one(rng)).collect();
    let mut bytes = rmp_serde::to_vec(&pairs).expect("it can be written");
    if rng.chance(0.3) {
        bytes.iter_mut().for_each(|byte| *byte ^= rng.next_u64() as u8 & 0x81);
    }
    bytes
}

/// Sends `a_second` attack datagrams a second until `over`. Returns the number sent while the session ran.
fn attack(port: u16, a_second: u64, over: &AtomicBool, fired: &AtomicU64) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", port)).expect("an address");
    socket.set_nonblocking(true).expect("a socket that does not wait");
    let (began, mut rng) = (Instant::now(), Rng::new(Seed(9), 0));
    let connect = |rng: &mut Rng, now: Micros| {
        let options = ConnectOptions { request_data: impossible_request(rng), ..ConnectOptions::new("arena") };
        ClientConnection::<ArenaBody>::new(options, rng.next_u64(), now)
    };
    let (mut connection, mut places) = (connect(&mut rng, Micros(0)), 0);
    let (mut runs_since, mut seq, mut before) = (None::<Instant>, 1, vec![0; 32]);
    let mut datagram = [0; 2048];
    while !over.load(Ordering::Relaxed) {
        let now = Micros(began.elapsed().as_micros() as i64);
        connection.handle_timeout(now);
        while let Some(bytes) = connection.poll_transmit() {
            let _ = socket.send(&bytes);
        }
        while let Ok(length) = socket.recv(&mut datagram) {
            match connection.handle_datagram(now, &datagram[..length]) {
                // The attacker reconnects many times, each time with other requests.
                Ok(Some(ClientEvent::Connected(_))) if places < 50 => {
                    places += 1;
                    connection = connect(&mut rng, now);
                }
                Ok(Some(ClientEvent::Connected(_))) => connection.set_ready(now, true),
                Ok(Some(ClientEvent::Snapshot { .. })) => drop(runs_since.get_or_insert_with(Instant::now)),
                Ok(Some(ClientEvent::Left(_))) => return,
                _ => {}
            }
        }
        let due = runs_since.map_or(0, |since| (since.elapsed().as_secs_f64() * a_second as f64) as u64);
        while fired.load(Ordering::Relaxed) < due {
            let bytes = attack_datagram(&mut rng, &mut connection, &before, &mut seq);
            // When the socket's buffer is full, the attacker retries.
            if !bytes.is_empty() && socket.send(&bytes).is_ok() {
                before = bytes;
            }
            fired.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Runs eight honest players and the attacker over real sockets. Returns the server's report and the number of attack
/// datagrams.
fn run_attack(seconds: f64, a_second: u64) -> Option<(Value, u64)> {
    let place = SessionFolder::new()?;
    let port = place.port;
    let server = place.serve(&format!("--players 9 --seconds {seconds} --format json"));
    let (over, fired) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| attack(port, a_second, &over, &fired));
        let clients: Vec<Child> = (0..8).map(|number| place.join(number, "--delay-ms 20")).collect();
        let status = format!("/proc/{}/status", server.id());
        let peak = scope.spawn(move || {
            let mut peak = 0;
            while let Some(kib) = std::fs::read_to_string(&status).ok().and_then(|text| peak_kib(&text)) {
                peak = kib.max(peak);
                std::thread::sleep(Duration::from_millis(50));
            }
            peak
        });
        clients.into_iter().for_each(assert_done);
        let output = server.wait_with_output().expect("it was started");
        over.store(true, Ordering::Relaxed);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let peak = peak.join().expect("a number");
        eprintln!("the server took {} MiB at most", peak >> 10);
        assert!(peak < MEMORY_KIB, "{} MiB", peak >> 10);
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON alone on stdout")
    });
    // The log of each honest player is complete and replays as recorded.
    for number in 0..8 {
        let replayed = place.done(&format!("replay client{number}.hitlog"));
        let checked = replayed["prediction"]["checked"].as_f64().expect("a number");
        assert!(checked > 10.0 * seconds, "{replayed}");
    }
    // The attacker has no log. It replays from what the server received, in the merged session and in the server's own
    // log.
    let logs = (0..8).map(|number| format!("client{number}.hitlog")).collect::<Vec<_>>().join(" ");
    place.done(&format!("merge server.hitlog {logs} -o session.hitlog"));
    let whole = place.verified("session.hitlog");
    assert!(whole.as_s_f64() > 0.8 * seconds, "{whole:?}");
    assert_eq!(place.verified("server.hitlog"), whole);
    Some((report, fired.into_inner()))
}

/// The peak memory of a process from `/proc`; `None` after its end.
fn peak_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_flooding_client_harms_no_other_player() {
    let Some((output, fired)) = run_attack(3.0, 1_500) else { return };
    eprintln!("{fired} datagrams: {output}");
    assert!(fired > 1_000, "{fired} datagrams");
    assert!(output["server"]["refused"].as_u64().expect("a number") > fired / 10, "{output}");
}

#[test]
#[ignore = "a figure for two idle cores: 5,000 datagrams a second for half a minute"]
fn the_server_runs_every_tick_at_5000_datagrams_a_second() {
    let Some((output, fired)) = run_attack(30.0, 5_000) else { return };
    eprintln!("{fired} datagrams: {output}");
    assert!(fired > 140_000, "{fired} datagrams");
    assert_eq!(output["server"]["ticks_left_out"], 0, "{output}");
}
