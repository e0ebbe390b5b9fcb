//! Getting in, and what does not get in.

use std::net::SocketAddr;

use hitreg::rng::Rng;
use hitreg::units::{Micros, PlayerId, Seed};
use hitreg::wire::{
    Heard, Ignored, Key, Knock, KnockOptions, Leaving, Lobby, LobbyOptions, MessageType, Outcome, Refusal, SEAL_BYTES,
    Session, VERSION, WELCOME_BYTES_MAX, encode_disconnect, message_type, seal, unseal,
};

pub(crate) fn lobby(seats: u16) -> Lobby {
    Lobby::new(LobbyOptions {
        game: "discs".to_owned(),
        seats,
        timeout: Micros::from_s(5),
        welcome: vec![7; WELCOME_BYTES_MAX],
        secret: Key(1, 2),
    })
}

pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

fn ms(ms: i64) -> Micros {
    Micros::from_ms(ms)
}

/// Knocks until there is an outcome, over a line with losses; also returns the last datagram that was sent.
fn knock(lobby: &mut Lobby, from: SocketAddr, game: &str, salt: u64, start: Micros, loss: f64) -> (Outcome, Vec<u8>) {
    let mut knock = Knock::new(KnockOptions::new(game), salt, start);
    let mut rng = Rng::new(Seed(salt), 0);
    let mut last = Vec::new();
    let mut now = start;
    loop {
        now += ms(1);
        if let Some(datagram) = knock.poll_datagram(now) {
            last.clone_from(&datagram);
            if !rng.chance(loss) {
                let reply = match lobby.handle_datagram(now, from, &datagram) {
                    Heard::Reply(reply) | Heard::Joined { reply, .. } => Some(reply),
                    _ => None,
                };
                if let Some(reply) = reply.filter(|_| !rng.chance(loss)) {
                    assert!(reply.len() < datagram.len(), "{} bytes answer {}", reply.len(), datagram.len());
                    knock.handle_datagram(now, &reply);
                }
            }
        }
        if let Some(outcome) = knock.outcome() {
            return (outcome.clone(), last);
        }
    }
}

pub(crate) fn join(lobby: &mut Lobby, from: SocketAddr, salt: u64, start: Micros) -> Session {
    match knock(lobby, from, "discs", salt, start, 0.0).0 {
        Outcome::Accepted(session) => session,
        other => panic!("{other:?}"),
    }
}

#[test]
fn clients_get_places_and_keys_of_their_own() {
    let mut lobby = lobby(3);
    let first = join(&mut lobby, address(1, 1), 11, ms(0));
    let second = join(&mut lobby, address(1, 2), 12, ms(0));
    assert_eq!((first.player, first.connection), (PlayerId(0), 1));
    assert_eq!((second.player, second.connection), (PlayerId(1), 2));
    assert_eq!(first.welcome, vec![7; WELCOME_BYTES_MAX]);
    assert_ne!(first.key, second.key);
    assert_eq!(lobby.players().collect::<Vec<_>>(), [PlayerId(0), PlayerId(1)]);
    let (to, datagram) = lobby.address(PlayerId(1), vec![1, 2, 3]).expect("the place is taken");
    assert_eq!(to, address(1, 2));
    assert_eq!(unseal(second.key, &datagram), Ok(&[1, 2, 3][..]));
    assert!(unseal(first.key, &datagram).is_err());
}

#[test]
fn a_bad_line_only_takes_longer() {
    let mut lobby = lobby(200);
    for salt in 0..100 {
        let (outcome, _) = knock(&mut lobby, address(2, salt as u16), "discs", salt, ms(0), 0.4);
        assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    }
    assert_eq!(lobby.players().count(), 100, "no attempt takes two places");
    let (outcome, _) = knock(&mut lobby, address(3, 1), "discs", 5, ms(0), 1.0);
    assert_eq!(outcome, Outcome::Silent);
}

#[test]
fn refusals_say_why() {
    let mut lobby = lobby(1);
    let (outcome, _) = knock(&mut lobby, address(1, 1), "chess", 1, ms(0), 0.0);
    assert_eq!(outcome, Outcome::Refused(Refusal::Game { server: "discs".to_owned() }));
    join(&mut lobby, address(1, 2), 2, ms(0));
    let (outcome, _) = knock(&mut lobby, address(1, 3), "discs", 3, ms(0), 0.0);
    assert_eq!(outcome, Outcome::Refused(Refusal::Full { seats: 1 }));

    let mut request = Knock::new(KnockOptions::new("discs"), 4, ms(0)).poll_datagram(ms(0)).expect("it is due");
    request[5] = 99;
    let Heard::Reply(reply) = lobby.handle_datagram(ms(0), address(1, 4), &request) else { panic!("no answer") };
    let mut knock = Knock::new(KnockOptions::new("discs"), 4, ms(0));
    knock.handle_datagram(ms(0), &reply);
    assert_eq!(knock.outcome(), Some(&Outcome::Refused(Refusal::Version { server: VERSION })));
    let Some(Outcome::Refused(why)) = knock.outcome() else { panic!("it was refused") };
    assert_eq!(why.to_string(), "the server speaks version 2 of the protocol, this client version 2");
}

#[test]
fn a_made_up_address_gets_no_session() {
    let mut lobby = lobby(4);
    let mut knock = Knock::new(KnockOptions::new("discs"), 1, ms(0));
    let request = knock.poll_datagram(ms(0)).expect("it is due");
    let Heard::Reply(challenge) = lobby.handle_datagram(ms(0), address(1, 1), &request) else { panic!("no answer") };
    knock.handle_datagram(ms(1), &challenge);
    let confirm = knock.poll_datagram(ms(1)).expect("it is due");
    assert_eq!(message_type(&confirm), Ok(MessageType::ConnectConfirm));
    // The challenge of one address opens no place for another, nor another port, nor with another salt, nor later.
    let mut other_salt = confirm.clone();
    other_salt[7] ^= 1;
    for (now, from, datagram) in [
        (ms(2), address(2, 1), &confirm),
        (ms(2), address(1, 2), &confirm),
        (ms(2), address(1, 1), &other_salt),
        (ms(17_000), address(1, 1), &confirm),
    ] {
        let heard = lobby.handle_datagram(now, from, datagram);
        assert!(matches!(heard, Heard::Reply(_)), "{heard:?}");
        assert_eq!(lobby.players().count(), 0);
    }
    assert!(matches!(lobby.handle_datagram(ms(7_000), address(1, 1), &confirm), Heard::Joined { .. }));
}

#[test]
fn repeats_of_a_confirm_change_nothing() {
    let mut lobby = lobby(4);
    let (outcome, confirm) = knock(&mut lobby, address(1, 1), "discs", 1, ms(0), 0.0);
    let Outcome::Accepted(session) = outcome else { panic!("{outcome:?}") };
    let farewell = seal(session.key, encode_disconnect(Leaving::Done));
    // While the session lasts the client may not have heard; once it is over it is an enemy who repeats it.
    assert!(matches!(lobby.handle_datagram(ms(5), address(1, 1), &confirm), Heard::Reply(_)));
    let left = lobby.handle_datagram(ms(6), address(1, 1), &farewell);
    assert_eq!(left, Heard::Left { player: PlayerId(0), why: Leaving::Done });
    assert_eq!(lobby.handle_datagram(ms(7), address(1, 1), &confirm), Heard::Ignored(Ignored::Over));
    // The client itself may come back, and its farewell of old does not throw it out.
    let again = join(&mut lobby, address(1, 1), 2, ms(8));
    assert_eq!(again.player, PlayerId(0));
    assert!(matches!(lobby.handle_datagram(ms(20), address(1, 1), &farewell), Heard::Ignored(Ignored::NotOurs(_))));
    assert_eq!(lobby.handle_datagram(ms(21), address(1, 1), &confirm), Heard::Ignored(Ignored::Over));
    // Starting anew without a farewell takes the same place, with a new key.
    let anew = join(&mut lobby, address(1, 1), 3, ms(30));
    assert_eq!(anew.player, PlayerId(0));
    assert_ne!(anew.key, again.key);
}

#[test]
fn only_the_seal_makes_a_datagram_count() {
    let mut lobby = lobby(4);
    let session = join(&mut lobby, address(1, 1), 1, ms(0));
    let live = [b'H', b'R', b'G', b'1', MessageType::LiveFromClient as u8, 1, 2, 3];
    let sealed = seal(session.key, live.to_vec());
    let heard = lobby.handle_datagram(ms(1), address(1, 1), &sealed);
    assert_eq!(heard, Heard::Live { player: PlayerId(0), datagram: &live });
    assert_eq!(lobby.handle_datagram(ms(1), address(1, 2), &sealed), Heard::Ignored(Ignored::Stranger));
    for bit in 40..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(lobby.handle_datagram(ms(1), address(1, 1), &changed), Heard::Ignored(_)));
    }
    assert_eq!(sealed.len(), live.len() + SEAL_BYTES);
}

#[test]
fn the_silent_leave_and_the_dismissed_are_told() {
    let mut lobby = lobby(4);
    let first = join(&mut lobby, address(1, 1), 1, ms(0));
    join(&mut lobby, address(1, 2), 2, ms(4_000));
    assert_eq!(lobby.expire(ms(4_500)), []);
    assert_eq!(lobby.expire(ms(5_500)), [PlayerId(0)]);
    assert!(lobby.address(first.player, vec![]).is_none());
    let (to, farewell) = lobby.dismiss(ms(6_000), PlayerId(1), Leaving::Misbehaved).expect("the place is taken");
    assert_eq!(to, address(1, 2));
    assert_eq!(message_type(&farewell), Ok(MessageType::Disconnect));
    assert_eq!(lobby.players().count(), 0);
}
