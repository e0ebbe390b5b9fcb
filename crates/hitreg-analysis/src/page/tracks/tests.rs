use super::*;

const KEY: TrackKey = [0; 3];

fn world(tolerance: f32) -> TrackWorld {
    TrackWorld { origin: [0.0; 3], precision: TrackPrecision { unit: 1.0, tolerance, degrees: 12.0 } }
}

/// A path along x, with a step every 10 ms.
fn way(places: impl IntoIterator<Item = (u32, f32, u8)>) -> Vec<TrackPoint> {
    let step = |index: u32| ClockStep { index, at_us: i64::from(index) * 10_000 };
    let sample = |(index, x, mark)| TrackPoint { step: step(index), place: [x, 0.0, 0.0], yaw: None, mark };
    places.into_iter().map(sample).collect()
}

/// The kept samples of one path, and the tolerance of its lines.
fn kept(samples: &[TrackPoint], tolerance: f32, most: usize) -> (Vec<TrackPoint>, f32) {
    let mut set = TrackSet::new(world(tolerance), most);
    samples.iter().for_each(|sample| set.push(KEY, *sample));
    let mut track = set.tracks.pop().map_or_else(Track::default, |(_, track)| track);
    track.settle();
    (track.kept.iter().map(|knot| knot.point()).collect(), set.precision.tolerance)
}

fn passes_within(samples: &[TrackPoint], kept: &[TrackPoint], tolerance: f32) {
    for pair in kept.windows(2) {
        let (from, to) = (&pair[0], &pair[1]);
        let (begin, end) = (from.step.at_us, to.step.at_us);
        for sample in samples.iter().filter(|sample| (begin..end).contains(&sample.step.at_us)) {
            let share = (sample.step.at_us - begin) as f32 / (end - begin) as f32;
            let drawn = |axis: usize| from.place[axis] + (to.place[axis] - from.place[axis]) * share;
            let off: f32 = (0..3).map(|axis| (drawn(axis) - sample.place[axis]).powi(2)).sum();
            assert!(off.sqrt() <= tolerance + 1e-3, "{tolerance}: {} off at {:?}", off.sqrt(), sample.step);
        }
    }
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
        samples.iter_mut().for_each(|sample| sample.step.at_us += more_us(sample.step.index));
        let times: Vec<i64> = samples.iter().map(|sample| sample.step.at_us).collect();
        let latest = |n: usize| times[..=n].iter().copied().max().unwrap_or_default();
        (0..).zip(&mut samples).for_each(|(n, sample)| sample.step.at_us = latest(n));
        let (kept, _) = kept(&samples, 1.0, usize::MAX);
        // At the time of several samples, the page draws the last one.
        let mut drawn = samples.clone();
        drawn.reverse();
        drawn.dedup_by_key(|sample| sample.step.at_us);
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
        |samples: &[TrackPoint]| kept(samples, 1.0, usize::MAX).0.iter().map(|at| at.step.index).collect::<Vec<_>>();
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
    let kept: Vec<TrackPoint> = track.kept.iter().map(|knot| knot.point()).collect();
    let steps: Vec<u32> = kept.iter().map(|at| at.step.index).collect();
    assert!(steps.is_sorted() && steps.first() == Some(&0) && steps.last() == Some(&399));
    passes_within(&samples, &kept, set.precision.tolerance);
}
