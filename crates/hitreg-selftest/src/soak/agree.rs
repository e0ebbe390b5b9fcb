//! Comparison of replays: one with itself, and one with a replay under other settings, in both directions.

use super::SoakProperty::{DiffMirror, DiffSelf};
use super::check::{CheckResult, broken, otherwise, replayed};
use super::plan::SoakPlan;
use super::{BrokenProperty, SoakCoverage, SoakProperty};
use hitreg_analysis::diff::{ChangedShots, DiffOptions, HitChanges, RowCounts, Status, TraceDiff, TraceVerdict, diff};
use hitreg_log::record::Session;
use hitreg_log::rng::Rng;
use hitreg_log::trace::Trace;
use hitreg_netcode::replay::ReplayOptions;

pub(super) fn check(
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
    match unlike(&there, &back) {
        Some(what) => Err(broken(DiffMirror, what)),
        None => {
            exercised.held(DiffMirror);
            Ok(())
        }
    }
}

/// Returns where a comparison is not the mirror of the other.
fn unlike(there: &TraceDiff, back: &TraceDiff) -> Option<String> {
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
        let fields = |table: &hitreg_analysis::diff::TableDiff| {
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

fn mirrored_status(status: Status) -> Status {
    match status {
        Status::OnlyInA => Status::OnlyInB,
        Status::OnlyInB => Status::OnlyInA,
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
