//! Sweeps a player's origin through a tree of planes: the map's, or the small tree of another body's box. Two families
//! of servers use different rules. Rounding and the order of tests determine the positions where players stop. The
//! rules follow the public `PM_RecursiveHullCheck` (id) and `RecursiveHullTrace` (ZQuake, MVDSV).

use glam::Vec3;

use super::{AxisPlane, ClipNode, EMPTY, QuakeMap, SOLID};
use crate::bsp::SweepTrace;

/// Distance at which a sweep stops before a plane, in units.
const STOP_DISTANCE: f32 = 0.031_25;

/// The rule set of a sweep: `Classic` is id's, `Reworked` is ZQuake's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepRule {
    Classic,
    Reworked,
}

/// What part of a reworked sweep passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepSpan {
    Empty,
    Solid,
    Blocked,
}

/// A tree of planes with its root.
#[derive(Clone, Copy)]
pub(crate) struct HullTree<'a> {
    nodes: &'a [TraceNode],
    root: i32,
}

impl<'a> HullTree<'a> {
    /// Returns the tree for sweeps of a standing player's origin.
    pub(crate) fn clip(map: &'a QuakeMap, root: i32) -> HullTree<'a> {
        HullTree { nodes: &map.clip_tree, root }
    }

    /// Returns the tree for contents at points.
    pub(crate) fn points(map: &'a QuakeMap, root: i32) -> HullTree<'a> {
        HullTree { nodes: &map.point_tree, root }
    }

    /// Returns the tree of a box; see [`box_tree`].
    pub(crate) fn of_box(nodes: &'a [TraceNode; 6]) -> HullTree<'a> {
        HullTree { nodes, root: 0 }
    }

    /// Returns the tree of a box with a leaning face as the last node; see [`TraceNode::in_front_of_box`].
    pub(crate) fn of_wall(nodes: &'a [TraceNode; 7]) -> HullTree<'a> {
        HullTree { nodes, root: 6 }
    }

    /// Returns the contents at the point `p`.
    pub(crate) fn contents(&self, p: Vec3) -> i32 {
        self.contents_below(self.root, p)
    }

    fn contents_below(&self, mut node: i32, p: Vec3) -> i32 {
        while node >= 0 {
            let clip = &self.nodes[node as usize];
            node = clip.children[usize::from(distance(clip, p) < 0.0)];
        }
        node
    }

    /// Sweeps a point from `start` to `end`.
    pub(crate) fn sweep(&self, rule: SweepRule, start: Vec3, end: Vec3) -> SweepTrace {
        let mut sweep = SweepTrace { all_solid: rule == SweepRule::Classic, ..SweepTrace::free(end) };
        match rule {
            SweepRule::Classic => {
                self.descend(self.root, [0.0, 1.0], start, end, &mut sweep);
            }
            SweepRule::Reworked => {
                let mut leaves = Leaves::default();
                sweep.all_solid = self.descend_reworked(self.root, [0.0, 1.0], start, end, &mut leaves, &mut sweep)
                    == SweepSpan::Solid;
                sweep.starts_solid = leaves.first_solid;
            }
        }
        if sweep.all_solid {
            sweep.starts_solid = true;
        }
        if sweep.starts_solid {
            sweep.fraction = 0.0;
        }
        sweep
    }

    /// Sweeps by id's rule, which stops short of a plane before it looks beyond. Returns whether it reached the end of
    /// the way. Only a plane crossing recurses, so the recursion is at most as deep as the tree, which the map reader
    /// limits.
    fn descend(&self, mut node: i32, f: [f32; 2], mut p1: Vec3, p2: Vec3, sweep: &mut SweepTrace) -> bool {
        let [mut f1, f2] = f;
        loop {
            if node < 0 {
                if node == SOLID {
                    sweep.starts_solid = true;
                } else {
                    sweep.all_solid = false;
                }
                return true;
            }
            let clip = &self.nodes[node as usize];
            let (t1, t2) = (distance(clip, p1), distance(clip, p2));
            if t1 >= 0.0 && t2 >= 0.0 {
                node = clip.children[0];
                continue;
            }
            if t1 < 0.0 && t2 < 0.0 {
                node = clip.children[1];
                continue;
            }
            let near = usize::from(t1 < 0.0);
            let back = if near == 1 { STOP_DISTANCE } else { -STOP_DISTANCE };
            let mut fraction = ((t1 + back) / (t1 - t2)).clamp(0.0, 1.0);
            let mut f_mid = f1 + (f2 - f1) * fraction;
            let mut mid = p1 + fraction * (p2 - p1);
            if !self.descend(clip.children[near], [f1, f_mid], p1, mid, sweep) {
                return false;
            }
            let far = clip.children[1 - near];
            if self.contents_below(far, mid) != SOLID {
                (node, f1, p1) = (far, f_mid, mid);
                continue;
            }
            if sweep.all_solid {
                return false;
            }
            sweep.normal = facing(clip, near);
            while self.contents(mid) == SOLID {
                fraction -= 0.1;
                // Positions in a hand-made log can be NaN; they have no way back.
                if fraction.is_nan() || fraction < 0.0 {
                    break;
                }
                f_mid = f1 + (f2 - f1) * fraction;
                mid = p1 + fraction * (p2 - p1);
            }
            sweep.fraction = f_mid;
            sweep.end = mid;
            return false;
        }
    }

    /// Sweeps by ZQuake's rule, which first finds the plane between empty and solid, then stops short of it.
    fn descend_reworked(
        &self,
        mut node: i32,
        [f1, f2]: [f32; 2],
        p1: Vec3,
        p2: Vec3,
        leaves: &mut Leaves,
        sweep: &mut SweepTrace,
    ) -> SweepSpan {
        let (clip, t1, t2) = loop {
            if node < 0 {
                return leaves.enter(node);
            }
            let clip = &self.nodes[node as usize];
            let (t1, t2) = (distance(clip, p1), distance(clip, p2));
            if t1 >= 0.0 && t2 >= 0.0 {
                node = clip.children[0];
            } else if t1 < 0.0 && t2 < 0.0 {
                node = clip.children[1];
            } else {
                break (clip, t1, t2);
            }
        };
        let split = |t: f32| {
            let fraction = (t / (t1 - t2)).clamp(0.0, 1.0);
            (f1 + (f2 - f1) * fraction, p1 + fraction * (p2 - p1))
        };
        let (f_mid, mid) = split(t1);
        let near = usize::from(t1 < t2);
        let before = self.descend_reworked(clip.children[near], [f1, f_mid], p1, mid, leaves, sweep);
        if before == SweepSpan::Blocked || (before == SweepSpan::Solid && leaves.any_open) {
            return before;
        }
        let beyond = self.descend_reworked(clip.children[1 - near], [f_mid, f2], mid, p2, leaves, sweep);
        if beyond != SweepSpan::Solid || before != SweepSpan::Empty {
            return beyond;
        }
        sweep.normal = facing(clip, near);
        (sweep.fraction, sweep.end) = split(if near == 1 { t1 + STOP_DISTANCE } else { t1 - STOP_DISTANCE });
        SweepSpan::Blocked
    }
}

/// The leaves that a reworked sweep has passed through.
#[derive(Default)]
struct Leaves {
    seen: bool,
    first_solid: bool,
    any_open: bool,
}

impl Leaves {
    fn enter(&mut self, contents: i32) -> SweepSpan {
        let solid = contents == SOLID;
        self.first_solid |= solid && !self.seen;
        self.any_open |= !solid;
        self.seen = true;
        if solid { SweepSpan::Solid } else { SweepSpan::Empty }
    }
}

fn facing(node: &TraceNode, side: usize) -> Vec3 {
    let normal = Vec3::from_array(node.normal);
    if side == 0 { normal } else { -normal }
}

/// Returns the distance of a point from a node's plane. For axial planes it is exact and needs no branch.
fn distance(node: &TraceNode, p: Vec3) -> f32 {
    dot(Vec3::from_array(node.normal), p) - node.dist
}

/// Returns the dot product, summed from x to z as in C.
pub(crate) fn dot(a: Vec3, b: Vec3) -> f32 {
    a.x * b.x + a.y * b.y + a.z * b.z
}

/// A node with a copy of its plane, so that a step down the tree reads one place in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TraceNode {
    normal: [f32; 3],
    dist: f32,
    children: [i32; 2],
}

impl TraceNode {
    /// Returns the tree of `nodes`. The plane indices must be valid.
    pub(crate) fn tree(nodes: &[ClipNode], planes: &[AxisPlane]) -> Vec<TraceNode> {
        let with_plane = |node: &ClipNode| {
            let AxisPlane { normal, dist, axis } = planes[usize::from(node.plane)];
            let normal = axis.map_or(normal, |axis| [0, 1, 2].map(|n| f32::from(u8::from(n == axis))));
            TraceNode { normal, dist, children: node.children }
        };
        nodes.iter().map(with_plane).collect()
    }

    /// Returns a plane node with empty space in front and the first node of the tree behind.
    pub(crate) fn in_front_of_box(normal: [f32; 3], dist: f32) -> TraceNode {
        TraceNode { normal, dist, children: [EMPTY, 0] }
    }
}

/// Returns a box as a tree of six planes. Outside is in front of the upper planes and behind the lower ones.
pub(crate) const fn box_tree(mins: [f32; 3], maxs: [f32; 3]) -> [TraceNode; 6] {
    [
        box_node(0, maxs[0], [EMPTY, 1]),
        box_node(0, mins[0], [2, EMPTY]),
        box_node(1, maxs[1], [EMPTY, 3]),
        box_node(1, mins[1], [4, EMPTY]),
        box_node(2, maxs[2], [EMPTY, 5]),
        box_node(2, mins[2], [SOLID, EMPTY]),
    ]
}

const fn box_node(axis: u8, dist: f32, children: [i32; 2]) -> TraceNode {
    let mut normal = [0.0; 3];
    normal[axis as usize] = 1.0;
    TraceNode { normal, dist, children }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::quake_bytes;

    const RULES: [SweepRule; 2] = [SweepRule::Classic, SweepRule::Reworked];

    #[test]
    fn a_fall_stops_short_of_the_floor() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        for rule in RULES {
            let sweep = HullTree::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 100.0), Vec3::new(0.0, 0.0, 0.0));
            assert_eq!((sweep.end.z, sweep.normal), (24.0 + STOP_DISTANCE, Vec3::Z));
            assert!(!sweep.starts_solid && !sweep.all_solid);
            let free = HullTree::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 100.0), Vec3::new(50.0, 0.0, 100.0));
            assert_eq!((free.fraction, free.normal), (1.0, Vec3::ZERO));
        }
    }

    #[test]
    fn a_start_in_solid_is_reported() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        for rule in RULES {
            let sweep = HullTree::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 0.0), Vec3::new(0.0, 0.0, -8.0));
            assert!(sweep.starts_solid && sweep.all_solid);
            assert_eq!(sweep.fraction, 0.0);
        }
    }

    #[test]
    fn a_box_stops_from_every_side() {
        let tree = box_tree([-32.0, -32.0, -56.0], [32.0, 32.0, 56.0]);
        let hull = HullTree::of_box(&tree);
        for rule in RULES {
            for axis in 0..3 {
                for side in [-1.0, 1.0] {
                    let mut start = Vec3::ZERO;
                    start[axis] = side * 100.0;
                    let sweep = hull.sweep(rule, start, Vec3::ZERO);
                    let reach = if axis == 2 { 56.0 } else { 32.0 };
                    assert_eq!(sweep.end[axis], side * (reach + STOP_DISTANCE));
                    assert_eq!(sweep.normal[axis], side);
                }
            }
            assert_eq!(hull.sweep(rule, Vec3::new(-100.0, 40.0, 0.0), Vec3::new(100.0, 40.0, 0.0)).fraction, 1.0);
        }
    }
}
