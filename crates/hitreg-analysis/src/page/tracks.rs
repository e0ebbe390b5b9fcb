//! The paths of bodies. Each path keeps only a few samples, such that straight lines between them pass all others
//! within a tolerance.

use serde::Serialize;

use super::packed::{ColumnSpan, PageColumns, whole};

/// The position of an entity at one step of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPoint {
    /// The number of the step.
    pub(super) step: u32,
    /// The position, in units.
    pub(super) place: [f32; 3],
    /// The view direction (yaw), in degrees.
    pub(super) yaw: Option<f32>,
    /// A further property, such as how the entity was drawn. No line crosses a change of the mark.
    pub(super) mark: u8,
}

/// One path in the page's format.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PageTrack {
    /// The entity.
    pub(super) entity: u32,
    /// The player whose clock and screen the path belongs to; `None` for the server.
    pub(super) player: Option<u32>,
    step: ColumnSpan,
    place: [ColumnSpan; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    yaw: Option<ColumnSpan>,
    /// Twice the mark, plus 1 if the entity was absent in the step before.
    mark: ColumnSpan,
}

/// The exactness of paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct TrackPrecision {
    /// The rounding of positions, in units.
    pub(super) unit: f64,
    /// The tolerance of a line on each axis, in units.
    pub(super) tolerance: f32,
}

impl TrackPrecision {
    /// The exactness for a world in which most coordinates are below `reach`.
    pub(super) fn of_world(reach: f32) -> TrackPrecision {
        let reach = f64::from(reach.clamp(1e-3, 1e6));
        let unit = libm::pow(2.0, libm::ceil(libm::log2(reach / 32_768.0)));
        TrackPrecision { unit, tolerance: (LINE_PER_UNIT * unit) as f32 }
    }

    /// The same exactness with twice the unit and tolerance.
    pub(super) fn coarser(self) -> TrackPrecision {
        TrackPrecision { unit: self.unit * 2.0, tolerance: self.tolerance * 2.0 }
    }
}

/// The ratio between a line's tolerance and the rounding of positions.
const LINE_PER_UNIT: f64 = 8.0;

/// The tolerance of a line in direction, in degrees.
const TOLERANCE_DEGREES: f32 = 12.0;

/// Returns the indices of the samples to keep. The samples must be in the order of their steps.
pub(super) fn knots(samples: &[TrackPoint], tolerance: f32) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::new();
    let mut cone: Option<SlopeRange> = None;
    for (index, sample) in samples.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &samples[before]);
        let goes_on = before.is_some_and(|before| before.step + 1 == sample.step && before.mark == sample.mark);
        match cone.as_mut().filter(|_| goes_on) {
            Some(open) if open.takes(sample) => open.narrow(sample, tolerance),
            Some(_) => {
                // The line ends at the sample before, which was still within the tolerance.
                kept.push(index as u32 - 1);
                let mut open = SlopeRange::at(&samples[index - 1]);
                open.narrow(sample, tolerance);
                cone = Some(open);
            }
            None => {
                if index > 0 && kept.last() != Some(&(index as u32 - 1)) {
                    kept.push(index as u32 - 1);
                }
                kept.push(index as u32);
                cone = Some(SlopeRange::at(sample));
            }
        }
    }
    if let Some(last) = samples.len().checked_sub(1).filter(|last| kept.last() != Some(&(*last as u32))) {
        kept.push(last as u32);
    }
    kept
}

/// The slopes that a line from a kept sample may have, so that it passes all later samples within the tolerance.
struct SlopeRange {
    from: TrackPoint,
    slopes: [(f32, f32); 4],
}

impl SlopeRange {
    fn at(from: &TrackPoint) -> SlopeRange {
        SlopeRange { from: *from, slopes: [(f32::NEG_INFINITY, f32::INFINITY); 4] }
    }

    fn offs(&self, sample: &TrackPoint) -> ([f32; 4], f32) {
        let [x, y, z] = std::array::from_fn(|axis| sample.place[axis] - self.from.place[axis]);
        let turned = sample.yaw.zip(self.from.yaw).map_or(0.0, |(to, from)| {
            let turned = (to - from).rem_euclid(360.0);
            if turned > 180.0 { turned - 360.0 } else { turned }
        });
        ([x, y, z, turned], (sample.step - self.from.step) as f32)
    }

    fn takes(&self, sample: &TrackPoint) -> bool {
        let (offs, steps) = self.offs(sample);
        // After a large turn, a line does not show in which direction the entity turned.
        let turns_little = offs[3].abs() < 150.0;
        turns_little && offs.iter().zip(self.slopes).all(|(off, (least, most))| (least..=most).contains(&(off / steps)))
    }

    fn narrow(&mut self, sample: &TrackPoint, tolerance: f32) {
        let (offs, steps) = self.offs(sample);
        let tolerances = [tolerance, tolerance, tolerance, TOLERANCE_DEGREES];
        for ((off, within), (least, most)) in offs.into_iter().zip(tolerances).zip(&mut self.slopes) {
            *least = least.max((off - within) / steps);
            *most = most.min((off + within) / steps);
        }
    }
}

impl PageTrack {
    pub(super) fn is_empty(&self) -> bool {
        self.step.is_empty()
    }

    pub(super) fn pack(
        (entity, player): (u32, Option<u32>),
        samples: &[TrackPoint],
        kept: &[u32],
        unit: f64,
        columns: &mut PageColumns,
    ) -> PageTrack {
        let of = |index: &u32| samples[*index as usize];
        let came = |index: &u32| {
            let before = index.checked_sub(1).map(|before| samples[before as usize].step + 1);
            i64::from(before != Some(of(index).step))
        };
        let [x, y, z] = [0, 1, 2].map(|axis| columns.push(kept.iter().map(|i| whole(of(i).place[axis], unit)), unit));
        let has_yaw = samples.iter().all(|sample| sample.yaw.is_some()) && !samples.is_empty();
        let yaw = |index: &u32| whole(of(index).yaw.unwrap_or_default().rem_euclid(360.0), 1.0);
        PageTrack {
            entity,
            player,
            step: columns.push(kept.iter().map(|index| i64::from(of(index).step)), 1.0),
            place: [x, y, z],
            yaw: has_yaw.then(|| columns.push(kept.iter().map(yaw), 1.0)),
            mark: columns.push(kept.iter().map(|index| i64::from(of(index).mark) * 2 + came(index)), 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(places: impl IntoIterator<Item = (u32, f32, u8)>) -> Vec<TrackPoint> {
        let sample = |(step, x, mark)| TrackPoint { step, place: [x, 0.0, 0.0], yaw: None, mark };
        places.into_iter().map(sample).collect()
    }

    #[test]
    fn a_line_passes_all_samples_within_the_tolerance() {
        let samples = way((0..400).map(|step| (step, libm::sinf(step as f32 / 60.0) * 100.0, 0)));
        for tolerance in [0.1, 1.0, 10.0] {
            let kept = knots(&samples, tolerance);
            assert!(kept.len() < 150 && kept.len() > 4, "{tolerance}: {} samples", kept.len());
            for pair in kept.windows(2) {
                let [from, to] = [pair[0], pair[1]].map(|index| &samples[index as usize]);
                for sample in &samples[pair[0] as usize..=pair[1] as usize] {
                    let share = (sample.step - from.step) as f32 / (to.step - from.step) as f32;
                    let off = from.place[0] + (to.place[0] - from.place[0]) * share - sample.place[0];
                    assert!(off.abs() <= tolerance + 1e-3, "{tolerance}: {off} off at step {}", sample.step);
                }
            }
        }
    }

    #[test]
    fn samples_around_gaps_and_changes_are_kept() {
        let samples = way([(0, 0.0, 0), (1, 0.0, 0), (2, 0.0, 0), (9, 0.0, 0), (10, 0.0, 1), (11, 0.0, 1)]);
        assert_eq!(knots(&samples, 1.0), [0, 2, 3, 4, 5]);
        assert_eq!(knots(&samples[..1], 1.0), [0]);
        assert!(knots(&[], 1.0).is_empty());
    }
}
