//! Open loop: each recorded client runs alone on its recorded input and the snapshots it received, at their recorded
//! arrival times. Each prediction is compared with the recorded snapshots.

mod client;
mod client_feed;
mod snapshot;

use std::sync::Arc;

pub(super) use client_feed::stream;
pub(super) use snapshot::snapshot;

use super::budget::{BudgetObserver, ReplayBudget};
use super::{Jump, PlayerJumps, ReplayError, ReplayFindings, ReplayOutput, TraceTables, own_settings};
use crate::game::{Game, StateRows};
use crate::pipeline::{ClientPipeline, Setup};
use client::OpenLoopClient;
use client_feed::ClientFeed;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::trace::schema::TableSet;
use hitreg_log::units::{Micros, PlayerId, Tick};

pub(super) fn replay<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    setup: &Setup<G>,
    furthest: Option<Micros>,
    memory: MemoryLimit,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let rows = StateRows::new::<G>(&session.header.classes)?;
    // The delay comes from the recorded settings, even if the replay runs under others.
    let drawn_behind = Micros::from_ms(own_settings(&session.header)?.drawn_behind_ms());
    let mut tables = TraceTables::new::<G>(session.players.len(), Arc::clone(&setup.rules)).without_server();
    let budget = ReplayBudget::holding(session, TableSet::ALL, memory);
    budget.begin::<G>(session, 0)?;
    let mut counted = BudgetObserver::new(&budget, &mut tables);
    let mut jumps = Vec::new();
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let [Some(first), Some(last)] = [records.frames.first(), records.frames.last()] else { continue };
        let made = [first.command.seq, last.command.seq];
        let client = OpenLoopClient::<G, C>::new(setup, player, made, drawn_behind);
        let mut fed = ClientFeed::of(client, &rows, &session.states, records);
        fed.end(&mut counted)?;
        jumps.append(&mut fed.jumps);
        progress(last.at);
    }
    let rejudge = G::IMPORTED.and_then(|imported| imported.rejudge);
    let again = rejudge.map_or(Ok(Vec::new()), |rejudge| rejudge(&setup.rules, session, furthest));
    for shot in again.map_err(|source| ReplayError::BadState { tick: Tick(0), source })? {
        tables.push_rejudged::<G>(&shot);
    }
    let trace = tables.finish::<G>();
    let findings = ReplayFindings { jumps: PlayerJumps::of(&jumps), ..ReplayFindings::default() };
    Ok(ReplayOutput { trace, findings, jumps })
}
