//! The evidence for a missing wall: its face, where players met it, and how far it can extend given where players moved
//! freely.

use super::{NEIGHBOURS, ROUNDING};
use crate::bsp::quake::{LeaningFace, MissingWall};
use crate::quakeworld::demo::{QuakeWorldDemo, ServerPacket};

/// Number of stretches between two separate visits.
const APART: usize = 400;
/// How far a wall may extend beyond the evidence, in units: sideways, and up and down.
const BEYOND: [f32; 2] = [2.0, 24.0];
/// Assumed thickness of an upright wall, in units; only its face is known.
const THICKNESS: f32 = 4.0;
/// Number of positions checked on the way between two packets,
const WAY_STEPS: u8 = 8;
/// unless the way is longer along an axis, in units: a teleport, or too many lost packets.
const LONGEST_WAY: f32 = 32.0;

/// The evidence for a missing wall.
#[derive(Clone, Debug)]
pub(super) struct ShownWall {
    face: WallFace,
    /// Lowest and highest corner of the positions where players met it.
    low: [f32; 3],
    high: [f32; 3],
    /// Player positions before and after each stretch that shows the wall.
    pub(super) votes: Vec<[[f32; 3]; 2]>,
    pub(super) visits: u32,
    last: usize,
}

/// The face of a wall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WallFace {
    /// A face perpendicular to an axis; the wall extends from it along the axis or against it.
    Upright {
        axis: usize,
        at: f32,
        beyond: bool,
    },
    Leaning(LeaningFace),
}

impl ShownWall {
    /// Returns the evidence from one contact, between two positions, after `count` stretches.
    pub(super) fn new(face: WallFace, way: [[f32; 3]; 2], count: usize) -> ShownWall {
        let low = [0, 1, 2].map(|n| way[0][n].min(way[1][n]));
        let high = [0, 1, 2].map(|n| way[0][n].max(way[1][n]));
        ShownWall { face, low, high, votes: vec![way], visits: 1, last: count }
    }

    /// Returns the wall, extended beyond the evidence by `reach` along each axis.
    pub(super) fn as_box(&self, reach: [f32; 3]) -> MissingWall {
        let mut low = [0, 1, 2].map(|n| self.low[n] - reach[n]);
        let mut high = [0, 1, 2].map(|n| self.high[n] + reach[n]);
        match self.face {
            WallFace::Upright { axis, at, beyond } => {
                low[axis] = if beyond { at } else { at - THICKNESS };
                high[axis] = low[axis] + THICKNESS;
                MissingWall { low, high, face: None }
            }
            WallFace::Leaning(face) => MissingWall { low, high, face: Some(face) },
        }
    }

    /// Adds the contact to a known wall, or as a new one.
    pub(super) fn add_to(self, shown: &mut Vec<ShownWall>) {
        let Some(known) = shown.iter_mut().find(|known| known.is_of(&self)) else { return shown.push(self) };
        known.low = [0, 1, 2].map(|n| known.low[n].min(self.low[n]));
        known.high = [0, 1, 2].map(|n| known.high[n].max(self.high[n]));
        known.votes.extend(self.votes);
        known.visits += u32::from(self.last > known.last + APART);
        known.last = self.last;
    }

    fn is_of(&self, other: &ShownWall) -> bool {
        let near = |n: usize| self.low[n] - NEIGHBOURS < other.high[n] && self.high[n] + NEIGHBOURS > other.low[n];
        self.face == other.face && near(0) && near(1) && near(2)
    }

    /// Returns the wall, reduced until no living player was inside it or moved through it. It keeps as much as possible
    /// where it was met.
    pub(super) fn without_places(&self, demo: &QuakeWorldDemo) -> MissingWall {
        let reach = match self.face {
            WallFace::Upright { .. } => [BEYOND[0], BEYOND[0], BEYOND[1]],
            // A leaning face is farther forward or back at other heights.
            WallFace::Leaning(face) => [0, 1, 2].map(|n| if face.normal[n] == 0.0 { BEYOND[0] } else { BEYOND[1] }),
        };
        let mut wall = self.as_box(reach);
        let is_cut = |axis: &usize| !matches!(self.face, WallFace::Upright { axis: across, .. } if across == *axis);
        for at in places(demo) {
            let behind = wall.face.is_none_or(|face| face.distance(at) < -ROUNDING * face.slack());
            if !behind || !(0..3).all(|n| at[n] > wall.low[n] + ROUNDING && at[n] < wall.high[n] - ROUNDING) {
                continue;
            }
            let cuts = (0..3).filter(is_cut);
            let cuts = cuts.flat_map(|n| [(n, false, at[n] - wall.low[n]), (n, true, wall.high[n] - at[n])]);
            let votes_lost = |(axis, from_above, _): &(usize, bool, f32)| {
                let lies_off =
                    |place: &[f32; 3]| if *from_above { place[*axis] >= at[*axis] } else { place[*axis] <= at[*axis] };
                self.votes.iter().filter(|places| places.iter().all(lies_off)).count()
            };
            let least = |a: &(usize, bool, f32), b: &(usize, bool, f32)| {
                votes_lost(a).cmp(&votes_lost(b)).then(a.2.total_cmp(&b.2))
            };
            if let Some((axis, from_above, _)) = cuts.min_by(least) {
                let side = if from_above { &mut wall.high } else { &mut wall.low };
                side[axis] = at[axis];
            }
        }
        wall
    }
}

/// Returns positions of living players: the own ones, also between packets, and the other players' as sent.
fn places(demo: &QuakeWorldDemo) -> impl Iterator<Item = [f32; 3]> + '_ {
    let living = |packet: &ServerPacket| packet.own.filter(|own| !own.dead).map(|own| own.origin);
    let others = demo.packets.iter().flat_map(|packet| &packet.others);
    let others = others.filter(|other| !other.dead).map(|other| other.origin);
    let mut last = None;
    let own = demo.packets.iter().filter_map(living).flat_map(move |now| {
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
