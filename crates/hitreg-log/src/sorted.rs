//! Maps and sets in key order, with the methods of `BTreeMap` and `BTreeSet`.
//!
//! [`SortedMap`] keeps its entries in a list of sorted buckets, as the `SortedDict` of Python's
//! [sortedcontainers](https://grantjenks.com/docs/sortedcontainers/implementation.html) does. A bucket holds a few
//! kilobytes, so an entry in any place costs one short move. Entries that come in order are only appended.
//!
//! hitreg has about 300 kinds of maps. A `BTreeMap` compiles to three times as much code for each pair of types.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::{Bound, Index, RangeBounds};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Bytes of a full bucket, unless its entries are large.
const BUCKET_BYTES: usize = 4096;

/// A map in the order of its keys.
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// Sorted, and none is empty.
    buckets: Vec<Vec<(K, V)>>,
    len: usize,
}

/// The place of an entry, or where it would be.
#[derive(Clone, Copy, Debug)]
struct Place {
    bucket: usize,
    row: usize,
}

impl<K, V> SortedMap<K, V> {
    /// Entries of a full bucket.
    const FULL: usize = {
        let entry = size_of::<(K, V)>();
        let entries = BUCKET_BYTES / if entry == 0 { 1 } else { entry };
        if entries < 16 { 16 } else { entries }
    };

    /// A map without entries. It allocates nothing.
    pub const fn new() -> Self {
        SortedMap { buckets: Vec::new(), len: 0 }
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.len = 0;
    }

    /// The entry with the lowest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        let (key, value) = self.buckets.first()?.first()?;
        Some((key, value))
    }

    /// The entry with the highest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        let (key, value) = self.buckets.last()?.last()?;
        Some((key, value))
    }

    /// The entry with the lowest key, to change or remove it.
    pub fn first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> {
        if self.len == 0 {
            return None;
        }
        Some(OccupiedEntry { map: self, place: Place { bucket: 0, row: 0 } })
    }

    /// Removes the entry with the lowest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.first_entry().map(OccupiedEntry::remove_entry)
    }

    /// Removes the entry with the highest key.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let bucket = self.buckets.len().checked_sub(1)?;
        let row = self.buckets[bucket].len() - 1;
        Some(self.remove_at(Place { bucket, row }))
    }

    /// The entries, by key.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.buckets, self.len)
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values, by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The values, by key, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.buckets.iter_mut().flatten().map(|(_, value)| value)
    }

    /// The values, by key.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.len = 0;
        for bucket in &mut self.buckets {
            bucket.retain_mut(|(key, value)| keep(key, value));
            self.len += bucket.len();
        }
        self.buckets.retain(|bucket| !bucket.is_empty());
    }

    fn remove_at(&mut self, at: Place) -> (K, V) {
        let bucket = &mut self.buckets[at.bucket];
        let entry = bucket.remove(at.row);
        if bucket.is_empty() {
            self.buckets.remove(at.bucket);
        }
        self.len -= 1;
        entry
    }

    fn insert_at(&mut self, mut at: Place, key: K, value: V) -> &mut V {
        self.len += 1;
        if at.bucket == self.buckets.len() {
            self.buckets.push(Vec::new());
        } else if self.buckets[at.bucket].len() >= Self::FULL {
            // An entry behind all others begins a bucket of its own, so that entries in order fill their buckets.
            let kept = if at.row == Self::FULL { Self::FULL } else { Self::FULL / 2 };
            let rest = self.buckets[at.bucket].split_off(kept);
            self.buckets.insert(at.bucket + 1, rest);
            if at.row > kept || kept == Self::FULL {
                at = Place { bucket: at.bucket + 1, row: at.row - kept };
            }
        }
        let bucket = &mut self.buckets[at.bucket];
        bucket.insert(at.row, (key, value));
        &mut bucket[at.row].1
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// The place of a key, or the place where it belongs.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        let (mut bucket, mut behind) = (0, self.buckets.len());
        if behind == 0 {
            return Err(Place { bucket: 0, row: 0 });
        }
        // The last bucket takes all keys behind the other ones.
        behind -= 1;
        while bucket < behind {
            let middle = bucket.midpoint(behind);
            let of = &self.buckets[middle];
            if of[of.len() - 1].0.borrow() < key {
                bucket = middle + 1;
            } else {
                behind = middle;
            }
        }
        let of = self.buckets[bucket].as_slice();
        let (mut row, mut behind) = (0, of.len());
        while row < behind {
            let middle = row.midpoint(behind);
            match of[middle].0.borrow().cmp(key) {
                Ordering::Less => row = middle + 1,
                Ordering::Greater => behind = middle,
                Ordering::Equal => return Ok(Place { bucket, row: middle }),
            }
        }
        Err(Place { bucket, row })
    }

    /// Whether the map has the key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(&self.buckets[at.bucket][at.row].1)
    }

    /// The value of a key, to change it.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(&mut self.buckets[at.bucket][at.row].1)
    }

    /// Sets the value of a key, and returns its last value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.buckets[at.bucket][at.row].1, value)),
            Err(at) => {
                self.insert_at(at, key, value);
                None
            }
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.remove_at(at).1)
    }

    /// The entry of a key, to look at it and fill it with one search.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.find(&key) {
            Ok(place) => Entry::Occupied(OccupiedEntry { map: self, place }),
            Err(place) => Entry::Vacant(VacantEntry { map: self, place, key }),
        }
    }

    /// The entries with keys in `range`. A range that ends before it starts has none.
    pub fn range(&self, range: impl RangeBounds<K>) -> Iter<'_, K, V> {
        let first = match range.start_bound() {
            Bound::Unbounded => Place { bucket: 0, row: 0 },
            Bound::Included(key) => self.find(key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => self.find(key).map_or_else(|at| at, |at| Place { row: at.row + 1, ..at }),
        };
        let behind = match range.end_bound() {
            Bound::Unbounded => Place { bucket: self.buckets.len(), row: 0 },
            Bound::Excluded(key) => self.find(key).unwrap_or_else(|at| at),
            Bound::Included(key) => self.find(key).map_or_else(|at| at, |at| Place { row: at.row + 1, ..at }),
        };
        Iter::between(&self.buckets, first, behind)
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SortedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for SortedMap<K, V> {}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    /// # Panics
    ///
    /// If the map does not have the key.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map has the key")
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    /// Of entries with equal keys, the last one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor(Self::new()))
    }
}

struct MapVisitor<K, V>(SortedMap<K, V>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = SortedMap<K, V>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut from: A) -> Result<Self::Value, A::Error> {
        while let Some((key, value)) = from.next_entry()? {
            self.0.insert(key, value);
        }
        Ok(self.0)
    }
}

/// The place of one key, for [`SortedMap::entry`].
#[derive(Debug)]
pub enum Entry<'a, K, V> {
    /// The map has no such key.
    Vacant(VacantEntry<'a, K, V>),
    /// The map has the key.
    Occupied(OccupiedEntry<'a, K, V>),
}

/// A key that the map does not have.
#[derive(Debug)]
pub struct VacantEntry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    place: Place,
    key: K,
}

/// An entry of the map.
#[derive(Debug)]
pub struct OccupiedEntry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    place: Place,
}

impl<'a, K, V> Entry<'a, K, V> {
    /// The value, or `value` if there was none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, or that of `value` if there was none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Entry::Vacant(entry) => entry.insert(value()),
            Entry::Occupied(entry) => entry.into_mut(),
        }
    }

    /// The value, or the default if there was none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Entry::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

impl<'a, K, V> VacantEntry<'a, K, V> {
    /// Puts the key into the map.
    pub fn insert(self, value: V) -> &'a mut V {
        self.map.insert_at(self.place, self.key, value)
    }
}

impl<'a, K, V> OccupiedEntry<'a, K, V> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.map.buckets[self.place.bucket][self.place.row].0
    }

    /// The value.
    pub fn get(&self) -> &V {
        &self.map.buckets[self.place.bucket][self.place.row].1
    }

    /// The value, to change it.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.map.buckets[self.place.bucket][self.place.row].1
    }

    /// The value, for as long as the map is borrowed.
    pub fn into_mut(self) -> &'a mut V {
        &mut self.map.buckets[self.place.bucket][self.place.row].1
    }

    /// Removes the entry, and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the entry.
    pub fn remove_entry(self) -> (K, V) {
        self.map.remove_at(self.place)
    }
}

/// The entries of a [`SortedMap`], by key.
#[derive(Debug)]
pub struct Iter<'a, K, V> {
    front: std::slice::Iter<'a, (K, V)>,
    /// The buckets between `front` and `back`.
    buckets: std::slice::Iter<'a, Vec<(K, V)>>,
    back: std::slice::Iter<'a, (K, V)>,
    len: usize,
}

/// The entries of a [`SortedMap`], by key.
#[derive(Debug)]
pub struct IntoIter<K, V> {
    front: std::vec::IntoIter<(K, V)>,
    buckets: std::vec::IntoIter<Vec<(K, V)>>,
    back: std::vec::IntoIter<(K, V)>,
    len: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn new(buckets: &'a [Vec<(K, V)>], len: usize) -> Self {
        Iter { front: [].iter(), buckets: buckets.iter(), back: [].iter(), len }
    }

    /// The entries from one place to before another.
    fn between(buckets: &'a [Vec<(K, V)>], first: Place, behind: Place) -> Self {
        let rows_of = |bucket: usize| buckets.get(bucket).map_or(&[][..], Vec::as_slice);
        if first.bucket >= behind.bucket {
            let rows = rows_of(behind.bucket);
            let first = if first.bucket == behind.bucket { first.row.min(behind.row) } else { behind.row };
            let rows = &rows[first..behind.row];
            return Iter { front: rows.iter(), buckets: [].iter(), back: [].iter(), len: rows.len() };
        }
        let (front, back) = (&rows_of(first.bucket)[first.row..], &rows_of(behind.bucket)[..behind.row]);
        let between = &buckets[first.bucket + 1..behind.bucket];
        let mut len = front.len() + back.len();
        for bucket in between {
            len += bucket.len();
        }
        Iter { front: front.iter(), buckets: between.iter(), back: back.iter(), len }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { front: self.front.clone(), buckets: self.buckets.clone(), back: self.back.clone(), len: self.len }
    }
}

/// `$entry` names the parts of an entry, `$given` is what the iterator gives of them.
macro_rules! iterate {
    ($iter:ty, ($($life:lifetime)?), $item:ty, $iter_of:ident, $entry:pat => $given:expr) => {
        impl<$($life,)? K, V> Iterator for $iter {
            type Item = $item;

            fn next(&mut self) -> Option<Self::Item> {
                loop {
                    if let Some($entry) = self.front.next() {
                        self.len -= 1;
                        return Some($given);
                    }
                    match self.buckets.next() {
                        Some(bucket) => self.front = bucket.$iter_of(),
                        None => {
                            let $entry = self.back.next()?;
                            self.len -= 1;
                            return Some($given);
                        }
                    }
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.len, Some(self.len))
            }
        }

        impl<$($life,)? K, V> DoubleEndedIterator for $iter {
            fn next_back(&mut self) -> Option<Self::Item> {
                loop {
                    if let Some($entry) = self.back.next_back() {
                        self.len -= 1;
                        return Some($given);
                    }
                    match self.buckets.next_back() {
                        Some(bucket) => self.back = bucket.$iter_of(),
                        None => {
                            let $entry = self.front.next_back()?;
                            self.len -= 1;
                            return Some($given);
                        }
                    }
                }
            }
        }

        impl<$($life,)? K, V> ExactSizeIterator for $iter {}
    };
}

iterate!(Iter<'a, K, V>, ('a), (&'a K, &'a V), iter, (key, value) => (key, value));
iterate!(IntoIter<K, V>, (), (K, V), into_iter, entry => entry);

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        let (front, back) = (Vec::new().into_iter(), Vec::new().into_iter());
        IntoIter { front, buckets: self.buckets.into_iter(), back, len: self.len }
    }
}

/// A set in the order of its values.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedSet<T>(SortedMap<T, ()>);

impl<T> SortedSet<T> {
    /// A set without values. It allocates nothing.
    pub const fn new() -> Self {
        SortedSet(SortedMap::new())
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest value.
    pub fn first(&self) -> Option<&T> {
        self.0.first_key_value().map(|(value, ())| value)
    }

    /// The highest value.
    pub fn last(&self) -> Option<&T> {
        self.0.last_key_value().map(|(value, ())| value)
    }

    /// Removes the lowest value.
    pub fn pop_first(&mut self) -> Option<T> {
        self.0.pop_first().map(|(value, ())| value)
    }

    /// Removes the highest value.
    pub fn pop_last(&mut self) -> Option<T> {
        self.0.pop_last().map(|(value, ())| value)
    }

    /// The values, sorted.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.0.keys()
    }

    /// Keeps the values for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|value, ()| keep(value));
    }
}

impl<T: Ord> SortedSet<T> {
    /// Whether the set has the value.
    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(value)
    }

    /// The value of the set that equals `value`.
    pub fn get<Q: Ord + ?Sized>(&self, value: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        let at = self.0.find(value).ok()?;
        Some(&self.0.buckets[at.bucket][at.row].0)
    }

    /// Adds a value, and returns whether it is new.
    pub fn insert(&mut self, value: T) -> bool {
        self.0.insert(value, ()).is_none()
    }

    /// Removes a value, and returns whether the set had it.
    pub fn remove<Q: Ord + ?Sized>(&mut self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(value).is_some()
    }

    /// The values in `range`. A range that ends before it starts has none.
    pub fn range(&self, range: impl RangeBounds<T>) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.0.range(range).map(|(value, ())| value)
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for SortedSet<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.insert(value);
        }
    }
}

impl<'a, T: Copy + Ord> Extend<&'a T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, values: I) {
        for value in values {
            self.insert(*value);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::new();
        set.extend(values);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for SortedSet<T> {
    fn from(values: [T; N]) -> Self {
        Self::from_iter(values)
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = std::iter::Map<Iter<'a, T, ()>, fn((&'a T, &'a ())) -> &'a T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(value, ())| value)
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::iter::Map<IntoIter<T, ()>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(value, ())| value)
    }
}

impl<T: Serialize> Serialize for SortedSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

#[cfg(test)]
mod tests;
