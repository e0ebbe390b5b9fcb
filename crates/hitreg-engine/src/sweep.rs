//! Runs the same sessions under every combination of one or two settings and presets, with a row of figures for each
//! combination. This program or another build runs them.

pub use hitreg_analysis::swept::{Sweep, SweepCell, SweepFigures, SweepRow, SweepTable, TraceColumns, figure_names};

use std::path::PathBuf;

use crate::comparison::ComparisonSource;
use crate::{Engine, EngineError, Playable, ReplaySpec, SurveyedLog, check, for_one_log};
use hitreg_analysis::diff::{DiffError, TraceSide};
use hitreg_analysis::fairness::CoverSums;
use hitreg_analysis::summary::{Summary, SummaryBuilder, is_relocation};
use hitreg_analysis::why::is_corrected;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{ReplayScope, Session, SessionHeader, UnansweredSettings, value_of_setting};
use hitreg_log::rng::Rng;
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::{ShareEstimate, Spread};
use hitreg_log::trace::schema::{
    NOT_PREDICTED, TableSchema, TableSet, corrections, executed, frames, is_judged, shots,
};
use hitreg_log::trace::{Table, TraceHeader, TraceReadError, TraceSource, each_part};
use hitreg_log::units::Seed;
use hitreg_netcode::replay::{ReplayAttempt, ReplayError, ReplayOptions, TrafficBytes, WhatIf, log_settings};
use hitreg_netcode::settings::{KEYS, SettingError, Settings, ValueKind};

/// The limit on the number of combinations in one sweep.
pub const SWEEP_POINTS_MAX: usize = 10_000;

/// The default number of seeds when bots play again.
pub const SEEDS: u16 = 16;

/// The plan of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepPlan {
    axes: Vec<Axis>,
    what_if: WhatIf,
    seeds: u16,
}

impl SweepPlan {
    /// Creates a plan with these axes. Presets become the first axis. `seeds` counts only if bots play again, under
    /// [`WhatIf::Rerecord`].
    ///
    /// # Errors
    /// When there is no axis, more than two settings, two axes of one setting, or too many combinations. Also when there
    /// are fewer than two seeds, because they give no confidence interval.
    pub fn new(mut axes: Vec<Axis>, what_if: WhatIf, seeds: u16) -> Result<SweepPlan, String> {
        axes.sort_by_key(|axis| axis.key() != PRESET);
        if axes.is_empty() {
            return Err(
                "nothing to sweep: give a setting and its values, such as --set interpolation.lerp_ms=0..200:50".into(),
            );
        }
        for (place, axis) in axes.iter().enumerate() {
            if axes[..place].iter().any(|before| before.key() == axis.key()) {
                return Err(format!("`{}` is given twice; give all its values in one list", axis.key()));
            }
        }
        let count = axes.iter().filter(|axis| axis.key() != PRESET).count();
        if count > 2 {
            return Err(format!("{count} settings are given: a sweep takes one or two, and presets"));
        }
        let points = axes.iter().fold(1usize, |points, axis| points.saturating_mul(axis.values().len()));
        if points > SWEEP_POINTS_MAX {
            return Err(format!("that makes {points} combinations; the most is {SWEEP_POINTS_MAX}"));
        }
        if seeds < 2 {
            return Err(format!("a confidence interval needs at least 2 seeds, not {seeds}"));
        }
        Ok(SweepPlan { axes, what_if, seeds })
    }

    /// The preset and the settings of one point.
    pub(crate) fn options<'p>(&self, point: &[&'p str]) -> (Option<&'p str>, Vec<String>) {
        let pairs = || self.axes.iter().map(Axis::key).zip(point.iter().copied());
        let preset = pairs().find(|(key, _)| *key == PRESET).map(|(_, value)| value);
        (preset, pairs().filter(|(key, _)| *key != PRESET).map(|(key, value)| format!("{key}={value}")).collect())
    }

    /// How the runs are made.
    pub fn what_if(&self) -> WhatIf {
        self.what_if
    }

    /// How often each session runs at each point: once for each seed if bots play again, else once.
    pub fn repeats(&self) -> u16 {
        if self.what_if == WhatIf::Rerecord { self.seeds } else { 1 }
    }

    /// How many runs each session has.
    pub fn runs(&self) -> usize {
        self.points().len() * usize::from(self.repeats())
    }

    /// Every combination, as a value for each axis.
    pub fn points(&self) -> Vec<Vec<&str>> {
        let mut points: Vec<Vec<&str>> = vec![Vec::new()];
        for axis in &self.axes {
            let longer = points.iter().flat_map(|point| {
                axis.values().iter().map(move |value| point.iter().copied().chain([value.as_str()]).collect())
            });
            points = longer.collect();
        }
        points
    }

    /// A session's settings at one point: the preset's settings if presets are swept, else its own settings.
    pub(crate) fn settings(&self, header: &SessionHeader, point: &[&str]) -> Result<Settings, SettingError> {
        let (preset, set) = self.options(point);
        log_settings(header)?.with_changes(preset, &set)
    }

    /// The rows of all logs together. The logs were run under this plan.
    pub fn sweep(&self, logs: &[LogFigures]) -> Sweep {
        let repeats = usize::from(self.repeats());
        let runs = || logs.iter().flat_map(|LogFigures(runs)| runs);
        let has_judged_shots = runs().any(|run| run.summary.shots.fired.is_some());
        let scope_of = |run: &RunFigures| ReplayScope {
            is_open: run.is_open,
            is_rejudged: self.what_if == WhatIf::Rejudge,
            has_judged_shots,
            clients: Some(run.clients.clone()),
        };
        let row = |(point, values): (usize, Vec<&str>)| {
            let runs = logs.iter().flat_map(|LogFigures(runs)| &runs[point * repeats..][..repeats]);
            let runs: Vec<&RunFigures> = runs.collect();
            // A sample is one seed: the runs of all logs with it. Logs differ from each other for other reasons.
            let of_seed = |seed: usize| {
                let hits = runs.iter().skip(seed).step_by(repeats).map(|run| run.hits_of_shots());
                hits.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1))
            };
            let hits = ShareEstimate::of((0..repeats).map(of_seed));
            let hit_share_ci95 =
                hits.filter(|_| self.what_if == WhatIf::Rerecord).and_then(|hits| hits.confidence_95());
            let figures = SweepFigures { hit_share_ci95, ..RunFigures::together(&runs) };
            // The figures of a log that cannot show a setting's effect are in the sums, whatever other logs can show.
            let mut unanswered = UnansweredSettings::default();
            for run in &runs {
                unanswered.append(&scope_of(run).unanswered(run.changed.iter().map(String::as_str)));
            }
            let values = values.into_iter().map(str::to_owned).collect();
            SweepRow { values, unanswered, figures }
        };
        let rows = self.points().into_iter().enumerate().map(row).collect();
        let keys = self.axes.iter().map(|axis| axis.key().to_owned()).collect();
        let is_open = runs().all(|run| run.is_open);
        let of_build = runs().filter_map(|run| run.of_build.clone()).reduce(|mut all, of_run| {
            all.append(&of_run);
            all
        });
        Sweep { what_if: self.what_if, repeats: self.repeats(), keys, rows, is_open, of_build }
    }
}

/// The figures of the runs of one log: of each repetition of each point.
#[derive(Debug)]
pub struct LogFigures(Vec<RunFigures>);

/// The figures of one log, or the reason why it cannot be swept.
pub type SweptLog = Result<LogFigures, EngineError>;

/// Makes the figures of one log at one point. The number is the index of the repetition, from 0.
type FigureRun<'a, L> = dyn Fn(&L, &[&str], u16) -> Result<RunFigures, EngineError> + Sync + 'a;

/// Makes the figures of every log at every point. A log whose run fails has the error of the run.
fn sweep_by<L: Sync>(
    logs: Vec<Result<L, EngineError>>,
    plan: &SweepPlan,
    run: &FigureRun<'_, L>,
    parallel: usize,
) -> Vec<SweptLog> {
    let (points, repeats) = (plan.points(), plan.repeats());
    let of_point = |log| points.iter().flat_map(move |point| (0..repeats).map(move |repeat| (log, point, repeat)));
    let runs: Vec<(&L, &Vec<&str>, u16)> = logs.iter().flatten().flat_map(of_point).collect();
    let one = |number: usize| {
        let (log, point, repeat) = runs[number];
        run(log, point, repeat)
    };
    let mut figures = crate::in_order(runs.len(), parallel, one).into_iter();
    let mut of_log = |log: Result<L, EngineError>| {
        log?;
        // All runs of the log are taken, even if the first fails.
        let runs: Vec<_> = figures.by_ref().take(plan.runs()).collect();
        runs.into_iter().collect::<Result<_, _>>().map(LogFigures)
    };
    logs.into_iter().map(&mut of_log).collect()
}

/// The key of an axis of presets.
pub const PRESET: &str = "preset";

/// The limit on the number of values of one axis.
const VALUES_MAX: i64 = 1_000;

/// A setting, or the preset, with the values to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    key: String,
    values: Vec<String>,
}

impl Axis {
    /// Reads `key=lo..hi:step`, `key=a,b,c`, or `preset=a,b`. Ranges are whole numbers, and the default step is 1. `hi`
    /// is included if a step reaches it. Every value is checked, except those of settings that only another build has.
    /// `is_of_build` allows such settings.
    ///
    /// # Errors
    /// When the text is not a valid axis; the error describes the correct form.
    pub fn parse(text: &str, is_of_build: bool) -> Result<Axis, String> {
        let (key, given) = Settings::pair(text).map_err(|error| error.to_string())?;
        let key = key.to_owned();
        if given.is_empty() {
            return Err(format!(
                "`{text}` has no values: give a range, as in --set {key}=lo..hi:step, or a list, as in --set {key}=a,b,c"
            ));
        }
        let mut settings = Settings::default();
        let is_own = is_of_build && key != PRESET && !Settings::is_known(&key);
        let values: Vec<String> = match given.split_once("..") {
            Some((low, rest)) if key != PRESET => range(&key, given, (low, rest), is_own)?,
            _ => given.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        let mut known: Vec<String> = Vec::new();
        for value in &values {
            let set = match key.as_str() {
                PRESET => settings.apply_preset(value),
                _ if is_own => Ok(()),
                key => settings.set(key, value),
            };
            set.map_err(|error| error.to_string())?;
            // `0` and `00` are one value.
            let pairs = settings.to_pairs();
            let meant = value_of_setting(&pairs, &key).filter(|_| !is_own).unwrap_or(value).to_owned();
            if known.contains(&meant) {
                return Err(format!("`{key}` has the value {value} twice: leave one out"));
            }
            known.push(meant);
        }
        Ok(Axis { key, values })
    }

    /// `PRESET`, or the setting's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The values, in the order given; at least one.
    pub fn values(&self) -> &[String] {
        &self.values
    }
}

fn range(key: &str, range: &str, (low, rest): (&str, &str), is_own: bool) -> Result<Vec<String>, String> {
    let bad = || {
        format!("`{range}` is not a range of `{key}`: write lo..hi:step in whole numbers, or a list: --set {key}=a,b,c")
    };
    match KEYS.iter().find(|k| k.name == key).map(|k| k.kind) {
        Some(kind @ (ValueKind::Flag | ValueKind::Choice { .. })) => {
            let takes = kind.takes();
            return Err(format!("`{key}` takes {takes}, so it has no ranges: give a list, such as --set {key}=a,b"));
        }
        Some(ValueKind::Number { .. } | ValueKind::Rate { .. }) => {}
        // The check of the setting's name, later, reports an unknown key together with the nearest known key.
        None if !is_own => return Ok(vec![low.to_owned()]),
        None => {}
    }
    let (high, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let number = |text: &str| text.trim().parse::<i32>().map(i64::from).map_err(|_| bad());
    let (low, high, step) = (number(low)?, number(high)?, number(step)?);
    if step < 1 || low > high {
        return Err(format!(
            "`{range}` of `{key}` is empty: write lo..hi:step with lo below hi and a step of at least 1"
        ));
    }
    let values = (high - low) / step + 1;
    if values > VALUES_MAX {
        return Err(format!("`{range}` of `{key}` has {values} values; the limit is {VALUES_MAX}: use a larger step"));
    }
    Ok((0..values).map(|n| (low + n * step).to_string()).collect())
}

/// Runs every log of a game at every point of a plan, [`SweepPlan::repeats`] times each, in parallel;
/// [`SweepPlan::sweep`] adds up their figures. `done` is called at the end of each run; each log
/// has [`SweepPlan::runs`] of them. Logs are replayed while they are read; bots that play again need them in memory.
///
/// A log that this build cannot run, or not within its memory limit, has an error. It is [`EngineError::Setting`] if the
/// log's own settings are not valid in this build.
pub fn sweep(game: &dyn Playable, logs: &[SurveyedLog], plan: &SweepPlan, done: &(dyn Fn() + Sync)) -> Vec<SweptLog> {
    let is_rerecorded = plan.what_if() == WhatIf::Rerecord;
    let one = |(log, session): &(&SurveyedLog, Option<Session>), point: &[&str], repeat: u16| {
        let settings = plan.settings(&log.header, point)?;
        let figures = for_one_log(&log.path, || match session {
            Some(session) => log.figures_of_bots(game, session, &settings, repeat),
            None => log.figures(game, settings, plan.what_if()),
        });
        done();
        figures
    };
    let most = rayon::current_num_threads();
    let parallel = logs.iter().map(|log| log.sweeps_at_once(game, is_rerecorded, most)).min().unwrap_or(most);
    let of_log = |log| Ok((log, is_rerecorded.then(|| SurveyedLog::session(log)).transpose()?));
    sweep_by(logs.iter().map(of_log).collect(), plan, &one, parallel)
}

impl SurveyedLog {
    /// Returns the options of a replay that makes the tables of the figures, and measures traffic.
    fn sweep_options(&self) -> ReplayOptions {
        let tables = TableSet::named(FigureCollector::TABLES.map(|table| table.name));
        ReplayOptions { sizes: true, tables, memory: self.memory, ..ReplayOptions::default() }
    }

    fn figures(&self, game: &dyn Playable, settings: Settings, what_if: WhatIf) -> Result<RunFigures, EngineError> {
        let changed = settings.changes_from(&log_settings(&self.header)?).into_iter().map(|(key, _)| key).collect();
        let options = self.sweep_options().under(Some(settings), what_if);
        let mut figures = FigureCollector::default();
        let mut add = |header: &TraceHeader, rows: Table| figures.add(header, &rows);
        let attempt = ReplayAttempt { options: &options, encodes: options.sizes };
        let ran = self.replay_rows(game, attempt, &mut add)?;
        let ran = ran.ok_or_else(|| self.not_replayed(ReplayError::NotAsRead))?;
        figures.run.changed = changed;
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
        let seed = seed_of_repeat(self.header.seed, repeat);
        let ran = bots.replay_with_bots(self.memory, session, settings, seed);
        let ran = ran.map_err(|source| self.not_replayed(source))?;
        let mut figures = FigureCollector::default();
        ran.trace.tables.iter().for_each(|table| figures.add(&ran.trace.header, table));
        Ok(self.with_traffic(figures, ran.findings.traffic))
    }

    fn with_traffic(&self, mut figures: FigureCollector, traffic: Option<TrafficBytes>) -> RunFigures {
        if traffic.is_some() {
            figures.run.traffic = traffic;
            figures.run.seconds = self.survey.duration().as_s_f64();
            figures.run.players = self.header.players.len();
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

/// Returns the seed with which bots play a session: its own at first, then one that is hashed from it. Repeats of logs
/// with neighbouring seeds are therefore no copies of each other.
fn seed_of_repeat(of_log: Seed, repeat: u16) -> Seed {
    if repeat == 0 { of_log } else { Seed(Rng::new(of_log, u64::from(repeat)).next_u64()) }
}

/// Returns the results if each error concerns one log, and any other error.
fn errors_of_logs<T>(
    results: impl IntoIterator<Item = Result<T, EngineError>>,
) -> Result<Vec<Result<T, EngineError>>, EngineError> {
    let of_log = |result: Result<T, EngineError>| match result {
        Err(error) if !error.is_about_one_log() => Err(error),
        result => Ok(result),
    };
    results.into_iter().map(of_log).collect()
}

/// Adds the tables of a trace of any length that have figures. A build made the trace.
fn add_trace(figures: &mut FigureCollector, trace: &dyn TraceSource) -> Result<(), TraceReadError> {
    figures.run.of_build = Some(TraceColumns::default());
    for (table, _) in trace.tables() {
        figures.run.of_build.iter_mut().for_each(|columns| columns.add(table));
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
    /// Replays logs of one game by this side's build under every combination of a plan, in parallel. Tables that the build
    /// does not write have no figures. `done` is called at the end of each replay. A log that cannot be read, that is of
    /// another game than the first, or that the build cannot play, has an error.
    ///
    /// # Errors
    /// Fails if a setting or the build is not available, or if the job was stopped.
    pub fn sweep(
        &self,
        engine: &Engine<'_>,
        logs: &[PathBuf],
        plan: &SweepPlan,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<SweptLog>, EngineError> {
        let mut game = None;
        let source = |path| {
            let source = ComparisonSource::of(engine, path)?;
            let Some(log) = source.log() else { return Err(EngineError::already_replayed(path)) };
            if game.get_or_insert_with(|| log.header.game.clone()) != &log.header.game {
                return Err(EngineError::other_game(path));
            }
            for point in plan.points() {
                self.at(plan, &point).check(engine, &source)?;
            }
            Ok(source)
        };
        let sources = errors_of_logs(logs.iter().map(PathBuf::as_path).map(source))?;
        let one = |source: &ComparisonSource<'_>, point: &[&str], _| {
            check(&engine.runner.stop)?;
            let trace = self.at(plan, point).make_trace(engine, source, TraceSide::A);
            let trace = trace.map_err(|error| match error {
                EngineError::Missing(missing) => missing.of_log(source.path).into(),
                error => error,
            });
            let mut figures = FigureCollector::default();
            add_trace(&mut figures, trace?.trace.source()).map_err(DiffError::Unread)?;
            done();
            Ok(figures.finish())
        };
        let swept = sweep_by(sources, plan, &one, rayon::current_num_threads());
        check(&engine.runner.stop)?;
        errors_of_logs(swept)
    }

    /// This side at one point of a plan.
    fn at(&self, plan: &SweepPlan, point: &[&str]) -> ReplaySpec {
        let (preset, set) = plan.options(point);
        ReplaySpec { preset: preset.map(str::to_owned), set, what_if: plan.what_if(), ..self.clone() }
    }
}

/// What the figures need of one replay.
#[derive(Clone, Debug, Default)]
struct RunFigures {
    is_open: bool,
    /// The settings that differ from the log's own, if this program replayed it.
    changed: Vec<String>,
    /// The columns of the trace, if a build made it.
    of_build: Option<TraceColumns>,
    has_usercmds: bool,
    /// The players whose clients ran, so that their packets are known.
    clients: SortedSet<u32>,
    has_corrections: bool,
    summary: Summary,
    is_predicted: bool,
    missed_on_target: u64,
    view_errors: Vec<f32>,
    cover: CoverSums,
    correction_units: Vec<f32>,
    traffic: Option<TrafficBytes>,
    /// The length of the session in seconds; 0 without traffic.
    seconds: f64,
    players: usize,
}

/// Collects the figures of a run from the rows of its replay.
#[derive(Debug, Default)]
struct FigureCollector {
    /// `None` before the first rows.
    summary: Option<SummaryBuilder>,
    run: RunFigures,
}

impl FigureCollector {
    /// The tables that have figures.
    pub(crate) const TABLES: [&TableSchema; 4] =
        [&executed::SCHEMA, &frames::SCHEMA, &corrections::SCHEMA, &shots::SCHEMA];

    /// Adds rows of a table of a trace. A table without rows has figures, too: they are 0.
    pub(crate) fn add(&mut self, header: &TraceHeader, rows: &Table) {
        self.summary.get_or_insert_with(|| SummaryBuilder::of(header)).add(rows);
        self.run.is_open = header.is_open();
        match rows.name.as_str() {
            frames::NAME | executed::NAME => self.run.has_usercmds = true,
            shots::NAME => self.run.add_shots(&shots::Columns::read(rows)),
            corrections::NAME => self.run.add_corrections(&corrections::Columns::read(rows)),
            _ => {}
        }
    }

    /// The figures of all rows.
    pub(crate) fn finish(self) -> RunFigures {
        let summary = self.summary.unwrap_or_default();
        RunFigures { summary: summary.summary(), clients: summary.clients, ..self.run }
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
            let screen = screens.get(row).copied().unwrap_or(NOT_PREDICTED);
            self.is_predicted |= screen != NOT_PREDICTED;
            self.missed_on_target += u64::from(screen == "hit" && reason != "hit");
            if reason == "hit" {
                self.cover.add(shots, row);
            }
        }
    }

    /// The numbers of shots that hit and of all shots.
    fn hits_of_shots(&self) -> (u64, u64) {
        let shots = &self.summary.shots;
        (shots.hit.unwrap_or_default(), shots.fired.unwrap_or_default())
    }

    /// The figures of several replays together, without the confidence interval.
    fn together(runs: &[&RunFigures]) -> SweepFigures {
        let has = |table: fn(&RunFigures) -> bool| runs.iter().copied().any(table);
        let sum = |of: fn(&RunFigures) -> u64| runs.iter().copied().map(of).sum::<u64>();
        let spread = |of: fn(&RunFigures) -> &Vec<f32>| Spread::of(runs.iter().copied().flat_map(of).copied());
        let mut cover = CoverSums::default();
        runs.iter().for_each(|run| cover.append(&run.cover));
        let cover = cover.hits();
        let traffic = || runs.iter().filter_map(|run| run.traffic.as_ref());
        let per_s = |bytes: fn(&TrafficBytes) -> u64, players: fn(&RunFigures) -> usize| {
            let player_seconds: f64 = runs.iter().map(|run| run.seconds * players(run) as f64).sum();
            (player_seconds > 0.0).then(|| traffic().map(bytes).sum::<u64>() as f64 / player_seconds)
        };
        // The sum over the runs that know it.
        let of_known = |of: fn(&Summary) -> Option<u64>| {
            runs.iter().filter_map(|run| of(&run.summary)).reduce(|sum, count| sum + count)
        };
        SweepFigures {
            usercmds: has(|run| run.has_usercmds).then(|| sum(|run| run.summary.exercised.usercmds)),
            shots: of_known(|of| of.shots.fired),
            launched: of_known(|of| of.shots.launched),
            impacts: of_known(|of| of.shots.impacts),
            not_run: of_known(|of| of.shots.not_run),
            hits: of_known(|of| of.shots.hit),
            hit_share_ci95: None,
            missed_on_target: has(|run| run.is_predicted).then(|| sum(|run| run.missed_on_target)),
            view_error_units: spread(|run| &run.view_errors),
            hits_in_cover: (cover.known > 0).then_some(cover.in_cover),
            in_cover_ms: cover.in_cover_ms,
            in_cover_units: cover.in_cover_units,
            checked: has(|run| run.has_corrections).then(|| sum(|run| run.summary.prediction.checked)),
            corrections: of_known(|of| of.exercised.corrections),
            usercmds_of_corrections: of_known(|of| of.exercised.corrections.map(|_| of.exercised.usercmds))
                .unwrap_or_default(),
            correction_units: spread(|run| &run.correction_units),
            down_bytes_per_s: per_s(|traffic| traffic.down_bytes, |run| run.players),
            up_bytes_per_s: per_s(|traffic| traffic.up_bytes, |run| run.clients.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::schema::{packets, snapshots};
    use hitreg_log::trace::{Column, ColumnData, Trace};

    fn values(text: &str) -> Vec<String> {
        Axis::parse(text, false).expect(text).values
    }

    #[test]
    fn a_build_has_settings_of_its_own() {
        let values = |text: &str| Axis::parse(text, true).map(|axis| axis.values);
        assert_eq!(values("sv_gravity=600..800:100").as_deref(), Ok(&["600", "700", "800"].map(str::to_owned)[..]));
        assert_eq!(values("weapon=rifle,knife").as_deref(), Ok(&["rifle", "knife"].map(str::to_owned)[..]));
        for (text, said) in [
            ("sv_gravity=600..low", "lo..hi:step"),
            ("sv_gravity=600,600", "twice"),
            ("interpolation.lerp_ms=0..2000:1000", "from 0 to 1000"),
            ("preset=halflife", "did you mean `half-life`?"),
        ] {
            assert!(values(text).is_err_and(|error| error.contains(said)), "{text}");
        }
    }

    /// The figures of traffic need these tables, whose rows no other figure reads.
    #[test]
    fn columns_of_every_table_of_a_build_are_known() {
        let absent = |tables: Vec<Table>| {
            let mut figures = FigureCollector::default();
            add_trace(&mut figures, &Trace { tables, ..Trace::default() }).expect("a trace in memory");
            let axis = Axis::parse("client.cmd_hz=30", false).expect("an axis");
            let plan = SweepPlan::new(vec![axis], WhatIf::Replay, SEEDS).expect("a plan");
            plan.sweep(&[LogFigures(vec![figures.finish()])]).absent()
        };
        let is_named = |absent: &[&str]| ["down_bytes_per_s", "up_bytes_per_s"].map(|figure| absent.contains(&figure));
        assert_eq!(is_named(&absent(Vec::new())), [true; 2]);
        let of_bytes = |name: &str| Table::new(name, vec![Column::new("bytes", ColumnData::U32(Vec::new()))]);
        let snapshots = vec![of_bytes(snapshots::NAME)];
        assert_eq!(is_named(&absent(snapshots)), [false, true]);
        assert_eq!(is_named(&absent(vec![of_bytes(snapshots::NAME), of_bytes(packets::NAME)])), [false; 2]);
    }

    fn error(text: &str) -> String {
        Axis::parse(text, false).expect_err(text)
    }

    #[test]
    fn ranges_and_lists_are_read() {
        assert_eq!(values("interpolation.lerp_ms=0..100:25"), ["0", "25", "50", "75", "100"]);
        assert_eq!(values("interpolation.lerp_ms=0..99:50"), ["0", "50"]);
        assert_eq!(values("client.redundancy=1..3"), ["1", "2", "3"]);
        assert_eq!(values("prediction.push_latency_ms=-100..0:50"), ["-100", "-50", "0"]);
        assert_eq!(values(" interpolation.mode = history, off "), ["history", "off"]);
        assert_eq!(values("lag_compensation.enabled=true,false"), ["true", "false"]);
        assert_eq!(values("server.tick_hz=30"), ["30"]);
        assert_eq!(values("preset=half-life,quake3"), ["half-life", "quake3"]);
    }

    /// A log with the next seed would otherwise play the same sessions, and the interval of both would be too narrow.
    #[test]
    fn repeats_of_neighbouring_seeds_are_distinct_sessions() {
        let seeds = (0..50).flat_map(|seed| (0..16).map(move |repeat| seed_of_repeat(Seed(seed), repeat)));
        let distinct: SortedSet<u64> = seeds.map(|seed| seed.0).collect();
        assert_eq!(distinct.len(), 50 * 16);
        assert_eq!(seed_of_repeat(Seed(7), 0), Seed(7), "the first repeat is the recorded session");
    }

    #[test]
    fn errors_of_axes_name_the_correct_form() {
        for (text, said) in [
            ("interpolation.lerp_ms", "write KEY=VALUE"),
            ("interpolation.lerp_ms=", "has no values"),
            ("interpolation.lerp=0..100:5", "did you mean `interpolation.lerp_ms`?"),
            ("interpolation.lerp_ms=0..2000:1000", "from 0 to 1000"),
            ("interpolation.lerp_ms=a..b", "lo..hi:step"),
            ("interpolation.lerp_ms=0..100:0", "a step of at least 1"),
            ("interpolation.lerp_ms=100..0:10", "a step of at least 1"),
            ("server.rate_bytes_per_s=500..9000000", "use a larger step"),
            ("interpolation.mode=off..history", "give a list"),
            ("interpolation.mode=off,linear", "one of off"),
            ("interpolation.lerp_ms=50,50", "twice"),
            ("interpolation.lerp_ms=0,00", "twice"),
            ("preset=halflife", "did you mean `half-life`?"),
        ] {
            assert!(error(text).contains(said), "{text}: {}", error(text));
        }
    }
}
