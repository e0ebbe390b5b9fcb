//! A client's end of its connection.

use std::collections::VecDeque;

use super::requests::{Asking, TooManyRequests};
use crate::game::Body;
use crate::packet::ClientPacket;
use crate::wire::header::{SEAL_BYTES, message_type, seal, unseal};
use crate::wire::{
    Accepted, ClientMessage, CommandsError, ConnectOptions, Connecting, DecodeError, Decoded, Leaving, MessageType,
    Notice, Outcome, Perceived, Reassembled, Reassembly, Received, Receiver, Refusal, Waiting, What, Wrapping16,
    decode_disconnect, decode_waiting, encode_commands, encode_disconnect, encode_request, encode_waiting,
};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

/// A server that is not heard for this long is gone.
const SILENCE_MAX: Micros = Micros::from_s(5);
/// How often a client says that it is still there while it waits for the session to begin.
const SAY_WAITING_EVERY: Micros = Micros::from_ms(500);

/// A client's end of its connection. A state machine: hand in what came ([`ClientConnection::handle_datagram`]) and what is
/// to go ([`ClientConnection::send_packet`]), then send all that [`ClientConnection::poll_transmit`] gives, in its order;
/// and call [`ClientConnection::handle_timeout`] several times a second.
#[derive(Clone, Debug)]
pub struct ClientConnection<B> {
    state: State,
    receiver: Receiver<B>,
    reassembly: Reassembly,
    newest_command: CommandSeq,
    asking: Asking,
    heard_at: Micros,
    outgoing: VecDeque<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum State {
    Connecting(Connecting),
    /// In a place; the session has not begun.
    Waiting {
        accepted: Accepted,
        is_ready: bool,
        say_so_at: Micros,
    },
    Running(Accepted),
    Over,
}

/// What a datagram from the server says.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent<B> {
    /// There is a place.
    Connected(Accepted),
    /// There is none.
    Refused(Refusal),
    /// Other players are waited for.
    Waiting(Waiting),
    /// A snapshot that was not there yet.
    Snapshot {
        /// What it says.
        received: Box<Received<B>>,
        /// How many bytes its datagrams have, headers and seals included.
        bytes: usize,
        /// How many datagrams it came in.
        datagrams: usize,
    },
    /// A snapshot that has come before.
    Duplicate,
    /// The session is over.
    Left(Leaving),
    /// A part of something that is not whole yet.
    Part,
}

/// Why there is no server any more, or none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It never did.
    NeverAnswered,
    /// It has not been heard for 5 seconds.
    Silent,
    /// The server had no place for as long as the client asked.
    Refused(Refusal),
}

impl<B: Body> ClientConnection<B> {
    /// Asks for a place from `now` on. `salt` is a number that nobody can guess, new for each attempt.
    pub fn new(options: ConnectOptions, salt: u64, now: Micros) -> ClientConnection<B> {
        ClientConnection {
            state: State::Connecting(Connecting::new(options, salt, now)),
            receiver: Receiver::new(),
            reassembly: Reassembly::new(),
            newest_command: CommandSeq(0),
            asking: Asking::default(),
            heard_at: now,
            outgoing: VecDeque::new(),
        }
    }

    /// The player that the client is; `None` without a place.
    pub fn player(&self) -> Option<PlayerId> {
        self.accepted().map(|accepted| accepted.player)
    }

    /// Says from `now` on whether the client is ready for the session to begin; at first it is not.
    pub fn set_ready(&mut self, now: Micros, ready: bool) {
        if let State::Waiting { is_ready, say_so_at, .. } = &mut self.state {
            *is_ready = ready;
            *say_so_at = now;
        }
    }

    /// Takes a datagram that came from the server at `now`. `Ok(None)` is one that says nothing new.
    ///
    /// # Errors
    /// When it is not the server's or not what it would send. Nothing has changed then.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) -> Result<Option<ClientEvent<B>>, DecodeError> {
        let kind = message_type(datagram)?;
        if let State::Connecting(connecting) = &mut self.state {
            connecting.handle_datagram(now, datagram);
            let event = match connecting.outcome() {
                Some(Outcome::Accepted(accepted)) => ClientEvent::Connected(accepted.clone()),
                Some(Outcome::Refused(why)) => ClientEvent::Refused(why.clone()),
                Some(Outcome::Silent) | None => return Ok(None),
            };
            self.heard_at = now;
            self.state = match &event {
                ClientEvent::Connected(accepted) => {
                    State::Waiting { accepted: accepted.clone(), is_ready: false, say_so_at: now }
                }
                _ => State::Over,
            };
            return Ok(Some(event));
        }
        let Some(key) = self.accepted().map(|accepted| accepted.key) else { return Ok(None) };
        let opened = unseal(key, datagram)?;
        let event = match kind {
            MessageType::LiveFromServer => self.handle_message(opened, datagram.len(), 1)?,
            MessageType::FragmentFromServer => match self.reassembly.handle_fragment(opened)? {
                Some(Reassembled { message, fragments, bytes }) => self.handle_message(&message, bytes, fragments)?,
                None => Some(ClientEvent::Part),
            },
            MessageType::Waiting => Some(ClientEvent::Waiting(decode_waiting(opened)?)),
            MessageType::Disconnect => Some(ClientEvent::Left(decode_disconnect(opened)?)),
            found => return Err(DecodeError::WrongType { expected: MessageType::LiveFromServer, found }),
        };
        self.heard_at = now;
        Ok(event)
    }

    /// Asks for something, once the session runs; it is sent again until a
    /// [`Notice::RequestAck`] of the number that is returned answers it.
    ///
    /// # Errors
    /// When the server has not answered for long.
    pub fn ask(&mut self, what: What) -> Result<Wrapping16, TooManyRequests> {
        self.asking.ask(what)
    }

    /// Does what is due at `now`: says that the client waits, asks again, and finds that the server has fallen silent.
    pub fn handle_timeout(&mut self, now: Micros) -> Option<Lost> {
        let is_silent = now - self.heard_at > SILENCE_MAX;
        let lost = match &mut self.state {
            State::Connecting(connecting) => {
                self.outgoing.extend(connecting.poll_datagram(now));
                match connecting.outcome() {
                    Some(Outcome::Silent) => Some(Lost::NeverAnswered),
                    // No place came free for as long as it asked.
                    Some(Outcome::Refused(why)) => Some(Lost::Refused(why.clone())),
                    Some(Outcome::Accepted(_)) | None => None,
                }
            }
            State::Waiting { .. } | State::Running(_) if is_silent => Some(Lost::Silent),
            State::Waiting { accepted, is_ready, say_so_at } if now >= *say_so_at => {
                *say_so_at = now + SAY_WAITING_EVERY;
                let waiting = encode_waiting(Waiting { ready: u16::from(*is_ready), places: 1 });
                self.outgoing.push_back(seal(accepted.key, waiting));
                None
            }
            State::Running(accepted) => {
                let due = self.asking.poll(now).map(|request| seal(accepted.key, encode_request(request)));
                self.outgoing.extend(due);
                None
            }
            State::Waiting { .. } | State::Over => None,
        };
        if lost.is_some() {
            self.state = State::Over;
        }
        lost
    }

    /// Makes a packet ready, with what the client has received as its ack and where it sees its avatar. Returns the
    /// datagram's size in bytes; nothing is sent without a place, and `None` returned.
    ///
    /// # Errors
    /// When there are none or too many usercmds, or they are not consecutive.
    pub fn send_packet(
        &mut self,
        packet: &mut ClientPacket,
        perceived: Option<Perceived>,
    ) -> Result<Option<usize>, CommandsError> {
        packet.ack = self.receiver.received().newest;
        self.send_packet_as_is(packet, perceived)
    }

    /// The same with the ack that the packet has, true or not: what a client that lies can say.
    ///
    /// # Errors
    /// As [`ClientConnection::send_packet`].
    pub fn send_packet_as_is(
        &mut self,
        packet: &ClientPacket,
        perceived: Option<Perceived>,
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

    /// Says farewell, if there is anybody to say it to.
    pub fn send_disconnect(&mut self, why: Leaving) {
        if let Some(accepted) = self.accepted() {
            let farewell = seal(accepted.key, encode_disconnect(why));
            self.outgoing.push_back(farewell);
        }
        self.state = State::Over;
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    fn accepted(&self) -> Option<&Accepted> {
        match &self.state {
            State::Waiting { accepted, .. } | State::Running(accepted) => Some(accepted),
            State::Connecting(_) | State::Over => None,
        }
    }

    /// Takes a message that came in so many datagrams.
    fn handle_message(
        &mut self,
        message: &[u8],
        bytes: usize,
        datagrams: usize,
    ) -> Result<Option<ClientEvent<B>>, DecodeError> {
        let event = match self.receiver.decode(message, self.newest_command)? {
            Decoded::New(received) => {
                for notice in &received.notices {
                    if let Notice::RequestAck { request, .. } = notice {
                        self.asking.handle_answer(*request);
                    }
                }
                Some(ClientEvent::Snapshot { received, bytes, datagrams })
            }
            Decoded::Duplicate => Some(ClientEvent::Duplicate),
            Decoded::TooOld => None,
        };
        // The first frame says that the session has begun.
        if let State::Waiting { accepted, .. } = &self.state {
            self.state = State::Running(accepted.clone());
        }
        Ok(event)
    }
}
