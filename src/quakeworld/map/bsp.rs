//! Reads a `.bsp` of version 29 (Quake) into a [`Map`]: only what player movement needs, checked so that tracing through
//! it always ends.

use super::entities::{Entities, read_entities};
use super::level::{ClipNode, EMPTY, Map, Plane, Submodel, UncheckedMap};
use crate::quakeworld::bytes::{Bytes, End};

const VERSION: i32 = 29;
const LUMPS: usize = 15;
const ENTITIES: usize = 0;
const PLANES: usize = 1;
const NODES: usize = 5;
const CLIP_NODES: usize = 9;
const LEAVES: usize = 10;
const MODELS: usize = 14;
/// Node numbers are 16 bits in the file.
const MOST_NODES: usize = 65_536;

/// Why a `.bsp` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BspError {
    /// A lump lies outside of the file, or ends inside an entry.
    #[error("byte {offset}: the data ends in the middle of a value")]
    Truncated {
        /// Where the value starts.
        offset: usize,
    },
    /// Not Quake's version.
    #[error("version {version}; only Quake's 29 can be read")]
    OtherVersion {
        /// The version found.
        version: i32,
    },
    /// A lump's length is no multiple of its entries'.
    #[error("the lump of {lump} has {length} bytes, which is no multiple of {entry}")]
    LumpLength {
        /// Which lump.
        lump: &'static str,
        /// Its length.
        length: usize,
        /// The length of an entry.
        entry: usize,
    },
    /// An index points outside of its lump.
    #[error("{what} {index} of {count} is referred to by entry {by}")]
    Index {
        /// What is referred to.
        what: &'static str,
        /// The index found.
        index: i64,
        /// How many there are.
        count: usize,
        /// Which entry refers to it.
        by: usize,
    },
    /// A tree that loops or is deeper than any compiler makes it.
    #[error("the tree of {tree} is deeper than {limit} at node {node}, or loops")]
    Depth {
        /// Which tree.
        tree: &'static str,
        /// The node reached.
        node: usize,
        /// The deepest allowed.
        limit: u16,
    },
    /// A plane or box with a value that is not a number.
    #[error("{what} {index} holds a value that is not a finite number")]
    NotFinite {
        /// What holds it.
        what: &'static str,
        /// Which of them.
        index: usize,
    },
    /// Nothing to stand on.
    #[error("the map holds no {missing}")]
    Empty {
        /// What is missing.
        missing: &'static str,
    },
}

impl From<End> for BspError {
    fn from(end: End) -> BspError {
        BspError::Truncated { offset: end.offset }
    }
}

impl Map {
    /// Reads a map file.
    ///
    /// # Errors
    ///
    /// Another version, a truncated file, indices out of bounds, trees that loop: see [`BspError`].
    pub fn parse(data: &[u8]) -> Result<Map, BspError> {
        let file = File::open(data)?;
        let planes = file.entries(PLANES, "planes", 20, read_plane)?;
        let leaves = file.entries(LEAVES, "leaves", 28, read_leaf_contents)?;
        let point_nodes = file.entries(NODES, "nodes", 24, |bytes, at| read_node(bytes, at, &leaves))?;
        let clip_nodes = file.entries(CLIP_NODES, "clip nodes", 8, read_clip_node)?;
        let models = file.entries(MODELS, "models", 64, read_model)?;
        let Entities { triggers, moving, spawns } = read_entities(file.lump(ENTITIES)?.1, &models);
        let mut map = Map::try_from(UncheckedMap {
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

struct File<'a> {
    data: &'a [u8],
    lumps: [(usize, usize); LUMPS],
}

impl<'a> File<'a> {
    fn open(data: &'a [u8]) -> Result<File<'a>, BspError> {
        let mut bytes = Bytes::new(data, 0);
        let version = bytes.i32()?;
        if version != VERSION {
            return Err(BspError::OtherVersion { version });
        }
        let mut lumps = [(0, 0); LUMPS];
        for lump in &mut lumps {
            *lump = (bytes.u32()? as usize, bytes.u32()? as usize);
        }
        Ok(File { data, lumps })
    }

    fn lump(&self, lump: usize) -> Result<(usize, &'a [u8]), BspError> {
        let (offset, length) = self.lumps[lump];
        let end = offset.checked_add(length).ok_or(BspError::Truncated { offset })?;
        Ok((offset, self.data.get(offset..end).ok_or(BspError::Truncated { offset })?))
    }

    fn entries<T>(
        &self,
        lump: usize,
        name: &'static str,
        entry: usize,
        read: impl Fn(&mut Bytes<'_>, usize) -> Result<T, BspError>,
    ) -> Result<Vec<T>, BspError> {
        let (offset, data) = self.lump(lump)?;
        if data.len() % entry != 0 {
            return Err(BspError::LumpLength { lump: name, length: data.len(), entry });
        }
        let count = data.len() / entry;
        if count > MOST_NODES {
            return Err(BspError::Index { what: name, index: count as i64, count: MOST_NODES, by: lump });
        }
        let mut bytes = Bytes::new(data, offset);
        (0..count).map(|index| read(&mut bytes, index)).collect()
    }
}

fn read_plane(bytes: &mut Bytes<'_>, _index: usize) -> Result<Plane, BspError> {
    let (normal, dist, kind) = (bytes.vec3()?, bytes.f32()?, bytes.i32()?);
    let axis = u8::try_from(kind).ok().filter(|&axis| axis < 3);
    Ok(Plane { normal, dist, axis })
}

fn read_plane_index(bytes: &mut Bytes<'_>, by: usize) -> Result<u16, BspError> {
    let index = bytes.i32()?;
    let out = BspError::Index { what: "plane", index: i64::from(index), count: MOST_NODES, by };
    u16::try_from(index).map_err(|_| out)
}

fn read_clip_node(bytes: &mut Bytes<'_>, by: usize) -> Result<ClipNode, BspError> {
    let plane = read_plane_index(bytes, by)?;
    // Children are 16 bits: contents from -15 on, everything else a node number, as later compilers need.
    let child = |raw: u16| if raw >= 0xfff1 { i32::from(raw as i16) } else { i32::from(raw) };
    Ok(ClipNode { plane, children: [child(bytes.u16()?), child(bytes.u16()?)] })
}

fn read_node(bytes: &mut Bytes<'_>, by: usize, leaves: &[i32]) -> Result<ClipNode, BspError> {
    let plane = read_plane_index(bytes, by)?;
    let mut children = [EMPTY; 2];
    for child in &mut children {
        let raw = bytes.i16()?;
        *child = if raw >= 0 {
            i32::from(raw)
        } else {
            let leaf = -1 - i64::from(raw);
            let contents = usize::try_from(leaf).ok().and_then(|leaf| leaves.get(leaf));
            let out = BspError::Index { what: "leaf", index: leaf, count: leaves.len(), by };
            *contents.filter(|&&contents| contents < 0).ok_or(out)?
        };
    }
    bytes.take(16)?;
    Ok(ClipNode { plane, children })
}

fn read_leaf_contents(bytes: &mut Bytes<'_>, _index: usize) -> Result<i32, BspError> {
    let contents = bytes.i32()?;
    bytes.take(24)?;
    Ok(contents)
}

fn read_model(bytes: &mut Bytes<'_>, _index: usize) -> Result<Submodel, BspError> {
    let (mins, maxs) = (bytes.vec3()?, bytes.vec3()?);
    bytes.take(12)?; // where its compiler centred it; movement does not use it
    let (point_root, clip_root) = (bytes.i32()?, bytes.i32()?);
    bytes.take(20)?;
    Ok(Submodel { mins, maxs, point_root, clip_root })
}

#[cfg(test)]
mod tests {
    use super::super::level::{MovingKind, WATER};
    use super::super::trace::Hull;
    use super::*;
    use crate::quakeworld::testing::bsp_bytes;
    use glam::Vec3;

    /// Where the lump's offset and length stand in the header.
    fn header(lump: usize) -> usize {
        4 + lump * 8
    }

    fn lump_start(file: &[u8], lump: usize) -> usize {
        u32::from_le_bytes(file[header(lump)..header(lump) + 4].try_into().expect("four")) as usize
    }

    #[test]
    fn a_small_map_is_read() {
        let map = Map::parse(&bsp_bytes()).expect("good");
        assert_eq!(map.model_count(), 3);
        assert_eq!(map.moving().len(), 1);
        assert_eq!(map.moving()[0].kind, MovingKind::Plat);
        assert_eq!(map.triggers().len(), 1);
        let points = Hull::points(&map, 0);
        assert_eq!(points.contents(Vec3::new(0.0, 0.0, 1.0)), EMPTY);
        assert_eq!(points.contents(Vec3::new(-300.0, 0.0, -10.0)), WATER);
    }

    #[test]
    fn other_versions_and_loops_are_errors() {
        let mut other = bsp_bytes();
        other[0] = 30;
        assert_eq!(Map::parse(&other), Err(BspError::OtherVersion { version: 30 }));

        let mut looping = bsp_bytes();
        let node = lump_start(&looping, CLIP_NODES);
        looping[node + 4..node + 6].copy_from_slice(&0i16.to_le_bytes());
        assert!(matches!(Map::parse(&looping), Err(BspError::Depth { tree: "clip nodes", .. })));

        let mut wild = bsp_bytes();
        wild[node..node + 4].copy_from_slice(&99i32.to_le_bytes());
        assert!(matches!(Map::parse(&wild), Err(BspError::Index { what: "plane", index: 99, .. })));
    }

    #[test]
    fn a_cut_or_damaged_map_never_panics() {
        let good = bsp_bytes();
        for len in 0..good.len() {
            let _ = Map::parse(&good[..len]);
        }
        for at in 0..good.len() {
            for bit in [0, 3, 7] {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                if let Ok(map) = Map::parse(&bad) {
                    let hull = Hull::clip(&map, map.models[0].clip_root);
                    hull.contents(Vec3::new(1.0, 2.0, 3.0));
                }
            }
        }
    }
}
