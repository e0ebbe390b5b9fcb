//! Which of several settings that differ made no difference: each is tried alone, on both sides.

use rayon::prelude::*;

use super::running::Running;
use super::sides::Sides;
use crate::cli::games::Games;
use crate::cli::interrupt;
use crate::cli::trouble::Trouble;
use crate::diff::{ChangedSetting, DiffOptions, Side, TraceDiff, Verdict, diff, settings_that_differ};
use crate::trace::Trace;

/// Adds to a comparison of two replays of one log the settings that change nothing, neither A when they alone become what
/// they are in B, nor B when they alone become what they are in A. A single setting needs no trial.
pub(in crate::cli) fn look_for_effects(
    games: &Games,
    sides: &Sides,
    running: &Running,
    [a, b]: [&Trace; 2],
    options: &DiffOptions,
    found: &mut TraceDiff,
) -> Result<(), Trouble> {
    let changed = settings_that_differ(&a.header, &b.header);
    if found.verdict != Verdict::Differs || changed.len() < 2 || sides.one_log().is_none() {
        return Ok(());
    }
    let runner = running.runner()?;
    let tried = |setting: &ChangedSetting| -> Result<bool, Trouble> {
        for (side, trace, value) in [(Side::A, a, &setting.b), (Side::B, b, &setting.a)] {
            interrupt::check(&runner.stop)?;
            let pair = format!("{}={value}", setting.key);
            let same = |other: &Trace| diff(trace, other, options).is_ok_and(|found| found.verdict == Verdict::Same);
            if !sides.with_setting(games, &runner, side, pair)?.as_ref().is_some_and(same) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let changed_nothing: Vec<bool> = changed.par_iter().map(tried).collect::<Result<_, _>>()?;
    interrupt::check(&runner.stop)?;
    for (setting, _) in changed.into_iter().zip(changed_nothing).filter(|(_, nothing)| *nothing) {
        found.changed_nothing(setting, options);
    }
    Ok(())
}
