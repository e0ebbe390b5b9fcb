//! Delta-encoded states, relative to states that both sides have: usercmds, playerStates and entityStates. The fields are in
//! the order of protocol 71, which follows how often they change (ioquake3's msg.c). All other code looks fields up here.

use FieldEncoding::{Bits, Float, Signed};
use Meaning::{Angle, Counter, Flag, Name, Plain, Position, Time, Velocity};

use super::MessageError;
use super::bits::{BitReadError, HuffmanReader};
use hitreg_log::record::Meaning;

/// Bits of a float that is sent as a small integer.
const SMALL_FLOAT_BITS: u32 = 13;
const SMALL_FLOAT_BIAS: i32 = 1 << (SMALL_FLOAT_BITS - 1);

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

pub(crate) fn read_player(bits: &mut HuffmanReader<'_>, from: &PlayerCells) -> Result<PlayerCells, MessageError> {
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
pub(crate) fn read_entity(
    bits: &mut HuffmanReader<'_>,
    from: &EntityCells,
) -> Result<Option<EntityCells>, MessageError> {
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
) -> Result<(), MessageError> {
    let count = bits.byte()?;
    let fields = fields.get(..usize::from(count)).ok_or(MessageError::Fields(count))?;
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

/// The encoding of a changed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldEncoding {
    /// A float: a small integer, or all 32 bits.
    Float,
    /// An unsigned integer of this many bits.
    Bits(u32),
    /// A two's complement integer of this many bits.
    Signed(u32),
}

/// A field: its name in logs, its encoding and its meaning.
pub(crate) type NetField = (&'static str, FieldEncoding, Meaning);

/// The single fields of a playerState.
#[rustfmt::skip]
pub(crate) const PLAYER: [NetField; 48] = [
    ("command_time", Bits(32), Time),
    ("origin.x", Float, Position),
    ("origin.y", Float, Position),
    ("bob_cycle", Bits(8), Plain),
    ("velocity.x", Float, Velocity),
    ("velocity.y", Float, Velocity),
    ("viewangles.y", Float, Angle),
    ("viewangles.x", Float, Angle),
    ("weapon_time", Signed(16), Time),
    ("origin.z", Float, Position),
    ("velocity.z", Float, Velocity),
    ("legs_timer", Bits(8), Time),
    ("pm_time", Signed(16), Time),
    ("event_sequence", Bits(16), Counter),
    ("torso_anim", Bits(8), Name),
    ("movement_dir", Bits(4), Plain),
    ("events.0", Bits(8), Plain),
    ("legs_anim", Bits(8), Name),
    ("events.1", Bits(8), Plain),
    ("pm_flags", Bits(16), Flag),
    ("ground_entity_num", Bits(10), Name),
    ("weaponstate", Bits(4), Name),
    ("e_flags", Bits(16), Flag),
    ("external_event", Bits(10), Name),
    ("gravity", Bits(16), Plain),
    ("speed", Bits(16), Plain),
    ("delta_angles.y", Bits(16), Plain),
    ("external_event_parm", Bits(8), Name),
    ("viewheight", Signed(8), Plain),
    ("damage_event", Bits(8), Name),
    ("damage_yaw", Bits(8), Plain),
    ("damage_pitch", Bits(8), Plain),
    ("damage_count", Bits(8), Plain),
    ("generic1", Bits(8), Plain),
    ("pm_type", Bits(8), Name),
    ("delta_angles.x", Bits(16), Plain),
    ("delta_angles.z", Bits(16), Plain),
    ("torso_timer", Bits(12), Time),
    ("event_parms.0", Bits(8), Plain),
    ("event_parms.1", Bits(8), Plain),
    ("client_num", Bits(8), Name),
    ("weapon", Bits(5), Name),
    ("viewangles.z", Float, Angle),
    ("grapple_point.x", Float, Position),
    ("grapple_point.y", Float, Position),
    ("grapple_point.z", Float, Position),
    ("jumppad_ent", Bits(10), Name),
    ("loop_sound", Bits(16), Name),
];

/// The fields of an entityState.
#[rustfmt::skip]
pub(crate) const ENTITY: [NetField; 51] = [
    ("pos.time", Bits(32), Time),
    ("pos.base.x", Float, Position),
    ("pos.base.y", Float, Position),
    ("pos.delta.x", Float, Velocity),
    ("pos.delta.y", Float, Velocity),
    ("pos.base.z", Float, Position),
    ("apos.base.y", Float, Angle),
    ("pos.delta.z", Float, Velocity),
    ("apos.base.x", Float, Angle),
    ("event", Bits(10), Name),
    ("angles2.y", Float, Angle),
    ("kind", Bits(8), Name),
    ("torso_anim", Bits(8), Name),
    ("event_parm", Bits(8), Name),
    ("legs_anim", Bits(8), Name),
    ("ground_entity_num", Bits(10), Name),
    ("pos.kind", Bits(8), Name),
    ("e_flags", Bits(19), Flag),
    ("other_entity_num", Bits(10), Name),
    ("weapon", Bits(8), Name),
    ("client_num", Bits(8), Name),
    ("angles.y", Float, Angle),
    ("pos.duration", Bits(32), Time),
    ("apos.kind", Bits(8), Name),
    ("placed.x", Float, Position),
    ("placed.y", Float, Position),
    ("placed.z", Float, Position),
    ("solid", Bits(24), Plain),
    ("powerups", Bits(16), Flag),
    ("modelindex", Bits(8), Name),
    ("other_entity_num2", Bits(10), Name),
    ("loop_sound", Bits(8), Name),
    ("generic1", Bits(8), Plain),
    ("origin2.z", Float, Position),
    ("origin2.x", Float, Position),
    ("origin2.y", Float, Position),
    ("modelindex2", Bits(8), Name),
    ("angles.x", Float, Angle),
    ("time", Bits(32), Time),
    ("apos.time", Bits(32), Time),
    ("apos.duration", Bits(32), Time),
    ("apos.base.z", Float, Angle),
    ("apos.delta.x", Float, Plain),
    ("apos.delta.y", Float, Plain),
    ("apos.delta.z", Float, Plain),
    ("time2", Bits(32), Time),
    ("angles.z", Float, Angle),
    ("angles2.x", Float, Angle),
    ("angles2.z", Float, Angle),
    ("constant_light", Bits(32), Plain),
    ("frame", Bits(16), Plain),
];

/// The lists after a playerState's single fields, with 16 numbers each.
pub(crate) const PLAYER_LISTS: [(&str, FieldEncoding); 4] =
    [("stats", Signed(16)), ("persistant", Signed(16)), ("ammo", Signed(16)), ("powerups", Bits(32))];
pub(crate) const LIST_LENGTH: usize = 16;

pub(crate) const PLAYER_CELLS: usize = PLAYER.len() + PLAYER_LISTS.len() * LIST_LENGTH;
pub(crate) const ENTITY_CELLS: usize = ENTITY.len();

/// A playerState: the bits of its fields, then its lists.
pub(crate) type PlayerCells = [u32; PLAYER_CELLS];
/// An entityState without its number: the bits of its fields.
pub(crate) type EntityCells = [u32; ENTITY_CELLS];

/// Returns the index of a field in the player's cells. For constants: an unknown name does not compile.
pub(crate) const fn player(name: &str) -> usize {
    place(&PLAYER, name)
}

/// Returns the index of a field in an entity's cells.
pub(crate) const fn entity(name: &str) -> usize {
    place(&ENTITY, name)
}

/// Returns the index of a list's first number in the player's cells.
pub(crate) const fn player_list(list: usize) -> usize {
    PLAYER.len() + list * LIST_LENGTH
}

const fn place(fields: &[NetField], name: &str) -> usize {
    let mut index = 0;
    while !is_same(fields[index].0, name) {
        index += 1;
    }
    index
}

pub(crate) const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}
