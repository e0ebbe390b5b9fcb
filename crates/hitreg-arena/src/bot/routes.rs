//! The routes of bots: a graph of the map's waypoints and spawn points. Two places are joined if a player who walks
//! straight arrives.

use std::collections::BinaryHeap;

use glam::Vec3;

use crate::body::ArenaBody;
use crate::map::ArenaMap;
use crate::pmove::{BUTTON_DUCK, pmove};
use crate::rules::ArenaRules;
use crate::shot::yaw_of;
use crate::step::nearby;
use hitreg_log::usercmd::Input;

/// The longest distance between joined places, in units.
const LINK_UNITS_MAX: f32 = 420.0;

/// The number of nearest places tried from each place.
const NEIGHBOURS: usize = 12;

/// A place counts as reached within this horizontal and vertical distance, in units.
const ARRIVED_UNITS: f32 = 24.0;
const ARRIVED_UP_UNITS: f32 = 40.0;

/// The longest way tried while ducking, because ducked players are slow, in units.
const DUCKED_LINK_UNITS_MAX: f32 = 280.0;

const TRIAL_MSEC: u8 = 16;

/// The graph of a map.
#[derive(Clone, Debug)]
pub struct RouteGraph {
    places: Vec<Vec3>,
    ways: Vec<Vec<RouteEdge>>,
}

/// A straight way from one place to another, or into a teleporter that leads there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RouteEdge {
    pub(crate) to: usize,
    /// The point to walk to, in units.
    pub(crate) walk_to: Vec3,
    pub(crate) ducked: bool,
    /// The walking time in ms.
    pub(crate) time_ms: u32,
}

impl RouteGraph {
    /// Builds the graph by walking every candidate way.
    pub fn new(rules: &ArenaRules) -> RouteGraph {
        let map = &rules.map;
        let waypoints = map.waypoints().iter().map(|&at| Vec3::from_array(at));
        let places: Vec<Vec3> = map.spawn_points().iter().map(|place| place.origin).chain(waypoints).collect();
        let ways = (0..places.len()).map(|from| ways_from(rules, &places, from)).collect();
        RouteGraph { places, ways }
    }

    pub(crate) fn places(&self) -> &[Vec3] {
        &self.places
    }

    /// Returns the nearest place in sight, or else the nearest place. Leaves out the place `but`.
    pub(crate) fn nearest(&self, map: &ArenaMap, at: Vec3, but: Option<usize>) -> usize {
        let away = |place: &Vec3| {
            let by = *place - at;
            // Vertical distance counts four times, because it means another storey.
            by.truncate().length() + 4.0 * by.z.abs()
        };
        let mut order: Vec<usize> = (0..self.places.len()).filter(|place| Some(*place) != but).collect();
        order.sort_unstable_by(|&a, &b| away(&self.places[a]).total_cmp(&away(&self.places[b])).then(a.cmp(&b)));
        let in_sight = |&&place: &&usize| map.is_clear(at, self.places[place]);
        order.iter().take(8).find(in_sight).or(order.first()).copied().unwrap_or_default()
    }

    /// Returns the quickest path between two places (Dijkstra 1959); empty when there is none.
    pub(crate) fn path(&self, from: usize, to: usize) -> Vec<RouteEdge> {
        let mut best: Vec<Option<(u32, usize, RouteEdge)>> = vec![None; self.places.len()];
        let mut open = BinaryHeap::from([(std::cmp::Reverse(0_u32), from)]);
        while let Some((std::cmp::Reverse(time_ms), at)) = open.pop() {
            if at == to {
                break;
            }
            if best[at].is_some_and(|(known, ..)| known < time_ms) {
                continue;
            }
            for way in &self.ways[at] {
                let sum = time_ms + way.time_ms;
                if way.to != from && best[way.to].is_none_or(|(known, ..)| sum < known) {
                    best[way.to] = Some((sum, at, *way));
                    open.push((std::cmp::Reverse(sum), way.to));
                }
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while let Some((_, before, way)) = best[at].filter(|_| at != from) {
            path.push(way);
            at = before;
        }
        path.reverse();
        path
    }
}

fn ways_from(rules: &ArenaRules, places: &[Vec3], from: usize) -> Vec<RouteEdge> {
    let start = places[from];
    let mut near: Vec<usize> =
        (0..places.len()).filter(|&to| to != from && places[to].distance(start) < LINK_UNITS_MAX).collect();
    near.sort_unstable_by(|&a, &b| places[a].distance(start).total_cmp(&places[b].distance(start)).then(a.cmp(&b)));
    near.truncate(NEIGHBOURS);
    let mut ways: Vec<RouteEdge> = near.iter().filter_map(|&to| way_between(rules, start, places[to], to)).collect();
    for teleporter in rules.map.teleporters() {
        let middle = (teleporter.min + teleporter.max) * 0.5;
        let door = Vec3::new(middle.x, middle.y, start.z);
        let leads_near = |a: &usize, b: &usize| {
            let away = |place: usize| places[place].distance(teleporter.to.origin);
            away(*a).total_cmp(&away(*b))
        };
        let to = (0..places.len()).min_by(leads_near);
        if let Some(to) = to.filter(|_| door.distance(start) < LINK_UNITS_MAX / 2.0) {
            ways.extend(way_between(rules, start, door, to));
        }
    }
    ways
}

/// Returns the way of a player who walks straight to a place, upright or else ducked; `None` when the player does not
/// arrive.
fn way_between(rules: &ArenaRules, start: Vec3, goal: Vec3, to: usize) -> Option<RouteEdge> {
    let way = |ducked| walk(rules, start, goal, ducked).map(|time_ms| RouteEdge { to, walk_to: goal, ducked, time_ms });
    let may_duck = start.distance(goal) < DUCKED_LINK_UNITS_MAX;
    way(false).or_else(|| if may_duck { way(true) } else { None })
}

/// Returns the walking time in ms; `None` when the player does not arrive.
fn walk(rules: &ArenaRules, start: Vec3, goal: Vec3, ducked: bool) -> Option<u32> {
    let speed = rules.movement.maxspeed.max(1.0) * if ducked { 0.3 } else { 0.8 };
    let limit_ms = (start.distance(goal) / speed * 1_000.0) as u32 + 600;
    let mut state = ArenaBody::standing_at(start);
    let mut time_ms = 0;
    while time_ms < limit_ms {
        let yaw = yaw_of(goal - state.origin);
        let input = Input {
            msec: TRIAL_MSEC,
            viewangles: Vec3::new(0.0, yaw, 0.0),
            forwardmove: 400.0,
            buttons: if ducked { BUTTON_DUCK } else { 0 },
            ..Input::default()
        };
        let map = nearby(rules, state.hull(), state.origin, state.velocity * (f32::from(TRIAL_MSEC) / 1_000.0));
        let next = pmove(&rules.movement, &map, &state, &input, &mut |_| ());
        time_ms += u32::from(TRIAL_MSEC);
        if has_arrived(next.origin, goal) {
            return Some(time_ms);
        }
        // The player is stuck: each further step would give the same state again.
        if next == state {
            return None;
        }
        state = next;
    }
    None
}

/// Returns whether a player has reached a place.
pub(crate) fn has_arrived(at: Vec3, place: Vec3) -> bool {
    (place - at).truncate().length() < ARRIVED_UNITS && (place.z - at.z).abs() < ARRIVED_UP_UNITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solid::SolidHull;

    #[test]
    fn every_place_leads_to_every_other() {
        for map in [ArenaMap::courtyard(), ArenaMap::orchard()] {
            leads_everywhere(&ArenaRules::new(map));
        }
    }

    fn leads_everywhere(rules: &ArenaRules) {
        let routes = RouteGraph::new(rules);
        let mut lost = Vec::new();
        for from in 0..routes.places.len() {
            for to in 0..routes.places.len() {
                if from != to && routes.path(from, to).is_empty() {
                    lost.push((routes.places[from], routes.places[to]));
                }
            }
        }
        let sources: hitreg_log::sorted::SortedSet<String> = lost.iter().map(|(from, _)| from.to_string()).collect();
        let targets: hitreg_log::sorted::SortedSet<String> = lost.iter().map(|(_, to)| to.to_string()).collect();
        let (from, to) = (sources.len(), targets.len());
        assert!(lost.is_empty(), "{} lost, from {from}: {:.3?}, to {to}: {:.3?}", lost.len(), sources, targets);
    }

    #[test]
    fn routes_use_the_low_passage_and_the_teleporter() {
        let rules = ArenaRules::default();
        let routes = RouteGraph::new(&rules);
        let mut ways = routes.ways.iter().flatten();
        assert!(ways.clone().any(|way| way.ducked));
        let teleports = |way: &RouteEdge| rules.map.teleporters()[0].holds(SolidHull::Standing, way.walk_to);
        assert!(ways.any(teleports));
    }
}
