//! The records of a log near a keyframe.

use std::sync::Arc;

use super::SharedValues;
use crate::game::{Body, Effect};
use crate::history::Frame;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::Usercmd;

/// Snapshots and usercmds that a state need not store, because its reader has them.
#[derive(Debug)]
pub(crate) struct KnownRecords<B> {
    snapshots: SortedMap<(PlayerId, SnapshotSeq), KnownSnapshot<B>>,
    values: SharedValues,
}

/// A snapshot that the log has.
#[derive(Debug)]
pub(crate) struct KnownSnapshot<B> {
    pub(crate) frame: Arc<Frame<B>>,
    pub(crate) effects: Vec<Effect>,
}

impl<B> Default for KnownRecords<B> {
    fn default() -> KnownRecords<B> {
        KnownRecords { snapshots: SortedMap::new(), values: SharedValues::default() }
    }
}

impl<B: Body> KnownRecords<B> {
    pub(crate) fn add_command(&mut self, command: &Usercmd) {
        self.values.add(command);
    }

    /// Adds frames in ascending order of tick. The states of one entity get successive indices, so that references to
    /// them are small.
    pub(crate) fn add_frames(&mut self, frames: &[Arc<Frame<B>>]) {
        let mut bodies: Vec<&(EntityId, B)> = frames.iter().flat_map(|frame| &frame.entities).collect();
        bodies.sort_by_key(|(entity, _)| *entity);
        bodies.iter().for_each(|(_, body)| self.values.add(body));
        frames.iter().for_each(|frame| self.values.add(frame));
    }

    pub(crate) fn add_snapshot(&mut self, player: PlayerId, seq: SnapshotSeq, snapshot: KnownSnapshot<B>) {
        self.values.add(&snapshot.effects);
        self.snapshots.insert((player, seq), snapshot);
    }

    pub(crate) fn snapshot(&self, player: PlayerId, seq: SnapshotSeq) -> Option<&KnownSnapshot<B>> {
        self.snapshots.get(&(player, seq))
    }

    /// Returns the values that a state may refer to.
    pub(crate) fn values(&self) -> SharedValues {
        self.values.clone()
    }
}
