//! The recent states of a trace, as far as its views may refer to them.

use std::collections::VecDeque;

use crate::sorted::SortedMap;
use crate::trace::Table;
use crate::trace::schema::{bodies, ticks};

/// Origin, pitch and yaw.
pub(super) type DrawnColumns = [f32; 5];

/// The columns of `bodies` with the values of [`DrawnColumns`].
const SEEN: [&str; 5] = ["origin.x", "origin.y", "origin.z", "viewangles.x", "viewangles.y"];

/// How long states are kept, in µs. A replay passes tables on more often, so no view refers to older states.
const KEPT_US: i64 = 40_000_000;

/// The states after the last ticks.
#[derive(Default)]
pub(super) struct RecentStates {
    times: SortedMap<u32, i64>,
    ticks: VecDeque<(u32, TickStates)>,
}

/// The entities after a tick, in ascending order.
pub(super) type TickStates = Vec<(u32, DrawnColumns)>;

impl RecentStates {
    /// Adds the ticks or bodies in these rows.
    pub(super) fn add(&mut self, rows: &Table) {
        match &*rows.name {
            ticks::NAME => {
                let ticks = ticks::Columns::read(rows);
                self.times.extend(ticks.tick.iter().copied().zip(ticks.at_us.iter().copied()));
            }
            bodies::NAME => self.add_bodies(rows),
            _ => {}
        }
    }

    fn add_bodies(&mut self, rows: &Table) {
        let bodies = bodies::Columns::read(rows);
        let seen = SEEN.map(|name| rows.f32s(name));
        if seen.iter().any(|column| column.len() != rows.rows()) {
            return;
        }
        for (row, (tick, entity)) in bodies.tick.iter().zip(bodies.entity).enumerate() {
            if self.ticks.back().is_none_or(|(last, _)| last != tick) {
                self.ticks.push_back((*tick, TickStates::new()));
            }
            if let Some((_, states)) = self.ticks.back_mut() {
                states.push((*entity, seen.map(|column| column[row])));
            }
        }
    }

    /// Returns the times and states of complete ticks, in order of time. Ticks whose entities are not in order are
    /// left out.
    pub(super) fn moments(&self) -> Vec<(i64, &TickStates)> {
        let in_order = |states: &TickStates| states.is_sorted_by(|a, b| a.0 < b.0);
        let known = self.ticks.iter().filter(|(_, states)| in_order(states));
        let mut moments: Vec<_> = known.filter_map(|(tick, states)| Some((*self.times.get(tick)?, states))).collect();
        moments.sort_by_key(|(at, _)| *at);
        moments
    }

    /// Drops states that the views of a trace being streamed cannot refer to.
    pub(super) fn forget(&mut self) {
        let Some(newest) = self.times.last_key_value().map(|(_, at)| *at) else { return };
        let is_old = |at: &i64| newest.saturating_sub(*at) > KEPT_US;
        while self.ticks.front().is_some_and(|(tick, _)| self.times.get(tick).is_some_and(is_old)) {
            self.ticks.pop_front();
        }
        let oldest = self.ticks.front().map_or(u32::MAX, |(tick, _)| *tick);
        while self.times.first_key_value().is_some_and(|(tick, at)| *tick < oldest && is_old(at)) {
            self.times.pop_first();
        }
    }
}

/// Finds one entity in the states of a moment.
#[inline]
pub(super) fn of(states: &TickStates, entity: u32) -> Option<(usize, &DrawnColumns)> {
    // Players have the lowest ids, from 0, so the index of an entity is nearly always its id.
    let place = match states.get(entity as usize) {
        Some((at, _)) if *at == entity => entity as usize,
        _ => states.binary_search_by_key(&entity, |(at, _)| *at).ok()?,
    };
    Some((place, &states[place].1))
}

/// Interpolates between two states: positions linearly, angles the short way round. All arithmetic is in single
/// precision, in exactly this order.
#[inline]
pub(super) fn between(from: &DrawnColumns, to: &DrawnColumns, share: f32) -> DrawnColumns {
    let mut drawn = *from;
    for (part, cell) in drawn.iter_mut().enumerate() {
        *cell = part_between(from, to, share, part);
    }
    drawn
}

/// Returns whether the values are those of [`between`], bit by bit. Reads no value after the first that differs.
#[inline]
pub(super) fn is_between(seen: impl Fn(usize) -> f32, from: &DrawnColumns, to: &DrawnColumns, share: f32) -> bool {
    (0..from.len()).all(|part| seen(part).to_bits() == part_between(from, to, share, part).to_bits())
}

/// The index of the first angle in [`DrawnColumns`].
const FIRST_ANGLE: usize = 3;

#[inline]
fn part_between(from: &DrawnColumns, to: &DrawnColumns, share: f32, part: usize) -> f32 {
    if share >= 1.0 {
        return to[part];
    }
    if share <= 0.0 {
        return from[part];
    }
    let by = to[part] - from[part];
    let is_short = part < FIRST_ANGLE || by.abs() < 180.0;
    let turn = if is_short { by } else { by - 360.0 * libm::roundf(by / 360.0) };
    from[part] + turn * share
}

/// Returns how far `at` is between two times, from 0 to 1.
pub(super) fn share(at: i64, from: i64, to: i64) -> f32 {
    let since = |at: i64| at.saturating_sub(from) as f32;
    (since(at) / since(to)).clamp(0.0, 1.0)
}
