//! Reads little-endian values, coordinates, angles and usercmds from the bytes of a demo, and knows their offset in the file.

use super::{Extension, Extensions, QwdError, QwdResult};
use crate::quakeworld::movement::{QuakeWorldUsercmd, decode_angle16, wire_angle_degrees};

/// Reads forward through a slice. A read past the end returns [`QwdError::Truncated`].
#[derive(Clone, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    /// File offset of the next byte.
    offset: usize,
}

impl<'a> Bytes<'a> {
    /// Reads `data`, whose first byte has this file offset.
    pub(crate) fn new(data: &'a [u8], offset: usize) -> Bytes<'a> {
        Bytes { rest: data, offset }
    }

    /// Returns the file offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> QwdResult<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.ends())?;
        (self.rest, self.offset) = (rest, self.offset + len);
        Ok(taken)
    }

    fn ends(&self) -> QwdError {
        QwdError::Truncated { offset: self.offset }
    }

    fn array<const N: usize>(&mut self) -> QwdResult<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> QwdResult<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> QwdResult<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn i16(&mut self) -> QwdResult<i16> {
        Ok(i16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> QwdResult<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> QwdResult<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn f32(&mut self) -> QwdResult<f32> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn vec3(&mut self) -> QwdResult<[f32; 3]> {
        Ok([self.f32()?, self.f32()?, self.f32()?])
    }

    /// Reads bytes up to a terminating zero, and skips the zero.
    pub(crate) fn zero_terminated(&mut self) -> QwdResult<&'a [u8]> {
        let len = self.rest.iter().position(|&byte| byte == 0).ok_or_else(|| self.ends())?;
        Ok(&self.take(len + 1)?[..len])
    }
}

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
        return Err(QwdError::not_finite(offset, "a coordinate"));
    }
    Ok(value)
}

/// Reads another player's delta-encoded usercmd; missing fields are zero.
pub(crate) fn read_delta(bytes: &mut Bytes<'_>) -> QwdResult<QuakeWorldUsercmd> {
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
pub(crate) const PACKET_BYTES_MAX: usize = 65_536;

/// Reads the length of a packet in bytes, and refuses one above [`PACKET_BYTES_MAX`].
pub(crate) fn read_length(bytes: &mut Bytes<'_>) -> QwdResult<usize> {
    let offset = bytes.offset();
    let length = bytes.i32()?;
    let len = usize::try_from(length).ok().filter(|len| *len <= PACKET_BYTES_MAX);
    let problem = || format!("a packet of {length} bytes; the protocol's limit is {PACKET_BYTES_MAX}");
    len.ok_or_else(|| QwdError::invalid(offset, problem()))
}

/// Reads a usercmd as demos store it, after its milliseconds.
pub(crate) fn read_usercmd(bytes: &mut Bytes<'_>, msec: u8) -> QwdResult<QuakeWorldUsercmd> {
    let angles = bytes.vec3()?.map(wire_angle_degrees);
    let (forward, side, up) = (bytes.i16()?, bytes.i16()?, bytes.i16()?);
    let (buttons, impulse) = (bytes.u8()?, bytes.u8()?);
    Ok(QuakeWorldUsercmd { msec, angles, forward, side, up, buttons, impulse })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_little_endian_and_the_offset_follows() {
        let mut bytes = Bytes::new(&[1, 2, 3, 0xff, 0xff, 0, 0, 0x80, 0x3f], 100);
        assert_eq!(bytes.u8(), Ok(1));
        assert_eq!(bytes.u16(), Ok(0x0302));
        assert_eq!(bytes.i16(), Ok(-1));
        assert_eq!(bytes.f32(), Ok(1.0));
        assert!(bytes.is_empty());
        assert_eq!(bytes.u8(), Err(QwdError::Truncated { offset: 109 }));
    }

    #[test]
    fn a_string_needs_its_terminator() {
        let mut bytes = Bytes::new(b"dm3\0x", 0);
        assert_eq!(bytes.zero_terminated(), Ok(&b"dm3"[..]));
        assert_eq!(bytes.zero_terminated(), Err(QwdError::Truncated { offset: 4 }));
    }

    #[test]
    fn a_delta_names_its_fields() {
        let mut bytes = Bytes::new(&[128 | 4, 0x00, 0x40, 0x90, 0x01, 14], 0);
        let cmd = read_delta(&mut bytes).expect("whole");
        assert_eq!((cmd.angles[1], cmd.forward, cmd.msec), (90.0, 400, 14));
        assert!(bytes.is_empty());
    }
}
