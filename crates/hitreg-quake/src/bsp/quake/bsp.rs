//! Reads a `.bsp` of version 29 (Quake) into a [`QuakeMap`]. It reads only what player movement needs, and checks it so that
//! every trace terminates.

use super::entities::{EntityLump, read_entities};
use super::level::{AxisPlane, ClipNode, QuakeMap, Submodel, UncheckedMap};
use crate::bsp::lumps::{LumpError, LumpRecord, Lumps};

const VERSION: i32 = 29;
const LUMPS: usize = 15;
const ENTITIES: usize = 0;
const PLANES: usize = 1;
const NODES: usize = 5;
const CLIP_NODES: usize = 9;
const LEAVES: usize = 10;
const MODELS: usize = 14;
/// Node numbers have 16 bits in the file.
const MOST_NODES: usize = 65_536;

/// Why a `.bsp` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BspError {
    /// A lump cannot be read.
    #[error(transparent)]
    Lump(#[from] LumpError),
    /// The file has another version.
    #[error("version {version}; only Quake's 29 can be read")]
    OtherVersion {
        /// The version found.
        version: i32,
    },
    /// An index is outside of its lump.
    #[error("{what} {index} of {count} is referred to by entry {by}")]
    Index {
        /// Name of the referenced lump.
        what: &'static str,
        /// The index found.
        index: i64,
        /// Number of entries in the lump.
        count: usize,
        /// The entry with the reference.
        by: usize,
    },
    /// A tree has a loop or is deeper than the limit.
    #[error("the tree of {tree} is deeper than {limit} at node {node}, or loops")]
    Depth {
        /// Name of the tree.
        tree: &'static str,
        /// The node where the check failed.
        node: usize,
        /// The largest allowed depth.
        limit: u16,
    },
    /// A plane or a box has a value that is not a finite number.
    #[error("{what} {index} holds a value that is not a finite number")]
    NotFinite {
        /// Kind of the entry.
        what: &'static str,
        /// Index of the entry.
        index: usize,
    },
    /// The map lacks a required part.
    #[error("the map holds no {missing}")]
    Empty {
        /// Name of the part.
        missing: &'static str,
    },
}

impl QuakeMap {
    /// Reads a map file.
    ///
    /// # Errors
    ///
    /// When the version is another, the file is truncated, an index is out of bounds or a tree has a loop; see
    /// [`BspError`].
    pub fn parse(data: &[u8]) -> Result<QuakeMap, BspError> {
        let version = data.first_chunk().map_or(0, |version| i32::from_le_bytes(*version));
        if version != VERSION {
            return Err(BspError::OtherVersion { version });
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
    read: impl Fn(LumpRecord<'_>, usize) -> Result<T, BspError>,
) -> Result<Vec<T>, BspError> {
    let records = lumps.records(lump, name, entry)?;
    let count = records.len();
    if count > MOST_NODES {
        return Err(BspError::Index { what: name, index: count as i64, count: MOST_NODES, by: lump });
    }
    records.enumerate().map(|(index, record)| read(record, index)).collect()
}

fn read_plane(record: LumpRecord<'_>) -> AxisPlane {
    let axis = u8::try_from(record.i32(16)).ok().filter(|&axis| axis < 3);
    AxisPlane { normal: record.vec3(0), dist: record.f32(12), axis }
}

fn read_plane_index(record: LumpRecord<'_>, by: usize) -> Result<u16, BspError> {
    let index = record.i32(0);
    let out = BspError::Index { what: "plane", index: i64::from(index), count: MOST_NODES, by };
    u16::try_from(index).map_err(|_| out)
}

fn read_clip_node(record: LumpRecord<'_>, by: usize) -> Result<ClipNode, BspError> {
    let plane = read_plane_index(record, by)?;
    // Children have 16 bits. Values from -15 are contents; all others are unsigned node numbers, as later compilers
    // need.
    let child = |raw: u16| if raw >= 0xfff1 { i32::from(raw as i16) } else { i32::from(raw) };
    Ok(ClipNode { plane, children: [child(record.u16(4)), child(record.u16(6))] })
}

fn read_node(record: LumpRecord<'_>, by: usize, leaves: &[i32]) -> Result<ClipNode, BspError> {
    let plane = read_plane_index(record, by)?;
    let child = |raw: i16| {
        if raw >= 0 {
            return Ok(i32::from(raw));
        }
        let leaf = -1 - i64::from(raw);
        let contents = usize::try_from(leaf).ok().and_then(|leaf| leaves.get(leaf));
        let out = BspError::Index { what: "leaf", index: leaf, count: leaves.len(), by };
        contents.copied().filter(|&contents| contents < 0).ok_or(out)
    };
    Ok(ClipNode { plane, children: [child(record.u16(4) as i16)?, child(record.u16(6) as i16)?] })
}

/// Reads a submodel. The origin at offset 24 is ignored: movement does not use it.
fn read_model(record: LumpRecord<'_>) -> Submodel {
    Submodel { mins: record.vec3(0), maxs: record.vec3(12), point_root: record.i32(36), clip_root: record.i32(40) }
}

#[cfg(test)]
mod tests {
    use super::super::level::{EMPTY, MovingKind, WATER};
    use super::super::trace::HullTree;
    use super::*;
    use crate::bsp::tests::quake_bytes;
    use glam::Vec3;

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
        assert_eq!(map.model_count(), 3);
        assert_eq!(map.moving().len(), 1);
        assert_eq!(map.moving()[0].kind, MovingKind::Plat);
        assert_eq!(map.triggers().len(), 1);
        let points = HullTree::points(&map, 0);
        assert_eq!(points.contents(Vec3::new(0.0, 0.0, 1.0)), EMPTY);
        assert_eq!(points.contents(Vec3::new(-300.0, 0.0, -10.0)), WATER);
    }

    #[test]
    fn other_versions_and_loops_are_errors() {
        let mut other = quake_bytes();
        other[0] = 30;
        assert_eq!(QuakeMap::parse(&other), Err(BspError::OtherVersion { version: 30 }));

        let mut looping = quake_bytes();
        let node = lump_start(&looping, CLIP_NODES);
        looping[node + 4..node + 6].copy_from_slice(&0i16.to_le_bytes());
        assert!(matches!(QuakeMap::parse(&looping), Err(BspError::Depth { tree: "clip nodes", .. })));

        let mut wild = quake_bytes();
        wild[node..node + 4].copy_from_slice(&99i32.to_le_bytes());
        assert!(matches!(QuakeMap::parse(&wild), Err(BspError::Index { what: "plane", index: 99, .. })));
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
}
