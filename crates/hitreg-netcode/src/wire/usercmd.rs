//! The wire encoding of a usercmd, as the difference from the previous one.

use glam::Vec3;

use super::DecodeError;
use super::bits::{BitReader, BitWriter};
use super::entity::{get_mask, put_mask};
use super::number::{get_change, get_signed, put_change, put_signed};
use crate::game::CellKind;
use hitreg_log::units::{CommandSeq, Micros};
use hitreg_log::usercmd::{Input, OwnCells, Usercmd};

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
pub(crate) fn put_usercmd(out: &mut BitWriter, before: &Usercmd, command: &Usercmd) {
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
pub(crate) fn get_usercmd(from: &mut BitReader<'_>, before: &Usercmd, seq: CommandSeq) -> Result<Usercmd, DecodeError> {
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
