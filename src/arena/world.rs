//! A map's brushes, prepared so that a sweep costs well under a microsecond.

use glam::Vec3;

use super::bounds::Bounds;
use super::brush::Brush;
use super::bvh::Bvh;
use super::solid::{Face, Hull, Nearest, Solid, Sweep, Touch, is_inside};

/// The solid part of a map.
#[derive(Clone, Debug)]
pub struct CollisionWorld {
    by_hull: [Grown; 3],
}

/// All brushes, grown by one hull.
#[derive(Clone, Debug)]
struct Grown {
    faces: Vec<Face>,
    /// Where each brush's faces end; they begin where the last brush's end.
    ends: Vec<u32>,
    tree: Bvh,
}

impl CollisionWorld {
    /// Prepares a map. The order of the brushes decides which one is hit where two are equally near.
    pub fn new(brushes: &[Brush]) -> CollisionWorld {
        CollisionWorld { by_hull: Hull::ALL.map(|hull| Grown::new(brushes, hull)) }
    }

    /// The same as [`Solid::sweep`], by trying every brush: what the prepared one is held against.
    pub fn sweep_all(&self, hull: Hull, from: Vec3, to: Vec3) -> Sweep {
        let grown = &self.by_hull[hull.index()];
        let mut nearest = Nearest::default();
        for brush in 0..grown.ends.len() as u32 {
            nearest.sweep_convex(brush, grown.faces_of(brush), from, to);
        }
        nearest.into_sweep(from, to, Touch::World)
    }
}

impl Grown {
    fn new(brushes: &[Brush], hull: Hull) -> Grown {
        let mut faces = Vec::new();
        let mut ends = Vec::new();
        for brush in brushes {
            faces.extend(brush.faces_for(hull));
            ends.push(faces.len() as u32);
        }
        let boxes: Vec<Bounds> = brushes.iter().map(|brush| brush.bounds_for(hull)).collect();
        Grown { faces, ends, tree: Bvh::new(&boxes) }
    }

    fn faces_of(&self, brush: u32) -> &[Face] {
        let brush = brush as usize;
        let start = if brush == 0 { 0 } else { self.ends[brush - 1] };
        &self.faces[start as usize..self.ends[brush] as usize]
    }
}

impl Solid for CollisionWorld {
    fn sweep(&self, hull: Hull, from: Vec3, to: Vec3) -> Sweep {
        if !Bounds::of_path(from, to).is_trusted() {
            return self.sweep_all(hull, from, to);
        }
        let grown = &self.by_hull[hull.index()];
        let mut nearest = Nearest::default();
        grown.tree.along(from, to, |brush| nearest.sweep_convex(brush, grown.faces_of(brush), from, to));
        nearest.into_sweep(from, to, Touch::World)
    }

    fn inside(&self, hull: Hull, at: Vec3) -> Touch {
        let grown = &self.by_hull[hull.index()];
        let mut solid = false;
        if Bounds::of_path(at, at).is_trusted() {
            grown.tree.along(at, at, |brush| solid |= is_inside(grown.faces_of(brush), at));
        } else {
            solid = (0..grown.ends.len() as u32).any(|brush| is_inside(grown.faces_of(brush), at));
        }
        if solid { Touch::World } else { Touch::Nothing }
    }
}
