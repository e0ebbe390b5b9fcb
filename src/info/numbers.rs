//! Numbers of packets that came, of which most follow on the one before.

use std::collections::BTreeMap;

/// A set of numbers, as spans.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The first of each span, and its last.
    spans: BTreeMap<u32, u32>,
    /// The last span.
    tail: Option<(u32, u32)>,
    count: usize,
}

impl Numbers {
    /// Adds a number; false where it is there already.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let is_new = match &mut self.tail {
            Some((_, last)) if last.checked_add(1) == Some(number) => {
                *last = number;
                true
            }
            Some((first, last)) if *first <= number && number <= *last => false,
            Some((first, _)) if number < *first => self.insert_before(number),
            tail => {
                self.spans.extend(tail.replace((number, number)));
                true
            }
        };
        self.count += usize::from(is_new);
        is_new
    }

    /// A number below the last span.
    fn insert_before(&mut self, number: u32) -> bool {
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

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn highest(&self) -> Option<u32> {
        self.tail.map(|(_, last)| last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set(numbers in prop::collection::vec(prop_oneof![0u32..40, 4_294_967_290..=u32::MAX], 0..60)) {
            let (mut known, mut set) = (Numbers::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(known.insert(number), set.insert(number));
                prop_assert_eq!((known.count(), known.highest()), (set.len(), set.last().copied()));
            }
            let gaps = set.iter().zip(set.iter().skip(1)).filter(|(one, next)| *next - *one > 1).count();
            prop_assert_eq!(known.spans.len(), gaps);
        }
    }
}
