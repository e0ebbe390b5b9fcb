//! Open loop of a log while reading it, with one pass for each player. Rows are passed on as tables fill up. The
//! replay keeps only the chunks that arrivals may still need, as the survey measured.

use std::collections::VecDeque;
use std::sync::Arc;

use super::client::OpenLoopClient;
use super::snapshot::snapshot;
use super::{BudgetObserver, Jump, ReplayBudget, ReplayError, TraceTables, own_settings};
use crate::game::{Game, StateRows};
use crate::pipeline::{ClientPipeline, Setup};
use crate::replay::part::Part;
use crate::replay::survey::ReorderWindow;
use crate::replay::tables::TOGETHER;
use crate::replay::{LogPass, PlayerJumps, ReplayFindings, ReplayOptions, ReplaySource};
use hitreg_log::record::{
    ArrivalRecord, FrameRecord, PlayerRecords, RecentChunkStates, SessionStretch, SnapshotRecord, StateSource, States,
};
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats;
use hitreg_log::trace::Table;
use hitreg_log::units::{Micros, PlayerId};

pub(in crate::replay) fn stream<G: Game, C: ClientPipeline<G>>(
    source: &ReplaySource<'_>,
    setup: &Setup<G>,
    (options, near): (&ReplayOptions, ReorderWindow),
    pass: LogPass<'_>,
    to: &mut dyn FnMut(Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayFindings, ReplayError> {
    let rows = StateRows::new::<G>(&source.header.classes)?;
    let drawn_behind = Micros::from_ms(own_settings(source.header)?.drawn_behind_ms());
    let players = source.header.players.len();
    let mut tables = TraceTables::new::<G>(players, Arc::clone(&setup.rules)).without_server().only(options.tables);
    // Empty tables first, so that the order of tables does not depend on which one is full first.
    tables.take(0, to);
    let mut jumps = Vec::new();
    let all = (0..).map(PlayerId).zip(&source.survey.players);
    let playing: Vec<_> = all.filter_map(|(player, records)| Some((player, records.made?))).collect();
    let (first, last) = source.survey.played().unwrap_or_default();
    for (index, (player, makes)) in (0..).zip(&playing) {
        let client = OpenLoopClient::<G, C>::new(setup, *player, *makes, drawn_behind);
        let mut fed = ClientFeed::new(client, &rows, RecentChunkStates::default());
        let mut window = ChunkWindow { near, back: source.survey.back, read: 0, newest: VecDeque::new() };
        let mut units = stats::CountedValues::default();
        let budget = ReplayBudget::streaming();
        let mut counted = BudgetObserver::new(&budget, &mut tables);
        let mut passed_on = first;
        let share = |at: Micros| shared(at, (first, last), (index, playing.len()));
        pass(&mut |chunk| {
            fed.add(chunk, &mut window, &mut counted)?;
            fed.jumps.drain(..).for_each(|jump| units.add(jump.units));
            // Open loop has no server, so no verdict will come for these shots.
            counted.observer.end_shots::<G>();
            counted.observer.take_full(to);
            if fed.reached.0.saturating_sub(passed_on.0) > TOGETHER.0 {
                passed_on = fed.reached;
                counted.observer.take(1, to);
            }
            progress(share(fed.reached));
            Ok(())
        })?;
        fed.end(&mut counted)?;
        fed.jumps.drain(..).for_each(|jump| units.add(jump.units));
        jumps.extend((!units.is_empty()).then_some(PlayerJumps { player: *player, units }));
        tables.end_of_part::<G>(Part::WHOLE);
        tables.end_of_player(*player);
        tables.take(1, to);
    }
    Ok(ReplayFindings { jumps, ..ReplayFindings::default() })
}

/// Returns the progress of all passes as a session time, when pass `index` (of `of`) has reached `at`.
fn shared(at: Micros, (first, last): (Micros, Micros), (index, of): (usize, usize)) -> Micros {
    let [at, first, last] = [at, first, last].map(|time| i128::from(time.0));
    let done = first + ((last - first) * index as i128 + at.clamp(first, last) - first) / of.max(1) as i128;
    Micros(i64::try_from(done).unwrap_or(i64::MAX))
}

/// A client, and the records of its log that are read and still needed.
pub(super) struct ClientFeed<'a, G: Game, C, S> {
    client: OpenLoopClient<G, C>,
    rows: &'a StateRows,
    /// The time of the last frame that ran.
    reached: Micros,
    frames: VecDeque<FrameRecord>,
    /// Arrivals, each with its chunk.
    arrivals: VecDeque<(u32, ArrivalRecord)>,
    /// The player's snapshots by number, each with its chunk.
    snapshots: SortedMap<u32, (u32, SnapshotRecord)>,
    states: S,
    /// The jumps that the caller has not taken yet.
    pub(super) jumps: Vec<Jump>,
}

/// How far a log was read, and how far apart its related records are.
struct ChunkWindow {
    near: ReorderWindow,
    /// The most time by which a chunk begins before the newest time of the chunks before it.
    back: Micros,
    /// The number of chunks read.
    read: u32,
    /// The newest time up to each recent chunk. It covers as many chunks as related records can be apart.
    newest: VecDeque<Micros>,
}

impl<G: Game, C: ClientPipeline<G>> ClientFeed<'_, G, C, RecentChunkStates> {
    /// Adds the next chunk, and runs as far as all related records are known.
    fn add(
        &mut self,
        mut chunk: SessionStretch,
        window: &mut ChunkWindow,
        tables: &mut BudgetObserver<'_, TraceTables>,
    ) -> Result<(), ReplayError> {
        let newest = chunk.time_span().map(|(_, newest)| newest).max(window.newest.back().copied());
        window.newest.extend(newest.or(Some(Micros(i64::MIN))));
        self.states.add(std::mem::take(&mut chunk.states));
        if let Some(records) = chunk.players.get_mut(usize::from(self.client.player.0)) {
            let (frames, snapshots) = (std::mem::take(&mut records.frames), std::mem::take(&mut records.snapshots));
            self.add_records(window.read, frames, &records.received, snapshots);
        }
        window.read += 1;
        // A snapshot may follow its arrival by `ahead` chunks, and its states may follow it by as many.
        if window.newest.len() > 2 * window.near.ahead as usize {
            let known = window.newest.pop_front().map_or(i64::MIN, |newest| newest.0.saturating_sub(window.back.0));
            self.run_to(Micros(known.saturating_sub(1)), tables)?;
            self.forget(window);
        }
        Ok(())
    }

    /// Drops snapshots and states that no waiting or later arrival needs.
    fn forget(&mut self, window: &ChunkWindow) {
        let asked = self.arrivals.front().map_or(window.read, |(chunk, _)| *chunk);
        let snapshots = asked.saturating_sub(window.near.back);
        let states = snapshots.saturating_sub(window.near.back);
        while let Some(oldest) = self.snapshots.first_entry().filter(|oldest| oldest.get().0 < snapshots) {
            oldest.remove();
        }
        self.states.forget_before(states);
    }
}

impl<'a, G: Game, C: ClientPipeline<G>> ClientFeed<'a, G, C, &'a States> {
    /// Holds all records of a player of a session in memory.
    pub(super) fn of(
        client: OpenLoopClient<G, C>,
        rows: &'a StateRows,
        states: &'a States,
        records: &PlayerRecords,
    ) -> Self {
        let mut fed = ClientFeed::new(client, rows, states);
        let (frames, snapshots) = (records.frames.iter().cloned(), records.snapshots.iter().cloned());
        fed.add_records(0, frames, &records.received, snapshots);
        fed
    }
}

impl<'a, G: Game, C: ClientPipeline<G>, S: StateSource> ClientFeed<'a, G, C, S> {
    fn new(client: OpenLoopClient<G, C>, rows: &'a StateRows, states: S) -> Self {
        let (frames, arrivals, snapshots) = (VecDeque::new(), VecDeque::new(), SortedMap::new());
        ClientFeed { client, rows, reached: Micros::ZERO, frames, arrivals, snapshots, states, jumps: Vec::new() }
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

    /// Runs the remaining frames.
    pub(super) fn end(&mut self, tables: &mut BudgetObserver<'_, TraceTables>) -> Result<(), ReplayError> {
        self.run_to(Micros(i64::MAX), tables)
    }

    /// Runs everything up to `last`.
    fn run_to(&mut self, last: Micros, tables: &mut BudgetObserver<'_, TraceTables>) -> Result<(), ReplayError> {
        while let Some(frame) = self.frames.pop_front_if(|frame| frame.at <= last) {
            self.receive(frame.at, tables)?;
            self.client.frame(&frame, tables)?;
            self.reached = frame.at;
        }
        // No more frames up to `last`. Snapshots after the last frame ack the last usercmds.
        self.receive(last, tables)
    }

    fn receive(&mut self, until: Micros, tables: &mut BudgetObserver<'_, TraceTables>) -> Result<(), ReplayError> {
        while let Some((_, arrival)) = self.arrivals.front().filter(|(_, arrival)| arrival.at <= until) {
            if let Some((_, record)) = self.snapshots.get(&arrival.number) {
                if self.client.is_yet_to_make(record.ack) {
                    break;
                }
                let snapshot = snapshot::<G>(&self.states, self.rows, self.client.player, record)?;
                self.jumps.extend(self.client.receive(arrival.at, &snapshot, tables));
            }
            self.arrivals.pop_front();
        }
        Ok(())
    }
}
