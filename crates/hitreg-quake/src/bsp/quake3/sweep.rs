//! Sweeps a box through a map, as cm_trace.c and cm_patch.c of ioquake3 do. The box becomes a point, and each plane
//! moves outwards by the box's extent towards it.

use glam::Vec3;

use super::patches::{FlatPiece, PatchPieces};
use super::{Leaf, LevelBrush, LevelPlane, Quake3Map};
use crate::bsp::SweepTrace;

/// Distance at which a sweep stops before a surface, in units.
const EPSILON: f32 = 0.125;
/// The extent towards slanted planes of the tree, used for every box.
const ANY_BOX: f32 = 2048.0;

/// The sweep of a box from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxSweep {
    pub(crate) start: Vec3,
    pub(crate) end: Vec3,
    pub(crate) mins: Vec3,
    pub(crate) maxs: Vec3,
    /// Contents that stop the box.
    pub(crate) mask: u32,
}

impl BoxSweep {
    /// Sweeps through the world.
    pub(crate) fn through(&self, map: &Quake3Map) -> SweepTrace {
        let mut work = SweepWork::new(self, map);
        if work.is_still {
            work.test_tree();
        } else {
            work.tree(0, (0.0, 1.0), (work.start, work.end));
        }
        work.finish(self)
    }

    /// Sweeps through a model of the map that is displaced to `origin`.
    pub(crate) fn through_model(&self, map: &Quake3Map, model: usize, origin: Vec3) -> SweepTrace {
        let moved = BoxSweep { start: self.start - origin, end: self.end - origin, ..*self };
        let mut work = SweepWork::new(&moved, map);
        if let Some(model) = map.parts.models.get(model) {
            let brushes = &map.parts.brushes[model.first_brush as usize..(model.first_brush + model.brushes) as usize];
            work.meet(brushes.iter(), model);
        }
        work.finish(self)
    }

    /// Sweeps past another box, such as a player's body.
    pub(crate) fn past_box(&self, map: &Quake3Map, mins: Vec3, maxs: Vec3) -> SweepTrace {
        let mut work = SweepWork::new(self, map);
        let planes = [Vec3::X, Vec3::Y, Vec3::Z].into_iter().enumerate().flat_map(|(axis, unit)| {
            let plane = |normal: Vec3, dist| LevelPlane { normal: normal.to_array(), dist };
            [plane(unit, maxs[axis]), plane(-unit, -mins[axis])]
        });
        let planes: Vec<(LevelPlane, u32)> = planes.map(|plane| (plane, 0)).collect();
        work.brush(planes.iter().map(|(plane, flags)| (plane, *flags)), mins, maxs);
        work.finish(self)
    }
}

struct SweepWork<'a> {
    map: &'a Quake3Map,
    start: Vec3,
    end: Vec3,
    /// Vector from the centre of the box to its corner.
    half: Vec3,
    mins: Vec3,
    maxs: Vec3,
    mask: u32,
    is_still: bool,
    trace: SweepTrace,
}

impl<'a> SweepWork<'a> {
    fn new(sweep: &BoxSweep, map: &'a Quake3Map) -> SweepWork<'a> {
        // Shift the way so that the box is symmetric about it.
        let middle = (sweep.mins + sweep.maxs) * 0.5;
        let half = sweep.maxs - middle;
        let (start, end) = (sweep.start + middle, sweep.end + middle);
        let trace = SweepTrace::free(sweep.end);
        let (mins, maxs) = (start.min(end) - half, start.max(end) + half);
        let is_still = sweep.start == sweep.end;
        SweepWork { map, start, end, half, mins, maxs, mask: sweep.mask, is_still, trace }
    }

    fn finish(self, sweep: &BoxSweep) -> SweepTrace {
        let end = match self.trace.fraction == 1.0 {
            true => sweep.end,
            false => sweep.start + (sweep.end - sweep.start) * self.trace.fraction,
        };
        SweepTrace { end, ..self.trace }
    }

    /// Tests everything in the leaves that a resting box touches.
    fn test_tree(&mut self) {
        let mut nodes = vec![0];
        while let Some(node) = nodes.pop() {
            if self.trace.all_solid {
                return;
            }
            let Ok(index) = usize::try_from(node) else {
                self.leaf(node);
                continue;
            };
            let Some(at) = self.map.parts.nodes.get(index) else { continue };
            let plane = &self.map.parts.planes[at.plane as usize];
            let normal = Vec3::from(plane.normal);
            let (distance, reach) = (self.start.dot(normal) - plane.dist, (self.half + Vec3::ONE).dot(normal.abs()));
            if distance <= reach {
                nodes.push(at.children[1]);
            }
            if distance >= -reach {
                nodes.push(at.children[0]);
            }
        }
    }

    /// Visits the leaves along the way from front to back.
    fn tree(&mut self, node: i32, (from, to): (f32, f32), (start, end): (Vec3, Vec3)) {
        if self.trace.fraction <= from {
            return;
        }
        let Ok(index) = usize::try_from(node) else { return self.leaf(node) };
        let Some(at) = self.map.parts.nodes.get(index).copied() else { return };
        let plane = &self.map.parts.planes[at.plane as usize];
        let normal = Vec3::from(plane.normal);
        let axial = normal.to_array().iter().position(|part| *part == 1.0);
        let reach = match axial {
            Some(axis) => self.half[axis],
            None if self.half == Vec3::ZERO => 0.0,
            None => ANY_BOX,
        };
        let (near, far) = (start.dot(normal) - plane.dist, end.dot(normal) - plane.dist);
        if near >= reach + 1.0 && far >= reach + 1.0 {
            return self.tree(at.children[0], (from, to), (start, end));
        }
        if near < -reach - 1.0 && far < -reach - 1.0 {
            return self.tree(at.children[1], (from, to), (start, end));
        }
        let (first, until, since) = if near < far {
            (1, (near - reach + EPSILON) / (near - far), (near + reach + EPSILON) / (near - far))
        } else if near > far {
            (0, (near + reach + EPSILON) / (near - far), (near - reach - EPSILON) / (near - far))
        } else {
            (0, 1.0, 0.0)
        };
        let at_fraction = |fraction: f32| {
            let fraction = fraction.clamp(0.0, 1.0);
            (from + (to - from) * fraction, start + (end - start) * fraction)
        };
        let (middle, place) = at_fraction(until);
        self.tree(at.children[first], (from, middle), (start, place));
        let (middle, place) = at_fraction(since);
        self.tree(at.children[1 - first], (middle, to), (place, end));
    }

    fn leaf(&mut self, node: i32) {
        let map = self.map;
        let leaf = &map.parts.leaves[(-1 - node) as usize];
        self.meet(map.leaf_brushes(leaf), leaf);
    }

    fn meet<'m>(&mut self, brushes: impl Iterator<Item = &'m LevelBrush>, leaf: &Leaf) {
        let (map, mask) = (self.map, self.mask);
        for brush in brushes.filter(|brush| brush.contents & mask != 0) {
            let (mins, maxs) = map.bounds(brush);
            self.brush(map.sides(brush), mins, maxs);
            if self.is_over() {
                return;
            }
        }
        for patch in &leaf.patches {
            let (patch, pieces) = (&map.parts.patches[*patch as usize], &map.pieces[*patch as usize]);
            if patch.contents & self.mask != 0 {
                let before = self.trace.fraction;
                self.patch(pieces);
                if self.trace.fraction < before {
                    self.trace.surface = patch.flags;
                }
            }
            if self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        if self.is_still { self.trace.all_solid } else { self.trace.fraction == 0.0 }
    }

    /// Returns how far the box extends against a normal, as a negative number.
    fn reach(&self, normal: Vec3) -> f32 {
        Vec3::select(normal.cmplt(Vec3::ZERO), self.half, -self.half).dot(normal)
    }

    fn distances(&self, normal: Vec3, dist: f32) -> (f32, f32) {
        (self.start.dot(normal) - dist, self.end.dot(normal) - dist)
    }

    fn brush<'p>(&mut self, planes: impl Iterator<Item = (&'p LevelPlane, u32)>, mins: Vec3, maxs: Vec3) {
        // A moving box stops before a brush; a resting one is only tested for being inside.
        let margin = Vec3::splat(if self.is_still { 0.0 } else { EPSILON });
        if self.mins.cmpgt(maxs + margin).any() || self.maxs.cmplt(mins - margin).any() {
            return;
        }
        let (mut enter, mut leave) = (-1.0, 1.0);
        let (mut starts_out, mut gets_out) = (false, false);
        let mut met = None;
        for (plane, flags) in planes {
            let normal = Vec3::from(plane.normal);
            let (near, far) = self.distances(normal, plane.dist - self.reach(normal));
            starts_out |= near > 0.0;
            gets_out |= far > 0.0;
            match crossing(near, far) {
                PlaneCrossing::Outside => return,
                PlaneCrossing::Enters(fraction) if fraction > enter => (enter, met) = (fraction, Some((normal, flags))),
                PlaneCrossing::Leaves(fraction) if fraction < leave => leave = fraction,
                _ => {}
            }
        }
        if !starts_out {
            self.trace.starts_solid = true;
            if !gets_out {
                self.trace.all_solid = true;
                self.trace.fraction = 0.0;
            }
        } else if let Some((normal, flags)) = met
            && enter < leave
            && enter > -1.0
            && enter < self.trace.fraction
        {
            (self.trace.fraction, self.trace.normal, self.trace.surface) = (f32::max(enter, 0.0), normal, flags);
        }
    }

    fn patch(&mut self, patch: &PatchPieces) {
        let margin = Vec3::splat(EPSILON);
        if self.mins.cmpgt(patch.maxs + margin).any() || self.maxs.cmplt(patch.mins - margin).any() {
            return;
        }
        for piece in &patch.pieces {
            if self.is_still {
                // A point cannot be inside a piece.
                if self.half != Vec3::ZERO && self.is_in(patch, piece) {
                    (self.trace.starts_solid, self.trace.all_solid, self.trace.fraction) = (true, true, 0.0);
                    return;
                }
            } else {
                self.piece(patch, piece);
            }
        }
    }

    /// Returns the planes of a piece, moved outwards by the box: the surface first, then the borders.
    fn planes<'p>(&self, patch: &'p PatchPieces, piece: &'p FlatPiece) -> impl Iterator<Item = (Vec3, f32)> + use<'p> {
        let half = self.half;
        let moved = move |plane: usize, inward: bool| {
            let LevelPlane { normal, dist } = patch.planes[plane];
            let side = if inward { -1.0 } else { 1.0 };
            let normal = Vec3::from(normal);
            (normal * side, dist * side + normal.abs().dot(half))
        };
        let borders = piece.borders.iter().map(move |(border, inward)| moved(*border, *inward));
        std::iter::once(moved(piece.surface, false)).chain(borders)
    }

    fn piece(&mut self, patch: &PatchPieces, piece: &FlatPiece) {
        let (mut enter, mut leave) = (-1.0, 1.0);
        let mut met = None;
        let last = piece.borders.len();
        // For a point the back plane is left out: the piece is so thin that the point would leave it where it enters.
        let count = if self.half == Vec3::ZERO { last } else { last + 1 };
        for (index, (normal, dist)) in self.planes(patch, piece).enumerate().take(count) {
            let (near, far) = self.distances(normal, dist);
            match crossing(near, far) {
                PlaneCrossing::Outside => return,
                PlaneCrossing::Enters(fraction) if fraction > enter => (enter, met) = (fraction, Some((index, normal))),
                PlaneCrossing::Leaves(fraction) if fraction < leave => leave = fraction,
                _ => {}
            }
        }
        // A sweep that meets the back plane passes through.
        if let Some((index, normal)) = met
            && index != last
            && enter < leave
            && enter >= 0.0
            && enter < self.trace.fraction
        {
            (self.trace.fraction, self.trace.normal) = (enter, normal);
        }
    }

    fn is_in(&self, patch: &PatchPieces, piece: &FlatPiece) -> bool {
        self.planes(patch, piece).all(|(normal, dist)| self.start.dot(normal) - dist <= 0.0)
    }
}

/// How a way crosses a plane, from the distances of its ends.
enum PlaneCrossing {
    /// The whole way is in front of the plane.
    Outside,
    /// The whole way is behind the plane.
    Inside,
    Enters(f32),
    Leaves(f32),
}

fn crossing(near: f32, far: f32) -> PlaneCrossing {
    if near > 0.0 && (far >= EPSILON || far >= near) {
        PlaneCrossing::Outside
    } else if near <= 0.0 && far <= 0.0 {
        PlaneCrossing::Inside
    } else if near > far {
        PlaneCrossing::Enters(((near - EPSILON) / (near - far)).max(0.0))
    } else {
        PlaneCrossing::Leaves(((near + EPSILON) / (near - far)).min(1.0))
    }
}
