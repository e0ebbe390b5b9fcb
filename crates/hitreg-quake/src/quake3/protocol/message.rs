//! Parses messages, without the states that they are relative to (ioquake3's cl_parse.c and sv_client.c). A snapshot is a
//! playerState and the visible entities, relative to an earlier snapshot or to the baselines.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::{BitReadError, HuffmanReader};
use super::states::{
    EntityCells, NO_ENTITY, PLAYER_CELLS, PlayerCells, Quake3Usercmd, hash_of_command, player, read_entity,
    read_player, read_usercmd,
};
use crate::quake3::movement::flag;
use hitreg_log::units::PlayerId;

/// The most usercmds in one packet.
const COMMANDS_MAX: u8 = 32;
/// Limit of entity numbers; the last number ends a list.
const ENTITY_NUMBERS: u16 = 1024;
const ENTITY_NUMBER_BITS: u32 = 10;
/// Limit of config string numbers.
pub(super) const CONFIG_STRINGS_MAX: i16 = 1024;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It cannot be read further.
    #[error("{0}")]
    Read(#[from] BitReadError),
    /// The number of a state's fields is too large.
    #[error("a state has {0} fields, more than protocol 71 knows")]
    Fields(u8),
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
    if !(1..=COMMANDS_MAX).contains(&count) {
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
                if !(0..CONFIG_STRINGS_MAX).contains(&index) {
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

fn read_entity_number(bits: &mut HuffmanReader<'_>) -> Result<u16, BitReadError> {
    Ok(bits.bits(ENTITY_NUMBER_BITS)? as u16)
}

/// How many messages old the base of a snapshot may be.
const SNAPSHOTS_KEPT: usize = 32;
const NO_PLAYER: PlayerCells = [0; PLAYER_CELLS];

/// A snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quake3Snapshot {
    /// Number of its message.
    pub(crate) message: u32,
    /// Server time, in ms.
    pub(crate) server_time: i32,
    /// Bit 0: held back by the rate limit; bit 1: client not active yet; bit 2: the server restarted.
    pub(crate) flags: u8,
    pub(crate) player: PlayerCells,
    /// Entities by number, ascending.
    pub(crate) entities: Vec<(u16, Arc<EntityCells>)>,
}

impl Quake3Snapshot {
    /// Returns whether it has a player's own state. A spectator receives the state of the player whom it follows.
    pub(crate) fn is_own(&self, slot: PlayerId) -> bool {
        self.player[player("client_num")] == u32::from(slot.0) && self.player[player("pm_flags")] & flag::FOLLOW == 0
    }
}

/// Reads a snapshot after its kind byte. `kept` has the snapshots that it may be relative to, and receives it.
pub(crate) fn read_snapshot(
    kept: &mut VecDeque<Arc<Quake3Snapshot>>,
    bits: &mut HuffmanReader<'_>,
    message: u32,
    gamestate: &Gamestate,
) -> Result<Arc<Quake3Snapshot>, MessageError> {
    let server_time = bits.long()?;
    let back = bits.byte()?;
    let flags = bits.byte()?;
    let areas = bits.byte()?;
    for _ in 0..areas {
        bits.byte()?;
    }
    let base = match back {
        0 => None,
        back => {
            let number = i64::from(message) - i64::from(back);
            let known = kept.iter().find(|base| i64::from(base.message) == number);
            Some(known.ok_or(MessageError::NoBase(number))?)
        }
    };
    let player = read_player(bits, base.map_or(&NO_PLAYER, |base| &base.player))?;
    let entities = read_entities(bits, base.map_or(&[][..], |base| &base.entities), gamestate)?;
    let snapshot = Arc::new(Quake3Snapshot { message, server_time, flags, player, entities });
    if kept.len() == SNAPSHOTS_KEPT {
        kept.pop_front();
    }
    kept.push_back(Arc::clone(&snapshot));
    Ok(snapshot)
}

/// Reads the entities. Numbers ascend, so entities of the base between two numbers are unchanged.
fn read_entities(
    bits: &mut HuffmanReader<'_>,
    base: &[(u16, Arc<EntityCells>)],
    gamestate: &Gamestate,
) -> Result<Vec<(u16, Arc<EntityCells>)>, MessageError> {
    let mut old = base.iter().peekable();
    let mut entities: Vec<(u16, Arc<EntityCells>)> = Vec::with_capacity(base.len());
    let mut last = None;
    loop {
        let number = read_entity_number(bits)?;
        if last.is_some_and(|last| number <= last) {
            return Err(MessageError::Bounds { what: "after a higher one, entity", found: i64::from(number) });
        }
        last = Some(number);
        while let Some(kept) = old.next_if(|(before, _)| *before < number) {
            entities.push(kept.clone());
        }
        if number == ENTITY_NUMBERS - 1 {
            return Ok(entities);
        }
        let before = old.next_if(|(before, _)| *before == number);
        let from = before.map(|(_, cells)| &**cells).or(gamestate.baselines.get(&number)).unwrap_or(&NO_ENTITY);
        if let Some(cells) = read_entity(bits, from)? {
            entities.push((number, Arc::new(cells)));
        }
    }
}
