//! The server's end of one client's connection.

use std::collections::VecDeque;

use super::arrivals::Arrivals;
use super::requests::Answering;
use crate::game::{Body, Category, Field};
use crate::packet::{HeardPacket, Snapshot};
use crate::wire::ReceivedSet;
use crate::wire::fragment::FRAGMENT_HEADER_BYTES;
use crate::wire::header::{SEAL_BYTES, message_type, seal, unseal};
use crate::wire::{
    ClientReference, DecodeError, EncodeError, Key, Leaving, MESSAGE_BYTES_MAX, MessageType, Notice, NoticeError,
    OutOfSeqWarning, Perceived, Request, Sender, Told, Waiting, Wrapping16, decode_commands, decode_disconnect,
    decode_request, decode_waiting, encode_disconnect, encode_waiting, fragments,
};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

/// For how many usercmds it is remembered where their clients saw their avatars.
const PERCEIVED_REMEMBERED: usize = 128;

/// One client, as the server's end of its connection knows it. A state machine: hand in what came
/// ([`ServerConnection::handle_datagram`]) and what is to go ([`ServerConnection::send_snapshot`]), then send all that
/// [`ServerConnection::poll_transmit`] gives, in its order.
#[derive(Clone, Debug)]
pub struct ServerConnection<B> {
    key: Key,
    sender: Sender<B>,
    reference: ClientReference,
    arrivals: Arrivals,
    answering: Answering,
    /// Where the client says that its avatar was after each of its last usercmds.
    perceived: VecDeque<(CommandSeq, Perceived)>,
    message_bytes_max: usize,
    heard_at: Micros,
    outgoing: VecDeque<Vec<u8>>,
}

/// What a client's datagram says.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Usercmds, for the server's pipeline.
    Packet(HeardPacket),
    /// The client asks for something for the first time: [`ServerConnection::tell`] it a
    /// [`Notice::RequestAck`].
    Request(Request),
    /// The client asks for it again, as the answer is on its way yet.
    AskedAgain,
    /// The client waits for the session to begin.
    Waiting(Waiting),
    /// The client has left.
    Left(Leaving),
}

/// A datagram that says nothing to act on. Its sender is not told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is not what the client would send.
    #[error(transparent)]
    NotOurs(#[from] DecodeError),
    /// The packet came too often already, or so late that nobody knows how often.
    #[error("packet {number} came too often or too late")]
    Repeat {
        /// The packet's number.
        number: u32,
    },
}

/// A snapshot that was made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// How many bytes its datagrams have, headers and seals included.
    pub bytes: usize,
    /// How many datagrams it takes.
    pub datagrams: usize,
    /// False when there was no room for all that is new, and some of it waits for the next snapshot.
    pub is_whole: bool,
    /// Whether the client saw its avatar where the server had it after the usercmd that the snapshot acks, each told once.
    /// `None` where the client has not said.
    pub saw_avatar_right: Option<bool>,
    /// What the bits of its datagrams are for.
    pub told: Told,
}

impl<B: Body> ServerConnection<B> {
    /// The connection of `player`, of a session of `players`, accepted at `now` with this key.
    pub fn new(key: Key, player: PlayerId, players: u16, now: Micros) -> ServerConnection<B> {
        ServerConnection {
            key,
            sender: Sender::new(player, players),
            reference: ClientReference::default(),
            arrivals: Arrivals::default(),
            answering: Answering::default(),
            perceived: VecDeque::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            heard_at: now,
            outgoing: VecDeque::new(),
        }
    }

    /// Sends snapshots in at most so many bytes each, fragments' headers not counted. What does not fit waits for the next
    /// one. Without this it is `MESSAGE_BYTES_MAX`.
    pub fn limit_messages(&mut self, bytes: usize) {
        self.message_bytes_max = bytes.min(MESSAGE_BYTES_MAX);
    }

    /// Counts what snapshots' bits are for by these categories; without them a variable has the one that follows from its scope.
    pub fn categorize(&mut self, category: fn(&B, bool, &Field) -> Category) {
        self.sender.categorize(category);
    }

    /// Takes a datagram that came from the client's address at `now`.
    ///
    /// # Errors
    /// When it is not the client's, not what it would send, or a repeat. Nothing has changed then.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) -> Result<ServerEvent, Unusable> {
        let kind = message_type(datagram)?;
        let datagram = unseal(self.key, datagram)?;
        let event = match kind {
            MessageType::Waiting => ServerEvent::Waiting(decode_waiting(datagram)?),
            MessageType::Disconnect => ServerEvent::Left(decode_disconnect(datagram)?),
            MessageType::RequestFromClient => {
                let request = decode_request(datagram)?;
                let is_new = self.answering.is_new(request.number);
                if is_new { ServerEvent::Request(request) } else { ServerEvent::AskedAgain }
            }
            _ => ServerEvent::Packet(self.handle_commands(datagram)?),
        };
        self.heard_at = now;
        Ok(event)
    }

    /// Takes what a packet says of snapshots, where there is no datagram of it: a log has it as it was heard.
    pub(crate) fn handle_heard(&mut self, heard: &HeardPacket) {
        self.sender.handle_ack(&ReceivedSet { newest: heard.packet.ack, before: heard.received_before });
    }

    /// How long ago the client was last heard.
    pub fn silent_for(&self, now: Micros) -> Micros {
        now - self.heard_at
    }

    /// Makes the datagrams of a snapshot ready.
    ///
    /// # Errors
    /// When there is no room for the client's own body, or the snapshot is not newer than the last. Then it is not sent:
    /// to the client it is as if it were lost.
    pub fn send_snapshot(&mut self, snapshot: &Snapshot<B>) -> Result<Sent, EncodeError> {
        for warning in &snapshot.warnings {
            let index = Wrapping16::of(warning.command.0);
            self.sender.warn(OutOfSeqWarning { index, difference: warning.difference });
        }
        let avatar = snapshot.frame.get(self.sender.avatar());
        let saw_avatar_right = avatar.and_then(|avatar| self.saw(snapshot.ack, avatar));
        let encoded = self.sender.encode(snapshot, snapshot.helper_ms, self.message_bytes_max)?;
        self.reference.sent = snapshot.seq;
        let is_whole = encoded.deferred.is_empty() && encoded.warnings_dropped == 0;
        // The sender has kept to the most that fragments carry.
        let datagrams = fragments(snapshot.seq, encoded.datagram).unwrap_or_default();
        let fragments = if datagrams.len() > 1 { datagrams.len() * FRAGMENT_HEADER_BYTES } else { 0 };
        let mut told = encoded.told;
        told.headers += 8 * (fragments + datagrams.len() * SEAL_BYTES) as u32;
        let sent = Sent {
            bytes: datagrams.iter().map(|datagram| datagram.len() + SEAL_BYTES).sum(),
            datagrams: datagrams.len(),
            is_whole,
            saw_avatar_right,
            told,
        };
        let key = self.key;
        self.outgoing.extend(datagrams.into_iter().map(|datagram| seal(key, datagram)));
        Ok(sent)
    }

    /// Tells the client something that it is to hear for certain, with its next snapshots.
    ///
    /// # Errors
    /// When it is too long, or too many wait already.
    pub fn tell(&mut self, notice: Notice) -> Result<(), NoticeError> {
        self.sender.tell(notice)
    }

    /// Tells a client that waits for the session to begin how many are ready.
    pub fn send_waiting(&mut self, waiting: Waiting) {
        self.outgoing.push_back(seal(self.key, encode_waiting(waiting)));
    }

    /// Says farewell.
    pub fn send_disconnect(&mut self, why: Leaving) {
        self.outgoing.push_back(seal(self.key, encode_disconnect(why)));
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    fn handle_commands(&mut self, datagram: &[u8]) -> Result<HeardPacket, Unusable> {
        let message = decode_commands(datagram, &self.reference)?;
        let (received, packet) = (message.received(), message.packet);
        let received_before = received.before;
        if !self.arrivals.count(packet.number) {
            return Err(Unusable::Repeat { number: packet.number });
        }
        self.reference.number = self.arrivals.newest();
        if let Some(newest) = packet.commands.last() {
            self.reference.command = self.reference.command.max(newest.seq);
            if let Some(perceived) = message.perceived {
                self.remember(newest.seq, perceived);
            }
        }
        self.sender.handle_ack(&received);
        Ok(HeardPacket { packet, received_before })
    }

    fn remember(&mut self, seq: CommandSeq, perceived: Perceived) {
        if self.perceived.len() == PERCEIVED_REMEMBERED {
            self.perceived.pop_front();
        }
        self.perceived.push_back((seq, perceived));
    }

    fn saw(&mut self, ack: CommandSeq, avatar: &B) -> Option<bool> {
        // The newest usercmds stand last, and an ack is about one of them.
        let place = self.perceived.iter().rposition(|(seq, _)| *seq == ack)?;
        let (_, perceived) = self.perceived.remove(place)?;
        Some(match perceived {
            Perceived::OriginEighths(_) => perceived == Perceived::origin(avatar.origin()),
            Perceived::Hash(_) => perceived == Perceived::hash(avatar),
        })
    }
}
