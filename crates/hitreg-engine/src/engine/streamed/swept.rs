//! Sweeps by this program: every point is a replay of the logs under other settings.

use super::SurveyedLog;
use crate::engine::{EngineError, Playable};
use crate::sweep::{FigureCollector, LogFigures, RunFigures, SweepPlan, sweep_by};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::trace::schema::TableSet;
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::Seed;
use hitreg_netcode::replay::{ReplayError, ReplayOptions, TrafficBytes, WhatIf};
use hitreg_netcode::settings::Settings;

/// Why logs cannot be swept.
#[derive(Debug, thiserror::Error)]
#[error("log {}: {source}", .log + 1)]
pub struct SweepError {
    /// The index of the log, from 0.
    pub log: usize,
    /// The reason. It is [`EngineError::Setting`] if the log's own settings are not valid in this build.
    pub source: EngineError,
}

/// Runs every log of a game at every point of a plan, [`SweepPlan::repeats`] times each, in parallel;
/// [`SweepBuilder`](crate::sweep::SweepBuilder) adds up their figures. `done` is called at the end of each run; each log
/// has [`SweepPlan::runs`] of them. Logs are replayed while they are read; bots that play again need them in memory.
///
/// # Errors
/// When this build cannot run a log, or not within its memory limit.
pub fn sweep(
    game: &dyn Playable,
    logs: &[SurveyedLog],
    plan: &SweepPlan,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<LogFigures>, SweepError> {
    let failed = |log: usize| move |source| SweepError { log, source };
    let is_rerecorded = plan.what_if() == WhatIf::Rerecord;
    let mut sessions: Vec<Session> = Vec::new();
    for (number, log) in logs.iter().enumerate().filter(|_| is_rerecorded) {
        sessions.push(log.session().map_err(failed(number))?);
    }
    let one = |log: usize, point: &[&str], repeat: u16| {
        let settings = plan.settings(&logs[log].header, point).map_err(|error| failed(log)(error.into()))?;
        let figures = match sessions.get(log) {
            Some(session) => logs[log].figures_of_bots(game, session, &settings, repeat),
            None => logs[log].figures(game, settings, plan.what_if() == WhatIf::Rejudge),
        };
        done();
        figures.map_err(failed(log))
    };
    let most = rayon::current_num_threads();
    let at_once = logs.iter().map(|log| log.sweeps_at_once(game, is_rerecorded, most)).min().unwrap_or(most);
    sweep_by(logs.len(), plan, (&one, at_once))
}

impl SurveyedLog {
    /// Returns the options of a replay that makes the tables of the figures, and measures traffic.
    fn sweep_options(&self) -> ReplayOptions {
        let tables = TableSet::named(FigureCollector::TABLES.map(|table| table.name));
        ReplayOptions { sizes: true, tables, memory: self.memory, ..ReplayOptions::default() }
    }

    fn figures(&self, game: &dyn Playable, settings: Settings, rejudge: bool) -> Result<RunFigures, EngineError> {
        let options = self.sweep_options().under(Some(settings), rejudge);
        let mut figures = FigureCollector::default();
        let mut add = |header: &TraceHeader, rows: Table| figures.add(header, &rows);
        let ran = self.attempt(game, (&options, options.sizes), &mut |_| {}, &mut add, &mut |_| {})?;
        let ran = ran.ok_or_else(|| self.not_replayed(ReplayError::NotAsRead))?;
        Ok(self.with_traffic(figures, ran.traffic))
    }

    /// The figures of bots that play in place of the session's players.
    fn figures_of_bots(
        &self,
        game: &dyn Playable,
        session: &Session,
        settings: &Settings,
        repeat: u16,
    ) -> Result<RunFigures, EngineError> {
        let bots = game.bots().ok_or_else(|| self.not_replayed(ReplayError::NoBots(game.name())))?;
        let seed = Seed(self.header.seed.0.wrapping_add(u64::from(repeat)));
        let ran = bots.replay_with_bots(self.memory, session, settings, seed);
        let ran = ran.map_err(|source| self.not_replayed(source))?;
        let mut figures = FigureCollector::default();
        ran.trace.tables.iter().for_each(|table| figures.add(&ran.trace.header, table));
        Ok(self.with_traffic(figures, ran.findings.traffic))
    }

    fn with_traffic(&self, mut figures: FigureCollector, traffic: Option<TrafficBytes>) -> RunFigures {
        if let Some(traffic) = traffic {
            figures.add_traffic(traffic, self.survey.duration(), self.header.players.len());
        }
        figures.finish()
    }

    /// Returns how many runs of the log may be in memory at the same time, at most `most`.
    fn sweeps_at_once(&self, game: &dyn Playable, is_rerecorded: bool, most: usize) -> usize {
        let options = self.sweep_options();
        let (held, each) = match is_rerecorded {
            true => (self.session_bytes, self.survey.trace_bytes(TableSet::ALL)),
            false if self.streams(game, &options) => return most,
            false => (0, self.session_bytes.saturating_add(self.survey.trace_bytes(options.tables))),
        };
        MemoryLimit::of_bytes(self.memory.bytes().saturating_sub(held)).tasks_at_once(each, most)
    }
}
