//! The figures of one combination of settings, collected from the rows of its replays.

use hitreg_analysis::summary::{Summary, SummaryBuilder, is_relocation};
use hitreg_analysis::swept::SweepFigures;
use hitreg_analysis::why::is_corrected;
use hitreg_log::stats::Spread;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{TableSchema, corrections, executed, frames, shots};
use hitreg_log::units::Micros;
use hitreg_netcode::replay::TrafficBytes;

/// The sums from which the figures are computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FigureSums {
    has_usercmds: bool,
    has_shots: bool,
    has_corrections: bool,
    usercmds: u64,
    shots: u64,
    launched: u64,
    impacts: u64,
    not_run: u64,
    hits: u64,
    predicted_shots: u64,
    missed_on_target: u64,
    view_errors: Vec<f32>,
    /// Hits for which the game reports whether the target was in cover.
    known_covers: u64,
    hits_in_cover: u64,
    in_cover_ms: Vec<f32>,
    in_cover_units: Vec<f32>,
    checked: u64,
    corrections: u64,
    correction_units: Vec<f32>,
    traffic: Option<TrafficSums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrafficSums {
    down_bytes: u64,
    up_bytes: u64,
    /// The sum of all players' times in the sessions, in seconds.
    player_seconds: f64,
}

/// Collects the sums from the rows of a replay.
#[derive(Debug, Default)]
pub(crate) struct FigureCollector {
    summary: SummaryBuilder,
    sums: FigureSums,
}

impl FigureCollector {
    /// The tables that have figures.
    pub(crate) const TABLES: [&TableSchema; 4] =
        [&executed::SCHEMA, &frames::SCHEMA, &corrections::SCHEMA, &shots::SCHEMA];

    /// Adds rows of a table. A table without rows has figures, too: they are 0.
    pub(crate) fn add(&mut self, rows: &Table) {
        self.summary.add(rows);
        match rows.name.as_str() {
            frames::NAME | executed::NAME => self.sums.has_usercmds = true,
            shots::NAME => self.sums.add_shots(&shots::Columns::read(rows)),
            corrections::NAME => self.sums.add_corrections(&corrections::Columns::read(rows)),
            _ => {}
        }
    }

    /// Adds the traffic of a session of this length.
    pub(crate) fn add_traffic(&mut self, traffic: TrafficBytes, length: Micros, players: usize) {
        let TrafficBytes { down_bytes, up_bytes } = traffic;
        let player_seconds = length.as_s_f64() * players as f64;
        self.sums.traffic = Some(TrafficSums { down_bytes, up_bytes, player_seconds });
    }

    /// The sums of all rows.
    pub(crate) fn finish(self) -> FigureSums {
        let Summary { exercised, shots, prediction, .. } = self.summary.summary();
        FigureSums {
            usercmds: exercised.usercmds,
            shots: shots.fired,
            launched: shots.launched,
            impacts: shots.impacts,
            not_run: shots.not_run,
            hits: shots.hit,
            checked: prediction.checked,
            ..self.sums
        }
    }
}

impl FigureSums {
    fn add_corrections(&mut self, corrections: &corrections::Columns<'_>) {
        self.has_corrections = true;
        for row in (0..corrections.rows).filter(|row| is_corrected(corrections, *row)) {
            self.corrections += 1;
            if !is_relocation(corrections.cause.get(row)) {
                self.correction_units.extend(corrections.error_units.get(row));
            }
        }
    }

    fn add_shots(&mut self, shots: &shots::Columns<'_>) {
        self.has_shots = true;
        self.view_errors.extend(shots.view_error_units);
        let screens: Vec<&str> = shots.predicted_reason.iter().collect();
        for (row, reason) in shots.reason.iter().enumerate() {
            if reason == "not run" || shots.impact.get(row) == Some(&1) {
                continue;
            }
            let screen = screens.get(row).copied().unwrap_or("not predicted");
            self.predicted_shots += u64::from(screen != "not predicted");
            self.missed_on_target += u64::from(screen == "hit" && reason != "hit");
            if reason != "hit" {
                continue;
            }
            match shots.visible_at_present.get(row) {
                "yes" => self.known_covers += 1,
                "no" => {
                    self.known_covers += 1;
                    self.hits_in_cover += 1;
                    self.in_cover_ms.extend(shots.in_cover_ms.get(row));
                    self.in_cover_units.extend(shots.in_cover_units.get(row));
                }
                _ => {}
            }
        }
    }

    /// The share of shots that hit; `None` without shots.
    pub(super) fn hit_share(&self) -> Option<f64> {
        (self.shots > 0).then(|| self.hits as f64 / self.shots as f64)
    }

    pub(super) fn add(&mut self, other: FigureSums) {
        self.has_usercmds |= other.has_usercmds;
        self.has_shots |= other.has_shots;
        self.has_corrections |= other.has_corrections;
        self.usercmds += other.usercmds;
        self.shots += other.shots;
        self.launched += other.launched;
        self.impacts += other.impacts;
        self.not_run += other.not_run;
        self.hits += other.hits;
        self.predicted_shots += other.predicted_shots;
        self.missed_on_target += other.missed_on_target;
        self.view_errors.extend(other.view_errors);
        self.known_covers += other.known_covers;
        self.hits_in_cover += other.hits_in_cover;
        self.in_cover_ms.extend(other.in_cover_ms);
        self.in_cover_units.extend(other.in_cover_units);
        self.checked += other.checked;
        self.corrections += other.corrections;
        self.correction_units.extend(other.correction_units);
        if let Some(more) = other.traffic {
            let traffic = self.traffic.get_or_insert_default();
            traffic.down_bytes += more.down_bytes;
            traffic.up_bytes += more.up_bytes;
            traffic.player_seconds += more.player_seconds;
        }
    }

    pub(super) fn figures(self) -> SweepFigures {
        let traffic = self.traffic.filter(|traffic| traffic.player_seconds > 0.0);
        let of_shots = |count: u64| self.has_shots.then_some(count);
        SweepFigures {
            usercmds: self.has_usercmds.then_some(self.usercmds),
            shots: of_shots(self.shots),
            launched: of_shots(self.launched),
            impacts: of_shots(self.impacts),
            not_run: of_shots(self.not_run),
            hits: of_shots(self.hits),
            hit_share_ci95: None,
            missed_on_target: (self.predicted_shots > 0).then_some(self.missed_on_target),
            view_error_units: Spread::of(self.view_errors),
            hits_in_cover: (self.known_covers > 0).then_some(self.hits_in_cover),
            in_cover_ms: Spread::of(self.in_cover_ms),
            in_cover_units: Spread::of(self.in_cover_units),
            checked: self.has_corrections.then_some(self.checked),
            corrections: self.has_corrections.then_some(self.corrections),
            correction_units: Spread::of(self.correction_units),
            down_bytes_per_s: traffic.map(|t| t.down_bytes as f64 / t.player_seconds),
            up_bytes_per_s: traffic.map(|t| t.up_bytes as f64 / t.player_seconds),
        }
    }
}
