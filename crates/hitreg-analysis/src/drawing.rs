//! Measures how far from the truth clients drew entities: the others, and with drawing by category the own avatar. It
//! compares every view of a trace with the entity's place on the server at the view's time. An entity that only a client
//! knows, such as an arrow that it has just shot, has no truth. A view of an entity that has spawned or teleported since
//! the drawn state is no measure of drawing, and counts apart.

use std::collections::VecDeque;

use glam::Vec3;
use serde::Serialize;

use crate::round_trips::{RecentTimes, TIMES_KEPT};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::stats::{CountedValues, Tail};
use hitreg_log::trace::schema::{bodies, is_bodies, ticks, views};
use hitreg_log::trace::{Table, TraceHeader};

/// The views that were drawn in one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawingScore {
    /// The category, if the client drew by category; else how the place was found. [`TELEPORTED`] has all views across a
    /// spawn or teleport, without errors.
    pub by: String,
    /// How many views there are.
    pub views: u64,
    /// Distance between the drawn place and the entity's place, in units; `None` if the trace does not have the
    /// entity's places.
    pub error_units: Option<Tail>,
}

/// The views across a spawn or teleport: between two states, or of a state before it for a time after it.
pub const TELEPORTED: &str = "teleported";

/// Collects the errors of views from the rows of a replay.
#[derive(Debug, Default)]
pub struct ViewErrorCollector {
    times: RecentTimes,
    truth: ServerPositions,
    /// The rows since the last rows of `ticks`.
    bodies: Vec<Table>,
    views: Vec<Table>,
    /// Views that wait for more rows, each with its way of drawing, by player and entity.
    ahead: SortedMap<(u32, u32), Vec<(String, View)>>,
    by: SortedMap<String, ViewMeasures>,
    /// Whether the replay has no places of entities.
    is_open_loop: bool,
}

#[derive(Debug)]
struct View {
    player: u32,
    entity: u32,
    at_us: i64,
    place: Vec3,
    /// The teleport count of the drawn body, if known.
    teleports: Option<u32>,
}

/// The columns that are read from these tables.
const BODIES: &[&str] = &["tick", "entity", "origin.x", "origin.y", "origin.z", "teleports"];
const VIEWS: &[&str] =
    &["player", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "how", "category", "teleports"];

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
        let between = self.by.remove(TELEPORTED).map_or(0, |measures| measures.views + measures.across);
        let across = between + self.by.values().map(|measures| measures.across).sum::<u64>();
        let named = |(by, ViewMeasures { views, errors, .. })| DrawingScore { by, views, error_units: errors.tail() };
        let excluded = DrawingScore { by: TELEPORTED.to_owned(), views: across, error_units: None };
        let scores = self.by.into_iter().map(named).chain([excluded]);
        scores.filter(|score| score.views > 0).collect()
    }

    fn look(&mut self, at_the_end: bool) {
        for bodies in std::mem::take(&mut self.bodies) {
            self.truth.add(&bodies, &self.times);
        }
        for (by, view) in std::mem::take(&mut self.ahead).into_values().flatten() {
            if !at_the_end && self.must_wait(&view) {
                self.hold(by, view);
            } else {
                let measure = self.truth.measure(&view);
                self.by.entry(by).or_default().add(measure);
            }
        }
        for views in std::mem::take(&mut self.views) {
            self.add_views(&views, at_the_end);
        }
        if let Some(newest) = self.truth.newest_us {
            self.truth.forget(newest.saturating_sub(TIMES_KEPT.0));
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
            let (way, Some(score)) = (*code as usize, by.get_mut(*code as usize)) else { continue };
            let view = View {
                player: views.player[row],
                entity: views.entity[row],
                at_us: views.drawn_at_us[row],
                place: Vec3::new(x[row], y[row], z[row]),
                teleports: views.teleports.get(row).copied(),
            };
            if !at_the_end && self.must_wait(&view) {
                self.hold(ways.names[way].clone(), view);
            } else {
                score.get_or_insert_default().add(self.truth.measure(&view));
            }
        }
        let scored = ways.names.iter().zip(by).filter_map(|(way, score)| Some((way.clone(), score?)));
        self.by.extend(scored);
    }

    /// Whether a view must wait for more rows. Views of an entity without a teleport count are compared in their order,
    /// because what the player has drawn of it before decides ([`Relocation::is_unknown_to`]).
    fn must_wait(&self, view: &View) -> bool {
        let is_ahead = self.truth.newest_us.is_none_or(|newest| view.at_us > newest);
        is_ahead || view.teleports.is_none() && self.ahead.contains_key(&(view.player, view.entity))
    }

    fn hold(&mut self, by: String, view: View) {
        self.ahead.entry((view.player, view.entity)).or_default().push((by, view));
    }
}

/// The measures of the views that were drawn in one way.
#[derive(Debug, Default)]
struct ViewMeasures {
    views: u64,
    /// The views across a spawn or teleport, which are not among `views`.
    across: u64,
    errors: CountedValues,
}

impl ViewMeasures {
    fn add(&mut self, measure: ViewMeasure) {
        match measure {
            ViewMeasure::AcrossRelocation => self.across += 1,
            ViewMeasure::NoTruth => self.views += 1,
            ViewMeasure::Error(units) => {
                self.views += 1;
                self.errors.add(units);
            }
        }
    }
}

/// A view, compared with the entity's places on the server.
enum ViewMeasure {
    /// The distance between both places, in units.
    Error(f32),
    /// The entity has spawned or teleported since the drawn state, or is just doing so.
    AcrossRelocation,
    /// No place is known for this time.
    NoTruth,
}

/// The places of all entities on the server.
#[derive(Debug, Default)]
struct ServerPositions {
    /// In ascending order of entity id.
    entities: Vec<EntityHistory>,
    newest_us: Option<i64>,
}

/// The states of one entity.
#[derive(Debug, Default)]
struct EntityHistory {
    number: u32,
    /// In ascending order of time.
    states: VecDeque<BodySample>,
    /// The spawns and teleports, in ascending order of time.
    relocations: VecDeque<Relocation>,
    /// The index of the last requested state.
    asked: usize,
}

/// A spawn or teleport of an entity.
#[derive(Debug)]
struct Relocation {
    /// The time of the first state after it.
    at_us: i64,
    /// The place before it.
    left: Vec3,
    /// The players who have drawn the entity after it, of those whose views have no teleport count.
    known_to: SortedSet<u32>,
}

impl Relocation {
    /// Whether a view of a later time shows the state before: nearer to its place than to the entity's true place, which
    /// is `units` away, and no earlier view of the player was nearer to the true place.
    fn is_unknown_to(&mut self, view: &View, units: f32) -> bool {
        let is_unknown = !self.known_to.contains(&view.player) && self.left.distance(view.place) < units;
        if !is_unknown {
            self.known_to.insert(view.player);
        }
        is_unknown
    }
}

#[derive(Debug)]
struct BodySample {
    at_us: i64,
    tick: u32,
    /// Whether the entity was gone in the tick before.
    follows_gap: bool,
    origin: Vec3,
    teleports: u32,
}

/// Offsets from the last requested state that are tried first.
const FIRST_OFFSETS: [isize; 7] = [0, 1, -1, 2, -2, 3, -3];

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
                self.entities.insert(place, EntityHistory { number: *entity, ..EntityHistory::default() });
                place
            });
            let EntityHistory { states, relocations, .. } = &mut self.entities[place];
            let next_tick = |last: &BodySample| times.get(last.tick.wrapping_add(1));
            let follows_gap = states.back().and_then(next_tick).is_some_and(|next_us| next_us < at_us);
            let before = states.back().filter(|before| before.teleports != teleports);
            let relocation =
                |before: &BodySample| Relocation { at_us, left: before.origin, known_to: SortedSet::new() };
            relocations.extend(before.map(relocation));
            states.push_back(BodySample {
                at_us,
                tick: *tick,
                follows_gap,
                origin: Vec3::new(x, y, z.unwrap_or(0.0)),
                teleports,
            });
        }
    }

    /// Forgets the states that only a request for a time before this one needs.
    fn forget(&mut self, before_us: i64) {
        self.entities.retain_mut(|EntityHistory { states, relocations, .. }| {
            while relocations.front().is_some_and(|first| first.at_us < before_us) {
                relocations.pop_front();
            }
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

    /// Compares a view with the entity's place, which is interpolated linearly between two ticks. There is none before
    /// the first state and after the last.
    ///
    /// A view shows the state with its teleport count. Without a count, places decide ([`Relocation::is_unknown_to`]).
    fn measure(&mut self, view: &View) -> ViewMeasure {
        let Ok(place) = self.place_of(view.entity) else { return ViewMeasure::NoTruth };
        let EntityHistory { states, relocations, asked, .. } = &mut self.entities[place];
        let is_at = |place: usize| {
            let is_before = |state: &BodySample| state.at_us < view.at_us;
            place.checked_sub(1).and_then(|before| states.get(before)).is_none_or(is_before)
                && !states.get(place).is_some_and(is_before)
        };
        // The next request is nearly always close to the last.
        let near = FIRST_OFFSETS.iter().filter_map(|by| asked.checked_add_signed(*by)).find(|place| is_at(*place));
        let near = near.filter(|place| *place <= states.len());
        let place = near.unwrap_or_else(|| states.partition_point(|state| state.at_us < view.at_us));
        *asked = place;
        let Some(after) = states.get(place) else { return ViewMeasure::NoTruth };
        if after.follows_gap && view.at_us < after.at_us {
            return ViewMeasure::NoTruth;
        }
        if view.teleports.is_some_and(|count| count != after.teleports) {
            return ViewMeasure::AcrossRelocation;
        }
        let truth = match place.checked_sub(1).map(|before| &states[before]) {
            _ if after.at_us == view.at_us => after.origin,
            None => return ViewMeasure::NoTruth,
            Some(before) if before.teleports != after.teleports => return ViewMeasure::AcrossRelocation,
            Some(before) => {
                let since = |at_us: i64| at_us.saturating_sub(before.at_us) as f32;
                before.origin.lerp(after.origin, since(view.at_us) / since(after.at_us))
            }
        };
        let units = truth.distance(view.place);
        let last = relocations.iter_mut().rfind(|relocation| relocation.at_us <= view.at_us);
        match last.filter(|_| view.teleports.is_none()).is_some_and(|last| last.is_unknown_to(view, units)) {
            true => ViewMeasure::AcrossRelocation,
            false => ViewMeasure::Error(units),
        }
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

    fn across(views: u64) -> DrawingScore {
        DrawingScore { by: TELEPORTED.to_owned(), views, error_units: None }
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
        // There is no known place after the last tick.
        let error_units = Tail::of([0.0, 3.0]);
        let interpolated = DrawingScore { by: "interpolated".to_owned(), views: 3, error_units };
        assert_eq!(drawn, [interpolated, across(1)]);
    }

    /// A view for a time that never comes, such as of a client with a bad clock.
    #[test]
    fn a_view_far_ahead_holds_back_no_view_of_another_entity() {
        let far = with_views(moving(), &[(2, i64::MAX, 0.0, None), (1, 20_000, 23.0, None)]);
        let (mut ticks, mut bodies) = (ticks::Writer::default(), bodies::Writer::default());
        // The first places are no longer known at this time.
        ticks.push(ticks::Row { tick: 5, at_us: 2 * TIMES_KEPT.0, hash: 0 });
        bodies.push(bodies::Row { tick: 5, entity: 1 });
        let fields = ["origin.x", "origin.y", "origin.z"].map(|name| Column::new(name, ColumnData::F32(vec![0.0])));
        let later = [bodies.finish(fields.to_vec()), ticks.finish(Vec::new())];
        let mut drawing = ViewErrorCollector::default();
        far.tables.iter().chain(&later).for_each(|table| drawing.add(table));
        let error_units = Tail::of([3.0]);
        let interpolated = DrawingScore { by: "interpolated".to_owned(), views: 2, error_units };
        assert_eq!(drawing.drawn(), [interpolated]);
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
        assert_eq!(drawn, [DrawingScore { by: "simulated".to_owned(), views: 1, error_units }, across(1)]);
    }

    /// Between its last state and the next entity with its number, an entity has no place, whether or not the next state
    /// is known yet.
    #[test]
    fn an_entity_that_is_gone_has_no_place() {
        let mut gone = moving();
        for table in gone.tables.iter_mut().filter(|table| table.name == bodies::NAME) {
            *table = table.select(&[0, 1, 3]);
        }
        let drawn = drawn(&with_views(gone, &[(1, 20_000, 23.0, None), (1, 30_000, 33.0, None)]));
        let error_units = Tail::of([3.0]);
        assert_eq!(drawn, [DrawingScore { by: "interpolated".to_owned(), views: 2, error_units }]);
    }

    /// A client extrapolates the last state that it knows, also after a spawn.
    #[test]
    fn a_view_of_the_body_before_a_spawn_has_no_error_without_a_count() {
        let views = [(1, 40_000, 35.0, None), (1, 40_000, 898.0, None), (1, 40_000, 400.0, None)];
        let drawn = drawn(&with_views(moving(), &views));
        // After it has drawn the spawned body, even a bad view is of that body.
        let error_units = Tail::of([2.0, 500.0]);
        assert_eq!(drawn, [DrawingScore { by: "interpolated".to_owned(), views: 2, error_units }, across(1)]);
    }

    #[test]
    fn traces_without_true_positions_have_no_scores() {
        let empty = Trace { tables: vec![bodies::Writer::default().finish(Vec::new())], ..Trace::default() };
        for trace in [Trace::default(), empty] {
            assert_eq!(drawn(&with_views(trace, &[(1, 0, 0.0, None)])), []);
        }
    }
}
