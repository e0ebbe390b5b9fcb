//! Open loop of a log that is read as it is used up: once for each player, whose rows go on as they are full. What is kept of the
//! log is what its arrivals may still ask for, which a pass over it has told before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::client::Client;
use super::snapshot::snapshot;
use super::{Counted, Jump, ReplayBudget, ReplayError, Tables, own_settings};
use crate::game::{Game, StateRows};
use crate::pipeline::{ClientPipeline, Setup};
use crate::replay::part::Part;
use crate::replay::survey::Near;
use crate::replay::tables::TOGETHER;
use crate::replay::{Jumped, Options, Pass, Ran, Source};
use hitreg_log::record::{ArrivalRecord, FrameRecord, KeptStates, SnapshotRecord, Stretch};
use hitreg_log::stats;
use hitreg_log::trace::Table;
use hitreg_log::units::{Micros, PlayerId};

pub(in crate::replay) fn stream<G: Game, C: ClientPipeline<G>>(
    source: &Source<'_>,
    setup: &Setup<G>,
    (options, near): (&Options, Near),
    pass: Pass<'_>,
    to: &mut dyn FnMut(Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Ran, ReplayError> {
    let rows = StateRows::new::<G>(&source.header.classes)?;
    let drawn_behind = Micros::from_ms(own_settings(source.header)?.drawn_behind_ms());
    let players = source.header.players.len();
    let mut tables = Tables::new::<G>(players, Arc::clone(&setup.rules)).only(options.tables);
    // Every table has its place, whichever is full first.
    tables.take(0, to);
    let mut jumps = Vec::new();
    let all = (0..).map(PlayerId).zip(&source.survey.players);
    let playing: Vec<_> = all.filter_map(|(player, records)| Some((player, records.made?))).collect();
    let (first, last) = source.survey.played().unwrap_or_default();
    for (index, (player, makes)) in (0..).zip(&playing) {
        let client = Client::<G, C>::new(setup, *player, *makes, drawn_behind);
        let mut fed = Fed::new(client, &rows, near, source.survey.back);
        let budget = ReplayBudget::streaming();
        let mut counted = Counted::new(&budget, &mut tables);
        let mut passed_on = first;
        let share = |at: Micros| shared(at, (first, last), (index, playing.len()));
        pass(&mut |chunk| {
            fed.add(chunk, &mut counted)?;
            // Nobody judges shots here.
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
        jumps.extend((!fed.jumps_units.is_empty()).then_some(Jumped { player: *player, units: fed.jumps_units }));
        tables.end_of_part::<G>(Part::WHOLE);
        tables.end_of_player(*player);
        tables.take(1, to);
    }
    Ok(Ran { jumps, ..Ran::default() })
}

/// How far all players' replays have come when one of them, of so many, has come to a time: as a time of the session.
fn shared(at: Micros, (first, last): (Micros, Micros), (index, of): (usize, usize)) -> Micros {
    let [at, first, last] = [at, first, last].map(|time| i128::from(time.0));
    let done = first + ((last - first) * index as i128 + at.clamp(first, last) - first) / of.max(1) as i128;
    Micros(i64::try_from(done).unwrap_or(i64::MAX))
}

/// A client, and what of its log has been read and may still be asked for.
struct Fed<'a, G: Game, C> {
    client: Client<G, C>,
    rows: &'a StateRows,
    near: Near,
    /// How far back in time a chunk goes behind those before it.
    back: Micros,
    /// How many chunks have been read.
    read: u32,
    /// The newest time up to each of the last chunks, of as many as what stands in the first of them may have its parts in.
    newest: VecDeque<Micros>,
    /// The last frame that was run.
    reached: Micros,
    frames: VecDeque<FrameRecord>,
    /// What arrived, and in which chunk that stands.
    arrivals: VecDeque<(u32, ArrivalRecord)>,
    /// What it was sent by number, and in which chunk that stands.
    snapshots: BTreeMap<u32, (u32, SnapshotRecord)>,
    states: KeptStates,
    /// How far snapshots moved what the player saw of himself.
    jumps_units: stats::Counted,
}

impl<'a, G: Game, C: ClientPipeline<G>> Fed<'a, G, C> {
    fn new(client: Client<G, C>, rows: &'a StateRows, near: Near, back: Micros) -> Fed<'a, G, C> {
        Fed {
            client,
            rows,
            near,
            back,
            read: 0,
            newest: VecDeque::new(),
            reached: Micros::ZERO,
            frames: VecDeque::new(),
            arrivals: VecDeque::new(),
            snapshots: BTreeMap::new(),
            states: KeptStates::default(),
            jumps_units: stats::Counted::default(),
        }
    }

    /// Takes the next chunk in, and runs as far as all is known.
    fn add(&mut self, mut chunk: Stretch, tables: &mut Counted<'_, Tables>) -> Result<(), ReplayError> {
        let newest = chunk.times().max().max(self.newest.back().copied());
        self.newest.extend(newest.or(Some(Micros(i64::MIN))));
        self.states.add(std::mem::take(&mut chunk.states));
        if let Some(records) = chunk.players.get_mut(usize::from(self.client.player.0)) {
            self.frames.append(&mut std::mem::take(&mut records.frames).into());
            self.arrivals.extend(records.received.iter().map(|arrival| (self.read, *arrival)));
            let snapshots = std::mem::take(&mut records.snapshots).into_iter();
            self.snapshots.extend(snapshots.map(|snapshot| (snapshot.seq.0, (self.read, snapshot))));
        }
        self.read += 1;
        // A snapshot may stand so far behind its arrival, and its states so far behind it.
        if self.newest.len() > 2 * self.near.ahead as usize {
            let known = self.newest.pop_front().map_or(i64::MIN, |newest| newest.0.saturating_sub(self.back.0));
            self.run_to(Micros(known.saturating_sub(1)), tables)?;
            self.forget();
        }
        Ok(())
    }

    /// Runs the rest.
    fn end(&mut self, tables: &mut Counted<'_, Tables>) -> Result<(), ReplayError> {
        self.run_to(Micros(i64::MAX), tables)
    }

    /// Runs all that happened up to then.
    fn run_to(&mut self, last: Micros, tables: &mut Counted<'_, Tables>) -> Result<(), ReplayError> {
        while let Some(frame) = self.frames.pop_front_if(|frame| frame.at <= last) {
            self.receive(frame.at, tables)?;
            self.client.frame(&frame, tables)?;
            self.reached = frame.at;
        }
        // No frame comes up to then any more; the last usercmds are acked after the last frame.
        self.receive(last, tables)
    }

    fn receive(&mut self, until: Micros, tables: &mut Counted<'_, Tables>) -> Result<(), ReplayError> {
        while let Some((_, arrival)) = self.arrivals.front().filter(|(_, arrival)| arrival.at <= until) {
            if let Some((_, record)) = self.snapshots.get(&arrival.number) {
                if self.client.is_yet_to_make(record.ack) {
                    break;
                }
                let snapshot = snapshot::<G>(&self.states, self.rows, self.client.player, record)?;
                let jump = self.client.receive(arrival.at, &snapshot, tables);
                jump.into_iter().for_each(|Jump { units, .. }| self.jumps_units.add(units));
            }
            self.arrivals.pop_front();
        }
        Ok(())
    }

    /// Forgets what nothing asks for any more that arrived, or will.
    fn forget(&mut self) {
        let asked = self.arrivals.front().map_or(self.read, |(chunk, _)| *chunk);
        let snapshots = asked.saturating_sub(self.near.back);
        let states = snapshots.saturating_sub(self.near.back);
        while let Some(oldest) = self.snapshots.first_entry().filter(|oldest| oldest.get().0 < snapshots) {
            oldest.remove();
        }
        self.states.forget_before(states);
    }
}
