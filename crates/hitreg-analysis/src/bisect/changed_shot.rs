//! Finds a shot with another result beside a divergence, and decides whether the shot can be its cause.

use super::rerun;
use crate::diff::Divergence;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{is_bodies, shots};
use hitreg_log::units::EntityId;

/// A shot of the divergence's tick with another result for the divergence's entity.
pub(super) struct ChangedShot {
    pub(super) text: String,
    /// Whether the shot explains every difference in the row. Otherwise it is a consequence of what differs.
    pub(super) is_cause: bool,
}

/// Finds a shot of the same tick that hit the entity in one run only, or with other damage.
pub(super) fn shot([a, b]: [&Trace; 2], first: &Divergence) -> Option<ChangedShot> {
    if !is_bodies(&first.table) {
        return None;
    }
    let target = EntityId(first.place.entity?.try_into().ok()?);
    let tick = first.place.tick?;
    let (hits_a, hits_b) = (hits(a, tick, target), hits(b, tick, target));
    let mut all = hits_a.iter().chain(&hits_b);
    let (shot, HitRow { target: name, is_impact, .. }) = all.find(|(shot, _)| hits_a.get(shot) != hits_b.get(shot))?;
    let (shooter, command, _) = *shot;
    let how = match [&hits_a, &hits_b].map(|hits| hits.get(shot)) {
        [Some(a), Some(b)] => format!("hit {name} for {} in A, {} in B", a.damage, b.damage),
        [a, _] => format!("hit {name} in {} only", if a.is_some() { "A" } else { "B" }),
    };
    // A projectile may still fly in the other run. Any other shot that only one run fired is the work of its usercmd.
    let is_fired = *is_impact || [a, b].iter().all(|trace| has_fired(trace, tick, *shot));
    let is_death = [&hits_a, &hits_b].iter().any(|hits| is_deadly(hits.values().map(|hit| hit.damage).sum(), first));
    let moves = ran_before([a, b], tick, (shooter, command), u32::from(target.0));
    Some(ChangedShot {
        text: format!("the shot of p{shooter}'s usercmd {command} {how}"),
        is_cause: is_fired && (is_death || has_hit_fields([a, b], first, moves)),
    })
}

/// Whether a trace has a shot in a tick, whatever its result.
fn has_fired(trace: &Trace, tick: u32, (shooter, command, index): (u32, u32, u32)) -> bool {
    let shots = shots::Columns::of(trace);
    let key = (Some(&tick), Some(&shooter), Some(&command), Some(&index));
    (0..shots.rows)
        .any(|row| (shots.tick.get(row), shots.shooter.get(row), shots.command.get(row), shots.index.get(row)) == key)
}

/// Whether hits end the life that the entity had before. A death and the spawn after it can change every field.
fn is_deadly(damage: i64, first: &Divergence) -> bool {
    let differing = first.field.iter().chain(first.others.iter().map(|other| &other.field));
    let health = first.last_agreeing.iter().flat_map(|row| &row.values).find(|value| value.name == "health");
    let left = health.and_then(|health| health.value.whole());
    differing.into_iter().any(|field| field == "alive")
        || left.is_some_and(|left| damage > 0 && left <= i128::from(damage))
}

/// Whether a hit that kills nobody can change every differing field. A knockback changes the velocity; the position
/// follows only if the entity moves later in the tick (`moves`).
fn has_hit_fields(traces: [&Trace; 2], first: &Divergence, moves: bool) -> bool {
    let differing: Vec<&str> =
        first.field.iter().chain(first.others.iter().map(|other| &other.field)).map(String::as_str).collect();
    let unit = |field: &str| {
        let columns = traces.iter().filter_map(|trace| trace.table(&first.table)?.column(field));
        columns.map(|column| column.unit.as_str()).find(|unit| !unit.is_empty()).unwrap_or_default()
    };
    let is_pushed = differing.iter().any(|field| field.starts_with("velocity") || unit(field) == "units/s");
    let is_place = |field: &str| field.starts_with("origin") || unit(field) == "units";
    differing.iter().all(|field| !is_place(field) || (is_pushed && moves))
}

/// Whether a usercmd ran before the last usercmd of another player in a tick, or the order is not known.
fn ran_before(traces: [&Trace; 2], tick: u32, usercmd: (u32, u32), other: u32) -> bool {
    traces.iter().any(|trace| {
        let order = rerun::executed(trace, tick);
        let shot = order.iter().position(|ran| *ran == usercmd);
        let last = order.iter().rposition(|(player, _)| *player == other);
        shot.zip(last).is_none_or(|(shot, last)| shot < last)
    })
}

/// A hit of an entity.
#[derive(PartialEq)]
struct HitRow {
    /// The entity's name in the trace.
    target: String,
    damage: i64,
    is_impact: bool,
}

/// The shots that hit an entity in a tick, by shooter, usercmd and index.
fn hits(trace: &Trace, tick: u32, target: EntityId) -> SortedMap<(u32, u32, u32), HitRow> {
    let shots = shots::Columns::of(trace);
    let in_tick = (0..shots.rows).filter(|&row| shots.tick.get(row) == Some(&tick));
    let hits = in_tick.filter(|&row| shots.reason.get(row) == "hit");
    let hits = hits.filter(|&row| EntityId::named(shots.target.get(row)) == Some(target));
    let shot = |row: usize| Some((*shots.shooter.get(row)?, *shots.command.get(row)?, *shots.index.get(row)?));
    let hit = |row: usize| {
        let is_impact = shots.impact.get(row) == Some(&1);
        Some(HitRow { target: shots.target.get(row).to_owned(), damage: *shots.damage.get(row)?, is_impact })
    };
    hits.filter_map(|row| Some((shot(row)?, hit(row)?))).collect()
}
