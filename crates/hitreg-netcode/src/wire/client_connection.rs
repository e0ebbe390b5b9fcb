//! The client's end of a connection, without I/O: datagrams and times come in, datagrams and events come out. The design
//! follows quinn-proto. Live sessions and sessions in virtual time drive the same code.

use std::collections::VecDeque;

use super::datagram::{SEAL_BYTES, message_type, seal, unseal};
use super::notice::{decode_notices, encode_notices_ack};
use super::request::decode_waiting;
use super::request::{RequestQueue, TooManyRequests};
use super::{
    AcceptedConnection, ClientMessage, CommandsError, ConnectMachine, ConnectOptions, ConnectOutcome, DecodeError,
    DecodeOutcome, Key, LeaveReason, MessageType, Notice, PerceivedAvatar, ReadyCount, ReassembledMessage, Reassembly,
    Receiver, Refusal, RequestKind, ServerDatagram, Wrapping16, decode_disconnect, encode_commands, encode_disconnect,
    encode_request, encode_waiting,
};
use crate::game::Body;
use crate::packet::ClientPacket;
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, state};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

/// A server that is silent for this long counts as lost.
const SILENCE_MAX: Micros = Micros::from_s(5);
/// The interval at which a waiting client reports that it is present.
const SAY_WAITING_EVERY: Micros = Micros::from_ms(500);

/// The client's end of a connection, as a state machine. The driver passes in received datagrams
/// ([`ClientConnection::handle_datagram`]) and packets to send ([`ClientConnection::send_packet`]). It sends all
/// datagrams from [`ClientConnection::poll_transmit`] in order, and calls [`ClientConnection::handle_timeout`] several
/// times a second.
#[derive(Clone, Debug)]
pub struct ClientConnection<B> {
    state: ConnectionState,
    receiver: Receiver<B>,
    reassembly: Reassembly,
    newest_command: CommandSeq,
    requests: RequestQueue,
    /// The number of the next notice.
    next_notice: Wrapping16,
    last_datagram_at: Micros,
    outgoing: VecDeque<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum ConnectionState {
    Connecting(ConnectMachine),
    /// The client has a slot, but the session has not begun.
    Waiting {
        accepted: AcceptedConnection,
        is_ready: bool,
        say_so_at: Micros,
    },
    Running(AcceptedConnection),
    Over,
}

state!(ClientConnection<B: Body> {
    state,
    receiver,
    reassembly,
    newest_command,
    requests,
    next_notice,
    last_datagram_at,
    outgoing,
} but {});

/// A saved connection has a slot and is not over.
impl State for ConnectionState {
    fn save(&self, to: &mut StateWriter) {
        matches!(self, ConnectionState::Running(_)).put(to);
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        if let (true, ConnectionState::Waiting { accepted, .. }) = (bool::get(from)?, &*self) {
            *self = ConnectionState::Running(accepted.clone());
        }
        Ok(())
    }
}

/// The meaning of a datagram from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent<B> {
    /// The server gave the client a slot.
    Connected(AcceptedConnection),
    /// The server refused the client.
    Refused(Refusal),
    /// The session waits for other players.
    Waiting(ReadyCount),
    /// A new snapshot.
    Snapshot {
        /// The decoded snapshot.
        received: Box<ServerDatagram<B>>,
        /// The total size of its datagrams in bytes, including headers and seals.
        bytes: usize,
        /// The number of datagrams that carried it.
        datagrams: usize,
    },
    /// A snapshot that already arrived.
    Duplicate,
    /// The notices that arrived for the first time, in order.
    Notices(Vec<Notice>),
    /// The session has ended.
    Left(LeaveReason),
    /// A fragment of a message that is still incomplete.
    Fragment,
}

/// The reasons for having no connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The server never answered.
    NeverAnswered,
    /// The server has been silent for 5 seconds.
    Silent,
    /// The server refused the client until the client gave up.
    Refused(Refusal),
}

impl<B: Body> ClientConnection<B> {
    /// Requests a slot from `now` on. `salt` must be unpredictable and new for each attempt.
    pub fn new(options: ConnectOptions, salt: u64, now: Micros) -> ClientConnection<B> {
        ClientConnection {
            state: ConnectionState::Connecting(ConnectMachine::new(options, salt, now)),
            receiver: Receiver::default(),
            reassembly: Reassembly::default(),
            newest_command: CommandSeq(0),
            requests: RequestQueue::default(),
            next_notice: Wrapping16(0),
            last_datagram_at: now,
            outgoing: VecDeque::new(),
        }
    }

    /// Returns the client's player; `None` without a slot.
    pub fn player(&self) -> Option<PlayerId> {
        self.accepted().map(|accepted| accepted.player)
    }

    /// Sets whether the client is ready for the session to begin. The initial value is false.
    pub fn set_ready(&mut self, now: Micros, ready: bool) {
        if let ConnectionState::Waiting { is_ready, say_so_at, .. } = &mut self.state {
            *is_ready = ready;
            *say_so_at = now;
        }
    }

    /// Takes a datagram that arrived from the server at `now`. Returns `Ok(None)` when it contains nothing new.
    ///
    /// # Errors
    /// When the datagram is not authentic or not valid. The connection is then unchanged.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) -> Result<Option<ClientEvent<B>>, DecodeError> {
        let kind = message_type(datagram)?;
        if let ConnectionState::Connecting(connecting) = &mut self.state {
            connecting.handle_datagram(now, datagram);
            let (state, event) = match connecting.outcome().cloned() {
                Some(ConnectOutcome::Accepted(accepted)) => {
                    let event = ClientEvent::Connected(accepted.clone());
                    (ConnectionState::Waiting { accepted, is_ready: false, say_so_at: now }, event)
                }
                Some(ConnectOutcome::Refused(why)) => (ConnectionState::Over, ClientEvent::Refused(why)),
                Some(ConnectOutcome::Silent) | None => return Ok(None),
            };
            (self.state, self.last_datagram_at) = (state, now);
            return Ok(Some(event));
        }
        let Some(key) = self.accepted().map(|accepted| accepted.key) else { return Ok(None) };
        let opened = unseal(key, datagram)?;
        let event = match kind {
            MessageType::LiveFromServer => self.handle_message(opened, datagram.len(), 1)?,
            MessageType::FragmentFromServer => match self.reassembly.handle_fragment(opened)? {
                Some(ReassembledMessage { message, fragments, bytes }) => {
                    self.handle_message(&message, bytes, fragments)?
                }
                None => Some(ClientEvent::Fragment),
            },
            MessageType::Notices => Some(ClientEvent::Notices(self.handle_notices(key, opened)?)),
            MessageType::Waiting => Some(ClientEvent::Waiting(decode_waiting(opened)?)),
            MessageType::Disconnect => Some(ClientEvent::Left(decode_disconnect(opened)?)),
            found => return Err(DecodeError::WrongType { expected: MessageType::LiveFromServer, found }),
        };
        self.last_datagram_at = now;
        Ok(event)
    }

    /// Queues a request for the running session and returns its number. The client repeats the request until a
    /// [`Notice::RequestAck`] with this number answers it.
    ///
    /// # Errors
    /// When too many requests are unanswered.
    pub fn queue_request(&mut self, what: RequestKind) -> Result<Wrapping16, TooManyRequests> {
        self.requests.push(what)
    }

    /// Allows the server to be silent for longer, because the client could not receive anything during a pause that ended
    /// by `now`.
    pub fn allow_pause(&mut self, pause: Micros, now: Micros) {
        self.last_datagram_at = (self.last_datagram_at + pause).min(now);
    }

    /// Runs the timers at `now`: reports that the client waits, repeats requests, and detects a silent server.
    pub fn handle_timeout(&mut self, now: Micros) -> Option<DisconnectReason> {
        let is_silent = now - self.last_datagram_at > SILENCE_MAX;
        let lost = match &mut self.state {
            ConnectionState::Connecting(connecting) => {
                self.outgoing.extend(connecting.poll_datagram(now));
                match connecting.outcome() {
                    Some(ConnectOutcome::Silent) => Some(DisconnectReason::NeverAnswered),
                    // The server stayed full until the client gave up.
                    Some(ConnectOutcome::Refused(why)) => Some(DisconnectReason::Refused(why.clone())),
                    Some(ConnectOutcome::Accepted(_)) | None => None,
                }
            }
            ConnectionState::Waiting { .. } | ConnectionState::Running(_) if is_silent => {
                Some(DisconnectReason::Silent)
            }
            ConnectionState::Waiting { accepted, is_ready, say_so_at } if now >= *say_so_at => {
                *say_so_at = now + SAY_WAITING_EVERY;
                let waiting = encode_waiting(ReadyCount { ready: u16::from(*is_ready), slots: 1 });
                self.outgoing.push_back(seal(accepted.key, waiting));
                None
            }
            ConnectionState::Running(accepted) => {
                let due = self.requests.poll(now).map(|request| seal(accepted.key, encode_request(request)));
                self.outgoing.extend(due);
                None
            }
            ConnectionState::Waiting { .. } | ConnectionState::Over => None,
        };
        if lost.is_some() {
            self.state = ConnectionState::Over;
        }
        lost
    }

    /// Queues a packet and sets its ack to the newest snapshot that the client has received. Returns the datagram's
    /// size in bytes, or `None` without a slot; the packet is then not sent.
    ///
    /// # Errors
    /// When the packet has no usercmds or too many, or when they are not consecutive.
    pub fn send_packet(
        &mut self,
        packet: &mut ClientPacket,
        perceived: Option<PerceivedAvatar>,
    ) -> Result<Option<usize>, CommandsError> {
        packet.ack = self.receiver.received().newest;
        self.send_packet_as_is(packet, perceived)
    }

    /// Like [`ClientConnection::send_packet`], but keeps the packet's own ack. It imitates a client that sends false
    /// acks.
    ///
    /// # Errors
    /// As [`ClientConnection::send_packet`].
    pub fn send_packet_as_is(
        &mut self,
        packet: &ClientPacket,
        perceived: Option<PerceivedAvatar>,
    ) -> Result<Option<usize>, CommandsError> {
        let Some(key) = self.accepted().map(|accepted| accepted.key) else { return Ok(None) };
        let received_before = self.receiver.received().before;
        let message = ClientMessage { packet: packet.clone(), received_before, perceived };
        let datagram = encode_commands(&message)?;
        if let Some(newest) = packet.commands.last() {
            self.newest_command = self.newest_command.max(newest.seq);
        }
        let bytes = datagram.len() + SEAL_BYTES;
        self.outgoing.push_back(seal(key, datagram));
        Ok(Some(bytes))
    }

    /// Queues a farewell if the client has a slot.
    pub fn send_disconnect(&mut self, why: LeaveReason) {
        if let Some(accepted) = self.accepted() {
            let farewell = seal(accepted.key, encode_disconnect(why));
            self.outgoing.push_back(farewell);
        }
        self.state = ConnectionState::Over;
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    fn accepted(&self) -> Option<&AcceptedConnection> {
        match &self.state {
            ConnectionState::Waiting { accepted, .. } | ConnectionState::Running(accepted) => Some(accepted),
            ConnectionState::Connecting(_) | ConnectionState::Over => None,
        }
    }

    /// Takes a datagram of notices, and queues the ack of all notices that have arrived.
    fn handle_notices(&mut self, key: Key, datagram: &[u8]) -> Result<Vec<Notice>, DecodeError> {
        let mut new = Vec::new();
        for (number, notice) in decode_notices(datagram)? {
            if number != self.next_notice {
                continue;
            }
            self.next_notice = number.later(1);
            if let Notice::RequestAck { request, .. } = notice {
                self.requests.handle_answer(request);
            }
            new.push(notice);
        }
        self.outgoing.push_back(seal(key, encode_notices_ack(self.next_notice)));
        Ok(new)
    }

    /// Takes a message that arrived in the given number of datagrams.
    fn handle_message(
        &mut self,
        message: &[u8],
        bytes: usize,
        datagrams: usize,
    ) -> Result<Option<ClientEvent<B>>, DecodeError> {
        let event = match self.receiver.decode(message, self.newest_command)? {
            DecodeOutcome::New(received) => Some(ClientEvent::Snapshot { received, bytes, datagrams }),
            DecodeOutcome::Duplicate => Some(ClientEvent::Duplicate),
            DecodeOutcome::TooOld => None,
        };
        // The first snapshot implies that the session has begun.
        if let ConnectionState::Waiting { accepted, .. } = &self.state {
            self.state = ConnectionState::Running(accepted.clone());
        }
        Ok(event)
    }
}
