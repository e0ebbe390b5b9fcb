//! The messages of the handshake.

use super::super::bits::{BitReader, BitWriter};
use super::super::header::{begin, expect};
use super::super::{DecodeError, Key, MessageType};

/// The padded size of a `CONNECT_REQUEST` in bytes. It is longer than every answer to it.
pub(crate) const REQUEST_BYTES: usize = 64;
/// The padded size of a `CONNECT_CONFIRM` in bytes. It is longer than every answer to it.
pub const CONFIRM_BYTES: usize = 1200;
/// The longest name of a game, in bytes.
pub(crate) const GAME_NAME_BYTES_MAX: usize = 32;
/// The most game-defined data that a client may send with its confirm, in bytes.
pub const ASKED_BYTES_MAX: usize = 1024;
/// The longest welcome, in bytes. An `ACCEPTED` that carries it is shorter than [`CONFIRM_BYTES`].
pub const WELCOME_BYTES_MAX: usize = 1160;

/// A `CONNECT_REQUEST`, or a `CONNECT_CONFIRM` when it has a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    /// The client's random number for this attempt. Answers repeat it, so that third parties cannot forge one.
    pub(crate) salt: u64,
    pub(crate) challenge: Option<u64>,
    pub(crate) game: String,
    /// Game-defined data; empty in a `CONNECT_REQUEST`.
    pub(crate) asked: Vec<u8>,
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerAnswer {
    Challenge { salt: u64, challenge: u64 },
    Accepted { salt: u64, key: Key, connection: u16, welcome: Vec<u8> },
    Refused { salt: u64, why: Refusal },
}

/// The reasons for refusing a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server uses another protocol version.
    #[error("the server speaks version {server} of the protocol, this client version {}", super::super::VERSION)]
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
    #[error("the server is full: all {places} places are taken")]
    Full {
        /// The number of slots.
        places: u16,
    },
    /// The challenge is invalid or expired. A new request helps.
    #[error("the challenge has expired")]
    Expired,
    /// The session has begun and admits no more clients.
    #[error("the session has begun, so no player can join")]
    Begun,
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
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
        put_name(&mut out, &self.game);
        if self.challenge.is_some() {
            put_blob(&mut out, &self.asked, ASKED_BYTES_MAX);
        }
        let mut bytes = out.into_bytes();
        bytes.resize(length, 0);
        bytes
    }

    pub(crate) fn decode(datagram: &[u8], message: MessageType) -> Result<Hello, DecodeError> {
        let mut from = expect(datagram, message)?;
        let is_confirm = message == MessageType::ConnectConfirm;
        let length = if is_confirm { CONFIRM_BYTES } else { REQUEST_BYTES };
        if datagram.len() != length {
            return Err(DecodeError::bad("the length of a hello", datagram.len() as u64));
        }
        let version = from.get_u16()?;
        let salt = from.get(64)?;
        let challenge = if is_confirm { Some(from.get(64)?) } else { None };
        if version != super::super::VERSION {
            // Another version may use other fields from here on.
            return Ok(Hello { version, salt, challenge, game: String::new(), asked: Vec::new() });
        }
        let game = get_name(&mut from)?;
        let asked = if is_confirm { from.get_counted(16)? } else { Vec::new() };
        from.finish_padding()?;
        Ok(Hello { version, salt, challenge, game, asked })
    }
}

impl ServerAnswer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            ServerAnswer::Challenge { salt, challenge } => {
                let mut out = begin(MessageType::Challenge);
                out.put(*salt, 64);
                out.put(*challenge, 64);
                out.into_bytes()
            }
            ServerAnswer::Accepted { salt, key, connection, welcome } => {
                let mut out = begin(MessageType::Accepted);
                out.put(*salt, 64);
                out.put(key.0, 64);
                out.put(key.1, 64);
                out.put(u64::from(*connection), 16);
                put_blob(&mut out, welcome, WELCOME_BYTES_MAX);
                out.into_bytes()
            }
            ServerAnswer::Refused { salt, why } => {
                let mut out = begin(MessageType::Refused);
                out.put(*salt, 64);
                put_refusal(&mut out, why);
                out.into_bytes()
            }
        }
    }

    pub(crate) fn decode(datagram: &[u8]) -> Result<ServerAnswer, DecodeError> {
        let message = super::super::message_type(datagram)?;
        let mut from = expect(datagram, message)?;
        let answer = match message {
            MessageType::Challenge => ServerAnswer::Challenge { salt: from.get(64)?, challenge: from.get(64)? },
            MessageType::Accepted => {
                let salt = from.get(64)?;
                let key = Key(from.get(64)?, from.get(64)?);
                let connection = from.get_u16()?;
                ServerAnswer::Accepted { salt, key, connection, welcome: from.get_counted(16)? }
            }
            MessageType::Refused => ServerAnswer::Refused { salt: from.get(64)?, why: get_refusal(&mut from)? },
            found => return Err(DecodeError::WrongType { expected: MessageType::Challenge, found }),
        };
        from.finish()?;
        Ok(answer)
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
            put_name(out, server);
        }
        Refusal::Full { places } => {
            out.put(2, 8);
            out.put(u64::from(*places), 16);
        }
        Refusal::Expired => out.put(3, 8),
        Refusal::Begun => out.put(4, 8),
    }
}

fn get_refusal(from: &mut BitReader<'_>) -> Result<Refusal, DecodeError> {
    match from.get_u8()? {
        0 => Ok(Refusal::Version { server: from.get_u16()? }),
        1 => Ok(Refusal::Game { server: get_name(from)? }),
        2 => Ok(Refusal::Full { places: from.get_u16()? }),
        3 => Ok(Refusal::Expired),
        4 => Ok(Refusal::Begun),
        code => Err(DecodeError::bad("a refusal", u64::from(code))),
    }
}

/// Writes bytes with their number in 16 bits, truncated to `most` bytes.
fn put_blob(out: &mut BitWriter, bytes: &[u8], most: usize) {
    out.put_counted(&bytes[..bytes.len().min(most)], 16);
}

fn put_name(out: &mut BitWriter, name: &str) {
    out.put_counted(&name.as_bytes()[..name.floor_char_boundary(GAME_NAME_BYTES_MAX)], 8);
}

fn get_name(from: &mut BitReader<'_>) -> Result<String, DecodeError> {
    let length = from.get_u8()?;
    if usize::from(length) > GAME_NAME_BYTES_MAX {
        return Err(DecodeError::bad("the length of a game's name", u64::from(length)));
    }
    let bytes = from.get_bytes(usize::from(length))?;
    String::from_utf8(bytes).map_err(|_| DecodeError::bad("a game's name", u64::from(length)))
}
