//! The figures of one combination of settings, from the rows of its replays.

use hitreg_analysis::fairness::CoverSums;
use hitreg_analysis::summary::{Summary, SummaryBuilder, is_relocation};
use hitreg_analysis::swept::SweepFigures;
use hitreg_analysis::why::is_corrected;
use hitreg_log::stats::Spread;
use hitreg_log::trace::schema::{TableSchema, corrections, executed, frames, is_judged, shots};
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::Micros;
use hitreg_netcode::replay::TrafficBytes;

/// What the figures need of one replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFigures {
    has_usercmds: bool,
    has_judged_shots: bool,
    has_corrections: bool,
    summary: Summary,
    is_predicted: bool,
    missed_on_target: u64,
    view_errors: Vec<f32>,
    cover: CoverSums,
    correction_units: Vec<f32>,
    traffic: Option<TrafficBytes>,
    /// The sum of all players' times in the session, in seconds; 0 without traffic.
    player_seconds: f64,
}

/// Collects the figures of a run from the rows of its replay.
#[derive(Debug, Default)]
pub(crate) struct FigureCollector {
    summary: SummaryBuilder,
    run: RunFigures,
    /// Whether the shots come from a replay in open loop; `None` without a table of shots.
    shots_are_open: Option<bool>,
}

impl FigureCollector {
    /// The tables that have figures.
    pub(crate) const TABLES: [&TableSchema; 4] =
        [&executed::SCHEMA, &frames::SCHEMA, &corrections::SCHEMA, &shots::SCHEMA];

    /// Adds rows of a table of a trace. A table without rows has figures, too: they are 0.
    pub(crate) fn add(&mut self, header: &TraceHeader, rows: &Table) {
        self.summary.add(rows);
        match rows.name.as_str() {
            frames::NAME | executed::NAME => self.run.has_usercmds = true,
            shots::NAME => {
                self.shots_are_open = Some(header.is_open());
                self.run.add_shots(&shots::Columns::read(rows));
            }
            corrections::NAME => self.run.add_corrections(&corrections::Columns::read(rows)),
            _ => {}
        }
    }

    /// Adds the traffic of a session of this length.
    pub(crate) fn add_traffic(&mut self, traffic: TrafficBytes, length: Micros, players: usize) {
        self.run.traffic = Some(traffic);
        self.run.player_seconds = length.as_s_f64() * players as f64;
    }

    /// The figures of all rows.
    pub(crate) fn finish(self) -> RunFigures {
        let summary = self.summary.summary();
        let has_judged_shots = self.shots_are_open.is_some_and(|is_open| summary.shots.are_judged(is_open));
        RunFigures { summary, has_judged_shots, ..self.run }
    }
}

impl RunFigures {
    fn add_corrections(&mut self, corrections: &corrections::Columns<'_>) {
        self.has_corrections = true;
        let is_measured = |row: &usize| is_corrected(corrections, *row) && !is_relocation(corrections.cause.get(*row));
        let measured = (0..corrections.rows).filter(is_measured);
        let units = measured.filter_map(|row| corrections.error_units.get(row));
        // An absent body has no place.
        self.correction_units.extend(units.filter(|units| !units.is_nan()));
    }

    fn add_shots(&mut self, shots: &shots::Columns<'_>) {
        self.view_errors.extend(shots.view_error_units);
        let screens: Vec<&str> = shots.predicted_reason.iter().collect();
        for (row, reason) in shots.reason.iter().enumerate() {
            if !is_judged(reason) || shots.impact.get(row) == Some(&1) {
                continue;
            }
            let screen = screens.get(row).copied().unwrap_or("not predicted");
            self.is_predicted |= screen != "not predicted";
            self.missed_on_target += u64::from(screen == "hit" && reason != "hit");
            if reason == "hit" {
                self.cover.add(shots, row);
            }
        }
    }

    /// The numbers of shots that hit and of all shots.
    pub(super) fn hits_of_shots(&self) -> (u64, u64) {
        (self.summary.shots.hit, self.summary.shots.fired)
    }

    /// The figures of several replays together, without the confidence interval.
    pub(super) fn together(runs: &[RunFigures]) -> SweepFigures {
        let has = |table: fn(&RunFigures) -> bool| runs.iter().any(table);
        let sum = |of: fn(&RunFigures) -> u64| runs.iter().map(of).sum::<u64>();
        let spread = |of: fn(&RunFigures) -> &Vec<f32>| Spread::of(runs.iter().flat_map(of).copied());
        let mut cover = CoverSums::default();
        runs.iter().for_each(|run| cover.append(&run.cover));
        let cover = cover.hits();
        let traffic = || runs.iter().filter_map(|run| run.traffic.as_ref());
        let player_seconds: f64 = runs.iter().map(|run| run.player_seconds).sum();
        let per_s = |bytes: fn(&TrafficBytes) -> u64| {
            (player_seconds > 0.0).then(|| traffic().map(bytes).sum::<u64>() as f64 / player_seconds)
        };
        let of_shots = |of: fn(&RunFigures) -> u64| has(|run| run.has_judged_shots).then(|| sum(of));
        let of_corrections = |of: fn(&RunFigures) -> u64| has(|run| run.has_corrections).then(|| sum(of));
        SweepFigures {
            usercmds: has(|run| run.has_usercmds).then(|| sum(|run| run.summary.exercised.usercmds)),
            shots: of_shots(|run| run.summary.shots.fired),
            launched: of_shots(|run| run.summary.shots.launched),
            impacts: of_shots(|run| run.summary.shots.impacts),
            not_run: of_shots(|run| run.summary.shots.not_run),
            hits: of_shots(|run| run.summary.shots.hit),
            hit_share_ci95: None,
            missed_on_target: has(|run| run.is_predicted).then(|| sum(|run| run.missed_on_target)),
            view_error_units: spread(|run| &run.view_errors),
            hits_in_cover: (cover.known > 0).then_some(cover.in_cover),
            in_cover_ms: cover.in_cover_ms,
            in_cover_units: cover.in_cover_units,
            checked: of_corrections(|run| run.summary.prediction.checked),
            corrections: of_corrections(|run| run.summary.exercised.corrections.unwrap_or_default()),
            correction_units: spread(|run| &run.correction_units),
            down_bytes_per_s: per_s(|traffic| traffic.down_bytes),
            up_bytes_per_s: per_s(|traffic| traffic.up_bytes),
        }
    }
}
