//! Checks a map from a file or a log, so that tracing needs no checks and always terminates.

use super::bsp::BspError;
use super::level::{ClipNode, UncheckedMap};

/// The deepest allowed tree, because traces recurse. id's maps stay below 60.
const DEEPEST: u16 = 1024;

/// Checks that every index is valid, every tree is finite and every number is finite.
pub(crate) fn check(map: &UncheckedMap) -> Result<(), BspError> {
    if map.models.is_empty() {
        return Err(BspError::Empty { missing: "models" });
    }
    for (index, plane) in map.planes.iter().enumerate() {
        let finite = plane.normal.iter().all(|n| n.is_finite()) && plane.dist.is_finite();
        if !finite || plane.axis.is_some_and(|axis| axis > 2) {
            return Err(BspError::NotFinite { what: "plane", index });
        }
    }
    for (tree, nodes) in [("clip nodes", &map.clip_nodes), ("nodes", &map.point_nodes)] {
        check_nodes(tree, nodes, map.planes.len())?;
        check_depth(tree, nodes)?;
    }
    for (by, model) in map.models.iter().enumerate() {
        if !model.mins.iter().chain(&model.maxs).all(|v| v.is_finite()) {
            return Err(BspError::NotFinite { what: "model", index: by });
        }
        check_root("clip node", model.clip_root, map.clip_nodes.len(), by)?;
        check_root("node", model.point_root, map.point_nodes.len(), by)?;
    }
    let finite = |numbers: &[f32; 3]| numbers.iter().all(|n| n.is_finite());
    if let Some(index) = map.moving.iter().position(|moving| !moving.rests.iter().chain(&moving.sunk).all(finite)) {
        return Err(BspError::NotFinite { what: "moving model", index });
    }
    if let Some(index) = map.walls.iter().position(|wall| !wall.is_finite()) {
        return Err(BspError::NotFinite { what: "wall", index });
    }
    if let Some(index) = map.spawns.iter().position(|spawn| !finite(spawn)) {
        return Err(BspError::NotFinite { what: "place of spawning", index });
    }
    Ok(())
}

fn check_nodes(what: &'static str, nodes: &[ClipNode], planes: usize) -> Result<(), BspError> {
    for (by, node) in nodes.iter().enumerate() {
        if usize::from(node.plane) >= planes {
            return Err(BspError::Index { what: "plane", index: i64::from(node.plane), count: planes, by });
        }
        for child in node.children {
            check_root(what, child, nodes.len(), by)?;
        }
    }
    Ok(())
}

fn check_root(what: &'static str, root: i32, count: usize, by: usize) -> Result<(), BspError> {
    let fits = root < 0 || usize::try_from(root).is_ok_and(|root| root < count);
    if fits { Ok(()) } else { Err(BspError::Index { what, index: i64::from(root), count, by }) }
}

/// Computes every node's height above the leaves without recursion and reports loops.
fn check_depth(tree: &'static str, nodes: &[ClipNode]) -> Result<(), BspError> {
    const UNKNOWN: u16 = u16::MAX;
    const OPEN: u16 = u16::MAX - 1;
    let mut heights = vec![UNKNOWN; nodes.len()];
    let mut stack = Vec::new();
    for start in 0..nodes.len() {
        stack.push(start);
        while let Some(&node) = stack.last() {
            if heights[node] < OPEN {
                stack.pop();
                continue;
            }
            let children = nodes[node].children.into_iter().filter_map(|child| usize::try_from(child).ok());
            let too_deep = BspError::Depth { tree, node, limit: DEEPEST };
            if heights[node] == UNKNOWN {
                heights[node] = OPEN;
                for child in children {
                    match heights[child] {
                        OPEN => return Err(too_deep),
                        UNKNOWN => stack.push(child),
                        _ => {}
                    }
                }
                continue;
            }
            let height = 1 + children.map(|child| heights[child]).max().unwrap_or(0);
            if height > DEEPEST {
                return Err(too_deep);
            }
            heights[node] = height;
            stack.pop();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use glam::Vec3;

    use super::super::level::{AxisPlane, EMPTY, QuakeMap, SOLID, Submodel};
    use super::super::trace::{HullTree, SweepRule};
    use super::*;

    /// Returns a map of consecutive planes along x, each a node; the last one leads into solid.
    fn chain(nodes: u16) -> Result<QuakeMap, BspError> {
        let planes = (0..nodes).map(|n| AxisPlane { normal: [1.0, 0.0, 0.0], dist: f32::from(n), axis: Some(0) });
        let node = |n: u16| {
            let front = if n + 1 < nodes { i32::from(n) + 1 } else { SOLID };
            ClipNode { plane: n, children: [front, EMPTY] }
        };
        let clip_nodes: Vec<ClipNode> = (0..nodes).map(node).collect();
        let world = Submodel { mins: [-9e3; 3], maxs: [9e3; 3], point_root: 0, clip_root: 0 };
        QuakeMap::try_from(UncheckedMap {
            planes: planes.collect(),
            point_nodes: clip_nodes.clone(),
            clip_nodes,
            models: vec![world],
            triggers: vec![],
            moving: vec![],
            walls: vec![],
            spawns: vec![],
        })
    }

    #[test]
    fn the_deepest_tree_can_be_swept_and_a_deeper_one_is_refused() {
        let map = chain(DEEPEST).expect("just deep enough");
        for rule in [SweepRule::Classic, SweepRule::Reworked] {
            for (start, end) in [(-10.0, 2_000.0), (900.5, -10.0)] {
                let sweep = HullTree::clip(&map, 0).sweep(rule, Vec3::X * start, Vec3::X * end);
                assert!(sweep.fraction == 1.0 || (sweep.end.x - f32::from(DEEPEST - 1)).abs() < 0.1, "{sweep:?}");
            }
        }
        assert!(matches!(chain(DEEPEST + 1), Err(BspError::Depth { tree: "clip nodes", .. })));
    }

    #[test]
    fn a_map_without_models_or_with_wild_roots_is_refused() {
        let mut map = UncheckedMap {
            planes: vec![],
            clip_nodes: vec![],
            point_nodes: vec![],
            models: vec![],
            triggers: vec![],
            moving: vec![],
            walls: vec![],
            spawns: vec![],
        };
        assert_eq!(check(&map), Err(BspError::Empty { missing: "models" }));
        map.models.push(Submodel { mins: [0.0; 3], maxs: [f32::NAN; 3], point_root: -1, clip_root: -1 });
        assert_eq!(check(&map), Err(BspError::NotFinite { what: "model", index: 0 }));
        map.models[0] = Submodel { mins: [0.0; 3], maxs: [0.0; 3], point_root: -1, clip_root: 3 };
        assert!(matches!(check(&map), Err(BspError::Index { what: "clip node", index: 3, .. })));
    }
}
