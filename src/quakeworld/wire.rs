//! Coordinates and angles as messages carry them.

use super::bytes::Bytes;
use super::error::QwdError;
use super::protocol::Extensions;

/// The farthest that a coordinate may lie from the origin, in units; beyond it arithmetic loses its sub-units.
const FARTHEST_UNITS: f32 = 1_048_576.0;

/// A coordinate: 1/8 units in 16 bits, or a float where every coordinate is one.
pub(crate) fn read_coord(bytes: &mut Bytes<'_>, ext: Extensions) -> Result<f32, QwdError> {
    if ext.float_coords() { read_finite(bytes) } else { Ok(f32::from(bytes.i16()?) * 0.125) }
}

/// A coordinate of a player's or entity's origin, which has an extension of its own.
pub(crate) fn read_origin(bytes: &mut Bytes<'_>, ext: Extensions) -> Result<f32, QwdError> {
    if ext.float_origins() { read_finite(bytes) } else { read_coord(bytes, ext) }
}

/// An angle in degrees: 1/256 of a turn, or 1/65536 where coordinates are floats.
pub(crate) fn read_angle(bytes: &mut Bytes<'_>, ext: Extensions) -> Result<f32, QwdError> {
    Ok(if ext.float_coords() {
        f32::from(bytes.i16()?) * (360.0 / 65_536.0)
    } else {
        f32::from(bytes.u8()? as i8) * (360.0 / 256.0)
    })
}

/// Three coordinates.
pub(crate) fn read_coords(bytes: &mut Bytes<'_>, ext: Extensions) -> Result<[f32; 3], QwdError> {
    Ok([read_coord(bytes, ext)?, read_coord(bytes, ext)?, read_coord(bytes, ext)?])
}

fn read_finite(bytes: &mut Bytes<'_>) -> Result<f32, QwdError> {
    let offset = bytes.offset();
    let value = bytes.f32()?;
    if !value.is_finite() || value.abs() > FARTHEST_UNITS {
        return Err(QwdError::NotFinite { offset, what: "a coordinate" });
    }
    Ok(value)
}
