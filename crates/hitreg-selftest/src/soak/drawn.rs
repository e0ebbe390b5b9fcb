//! Checks of results that must be exact without interference: view errors and predictions.

use super::SoakCoverage;
use super::SoakProperty::{Prediction, ViewError};
use super::check::{CheckResult, broken};
use super::plan::SoakPlan;
use hitreg_log::record::{Execution, Session};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{corrections, shots, views};
use hitreg_log::units::EntityId;
use hitreg_netcode::pipeline::Limit;
use hitreg_netcode::settings::{InterpolationMode, PredictionMode, Settings};

pub(super) fn check(
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
        let is_free = shots.limit.get(row) == Limit::NAMES[Limit::None as usize] && shots.rewind_us[row] > 0;
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

/// Causes of corrections that a player has when alone and without lost usercmds.
const CAUSED: [&str; 4] = ["knockback", "spawn_or_death", "teleport", "mover"];

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
