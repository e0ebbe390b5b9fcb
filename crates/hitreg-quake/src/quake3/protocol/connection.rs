//! Decodes one client's connection as an observer between client and server. It keeps the state that later datagrams of
//! either direction refer to, and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::HuffmanReader;
use super::config_strings::ConfigStringChanges;
use super::delta::Quake3Usercmd;
use super::message::{Gamestate, MessageError, from_server, read_client_message, read_gamestate};
use super::netchan::{Channel, DatagramError, NetchanDatagram};
use super::snapshot::{Quake3Snapshot, SnapshotHistory};
use hitreg_netcode::protocol::Direction;

/// Number of server commands to keep until they are acked.
const KEPT_COMMANDS: usize = 64;

/// Why a datagram cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndecodedReason {
    /// Its header or fragment is invalid.
    #[error("{0}")]
    Datagram(#[from] DatagramError),
    /// Its message is invalid.
    #[error("message {sequence}: {source}")]
    Message {
        /// Number of the message.
        sequence: u32,
        /// The cause.
        source: MessageError,
    },
}

/// The content of a datagram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DecodedDatagram {
    /// A datagram outside of any connection, and whether it begins a new one.
    OutOfBand { begins: bool },
    /// A fragment of an incomplete message.
    Part,
    /// An overtaken or duplicated message.
    Stale,
    /// Usercmds, oldest first, with the newest message that the client had received.
    Input { sequence: u32, message_ack: u32, commands: Vec<Quake3Usercmd> },
    /// A message from the server. `gamestate` is present if it `enters` a level, or if a config string changes.
    Said { enters: bool, gamestate: Option<Arc<Gamestate>>, snapshot: Option<Arc<Quake3Snapshot>> },
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Quake3Connection {
    up: Channel,
    down: Channel,
    challenge: u32,
    gamestate: Option<Arc<Gamestate>>,
    /// Number of the newest server command, and the newest commands.
    last_command: i32,
    commands: VecDeque<Vec<u8>>,
    config_strings: ConfigStringChanges,
    snapshots: SnapshotHistory,
}

impl Default for Quake3Connection {
    fn default() -> Quake3Connection {
        Quake3Connection {
            up: Channel::default(),
            down: Channel::default(),
            challenge: 0,
            gamestate: None,
            last_command: 0,
            // Command 0 is empty.
            commands: VecDeque::from([Vec::new()]),
            config_strings: ConfigStringChanges::default(),
            snapshots: SnapshotHistory::default(),
        }
    }
}

impl Quake3Connection {
    /// Decodes a datagram.
    pub(crate) fn take(&mut self, direction: Direction, datagram: &[u8]) -> Result<DecodedDatagram, UndecodedReason> {
        let channel = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        match channel.take(direction, datagram, self.challenge)? {
            NetchanDatagram::OutOfBand(text) => Ok(DecodedDatagram::OutOfBand { begins: self.hear(direction, text) }),
            NetchanDatagram::Incomplete => Ok(DecodedDatagram::Part),
            NetchanDatagram::Stale => Ok(DecodedDatagram::Stale),
            NetchanDatagram::Message { sequence, bytes } => {
                let decoded = match direction {
                    Direction::Up => self.client_said(sequence, &bytes),
                    Direction::Down => self.server_said(sequence, &bytes),
                };
                decoded.map_err(|source| UndecodedReason::Message { sequence, source })
            }
        }
    }

    /// Returns whether the server has given a challenge, or any message was decoded.
    pub(crate) fn has_begun(&self) -> bool {
        self.challenge != 0 || self.up.has_begun() || self.down.has_begun()
    }

    /// Decodes a server message without its datagram, as in a demo.
    pub(crate) fn take_message(&mut self, sequence: u32, bytes: &[u8]) -> Result<DecodedDatagram, UndecodedReason> {
        self.server_said(sequence, bytes).map_err(|source| UndecodedReason::Message { sequence, source })
    }

    /// Processes text outside of a connection. Returns whether it begins a new connection: a new challenge does.
    fn hear(&mut self, direction: Direction, text: &[u8]) -> bool {
        let answer = text.strip_prefix(b"challengeResponse ").filter(|_| direction == Direction::Down);
        let number = answer.and_then(|rest| std::str::from_utf8(rest).ok()?.split_whitespace().next()?.parse().ok());
        let challenge = number.map(|number: i32| number as u32).filter(|challenge| *challenge != self.challenge);
        if let Some(challenge) = challenge {
            *self = Quake3Connection { challenge, ..Quake3Connection::default() };
        }
        challenge.is_some()
    }

    fn client_said(&mut self, sequence: u32, bytes: &[u8]) -> Result<DecodedDatagram, MessageError> {
        let command = |number: i32| {
            let back = usize::try_from(self.last_command.checked_sub(number)?).ok()?;
            self.commands.get(self.commands.len().checked_sub(back + 1)?).map(Vec::as_slice)
        };
        let feed = self.gamestate.as_ref().map(|gamestate| gamestate.checksum_feed);
        let (ack, commands) = read_client_message(bytes, feed, command)?;
        let out_of_bounds = |_| MessageError::Bounds { what: "an acked message,", found: i64::from(ack) };
        let message_ack = u32::try_from(ack).map_err(out_of_bounds)?;
        Ok(DecodedDatagram::Input { sequence, message_ack, commands })
    }

    fn server_said(&mut self, sequence: u32, bytes: &[u8]) -> Result<DecodedDatagram, MessageError> {
        let bits = &mut HuffmanReader::new(bytes);
        let _reliable_ack = bits.long()?;
        let (mut enters, mut is_changed, mut snapshot) = (false, false, None);
        loop {
            match bits.byte()? {
                from_server::NOTHING => {}
                from_server::END => {
                    let gamestate = self.gamestate.clone().filter(|_| enters || is_changed);
                    return Ok(DecodedDatagram::Said { enters, gamestate, snapshot });
                }
                from_server::COMMAND => {
                    let number = bits.long()?;
                    let command = bits.string()?;
                    // The server repeats commands until they are acked.
                    if number > self.last_command {
                        is_changed |= self.config_strings.follow(&command, self.gamestate.as_mut());
                        self.keep_command(number, command);
                    }
                }
                from_server::GAMESTATE => {
                    let (last, decoded) = read_gamestate(bits)?;
                    if last > self.last_command {
                        self.last_command = last;
                        self.commands.clear();
                    }
                    self.snapshots.clear();
                    self.gamestate = Some(Arc::new(decoded));
                    enters = true;
                }
                from_server::SNAPSHOT => {
                    // A client outside of any level receives valid snapshots without content.
                    let none = Gamestate::default();
                    let known = self.gamestate.as_deref().unwrap_or(&none);
                    snapshot = Some(self.snapshots.read(bits, sequence, known)?);
                }
                kind => return Err(MessageError::Kind(kind)),
            }
        }
    }

    /// Keeps a server command. After a missing number, all earlier commands are dropped.
    fn keep_command(&mut self, number: i32, command: Vec<u8>) {
        if self.last_command.checked_add(1) != Some(number) {
            self.commands.clear();
        }
        if self.commands.len() == KEPT_COMMANDS {
            self.commands.pop_front();
        }
        self.commands.push_back(command);
        self.last_command = number;
    }
}
