//! Finds walls that the played map had and the given one lacks. A map that was compiled anew has other clip hulls at some
//! corners: there a recorded player slides along what the given map does not have, every time.

use super::follow::{Stretch, follow};
use crate::bsp::quake::MissingWall;
use crate::game::Grade;
use crate::quakeworld::demo::{Demo, ServerPacket};
use crate::quakeworld::movement::{Run, Solid};
use crate::quakeworld::rounding::grade;
use crate::quakeworld::rules::Rules;

/// A wall shows at so many stretches of usercmds at least,
const FEWEST_VOTES: usize = 6;
/// in so many visits,
const FEWEST_VISITS: u32 = 2;
/// which are so many stretches apart.
const APART: usize = 400;
/// Places of one wall are at most so far from each other, in units.
const NEIGHBOURS: f32 = 48.0;
/// How far a wall may reach beyond where it showed: sideways, and up and down, in units.
const BEYOND: [f32; 2] = [2.0, 24.0];
/// How thick a wall is taken to be, in units: only its face is known.
const THICKNESS: f32 = 4.0;
/// The wire's rounding, with some room, in units.
const ROUNDING: f32 = 0.13;
/// So many places are looked at on the way from one packet to the next,
const WAY_STEPS: u8 = 8;
/// unless it is longer along an axis, in units: a teleport, or too much was lost.
const LONGEST_WAY: f32 = 32.0;
/// More are none of a map compiled anew, but of another one.
const MOST_WALLS: usize = 32;

/// A wall as far as it has shown.
#[derive(Clone, Debug)]
struct Shown {
    /// The axis that it faces along.
    axis: usize,
    /// Where its face is on that axis.
    at: f32,
    /// It lies beyond the face in the direction of the axis.
    beyond: bool,
    /// Lowest and highest corner of where players met it.
    low: [f32; 3],
    high: [f32; 3],
    /// Where players were when it showed: before and after each stretch.
    votes: Vec<[[f32; 3]; 2]>,
    visits: u32,
    last: usize,
}

/// Finds the walls and gives them to the rules' map, each that makes more predictions right than wrong.
pub(super) fn find_walls(demo: &Demo, rules: &mut Rules) {
    let mut shown: Vec<Shown> = Vec::new();
    let mut count = 0;
    follow(demo, rules, |stretch, run| {
        count += 1;
        if let Some(wall) = wall_met(stretch, run, rules, count) {
            add(&mut shown, wall);
        }
        true
    });
    shown.retain(|wall| wall.votes.len() >= FEWEST_VOTES && wall.visits >= FEWEST_VISITS);
    shown.truncate(MOST_WALLS);
    rules.map.walls = shown.iter().map(|wall| without_places(wall, demo)).collect();
    if !rules.map.walls.is_empty() {
        keep_what_helps(demo, rules);
    }
}

/// The wall that a missed stretch shows: with it, and nothing else, the stretch is right.
fn wall_met(stretch: &Stretch<'_>, run: &Run, rules: &Rules, count: usize) -> Option<Shown> {
    let living = !stretch.from.dead && !stretch.recorded.dead;
    if !stretch.is_quiet()
        || !living
        || run.touched.stuck
        || grade(&run.state, &stretch.recorded, stretch.wire) != Grade::Miss
    {
        return None;
    }
    [0, 1].into_iter().filter(|axis| stretch.recorded.velocity[*axis] == 0).find_map(|axis| {
        let (origin, off) = (stretch.recorded.origin, run.state.origin[axis] - stretch.recorded.origin[axis]);
        let beyond = if off.abs() > ROUNDING { off > 0.0 } else { run.state.velocity[axis] > 0.0 };
        let near = origin[axis].round();
        let at = if (origin[axis] - near).abs() < ROUNDING { near } else { origin[axis] };
        let (from, to) = (stretch.from.origin, origin);
        let wall = Shown {
            axis,
            at,
            beyond,
            low: [0, 1, 2].map(|n| from[n].min(to[n])),
            high: [0, 1, 2].map(|n| from[n].max(to[n])),
            votes: vec![[from, to]],
            visits: 1,
            last: count,
        };
        let wide = wall.as_box([32.0, 40.0]);
        let met = stretch.run_with(rules.server.dialect, Solid::Wall { low: wide.low, high: wide.high });
        (grade(&met.state, &stretch.recorded, stretch.wire) != Grade::Miss).then_some(wall)
    })
}

impl Shown {
    /// The box of the wall, reaching so far beyond what has shown, sideways and up and down.
    fn as_box(&self, [sideways, up]: [f32; 2]) -> MissingWall {
        let reach = [sideways, sideways, up];
        let mut low = [0, 1, 2].map(|n| self.low[n] - reach[n]);
        let mut high = [0, 1, 2].map(|n| self.high[n] + reach[n]);
        low[self.axis] = if self.beyond { self.at } else { self.at - THICKNESS };
        high[self.axis] = low[self.axis] + THICKNESS;
        MissingWall { low, high }
    }

    fn is_of(&self, other: &Shown) -> bool {
        let same = (self.axis, self.beyond) == (other.axis, other.beyond) && self.at == other.at;
        let near = |n: usize| self.low[n] - NEIGHBOURS < other.high[n] && self.high[n] + NEIGHBOURS > other.low[n];
        same && near(0) && near(1) && near(2)
    }
}

fn add(shown: &mut Vec<Shown>, wall: Shown) {
    let Some(known) = shown.iter_mut().find(|known| known.is_of(&wall)) else { return shown.push(wall) };
    known.low = [0, 1, 2].map(|n| known.low[n].min(wall.low[n]));
    known.high = [0, 1, 2].map(|n| known.high[n].max(wall.high[n]));
    known.votes.extend(wall.votes);
    known.visits += u32::from(wall.last > known.last + APART);
    known.last = wall.last;
}

/// The wall's box, cut back until no living player was ever in it or went through it, so that as much as can be is left where
/// it showed.
fn without_places(wall: &Shown, demo: &Demo) -> MissingWall {
    let MissingWall { mut low, mut high } = wall.as_box(BEYOND);
    let sideways = 1 - wall.axis;
    for at in places(demo) {
        if !(0..3).all(|n| at[n] > low[n] + ROUNDING && at[n] < high[n] - ROUNDING) {
            continue;
        }
        let cuts = [sideways, 2].into_iter().flat_map(|n| [(n, false, at[n] - low[n]), (n, true, high[n] - at[n])]);
        let votes_lost = |(axis, from_above, _): &(usize, bool, f32)| {
            let lies_off =
                |place: &[f32; 3]| if *from_above { place[*axis] >= at[*axis] } else { place[*axis] <= at[*axis] };
            wall.votes.iter().filter(|places| places.iter().all(lies_off)).count()
        };
        let least = |a: &(usize, bool, f32), b: &(usize, bool, f32)| {
            votes_lost(a).cmp(&votes_lost(b)).then(a.2.total_cmp(&b.2))
        };
        if let Some((axis, from_above, _)) = cuts.min_by(least) {
            let side = if from_above { &mut high } else { &mut low };
            side[axis] = at[axis];
        }
    }
    MissingWall { low, high }
}

/// Where living players were: oneself between packets, too, and others as they were sent.
fn places(demo: &Demo) -> impl Iterator<Item = [f32; 3]> + '_ {
    let here = |packet: &&ServerPacket| packet.level == 0;
    let living = |packet: &ServerPacket| packet.own.filter(|own| !own.dead).map(|own| own.origin);
    let others = demo.packets.iter().filter(here).flat_map(|packet| packet.others.of(&demo.others));
    let others = others.filter(|other| !other.dead).map(|other| other.origin);
    let mut last = None;
    let own = demo.packets.iter().filter(here).filter_map(living).flat_map(move |now| {
        let before = last.replace(now).unwrap_or(now);
        let far = (0..3).any(|n| (now[n] - before[n]).abs() > LONGEST_WAY);
        let from = if far { now } else { before };
        (1..=WAY_STEPS).map(move |step| {
            let share = f32::from(step) / f32::from(WAY_STEPS);
            [0, 1, 2].map(|n| from[n] + share * (now[n] - from[n]))
        })
    });
    own.chain(others)
}

/// Keeps the walls with which more predictions near them are right than without.
fn keep_what_helps(demo: &Demo, rules: &mut Rules) {
    let mut gained = vec![0i32; rules.map.walls.len()];
    follow(demo, rules, |stretch, run| {
        let near = rules.map.walls.iter().position(|wall| wall.is_near(stretch.from.origin, NEIGHBOURS));
        if let Some(index) = near.filter(|_| stretch.is_quiet()) {
            let without = stretch.run_without_walls(rules.server.dialect);
            let [with, without] =
                [run, &without].map(|run| grade(&run.state, &stretch.recorded, stretch.wire) == Grade::Miss);
            gained[index] += i32::from(without) - i32::from(with);
        }
        true
    });
    let mut gained = gained.into_iter();
    rules.map.walls.retain(|_| gained.next().is_some_and(|gained| gained >= FEWEST_VOTES as i32 / 2));
}
