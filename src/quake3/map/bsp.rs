//! Reads a `.bsp` of version 46: a table of lumps, each a list of records of one size.

use super::level::{Brush, Leaf, Node, Parts, Patch, Plane, Side};

const MAGIC: &[u8; 4] = b"IBSP";
const VERSION: u32 = 46;
const LUMPS: usize = 17;
/// A surface's type: a grid of control points.
const PATCH: u32 = 2;
/// More control points than any editor lets a patch have.
const WIDEST_PATCH: u32 = 129;

/// Why a map cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Another kind of file.
    #[error("it is no map of Quake III's engine: it does not begin with `IBSP` and version 46")]
    Magic,
    /// A part that is not all there.
    #[error("its {lump} do not fit: {why}")]
    Lump {
        /// Which.
        lump: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Curves that are cut into too many pieces.
    #[error("its curves have more than {most} pieces")]
    Pieces {
        /// How many there may be.
        most: usize,
    },
    /// An archive without the map.
    #[error("it holds no maps/{name}.bsp")]
    NotInArchive {
        /// The map's name.
        name: String,
    },
    /// An archive that cannot be read.
    #[error("it looks like an archive and cannot be read: {0}")]
    Archive(String),
}

/// Reads the parts of a map that movement needs.
pub(super) fn parse(bytes: &[u8]) -> Result<Parts, MapError> {
    let file = File { bytes };
    if bytes.get(..4) != Some(MAGIC) || file.word(4) != Some(VERSION) {
        return Err(MapError::Magic);
    }
    let shaders = file.lump(1, "shaders", 72)?;
    let shaders: Vec<(u32, u32)> = shaders.map(|record| (record.word(64), record.word(68))).collect();
    let shader = |lump, index: u32| {
        shaders.get(index as usize).copied().ok_or(MapError::Lump { lump, why: "a shader that there is not" })
    };
    let planes =
        file.lump(2, "planes", 16)?.map(|r| Plane { normal: [r.float(0), r.float(4), r.float(8)], dist: r.float(12) });
    let nodes =
        file.lump(3, "nodes", 36)?.map(|r| Node { plane: r.word(0), children: [r.word(4) as i32, r.word(8) as i32] });
    let mut patches: Vec<Patch> = Vec::new();
    let mut patch_of = Vec::new();
    let vertices: Vec<[f32; 3]> =
        file.lump(10, "vertices", 44)?.map(|r| [r.float(0), r.float(4), r.float(8)]).collect();
    for surface in file.lump(13, "surfaces", 104)? {
        let is_patch = surface.word(8) == PATCH;
        patch_of.push(is_patch.then_some(patches.len() as u32));
        if is_patch {
            let bad = |why| MapError::Lump { lump: "surfaces", why };
            let (width, height) = (surface.word(96), surface.word(100));
            let is_grid = |side: u32| (3..=WIDEST_PATCH).contains(&side) && side % 2 == 1;
            if !is_grid(width) || !is_grid(height) {
                return Err(bad("a patch of a size that none has"));
            }
            let first = surface.word(12) as usize;
            let points = first.checked_add((width * height) as usize).and_then(|end| vertices.get(first..end));
            let points = points.ok_or(bad("a patch of vertices that there are not"))?.to_vec();
            let (flags, contents) = shader("surfaces", surface.word(0))?;
            patches.push(Patch { width, height, points, contents, flags });
        }
    }
    let leaf_surfaces: Vec<u32> = file.lump(5, "leaf surfaces", 4)?.map(|record| record.word(0)).collect();
    let mut leaves = Vec::new();
    for leaf in file.lump(4, "leaves", 48)? {
        let first = leaf.word(32) as usize;
        let surfaces = first.checked_add(leaf.word(36) as usize).and_then(|end| leaf_surfaces.get(first..end));
        let surfaces = surfaces.ok_or(MapError::Lump { lump: "leaves", why: "surfaces that there are not" })?;
        let patches = surfaces.iter().filter_map(|surface| patch_of.get(*surface as usize).copied().flatten());
        leaves.push(Leaf { patches: patches.collect(), first_brush: leaf.word(40), brushes: leaf.word(44) });
    }
    let mut sides = Vec::new();
    for side in file.lump(9, "brush sides", 8)? {
        sides.push(Side { plane: side.word(0), flags: shader("brush sides", side.word(4))?.0 });
    }
    let mut brushes = Vec::new();
    for brush in file.lump(8, "brushes", 12)? {
        let contents = shader("brushes", brush.word(8))?.1;
        brushes.push(Brush { first_side: brush.word(0), sides: brush.word(4), contents });
    }
    let mut models = Vec::new();
    for model in file.lump(7, "models", 40)? {
        let (first, count) = (model.word(24) as usize, model.word(28) as usize);
        let surfaces = first.checked_add(count).and_then(|end| patch_of.get(first..end));
        let surfaces = surfaces.ok_or(MapError::Lump { lump: "models", why: "surfaces that there are not" })?;
        let patches = surfaces.iter().copied().flatten().collect();
        models.push(Leaf { patches, first_brush: model.word(32), brushes: model.word(36) });
    }
    let leaf_brushes = file.lump(6, "leaf brushes", 4)?.map(|record| record.word(0)).collect();
    Ok(Parts {
        planes: planes.collect(),
        nodes: nodes.collect(),
        leaves,
        leaf_brushes,
        brushes,
        sides,
        patches,
        models,
    })
}

struct File<'a> {
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    /// The records of a lump.
    fn lump(
        &self,
        index: usize,
        lump: &'static str,
        size: usize,
    ) -> Result<impl Iterator<Item = Record<'a>> + use<'a>, MapError> {
        debug_assert!(index < LUMPS);
        let of = |at: usize| self.word(8 + 8 * index + at).map(|word| word as usize);
        let range = of(0).zip(of(4)).and_then(|(at, length)| Some(at..at.checked_add(length)?));
        let bytes = range.and_then(|range| self.bytes.get(range));
        let bytes = bytes.ok_or(MapError::Lump { lump, why: "the file ends before them" })?;
        if bytes.len() % size != 0 {
            return Err(MapError::Lump { lump, why: "the last is not whole" });
        }
        Ok(bytes.chunks_exact(size).map(Record))
    }
}

/// One record; the places that are read are all below its size.
struct Record<'a>(&'a [u8]);

impl Record<'_> {
    fn word(&self, at: usize) -> u32 {
        self.0[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
    }

    fn float(&self, at: usize) -> f32 {
        f32::from_bits(self.word(at))
    }
}
