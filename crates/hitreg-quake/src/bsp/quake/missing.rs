//! Walls that the played map had and the given one lacks, as far as a recording shows them.

use serde::{Deserialize, Serialize};

use super::level::Map;
use super::trace::{Hull, TraceNode, box_tree};

/// A wall that the played map had and the given one lacks: a box in which no player's origin can be, or, where its face
/// leans, what of the box lies behind that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingWall {
    /// Lowest corner, in units.
    pub low: [f32; 3],
    /// Highest corner, in units.
    pub high: [f32; 3],
    /// The face, where it is along no axis. Logs of walls without one have no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<LeaningFace>,
}

/// A plane along no axis. In front of it, where players can be, is `normal . p >= dist`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaningFace {
    /// Of length one.
    pub normal: [f32; 3],
    /// From the map's origin, in units.
    pub dist: f32,
}

/// A wall as what a player's origin is swept through.
pub(crate) struct WallTree([TraceNode; 7]);

impl MissingWall {
    /// Whether a place is at most `reach` units from the wall along each axis.
    pub(crate) fn is_near(&self, at: [f32; 3], reach: f32) -> bool {
        (0..3).all(|n| at[n] + reach > self.low[n] && at[n] - reach < self.high[n])
    }

    pub(crate) fn tree(&self) -> WallTree {
        let [a, b, c, d, e, f] = box_tree(self.low, self.high);
        let face = self.face.map_or(a, |face| TraceNode::in_front_of_box(face.normal, face.dist));
        WallTree([a, b, c, d, e, f, face])
    }

    pub(crate) fn is_finite(&self) -> bool {
        let face = self.face.iter().flat_map(|face| face.normal.iter().chain([&face.dist]));
        self.low.iter().chain(&self.high).chain(face).all(|number| number.is_finite())
    }
}

impl WallTree {
    pub(crate) fn hull(&self) -> Hull<'_> {
        Hull::of_wall(&self.0)
    }
}

impl LeaningFace {
    /// How far in front of it a place is, in units.
    pub(crate) fn distance(&self, at: [f32; 3]) -> f32 {
        (0..3).map(|n| self.normal[n] * at[n]).sum::<f32>() - self.dist
    }

    /// How much a distance changes where each coordinate changes by one, at most.
    pub(crate) fn slack(&self) -> f32 {
        self.normal.iter().map(|n| n.abs()).sum()
    }
}

impl Map {
    /// Every face that is along no axis, as the origin of a player with such a box meets it. Some are met nowhere.
    pub(crate) fn leaning_faces(&self, mins: [f32; 3], maxs: [f32; 3]) -> Vec<LeaningFace> {
        let mut planes: Vec<u16> = self.point_nodes.iter().map(|node| node.plane).collect();
        planes.sort_unstable();
        planes.dedup();
        let planes = planes.into_iter().map(|index| &self.planes[usize::from(index)]);
        let sides = planes.filter(|plane| plane.axis.is_none()).flat_map(|plane| {
            let back = LeaningFace { normal: plane.normal.map(|n| -n), dist: -plane.dist };
            [LeaningFace { normal: plane.normal, dist: plane.dist }, back]
        });
        let met = |face: LeaningFace| {
            let reach = |n: usize| -face.normal[n] * if face.normal[n] > 0.0 { mins[n] } else { maxs[n] };
            LeaningFace { dist: face.dist + reach(0) + reach(1) + reach(2), ..face }
        };
        sides.map(met).collect()
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec3;

    use super::*;
    use crate::bsp::quake::trace::SweepRule;

    /// Leans over who comes along y from below.
    fn leaning() -> MissingWall {
        let face = LeaningFace { normal: [0.0, -0.8, -0.6], dist: -10.0 };
        MissingWall { low: [-50.0, 0.0, -20.0], high: [50.0, 40.0, 20.0], face: Some(face) }
    }

    #[test]
    fn a_leaning_wall_stops_at_its_face_and_lets_pass_before_it() {
        let tree = leaning().tree();
        for rule in [SweepRule::Classic, SweepRule::Reworked] {
            let sweep = |z: f32| tree.hull().sweep(rule, Vec3::new(0.0, -30.0, z), Vec3::new(0.0, 30.0, z));
            for z in [0.0, 10.0, -10.0] {
                let met = (10.0 - 0.6 * z) / 0.8;
                let sweep = sweep(z);
                assert!((sweep.end.y - met).abs() < 0.1 && sweep.end.y < met, "{rule:?} {z}: {sweep:?}");
                assert_eq!(sweep.normal, Vec3::new(0.0, -0.8, -0.6), "{rule:?} {z}");
            }
            assert_eq!(sweep(21.0).fraction, 1.0, "above the box");
        }
        let upright = MissingWall { face: None, ..leaning() };
        let sweep = upright.tree().hull().sweep(SweepRule::Classic, Vec3::Y * -30.0, Vec3::Y * 30.0);
        assert_eq!((sweep.end.y, sweep.normal), (-0.031_25, -Vec3::Y));
    }

    #[test]
    fn a_wall_without_a_face_is_written_as_it_always_was() {
        let upright = MissingWall { face: None, ..leaning() };
        let before = rmp_serde::to_vec(&(upright.low, upright.high)).expect("plain data");
        assert_eq!(rmp_serde::to_vec(&upright).expect("plain data"), before);
        for wall in [upright, leaning()] {
            let bytes = rmp_serde::to_vec(&wall).expect("plain data");
            assert_eq!(rmp_serde::from_slice::<MissingWall>(&bytes).expect("read"), wall);
        }
        let face = LeaningFace { normal: [f32::NAN, 0.0, 1.0], dist: 0.0 };
        assert!(leaning().is_finite() && !MissingWall { face: Some(face), ..leaning() }.is_finite());
    }
}
