//! Who pays for latency: of the shots in a trace, how many hit somebody whom the shooter could not see any more where the
//! server had them, and for how long those had been safe on their own screens. For each pair of players.
//!
//! Lag compensation takes this price knowingly (Bernier 2001: "hit around a corner"); without it the shooter pays instead,
//! in shots that were on target and missed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::stats::{Spread, percentile};
use crate::trace::Trace;
use crate::trace::schema::{executed, frames, shots, ticks};

/// The fairness of the shots in a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fairness {
    /// All shots together.
    pub all: Exposure,
    /// Each pair of players of whom one hit the other. Those come first whose shooter is the later of the two by the most.
    pub pairs: Vec<Pair>,
}

/// The shots of one player at another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Who shot.
    pub shooter: u32,
    /// Who was hit.
    pub target: u32,
    /// The shooter's median latency, there and back, in ms; `None` when the trace does not tell.
    pub shooter_latency_ms: Option<f32>,
    /// The target's.
    pub target_latency_ms: Option<f32>,
    /// The shots.
    #[serde(flatten)]
    pub shots: Exposure,
}

/// How those who were hit were exposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Exposure {
    /// Shots that hit, and were not projectiles.
    pub hits: u64,
    /// Those of which it is known whether the target was in sight.
    pub known: u64,
    /// Those whose target the shooter could not have seen from the muzzle where the server had it.
    pub in_cover: u64,
    /// For how long they had been in cover on their own screens, in ms.
    pub in_cover_ms: Option<Spread>,
    /// How far they had moved there since, in units.
    pub in_cover_units: Option<Spread>,
}

/// Shots as they are gathered.
#[derive(Default)]
struct Gathered {
    hits: u64,
    known: u64,
    in_cover: u64,
    ms: Vec<f32>,
    units: Vec<f32>,
}

impl Fairness {
    /// Judges a trace by its tables alone. What a build did not write is not known.
    pub fn of(trace: &Trace) -> Fairness {
        let shots = shots::Columns::of(trace);
        let visible: Vec<&str> = shots.visible_at_present.iter().collect();
        let mut all = Gathered::default();
        let mut pairs: BTreeMap<(u32, u32), Gathered> = BTreeMap::new();
        for (row, (reason, target)) in shots.reason.iter().zip(shots.target.iter()).enumerate() {
            let target = target.strip_prefix('p').and_then(|number| number.parse().ok());
            let (Some(shooter), Some(target)) = (shots.shooter.get(row), target) else { continue };
            if reason != "hit" || shots.impact.get(row) == Some(&1) {
                continue;
            }
            for gathered in [&mut all, pairs.entry((*shooter, target)).or_default()] {
                let measure = |column: &[f32]| column.get(row).copied().unwrap_or(f32::NAN);
                gathered.add(visible.get(row).copied(), measure(shots.in_cover_ms), measure(shots.in_cover_units));
            }
        }
        let latency = latencies_ms(trace);
        let pair = |((shooter, target), gathered): ((u32, u32), Gathered)| Pair {
            shooter,
            target,
            shooter_latency_ms: latency.get(&shooter).copied(),
            target_latency_ms: latency.get(&target).copied(),
            shots: gathered.exposure(),
        };
        let mut pairs: Vec<Pair> = pairs.into_iter().map(pair).collect();
        pairs.sort_by(|a, b| b.later_by_ms().total_cmp(&a.later_by_ms()));
        Fairness { all: all.exposure(), pairs }
    }
}

impl Pair {
    /// By how much the shooter's latency is the greater, in ms; 0 when one of them is not known.
    pub fn later_by_ms(&self) -> f32 {
        self.shooter_latency_ms.zip(self.target_latency_ms).map_or(0.0, |(shooter, target)| shooter - target)
    }
}

impl Gathered {
    fn add(&mut self, visible: Option<&str>, ms: f32, units: f32) {
        self.hits += 1;
        self.known += u64::from(matches!(visible, Some("yes" | "no")));
        if visible == Some("no") {
            self.in_cover += 1;
            self.ms.push(ms);
            self.units.push(units);
        }
    }

    fn exposure(self) -> Exposure {
        let Gathered { hits, known, in_cover, ms, units } = self;
        Exposure { hits, known, in_cover, in_cover_ms: Spread::of(ms), in_cover_units: Spread::of(units) }
    }
}

/// Each player's median latency there and back: from a usercmd's making to the tick in which it ran, and from a snapshot's
/// tick to the clock of the player who has it.
fn latencies_ms(trace: &Trace) -> BTreeMap<u32, f32> {
    let (frames, executed, ticks) =
        (frames::Columns::of(trace), executed::Columns::of(trace), ticks::Columns::of(trace));
    let mut made_at = BTreeMap::new();
    let mut down: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for row in 0..frames.rows {
        let [Some(player), Some(command)] = [frames.player, frames.command].map(|c| c.get(row).copied()) else {
            continue;
        };
        let [Some(made), Some(shown)] = [frames.at_us, frames.server_time_us].map(|c| c.get(row).copied()) else {
            continue;
        };
        made_at.insert((player, command), made);
        // Before its first snapshot a client has no clock.
        if frames.has_body.get(row) == Some(&1) {
            down.entry(player).or_default().push(made - shown);
        }
    }
    let tick_at: BTreeMap<u32, i64> = ticks.tick.iter().copied().zip(ticks.at_us.iter().copied()).collect();
    let mut up: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    let usercmds = executed.player.iter().zip(executed.command);
    for ((how, tick), (player, command)) in executed.how.iter().zip(executed.tick).zip(usercmds) {
        if let (Some(ran), Some(made), "run") = (tick_at.get(tick), made_at.get(&(*player, *command)), how) {
            up.entry(*player).or_default().push(ran - made);
        }
    }
    let there_and_back = |(player, down): (u32, Vec<i64>)| {
        let up = median(up.remove(&player)?)?;
        Some((player, (up + median(down)?) as f32 / 1000.0))
    };
    down.into_iter().filter_map(there_and_back).collect()
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    percentile(&values, 50.0)
}
