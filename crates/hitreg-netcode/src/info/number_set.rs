//! Sets of packet numbers in little memory.

use hitreg_log::sorted::SortedMap;
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
        if self.spans.len() < 2 * OPEN_SPANS {
            return;
        }
        for _ in 0..OPEN_SPANS {
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
const OPEN_SPANS: usize = 512;

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

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::sorted::SortedSet;
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
}
