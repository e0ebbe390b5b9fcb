//! A tree of boxes around brushes, so that a sweep tries only what is near its path.

use glam::Vec3;

use super::bounds::Bounds;

/// A branch or a leaf. The tree lies in one array, each branch directly before its nearer child, so that skipping a
/// branch is a jump forward and no stack is needed.
#[derive(Clone, Copy, Debug)]
struct Node {
    bounds: Bounds,
    /// The node to go on with when this one is missed: past everything under it.
    skip: u32,
    /// The item of a leaf.
    item: Option<u32>,
}

/// The tree. Items are the numbers of the boxes that it was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bvh {
    nodes: Vec<Node>,
}

impl Bvh {
    pub(crate) fn new(boxes: &[Bounds]) -> Bvh {
        let mut items: Vec<u32> = (0..boxes.len() as u32).collect();
        let mut tree = Bvh { nodes: Vec::with_capacity(boxes.len() * 2) };
        if !items.is_empty() {
            tree.add(boxes, &mut items);
        }
        tree
    }

    /// Adds a subtree over `items`, halved at the median along the axis on which their centres lie farthest apart.
    fn add(&mut self, boxes: &[Bounds], items: &mut [u32]) {
        let of = |item: u32| boxes[item as usize];
        let bounds = items.iter().fold(Bounds::EMPTY, |all, &item| all.union(of(item)));
        let at = self.nodes.len();
        self.nodes.push(Node { bounds, skip: 0, item: None });
        if let [item] = *items {
            self.nodes[at].item = Some(item);
        } else {
            let centres = items.iter().map(|&item| of(item).centre());
            let spread = centres.fold(Bounds::EMPTY, |all, at| all.union(Bounds { min: at, max: at }));
            let axis = (spread.max - spread.min).max_position();
            items.sort_by(|&a, &b| of(a).centre()[axis].total_cmp(&of(b).centre()[axis]).then(a.cmp(&b)));
            let (low, high) = items.split_at_mut(items.len() / 2);
            self.add(boxes, low);
            self.add(boxes, high);
        }
        self.nodes[at].skip = self.nodes.len() as u32;
    }

    /// Calls `visit` for every item whose box the straight path may touch, in no order that means anything.
    pub(crate) fn along(&self, from: Vec3, to: Vec3, mut visit: impl FnMut(u32)) {
        let path = Bounds::of_path(from, to);
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            if !node.bounds.overlaps(&path) {
                at = node.skip as usize;
                continue;
            }
            if let Some(item) = node.item {
                visit(item);
            }
            at += 1;
        }
    }
}
