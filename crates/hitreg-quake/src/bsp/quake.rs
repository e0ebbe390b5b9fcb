//! Maps of Quake's engine (BSP version 29) for movement: trees of planes for standing players and for points, brush models,
//! and triggers that push or teleport players. A map is part of a log, so that a replay needs no map file.
//!
//! Reading a map, from a file or a log, checks it, so that tracing needs no checks and always terminates.

mod entities;
pub(crate) mod trace;
mod walls;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::{LumpRecord, Lumps, MapError};
use entities::{EntityLump, read_entities};
use trace::{HullTree, TraceNode};

pub use walls::{LeaningFace, MissingWall};

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
    clip_nodes: Vec<ClipNode>,
    point_nodes: Vec<ClipNode>,
    pub(crate) models: Vec<Submodel>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    /// Walls that the played map had and this one lacks, as far as a recording shows them.
    pub(crate) walls: Vec<MissingWall>,
    /// Origins of the spawn points.
    pub(crate) spawns: Vec<[f32; 3]>,
    #[serde(skip)]
    clip_tree: Vec<TraceNode>,
    #[serde(skip)]
    point_tree: Vec<TraceNode>,
}

/// A map from a file or a log before the checks.
#[derive(Deserialize)]
struct UncheckedMap {
    pub(crate) planes: Vec<AxisPlane>,
    clip_nodes: Vec<ClipNode>,
    point_nodes: Vec<ClipNode>,
    pub(crate) models: Vec<Submodel>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    #[serde(default)]
    pub(crate) walls: Vec<MissingWall>,
    #[serde(default)]
    pub(crate) spawns: Vec<[f32; 3]>,
}

impl TryFrom<UncheckedMap> for QuakeMap {
    type Error = MapError;

    fn try_from(map: UncheckedMap) -> Result<QuakeMap, MapError> {
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
    /// Returns the rest position in which most of a moving model lies inside walls, if it does not at the other one.
    pub(crate) fn sunk(&self, moving: &MovingModel) -> Option<[f32; 3]> {
        const SUNK_SAMPLES_MIN: usize = SAMPLES * SAMPLES * SAMPLES * 3 / 4;
        const FREE_SAMPLES_BELOW: usize = SAMPLES * SAMPLES * SAMPLES / 2;
        let model = self.model(moving.model)?;
        let [near, far] = moving.rests.map(|by| self.samples_in_walls(model, by));
        match moving.rests {
            [sunk, _] if near >= SUNK_SAMPLES_MIN && far < FREE_SAMPLES_BELOW => Some(sunk),
            [_, sunk] if far >= SUNK_SAMPLES_MIN && near < FREE_SAMPLES_BELOW => Some(sunk),
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

const VERSION: i32 = 29;
const LUMPS: usize = 15;
const ENTITIES: usize = 0;
const PLANES: usize = 1;
const NODES: usize = 5;
const CLIP_NODES: usize = 9;
const LEAVES: usize = 10;
const MODELS: usize = 14;
/// Node numbers have 16 bits in the file.
const NODES_MAX: usize = 65_536;

impl QuakeMap {
    /// Reads a map file.
    ///
    /// # Errors
    ///
    /// When the version is another, the file is truncated, an index is out of bounds or a tree has a loop.
    pub fn parse(data: &[u8]) -> Result<QuakeMap, MapError> {
        let version = data.first_chunk().map_or(0, |version| i32::from_le_bytes(*version));
        if version != VERSION {
            return Err(MapError(format!("version {version}; only Quake's 29 can be read")));
        }
        let lumps = Lumps::new(data, 4, LUMPS)?;
        let planes = entries(lumps, PLANES, "planes", 20, |record, _| Ok(read_plane(record)))?;
        let leaves = entries(lumps, LEAVES, "leaves", 28, |record, _| Ok(record.i32(0)))?;
        let point_nodes = entries(lumps, NODES, "nodes", 24, |record, by| read_node(record, by, &leaves))?;
        let clip_nodes = entries(lumps, CLIP_NODES, "clip nodes", 8, read_clip_node)?;
        let models = entries(lumps, MODELS, "models", 64, |record, _| Ok(read_model(record)))?;
        let EntityLump { triggers, moving, spawns } = read_entities(lumps.bytes(ENTITIES, "entities")?, &models);
        let mut map = QuakeMap::try_from(UncheckedMap {
            planes,
            clip_nodes,
            point_nodes,
            models,
            triggers,
            moving,
            walls: vec![],
            spawns,
        })?;
        for index in 0..map.moving.len() {
            map.moving[index].sunk = map.sunk(&map.moving[index]);
        }
        Ok(map)
    }
}

fn entries<T>(
    lumps: Lumps<'_>,
    lump: usize,
    name: &'static str,
    entry: usize,
    read: impl Fn(LumpRecord<'_>, usize) -> Result<T, MapError>,
) -> Result<Vec<T>, MapError> {
    let records = lumps.records(lump, name, entry)?;
    let count = records.len();
    if count > NODES_MAX {
        return Err(out_of_lump(name, count as i64, NODES_MAX, lump));
    }
    records.enumerate().map(|(index, record)| read(record, index)).collect()
}

fn read_plane(record: LumpRecord<'_>) -> AxisPlane {
    let axis = u8::try_from(record.i32(16)).ok().filter(|&axis| axis < 3);
    AxisPlane { normal: record.vec3(0), dist: record.f32(12), axis }
}

fn read_plane_index(record: LumpRecord<'_>, by: usize) -> Result<u16, MapError> {
    let index = record.i32(0);
    u16::try_from(index).map_err(|_| out_of_lump("plane", i64::from(index), NODES_MAX, by))
}

fn read_clip_node(record: LumpRecord<'_>, by: usize) -> Result<ClipNode, MapError> {
    let plane = read_plane_index(record, by)?;
    // Children have 16 bits. Values from -15 are contents; all others are unsigned node numbers, as later compilers
    // need.
    let child = |raw: u16| if raw >= 0xfff1 { i32::from(raw as i16) } else { i32::from(raw) };
    Ok(ClipNode { plane, children: [child(record.u16(4)), child(record.u16(6))] })
}

fn read_node(record: LumpRecord<'_>, by: usize, leaves: &[i32]) -> Result<ClipNode, MapError> {
    let plane = read_plane_index(record, by)?;
    let child = |raw: i16| {
        if raw >= 0 {
            return Ok(i32::from(raw));
        }
        let leaf = -1 - i64::from(raw);
        let contents = usize::try_from(leaf).ok().and_then(|leaf| leaves.get(leaf));
        let known = contents.copied().filter(|&contents| contents < 0);
        known.ok_or_else(|| out_of_lump("leaf", leaf, leaves.len(), by))
    };
    Ok(ClipNode { plane, children: [child(record.u16(4) as i16)?, child(record.u16(6) as i16)?] })
}

/// Reads a submodel. The origin at offset 24 is ignored: movement does not use it.
fn read_model(record: LumpRecord<'_>) -> Submodel {
    Submodel { mins: record.vec3(0), maxs: record.vec3(12), point_root: record.i32(36), clip_root: record.i32(40) }
}

/// The deepest allowed tree, because traces recurse. id's maps stay below 60.
const DEPTH_MAX: u16 = 1024;

/// Checks that every index is valid, every tree is finite and every number is finite.
fn check(map: &UncheckedMap) -> Result<(), MapError> {
    if map.models.is_empty() {
        return Err(MapError("the map holds no models".to_owned()));
    }
    for (index, plane) in map.planes.iter().enumerate() {
        let finite = plane.normal.iter().all(|n| n.is_finite()) && plane.dist.is_finite();
        if !finite || plane.axis.is_some_and(|axis| axis > 2) {
            return Err(not_finite("plane", index));
        }
    }
    for (tree, nodes) in [("clip nodes", &map.clip_nodes), ("nodes", &map.point_nodes)] {
        check_nodes(tree, nodes, map.planes.len())?;
        check_depth(tree, nodes)?;
    }
    for (by, model) in map.models.iter().enumerate() {
        if !model.mins.iter().chain(&model.maxs).all(|v| v.is_finite()) {
            return Err(not_finite("model", by));
        }
        check_root("clip node", model.clip_root, map.clip_nodes.len(), by)?;
        check_root("node", model.point_root, map.point_nodes.len(), by)?;
    }
    let finite = |numbers: &[f32; 3]| numbers.iter().all(|n| n.is_finite());
    if let Some(index) = map.moving.iter().position(|moving| !moving.rests.iter().chain(&moving.sunk).all(finite)) {
        return Err(not_finite("moving model", index));
    }
    if let Some(index) = map.walls.iter().position(|wall| !wall.is_finite()) {
        return Err(not_finite("wall", index));
    }
    if let Some(index) = map.spawns.iter().position(|spawn| !finite(spawn)) {
        return Err(not_finite("place of spawning", index));
    }
    Ok(())
}

fn not_finite(what: &str, index: usize) -> MapError {
    MapError(format!("{what} {index} holds a value that is not a finite number"))
}

/// Returns the error for a reference by entry `by` to an entry that a lump with `count` entries does not have.
fn out_of_lump(what: &str, index: i64, count: usize, by: usize) -> MapError {
    MapError(format!("{what} {index} of {count} is referred to by entry {by}"))
}

fn check_nodes(what: &'static str, nodes: &[ClipNode], planes: usize) -> Result<(), MapError> {
    for (by, node) in nodes.iter().enumerate() {
        if usize::from(node.plane) >= planes {
            return Err(out_of_lump("plane", i64::from(node.plane), planes, by));
        }
        for child in node.children {
            check_root(what, child, nodes.len(), by)?;
        }
    }
    Ok(())
}

fn check_root(what: &'static str, root: i32, count: usize, by: usize) -> Result<(), MapError> {
    let fits = root < 0 || usize::try_from(root).is_ok_and(|root| root < count);
    if fits { Ok(()) } else { Err(out_of_lump(what, i64::from(root), count, by)) }
}

/// Computes every node's height above the leaves without recursion and reports loops.
fn check_depth(tree: &'static str, nodes: &[ClipNode]) -> Result<(), MapError> {
    const UNKNOWN: u16 = u16::MAX;
    const OPEN: u16 = u16::MAX - 1;
    let mut heights = vec![UNKNOWN; nodes.len()];
    let mut stack = Vec::new();
    for start in 0..nodes.len() {
        stack.push(start);
        while let Some(&node) = stack.last() {
            if heights[node] < OPEN {
                stack.pop();
                continue;
            }
            let children = nodes[node].children.into_iter().filter_map(|child| usize::try_from(child).ok());
            let too_deep =
                || MapError(format!("the tree of {tree} is deeper than {DEPTH_MAX} at node {node}, or loops"));
            if heights[node] == UNKNOWN {
                heights[node] = OPEN;
                for child in children {
                    match heights[child] {
                        OPEN => return Err(too_deep()),
                        UNKNOWN => stack.push(child),
                        _ => {}
                    }
                }
                continue;
            }
            let height = 1 + children.map(|child| heights[child]).max().unwrap_or(0);
            if height > DEPTH_MAX {
                return Err(too_deep());
            }
            heights[node] = height;
            stack.pop();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::trace::SweepRule;
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

    /// Returns the offset of a lump's table entry in the header.
    fn header(lump: usize) -> usize {
        4 + lump * 8
    }

    fn lump_start(file: &[u8], lump: usize) -> usize {
        u32::from_le_bytes(file[header(lump)..header(lump) + 4].try_into().expect("four")) as usize
    }

    #[test]
    fn a_small_map_is_read() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        assert_eq!(map.models.len(), 3);
        assert_eq!(map.moving.len(), 1);
        assert_eq!(map.moving[0].kind, MovingKind::Plat);
        assert_eq!(map.triggers.len(), 1);
        let points = HullTree::points(&map, 0);
        assert_eq!(points.contents(Vec3::new(0.0, 0.0, 1.0)), EMPTY);
        assert_eq!(points.contents(Vec3::new(-300.0, 0.0, -10.0)), WATER);
    }

    #[test]
    fn other_versions_and_loops_are_errors() {
        let mut other = quake_bytes();
        other[0] = 30;
        let error = |file: &[u8]| QuakeMap::parse(file).expect_err("damage").to_string();
        assert_eq!(error(&other), "version 30; only Quake's 29 can be read");

        let mut looping = quake_bytes();
        let node = lump_start(&looping, CLIP_NODES);
        looping[node + 4..node + 6].copy_from_slice(&0i16.to_le_bytes());
        assert_eq!(error(&looping), "the tree of clip nodes is deeper than 1024 at node 0, or loops");

        let mut wild = quake_bytes();
        wild[node..node + 4].copy_from_slice(&99i32.to_le_bytes());
        assert_eq!(error(&wild), "plane 99 of 12 is referred to by entry 0");
    }

    #[test]
    fn a_truncated_or_damaged_map_never_panics() {
        let good = quake_bytes();
        for len in 0..good.len() {
            let _ = QuakeMap::parse(&good[..len]);
        }
        for at in 0..good.len() {
            for bit in [0, 3, 7] {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                if let Ok(map) = QuakeMap::parse(&bad) {
                    let hull = HullTree::clip(&map, map.models[0].clip_root);
                    hull.contents(Vec3::new(1.0, 2.0, 3.0));
                }
            }
        }
    }

    /// Returns a map of consecutive planes along x, each a node; the last one leads into solid.
    fn chain(nodes: u16) -> Result<QuakeMap, MapError> {
        let planes = (0..nodes).map(|n| AxisPlane { normal: [1.0, 0.0, 0.0], dist: f32::from(n), axis: Some(0) });
        let node = |n: u16| {
            let front = if n + 1 < nodes { i32::from(n) + 1 } else { SOLID };
            ClipNode { plane: n, children: [front, EMPTY] }
        };
        let clip_nodes: Vec<ClipNode> = (0..nodes).map(node).collect();
        let world = Submodel { mins: [-9e3; 3], maxs: [9e3; 3], point_root: 0, clip_root: 0 };
        QuakeMap::try_from(UncheckedMap {
            planes: planes.collect(),
            point_nodes: clip_nodes.clone(),
            clip_nodes,
            models: vec![world],
            triggers: vec![],
            moving: vec![],
            walls: vec![],
            spawns: vec![],
        })
    }

    #[test]
    fn the_deepest_tree_can_be_swept_and_a_deeper_one_is_refused() {
        let map = chain(DEPTH_MAX).expect("just deep enough");
        for rule in [SweepRule::Classic, SweepRule::Reworked] {
            for (start, end) in [(-10.0, 2_000.0), (900.5, -10.0)] {
                let sweep = HullTree::clip(&map, 0).sweep(rule, Vec3::X * start, Vec3::X * end);
                assert!(sweep.fraction == 1.0 || (sweep.end.x - f32::from(DEPTH_MAX - 1)).abs() < 0.1, "{sweep:?}");
            }
        }
        let error = chain(DEPTH_MAX + 1).expect_err("too deep").to_string();
        assert!(error.starts_with("the tree of clip nodes is deeper than 1024 at node "), "{error}");
    }

    #[test]
    fn a_map_without_models_or_with_wild_roots_is_refused() {
        let mut map = UncheckedMap {
            planes: vec![],
            clip_nodes: vec![],
            point_nodes: vec![],
            models: vec![],
            triggers: vec![],
            moving: vec![],
            walls: vec![],
            spawns: vec![],
        };
        let error = |map: &UncheckedMap| check(map).expect_err("unfit").to_string();
        assert_eq!(error(&map), "the map holds no models");
        map.models.push(Submodel { mins: [0.0; 3], maxs: [f32::NAN; 3], point_root: -1, clip_root: -1 });
        assert_eq!(error(&map), "model 0 holds a value that is not a finite number");
        map.models[0] = Submodel { mins: [0.0; 3], maxs: [0.0; 3], point_root: -1, clip_root: 3 };
        assert_eq!(error(&map), "clip node 3 of 0 is referred to by entry 0");
    }
}
