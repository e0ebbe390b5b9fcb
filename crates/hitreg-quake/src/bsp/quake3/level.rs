//! A checked map for movement, with its patches cut into pieces.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::bsp::{self, Quake3MapError};
use super::facets::{PatchPieces, pieces_of};

/// Limits of pieces and plane comparisons for all patches of a map, far above any real map.
const MOST_PIECES: usize = 1 << 18;
const MOST_COMPARISONS: u64 = 1 << 30;

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
pub(super) struct Node {
    pub(super) plane: u32,
    /// Indices of nodes; negative values are leaves, the first is -1.
    pub(super) children: [i32; 2],
}

/// A leaf of the tree or a movable model. A leaf's brush range refers to the list of leaf brushes, a model's to the
/// list of all brushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) patches: Vec<u32>,
    pub(super) first_brush: u32,
    pub(super) brushes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LevelBrush {
    pub(super) first_side: u32,
    /// Number of sides; the first six are axis-aligned.
    pub(super) sides: u32,
    pub(super) contents: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BrushSide {
    pub(super) plane: u32,
    pub(super) flags: u32,
}

/// A curved surface: a grid of control points in row order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Patch {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) points: Vec<[f32; 3]>,
    pub(super) contents: u32,
    pub(super) flags: u32,
}

/// The content of a map file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LevelLumps {
    pub(super) planes: Vec<LevelPlane>,
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) leaf_brushes: Vec<u32>,
    pub(super) brushes: Vec<LevelBrush>,
    pub(super) sides: Vec<BrushSide>,
    pub(super) patches: Vec<Patch>,
    pub(super) models: Vec<Leaf>,
}

/// A map for collision tests, checked when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LevelLumps", into = "LevelLumps")]
pub struct Quake3Map {
    pub(super) parts: LevelLumps,
    /// The pieces of each patch.
    pub(super) pieces: Vec<PatchPieces>,
}

/// Number of a movable model of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmodelIndex(pub(crate) usize);

impl Quake3Map {
    /// Reads a `.bsp`.
    ///
    /// # Errors
    /// When the data is not a map of version 46 or contains invalid references.
    pub fn parse(bytes: &[u8]) -> Result<Quake3Map, Quake3MapError> {
        Quake3Map::try_from(bsp::parse(bytes)?)
    }

    /// Returns the number of models, including the world (0).
    pub fn model_count(&self) -> usize {
        self.parts.models.len()
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

    pub(super) fn leaf_brushes<'a>(&'a self, leaf: &Leaf) -> impl Iterator<Item = &'a LevelBrush> + use<'a> {
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
    type Error = Quake3MapError;

    /// Checks that every reference is valid and that the nodes form a tree.
    fn try_from(parts: LevelLumps) -> Result<Quake3Map, Quake3MapError> {
        let bad = |lump, why| Err(Quake3MapError::Unfit { lump, why });
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
        let (mut pieces, mut count, mut work) = (Vec::with_capacity(parts.patches.len()), 0, MOST_COMPARISONS);
        for patch in &parts.patches {
            let is_grid = bsp::is_grid(patch.width, patch.height)
                && patch.points.len() == (patch.width * patch.height) as usize
                && patch.points.iter().all(is_finite);
            if !is_grid {
                return bad("surfaces", "a patch that is no grid");
            }
            let cut = pieces_of(patch, &mut work).ok_or(Quake3MapError::Curves)?;
            count += cut.pieces.len();
            if count > MOST_PIECES {
                return Err(Quake3MapError::Curves);
            }
            pieces.push(cut);
        }
        Ok(Quake3Map { parts, pieces })
    }
}

/// The deepest allowed tree, deeper than in any real map.
const DEEPEST: u16 = 1024;

/// Returns whether every node has at most one parent and the depth is within the limit. Nodes come before their
/// children.
fn is_tree(nodes: &[Node]) -> bool {
    let mut depths = vec![0u16; nodes.len()];
    nodes.iter().enumerate().all(|(index, node)| {
        let below = depths[index] + 1;
        node.children.iter().filter_map(|child| usize::try_from(*child).ok()).all(|child| {
            let is_first = depths[child] == 0;
            depths[child] = below;
            is_first && below <= DEEPEST
        })
    })
}
