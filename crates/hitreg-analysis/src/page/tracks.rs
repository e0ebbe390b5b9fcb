//! The paths of bodies. Each path keeps only a few samples. The page moves a body along straight lines between them, at
//! a constant speed from one to the next, so that it is within a tolerance of every other sample at its time. The
//! tolerance grows with the number of kept samples, so that a long session has no more of them than a page can show. The
//! first tolerance follows from the part of the world in which the bodies move.

use serde::Serialize;

use super::packed::{EXACT_SUM_MAX, PackedColumn, PageColumns, whole};
use super::series::at_share;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{frames, views};
use hitreg_log::trace::{TraceReadError, TraceSource, body_tables, each_part};

/// The position of an entity at one step of a clock. A page keeps more than a million, so the fields leave no gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackPoint {
    pub(super) at_us: i64,
    /// The place of the step in its clock.
    pub(super) index: u32,
    /// The distance from the world's origin on each axis, in units.
    pub(super) place: [f32; 3],
    /// The view direction (yaw), in degrees; NaN if it is unknown.
    pub(super) yaw: f32,
    /// A further property, such as how the entity was drawn. No line crosses a change of the mark.
    pub(super) mark: u8,
    /// Whether the position before is not known: records are missing there, or the entity was absent in the step before,
    /// which [`TrackSet::push`] finds.
    pub(super) came: bool,
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
    /// Twice the mark, plus 1 if the position before is not known.
    mark: PackedColumn,
}

/// The tolerance grows at most this many times.
const TOLERANCE_STEPS_MAX: u32 = 4;

/// A path while its samples come, in the order of their steps.
#[derive(Debug, Default)]
struct Track {
    kept: Vec<TrackPoint>,
    /// The last sample, and whether it is kept.
    last: Option<(TrackPoint, bool)>,
    /// The line from the last kept sample.
    line: Option<VelocityRange>,
    lacks_yaw: bool,
    /// Whether a sample came after one of a later step.
    is_mixed: bool,
}

impl Track {
    fn push(&mut self, point: TrackPoint, tolerance: LineTolerance) {
        self.lacks_yaw |= point.yaw.is_nan();
        let before = self.last.map(|(last, _)| last.index);
        self.is_mixed |= before.is_some_and(|before| before >= point.index);
        let came = point.came || before.and_then(|before| before.checked_add(1)) != Some(point.index);
        self.add(TrackPoint { came, ..point }, tolerance);
    }

    fn add(&mut self, point: TrackPoint, tolerance: LineTolerance) {
        let goes_on = self.last.filter(|(last, _)| !point.came && last.mark == point.mark);
        let kept = match (goes_on, &mut self.line) {
            (Some(_), Some(line)) if line.takes(&point) => {
                line.narrow(&point, tolerance);
                false
            }
            (Some((last, is_kept)), _) => {
                // The line ends at the sample before, which was still within the tolerance.
                if !is_kept {
                    self.keep(last);
                }
                let mut line = VelocityRange::at(last);
                line.narrow(&point, tolerance);
                self.line = Some(line);
                false
            }
            (None, _) => {
                if let Some((last, false)) = self.last {
                    self.keep(last);
                }
                self.keep(point);
                self.line = Some(VelocityRange::at(point));
                true
            }
        };
        self.last = Some((point, kept));
    }

    fn keep(&mut self, point: TrackPoint) {
        // Hundreds of paths that double their room would take half as much memory again.
        if self.kept.len() == self.kept.capacity() {
            self.kept.reserve_exact((self.kept.len() / 8).max(16));
        }
        self.kept.push(point);
    }

    /// Keeps fewer samples. Lines then pass the samples of the lines so far within `by`.
    fn thin(&mut self, by: LineTolerance) {
        self.settle();
        let (mut points, is_mixed) = (std::mem::take(&mut self.kept), self.is_mixed);
        *self = Track { lacks_yaw: self.lacks_yaw, ..Track::default() };
        if is_mixed {
            points.sort_by_key(|point| point.index);
            points.dedup_by_key(|point| point.index);
            points.into_iter().for_each(|point| self.push(point, by));
        } else {
            points.into_iter().for_each(|point| self.add(point, by));
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
            self.line = Some(VelocityRange::at(last));
        }
    }
}

/// The table, the player or 0, and the entity of a path.
type TrackKey = [u32; 3];

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
        while self.kept > self.most && self.steps < TOLERANCE_STEPS_MAX {
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
    fn at(from: TrackPoint) -> VelocityRange {
        VelocityRange { from, velocities: [(f32::NEG_INFINITY, f32::INFINITY); 4] }
    }

    fn offs(&self, sample: &TrackPoint) -> ([f32; 4], f32) {
        let [x, y, z] = std::array::from_fn(|axis| sample.place[axis] - self.from.place[axis]);
        let turned = match (sample.yaw - self.from.yaw).rem_euclid(360.0) {
            _ if sample.yaw.is_nan() || self.from.yaw.is_nan() => 0.0,
            turned if turned > 180.0 => turned - 360.0,
            turned => turned,
        };
        ([x, y, z, turned], sample.at_us.saturating_sub(self.from.at_us) as f32)
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
        let kept = || track.kept.iter();
        let place = [0, 1, 2].map(|axis| {
            let mut column = columns.push(kept().map(|at| whole(at.place[axis], unit)), unit);
            column.origin = origin[axis];
            column
        });
        let yaw = |at: &TrackPoint| whole(at.yaw.rem_euclid(360.0), 1.0);
        let mark = |at: &TrackPoint| i64::from(at.mark) * 2 + i64::from(at.came);
        PageTrack {
            entity,
            player,
            step: columns.push(kept().map(|at| i64::from(at.index)), 1.0),
            place,
            yaw: (!track.lacks_yaw).then(|| columns.push(kept().map(yaw), 1.0)),
            mark: columns.push(kept().map(mark), 1.0),
        }
    }
}

/// The exactness of paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct TrackPrecision {
    /// The rounding of positions, in units.
    pub(super) unit: f64,
    /// The largest distance between a line and a sample at the sample's time, in units.
    pub(super) tolerance: f32,
    /// The largest difference of a view direction, in degrees.
    pub(super) degrees: f32,
}

/// The largest difference between a line and a sample: on each axis in units, and of the view direction in degrees.
type LineTolerance = [f32; 4];

impl TrackPrecision {
    /// The exactness for a world of this size on its longest axis, in units.
    pub(super) fn of_world(extent: f64) -> TrackPrecision {
        let unit = libm::exp2(libm::ceil(libm::log2(extent.clamp(1e-3, 2e6) / 65_536.0)));
        TrackPrecision { unit, tolerance: (LINE_PER_UNIT * unit) as f32, degrees: LINE_DEGREES }
    }

    /// The same exactness with a greater unit and tolerance.
    pub(super) fn coarser(self) -> TrackPrecision {
        TrackPrecision {
            unit: self.unit * f64::from(COARSER),
            tolerance: self.tolerance * COARSER,
            degrees: self.degrees + LINE_DEGREES,
        }
    }

    /// The tolerance of lines. A difference on all three axes together stays within [`TrackPrecision::tolerance`].
    fn of_lines(self) -> LineTolerance {
        let axis = self.tolerance / SQRT_3;
        [axis, axis, axis, self.degrees]
    }
}

/// The part of the world in which nearly all positions are. Distances from its origin fit into single precision,
/// wherever the world is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrackWorld {
    /// The point that positions are measured from: 0 on an axis whose positions are near 0.
    pub(super) origin: [f64; 3],
    pub(super) precision: TrackPrecision,
}

impl TrackWorld {
    /// The world of a trace.
    ///
    /// # Errors
    /// A message when the trace cannot be read.
    pub(super) fn of(trace: &dyn TraceSource) -> Result<TrackWorld, TraceReadError> {
        let (mut meter, mut is_empty) = (WorldMeter::default(), true);
        let places = ["origin.x", "origin.y", "origin.z"];
        let own = ["own.origin.x", "own.origin.y", "own.origin.z"];
        let states = body_tables(trace).into_iter().map(|table| (table, places));
        let others = [(frames::NAME, own), (views::NAME, places)].map(|(table, columns)| (table.to_owned(), columns));
        for (table, columns) in states.chain(others) {
            // Screens show the same world.
            if table == views::NAME && !is_empty {
                break;
            }
            each_part(trace, &table, (&columns, None), &mut |rows| {
                for (axis, name) in columns.iter().enumerate() {
                    let Some(column) = rows.column(name) else { continue };
                    (0..).map_while(|row| column.data.real(row)).for_each(|at| {
                        is_empty = false;
                        meter.add(axis, at);
                    });
                }
                Ok(())
            })?;
        }
        Ok(meter.world())
    }

    /// The distance of a position from the origin; `None` if it is not finite, or too far away for the page.
    pub(super) fn place(&self, position: [f64; 3]) -> Option<[f32; 3]> {
        let off = |axis: usize| (position[axis] - self.origin[axis]) as f32;
        let place = [0, 1, 2].map(off);
        place.iter().all(|off| f64::from(off.abs()) < EXACT_SUM_MAX * self.precision.unit).then_some(place)
    }
}

/// Measures a world while its positions come. A few positions far away do not change the result.
#[derive(Debug, Default)]
struct WorldMeter {
    /// For each axis, the coordinates between two powers of two: their number, the least and the largest.
    axes: [SortedMap<i32, (u64, f64, f64)>; 3],
}

impl WorldMeter {
    fn add(&mut self, axis: usize, at: f64) {
        if !(at as f32).is_finite() {
            return;
        }
        // Ascending with the coordinate: the smallest ones have the keys next to 0.
        let power = libm::ilogb(at.abs().max(1e-3)) + 11;
        let (count, least, most) = self.axes[axis].entry(if at < 0.0 { -power } else { power }).or_insert((0, at, at));
        (*count, *least, *most) = (*count + 1, least.min(at), most.max(at));
    }

    /// The measured world: without the outermost 2% of the coordinates on each side, if they are of another size.
    fn world(&self) -> TrackWorld {
        let ranges = [0, 1, 2].map(|axis| {
            let counts: SortedMap<i32, u64> =
                self.axes[axis].iter().map(|(power, (count, ..))| (*power, *count)).collect();
            let at = |share: f64| at_share(&counts, share).and_then(|power| self.axes[axis].get(&power));
            let [(_, least, _), (_, middle, _), (_, _, most)] = [at(0.02)?, at(0.5)?, at(0.98)?];
            Some((*middle, most - least))
        });
        let extents = ranges.iter().flatten().map(|(_, extent)| *extent);
        let extent = extents.reduce(f64::max).unwrap_or(1.0);
        let precision = TrackPrecision::of_world(extent);
        let origin = ranges.map(|range| {
            let (middle, _) = range.filter(|(middle, _)| middle.abs() > extent)?;
            Some(libm::round(middle / precision.unit) * precision.unit)
        });
        TrackWorld { origin: origin.map(Option::unwrap_or_default), precision }
    }
}

/// The ratio between a line's tolerance and the rounding of positions: eight on each axis.
const LINE_PER_UNIT: f64 = 8.0 * SQRT_3 as f64;

/// The diagonal of a cube.
const SQRT_3: f32 = 1.732_050_8;

/// The tolerance of the finest lines in view direction, in degrees.
const LINE_DEGREES: f32 = 12.0;

/// How many times the tolerance of coarser paths is that of the paths before. A line over two bends of a path is four
/// times as far from it as the lines between them are from the samples, so a smaller factor would save little.
const COARSER: f32 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageInput;
    use crate::page::packed::{PackedColumn, PageColumns};
    use crate::page::side::PageSide;
    use hitreg_log::trace::schema::{bodies, ticks};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    const KEY: TrackKey = [0; 3];

    fn world(tolerance: f32) -> TrackWorld {
        TrackWorld { origin: [0.0; 3], precision: TrackPrecision { unit: 1.0, tolerance, degrees: 12.0 } }
    }

    /// A path along x, with a step every 10 ms.
    fn way(places: impl IntoIterator<Item = (u32, f32, u8)>) -> Vec<TrackPoint> {
        let sample = |(index, x, mark)| TrackPoint {
            at_us: i64::from(index) * 10_000,
            index,
            place: [x, 0.0, 0.0],
            yaw: f32::NAN,
            mark,
            came: false,
        };
        places.into_iter().map(sample).collect()
    }

    /// The kept samples of one path, and the tolerance of its lines.
    fn kept(samples: &[TrackPoint], tolerance: f32, most: usize) -> (Vec<TrackPoint>, f32) {
        let mut set = TrackSet::new(world(tolerance), most);
        samples.iter().for_each(|sample| set.push(KEY, *sample));
        let mut track = set.tracks.pop().map_or_else(Track::default, |(_, track)| track);
        track.settle();
        (track.kept, set.precision.tolerance)
    }

    fn passes_within(samples: &[TrackPoint], kept: &[TrackPoint], tolerance: f32) {
        for pair in kept.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            let (begin, end) = (from.at_us, to.at_us);
            for sample in samples.iter().filter(|sample| (begin..end).contains(&sample.at_us)) {
                let share = (sample.at_us - begin) as f32 / (end - begin) as f32;
                let drawn = |axis: usize| from.place[axis] + (to.place[axis] - from.place[axis]) * share;
                let off: f32 = (0..3).map(|axis| (drawn(axis) - sample.place[axis]).powi(2)).sum();
                assert!(off.sqrt() <= tolerance + 1e-3, "{tolerance}: {} off at {:?}", off.sqrt(), sample.index);
            }
        }
    }

    /// A player who stands still, and elsewhere after missing records.
    #[test]
    fn no_line_crosses_missing_records() {
        let mut samples = way((0..40).map(|step| (step, if step < 20 { 0.0 } else { 500.0 }, 0)));
        samples[20].came = true;
        let (kept, _) = kept(&samples, 1.0, usize::MAX);
        let marks: Vec<(u32, bool)> = kept.iter().map(|point| (point.index, point.came)).collect();
        assert_eq!(marks, [(0, true), (19, false), (20, true), (39, false)]);
    }

    #[test]
    fn a_line_passes_all_samples_within_the_tolerance() {
        let samples = way((0..400).map(|step| (step, libm::sinf(step as f32 / 60.0) * 100.0, 0)));
        for tolerance in [0.1, 1.0, 10.0] {
            let (kept, of_lines) = kept(&samples, tolerance, usize::MAX);
            assert!(kept.len() < 150 && kept.len() > 4, "{tolerance}: {} samples", kept.len());
            assert_eq!(of_lines, tolerance);
            passes_within(&samples, &kept, tolerance);
        }
    }

    /// Late ticks, and client frames of any length, some of no length.
    #[test]
    fn a_line_passes_all_samples_at_their_times() {
        let late = |n: u32| if n > 200 { 400_000 } else { 0 };
        let uneven = |n: u32| i64::from(n % 7 % 4) * 9_000;
        let clocks: [&dyn Fn(u32) -> i64; 2] = [&late, &uneven];
        for more_us in clocks {
            let mut samples = way((0..400).map(|step| (step, step as f32 * 3.2, 0)));
            samples.iter_mut().for_each(|sample| sample.at_us += more_us(sample.index));
            let times: Vec<i64> = samples.iter().map(|sample| sample.at_us).collect();
            let latest = |n: usize| times[..=n].iter().copied().max().unwrap_or_default();
            (0..).zip(&mut samples).for_each(|(n, sample)| sample.at_us = latest(n));
            let (kept, _) = kept(&samples, 1.0, usize::MAX);
            // At the time of several samples, the page draws the last one.
            let mut drawn = samples.clone();
            drawn.reverse();
            drawn.dedup_by_key(|sample| sample.at_us);
            passes_within(&drawn, &kept, 1.0);
        }
    }

    #[test]
    fn the_tolerance_is_that_of_all_axes_together() {
        let mut samples = way((0..400).map(|step| (step, libm::sinf(step as f32 / 60.0) * 100.0, 0)));
        samples.iter_mut().for_each(|sample| sample.place = [sample.place[0]; 3]);
        for most in [usize::MAX, 40] {
            let (kept, tolerance) = kept(&samples, 1.0, most);
            assert!(kept.len() < 100, "{} samples", kept.len());
            passes_within(&samples, &kept, tolerance);
        }
    }

    #[test]
    fn samples_around_gaps_and_changes_are_kept() {
        let samples = way([(0, 0.0, 0), (1, 0.0, 0), (2, 0.0, 0), (9, 0.0, 0), (10, 0.0, 1), (11, 0.0, 1)]);
        let steps =
            |samples: &[TrackPoint]| kept(samples, 1.0, usize::MAX).0.iter().map(|at| at.index).collect::<Vec<_>>();
        assert_eq!(steps(&samples), [0, 2, 9, 10, 11]);
        assert_eq!(steps(&samples[..1]), [0]);
        assert!(steps(&[]).is_empty());
    }

    /// Both sides of the limit: at it, every sample of a short session stays; above it, lines stay within what the page
    /// says.
    #[test]
    fn more_samples_than_the_limit_make_lines_coarser() {
        let samples = way((0..4000).map(|step| (step, libm::sinf(step as f32 / 60.0) * 100.0, 0)));
        let (exact, _) = kept(&samples, 0.1, usize::MAX);
        let (at_limit, tolerance) = kept(&samples, 0.1, exact.len());
        assert_eq!((at_limit.len(), tolerance), (exact.len(), 0.1));
        for most in [exact.len() - 2, exact.len() / 2, exact.len() / 5] {
            let (coarse, tolerance) = kept(&samples, 0.1, most);
            assert!(coarse.len() <= most + 1 && tolerance > 0.1, "{} of {most} at {tolerance}", coarse.len());
            passes_within(&samples, &coarse, tolerance);
        }
    }

    /// Samples around jumps stay at any tolerance, so they do not make the lines between them ever coarser.
    #[test]
    fn jumps_do_not_make_lines_coarser_and_coarser() {
        let jumps = way((0..4000).map(|step| (step * 2, 0.0, 0)));
        let (all, tolerance) = kept(&jumps, 0.1, 1000);
        assert_eq!(all.len(), 4000);
        assert!(tolerance < 10.0, "{tolerance}");
    }

    #[test]
    fn a_path_has_little_spare_room() {
        let mut set = TrackSet::new(world(1.0), usize::MAX);
        for (count, jump) in (1..).zip(way((0..5_000).map(|step| (step * 2, 0.0, 0)))) {
            set.push(KEY, jump);
            let kept = &set.tracks[0].1.kept;
            assert!(kept.len() == count && kept.capacity() <= count / 8 * 9 + 16, "{count}: {}", kept.capacity());
        }
    }

    #[test]
    fn samples_in_another_order_make_the_same_path() {
        let samples = way((0..400).map(|step| (step, libm::sinf(step as f32 / 60.0) * 100.0, 0)));
        let mixed: Vec<TrackPoint> = (0..400).map(|n| samples[n * 7 % 400]).collect();
        let mut set = TrackSet::new(world(1.0), 300);
        mixed.iter().for_each(|sample| set.push(KEY, *sample));
        let (_, mut track) = set.tracks.remove(0);
        track.settle();
        track.thin([0.0; 4]);
        track.settle();
        let kept = track.kept;
        let steps: Vec<u32> = kept.iter().map(|at| at.index).collect();
        assert!(steps.is_sorted() && steps.first() == Some(&0) && steps.last() == Some(&399));
        passes_within(&samples, &kept, set.precision.tolerance);
    }

    const ROWS: u32 = 400;

    /// A body on a circle of 1,000 units around a point. Row 7 has another position if one is given.
    fn circle(centre: [f64; 3], row_7: Option<f64>) -> [Vec<f64>; 3] {
        let turned = |row: u32| f64::from(row) / 30.0;
        let x = |row| centre[0] + 500.0 * libm::cos(turned(row));
        let y = |row| centre[1] + 500.0 * libm::sin(turned(row));
        let mut places = [(0..ROWS).map(x).collect(), (0..ROWS).map(y).collect(), vec![centre[2]; ROWS as usize]];
        row_7.into_iter().for_each(|at| places.iter_mut().for_each(|axis: &mut Vec<f64>| axis[7] = at));
        places
    }

    #[test]
    fn a_page_without_a_position_says_so() {
        for (at, is_noted) in [(f64::NAN, true), (0.0, false)] {
            let (side, _) = page_of(&[(); 3].map(|()| vec![at; ROWS as usize]), true);
            let noted = side.notes.iter().any(|note| note.contains("none in `bodies` has a finite position"));
            assert_eq!((side.bodies.is_empty(), noted), (is_noted, is_noted), "{at}");
        }
    }

    fn page_of(places: &[Vec<f64>; 3], is_double: bool) -> (PageSide, PageColumns) {
        let steps = || Column::new("tick", ColumnData::U32((0..ROWS).collect()));
        let times = Column::new("at_us", ColumnData::I64((0..i64::from(ROWS)).map(|row| row * 10_000).collect()));
        let axis = |values: &Vec<f64>| match is_double {
            true => ColumnData::F64(values.clone()),
            false => ColumnData::F32(values.iter().map(|at| *at as f32).collect()),
        };
        let [x, y, z] = ["x", "y", "z"].map(|name| format!("origin.{name}"));
        let columns = vec![
            steps(),
            Column::new("entity", ColumnData::U32(vec![3; ROWS as usize])),
            Column::new(x, axis(&places[0])),
            Column::new(y, axis(&places[1])),
            Column::new(z, axis(&places[2])),
        ];
        let tables = vec![Table::new(ticks::NAME, vec![steps(), times]), Table::new(bodies::NAME, columns)];
        let trace = Trace { tables, ..Trace::default() };
        let shown = PageInput { name: "", map: "", trace: &trace, log: None, rejudged: &[], notes: &[] };
        let mut columns = PageColumns::default();
        (PageSide::of(&shown, 1, &mut columns).expect("a page"), columns)
    }

    /// The largest distance on one axis between the kept samples of a body and its positions.
    fn error_of(places: &[Vec<f64>; 3], (side, columns): &(PageSide, PageColumns)) -> f64 {
        let track = &side.bodies[0];
        let steps = track.step.restored(columns);
        assert!(steps.len() > 50, "{} samples", steps.len());
        let axes = track.place.iter().zip(places);
        let off = |(span, at): (&PackedColumn, &Vec<f64>)| -> f64 {
            let restored = span.restored(columns).into_iter();
            restored.zip(&steps).map(|(found, step)| (found - at[*step as usize]).abs()).fold(0.0, f64::max)
        };
        axes.map(off).fold(0.0, f64::max)
    }

    #[test]
    fn precision_depends_on_the_extent_of_the_world_and_not_on_its_distance_from_0() {
        let far = [1e5, 1e6, -1e6, 1e9, -1e9, 1e12].map(|at| [at, -at, 0.0]);
        for centre in far.into_iter().chain([[0.0, 100.0, 1e6], [0.0; 3]]) {
            let places = circle(centre, None);
            let page = page_of(&places, true);
            assert_eq!(
                page.0.exactness,
                [TrackPrecision { unit: 1.0 / 64.0, tolerance: 0.125 * SQRT_3, degrees: 12.0 }; 2],
                "{centre:?}"
            );
            let error = error_of(&places, &page);
            assert!(error <= 1.0 / 32.0, "{centre:?}: {error}");
        }
    }

    #[test]
    fn positions_in_single_precision_are_drawn_where_the_table_has_them() {
        for at in [1e5, 1e6, 1e8] {
            let places = circle([at, -at, at], None).map(|axis| axis.iter().map(|at| f64::from(*at as f32)).collect());
            let error = error_of(&places, &page_of(&places, false));
            assert!(error <= 1.0 / 32.0, "{at}: {error}");
        }
    }

    /// The position itself is left out, or drawn far away.
    #[test]
    fn one_position_that_is_far_away_or_not_finite_does_not_change_the_others() {
        for at in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 1e30, -1e30, 3e7, 0.0] {
            for centre in [[0.0; 3], [1e6, -1e6, 1e6]] {
                let places = circle(centre, Some(at));
                let page = page_of(&places, true);
                assert_eq!(page.0.exactness[0].unit, 1.0 / 64.0, "{at} {centre:?}");
                let error = error_of(&places, &page);
                assert!(error <= 2.0, "{at} {centre:?}: {error}");
            }
        }
    }
}
