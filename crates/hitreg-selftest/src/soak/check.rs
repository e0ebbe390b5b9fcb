//! Checks a session against every property: the cheap ones always, the others with probabilities drawn from the seed.

use super::SoakProperty::{Bounds, Datagrams, Heard, Plays, Replay, Rerecord, Rollback, Shrink, Verify};
use super::plan::SoakPlan;
use super::play::{SoakMaps, SoakSession};
use super::{BrokenProperty, SoakCoverage, SoakProperty, agree, disk, drawn, sides};
use hitreg_analysis::summary::Summary;
use hitreg_arena::playable;
use hitreg_engine::shrink::{RemovedCount, ShrinkError, shrink};
use hitreg_engine::verify::{LogFacts, LogVerdict, VerifiedReplay, VerifyReference, judge};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{PlayerRecords, Session};
use hitreg_log::rng::Rng;
use hitreg_log::trace::schema::{TableSet, corrections, shots};
use hitreg_log::units::Seed;
use hitreg_netcode::replay::{LogSurvey, ReplayError, ReplayOptions, ReplayOutput};
use hitreg_netcode::settings::{Settings, Sizes};

/// The result of a check.
pub(super) type CheckResult = Result<(), BrokenProperty>;

pub(super) fn broken(property: SoakProperty, detail: impl Into<String>) -> BrokenProperty {
    BrokenProperty { property, detail: detail.into() }
}

pub(super) fn check(stage: &SoakMaps, plan: &SoakPlan) -> Result<SoakCoverage, BrokenProperty> {
    let mut rng = Rng::new(Seed(plan.seed), 0x6368_6563);
    let mut exercised = SoakCoverage::default();
    let played = stage.play(plan).map_err(|error| broken(Plays, error.to_string()))?;
    exercised.held(Plays);
    exercised.ticks += played.session.ticks.len() as u64;
    if let Some(how) = &played.bounds.broken {
        return Err(broken(Bounds, how));
    }
    if played.bounds.usercmds > 0 {
        exercised.held(Bounds);
    }
    disk::check(&played, &mut rng, &mut exercised)?;
    // A replay makes honest packets from the recorded input.
    let has_input = played.session.players.iter().any(|player| !player.frames.is_empty());
    heard(&played, &mut exercised)?;
    if plan.lie.is_none() && has_input && !played.session.ticks.is_empty() {
        replays(plan, &played, &mut rng, &mut exercised)?;
    }
    Ok(exercised)
}

/// Checks the server's log alone, whatever the clients' packets claimed.
fn heard(played: &SoakSession, exercised: &mut SoakCoverage) -> CheckResult {
    let session = played.heard();
    if session.ticks.is_empty() || !session.players.iter().any(PlayerRecords::is_heard_only) {
        return Ok(());
    }
    let again = replayed(&session, &ReplayOptions { tables: TableSet::NONE, ..ReplayOptions::default() }, Heard)?;
    as_recorded(Heard, &session, &again)?;
    exercised.held(Heard);
    Ok(())
}

fn replays(plan: &SoakPlan, played: &SoakSession, rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let session = &played.seen();
    let every = 1 + rng.below(12) as u32;
    let first = replayed(session, &ReplayOptions { rollback_every: Some(every), ..ReplayOptions::default() }, Replay)?;
    as_recorded(Replay, session, &first)?;
    exercised.held(Replay);
    if let Some(error) = &first.findings.rollback_error {
        return Err(broken(Rollback, error.to_string()));
    }
    if first.findings.rollbacks > 0 {
        exercised.held(Rollback);
    }
    let summary = Summary::of(&first.trace).exercised;
    exercised.usercmds += summary.usercmds;
    exercised.shots += summary.shots.unwrap_or_default();
    let settings = plan.settings();
    let again = replayed(session, &ReplayOptions { sizes: true, ..ReplayOptions::default() }, Datagrams)?;
    if again.trace.digest() != first.trace.digest() {
        return Err(broken(Datagrams, format!("first in `{}`", first_table(&first, &again))));
    }
    if settings.wire.sizes == Sizes::Datagrams {
        exercised.held(Datagrams);
    }
    let both = [first, again];
    let facts = LogFacts::of_log(&session.header, &LogSurvey::of(session), 0);
    let verified = judge(&facts, Ok(&both.each_ref().map(VerifiedReplay::of)), VerifyReference::default());
    if [LogVerdict::Differs, LogVerdict::Broken].contains(&verified.verdict) {
        return Err(broken(Verify, verified.detail.unwrap_or_default()));
    }
    exercised.held(Verify);
    let [first, _] = both;
    drawn::check(plan, &settings, session, &first.trace, exercised)?;
    if rng.chance(0.5) {
        rerecords(session, exercised)?;
    }
    if rng.chance(0.5) {
        agree::check(plan, session, &first.trace, rng, exercised)?;
    }
    if rng.chance(0.4) {
        sides::check(played, rng, exercised)?;
    }
    if session.players.len() <= 2 && rng.chance(0.02) {
        shrinks(session, exercised)?;
    }
    Ok(())
}

pub(super) fn replayed(
    session: &Session,
    options: &ReplayOptions,
    property: SoakProperty,
) -> Result<ReplayOutput, BrokenProperty> {
    playable().replay(session, options, &mut |_| {}).map_err(|error| broken(property, error.to_string()))
}

/// Checks that a replay reproduces every recorded state.
pub(super) fn as_recorded(property: SoakProperty, session: &Session, replayed: &ReplayOutput) -> CheckResult {
    if let Some(difference) = &replayed.findings.first_difference {
        return Err(broken(property, format!("the replay is another from tick {} on", difference.tick)));
    }
    let (compared, ticks) = (replayed.findings.hashes_compared, session.ticks.len() as u64);
    if compared != ticks {
        return Err(broken(property, format!("only {compared} of {ticks} ticks could be compared")));
    }
    Ok(())
}

fn first_table(a: &ReplayOutput, b: &ReplayOutput) -> String {
    let unlike = a.trace.tables.iter().zip(&b.trace.tables).find(|(a, b)| a.digest() != b.digest());
    unlike.map_or_else(String::new, |(table, _)| table.name.clone())
}

fn rerecords(session: &Session, exercised: &mut SoakCoverage) -> CheckResult {
    let again = playable().rerecord(MemoryLimit::default(), session, None);
    let again = again.map_err(|error| broken(Rerecord, error.to_string()))?;
    if again != *session {
        return Err(broken(Rerecord, disk::unlike(&again, session)));
    }
    exercised.held(Rerecord);
    Ok(())
}

/// Shrinks a session that shows a hit or a correction, and checks that it still does.
fn shrinks(session: &Session, exercised: &mut SoakCoverage) -> CheckResult {
    let shows = |session: &Session| -> Result<u64, ReplayError> {
        let tables = TableSet::named([shots::SCHEMA.name, corrections::SCHEMA.name]);
        let options = ReplayOptions { tables, ..ReplayOptions::default() };
        let trace = playable().replay(session, &options, &mut |_| {})?.trace;
        let found = Summary::of(&trace).exercised;
        Ok(found.hits.unwrap_or_default() + found.corrections.unwrap_or_default())
    };
    // A candidate that cannot be replayed shows nothing.
    let still =
        |session: &Session| -> Result<bool, std::convert::Infallible> { Ok(shows(session).is_ok_and(|n| n > 0)) };
    let still = (&still as _, rayon::current_num_threads());
    let shrunk = match shrink(&*playable(), MemoryLimit::default(), session, still, &mut |_| {}) {
        Ok(shrunk) => shrunk,
        Err(ShrinkError::NotShown) => return Ok(()),
        Err(error) => return Err(broken(Shrink, error.to_string())),
    };
    let replayed = replayed(&shrunk.session, &ReplayOptions::default(), Shrink)?;
    as_recorded(Shrink, &shrunk.session, &replayed)?;
    if !matches!(shows(&shrunk.session), Ok(1..)) {
        return Err(broken(Shrink, "what was shrunk does not show it any more"));
    }
    // The counts are ordered: fewer items of one kind outweigh more items of later kinds.
    let counts = |of: fn(&RemovedCount) -> usize| shrunk.removed.iter().map(of).collect::<Vec<_>>();
    if counts(|removed| removed.after) > counts(|removed| removed.before) {
        return Err(broken(Shrink, "what was shrunk is larger than before"));
    }
    exercised.held(Shrink);
    Ok(())
}

/// Returns the settings of a session with another value for one of them.
pub(super) fn otherwise(plan: &SoakPlan, rng: &mut Rng) -> Settings {
    let others = [
        ("interpolation.lerp_ms", "50"),
        ("lag_compensation.enabled", "false"),
        ("server.tick_hz", "50"),
        ("prediction.mode", "off"),
        ("server.update_hz", "40"),
    ];
    let (key, value) = others[rng.below(others.len() as u64) as usize];
    let mut settings = plan.settings();
    let set = settings.set(key, value);
    debug_assert_eq!(set, Ok(()), "it is a setting");
    settings
}
