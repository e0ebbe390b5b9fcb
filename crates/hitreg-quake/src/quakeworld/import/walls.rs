//! Finds walls that the played map had and the given one lacks. A map that was compiled anew has other clip hulls at some
//! corners: there a recorded player slides along what the given map does not have, every time.

mod shown;

use self::shown::{Face, Shown};
use super::follow::{Stretch, follow};
use crate::bsp::quake::LeaningFace;
use crate::quakeworld::demo::Demo;
use crate::quakeworld::movement::{PLAYER_MAXS, PLAYER_MINS, Run, Solid};
use crate::quakeworld::rounding::grade;
use crate::quakeworld::rules::Rules;
use hitreg_netcode::game::Grade;

/// A wall shows at so many stretches of usercmds at least,
const FEWEST_VOTES: usize = 6;
/// in so many visits.
const FEWEST_VISITS: u32 = 2;
/// Places of one wall are at most so far from each other, in units.
const NEIGHBOURS: f32 = 48.0;
/// The wire's rounding, with some room, in units.
const ROUNDING: f32 = 0.13;
/// More are none of a map compiled anew, but of another one.
const MOST_WALLS: usize = 32;
/// How far a wall reaches that one stretch alone is tried with, in units.
const TRIED: [f32; 3] = [32.0, 32.0, 40.0];

/// Finds the walls and gives them to the rules' map, each that makes more predictions right than wrong.
pub(super) fn find_walls(demo: &Demo, rules: &mut Rules) {
    let mut shown: Vec<Shown> = Vec::new();
    let mut count = 0;
    let leaning = rules.map.leaning_faces(PLAYER_MINS, PLAYER_MAXS);
    follow(demo, rules, |stretch, run| {
        count += 1;
        if let Some(wall) = wall_met(stretch, run, rules, &leaning, count) {
            wall.add_to(&mut shown);
        }
        true
    });
    shown.retain(|wall| wall.votes.len() >= FEWEST_VOTES && wall.visits >= FEWEST_VISITS);
    shown.truncate(MOST_WALLS);
    rules.map.walls = shown.iter().map(|wall| wall.without_places(demo)).collect();
    if !rules.map.walls.is_empty() {
        keep_what_helps(demo, rules);
    }
}

/// The wall that a missed stretch shows: with it, and nothing else, the stretch is right.
fn wall_met(stretch: &Stretch<'_>, run: &Run, rules: &Rules, leaning: &[LeaningFace], count: usize) -> Option<Shown> {
    let living = !stretch.from.dead && !stretch.recorded.dead;
    if !stretch.is_quiet()
        || !living
        || run.touched.stuck
        || grade(&run.state, &stretch.recorded, stretch.wire) != Grade::Miss
    {
        return None;
    }
    let upright = [0, 1].into_iter().filter(|axis| stretch.recorded.velocity[*axis] == 0).map(|axis| {
        let (origin, off) = (stretch.recorded.origin, run.state.origin[axis] - stretch.recorded.origin[axis]);
        let beyond = if off.abs() > ROUNDING { off > 0.0 } else { run.state.velocity[axis] > 0.0 };
        let near = origin[axis].round();
        let at = if (origin[axis] - near).abs() < ROUNDING { near } else { origin[axis] };
        Face::Upright { axis, at, beyond }
    });
    // A face of the map itself that leans, and that the player ends at as if players met it there.
    let touches = |face: &&LeaningFace| face.distance(stretch.recorded.origin).abs() < ROUNDING * face.slack();
    let leaning = leaning.iter().filter(touches).map(|face| Face::Leaning(*face));
    upright.chain(leaning).find_map(|face| {
        let wall = Shown::new(face, [stretch.from.origin, stretch.recorded.origin], count);
        let met = stretch.run_with(rules.server.dialect, Solid::Wall(wall.as_box(TRIED)));
        (grade(&met.state, &stretch.recorded, stretch.wire) != Grade::Miss).then_some(wall)
    })
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
