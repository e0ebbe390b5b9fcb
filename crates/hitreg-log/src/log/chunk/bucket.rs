//! The chunk that a recording fills. It reuses the memory of earlier chunks: allocating memory, mainly for the lists
//! of each snapshot, would cost the recorder more than all its other work.

use crate::record::{MisplacedRecord, Record, SessionHeader, SessionStretch, SnapshotRecord};

/// A chunk being filled, and empty snapshots for reuse.
pub(crate) struct Bucket {
    /// The records so far.
    pub(crate) stretch: SessionStretch,
    spare: Vec<SnapshotRecord>,
}

impl Bucket {
    pub(crate) fn new(header: &SessionHeader) -> Bucket {
        Bucket { stretch: SessionStretch::of(header), spare: Vec::new() }
    }

    /// Adds a record, if it fits the header.
    pub(crate) fn push(&mut self, record: &Record, header: &SessionHeader) -> Result<(), MisplacedRecord> {
        if let Record::Snapshot(id, r) = record
            && let Some(player) = self.stretch.players.get_mut(usize::from(id.0))
        {
            player.snapshots.push(copy(r, self.spare.pop()));
            return Ok(());
        }
        self.stretch.push(record, header)
    }

    /// Takes the full chunk, and continues with an old one that is no longer needed.
    pub(crate) fn exchange(&mut self, used: SessionStretch) -> SessionStretch {
        let full = std::mem::replace(&mut self.stretch, used);
        self.clear();
        self.stretch.texts.clone_from(&full.texts);
        full
    }

    /// Drops the records, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        for player in &mut self.stretch.players {
            self.spare.append(&mut player.snapshots);
        }
        self.stretch.clear();
    }
}

/// Copies a snapshot into the memory of another.
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
