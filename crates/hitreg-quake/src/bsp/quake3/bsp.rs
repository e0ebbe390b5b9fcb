//! Reads a `.bsp` of version 46: a table of lumps, each a list of records of equal size.

use super::level::{BrushSide, Leaf, LevelBrush, LevelLumps, LevelPlane, Node, Patch};
use crate::bsp::lumps::{LumpError, Lumps};

const MAGIC: &[u8; 4] = b"IBSP";
const VERSION: u32 = 46;
const LUMPS: usize = 17;
/// Surface type of a patch, a grid of control points.
const PATCH: u32 = 2;
/// Limit of control points along a side of a patch, above what editors allow.
const WIDEST_PATCH: u32 = 129;

/// Why a map cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Quake3MapError {
    /// The file is not a map of this format.
    #[error("not a Quake III map: it does not begin with `IBSP` and version 46")]
    Magic,
    /// A lump cannot be read.
    #[error(transparent)]
    Lump(#[from] LumpError),
    /// A lump does not fit the others.
    #[error("its {lump} do not fit: {why}")]
    Unfit {
        /// Name of the lump.
        lump: &'static str,
        /// The problem.
        why: &'static str,
    },
    /// The curved surfaces need more planes or pieces than the limits allow.
    #[error("its curves have more planes and pieces than any engine supports")]
    Curves,
    /// The archive does not hold the map.
    #[error("it holds no maps/{name}.bsp")]
    NotInArchive {
        /// Name of the map.
        name: String,
    },
    /// The archive cannot be read.
    #[error("it looks like an archive and cannot be read: {0}")]
    Archive(String),
}

/// Reads the parts of a map that movement needs.
pub(super) fn parse(bytes: &[u8]) -> Result<LevelLumps, Quake3MapError> {
    if bytes.get(..4) != Some(MAGIC) || bytes.get(4..8) != Some(&VERSION.to_le_bytes()) {
        return Err(Quake3MapError::Magic);
    }
    let lumps = Lumps::new(bytes, 8, LUMPS)?;
    let shaders = lumps.records(1, "shaders", 72)?;
    let shaders: Vec<(u32, u32)> = shaders.map(|record| (record.u32(64), record.u32(68))).collect();
    let shader = |lump, index: u32| {
        shaders.get(index as usize).copied().ok_or(Quake3MapError::Unfit { lump, why: "a shader that there is not" })
    };
    let planes = lumps.records(2, "planes", 16)?.map(|r| LevelPlane { normal: r.vec3(0), dist: r.f32(12) });
    let nodes = lumps.records(3, "nodes", 36)?.map(|r| Node { plane: r.u32(0), children: [r.i32(4), r.i32(8)] });
    let mut patches: Vec<Patch> = Vec::new();
    let mut patch_of = Vec::new();
    let vertices: Vec<[f32; 3]> = lumps.records(10, "vertices", 44)?.map(|r| r.vec3(0)).collect();
    for surface in lumps.records(13, "surfaces", 104)? {
        let is_patch = surface.u32(8) == PATCH;
        patch_of.push(is_patch.then_some(patches.len() as u32));
        if is_patch {
            let bad = |why| Quake3MapError::Unfit { lump: "surfaces", why };
            let (width, height) = (surface.u32(96), surface.u32(100));
            if !is_grid(width, height) {
                return Err(bad("a patch of a size that none has"));
            }
            let points = part(&vertices, surface.u32(12), width * height);
            let points = points.ok_or(bad("a patch of vertices that there are not"))?.to_vec();
            let (flags, contents) = shader("surfaces", surface.u32(0))?;
            patches.push(Patch { width, height, points, contents, flags });
        }
    }
    let leaf_surfaces: Vec<u32> = lumps.records(5, "leaf surfaces", 4)?.map(|record| record.u32(0)).collect();
    let mut leaves = Vec::new();
    for leaf in lumps.records(4, "leaves", 48)? {
        let surfaces = part(&leaf_surfaces, leaf.u32(32), leaf.u32(36));
        let surfaces = surfaces.ok_or(Quake3MapError::Unfit { lump: "leaves", why: "surfaces that there are not" })?;
        let patches = surfaces.iter().filter_map(|surface| patch_of.get(*surface as usize).copied().flatten());
        leaves.push(Leaf { patches: patches.collect(), first_brush: leaf.u32(40), brushes: leaf.u32(44) });
    }
    let mut sides = Vec::new();
    for side in lumps.records(9, "brush sides", 8)? {
        sides.push(BrushSide { plane: side.u32(0), flags: shader("brush sides", side.u32(4))?.0 });
    }
    let mut brushes = Vec::new();
    for brush in lumps.records(8, "brushes", 12)? {
        let contents = shader("brushes", brush.u32(8))?.1;
        brushes.push(LevelBrush { first_side: brush.u32(0), sides: brush.u32(4), contents });
    }
    let mut models = Vec::new();
    for model in lumps.records(7, "models", 40)? {
        let surfaces = part(&patch_of, model.u32(24), model.u32(28));
        let surfaces = surfaces.ok_or(Quake3MapError::Unfit { lump: "models", why: "surfaces that there are not" })?;
        let patches = surfaces.iter().copied().flatten().collect();
        models.push(Leaf { patches, first_brush: model.u32(32), brushes: model.u32(36) });
    }
    let leaf_brushes = lumps.records(6, "leaf brushes", 4)?.map(|record| record.u32(0)).collect();
    Ok(LevelLumps {
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

/// Returns whether a patch can have this many control points along its sides.
pub(super) fn is_grid(width: u32, height: u32) -> bool {
    [width, height].into_iter().all(|side| (3..=WIDEST_PATCH).contains(&side) && side % 2 == 1)
}

/// Returns `count` entries of a list from `first` on; `None` if the list has fewer.
fn part<T>(list: &[T], first: u32, count: u32) -> Option<&[T]> {
    list.get(first as usize..)?.get(..count as usize)
}
