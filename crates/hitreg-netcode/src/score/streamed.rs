//! Scoring of a log in one pass, while it is read.

use super::{DrawingScoreError, ModeScore, Scoring};
use crate::game::{Game, StateRows};
use crate::replay::{LogPass, LogSurvey, ReorderWindow};
use crate::settings::Settings;
use hitreg_log::record::{PlayerRecords, RecentChunkStates, SessionHeader, SnapshotRecord};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::PlayerId;

/// Like [`score`](super::score()), for a log that `pass` reads once. Returns `None` when related rows are too far apart
/// in the log.
///
/// # Errors
/// When a recorded state does not belong to this game.
pub fn score_streamed<G: Game>(
    (header, survey): (&SessionHeader, &LogSurvey),
    pass: LogPass<'_, DrawingScoreError>,
    rules: &G::Rules,
    settings: &Settings,
) -> Result<Option<Vec<ModeScore>>, DrawingScoreError> {
    let rows = StateRows::new::<G>(&header.classes)?;
    let Some(near) = survey.near() else { return Ok(None) };
    let mut scoring = Scoring::<G>::new(rows, (rules, settings), header.players.len());
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
    Ok(Some(scoring.end()))
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
