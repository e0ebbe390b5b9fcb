//! Restores a recorded snapshot as its client received it.

use std::sync::Arc;

use super::ReplayError;
use crate::game::{ClassId, Game, StateRows};
use crate::history::Frame;
use crate::packet::Snapshot;
use hitreg_log::record::{SnapshotRecord, StateSource};
use hitreg_log::units::{EntityId, PlayerId};

pub(in crate::replay) fn snapshot<G: Game>(
    states: &impl StateSource,
    rows: &StateRows,
    viewer: PlayerId,
    record: &SnapshotRecord,
) -> Result<Snapshot<G::Body>, ReplayError> {
    let tick = record.tick;
    let bad = |source| ReplayError::BadState { tick, source };
    let mut entities: Vec<(EntityId, G::Body)> = Vec::with_capacity(record.entities.len());
    for entity in &record.entities {
        let mut sent = states.sent(tick, viewer, *entity).peekable();
        if sent.peek().is_none() {
            return Err(ReplayError::NoState { tick, entity: *entity, viewer });
        }
        // This build cannot show entities of a class that it does not know.
        let read = |(class, cells): (ClassId, &[u32])| rows.read::<G>(class, cells).transpose();
        if let Some(body) = sent.find_map(read) {
            entities.push((*entity, body.map_err(bad)?));
        }
    }
    let frame = Frame { tick: record.tick, server_time: record.server_time, entities };
    let timing = record.timing.as_deref().cloned().unwrap_or_default();
    let snapshot = Snapshot {
        effects: record.effects.clone(),
        choked: record.choked,
        helper_ms: timing.helper_ms,
        warnings: timing.warnings,
        extra: record.extra.clone(),
        // Logs do not record the echo. In open loop, the client's packets reach no server.
        ..Snapshot::new(record.seq, record.ack, Arc::new(frame))
    };
    if let Some(imported) = G::IMPORTED {
        (imported.check_snapshot)(&snapshot.frame.entities, &snapshot.extras()).map_err(bad)?;
    }
    Ok(snapshot)
}
