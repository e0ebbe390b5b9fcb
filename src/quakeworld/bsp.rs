//! Reads a `.bsp` of version 29 (Quake) into a [`Map`]: only what player movement needs, checked so that tracing through
//! it always ends.

use super::bytes::{Bytes, End};
use super::map::{ClipNode, EMPTY, Map, Plane, Submodel};
use super::map_entities::read_entities;

const VERSION: i32 = 29;
const LUMPS: usize = 15;
const ENTITIES: usize = 0;
const PLANES: usize = 1;
const NODES: usize = 5;
const CLIP_NODES: usize = 9;
const LEAVES: usize = 10;
const MODELS: usize = 14;
/// The deepest tree that a trace may walk. id's maps stay below 60.
const DEEPEST: u16 = 4096;
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
        let point_nodes = file.entries(NODES, "nodes", 24, |bytes, at| read_node(bytes, at, planes.len(), &leaves))?;
        let clip_nodes =
            file.entries(CLIP_NODES, "clip nodes", 8, |bytes, at| read_clip_node(bytes, at, planes.len()))?;
        let models = file.entries(MODELS, "models", 64, read_model)?;
        if models.is_empty() {
            return Err(BspError::Empty { missing: "models" });
        }
        check_children("clip nodes", &clip_nodes)?;
        check_children("nodes", &point_nodes)?;
        for (by, model) in models.iter().enumerate() {
            check_root("clip node", model.clip_root, clip_nodes.len(), by)?;
            check_root("node", model.point_root, point_nodes.len(), by)?;
        }
        check_depth("clip nodes", &clip_nodes)?;
        check_depth("nodes", &point_nodes)?;
        let (triggers, moving) = read_entities(file.lump(ENTITIES)?.1, &models);
        Ok(Map { planes, clip_nodes, point_nodes, models, triggers, moving })
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

fn read_plane(bytes: &mut Bytes<'_>, index: usize) -> Result<Plane, BspError> {
    let (normal, dist, kind) = (bytes.vec3()?, bytes.f32()?, bytes.i32()?);
    if !normal.iter().all(|n| n.is_finite()) || !dist.is_finite() {
        return Err(BspError::NotFinite { what: "plane", index });
    }
    let axis = u8::try_from(kind).ok().filter(|&axis| axis < 3);
    Ok(Plane { normal, dist, axis })
}

fn check_plane(index: i32, count: usize, by: usize) -> Result<u16, BspError> {
    let plane = u16::try_from(index).ok().filter(|&plane| usize::from(plane) < count);
    plane.ok_or(BspError::Index { what: "plane", index: i64::from(index), count, by })
}

fn read_clip_node(bytes: &mut Bytes<'_>, by: usize, planes: usize) -> Result<ClipNode, BspError> {
    let plane = check_plane(bytes.i32()?, planes, by)?;
    // Children are 16 bits: contents from -15 on, everything else a node number, as later compilers need.
    let child = |raw: u16| if raw >= 0xfff1 { i32::from(raw as i16) } else { i32::from(raw) };
    Ok(ClipNode { plane, children: [child(bytes.u16()?), child(bytes.u16()?)] })
}

fn read_node(bytes: &mut Bytes<'_>, by: usize, planes: usize, leaves: &[i32]) -> Result<ClipNode, BspError> {
    let plane = check_plane(bytes.i32()?, planes, by)?;
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

fn read_model(bytes: &mut Bytes<'_>, index: usize) -> Result<Submodel, BspError> {
    let (mins, maxs) = (bytes.vec3()?, bytes.vec3()?);
    bytes.take(12)?; // where its compiler centred it; movement does not use it
    let (point_root, clip_root) = (bytes.i32()?, bytes.i32()?);
    bytes.take(20)?;
    if !mins.iter().chain(&maxs).all(|v| v.is_finite()) {
        return Err(BspError::NotFinite { what: "model", index });
    }
    Ok(Submodel { mins, maxs, point_root, clip_root })
}

fn check_root(what: &'static str, root: i32, count: usize, by: usize) -> Result<(), BspError> {
    let fits = root < 0 || usize::try_from(root).is_ok_and(|root| root < count);
    if fits { Ok(()) } else { Err(BspError::Index { what, index: i64::from(root), count, by }) }
}

fn check_children(what: &'static str, nodes: &[ClipNode]) -> Result<(), BspError> {
    for (by, node) in nodes.iter().enumerate() {
        for child in node.children {
            check_root(what, child, nodes.len(), by)?;
        }
    }
    Ok(())
}

/// Every node's height above the leaves, found without recursion; a loop shows as a height that never settles.
fn check_depth(tree: &'static str, nodes: &[ClipNode]) -> Result<(), BspError> {
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
            let too_deep = BspError::Depth { tree, node, limit: DEEPEST };
            if heights[node] == UNKNOWN {
                heights[node] = OPEN;
                for child in children {
                    match heights[child] {
                        OPEN => return Err(too_deep),
                        UNKNOWN => stack.push(child),
                        _ => {}
                    }
                }
                continue;
            }
            let height = 1 + children.map(|child| heights[child]).max().unwrap_or(0);
            if height > DEEPEST {
                return Err(too_deep);
            }
            heights[node] = height;
            stack.pop();
        }
    }
    Ok(())
}
