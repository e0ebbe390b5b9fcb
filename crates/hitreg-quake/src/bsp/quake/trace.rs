//! Sweeps a player's origin through a tree of planes: a map's, or the small one of another body's box. The two families
//! of servers do it differently, and rounding and the order of tests decide where players come to rest; after the
//! public `PM_RecursiveHullCheck` (id) and `RecursiveHullTrace` (ZQuake, MVDSV).

use glam::Vec3;

use super::level::{ClipNode, EMPTY, Map, Plane, SOLID};

/// A stop lies this far in front of the plane, in units.
const STOP_DISTANCE: f32 = 0.031_25;

/// Where a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sweep {
    /// How much of the way was covered, 0 to 1.
    pub(crate) fraction: f32,
    pub(crate) end: Vec3,
    /// The plane that stopped it; zero when nothing did, or when it started in solid.
    pub(crate) normal: Vec3,
    pub(crate) start_solid: bool,
    pub(crate) all_solid: bool,
}

/// Which of the two ways to sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepRule {
    Classic,
    Reworked,
}

/// What a stretch of a reworked sweep ran through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    Empty,
    Solid,
    Blocked,
}

/// A tree of planes, from one root.
#[derive(Clone, Copy)]
pub(crate) struct Hull<'a> {
    nodes: &'a [TraceNode],
    root: i32,
}

impl<'a> Hull<'a> {
    /// The tree that a standing player's origin is swept through.
    pub(crate) fn clip(map: &'a Map, root: i32) -> Hull<'a> {
        Hull { nodes: &map.clip_tree, root }
    }

    /// The tree that says what fills a point.
    pub(crate) fn points(map: &'a Map, root: i32) -> Hull<'a> {
        Hull { nodes: &map.point_tree, root }
    }

    /// A box's tree; see [`box_tree`].
    pub(crate) fn of_box(nodes: &'a [TraceNode; 6]) -> Hull<'a> {
        Hull { nodes, root: 0 }
    }

    /// A box's tree and, last, what is in front of it; see [`TraceNode::in_front_of_box`].
    pub(crate) fn of_wall(nodes: &'a [TraceNode; 7]) -> Hull<'a> {
        Hull { nodes, root: 6 }
    }

    /// What fills the point `p`.
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

    /// Sweeps the point `start` to `end`.
    pub(crate) fn sweep(&self, rule: SweepRule, start: Vec3, end: Vec3) -> Sweep {
        let all_solid = rule == SweepRule::Classic;
        let mut sweep = Sweep { fraction: 1.0, end, normal: Vec3::ZERO, start_solid: false, all_solid };
        match rule {
            SweepRule::Classic => {
                self.descend(self.root, [0.0, 1.0], start, end, &mut sweep);
            }
            SweepRule::Reworked => {
                let mut leaves = Leaves::default();
                sweep.all_solid =
                    self.descend_reworked(self.root, [0.0, 1.0], start, end, &mut leaves, &mut sweep) == Stretch::Solid;
                sweep.start_solid = leaves.first_solid;
            }
        }
        if sweep.all_solid {
            sweep.start_solid = true;
        }
        if sweep.start_solid {
            sweep.fraction = 0.0;
        }
        sweep
    }

    /// id's way: stops short of a plane already while looking beyond it. True when the whole stretch was walked. Only
    /// a crossing of a plane recurses, so the depth is the tree's, which the reader of the map has bounded.
    fn descend(&self, mut node: i32, f: [f32; 2], mut p1: Vec3, p2: Vec3, sweep: &mut Sweep) -> bool {
        let [mut f1, f2] = f;
        loop {
            if node < 0 {
                if node == SOLID {
                    sweep.start_solid = true;
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
                // From no place in particular (NaN, in a log made by hand) there is no way back.
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

    /// ZQuake's way: finds the plane between empty and solid first, then stops short of it.
    fn descend_reworked(
        &self,
        mut node: i32,
        [f1, f2]: [f32; 2],
        p1: Vec3,
        p2: Vec3,
        leaves: &mut Leaves,
        sweep: &mut Sweep,
    ) -> Stretch {
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
        if before == Stretch::Blocked || (before == Stretch::Solid && leaves.any_open) {
            return before;
        }
        let beyond = self.descend_reworked(clip.children[1 - near], [f_mid, f2], mid, p2, leaves, sweep);
        if beyond != Stretch::Solid || before != Stretch::Empty {
            return beyond;
        }
        sweep.normal = facing(clip, near);
        (sweep.fraction, sweep.end) = split(if near == 1 { t1 + STOP_DISTANCE } else { t1 - STOP_DISTANCE });
        Stretch::Blocked
    }
}

/// The leaves that a reworked sweep came through.
#[derive(Default)]
struct Leaves {
    seen: bool,
    first_solid: bool,
    any_open: bool,
}

impl Leaves {
    fn enter(&mut self, contents: i32) -> Stretch {
        let solid = contents == SOLID;
        self.first_solid |= solid && !self.seen;
        self.any_open |= !solid;
        self.seen = true;
        if solid { Stretch::Solid } else { Stretch::Empty }
    }
}

fn facing(node: &TraceNode, side: usize) -> Vec3 {
    let normal = Vec3::from_array(node.normal);
    if side == 0 { normal } else { -normal }
}

/// Along an axis this is the coordinate itself, to the bit, and no branch has to guess which.
fn distance(node: &TraceNode, p: Vec3) -> f32 {
    dot(Vec3::from_array(node.normal), p) - node.dist
}

/// The dot product, summed from x to z as C does.
pub(crate) fn dot(a: Vec3, b: Vec3) -> f32 {
    a.x * b.x + a.y * b.y + a.z * b.z
}

/// A node with its plane beside it, so that a step down the tree reads one place in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TraceNode {
    normal: [f32; 3],
    dist: f32,
    children: [i32; 2],
}

impl TraceNode {
    /// The tree of `nodes`, whose planes have been checked to be there.
    pub(crate) fn tree(nodes: &[ClipNode], planes: &[Plane]) -> Vec<TraceNode> {
        let with_plane = |node: &ClipNode| {
            let Plane { normal, dist, axis } = planes[usize::from(node.plane)];
            let normal = axis.map_or(normal, |axis| [0, 1, 2].map(|n| f32::from(u8::from(n == axis))));
            TraceNode { normal, dist, children: node.children }
        };
        nodes.iter().map(with_plane).collect()
    }

    /// A plane with nothing before it, and behind it what the first node says.
    pub(crate) fn in_front_of_box(normal: [f32; 3], dist: f32) -> TraceNode {
        TraceNode { normal, dist, children: [EMPTY, 0] }
    }
}

/// A box as a tree of upper and lower planes; outside is in front of the upper ones and behind the lower ones.
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
    use crate::bsp::testing::quake_bytes;

    const RULES: [SweepRule; 2] = [SweepRule::Classic, SweepRule::Reworked];

    #[test]
    fn a_fall_stops_short_of_the_floor() {
        let map = Map::parse(&quake_bytes()).expect("good");
        for rule in RULES {
            let sweep = Hull::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 100.0), Vec3::new(0.0, 0.0, 0.0));
            assert_eq!((sweep.end.z, sweep.normal), (24.0 + STOP_DISTANCE, Vec3::Z));
            assert!(!sweep.start_solid && !sweep.all_solid);
            let free = Hull::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 100.0), Vec3::new(50.0, 0.0, 100.0));
            assert_eq!((free.fraction, free.normal), (1.0, Vec3::ZERO));
        }
    }

    #[test]
    fn a_start_in_solid_is_told() {
        let map = Map::parse(&quake_bytes()).expect("good");
        for rule in RULES {
            let sweep = Hull::clip(&map, 0).sweep(rule, Vec3::new(0.0, 0.0, 0.0), Vec3::new(0.0, 0.0, -8.0));
            assert!(sweep.start_solid && sweep.all_solid);
            assert_eq!(sweep.fraction, 0.0);
        }
    }

    #[test]
    fn a_box_stops_from_every_side() {
        let tree = box_tree([-32.0, -32.0, -56.0], [32.0, 32.0, 56.0]);
        let hull = Hull::of_box(&tree);
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
