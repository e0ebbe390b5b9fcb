//! Finds the changed settings that have no effect, and the settings or builds behind a divergence, by replays with other
//! settings.

use rayon::prelude::*;

use crate::comparison::ComparisonSource;
use crate::{ComparisonSpec, Engine, EngineError, ReplaySpecs, SideTrace, check};
use hitreg_analysis::bisect::DivergenceOrigin;
use hitreg_analysis::diff::{
    ChangedSetting, DiffOptions, Divergence, TraceDiff, TraceSide, TraceVerdict, UsercmdRow, diff, settings_that_differ,
};
use hitreg_log::record::{split_of_player, value_of_setting};
use hitreg_log::trace::TraceSource;
use hitreg_log::units::Micros;
use hitreg_netcode::replay::Part;

/// The longer trial of the start is of this share of the log: one in so many.
const START_SHARE: i64 = 30;
/// The shorter trial of the start.
const START_LEAST: Micros = Micros(2_000_000);
/// How much of the session after a divergence its trials replay.
const AFTER_DIVERGENCE: Micros = Micros(1_000_000);

/// Adds the settings without an effect to a comparison of two replays of one log, and a note if one build made both. A
/// setting has no effect if giving A its value from B leaves A's trace unchanged, and giving B its value from A leaves
/// B's trace unchanged. A single changed setting needs no trial.
///
/// Most settings have an effect soon, so this program first tries all of them on the start of the log: on two seconds,
/// then those that are left on a longer part. With [`DiffOptions::brief`] these trials decide, and the notes say so.
///
/// # Errors
/// Fails if the job was stopped, or if the log or a build is not available.
pub fn look_for_effects(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    [a, b]: [&dyn TraceSource; 2],
    options: &DiffOptions,
    found: &mut TraceDiff,
) -> Result<(), EngineError> {
    if found.verdict != TraceVerdict::Differs {
        return Ok(());
    }
    if sides.are_one_build() {
        found.notes.push(
            "A and B are two replays by one build with the same options: the build is not deterministic".to_owned(),
        );
    }
    let Some((trial, changed)) = SettingTrial::of(engine, sides, [a, b], options)? else { return Ok(()) };
    if changed.len() < 2 {
        return Ok(());
    }
    // A build of another program runs the whole log.
    let played = if sides.run_builds() { None } else { trial.source.log().and_then(|log| log.survey.played()) };
    let starts = played.map_or_else(Vec::new, |(from, to)| starts(from, to));
    let (mut left, mut until) = (changed, None);
    for part in starts.iter().copied() {
        if left.is_empty() {
            return Ok(());
        }
        let [a, b] = [TraceSide::A, TraceSide::B].map(|side| trial.replay(side, Vec::new(), Some(part)));
        let (Some(a), Some(b)) = (a?, b?) else { return Ok(()) };
        left = trial.without_effect(left, [a.source(), b.source()], Some(part))?;
        until = Some(part.to);
    }
    if starts.is_empty() || !options.brief {
        left = trial.without_effect(left, [a, b], None)?;
        until = None;
    }
    for setting in left {
        found.changed_nothing(setting, options, until);
    }
    Ok(())
}

/// Finds where the divergence `first` of two sides comes from, by replays of A with settings of B.
///
/// # Errors
/// Fails if the job was stopped, or if the log or a build is not available.
pub(crate) fn find_origin(
    engine: &Engine<'_>,
    sides: &ComparisonSpec,
    [a, b]: [&dyn TraceSource; 2],
    options: &DiffOptions,
    first: &Divergence,
) -> Result<DivergenceOrigin, EngineError> {
    let have_other_builds = sides.one_log().is_some_and(|(_, [a, b])| a != b);
    let without_trial = if have_other_builds { DivergenceOrigin::Unknown } else { DivergenceOrigin::Settings };
    let Some((trial, mut changed)) = SettingTrial::of(engine, sides, [a, b], options)? else {
        return Ok(without_trial);
    };
    if have_other_builds {
        // A setting that one build does not know belongs to the difference of the builds.
        let is_known =
            |key: &str| [a, b].iter().all(|side| side.header().settings.iter().any(|(known, _)| known == key));
        changed.retain(|setting| is_known(&setting.key));
        if changed.is_empty() {
            return Ok(DivergenceOrigin::Builds);
        }
    } else if changed.len() < 2 {
        return Ok(DivergenceOrigin::Settings);
    }
    let until = first.place.at_us.map(|at_us| Micros(at_us.saturating_add(AFTER_DIVERGENCE.0)));
    let part = until.filter(|_| !sides.run_builds()).map(|to| Part { from: Micros(i64::MIN), to });
    // Without a part, A is the replay that a trial is compared with.
    let start = part.map(|_| trial.replay(TraceSide::A, Vec::new(), part)).transpose()?;
    let before = match &start {
        None => a,
        Some(Some(start)) => start.source(),
        Some(None) => return Ok(without_trial),
    };
    let of_b = |setting: &ChangedSetting| {
        let value = value_of_other(&setting.key, &a.header().settings, &b.header().settings)?;
        Some(format!("{}={value}", setting.key))
    };
    let reproduces = |settings: Vec<String>| trial.reproduces(first, before, settings, part);
    let with_setting = |setting: &ChangedSetting| of_b(setting).map_or(Ok(None), |pair| reproduces(vec![pair]));
    let results: Vec<Option<bool>> = changed.par_iter().map(with_setting).collect::<Result<_, _>>()?;
    if let Some((setting, _)) = changed.iter().zip(&results).find(|(_, reproduces)| **reproduces == Some(true)) {
        return Ok(DivergenceOrigin::Setting(setting.clone()));
    }
    if !have_other_builds {
        return Ok(DivergenceOrigin::Settings);
    }
    let with_all_settings =
        if let [only] = results[..] { only } else { reproduces(changed.iter().filter_map(of_b).collect())? };
    Ok(match with_all_settings {
        Some(true) => DivergenceOrigin::Settings,
        Some(false) => DivergenceOrigin::Builds,
        None => DivergenceOrigin::Unknown,
    })
}

/// Whether two divergences have the same values in the same row, after usercmds with the same outcomes. Other fields may
/// show other settings.
fn is_same_divergence(one: &Divergence, other: &Divergence) -> bool {
    let outcomes = |usercmds: &[UsercmdRow]| -> Vec<_> {
        usercmds.iter().map(|row| (row.player, row.command, row.how.clone())).collect()
    };
    let before = |of: &Divergence| [&of.usercmds_a, &of.usercmds_b].map(|usercmds| outcomes(usercmds));
    (&one.table, &one.place, &one.field, &one.a, &one.b)
        == (&other.table, &other.place, &other.field, &other.a, &other.b)
        && before(one) == before(other)
}

/// Replays the common log of both sides under single settings.
struct SettingTrial<'a> {
    engine: Engine<'a>,
    sides: &'a ComparisonSpec,
    source: ComparisonSource<'a>,
    options: DiffOptions,
}

impl<'a> SettingTrial<'a> {
    /// Prepares trials of the settings that differ. `None` if none differs, or if the sides do not replay one log.
    fn of(
        engine: &Engine<'a>,
        sides: &'a ComparisonSpec,
        traces: [&dyn TraceSource; 2],
        options: &DiffOptions,
    ) -> Result<Option<(SettingTrial<'a>, Vec<ChangedSetting>)>, EngineError> {
        let changed = settings_that_differ(traces.map(|trace| &trace.header().settings[..]));
        if changed.is_empty() || sides.one_log().is_none() {
            return Ok(None);
        }
        let engine = engine.quiet();
        let source = ComparisonSource::of(&engine, &sides.first)?;
        let options = DiffOptions { brief: true, ..options.clone() };
        Ok(Some((SettingTrial { engine, sides, source, options }, changed)))
    }

    /// Those of the settings that have no effect in a part of the log; `traces` are the traces of both sides.
    fn without_effect(
        &self,
        settings: Vec<ChangedSetting>,
        [a, b]: [&dyn TraceSource; 2],
        part: Option<Part>,
    ) -> Result<Vec<ChangedSetting>, EngineError> {
        let [of_a, of_b] = [a, b].map(|trace| &trace.header().settings[..]);
        let has_no_effect = |setting: &ChangedSetting| -> Result<bool, EngineError> {
            for (side, trace, [own, other]) in [(TraceSide::A, a, [of_a, of_b]), (TraceSide::B, b, [of_b, of_a])] {
                check(&self.engine.runner.stop)?;
                let Some(value) = value_of_other(&setting.key, own, other) else { return Ok(false) };
                let pair = format!("{}={value}", setting.key);
                let same = |other: &SideTrace| {
                    let compared = diff(trace, other.source(), &self.options);
                    compared.is_ok_and(|found| found.verdict == TraceVerdict::Same)
                };
                if !self.replay(side, vec![pair], part)?.as_ref().is_some_and(same) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let results: Vec<bool> = settings.par_iter().map(has_no_effect).collect::<Result<_, _>>()?;
        check(&self.engine.runner.stop)?;
        Ok(settings.into_iter().zip(results).filter(|(_, has_none)| *has_none).map(|(setting, _)| setting).collect())
    }

    /// Whether A has the divergence `first` from its trace `before` when it is replayed with more settings. `None` if A
    /// cannot replay the log with them.
    fn reproduces(
        &self,
        first: &Divergence,
        before: &dyn TraceSource,
        settings: Vec<String>,
        part: Option<Part>,
    ) -> Result<Option<bool>, EngineError> {
        check(&self.engine.runner.stop)?;
        let Some(after) = self.replay(TraceSide::A, settings, part)? else { return Ok(None) };
        let found = diff(before, after.source(), &self.options).ok().and_then(|found| found.first);
        Ok(Some(found.is_some_and(|found| is_same_divergence(&found, first))))
    }

    /// One side with more settings; `None` if that side then has no trace.
    fn replay(
        &self,
        side: TraceSide,
        pairs: Vec<String>,
        part: Option<Part>,
    ) -> Result<Option<SideTrace>, EngineError> {
        let ReplaySpecs { a, b } = &self.sides.replays;
        let mut spec = [a, b][side as usize].clone();
        spec.set.extend(pairs);
        spec.part = part.or(spec.part);
        match spec.make_trace(&self.engine, &self.source, side) {
            Err(EngineError::Missing(_)) => Ok(None),
            shown => Ok(Some(shown?.trace)),
        }
    }
}

/// Returns the value of a setting on the other side. A player without one there has the value of all players on its own
/// side. `None` if the other side does not know the setting.
fn value_of_other<'s>(key: &str, own: &'s [(String, String)], other: &'s [(String, String)]) -> Option<&'s str> {
    value_of_setting(other, key).or_else(|| value_of_setting(own, split_of_player(key)?.1))
}

/// The starts of a session that are worth trials of their own, the shorter one first. They end at whole seconds.
fn starts(from: Micros, to: Micros) -> Vec<Part> {
    let longer = ((to.0 - from.0) / START_SHARE).max(START_LEAST.0);
    let mut starts: Vec<Part> = Vec::new();
    for length in [START_LEAST.0, longer] {
        let until = from.0 + length - (from.0 + length).rem_euclid(1_000_000);
        let part = Part { from: Micros(i64::MIN), to: Micros(until) };
        if until + length < to.0 && starts.last().is_none_or(|shorter| shorter.to < part.to) {
            starts.push(part);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_session_has_two_starts_and_a_short_one_none() {
        let ends = |from_us, to_us| -> Vec<i64> {
            starts(Micros(from_us), Micros(to_us)).iter().map(|part| part.to.0 / 1_000_000).collect()
        };
        assert_eq!(ends(0, 4_000_000), [0; 0]);
        assert_eq!(ends(0, 4_000_001), [2]);
        assert_eq!(ends(0, 60_000_000), [2]);
        assert_eq!(ends(0, 600_000_000), [2, 20]);
        assert_eq!(ends(90_500_000, 690_500_000), [92, 110]);
        assert_eq!(ends(-90_500_000, -30_500_000), [-89]);
    }
}
