//! The `FRAME` submessage, which comes first in each datagram from the server. It carries the parts of the snapshot's
//! numbers that the 16-bit header fields cannot hold.

use super::DecodeError;
use super::bits::{BitReader, BitWriter};
use super::header::ServerHeader;
use super::notice::kind;
use super::number::{get_signed, put_signed};
use super::{WINDOW, Wrapping16};
use crate::state::value;
use hitreg_log::units::{CommandSeq, Micros, SnapshotSeq, Tick};

/// A snapshot's numbers and times, without its entities and effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameInfo {
    pub(crate) seq: SnapshotSeq,
    pub(crate) tick: Tick,
    pub(crate) ack: CommandSeq,
    pub(crate) server_time: Micros,
    pub(crate) choked: u8,
}

/// A snapshot that the receiver holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckedSnapshot {
    pub(crate) seq: SnapshotSeq,
    pub(crate) tick: Tick,
    pub(crate) server_time: Micros,
}

value!(AckedSnapshot { seq, tick, server_time });

impl FrameInfo {
    /// Writes the frame relative to a snapshot that the client has, less than [`WINDOW`] snapshots ago. Writes it in
    /// full when `from` is `None`.
    pub(crate) fn put(&self, out: &mut BitWriter, from: Option<(SnapshotSeq, Micros)>) {
        out.put(kind::FRAME, 4);
        out.put_bool(from.is_some());
        match from {
            Some((seq, server_time)) => {
                out.put(u64::from(Wrapping16::of(self.seq.0).0), 16);
                out.put(u64::from(self.seq.0 - seq.0), 6);
                put_signed(out, self.server_time.0.wrapping_sub(server_time.0));
            }
            None => {
                out.put(u64::from(self.seq.0), 32);
                out.put(u64::from(self.tick.0), 32);
                out.put(u64::from(self.ack.0), 32);
                out.put(self.server_time.0 as u64, 64);
            }
        }
        out.put_bool(self.choked > 0);
        if self.choked > 0 {
            out.put(u64::from(self.choked), 8);
        }
    }

    /// Reads the frame, including the submessage type. Also returns the distance in snapshots to the base that most
    /// entities use. `known` looks up a snapshot that the receiver holds.
    pub(crate) fn get(
        from: &mut BitReader<'_>,
        header: &ServerHeader,
        newest: SnapshotSeq,
        newest_command: CommandSeq,
        known: impl Fn(SnapshotSeq) -> Option<AckedSnapshot>,
    ) -> Result<(FrameInfo, Option<u32>), DecodeError> {
        let kind = from.get(4)?;
        if kind != kind::FRAME {
            return Err(DecodeError::bad("the type of the first submessage", kind));
        }
        let (mut info, usual) = if from.get_bool()? {
            let seq = Wrapping16(from.get_u16()?).counter_near(newest.0, "a snapshot's number")?;
            let distance = from.get(6)? as u32;
            let base = seq.checked_sub(distance).filter(|_| distance > 0 && distance < WINDOW).map(SnapshotSeq);
            let base = base.ok_or(DecodeError::bad("the distance of a snapshot's base", u64::from(distance)))?;
            let known = known(base).ok_or(DecodeError::MissingFrame { base })?;
            let server_time = Micros(known.server_time.0.wrapping_add(get_signed(from)?));
            let tick = Tick(header.frame.counter_near(known.tick.0, "a frame's index")?);
            let ack = CommandSeq(header.ack.counter_near(newest_command.0, "an ack")?);
            (FrameInfo { seq: SnapshotSeq(seq), tick, ack, server_time, choked: 0 }, Some(distance))
        } else {
            (get_whole(from, header)?, None)
        };
        if from.get_bool()? {
            info.choked = from.get_u8()?;
        }
        if info.seq.0 == 0 {
            return Err(DecodeError::bad("a snapshot's number", 0));
        }
        Ok((info, usual))
    }
}

fn get_whole(from: &mut BitReader<'_>, header: &ServerHeader) -> Result<FrameInfo, DecodeError> {
    let seq = SnapshotSeq(from.get_u32()?);
    let tick = Tick(from.get_u32()?);
    let ack = CommandSeq(from.get_u32()?);
    if Wrapping16::of(tick.0) != header.frame || Wrapping16::of(ack.0) != header.ack {
        return Err(DecodeError::bad("a header that says something else: a frame's index", u64::from(tick.0)));
    }
    let server_time = Micros(from.get(64)? as i64);
    Ok(FrameInfo { seq, tick, ack, server_time, choked: 0 })
}
