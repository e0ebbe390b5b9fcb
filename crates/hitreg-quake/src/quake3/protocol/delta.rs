//! Delta-encoded states, relative to states that both sides have: usercmds, playerStates and entityStates (ioquake3's
//! msg.c).

use super::bits::{BitReadError, HuffmanReader};
use super::fields::{
    ENTITY, ENTITY_CELLS, EntityCells, FieldEncoding, LIST_LENGTH, NetField, PLAYER, PLAYER_LISTS, PlayerCells,
    player_list,
};

/// Bits of a float that is sent as a small integer.
const SMALL_FLOAT_BITS: u32 = 13;
const SMALL_FLOAT_BIAS: i32 = 1 << (SMALL_FLOAT_BITS - 1);

/// Why a state cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    /// The message cannot be read further.
    #[error("{0}")]
    Read(#[from] BitReadError),
    /// The number of fields is too large.
    #[error("a state has {0} fields, more than protocol 71 knows")]
    Fields(u8),
}

/// A usercmd in the protocol's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quake3Usercmd {
    /// The client's estimate of the server time, in ms.
    pub server_time: i32,
    /// Pitch, yaw and roll in 65,536ths of a turn.
    pub angles: [u16; 3],
    /// Wished forward speed, -127 to 127.
    pub forward: i8,
    /// Wished speed to the right, -127 to 127.
    pub right: i8,
    /// Wished upward speed: above 0 jumps, below 0 crouches.
    pub up: i8,
    /// Buttons; bit 0 fires.
    pub buttons: u16,
    /// Number of the wished weapon.
    pub weapon: u8,
}

pub(crate) fn read_usercmd(
    bits: &mut HuffmanReader<'_>,
    key: u32,
    from: &Quake3Usercmd,
) -> Result<Quake3Usercmd, BitReadError> {
    let server_time = match bits.flag()? {
        true => from.server_time.wrapping_add(i32::from(bits.byte()?)),
        false => bits.long()?,
    };
    if !bits.flag()? {
        return Ok(Quake3Usercmd { server_time, ..*from });
    }
    let key = key ^ server_time as u32;
    let mut next = |old: u32, width: u32| -> Result<u32, BitReadError> {
        if !bits.flag()? {
            return Ok(old);
        }
        Ok(bits.bits(width)? ^ (key & ((1 << width) - 1)))
    };
    // -128 has no positive counterpart, and the server treats it as -127.
    let speed = |value: u32| (value as u8 as i8).max(-127);
    Ok(Quake3Usercmd {
        server_time,
        angles: [
            next(u32::from(from.angles[0]), 16)? as u16,
            next(u32::from(from.angles[1]), 16)? as u16,
            next(u32::from(from.angles[2]), 16)? as u16,
        ],
        forward: speed(next(from.forward as u8 as u32, 8)?),
        right: speed(next(from.right as u8 as u32, 8)?),
        up: speed(next(from.up as u8 as u32, 8)?),
        buttons: next(u32::from(from.buttons), 16)? as u16,
        weapon: next(u32::from(from.weapon), 8)? as u8,
    })
}

/// Returns the key that obfuscates usercmds: a hash of the first 32 bytes of the newest server command that the client
/// has.
pub(crate) fn hash_of_command(command: &[u8]) -> u32 {
    let as_sent = |byte: u8| if byte >= 0x80 || byte == b'%' { b'.' } else { byte };
    let bytes = command.iter().take(32).enumerate();
    let sum = bytes.fold(0i32, |sum, (i, byte)| sum + i32::from(as_sent(*byte)) * (119 + i as i32));
    (sum ^ (sum >> 10) ^ (sum >> 20)) as u32
}

pub(crate) fn read_player(bits: &mut HuffmanReader<'_>, from: &PlayerCells) -> Result<PlayerCells, DeltaError> {
    let mut cells = *from;
    read_fields(bits, &PLAYER, &mut cells, read_value)?;
    if !bits.flag()? {
        return Ok(cells);
    }
    for (list, (_, wire)) in PLAYER_LISTS.iter().enumerate() {
        let changed = if bits.flag()? { bits.bits(LIST_LENGTH as u32)? } else { 0 };
        for place in (0..LIST_LENGTH).filter(|place| changed >> place & 1 != 0) {
            cells[player_list(list) + place] = read_value(bits, *wire)?;
        }
    }
    Ok(cells)
}

/// Reads an entity; `None` if it was removed.
pub(crate) fn read_entity(bits: &mut HuffmanReader<'_>, from: &EntityCells) -> Result<Option<EntityCells>, DeltaError> {
    if bits.flag()? {
        return Ok(None);
    }
    let mut cells: EntityCells = *from;
    if bits.flag()? {
        // For entity fields, one bit marks zero values.
        read_fields(bits, &ENTITY, &mut cells, |bits, wire| if bits.flag()? { read_value(bits, wire) } else { Ok(0) })?;
    }
    Ok(Some(cells))
}

pub(crate) const NO_ENTITY: EntityCells = [0; ENTITY_CELLS];

/// Reads the fields up to the last changed one.
fn read_fields(
    bits: &mut HuffmanReader<'_>,
    fields: &[NetField],
    cells: &mut [u32],
    read: impl Fn(&mut HuffmanReader<'_>, FieldEncoding) -> Result<u32, BitReadError>,
) -> Result<(), DeltaError> {
    let count = bits.byte()?;
    let fields = fields.get(..usize::from(count)).ok_or(DeltaError::Fields(count))?;
    for ((_, wire, _), cell) in fields.iter().zip(cells) {
        if bits.flag()? {
            *cell = read(bits, *wire)?;
        }
    }
    Ok(())
}

fn read_value(bits: &mut HuffmanReader<'_>, wire: FieldEncoding) -> Result<u32, BitReadError> {
    match wire {
        FieldEncoding::Float if bits.flag()? => bits.bits(32),
        FieldEncoding::Float => Ok(((bits.bits(SMALL_FLOAT_BITS)? as i32 - SMALL_FLOAT_BIAS) as f32).to_bits()),
        FieldEncoding::Bits(width) => bits.bits(width),
        FieldEncoding::Signed(width) => Ok(((bits.bits(width)? << (32 - width)) as i32 >> (32 - width)) as u32),
    }
}
