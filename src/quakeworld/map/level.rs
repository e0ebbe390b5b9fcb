//! A map as movement sees it: trees of planes for a standing player and for points, brush models, and the triggers that
//! throw or move whoever touches them. It is part of a log, so that a replay needs no map file.

use serde::{Deserialize, Serialize};

use super::bsp::BspError;
use super::check::check;
use super::trace::TraceNode;

/// Nothing there.
pub const EMPTY: i32 = -1;
/// A place where bodies cannot be.
pub const SOLID: i32 = -2;
/// Water; slime and lava lie below it.
pub const WATER: i32 = -3;
/// Slime.
pub const SLIME: i32 = -4;

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
}

impl TryFrom<UncheckedMap> for Map {
    type Error = BspError;

    fn try_from(map: UncheckedMap) -> Result<Map, BspError> {
        check(&map)?;
        let UncheckedMap { planes, clip_nodes, point_nodes, models, triggers, moving } = map;
        let clip_tree = TraceNode::tree(&clip_nodes, &planes);
        let point_tree = TraceNode::tree(&point_nodes, &planes);
        Ok(Map { planes, clip_nodes, point_nodes, models, triggers, moving, clip_tree, point_tree })
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingModel {
    /// Submodel number, from 1.
    pub model: u16,
    /// What it is.
    pub kind: MovingKind,
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

    pub(crate) fn model(&self, number: u16) -> Option<&Submodel> {
        self.models.get(usize::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quakeworld::testing::bsp_bytes;

    #[test]
    fn a_map_survives_a_log_and_a_damaged_one_does_not() {
        let map = Map::parse(&bsp_bytes()).expect("good");
        let bytes = rmp_serde::to_vec(&map).expect("plain data");
        assert_eq!(crate::serial::from_msgpack::<Map>(&bytes).expect("same"), map);

        let mut looping = map;
        looping.clip_nodes[1].children[1] = 0;
        let bytes = rmp_serde::to_vec(&looping).expect("plain data");
        assert!(crate::serial::from_msgpack::<Map>(&bytes).is_err());
    }
}
