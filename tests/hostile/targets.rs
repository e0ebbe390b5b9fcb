//! Readers of hitreg's own formats, in this process: files, texts, and datagrams in a running session. Each gets the
//! inputs in `fixtures/fuzz` and seeded mutants of them.
use std::sync::Arc;

use glam::Vec3;
use hitreg::arena::ArenaBody;
use hitreg::golden::{ReplaySummary, difference};
use hitreg::history::Frame;
use hitreg::log;
use hitreg::packet::{ClientPacket, Echo, Snapshot};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg::usercmd::Usercmd;
use hitreg::wire::{
    ClientConnection, ClientMessage, ClientReference, ConnectMachine, ConnectOptions, DATAGRAM_BYTES_MAX, Endpoint,
    EndpointOptions, IncomingMessage, Key, Reassembly, Receiver, Sender, ServerConnection, SharedStates,
    decode_commands, encode_commands, fragments, seal,
};

use crate::container::try_unpack_chunks;
use crate::crafted::{keyed_log, short_log, short_trace};
use crate::fuzz::{outcome, target};
use crate::mutants::mutant;
use crate::mutate;

pub(crate) fn mutated_text(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    mutate::text(&String::from_utf8_lossy(good), rng).into_bytes()
}

/// A log or trace with changed values and valid checksums; sometimes with changed bytes.
fn mutated_file(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    match try_unpack_chunks(good) {
        Some(chunks) if rng.chance(0.7) => mutant(&chunks, rng),
        _ => mutate::bytes(good, rng),
    }
}

#[test]
fn logs() {
    target("logs", vec![short_log(), keyed_log()], mutated_file, &mut |bytes| {
        let (read, recovered) = (log::read_session(bytes), log::recover(bytes));
        let keyframes = log::keyframes_of(bytes, &mut |_| {});
        assert!(read.is_err() || keyframes.is_ok(), "what reads has sound keyframes, or none");
        assert!(read.is_err() || recovered.is_ok_and(|(_, damage)| damage.is_none()), "what reads needs no recovery");
        outcome(read)
    });
}

#[test]
fn traces() {
    target("traces", vec![short_trace()], mutated_file, &mut |bytes| outcome(log::read_trace(bytes)));
}

#[test]
fn texts() {
    let scenario = "preset = \"quake3\"\nplayers = 2\nseconds = 5.0\n[settings]\n\"interpolation.lerp_ms\" = 50\n[[links]]\n\
                    delay_ms = 20.0\njitter = { exponential = 5.0 }\nloss = { burst = { enter = 0.01, leave = 0.3 } }";
    target("scenarios", vec![scenario.into()], mutated_text, &mut |bytes| {
        let scenario = Scenario::parse(&String::from_utf8_lossy(bytes));
        scenario.map_or_else(|error| error.to_string(), |scenario| outcome(scenario.settings()))
    });
    let settings: Vec<String> =
        Settings::default().to_pairs().into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    target("settings", vec![settings.join("\n").into()], mutated_text, &mut |bytes| {
        let mut settings = Settings::default();
        let mut refused = String::new();
        for line in String::from_utf8_lossy(bytes).lines().take(1000) {
            if let Err(error) = settings.set_pair(line) {
                refused = error.to_string();
            }
        }
        assert_eq!(Settings::from_pairs(&settings.to_pairs()), Ok(settings), "accepted settings are kept");
        refused
    });
    let trace = log::read_trace(&short_trace()[..]).expect("a trace");
    let golden = ReplaySummary::of(&trace).golden().expect("a golden");
    let replayed = golden.clone();
    target("goldens", vec![golden.into()], mutated_text, &mut |bytes| {
        let accepted = String::from_utf8_lossy(bytes);
        let differs = difference(&accepted, &replayed);
        assert_eq!(differs.is_none(), accepted == replayed, "another golden differs");
        differs.map_or_else(
            || "the same".to_owned(),
            |found| found.to_string().lines().next().unwrap_or_default().to_owned(),
        )
    });
}

/// Datagrams with valid seals, of a client to its server and of a server to its client; and connection requests.
#[test]
fn datagrams() {
    let key = Key(1, 2);
    let command = |seq: u32| Usercmd { seq: CommandSeq(seq), server_time: Micros(16_000), ..Usercmd::default() };
    let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: (1..4).map(command).collect() };
    let message = ClientMessage { packet, received_before: 0, perceived: None };
    let good = encode_commands(&message).expect("it can be sent");
    target("commands", vec![good.clone()], mutate::bytes, &mut |bytes| {
        outcome(decode_commands(bytes, &ClientReference::default()))
    });
    let mut server = ServerConnection::<ArenaBody>::new(key, PlayerId(0), 2, Micros::ZERO);
    target("session", vec![good], mutate::bytes, &mut |bytes| {
        outcome(server.handle_datagram(Micros::ZERO, &seal(key, bytes.to_vec())))
    });
    let (mut pieces, long) = (Reassembly::default(), vec![7; 5000]);
    let fragments = fragments(SnapshotSeq(9), long.clone()).expect("it can be cut up");
    target("fragments", fragments, mutate::bytes, &mut |bytes| {
        outcome(pieces.handle_fragment(bytes).map(|whole| {
            assert!(whole.is_none_or(|whole| whole.fragments <= 16 && whole.message.len() <= whole.bytes));
        }))
    });
    let mut receiver = Receiver::<ArenaBody>::default();
    target("snapshots", messages(), mutate::bytes, &mut |bytes| outcome(receiver.decode(bytes, CommandSeq(100))));
    let options =
        EndpointOptions { game: "arena".to_owned(), slots: 4, welcome: Vec::new(), unready_per_host: 2, secret: key };
    let mut endpoint = Endpoint::new(options);
    let mut asks = ClientConnection::<ArenaBody>::new(ConnectOptions::new("arena"), 7, Micros::ZERO);
    asks.handle_timeout(Micros::ZERO);
    let request = asks.poll_transmit().expect("a request");
    // A client with the right challenge may request anything.
    let mut wants = ConnectOptions::new("arena");
    wants.request_data = rmp_serde::to_vec(&[("server.update_hz", "1e300"), ("client.cmd_hz", "NaN")]).expect("text");
    let mut confirms = ConnectMachine::new(wants, 7, Micros::ZERO);
    if let IncomingMessage::Reply(challenge) =
        endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 9).into(), &request)
    {
        confirms.poll_datagram(Micros::ZERO);
        confirms.handle_datagram(Micros::ZERO, &challenge);
    }
    let confirm = confirms.poll_datagram(Micros::ZERO).expect("a confirm");
    target("endpoint", vec![request.clone(), confirm], mutate::bytes, &mut |bytes| {
        format!("{:?}", endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 9).into(), bytes))
    });
    // Each answer allows the next step: the client gets every message that a server can send.
    let mut client = ClientConnection::<ArenaBody>::new(ConnectOptions::new("arena"), 7, Micros::ZERO);
    let IncomingMessage::Reply(challenge) =
        endpoint.handle_datagram(Micros::ZERO, ([127, 0, 0, 1], 10).into(), &request)
    else {
        panic!("a first request is challenged")
    };
    target("client", vec![challenge], mutate::bytes, &mut |bytes| outcome(client.handle_datagram(Micros::ZERO, bytes)));
}

/// The messages of a server to a client: two snapshots, the second encoded relative to the first.
fn messages() -> Vec<Vec<u8>> {
    let mut sender = Sender::<ArenaBody>::new(PlayerId(0), 2);
    let mut receiver = Receiver::<ArenaBody>::default();
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
        let sent = sender.encode(&snapshot, DATAGRAM_BYTES_MAX, &mut SharedStates::default()).expect("it can be sent");
        receiver.decode(&sent.datagram, CommandSeq(100)).expect("the sent snapshot is readable");
        sender.handle_ack(&receiver.received());
        sent.datagram
    };
    vec![message(1), message(2)]
}
