//! Estimates the offset between two clocks from the packets in both directions.
//!
//! A packet arrives after it was sent. So each packet from the client bounds the offset from above, and each packet
//! from the server bounds it from below. The fastest packets of both directions leave an interval as wide as the
//! shortest round trip. Any offset in it is consistent with the recording.

use super::{MergeError, MergeErrorKind};
use crate::record::{TickRecord, lowest_and_highest};
use crate::units::{Micros, PlayerId};

/// The offset to add to a client's time to get the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The middle of the interval of valid offsets.
    pub offset: Micros,
    /// The largest possible error at any time of the session, also if the clocks run at different steady rates, up to
    /// 200 ppm apart. Without drift it is about half the width of the interval. `None` without packets, because ticks with
    /// equal numbers bound nothing: the client may see each tick later than the server.
    pub error: Option<Micros>,
}

impl ClockOffset {
    /// Returns the middle of an interval of valid offsets.
    fn in_middle(least: Micros, most: Micros) -> ClockOffset {
        ClockOffset { offset: least + Micros((most - least).0 / 2), error: None }
    }
}

/// A bound on the offset, with the time on the client's clock at which it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetBound {
    seen_at: Micros,
    pub(super) offset: Micros,
}

impl OffsetBound {
    /// Returns the upper bound from a packet that the client sent.
    pub(super) fn above(sent_at: Micros, arrived_at: Micros) -> OffsetBound {
        OffsetBound { seen_at: sent_at, offset: arrived_at - sent_at - Micros(1) }
    }

    /// Returns the lower bound from a packet that the client received.
    pub(super) fn below(sent_at: Micros, arrived_at: Micros) -> OffsetBound {
        OffsetBound { seen_at: arrived_at, offset: sent_at - arrived_at + Micros(1) }
    }
}

/// Returns the offset of a client whose log has no packets, by the ticks that both logs have; `None` without any.
pub(super) fn by_ticks(client: &[TickRecord], server: &[TickRecord]) -> Option<ClockOffset> {
    let offset = |own: &TickRecord| {
        let place = server.binary_search_by_key(&own.tick, |tick| tick.tick).ok()?;
        Some(server[place].at - own.at)
    };
    let (least, most) = lowest_and_highest(client.iter().filter_map(offset))?;
    Some(ClockOffset::in_middle(least, most))
}

/// Returns the offset between upper and lower bounds; `None` without bounds in one of the directions. `whose` is the
/// client's log and player.
pub(super) fn between(
    above: &OffsetBounds,
    below: &OffsetBounds,
    whose: (usize, PlayerId),
) -> Result<Option<ClockOffset>, MergeError> {
    let (above, below) = (&above.corners()[..], &below.corners()[..]);
    let most = above.iter().map(|bound| bound.offset).min();
    let least = below.iter().map(|bound| bound.offset).max();
    match least.zip(most) {
        Some((least, most)) if least > most => Err(drift(above, below, least - most, whose)),
        bounds => Ok(bounds.map(|(least, most)| {
            let found = ClockOffset::in_middle(least, most);
            ClockOffset { error: Some(greatest_error(found.offset, above, below)), ..found }
        })),
    }
}

/// The most by which the rates of two clocks are assumed to differ. Those of ordinary quartz clocks differ by less.
const RATES_APART_MOST: f64 = 200e-6;

/// Returns the most by which an offset may be wrong at any time of the session. The true offset is a straight line between
/// the bounds, so the steepest such lines are the furthest away, at the beginning or the end.
fn greatest_error(offset: Micros, above: &[OffsetBound], below: &[OffsetBound]) -> Micros {
    let level = |bound: &OffsetBound, rate: f64, at: Micros| {
        (bound.offset - offset).0 as f64 + rate * (at - bound.seen_at).0 as f64
    };
    let between_at = |rate: f64, at: Micros| {
        let most = above.iter().map(|bound| level(bound, rate, at)).fold(f64::INFINITY, f64::min);
        let least = below.iter().map(|bound| level(bound, rate, at)).fold(f64::NEG_INFINITY, f64::max);
        (least, most)
    };
    let times = above.iter().chain(below).map(|bound| bound.seen_at);
    let Some((first, last)) = lowest_and_highest(times) else { return Micros::ZERO };
    // The rates of the lines are an interval around zero. The halving leaves a rate just outside it.
    let steepest = |limit: f64| {
        let is_line = |rate: f64| {
            let (least, most) = between_at(rate, first);
            least <= most
        };
        let (mut inside, mut outside) = (0.0, limit);
        for _ in 0..if is_line(limit) { 0 } else { 40 } {
            let middle = (inside + outside) / 2.0;
            *if is_line(middle) { &mut inside } else { &mut outside } = middle;
        }
        outside
    };
    let error_at = |(rate, at): (f64, Micros)| {
        let (least, most) = between_at(rate, at);
        most.max(-least)
    };
    let rates = [steepest(-RATES_APART_MOST), steepest(RATES_APART_MOST)];
    let errors = rates.into_iter().flat_map(|rate| [(rate, first), (rate, last)]).map(error_at);
    // The unchanged offset is one of the lines, and its error is at least half the interval.
    Micros(errors.chain([error_at((0.0, first))]).fold(0.0, f64::max).ceil() as i64)
}

/// Finds the steady rate at which the bounds leave the widest interval. The width is concave in the rate, so a ternary
/// search finds the maximum.
fn drift(above: &[OffsetBound], below: &[OffsetBound], apart: Micros, (log, player): (usize, PlayerId)) -> MergeError {
    const RATE_MAX: f64 = 0.05;
    let width = |rate: f64| {
        let level = |bound: &OffsetBound| bound.offset.0 as f64 - rate * bound.seen_at.0 as f64;
        let most = above.iter().map(level).fold(f64::INFINITY, f64::min);
        let least = below.iter().map(level).fold(f64::NEG_INFINITY, f64::max);
        most - least
    };
    let (mut low, mut high) = (-RATE_MAX, RATE_MAX);
    for _ in 0..80 {
        let third = (high - low) / 3.0;
        if width(low + third) < width(high - third) {
            low += third;
        } else {
            high -= third;
        }
    }
    let rate = (low + high) / 2.0;
    let (rate_us_per_s, is_steady) = (rate * 1e6, width(rate) >= 0.0);
    MergeErrorKind::Drift { player, apart, rate_us_per_s, is_steady }.of(log)
}

/// Bounds from one direction. Those that can matter are the corners of the convex hull on the side of the offset. For
/// any steady drift rate between the clocks, the tightest bound is among these corners.
#[derive(Clone, Debug, Default)]
pub(super) struct OffsetBounds {
    /// Whether these are upper bounds; the default is lower bounds.
    are_above: bool,
    /// The bounds, or those of them that can matter.
    pub(super) kept: Vec<OffsetBound>,
}

/// The number of bounds that triggers a reduction to the hull. Measured connections have some tens of corners.
const BOUNDS_MAX: usize = 4096;

impl OffsetBounds {
    pub(super) fn above() -> OffsetBounds {
        OffsetBounds { are_above: true, ..OffsetBounds::default() }
    }

    /// Reduces many bounds to those that can matter. Returns false if these are too many as well.
    pub(super) fn reduce(&mut self) -> bool {
        if self.kept.len() < BOUNDS_MAX {
            return true;
        }
        self.kept = self.corners();
        self.kept.len() <= BOUNDS_MAX / 2
    }

    /// Returns the bounds that can matter, in the order of time.
    fn corners(&self) -> Vec<OffsetBound> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let mut hull: Vec<OffsetBound> = Vec::new();
        for bound in sorted {
            while let [.., first, second] = hull[..]
                && !self.is_corner(first, second, bound)
            {
                hull.pop();
            }
            hull.push(bound);
        }
        hull
    }

    /// Returns whether the second of three consecutive bounds is tighter than the line from the first to the third.
    fn is_corner(&self, first: OffsetBound, second: OffsetBound, third: OffsetBound) -> bool {
        let apart = |from: OffsetBound, to: OffsetBound| {
            (i128::from(to.seen_at.0 - from.seen_at.0), i128::from(to.offset.0) - i128::from(from.offset.0))
        };
        let ((to_second, up_second), (to_third, up_third)) = (apart(first, second), apart(first, third));
        let turn = to_second * up_third - to_third * up_second;
        if self.are_above { turn > 0 } else { turn < 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ArrivalRecord, PacketRecord, PlayerRecords, SnapshotRecord};
    use crate::units::{CommandSeq, Micros, SnapshotSeq, Tick};

    const CLIENT: (usize, PlayerId) = (1, PlayerId(0));

    /// Returns the offset between a client's records and the server's records of that client. The numbers of packets
    /// are their places.
    fn offset(client: &PlayerRecords, server: &PlayerRecords) -> Result<Option<ClockOffset>, MergeError> {
        let up = client.sent.iter().zip(&server.reached);
        let down = server.snapshots.iter().zip(&client.received);
        let above: Vec<OffsetBound> = up.map(|(sent, arrival)| OffsetBound::above(sent.at, arrival.at)).collect();
        let below: Vec<OffsetBound> = down.map(|(sent, arrival)| OffsetBound::below(sent.at, arrival.at)).collect();
        between_all(above, below)
    }

    fn between_all(above: Vec<OffsetBound>, below: Vec<OffsetBound>) -> Result<Option<ClockOffset>, MergeError> {
        let above = OffsetBounds { kept: above, ..OffsetBounds::above() };
        between(&above, &OffsetBounds { kept: below, ..OffsetBounds::default() }, CLIENT)
    }

    /// Records of one packet each way every 10 ms. They take 2 to 5 ms up and 3 to 7 ms down. The client's clock is
    /// `apart` behind the server's and loses `drift_ppm`.
    fn traffic(apart: Micros, drift_ppm: i64) -> (PlayerRecords, PlayerRecords) {
        let (mut client, mut server) = (PlayerRecords::default(), PlayerRecords::default());
        let on_client = |at: Micros| at - apart - Micros(at.0 * drift_ppm / 1_000_000);
        for number in 1..=2_000u32 {
            let at = Micros::from_ms(10 * i64::from(number));
            let spread = i64::from(number * 7 % 30);
            let packet = PacketRecord {
                number,
                at: on_client(at),
                newest: CommandSeq(number),
                count: 1,
                ack: SnapshotSeq(0),
                bytes: 60,
            };
            client.sent.push(packet);
            server.reached.push(ArrivalRecord { number, at: at + Micros(2_000 + 100 * spread) });
            server.snapshots.push(SnapshotRecord {
                seq: SnapshotSeq(number),
                tick: Tick(number),
                at,
                server_time: at,
                ack: CommandSeq(0),
                bytes: 100,
                choked: 0,
                entities: Vec::new(),
                effects: Vec::new(),
                extra: Vec::new(),
                timing: None,
            });
            let arrived = at + Micros(3_000 + 133 * spread);
            client.received.push(ArrivalRecord { number, at: on_client(arrived) });
        }
        (client, server)
    }

    #[test]
    fn the_true_offset_lies_within_the_error() {
        for apart in [0, 1_234_567, -99_000_001] {
            let (client, server) = traffic(Micros(apart), 0);
            let found = offset(&client, &server).expect("one fits").expect("packets of both directions");
            let error = found.error.expect("packets of both directions").0;
            assert!((found.offset.0 - apart).abs() <= error, "{apart}: {found:?}");
            // Half of the fastest round trip, of 5 ms. Lines that drift by some µs a second fit these packets, too.
            assert!((2_490..=2_600).contains(&error), "{found:?}");
        }
    }

    /// Drift moves the offset by up to 3 ms, and leaves an interval of 2 ms.
    #[test]
    fn the_error_holds_at_both_ends_of_a_session_with_drifting_clocks() {
        for drift_ppm in [0, 20, -60, 150, -150] {
            let (client, server) = traffic(Micros(77), drift_ppm);
            let found = offset(&client, &server).expect("one fits").expect("packets of both directions");
            let error = found.error.expect("packets of both directions").0;
            for at in [10_000, 20_000_000] {
                let apart = 77 + at * drift_ppm / 1_000_000;
                assert!((found.offset.0 - apart).abs() <= error, "{drift_ppm} ppm: {apart}, {found:?}");
            }
            assert!(error < 2_600 + 20 * drift_ppm.abs(), "{drift_ppm} ppm: {found:?}");
        }
    }

    /// All bounds of both directions are corners. Comparing each with each other would take minutes.
    #[test]
    fn many_corners_are_no_hindrance() {
        let count = 40_000;
        let times = |n: i64| (Micros(n * 1_000), Micros(n * 1_000 + 1_000 + n * n));
        let above = (1..=count).map(times).map(|(sent, arrived)| OffsetBound::above(sent, arrived)).collect();
        let below = (1..=count).map(times).map(|(sent, arrived)| OffsetBound::below(sent, arrived)).collect();
        let found = between_all(above, below).expect("one fits").expect("packets of both directions");
        // The fastest packets are the first ones, and the clocks may drift from there on.
        let (first, last) = (times(1).0, times(count).1);
        let most = 1_000 + (last - first).0 * 200 / 1_000_000;
        let error = found.error.expect("packets of both directions").0;
        assert!(found.offset == Micros::ZERO && (most - 10..=most).contains(&error), "{found:?}, {most}");
    }

    #[test]
    fn every_packet_arrives_after_it_was_sent() {
        let (client, server) = traffic(Micros(77), 20);
        let found = offset(&client, &server).expect("drift within the round trip is not to be seen");
        let found = found.expect("packets of both directions").offset;
        for (packet, arrival) in client.sent.iter().zip(&server.reached) {
            assert!(packet.at + found < arrival.at);
        }
        for (snapshot, arrival) in server.snapshots.iter().zip(&client.received) {
            assert!(snapshot.at < arrival.at + found);
        }
    }

    #[test]
    fn drifting_clocks_are_reported_with_their_rate() {
        let (client, server) = traffic(Micros(5_000), 800);
        let error = offset(&client, &server).expect_err("20 s at 800 ppm are more than a round trip of 5 ms");
        let MergeErrorKind::Drift { apart, rate_us_per_s, is_steady, .. } = error.kind else { panic!("{error}") };
        assert!(apart > Micros(10_000) && is_steady);
        assert!((rate_us_per_s - 800.0).abs() < 300.0, "{rate_us_per_s}");
    }

    #[test]
    fn one_direction_alone_bounds_nothing() {
        let (mut client, server) = traffic(Micros(5), 0);
        client.received.clear();
        assert_eq!(offset(&client, &server), Ok(None));
    }

    /// Returns the bounds of a round trip every 10 ms between clocks that drift apart.
    fn bounds(drift_ppm: i64, count: i64) -> [Vec<OffsetBound>; 2] {
        let late = |at: i64| {
            let on_client = Micros(at - at * drift_ppm / 1_000_000);
            let took = 2_000 + (at / 10_000 * 7_919 + 12_345) % 30_011;
            let arrived = at + took;
            let arrived_on_client = Micros(arrived - arrived * drift_ppm / 1_000_000);
            [OffsetBound::above(on_client, Micros(arrived)), OffsetBound::below(Micros(at), arrived_on_client)]
        };
        let both: Vec<[OffsetBound; 2]> = (0..count).map(|n| late(10_000 * n)).collect();
        [0, 1].map(|which| both.iter().map(|pair| pair[which]).collect())
    }

    #[test]
    fn the_kept_bounds_give_the_result_of_all_bounds() {
        for drift_ppm in [0, 3, -40, 900, -20_000] {
            let [above, below] = bounds(drift_ppm, 60_000);
            let (mut kept_above, mut kept_below) = (OffsetBounds::above(), OffsetBounds::default());
            for (kept, all) in [(&mut kept_above, &above), (&mut kept_below, &below)] {
                for bounds in all.chunks(1_000) {
                    kept.kept.extend(bounds);
                    assert!(kept.reduce(), "few corners");
                }
            }
            assert!(kept_above.kept.len() < BOUNDS_MAX && kept_below.kept.len() < BOUNDS_MAX);
            let (all, kept) = (between_all(above, below), between(&kept_above, &kept_below, CLIENT));
            let kinds = [all, kept].map(|result| result.map_err(|error| error.kind));
            match kinds {
                [
                    Err(MergeErrorKind::Drift { apart, rate_us_per_s, is_steady, .. }),
                    Err(MergeErrorKind::Drift {
                        apart: kept_apart,
                        rate_us_per_s: kept_rate,
                        is_steady: kept_steady,
                        ..
                    }),
                ] => {
                    assert_eq!((apart, is_steady), (kept_apart, kept_steady));
                    assert!((rate_us_per_s - kept_rate).abs() < 0.01, "{rate_us_per_s} {kept_rate}");
                    // The rate is per second of the client's clock.
                    let rate = drift_ppm as f64 / (1.0 - drift_ppm as f64 / 1e6);
                    assert!(is_steady && (rate_us_per_s - rate).abs() < 100.0, "{rate_us_per_s} {rate}");
                }
                [all, kept] => assert_eq!(all, kept, "{drift_ppm}"),
            }
        }
    }

    #[test]
    fn too_many_corners_are_reported() {
        let mut bounds = OffsetBounds::above();
        let curve = |n: i64| OffsetBound { seen_at: Micros(n), offset: Micros(n * n) };
        bounds.kept.extend((0..5_000).map(curve));
        assert!(!bounds.reduce());
    }
}
