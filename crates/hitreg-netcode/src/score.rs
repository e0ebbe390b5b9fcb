//! Scores each way of drawing the others on a recorded session.
//!
//! Every recorded state of another player is left out once and drawn from the remaining states. The error is the
//! distance to the recorded origin. Modes that draw the present (unchanged or extrapolated) use only earlier snapshots.
//! Modes that draw `lerp_ms` behind also use later snapshots that had arrived by the time of drawing. States after a
//! teleport are skipped.

use std::collections::VecDeque;

use serde::Serialize;

use crate::game::{BadCells, Body, Game, OtherFields, StateRows};
use crate::history::{PlacementLimits, between, beyond, fraction_of_way, is_teleport};
use crate::replay::{LogPass, Part, ReorderWindow};
use crate::settings::Settings;
use hitreg_log::record::{PlayerRecords, RecentChunkStates, SessionHeader, SnapshotRecord, StateSource};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::{CountedValues, Tail};
use hitreg_log::units::{EntityId, Micros, PlayerId};

/// The error of one way of drawing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeScore {
    /// The `interpolation.mode`.
    pub mode: &'static str,
    /// The number of states that were left out and drawn.
    pub samples: u64,
    /// The distances in units; `None` when nothing was drawn.
    pub error_units: Option<Tail>,
}

/// The recorded states do not belong to this game.
#[derive(Debug, thiserror::Error)]
pub enum DrawingScoreError {
    /// Their classes have other fields.
    #[error(transparent)]
    OtherFields(#[from] OtherFields),
    /// A state has an invalid value.
    #[error(transparent)]
    BadCells(#[from] BadCells),
}

/// Scores every mode on the snapshots that the session's players received, for the states of one part of the session.
/// `pass` reads the log once, and related rows are at most `near` apart. A session in memory is one chunk.
///
/// # Errors
/// When a recorded state does not belong to this game.
pub fn score<G: Game>(
    header: &SessionHeader,
    near: ReorderWindow,
    pass: LogPass<'_, DrawingScoreError>,
    rules: &G::Rules,
    settings: &Settings,
    part: Part,
) -> Result<Vec<ModeScore>, DrawingScoreError> {
    let rows = StateRows::new::<G>(&header.classes)?;
    let mut scoring = Scoring::<G>::new(rows, (rules, settings, part), header.players.len());
    let mut states = RecentChunkStates::default();
    let mut players: Vec<PendingSnapshots> = header.players.iter().map(|_| PendingSnapshots::default()).collect();
    let mut read = 0;
    pass(&mut |chunk| {
        states.add(chunk.states);
        for (player, records) in players.iter_mut().zip(chunk.players) {
            player.add(read, records);
        }
        read += 1;
        for (player, waiting) in (0..).map(PlayerId).zip(&mut players) {
            while let Some(record) = waiting.next(near, read) {
                scoring.received(player, &record, &states)?;
            }
        }
        let oldest = players.iter().filter_map(PendingSnapshots::oldest).min().unwrap_or(read);
        states.forget_before(oldest.saturating_sub(near.back));
        Ok(())
    })?;
    for (player, waiting) in (0..).map(PlayerId).zip(&mut players) {
        while let Some(record) = waiting.next(near, u32::MAX) {
            scoring.received(player, &record, &states)?;
        }
    }
    Ok(scoring.end())
}

/// The other players' states as each player has received them so far.
struct Scoring<'a, G: Game> {
    rows: StateRows,
    /// For each player, the other players in sight, each with its states since it last came into sight.
    tracks: Vec<Vec<(EntityId, SampleTrack<G::Body>)>>,
    scores: Scores<'a, G>,
}

/// The states still to be left out, and the one before them, each with its server time. A state is left out when all
/// states are there that had arrived when it was drawn.
type SampleTrack<B> = VecDeque<(Micros, B)>;

const MODES: [&str; 4] = ["off", "extrapolate", "two-point", "history"];

/// The errors of each way of drawing so far.
struct Scores<'a, G: Game> {
    rules: &'a G::Rules,
    limits: PlacementLimits,
    /// The limits for drawing the present.
    present: PlacementLimits,
    lerp: Micros,
    /// The part whose states are left out.
    part: Part,
    samples: u64,
    errors_units: [CountedValues; MODES.len()],
}

impl<'a, G: Game> Scoring<'a, G> {
    fn new(rows: StateRows, (rules, settings, part): (&'a G::Rules, &Settings, Part), players: usize) -> Self {
        let limits = PlacementLimits::of(settings);
        let extrapolate_max = Some(Micros::from_ms(settings.extrapolation.max_ms));
        let scores = Scores {
            rules,
            limits,
            present: PlacementLimits { extrapolate_max, ..limits },
            lerp: Micros::from_ms(settings.interpolation.lerp_ms),
            part,
            samples: 0,
            errors_units: Default::default(),
        };
        Scoring { rows, tracks: (0..players).map(|_| Vec::new()).collect(), scores }
    }

    /// Handles the next snapshot that a player received, in order of number.
    fn received(
        &mut self,
        player: PlayerId,
        record: &SnapshotRecord,
        states: &impl StateSource,
    ) -> Result<(), BadCells> {
        let players = self.tracks.len();
        let Some(tracks) = self.tracks.get_mut(usize::from(player.0)) else { return Ok(()) };
        for (_, gone) in tracks.extract_if(.., |(id, _)| record.entities.binary_search(id).is_err()) {
            self.scores.end(gone);
        }
        let is_other = |entity: &&EntityId| **entity != player.entity() && usize::from(entity.0) < players;
        for entity in record.entities.iter().filter(is_other) {
            let Some((class, cells)) = states.sent(record.tick, player, *entity).next() else { continue };
            let Some(body) = self.rows.read::<G>(class, cells)? else { continue };
            let place = tracks.iter().position(|(id, _)| id == entity).unwrap_or_else(|| {
                tracks.push((*entity, SampleTrack::new()));
                tracks.len() - 1
            });
            self.scores.add(&mut tracks[place].1, (record.server_time, body));
        }
        Ok(())
    }

    fn end(mut self) -> Vec<ModeScore> {
        for (_, track) in self.tracks.into_iter().flatten() {
            self.scores.end(track);
        }
        let Scores { samples, errors_units, .. } = self.scores;
        let of_mode = |(mode, errors): (_, CountedValues)| ModeScore { mode, samples, error_units: errors.tail() };
        MODES.into_iter().zip(errors_units).map(of_mode).collect()
    }
}

impl<G: Game> Scores<'_, G> {
    fn add(&mut self, track: &mut SampleTrack<G::Body>, sample: (Micros, G::Body)) {
        // A state of the same time takes the place of the last one, as in [`History::push`](crate::history::History).
        track.pop_back_if(|(at, _)| *at == sample.0);
        track.push_back(sample);
        while self.has_all(track) {
            self.leave_out(track);
        }
    }

    /// Finishes a track; no more states follow.
    fn end(&mut self, mut track: SampleTrack<G::Body>) {
        while track.len() > 1 {
            self.leave_out(&mut track);
        }
    }

    /// Returns whether the next state is there, and also one that had not arrived when it was drawn.
    fn has_all(&self, track: &SampleTrack<G::Body>) -> bool {
        let Some((at, _)) = track.get(1) else { return false };
        track.iter().skip(2).any(|(later, _)| *later > *at + self.lerp)
    }

    /// Draws the second state from the others, and drops the first.
    fn leave_out(&mut self, track: &mut SampleTrack<G::Body>) {
        let Scores { rules, limits, present, lerp, part, samples, errors_units } = self;
        let [(last_at, last), (at, truth), later @ ..] = &*track.make_contiguous() else { return };
        if part.has(*at) && !is_teleport(last, truth, limits) && at > last_at {
            let come = later.iter().take_while(|(later, _)| *later <= *at + *lerp).count();
            let after = &later[..come];
            let on_way = |(from, before): (Micros, &G::Body), (to, after): (Micros, &G::Body)| {
                between::<G>(Some(before), after, fraction_of_way(from, to, *at), limits)
            };
            // Without a later state, interpolation has no target.
            let without_target = || beyond::<G>(rules, *last_at, last, *at, limits);
            let history = after.first().map_or_else(without_target, |(t, next)| on_way((*last_at, last), (*t, next)));
            let two_point = match after {
                [] => without_target(),
                [(t, next)] => on_way((*last_at, last), (*t, next)),
                // Two-point interpolation keeps only the last two states. Both are later, so the earlier of them is the
                // nearest.
                [.., (t0, before), (t, next)] => on_way((*t0, before), (*t, next)),
            };
            let extrapolated = beyond::<G>(rules, *last_at, last, *at, present);
            let drawn = [last, &extrapolated.body, &two_point.body, &history.body];
            *samples += 1;
            for (errors, body) in errors_units.iter_mut().zip(drawn) {
                errors.add(body.offset_from(truth).length());
            }
        }
        track.pop_front();
    }
}

/// A player's snapshots whose arrival is not yet known, each with its chunk, and the numbers of the snapshots that
/// arrived.
#[derive(Default)]
struct PendingSnapshots {
    snapshots: SortedMap<u32, (u32, SnapshotRecord)>,
    arrived: SortedSet<u32>,
}

impl PendingSnapshots {
    fn add(&mut self, chunk: u32, records: PlayerRecords) {
        self.snapshots.extend(records.snapshots.into_iter().map(|record| (record.seq.0, (chunk, record))));
        self.arrived.extend(records.received.iter().map(|arrival| arrival.number));
    }

    /// Returns the chunk of the first of these snapshots.
    fn oldest(&self) -> Option<u32> {
        self.snapshots.values().map(|(chunk, _)| *chunk).min()
    }

    /// Returns the next snapshot that arrived, once enough chunks were read to know this and its states.
    fn next(&mut self, near: ReorderWindow, read: u32) -> Option<SnapshotRecord> {
        loop {
            let first = self.snapshots.first_entry()?;
            if first.get().0.saturating_add(near.back.max(near.ahead)) >= read {
                return None;
            }
            let (number, (_, record)) = first.remove_entry();
            let has_arrived = self.arrived.contains(&number);
            while self.arrived.first().is_some_and(|arrived| *arrived <= number) {
                self.arrived.pop_first();
            }
            if has_arrived {
                return Some(record);
            }
        }
    }
}
