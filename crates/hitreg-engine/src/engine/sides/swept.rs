//! Sweeps by a build: every point is a replay of the build under other settings.

use std::path::Path;

use super::{ComparisonSource, ReplaySpec};
use crate::engine::{Engine, EngineError, check};
use crate::sweep::{FigureCollector, Sweep, SweepBuilder, SweepPlan, sweep_by};
use hitreg_analysis::diff::{DiffError, TraceSide};
use hitreg_log::trace::{TraceSource, each_part};
use hitreg_netcode::replay::WhatIf;

/// Adds the tables of a trace of any length that have figures.
fn add_trace(figures: &mut FigureCollector, trace: &dyn TraceSource) -> Result<(), String> {
    for (table, _) in trace.tables() {
        let Some(schema) = FigureCollector::TABLES.iter().find(|schema| schema.name == table.name) else { continue };
        figures.add(trace.header(), &table.without_rows());
        let columns: Vec<&str> = schema.columns.iter().map(|column| column.name).collect();
        each_part(trace, &table.name, (&columns, None), &mut |rows| {
            figures.add(trace.header(), rows);
            Ok(())
        })?;
    }
    Ok(())
}

impl ReplaySpec {
    /// Replays logs by this side's build under every combination of a plan, in parallel. Tables that the build does not
    /// write have no figures. `done` is called at the end of each replay.
    ///
    /// # Errors
    /// Fails if a file, a setting or the build is not available, if the logs are of several games, or if the job was
    /// stopped.
    pub fn sweep(
        &self,
        engine: &Engine<'_>,
        (logs, plan): (&[&Path], &SweepPlan),
        done: &(dyn Fn() + Sync),
    ) -> Result<Sweep, EngineError> {
        let sources = logs.iter().map(|path| ComparisonSource::of(engine, path)).collect::<Result<Vec<_>, _>>()?;
        for source in &sources {
            let Some(log) = source.log() else { return Err(EngineError::replayed(source.path)) };
            if sources[0].log().is_some_and(|first| first.header.game != log.header.game) {
                return Err(EngineError::other_game(source.path));
            }
            for point in plan.points() {
                self.at(plan, &point).check(engine, source)?;
            }
        }
        let one = |log: usize, point: &[&str], _| {
            check(&engine.runner.stop)?;
            let trace = self.at(plan, point).trace(engine, &sources[log], (TraceSide::A, false))?.trace;
            let mut figures = FigureCollector::default();
            add_trace(&mut figures, trace.source()).map_err(|what| EngineError::from(DiffError::Unread(what)))?;
            done();
            Ok(figures.finish())
        };
        let swept = sweep_by::<EngineError>(sources.len(), plan, (&one, rayon::current_num_threads()));
        check(&engine.runner.stop)?;
        let mut builder = SweepBuilder::new(plan);
        builder.add(swept?);
        Ok(Sweep { is_by_build: true, ..builder.finish() })
    }

    /// This side at one point of a plan.
    fn at(&self, plan: &SweepPlan, point: &[&str]) -> ReplaySpec {
        let (preset, set) = plan.options(point);
        let rejudge = plan.what_if() == WhatIf::Rejudge;
        ReplaySpec { preset: preset.map(str::to_owned), set, rejudge, ..self.clone() }
    }
}
