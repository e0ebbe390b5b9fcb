//! The server's side: who has a place, and whose datagrams go to which connection. Addresses are values here, those of
//! `core::net`, which has no sockets.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use super::super::{DecodeError, Key, MessageType, VERSION, message_type};
use super::message::{Answer, GAME_NAME_BYTES_MAX, Hello, Refusal};
use hitreg_log::units::{Micros, PlayerId};

/// A challenge holds for one to two of these.
const BUCKET: Micros = Micros::from_s(8);
/// Attempts that are over are remembered for as long as their challenge holds, so that a recording of one opens nothing;
/// beyond this many the oldest are forgotten.
const ENDED_MAX: usize = 1024;

/// How long a client may take to say that it is ready before another one may have its place: it was let in, and has
/// nothing to do but to say so.
const GRACE: Micros = Micros::from_s(2);

/// Whoever lost a place so gets none that is not free for this long.
const TARDY: Micros = Micros::from_s(60);
/// As many are remembered; beyond them the first are forgotten.
const TARDY_MAX: usize = 1024;

/// How a server lets clients in.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// The game that is played; clients of another are refused. As much of the name counts as a datagram has room for.
    pub game: String,
    /// How many places there are.
    pub places: u16,
    /// What each client is told when it is let in, of at most `WELCOME_BYTES_MAX`: settings, seed, ...
    pub welcome: Vec<u8>,
    /// How many places one host may have at a time of which nobody has said yet that he is ready ([`Endpoint::keep`]).
    pub unready_per_host: u16,
    /// Known to nobody else, and made anew at each start.
    pub secret: Key,
}

/// Lets clients in, and tells whose a datagram is. A state machine: times and addresses come in as arguments.
#[derive(Clone, Debug)]
pub struct Endpoint {
    options: EndpointOptions,
    places: Vec<Option<Place>>,
    by_address: BTreeMap<SocketAddr, PlayerId>,
    ended: VecDeque<Ended>,
    /// The hosts that lost a place because they never said that they were ready, and until when that counts.
    tardy: VecDeque<(IpAddr, Micros)>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Place {
    address: SocketAddr,
    salt: u64,
    key: Key,
    since: Micros,
    /// What this client is told in place of what everybody is.
    welcome: Option<Vec<u8>>,
    /// Whether the client has said that it is ready.
    kept: bool,
}

#[derive(Clone, Debug)]
struct Ended {
    address: SocketAddr,
    salt: u64,
    until: Micros,
}

/// What a datagram means to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Part of a handshake; the answer goes back to where it came from.
    Reply(Vec<u8>),
    /// A client got a place; the answer goes back to where it came from.
    Joined {
        /// The place.
        player: PlayerId,
        /// Seals all that follows.
        key: Key,
        /// True when the same address had the place already, and has started anew.
        again: bool,
        /// What the client asks to have for itself. It may be anything.
        asked: Vec<u8>,
        /// The answer.
        reply: Vec<u8>,
    },
    /// It came from the address of this player: his connection decides whether it is his.
    Connection(PlayerId),
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

impl Endpoint {
    /// A server with all places free.
    pub fn new(mut options: EndpointOptions) -> Endpoint {
        options.game.truncate(options.game.floor_char_boundary(GAME_NAME_BYTES_MAX));
        let places = vec![None; usize::from(options.places)];
        Endpoint {
            options,
            places,
            by_address: BTreeMap::new(),
            ended: VecDeque::new(),
            tardy: VecDeque::new(),
            closed: false,
        }
    }

    /// Lets nobody in from now on. Those who are in stay, and are told so again if they have not heard it.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Takes a datagram that came from `from` at `now`.
    pub fn handle_datagram(&mut self, now: Micros, from: SocketAddr, datagram: &[u8]) -> Incoming {
        match self.route(now, from, datagram) {
            Ok(incoming) => incoming,
            Err(ignored) => Incoming::Ignored(ignored),
        }
    }

    /// Where the datagrams of a player go; `None` when the place is empty.
    pub fn address(&self, player: PlayerId) -> Option<SocketAddr> {
        Some(self.places.get(usize::from(player.0))?.as_ref()?.address)
    }

    /// The players who have a place.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        (0..).map(PlayerId).zip(&self.places).filter(|(_, place)| place.is_some()).map(|(player, _)| player)
    }

    /// A player has said that he is ready: nobody else gets his place as long as he stays. Until then it is his only while
    /// there are others.
    pub fn keep(&mut self, player: PlayerId) {
        if let Some(Some(place)) = self.places.get_mut(usize::from(player.0)) {
            place.kept = true;
        }
    }

    /// Tells a player something else than everybody when it is let in, of at most `WELCOME_BYTES_MAX`: the answer to send
    /// in place of that which let it in. `None` when the place is empty.
    pub fn welcome(&mut self, player: PlayerId, welcome: Vec<u8>) -> Option<Vec<u8>> {
        let place = self.places.get_mut(usize::from(player.0))?.as_mut()?;
        place.welcome = Some(welcome);
        let (salt, key) = (place.salt, place.key);
        Some(self.accept(salt, player, key))
    }

    /// Ends a player's session: what comes from his address is a stranger's from now on.
    pub fn free(&mut self, now: Micros, player: PlayerId) {
        let Some(place) = self.places.get_mut(usize::from(player.0)).and_then(Option::take) else { return };
        self.by_address.remove(&place.address);
        let until = now + BUCKET + BUCKET;
        self.ended.push_back(Ended { address: place.address, salt: place.salt, until });
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
    }

    fn route(&mut self, now: Micros, from: SocketAddr, datagram: &[u8]) -> Result<Incoming, Ignored> {
        match message_type(datagram)? {
            message @ MessageType::ConnectRequest => {
                let hello = Hello::decode(datagram, message)?;
                let challenge = self.challenge(from, hello.salt, bucket(now));
                let salt = hello.salt;
                let answer = match self.refuse_kind(&hello) {
                    Some(why) => Answer::Refused { salt, why },
                    None => Answer::Challenge { salt, challenge },
                };
                Ok(Incoming::Reply(answer.encode()))
            }
            message @ MessageType::ConnectConfirm => {
                let hello = Hello::decode(datagram, message)?;
                self.admit(now, from, hello)
            }
            MessageType::LiveFromClient
            | MessageType::RequestFromClient
            | MessageType::Waiting
            | MessageType::Disconnect => {
                self.by_address.get(&from).map(|player| Incoming::Connection(*player)).ok_or(Ignored::Stranger)
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

    fn admit(&mut self, now: Micros, from: SocketAddr, hello: Hello) -> Result<Incoming, Ignored> {
        let salt = hello.salt;
        let refuse = |why| Ok(Incoming::Reply(Answer::Refused { salt, why }.encode()));
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
            return Err(Ignored::Over);
        }
        let before = self.by_address.get(&from).copied();
        if let Some(player) = before {
            let place = self.places.get(usize::from(player.0)).and_then(Option::as_ref).ok_or(Ignored::Stranger)?;
            if place.salt == salt {
                // The client has not heard that it was let in.
                return Ok(Incoming::Reply(self.accept(salt, player, place.key)));
            }
        }
        let Some(player) = before.or_else(|| self.place_for(now, from)) else {
            return refuse(Refusal::Full { places: self.options.places });
        };
        if self.closed {
            return refuse(Refusal::Begun);
        }
        if let Some(tardy) = self.address(player).filter(|address| *address != from) {
            self.tardy.push_back((tardy.ip(), now + TARDY));
            if self.tardy.len() > TARDY_MAX {
                self.tardy.pop_front();
            }
        }
        self.free(now, player);
        let key = self.give_place(now, from, salt, player);
        let reply = self.accept(salt, player, key);
        Ok(Incoming::Joined { player, key, again: before.is_some(), asked: hello.asked, reply })
    }

    /// A free place; or that of whoever has taken longest to say that he is ready, when that is long enough.
    fn place_for(&self, now: Micros, from: SocketAddr) -> Option<PlayerId> {
        let places = || (0..).map(PlayerId).zip(&self.places);
        let unready = || places().filter_map(|(player, place)| Some((player, place.as_ref().filter(|p| !p.kept)?)));
        let free = places().find(|(_, place)| place.is_none()).map(|(player, _)| player);
        let of_host = || unready().filter(|(_, place)| place.address.ip() == from.ip());
        let late = |(_, place): &(PlayerId, &Place)| now - place.since >= GRACE;
        let has_room = of_host().count() < usize::from(self.options.unready_per_host);
        let is_tardy = self.tardy.iter().any(|(host, until)| *host == from.ip() && now < *until);
        let longest = |(_, place): &(PlayerId, &Place)| place.since;
        match has_room {
            true if self.closed || is_tardy => free,
            true => free.or_else(|| unready().filter(late).min_by_key(longest).map(|(player, _)| player)),
            // Another place of its own is all that it can have.
            false => of_host().filter(late).min_by_key(longest).map(|(player, _)| player),
        }
    }

    fn accept(&self, salt: u64, player: PlayerId, key: Key) -> Vec<u8> {
        let own = self.places.get(usize::from(player.0)).and_then(|place| place.as_ref()?.welcome.as_ref());
        let welcome = own.unwrap_or(&self.options.welcome).clone();
        Answer::Accepted { salt, key, connection: player.0 + 1, welcome }.encode()
    }

    fn give_place(&mut self, now: Micros, address: SocketAddr, salt: u64, player: PlayerId) -> Key {
        let half = |tag| self.options.secret.hash(&words_of(tag, address, salt, now.0));
        let key = Key(half(1), half(2));
        self.places[usize::from(player.0)] = Some(Place { address, salt, key, since: now, welcome: None, kept: false });
        self.by_address.insert(address, player);
        key
    }

    /// Known only to the server and to whoever receives at `address`; the server can make it again and so need
    /// not remember it.
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
