//! Runs the same sessions under every combination of one or two settings and presets, with a row of figures for each
//! combination.

mod axis;
mod figures;

pub use axis::{Axis, PRESET};
pub use hitreg_analysis::swept::{Sweep, SweepCell, SweepFigures, SweepRow, SweepTable, figure_names};

pub(crate) use figures::{FigureCollector, RunFigures};
use hitreg_log::record::SessionHeader;
use hitreg_log::stats::ShareEstimate;
use hitreg_netcode::replay::{WhatIf, own_settings};
use hitreg_netcode::settings::{SettingError, Settings};

/// The limit on the number of combinations in one sweep.
pub const POINTS_MAX: usize = 10_000;

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
    /// Creates a plan with these axes. Presets become the first axis.
    ///
    /// # Errors
    /// When there is no axis, more than two settings, two axes of one setting, or too many combinations.
    pub fn new(mut axes: Vec<Axis>) -> Result<SweepPlan, String> {
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
        if points > POINTS_MAX {
            return Err(format!("that makes {points} combinations; the most is {POINTS_MAX}"));
        }
        Ok(SweepPlan { axes, what_if: WhatIf::Replay, seeds: SEEDS })
    }

    /// Sets how the runs are made, in place of [`WhatIf::Replay`].
    #[must_use]
    pub fn asking(self, what_if: WhatIf) -> SweepPlan {
        SweepPlan { what_if, ..self }
    }

    /// Sets the number of seeds for sweeps in which bots play again, in place of [`SEEDS`].
    ///
    /// # Errors
    /// When there are fewer than two seeds, because they give no confidence interval.
    pub fn with_seeds(self, seeds: u16) -> Result<SweepPlan, String> {
        match seeds {
            0..2 => Err(format!("a confidence interval needs at least 2 seeds, not {seeds}")),
            2.. => Ok(SweepPlan { seeds, ..self }),
        }
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
        own_settings(header)?.with_changes(preset, &set)
    }
}

/// The figures of the runs of one log: of each repetition of each point.
#[derive(Debug)]
pub struct LogFigures(Vec<RunFigures>);

/// Adds up the figures of logs.
#[derive(Debug)]
pub struct SweepBuilder<'p> {
    plan: &'p SweepPlan,
    /// The runs of each combination so far.
    points: Vec<Vec<RunFigures>>,
}

impl<'p> SweepBuilder<'p> {
    /// Begins a sweep without logs.
    pub fn new(plan: &'p SweepPlan) -> SweepBuilder<'p> {
        SweepBuilder { plan, points: vec![Vec::new(); plan.points().len()] }
    }

    /// Adds logs that were run under this plan.
    pub fn add(&mut self, logs: Vec<LogFigures>) {
        for LogFigures(runs) in logs {
            let mut runs = runs.into_iter();
            for point in &mut self.points {
                point.extend(runs.by_ref().take(usize::from(self.plan.repeats())));
            }
        }
    }

    /// The rows of all logs together.
    pub fn finish(self) -> Sweep {
        let plan = self.plan;
        let row = |(values, runs): (Vec<&str>, Vec<RunFigures>)| {
            // A sample is one seed: the runs of all logs with it. Logs differ from each other for other reasons.
            let repeats = usize::from(plan.repeats());
            let of_seed = |seed: usize| {
                let hits = runs.iter().skip(seed).step_by(repeats).map(RunFigures::hits_of_shots);
                hits.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1))
            };
            let hits = ShareEstimate::of((0..repeats).map(of_seed));
            let hit_share_ci95 =
                hits.filter(|_| plan.what_if == WhatIf::Rerecord).and_then(|hits| hits.confidence_95());
            let figures = SweepFigures { hit_share_ci95, ..RunFigures::together(&runs) };
            SweepRow { values: values.into_iter().map(str::to_owned).collect(), figures }
        };
        let rows = plan.points().into_iter().zip(self.points).map(row).collect();
        let keys = plan.axes.iter().map(|axis| axis.key().to_owned()).collect();
        Sweep { what_if: plan.what_if, repeats: plan.repeats(), keys, rows, is_by_build: false }
    }
}

/// Makes the figures of one log, by its index, at one point. The number is the index of the repetition, from 0.
pub(crate) type FigureRun<'a, E> = dyn Fn(usize, &[&str], u16) -> Result<RunFigures, E> + Sync + 'a;

/// Makes the figures of every log at every point.
pub(crate) fn sweep_by<E: Send>(
    logs: usize,
    plan: &SweepPlan,
    (run, at_once): (&FigureRun<'_, E>, usize),
) -> Result<Vec<LogFigures>, E> {
    let (points, repeats) = (plan.points(), plan.repeats());
    let of_point = |log| points.iter().flat_map(move |point| (0..repeats).map(move |repeat| (log, point, repeat)));
    let runs: Vec<(usize, &Vec<&str>, u16)> = (0..logs).flat_map(of_point).collect();
    let one = |number: usize| {
        let (log, point, repeat) = runs[number];
        run(log, point, repeat)
    };
    let mut figures = crate::in_order(runs.len(), at_once, one).into_iter();
    (0..logs).map(|_| figures.by_ref().take(plan.runs()).collect::<Result<_, _>>().map(LogFigures)).collect()
}
