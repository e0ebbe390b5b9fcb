//! Open loop: each recorded client runs alone on its recorded input and the snapshots that it received, at the times at
//! which it received them. Every prediction is held against the recorded truth.

use std::sync::Arc;

use glam::Vec3;

use super::made::{Counted, Made};
use super::{Jump, ReplayError, Replayed, Tables, own_settings};
use crate::game::{Body, ClassId, Game, StateRows};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{ClientPipeline, Setup};
use crate::record::{PlayerRecords, Session, SnapshotRecord};
use crate::session::{Observer, Shown};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

pub(super) fn replay<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    setup: &Setup<G>,
    furthest: Option<Micros>,
    progress: &mut dyn FnMut(Micros),
) -> Result<Replayed, ReplayError> {
    let rows = StateRows::new::<G>(&session.header.classes)?;
    // By the settings that it was recorded under, whatever it is replayed under.
    let drawn_behind = Micros::from_ms(own_settings(&session.header)?.drawn_behind_ms());
    let mut tables = Tables::new::<G>(session.players.len(), Arc::clone(&setup.rules));
    let made = Made::new(session.allowance);
    let mut counted = Counted::new(&made, &mut tables);
    let mut jumps = Vec::new();
    for (index, records) in session.players.iter().enumerate() {
        let Some(first) = records.frames.first() else { continue };
        let player = PlayerId(index as u16);
        let mut client = C::new(setup.of_player(player), player);
        client.number_from(first.command.seq);
        replay_player::<G, C>(
            (session, &rows, drawn_behind),
            records,
            player,
            client,
            (&mut counted, &mut jumps),
            progress,
        )?;
    }
    let again = G::shots_again(&setup.rules, session, furthest);
    for shot in again.map_err(|source| ReplayError::BadState { tick: Tick(0), source })? {
        tables.judged_again::<G>(&shot);
    }
    let trace = tables.finish::<G>();
    Ok(Replayed {
        trace,
        first_difference: None,
        hashes_compared: 0,
        traffic: None,
        rollbacks: 0,
        rollback_error: None,
        jumps,
    })
}

fn replay_player<G: Game, C: ClientPipeline<G>>(
    (session, rows, drawn_behind): (&Session, &StateRows, Micros),
    records: &PlayerRecords,
    player: PlayerId,
    mut client: C,
    (tables, jumps): (&mut Counted<'_, Tables>, &mut Vec<Jump>),
    progress: &mut dyn FnMut(Micros),
) -> Result<(), ReplayError> {
    let mut arrivals = records.received.iter().peekable();
    // A snapshot that acks a usercmd came after it, whatever the stamps of a local network or of a level's start say.
    let last = records.frames.last().map_or(CommandSeq(0), |frame| frame.command.seq);
    let mut last_shown: Option<Arc<Frame<G::Body>>> = None;
    let mut receive = |client: &mut C,
                       tables: &mut Counted<'_, Tables>,
                       until: Micros,
                       made: CommandSeq|
     -> Result<(), ReplayError> {
        while let Some(arrival) = arrivals.peek().filter(|a| a.at <= until) {
            let index = records.snapshots.binary_search_by_key(&arrival.number, |s| s.seq.0);
            if let Some(record) = index.ok().and_then(|i| records.snapshots.get(i)) {
                if record.ack > made && record.ack <= last {
                    break;
                }
                let snapshot = snapshot::<G>(session, rows, player, record)?;
                let before = client.predicted().cloned();
                let reconciled = client.handle_snapshot(arrival.at, &snapshot);
                let shown = last_shown.replace(Arc::clone(&snapshot.frame));
                let units = before.zip(client.predicted()).and_then(|(before, after)| {
                    moved(&before, after, carried::<G>(&before, shown.as_deref()?, &snapshot.frame))
                });
                jumps.extend(units.map(|units| Jump { player, at: arrival.at, units }));
                Observer::<G>::snapshot_received(tables, player, arrival.at, &snapshot, reconciled.as_ref());
            }
            arrivals.next();
        }
        Ok(())
    };
    let mut made = CommandSeq(0);
    for recorded in &records.frames {
        receive(&mut client, tables, recorded.at, made)?;
        if G::DRAWN_AT_ITS_TIME {
            client.set_clock(recorded.at, recorded.command.server_time + drawn_behind);
        }
        client.look(recorded.at);
        let commanded = client.command(recorded.at, &recorded.command.input);
        made = commanded.command.seq;
        let shown = Shown { drawn: client.drawn(), drawn_at: client.drawn_at() };
        tables.frame(player, recorded.at, &commanded, &shown);
        tables.made.check()?;
        progress(recorded.at);
    }
    // The last usercmds are acked after the last frame.
    receive(&mut client, tables, Micros(i64::MAX), made)
}

/// How far what a body stands on has gone from one snapshot to the next.
fn carried<G: Game>(body: &G::Body, from: &Frame<G::Body>, to: &Frame<G::Body>) -> Vec3 {
    let gone = G::carrier(body, &to.entities).and_then(|on| Some(to.get(on)?.origin() - from.get(on)?.origin()));
    gone.unwrap_or(Vec3::ZERO)
}

/// How far a prediction was moved, if it was; who is put elsewhere has not mispredicted, and neither has who was carried.
fn moved<B: Body>(before: &B, after: &B, carried: Vec3) -> Option<f32> {
    let units = (before.origin() + carried).distance(after.origin());
    (units > 0.0 && before.teleports() == after.teleports()).then_some(units)
}

/// The snapshot as the client got it.
pub(crate) fn snapshot<G: Game>(
    session: &Session,
    rows: &StateRows,
    viewer: PlayerId,
    record: &SnapshotRecord,
) -> Result<Snapshot<G::Body>, ReplayError> {
    let tick = record.tick;
    let bad = |source| ReplayError::BadState { tick, source };
    let mut entities: Vec<(EntityId, G::Body)> = Vec::with_capacity(record.entities.len());
    for entity in &record.entities {
        let mut sent = session.states.sent(tick, viewer, *entity).peekable();
        if sent.peek().is_none() {
            return Err(ReplayError::NoState { tick, entity: *entity, viewer });
        }
        // Of a class that this build does not know, it knows nothing to show.
        let read = |(class, cells): (ClassId, &[u32])| rows.read::<G>(class, cells).transpose();
        if let Some(body) = sent.find_map(read) {
            entities.push((*entity, body.map_err(bad)?));
        }
    }
    let frame = Frame { tick: record.tick, server_time: record.server_time, entities };
    let timing = record.timing.as_deref().cloned().unwrap_or_default();
    let snapshot = Snapshot {
        seq: record.seq,
        ack: record.ack,
        frame: Arc::new(frame),
        effects: record.effects.clone(),
        choked: record.choked,
        helper_ms: timing.helper_ms,
        warnings: timing.warnings,
        // Logs do not say; and what a client sends in open loop reaches nobody.
        echo: None,
        extra: record.extra.clone(),
    };
    G::check_snapshot(&snapshot.frame.entities, &snapshot.extras()).map_err(bad)?;
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::ArenaBody;

    fn at(x: f32, teleports: u32) -> ArenaBody {
        ArenaBody { origin: Vec3::X * x, teleports: teleports as _, ..ArenaBody::default() }
    }

    #[test]
    fn who_was_carried_or_put_elsewhere_has_not_mispredicted() {
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::ZERO), Some(2.0));
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::X * 2.0), None, "as far as what it stands on");
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::X * 1.5), Some(0.5));
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 0), Vec3::ZERO), None);
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 1), Vec3::ZERO), None, "it went through a teleporter");
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 1), Vec3::ZERO), None);
    }
}
