//! The cost of latency for targets, by pair of players. Counts hits on targets that were not visible to the shooter at
//! their position on the server. Also measures how long these targets had been in cover on their own screens.
//!
//! Lag compensation accepts this cost (Bernier 2001: "hit around a corner"). Without lag compensation the shooter pays,
//! with shots that were on target but missed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::recent_times::RecentTimes;
use hitreg_log::stats::{CountedValues, Spread};
use hitreg_log::trace::schema::{executed, frames, shots, ticks};
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
    /// The shooter's median round-trip latency, in ms; `None` if the trace lacks it.
    pub shooter_latency_ms: Option<f32>,
    /// The target's median round-trip latency, in ms; `None` if the trace lacks it.
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
#[derive(Debug, Default)]
struct FairnessSums {
    hits: u64,
    known: u64,
    in_cover: u64,
    ms: Vec<f32>,
    units: Vec<f32>,
}

impl Fairness {
    /// Computes the fairness from a trace's tables. Values that the trace lacks are unknown.
    pub fn of(trace: &Trace) -> Fairness {
        let mut weighing = FairnessBuilder::default();
        for name in [ticks::NAME, frames::NAME, executed::NAME, shots::NAME] {
            trace.table(name).into_iter().for_each(|table| weighing.gather(table));
        }
        weighing.fairness()
    }
}

/// Accumulates fairness from the rows of a replay.
#[derive(Debug, Default)]
pub struct FairnessBuilder {
    all: FairnessSums,
    pairs: BTreeMap<(u32, u32), FairnessSums>,
    tick_at: RecentTimes,
    /// The rows since the last rows of `ticks`.
    executed: Vec<Table>,
    /// The time at which each player made each usercmd.
    made_at: BTreeMap<u32, RecentTimes>,
    up: BTreeMap<u32, CountedValues>,
    down: BTreeMap<u32, CountedValues>,
    /// Whether the replay has no times at which usercmds ran.
    is_open_loop: bool,
}

impl FairnessBuilder {
    /// Starts with a replay that has written no rows yet.
    pub fn of(trace: &TraceHeader) -> FairnessBuilder {
        FairnessBuilder { is_open_loop: trace.is_open(), ..FairnessBuilder::default() }
    }

    /// Adds rows. Rows of `ticks` complete all earlier rows.
    pub fn add(&mut self, rows: &Table) {
        self.gather(rows);
        if rows.name == ticks::NAME {
            self.look();
        }
    }

    fn gather(&mut self, rows: &Table) {
        match rows.name.as_str() {
            ticks::NAME => {
                let ticks = ticks::Columns::read(rows);
                ticks.tick.iter().zip(ticks.at_us).for_each(|(tick, at_us)| self.tick_at.add(*tick, *at_us));
            }
            frames::NAME => self.add_frames(&frames::Columns::read(rows)),
            executed::NAME => self.executed.push(rows.clone()),
            shots::NAME => self.add_shots(&shots::Columns::read(rows)),
            _ => {}
        }
    }

    /// The fairness of all rows.
    pub fn fairness(mut self) -> Fairness {
        self.look();
        let latency = self.latencies_ms();
        let pair = |((shooter, target), gathered): ((u32, u32), FairnessSums)| PlayerPair {
            shooter,
            target,
            shooter_latency_ms: latency.get(&shooter).copied(),
            target_latency_ms: latency.get(&target).copied(),
            shots: gathered.exposure(),
        };
        let mut pairs: Vec<PlayerPair> = self.pairs.into_iter().map(pair).collect();
        pairs.sort_by(|a, b| b.later_by_ms().total_cmp(&a.later_by_ms()));
        Fairness { all: self.all.exposure(), pairs }
    }

    fn add_shots(&mut self, shots: &shots::Columns<'_>) {
        let visible: Vec<&str> = shots.visible_at_present.iter().collect();
        for (row, (reason, target)) in shots.reason.iter().zip(shots.target.iter()).enumerate() {
            let target = target.strip_prefix('p').and_then(|number| number.parse().ok());
            let (Some(shooter), Some(target)) = (shots.shooter.get(row), target) else { continue };
            if reason != "hit" || shots.impact.get(row) == Some(&1) {
                continue;
            }
            for gathered in [&mut self.all, self.pairs.entry((*shooter, target)).or_default()] {
                let measure = |column: &[f32]| column.get(row).copied().unwrap_or(f32::NAN);
                gathered.add(visible.get(row).copied(), measure(shots.in_cover_ms), measure(shots.in_cover_units));
            }
        }
    }

    fn add_frames(&mut self, frames: &frames::Columns<'_>) {
        for row in 0..frames.rows {
            let [Some(player), Some(command)] = [frames.player, frames.command].map(|c| c.get(row).copied()) else {
                continue;
            };
            let [Some(made), Some(shown)] = [frames.at_us, frames.server_time_us].map(|c| c.get(row).copied()) else {
                continue;
            };
            if !self.is_open_loop {
                self.made_at.entry(player).or_default().add(command, made);
            }
            // A client has no clock before its first snapshot.
            if frames.has_body.get(row) == Some(&1) {
                self.down.entry(player).or_default().add((made - shown) as f32);
            }
        }
    }

    /// Looks up when the executed usercmds were made.
    fn look(&mut self) {
        for table in std::mem::take(&mut self.executed) {
            let executed = executed::Columns::read(&table);
            let usercmds = executed.player.iter().zip(executed.command);
            for ((how, tick), (player, command)) in executed.how.iter().zip(executed.tick).zip(usercmds) {
                let made = self.made_at.get(player).and_then(|made| made.get(*command));
                if let (Some(ran), Some(made), "run") = (self.tick_at.get(*tick), made, how) {
                    self.up.entry(*player).or_default().add((ran - made) as f32);
                }
            }
        }
        if let Some(newest_us) = self.tick_at.last() {
            self.tick_at.forget(newest_us);
            self.made_at.values_mut().for_each(|made| made.forget(newest_us));
        }
    }

    /// The median round-trip latency of each player, in ms. It adds two medians: from making a usercmd to the tick that
    /// ran it, and from a snapshot's tick to the client's clock.
    pub fn latencies_ms(&self) -> BTreeMap<u32, f32> {
        let there_and_back = |(player, down): (&u32, &CountedValues)| {
            let up = self.up.get(player)?.percentile(50.0)?;
            Some((*player, (up + down.percentile(50.0)?) / 1000.0))
        };
        self.down.iter().filter_map(there_and_back).collect()
    }
}

impl PlayerPair {
    /// The shooter's latency minus the target's, in ms; 0 if one is unknown.
    pub fn later_by_ms(&self) -> f32 {
        self.shooter_latency_ms.zip(self.target_latency_ms).map_or(0.0, |(shooter, target)| shooter - target)
    }
}

impl FairnessSums {
    fn add(&mut self, visible: Option<&str>, ms: f32, units: f32) {
        self.hits += 1;
        self.known += u64::from(matches!(visible, Some("yes" | "no")));
        if visible == Some("no") {
            self.in_cover += 1;
            self.ms.push(ms);
            self.units.push(units);
        }
    }

    fn exposure(self) -> CoverHits {
        let FairnessSums { hits, known, in_cover, ms, units } = self;
        CoverHits { hits, known, in_cover, in_cover_ms: Spread::of(ms), in_cover_units: Spread::of(units) }
    }
}
