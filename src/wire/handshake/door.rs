//! The server's side: who has a place, and whose datagrams count. Addresses are values here, those of `core::net`, which
//! has no sockets.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use super::super::header::{seal, unseal};
use super::super::request::{Leaving, decode_disconnect, encode_disconnect};
use super::super::siphash::siphash;
use super::super::{DecodeError, Key, MessageType, VERSION, message_type};
use super::message::{Answer, Hello, Refusal};
use crate::units::{Micros, PlayerId};

/// A challenge holds for one to two of these.
const BUCKET: Micros = Micros::from_s(8);
/// Attempts that are over are remembered for as long as their challenge holds, so that a recording of one opens nothing;
/// beyond this many the oldest are forgotten.
const ENDED_MAX: usize = 1024;

/// How a server lets clients in.
#[derive(Clone, Debug)]
pub struct LobbyOptions {
    /// The game that is played; clients of another are refused.
    pub game: String,
    /// How many places there are.
    pub seats: u16,
    /// A client that is not heard for this long has left.
    pub timeout: Micros,
    /// What each client is told when it is let in, of at most `WELCOME_BYTES_MAX`: settings, seed, ...
    pub welcome: Vec<u8>,
    /// Known to nobody else, and made anew at each start.
    pub secret: Key,
}

/// The connections of a server. A state machine: times and addresses come in as arguments.
#[derive(Clone, Debug)]
pub struct Lobby {
    options: LobbyOptions,
    seats: Vec<Option<Seat>>,
    by_address: BTreeMap<SocketAddr, PlayerId>,
    ended: VecDeque<Ended>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Seat {
    address: SocketAddr,
    salt: u64,
    key: Key,
    heard_at: Micros,
}

#[derive(Clone, Debug)]
struct Ended {
    address: SocketAddr,
    salt: u64,
    until: Micros,
}

/// What a datagram means to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// Part of a handshake; the answer goes back to where it came from.
    Reply(Vec<u8>),
    /// A client got a place; the answer goes back to where it came from.
    Joined {
        /// The place.
        player: PlayerId,
        /// True when the same address had the place already, and has started anew.
        again: bool,
        /// The answer.
        reply: Vec<u8>,
    },
    /// A client's datagram, whose seal is good.
    Live {
        /// Whose.
        player: PlayerId,
        /// Without the seal.
        datagram: &'a [u8],
    },
    /// A client said farewell.
    Left {
        /// Who.
        player: PlayerId,
        /// Why.
        why: Leaving,
    },
    /// Nothing to act on.
    Ignored(Ignored),
}

/// Why a datagram is not acted on. Nobody is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// It is not what a client would send.
    #[error(transparent)]
    NotOurs(#[from] DecodeError),
    /// Its address has no place.
    #[error("its sender has no place here")]
    Stranger,
    /// It opens a session that is over.
    #[error("it repeats an attempt that is over")]
    Over,
}

impl Lobby {
    /// A server with all places free.
    pub fn new(options: LobbyOptions) -> Lobby {
        let seats = vec![None; usize::from(options.seats)];
        Lobby { options, seats, by_address: BTreeMap::new(), ended: VecDeque::new(), closed: false }
    }

    /// Lets nobody in from now on. Those who are in stay, and are told so again if they have not heard it.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes a datagram that came from `from` at `now`.
    pub fn handle_datagram<'a>(&mut self, now: Micros, from: SocketAddr, datagram: &'a [u8]) -> Heard<'a> {
        match self.hear(now, from, datagram) {
            Ok(heard) => heard,
            Err(ignored) => Heard::Ignored(ignored),
        }
    }

    /// Seals a datagram for a player, and tells where it goes; `None` when the place is empty.
    pub fn address(&self, player: PlayerId, datagram: Vec<u8>) -> Option<(SocketAddr, Vec<u8>)> {
        let seat = self.seat(player)?;
        Some((seat.address, seal(seat.key, datagram)))
    }

    /// The players who have a place.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        (0..).map(PlayerId).zip(&self.seats).filter(|(_, seat)| seat.is_some()).map(|(player, _)| player)
    }

    /// Ends a session, and returns the farewell; `None` when the place is empty.
    pub fn dismiss(&mut self, now: Micros, player: PlayerId, why: Leaving) -> Option<(SocketAddr, Vec<u8>)> {
        let farewell = self.address(player, encode_disconnect(why));
        self.free(now, player);
        farewell
    }

    /// Frees the places of those who have not been heard for the timeout, and returns who they were.
    pub fn expire(&mut self, now: Micros) -> Vec<PlayerId> {
        let is_silent = |player: &PlayerId| self.seat(*player).is_some_and(|s| now - s.heard_at > self.options.timeout);
        let silent: Vec<PlayerId> = self.players().filter(is_silent).collect();
        for player in &silent {
            self.free(now, *player);
        }
        silent
    }

    fn hear<'a>(&mut self, now: Micros, from: SocketAddr, datagram: &'a [u8]) -> Result<Heard<'a>, Ignored> {
        match message_type(datagram)? {
            message @ MessageType::ConnectRequest => {
                let hello = Hello::decode(datagram, message)?;
                let challenge = self.challenge(from, hello.salt, bucket(now));
                let salt = hello.salt;
                let answer = match self.refuse_kind(&hello) {
                    Some(why) => Answer::Refused { salt, why },
                    None => Answer::Challenge { salt, challenge },
                };
                Ok(Heard::Reply(answer.encode()))
            }
            message @ MessageType::ConnectConfirm => {
                let hello = Hello::decode(datagram, message)?;
                self.admit(now, from, &hello)
            }
            MessageType::LiveFromClient | MessageType::RequestFromClient | MessageType::Waiting => {
                let (player, seat) = self.seat_of(from)?;
                let datagram = unseal(seat.key, datagram)?;
                seat.heard_at = now;
                Ok(Heard::Live { player, datagram })
            }
            MessageType::Disconnect => {
                let (player, seat) = self.seat_of(from)?;
                let why = decode_disconnect(unseal(seat.key, datagram)?)?;
                self.free(now, player);
                Ok(Heard::Left { player, why })
            }
            found => Err(DecodeError::WrongType { expected: MessageType::LiveFromClient, found }.into()),
        }
    }

    /// Whether the client can play here at all.
    fn refuse_kind(&self, hello: &Hello) -> Option<Refusal> {
        if hello.version != VERSION {
            Some(Refusal::Version { server: VERSION })
        } else if hello.game != self.options.game {
            Some(Refusal::Game { server: self.options.game.clone() })
        } else {
            None
        }
    }

    fn admit<'a>(&mut self, now: Micros, from: SocketAddr, hello: &Hello) -> Result<Heard<'a>, Ignored> {
        let salt = hello.salt;
        let refuse = |why| Ok(Heard::Reply(Answer::Refused { salt, why }.encode()));
        let this_bucket = bucket(now);
        let is_good = |bucket| hello.challenge == Some(self.challenge(from, salt, bucket));
        if !is_good(this_bucket) && !is_good(this_bucket - 1) {
            return refuse(Refusal::Expired);
        }
        if let Some(why) = self.refuse_kind(hello) {
            return refuse(why);
        }
        while self.ended.front().is_some_and(|ended| ended.until < now) {
            self.ended.pop_front();
        }
        if self.ended.iter().any(|ended| ended.address == from && ended.salt == salt) {
            return Err(Ignored::Over);
        }
        let welcome = self.options.welcome.clone();
        let accepted =
            |player: PlayerId, key| Answer::Accepted { salt, key, connection: player.0 + 1, welcome }.encode();
        if let Ok((player, seat)) = self.seat_of(from) {
            if seat.salt == salt {
                // The client has not heard that it was let in.
                return Ok(Heard::Reply(accepted(player, seat.key)));
            }
            if self.closed {
                return refuse(Refusal::Begun);
            }
            self.free(now, player);
            let key = self.seat_down(now, from, salt, player);
            return Ok(Heard::Joined { player, again: true, reply: accepted(player, key) });
        }
        let Some(free) = self.seats.iter().position(Option::is_none) else {
            return refuse(Refusal::Full { seats: self.options.seats });
        };
        if self.closed {
            return refuse(Refusal::Begun);
        }
        let player = PlayerId(free as u16);
        let key = self.seat_down(now, from, salt, player);
        Ok(Heard::Joined { player, again: false, reply: accepted(player, key) })
    }

    fn seat_down(&mut self, now: Micros, address: SocketAddr, salt: u64, player: PlayerId) -> Key {
        let half = |tag| siphash(self.options.secret, &words_of(tag, address, salt, now.0));
        let key = Key(half(1), half(2));
        self.seats[usize::from(player.0)] = Some(Seat { address, salt, key, heard_at: now });
        self.by_address.insert(address, player);
        key
    }

    fn free(&mut self, now: Micros, player: PlayerId) {
        let Some(seat) = self.seats.get_mut(usize::from(player.0)).and_then(Option::take) else { return };
        self.by_address.remove(&seat.address);
        let until = now + BUCKET + BUCKET;
        self.ended.push_back(Ended { address: seat.address, salt: seat.salt, until });
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
    }

    fn seat(&self, player: PlayerId) -> Option<&Seat> {
        self.seats.get(usize::from(player.0))?.as_ref()
    }

    fn seat_of(&mut self, from: SocketAddr) -> Result<(PlayerId, &mut Seat), Ignored> {
        let player = *self.by_address.get(&from).ok_or(Ignored::Stranger)?;
        let seat = self.seats.get_mut(usize::from(player.0)).and_then(Option::as_mut).ok_or(Ignored::Stranger)?;
        Ok((player, seat))
    }

    /// Known only to the server and to whoever receives at `address`; the server can make it again and so need
    /// not remember it.
    fn challenge(&self, address: SocketAddr, salt: u64, bucket: i64) -> u64 {
        siphash(self.options.secret, &words_of(0, address, salt, bucket))
    }
}

fn bucket(now: Micros) -> i64 {
    now.0.div_euclid(BUCKET.0)
}

fn words_of(tag: u8, address: SocketAddr, salt: u64, time: i64) -> Vec<u8> {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = vec![tag];
    bytes.extend(ip.octets());
    bytes.extend(address.port().to_le_bytes());
    bytes.extend(salt.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes
}
