//! Tests of the two ends without a network: their state, counters and limits.

use std::sync::Arc;

use glam::Vec3;

use super::*;
use crate::game::{Category, Effect};
use crate::history::Frame;
use crate::packet::{ClientPacket, Snapshot};
use crate::rink::Skater;
use crate::wire::{
    ClientRequest, ConnectOptions, DATAGRAM_BYTES_MAX, Endpoint, EndpointOptions, IncomingMessage, Key,
    MESSAGE_BYTES_MAX, MessageType, Notice, PerceivedAvatar, RequestKind, SharedStates, SnapshotBitCounts, Wrapping16,
    message_type,
};
use hitreg_log::record::OutOfSequence;
use hitreg_log::units::{CommandSeq, EntityId, Micros, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;

/// Creates both connected ends.
fn pair() -> (ServerConnection<Skater>, ClientConnection<Skater>) {
    let options = EndpointOptions {
        game: "rink".to_owned(),
        places: 1,
        welcome: Vec::new(),
        unready_per_host: 1,
        secret: Key(1, 2),
    };
    let mut endpoint = Endpoint::new(options);
    let mut client = ClientConnection::new(ConnectOptions::new("rink"), 7, Micros::ZERO);
    loop {
        assert_eq!(client.handle_timeout(Micros::ZERO), None);
        let datagram = client.poll_transmit().expect("it asks until it has a place");
        match endpoint.handle_datagram(Micros::ZERO, ([10, 0, 0, 1], 1).into(), &datagram) {
            IncomingMessage::Reply(reply) => assert_eq!(client.handle_datagram(Micros::ZERO, &reply), Ok(None)),
            IncomingMessage::Joined { player, key, reply, .. } => {
                let event = client.handle_datagram(Micros::ZERO, &reply);
                assert!(matches!(event, Ok(Some(ClientEvent::Connected(_)))), "{event:?}");
                return (ServerConnection::new(key, player, 1, Micros::ZERO), client);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn body(seq: u32, id: u16) -> Skater {
    Skater { origin: Vec3::new(seq as f32 * 1.37, f32::from(id) * 40.0, 36.0), alive: true, ..Skater::default() }
}

fn snapshot(seq: u32, bodies: u16) -> Snapshot<Skater> {
    let entities = (0..bodies).map(|id| (EntityId(id), body(seq, id))).collect();
    let frame = Frame { tick: Tick(seq), server_time: Micros(i64::from(seq) * 15_625), entities };
    Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame))
}

fn packet(number: u32) -> ClientPacket {
    let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
    ClientPacket { number, ack: SnapshotSeq(0), commands: vec![command] }
}

fn send(server: &mut ServerConnection<Skater>, snapshot: &Snapshot<Skater>) -> (QueuedSnapshot<Skater>, Vec<Vec<u8>>) {
    let sent =
        server.send_snapshot(&mut snapshot.clone(), &mut SharedStates::default()).expect("the own body has room");
    (sent, std::iter::from_fn(|| server.poll_transmit()).collect())
}

fn ack(client: &mut ClientConnection<Skater>, server: &mut ServerConnection<Skater>, number: u32) {
    client.send_packet(&mut packet(number), None).expect("one usercmd");
    let datagram = client.poll_transmit().expect("it was just made");
    assert!(server.handle_datagram(Micros::ZERO, &datagram).is_ok());
}

#[test]
fn losing_a_baseline_loses_only_that_snapshot() {
    let (mut server, mut client) = pair();
    let (_, first) = send(&mut server, &snapshot(1, 3));
    assert_eq!(first.len(), 1, "and it is lost");
    for seq in 2..=4 {
        // A state that was never acked is no baseline. The server defines the entities again, and the client needs no
        // earlier datagram.
        let sent = snapshot(seq, 3);
        let (_, datagrams) = send(&mut server, &sent);
        let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
        let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
        assert_eq!(received.snapshot, sent);
        assert_eq!(received.definitions.len(), 3);
    }
    ack(&mut client, &mut server, 1);
    let (with_base, datagrams) = send(&mut server, &snapshot(5, 3));
    assert!(client.handle_datagram(Micros::ZERO, &first[0]).expect("late, but good").is_some());
    let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
    let Ok(Some(ClientEvent::Snapshot { received, bytes, .. })) = event else { panic!("{event:?}") };
    assert_eq!((received.snapshot.frame.entities.len(), received.definitions.len()), (3, 0));
    assert_eq!(bytes, with_base.bytes);
}

#[test]
fn a_lost_fragment_loses_its_snapshot_and_sizes_count_datagrams() {
    let (mut server, mut client) = pair();
    let (sent, mut datagrams) = send(&mut server, &snapshot(1, 120));
    assert!(sent.datagrams > 1 && sent.left_out == 0);
    assert_eq!(sent.bytes, datagrams.iter().map(Vec::len).sum::<usize>());
    assert!(datagrams.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX));
    datagrams.pop();
    for datagram in &datagrams {
        assert_eq!(client.handle_datagram(Micros::ZERO, datagram), Ok(Some(ClientEvent::Part)));
    }
    let (sent, datagrams) = send(&mut server, &snapshot(2, 120));
    let events: Vec<_> = datagrams.iter().map(|datagram| client.handle_datagram(Micros::ZERO, datagram)).collect();
    let Some(Ok(Some(ClientEvent::Snapshot { received, bytes, datagrams }))) = events.last() else { panic!() };
    assert_eq!((received.snapshot.seq, *bytes, *datagrams), (SnapshotSeq(2), sent.bytes, sent.datagrams));
}

#[test]
fn entities_without_room_wait_and_the_others_arrive() {
    let (mut server, mut client) = pair();
    server.limit_messages(600);
    let mut seen = 0;
    for seq in 1..=60 {
        let (sent, datagrams) = send(&mut server, &snapshot(seq, 30));
        assert!(sent.bytes <= 600 && datagrams.len() == 1);
        let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
        let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
        let entities = &received.snapshot.frame.entities;
        assert_eq!(entities[0], (EntityId(0), body(seq, 0)), "the own body never waits");
        assert!(entities.len() >= seen, "nobody is forgotten");
        seen = entities.len();
        ack(&mut client, &mut server, seq);
    }
    assert_eq!(seen, 30);
}

#[test]
fn a_sent_snapshot_has_the_effects_and_warnings_that_its_datagrams_carry() {
    let (mut server, mut client) = pair();
    server.limit_messages(400);
    let effect = |kind| Effect { kind, entity: EntityId(0), at: Vec3::splat(f32::from(kind)), predictable: false };
    let mut carried = Vec::new();
    for (seq, effects, warnings) in [(1, 300, 8), (2, 1, 1), (3, 0, 0)] {
        let mut sent = snapshot(seq, 12);
        sent.effects = (0..effects).map(|n| effect(n as u8)).collect();
        sent.warnings = (0..warnings).map(|n| OutOfSequence { command: CommandSeq(n), difference: -1 }).collect();
        let queued = server.send_snapshot(&mut sent, &mut SharedStates::default()).expect("the own body has room");
        let datagram = server.poll_transmit().expect("it was just queued");
        let event = client.handle_datagram(Micros::ZERO, &datagram);
        let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
        assert_eq!(received.snapshot.effects, sent.effects);
        assert_eq!(received.snapshot.warnings.len(), sent.warnings.len());
        carried.push((sent.effects.len(), sent.warnings.len(), queued.left_out));
        ack(&mut client, &mut server, seq);
    }
    // Of the 300 effects, 242 wait and 44 are dropped.
    assert_eq!(carried, [(14, 8, 242 + 44), (28, 1, 215), (28, 0, 187)]);
}

#[test]
fn an_avatar_is_compared_once_and_only_with_a_sent_perception() {
    let (mut server, mut client) = pair();
    for number in [1, 2] {
        let perceived = Some(PerceivedAvatar::origin(body(1, 0).origin));
        client.send_packet(&mut packet(number), perceived).expect("one usercmd");
        let datagram = client.poll_transmit().expect("it was just made");
        assert!(server.handle_datagram(Micros::ZERO, &datagram).is_ok());
    }
    let acking = |seq, command| Snapshot { ack: CommandSeq(command), ..snapshot(seq, 1) };
    let mut saw = |snapshot| send(&mut server, &snapshot).0.saw_avatar_right;
    assert_eq!(saw(acking(1, 1)), Some(true));
    assert_eq!(saw(acking(2, 2)), Some(false), "it has moved on by then");
    assert_eq!([saw(acking(3, 1)), saw(acking(4, 3))], [None, None]);
}

/// A client whose line loses every third request and delivers every fifth snapshot.
#[test]
fn requests_run_once_and_are_always_answered() {
    let (mut server, mut client) = pair();
    let (_, first) = send(&mut server, &snapshot(1, 1));
    let chat = |text: &str| RequestKind::ChatOoc { channel: 3, text: text.to_owned() };
    assert_eq!(client.ask(chat("hello")), Ok(Wrapping16(0)));
    assert_eq!(client.ask(chat("again")), Ok(Wrapping16(1)));
    assert_eq!(client.handle_timeout(Micros::ZERO), None);
    while let Some(datagram) = client.poll_transmit() {
        assert_eq!(message_type(&datagram), Ok(MessageType::Waiting), "the session has not begun");
    }
    client.handle_datagram(Micros::ZERO, &first[0]).expect("the session begins");
    let (mut asked, mut done, mut heard, mut sent) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for seq in 2..200u32 {
        let now = Micros::from_ms(i64::from(seq) * 20);
        assert_eq!(client.handle_timeout(now), None);
        while let Some(datagram) = client.poll_transmit() {
            sent += 1;
            asked.push(now);
            match (sent % 3 != 1).then(|| server.handle_datagram(now, &datagram)) {
                Some(Ok(ServerEvent::Request(ClientRequest { number, what }))) => {
                    let RequestKind::ChatOoc { channel, text } = what.clone() else { panic!("{what:?}") };
                    done.push(what);
                    server.tell(Notice::ChatOoc { sender: 1, channel, text }).expect("room");
                    server.tell(Notice::RequestAck { request: number, answer: Vec::new() }).expect("room");
                }
                Some(Ok(ServerEvent::AskedAgain)) | None => {}
                other => panic!("{other:?}"),
            }
        }
        let (_, datagrams) = send(&mut server, &snapshot(seq, 1));
        if seq % 5 == 0 {
            let event = client.handle_datagram(now, &datagrams[0]);
            let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
            heard.extend(received.notices);
            client.send_packet(&mut packet(seq), None).expect("one usercmd");
            let acking = client.poll_transmit().expect("it was just made");
            assert!(server.handle_datagram(now, &acking).is_ok());
        }
    }
    assert_eq!(done, [chat("hello"), chat("again")]);
    let said = |text: &str| Notice::ChatOoc { sender: 1, channel: 3, text: text.to_owned() };
    let answer = |number| Notice::RequestAck { request: Wrapping16(number), answer: Vec::new() };
    assert_eq!(heard, [said("hello"), answer(0), said("again"), answer(1)]);
    // The first request was lost and repeated after a quarter of a second. The second was sent when the first was
    // answered.
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[1] - asked[0], Micros::from_ms(260));
    assert_eq!(client.handle_timeout(Micros::from_s(4)), None);
    assert_eq!(client.poll_transmit(), None, "nothing is asked again that is answered");
}

#[test]
fn requests_of_a_client_have_a_limit() {
    let (_, mut client) = pair();
    let what = || RequestKind::Game { bytes: Vec::new() };
    let taken = (0..100).map_while(|_| client.ask(what()).ok()).count();
    assert_eq!((taken, client.ask(what())), (REQUESTS_MAX, Err(TooManyRequests)));
}

/// Bodies that appear, move, rest and disappear, with effects, warnings and notices. Messages go in datagrams and in
/// fragments, also without room for all entities.
#[test]
fn bit_counts_add_up_to_the_datagrams() {
    let (mut server, mut client) = pair();
    server.categorize(|_, own, field| match (own, &*field.name) {
        (true, _) => Category::Controlled,
        (false, "origin.x") => Category::Simulated,
        (false, "origin.y") => Category::Constant,
        (false, _) => Category::Authoritative,
    });
    let (mut all, mut constant_later) = (SnapshotBitCounts::default(), 0);
    for seq in 1..200u32 {
        let mut sent = snapshot(seq, [3, 120, 40][(seq / 50) as usize % 3]);
        sent.choked = (seq % 7 == 0).into();
        let effect =
            |n: u32| Effect { kind: 1, entity: EntityId(n as u16), at: Vec3::splat(n as f32), predictable: false };
        sent.effects = (0..seq % 3).map(effect).collect();
        let warning = OutOfSequence { command: CommandSeq(seq), difference: 40 };
        sent.warnings = vec![warning; usize::from(seq % 11 == 0)];
        if seq % 13 == 0 {
            let text = "over here".to_owned();
            server.tell(Notice::ChatOoc { sender: 0, channel: 0, text }).expect("few wait");
        }
        server.limit_messages(if seq % 5 == 0 { 300 } else { MESSAGE_BYTES_MAX });
        let (sent, datagrams) = send(&mut server, &sent);
        assert_eq!(sent.bytes, datagrams.iter().map(Vec::len).sum::<usize>());
        assert_eq!(sent.bit_counts.bits(), 8 * sent.bytes as u64, "{seq}: {:?}", sent.bit_counts);
        all.add(&sent.bit_counts);
        if seq > 180 {
            constant_later += sent.bit_counts.of(Category::Constant);
        }
        for datagram in &datagrams {
            client.handle_datagram(Micros::ZERO, datagram).expect("a good datagram");
        }
        ack(&mut client, &mut server, seq);
    }
    let SnapshotBitCounts { values, naming, events, headers } = all;
    assert!([naming, events, headers].iter().all(|bits| *bits > 1_000), "{all:?}");
    for category in Category::ALL {
        use Category::{Authoritative, Constant, Controlled, Simulated};
        let is_used = [Authoritative, Constant, Controlled, Simulated].contains(&category);
        assert_eq!(values[category as usize] > 0, is_used, "{category:?}");
    }
    assert_eq!(constant_later, 0, "it was acked long before");
}
