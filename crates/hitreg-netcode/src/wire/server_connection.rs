//! The server's end of one client's connection, without I/O.

use std::collections::VecDeque;
use std::sync::Arc;

use super::datagram::{FRAGMENT_HEADER_BYTES, SEAL_BYTES, message_type, seal, unseal};
use super::notice::{Outbox, decode_notices_ack};
use super::request::decode_waiting;
use super::{
    ClientMessage, ClientReference, ClientRequest, DecodeError, EncodeError, Key, LeaveReason, MESSAGE_BYTES_MAX,
    MessageType, Notice, NoticeError, OutOfSeqWarning, PerceivedAvatar, ReadyCount, ReceivedSet, Sender, SharedStates,
    SnapshotBitCounts, Wrapping16, decode_commands, decode_disconnect, decode_request, encode_disconnect,
    encode_waiting, fragments,
};
use crate::game::{BadCells, Body, Category, FieldSchema, GameInput};
use crate::history::Frame;
use crate::packet::{ReceivedPacket, Snapshot};
use crate::push_bounded;
use crate::state::{state, value};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_log::usercmd::Input;

/// The number of usercmds for which the server keeps the client's predicted avatar.
const PERCEIVED_REMEMBERED: usize = 128;

/// The server acts on at most one request of a client in this time. Clients send them less often.
const REQUEST_EVERY: Micros = Micros::from_ms(100);

/// The server's end of one client's connection, as a state machine. The driver passes in received datagrams
/// ([`ServerConnection::handle_datagram`]) and snapshots to send ([`ServerConnection::send_snapshot`]). It sends all
/// datagrams from [`ServerConnection::poll_transmit`] in order, and calls [`ServerConnection::handle_timeout`] several
/// times a second.
#[derive(Clone, Debug)]
pub struct ServerConnection<B> {
    pub(super) key: Key,
    pub(super) sender: Sender<B>,
    pub(super) reference: ClientReference,
    arrivals: Arrivals,
    /// The number of the client's next request. A client sends one request at a time, so any other number is a repeat.
    next_request: Wrapping16,
    /// When the client's last request arrived.
    requested_at: Option<Micros>,
    outbox: Outbox,
    /// The client's predicted avatar after each of its last usercmds.
    perceived: VecDeque<(CommandSeq, PerceivedAvatar)>,
    message_bytes_max: usize,
    last_datagram_at: Micros,
    outgoing: VecDeque<Vec<u8>>,
    /// Checks the input of a usercmd that was received.
    check_input: fn(&Input) -> Result<(), BadCells>,
}

state!(ServerConnection<B: Body> {
    sender,
    reference,
    arrivals,
    next_request,
    requested_at,
    outbox,
    perceived,
    last_datagram_at,
    outgoing,
} but { key, message_bytes_max, check_input } if is_valid);

/// The meaning of a client's datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Usercmds, for the server's pipeline.
    Packet(ReceivedPacket),
    /// A new request. Answer it with [`ServerConnection::queue_notice`] and a [`Notice::RequestAck`].
    Request(ClientRequest),
    /// A repeat of a request whose answer is still on its way, or a request that the client sent too early. The client
    /// repeats the latter.
    IgnoredRequest,
    /// The client acked notices.
    NoticesAcked,
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
            next_request: Wrapping16(0),
            requested_at: None,
            outbox: Outbox::default(),
            perceived: VecDeque::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            last_datagram_at: now,
            outgoing: VecDeque::new(),
            check_input: Input::check,
        }
    }

    /// Sets the input type of the game, by which usercmds are checked. By default they have no cells of the game's own.
    pub fn accept_input<I: GameInput>(&mut self) {
        self.check_input = I::check;
    }

    /// Limits each snapshot message to `bytes`, without fragment headers. Entities that do not fit wait for the next
    /// snapshot. The default is 18,960, the most that fragments can carry.
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
                let is_due = self.requested_at.is_none_or(|last| now - last >= REQUEST_EVERY);
                if request.number == self.next_request && is_due && !self.outbox.acks_request() {
                    self.next_request = request.number.later(1);
                    self.requested_at = Some(now);
                    ServerEvent::Request(request)
                } else {
                    ServerEvent::IgnoredRequest
                }
            }
            MessageType::NoticesAck => {
                self.outbox.handle_ack(decode_notices_ack(datagram)?);
                ServerEvent::NoticesAcked
            }
            _ => ServerEvent::Packet(self.handle_commands(datagram)?),
        };
        self.last_datagram_at = now;
        Ok(event)
    }

    /// Takes the acks of a packet, which may come from a log without datagrams.
    pub(crate) fn handle_heard(&mut self, heard: &ReceivedPacket) {
        self.sender.handle_ack(&ReceivedSet { newest: heard.packet.ack, before: heard.received_before });
    }

    /// Returns the time since the last valid datagram of the client.
    pub fn silent_for(&self, now: Micros) -> Micros {
        now - self.last_datagram_at
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
        let avatar = snapshot.frame.get(self.sender.avatar);
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

    /// Queues a notice that [`ServerConnection::handle_timeout`] sends until the client acks it. The ack of a request
    /// always has room.
    ///
    /// # Errors
    /// When the notice is too long, or too many are waiting.
    pub fn queue_notice(&mut self, notice: Notice) -> Result<(), NoticeError> {
        self.outbox.push(notice)
    }

    /// Runs the timers at `now`: queues the datagram of the waiting notices when it is due.
    pub fn handle_timeout(&mut self, now: Micros) {
        self.outgoing.extend(self.outbox.poll(now).map(|datagram| seal(self.key, datagram)));
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

    fn is_valid(&self) -> bool {
        self.perceived.len() <= PERCEIVED_REMEMBERED
    }

    fn handle_commands(&mut self, datagram: &[u8]) -> Result<ReceivedPacket, UnusableDatagram> {
        let ClientMessage { packet, received_before, perceived } = decode_commands(datagram, &self.reference)?;
        for command in &packet.commands {
            (self.check_input)(&command.input)
                .map_err(|bad| DecodeError::bad("an own field of a usercmd", bad.found.into()))?;
        }
        if !self.arrivals.count(packet.number) {
            return Err(UnusableDatagram::Repeat { number: packet.number });
        }
        self.reference.number = self.arrivals.newest;
        if let Some(newest) = packet.commands.last() {
            self.reference.command = self.reference.command.max(newest.seq);
            if let Some(perceived) = perceived {
                push_bounded(&mut self.perceived, (newest.seq, perceived), PERCEIVED_REMEMBERED);
            }
        }
        let received = ReceivedPacket { packet, received_before };
        self.handle_heard(&received);
        Ok(received)
    }

    fn matches_perceived(&mut self, ack: CommandSeq, avatar: &B) -> Option<bool> {
        // The newest usercmds are at the end, and an ack is usually about one of them.
        let acked = self.perceived.iter().rfind(|(seq, _)| *seq == ack).copied();
        // Acks never go back.
        self.perceived.retain(|(seq, _)| *seq > ack);
        let (_, perceived) = acked?;
        Some(match perceived {
            PerceivedAvatar::OriginEighths(_) => perceived == PerceivedAvatar::origin(avatar.position_f32()),
            PerceivedAvatar::Hash(_) => perceived == PerceivedAvatar::hash(avatar),
        })
    }
}

/// A packet this many numbers older than the newest is too old to count.
pub(crate) const PACKETS_REMEMBERED: u32 = 256;
/// The most arrivals that count for one packet: the packet and one duplicate made by the network. A log has no room for
/// more.
const ARRIVALS_MAX: u8 = 2;

/// The arrivals of one client's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// The number of the newest packet received.
    newest: u32,
    /// The arrivals of each recent packet, newest last.
    came: VecDeque<u8>,
}

impl Arrivals {
    /// Counts an arrival. Returns false when the packet arrived too often or is too old.
    pub(super) fn count(&mut self, number: u32) -> bool {
        if number == 0 || number.saturating_add(PACKETS_REMEMBERED) <= self.newest {
            return false;
        }
        if number > self.newest {
            let new = (number - self.newest).min(PACKETS_REMEMBERED);
            self.came.extend(std::iter::repeat_n(0, new as usize));
            let excess = self.came.len().saturating_sub(PACKETS_REMEMBERED as usize);
            self.came.drain(..excess);
            self.newest = number;
        }
        let back = (self.newest - number) as usize;
        let Some(times) = self.came.len().checked_sub(back + 1).and_then(|index| self.came.get_mut(index)) else {
            return false;
        };
        let counts = *times < ARRIVALS_MAX;
        *times += u8::from(counts);
        counts
    }
}

value!(Arrivals { newest, came });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Effect;
    use crate::packet::ClientPacket;
    use crate::rink::Skater;
    use crate::wire::*;
    use glam::Vec3;
    use hitreg_log::record::OutOfSequence;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::{EntityId, Seed, SnapshotSeq, Tick};
    use hitreg_log::usercmd::Usercmd;

    #[test]
    fn a_packet_counts_at_most_twice_and_old_ones_do_not() {
        let mut arrivals = Arrivals::default();
        let mut counts = |number| arrivals.count(number);
        assert_eq!(
            [counts(3), counts(1), counts(3), counts(3), counts(1), counts(1)],
            [true, true, true, false, true, false]
        );
        assert!(!counts(0));
        for number in 4..=400 {
            assert!(counts(number), "{number}");
        }
        assert_eq!(
            [counts(144), counts(145), counts(145), counts(400), counts(400)],
            [false, true, false, true, false]
        );
    }

    /// Creates both connected ends.
    fn pair() -> (ServerConnection<Skater>, ClientConnection<Skater>) {
        let options = EndpointOptions {
            game: "rink".to_owned(),
            slots: 1,
            welcome: Vec::new(),
            unready_per_host: 1,
            secret: Key(1, 2),
        };
        let mut endpoint = Endpoint::new(options);
        let mut client = ClientConnection::new(ConnectOptions::new("rink"), 7, Micros::ZERO);
        loop {
            assert_eq!(client.handle_timeout(Micros::ZERO), None);
            let datagram = client.poll_transmit().expect("it asks until it has a place");
            match endpoint.handle_datagram(Micros::ZERO, ([10, 0, 0, 1], 1).into(), &datagram) {
                IncomingMessage::Reply(reply) => assert_eq!(client.handle_datagram(Micros::ZERO, &reply), Ok(None)),
                IncomingMessage::Joined { player, key, reply, .. } => {
                    let event = client.handle_datagram(Micros::ZERO, &reply);
                    assert!(matches!(event, Ok(Some(ClientEvent::Connected(_)))), "{event:?}");
                    return (ServerConnection::new(key, player, 1, Micros::ZERO), client);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn body(seq: u32, id: u16) -> Skater {
        Skater { origin: Vec3::new(seq as f32 * 1.37, f32::from(id) * 40.0, 36.0), alive: true, ..Skater::default() }
    }

    fn snapshot(seq: u32, bodies: u16) -> Snapshot<Skater> {
        let entities = (0..bodies).map(|id| (EntityId(id), body(seq, id))).collect();
        let frame = Frame { tick: Tick(seq), server_time: Micros(i64::from(seq) * 15_625), entities };
        Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame))
    }

    fn packet(number: u32) -> ClientPacket {
        let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
        ClientPacket { number, ack: SnapshotSeq(0), commands: vec![command] }
    }

    fn send(
        server: &mut ServerConnection<Skater>,
        snapshot: &Snapshot<Skater>,
    ) -> (QueuedSnapshot<Skater>, Vec<Vec<u8>>) {
        let sent =
            server.send_snapshot(&mut snapshot.clone(), &mut SharedStates::default()).expect("the own body has room");
        (sent, std::iter::from_fn(|| server.poll_transmit()).collect())
    }

    fn ack(client: &mut ClientConnection<Skater>, server: &mut ServerConnection<Skater>, number: u32) {
        client.send_packet(&mut packet(number), None).expect("one usercmd");
        let datagram = client.poll_transmit().expect("it was just made");
        assert!(server.handle_datagram(Micros::ZERO, &datagram).is_ok());
    }

    #[test]
    fn losing_a_baseline_loses_only_that_snapshot() {
        let (mut server, mut client) = pair();
        let (_, first) = send(&mut server, &snapshot(1, 3));
        assert_eq!(first.len(), 1, "and it is lost");
        for seq in 2..=4 {
            // A state that was never acked is no baseline. The server defines the entities again, and the client needs no
            // earlier datagram.
            let sent = snapshot(seq, 3);
            let (_, datagrams) = send(&mut server, &sent);
            let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
            let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
            assert_eq!(received.snapshot, sent);
            assert_eq!(received.definitions.len(), 3);
        }
        ack(&mut client, &mut server, 1);
        let (with_base, datagrams) = send(&mut server, &snapshot(5, 3));
        assert!(client.handle_datagram(Micros::ZERO, &first[0]).expect("late, but good").is_some());
        let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
        let Ok(Some(ClientEvent::Snapshot { received, bytes, .. })) = event else { panic!("{event:?}") };
        assert_eq!((received.snapshot.frame.entities.len(), received.definitions.len()), (3, 0));
        assert_eq!(bytes, with_base.bytes);
    }

    #[test]
    fn a_lost_fragment_loses_its_snapshot_and_sizes_count_datagrams() {
        let (mut server, mut client) = pair();
        let (sent, mut datagrams) = send(&mut server, &snapshot(1, 120));
        assert!(sent.datagrams > 1 && sent.left_out == 0);
        assert_eq!(sent.bytes, datagrams.iter().map(Vec::len).sum::<usize>());
        assert!(datagrams.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX));
        datagrams.pop();
        for datagram in &datagrams {
            assert_eq!(client.handle_datagram(Micros::ZERO, datagram), Ok(Some(ClientEvent::Fragment)));
        }
        let (sent, datagrams) = send(&mut server, &snapshot(2, 120));
        let events: Vec<_> = datagrams.iter().map(|datagram| client.handle_datagram(Micros::ZERO, datagram)).collect();
        let Some(Ok(Some(ClientEvent::Snapshot { received, bytes, datagrams }))) = events.last() else { panic!() };
        assert_eq!((received.snapshot.seq, *bytes, *datagrams), (SnapshotSeq(2), sent.bytes, sent.datagrams));
    }

    #[test]
    fn entities_without_room_wait_and_the_others_arrive() {
        let (mut server, mut client) = pair();
        server.limit_messages(600);
        let mut seen = 0;
        for seq in 1..=60 {
            let (sent, datagrams) = send(&mut server, &snapshot(seq, 30));
            assert!(sent.bytes <= 600 && datagrams.len() == 1);
            let event = client.handle_datagram(Micros::ZERO, &datagrams[0]);
            let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
            let entities = &received.snapshot.frame.entities;
            assert_eq!(entities[0], (EntityId(0), body(seq, 0)), "the own body never waits");
            assert!(entities.len() >= seen, "nobody is forgotten");
            seen = entities.len();
            ack(&mut client, &mut server, seq);
        }
        assert_eq!(seen, 30);
    }

    #[test]
    fn a_sent_snapshot_has_the_effects_and_warnings_that_its_datagrams_carry() {
        let (mut server, mut client) = pair();
        server.limit_messages(400);
        let effect = |kind| Effect { kind, entity: EntityId(0), at: Vec3::splat(f32::from(kind)), predictable: false };
        let mut carried = Vec::new();
        for (seq, effects, warnings) in [(1, 300, 8), (2, 1, 1), (3, 0, 0)] {
            let mut sent = snapshot(seq, 12);
            sent.effects = (0..effects).map(|n| effect(n as u8)).collect();
            sent.warnings = (0..warnings).map(|n| OutOfSequence { command: CommandSeq(n), difference: -1 }).collect();
            let queued = server.send_snapshot(&mut sent, &mut SharedStates::default()).expect("the own body has room");
            let datagram = server.poll_transmit().expect("it was just queued");
            let event = client.handle_datagram(Micros::ZERO, &datagram);
            let Ok(Some(ClientEvent::Snapshot { received, .. })) = event else { panic!("{event:?}") };
            assert_eq!(received.snapshot.effects, sent.effects);
            assert_eq!(received.snapshot.warnings.len(), sent.warnings.len());
            carried.push((sent.effects.len(), sent.warnings.len(), queued.left_out));
            ack(&mut client, &mut server, seq);
        }
        // Of the 300 effects, 242 wait and 44 are dropped.
        assert_eq!(carried, [(14, 8, 242 + 44), (28, 1, 215), (28, 0, 187)]);
    }

    #[test]
    fn an_avatar_is_compared_once_and_only_with_a_sent_perception() {
        let (mut server, mut client) = pair();
        for number in [1, 2] {
            let perceived = Some(PerceivedAvatar::origin(body(1, 0).origin));
            client.send_packet(&mut packet(number), perceived).expect("one usercmd");
            let datagram = client.poll_transmit().expect("it was just made");
            assert!(server.handle_datagram(Micros::ZERO, &datagram).is_ok());
        }
        let acking = |seq, command| Snapshot { ack: CommandSeq(command), ..snapshot(seq, 1) };
        let mut saw = |snapshot| send(&mut server, &snapshot).0.saw_avatar_right;
        assert_eq!(saw(acking(1, 1)), Some(true));
        assert_eq!(saw(acking(2, 2)), Some(false), "it has moved on by then");
        assert_eq!([saw(acking(3, 1)), saw(acking(4, 3))], [None, None]);
    }

    /// A client whose line loses each third datagram to the server.
    #[test]
    fn requests_run_once_and_are_always_answered() {
        let (mut server, mut client) = pair();
        let (_, first) = send(&mut server, &snapshot(1, 1));
        let chat = |text: &str| RequestKind::ChatOoc { channel: 3, text: text.to_owned() };
        assert_eq!(client.queue_request(chat("hello")), Ok(Wrapping16(0)));
        assert_eq!(client.queue_request(chat("again")), Ok(Wrapping16(1)));
        assert_eq!(client.handle_timeout(Micros::ZERO), None);
        while let Some(datagram) = client.poll_transmit() {
            assert_eq!(message_type(&datagram), Ok(MessageType::Waiting), "the session has not begun");
        }
        client.handle_datagram(Micros::ZERO, &first[0]).expect("the session begins");
        let (mut asked, mut done, mut told, mut sent) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for seq in 2..200u32 {
            let now = Micros::from_ms(i64::from(seq) * 20);
            assert_eq!(client.handle_timeout(now), None);
            while let Some(datagram) = client.poll_transmit() {
                sent += 1;
                if message_type(&datagram) == Ok(MessageType::RequestFromClient) {
                    asked.push(now);
                }
                match (sent % 3 != 1).then(|| server.handle_datagram(now, &datagram)) {
                    Some(Ok(ServerEvent::Request(ClientRequest { number, what }))) => {
                        let RequestKind::ChatOoc { channel, text } = what.clone() else { panic!("{what:?}") };
                        done.push(what);
                        server.queue_notice(Notice::ChatOoc { sender: 1, channel, text }).expect("room");
                        server.queue_notice(Notice::RequestAck { request: number, answer: Vec::new() }).expect("room");
                    }
                    Some(Ok(ServerEvent::IgnoredRequest | ServerEvent::NoticesAcked)) | None => {}
                    other => panic!("{other:?}"),
                }
            }
            server.handle_timeout(now);
            while let Some(datagram) = server.poll_transmit() {
                let event = client.handle_datagram(now, &datagram);
                let Ok(Some(ClientEvent::Notices(notices))) = event else { panic!("{event:?}") };
                told.extend(notices);
            }
        }
        assert_eq!(done, [chat("hello"), chat("again")]);
        let said = |text: &str| Notice::ChatOoc { sender: 1, channel: 3, text: text.to_owned() };
        let answer = |number| Notice::RequestAck { request: Wrapping16(number), answer: Vec::new() };
        assert_eq!(told, [said("hello"), answer(0), said("again"), answer(1)]);
        // Each request was lost once and repeated after a quarter of a second.
        assert_eq!(asked.len(), 4, "{asked:?}");
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] == Micros::from_ms(260)), "{asked:?}");
        assert_eq!(client.handle_timeout(Micros::from_s(4)), None);
        assert_eq!(client.poll_transmit(), None, "nothing is asked again that is answered");
    }

    fn notice(i: u16) -> Notice {
        let text = "ö".repeat(usize::from(i) % 64);
        match i % 3 {
            0 => Notice::RequestAck { request: Wrapping16(i), answer: vec![i as u8; usize::from(i) % 128] },
            1 => Notice::ChatOoc { sender: i, channel: i as u8, text },
            _ => Notice::ChatIc { entity: EntityId(i), style: 3, language: i as u8, text },
        }
    }

    /// Sends the server's notices, and the client's acks, over a line that loses this share of them.
    fn exchange(
        (server, client): (&mut ServerConnection<Skater>, &mut ClientConnection<Skater>),
        now: Micros,
        mut is_lost: impl FnMut() -> bool,
    ) -> Vec<Notice> {
        let mut heard = Vec::new();
        server.handle_timeout(now);
        while let Some(datagram) = server.poll_transmit() {
            assert!(datagram.len() <= DATAGRAM_BYTES_MAX);
            if is_lost() {
                continue;
            }
            let event = client.handle_datagram(now, &datagram);
            let Ok(Some(ClientEvent::Notices(notices))) = event else { panic!("{event:?}") };
            heard.extend(notices);
        }
        while let Some(datagram) = client.poll_transmit() {
            if !is_lost() {
                assert_eq!(server.handle_datagram(now, &datagram), Ok(ServerEvent::NoticesAcked));
            }
        }
        heard
    }

    #[test]
    fn notices_arrive_once_and_in_order_despite_losses() {
        for loss in [0.0, 0.3, 0.7] {
            let (mut server, mut client) = pair();
            let mut rng = Rng::new(Seed(1), 5);
            let (mut sent, mut heard) = (0, Vec::new());
            for now in (0..4_000).map(|step| Micros::from_ms(50 * step)) {
                if sent < 300 && server.queue_notice(notice(sent)).is_ok() {
                    sent += 1;
                }
                heard.extend(exchange((&mut server, &mut client), now, || rng.chance(loss)));
            }
            assert_eq!(sent, 300, "loss {loss}");
            assert_eq!(heard, (0..sent).map(notice).collect::<Vec<_>>(), "loss {loss}");
        }
    }

    #[test]
    fn notice_numbers_wrap() {
        let (mut server, mut client) = pair();
        let mut heard = 0;
        for now in (0..1_400).map(Micros::from_ms) {
            for _ in 0..50 {
                let said = Notice::ChatOoc { sender: 0, channel: 0, text: String::new() };
                server.queue_notice(said).expect("all are acked");
            }
            heard += exchange((&mut server, &mut client), now, || false).len();
        }
        assert_eq!(heard, 1_400 * 50);
    }

    #[test]
    fn too_long_or_too_many_notices_are_refused_but_an_ack_has_room() {
        let (mut server, _) = pair();
        let said = |bytes: usize| Notice::ChatOoc { sender: 1, channel: 0, text: "x".repeat(bytes) };
        assert_eq!(server.queue_notice(said(TEXT_BYTES_MAX + 1)), Err(NoticeError::TooLong(TEXT_BYTES_MAX + 1)));
        for _ in 0..NOTICES_MAX {
            assert_eq!(server.queue_notice(said(3)), Ok(()));
        }
        assert_eq!(server.queue_notice(said(3)), Err(NoticeError::Full));
        assert_eq!(server.queue_notice(notice(0)), Ok(()));
        assert_eq!(server.queue_notice(notice(0)), Err(NoticeError::Full));
    }

    /// A client that sends a request each 10 ms and acks no notice in the first second.
    #[test]
    fn requests_that_come_too_early_are_not_acted_on() {
        let (mut server, mut client) = pair();
        let (key, mut number, mut acted) = (server.key, Wrapping16(0), Vec::new());
        for now in (0..200).map(|step| Micros::from_ms(10 * step)) {
            let what = RequestKind::Game { bytes: Vec::new() };
            let request = seal(key, encode_request(&ClientRequest { number, what }));
            if let Ok(ServerEvent::Request(request)) = server.handle_datagram(now, &request) {
                server.queue_notice(Notice::RequestAck { request: request.number, answer: Vec::new() }).expect("room");
                number = number.later(1);
                acted.push(now);
            }
            exchange((&mut server, &mut client), now, || now < Micros::from_s(1));
        }
        // The second request had to wait for the ack of the first answer, and the others for 100 ms each.
        assert_eq!(acted.len(), 11, "{acted:?}");
        assert!(acted[1] > Micros::from_s(1) && acted[1] < Micros::from_ms(1_300), "{acted:?}");
        assert!(acted.windows(2).all(|pair| pair[1] - pair[0] >= REQUEST_EVERY), "{acted:?}");
    }

    #[test]
    fn requests_of_a_client_have_a_limit() {
        let (_, mut client) = pair();
        let what = || RequestKind::Game { bytes: Vec::new() };
        let taken = (0..100).map_while(|_| client.queue_request(what()).ok()).count();
        assert_eq!((taken, client.queue_request(what())), (REQUESTS_MAX, Err(TooManyRequests)));
    }

    /// Bodies that appear, move, rest and disappear, with effects and warnings. Messages go in datagrams and in
    /// fragments, also without room for all entities.
    #[test]
    fn bit_counts_add_up_to_the_datagrams() {
        let (mut server, mut client) = pair();
        server.categorize(|_, own, field| match (own, &*field.name) {
            (true, _) => Category::Controlled,
            (false, "origin.x") => Category::Simulated,
            (false, "origin.y") => Category::Constant,
            (false, _) => Category::Authoritative,
        });
        let (mut all, mut constant_later) = (SnapshotBitCounts::default(), 0);
        for seq in 1..200u32 {
            let mut sent = snapshot(seq, [3, 120, 40][(seq / 50) as usize % 3]);
            sent.choked = (seq % 7 == 0).into();
            let effect =
                |n: u32| Effect { kind: 1, entity: EntityId(n as u16), at: Vec3::splat(n as f32), predictable: false };
            sent.effects = (0..seq % 3).map(effect).collect();
            let warning = OutOfSequence { command: CommandSeq(seq), difference: 40 };
            sent.warnings = vec![warning; usize::from(seq % 11 == 0)];
            server.limit_messages(if seq % 5 == 0 { 300 } else { MESSAGE_BYTES_MAX });
            let (sent, datagrams) = send(&mut server, &sent);
            assert_eq!(sent.bytes, datagrams.iter().map(Vec::len).sum::<usize>());
            assert_eq!(sent.bit_counts.bits(), 8 * sent.bytes as u64, "{seq}: {:?}", sent.bit_counts);
            all.add(&sent.bit_counts);
            if seq > 180 {
                constant_later += sent.bit_counts.of(Category::Constant);
            }
            for datagram in &datagrams {
                client.handle_datagram(Micros::ZERO, datagram).expect("a good datagram");
            }
            ack(&mut client, &mut server, seq);
        }
        let SnapshotBitCounts { values, naming, events, headers } = all;
        assert!([naming, events, headers].iter().all(|bits| *bits > 1_000), "{all:?}");
        for category in Category::ALL {
            use Category::{Authoritative, Constant, Controlled, Simulated};
            let is_used = [Authoritative, Constant, Controlled, Simulated].contains(&category);
            assert_eq!(values[category as usize] > 0, is_used, "{category:?}");
        }
        assert_eq!(constant_later, 0, "it was acked long before");
    }
}
