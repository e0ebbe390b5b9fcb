//! Protocol 71 of Quake III's engine, decoded by an observer between client and server: datagrams and their fragments, bits,
//! deltas and messages. It keeps the state that later datagrams of either direction refer to, and nothing else. It follows
//! the public ioquake3 sources (here net_chan.c, sv_init.c and cl_cgame.c; each other file names its source).

mod bits;
mod message;
mod states;

use std::collections::VecDeque;
use std::sync::Arc;

use hitreg_netcode::protocol::Direction;
use message::{CONFIG_STRINGS_MAX, from_server, read_client_message, read_gamestate, read_snapshot};

pub use bits::BitReadError;
pub use message::MessageError;
pub(crate) use message::{Gamestate, Quake3Snapshot};
pub(crate) use states::{
    ENTITY, ENTITY_CELLS, EntityCells, FieldEncoding, LIST_LENGTH, PLAYER, PLAYER_CELLS, PLAYER_LISTS, PlayerCells,
    Quake3Usercmd, entity, is_same, player, player_list,
};
#[cfg(test)]
pub(crate) use {
    bits::{HuffmanReader, encode},
    states::{NO_ENTITY, NetField, hash_of_command, read_entity, read_player, read_usercmd},
};

/// Number of server commands to keep until they are acked.
const KEPT_COMMANDS: usize = 64;

/// Why a datagram cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndecodedReason {
    /// It is shorter than its header.
    #[error("it ends within its header")]
    Short,
    /// Its checksum does not match the connection's challenge.
    #[error(
        "its checksum is not that of the connection's challenge: did its client connect before the recording began?"
    )]
    Checksum,
    /// A fragment does not follow the previous one.
    #[error("a fragment at byte {start}, where {expected} was due")]
    Fragment {
        /// Offset of the fragment.
        start: usize,
        /// Expected offset.
        expected: usize,
    },
    /// The fragments exceed the longest message.
    #[error("a message of more than {MESSAGE_BYTES_MAX} bytes")]
    Long,
    /// Its message is invalid.
    #[error("message {sequence}: {source}")]
    Message {
        /// Number of the message.
        sequence: u32,
        /// The cause.
        source: MessageError,
    },
    /// Its snapshot has a body with an impossible position or velocity.
    #[error("message {sequence}: the position or velocity of entity {entity} is impossible")]
    NoPlace {
        /// Number of the message.
        sequence: u32,
        /// Number of the entity.
        entity: u16,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Quake3Connection {
    up: Channel,
    down: Channel,
    challenge: u32,
    gamestate: Option<Arc<Gamestate>>,
    /// Number of the newest server command, and the newest commands.
    last_command: i32,
    commands: VecDeque<Vec<u8>>,
    config_strings: ConfigStringChanges,
    /// The snapshots that later ones may be relative to.
    snapshots: VecDeque<Arc<Quake3Snapshot>>,
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
        if std::mem::replace(&mut self.down.newest, sequence) == sequence {
            return Ok(DecodedDatagram::Stale);
        }
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
            // No command has this number: the client has received none.
            if number == 0 {
                return Some(&[][..]);
            }
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
        let bits = &mut bits::HuffmanReader::new(bytes);
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
                    snapshot = Some(read_snapshot(&mut self.snapshots, bits, sequence, known)?);
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

/// The longest config string to assemble, in bytes: the limit of all strings of a gamestate.
const CONFIG_STRING_BYTES_MAX: usize = 16_000;

/// Follows the changes of config strings.
#[derive(Clone, Debug, Default)]
struct ConfigStringChanges {
    /// The parts so far of a string that is too long for one command.
    parts: Vec<u8>,
}

impl ConfigStringChanges {
    /// Applies a server command; returns whether it changes a config string.
    pub(crate) fn follow(&mut self, command: &[u8], gamestate: Option<&mut Arc<Gamestate>>) -> bool {
        let Some((kind, index, text)) = config_string_change(command) else { return false };
        if matches!(kind, b"cs" | b"bcs0") {
            self.parts.clear();
        }
        self.parts.extend(&text[..text.len().min(CONFIG_STRING_BYTES_MAX - self.parts.len())]);
        let Some(gamestate) = gamestate.filter(|_| matches!(kind, b"cs" | b"bcs2")) else { return false };
        Arc::make_mut(gamestate).strings.insert(index, std::mem::take(&mut self.parts));
        true
    }
}

/// Splits a command into its kind, the index of the string, and the text.
fn config_string_change(command: &[u8]) -> Option<(&[u8], u16, &[u8])> {
    let mut words = command.splitn(3, |byte| *byte == b' ');
    let kind = words.next().filter(|kind| matches!(*kind, b"cs" | b"bcs0" | b"bcs1" | b"bcs2"))?;
    let index = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let text = words.next()?.strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"').unwrap_or(text.len());
    (index < CONFIG_STRINGS_MAX as u16).then_some((kind, index, &text[..end]))
}

/// The longest message, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16_384;
/// Size of a fragment, in bytes. A shorter fragment is the last.
const FRAGMENT_BYTES: usize = 1_300;
const FRAGMENT: u32 = 1 << 31;
const OUT_OF_BAND: &[u8] = &[0xff; 4];

/// A decoded datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NetchanDatagram<'a> {
    /// Text outside of any connection.
    OutOfBand(&'a [u8]),
    /// A complete message from one or several datagrams.
    Message { sequence: u32, bytes: std::borrow::Cow<'a, [u8]> },
    /// A fragment of an incomplete message.
    Incomplete,
    /// A duplicate, or an overtaken message.
    Stale,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct Channel {
    newest: u32,
    /// Sequence number of the fragmented message, and its bytes so far.
    fragments: (u32, Vec<u8>),
}

impl Channel {
    /// Returns whether any part of a message came.
    pub(crate) fn has_begun(&self) -> bool {
        self.newest > 0 || self.fragments.0 > 0
    }

    pub(crate) fn take<'a>(
        &mut self,
        direction: Direction,
        datagram: &'a [u8],
        challenge: u32,
    ) -> Result<NetchanDatagram<'a>, UndecodedReason> {
        if let Some(text) = datagram.strip_prefix(OUT_OF_BAND) {
            return Ok(NetchanDatagram::OutOfBand(text));
        }
        let mut rest = datagram;
        let word = number::<4>(&mut rest)?;
        if direction == Direction::Up {
            // The qport distinguishes clients behind one address.
            number::<2>(&mut rest)?;
        }
        let sequence = word & !FRAGMENT;
        if number::<4>(&mut rest)? != challenge ^ sequence.wrapping_mul(challenge) {
            return Err(UndecodedReason::Checksum);
        }
        let is_stale = sequence <= self.newest;
        if word & FRAGMENT == 0 {
            if is_stale {
                return Ok(NetchanDatagram::Stale);
            }
            self.newest = sequence;
            return Ok(NetchanDatagram::Message { sequence, bytes: rest.into() });
        }
        let (start, length) = (number::<2>(&mut rest)? as usize, number::<2>(&mut rest)? as usize);
        let part = rest.get(..length).ok_or(UndecodedReason::Short)?;
        if is_stale { Ok(NetchanDatagram::Stale) } else { self.assemble(sequence, start, part) }
    }

    fn assemble(&mut self, of: u32, start: usize, part: &[u8]) -> Result<NetchanDatagram<'static>, UndecodedReason> {
        let (sequence, bytes) = &mut self.fragments;
        if *sequence != of {
            (*sequence, *bytes) = (of, Vec::new());
        }
        let expected = bytes.len();
        if start < expected {
            return Ok(NetchanDatagram::Stale);
        }
        if start > expected {
            return Err(UndecodedReason::Fragment { start, expected });
        }
        if expected + part.len() > MESSAGE_BYTES_MAX {
            return Err(UndecodedReason::Long);
        }
        bytes.extend_from_slice(part);
        if part.len() == FRAGMENT_BYTES {
            return Ok(NetchanDatagram::Incomplete);
        }
        self.newest = of;
        Ok(NetchanDatagram::Message { sequence: of, bytes: std::mem::take(bytes).into() })
    }
}

fn number<const BYTES: usize>(rest: &mut &[u8]) -> Result<u32, UndecodedReason> {
    let (first, others) = rest.split_at_checked(BYTES).ok_or(UndecodedReason::Short)?;
    *rest = others;
    Ok(first.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_change_config_strings() {
        let mut gamestate = Arc::new(Gamestate::default());
        let mut changes = ConfigStringChanges::default();
        let mut follow = |command: &[u8]| {
            let is_changed = changes.follow(command, Some(&mut gamestate));
            is_changed.then(|| gamestate.strings.iter().map(|(index, text)| (*index, text.clone())).collect::<Vec<_>>())
        };
        assert_eq!(follow(b"cs 1 \"\\a\\1 2\"\n"), Some(vec![(1, b"\\a\\1 2".to_vec())]));
        assert_eq!([follow(b"bcs0 2 \"ab\""), follow(b"bcs1 2 \"cd\"")], [None, None]);
        assert_eq!(follow(b"bcs2 2 \"e\"").expect("a change")[1], (2, b"abcde".to_vec()));
        assert_eq!(follow(b"cs 1 \"\"").expect("a change")[0], (1, Vec::new()));
        for other in [&b"print \"cs 1\""[..], b"cs", b"cs 1024 \"x\"", b"cs x \"y\"", b"cs 5 x", b"scores 1 2"] {
            assert_eq!(follow(other), None);
        }
        let long = [b"bcs1 3 \"".as_slice(), &[b'x'; 1000]].concat();
        (0..20).for_each(|_| assert_eq!(follow(&long), None));
        assert_eq!(follow(b"bcs2 3 \"x\"").expect("a change")[2].1.len(), CONFIG_STRING_BYTES_MAX);
    }
}
