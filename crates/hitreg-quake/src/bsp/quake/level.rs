//! A map for movement: trees of planes for standing players and for points, brush models, and triggers that push or
//! teleport players. It is part of a log, so that a replay needs no map file.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::bsp::BspError;
use super::check::check;
use super::missing::MissingWall;
use super::trace::{HullTree, TraceNode};

/// Contents of empty space.
pub(crate) const EMPTY: i32 = -1;
/// Contents of solid space.
pub(crate) const SOLID: i32 = -2;
/// Contents of water; slime and lava have lower numbers.
pub(crate) const WATER: i32 = -3;
/// Contents of slime.
pub(crate) const SLIME: i32 = -4;

/// Number of sample points along each axis of a moving model.
const SAMPLES: usize = 10;

/// The movement data of a map. Reading it, from a file or a log, checks all indices and that all trees are finite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedMap")]
pub struct QuakeMap {
    pub(crate) planes: Vec<AxisPlane>,
    pub(crate) clip_nodes: Vec<ClipNode>,
    pub(crate) point_nodes: Vec<ClipNode>,
    pub(crate) models: Vec<Submodel>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    /// Walls that the played map had and this one lacks, as far as a recording shows them.
    pub(crate) walls: Vec<MissingWall>,
    /// Origins of the spawn points.
    pub(crate) spawns: Vec<[f32; 3]>,
    #[serde(skip)]
    pub(crate) clip_tree: Vec<TraceNode>,
    #[serde(skip)]
    pub(crate) point_tree: Vec<TraceNode>,
}

/// A map from a file or a log before the checks.
#[derive(Deserialize)]
pub(crate) struct UncheckedMap {
    pub(crate) planes: Vec<AxisPlane>,
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

impl TryFrom<UncheckedMap> for QuakeMap {
    type Error = BspError;

    fn try_from(map: UncheckedMap) -> Result<QuakeMap, BspError> {
        check(&map)?;
        let UncheckedMap { planes, clip_nodes, point_nodes, models, triggers, moving, walls, spawns } = map;
        let clip_tree = TraceNode::tree(&clip_nodes, &planes);
        let point_tree = TraceNode::tree(&point_nodes, &planes);
        Ok(QuakeMap { planes, clip_nodes, point_nodes, models, triggers, moving, walls, spawns, clip_tree, point_tree })
    }
}

/// A plane. Points in front have `normal . p >= dist`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AxisPlane {
    pub(crate) normal: [f32; 3],
    pub(crate) dist: f32,
    /// The axis that the normal points along, if any.
    pub(crate) axis: Option<u8>,
}

/// A node of a tree: child 0 is in front of the plane. A negative child is a leaf's contents.
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

/// An invisible box that acts on players who touch it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Lowest corner, in units, widened as servers do.
    pub mins: [f32; 3],
    /// Highest corner, in units, widened as servers do.
    pub maxs: [f32; 3],
    /// Effect on the player.
    pub effect: TriggerEffect,
}

/// The effect of a trigger on a living player.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TriggerEffect {
    /// Moves the player to a position and view direction, at 300 units/s forward.
    Teleport {
        /// Origin of the player after the teleport, in units.
        to: [f32; 3],
        /// Pitch, yaw and roll in degrees.
        angles: [f32; 3],
    },
    /// Sets the velocity.
    Push {
        /// The new velocity, in units/s.
        velocity: [f32; 3],
    },
}

/// A brush model that the map's entities can move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovingModel {
    /// Submodel number, from 1.
    pub model: u16,
    /// Kind of the model.
    pub kind: MovingKind,
    /// Rest positions as displacements from the position in the map; both are equal when they are unknown.
    #[serde(default)]
    pub rests: [[f32; 3]; 2],
    /// The rest position in which the model lies inside walls except for a lip. Servers do not always send it there.
    #[serde(default)]
    pub sunk: Option<[f32; 3]>,
}

/// Kinds of moving brush models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MovingKind {
    /// A door, which opens when a player comes near.
    Door,
    /// A lift.
    Plat,
    /// A train, which follows a track.
    Train,
    /// A button, which gives way when used.
    Button,
    /// A solid wall that does not move.
    Wall,
}

impl QuakeMap {
    /// Returns the brush models that block players and may move.
    pub fn moving(&self) -> &[MovingModel] {
        &self.moving
    }

    /// Returns the triggers.
    pub fn triggers(&self) -> &[Trigger] {
        &self.triggers
    }

    /// Returns the number of models, including the world.
    pub fn model_count(&self) -> usize {
        self.models.len()
    }

    /// Returns the rest position in which most of a moving model lies inside walls, if it does not at the other one.
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

    /// Returns how many evenly spread points of a model, displaced by `by`, lie inside the world's walls.
    fn samples_in_walls(&self, model: &Submodel, by: [f32; 3]) -> usize {
        let points = HullTree::points(self, self.models[0].point_root);
        let along = |axis: usize, step: usize| {
            let share = (step as f32 + 0.5) / SAMPLES as f32;
            model.mins[axis] + by[axis] + share * (model.maxs[axis] - model.mins[axis])
        };
        let spread = (0..SAMPLES * SAMPLES * SAMPLES).map(|n| {
            Vec3::new(along(0, n % SAMPLES), along(1, n / SAMPLES % SAMPLES), along(2, n / SAMPLES / SAMPLES))
        });
        spread.filter(|point| points.contents(*point) == SOLID).count()
    }

    /// Returns the models within `reach` of a position that lie sunk in walls, with their displacements. Servers may
    /// not send these.
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
    use crate::bsp::tests::quake_bytes;

    #[test]
    fn a_map_survives_a_log_and_a_damaged_one_does_not() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let bytes = rmp_serde::to_vec(&map).expect("plain data");
        assert_eq!(hitreg_log::serial::from_msgpack::<QuakeMap>(&bytes).expect("same"), map);

        let mut looping = map;
        looping.clip_nodes[1].children[1] = 0;
        let bytes = rmp_serde::to_vec(&looping).expect("plain data");
        assert!(hitreg_log::serial::from_msgpack::<QuakeMap>(&bytes).is_err());
    }

    #[test]
    fn models_inside_walls_at_a_rest_position_are_sunk() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let lift = |rests| MovingModel { rests, ..map.moving[0] };
        assert_eq!(map.sunk(&lift([[0.0, 0.0, 60.0], [0.0; 3]])), Some([0.0; 3]));
        assert_eq!(map.sunk(&lift([[0.0; 3], [0.0, 0.0, 60.0]])), Some([0.0; 3]));
        assert_eq!(map.sunk(&lift([[0.0; 3], [0.0, 0.0, -2.0]])), None, "at both");
        let near = |x| {
            QuakeMap { moving: vec![MovingModel { sunk: Some([0.0; 3]), ..map.moving[0] }], ..map.clone() }
                .sunk_near([x, 0.0, 24.0], 100.0)
                .count()
        };
        assert_eq!((near(90.0), near(200.0)), (1, 0));
    }
}
