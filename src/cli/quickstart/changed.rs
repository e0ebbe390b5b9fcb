//! Finds the shots with different results in two replays of the same input.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::trace::Trace;
use crate::trace::schema::shots;

/// A shot that has different results in two replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ChangedOutcome {
    /// The session time at which the server judged it, in the first replay.
    pub(super) at_us: i64,
    /// The shooter.
    pub(super) shooter: String,
    /// The usercmd that fired.
    pub(super) command: u32,
    /// The weapon.
    weapon: String,
    /// The result on the shooter's screen in the first replay, such as `hit p2`.
    pub(super) on_screen: String,
    /// The rewind in the first replay, in microseconds.
    pub(super) rewind_us: i64,
    /// The result in the first replay, such as `hit p2 chest 12`.
    pub(super) with: String,
    /// The result in the second replay.
    pub(super) without: String,
}

/// The common shots with different results, in the order of the first replay. For a projectile, its impact is compared.
pub(super) fn changed(with: &Trace, without: &Trace) -> Vec<ChangedOutcome> {
    let (shots, others) = (shots::Columns::of(with), shots::Columns::of(without));
    let others: BTreeMap<[u32; 3], String> =
        (0..others.rows).filter_map(|row| Some((key(&others, row), outcome(&others, row)?))).collect();
    let differs = |row: usize| {
        let (with, without) = (outcome(&shots, row)?, others.get(&key(&shots, row))?.clone());
        let on_screen = match shots.predicted_target.get(row) {
            "none" => shots.predicted_reason.get(row).to_owned(),
            target => format!("{} {target}", shots.predicted_reason.get(row)),
        };
        (with != without).then(|| ChangedOutcome {
            at_us: shots.at_us[row],
            shooter: format!("p{}", shots.shooter[row]),
            command: shots.command[row],
            weapon: shots.weapon.get(row).to_owned(),
            on_screen,
            rewind_us: shots.rewind_us[row],
            with,
            without,
        })
    };
    (0..shots.rows).filter_map(differs).collect()
}

fn key(shots: &shots::Columns<'_>, row: usize) -> [u32; 3] {
    [shots.shooter[row], shots.command[row], shots.index[row]]
}

/// The result of a shot; `None` if the server did not run it.
fn outcome(shots: &shots::Columns<'_>, row: usize) -> Option<String> {
    match (shots.reason.get(row), shots.target.get(row)) {
        ("not run", "none") => None,
        (reason, "none") => Some(reason.to_owned()),
        (reason, target) => Some(format!("{reason} {target} {} {}", shots.hitgroup.get(row), shots.damage[row])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Column, ColumnData, Table};

    /// Shots of player 1 with usercmds 10, 11, ..., each at a target or at none.
    fn trace(targets: &[Option<&str>]) -> Trace {
        let rows = targets.len() as u32;
        let names = |of: for<'a> fn(&Option<&'a str>) -> &'a str| {
            let names: Vec<String> = targets.iter().map(|t| of(t).to_owned()).collect();
            ColumnData::Name { names, codes: (0..rows).collect() }
        };
        let columns = [
            ("shooter", ColumnData::U32(vec![1; targets.len()])),
            ("command", ColumnData::U32((10..10 + rows).collect())),
            ("index", ColumnData::U32(vec![0; targets.len()])),
            ("at_us", ColumnData::I64((0..i64::from(rows)).collect())),
            ("weapon", names(|_| "pistol")),
            ("rewind_us", ColumnData::I64(vec![150_000; targets.len()])),
            ("predicted_reason", names(|_| "hit")),
            ("predicted_target", names(|t| t.unwrap_or("p7"))),
            ("reason", names(|t| if t.is_some() { "hit" } else { "wide" })),
            ("target", names(|t| t.unwrap_or("none"))),
            ("hitgroup", names(|t| if t.is_some() { "chest" } else { "none" })),
            ("damage", ColumnData::I64(targets.iter().map(|t| if t.is_some() { 12 } else { 0 }).collect())),
        ];
        let columns = columns.into_iter().map(|(name, data)| Column::new(name, data)).collect();
        Trace { tables: vec![Table::new("shots", columns)], ..Trace::default() }
    }

    #[test]
    fn only_other_outcomes_of_the_same_shots_count() {
        let with = trace(&[Some("p2"), None, Some("p3"), Some("p2")]);
        let without = trace(&[Some("p2"), None, None]);
        let found = changed(&with, &without);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].on_screen, "hit p3");
        assert_eq!(
            (found[0].command, found[0].with.as_str(), found[0].without.as_str()),
            (12, "hit p3 chest 12", "wide")
        );
    }
}
