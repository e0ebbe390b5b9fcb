//! Parses messages, without the states that they are relative to (ioquake3's cl_parse.c and sv_client.c).

use super::bits::{BitReadError, HuffmanReader};
use super::delta::{DeltaError, NO_ENTITY, Quake3Usercmd, hash_of_command, read_entity, read_usercmd};
use super::fields::EntityCells;

/// The most usercmds in one packet.
const MOST_COMMANDS: u8 = 32;
/// Limit of entity numbers; the last number ends a list.
pub(crate) const ENTITY_NUMBERS: u16 = 1024;
const ENTITY_NUMBER_BITS: u32 = 10;
/// Limit of config string numbers.
pub(super) const MOST_CONFIG_STRINGS: i16 = 1024;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A state in it is invalid.
    #[error("{0}")]
    State(#[from] DeltaError),
    /// Its kind of content is unknown.
    #[error("{0} begins nothing that protocol 71 has")]
    Kind(u8),
    /// A number is out of bounds.
    #[error("{what} {found} is out of bounds")]
    Bounds {
        /// The quantity.
        what: &'static str,
        /// The number found.
        found: i64,
    },
    /// It is relative to a state that is not available.
    #[error("a snapshot differs from message {0}, which is not known")]
    NoBase(i64),
    /// Its usercmds need a server command that is not available.
    #[error("usercmds are mixed with server command {0}, which is not known")]
    NoCommand(i32),
    /// It comes before the gamestate.
    #[error("it comes before any gamestate")]
    NoGamestate,
}

impl From<BitReadError> for MessageError {
    fn from(error: BitReadError) -> MessageError {
        MessageError::State(error.into())
    }
}

/// Kinds of content from the server.
pub(crate) mod from_server {
    pub(crate) const NOTHING: u8 = 1;
    pub(crate) const GAMESTATE: u8 = 2;
    pub(crate) const CONFIG_STRING: u8 = 3;
    pub(crate) const BASELINE: u8 = 4;
    pub(crate) const COMMAND: u8 = 5;
    pub(crate) const SNAPSHOT: u8 = 7;
    pub(crate) const END: u8 = 8;
}

/// Kinds of content from a client.
pub(crate) mod from_client {
    pub(crate) const NOTHING: u8 = 1;
    pub(crate) const MOVE: u8 = 2;
    pub(crate) const MOVE_WITHOUT_DELTA: u8 = 3;
    pub(crate) const COMMAND: u8 = 4;
    pub(crate) const END: u8 = 5;
}

/// The level data that a client receives when it enters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gamestate {
    /// Config strings by number; 0 and 1 hold the server's settings.
    pub strings: hitreg_log::sorted::SortedMap<u16, Vec<u8>>,
    /// Baselines of entities.
    pub(crate) baselines: hitreg_log::sorted::SortedMap<u16, EntityCells>,
    /// Number of the client.
    pub client: u8,
    /// Part of the key that obfuscates usercmds.
    pub(crate) checksum_feed: u32,
}

/// Reads a client's message. Returns the number of the newest server message that the client had received, and the
/// usercmds, oldest first. `command` returns a server command by its number.
pub(crate) fn read_client_message<'c>(
    bytes: &[u8],
    checksum_feed: Option<u32>,
    command: impl Fn(i32) -> Option<&'c [u8]>,
) -> Result<(i32, Vec<Quake3Usercmd>), MessageError> {
    let bits = &mut HuffmanReader::new(bytes);
    let _server_id = bits.long()?;
    let message_ack = bits.long()?;
    let command_ack = bits.long()?;
    let mut commands = Vec::new();
    loop {
        match bits.byte()? {
            from_client::NOTHING => {}
            from_client::COMMAND => {
                bits.long()?;
                bits.string()?;
            }
            from_client::MOVE | from_client::MOVE_WITHOUT_DELTA => {
                let feed = checksum_feed.ok_or(MessageError::NoGamestate)?;
                let mixed = command(command_ack).ok_or(MessageError::NoCommand(command_ack))?;
                let key = feed ^ message_ack as u32 ^ hash_of_command(mixed);
                read_commands(bits, key, &mut commands)?;
            }
            from_client::END => return Ok((message_ack, commands)),
            kind => return Err(MessageError::Kind(kind)),
        }
    }
}

fn read_commands(
    bits: &mut HuffmanReader<'_>,
    key: u32,
    commands: &mut Vec<Quake3Usercmd>,
) -> Result<(), MessageError> {
    let count = bits.byte()?;
    if !(1..=MOST_COMMANDS).contains(&count) {
        return Err(MessageError::Bounds { what: "a number of usercmds,", found: i64::from(count) });
    }
    let mut from = Quake3Usercmd::default();
    for _ in 0..count {
        from = read_usercmd(bits, key, &from)?;
        commands.push(from);
    }
    Ok(())
}

/// Reads a gamestate after its kind byte, with the number of the last server command before it.
pub(crate) fn read_gamestate(bits: &mut HuffmanReader<'_>) -> Result<(i32, Gamestate), MessageError> {
    let last_command = bits.long()?;
    let mut gamestate = Gamestate::default();
    loop {
        match bits.byte()? {
            from_server::END => break,
            from_server::CONFIG_STRING => {
                let index = bits.short()?;
                if !(0..MOST_CONFIG_STRINGS).contains(&index) {
                    return Err(MessageError::Bounds { what: "config string", found: i64::from(index) });
                }
                gamestate.strings.insert(index as u16, bits.string()?);
            }
            from_server::BASELINE => {
                let number = read_entity_number(bits)?;
                if let Some(cells) = read_entity(bits, &NO_ENTITY)? {
                    gamestate.baselines.insert(number, cells);
                }
            }
            kind => return Err(MessageError::Kind(kind)),
        }
    }
    gamestate.client = bits.long()? as u8;
    gamestate.checksum_feed = bits.long()? as u32;
    Ok((last_command, gamestate))
}

pub(crate) fn read_entity_number(bits: &mut HuffmanReader<'_>) -> Result<u16, BitReadError> {
    Ok(bits.bits(ENTITY_NUMBER_BITS)? as u16)
}
