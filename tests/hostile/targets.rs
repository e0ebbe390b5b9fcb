//! Everything that reads what others have written, in this process: files, texts, and datagrams in a running session. Each is handed
//! what `fixtures/fuzz` keeps, and mutants of it by seeds. None panics, none asks for more memory than its input is worth.
#![expect(clippy::disallowed_methods, reason = "whoever looks for more says so in the environment")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glam::Vec3;
use hitreg::arena::{ArenaBody, ArenaMap};
use hitreg::golden::difference;
use hitreg::history::Frame;
use hitreg::log;
use hitreg::packet::{ClientPacket, Echo, Snapshot};
use hitreg::quakeworld::{Demo, ImportOptions, Map, UserCmd, import};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::Usercmd;
use hitreg::wire::{
    ClientConnection, ClientMessage, ClientReference, ConnectOptions, Connecting, DATAGRAM_BYTES_MAX, Endpoint,
    EndpointOptions, Incoming, Key, Receiver, Sender, ServerConnection, decode_commands, encode_commands, seal,
};

use crate::crafted::{keyed_log, short_log, short_trace};
use crate::maps::quake_bytes;
use crate::small::{DemoWriter, ServerDemoWriter, own_state};
use crate::worse;

/// How many mutants are tried without `HITREG_FUZZ_SECONDS`.
const MUTANTS: u64 = 300;
/// What reading may ask for in all: so much, and so many times its input. Work goes by memory here: what allocates nothing ends
/// with its input.
const WORK: usize = 512 << 20;
const WORK_PER_BYTE: usize = 4096;
/// A kept input is no longer, and no target has more of them.
const KEPT_BYTES: usize = 2048;
const KEPT: usize = 40;
/// What one target asks for is counted alone.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What reading came to, in a few words: inputs of which it is the same are alike.
type Read<'a> = &'a mut dyn FnMut(&[u8]) -> String;

/// Tries what is kept, then mutants of it and of `good`. With `HITREG_FUZZ_KEEP`, those that come to what nothing kept
/// comes to are kept.
fn target(name: &str, good: Vec<Vec<u8>>, worsen: fn(&[u8], &mut Rng) -> Vec<u8>, read: Read<'_>) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzz").join(name);
    let mut kept = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>(),
        Err(_) => Vec::new(),
    };
    kept.sort();
    let mut corpus: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).expect("readable")).collect();
    corpus.extend(good);
    let mut tried = |bytes: &[u8], which: &str| {
        let before = crate::MEMORY.total_allocated();
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes)));
        let asked = crate::MEMORY.total_allocated() - before;
        match read {
            Ok(said) if asked <= WORK + WORK_PER_BYTE * bytes.len() => alike(&said),
            _ => {
                let found = std::env::temp_dir().join(format!("hitreg-{name}"));
                std::fs::write(&found, bytes).expect("written");
                panic!("{name}, {which}: {} MiB for {} bytes; it is in {}", asked >> 20, bytes.len(), found.display());
            }
        }
    };
    let mut come_to = BTreeSet::new();
    for (index, bytes) in corpus.iter().enumerate() {
        come_to.insert(tried(bytes, &format!("kept {index}")));
    }
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let (first, seconds) = (number("HITREG_FUZZ_SEED").unwrap_or(0), number("HITREG_FUZZ_SECONDS"));
    let keeps = number("HITREG_FUZZ_KEEP").is_some();
    let started = worked();
    let goes_on = |seed: u64| seconds.map_or(seed < first + MUTANTS, |most| (worked() - started).as_secs() < most);
    let mut seed = first;
    while goes_on(seed) {
        let mut rng = Rng::new(Seed(seed), 0x6675_7a7a);
        let bytes = worsen(&corpus[rng.below(corpus.len() as u64) as usize], &mut rng);
        let said = tried(&bytes, &format!("HITREG_FUZZ_SEED={seed}"));
        if keeps && bytes.len() <= KEPT_BYTES && come_to.len() < KEPT && come_to.insert(said) {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join(format!("{:03}", come_to.len())), &bytes).expect("written");
            corpus.push(bytes);
        }
        seed += 1;
    }
    let (tried, seconds) = (seed - first, (worked() - started).as_secs());
    eprintln!("{name}: {tried} of {} kept or good in {seconds} s, which come to {}", corpus.len(), come_to.len());
}

/// How long this thread has had a processor: other work beside it does not count.
#[cfg(unix)]
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn worked() -> Duration {
    static BEGAN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed()
}

/// Without numbers and names, which differ for ever.
fn alike(said: &str) -> String {
    let mut words = String::new();
    for (index, part) in said.split(['`', '"']).enumerate() {
        // Every second one is between quotes.
        if index % 2 == 0 {
            words.extend(part.chars().filter(|letter| letter.is_ascii_alphabetic() || *letter == ' '));
        }
    }
    words.chars().take(120).collect()
}

/// What an error says, or that there is none.
fn said<T, E: std::fmt::Display>(read: Result<T, E>) -> String {
    read.map_or_else(|error| error.to_string(), |_| "good".to_owned())
}

fn worse_text(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    worse::text(&String::from_utf8_lossy(good), rng).into_bytes()
}

#[test]
fn logs() {
    target("logs", vec![short_log(), keyed_log()], worse::bytes, &mut |bytes| {
        let (read, recovered) = (log::read_session(bytes), log::recover(bytes));
        let keyframes = log::keyframes_of(bytes, &mut |_| {});
        assert!(read.is_err() || keyframes.is_ok(), "what reads has sound keyframes, or none");
        assert!(read.is_err() || recovered.is_ok_and(|(_, damage)| damage.is_none()), "what reads needs no recovery");
        said(read)
    });
}

#[test]
fn traces() {
    target("traces", vec![short_trace()], worse::bytes, &mut |bytes| said(log::read_trace(bytes)));
}

#[test]
fn demos() {
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    for n in 1..60u8 {
        let cmd = UserCmd { msec: 13, forward: 400, ..UserCmd::default() };
        demo.command(f32::from(n) * 0.013, &cmd);
        let state = own_state([f32::from(n), 0.0, 24.0], [100.0, 0.0, 0.0]);
        demo.packet(f32::from(n) * 0.013, 1 + u32::from(n), u32::from(n), &state);
    }
    let mut served = ServerDemoWriter::default();
    served.signon();
    for n in 1..60u8 {
        served.moment(40);
        served.player(2, [f32::from(n), 0.0, 24.0], 90.0);
        served.lift(n % 30);
        served.hit(3, 1, 20);
        served.ran(2, &UserCmd { msec: 13, forward: 400, ..UserCmd::default() });
    }
    let map = quake_bytes();
    let options = ImportOptions { map_name: None, force_map: true };
    target("demos", vec![demo.bytes, served.bytes], worse::bytes, &mut |bytes| {
        said(Demo::parse(bytes)) + &said(import(bytes, &map, &options))
    });
}

#[test]
fn maps() {
    target("bsp", vec![quake_bytes()], worse::bytes, &mut |bytes| said(Map::parse(bytes)));
    let small = include_bytes!("../../fixtures/claims/corner.map").to_vec();
    let large = include_bytes!("../../maps/orchard.map").to_vec();
    target("map", vec![small, large], worse_text, &mut |bytes| said(ArenaMap::parse("fuzz", bytes)));
}

#[test]
fn texts() {
    let scenario = "preset = \"quake3\"\nplayers = 2\nseconds = 5.0\n[settings]\n\"interpolation.lerp_ms\" = 50\n[[links]]\n\
                    delay_ms = 20.0\njitter = { exponential = 5.0 }\nloss = { burst = { enter = 0.01, leave = 0.3 } }";
    target("scenarios", vec![scenario.into()], worse_text, &mut |bytes| {
        let scenario = Scenario::parse(&String::from_utf8_lossy(bytes));
        scenario.map_or_else(|error| error.to_string(), |scenario| said(scenario.settings()))
    });
    let settings: Vec<String> =
        Settings::default().to_pairs().into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    target("settings", vec![settings.join("\n").into()], worse_text, &mut |bytes| {
        let mut settings = Settings::default();
        let mut refused = String::new();
        for line in String::from_utf8_lossy(bytes).lines().take(1000) {
            if let Err(error) = settings.set_pair(line) {
                refused = error.to_string();
            }
        }
        assert_eq!(Settings::from_pairs(&settings.to_pairs()), Ok(settings), "what is taken is kept");
        refused
    });
    let golden = hitreg::golden::golden(&log::read_trace(&short_trace()[..]).expect("a trace"));
    let replayed = golden.clone();
    target("goldens", vec![golden.into()], worse_text, &mut |bytes| {
        let accepted = String::from_utf8_lossy(bytes);
        let differs = difference(&accepted, &replayed);
        assert_eq!(differs.is_none(), accepted == replayed, "another golden differs");
        differs.map_or_else(
            || "the same".to_owned(),
            |found| found.to_string().lines().next().unwrap_or_default().to_owned(),
        )
    });
}

/// Datagrams whose seals are right, of a client that may send anything; those of a server to its client; and those of
/// whoever wants a place.
#[test]
fn datagrams() {
    let key = Key(1, 2);
    let command = |seq: u32| Usercmd { seq: CommandSeq(seq), server_time: Micros(16_000), ..Usercmd::default() };
    let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: (1..4).map(command).collect() };
    let message = ClientMessage { packet, received_before: 0, perceived: None };
    let good = encode_commands(&message).expect("it can be sent");
    target("commands", vec![good.clone()], worse::bytes, &mut |bytes| {
        said(decode_commands(bytes, &ClientReference::default()))
    });
    let mut server = ServerConnection::<ArenaBody>::new(key, PlayerId(0), 2, Micros::ZERO);
    target("session", vec![good], worse::bytes, &mut |bytes| {
        said(server.handle_datagram(Micros::ZERO, &seal(key, bytes.to_vec())))
    });
    let mut receiver = Receiver::<ArenaBody>::new();
    target("snapshots", messages(), worse::bytes, &mut |bytes| said(receiver.decode(bytes, CommandSeq(100))));
    let options =
        EndpointOptions { game: "arena".to_owned(), places: 4, welcome: Vec::new(), unready_per_host: 2, secret: key };
    let mut endpoint = Endpoint::new(options);
    let mut asks = ClientConnection::<ArenaBody>::new(ConnectOptions::new("arena"), 7, Micros::ZERO);
    asks.handle_timeout(Micros::ZERO);
    let request = asks.poll_transmit().expect("a request");
    // Whoever gives the challenge back may ask for anything.
    let mut wants = ConnectOptions::new("arena");
    wants.asked = rmp_serde::to_vec(&[("server.update_hz", "1e300"), ("client.cmd_hz", "NaN")]).expect("text");
    let mut confirms = Connecting::new(wants, 7, Micros::ZERO);
    if let Incoming::Reply(challenge) = endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 9).into(), &request) {
        confirms.poll_datagram(Micros::ZERO);
        confirms.handle_datagram(Micros::ZERO, &challenge);
    }
    let confirm = confirms.poll_datagram(Micros::ZERO).expect("a confirm");
    target("endpoint", vec![request.clone(), confirm], worse::bytes, &mut |bytes| {
        format!("{:?}", endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 9).into(), bytes))
    });
    // Each answer makes the next one possible: a client is handed all that a server may say to it.
    let mut client = ClientConnection::<ArenaBody>::new(ConnectOptions::new("arena"), 7, Micros::ZERO);
    let Incoming::Reply(challenge) = endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 10).into(), &request)
    else {
        panic!("a first request is challenged")
    };
    target("client", vec![challenge], worse::bytes, &mut |bytes| said(client.handle_datagram(Micros::ZERO, bytes)));
}

/// What a server's messages to a client are: two snapshots, the second by its difference from the first.
fn messages() -> Vec<Vec<u8>> {
    let mut sender = Sender::<ArenaBody>::new(PlayerId(0), 2);
    let mut receiver = Receiver::<ArenaBody>::new();
    let mut message = |seq: u32| {
        let body = |x: f32| ArenaBody { origin: Vec3::new(x, 8.0, 24.0), ..ArenaBody::default() };
        let frame = Frame {
            tick: Tick(seq),
            server_time: Micros(10_000 * i64::from(seq)),
            entities: vec![(EntityId(0), body(seq as f32)), (EntityId(1), body(-100.0 * seq as f32))],
        };
        let snapshot = Snapshot {
            seq: SnapshotSeq(seq),
            ack: CommandSeq(3),
            frame: Arc::new(frame),
            effects: Vec::new(),
            choked: 1,
            helper_ms: Some(-7),
            warnings: Vec::new(),
            echo: Some(Echo { packet: 9, held_ms: 20, lost: 1 }),
            extra: Vec::new(),
        };
        let sent = sender.encode(&snapshot, snapshot.helper_ms, DATAGRAM_BYTES_MAX).expect("it can be sent");
        receiver.decode(&sent.datagram, CommandSeq(100)).expect("what was sent is read");
        sender.handle_ack(&receiver.received());
        sent.datagram
    };
    vec![message(1), message(2)]
}
