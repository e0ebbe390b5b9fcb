//! Maps of Quake III's engine (BSP version 46) and the collision of boxes with them. Brushes and patches stop a box; patches
//! are curved surfaces, cut into flat pieces. The rules are those of the public ioquake3 sources (cm_load.c, cm_trace.c,
//! cm_patch.c).
//!
//! A map is read from a `.bsp` or a `.pk3` archive, or from a log, and checked.

mod patches;
mod sweep;
#[cfg(test)]
mod tests;

use std::io::{Cursor, Read as _};

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::{Lumps, MapError};
use patches::{PatchPieces, pieces_of};

pub(crate) use sweep::BoxSweep;

/// Limits of pieces and plane comparisons for all patches of a map, far above any real map.
const PIECES_MAX: usize = 1 << 18;
const COMPARISONS_MAX: u64 = 1 << 30;

/// Content bits of brushes and patches (q_shared.h and surfaceflags.h).
pub(crate) mod contents {
    pub(crate) const SOLID: u32 = 1;
    pub(crate) const WATER: u32 = 8 | 16 | 32;
    pub(crate) const PLAYER_CLIP: u32 = 0x1_0000;
    pub(crate) const BODY: u32 = 0x200_0000;
}

/// Surface flag bits.
pub(crate) mod surface {
    pub(crate) const SLICK: u32 = 2;
}

/// A plane: the points whose dot product with the normal equals the distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelPlane {
    pub(crate) normal: [f32; 3],
    pub(crate) dist: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(super) plane: u32,
    /// Indices of nodes; negative values are leaves, the first is -1.
    pub(super) children: [i32; 2],
}

/// A leaf of the tree or a movable model. A leaf's brush range refers to the list of leaf brushes, a model's to the
/// list of all brushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leaf {
    patches: Vec<u32>,
    first_brush: u32,
    brushes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LevelBrush {
    first_side: u32,
    /// Number of sides; the first six are axis-aligned.
    pub(super) sides: u32,
    pub(super) contents: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BrushSide {
    pub(super) plane: u32,
    pub(super) flags: u32,
}

/// A curved surface: a grid of control points in row order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Patch {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) points: Vec<[f32; 3]>,
    pub(super) contents: u32,
    pub(super) flags: u32,
}

/// The content of a map file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LevelLumps {
    pub(super) planes: Vec<LevelPlane>,
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
    leaf_brushes: Vec<u32>,
    brushes: Vec<LevelBrush>,
    pub(super) sides: Vec<BrushSide>,
    patches: Vec<Patch>,
    pub(super) models: Vec<Leaf>,
}

/// A map for collision tests, checked when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LevelLumps", into = "LevelLumps")]
pub struct Quake3Map {
    pub(super) parts: LevelLumps,
    /// The pieces of each patch.
    pieces: Vec<PatchPieces>,
}

impl Quake3Map {
    /// Reads a `.bsp`.
    ///
    /// # Errors
    /// When the data is not a map of version 46 or contains invalid references.
    pub fn parse(bytes: &[u8]) -> Result<Quake3Map, MapError> {
        Quake3Map::try_from(read_lumps(bytes)?)
    }

    /// Returns the bounds of a brush, from its first six sides.
    pub(super) fn bounds(&self, brush: &LevelBrush) -> (Vec3, Vec3) {
        let dist =
            |side: u32| self.parts.planes[self.parts.sides[(brush.first_side + side) as usize].plane as usize].dist;
        (-Vec3::new(dist(0), dist(2), dist(4)), Vec3::new(dist(1), dist(3), dist(5)))
    }

    /// Returns the contents at a point.
    pub(crate) fn contents_at(&self, point: Vec3) -> u32 {
        let mut node = 0;
        while let Ok(index) = usize::try_from(node) {
            let Some(at) = self.parts.nodes.get(index) else { return 0 };
            let plane = &self.parts.planes[at.plane as usize];
            node = at.children[usize::from(Vec3::from(plane.normal).dot(point) - plane.dist < 0.0)];
        }
        let leaf = &self.parts.leaves[(-1 - node) as usize];
        let brushes = self.leaf_brushes(leaf).filter(|brush| self.has_point(brush, point));
        brushes.fold(0, |contents, brush| contents | brush.contents)
    }

    fn leaf_brushes<'a>(&'a self, leaf: &Leaf) -> impl Iterator<Item = &'a LevelBrush> + use<'a> {
        let range = leaf.first_brush as usize..(leaf.first_brush + leaf.brushes) as usize;
        self.parts.leaf_brushes[range].iter().map(|brush| &self.parts.brushes[*brush as usize])
    }

    pub(super) fn sides(&self, brush: &LevelBrush) -> impl Iterator<Item = (&LevelPlane, u32)> {
        let range = brush.first_side as usize..(brush.first_side + brush.sides) as usize;
        self.parts.sides[range].iter().map(|side| (&self.parts.planes[side.plane as usize], side.flags))
    }

    fn has_point(&self, brush: &LevelBrush, point: Vec3) -> bool {
        self.sides(brush).all(|(plane, _)| Vec3::from(plane.normal).dot(point) <= plane.dist)
    }
}

impl From<Quake3Map> for LevelLumps {
    fn from(map: Quake3Map) -> LevelLumps {
        map.parts
    }
}

impl TryFrom<LevelLumps> for Quake3Map {
    type Error = MapError;

    /// Checks that every reference is valid and that the nodes form a tree.
    fn try_from(parts: LevelLumps) -> Result<Quake3Map, MapError> {
        let bad = |lump, why| Err(unfit(lump, why));
        let within =
            |first: u32, count: u32, length: usize| first.checked_add(count).is_some_and(|end| end as usize <= length);
        let is_finite = |point: &[f32; 3]| point.iter().all(|axis| axis.is_finite());
        if !parts.planes.iter().all(|plane| plane.dist.is_finite() && is_finite(&plane.normal)) {
            return bad("planes", "a number that is none");
        }
        let leads = |from: usize, to: i32| match usize::try_from(to) {
            // Nodes come before their children.
            Ok(node) => node > from && node < parts.nodes.len(),
            Err(_) => ((-1 - i64::from(to)) as usize) < parts.leaves.len(),
        };
        for (index, node) in parts.nodes.iter().enumerate() {
            if node.plane as usize >= parts.planes.len() || !node.children.iter().all(|child| leads(index, *child)) {
                return bad("nodes", "one leads nowhere");
            }
        }
        if !is_tree(&parts.nodes) {
            return bad("nodes", "they are no tree, or a very deep one");
        }
        if parts.nodes.is_empty() {
            return bad("nodes", "there is none");
        }
        let all_exist = |leaves: &[Leaf], brushes: usize| {
            let patches_exist = |leaf: &Leaf| leaf.patches.iter().all(|patch| (*patch as usize) < parts.patches.len());
            leaves.iter().all(|leaf| within(leaf.first_brush, leaf.brushes, brushes) && patches_exist(leaf))
        };
        if !all_exist(&parts.leaves, parts.leaf_brushes.len()) {
            return bad("leaves", "brushes that there are not");
        }
        if !all_exist(&parts.models, parts.brushes.len()) {
            return bad("models", "brushes that there are not");
        }
        if parts.leaf_brushes.iter().any(|brush| *brush as usize >= parts.brushes.len()) {
            return bad("leaf brushes", "a brush that there is not");
        }
        if parts.sides.iter().any(|side| side.plane as usize >= parts.planes.len()) {
            return bad("brush sides", "a plane that there is not");
        }
        let has_sides = |brush: &LevelBrush| within(brush.first_side, brush.sides, parts.sides.len());
        if !parts.brushes.iter().all(|brush| brush.sides >= 6 && has_sides(brush)) {
            return bad("brushes", "sides that there are not");
        }
        let (mut pieces, mut count, mut work) = (Vec::with_capacity(parts.patches.len()), 0, COMPARISONS_MAX);
        for patch in &parts.patches {
            let is_grid = is_grid(patch.width, patch.height)
                && patch.points.len() == (patch.width * patch.height) as usize
                && patch.points.iter().all(is_finite);
            if !is_grid {
                return bad("surfaces", "a patch that is no grid");
            }
            let cut = pieces_of(patch, &mut work).ok_or_else(too_curved)?;
            count += cut.pieces.len();
            if count > PIECES_MAX {
                return Err(too_curved());
            }
            pieces.push(cut);
        }
        Ok(Quake3Map { parts, pieces })
    }
}

/// The deepest allowed tree, deeper than in any real map.
const DEPTH_MAX: u16 = 1024;

/// Returns whether every node has at most one parent and the depth is within the limit. Nodes come before their
/// children.
fn is_tree(nodes: &[Node]) -> bool {
    let mut depths = vec![0u16; nodes.len()];
    nodes.iter().enumerate().all(|(index, node)| {
        let below = depths[index] + 1;
        node.children.iter().filter_map(|child| usize::try_from(*child).ok()).all(|child| {
            let is_first = depths[child] == 0;
            depths[child] = below;
            is_first && below <= DEPTH_MAX
        })
    })
}

const MAGIC: &[u8; 4] = b"IBSP";
const VERSION: u32 = 46;
const LUMPS: usize = 17;
/// Surface type of a patch, a grid of control points.
const PATCH: u32 = 2;
/// Limit of control points along a side of a patch, above what editors allow.
const WIDEST_PATCH: u32 = 129;

fn unfit(lump: &str, why: &str) -> MapError {
    MapError(format!("its {lump} do not fit: {why}"))
}

fn too_curved() -> MapError {
    MapError("its curves have more planes and pieces than any engine supports".to_owned())
}

/// Reads the parts of a map that movement needs.
fn read_lumps(bytes: &[u8]) -> Result<LevelLumps, MapError> {
    if bytes.get(..4) != Some(MAGIC) || bytes.get(4..8) != Some(&VERSION.to_le_bytes()) {
        return Err(MapError("not a Quake III map: it does not begin with `IBSP` and version 46".to_owned()));
    }
    let lumps = Lumps::new(bytes, 8, LUMPS)?;
    let shaders = lumps.records(1, "shaders", 72)?;
    let shaders: Vec<(u32, u32)> = shaders.map(|record| (record.u32(64), record.u32(68))).collect();
    let shader = |lump, index: u32| {
        shaders.get(index as usize).copied().ok_or_else(|| unfit(lump, "a shader that there is not"))
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
            let bad = |why| unfit("surfaces", why);
            let (width, height) = (surface.u32(96), surface.u32(100));
            if !is_grid(width, height) {
                return Err(bad("a patch of a size that none has"));
            }
            let points = part(&vertices, surface.u32(12), width * height);
            let points = points.ok_or_else(|| bad("a patch of vertices that there are not"))?.to_vec();
            let (flags, contents) = shader("surfaces", surface.u32(0))?;
            patches.push(Patch { width, height, points, contents, flags });
        }
    }
    let leaf_surfaces: Vec<u32> = lumps.records(5, "leaf surfaces", 4)?.map(|record| record.u32(0)).collect();
    let mut leaves = Vec::new();
    for leaf in lumps.records(4, "leaves", 48)? {
        let surfaces = part(&leaf_surfaces, leaf.u32(32), leaf.u32(36));
        let surfaces = surfaces.ok_or_else(|| unfit("leaves", "surfaces that there are not"))?;
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
        let surfaces = surfaces.ok_or_else(|| unfit("models", "surfaces that there are not"))?;
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
fn is_grid(width: u32, height: u32) -> bool {
    [width, height].into_iter().all(|side| (3..=WIDEST_PATCH).contains(&side) && side % 2 == 1)
}

/// Returns `count` entries of a list from `first` on; `None` if the list has fewer.
fn part<T>(list: &[T], first: u32, count: u32) -> Option<&[T]> {
    list.get(first as usize..)?.get(..count as usize)
}

const ZIP: &[u8] = b"PK";
/// Larger than any map, in bytes.
const MAP_BYTES_MAX: u64 = 64 << 20;

/// Reads a map from a `.bsp`, or from a `.pk3` that holds `maps/NAME.bsp`.
///
/// # Errors
/// When the archive does not hold this map, or the map cannot be read.
pub fn map_from(bytes: &[u8], name: &str) -> Result<Quake3Map, MapError> {
    let Some(mut archive) = archive_of(bytes)? else { return Quake3Map::parse(bytes) };
    let wanted = format!("maps/{name}.bsp");
    let found = archive.file_names().flatten().find(|file| file.eq_ignore_ascii_case(&wanted));
    let found = found.map(std::borrow::Cow::into_owned);
    let found = found.ok_or_else(|| MapError(format!("it holds no {wanted}")))?;
    let file = archive.by_name(&found).map_err(unreadable_archive)?;
    let mut map = Vec::new();
    file.take(MAP_BYTES_MAX).read_to_end(&mut map).map_err(unreadable_archive)?;
    Quake3Map::parse(&map)
}

/// Checks that a file is a map or an archive, before it is known which map is played.
///
/// # Errors
/// When it is neither, or cannot be read.
pub fn check_maps(bytes: &[u8]) -> Result<(), MapError> {
    match archive_of(bytes)? {
        Some(_) => Ok(()),
        None => Quake3Map::parse(bytes).map(|_| ()),
    }
}

/// Opens an archive; `None` if the file is none.
fn archive_of(bytes: &[u8]) -> Result<Option<zip::ZipArchive<Cursor<&[u8]>>>, MapError> {
    let opened = bytes.starts_with(ZIP).then(|| zip::ZipArchive::new(Cursor::new(bytes)));
    opened.transpose().map_err(unreadable_archive)
}

fn unreadable_archive(error: impl std::fmt::Display) -> MapError {
    MapError(format!("it looks like an archive and cannot be read: {error}"))
}
