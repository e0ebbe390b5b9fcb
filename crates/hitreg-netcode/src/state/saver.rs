//! Saves state as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{KnownFrames, StateValue};
use crate::game::Body;
use crate::history::Frame;
use hitreg_log::units::{EntityId, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::Usercmd;
use hitreg_log::varint::{put_varint, zigzag};

/// The kinds of numbers that are written as differences from the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeltaKind {
    Time,
    Command,
    Snapshot,
    Tick,
    /// The axes of an origin in eighths of a unit.
    EighthsX,
    EighthsY,
    EighthsZ,
}

const DELTA_KINDS: usize = DeltaKind::EighthsZ as usize + 1;

/// How the state of an entity is written; from [`StateCode::KNOWN`] on, how far back from a tick the log has it.
pub(super) struct StateCode;

impl StateCode {
    pub(super) const NONE: u64 = 0;
    pub(super) const WRITTEN: u64 = 1;
    pub(super) const PREVIOUS: u64 = 2;
    pub(super) const KNOWN: u64 = 3;
}

/// The last values written, from which following values are coded as differences.
#[derive(Clone, Debug)]
pub(crate) struct LastValues {
    numbers: [i64; DELTA_KINDS],
    pub(crate) cells: Vec<u32>,
    /// The player of the current values.
    pub(crate) player: PlayerId,
}

impl LastValues {
    pub(crate) fn new<B: Body>() -> LastValues {
        LastValues { numbers: [0; DELTA_KINDS], cells: vec![0; B::CELLS], player: PlayerId(0) }
    }

    pub(crate) fn number(&mut self, near: DeltaKind) -> &mut i64 {
        &mut self.numbers[near as usize]
    }
}

/// Writes state to bytes.
pub struct StateWriter<'k, B> {
    bytes: Vec<u8>,
    /// The index of each written frame by address; many holders share a frame.
    frames: BTreeMap<usize, u64>,
    known: Option<&'k KnownFrames<B>>,
    pub(crate) last: LastValues,
}

impl<B> std::fmt::Debug for StateWriter<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saver").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl<'k, B: Body> StateWriter<'k, B> {
    /// Creates a saver with references to `known`. Without it, equal states give equal bytes.
    pub fn new(known: Option<&'k KnownFrames<B>>) -> StateWriter<'k, B> {
        StateWriter { bytes: Vec::new(), frames: BTreeMap::new(), known, last: LastValues::new::<B>() }
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Sets the player for the following values.
    pub(crate) fn of_player(&mut self, player: PlayerId) {
        self.last.player = player;
    }

    pub(crate) fn player(&self) -> PlayerId {
        self.last.player
    }

    /// Sets the body from which following bodies are coded as differences.
    pub(crate) fn near(&mut self, body: &B) {
        body.write(&mut self.last.cells);
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Writes bytes and their number.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the frames and usercmds that need not be written.
    pub(crate) fn known(&self) -> Option<&'k KnownFrames<B>> {
        self.known
    }

    /// Returns the tick of a snapshot for the current player, if the log near the keyframe has it.
    pub(crate) fn tick_of(&self, seq: SnapshotSeq) -> Option<Tick> {
        Some(self.known?.snapshot(self.last.player, seq)?.frame.tick)
    }

    pub(crate) fn number(&mut self, number: u64) {
        put_varint(&mut self.bytes, number);
    }

    pub(crate) fn signed(&mut self, number: i64) {
        self.number(zigzag(number));
    }

    pub(crate) fn near_number(&mut self, near: DeltaKind, number: i64) {
        let last = std::mem::replace(self.last.number(near), number);
        self.signed(number.wrapping_sub(last));
    }

    /// Writes the cells that differ from the last body, and their changed bits.
    pub(crate) fn body(&mut self, body: &B) {
        let mut cells = vec![0; B::CELLS];
        body.write(&mut cells);
        self.cells(&cells);
    }

    fn cells(&mut self, cells: &[u32]) {
        let unlike: Vec<u32> = cells.iter().zip(&self.last.cells).map(|(cell, last)| cell ^ last).collect();
        for bits in unlike.chunks(8) {
            let byte = bits.iter().enumerate().fold(0, |byte, (place, bits)| byte | (u8::from(*bits != 0) << place));
            self.byte(byte);
        }
        unlike.iter().filter(|bits| **bits != 0).for_each(|bits| self.word(*bits));
        self.last.cells.copy_from_slice(cells);
    }

    /// Writes the state that an entity had at about `tick`; `None` without an entity. It refers to the log or to the
    /// `previous` state where it can.
    pub(crate) fn state(
        &mut self,
        (entity, tick): (EntityId, Option<Tick>),
        cells: Option<&[u32]>,
        previous: Option<&[u32]>,
    ) {
        let Some(cells) = cells else { return self.number(StateCode::NONE) };
        let known = self.known.zip(tick).and_then(|(known, tick)| known.place_of_state(entity, tick, cells));
        match known {
            Some(place) => self.number(StateCode::KNOWN + place as u64),
            None if previous == Some(cells) => self.number(StateCode::PREVIOUS),
            None => {
                self.number(StateCode::WRITTEN);
                self.cells(cells);
            }
        }
    }

    /// Writes a frame: a reference to a frame already written, a reference to the log, or the frame itself.
    pub(crate) fn frame(&mut self, frame: &Arc<Frame<B>>) {
        let place = Arc::as_ptr(frame) as usize;
        let next = self.frames.len() as u64;
        if let Some(known) = self.frames.get(&place) {
            let before = next - known;
            self.number(before);
            return;
        }
        self.number(0);
        self.frames.insert(place, next);
        self.near_number(DeltaKind::Tick, frame.tick.0.into());
        match self.known.and_then(|known| known.place_of(frame)) {
            Some(which) => self.number(1 + which as u64),
            None => {
                self.number(0);
                frame.server_time.put(self);
                self.number(frame.entities.len() as u64);
                let mut cells = vec![0; B::CELLS];
                for (entity, body) in &frame.entities {
                    entity.put(self);
                    body.write(&mut cells);
                    self.state((*entity, Some(frame.tick)), Some(&cells), None);
                }
            }
        }
    }

    /// Writes a usercmd of the current player.
    pub(crate) fn command(&mut self, command: &Usercmd) {
        let player = self.last.player;
        self.near_number(DeltaKind::Command, command.seq.0.into());
        let is_known = self.known.is_some_and(|known| known.has(player, command));
        self.byte(is_known.into());
        if !is_known {
            command.lerp_msec.put(self);
            command.server_time.put(self);
            command.input.put(self);
        }
    }
}
