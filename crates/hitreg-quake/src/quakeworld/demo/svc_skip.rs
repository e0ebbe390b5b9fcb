//! Skips server messages that do not affect movement, and reads short-lived effects, because some of these do.

use super::error::{QwdError, QwdResult};
use super::protocol::{Extension, Extensions};
use super::recording::{DemoEvent, EffectKind};
use super::svc::PacketContent;
use super::wire::read_coords;
use crate::quakeworld::bytes::Bytes;

pub(crate) fn skip(bytes: &mut Bytes<'_>, len: usize) -> QwdResult {
    bytes.take(len)?;
    Ok(())
}

pub(crate) fn skip_sound(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult {
    let channel = bytes.u16()?;
    for flag in [1 << 15, 1 << 14] {
        if channel & flag != 0 {
            bytes.u8()?;
        }
    }
    bytes.u8()?;
    read_coords(bytes, ext)?;
    Ok(())
}

pub(crate) fn skip_nails(bytes: &mut Bytes<'_>, each: usize) -> QwdResult {
    let count = usize::from(bytes.u8()?);
    skip(bytes, count * each)
}

pub(crate) fn skip_download(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult {
    if ext.has(Extension::ChunkedDownloads) {
        return match bytes.i32()? {
            chunk if chunk < 0 => {
                bytes.i32()?;
                bytes.zero_terminated()?;
                Ok(())
            }
            _ => skip(bytes, 1024),
        };
    }
    let size = bytes.i16()?;
    skip(bytes, 1 + usize::try_from(size).unwrap_or(0))
}

pub(crate) fn read_effect(bytes: &mut Bytes<'_>, ext: Extensions, content: &mut PacketContent) -> QwdResult {
    let offset = bytes.offset();
    let kind = match bytes.u8()? {
        0 | 1 | 7 | 8 | 10 => None,
        2 => {
            bytes.u8()?;
            Some(EffectKind::Gunshot)
        }
        3 | 4 => Some(EffectKind::Explosion),
        5 | 6 | 9 => {
            bytes.u16()?;
            read_coords(bytes, ext)?;
            None
        }
        11 => Some(EffectKind::Teleport),
        12 => {
            bytes.u8()?;
            Some(EffectKind::Blood)
        }
        13 => Some(EffectKind::LightningBlood),
        value => {
            let value = i64::from(value);
            return Err(QwdError::OutOfBounds { offset, what: "the kind of an effect", value, limit: 14 });
        }
    };
    let origin = read_coords(bytes, ext)?;
    if let Some(kind) = kind {
        content.events.push(DemoEvent::Effect { kind, origin });
    }
    Ok(())
}
