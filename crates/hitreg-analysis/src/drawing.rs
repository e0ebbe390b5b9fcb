//! Measures how far from the truth clients drew entities: the others, and with drawing by category the own avatar. It
//! compares every view of a trace with the entity's place on the server at the view's time. An entity that only a client
//! knows, such as an arrow that it has just shot, has no truth.

use std::collections::VecDeque;

use glam::Vec3;
use serde::Serialize;

use crate::round_trips::{KEPT, RecentTimes};
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::{CountedValues, Tail};
use hitreg_log::trace::schema::{bodies, is_bodies, ticks, views};
use hitreg_log::trace::{Table, TraceHeader};

/// The views that were drawn in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawingScore {
    /// The category, if the client drew by category; else how the place was found.
    pub by: String,
    /// How many views there are.
    pub views: u64,
    /// Distance between the drawn place and the entity's place, in units; `None` if the trace does not have the
    /// entity's places.
    pub error_units: Option<Tail>,
}

/// Collects the errors of views from the rows of a replay.
#[derive(Debug, Default)]
pub struct ViewErrorCollector {
    times: RecentTimes,
    truth: ServerPositions,
    /// The rows since the last rows of `ticks`.
    bodies: Vec<Table>,
    views: Vec<Table>,
    /// Views of times for which no places are known yet.
    ahead: Vec<View>,
    by: SortedMap<String, (u64, CountedValues)>,
    /// Whether the replay has no places of entities.
    is_open_loop: bool,
}

#[derive(Debug)]
struct View {
    by: String,
    entity: u32,
    at_us: i64,
    place: Vec3,
    /// The teleport count of the drawn body, if known.
    teleports: Option<u32>,
}

/// The columns that are read from these tables.
const BODIES: &[&str] = &["tick", "entity", "origin.x", "origin.y", "origin.z", "teleports"];
const VIEWS: &[&str] = &["drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "how", "category", "teleports"];

fn only(table: &Table, columns: &[&str]) -> Table {
    Table::new(&*table.name, columns.iter().filter_map(|name| table.column(name).cloned()).collect())
}

impl ViewErrorCollector {
    /// The collection for a replay before its first rows.
    pub fn of(trace: &TraceHeader) -> ViewErrorCollector {
        ViewErrorCollector { is_open_loop: trace.is_open(), ..ViewErrorCollector::default() }
    }

    /// Adds rows. Rows of `ticks` give the times of all earlier rows.
    pub fn add(&mut self, rows: &Table) {
        match rows.name.as_str() {
            ticks::NAME => {
                let ticks = ticks::Columns::read(rows);
                ticks.tick.iter().zip(ticks.at_us).for_each(|(tick, at_us)| self.times.add(*tick, *at_us));
                self.look(false);
            }
            name if is_bodies(name) => self.bodies.push(only(rows, BODIES)),
            views::NAME if !self.is_open_loop => self.views.push(only(rows, VIEWS)),
            _ => {}
        }
    }

    /// The views by way of drawing after all rows, in the order of the names. Empty if the trace has no places of
    /// entities, as in a replay of clients alone.
    pub fn drawn(mut self) -> Vec<DrawingScore> {
        self.look(true);
        if self.truth.newest_us.is_none() {
            return Vec::new();
        }
        let named = |(by, (views, errors)): (String, (u64, CountedValues))| DrawingScore {
            by,
            views,
            error_units: errors.tail(),
        };
        self.by.into_iter().map(named).collect()
    }

    fn look(&mut self, at_the_end: bool) {
        for bodies in std::mem::take(&mut self.bodies) {
            self.truth.add(&bodies, &self.times);
        }
        for view in std::mem::take(&mut self.ahead) {
            self.hold(view, at_the_end);
        }
        for views in std::mem::take(&mut self.views) {
            self.add_views(&views, at_the_end);
        }
        if let Some(newest) = self.truth.newest_us {
            self.truth.forget(newest.saturating_sub(KEPT.0));
            self.times.forget(newest);
        }
    }

    fn add_views(&mut self, table: &Table, at_the_end: bool) {
        let views = views::Columns::read(table);
        let by_category = views.category.iter().next().is_some();
        let ways = if by_category { views.category } else { views.how };
        let [x, y, z] = views.origin;
        // Indexed by the codes of the names, within this table.
        let mut by: Vec<_> = ways.names.iter().map(|way| self.by.remove(way)).collect();
        for (row, code) in ways.codes.iter().enumerate() {
            let (way, Some(drawn)) = (*code as usize, by.get_mut(*code as usize)) else { continue };
            let (entity, at_us, place) = (views.entity[row], views.drawn_at_us[row], Vec3::new(x[row], y[row], z[row]));
            let teleports = views.teleports.get(row).copied();
            let (count, errors) = drawn.get_or_insert_default();
            if at_the_end || self.truth.newest_us.is_some_and(|newest| at_us <= newest) {
                *count += 1;
                let truth = self.truth.at(entity, at_us, teleports);
                truth.into_iter().for_each(|truth| errors.add(truth.distance(place)));
            } else {
                self.ahead.push(View { by: ways.names[way].clone(), entity, at_us, place, teleports });
            }
        }
        let drawn = ways.names.iter().zip(by).filter_map(|(way, drawn)| Some((way.clone(), drawn?)));
        self.by.extend(drawn);
    }

    fn hold(&mut self, view: View, at_the_end: bool) {
        if !at_the_end && self.truth.newest_us.is_none_or(|newest| view.at_us > newest) {
            self.ahead.push(view);
            return;
        }
        let (count, errors) = self.by.entry(view.by).or_default();
        *count += 1;
        let truth = self.truth.at(view.entity, view.at_us, view.teleports);
        truth.into_iter().for_each(|truth| errors.add(truth.distance(view.place)));
    }
}

/// The places of all entities on the server.
#[derive(Debug, Default)]
struct ServerPositions {
    /// In ascending order of entity id.
    entities: Vec<EntityHistory>,
    newest_us: Option<i64>,
}

/// The states of one entity.
#[derive(Debug)]
struct EntityHistory {
    number: u32,
    /// In ascending order of time.
    states: VecDeque<BodySample>,
    /// The index of the last requested state.
    asked: usize,
}

#[derive(Debug)]
struct BodySample {
    at_us: i64,
    origin: Vec3,
    teleports: u32,
}

/// Offsets from the last requested state that are tried first.
const NEAR: [isize; 7] = [0, 1, -1, 2, -2, 3, -3];

impl ServerPositions {
    fn add(&mut self, table: &Table, times: &RecentTimes) {
        let rows = bodies::Columns::read(table);
        let [x, y, z] = ["origin.x", "origin.y", "origin.z"].map(|name| table.column(name).map(|column| &column.data));
        let teleports = table.u32s("teleports");
        for (row, (tick, entity)) in rows.tick.iter().zip(rows.entity).enumerate() {
            let at_us = times.get(*tick);
            self.newest_us = self.newest_us.max(at_us.or(Some(i64::MIN)));
            // A game in a plane has no z.
            let origin = [x, y, z].map(|axis| Some(axis?.real(row)? as f32));
            let ([Some(x), Some(y), z], Some(at_us)) = (origin, at_us) else { continue };
            let teleports = teleports.get(row).copied().unwrap_or_default();
            let place = self.place_of(*entity).unwrap_or_else(|place| {
                self.entities.insert(place, EntityHistory { number: *entity, states: VecDeque::new(), asked: 0 });
                place
            });
            self.entities[place].states.push_back(BodySample {
                at_us,
                origin: Vec3::new(x, y, z.unwrap_or(0.0)),
                teleports,
            });
        }
    }

    /// Forgets the states that only a request for a time before this one needs.
    fn forget(&mut self, before_us: i64) {
        self.entities.retain_mut(|EntityHistory { states, .. }| {
            while states.get(1).is_some_and(|next| next.at_us < before_us) {
                states.pop_front();
            }
            states.back().is_some_and(|last| last.at_us >= before_us)
        });
    }

    /// The index of an entity, or the index at which to insert it. Players are numbered from 0, so the index is nearly
    /// always the number.
    fn place_of(&self, entity: u32) -> Result<usize, usize> {
        match self.entities.get(entity as usize) {
            Some(there) if there.number == entity => Ok(entity as usize),
            _ => self.entities.binary_search_by_key(&entity, |there| there.number),
        }
    }

    /// The place of an entity, interpolated linearly between two ticks. `None` before the first state and after the
    /// last, across a teleport, and if the entity's teleport count is not the given one.
    fn at(&mut self, entity: u32, at_us: i64, teleports: Option<u32>) -> Option<Vec3> {
        let place = self.place_of(entity).ok()?;
        let EntityHistory { states, asked, .. } = &mut self.entities[place];
        let is_at = |place: usize| {
            let is_before = |state: &BodySample| state.at_us < at_us;
            place.checked_sub(1).and_then(|before| states.get(before)).is_none_or(is_before)
                && !states.get(place).is_some_and(is_before)
        };
        // The next request is nearly always close to the last.
        let near = NEAR.iter().filter_map(|by| asked.checked_add_signed(*by)).find(|place| is_at(*place));
        let near = near.filter(|place| *place <= states.len());
        let place = near.unwrap_or_else(|| states.partition_point(|state| state.at_us < at_us));
        *asked = place;
        let after = states.get(place).filter(|after| teleports.is_none_or(|count| count == after.teleports))?;
        if after.at_us == at_us {
            return Some(after.origin);
        }
        let before = &states[place.checked_sub(1)?];
        let since = |at_us: i64| at_us.saturating_sub(before.at_us) as f32;
        let share = since(at_us) / since(after.at_us);
        (before.teleports == after.teleports).then(|| before.origin.lerp(after.origin, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::schema::{bodies, ticks, views};
    use hitreg_log::trace::{Column, ColumnData, Trace};

    fn drawn(trace: &Trace) -> Vec<DrawingScore> {
        let mut drawing = ViewErrorCollector::default();
        trace.tables.iter().for_each(|table| drawing.add(table));
        drawing.drawn()
    }

    /// One entity that moves by 10 units per tick of 10 ms, and teleports in the last tick.
    fn moving() -> Trace {
        let (mut ticks, mut bodies) = (ticks::Writer::default(), bodies::Writer::default());
        for tick in 1..=4 {
            ticks.push(ticks::Row { tick, at_us: i64::from(tick) * 10_000, hash: 0 });
            bodies.push(bodies::Row { tick, entity: 1 });
        }
        let zero = || ColumnData::F32(vec![0.0; 4]);
        let fields = vec![
            Column::new("origin.x", ColumnData::F32(vec![10.0, 20.0, 30.0, 900.0])),
            Column::new("origin.y", zero()),
            Column::new("origin.z", zero()),
            Column::new("teleports", ColumnData::U32(vec![0, 0, 0, 1])),
        ];
        Trace { tables: vec![ticks.finish(Vec::new()), bodies.finish(fields)], ..Trace::default() }
    }

    fn with_views(mut trace: Trace, rows: &[(u32, i64, f32, Option<u8>)]) -> Trace {
        let mut views = views::Writer::default();
        for (entity, drawn_at_us, x, category) in rows.iter().copied() {
            let origin = Vec3::new(x, 0.0, 0.0);
            let (pitch, yaw) = (0.0, 0.0);
            // A view by category is of the body that has not been teleported.
            let teleports = category.map(|_| 0);
            let row = views::Row {
                player: 0,
                command: 1,
                drawn_at_us,
                entity,
                origin,
                pitch,
                yaw,
                how: 0,
                category,
                teleports,
            };
            views.push(row);
        }
        trace.tables.push(views.finish(Vec::new()));
        trace
    }

    #[test]
    fn views_are_compared_with_the_position_at_their_time() {
        let views = [(1, 15_000, 15.0, None), (1, 20_000, 23.0, None), (1, 35_000, 5.0, None), (1, 99_000, 5.0, None)];
        let drawn = drawn(&with_views(moving(), &views));
        // There is no known place during the teleport and after the last tick.
        let error_units = Tail::of([0.0, 3.0]);
        assert_eq!(drawn, [DrawingScore { by: "interpolated".to_owned(), views: 4, error_units }]);
    }

    #[test]
    fn positions_in_a_plane_are_compared_without_z() {
        let mut flat = moving();
        flat.tables.iter_mut().for_each(|table| table.columns.retain(|column| column.name != "origin.z"));
        let drawn = drawn(&with_views(flat, &[(1, 20_000, 23.0, None)]));
        assert_eq!(drawn[0].error_units, Tail::of([3.0]));
    }

    #[test]
    fn positions_in_double_precision_are_compared_too() {
        let mut doubled = moving();
        for column in doubled.tables.iter_mut().flat_map(|table| &mut table.columns) {
            if let ColumnData::F32(values) = &column.data {
                column.data = ColumnData::F64(values.iter().map(|value| f64::from(*value)).collect());
            }
        }
        let drawn = drawn(&with_views(doubled, &[(1, 15_000, 15.0, None), (1, 20_000, 23.0, None)]));
        assert_eq!(drawn[0].error_units, Tail::of([0.0, 3.0]));
    }

    #[test]
    fn categories_are_scored_separately_and_reactive_entities_have_no_truth() {
        let views = [(1, 20_000, 20.0, Some(2)), (0xf000, 20_000, 3.0, Some(6)), (0, 20_000, 3.0, Some(3))];
        let drawn = drawn(&with_views(moving(), &views));
        let ways: Vec<(&str, u64, bool)> = drawn.iter().map(|d| (&*d.by, d.views, d.error_units.is_some())).collect();
        // The own avatar counts too. Here the trace has no places of it.
        assert_eq!(ways, [("authoritative", 1, true), ("controlled", 1, false), ("reactive", 1, false)]);
    }

    #[test]
    fn a_view_of_a_body_that_is_gone_has_no_error() {
        // In the last tick, another body has the number of the drawn one.
        let views = [(1, 30_000, 33.0, Some(4)), (1, 40_000, 40.0, Some(4))];
        let drawn = drawn(&with_views(moving(), &views));
        let error_units = Tail::of([3.0]);
        assert_eq!(drawn, [DrawingScore { by: "simulated".to_owned(), views: 2, error_units }]);
    }

    #[test]
    fn traces_without_true_positions_have_no_scores() {
        let empty = Trace { tables: vec![bodies::Writer::default().finish(Vec::new())], ..Trace::default() };
        for trace in [Trace::default(), empty] {
            assert_eq!(drawn(&with_views(trace, &[(1, 0, 0.0, None)])), []);
        }
    }
}
