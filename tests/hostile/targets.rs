//! Everything that reads what others have written, in this process: files, texts, and datagrams in a running session. Each is handed
//! what `fixtures/fuzz` keeps, and mutants of it by seeds. None panics, none asks for more memory than its input is worth.
#![expect(clippy::disallowed_methods, reason = "whoever looks for more says so in the environment")]

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hitreg::arena::{ArenaBody, ArenaMap};
use hitreg::golden::difference;
use hitreg::log;
use hitreg::packet::ClientPacket;
use hitreg::quakeworld::{Demo, ImportOptions, Map, UserCmd, import};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, Micros, PlayerId, Seed, SnapshotSeq};
use hitreg::usercmd::Usercmd;
use hitreg::wire::{
    ClientMessage, ClientReference, Endpoint, EndpointOptions, Key, Receiver, ServerConnection, decode_commands,
    encode_commands, seal,
};

use crate::crafted::{short_log, short_trace};
use crate::small::{DemoWriter, bsp_bytes, own_state};
use crate::worse;

/// How many mutants are tried without `HITREG_FUZZ_SECONDS`.
const MUTANTS: u64 = 300;
/// What reading may ask for in all: so much, and so many times its input. Work goes by memory here: what allocates nothing ends
/// with its input.
const WORK: usize = 512 << 20;
const WORK_PER_BYTE: usize = 4096;
/// What one target asks for is counted alone.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Tries what is kept, then mutants of it and of `good`.
fn target(name: &str, good: Vec<Vec<u8>>, worsen: fn(&[u8], &mut Rng) -> Vec<u8>, read: &mut dyn FnMut(&[u8])) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzz").join(name);
    let kept = std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let mut corpus: Vec<Vec<u8>> = kept.map(|path| std::fs::read(path).expect("readable")).collect();
    corpus.extend(good);
    let mut tried = |bytes: &[u8], which: &str| {
        let before = crate::MEMORY.total_allocated();
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes)));
        let asked = crate::MEMORY.total_allocated() - before;
        if read.is_err() || asked > WORK + WORK_PER_BYTE * bytes.len() {
            let found = std::env::temp_dir().join(format!("hitreg-{name}"));
            std::fs::write(&found, bytes).expect("written");
            panic!("{name}, {which}: {} MiB for {} bytes; it is in {}", asked >> 20, bytes.len(), found.display());
        }
    };
    for (index, bytes) in corpus.iter().enumerate() {
        tried(bytes, &format!("kept {index}"));
    }
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let (first, seconds) = (number("HITREG_FUZZ_SEED").unwrap_or(0), number("HITREG_FUZZ_SECONDS"));
    let started = std::time::Instant::now();
    let goes_on = |seed: u64| seconds.map_or(seed < first + MUTANTS, |most| started.elapsed().as_secs() < most);
    let mut seed = first;
    while goes_on(seed) {
        let mut rng = Rng::new(Seed(seed), 0x6675_7a7a);
        let good = &corpus[rng.below(corpus.len() as u64) as usize];
        tried(&worsen(good, &mut rng), &format!("HITREG_FUZZ_SEED={seed}"));
        seed += 1;
    }
    eprintln!("{name}: {} of {} kept or good", seed - first, corpus.len());
}

fn worse_text(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    worse::text(&String::from_utf8_lossy(good), rng).into_bytes()
}

#[test]
fn logs() {
    target("logs", vec![short_log()], worse::bytes, &mut |bytes| {
        let (read, recovered) = (log::read_session(bytes), log::recover(bytes));
        assert!(read.is_err() || recovered.is_ok_and(|(_, damage)| damage.is_none()), "what reads needs no recovery");
    });
}

#[test]
fn traces() {
    target("traces", vec![short_trace()], worse::bytes, &mut |bytes| {
        // Whatever comes of it is as good as another.
        let _ = log::read_trace(bytes);
    });
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
    let map = bsp_bytes();
    let options = ImportOptions { map_name: None, force_map: true };
    target("demos", vec![demo.bytes], worse::bytes, &mut |bytes| {
        let _ = Demo::parse(bytes);
        let _ = import(bytes, &map, &options);
    });
}

#[test]
fn maps() {
    target("bsp", vec![bsp_bytes()], worse::bytes, &mut |bytes| drop(Map::parse(bytes)));
    let small = include_bytes!("../../fixtures/claims/corner.map").to_vec();
    let large = include_bytes!("../../maps/orchard.map").to_vec();
    target("map", vec![small, large], worse_text, &mut |bytes| drop(ArenaMap::parse("fuzz", bytes)));
}

#[test]
fn texts() {
    let scenario = "preset = \"quake3\"\nplayers = 2\nseconds = 5.0\n[settings]\n\"interpolation.lerp_ms\" = 50\n[[links]]\n\
                    delay_ms = 20.0\njitter = { exponential = 5.0 }\nloss = { burst = { enter = 0.01, leave = 0.3 } }";
    target("scenarios", vec![scenario.into()], worse_text, &mut |bytes| {
        if let Ok(scenario) = Scenario::parse(&String::from_utf8_lossy(bytes)) {
            let _ = scenario.settings();
        }
    });
    let settings: Vec<String> =
        Settings::default().to_pairs().into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    target("settings", vec![settings.join("\n").into()], worse_text, &mut |bytes| {
        let mut settings = Settings::default();
        for line in String::from_utf8_lossy(bytes).lines().take(1000) {
            let _ = settings.set_pair(line);
        }
        assert_eq!(Settings::from_pairs(&settings.to_pairs()), Ok(settings), "what is taken is kept");
    });
    let golden = hitreg::golden::golden(&log::read_trace(&short_trace()[..]).expect("a trace"));
    let replayed = golden.clone();
    target("goldens", vec![golden.into()], worse_text, &mut |bytes| {
        let accepted = String::from_utf8_lossy(bytes);
        let said = difference(&accepted, &replayed);
        assert_eq!(said.is_none(), accepted == replayed, "another golden differs");
    });
}

/// Datagrams whose seals are right, of a client that may send anything; and those of a server to its client.
#[test]
fn datagrams() {
    let key = Key(1, 2);
    let command = |seq: u32| Usercmd { seq: CommandSeq(seq), server_time: Micros(16_000), ..Usercmd::default() };
    let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: (1..4).map(command).collect() };
    let message = ClientMessage { packet, received_before: 0, perceived: None };
    let good = encode_commands(&message).expect("it can be sent");
    target("commands", vec![good.clone()], worse::bytes, &mut |bytes| {
        let _ = decode_commands(bytes, &ClientReference::default());
    });
    let mut server = ServerConnection::<ArenaBody>::new(key, PlayerId(0), 2, Micros::ZERO);
    target("session", vec![good.clone()], worse::bytes, &mut |bytes| {
        let _ = server.handle_datagram(Micros::ZERO, &seal(key, bytes.to_vec()));
    });
    let mut receiver = Receiver::<ArenaBody>::new();
    target("snapshots", vec![good.clone()], worse::bytes, &mut |bytes| {
        let _ = receiver.decode(bytes, CommandSeq(100));
    });
    let options =
        EndpointOptions { game: "arena".to_owned(), places: 4, welcome: Vec::new(), unready_per_host: 2, secret: key };
    let mut endpoint = Endpoint::new(options);
    target("endpoint", vec![good], worse::bytes, &mut |bytes| {
        endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 9).into(), bytes);
    });
}
