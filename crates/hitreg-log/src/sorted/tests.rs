//! The maps and sets are compared with those of the standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use proptest::prelude::*;

use super::{Entry, SortedMap, SortedSet};

/// So large that a bucket has 16 entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value(u32, [u64; 32]);

impl Value {
    fn new(number: u32) -> Self {
        Value(number, [u64::from(number); 32])
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Append,
    Fill(u16),
    Change(u16),
    Remove(u16),
    RemoveOccupied(u16),
    PopFirst,
    PopLast,
    RetainFrom(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u16..400;
    prop_oneof![
        8 => key.clone().prop_map(Step::Insert),
        4 => Just(Step::Append),
        4 => key.clone().prop_map(Step::Fill),
        2 => key.clone().prop_map(Step::Change),
        2 => key.clone().prop_map(Step::Remove),
        1 => key.clone().prop_map(Step::RemoveOccupied),
        1 => Just(Step::PopFirst),
        1 => Just(Step::PopLast),
        1 => (0u16..60).prop_map(Step::RetainFrom),
    ]
}

proptest! {
    #[test]
    fn a_map_does_what_a_btree_map_does(
        steps in prop::collection::vec(step(), 0..600),
        (from, to) in (0u16..420, 0u16..420),
        turns in prop::collection::vec(any::<bool>(), 0..700),
    ) {
        let (mut map, mut expected) = (SortedMap::new(), BTreeMap::new());
        for (number, step) in (0..).zip(steps) {
            let value = Value::new(number);
            match step {
                Step::Insert(key) => prop_assert_eq!(map.insert(key, value.clone()), expected.insert(key, value)),
                Step::Append => {
                    let key = expected.last_key_value().map_or(0, |(last, _)| last + 1);
                    prop_assert_eq!(map.insert(key, value.clone()), expected.insert(key, value));
                }
                Step::Fill(key) => {
                    prop_assert_eq!(map.entry(key).or_insert(value.clone()), expected.entry(key).or_insert(value));
                }
                Step::Change(key) => {
                    let _ = map.entry(key).and_modify(|value| value.0 += 1);
                    expected.entry(key).and_modify(|value| value.0 += 1);
                    prop_assert_eq!(map.get_mut(&key), expected.get_mut(&key));
                }
                Step::Remove(key) => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                Step::RemoveOccupied(key) => {
                    let removed = match map.entry(key) {
                        Entry::Occupied(entry) => Some(entry.remove_entry()),
                        Entry::Vacant(_) => None,
                    };
                    prop_assert_eq!(removed, expected.remove_entry(&key));
                }
                Step::PopFirst => prop_assert_eq!(map.pop_first(), expected.pop_first()),
                Step::PopLast => prop_assert_eq!(map.pop_last(), expected.pop_last()),
                Step::RetainFrom(key) => {
                    map.retain(|of, _| *of >= key);
                    expected.retain(|of, _| *of >= key);
                }
            }
            prop_assert_eq!(map.len(), expected.len());
            prop_assert!(map.buckets.iter().all(|bucket| !bucket.is_empty()));
        }
        prop_assert!(map.iter().eq(&expected) && map.iter().rev().eq(expected.iter().rev()));
        prop_assert!(map.keys().eq(expected.keys()) && map.values_mut().eq(expected.values_mut()));
        prop_assert_eq!(map.first_key_value(), expected.first_key_value());
        prop_assert_eq!(map.last_key_value(), expected.last_key_value());
        prop_assert!((0..420).all(|key| map.get(&key) == expected.get(&key)));
        prop_assert_eq!(map.is_empty(), expected.is_empty());
        prop_assert_eq!(format!("{map:?}"), format!("{expected:?}"));

        // Ranges, and iterators that are read from both ends.
        let bounds = (Bound::Excluded(from.min(to)), Bound::Included(to.max(from)));
        if from != to {
            prop_assert!(map.range(bounds).eq(expected.range(bounds)));
            prop_assert_eq!(map.range(bounds).len(), expected.range(bounds).count());
        }
        prop_assert!(map.range(from.min(to)..to.max(from)).rev().eq(expected.range(from.min(to)..to.max(from)).rev()));
        prop_assert!(map.range(from..).eq(expected.range(from..)) && map.range(..=to).eq(expected.range(..=to)));
        prop_assert_eq!(map.range(to.max(from)..to.min(from)).len(), 0);
        let (mut iter, mut expected_iter) = (map.clone().into_iter(), expected.clone().into_iter());
        let (mut borrowed, mut expected_borrowed) = (map.iter(), expected.iter());
        for turn in turns {
            prop_assert_eq!(iter.len(), expected_iter.len());
            if turn {
                prop_assert_eq!(iter.next(), expected_iter.next());
                prop_assert_eq!(borrowed.next(), expected_borrowed.next());
            } else {
                prop_assert_eq!(iter.next_back(), expected_iter.next_back());
                prop_assert_eq!(borrowed.next_back(), expected_borrowed.next_back());
            }
        }

        // Equality does not depend on the buckets.
        let copy: SortedMap<u16, Value> = expected.into_iter().rev().collect();
        prop_assert_eq!(&copy, &map);
    }

    #[test]
    fn a_set_does_what_a_btree_set_does(values: Vec<u8>, removed: Vec<u8>, first in 0u8..255) {
        let (mut set, mut expected): (SortedSet<u8>, BTreeSet<u8>) =
            (values.iter().copied().collect(), values.iter().copied().collect());
        for value in removed {
            prop_assert_eq!(set.remove(&value), expected.remove(&value));
            prop_assert_eq!((set.contains(&value), set.get(&value)), (false, None));
        }
        prop_assert!(set.range(first..).eq(expected.range(first..)) && set.iter().eq(&expected));
        prop_assert_eq!((set.first(), set.last(), set.len()), (expected.first(), expected.last(), expected.len()));
        prop_assert_eq!(format!("{set:?}"), format!("{expected:?}"));
        prop_assert_eq!(rmp_serde::to_vec(&set).expect("written"), rmp_serde::to_vec(&expected).expect("written"));
        let map: SortedMap<u8, bool> = set.iter().map(|value| (*value, value % 2 == 0)).collect();
        let packed = rmp_serde::to_vec(&map).expect("written");
        prop_assert_eq!(crate::serial::from_msgpack::<SortedMap<u8, bool>>(&packed).expect("read"), map);
        prop_assert_eq!((set.pop_first(), set.pop_last()), (expected.pop_first(), expected.pop_last()));
        prop_assert!(set.into_iter().eq(expected));
    }
}

#[test]
fn entries_in_order_fill_their_buckets() {
    let map: SortedMap<u64, u64> = (0..100_000).map(|key| (key, key)).collect();
    let full = SortedMap::<u64, u64>::FULL;
    assert_eq!(full, 256);
    assert!(map.buckets[..map.buckets.len() - 1].iter().all(|bucket| bucket.len() == full));
    // In any other order, buckets are at least half full.
    let map: SortedMap<u64, u64> = (0..100_000).rev().map(|key| (key, key)).collect();
    assert!(map.buckets.iter().all(|bucket| (full / 2..=full).contains(&bucket.len())));
}
