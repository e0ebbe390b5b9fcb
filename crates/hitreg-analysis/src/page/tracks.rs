//! The paths of bodies. Each path keeps only a few samples. The page moves a body along straight lines between them, at
//! a constant speed from one to the next, so that it is within a tolerance of every other sample at its time. The
//! tolerance grows with the number of kept samples, so that a long session has no more of them than a page can show.

use hitreg_log::sorted::SortedMap;

use serde::Serialize;

use super::clock::ClockStep;
use super::packed::{PackedColumn, PageColumns, whole};
use super::world::{LineTolerance, TrackPrecision, TrackWorld};

/// The position of an entity at one step of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPoint {
    pub(super) step: ClockStep,
    /// The distance from the world's origin on each axis, in units.
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
    pub(super) step: PackedColumn,
    pub(super) place: [PackedColumn; 3],
    #[serde(skip_serializing_if = "Option::is_none")]
    yaw: Option<PackedColumn>,
    /// Twice the mark, plus 1 if the entity was absent in the step before.
    mark: PackedColumn,
}

/// The tolerance grows at most this many times.
const MOST_STEPS: u32 = 4;

/// A sample, and whether the entity was absent in the step before. A page keeps more than a million, so its fields leave
/// no gaps.
#[derive(Clone, Copy, Debug)]
struct Knot {
    at_us: i64,
    index: u32,
    place: [f32; 3],
    /// The view direction if `has_yaw`.
    yaw: f32,
    has_yaw: bool,
    mark: u8,
    came: bool,
}

impl Knot {
    fn new(point: &TrackPoint, came: bool) -> Knot {
        let TrackPoint { step: ClockStep { index, at_us }, place, yaw, mark } = *point;
        Knot { at_us, index, place, yaw: yaw.unwrap_or_default(), has_yaw: yaw.is_some(), mark, came }
    }

    fn point(&self) -> TrackPoint {
        let Knot { at_us, index, place, yaw, has_yaw, mark, came: _ } = *self;
        TrackPoint { step: ClockStep { index, at_us }, place, yaw: has_yaw.then_some(yaw), mark }
    }
}

/// A path while its samples come, in the order of their steps.
#[derive(Debug, Default)]
struct Track {
    kept: Vec<Knot>,
    /// The last sample, and whether it is kept.
    last: Option<(Knot, bool)>,
    /// The line from the last kept sample.
    line: Option<VelocityRange>,
    lacks_yaw: bool,
    /// Whether a sample came after one of a later step.
    is_mixed: bool,
}

impl Track {
    fn push(&mut self, point: TrackPoint, tolerance: LineTolerance) {
        self.lacks_yaw |= point.yaw.is_none();
        let (before, step) = (self.last.map(|(last, _)| last.index), point.step.index);
        self.is_mixed |= before.is_some_and(|before| before >= step);
        let came = before.and_then(|before| before.checked_add(1)) != Some(step);
        self.add(Knot::new(&point, came), tolerance);
    }

    fn add(&mut self, knot: Knot, tolerance: LineTolerance) {
        let goes_on = self.last.filter(|(last, _)| !knot.came && last.mark == knot.mark);
        let kept = match (goes_on, &mut self.line) {
            (Some(_), Some(line)) if line.takes(&knot.point()) => {
                line.narrow(&knot.point(), tolerance);
                false
            }
            (Some((last, is_kept)), _) => {
                // The line ends at the sample before, which was still within the tolerance.
                if !is_kept {
                    self.keep(last);
                }
                let mut line = VelocityRange::at(&last.point());
                line.narrow(&knot.point(), tolerance);
                self.line = Some(line);
                false
            }
            (None, _) => {
                if let Some((last, false)) = self.last {
                    self.keep(last);
                }
                self.keep(knot);
                self.line = Some(VelocityRange::at(&knot.point()));
                true
            }
        };
        self.last = Some((knot, kept));
    }

    fn keep(&mut self, knot: Knot) {
        // Hundreds of paths that double their room would take half as much memory again.
        if self.kept.len() == self.kept.capacity() {
            self.kept.reserve_exact((self.kept.len() / 8).max(16));
        }
        self.kept.push(knot);
    }

    /// Keeps fewer samples. Lines then pass the samples of the lines so far within `by`.
    fn thin(&mut self, by: LineTolerance) {
        self.settle();
        let (kept, lacks_yaw, is_mixed) = (std::mem::take(&mut self.kept), self.lacks_yaw, self.is_mixed);
        *self = Track { lacks_yaw, ..Track::default() };
        if is_mixed {
            let mut points: Vec<TrackPoint> = kept.into_iter().map(|knot| knot.point()).collect();
            points.sort_by_key(|point| point.step.index);
            points.dedup_by_key(|point| point.step.index);
            points.into_iter().for_each(|point| self.push(point, by));
        } else {
            kept.into_iter().for_each(|knot| self.add(knot, by));
        }
    }

    /// Keeps the last sample.
    fn settle(&mut self) {
        if let Some((last, is_kept)) = &mut self.last
            && !std::mem::replace(is_kept, true)
        {
            let last = *last;
            self.keep(last);
            // A further sample may still continue the line to this one.
            self.line = Some(VelocityRange::at(&last.point()));
        }
    }
}

/// The table, the player or 0, and the entity of a path.
pub(super) type TrackKey = [u32; 3];

/// All paths of one kind.
#[derive(Debug)]
pub(super) struct TrackSet {
    tracks: Vec<(TrackKey, Track)>,
    places: SortedMap<TrackKey, usize>,
    pub(super) world: TrackWorld,
    /// The place of the last path. The next row is nearly always of the next one.
    last: usize,
    /// The exactness of the paths so far.
    pub(super) precision: TrackPrecision,
    steps: u32,
    /// The most samples of all paths, above which they are thinned.
    most: usize,
    /// The number of kept samples.
    kept: usize,
}

impl TrackSet {
    pub(super) fn new(world: TrackWorld, most: usize) -> TrackSet {
        let (tracks, places, last, steps, kept) = (Vec::new(), SortedMap::new(), 0, 0, 0);
        TrackSet { tracks, places, world, last, precision: world.precision, steps, most, kept }
    }

    /// The place of a path among all paths.
    fn place(&mut self, key: TrackKey) -> usize {
        let near =
            [self.last + 1, self.last].into_iter().find(|n| self.tracks.get(*n).is_some_and(|(of, _)| *of == key));
        self.last = near.unwrap_or_else(|| {
            *self.places.entry(key).or_insert_with(|| {
                self.tracks.push((key, Track::default()));
                self.tracks.len() - 1
            })
        });
        self.last
    }

    /// Adds a sample to a path.
    pub(super) fn push(&mut self, path: TrackKey, point: TrackPoint) {
        let place = self.place(path);
        let track = &mut self.tracks[place].1;
        let before = track.kept.len();
        track.push(point, self.precision.of_lines());
        self.kept += track.kept.len() - before;
        while self.kept > self.most && self.steps < MOST_STEPS {
            let before = self.kept;
            self.coarsen();
            // What no tolerance removes, such as the samples around a respawn, needs room of its own.
            if self.kept > before / 8 * 5 {
                self.most *= 2;
            }
        }
    }

    fn coarsen(&mut self) {
        // The lines so far are within their tolerance of the samples, and the new ones within the rest of these lines.
        let (fine, coarse) = (self.precision.of_lines(), self.precision.coarser());
        let by = std::array::from_fn(|of| coarse.of_lines()[of] - fine[of]);
        self.tracks.iter_mut().for_each(|(_, track)| track.thin(by));
        self.precision = coarse;
        self.steps += 1;
        self.kept = self.tracks.iter().map(|(_, track)| track.kept.len()).sum();
    }

    /// The paths in the page's format, in the order of their keys. `player` says whether keys have a player.
    pub(super) fn pack(self, player: bool, columns: &mut PageColumns) -> Vec<PageTrack> {
        let TrackSet { mut tracks, precision: TrackPrecision { unit, .. }, world: TrackWorld { origin, .. }, .. } =
            self;
        tracks.sort_unstable_by_key(|(key, _)| *key);
        let pack = |([_, of, entity], mut track): (TrackKey, Track)| {
            track.settle();
            if track.is_mixed {
                track.thin([0.0; 4]);
                track.settle();
            }
            PageTrack::pack((entity, player.then_some(of)), &track, (origin, unit), columns)
        };
        tracks.into_iter().filter(|(_, track)| track.last.is_some()).map(pack).collect()
    }
}

/// The velocities that a line from a kept sample may have, so that it passes all later samples within the tolerance at
/// their times.
#[derive(Debug)]
struct VelocityRange {
    from: TrackPoint,
    /// For each axis in units per microsecond, and for the direction in degrees per microsecond.
    velocities: [(f32, f32); 4],
}

impl VelocityRange {
    fn at(from: &TrackPoint) -> VelocityRange {
        VelocityRange { from: *from, velocities: [(f32::NEG_INFINITY, f32::INFINITY); 4] }
    }

    fn offs(&self, sample: &TrackPoint) -> ([f32; 4], f32) {
        let [x, y, z] = std::array::from_fn(|axis| sample.place[axis] - self.from.place[axis]);
        let turned = sample.yaw.zip(self.from.yaw).map_or(0.0, |(to, from)| {
            let turned = (to - from).rem_euclid(360.0);
            if turned > 180.0 { turned - 360.0 } else { turned }
        });
        ([x, y, z, turned], sample.step.at_us.saturating_sub(self.from.step.at_us) as f32)
    }

    fn takes(&self, sample: &TrackPoint) -> bool {
        let (offs, took) = self.offs(sample);
        // After a large turn, a line does not show in which direction the entity turned.
        let turns_little = offs[3].abs() < 150.0;
        let ranges = offs.into_iter().zip(self.velocities);
        turns_little && ranges.into_iter().all(|(off, (least, most))| (least..=most).contains(&(off / took)))
    }

    /// A sample at the time of the first one, farther away than the tolerance, leaves no finite velocity.
    fn narrow(&mut self, sample: &TrackPoint, tolerance: LineTolerance) {
        let (offs, took) = self.offs(sample);
        for ((off, within), (least, most)) in offs.into_iter().zip(tolerance).zip(&mut self.velocities) {
            *least = least.max((off - within) / took);
            *most = most.min((off + within) / took);
        }
    }
}

impl PageTrack {
    fn pack(
        (entity, player): (u32, Option<u32>),
        track: &Track,
        (origin, unit): ([f64; 3], f64),
        columns: &mut PageColumns,
    ) -> PageTrack {
        let kept = || track.kept.iter().map(|knot| knot.point());
        let place = [0, 1, 2]
            .map(|axis| columns.push(kept().map(|at| whole(at.place[axis], unit)), unit).with_origin(origin[axis]));
        let yaw = |at: TrackPoint| whole(at.yaw.unwrap_or_default().rem_euclid(360.0), 1.0);
        let mark = |knot: &Knot| i64::from(knot.mark) * 2 + i64::from(knot.came);
        PageTrack {
            entity,
            player,
            step: columns.push(kept().map(|at| i64::from(at.step.index)), 1.0),
            place,
            yaw: (!track.lacks_yaw).then(|| columns.push(kept().map(yaw), 1.0)),
            mark: columns.push(track.kept.iter().map(mark), 1.0),
        }
    }
}

#[cfg(test)]
mod tests;
