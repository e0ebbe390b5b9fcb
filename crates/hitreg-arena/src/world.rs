//! A map's brushes, prepared so that a sweep takes well under a microsecond.
//! A tree of bounding boxes leads each sweep to the brushes near its path.

use glam::{Vec3, Vec4};

use crate::brush::{Bounds, ConvexBrush};
use crate::solid::{HullFace, NearestHit, Solid, SolidHull, SweepContact, SweepHit, is_inside};

/// The most brushes in the list; when there are more, queries use the tree.
const NEARBY_MAX: usize = 24;

/// The number of children of a branch. Their boxes are tested in parallel.
const WIDTH: usize = 4;

/// Down to this level, items are split by the smallest boxes. Below it, they are halved, so that the tree stays shallow
/// for any boxes.
const LEVELS_SPLIT_BY_SIZE: usize = 10;

/// For paths of at least this length in units, a more precise test than the box around the path pays off.
const LONG_UNITS: f32 = 64.0;

/// The solid part of a map.
#[derive(Clone, Debug)]
pub struct CollisionWorld {
    by_hull: [ExpandedBrushes; 3],
}

/// All brushes, grown by one hull.
#[derive(Clone, Debug)]
struct ExpandedBrushes {
    faces: Vec<HullFace>,
    /// The end of each brush's faces; they start at the end of the previous brush's.
    ends: Vec<u32>,
    /// The bounding box of each brush.
    boxes: Vec<Bounds>,
    tree: Bvh,
}

/// The brushes near one place, looked up once for several queries there.
pub(crate) struct NearbyBrushes<'a> {
    world: &'a CollisionWorld,
    hull: SolidHull,
    /// Queries outside this box use the whole world.
    reach: Bounds,
    brushes: [u32; NEARBY_MAX],
    count: usize,
}

impl CollisionWorld {
    /// Prepares a map. When two brushes are equally near, the earlier one counts as hit.
    pub fn new(brushes: &[ConvexBrush]) -> CollisionWorld {
        // The best tree for one hull is nearly the best for the others, and the search for it takes long.
        let tree = Bvh::new(&boxes_of(brushes, SolidHull::ALL[0]));
        CollisionWorld { by_hull: SolidHull::ALL.map(|hull| ExpandedBrushes::new(brushes, hull, &tree)) }
    }

    /// Returns the brushes that paths of `hull` within `reach` can meet.
    pub(crate) fn nearby(&self, hull: SolidHull, reach: Bounds) -> NearbyBrushes<'_> {
        let mut near = NearbyBrushes { world: self, hull, reach: Bounds::EMPTY, brushes: [0; NEARBY_MAX], count: 0 };
        if !reach.is_trusted() {
            return near;
        }
        self.by_hull[hull as usize].tree.along_box(reach, |brush| {
            if let Some(place) = near.brushes.get_mut(near.count) {
                *place = brush;
            }
            near.count += 1;
        });
        if near.count <= NEARBY_MAX {
            near.reach = reach;
        }
        near
    }

    /// Like [`Solid::sweep`], but tests every brush. Used to check the prepared world.
    pub fn sweep_all(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
        let grown = &self.by_hull[hull as usize];
        let mut nearest = NearestHit::default();
        for brush in 0..grown.ends.len() as u32 {
            nearest.sweep_convex(brush, grown.faces_of(brush), from, to);
        }
        nearest.into_sweep(from, to, SweepContact::World)
    }
}

impl ExpandedBrushes {
    /// Grows all brushes by a hull. `tree` is a tree of the same brushes.
    fn new(brushes: &[ConvexBrush], hull: SolidHull, tree: &Bvh) -> ExpandedBrushes {
        let mut faces = Vec::new();
        let mut ends = Vec::new();
        for brush in brushes {
            faces.extend(brush.faces_for(hull));
            ends.push(faces.len() as u32);
        }
        let boxes = boxes_of(brushes, hull);
        ExpandedBrushes { faces, ends, tree: tree.around(&boxes), boxes }
    }

    fn faces_of(&self, brush: u32) -> &[HullFace] {
        let brush = brush as usize;
        let start = if brush == 0 { 0 } else { self.ends[brush - 1] };
        &self.faces[start as usize..self.ends[brush] as usize]
    }
}

fn boxes_of(brushes: &[ConvexBrush], hull: SolidHull) -> Vec<Bounds> {
    brushes.iter().map(|brush| brush.bounds_for(hull)).collect()
}

impl Solid for CollisionWorld {
    fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
        if !Bounds::of_path(from, to).is_trusted() {
            return self.sweep_all(hull, from, to);
        }
        let grown = &self.by_hull[hull as usize];
        let mut nearest = NearestHit::default();
        grown.tree.along(from, to, |brush| nearest.sweep_convex(brush, grown.faces_of(brush), from, to));
        nearest.into_sweep(from, to, SweepContact::World)
    }

    fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact {
        let grown = &self.by_hull[hull as usize];
        let mut solid = false;
        if Bounds::of_path(at, at).is_trusted() {
            grown.tree.along(at, at, |brush| solid |= is_inside(grown.faces_of(brush), at));
        } else {
            solid = (0..grown.ends.len() as u32).any(|brush| is_inside(grown.faces_of(brush), at));
        }
        if solid { SweepContact::World } else { SweepContact::Nothing }
    }
}

impl NearbyBrushes<'_> {
    /// Returns the brushes whose boxes the path touches; `None` when it leaves the reach.
    #[inline]
    fn along(&self, hull: SolidHull, path: Bounds) -> Option<impl Iterator<Item = (u32, &[HullFace])>> {
        let is_known = hull == self.hull && self.reach.holds(&path);
        let grown = &self.world.by_hull[hull as usize];
        let touched = move |brush: &&u32| grown.boxes[**brush as usize].touches(&path);
        is_known.then(|| self.brushes[..self.count].iter().filter(touched).map(|&brush| (brush, grown.faces_of(brush))))
    }
}

impl Solid for NearbyBrushes<'_> {
    fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
        let Some(brushes) = self.along(hull, Bounds::of_path(from, to)) else {
            return self.world.sweep(hull, from, to);
        };
        let mut nearest = NearestHit::default();
        brushes.for_each(|(brush, faces)| nearest.sweep_convex(brush, faces, from, to));
        nearest.into_sweep(from, to, SweepContact::World)
    }

    fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact {
        let Some(mut brushes) = self.along(hull, Bounds::of_path(at, at)) else { return self.world.inside(hull, at) };
        if brushes.any(|(_, faces)| is_inside(faces, at)) { SweepContact::World } else { SweepContact::Nothing }
    }
}

/// Up to four boxes, with each coordinate of all four in one array. The box of an unused slot overlaps nothing.
#[derive(Clone, Copy, Debug)]
struct BvhNode {
    min: [Vec4; 3],
    max: [Vec4; 3],
    below: [BvhChild; WIDTH],
}

/// The contents of a box.
#[derive(Clone, Copy, Debug)]
enum BvhChild {
    Branch(u32),
    Item(u32),
    Unused,
}

/// The tree. Its items are the indices of the boxes that it was built from.
#[derive(Clone, Debug)]
struct Bvh {
    branches: Vec<BvhNode>,
}

impl Bvh {
    fn new(boxes: &[Bounds]) -> Bvh {
        let mut items: Vec<u32> = (0..boxes.len() as u32).collect();
        let mut tree = Bvh { branches: Vec::new() };
        tree.add_branch(boxes, &mut items, 0);
        tree
    }

    /// Adds a branch with these items; its boxes follow.
    fn add_branch(&mut self, boxes: &[Bounds], items: &mut [u32], level: usize) -> u32 {
        let at = self.branches.len();
        self.branches.push(BvhNode::EMPTY);
        let split = if level < LEVELS_SPLIT_BY_SIZE { split_by_size } else { halve };
        let (low, high) = split(boxes, items);
        let ((a, b), (c, d)) = (split(boxes, low), split(boxes, high));
        for (place, part) in [a, b, c, d].into_iter().enumerate() {
            self.branches[at].below[place] = match *part {
                [] => BvhChild::Unused,
                [item] => BvhChild::Item(item),
                _ => BvhChild::Branch(self.add_branch(boxes, part, level + 1)),
            };
        }
        at as u32
    }

    /// Returns the tree with these boxes for its items.
    fn around(&self, boxes: &[Bounds]) -> Bvh {
        let mut tree = self.clone();
        // Branches follow the one that they are below.
        for at in (0..tree.branches.len()).rev() {
            for (place, below) in tree.branches[at].below.into_iter().enumerate() {
                let around = match below {
                    BvhChild::Branch(next) => tree.branches[next as usize].bounds(),
                    BvhChild::Item(item) => boxes[item as usize],
                    BvhChild::Unused => Bounds::EMPTY,
                };
                for axis in 0..3 {
                    tree.branches[at].min[axis][place] = around.min[axis];
                    tree.branches[at].max[axis][place] = around.max[axis];
                }
            }
        }
        tree
    }

    /// Calls `visit` for every item whose box the straight path may touch, in unspecified order.
    #[inline]
    pub(crate) fn along(&self, from: Vec3, to: Vec3, mut visit: impl FnMut(u32)) {
        self.visit_below(0, &Path::new(from, to), &mut visit);
    }

    /// Calls `visit` for every item whose box touches `reach`.
    fn along_box(&self, reach: Bounds, mut visit: impl FnMut(u32)) {
        self.visit_below(0, &Path { bounds: reach, middle: Vec3::ZERO, way: Vec3::ZERO, is_long: false }, &mut visit);
    }

    fn visit_below(&self, branch: u32, path: &Path, visit: &mut impl FnMut(u32)) {
        let branch = &self.branches[branch as usize];
        let mut near = branch.near(path);
        while near != 0 {
            let place = near.trailing_zeros() as usize;
            near &= near - 1;
            match branch.below[place % WIDTH] {
                BvhChild::Item(item) => visit(item),
                BvhChild::Branch(next) => self.visit_below(next, path, visit),
                BvhChild::Unused => {}
            }
        }
    }
}

/// A straight path, prepared for box tests.
struct Path {
    bounds: Bounds,
    middle: Vec3,
    way: Vec3,
    is_long: bool,
}

impl Path {
    #[inline]
    fn new(from: Vec3, to: Vec3) -> Path {
        let bounds = Bounds::of_path(from, to);
        let way = to - from;
        Path { bounds, middle: bounds.centre(), way, is_long: way.abs().max_element() > LONG_UNITS }
    }
}

impl BvhNode {
    const EMPTY: BvhNode =
        BvhNode { min: [Vec4::INFINITY; 3], max: [Vec4::NEG_INFINITY; 3], below: [BvhChild::Unused; WIDTH] };

    /// Returns the box around all of its boxes.
    fn bounds(&self) -> Bounds {
        Bounds {
            min: Vec3::from_array(self.min.map(Vec4::min_element)),
            max: Vec3::from_array(self.max.map(Vec4::max_element)),
        }
    }

    /// Returns one bit for each box that the path may touch.
    #[inline]
    fn near(&self, path: &Path) -> u32 {
        let along = |axis: usize| {
            let (min, max) = (Vec4::splat(path.bounds.min[axis]), Vec4::splat(path.bounds.max[axis]));
            self.min[axis].cmple(max) & self.max[axis].cmpge(min)
        };
        let near = (along(0) & along(1) & along(2)).bitmask();
        if near != 0 && path.is_long { near & self.crossed_by(path) } else { near }
    }

    /// Returns one bit for each box that the path crosses by the remaining separating axes, after the axis-aligned
    /// ones.
    fn crossed_by(&self, path: &Path) -> u32 {
        let middle = |axis: usize| (self.min[axis] + self.max[axis]) * 0.5 - Vec4::splat(path.middle[axis]);
        let half = |axis: usize| (self.max[axis] - self.min[axis]) * 0.5;
        let across = |a: usize, b: usize| {
            let off = middle(b) * path.way[a] - middle(a) * path.way[b];
            let reach = half(a) * path.way[b].abs() + half(b) * path.way[a].abs();
            off.abs().cmple(reach)
        };
        (across(0, 1) & across(1, 2) & across(2, 0)).bitmask()
    }
}

/// Splits items so that a path meets as few of their boxes as possible. It uses the surface area heuristic (MacDonald
/// and Booth, 1990): the probability of meeting a box is proportional to its surface.
fn split_by_size<'a>(boxes: &[Bounds], items: &'a mut [u32]) -> (&'a mut [u32], &'a mut [u32]) {
    let mut best: Option<(f32, usize, usize)> = None;
    for axis in 0..3 {
        sort_along(axis, boxes, items);
        let cost_after = |items: &mut dyn Iterator<Item = &u32>| -> Vec<f32> {
            let mut around = Bounds::EMPTY;
            let grown = items.zip(1_u32..).map(|(&item, count)| {
                around = around.union(boxes[item as usize]);
                around.surface() * count as f32
            });
            grown.collect()
        };
        let low = cost_after(&mut items.iter());
        let high = cost_after(&mut items.iter().rev());
        for at in 1..items.len() {
            let cost = low[at - 1] + high[items.len() - at - 1];
            if best.is_none_or(|(least, _, _)| cost < least) {
                best = Some((cost, axis, at));
            }
        }
    }
    let Some((_, axis, at)) = best else { return items.split_at_mut(items.len()) };
    sort_along(axis, boxes, items);
    items.split_at_mut(at)
}

/// Splits items at their median along the axis with the largest spread of box centres.
fn halve<'a>(boxes: &[Bounds], items: &'a mut [u32]) -> (&'a mut [u32], &'a mut [u32]) {
    let spread = items.iter().fold(Bounds::EMPTY, |all, &item| {
        let at = boxes[item as usize].centre();
        all.union(Bounds { min: at, max: at })
    });
    sort_along((spread.max - spread.min).max_position(), boxes, items);
    items.split_at_mut(items.len() / 2)
}

fn sort_along(axis: usize, boxes: &[Bounds], items: &mut [u32]) {
    let place = |item: u32| boxes[item as usize].centre()[axis];
    items.sort_unstable_by(|&a, &b| place(a).total_cmp(&place(b)).then(a.cmp(&b)));
}

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use proptest::prelude::*;

    use super::*;
    use crate::brush::Facet;
    use crate::pmove::{MoveVars, pmove};
    use hitreg_log::usercmd::Input;

    use super::super::body::ArenaBody;

    /// The same world, which tests every brush.
    struct Plain<'a>(&'a CollisionWorld);

    impl Solid for Plain<'_> {
        fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
            self.0.sweep_all(hull, from, to)
        }

        fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact {
            if self.0.sweep_all(hull, at, at).start_solid { SweepContact::World } else { SweepContact::Nothing }
        }
    }

    /// Corners lie on a coarse grid, so that brushes share faces and hits tie.
    fn a_box() -> impl Strategy<Value = ConvexBrush> {
        (prop::array::uniform3(-12_i8..12), prop::array::uniform3(1_i8..10)).prop_map(|(at, size)| {
            let min = at.map(|n| f64::from(n) * 32.0);
            ConvexBrush::cuboid(min, std::array::from_fn(|axis| min[axis] + f64::from(size[axis]) * 16.0))
        })
    }

    /// A box with one or two corners cut off, or an open wedge.
    fn a_wedge() -> impl Strategy<Value = ConvexBrush> {
        let cut = (prop::array::uniform3(-1.0_f64..1.0), -200.0_f64..200.0);
        (a_box(), prop::collection::vec(cut, 1..3), any::<bool>()).prop_filter_map("a cut needs a direction", |parts| {
            let (whole, cuts, open) = parts;
            let mut facets = if open { Vec::new() } else { whole.facets().to_vec() };
            for (direction, distance) in cuts {
                facets.push(Facet { normal: DVec3::from(direction).normalize(), distance });
            }
            ConvexBrush::new(facets).ok()
        })
    }

    fn a_world() -> impl Strategy<Value = CollisionWorld> {
        let brushes = prop::collection::vec(prop_oneof![4 => a_box(), 1 => a_wedge()], 0..40);
        brushes.prop_map(|brushes| CollisionWorld::new(&brushes))
    }

    /// Mostly near the brushes, on and off grid points; sometimes far away or NaN.
    fn a_point() -> impl Strategy<Value = Vec3> {
        let on_grid = (-16_000_i32..16_000).prop_map(|n| n as f32 / 32.0);
        let coordinate = prop_oneof![
            20 => on_grid,
            20 => -500.0_f32..500.0,
            2 => -70_000.0_f32..70_000.0,
            1 => any::<f32>(),
        ];
        prop::array::uniform3(coordinate).prop_map(Vec3::from_array)
    }

    fn a_sweep() -> impl Strategy<Value = (Vec3, Vec3)> {
        let along_an_axis = (a_point(), 0_usize..3, -100.0_f32..100.0).prop_map(|(from, axis, by)| {
            let mut to = from;
            to[axis] += by;
            (from, to)
        });
        prop_oneof![(a_point(), a_point()), along_an_axis]
    }

    fn a_hull() -> impl Strategy<Value = SolidHull> {
        prop::sample::select(SolidHull::ALL.to_vec())
    }

    fn bits(sweep: &SweepHit) -> ([u32; 7], bool, bool, SweepContact) {
        let numbers = [&[sweep.fraction], &sweep.end.to_array()[..], &sweep.normal.to_array()[..]].concat();
        let numbers = std::array::from_fn(|i| numbers[i].to_bits());
        (numbers, sweep.start_solid, sweep.all_solid, sweep.touch)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn prepared_sweeps_equal_plain_ones(
            world in a_world(), hull in a_hull(), sweeps in prop::collection::vec(a_sweep(), 40)
        ) {
            for (from, to) in sweeps {
                let prepared = world.sweep(hull, from, to);
                prop_assert_eq!(bits(&prepared), bits(&world.sweep_all(hull, from, to)), "{} to {}", from, to);
                let inside = world.inside(hull, from) != SweepContact::Nothing;
                prop_assert_eq!(inside, prepared.start_solid, "at {}", from);
            }
        }

        #[test]
        fn sweeps_near_a_place_equal_plain_ones(
            world in a_world(), hull in a_hull(), at in a_point(), reach in 1.0_f32..300.0,
            ways in prop::collection::vec(prop::array::uniform6(-1.2_f32..1.2), 40),
        ) {
            let near = world.nearby(hull, Bounds { min: at - reach, max: at + reach });
            for [a, b, c, d, e, f] in ways {
                let (from, to) = (at + Vec3::new(a, b, c) * reach, at + Vec3::new(d, e, f) * reach);
                for hull in SolidHull::ALL {
                    let plain = world.sweep_all(hull, from, to);
                    prop_assert_eq!(bits(&near.sweep(hull, from, to)), bits(&plain), "{} to {}", from, to);
                    prop_assert_eq!(near.inside(hull, from), world.inside(hull, from), "at {}", from);
                }
            }
        }

        #[test]
        fn prepared_movement_equals_plain_movement(
            world in a_world(),
            start in prop::array::uniform3(-400.0_f32..400.0),
            turns in prop::collection::vec((any::<u8>(), -180.0_f32..180.0, 0_u16..8, -400.0_f32..400.0), 60),
        ) {
            let vars = MoveVars::default();
            let mut prepared = ArenaBody::standing_at(Vec3::from_array(start));
            for (msec, yaw, buttons, sidemove) in turns {
                let viewangles = Vec3::new(yaw / 8.0, yaw, 0.0);
                let input = Input { msec, viewangles, forwardmove: 400.0, sidemove, buttons, ..Input::default() };
                let plain = pmove(&vars, &Plain(&world), &prepared, &input, &mut |_| ());
                prepared = pmove(&vars, &world, &prepared, &input, &mut |_| ());
                prop_assert_eq!(plain, prepared);
            }
        }
    }

    #[test]
    fn of_two_equally_near_brushes_the_first_is_hit() {
        let east = ConvexBrush::cuboid([100.0, -64.0, -64.0], [200.0, 200.0, 64.0]);
        let north = ConvexBrush::cuboid([-64.0, 100.0, -64.0], [200.0, 200.0, 64.0]);
        let to = Vec3::new(150.0, 150.0, 0.0);
        let hit_first = |brushes: [&ConvexBrush; 2]| {
            let world = CollisionWorld::new(&brushes.map(ConvexBrush::clone));
            world.sweep(SolidHull::Point, Vec3::ZERO, to).normal
        };
        assert_eq!(hit_first([&east, &north]), Vec3::NEG_X);
        assert_eq!(hit_first([&north, &east]), Vec3::NEG_Y);
    }

    #[test]
    fn an_empty_world_stops_nothing() {
        let world = CollisionWorld::new(&[]);
        assert_eq!(world.sweep(SolidHull::Standing, Vec3::ZERO, Vec3::X), SweepHit::free(Vec3::X));
        assert_eq!(world.inside(SolidHull::Standing, Vec3::ZERO), SweepContact::Nothing);
    }
}
