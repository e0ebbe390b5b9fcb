//! The chunk that a recording fills. It keeps the memory of the chunks before it: getting fresh memory, for each
//! snapshot's lists above all, would cost the recorder more than everything else that it does.

use crate::record::{Header, Misfit, OwnRow, Record, SnapshotRecord, Stretch};

/// A chunk being filled, and emptied snapshots to be filled again.
pub(crate) struct Bucket {
    stretch: Stretch,
    spare: Vec<SnapshotRecord>,
}

impl Bucket {
    pub(crate) fn new(header: &Header) -> Bucket {
        Bucket { stretch: Stretch::of(header), spare: Vec::new() }
    }

    /// What it holds.
    pub(crate) fn stretch(&self) -> &Stretch {
        &self.stretch
    }

    /// Adds a record; what does not fit the header is not added.
    pub(crate) fn push(&mut self, record: &Record, header: &Header) -> Result<(), Misfit> {
        if let Record::Snapshot(id, r) = record
            && let Some(player) = self.stretch.players.get_mut(usize::from(id.0))
        {
            player.snapshots.push(copy(r, self.spare.pop()));
            return Ok(());
        }
        self.stretch.push(record, header)
    }

    /// Adds a row of a kind that only the header knows.
    pub(crate) fn push_row(&mut self, row: &OwnRow, header: &Header) {
        self.stretch.push_row(row, header);
    }

    /// Takes the full chunk out and goes on with one that was taken out earlier and is no longer needed.
    pub(crate) fn exchange(&mut self, used: Stretch) -> Stretch {
        let full = std::mem::replace(&mut self.stretch, used);
        self.clear();
        full
    }

    /// Forgets the records, and keeps the room.
    pub(crate) fn clear(&mut self) {
        for player in &mut self.stretch.players {
            self.spare.append(&mut player.snapshots);
        }
        self.stretch.clear();
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
