//! Open loop: each recorded client runs alone on its recorded input and the snapshots it received, at their recorded
//! arrival times. Each prediction is compared with the recorded snapshots.

use std::collections::VecDeque;
use std::sync::Arc;

use super::budget::{BudgetObserver, ReplayBudget};
use super::survey::ReorderWindow;
use super::tables::{FLUSH_INTERVAL, FlushScope};
use super::{
    Jump, LogPass, Part, PlayerJumps, ReplayError, ReplayFindings, ReplayOutput, ReplaySource, TraceTables,
    log_settings,
};
use crate::game::{Body, ClassId, Game, RejudgeRules, StateRows, moved_by_carrier};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{ClientPipeline, Setup};
use crate::session::{Observer, ScreenView, SessionEvent};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{
    ArrivalRecord, ExecutionRecord, FrameRecord, RecentChunkStates, Session, SessionChunk, SnapshotRecord, StateSource,
    TickRecord,
};
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::TableSet;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};

pub(super) fn replay<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    setup: &Setup<G>,
    judged_under: &RejudgeRules,
    memory: MemoryLimit,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let rows = StateRows::new::<G>(&session.header.classes)?;
    // The delay comes from the recorded settings, even if the replay runs under others.
    let drawn_behind = Micros::from_ms(log_settings(&session.header)?.drawn_behind_ms());
    let mut tables = TraceTables::new::<G>(session.players.len(), Arc::clone(&setup.rules));
    tables.has_server = false;
    let budget = ReplayBudget::holding(session, TableSet::ALL, memory);
    budget.begin::<G>(session, 0)?;
    let mut counted = BudgetObserver::new(&budget, &mut tables);
    let mut jumps = Vec::new();
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let [Some(first), Some(last)] = [records.frames.first(), records.frames.last()] else { continue };
        let made = [first.command.seq, last.command.seq];
        let from = (&rows, &session.states);
        let mut client = OpenLoopClient::<G, C, _>::new(setup, player, made, drawn_behind, from);
        let (frames, snapshots) = (records.frames.iter().cloned(), records.snapshots.iter().cloned());
        client.add_records(0, frames, &records.received, snapshots);
        client.add_executions(&session.ticks, &records.executed);
        client.run_to(Micros(i64::MAX), &mut counted)?;
        jumps.append(&mut client.jumps);
        progress(last.at);
    }
    let rejudge = G::IMPORTED.and_then(|imported| imported.rejudge);
    let again = rejudge.map_or(Ok(Vec::new()), |rejudge| rejudge(&setup.rules, session, judged_under));
    for shot in again.map_err(|source| ReplayError::BadState { tick: Tick(0), source })? {
        tables.push_rejudged::<G>(&shot);
    }
    let trace = tables.finish::<G>();
    let findings = ReplayFindings { jumps: PlayerJumps::of(&jumps), ..ReplayFindings::default() };
    Ok(ReplayOutput { trace, findings, jumps })
}

pub(super) fn stream<G: Game, C: ClientPipeline<G>>(
    source: &ReplaySource<'_>,
    setup: &Setup<G>,
    wanted: TableSet,
    reorder: ReorderWindow,
    pass: LogPass<'_>,
    to: &mut dyn FnMut(Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayFindings, ReplayError> {
    let rows = StateRows::new::<G>(&source.header.classes)?;
    let drawn_behind = Micros::from_ms(log_settings(source.header)?.drawn_behind_ms());
    let players = source.header.players.len();
    let mut tables = TraceTables::new::<G>(players, Arc::clone(&setup.rules));
    tables.wanted = wanted;
    tables.has_server = false;
    // Empty tables first, so that the order of tables does not depend on which one is full first.
    tables.flush(FlushScope::All, to);
    let mut jumps = Vec::new();
    let all = (0..).map(PlayerId).zip(&source.survey.players);
    let playing: Vec<_> = all.filter_map(|(player, records)| Some((player, records.first_and_last_usercmd?))).collect();
    let (first, last) = source.survey.played().unwrap_or_default();
    for (index, (player, makes)) in (0..).zip(&playing) {
        let from = (&rows, RecentChunkStates::default());
        let mut client = OpenLoopClient::<G, C, _>::new(setup, *player, *makes, drawn_behind, from);
        let mut window =
            ChunkWindow { reorder, overlap: source.survey.chunk_overlap, read: 0, newest: VecDeque::new() };
        let mut units = stats::CountedValues::default();
        let budget = ReplayBudget::streaming();
        let mut counted = BudgetObserver::new(&budget, &mut tables);
        let mut passed_on = first;
        let share = |at: Micros| shared(at, (first, last), (index, playing.len()));
        pass(&mut |chunk| {
            client.add(chunk, &mut window, &mut counted)?;
            client.jumps.drain(..).for_each(|jump| units.add(jump.units));
            // Open loop has no server, so no verdict will come for these shots.
            counted.observer.shots.end::<G>(Part::WHOLE);
            counted.observer.flush_full(to);
            if client.reached.0.saturating_sub(passed_on.0) > FLUSH_INTERVAL.0 {
                passed_on = client.reached;
                counted.observer.flush(FlushScope::NonEmpty, to);
            }
            progress(share(client.reached));
            Ok(())
        })?;
        client.run_to(Micros(i64::MAX), &mut counted)?;
        client.jumps.drain(..).for_each(|jump| units.add(jump.units));
        jumps.extend((!units.is_empty()).then_some(PlayerJumps { player: *player, units }));
        tables.end_of_part::<G>(Part::WHOLE);
        tables.views.end(*player);
        tables.flush(FlushScope::NonEmpty, to);
    }
    Ok(ReplayFindings { jumps, ..ReplayFindings::default() })
}

/// Returns the progress of all passes as a session time, when pass `index` (of `of`) has reached `at`.
fn shared(at: Micros, (first, last): (Micros, Micros), (index, of): (usize, usize)) -> Micros {
    let [at, first, last] = [at, first, last].map(|time| i128::from(time.0));
    let done = first + ((last - first) * index as i128 + at.clamp(first, last) - first) / of.max(1) as i128;
    Micros(i64::try_from(done).unwrap_or(i64::MAX))
}

/// How far a log was read, and how far apart its related records are.
struct ChunkWindow {
    reorder: ReorderWindow,
    /// The most time by which a chunk begins before the newest time of the chunks before it.
    overlap: Micros,
    /// The number of chunks read.
    read: u32,
    /// The newest time up to each recent chunk. It covers as many chunks as related records can be apart.
    newest: VecDeque<Micros>,
}

/// One recorded client that runs alone, and the records of its log that are read and still needed.
struct OpenLoopClient<'a, G: Game, C, S> {
    player: PlayerId,
    client: C,
    drawn_behind: Micros,
    last_shown: Option<Arc<Frame<G::Body>>>,
    /// The last usercmd made so far, and the last of the recording.
    made: CommandSeq,
    last: CommandSeq,
    rows: &'a StateRows,
    /// The time of the last frame that ran.
    reached: Micros,
    frames: VecDeque<FrameRecord>,
    /// Arrivals, each with its chunk.
    arrivals: VecDeque<(u32, ArrivalRecord)>,
    /// The player's snapshots by number, each with its chunk.
    snapshots: SortedMap<u32, (u32, SnapshotRecord)>,
    states: S,
    /// The recorded ticks that are still to come, and how the server handled the player's usercmds in them.
    ticks: VecDeque<(Tick, Micros)>,
    executed: VecDeque<ExecutionRecord>,
    /// The jumps that the caller has not taken yet.
    jumps: Vec<Jump>,
}

impl<'a, G: Game, C: ClientPipeline<G>, S: StateSource> OpenLoopClient<'a, G, C, S> {
    /// Returns a client that makes the usercmds from `first` to `last`.
    fn new(
        setup: &Setup<G>,
        player: PlayerId,
        [first, last]: [CommandSeq; 2],
        drawn_behind: Micros,
        (rows, states): (&'a StateRows, S),
    ) -> Self {
        let mut client = C::new(setup.of_player(player), player);
        client.number_from(first);
        OpenLoopClient {
            player,
            client,
            drawn_behind,
            last_shown: None,
            made: CommandSeq(0),
            last,
            rows,
            reached: Micros::ZERO,
            frames: VecDeque::new(),
            arrivals: VecDeque::new(),
            snapshots: SortedMap::new(),
            states,
            ticks: VecDeque::new(),
            executed: VecDeque::new(),
            jumps: Vec::new(),
        }
    }

    fn add_records(
        &mut self,
        chunk: u32,
        frames: impl IntoIterator<Item = FrameRecord>,
        received: &[ArrivalRecord],
        snapshots: impl IntoIterator<Item = SnapshotRecord>,
    ) {
        self.frames.extend(frames);
        self.arrivals.extend(received.iter().map(|arrival| (chunk, *arrival)));
        self.snapshots.extend(snapshots.into_iter().map(|snapshot| (snapshot.seq.0, (chunk, snapshot))));
    }

    /// Adds how the recorded server handled the player's usercmds.
    fn add_executions(&mut self, ticks: &[TickRecord], executed: &[ExecutionRecord]) {
        self.ticks.extend(ticks.iter().map(|tick| (tick.tick, tick.at)));
        self.executed.extend(executed);
    }

    /// Runs everything up to `last`.
    fn run_to(&mut self, last: Micros, tables: &mut BudgetObserver<'_, TraceTables>) -> Result<(), ReplayError> {
        while let Some(frame) = self.frames.pop_front_if(|frame| frame.at <= last) {
            self.receive(frame.at, tables)?;
            self.frame(&frame, tables)?;
            self.reached = frame.at;
        }
        // No more frames up to `last`. Snapshots after the last frame ack the last usercmds.
        self.receive(last, tables)
    }

    /// Handles the snapshots that arrived up to `until`.
    fn receive(&mut self, until: Micros, tables: &mut BudgetObserver<'_, TraceTables>) -> Result<(), ReplayError> {
        while let Some((_, arrival)) = self.arrivals.front().filter(|(_, arrival)| arrival.at <= until) {
            if let Some((_, record)) = self.snapshots.get(&arrival.number) {
                // A snapshot that acks a usercmd that the client has yet to make waits, even if the recorded times
                // disagree, as on a local network or at the start of a level.
                if record.ack > self.made && record.ack <= self.last {
                    break;
                }
                let (at, snapshot) = (arrival.at, snapshot::<G>(&self.states, self.rows, self.player, record)?);
                self.reconcile(at, &snapshot, tables);
            }
            self.arrivals.pop_front();
        }
        Ok(())
    }

    /// Passes a snapshot to the client, and notes how far it moved the player's own prediction.
    fn reconcile(&mut self, at: Micros, snapshot: &Snapshot<G::Body>, tables: &mut BudgetObserver<'_, TraceTables>) {
        while let Some((tick, _)) = self.ticks.pop_front_if(|(_, ended)| *ended <= at) {
            while let Some(done) = self.executed.pop_front_if(|done| done.tick <= tick) {
                tables.observer.corrections.executed(self.player, done.command, done.how);
            }
        }
        let before = self.client.predicted().cloned();
        let reconciled = self.client.handle_snapshot(at, snapshot);
        let shown = self.last_shown.replace(Arc::clone(&snapshot.frame));
        let units = before.zip(self.client.predicted()).and_then(|(before, after)| {
            moved(&moved_by_carrier::<G>(&shown?.entities, &snapshot.frame.entities, &before), after)
        });
        let (player, reconciled) = (self.player, reconciled.as_ref());
        let event: SessionEvent<'_, G> = SessionEvent::SnapshotReceived { player, snapshot, reconciled };
        tables.event(at, &event);
        self.jumps.extend(units.map(|units| Jump { player, at, units }));
    }

    /// Runs the client's next frame.
    fn frame(
        &mut self,
        recorded: &FrameRecord,
        tables: &mut BudgetObserver<'_, TraceTables>,
    ) -> Result<(), ReplayError> {
        let client = &mut self.client;
        let draws_at_command_time = G::IMPORTED.is_some_and(|imported| imported.draws_at_command_time);
        if draws_at_command_time {
            client.set_clock(recorded.at, recorded.command.server_time + self.drawn_behind);
        }
        client.draw_others(recorded.at);
        let mut output = client.command(recorded.at, &recorded.command.input);
        if draws_at_command_time {
            // The set clock is ahead of the recorded one by the drawing delay.
            output.command.server_time = recorded.command.server_time;
            output.command.lerp_msec = recorded.command.lerp_msec;
        }
        self.made = output.command.seq;
        let screen = ScreenView { drawn: client.drawn(), drawn_at: client.drawn_at() };
        tables.event(recorded.at, &SessionEvent::Frame { player: self.player, output: &output, screen });
        tables.budget.check()
    }
}

impl<G: Game, C: ClientPipeline<G>> OpenLoopClient<'_, G, C, RecentChunkStates> {
    /// Adds the next chunk, and runs as far as all related records are known.
    fn add(
        &mut self,
        mut chunk: SessionChunk,
        window: &mut ChunkWindow,
        tables: &mut BudgetObserver<'_, TraceTables>,
    ) -> Result<(), ReplayError> {
        let newest = chunk.time_span().map(|(_, newest)| newest).max(window.newest.back().copied());
        window.newest.extend(newest.or(Some(Micros(i64::MIN))));
        self.states.add(std::mem::take(&mut chunk.states));
        if let Some(records) = chunk.players.get_mut(usize::from(self.player.0)) {
            self.add_executions(&chunk.ticks, &records.executed);
            let (frames, snapshots) = (std::mem::take(&mut records.frames), std::mem::take(&mut records.snapshots));
            self.add_records(window.read, frames, &records.received, snapshots);
        }
        window.read += 1;
        // A snapshot may follow its arrival by `ahead` chunks, and its states may follow it by as many.
        if window.newest.len() > 2 * window.reorder.ahead as usize {
            let known = window.newest.pop_front().map_or(i64::MIN, |newest| newest.0.saturating_sub(window.overlap.0));
            self.run_to(Micros(known.saturating_sub(1)), tables)?;
            self.forget(window);
        }
        Ok(())
    }

    /// Drops snapshots and states that no waiting or later arrival needs.
    fn forget(&mut self, window: &ChunkWindow) {
        let asked = self.arrivals.front().map_or(window.read, |(chunk, _)| *chunk);
        let snapshots = asked.saturating_sub(window.reorder.back);
        let states = snapshots.saturating_sub(window.reorder.back);
        while let Some(oldest) = self.snapshots.first_entry().filter(|oldest| oldest.get().0 < snapshots) {
            oldest.remove();
        }
        self.states.forget_before(states);
    }
}

/// Returns how far a prediction moved, `None` if not at all. Teleports and absent bodies do not count.
fn moved<B: Body>(before: &B, after: &B) -> Option<f32> {
    let are_present = !before.is_absent() && !after.is_absent();
    let units = before.offset_from(after).length();
    (units > 0.0 && are_present && before.teleports() == after.teleports()).then_some(units)
}

pub(super) fn snapshot<G: Game>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::body;
    use crate::rink::Skater;
    use glam::Vec3;

    fn at(x: f32, teleports: u32) -> Skater {
        Skater { origin: Vec3::X * x, teleports: teleports as _, ..Skater::default() }
    }

    body! {
        struct Ghost {
            Status id: u64,
            Movement origin: Vec3,
        }
    }

    #[test]
    fn absent_players_have_no_misprediction() {
        let ghost = |id, x| Ghost { id, origin: Vec3::X * x };
        let units = |id| moved(&ghost(id, 5.0), &ghost(id, 7.0));
        assert_eq!((units(1), units(0)), (Some(2.0), None));
    }

    #[test]
    fn teleported_players_have_no_misprediction() {
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0)), Some(2.0));
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 0)), None);
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 1)), None, "it went through a teleporter");
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 1)), None);
    }
}
