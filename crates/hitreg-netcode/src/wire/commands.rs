//! The client's packet: its newest usercmd with repeats of earlier ones (N:1 redundancy), its snapshot acks, and its
//! predicted avatar. Each usercmd is coded as the difference from the previous one.

use glam::Vec3;

use super::bits::{BitReader, BitWriter, get_change, get_signed, put_change, put_signed};
use super::datagram::{begin, expect};
use super::entity::{get_mask, put_mask};
use super::{DATAGRAM_BYTES_MAX, DecodeError, MessageType, SEAL_BYTES, Wrapping16};
use crate::game::{Body, CellKind};
use crate::packet::ClientPacket;
use crate::state::{value, variants};
use hitreg_log::hash::hash_words;
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg_log::usercmd::{Input, OwnCells, Usercmd};

/// The most usercmds in a packet; the least is one. Adaptive redundancy goes up to 4; larger counts are for
/// experiments.
pub const COMMANDS_MAX: usize = 16;

/// The wire codes of [`PerceivedAvatar`].
const PERCEIVED_NOTHING: u64 = 0;
const PERCEIVED_HASH: u64 = 1;
const PERCEIVED_ORIGIN: u64 = 2;

/// Bits per axis of a quantised origin, which is sent in eighths of a unit.
const ORIGIN_BITS: u32 = 24;

/// The client's prediction of its own avatar after its newest usercmd. The server compares it with its own result for
/// the same usercmd, and so learns of a correction as early as the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerceivedAvatar {
    /// The low 32 bits of the state hash of the body's cells. It shows whether the prediction matches.
    Hash(u32),
    /// The origin in eighths of a unit, rounded to nearest, from -2^23 to 2^23 - 1. It also shows the distance of the
    /// error.
    OriginEighths([i32; 3]),
}

impl PerceivedAvatar {
    /// Hashes a body without its client-only fields.
    pub fn hash<B: Body>(body: &B) -> PerceivedAvatar {
        let mut body = body.clone();
        body.strip_client_only();
        PerceivedAvatar::Hash(hash_words(&body.to_cells()) as u32)
    }

    /// Quantises an origin in units. Coordinates out of range are clamped.
    pub fn origin(origin_units: glam::Vec3) -> PerceivedAvatar {
        let limit = f32::from(i16::MAX) * 32.0;
        let eighths = |units: f32| libm::roundf((units * 8.0).clamp(-limit * 8.0, limit * 8.0)) as i32;
        PerceivedAvatar::OriginEighths(origin_units.to_array().map(eighths))
    }
}

/// A client's packet together with the wire's own fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientMessage {
    /// The packet; its ack is [`ReceivedSet::newest`](super::ReceivedSet::newest).
    pub packet: ClientPacket,
    /// Which of the 32 snapshots before the ack the client has received, as in
    /// [`ReceivedSet::before`](super::ReceivedSet::before).
    pub received_before: u32,
    /// The client's predicted avatar.
    pub perceived: Option<PerceivedAvatar>,
}

/// The counters of a client that the server uses to widen the 16-bit numbers of its next datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientReference {
    /// The number of the newest packet received.
    pub number: u32,
    /// The newest snapshot sent.
    pub sent: SnapshotSeq,
    /// The newest usercmd received, or the tick when usercmds are numbered by ticks.
    pub command: CommandSeq,
}

/// The reasons why a packet cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandsError {
    /// The packet has no usercmds or too many.
    #[error("{0} usercmds: 1 to {COMMANDS_MAX} go into a packet")]
    Count(usize),
    /// The usercmds are not consecutive.
    #[error("usercmd {next} after usercmd {last}: they must be consecutive")]
    NotConsecutive {
        /// The previous usercmd.
        last: CommandSeq,
        /// The usercmd that does not follow it.
        next: CommandSeq,
    },
    /// A usercmd has too many own cells.
    #[error("a usercmd with {0} cells of its game's own: at most {OWN_CELLS_MAX} go into a packet")]
    OwnCells(usize),
    /// The packet does not fit into a datagram.
    #[error("a packet of {0} bytes: its usercmds do not fit into a datagram")]
    Bytes(usize),
}

/// Encodes a client's packet. The caller must seal the datagram.
///
/// # Errors
/// When the packet has no usercmds or too many, when they are not consecutive, or when they are too large.
pub fn encode_commands(message: &ClientMessage) -> Result<Vec<u8>, CommandsError> {
    let packet = &message.packet;
    let count = packet.commands.len();
    let Some(newest) = packet.commands.last().filter(|_| count <= COMMANDS_MAX) else {
        return Err(CommandsError::Count(count));
    };
    if let Some(pair) = packet.commands.windows(2).find(|pair| pair[0].seq.0.checked_add(1) != Some(pair[1].seq.0)) {
        return Err(CommandsError::NotConsecutive { last: pair[0].seq, next: pair[1].seq });
    }
    let mut out = begin(MessageType::LiveFromClient);
    out.put(u64::from(Wrapping16::of(newest.seq.0).0), 16);
    out.put(u64::from(Wrapping16::of(packet.ack.0).0), 16);
    out.put(u64::from(Wrapping16::of(packet.number).0), 16);
    out.put(count as u64 - 1, 4);
    let all = message.received_before == u32::MAX;
    out.put_bool(all);
    if !all {
        out.put(u64::from(message.received_before), 32);
    }
    put_perceived(&mut out, message.perceived);
    let first = Usercmd::default();
    let mut before = &first;
    for command in &packet.commands {
        let own = command.input.own.stored().len();
        if own > OWN_CELLS_MAX {
            return Err(CommandsError::OwnCells(own));
        }
        put_usercmd(&mut out, before, command);
        before = command;
    }
    let datagram = out.into_bytes();
    let bytes = datagram.len() + SEAL_BYTES;
    if bytes > DATAGRAM_BYTES_MAX { Err(CommandsError::Bytes(bytes)) } else { Ok(datagram) }
}

/// Decodes a client's datagram whose seal was checked.
///
/// # Errors
/// When the datagram is not a valid packet of a client.
pub fn decode_commands(datagram: &[u8], reference: &ClientReference) -> Result<ClientMessage, DecodeError> {
    let mut from = expect(datagram, MessageType::LiveFromClient)?;
    let newest = Wrapping16(from.get_u16()?);
    let ack = Wrapping16(from.get_u16()?).counter_near(reference.sent.0, "an ack")?;
    let number = Wrapping16(from.get_u16()?).counter_near(reference.number, "a packet's number")?;
    let count = from.get(4)? as u32 + 1;
    let received_before = if from.get_bool()? { u32::MAX } else { from.get_u32()? };
    let perceived = get_perceived(&mut from)?;
    let mut commands = Vec::with_capacity(count as usize);
    let newest = newest.counter_near(reference.command.0, "a usercmd's number")?;
    let first = newest.checked_sub(count - 1);
    let first = first.ok_or(DecodeError::bad("the number of usercmds", u64::from(count)))?;
    let first_before = Usercmd::default();
    for seq in first..=newest {
        let command = get_usercmd(&mut from, commands.last().unwrap_or(&first_before), CommandSeq(seq))?;
        commands.push(command);
    }
    from.finish()?;
    let packet = ClientPacket { number, ack: SnapshotSeq(ack), commands };
    Ok(ClientMessage { packet, received_before, perceived })
}

fn put_perceived(out: &mut BitWriter, perceived: Option<PerceivedAvatar>) {
    match perceived {
        None => out.put(PERCEIVED_NOTHING, 2),
        Some(PerceivedAvatar::Hash(hash)) => {
            out.put(PERCEIVED_HASH, 2);
            out.put(u64::from(hash), 32);
        }
        Some(PerceivedAvatar::OriginEighths(eighths)) => {
            out.put(PERCEIVED_ORIGIN, 2);
            for axis in eighths {
                out.put(u64::from(axis as u32 & ((1 << ORIGIN_BITS) - 1)), ORIGIN_BITS);
            }
        }
    }
}

fn get_perceived(from: &mut BitReader<'_>) -> Result<Option<PerceivedAvatar>, DecodeError> {
    match from.get(2)? {
        PERCEIVED_NOTHING => Ok(None),
        PERCEIVED_HASH => Ok(Some(PerceivedAvatar::Hash(from.get_u32()?))),
        PERCEIVED_ORIGIN => {
            let mut eighths = [0; 3];
            for axis in &mut eighths {
                let unsigned = from.get(ORIGIN_BITS)? as u32;
                *axis = (unsigned << (32 - ORIGIN_BITS)) as i32 >> (32 - ORIGIN_BITS);
            }
            Ok(Some(PerceivedAvatar::OriginEighths(eighths)))
        }
        code => Err(DecodeError::bad("the code of the perceived avatar", code)),
    }
}

value!(ClientReference { number, sent, command });
value!(ClientMessage { packet, received_before, perceived });
variants!(PerceivedAvatar {
    0 => Hash(hash),
    1 => OriginEighths(eighths),
});

/// The cells of Bernier's fields.
const CELLS: usize = 10;
/// The mask also says whether own cells of the game changed.
const MASK: usize = CELLS + 1;
/// The most own cells of a usercmd.
pub(crate) const OWN_CELLS_MAX: usize = (1 << OWN_COUNT_BITS) - 1;
const OWN_COUNT_BITS: u32 = 8;

/// Sorted by how often they change, so that whole nibbles of the mask are 0.
const KINDS: [CellKind; CELLS] = [
    CellKind::F32, // pitch
    CellKind::F32, // yaw
    CellKind::F32, // forwardmove
    CellKind::F32, // sidemove
    CellKind::U32, // buttons
    CellKind::U32, // msec
    CellKind::U32, // lerp_msec
    CellKind::U32, // impulse
    CellKind::F32, // upmove
    CellKind::F32, // roll
];

/// Writes everything except the sequence number. The usercmd has at most [`OWN_CELLS_MAX`] own cells.
fn put_usercmd(out: &mut BitWriter, before: &Usercmd, command: &Usercmd) {
    let (old, new) = (cells(before), cells(command));
    let (old_own, new_own) = (before.input.own.stored(), command.input.own.stored());
    put_mask(out, MASK, |i| if i < CELLS { old[i] != new[i] } else { old_own != new_own });
    for i in (0..CELLS).filter(|i| old[*i] != new[*i]) {
        put_change(out, KINDS[i], old[i], new[i]);
    }
    if old_own != new_own {
        put_own(out, old_own, new_own);
    }
    put_signed(out, command.server_time.0.wrapping_sub(expected_time(before, command.input.msec).0));
}

/// Reads a usercmd that [`put_usercmd`] wrote.
fn get_usercmd(from: &mut BitReader<'_>, before: &Usercmd, seq: CommandSeq) -> Result<Usercmd, DecodeError> {
    let mut cells = cells(before);
    let mut own = before.input.own.clone();
    get_mask(from, MASK)?.for_each(|i| {
        if i < CELLS {
            cells[i] = get_change(from, KINDS[i], cells[i])?;
        } else {
            own = get_own(from, before.input.own.stored())?;
        }
        Ok(())
    })?;
    let [pitch, yaw, forwardmove, sidemove, buttons, msec, lerp_msec, impulse, upmove, roll] = cells;
    let input = Input {
        msec: narrow("msec", msec)?,
        viewangles: Vec3::new(f32::from_bits(pitch), f32::from_bits(yaw), f32::from_bits(roll)),
        forwardmove: f32::from_bits(forwardmove),
        sidemove: f32::from_bits(sidemove),
        upmove: f32::from_bits(upmove),
        buttons: narrow("buttons", buttons)?,
        impulse: narrow("impulse", impulse)?,
        own,
    };
    let off = get_signed(from)?;
    let server_time = Micros(expected_time(before, input.msec).0.wrapping_add(off));
    Ok(Usercmd { seq, lerp_msec: narrow("lerp_msec", lerp_msec)?, server_time, input })
}

/// Writes own cells: how many, which changed, and how.
fn put_own(out: &mut BitWriter, old: &[u32], new: &[u32]) {
    let count = old.len().max(new.len());
    let cell = |cells: &[u32], i: usize| cells.get(i).copied().unwrap_or(0);
    out.put(count as u64, OWN_COUNT_BITS);
    put_mask(out, count, |i| cell(old, i) != cell(new, i));
    for i in (0..count).filter(|i| cell(old, *i) != cell(new, *i)) {
        put_change(out, CellKind::U32, cell(old, i), cell(new, i));
    }
}

fn get_own(from: &mut BitReader<'_>, old: &[u32]) -> Result<OwnCells, DecodeError> {
    let count = from.get(OWN_COUNT_BITS)? as usize;
    if count < old.len() {
        return Err(DecodeError::bad("the number of own cells of a usercmd", count as u64));
    }
    let mut cells = old.to_vec();
    cells.resize(count, 0);
    get_mask(from, count)?.for_each(|i| {
        cells[i] = get_change(from, CellKind::U32, cells[i])?;
        Ok(())
    })?;
    Ok(OwnCells::new(&cells))
}

/// Returns the client time after `before`: it advances by the duration of the usercmd. The wire carries only the
/// deviation.
fn expected_time(before: &Usercmd, msec: u8) -> Micros {
    Micros(before.server_time.0.wrapping_add(i64::from(msec) * 1000))
}

fn cells(command: &Usercmd) -> [u32; CELLS] {
    let input = &command.input;
    [
        input.viewangles.x.to_bits(),
        input.viewangles.y.to_bits(),
        input.forwardmove.to_bits(),
        input.sidemove.to_bits(),
        u32::from(input.buttons),
        u32::from(input.msec),
        u32::from(command.lerp_msec),
        u32::from(input.impulse),
        input.upmove.to_bits(),
        input.viewangles.z.to_bits(),
    ]
}

fn narrow<T: TryFrom<u32>>(what: &'static str, value: u32) -> Result<T, DecodeError> {
    T::try_from(value).map_err(|_| DecodeError::bad(what, u64::from(value)))
}
