//! The result of a sweep: a row of figures for each combination of settings.

mod table;

pub use table::{SweepCell, SweepTable, figure_names};

use hitreg_log::record::WhatIf;
use hitreg_log::stats::Spread;

/// The result of a sweep: a row for each combination, in the order of the axes' values. The last axis changes fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// How the runs were made, which decides what the counts of hits mean.
    pub what_if: WhatIf,
    /// How often each session was run at each point.
    pub repeats: u16,
    /// The key of each axis: `PRESET` or a setting's key.
    pub keys: Vec<String>,
    /// The rows.
    pub rows: Vec<SweepRow>,
    /// Whether a build made the traces, which may lack tables.
    pub is_by_build: bool,
}

/// The figures of one combination.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// The value of each of [`Sweep::keys`].
    pub values: Vec<String>,
    /// The figures of all sessions together.
    pub figures: SweepFigures,
}

/// The figures of all replays under one combination of settings. A figure is `None` if no trace has its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepFigures {
    /// The number of usercmds.
    pub usercmds: Option<u64>,
    /// Shots that the server judged.
    pub shots: Option<u64>,
    /// The projectiles among the shots.
    pub launched: Option<u64>,
    /// Impacts of projectiles. They count as shots only if their launch is missing.
    pub impacts: Option<u64>,
    /// Shots that a client predicted but the server never ran. They do not count as shots.
    pub not_run: Option<u64>,
    /// Shots and projectiles that hit a target.
    pub hits: Option<u64>,
    /// Half the width of the 95 % confidence interval around the share of shots that hit. Only if bots played again
    /// with several seeds.
    pub hit_share_ci95: Option<f64>,
    /// Shots that hit on the shooter's screen but not on the server; `None` if no client predicts its shots.
    pub missed_on_target: Option<u64>,
    /// Distance between where the shooter's client drew a target and where the server judged it, in units.
    pub view_error_units: Option<Spread>,
    /// Hits on a target that was in cover at its place on the server; `None` if the game does not report cover.
    pub hits_in_cover: Option<u64>,
    /// For how long these targets had been in cover on their own screens, in milliseconds.
    pub in_cover_ms: Option<Spread>,
    /// How far these targets had moved in cover, in units.
    pub in_cover_units: Option<Spread>,
    /// Predictions that were compared with the server's state.
    pub checked: Option<u64>,
    /// Predictions that were corrected.
    pub corrections: Option<u64>,
    /// Size of the corrections in units, without those of spawns, deaths and teleports.
    pub correction_units: Option<Spread>,
    /// Average bytes/s from the server to one client; `None` in open loop.
    pub down_bytes_per_s: Option<f64>,
    /// Average bytes/s from one client to the server.
    pub up_bytes_per_s: Option<f64>,
}

impl SweepFigures {
    /// The share of shots that hit; `None` without shots.
    pub fn hit_share(&self) -> Option<f64> {
        let (hits, shots) = (self.hits?, self.shots.filter(|shots| *shots > 0)?);
        Some(hits as f64 / shots as f64)
    }
}
