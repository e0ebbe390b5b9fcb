//! The connection handshake. A client sends a request, and the server answers with a challenge that it does not store.
//! The client gets a slot only when it returns the challenge. A spoofed address therefore gets no session and costs the
//! server no memory. Addresses are the plain values of `core::net`, which has no sockets.
//!
//! Every answer is shorter than its request, so that an attacker cannot use the server to amplify traffic.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use super::bits::{BitReader, BitWriter};
use super::datagram::{begin, expect};
use super::{DecodeError, Key, MessageType, VERSION, message_type};
use crate::push_bounded;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Micros, PlayerId};

/// The padded size of a `CONNECT_REQUEST` in bytes. It is longer than every answer to it.
const REQUEST_BYTES: usize = 64;
/// The padded size of a `CONNECT_CONFIRM` in bytes. It is longer than every answer to it.
pub const CONFIRM_BYTES: usize = 1200;
/// The longest name of a game, in bytes.
const GAME_NAME_BYTES_MAX: usize = 32;
/// The most game-defined data that a client may send with its confirm, in bytes.
pub const REQUEST_DATA_BYTES_MAX: usize = 1024;
/// The longest welcome, in bytes. An `ACCEPTED` that carries it is shorter than [`CONFIRM_BYTES`].
pub const WELCOME_BYTES_MAX: usize = 1160;

/// A `CONNECT_REQUEST`, or a `CONNECT_CONFIRM` when it has a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hello {
    version: u16,
    /// The client's random number for this attempt. Answers repeat it, so that third parties cannot forge one.
    salt: u64,
    challenge: Option<u64>,
    game: String,
    /// Game-defined data; empty in a `CONNECT_REQUEST`.
    request_data: Vec<u8>,
}

/// The server's answer to the attempt with this salt.
struct ServerAnswer {
    salt: u64,
    what: AnswerKind,
}

enum AnswerKind {
    Challenge(u64),
    Accepted { key: Key, connection: u16, welcome: Vec<u8> },
    Refused(Refusal),
}

/// The reasons for refusing a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server uses another protocol version.
    #[error("the server speaks version {server} of the protocol, this client version {}", super::VERSION)]
    Version {
        /// The server's version.
        server: u16,
    },
    /// The server plays another game.
    #[error("the server plays {server}")]
    Game {
        /// The server's game.
        server: String,
    },
    /// All slots are taken.
    #[error("the server is full: all {slots} places are taken")]
    Full {
        /// The number of slots.
        slots: u16,
    },
    /// The challenge is invalid or expired. A new request helps.
    #[error("the challenge has expired")]
    Expired,
    /// The session has begun and admits no more clients.
    #[error("the session has begun, so no player can join")]
    Begun,
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let (message, length) = match self.challenge {
            None => (MessageType::ConnectRequest, REQUEST_BYTES),
            Some(_) => (MessageType::ConnectConfirm, CONFIRM_BYTES),
        };
        let mut out = begin(message);
        out.put(u64::from(self.version), 16);
        out.put(self.salt, 64);
        if let Some(challenge) = self.challenge {
            out.put(challenge, 64);
        }
        out.put_text(&self.game, GAME_NAME_BYTES_MAX, 8);
        if self.challenge.is_some() {
            out.put_counted(&self.request_data, REQUEST_DATA_BYTES_MAX, 16);
        }
        let mut bytes = out.into_bytes();
        bytes.resize(length, 0);
        bytes
    }

    fn decode(datagram: &[u8], message: MessageType) -> Result<Hello, DecodeError> {
        let mut from = expect(datagram, message)?;
        let is_confirm = message == MessageType::ConnectConfirm;
        let length = if is_confirm { CONFIRM_BYTES } else { REQUEST_BYTES };
        if datagram.len() != length {
            return Err(DecodeError::bad("the length of a hello", datagram.len() as u64));
        }
        let version = from.get_u16()?;
        let salt = from.get(64)?;
        let challenge = if is_confirm { Some(from.get(64)?) } else { None };
        if version != super::VERSION {
            // Another version may use other fields from here on.
            return Ok(Hello { version, salt, challenge, game: String::new(), request_data: Vec::new() });
        }
        let game = get_name(&mut from)?;
        let request_data = if is_confirm { from.get_counted(16)? } else { Vec::new() };
        from.finish_padding()?;
        Ok(Hello { version, salt, challenge, game, request_data })
    }
}

impl ServerAnswer {
    fn encode(&self) -> Vec<u8> {
        let mut out = begin(match self.what {
            AnswerKind::Challenge(_) => MessageType::Challenge,
            AnswerKind::Accepted { .. } => MessageType::Accepted,
            AnswerKind::Refused(_) => MessageType::Refused,
        });
        out.put(self.salt, 64);
        match &self.what {
            AnswerKind::Challenge(challenge) => out.put(*challenge, 64),
            AnswerKind::Accepted { key, connection, welcome } => {
                out.put(key.0, 64);
                out.put(key.1, 64);
                out.put(u64::from(*connection), 16);
                out.put_counted(welcome, WELCOME_BYTES_MAX, 16);
            }
            AnswerKind::Refused(why) => put_refusal(&mut out, why),
        }
        out.into_bytes()
    }

    fn decode(datagram: &[u8]) -> Result<ServerAnswer, DecodeError> {
        let message = super::message_type(datagram)?;
        let mut from = expect(datagram, message)?;
        let salt = from.get(64)?;
        let what = match message {
            MessageType::Challenge => AnswerKind::Challenge(from.get(64)?),
            MessageType::Accepted => AnswerKind::Accepted {
                key: Key(from.get(64)?, from.get(64)?),
                connection: from.get_u16()?,
                welcome: from.get_counted(16)?,
            },
            MessageType::Refused => AnswerKind::Refused(get_refusal(&mut from)?),
            found => return Err(DecodeError::WrongType { expected: MessageType::Challenge, found }),
        };
        from.finish()?;
        Ok(ServerAnswer { salt, what })
    }
}

fn put_refusal(out: &mut BitWriter, why: &Refusal) {
    match why {
        Refusal::Version { server } => {
            out.put(0, 8);
            out.put(u64::from(*server), 16);
        }
        Refusal::Game { server } => {
            out.put(1, 8);
            out.put_text(server, GAME_NAME_BYTES_MAX, 8);
        }
        Refusal::Full { slots } => {
            out.put(2, 8);
            out.put(u64::from(*slots), 16);
        }
        Refusal::Expired => out.put(3, 8),
        Refusal::Begun => out.put(4, 8),
    }
}

fn get_refusal(from: &mut BitReader<'_>) -> Result<Refusal, DecodeError> {
    match from.get_u8()? {
        0 => Ok(Refusal::Version { server: from.get_u16()? }),
        1 => Ok(Refusal::Game { server: get_name(from)? }),
        2 => Ok(Refusal::Full { slots: from.get_u16()? }),
        3 => Ok(Refusal::Expired),
        4 => Ok(Refusal::Begun),
        code => Err(DecodeError::bad("a refusal", u64::from(code))),
    }
}

fn get_name(from: &mut BitReader<'_>) -> Result<String, DecodeError> {
    let length = from.get_u8()?;
    if usize::from(length) > GAME_NAME_BYTES_MAX {
        return Err(DecodeError::bad("the length of a game's name", u64::from(length)));
    }
    let bytes = from.get_bytes(usize::from(length))?;
    String::from_utf8(bytes).map_err(|_| DecodeError::bad("a game's name", u64::from(length)))
}

/// The parameters of a client's connection attempt.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The name of the client's game.
    pub game: String,
    /// Game-defined data that the client sends with its request, at most [`REQUEST_DATA_BYTES_MAX`] bytes.
    pub request_data: Vec<u8>,
}

/// The client repeats an unanswered request after this time.
const RESEND_AFTER: Micros = Micros::from_ms(250);
/// The client gives up after this time without a slot.
const GIVE_UP_AFTER: Micros = Micros::from_s(10);

impl ConnectOptions {
    /// Requests a slot in this game.
    pub fn new(game: &str) -> ConnectOptions {
        ConnectOptions { game: game.to_owned(), request_data: Vec::new() }
    }
}

/// A client that requests a slot. It is a state machine: times come in as arguments.
#[derive(Clone, Debug)]
pub struct ConnectMachine {
    options: ConnectOptions,
    salt: u64,
    began_at: Micros,
    send_at: Micros,
    challenge: Option<u64>,
    /// The last refusal that said that all slots are taken.
    full: Option<Refusal>,
    outcome: Option<ConnectOutcome>,
}

/// The result of a connection attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectOutcome {
    /// The server gave the client a slot.
    Accepted(AcceptedConnection),
    /// The server refused the client.
    Refused(Refusal),
    /// The server did not answer in time.
    Silent,
}

/// A slot on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedConnection {
    /// The key that seals all further datagrams.
    pub key: Key,
    /// The client's connection number, from 1. Definitions of entities that the client controls carry this number.
    pub connection: u16,
    /// The player of this client.
    pub player: PlayerId,
    /// The data that the server sends to every client on admission, such as settings and seed.
    pub welcome: Vec<u8>,
}

impl ConnectMachine {
    /// Starts an attempt at `now`. `salt` must be unpredictable and new for each attempt.
    pub fn new(options: ConnectOptions, salt: u64, now: Micros) -> ConnectMachine {
        ConnectMachine { options, salt, began_at: now, send_at: now, challenge: None, full: None, outcome: None }
    }

    /// Returns the datagram to send at `now`, if any.
    pub fn poll_datagram(&mut self, now: Micros) -> Option<Vec<u8>> {
        if self.outcome.is_none() && now - self.began_at >= GIVE_UP_AFTER {
            self.outcome = Some(self.full.take().map_or(ConnectOutcome::Silent, ConnectOutcome::Refused));
        }
        if self.outcome.is_some() || now < self.send_at {
            return None;
        }
        self.send_at = now + RESEND_AFTER;
        let ConnectOptions { game, request_data } = self.options.clone();
        Some(Hello { version: VERSION, salt: self.salt, challenge: self.challenge, game, request_data }.encode())
    }

    /// Takes a datagram that arrived at `now`. Ignores datagrams that do not answer this attempt.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) {
        let Ok(ServerAnswer { salt, what }) = ServerAnswer::decode(datagram) else { return };
        if salt != self.salt || self.outcome.is_some() {
            return;
        }
        match what {
            AnswerKind::Challenge(challenge) => {
                if self.challenge.replace(challenge) != Some(challenge) {
                    self.send_at = now;
                }
            }
            AnswerKind::Accepted { key, connection, welcome } => {
                // Connection 0 is the server itself.
                let player = connection.checked_sub(1).filter(|_| self.challenge.is_some());
                let Some(player) = player.map(PlayerId) else { return };
                self.outcome = Some(ConnectOutcome::Accepted(AcceptedConnection { key, connection, player, welcome }));
            }
            AnswerKind::Refused(Refusal::Expired) => self.challenge = None,
            // A full server can free a slot later: when a player leaves, or when an admitted client never confirms that
            // it is ready.
            AnswerKind::Refused(why @ Refusal::Full { .. }) => {
                self.full = Some(why);
                self.send_at = self.send_at.max(now + RESEND_AFTER);
            }
            AnswerKind::Refused(why) => self.outcome = Some(ConnectOutcome::Refused(why)),
        }
    }

    /// Returns the result; `None` while the attempt is running.
    pub fn outcome(&self) -> Option<&ConnectOutcome> {
        self.outcome.as_ref()
    }
}

/// A challenge is valid for one to two of these intervals.
const BUCKET: Micros = Micros::from_s(8);
/// The most ended attempts to remember; beyond this, the oldest are forgotten. An attempt is remembered while its
/// challenge is valid, so that replayed datagrams of it open no session.
const ENDED_MAX: usize = 1024;

/// After this long without a word of an unready client, another client may take its slot.
const GRACE: Micros = Micros::from_s(2);

/// For this long, a host that lost a silent client's slot gets free slots only.
const TARDY_TIME: Micros = Micros::from_s(60);
/// The most such hosts to remember; beyond this, the oldest are forgotten.
const TARDY_HOSTS_MAX: usize = 1024;

/// The parameters of a server's admission.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// The name of the server's game; clients of other games are refused. The endpoint truncates it to the length that
    /// a datagram can hold.
    pub game: String,
    /// The number of slots.
    pub slots: u16,
    /// The data that each client receives on admission, such as settings and seed; at most `WELCOME_BYTES_MAX` bytes.
    pub welcome: Vec<u8>,
    /// The most slots that one host may hold at a time without confirming that it is ready ([`Endpoint::note_waiting`]).
    pub unready_per_host: u16,
    /// A secret that only the server knows, generated at each start.
    pub secret: Key,
}

/// Admits clients and routes datagrams to players. It is a state machine: times and addresses come in as arguments.
#[derive(Clone, Debug)]
pub struct Endpoint {
    options: EndpointOptions,
    slots: Vec<Option<Slot>>,
    by_address: SortedMap<SocketAddr, PlayerId>,
    ended: VecDeque<EndedConnection>,
    /// Hosts that lost a slot because their client was silent, and the time at which each entry expires.
    tardy: VecDeque<(IpAddr, Micros)>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Slot {
    address: SocketAddr,
    salt: u64,
    key: Key,
    /// When the client was admitted, or last known to wait.
    waiting_at: Micros,
    /// Replaces the common welcome for this client.
    welcome: Option<Vec<u8>>,
    /// Whether the client has confirmed that it is ready.
    is_ready: bool,
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
        request_data: Vec<u8>,
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
        let slots = vec![None; usize::from(options.slots)];
        Endpoint {
            options,
            slots,
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
        self.slot(player).map(|slot| slot.address)
    }

    /// Returns the players who have a slot.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        (0..).map(PlayerId).zip(&self.slots).filter(|(_, slot)| slot.is_some()).map(|(player, _)| player)
    }

    /// Notes that a player waited for the session at `now`, so that no other client takes its slot for 2 s. From the time
    /// at which the player is ready, no other client can take the slot until the player leaves.
    pub fn note_waiting(&mut self, now: Micros, player: PlayerId, is_ready: bool) {
        if let Some(Some(slot)) = self.slots.get_mut(usize::from(player.0)) {
            slot.waiting_at = now;
            slot.is_ready |= is_ready;
        }
    }

    /// Replaces the common welcome for one player, at most `WELCOME_BYTES_MAX` bytes. Returns the acceptance to send
    /// instead of the first one; `None` when the slot is free.
    pub fn welcome(&mut self, player: PlayerId, welcome: Vec<u8>) -> Option<Vec<u8>> {
        self.slots.get_mut(usize::from(player.0))?.as_mut()?.welcome = Some(welcome);
        self.slot(player).map(|slot| self.accept(player, slot))
    }

    /// Ends a player's session. Further datagrams from the player's address count as those of a stranger.
    pub fn remove(&mut self, now: Micros, player: PlayerId) {
        let Some(slot) = self.slots.get_mut(usize::from(player.0)).and_then(Option::take) else { return };
        self.by_address.remove(&slot.address);
        let until = now + BUCKET + BUCKET;
        let ended = EndedConnection { address: slot.address, salt: slot.salt, until };
        push_bounded(&mut self.ended, ended, ENDED_MAX);
    }

    fn route(&mut self, now: Micros, from: SocketAddr, datagram: &[u8]) -> Result<IncomingMessage, IgnoredReason> {
        match message_type(datagram)? {
            message @ MessageType::ConnectRequest => {
                let hello = Hello::decode(datagram, message)?;
                let challenge = || AnswerKind::Challenge(self.challenge(from, hello.salt, bucket(now)));
                let what = self.refuse_kind(&hello).map_or_else(challenge, AnswerKind::Refused);
                Ok(IncomingMessage::Reply(ServerAnswer { salt: hello.salt, what }.encode()))
            }
            message @ MessageType::ConnectConfirm => {
                let hello = Hello::decode(datagram, message)?;
                self.admit(now, from, hello)
            }
            MessageType::LiveFromClient
            | MessageType::RequestFromClient
            | MessageType::Waiting
            | MessageType::NoticesAck
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
        let refuse = |why| Ok(IncomingMessage::Reply(ServerAnswer { salt, what: AnswerKind::Refused(why) }.encode()));
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
            let slot = self.slot(player).ok_or(IgnoredReason::Stranger)?;
            if slot.salt == salt {
                // The client asks again because it did not receive its acceptance.
                return Ok(IncomingMessage::Reply(self.accept(player, slot)));
            }
        }
        if self.closed {
            return refuse(Refusal::Begun);
        }
        let Some(player) = before.or_else(|| self.place_for(now, from)) else {
            return refuse(Refusal::Full { slots: self.options.slots });
        };
        if let Some(tardy) = self.address(player).filter(|address| *address != from) {
            push_bounded(&mut self.tardy, (tardy.ip(), now + TARDY_TIME), TARDY_HOSTS_MAX);
        }
        self.remove(now, player);
        let half = |tag| self.options.secret.hash(&words_of(tag, from, salt, now.0));
        let key = Key(half(1), half(2));
        let slot = Slot { address: from, salt, key, waiting_at: now, welcome: None, is_ready: false };
        let reply = self.accept(player, &slot);
        self.slots[usize::from(player.0)] = Some(slot);
        self.by_address.insert(from, player);
        Ok(IncomingMessage::Joined { player, key, again: before.is_some(), request_data: hello.request_data, reply })
    }

    /// Returns a free slot. If there is none, returns the slot of the unready client that has been silent for longest,
    /// after [`GRACE`].
    fn place_for(&self, now: Micros, from: SocketAddr) -> Option<PlayerId> {
        let slots = || (0..).map(PlayerId).zip(&self.slots);
        let unready = || slots().filter_map(|(player, slot)| Some((player, slot.as_ref().filter(|p| !p.is_ready)?)));
        let free = slots().find(|(_, slot)| slot.is_none()).map(|(player, _)| player);
        let of_host = || unready().filter(|(_, slot)| slot.address.ip() == from.ip());
        let late = |(_, slot): &(PlayerId, &Slot)| now - slot.waiting_at >= GRACE;
        let has_room = of_host().count() < usize::from(self.options.unready_per_host);
        let is_tardy = self.tardy.iter().any(|(host, until)| *host == from.ip() && now < *until);
        let longest = |(_, slot): &(PlayerId, &Slot)| slot.waiting_at;
        match has_room {
            true if is_tardy => free,
            true => free.or_else(|| unready().filter(late).min_by_key(longest).map(|(player, _)| player)),
            // The host is at its limit, so it can only replace one of its own unready slots.
            false => of_host().filter(late).min_by_key(longest).map(|(player, _)| player),
        }
    }

    fn slot(&self, player: PlayerId) -> Option<&Slot> {
        self.slots.get(usize::from(player.0))?.as_ref()
    }

    fn accept(&self, player: PlayerId, slot: &Slot) -> Vec<u8> {
        let welcome = slot.welcome.as_ref().unwrap_or(&self.options.welcome).clone();
        let what = AnswerKind::Accepted { key: slot.key, connection: player.0 + 1, welcome };
        ServerAnswer { salt: slot.salt, what }.encode()
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
