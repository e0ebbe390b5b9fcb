//! How far from the truth clients drew the others: every view of a trace, against where the server had that entity at the time
//! that the view is of. What only a client knows of, such as an arrow that it has just shot, has no truth to be held against.

use std::collections::BTreeMap;

use glam::Vec3;
use serde::Serialize;

use crate::stats::Tail;
use crate::trace::schema::{bodies, ticks, views};
use crate::trace::{Table, Trace};

/// What was drawn in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    /// The category, where drawing went by category; else how the place was found.
    pub by: String,
    /// How many views there are.
    pub views: u64,
    /// How far off they are from where the entity was, in units; `None` where nothing says where it was.
    pub error_units: Option<Tail>,
}

/// Every way of drawing that a trace has views of, by name. Nothing of a trace that does not say where entities were: of clients
/// replayed alone, that is.
pub fn drawn(trace: &Trace) -> Vec<Drawn> {
    let truth = match trace.table(bodies::NAME).filter(|table| table.rows() > 0) {
        Some(table) => Truth::of(trace, table),
        None => return Vec::new(),
    };
    let views = views::Columns::of(trace);
    let by_category = views.category.iter().next().is_some();
    let ways = if by_category { views.category.iter() } else { views.how.iter() };
    let [x, y, z] = views.origin;
    let mut drawn: BTreeMap<&str, (u64, Vec<f32>)> = BTreeMap::new();
    for (row, way) in ways.enumerate() {
        let own = views.player[row] == views.entity[row];
        if own {
            continue;
        }
        let place = Vec3::new(x[row], y[row], z[row]);
        let (count, errors) = drawn.entry(way).or_default();
        *count += 1;
        errors.extend(truth.at(views.entity[row], views.drawn_at_us[row]).map(|truth| truth.distance(place)));
    }
    let named = |(by, (views, errors)): (&str, (u64, Vec<f32>))| Drawn {
        by: by.to_owned(),
        views,
        error_units: Tail::of(errors),
    };
    drawn.into_iter().map(named).collect()
}

/// Where the server had every entity.
struct Truth {
    /// The states of each entity, in ascending order of time.
    states: BTreeMap<u32, Vec<State>>,
}

struct State {
    at_us: i64,
    origin: Vec3,
    teleports: u32,
}

impl Truth {
    fn of(trace: &Trace, table: &Table) -> Truth {
        let ticks = ticks::Columns::of(trace);
        let times: BTreeMap<u32, i64> = ticks.tick.iter().copied().zip(ticks.at_us.iter().copied()).collect();
        let rows = bodies::Columns::read(table);
        let [x, y, z] = ["origin.x", "origin.y", "origin.z"].map(|name| table.f32s(name));
        let teleports = table.u32s("teleports");
        let mut states: BTreeMap<u32, Vec<State>> = BTreeMap::new();
        for (row, (tick, entity)) in rows.tick.iter().zip(rows.entity).enumerate() {
            let origin = [x, y, z].map(|axis| axis.get(row).copied());
            let ([Some(x), Some(y), Some(z)], Some(at_us)) = (origin, times.get(tick).copied()) else { continue };
            let teleports = teleports.get(row).copied().unwrap_or_default();
            states.entry(*entity).or_default().push(State { at_us, origin: Vec3::new(x, y, z), teleports });
        }
        Truth { states }
    }

    /// Between two ticks on a straight line; nothing before the first and after the last, and where it was put elsewhere at
    /// once between the two.
    fn at(&self, entity: u32, at_us: i64) -> Option<Vec3> {
        let states = self.states.get(&entity)?;
        let after = states.get(states.partition_point(|state| state.at_us < at_us))?;
        if after.at_us == at_us {
            return Some(after.origin);
        }
        let before = &states[states.partition_point(|state| state.at_us < at_us).checked_sub(1)?];
        let since = |at_us: i64| at_us.saturating_sub(before.at_us) as f32;
        let share = since(at_us) / since(after.at_us);
        (before.teleports == after.teleports).then(|| before.origin.lerp(after.origin, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::schema::{bodies, ticks, views};
    use crate::trace::{Column, Data};

    /// One entity that moves by 10 units a tick of 10 ms, and is put elsewhere in the last.
    fn moving() -> Trace {
        let (mut ticks, mut bodies) = (ticks::Writer::default(), bodies::Writer::default());
        for tick in 1..=4 {
            ticks.push(ticks::Row { tick, at_us: i64::from(tick) * 10_000, hash: 0 });
            bodies.push(bodies::Row { tick, entity: 1 });
        }
        let zero = || Data::F32(vec![0.0; 4]);
        let fields = vec![
            Column::new("origin.x", Data::F32(vec![10.0, 20.0, 30.0, 900.0])),
            Column::new("origin.y", zero()),
            Column::new("origin.z", zero()),
            Column::new("teleports", Data::U32(vec![0, 0, 0, 1])),
        ];
        Trace { tables: vec![ticks.finish(Vec::new()), bodies.finish(fields)], ..Trace::default() }
    }

    fn with_views(mut trace: Trace, rows: &[(u32, i64, f32, Option<u8>)]) -> Trace {
        let mut views = views::Writer::default();
        for (entity, drawn_at_us, x, category) in rows.iter().copied() {
            let origin = Vec3::new(x, 0.0, 0.0);
            let (pitch, yaw) = (0.0, 0.0);
            views.push(views::Row { player: 0, command: 1, drawn_at_us, entity, origin, pitch, yaw, how: 0, category });
        }
        trace.tables.push(views.finish(Vec::new()));
        trace
    }

    #[test]
    fn views_are_held_against_where_the_entity_was_at_their_time() {
        let views = [(1, 15_000, 15.0, None), (1, 20_000, 23.0, None), (1, 35_000, 5.0, None), (1, 99_000, 5.0, None)];
        let drawn = drawn(&with_views(moving(), &views));
        // Where it was put elsewhere, and after the last tick, nothing says where it was.
        let error_units = Tail::of([0.0, 3.0]);
        assert_eq!(drawn, [Drawn { by: "interpolated".to_owned(), views: 4, error_units }]);
    }

    #[test]
    fn categories_are_told_apart_and_what_nobody_else_knows_has_no_truth() {
        let views = [(1, 20_000, 20.0, Some(2)), (0xf000, 20_000, 3.0, Some(6)), (0, 20_000, 3.0, Some(3))];
        let drawn = drawn(&with_views(moving(), &views));
        let ways: Vec<(&str, u64, bool)> = drawn.iter().map(|d| (&*d.by, d.views, d.error_units.is_some())).collect();
        assert_eq!(ways, [("authoritative", 1, true), ("reactive", 1, false)]);
    }

    #[test]
    fn without_the_truth_there_is_nothing_to_say() {
        let empty = Trace { tables: vec![bodies::Writer::default().finish(Vec::new())], ..Trace::default() };
        for trace in [Trace::default(), empty] {
            assert_eq!(drawn(&with_views(trace, &[(1, 0, 0.0, None)])), []);
        }
    }
}
