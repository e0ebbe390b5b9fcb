//! A million datagrams of attackers.

use std::net::SocketAddr;

use hitreg::packet::Snapshot;
use hitreg::rng::Rng;
use hitreg::units::{CommandSeq, Micros, PlayerId, Seed, SnapshotSeq};
use hitreg::wire::{ClientMessage, ClientRequest, LeaveReason, RequestKind, Wrapping16};
use hitreg::wire::{
    ClientReference, ConnectMachine, ConnectOptions, DecodeOutcome, ENTITIES_MAX, Endpoint, IncomingMessage, Receiver,
    Sender, ServerConnection, SharedStates, WINDOW, decode_commands, decode_disconnect, decode_request,
    encode_commands, encode_disconnect, encode_request, seal, unseal,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::commands::message;
use super::handshake::{address, endpoint, join};
use super::runners::{Runner, RunnerCrowd, bits};

const DATAGRAMS: usize = 1_000_000;

/// Valid datagrams of every type, without seals, and a client that has received half of the server's.
fn valid_datagrams() -> (Vec<Vec<u8>>, Receiver<Runner>) {
    let mut runner = TestRunner::deterministic();
    let mut all = Vec::new();
    let mut half_way = Receiver::default();
    let mut any_message = || message().new_tree(&mut runner).expect("there is one").current();
    all.extend((0..40).map(|_| encode_commands(&any_message()).expect("the commands are consecutive")));
    let mut field = RunnerCrowd::new(1, 12);
    let mut sender: Sender<Runner> = Sender::new(PlayerId(0), 12);
    let mut receiver: Receiver<Runner> = Receiver::default();
    for seq in 1..60 {
        field.step();
        let encoded = sender
            .encode(&Snapshot { helper_ms: Some(3), ..field.snapshot(seq) }, 700, &mut SharedStates::default())
            .expect("the budget holds one body");
        receiver.decode(&encoded.datagram, CommandSeq(seq)).expect("the server sent it");
        if seq <= 30 {
            sender.handle_ack(&receiver.received());
        }
        all.push(encoded.datagram);
        if seq == 30 {
            half_way = receiver.clone();
        }
    }
    all.push(encode_request(&ClientRequest { number: Wrapping16(1), what: RequestKind::Game { bytes: vec![1; 50] } }));
    all.push(encode_disconnect(LeaveReason::Done));
    all.push(
        ConnectMachine::new(ConnectOptions::new("discs"), 5, Micros::ZERO)
            .poll_datagram(Micros::ZERO)
            .expect("it is due"),
    );
    (all, half_way)
}

/// Random bytes, or a valid datagram: truncated, with changed bits or bytes, or joined with another.
fn attack_datagram(rng: &mut Rng, real: &[Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut Rng| real[rng.below(real.len() as u64) as usize].clone();
    let mut bytes = pick(rng);
    match rng.below(5) {
        0 => {
            bytes = (0..rng.below(200)).map(|_| rng.next_u64() as u8).collect();
            if bytes.len() > 5 && rng.chance(0.8) {
                bytes[..4].copy_from_slice(b"HRG1");
                bytes[4] = rng.below(14) as u8;
            }
        }
        1 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        2 => {
            for _ in 0..=rng.below(4) {
                let bit = rng.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        3 => {
            // The header stays valid, so that the change reaches later parts.
            let from = 12 + rng.below(20) as usize;
            for byte in bytes.iter_mut().skip(from) {
                *byte = if rng.chance(0.1) { rng.next_u64() as u8 } else { *byte };
            }
        }
        _ => {
            let cut = rng.below(bytes.len() as u64) as usize;
            bytes.truncate(cut);
            bytes.extend(pick(rng).iter().skip(cut));
        }
    }
    bytes
}

#[test]
fn a_million_hostile_datagrams_do_no_harm() {
    let (real, half_way) = valid_datagrams();
    let mut rng = Rng::new(Seed(1), 2);
    let mut endpoint: Endpoint = endpoint(4);
    let honest = join(&mut endpoint, address(1, 1), 1, Micros::ZERO);
    let mut connection: ServerConnection<Runner> = ServerConnection::new(honest.key, honest.player, 4, Micros::ZERO);
    // These receivers get the datagrams without the protection of a seal.
    let mut victim = half_way.clone();
    let mut victims_of_old = Vec::new();
    let mut connecting = ConnectMachine::new(ConnectOptions::new("discs"), 5, Micros::ZERO);
    let (mut decoded, mut refused, mut let_through) = (0u32, 0u32, 0u32);
    for i in 0..DATAGRAMS {
        let bytes = attack_datagram(&mut rng, &real);
        let now = Micros(i as i64);
        if i % 100 == 0 && i < DATAGRAMS / 2 {
            // A receiver that has accepted a wrong state rejects everything after it, so the test uses many receivers.
            victims_of_old.push(std::mem::replace(&mut victim, half_way.clone()).states_held());
        }
        let from: SocketAddr = address(rng.below(3) as u8, rng.below(3) as u16);
        match endpoint.handle_datagram(now, from, &bytes) {
            IncomingMessage::Reply(reply) => assert!(reply.len() < bytes.len()),
            IncomingMessage::Ignored(_) => {}
            IncomingMessage::Connection(_) => assert!(connection.handle_datagram(now, &bytes).is_err()),
            incoming => panic!("datagram {i} was believed: {incoming:?}"),
        }
        let_through += u32::from(unseal(honest.key, &bytes).is_ok());
        match victim.decode(&bytes, CommandSeq(50)) {
            Ok(DecodeOutcome::New(got)) => {
                decoded += 1;
                assert!(got.snapshot.frame.entities.len() <= ENTITIES_MAX);
                assert!(got.snapshot.effects.len() <= 255);
            }
            Ok(_) => {}
            Err(_) => refused += 1,
        }
        let reference = ClientReference { number: 5, sent: SnapshotSeq(60), command: CommandSeq(60) };
        match decode_commands(&bytes, &reference) {
            Ok(message) => assert!(message.packet.commands.len() <= 16),
            Err(_) => refused += 1,
        }
        refused += u32::from(decode_request(&bytes).is_err()) + u32::from(decode_disconnect(&bytes).is_err());
        connecting.handle_datagram(now, &bytes);
    }
    eprintln!("of {DATAGRAMS} {decoded} were snapshots to a client without seals, {refused} refusals");
    assert!(decoded > 10_000, "the storm must reach the deeper parts: {decoded}");
    assert_eq!(let_through, 0);
    victims_of_old.push(victim.states_held());
    let most = victims_of_old.iter().max().expect("there is one");
    eprintln!("at most {most} states held");
    assert!(*most <= ENTITIES_MAX * (WINDOW as usize + 1));
    assert_eq!(endpoint.players().collect::<Vec<_>>(), [honest.player]);
}

#[test]
fn a_session_continues_during_the_attack() {
    let mut rng = Rng::new(Seed(3), 2);
    let mut endpoint: Endpoint = endpoint(2);
    let honest = join(&mut endpoint, address(1, 1), 1, Micros::ZERO);
    let mut field = RunnerCrowd::new(4, 2);
    let mut sender: Sender<Runner> = Sender::new(honest.player, 2);
    let mut receiver: Receiver<Runner> = Receiver::default();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut compared = 0;
    for seq in 1..1_000 {
        field.step();
        let sent = field.snapshot(seq);
        let encoded = sender.encode(&sent, 1200, &mut SharedStates::default()).expect("the budget holds all bodies");
        let sealed = seal(honest.key, encoded.datagram);
        // The attacker sends changed and old datagrams first.
        for _ in 0..20 {
            let old = seen.get(rng.below(seen.len().max(1) as u64) as usize);
            let bad = match old {
                Some(old) if rng.chance(0.3) => old.clone(),
                _ => attack_datagram(&mut rng, std::slice::from_ref(&sealed)),
            };
            if bad == sealed {
                continue;
            }
            if let Ok(datagram) = unseal(honest.key, &bad) {
                let decoded = receiver.decode(datagram, CommandSeq(seq));
                assert!(!matches!(decoded, Ok(DecodeOutcome::New(_))), "an old one was taken for new");
            }
        }
        if let Ok(DecodeOutcome::New(got)) =
            receiver.decode(unseal(honest.key, &sealed).expect("it is sealed"), CommandSeq(seq))
        {
            assert_eq!(bits(&got.snapshot.frame), bits(&sent.frame));
            compared += 1;
        }
        seen.push(sealed);
        sender.handle_ack(&receiver.received());
    }
    assert_eq!(compared, 999);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn readers_accept_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut receiver: Receiver<Runner> = Receiver::default();
        let _ = receiver.decode(&bytes, CommandSeq(0));
        let _: Result<ClientMessage, _> = decode_commands(&bytes, &ClientReference::default());
        let sealed = seal(hitreg::wire::Key(1, 2), bytes.clone());
        prop_assert_eq!(unseal(hitreg::wire::Key(1, 2), &sealed), Ok(&bytes[..]));
    }
}
