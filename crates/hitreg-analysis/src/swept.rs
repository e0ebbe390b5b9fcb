//! What a sweep found: a row of figures for each combination of settings.

mod table;

pub use table::{Cell, Table, figure_names};

use hitreg_log::record::WhatIf;
use hitreg_log::stats::Spread;

/// The outcome: a row for each combination, in the order of the axes' values, the last axis running fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What was asked: what the counts of hits mean depends on it.
    pub what_if: WhatIf,
    /// How often each session was run at each point.
    pub repeats: u16,
    /// What was varied: `PRESET` or a setting's key, for each axis.
    pub keys: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The value of each of [`Sweep::keys`].
    pub values: Vec<String>,
    /// What all sessions together came to.
    pub figures: Figures,
}

/// What replays under one combination of settings came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Usercmds in them.
    pub usercmds: u64,
    /// Shots that the server judged.
    pub shots: u64,
    /// Shots and projectiles that hurt somebody.
    pub hits: u64,
    /// Half the width of the 95 % confidence interval around the share of shots that hit, where bots played anew from several
    /// seeds.
    pub hit_share_ci95: Option<f64>,
    /// Shots that hit on the shooter's screen and not on the server; `None` when no client predicts its shots.
    pub missed_on_target: Option<u64>,
    /// Between where a target was drawn and where the server judged it to be.
    pub view_error_units: Option<Spread>,
    /// Shots that hit somebody who was in cover where the server had them; `None` when the game does not say who is.
    pub hits_in_cover: Option<u64>,
    /// For how long those had been in cover on their own screens.
    pub in_cover_ms: Option<Spread>,
    /// How far they had moved there.
    pub in_cover_units: Option<Spread>,
    /// Predictions that were held against the server's word.
    pub checked: u64,
    /// Predictions that had to be corrected.
    pub corrections: u64,
    /// By how much, without those of spawns, deaths and teleports.
    pub correction_units: Option<Spread>,
    /// What the server sends to one client on the average; `None` in open loop.
    pub down_bytes_per_s: Option<f64>,
    /// What one client sends on the average.
    pub up_bytes_per_s: Option<f64>,
}
