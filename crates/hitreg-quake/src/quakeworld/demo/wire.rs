//! Reads coordinates, angles and usercmds from messages.

use super::error::{QwdError, QwdResult};
use super::protocol::{Extension, Extensions};
use crate::quakeworld::bytes::{Bytes, UnexpectedEnd};
use crate::quakeworld::movement::{QuakeWorldUsercmd, decode_angle16, wire_angle_degrees};

/// Largest distance of a coordinate from zero, in units. Beyond it, single precision loses fractions of a unit.
const FARTHEST_UNITS: f32 = 1_048_576.0;

/// Reads a coordinate: 1/8 units in 16 bits, or a float with the extension.
pub(crate) fn read_coord(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult<f32> {
    if ext.has(Extension::FloatCoords) { read_finite(bytes) } else { Ok(f32::from(bytes.i16()?) * 0.125) }
}

/// Reads a coordinate of a player's or entity's origin, which has its own extension.
pub(crate) fn read_origin(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult<f32> {
    if ext.float_origins() { read_finite(bytes) } else { read_coord(bytes, ext) }
}

/// Reads an angle in degrees: 1/256 of a turn, or 1/65536 with float coordinates.
pub(crate) fn read_angle(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult<f32> {
    Ok(if ext.has(Extension::FloatCoords) {
        f32::from(bytes.i16()?) * (360.0 / 65_536.0)
    } else {
        f32::from(bytes.u8()? as i8) * (360.0 / 256.0)
    })
}

/// Reads three coordinates.
pub(crate) fn read_coords(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult<[f32; 3]> {
    Ok([read_coord(bytes, ext)?, read_coord(bytes, ext)?, read_coord(bytes, ext)?])
}

fn read_finite(bytes: &mut Bytes<'_>) -> QwdResult<f32> {
    let offset = bytes.offset();
    let value = bytes.f32()?;
    if !value.is_finite() || value.abs() > FARTHEST_UNITS {
        return Err(QwdError::NotFinite { offset, what: "a coordinate" });
    }
    Ok(value)
}

/// Reads another player's delta-encoded usercmd; missing fields are zero.
pub(crate) fn read_delta(bytes: &mut Bytes<'_>) -> Result<QuakeWorldUsercmd, UnexpectedEnd> {
    const ANGLE1: u8 = 1;
    const ANGLE3: u8 = 2;
    const FORWARD: u8 = 4;
    const SIDE: u8 = 8;
    const UP: u8 = 16;
    const BUTTONS: u8 = 32;
    const IMPULSE: u8 = 64;
    const ANGLE2: u8 = 128;
    let bits = bytes.u8()?;
    let mut cmd = QuakeWorldUsercmd::default();
    for (axis, bit) in [ANGLE1, ANGLE2, ANGLE3].into_iter().enumerate() {
        if bits & bit != 0 {
            cmd.angles[axis] = decode_angle16(bytes.i16()?);
        }
    }
    for (speed, bit) in [(&mut cmd.forward, FORWARD), (&mut cmd.side, SIDE), (&mut cmd.up, UP)] {
        if bits & bit != 0 {
            *speed = bytes.i16()?;
        }
    }
    if bits & BUTTONS != 0 {
        cmd.buttons = bytes.u8()?;
    }
    if bits & IMPULSE != 0 {
        cmd.impulse = bytes.u8()?;
    }
    cmd.msec = bytes.u8()?;
    Ok(cmd)
}

/// The longest packet that clients with extensions accept, in bytes; the original limit was 1450.
pub(crate) const LONGEST_PACKET: usize = 65_536;

/// Reads the length of a packet in bytes, and refuses one above [`LONGEST_PACKET`].
pub(crate) fn read_length(bytes: &mut Bytes<'_>) -> QwdResult<usize> {
    let offset = bytes.offset();
    let length = bytes.i32()?;
    let len = usize::try_from(length).ok().filter(|len| *len <= LONGEST_PACKET);
    len.ok_or(QwdError::PacketLength { offset, length, limit: LONGEST_PACKET })
}

/// Reads a usercmd as demos store it, after its milliseconds.
pub(crate) fn read_usercmd(bytes: &mut Bytes<'_>, msec: u8) -> Result<QuakeWorldUsercmd, UnexpectedEnd> {
    let angles = bytes.vec3()?.map(wire_angle_degrees);
    let (forward, side, up) = (bytes.i16()?, bytes.i16()?, bytes.i16()?);
    let (buttons, impulse) = (bytes.u8()?, bytes.u8()?);
    Ok(QuakeWorldUsercmd { msec, angles, forward, side, up, buttons, impulse })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_names_its_fields() {
        let mut bytes = Bytes::new(&[128 | 4, 0x00, 0x40, 0x90, 0x01, 14], 0);
        let cmd = read_delta(&mut bytes).expect("whole");
        assert_eq!((cmd.angles[1], cmd.forward, cmd.msec), (90.0, 400, 14));
        assert!(bytes.is_empty());
    }
}
