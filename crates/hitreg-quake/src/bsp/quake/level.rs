//! A map as movement sees it: trees of planes for a standing player and for points, brush models, and the triggers that
//! throw or move whoever touches them. It is part of a log, so that a replay needs no map file.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::bsp::BspError;
use super::check::check;
use super::missing::MissingWall;
use super::trace::{Hull, TraceNode};

/// Nothing there.
pub(crate) const EMPTY: i32 = -1;
/// A place where bodies cannot be.
pub(crate) const SOLID: i32 = -2;
/// Water; slime and lava lie below it.
pub(crate) const WATER: i32 = -3;
/// Slime.
pub(crate) const SLIME: i32 = -4;

/// A moving model is looked through at so many places along each axis.
const SAMPLES: usize = 10;

/// A map's movement data. [`Map::parse`] and reading one from a log check every index and that every tree ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedMap")]
pub struct Map {
    pub(crate) planes: Vec<Plane>,
    pub(crate) clip_nodes: Vec<ClipNode>,
    pub(crate) point_nodes: Vec<ClipNode>,
    pub(crate) models: Vec<Submodel>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    /// What the played map had and this one lacks, as far as a recording shows it.
    pub(crate) walls: Vec<MissingWall>,
    /// Where players come into the game: their origins.
    pub(crate) spawns: Vec<[f32; 3]>,
    #[serde(skip)]
    pub(crate) clip_tree: Vec<TraceNode>,
    #[serde(skip)]
    pub(crate) point_tree: Vec<TraceNode>,
}

/// The same, straight from a file or a log.
#[derive(Deserialize)]
pub(crate) struct UncheckedMap {
    pub(crate) planes: Vec<Plane>,
    pub(crate) clip_nodes: Vec<ClipNode>,
    pub(crate) point_nodes: Vec<ClipNode>,
    pub(crate) models: Vec<Submodel>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    #[serde(default)]
    pub(crate) walls: Vec<MissingWall>,
    #[serde(default)]
    pub(crate) spawns: Vec<[f32; 3]>,
}

impl TryFrom<UncheckedMap> for Map {
    type Error = BspError;

    fn try_from(map: UncheckedMap) -> Result<Map, BspError> {
        check(&map)?;
        let UncheckedMap { planes, clip_nodes, point_nodes, models, triggers, moving, walls, spawns } = map;
        let clip_tree = TraceNode::tree(&clip_nodes, &planes);
        let point_tree = TraceNode::tree(&point_nodes, &planes);
        Ok(Map { planes, clip_nodes, point_nodes, models, triggers, moving, walls, spawns, clip_tree, point_tree })
    }
}

/// Points in front have `normal . p >= dist`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plane {
    pub(crate) normal: [f32; 3],
    pub(crate) dist: f32,
    /// The axis that the normal points along, if any.
    pub(crate) axis: Option<u8>,
}

/// A node: in front of the plane is child 0. A negative child is a leaf's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClipNode {
    pub(crate) plane: u16,
    pub(crate) children: [i32; 2],
}

/// The world (number 0) or a brush model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Submodel {
    pub(crate) mins: [f32; 3],
    pub(crate) maxs: [f32; 3],
    pub(crate) point_root: i32,
    pub(crate) clip_root: i32,
}

/// An invisible box that acts on whoever touches it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Lowest corner, in units, already widened as servers do.
    pub mins: [f32; 3],
    /// Highest corner, likewise.
    pub maxs: [f32; 3],
    /// What it does.
    pub effect: TriggerEffect,
}

/// What a trigger does to a living player.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TriggerEffect {
    /// Puts the player there, facing so, at 300 units/s forward.
    Teleport {
        /// Origin of the player afterwards, in units.
        to: [f32; 3],
        /// Pitch, yaw, roll in degrees.
        angles: [f32; 3],
    },
    /// Sets the velocity, in units/s.
    Push {
        /// The new velocity.
        velocity: [f32; 3],
    },
}

/// A brush model that the map's entities can set in motion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovingModel {
    /// Submodel number, from 1.
    pub model: u16,
    /// What it is.
    pub kind: MovingKind,
    /// Where it comes to rest, as displacements from the place where the map has it; twice the same where that is unknown.
    #[serde(default)]
    pub rests: [[f32; 3]; 2],
    /// The place of rest at which it lies in walls but for a lip. Servers do not always send it then.
    #[serde(default)]
    pub sunk: Option<[f32; 3]>,
}

/// Which kind of moving brush model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MovingKind {
    /// Opens when somebody comes near.
    Door,
    /// A lift.
    Plat,
    /// Runs on a track.
    Train,
    /// Gives way when used.
    Button,
    /// Solid, and moves for no one.
    Wall,
}

impl Map {
    /// The brush models that block and may move.
    pub fn moving(&self) -> &[MovingModel] {
        &self.moving
    }

    /// The triggers.
    pub fn triggers(&self) -> &[Trigger] {
        &self.triggers
    }

    /// How many models there are, the world included.
    pub fn model_count(&self) -> usize {
        self.models.len()
    }

    /// The place of rest at which most of a moving model lies in walls, if at the other it does not.
    pub(crate) fn sunk(&self, moving: &MovingModel) -> Option<[f32; 3]> {
        const MOST: usize = SAMPLES * SAMPLES * SAMPLES * 3 / 4;
        const FEW: usize = SAMPLES * SAMPLES * SAMPLES / 2;
        let model = self.model(moving.model)?;
        let [near, far] = moving.rests.map(|by| self.samples_in_walls(model, by));
        match moving.rests {
            [sunk, _] if near >= MOST && far < FEW => Some(sunk),
            [_, sunk] if far >= MOST && near < FEW => Some(sunk),
            _ => None,
        }
    }

    /// Of points evenly spread through a model that is displaced by `by`, how many lie in the world's walls.
    fn samples_in_walls(&self, model: &Submodel, by: [f32; 3]) -> usize {
        let points = Hull::points(self, self.models[0].point_root);
        let along = |axis: usize, step: usize| {
            let share = (step as f32 + 0.5) / SAMPLES as f32;
            model.mins[axis] + by[axis] + share * (model.maxs[axis] - model.mins[axis])
        };
        let spread = (0..SAMPLES * SAMPLES * SAMPLES).map(|n| {
            Vec3::new(along(0, n % SAMPLES), along(1, n / SAMPLES % SAMPLES), along(2, n / SAMPLES / SAMPLES))
        });
        spread.filter(|point| points.contents(*point) == SOLID).count()
    }

    /// The models within `reach` of a place that lie sunk in walls, and where: those that a server does not send.
    pub(crate) fn sunk_near(&self, at: [f32; 3], reach: f32) -> impl Iterator<Item = (u16, [f32; 3])> + '_ {
        self.moving.iter().filter_map(move |moving| {
            let (model, by) = (self.model(moving.model)?, moving.sunk?);
            let near = |n: usize| at[n] + reach > model.mins[n] + by[n] && at[n] - reach < model.maxs[n] + by[n];
            (near(0) && near(1) && near(2)).then_some((moving.model, by))
        })
    }

    pub(crate) fn model(&self, number: u16) -> Option<&Submodel> {
        self.models.get(usize::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::testing::quake_bytes;

    #[test]
    fn a_map_survives_a_log_and_a_damaged_one_does_not() {
        let map = Map::parse(&quake_bytes()).expect("good");
        let bytes = rmp_serde::to_vec(&map).expect("plain data");
        assert_eq!(hitreg_log::serial::from_msgpack::<Map>(&bytes).expect("same"), map);

        let mut looping = map;
        looping.clip_nodes[1].children[1] = 0;
        let bytes = rmp_serde::to_vec(&looping).expect("plain data");
        assert!(hitreg_log::serial::from_msgpack::<Map>(&bytes).is_err());
    }

    #[test]
    fn what_lies_in_walls_at_one_place_of_rest_is_sunk_there() {
        let map = Map::parse(&quake_bytes()).expect("good");
        let lift = |rests| MovingModel { rests, ..map.moving[0] };
        assert_eq!(map.sunk(&lift([[0.0, 0.0, 60.0], [0.0; 3]])), Some([0.0; 3]));
        assert_eq!(map.sunk(&lift([[0.0; 3], [0.0, 0.0, 60.0]])), Some([0.0; 3]));
        assert_eq!(map.sunk(&lift([[0.0; 3], [0.0, 0.0, -2.0]])), None, "at both");
        let near = |x| {
            Map { moving: vec![MovingModel { sunk: Some([0.0; 3]), ..map.moving[0] }], ..map.clone() }
                .sunk_near([x, 0.0, 24.0], 100.0)
                .count()
        };
        assert_eq!((near(90.0), near(200.0)), (1, 0));
    }
}
