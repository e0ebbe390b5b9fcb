//! Restores state from bytes, which are untrusted.

use std::sync::Arc;

use super::saver::{DeltaKind, LastValues, StateCode};
use super::{KnownFrames, StateValue};
use crate::game::{BadCells, Body};
use crate::history::Frame;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;
use hitreg_log::varint::{Cursor, unzigzag};

/// The most memory that a restored state may take, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// The reasons why bytes are not a valid state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The bytes end early.
    #[error("it ends in the middle")]
    Cut,
    /// A number is incomplete or too long.
    #[error("{0}")]
    Number(String),
    /// Bytes follow the end of the state.
    #[error("it goes on for {0} bytes after its end")]
    Long(usize),
    /// A number has an invalid value.
    #[error("{what}: {found} is not a value it can have")]
    Value {
        /// The name of the number.
        what: &'static str,
        /// The value found.
        found: u64,
    },
    /// The state would take too much memory.
    #[error("it would take more than {} MiB of memory", MOST_BYTES >> 20)]
    Large,
    /// A body or a world is invalid.
    #[error(transparent)]
    Cells(#[from] BadCells),
    /// The state refers to something that the log does not have.
    #[error("it names {what} that the log does not have near it")]
    Unknown {
        /// The missing item.
        what: &'static str,
    },
}

/// Reads state from bytes.
#[derive(Debug)]
pub struct Restorer<'a, B> {
    bytes: &'a [u8],
    frames: Vec<Arc<Frame<B>>>,
    known: &'a KnownFrames<B>,
    left: usize,
    pub(crate) last: LastValues,
}

impl<'a, B: Body> Restorer<'a, B> {
    /// Reads the output of a [`StateWriter`](super::StateWriter) that had the same `known`.
    pub fn new(bytes: &'a [u8], known: &'a KnownFrames<B>) -> Restorer<'a, B> {
        Restorer { bytes, frames: Vec::new(), known, left: MOST_BYTES, last: LastValues::new::<B>() }
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn end(self) -> Result<(), StateError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(StateError::Long(self.bytes.len())) }
    }

    /// Sets the player for the following values.
    pub(crate) fn of_player(&mut self, player: PlayerId) {
        self.last.player = player;
    }

    pub(crate) fn player(&self) -> PlayerId {
        self.last.player
    }

    pub(crate) fn near(&mut self, body: &B) {
        body.write(&mut self.last.cells);
    }

    pub(crate) fn byte(&mut self) -> Result<u8, StateError> {
        let (byte, rest) = self.bytes.split_first().ok_or(StateError::Cut)?;
        self.bytes = rest;
        Ok(*byte)
    }

    pub(crate) fn word(&mut self) -> Result<u32, StateError> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(StateError::Cut)?;
        self.bytes = rest;
        Ok(u32::from_le_bytes(*word))
    }

    pub(crate) fn number(&mut self) -> Result<u64, StateError> {
        let mut cursor = Cursor::new(self.bytes);
        let number = cursor.varint().map_err(StateError::Number)?;
        self.bytes = &self.bytes[self.bytes.len() - cursor.left()..];
        Ok(number)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, StateError> {
        self.number().map(unzigzag)
    }

    pub(crate) fn near_number(&mut self, near: DeltaKind) -> Result<i64, StateError> {
        let by = self.signed()?;
        let last = self.last.number(near);
        *last = last.wrapping_add(by);
        Ok(*last)
    }

    /// Reads the number of items that follow. Each takes at least one byte here, and `each` bytes of memory.
    pub(crate) fn count(&mut self, each: usize) -> Result<usize, StateError> {
        let count = usize::try_from(self.number()?).map_err(|_| StateError::Cut)?;
        if count > self.bytes.len() {
            return Err(StateError::Cut);
        }
        self.charge(count.saturating_mul(each))?;
        Ok(count)
    }

    /// Reads the number of items that follow, of which there are at most `most`.
    pub(crate) fn count_up_to(&mut self, most: usize, each: usize, what: &'static str) -> Result<usize, StateError> {
        match self.count(each)? {
            count if count > most => Err(StateError::Value { what, found: count as u64 }),
            count => Ok(count),
        }
    }

    /// Counts memory that the state takes.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), StateError> {
        self.left = self.left.checked_sub(bytes).ok_or(StateError::Large)?;
        Ok(())
    }

    /// Reads bytes and their number.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StateError> {
        let count = self.count(1)?;
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or(StateError::Cut)?;
        self.bytes = rest;
        Ok(bytes.to_vec())
    }

    /// Returns the frames and usercmds that the state may refer to.
    pub(crate) fn known(&self) -> &'a KnownFrames<B> {
        self.known
    }

    /// Returns the tick of a snapshot for the current player, if the log near the keyframe has it.
    pub(crate) fn tick_of(&self, seq: SnapshotSeq) -> Option<Tick> {
        Some(self.known.snapshot(self.last.player, seq)?.frame.tick)
    }

    /// Reads the state that an entity had at about `tick`; `None` without an entity.
    pub(crate) fn state(
        &mut self,
        (entity, tick): (EntityId, Option<Tick>),
        previous: Option<&Arc<[u32]>>,
    ) -> Result<Option<Arc<[u32]>>, StateError> {
        let code = self.number()?;
        let cells = match code {
            StateCode::NONE => return Ok(None),
            StateCode::WRITTEN => {
                self.charge(B::CELLS * size_of::<u32>())?;
                self.cells()?;
                Some(Arc::from(&self.last.cells[..]))
            }
            StateCode::PREVIOUS => previous.cloned(),
            _ => tick.and_then(|tick| self.known.state(entity, tick, code - StateCode::KNOWN)),
        };
        cells.map(Some).ok_or(StateError::Unknown { what: "a state" })
    }

    pub(crate) fn body(&mut self) -> Result<B, StateError> {
        self.cells()?;
        Ok(B::read(&self.last.cells)?)
    }

    /// Reads the cells that differ from the last body.
    fn cells(&mut self) -> Result<(), StateError> {
        let mut unlike = Vec::with_capacity(B::CELLS);
        for _ in 0..B::CELLS.div_ceil(8) {
            let byte = self.byte()?;
            unlike.extend((0..8).map(|place| byte >> place & 1 == 1));
        }
        for (cell, is_other) in unlike.into_iter().enumerate() {
            match self.last.cells.get(cell).copied() {
                Some(last) if is_other => self.last.cells[cell] = last ^ self.word()?,
                None if is_other => return Err(StateError::Value { what: "a body's cells", found: cell as u64 }),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn frame(&mut self) -> Result<Arc<Frame<B>>, StateError> {
        let before = self.number()?;
        if before > 0 {
            let place = usize::try_from(before).ok().and_then(|before| self.frames.len().checked_sub(before));
            let frame = place.and_then(|place| self.frames.get(place));
            return frame.cloned().ok_or(StateError::Value { what: "a frame's number", found: before });
        }
        let tick = self.near_number(DeltaKind::Tick)?;
        let tick = u32::try_from(tick).map_err(|_| StateError::Value { what: "a tick", found: tick as u64 })?;
        let frame = match self.number()?.checked_sub(1) {
            Some(which) => {
                let known = self.known.frame(Tick(tick), which).ok_or(StateError::Unknown { what: "a snapshot" })?;
                self.charge(known.entities.len() * size_of::<(EntityId, B)>())?;
                // Holders of the same saved frame share it again, without sharing it with anything else.
                Arc::new(Frame::clone(&known))
            }
            None => {
                let server_time = StateValue::get(self)?;
                let count = self.count(size_of::<(EntityId, B)>())?;
                let entity = |_| -> Result<(EntityId, B), StateError> {
                    let entity = StateValue::<B>::get(self)?;
                    let cells = self.state((entity, Some(Tick(tick))), None)?;
                    Ok((entity, B::read(&cells.ok_or(StateError::Unknown { what: "a state" })?)?))
                };
                let entities: Vec<_> = (0..count).map(entity).collect::<Result<_, _>>()?;
                if !entities.is_sorted_by(|(a, _): &(_, B), (b, _)| a < b) {
                    return Err(StateError::Value { what: "the order of entities in tick", found: tick.into() });
                }
                Arc::new(Frame { tick: Tick(tick), server_time, entities })
            }
        };
        self.frames.push(Arc::clone(&frame));
        Ok(frame)
    }

    pub(crate) fn command(&mut self) -> Result<Usercmd, StateError> {
        let seq = self.near_number(DeltaKind::Command)?;
        let seq =
            u32::try_from(seq).map_err(|_| StateError::Value { what: "a usercmd's number", found: seq as u64 })?;
        let seq = CommandSeq(seq);
        match self.byte()? {
            0 => Ok(Usercmd {
                seq,
                lerp_msec: StateValue::get(self)?,
                server_time: StateValue::get(self)?,
                input: StateValue::get(self)?,
            }),
            _ => self.known.command(self.last.player, seq).ok_or(StateError::Unknown { what: "a usercmd" }),
        }
    }
}
