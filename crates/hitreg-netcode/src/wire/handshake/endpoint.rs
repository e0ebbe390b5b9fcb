//! The server side of the handshake: which client has which slot, and which connection a datagram belongs to. Addresses
//! are the plain values of `core::net`, which has no sockets.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use super::super::{DecodeError, Key, MessageType, VERSION, message_type};
use super::message::{GAME_NAME_BYTES_MAX, Hello, Refusal, ServerAnswer};
use crate::bounded::push_bounded;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Micros, PlayerId};

/// A challenge is valid for one to two of these intervals.
const BUCKET: Micros = Micros::from_s(8);
/// The most ended attempts to remember; beyond this, the oldest are forgotten. An attempt is remembered while its
/// challenge is valid, so that replayed datagrams of it open no session.
const ENDED_MAX: usize = 1024;

/// The time that an admitted client has to confirm that it is ready. After this, another client may take its slot.
const GRACE: Micros = Micros::from_s(2);

/// For this long, a host that lost an unready slot gets free slots only.
const TARDY: Micros = Micros::from_s(60);
/// The most such hosts to remember; beyond this, the oldest are forgotten.
const TARDY_MAX: usize = 1024;

/// The parameters of a server's admission.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// The name of the server's game; clients of other games are refused. The endpoint truncates it to the length that
    /// a datagram can hold.
    pub game: String,
    /// The number of slots.
    pub places: u16,
    /// The data that each client receives on admission, such as settings and seed; at most `WELCOME_BYTES_MAX` bytes.
    pub welcome: Vec<u8>,
    /// The most slots that one host may hold at a time without confirming that it is ready ([`Endpoint::keep`]).
    pub unready_per_host: u16,
    /// A secret that only the server knows, generated at each start.
    pub secret: Key,
}

/// Admits clients and routes datagrams to players. It is a state machine: times and addresses come in as arguments.
#[derive(Clone, Debug)]
pub struct Endpoint {
    options: EndpointOptions,
    places: Vec<Option<Slot>>,
    by_address: SortedMap<SocketAddr, PlayerId>,
    ended: VecDeque<EndedConnection>,
    /// Hosts that lost a slot because they did not confirm in time, and the time at which each entry expires.
    tardy: VecDeque<(IpAddr, Micros)>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Slot {
    address: SocketAddr,
    salt: u64,
    key: Key,
    since: Micros,
    /// Replaces the common welcome for this client.
    welcome: Option<Vec<u8>>,
    /// Whether the client has confirmed that it is ready.
    kept: bool,
}

#[derive(Clone, Debug)]
struct EndedConnection {
    address: SocketAddr,
    salt: u64,
    until: Micros,
}

/// The meaning of a datagram for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingMessage {
    /// A handshake message. Send the answer back to its sender.
    Reply(Vec<u8>),
    /// A client got a slot. Send the answer back to its sender.
    Joined {
        /// The slot.
        player: PlayerId,
        /// The key that seals all further datagrams.
        key: Key,
        /// True when the same address already had the slot and started a new attempt.
        again: bool,
        /// The client's game-defined data. It is untrusted.
        asked: Vec<u8>,
        /// The answer to send.
        reply: Vec<u8>,
    },
    /// The datagram came from this player's address. The player's connection checks whether it is authentic.
    Connection(PlayerId),
    /// The datagram needs no action.
    Ignored(IgnoredReason),
}

/// The reason for ignoring a datagram. The sender gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredReason {
    /// No client would send this datagram.
    #[error(transparent)]
    NotOurs(#[from] DecodeError),
    /// The sender's address has no slot.
    #[error("its sender has no place here")]
    Stranger,
    /// The datagram repeats a handshake whose session has ended.
    #[error("it repeats an attempt that is over")]
    Over,
}

impl Endpoint {
    /// Creates an endpoint with all slots free.
    pub fn new(mut options: EndpointOptions) -> Endpoint {
        options.game.truncate(options.game.floor_char_boundary(GAME_NAME_BYTES_MAX));
        let places = vec![None; usize::from(options.places)];
        Endpoint {
            options,
            places,
            by_address: SortedMap::new(),
            ended: VecDeque::new(),
            tardy: VecDeque::new(),
            closed: false,
        }
    }

    /// Stops admitting clients. Admitted clients stay, and still get their acceptance repeated when they ask for it.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes a datagram that arrived from `from` at `now`.
    pub fn handle_datagram(&mut self, now: Micros, from: SocketAddr, datagram: &[u8]) -> IncomingMessage {
        self.route(now, from, datagram).unwrap_or_else(IncomingMessage::Ignored)
    }

    /// Returns the address of a player; `None` when the slot is free.
    pub fn address(&self, player: PlayerId) -> Option<SocketAddr> {
        Some(self.places.get(usize::from(player.0))?.as_ref()?.address)
    }

    /// Returns the players who have a slot.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        (0..).map(PlayerId).zip(&self.places).filter(|(_, place)| place.is_some()).map(|(player, _)| player)
    }

    /// Marks a player as ready. From then on, no other client can take the slot until the player leaves.
    pub fn keep(&mut self, player: PlayerId) {
        if let Some(Some(place)) = self.places.get_mut(usize::from(player.0)) {
            place.kept = true;
        }
    }

    /// Replaces the common welcome for one player, at most `WELCOME_BYTES_MAX` bytes. Returns the acceptance to send
    /// instead of the first one; `None` when the slot is free.
    pub fn welcome(&mut self, player: PlayerId, welcome: Vec<u8>) -> Option<Vec<u8>> {
        let place = self.places.get_mut(usize::from(player.0))?.as_mut()?;
        place.welcome = Some(welcome);
        let (salt, key) = (place.salt, place.key);
        Some(self.accept(salt, player, key))
    }

    /// Ends a player's session. Further datagrams from the player's address count as those of a stranger.
    pub fn free(&mut self, now: Micros, player: PlayerId) {
        let Some(place) = self.places.get_mut(usize::from(player.0)).and_then(Option::take) else { return };
        self.by_address.remove(&place.address);
        let until = now + BUCKET + BUCKET;
        let ended = EndedConnection { address: place.address, salt: place.salt, until };
        push_bounded(&mut self.ended, ended, ENDED_MAX);
    }

    fn route(&mut self, now: Micros, from: SocketAddr, datagram: &[u8]) -> Result<IncomingMessage, IgnoredReason> {
        match message_type(datagram)? {
            message @ MessageType::ConnectRequest => {
                let hello = Hello::decode(datagram, message)?;
                let challenge = self.challenge(from, hello.salt, bucket(now));
                let salt = hello.salt;
                let answer = match self.refuse_kind(&hello) {
                    Some(why) => ServerAnswer::Refused { salt, why },
                    None => ServerAnswer::Challenge { salt, challenge },
                };
                Ok(IncomingMessage::Reply(answer.encode()))
            }
            message @ MessageType::ConnectConfirm => {
                let hello = Hello::decode(datagram, message)?;
                self.admit(now, from, hello)
            }
            MessageType::LiveFromClient
            | MessageType::RequestFromClient
            | MessageType::Waiting
            | MessageType::Disconnect => self
                .by_address
                .get(&from)
                .map(|player| IncomingMessage::Connection(*player))
                .ok_or(IgnoredReason::Stranger),
            found => Err(DecodeError::WrongType { expected: MessageType::LiveFromClient, found }.into()),
        }
    }

    /// Returns a refusal when the client's protocol version or game differs from the server's.
    fn refuse_kind(&self, hello: &Hello) -> Option<Refusal> {
        if hello.version != VERSION {
            Some(Refusal::Version { server: VERSION })
        } else if hello.game != self.options.game {
            Some(Refusal::Game { server: self.options.game.clone() })
        } else {
            None
        }
    }

    fn admit(&mut self, now: Micros, from: SocketAddr, hello: Hello) -> Result<IncomingMessage, IgnoredReason> {
        let salt = hello.salt;
        let refuse = |why| Ok(IncomingMessage::Reply(ServerAnswer::Refused { salt, why }.encode()));
        let this_bucket = bucket(now);
        let is_good = |bucket| hello.challenge == Some(self.challenge(from, salt, bucket));
        if !is_good(this_bucket) && !is_good(this_bucket - 1) {
            return refuse(Refusal::Expired);
        }
        if let Some(why) = self.refuse_kind(&hello) {
            return refuse(why);
        }
        while self.ended.front().is_some_and(|ended| ended.until < now) {
            self.ended.pop_front();
        }
        if self.ended.iter().any(|ended| ended.address == from && ended.salt == salt) {
            return Err(IgnoredReason::Over);
        }
        let before = self.by_address.get(&from).copied();
        if let Some(player) = before {
            let place =
                self.places.get(usize::from(player.0)).and_then(Option::as_ref).ok_or(IgnoredReason::Stranger)?;
            if place.salt == salt {
                // The client asks again because it did not receive its acceptance.
                return Ok(IncomingMessage::Reply(self.accept(salt, player, place.key)));
            }
        }
        if self.closed {
            return refuse(Refusal::Begun);
        }
        let Some(player) = before.or_else(|| self.place_for(now, from)) else {
            return refuse(Refusal::Full { places: self.options.places });
        };
        if let Some(tardy) = self.address(player).filter(|address| *address != from) {
            push_bounded(&mut self.tardy, (tardy.ip(), now + TARDY), TARDY_MAX);
        }
        self.free(now, player);
        let key = self.assign_place(now, from, salt, player);
        let reply = self.accept(salt, player, key);
        Ok(IncomingMessage::Joined { player, key, again: before.is_some(), asked: hello.asked, reply })
    }

    /// Returns a free slot. If there is none, returns the slot of the client that has been unready for longest, after
    /// [`GRACE`].
    fn place_for(&self, now: Micros, from: SocketAddr) -> Option<PlayerId> {
        let places = || (0..).map(PlayerId).zip(&self.places);
        let unready = || places().filter_map(|(player, place)| Some((player, place.as_ref().filter(|p| !p.kept)?)));
        let free = places().find(|(_, place)| place.is_none()).map(|(player, _)| player);
        let of_host = || unready().filter(|(_, place)| place.address.ip() == from.ip());
        let late = |(_, place): &(PlayerId, &Slot)| now - place.since >= GRACE;
        let has_room = of_host().count() < usize::from(self.options.unready_per_host);
        let is_tardy = self.tardy.iter().any(|(host, until)| *host == from.ip() && now < *until);
        let longest = |(_, place): &(PlayerId, &Slot)| place.since;
        match has_room {
            true if is_tardy => free,
            true => free.or_else(|| unready().filter(late).min_by_key(longest).map(|(player, _)| player)),
            // The host is at its limit, so it can only replace one of its own unready slots.
            false => of_host().filter(late).min_by_key(longest).map(|(player, _)| player),
        }
    }

    fn accept(&self, salt: u64, player: PlayerId, key: Key) -> Vec<u8> {
        let own = self.places.get(usize::from(player.0)).and_then(|place| place.as_ref()?.welcome.as_ref());
        let welcome = own.unwrap_or(&self.options.welcome).clone();
        ServerAnswer::Accepted { salt, key, connection: player.0 + 1, welcome }.encode()
    }

    fn assign_place(&mut self, now: Micros, address: SocketAddr, salt: u64, player: PlayerId) -> Key {
        let half = |tag| self.options.secret.hash(&words_of(tag, address, salt, now.0));
        let key = Key(half(1), half(2));
        self.places[usize::from(player.0)] = Some(Slot { address, salt, key, since: now, welcome: None, kept: false });
        self.by_address.insert(address, player);
        key
    }

    /// Returns the challenge for an address. Only the server and the receiver at `address` know it. The server
    /// recomputes it and need not store it.
    fn challenge(&self, address: SocketAddr, salt: u64, bucket: i64) -> u64 {
        self.options.secret.hash(&words_of(0, address, salt, bucket))
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
