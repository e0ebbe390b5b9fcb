//! The cost of latency for targets, by pair of players. Counts hits on targets that were not visible to the shooter at
//! their position on the server. Also measures how long these targets had been in cover on their own screens.
//!
//! Lag compensation accepts this cost (Bernier 2001: "hit around a corner"). Without lag compensation the shooter pays,
//! with shots that were on target but missed.

use serde::Serialize;

use crate::round_trips::{FoundTrip, RoundTripFinder};
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::{CountedValues, Spread};
use hitreg_log::trace::schema::{corrections, frames, shots, snapshots};
use hitreg_log::trace::{Table, Trace, TraceHeader};

/// The fairness of the shots in a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fairness {
    /// All shots together.
    pub all: CoverHits,
    /// Pairs of players with at least one hit, sorted by how much the shooter's latency exceeds the target's.
    pub pairs: Vec<PlayerPair>,
}

/// The shots of one player at another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayerPair {
    /// The player who shot.
    pub shooter: u32,
    /// The player who was hit.
    pub target: u32,
    /// The shooter's median round trip, in ms; `None` if the trace lacks it.
    pub shooter_latency_ms: Option<f32>,
    /// The target's median round trip, in ms; `None` if the trace lacks it.
    pub target_latency_ms: Option<f32>,
    /// The hits.
    #[serde(flatten)]
    pub shots: CoverHits,
}

/// Hits by whether the target was in cover.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoverHits {
    /// Hits by hitscan shots, without projectiles.
    pub hits: u64,
    /// The hits among `hits` for which the target's visibility is known.
    pub known: u64,
    /// The hits on a target that was not visible from the muzzle at its position on the server.
    pub in_cover: u64,
    /// How long these targets had been in cover on their own screens, in ms.
    pub in_cover_ms: Option<Spread>,
    /// How far these targets had moved in cover, in units.
    pub in_cover_units: Option<Spread>,
}

/// Accumulates hits.
#[derive(Clone, Debug, Default)]
pub struct CoverSums {
    /// The hits so far, without the spreads of the values below.
    counts: CoverHits,
    ms: Vec<f32>,
    units: Vec<f32>,
}

impl Fairness {
    /// Computes the fairness from a trace's tables. Values that the trace lacks are unknown.
    pub fn of(trace: &Trace) -> Fairness {
        let mut weighing = FairnessBuilder::default();
        for name in [frames::NAME, corrections::NAME, snapshots::NAME, shots::NAME] {
            trace.table(name).into_iter().for_each(|table| weighing.add(table));
        }
        weighing.fairness()
    }
}

/// Accumulates fairness from the rows of a replay.
#[derive(Debug, Default)]
pub struct FairnessBuilder {
    all: CoverSums,
    pairs: SortedMap<(u32, u32), CoverSums>,
    trips: RoundTripFinder,
    latencies: PlayerLatencies,
}

/// The round trips of each player, in ms: those of `snapshots`, or, in a trace without snapshots, of `corrections`.
#[derive(Debug, Default)]
pub(crate) struct PlayerLatencies {
    of_acks: TripLengths,
    of_snapshots: TripLengths,
}

#[derive(Debug, Default)]
struct TripLengths {
    all: CountedValues,
    by_player: SortedMap<u32, CountedValues>,
}

impl FairnessBuilder {
    /// Starts with a replay that has written no rows yet.
    pub fn of(trace: &TraceHeader) -> FairnessBuilder {
        FairnessBuilder { trips: RoundTripFinder::of(trace), ..FairnessBuilder::default() }
    }

    /// Adds rows. Rows of `ticks` complete all earlier rows.
    pub fn add(&mut self, rows: &Table) {
        let FairnessBuilder { trips, latencies, .. } = self;
        trips.add(rows, &mut |trip| latencies.add(&trip));
        if rows.name == shots::NAME {
            self.add_shots(&shots::Columns::read(rows));
        }
    }

    /// The round trips from usercmds to their acks, in ms, after all rows.
    pub fn round_trips_ms(&mut self) -> &CountedValues {
        self.trips.finish(&mut |trip| self.latencies.add(&trip));
        &self.latencies.counts().all
    }

    /// The fairness of all rows.
    pub fn fairness(mut self) -> Fairness {
        self.trips.finish(&mut |trip| self.latencies.add(&trip));
        let latency = self.latencies.medians_ms();
        let pair = |((shooter, target), gathered): ((u32, u32), CoverSums)| PlayerPair {
            shooter,
            target,
            shooter_latency_ms: latency.get(&shooter).copied(),
            target_latency_ms: latency.get(&target).copied(),
            shots: gathered.hits(),
        };
        let mut pairs: Vec<PlayerPair> = self.pairs.into_iter().map(pair).collect();
        pairs.sort_by(|a, b| b.later_by_ms().total_cmp(&a.later_by_ms()));
        Fairness { all: self.all.hits(), pairs }
    }

    fn add_shots(&mut self, shots: &shots::Columns<'_>) {
        for (row, (reason, target)) in shots.reason.iter().zip(shots.target.iter()).enumerate() {
            let target = target.strip_prefix('p').and_then(|number| number.parse().ok());
            let (Some(shooter), Some(target)) = (shots.shooter.get(row), target) else { continue };
            // Nobody judged a hit whose shot is not known.
            if reason != "hit" || shots.impact.get(row) == Some(&1) || shots.is_reported(row) {
                continue;
            }
            self.all.add(shots, row);
            self.pairs.entry((*shooter, target)).or_default().add(shots, row);
        }
    }
}

impl PlayerLatencies {
    pub(crate) fn add(&mut self, trip: &FoundTrip) {
        let of = if trip.is_snapshot { &mut self.of_snapshots } else { &mut self.of_acks };
        of.all.add(trip.ms);
        of.by_player.entry(trip.player).or_default().add(trip.ms);
    }

    fn counts(&self) -> &TripLengths {
        if self.of_snapshots.by_player.is_empty() { &self.of_acks } else { &self.of_snapshots }
    }

    /// The median round trip of each player.
    pub(crate) fn medians_ms(&self) -> SortedMap<u32, f32> {
        let medians = self.counts().by_player.iter();
        medians.filter_map(|(player, trips)| Some((*player, trips.percentile(50.0)?))).collect()
    }
}

impl PlayerPair {
    /// The shooter's latency minus the target's, in ms; 0 if one is unknown.
    pub fn later_by_ms(&self) -> f32 {
        self.shooter_latency_ms.zip(self.target_latency_ms).map_or(0.0, |(shooter, target)| shooter - target)
    }
}

impl CoverSums {
    /// Adds a hit by its row.
    pub fn add(&mut self, shots: &shots::Columns<'_>, row: usize) {
        let visible = shots.visible_at_present.get(row);
        self.counts.hits += 1;
        self.counts.known += u64::from(matches!(visible, "yes" | "no"));
        if visible == "no" {
            self.counts.in_cover += 1;
            self.ms.extend(shots.in_cover_ms.get(row));
            self.units.extend(shots.in_cover_units.get(row));
        }
    }

    /// Adds the hits of another replay.
    pub fn append(&mut self, other: &CoverSums) {
        self.counts.hits += other.counts.hits;
        self.counts.known += other.counts.known;
        self.counts.in_cover += other.counts.in_cover;
        self.ms.extend(&other.ms);
        self.units.extend(&other.units);
    }

    /// The hits so far.
    pub fn hits(self) -> CoverHits {
        CoverHits { in_cover_ms: Spread::of(self.ms), in_cover_units: Spread::of(self.units), ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::{Column, ColumnData};

    /// Three usercmds are acked after 60, 70 and 80 ms. Only the last ack was compared with a prediction, as when the
    /// player was dead before it.
    #[test]
    fn latencies_are_the_round_trips_of_info() {
        let table = |name: &str, columns: Vec<(&str, ColumnData)>| {
            Table::new(name, columns.into_iter().map(|(name, data)| Column::new(name, data)).collect())
        };
        let (player, three) = (("player", ColumnData::U32(vec![0; 3])), ColumnData::U32(vec![1, 2, 3]));
        let made_us = ColumnData::I64(vec![10_000, 20_000, 30_000]);
        let sent_us = ColumnData::I64(vec![40_000, 60_000, 80_000]);
        let made = table(frames::NAME, vec![player.clone(), ("command", three.clone()), ("at_us", made_us)]);
        let took_ms = ("took_ms", ColumnData::F32(vec![30.0; 3]));
        let numbers = ("snapshot", three.clone());
        let sent = table(snapshots::NAME, vec![player, numbers, ("at_us", sent_us), took_ms, ("ack", three)]);
        let one = |name| (name, ColumnData::U32(vec![if name == "player" { 0 } else { 3 }]));
        let acked_us = ("at_us", ColumnData::I64(vec![110_000]));
        let compared = table(corrections::NAME, vec![one("player"), one("command"), one("commands"), acked_us]);
        let mut builder = FairnessBuilder::default();
        [made, compared, sent].iter().for_each(|rows| builder.add(rows));
        assert_eq!(builder.round_trips_ms().percentile(50.0), Some(70.0));
        assert_eq!(builder.latencies.medians_ms().get(&0), Some(&70.0));
    }
}
