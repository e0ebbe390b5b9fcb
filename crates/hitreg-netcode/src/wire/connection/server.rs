//! The server's end of one client's connection.

use std::collections::VecDeque;
use std::sync::Arc;

use super::arrivals::Arrivals;
use super::requests::RequestReceiver;
use crate::bounded::push_bounded;
use crate::game::{BadCells, Body, Category, FieldSchema, GameInput};
use crate::history::Frame;
use crate::packet::{HeardPacket, Snapshot};
use crate::state::state;
use crate::wire::ReceivedSet;
use crate::wire::fragment::FRAGMENT_HEADER_BYTES;
use crate::wire::header::{SEAL_BYTES, message_type, seal, unseal};
use crate::wire::transit::TransitContext;
use crate::wire::{
    ClientReference, ClientRequest, DecodeError, EncodeError, Key, LeaveReason, MESSAGE_BYTES_MAX, MessageType, Notice,
    NoticeError, OutOfSeqWarning, PerceivedAvatar, ReadyCount, Sender, SharedStates, SnapshotBitCounts, Wrapping16,
    decode_commands, decode_disconnect, decode_request, decode_waiting, encode_disconnect, encode_waiting, fragments,
};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_log::usercmd::Input;

/// The number of usercmds for which the server keeps the client's predicted avatar.
const PERCEIVED_REMEMBERED: usize = 128;

/// The server's end of one client's connection, as a state machine. The driver passes in received datagrams
/// ([`ServerConnection::handle_datagram`]) and snapshots to send ([`ServerConnection::send_snapshot`]). It sends all
/// datagrams from [`ServerConnection::poll_transmit`] in order.
#[derive(Clone, Debug)]
pub struct ServerConnection<B> {
    key: Key,
    sender: Sender<B>,
    reference: ClientReference,
    arrivals: Arrivals,
    answering: RequestReceiver,
    /// The client's predicted avatar after each of its last usercmds.
    perceived: VecDeque<(CommandSeq, PerceivedAvatar)>,
    message_bytes_max: usize,
    heard_at: Micros,
    outgoing: VecDeque<Vec<u8>>,
    /// Checks the input of a usercmd that was received.
    check_input: fn(&Input) -> Result<(), BadCells>,
}

state!(ServerConnection<B: Body> {
    sender,
    reference,
    arrivals,
    answering,
    perceived,
    heard_at,
    outgoing,
} but { key, message_bytes_max, check_input } if is_valid);

/// The meaning of a client's datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Usercmds, for the server's pipeline.
    Packet(HeardPacket),
    /// A new request. Answer it with [`ServerConnection::tell`] and a [`Notice::RequestAck`].
    Request(ClientRequest),
    /// A repeat of a request whose answer is still on its way.
    AskedAgain,
    /// The client waits for the session to begin.
    Waiting(ReadyCount),
    /// The client has left.
    Left(LeaveReason),
}

/// The reasons for ignoring a datagram. The sender gets no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableDatagram {
    /// The datagram is not authentic or not valid.
    #[error(transparent)]
    NotOurs(#[from] DecodeError),
    /// The packet arrived too often, or is too old to count its arrivals.
    #[error("packet {number} came too often or too late")]
    Repeat {
        /// The number of the packet.
        number: u32,
    },
}

/// A snapshot that is ready to send.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedSnapshot<B> {
    /// The total size of its datagrams in bytes, including headers and seals.
    pub bytes: usize,
    /// The number of datagrams.
    pub datagrams: usize,
    /// The number of changed entities, effects and warnings without room. Entities and up to 256 effects wait for the
    /// next snapshot.
    pub left_out: usize,
    /// The frame that the client has once the datagrams arrive, if it lost no earlier snapshot. Entities without room
    /// are as they were sent last.
    pub frame: Arc<Frame<B>>,
    /// Whether the client's prediction matched the server's avatar after the acked usercmd. Reported once per usercmd;
    /// `None` when the client did not report a prediction.
    pub saw_avatar_right: Option<bool>,
    /// The bits of its datagrams by purpose.
    pub bit_counts: SnapshotBitCounts,
}

impl<B: Body> ServerConnection<B> {
    /// Creates the connection of `player` in a session of `players` players, accepted at `now` with `key`.
    pub fn new(key: Key, player: PlayerId, players: u16, now: Micros) -> ServerConnection<B> {
        ServerConnection {
            key,
            sender: Sender::new(player, players),
            reference: ClientReference::default(),
            arrivals: Arrivals::default(),
            answering: RequestReceiver::default(),
            perceived: VecDeque::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            heard_at: now,
            outgoing: VecDeque::new(),
            check_input: Input::check,
        }
    }

    /// Sets the input type of the game, by which usercmds are checked. By default they have no cells of the game's own.
    pub fn accept_input<I: GameInput>(&mut self) {
        self.check_input = I::check;
    }

    /// Limits each snapshot message to `bytes`, without fragment headers. Entities that do not fit wait for the next
    /// snapshot. The default is `MESSAGE_BYTES_MAX`.
    pub fn limit_messages(&mut self, bytes: usize) {
        self.message_bytes_max = bytes.min(MESSAGE_BYTES_MAX);
    }

    /// Sets the categories used to count bits. By default, a field's category follows from its scope.
    pub fn categorize(&mut self, category: fn(&B, bool, &FieldSchema) -> Category) {
        self.sender.categorize(category);
    }

    /// Takes a datagram that arrived from the client's address at `now`.
    ///
    /// # Errors
    /// When the datagram is not authentic, not valid, or a repeat. The connection is then unchanged.
    pub fn handle_datagram(&mut self, now: Micros, datagram: &[u8]) -> Result<ServerEvent, UnusableDatagram> {
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

    /// Takes the acks of a packet from a log, which has no datagram for it.
    pub(crate) fn handle_heard(&mut self, heard: &HeardPacket) {
        self.sender.handle_ack(&ReceivedSet { newest: heard.packet.ack, before: heard.received_before });
    }

    /// Returns the time since the client was last heard.
    pub fn silent_for(&self, now: Micros) -> Micros {
        now - self.heard_at
    }

    /// Queues the datagrams of a snapshot, and sets its effects and warnings to those that they carry. Earlier effects
    /// may be among them. `states` holds what the connections of a server remember; share it among all of them.
    ///
    /// # Errors
    /// When the client's own body does not fit, or the snapshot is not newer than the last. The snapshot is then not
    /// sent, and counts as lost for the client.
    pub fn send_snapshot(
        &mut self,
        snapshot: &mut Snapshot<B>,
        states: &mut SharedStates<B>,
    ) -> Result<QueuedSnapshot<B>, EncodeError> {
        for warning in &snapshot.warnings {
            let index = Wrapping16::of(warning.command.0);
            self.sender.warn(OutOfSeqWarning { index, difference: warning.difference });
        }
        let avatar = snapshot.frame.get(self.sender.avatar());
        let saw_avatar_right = avatar.and_then(|avatar| self.matches_perceived(snapshot.ack, avatar));
        let encoded = self.sender.encode(snapshot, self.message_bytes_max, states)?;
        self.reference.sent = snapshot.seq;
        snapshot.effects = encoded.effects;
        snapshot.warnings.truncate(snapshot.warnings.len().saturating_sub(encoded.warnings_dropped));
        // The sender respects the limit of fragments per message, so fragmenting succeeds.
        let datagrams = fragments(snapshot.seq, encoded.datagram).unwrap_or_default();
        let fragments = if datagrams.len() > 1 { datagrams.len() * FRAGMENT_HEADER_BYTES } else { 0 };
        let mut bit_counts = encoded.bit_counts;
        bit_counts.headers += 8 * (fragments + datagrams.len() * SEAL_BYTES) as u32;
        let sent = QueuedSnapshot {
            bytes: datagrams.iter().map(|datagram| datagram.len() + SEAL_BYTES).sum(),
            datagrams: datagrams.len(),
            left_out: encoded.deferred.len()
                + encoded.effects_waiting
                + encoded.effects_dropped
                + encoded.warnings_dropped,
            frame: encoded.frame,
            saw_avatar_right,
            bit_counts,
        };
        let key = self.key;
        self.outgoing.extend(datagrams.into_iter().map(|datagram| seal(key, datagram)));
        Ok(sent)
    }

    /// Queues a notice that goes with the next snapshots until the client acks it.
    ///
    /// # Errors
    /// When the notice is too long, or too many are waiting.
    pub fn tell(&mut self, notice: Notice) -> Result<(), NoticeError> {
        self.sender.tell(notice)
    }

    /// Reports to a waiting client how many players are ready.
    pub fn send_waiting(&mut self, waiting: ReadyCount) {
        self.outgoing.push_back(seal(self.key, encode_waiting(waiting)));
    }

    /// Queues a farewell.
    pub fn send_disconnect(&mut self, why: LeaveReason) {
        self.outgoing.push_back(seal(self.key, encode_disconnect(why)));
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// Returns how to save the connection's datagrams.
    pub(crate) fn transit(&self) -> TransitContext<'_, B> {
        let (layout, players) = self.sender.layout();
        let player = PlayerId(self.sender.avatar().0);
        TransitContext { key: self.key, layout, player, players, reference: self.reference }
    }

    fn is_valid(&self) -> bool {
        self.perceived.len() <= PERCEIVED_REMEMBERED
    }

    fn handle_commands(&mut self, datagram: &[u8]) -> Result<HeardPacket, UnusableDatagram> {
        let message = decode_commands(datagram, &self.reference)?;
        for command in &message.packet.commands {
            (self.check_input)(&command.input)
                .map_err(|bad| DecodeError::bad("an own field of a usercmd", bad.found.into()))?;
        }
        let (received, packet) = (message.received(), message.packet);
        let received_before = received.before;
        if !self.arrivals.count(packet.number) {
            return Err(UnusableDatagram::Repeat { number: packet.number });
        }
        self.reference.number = self.arrivals.newest();
        if let Some(newest) = packet.commands.last() {
            self.reference.command = self.reference.command.max(newest.seq);
            if let Some(perceived) = message.perceived {
                push_bounded(&mut self.perceived, (newest.seq, perceived), PERCEIVED_REMEMBERED);
            }
        }
        self.sender.handle_ack(&received);
        Ok(HeardPacket { packet, received_before })
    }

    fn matches_perceived(&mut self, ack: CommandSeq, avatar: &B) -> Option<bool> {
        // The newest usercmds are at the end, and an ack is usually about one of them.
        let acked = self.perceived.iter().rfind(|(seq, _)| *seq == ack).copied();
        // Acks never go back.
        self.perceived.retain(|(seq, _)| *seq > ack);
        let (_, perceived) = acked?;
        Some(match perceived {
            PerceivedAvatar::OriginEighths(_) => perceived == PerceivedAvatar::origin(avatar.origin()),
            PerceivedAvatar::Hash(_) => perceived == PerceivedAvatar::hash(avatar),
        })
    }
}
