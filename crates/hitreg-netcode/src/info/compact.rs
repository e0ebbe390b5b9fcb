//! Large collections of numbers in little memory: sets of packet numbers, and counts of times.

use super::Percentiles;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::Micros;
use hitreg_log::varint::{Cursor, put_varint};

/// A set of numbers, stored as spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberSet {
    /// The lowest spans, which do not change.
    old: PackedSpans,
    /// First and last number of each other span.
    spans: SortedMap<u32, u32>,
    /// The last span, which grows most often.
    tail: Option<(u32, u32)>,
    count: usize,
}

impl NumberSet {
    /// Adds a number; false if the set already has it.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let is_new = match &mut self.tail {
            Some((_, last)) if last.checked_add(1) == Some(number) => {
                *last = number;
                true
            }
            Some((first, last)) if *first <= number && number <= *last => false,
            Some((first, _)) if number < *first => self.insert_before(number),
            tail => {
                self.spans.extend(tail.replace((number, number)));
                self.archive();
                true
            }
        };
        self.count += usize::from(is_new);
        is_new
    }

    /// Moves the lower spans to `old` when there are many.
    fn archive(&mut self) {
        if self.spans.len() < 2 * OPEN {
            return;
        }
        for _ in 0..OPEN {
            // A late number below the stored spans stays in `spans`.
            let Some((first, last)) = self.spans.range(self.old.end..).next().map(|(first, last)| (*first, *last))
            else {
                return;
            };
            self.spans.remove(&first);
            self.old.push(first, last);
        }
    }

    /// Adds a number below the last span.
    fn insert_before(&mut self, number: u32) -> bool {
        if self.old.has(number) {
            return false;
        }
        let before = self.spans.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| number <= last) {
            return false;
        }
        let first = match before {
            Some((first, last)) if last + 1 == number => first,
            _ => number,
        };
        let last = self.spans.remove(&(number + 1)).unwrap_or(number);
        match &mut self.tail {
            Some((begin, _)) if *begin == last + 1 => {
                *begin = first;
                self.spans.remove(&first);
            }
            _ => {
                self.spans.insert(first, last);
            }
        }
        true
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn extend(&mut self, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            self.insert(number);
        }
    }
}

/// How many spans remain open, so that late numbers can extend them.
const OPEN: usize = 512;

/// Ascending spans in a compact form.
#[derive(Clone, Debug, Default)]
struct PackedSpans {
    /// For each span: the distance from the previous span's end, and the number of its numbers.
    bytes: Vec<u8>,
    /// For the first span of each block: its first number, and the index of its bytes.
    places: Vec<(u32, usize)>,
    len: usize,
    /// The last number plus one.
    end: u32,
}

/// How many spans form a block. A lookup reads one block.
const BLOCK: usize = 64;

impl PackedSpans {
    /// Adds a span. Its last number must be below `u32::MAX`.
    fn push(&mut self, first: u32, last: u32) {
        if self.len.is_multiple_of(BLOCK) {
            self.places.push((first, self.bytes.len()));
            self.end = first;
        }
        put_varint(&mut self.bytes, (first - self.end).into());
        put_varint(&mut self.bytes, (last - first + 1).into());
        (self.len, self.end) = (self.len + 1, last + 1);
    }

    fn has(&self, number: u32) -> bool {
        let after = self.places.partition_point(|(first, _)| *first <= number);
        let Some((first, place)) = after.checked_sub(1).map(|block| self.places[block]) else { return false };
        let (mut from, mut end) = (Cursor::new(&self.bytes[place..]), u64::from(first));
        for _ in 0..BLOCK {
            let (Ok(gap), Ok(numbers)) = (from.varint(), from.varint()) else { return false };
            if u64::from(number) < end + gap {
                return false;
            }
            end += gap + numbers;
            if u64::from(number) < end {
                return true;
            }
        }
        false
    }
}

/// How many different times are counted without rounding.
const MOST: usize = 1 << 13;

/// Times in any order, counted by value. Beyond [`MOST`] different values, times with the same first twelve binary digits
/// are counted as one value. Percentiles are then too low by less than 1/2000. The result does not depend on the order of
/// the times.
#[derive(Debug, Default)]
pub(super) struct TimeCounts {
    counts: SortedMap<i64, u64>,
    /// Whether there are too many different values, so that values are rounded.
    many: bool,
}

impl TimeCounts {
    pub(super) fn add(&mut self, time: Micros) {
        self.count(time.0, 1);
    }

    /// Adds all times of another collection.
    pub(super) fn add_all(&mut self, others: &TimeCounts) {
        if others.many && !self.many {
            self.round();
        }
        others.counts.iter().for_each(|(time, count)| self.count(*time, *count));
    }

    /// Nearest-rank percentiles, in milliseconds.
    pub(super) fn percentiles(&self) -> Percentiles {
        let all: u64 = self.counts.values().sum();
        let at = |percent: f64| {
            let rank = (libm::ceil(percent / 100.0 * all as f64) as u64).max(1);
            let mut so_far = 0;
            let reached = self.counts.iter().find(|(_, count)| {
                so_far += **count;
                so_far >= rank
            });
            reached.map(|(time, _)| Micros(*time).as_ms_f64())
        };
        Percentiles { p5: at(5.0), p50: at(50.0), p95: at(95.0), p99: at(99.0) }
    }

    /// All times, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Micros> + '_ {
        self.counts.iter().flat_map(|(time, count)| std::iter::repeat_n(Micros(*time), *count as usize))
    }

    fn count(&mut self, time: i64, count: u64) {
        let time = if self.many { rounded(time) } else { time };
        *self.counts.entry(time).or_default() += count;
        if !self.many && self.counts.len() > MOST {
            self.round();
        }
    }

    fn round(&mut self) {
        self.many = true;
        for (time, count) in std::mem::take(&mut self.counts) {
            self.count(time, count);
        }
    }
}

/// Rounds towards zero to twelve binary digits.
fn rounded(time: i64) -> i64 {
    const DIGITS: u32 = 12;
    let size = time.unsigned_abs();
    let without = (u64::BITS - size.leading_zeros()).saturating_sub(DIGITS);
    // The magnitude of `i64::MIN` does not fit a positive `i64`, hence the wrapping negation.
    let size = (size >> without << without) as i64;
    if time < 0 { size.wrapping_neg() } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::sorted::SortedSet;
    use hitreg_log::stats::percentile;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_form_a_set(numbers in prop::collection::vec(prop_oneof![0u32..40, 4_294_967_290..=u32::MAX], 0..60)) {
            let (mut known, mut set) = (NumberSet::default(), SortedSet::new());
            for number in numbers {
                prop_assert_eq!(known.insert(number), set.insert(number));
                prop_assert_eq!(known.count(), set.len());
            }
            let gaps = set.iter().zip(set.iter().skip(1)).filter(|(one, next)| *next - *one > 1).count();
            prop_assert_eq!(known.spans.len(), gaps);
        }
    }

    /// Every seventh number is missing, and some arrive late or twice.
    #[test]
    fn old_spans_stay_in_the_set() {
        let (mut known, mut set) = (NumberSet::default(), SortedSet::new());
        for number in (0u32..60_000).filter(|number| number % 7 != 3) {
            let late = number.wrapping_mul(2_654_435_761) % (number + 1);
            for number in [number, if number % 50 == 0 { late } else { number }] {
                assert_eq!(known.insert(number), set.insert(number), "{number}");
            }
        }
        assert_eq!(known.count(), set.len());
        assert!(known.old.len > 5_000 && known.spans.len() < 2_000, "{} and {}", known.old.len, known.spans.len());
        assert!(known.old.bytes.len() < 3 * known.old.len);
    }

    #[test]
    fn percentiles_equal_those_of_sorted_times() {
        let mut all: Vec<Micros> = (0..100_001i64).map(|n| Micros(n * 7919 % 997 - 100)).collect();
        let (mut times, mut others) = (TimeCounts::default(), TimeCounts::default());
        for (n, time) in all.iter().enumerate() {
            if n % 3 == 0 { others.add(*time) } else { times.add(*time) }
        }
        times.add_all(&others);
        let found = times.percentiles();
        let mut given: Vec<Micros> = times.iter().collect();
        given.sort_unstable();
        all.sort_unstable();
        assert_eq!(given, all);
        let at = |percent| percentile(&all, percent).map(Micros::as_ms_f64);
        assert_eq!([found.p5, found.p50, found.p95, found.p99], [5.0, 50.0, 95.0, 99.0].map(at));
        assert!(times.counts.len() < 1_000);
        assert_eq!(TimeCounts::default().percentiles(), Percentiles::default());
        let ends = [Micros(i64::MIN), Micros(i64::MAX)];
        let mut far = TimeCounts::default();
        ends.into_iter().rev().for_each(|time| far.add(time));
        assert_eq!(far.iter().collect::<Vec<_>>(), ends);
    }

    /// Memory stays bounded for any number of times, and the result does not depend on their order.
    #[test]
    fn many_times_take_little_memory() {
        let time = |n: u32| Micros(i64::from(n.wrapping_mul(2_654_435_761) >> 14) - 1_000);
        let room = |count: u32| {
            let (mut there, mut back, mut halves) =
                (TimeCounts::default(), TimeCounts::default(), TimeCounts::default());
            (0..count).for_each(|n| there.add(time(n)));
            (0..count).rev().for_each(|n| back.add(time(n)));
            let mut half = TimeCounts::default();
            (0..count).for_each(|n| if n % 2 == 0 { halves.add(time(n)) } else { half.add(time(n)) });
            halves.add_all(&half);
            let found = there.percentiles();
            assert_eq!((found, found), (back.percentiles(), halves.percentiles()));
            let mut all: Vec<Micros> = (0..count).map(time).collect();
            all.sort_unstable();
            for (percent, approximate) in [(5.0, found.p5), (50.0, found.p50), (95.0, found.p95), (99.0, found.p99)] {
                let exact = percentile(&all, percent).map(Micros::as_ms_f64).expect("there are some");
                let approximate = approximate.expect("there are some");
                assert!(approximate <= exact && (exact - approximate) * 2_000.0 < exact, "{approximate} of {exact}");
            }
            there.counts.len()
        };
        assert!(room(7_000) > 6_000);
        let (some, more) = (room(400_000), room(1_200_000));
        assert!(more <= some + some / 10 && more < 3 * MOST, "{some} and {more}");
    }

    #[test]
    fn rounding_keeps_the_order_and_is_near() {
        let edges = [0, 1, 4_095, 4_096, 4_097, 8_191, 8_192, 1 << 40, i64::MAX - 1, i64::MAX];
        let mut last = i64::MIN;
        for time in edges.iter().rev().map(|time| -time).chain(edges) {
            assert!(rounded(time) >= last && (time - rounded(time)).abs() <= time.abs() / 2_048, "{time}");
            last = rounded(time);
        }
        assert_eq!(rounded(i64::MIN), i64::MIN);
    }
}
