//! The chunk that a recording fills. It keeps the memory of the chunks before it: getting fresh memory, for each
//! snapshot's lists above all, would cost the recorder more than everything else that it does.

use super::{Chunk, Stretch};
use crate::game::Field;
use crate::record::{Header, Misfit, Record, SnapshotRecord};

/// A chunk being filled, and emptied snapshots to be filled again.
pub(crate) struct Bucket {
    chunk: Chunk,
    spare: Vec<SnapshotRecord>,
}

impl Bucket {
    pub(crate) fn new(header: &Header) -> Bucket {
        Bucket { chunk: Chunk::new(header), spare: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunk.is_empty()
    }

    pub(crate) fn as_stretch<'a>(&'a self, fields: &'a [Field]) -> Stretch<'a> {
        self.chunk.as_stretch(fields)
    }

    /// Adds a record; what does not fit the header is not added.
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Misfit> {
        match record {
            Record::Frame(id, r) => self.chunk.of(*id)?.frames.push(*r),
            Record::Sent(id, r) => self.chunk.of(*id)?.sent.push(*r),
            Record::Reached(id, r) => self.chunk.of(*id)?.reached.push(*r),
            Record::Executed(id, r) => self.chunk.of(*id)?.executed.push(*r),
            Record::Snapshot(id, r) => {
                let player = self.chunk.of(*id)?;
                player.snapshots.push(copy(r, self.spare.pop()));
            }
            Record::Received(id, r) => self.chunk.of(*id)?.received.push(*r),
            Record::Tick(r) => self.chunk.ticks.push(*r),
            Record::State(r) if r.cells.len() != self.chunk.states.width => {
                return Err(Misfit::Cells { found: r.cells.len(), fields: self.chunk.states.width });
            }
            Record::State(r) => {
                self.chunk.states.keys.push((r.tick, r.entity));
                self.chunk.states.cells.extend_from_slice(&r.cells);
            }
        }
        Ok(())
    }

    /// Takes the full chunk out and goes on with one that was taken out earlier and is no longer needed.
    pub(crate) fn exchange(&mut self, used: Chunk) -> Chunk {
        let full = std::mem::replace(&mut self.chunk, used);
        self.clear();
        full
    }

    /// Forgets the records, and keeps the room.
    pub(crate) fn clear(&mut self) {
        for player in &mut self.chunk.players {
            player.frames.clear();
            player.sent.clear();
            player.reached.clear();
            player.executed.clear();
            self.spare.append(&mut player.snapshots);
            player.received.clear();
        }
        self.chunk.ticks.clear();
        self.chunk.states.keys.clear();
        self.chunk.states.cells.clear();
    }
}

/// A copy of a snapshot in the memory of another.
fn copy(from: &SnapshotRecord, spare: Option<SnapshotRecord>) -> SnapshotRecord {
    let Some(SnapshotRecord { mut entities, mut effects, mut extra, .. }) = spare else {
        return from.clone();
    };
    entities.clone_from(&from.entities);
    effects.clone_from(&from.effects);
    extra.clone_from(&from.extra);
    let timing = from.timing.clone();
    let SnapshotRecord { seq, tick, at, server_time, ack, bytes, choked, .. } = *from;
    SnapshotRecord { seq, tick, at, server_time, ack, bytes, choked, entities, effects, extra, timing }
}
