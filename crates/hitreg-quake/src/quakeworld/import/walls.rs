//! Finds walls that the played map had and the given one lacks. A recompiled map has other clip hulls at some corners.
//! Players in the recording then slide along surfaces that the given map lacks.

mod shown;

use self::shown::{ShownWall, WallFace};
use super::follow::{AckedUsercmds, follow};
use crate::bsp::quake::LeaningFace;
use crate::quakeworld::demo::QuakeWorldDemo;
use crate::quakeworld::movement::{MoveOutcome, PLAYER_MAXS, PLAYER_MINS, WorldSolid};
use crate::quakeworld::rounding::grade;
use crate::quakeworld::rules::QuakeWorldRules;
use hitreg_netcode::game::PredictionGrade;

/// The fewest stretches of usercmds that must show a wall,
const FEWEST_VOTES: usize = 6;
/// and the fewest separate visits.
const FEWEST_VISITS: u32 = 2;
/// Largest distance between positions that belong to one wall, in units.
const NEIGHBOURS: f32 = 48.0;
/// Rounding of the wire with a margin, in units.
const ROUNDING: f32 = 0.13;
/// The most missing walls of a recompiled map. More walls mean that the map is another one.
const MOST_WALLS: usize = 32;
/// Extent of a wall for the test with a single stretch, in units.
const TRIED: [f32; 3] = [32.0, 32.0, 40.0];

/// Finds the missing walls and adds to the rules' map each that improves more predictions than it worsens.
pub(super) fn find_walls(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) {
    let mut shown: Vec<ShownWall> = Vec::new();
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

/// Returns the wall that a wrong stretch shows: with this wall alone, the stretch is right.
fn wall_met(
    stretch: &AckedUsercmds<'_>,
    run: &MoveOutcome,
    rules: &QuakeWorldRules,
    leaning: &[LeaningFace],
    count: usize,
) -> Option<ShownWall> {
    let living = !stretch.from.dead && stretch.recorded.alive;
    if !stretch.is_quiet()
        || !living
        || run.touched.stuck
        || grade(&run.state, &stretch.recorded) != PredictionGrade::Miss
    {
        return None;
    }
    let upright = [0, 1].into_iter().filter(|axis| stretch.recorded.velocity[*axis] == 0.0).map(|axis| {
        let (origin, off) = (stretch.recorded.origin, run.state.origin[axis] - stretch.recorded.origin[axis]);
        let beyond = if off.abs() > ROUNDING { off > 0.0 } else { run.state.velocity[axis] > 0.0 };
        let near = origin[axis].round();
        let at = if (origin[axis] - near).abs() < ROUNDING { near } else { origin[axis] };
        WallFace::Upright { axis, at, beyond }
    });
    // A leaning face of the map itself, if the player ends where the face would stop it.
    let touches =
        |face: &&LeaningFace| face.distance(stretch.recorded.origin.to_array()).abs() < ROUNDING * face.slack();
    let leaning = leaning.iter().filter(touches).map(|face| WallFace::Leaning(*face));
    upright.chain(leaning).find_map(|face| {
        let wall = ShownWall::new(face, [stretch.from.origin, stretch.recorded.origin.to_array()], count);
        let met = stretch.run_with(rules.server.dialect, WorldSolid::Wall(wall.as_box(TRIED)));
        (grade(&met.state, &stretch.recorded) != PredictionGrade::Miss).then_some(wall)
    })
}

/// Keeps the walls that improve the predictions near them.
fn keep_what_helps(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) {
    let mut gained = vec![0i32; rules.map.walls.len()];
    follow(demo, rules, |stretch, run| {
        let near = rules.map.walls.iter().position(|wall| wall.is_near(stretch.from.origin, NEIGHBOURS));
        if let Some(index) = near.filter(|_| stretch.is_quiet()) {
            let without = stretch.run_without_walls(rules.server.dialect);
            let [with, without] =
                [run, &without].map(|run| grade(&run.state, &stretch.recorded) == PredictionGrade::Miss);
            gained[index] += i32::from(without) - i32::from(with);
        }
        true
    });
    let mut gained = gained.into_iter();
    rules.map.walls.retain(|_| gained.next().is_some_and(|gained| gained >= FEWEST_VOTES as i32 / 2));
}
