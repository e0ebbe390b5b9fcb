//! Finds the changed settings that have no effect, by trying each one alone on both sides.

use rayon::prelude::*;

use super::{ComparisonSpec, Engine, EngineError, SideTrace, check};
use crate::build::BuildRunner;
use hitreg_analysis::diff::{
    ChangedSetting, DiffOptions, TraceDiff, TraceSide, TraceVerdict, diff_sources, settings_that_differ,
};
use hitreg_log::trace::TraceSource;

/// Adds the settings without an effect to a comparison of two replays of one log. A setting has no effect if giving A
/// its value from B leaves A's trace unchanged, and giving B its value from A leaves B's trace unchanged. A single
/// changed setting needs no trial.
///
/// # Errors
/// Fails if the job was stopped, or if the log or a build is not available.
pub fn look_for_effects(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    runner: &BuildRunner,
    [a, b]: [&dyn TraceSource; 2],
    options: &DiffOptions,
    found: &mut TraceDiff,
) -> Result<(), EngineError> {
    let changed = settings_that_differ([a, b].map(|trace| &trace.header().settings[..]));
    if found.verdict != TraceVerdict::Differs || changed.len() < 2 || sides.one_log().is_none() {
        return Ok(());
    }
    let tried = |setting: &ChangedSetting| -> Result<bool, EngineError> {
        for (side, trace, value) in [(TraceSide::A, a, &setting.b), (TraceSide::B, b, &setting.a)] {
            check(&runner.stop)?;
            let pair = format!("{}={value}", setting.key);
            let same = |other: &SideTrace| {
                diff_sources(trace, other.source(), options).is_ok_and(|found| found.verdict == TraceVerdict::Same)
            };
            if !sides.with_setting(engine, runner, side, pair)?.as_ref().is_some_and(same) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let changed_nothing: Vec<bool> = changed.par_iter().map(tried).collect::<Result<_, _>>()?;
    check(&runner.stop)?;
    for (setting, _) in changed.into_iter().zip(changed_nothing).filter(|(_, nothing)| *nothing) {
        found.changed_nothing(setting, options);
    }
    Ok(())
}
