//! Checks a session against every property: the cheap ones always, the others with probabilities drawn from the seed.

use crate::soak::SoakProperty::{
    Bounds, Datagrams, DiffMirror, DiffSelf, Heard, Merge, Plays, Prediction, Replay, Rerecord, Rollback, Shrink,
    Verify, ViewError,
};
use crate::soak::disk::unlike;
use crate::soak::plan::SoakPlan;
use crate::soak::play::{SoakMaps, SoakSession};
use crate::soak::{BrokenProperty, SoakCoverage, SoakProperty, disk};
use hitreg_analysis::diff::{
    ChangedShots, DiffOptions, HitChanges, RowCounts, TableDiff, TableStatus, TraceDiff, TraceVerdict, diff,
};
use hitreg_analysis::summary::Summary;
use hitreg_arena::playable;
use hitreg_engine::shrink::{RemovedCount, ShrinkError, shrink};
use hitreg_engine::verify::{LogFacts, LogVerdict, VerifiedReplay, VerifyReference, judge};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::merge::{AlignedClient, MergeError, MergeErrorKind, merge};
use hitreg_log::record::{ClockOwner, Execution, PlayerRecords, RecordedSide, Session, SessionHeader, SessionId};
use hitreg_log::rng::Rng;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{TableSet, corrections, shots, views};
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed, Tick};
use hitreg_netcode::pipeline::RewindLimit;
use hitreg_netcode::replay::{LogSurvey, ReplayError, ReplayOptions, ReplayOutput};
use hitreg_netcode::settings::{InterpolationMode, PredictionMode, Settings, Sizes};

/// Causes of corrections that a player has when alone and without lost usercmds.
const CAUSED: [&str; 4] = ["knockback", "spawn_or_death", "teleport", "mover"];

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
    check_exact(plan, &settings, session, &first.trace, exercised)?;
    if rng.chance(0.5) {
        rerecords(session, exercised)?;
    }
    if rng.chance(0.5) {
        check_diffs(plan, session, &first.trace, rng, exercised)?;
    }
    if rng.chance(0.4) {
        check_merge(played, rng, exercised)?;
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
fn as_recorded(property: SoakProperty, session: &Session, replayed: &ReplayOutput) -> CheckResult {
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
        return Err(broken(Rerecord, unlike(&again, session)));
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
    let parallel = rayon::current_num_threads();
    let shrunk = match shrink(&*playable(), MemoryLimit::default(), session, &still, parallel, &mut |_| {}) {
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

/// Checks results that must be exact without interference: view errors and predictions.
fn check_exact(
    plan: &SoakPlan,
    settings: &Settings,
    session: &Session,
    trace: &Trace,
    exercised: &mut SoakCoverage,
) -> CheckResult {
    if settings.lag_compensation.enabled && settings.interpolation.mode == InterpolationMode::History {
        view_errors(plan, trace, exercised)?;
    }
    if plan.players.len() == 1 && settings.prediction.mode != PredictionMode::Off {
        predictions(session, trace, exercised)?;
    }
    Ok(())
}

/// Checks that a player who has every snapshot in order, and interpolates between two of them, is judged by its own
/// view.
fn view_errors(plan: &SoakPlan, trace: &Trace, exercised: &mut SoakCoverage) -> CheckResult {
    let views = views::Columns::of(trace);
    let interpolated = (0..views.rows).filter(|row| views.how.get(*row) == "interpolated");
    let interpolated: SortedSet<_> =
        interpolated.map(|row| (views.player[row], views.command[row], views.entity[row])).collect();
    let shots = shots::Columns::of(trace);
    let mut held = 0;
    for row in 0..shots.rows {
        let (shooter, command, error) = (shots.shooter[row], shots.command[row], shots.view_error_units[row]);
        let was_whole = plan.players.get(shooter as usize).is_some_and(|player| plan.comes_whole(&player.down));
        let is_free =
            shots.limit.get(row) == RewindLimit::NAMES[RewindLimit::None as usize] && shots.rewind_us[row] > 0;
        let Some(aimed_at) = EntityId::named(shots.aimed_at.get(row)) else { continue };
        let on_screen = (shooter, command, aimed_at.0.into());
        if !was_whole || !is_free || error.is_nan() || !interpolated.contains(&on_screen) {
            continue;
        }
        if error != 0.0 {
            let (at, who) = (shots.at_us[row] as f64 / 1e6, shots.aimed_at.get(row));
            return Err(broken(ViewError, format!("at {at:.3} s player {shooter} saw {who} {error} units from there")));
        }
        held += 1;
    }
    exercised.view_errors += held;
    if held > 0 {
        exercised.held(ViewError);
    }
    Ok(())
}

/// Checks the predictions of a player who is alone. If every usercmd of an ack ran once, each ran as predicted. Earlier
/// losses were corrected by the snapshot that showed them.
fn predictions(session: &Session, trace: &Trace, exercised: &mut SoakCoverage) -> CheckResult {
    let executed = session.players.iter().flat_map(|player| &player.executed);
    let mut ran: SortedMap<u32, bool> = SortedMap::new();
    for record in executed {
        let is_run = record.how == Execution::Run;
        ran.entry(record.command.0).and_modify(|ran| *ran = false).or_insert(is_run);
    }
    let corrections = corrections::Columns::of(trace);
    let mut held = 0;
    for row in 0..corrections.rows {
        let (last, count) = (corrections.command[row], corrections.commands[row]);
        let all_ran = (last - count.min(last) + 1..=last).all(|command| ran.get(&command) == Some(&true));
        if !all_ran {
            continue;
        }
        let cause = corrections.cause.get(row);
        if corrections.result.get(row) != "exact" && !CAUSED.contains(&cause) {
            let (at, error) = (corrections.at_us[row] as f64 / 1e6, corrections.error_units[row]);
            let detail =
                format!("at {at:.3} s who is alone mispredicts by {error} units what ran as it was made: {cause}");
            return Err(broken(Prediction, detail));
        }
        held += 1;
    }
    exercised.predictions += held;
    if held > 0 {
        exercised.held(Prediction);
    }
    Ok(())
}

/// Compares replays: one with itself, and one with a replay under other settings, in both directions.
fn check_diffs(
    plan: &SoakPlan,
    session: &Session,
    trace: &Trace,
    rng: &mut Rng,
    exercised: &mut SoakCoverage,
) -> CheckResult {
    let compared = |a: &Trace, b: &Trace, property: SoakProperty| -> Result<TraceDiff, BrokenProperty> {
        diff(a, b, &DiffOptions::default()).map_err(|error| broken(property, error.to_string()))
    };
    let same = compared(trace, trace, DiffSelf)?;
    if same.verdict != TraceVerdict::Same || same.first.is_some() || !same.hits.changed.is_empty() {
        return Err(broken(DiffSelf, format!("the verdict is {:?}", same.verdict)));
    }
    exercised.held(DiffSelf);
    let options = ReplayOptions { settings: Some(otherwise(plan, rng)), ..ReplayOptions::default() };
    let other = replayed(session, &options, DiffMirror)?.trace;
    let (there, back) = (compared(trace, &other, DiffMirror)?, compared(&other, trace, DiffMirror)?);
    match unmirrored(&there, &back) {
        Some(what) => Err(broken(DiffMirror, what)),
        None => {
            exercised.held(DiffMirror);
            Ok(())
        }
    }
}

/// Returns where a comparison is not the mirror of the other.
fn unmirrored(there: &TraceDiff, back: &TraceDiff) -> Option<String> {
    if there.verdict != back.verdict || there.worst != back.worst {
        return Some(format!("{:?} {:?} and {:?} {:?}", there.verdict, there.worst, back.verdict, back.worst));
    }
    let at = |diff: &TraceDiff| diff.first.as_ref().map(|first| first.place.at_us);
    if at(there) != at(back) {
        return Some(format!("the first divergence is at {:?} µs and {:?} µs", at(there), at(back)));
    }
    if there.hits != mirrored(&back.hits, &there.hits) {
        return Some("the hits".to_owned());
    }
    if there.tables.len() != back.tables.len() {
        return Some("the tables".to_owned());
    }
    there.tables.iter().find_map(|table| {
        let other = back.tables.iter().find(|other| other.name == table.name);
        let fields = |table: &TableDiff| {
            table.fields.iter().map(|field| (field.field.clone(), field.rows, field.class)).collect::<Vec<_>>()
        };
        let is_mirrored = other.is_some_and(|other| {
            table.status == mirrored_status(other.status)
                && table.rows == mirrored_rows(other.rows)
                && fields(table) == fields(other)
        });
        (!is_mirrored).then(|| format!("the table `{}`", table.name))
    })
}

fn mirrored_status(status: TableStatus) -> TableStatus {
    match status {
        TableStatus::OnlyInA => TableStatus::OnlyInB,
        TableStatus::OnlyInB => TableStatus::OnlyInA,
        other => other,
    }
}

fn mirrored_rows(rows: RowCounts) -> RowCounts {
    RowCounts { a: rows.b, b: rows.a, only_in_a: rows.only_in_b, only_in_b: rows.only_in_a, ..rows }
}

/// Returns the counts of shots as seen from the other side. Changed shots are checked one by one.
fn mirrored(hits: &HitChanges, there: &HitChanges) -> HitChanges {
    let here: Vec<_> = hits.changed.first().collect();
    let changed_alike = there.changed.len() == here.len()
        && there.changed.first().all(|one| {
            here.iter().any(|other| {
                (one.shooter, one.command, one.index) == (other.shooter, other.command, other.index)
                    && one.a == other.b
                    && one.b == other.a
            })
        });
    HitChanges {
        only_a: hits.only_b,
        only_b: hits.only_a,
        shots_only_in_a: hits.shots_only_in_b,
        shots_only_in_b: hits.shots_only_in_a,
        changed: if changed_alike { there.changed.clone() } else { ChangedShots::default() },
        ..hits.clone()
    }
}

/// Splits a session into the logs of its sides, each with its own clock, and merges them again.
fn check_merge(played: &SoakSession, rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let session = &played.seen();
    let clocks: Vec<Micros> =
        session.players.iter().map(|_| Micros(rng.below(20_000_000_000) as i64 - 10_000_000_000)).collect();
    let mut sides = sides(&played.session, &clocks);
    // One client's log may be missing.
    let lost =
        (session.players.len() > 1 && rng.chance(0.3)).then(|| 1 + rng.below(session.players.len() as u64) as usize);
    let lost = lost.filter(|side| !played.session.players[side - 1].heard.is_empty());
    if let Some(lost) = lost {
        sides.remove(lost);
    }
    let turn = rng.below(sides.len() as u64) as usize;
    sides.rotate_left(turn);
    let merged = match merge(sides) {
        Ok(merged) => merged,
        // A player who was heard but received nothing has no reference for its clock.
        Err(MergeError { kind: MergeErrorKind::Unbounded { player }, .. })
            if session.players[usize::from(player.0)].received.is_empty() =>
        {
            return Ok(());
        }
        Err(error) => return Err(broken(Merge, error.to_string())),
    };
    if merged.cut.is_some() || merged.clients.len() != session.players.len() {
        return Err(broken(Merge, "the session is cut, and no log was"));
    }
    let mut back = merged.session.clone();
    for (player, (client, clock)) in back.players.iter_mut().zip(merged.clients.iter().zip(&clocks)) {
        match client.offset {
            Some(found) if found.error.is_none_or(|error| (found.offset - *clock).0.abs() > error.0) => {
                let said = format!("player {}'s clock is {} µs off, and {:?} was found", client.player, clock.0, found);
                return Err(broken(Merge, said));
            }
            Some(found) => player.move_by(ClockOwner::Client, *clock - found.offset),
            None => {}
        }
    }
    let heard = |player: &PlayerId| !session.players[usize::from(player.0)].reached.is_empty();
    let shift =
        |(client, clock): (&AlignedClient, &Micros)| client.offset.map_or(Micros::ZERO, |found| found.offset - *clock);
    let shifts = merged.clients.iter().zip(&clocks).map(shift).map(|by| by.0.abs());
    let sure = shifts.max().unwrap_or_default();
    let (back, whole_session) = (without_end(&back, sure), without_end(session, sure));
    let all_heard = (0..session.players.len()).all(|player| heard(&PlayerId(player as u16)));
    if lost.is_none() && all_heard && back != whole_session {
        return Err(broken(Merge, unlike(&back, &whole_session)));
    }
    // A player who was never heard leaves nothing to compare.
    if back.players.iter().all(|player| player.frames.is_empty() && player.heard.is_empty()) {
        return Ok(());
    }
    let again = replayed(&merged.session, &ReplayOptions::default(), Merge)?;
    as_recorded(Merge, session, &again)?;
    exercised.held(Merge);
    Ok(())
}

/// Returns a session without its last `us` µs. Merging sets clocks from the traffic, with an error of up to half a
/// round trip. A client's records near the last tick may therefore come after it.
fn without_end(session: &Session, us: i64) -> Session {
    let mut session = session.clone();
    let end = session.ticks.last().map_or(Micros::ZERO, |last| last.at - Micros(us));
    let last = session.ticks.iter().rev().find(|tick| tick.at <= end).map_or(Tick(0), |tick| tick.tick);
    session.end_at(last, end);
    session
}

/// Returns the server's log, then the clients' logs. Each client's clock is slow by the given time.
fn sides(session: &Session, clocks: &[Micros]) -> Vec<Session> {
    let side = |player| {
        let side = RecordedSide { session: SessionId(7), player };
        Session::new(SessionHeader { side: Some(side), ..session.header.clone() })
    };
    let mut server = side(None);
    server.ticks.clone_from(&session.ticks);
    server.states = session.states.clone();
    let mut all = Vec::new();
    for (index, (records, clock)) in session.players.iter().zip(clocks).enumerate() {
        server.players[index].take(ClockOwner::Server, records.clone());
        let player = PlayerId(index as u16);
        let mut client = side(Some(player));
        client.players[index].take(ClockOwner::Client, records.clone());
        client.players[index].move_by(ClockOwner::Client, Micros::ZERO - *clock);
        all.push(client);
    }
    all.insert(0, server);
    all
}
