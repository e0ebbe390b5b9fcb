//! The handshake, and datagrams that it rejects.

use std::net::SocketAddr;

use hitreg::rng::Rng;
use hitreg::units::{Micros, PlayerId, Seed};
use hitreg::wire::{
    AcceptedConnection, ClientConnection, ConnectMachine, ConnectOptions, ConnectOutcome, DecodeError, Endpoint,
    EndpointOptions, IgnoredReason, IncomingMessage, Key, LeaveReason, MessageType, REQUEST_DATA_BYTES_MAX, ReadyCount,
    Refusal, ServerConnection, ServerEvent, UnusableDatagram, VERSION, WELCOME_BYTES_MAX, encode_disconnect,
    message_type, seal,
};

use super::runners::Runner;

pub(crate) fn endpoint(slots: u16) -> Endpoint {
    Endpoint::new(EndpointOptions {
        game: "discs".to_owned(),
        slots,
        welcome: vec![7; WELCOME_BYTES_MAX],
        unready_per_host: slots,
        secret: Key(1, 2),
    })
}

/// A client written from docs/wire.md can join only if the page has the version that servers accept.
#[test]
fn the_page_has_the_version_and_the_sizes_of_the_handshake() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wire.md")).expect("the page");
    assert!(page.contains(&format!("`CONNECT_REQUEST`: `u16` version ({VERSION})")), "docs/wire.md: another version");
    assert!(page.contains(&format!("`u16` length (at most {})", thousands(REQUEST_DATA_BYTES_MAX))));
    assert!(page.contains(&format!("`u16` length (at most {})", thousands(WELCOME_BYTES_MAX))));
}

/// A number with a comma between thousands, as pages write it.
fn thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

fn ms(ms: i64) -> Micros {
    Micros::from_ms(ms)
}

/// Runs a handshake over a lossy line until it ends. Also returns the last datagram of the client.
fn connect(
    endpoint: &mut Endpoint,
    from: SocketAddr,
    game: &str,
    salt: u64,
    start: Micros,
    loss: f64,
) -> (ConnectOutcome, Vec<u8>) {
    let mut connecting = ConnectMachine::new(ConnectOptions::new(game), salt, start);
    let mut rng = Rng::new(Seed(salt), 0);
    let mut last = Vec::new();
    let mut now = start;
    loop {
        now += ms(1);
        if let Some(datagram) = connecting.poll_datagram(now) {
            last.clone_from(&datagram);
            if !rng.chance(loss) {
                let reply = match endpoint.handle_datagram(now, from, &datagram) {
                    IncomingMessage::Reply(reply) | IncomingMessage::Joined { reply, .. } => Some(reply),
                    _ => None,
                };
                if let Some(reply) = reply.filter(|_| !rng.chance(loss)) {
                    assert!(reply.len() < datagram.len(), "{} bytes answer {}", reply.len(), datagram.len());
                    connecting.handle_datagram(now, &reply);
                }
            }
        }
        if let Some(outcome) = connecting.outcome() {
            return (outcome.clone(), last);
        }
    }
}

pub(crate) fn join(endpoint: &mut Endpoint, from: SocketAddr, salt: u64, start: Micros) -> AcceptedConnection {
    match connect(endpoint, from, "discs", salt, start, 0.0).0 {
        ConnectOutcome::Accepted(accepted) => accepted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_client_gets_its_own_slot_and_key() {
    let mut endpoint = endpoint(3);
    let first = join(&mut endpoint, address(1, 1), 11, ms(0));
    let second = join(&mut endpoint, address(1, 2), 12, ms(0));
    assert_eq!((first.player, first.connection), (PlayerId(0), 1));
    assert_eq!((second.player, second.connection), (PlayerId(1), 2));
    assert_eq!(first.welcome, vec![7; WELCOME_BYTES_MAX]);
    assert_ne!(first.key, second.key);
    assert_eq!(endpoint.players().collect::<Vec<_>>(), [PlayerId(0), PlayerId(1)]);
    assert_eq!(endpoint.address(PlayerId(1)), Some(address(1, 2)));
}

#[test]
fn requests_and_granted_settings_are_part_of_the_handshake() {
    let mut endpoint = endpoint(2);
    let request_data: Vec<u8> = (0..=255).cycle().take(REQUEST_DATA_BYTES_MAX).collect();
    let options = ConnectOptions { request_data: request_data.clone(), ..ConnectOptions::new("discs") };
    let mut connecting = ConnectMachine::new(options, 7, ms(0));
    let request = connecting.poll_datagram(ms(0)).expect("it is due");
    let IncomingMessage::Reply(challenge) = endpoint.handle_datagram(ms(0), address(1, 1), &request) else {
        panic!("none")
    };
    connecting.handle_datagram(ms(0), &challenge);
    let confirm = connecting.poll_datagram(ms(0)).expect("it is due");
    let IncomingMessage::Joined { player, request_data: heard, .. } =
        endpoint.handle_datagram(ms(1), address(1, 1), &confirm)
    else {
        panic!("no place")
    };
    assert_eq!(heard, request_data);
    assert!(endpoint.welcome(PlayerId(1), vec![1]).is_none(), "no player is connected");
    let reply = endpoint.welcome(player, vec![3; 9]).expect("its place");
    // The answer is lost. The repeated confirm gets the same answer.
    assert_eq!(endpoint.handle_datagram(ms(300), address(1, 1), &confirm), IncomingMessage::Reply(reply.clone()));
    connecting.handle_datagram(ms(301), &reply);
    let Some(ConnectOutcome::Accepted(accepted)) = connecting.outcome() else { panic!("no place") };
    assert_eq!((accepted.player, &accepted.welcome), (player, &vec![3; 9]));
    assert_eq!(
        join(&mut endpoint, address(1, 2), 8, ms(400)).welcome,
        vec![7; WELCOME_BYTES_MAX],
        "others hear the usual"
    );
}

#[test]
fn a_lossy_line_delays_the_handshake() {
    let mut endpoint = endpoint(200);
    for salt in 0..100 {
        let (outcome, _) = connect(&mut endpoint, address(2, salt as u16), "discs", salt, ms(0), 0.4);
        assert!(matches!(outcome, ConnectOutcome::Accepted(_)), "{outcome:?}");
    }
    assert_eq!(endpoint.players().count(), 100, "no attempt takes two places");
    let (outcome, _) = connect(&mut endpoint, address(3, 1), "discs", 5, ms(0), 1.0);
    assert_eq!(outcome, ConnectOutcome::Silent);
}

#[test]
fn refusals_contain_the_reason() {
    let mut endpoint = endpoint(1);
    let (outcome, _) = connect(&mut endpoint, address(1, 1), "chess", 1, ms(0), 0.0);
    assert_eq!(outcome, ConnectOutcome::Refused(Refusal::Game { server: "discs".to_owned() }));
    let player = join(&mut endpoint, address(1, 2), 2, ms(0)).player;
    endpoint.note_waiting(ms(0), player, true);
    let (outcome, _) = connect(&mut endpoint, address(1, 3), "discs", 3, ms(0), 0.0);
    assert_eq!(outcome, ConnectOutcome::Refused(Refusal::Full { slots: 1 }));

    let mut request =
        ConnectMachine::new(ConnectOptions::new("discs"), 4, ms(0)).poll_datagram(ms(0)).expect("it is due");
    request[5] = 99;
    let IncomingMessage::Reply(reply) = endpoint.handle_datagram(ms(0), address(1, 4), &request) else {
        panic!("no answer")
    };
    let mut connecting = ConnectMachine::new(ConnectOptions::new("discs"), 4, ms(0));
    connecting.handle_datagram(ms(0), &reply);
    assert_eq!(connecting.outcome(), Some(&ConnectOutcome::Refused(Refusal::Version { server: VERSION })));
    let Some(ConnectOutcome::Refused(why)) = connecting.outcome() else { panic!("it was refused") };
    assert_eq!(why.to_string(), "the server speaks version 6 of the protocol, this client version 6");
}

#[test]
fn a_closed_endpoint_keeps_its_clients_and_refuses_others() {
    // A client of a full session does not wait for a place either.
    for slots in [2, 1] {
        let mut endpoint = endpoint(slots);
        let player = join(&mut endpoint, address(1, 1), 1, ms(0)).player;
        endpoint.note_waiting(ms(0), player, true);
        endpoint.close();
        let (outcome, _) = connect(&mut endpoint, address(1, 2), "discs", 2, ms(10), 0.0);
        assert_eq!(outcome, ConnectOutcome::Refused(Refusal::Begun));
        assert_eq!(endpoint.address(player), Some(address(1, 1)));
    }
}

#[test]
fn a_forged_address_gets_no_session() {
    let mut endpoint = endpoint(4);
    let mut connecting = ConnectMachine::new(ConnectOptions::new("discs"), 1, ms(0));
    let request = connecting.poll_datagram(ms(0)).expect("it is due");
    let IncomingMessage::Reply(challenge) = endpoint.handle_datagram(ms(0), address(1, 1), &request) else {
        panic!("no answer")
    };
    connecting.handle_datagram(ms(1), &challenge);
    let confirm = connecting.poll_datagram(ms(1)).expect("it is due");
    assert_eq!(message_type(&confirm), Ok(MessageType::ConnectConfirm));
    // The challenge is not valid for another address, port or salt, or at a later time.
    let mut other_salt = confirm.clone();
    other_salt[7] ^= 1;
    for (now, from, datagram) in [
        (ms(2), address(2, 1), &confirm),
        (ms(2), address(1, 2), &confirm),
        (ms(2), address(1, 1), &other_salt),
        (ms(17_000), address(1, 1), &confirm),
    ] {
        let incoming = endpoint.handle_datagram(now, from, datagram);
        assert!(matches!(incoming, IncomingMessage::Reply(_)), "{incoming:?}");
        assert_eq!(endpoint.players().count(), 0);
    }
    assert!(matches!(endpoint.handle_datagram(ms(7_000), address(1, 1), &confirm), IncomingMessage::Joined { .. }));
}

#[test]
fn a_repeated_confirm_changes_nothing() {
    let mut endpoint = endpoint(4);
    let (outcome, confirm) = connect(&mut endpoint, address(1, 1), "discs", 1, ms(0), 0.0);
    let ConnectOutcome::Accepted(session) = outcome else { panic!("{outcome:?}") };
    let farewell = seal(session.key, encode_disconnect(LeaveReason::Done));
    // During the session the client may have missed the answer. After the session, only an attacker repeats a confirm.
    assert!(matches!(endpoint.handle_datagram(ms(5), address(1, 1), &confirm), IncomingMessage::Reply(_)));
    let mut connection = ServerConnection::<Runner>::new(session.key, PlayerId(0), 4, ms(0));
    assert_eq!(endpoint.handle_datagram(ms(6), address(1, 1), &farewell), IncomingMessage::Connection(PlayerId(0)));
    assert_eq!(connection.handle_datagram(ms(6), &farewell), Ok(ServerEvent::Left(LeaveReason::Done)));
    endpoint.remove(ms(6), PlayerId(0));
    assert_eq!(endpoint.handle_datagram(ms(7), address(1, 1), &confirm), IncomingMessage::Ignored(IgnoredReason::Over));
    // The client may reconnect, and its old farewell does not end the new session.
    let again = join(&mut endpoint, address(1, 1), 2, ms(8));
    assert_eq!(again.player, PlayerId(0));
    let mut connection = ServerConnection::<Runner>::new(again.key, PlayerId(0), 4, ms(8));
    assert_eq!(connection.handle_datagram(ms(20), &farewell), Err(UnusableDatagram::NotOurs(DecodeError::WrongSeal)));
    assert_eq!(
        endpoint.handle_datagram(ms(21), address(1, 1), &confirm),
        IncomingMessage::Ignored(IgnoredReason::Over)
    );
    // A new connection without a farewell takes the same slot with a new key.
    let anew = join(&mut endpoint, address(1, 1), 3, ms(30));
    assert_eq!(anew.player, PlayerId(0));
    assert_ne!(anew.key, again.key);
}

#[test]
fn datagrams_without_a_valid_seal_are_ignored() {
    let mut endpoint = endpoint(4);
    let place = join(&mut endpoint, address(1, 1), 1, ms(0));
    let mut connection = ServerConnection::<Runner>::new(place.key, place.player, 4, ms(0));
    let sealed = seal(place.key, hitreg::wire::encode_waiting(ReadyCount { ready: 1, slots: 1 }));
    assert_eq!(endpoint.handle_datagram(ms(1), address(1, 1), &sealed), IncomingMessage::Connection(PlayerId(0)));
    let waiting = ServerEvent::Waiting(ReadyCount { ready: 1, slots: 1 });
    assert_eq!(connection.handle_datagram(ms(1), &sealed), Ok(waiting));
    assert_eq!(
        endpoint.handle_datagram(ms(1), address(1, 2), &sealed),
        IncomingMessage::Ignored(IgnoredReason::Stranger)
    );
    for bit in 40..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(connection.handle_datagram(ms(2), &changed), Err(UnusableDatagram::NotOurs(DecodeError::WrongSeal)));
    }
    assert_eq!(connection.silent_for(ms(5)), ms(4), "what did not count was not heard");
}

#[test]
fn departed_clients_are_unknown_and_dismissed_clients_are_notified() {
    let mut endpoint = endpoint(4);
    let place = join(&mut endpoint, address(1, 1), 1, ms(0));
    let mut connection = ServerConnection::<Runner>::new(place.key, place.player, 4, ms(0));
    connection.send_disconnect(LeaveReason::Misbehaved);
    let farewell = connection.poll_transmit().expect("it was just said");
    assert_eq!(message_type(&farewell), Ok(MessageType::Disconnect));
    endpoint.remove(ms(6_000), place.player);
    assert_eq!((endpoint.players().count(), endpoint.address(place.player)), (0, None));
    assert_eq!(
        endpoint.handle_datagram(ms(6_001), address(1, 1), &farewell),
        IncomingMessage::Ignored(IgnoredReason::Stranger)
    );
}

#[test]
fn a_client_reports_waiting_and_a_missing_server() {
    let mut endpoint = endpoint(1);
    let mut client = ClientConnection::<Runner>::new(ConnectOptions::new("discs"), 1, ms(0));
    let mut server = None;
    let mut output = Vec::new();
    for now in (0..2_000).map(ms) {
        assert_eq!(client.handle_timeout(now), None);
        while let Some(datagram) = client.poll_transmit() {
            match endpoint.handle_datagram(now, address(1, 1), &datagram) {
                IncomingMessage::Reply(reply) => drop(client.handle_datagram(now, &reply)),
                IncomingMessage::Joined { player, key, reply, .. } => {
                    server = Some(ServerConnection::<Runner>::new(key, player, 1, now));
                    client.handle_datagram(now, &reply).expect("the server's answer");
                    client.set_ready(now, true);
                }
                IncomingMessage::Connection(_) => {
                    let server = server.as_mut().expect("it has joined");
                    output.push((now, server.handle_datagram(now, &datagram).expect("its own datagram")));
                }
                IncomingMessage::Ignored(why) => panic!("{why}"),
            }
        }
    }
    assert!((3..=5).contains(&output.len()), "{output:?}");
    let ready = ServerEvent::Waiting(ReadyCount { ready: 1, slots: 1 });
    assert!(output.iter().all(|(_, event)| *event == ready));
    // A pause of the client is no silence of the server, and a server that ended in a long pause is missed soon after it.
    client.allow_pause(ms(20_000), ms(22_000));
    client.allow_pause(ms(60_000), ms(22_000));
    assert_eq!(client.handle_timeout(ms(26_900)), None);
    assert_eq!(client.handle_timeout(ms(27_100)), Some(hitreg::wire::DisconnectReason::Silent));
}

#[test]
fn a_client_that_waits_too_long_for_a_slot_gets_an_error() {
    let mut endpoint = endpoint(1);
    let mut first = ClientConnection::<Runner>::new(ConnectOptions::new("discs"), 1, ms(0));
    let mut second = ClientConnection::<Runner>::new(ConnectOptions::new("discs"), 2, ms(0));
    let mut lost = None;
    for now in (0..30_000).step_by(10).map(ms) {
        for (number, client) in [(1, &mut first), (2, &mut second)] {
            let timed_out = client.handle_timeout(now);
            if number == 2 && lost.is_none() {
                lost = timed_out;
            }
            while let Some(datagram) = client.poll_transmit() {
                match endpoint.handle_datagram(now, address(1, number), &datagram) {
                    IncomingMessage::Reply(reply) => drop(client.handle_datagram(now, &reply)),
                    IncomingMessage::Joined { player, reply, .. } => {
                        endpoint.note_waiting(now, player, true);
                        client.handle_datagram(now, &reply).expect("the server's answer");
                    }
                    IncomingMessage::Connection(_) | IncomingMessage::Ignored(_) => {}
                }
            }
        }
    }
    assert!(
        matches!(lost, Some(hitreg::wire::DisconnectReason::Refused(hitreg::wire::Refusal::Full { .. }))),
        "{lost:?}"
    );
}

/// The outcome and time of a client that retries for up to two minutes, while other clients do `meanwhile`.
fn connect_for_two_minutes(
    endpoint: &mut Endpoint,
    from: SocketAddr,
    start: Micros,
    mut meanwhile: impl FnMut(&mut Endpoint, Micros),
) -> (ConnectOutcome, Micros) {
    let mut connecting = ConnectMachine::new(ConnectOptions::new("discs"), 4711, start);
    for now in (start.0..start.0 + 120_000_000).step_by(1000).map(Micros) {
        meanwhile(endpoint, now);
        if let Some(datagram) = connecting.poll_datagram(now)
            && let IncomingMessage::Reply(reply) | IncomingMessage::Joined { reply, .. } =
                endpoint.handle_datagram(now, from, &datagram)
        {
            connecting.handle_datagram(now, &reply);
        }
        if let Some(outcome) = connecting.outcome() {
            return (outcome.clone(), now);
        }
    }
    panic!("it asks on and on")
}

#[test]
fn silent_clients_do_not_block_slots() {
    let mut endpoint = endpoint(4);
    for host in 1..=4 {
        join(&mut endpoint, address(host, 1), host.into(), ms(0));
    }
    // The silent clients reconnect as soon as they lose a slot.
    let mut salt = 1_000;
    let again = |endpoint: &mut Endpoint, now: Micros| {
        for host in 1..=4 {
            if !endpoint.players().any(|player| endpoint.address(player) == Some(address(host, 1))) {
                salt += 1;
                let mut connecting = ConnectMachine::new(ConnectOptions::new("discs"), salt, now);
                for _ in 0..2 {
                    if let Some(datagram) = connecting.poll_datagram(now)
                        && let IncomingMessage::Reply(reply) | IncomingMessage::Joined { reply, .. } =
                            endpoint.handle_datagram(now, address(host, 1), &datagram)
                    {
                        connecting.handle_datagram(now, &reply);
                    }
                }
            }
        }
    };
    let mut again = again;
    let mut now = ms(100);
    for honest in 11..=14 {
        let (outcome, at) = connect_for_two_minutes(&mut endpoint, address(honest, 1), now, &mut again);
        let ConnectOutcome::Accepted(accepted) = outcome else { panic!("{outcome:?}") };
        assert!(at - now < Micros::from_s(3), "{}", at - now);
        endpoint.note_waiting(now, accepted.player, true);
        now = at;
    }
    let honest: Vec<_> = endpoint.players().filter_map(|player| endpoint.address(player)).collect();
    assert!((11..=14).all(|host| honest.contains(&address(host, 1))), "{honest:?}");
    // Ready clients stay connected, whatever others request.
    let (outcome, at) = connect_for_two_minutes(&mut endpoint, address(15, 1), now, &mut again);
    assert_eq!((outcome, at - now), (ConnectOutcome::Refused(Refusal::Full { slots: 4 }), Micros::from_s(10)));
}

/// A client that loads a map for long says so, and keeps its slot.
#[test]
fn a_client_that_waits_keeps_its_slot_until_it_falls_silent() {
    let mut endpoint = endpoint(1);
    let player = join(&mut endpoint, address(1, 1), 1, ms(0)).player;
    let waits = |endpoint: &mut Endpoint, now: Micros| {
        if now <= ms(5_000) && now.0 % 500_000 == 0 {
            endpoint.note_waiting(now, player, false);
        }
    };
    let (outcome, at) = connect_for_two_minutes(&mut endpoint, address(2, 1), ms(0), waits);
    assert!(matches!(outcome, ConnectOutcome::Accepted(_)), "{outcome:?}");
    assert!((ms(7_000)..ms(7_500)).contains(&at), "it was silent from 5 s on: {at}");
}

#[test]
fn one_host_cannot_take_all_slots() {
    let mut endpoint = Endpoint::new(EndpointOptions {
        game: "discs".to_owned(),
        slots: 4,
        welcome: Vec::new(),
        unready_per_host: 2,
        secret: Key(1, 2),
    });
    join(&mut endpoint, address(1, 1), 1, ms(0));
    join(&mut endpoint, address(1, 2), 2, ms(0));
    let (outcome, _) = connect(&mut endpoint, address(1, 3), "discs", 3, ms(0), 0.0);
    // The new client takes the slot of a silent client of its host.
    assert!(matches!(outcome, ConnectOutcome::Accepted(_)), "{outcome:?}");
    assert_eq!(endpoint.players().count(), 2);
    join(&mut endpoint, address(2, 1), 4, ms(0));
    join(&mut endpoint, address(3, 1), 5, ms(0));
    assert_eq!(endpoint.players().count(), 4);
}

#[test]
fn a_client_waits_for_a_free_slot() {
    let mut endpoint = endpoint(1);
    let player = join(&mut endpoint, address(1, 1), 1, ms(0)).player;
    endpoint.note_waiting(ms(0), player, true);
    let leaves = |endpoint: &mut Endpoint, now: Micros| {
        if now == ms(3_000) {
            endpoint.remove(now, player);
        }
    };
    let (outcome, at) = connect_for_two_minutes(&mut endpoint, address(1, 2), ms(0), leaves);
    assert!(matches!(outcome, ConnectOutcome::Accepted(_)) && at < ms(3_500), "{outcome:?} at {at}");
}
