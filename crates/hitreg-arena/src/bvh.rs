//! A tree of bounding boxes of brushes, so that a sweep tests only brushes near its path.

use glam::{Vec3, Vec4};

use super::bounds::Bounds;

/// The number of children of a branch. Their boxes are tested in parallel.
const WIDTH: usize = 4;

/// Down to this level, items are split by the smallest boxes. Below it, they are halved, so that the tree stays shallow
/// for any boxes.
const LEVELS_SPLIT_BY_SIZE: usize = 10;

/// For paths of at least this length in units, a more precise test than the box around the path pays off.
const LONG_UNITS: f32 = 64.0;

/// Up to four boxes, with each coordinate of all four in one array. Unused slots hold a box that overlaps nothing.
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
}

/// The tree. Its items are the indices of the boxes that it was built from.
#[derive(Clone, Debug)]
pub(crate) struct Bvh {
    branches: Vec<BvhNode>,
}

impl Bvh {
    pub(crate) fn new(boxes: &[Bounds]) -> Bvh {
        let mut items: Vec<u32> = (0..boxes.len() as u32).collect();
        let mut tree = Bvh { branches: Vec::new() };
        tree.add_branch(boxes, &mut items, 0);
        tree
    }

    fn add_branch(&mut self, boxes: &[Bounds], items: &mut [u32], level: usize) -> u32 {
        let at = self.branches.len();
        self.branches.push(BvhNode {
            min: [Vec4::INFINITY; 3],
            max: [Vec4::NEG_INFINITY; 3],
            below: [BvhChild::Item(0); WIDTH],
        });
        let split = if level < LEVELS_SPLIT_BY_SIZE { split_by_size } else { halve };
        let (low, high) = split(boxes, items);
        let ((a, b), (c, d)) = (split(boxes, low), split(boxes, high));
        for (place, part) in [a, b, c, d].into_iter().enumerate() {
            let around = part.iter().fold(Bounds::EMPTY, |all, &item| all.union(boxes[item as usize]));
            for axis in 0..3 {
                self.branches[at].min[axis][place] = around.min[axis];
                self.branches[at].max[axis][place] = around.max[axis];
            }
            match *part {
                [] => {}
                [item] => self.branches[at].below[place] = BvhChild::Item(item),
                _ => self.branches[at].below[place] = BvhChild::Branch(self.add_branch(boxes, part, level + 1)),
            }
        }
        at as u32
    }

    /// Calls `visit` for every item whose box the straight path may touch, in unspecified order.
    #[inline]
    pub(crate) fn along(&self, from: Vec3, to: Vec3, mut visit: impl FnMut(u32)) {
        self.visit_below(0, &Path::new(from, to), &mut visit);
    }

    /// Calls `visit` for every item whose box touches `reach`.
    pub(crate) fn along_box(&self, reach: Bounds, mut visit: impl FnMut(u32)) {
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
