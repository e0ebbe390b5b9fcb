//! Open loop: each recorded client runs alone on its recorded input and the snapshots that it received, at the times at
//! which it received them. Every prediction is held against the recorded truth.

use std::sync::Arc;

use super::{Imported, ReplayError, Replayed, Tables};
use crate::game::{ClassId, Game, StateRows};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{ClientPipeline, Setup};
use crate::record::{Origin, PlayerRecords, Session, SnapshotRecord};
use crate::session::{Observer, Shown};
use crate::units::{EntityId, Micros, PlayerId};

pub(super) fn replay<G: Imported>(
    session: &Session,
    rows: &StateRows,
    setup: &Setup<G>,
    progress: &mut dyn FnMut(Micros),
) -> Result<Replayed, ReplayError> {
    let mut tables = Tables::new::<G>(session.players.len());
    for (index, records) in session.players.iter().enumerate() {
        if records.frames.is_empty() {
            continue;
        }
        let player = PlayerId(index as u16);
        let mut client = G::Client::new(setup.clone(), player);
        if let Some(first) = records.frames.first() {
            client.number_from(first.command.seq);
        }
        let checked = match session.header.origin {
            Origin::Imported { .. } => {
                G::check_predictions(session, &setup.rules, player, &mut |checked| tables.checked(player, &checked))
            }
            Origin::Synthetic | Origin::Live => None,
        };
        let pipeline_checks = checked.is_none();
        if let Some(result) = checked {
            result?;
        }
        replay_player::<G>((session, rows), records, player, client, pipeline_checks, &mut tables, progress)?;
    }
    let trace = tables.finish::<G>();
    Ok(Replayed {
        trace,
        first_difference: None,
        hashes_compared: 0,
        traffic: None,
        rollbacks: 0,
        rollback_error: None,
    })
}

fn replay_player<G: Imported>(
    (session, rows): (&Session, &StateRows),
    records: &PlayerRecords,
    player: PlayerId,
    mut client: G::Client,
    pipeline_checks: bool,
    tables: &mut Tables,
    progress: &mut dyn FnMut(Micros),
) -> Result<(), ReplayError> {
    let mut arrivals = records.received.iter().peekable();
    let mut receive = |client: &mut G::Client, tables: &mut Tables, until: Micros| -> Result<(), ReplayError> {
        while let Some(arrival) = arrivals.next_if(|a| a.at <= until) {
            let index = records.snapshots.binary_search_by_key(&arrival.number, |s| s.seq.0);
            if let Some(record) = index.ok().and_then(|i| records.snapshots.get(i)) {
                let snapshot = snapshot::<G>(session, rows, player, record)?;
                let reconciled = client.handle_snapshot(arrival.at, &snapshot);
                let reconciled = reconciled.filter(|_| pipeline_checks);
                Observer::<G>::snapshot_received(tables, player, arrival.at, &snapshot, reconciled.as_ref());
            }
        }
        Ok(())
    };
    for recorded in &records.frames {
        receive(&mut client, tables, recorded.at)?;
        client.look(recorded.at);
        let commanded = client.command(recorded.at, &recorded.command.input);
        tables.frame(player, recorded.at, &commanded, &Shown { drawn: client.drawn(), drawn_at: client.drawn_at() });
        progress(recorded.at);
    }
    // The last usercmds are acked after the last frame.
    receive(&mut client, tables, Micros(i64::MAX))
}

/// The snapshot as the client got it.
pub(crate) fn snapshot<G: Game>(
    session: &Session,
    rows: &StateRows,
    viewer: PlayerId,
    record: &SnapshotRecord,
) -> Result<Snapshot<G::Body>, ReplayError> {
    let tick = record.tick;
    let mut entities: Vec<(EntityId, G::Body)> = Vec::with_capacity(record.entities.len());
    for entity in &record.entities {
        let mut sent = session.states.sent(tick, viewer, *entity).peekable();
        if sent.peek().is_none() {
            return Err(ReplayError::NoState { tick, entity: *entity, viewer });
        }
        // Of a class that this build does not know, it knows nothing to show.
        let read = |(class, cells): (ClassId, &[u32])| rows.read::<G>(class, cells).transpose();
        if let Some(body) = sent.find_map(read) {
            entities.push((*entity, body.map_err(|source| ReplayError::BadState { tick, source })?));
        }
    }
    let frame = Frame { tick: record.tick, server_time: record.server_time, entities };
    let timing = record.timing.as_deref().cloned().unwrap_or_default();
    Ok(Snapshot {
        seq: record.seq,
        ack: record.ack,
        frame: Arc::new(frame),
        effects: record.effects.clone(),
        choked: record.choked,
        helper_ms: timing.helper_ms,
        warnings: timing.warnings,
    })
}
