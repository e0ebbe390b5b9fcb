//! A set, as a [`SortedMap`] without values.

use std::borrow::Borrow;
use std::ops::RangeBounds;

use serde::ser::{Serialize, Serializer};

use super::SortedMap;

/// A set in the order of its values.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedSet<T>(SortedMap<T, ()>);

impl<T> SortedSet<T> {
    /// A set without values. It allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        SortedSet(SortedMap::new())
    }

    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest value.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.0.first_key_value().map(|(value, ())| value)
    }

    /// The highest value.
    #[must_use]
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
    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(value)
    }

    /// The value of the set that equals `value`.
    #[must_use]
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
    type IntoIter = std::iter::Map<super::Iter<'a, T, ()>, fn((&'a T, &'a ())) -> &'a T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(value, ())| value)
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::iter::Map<super::IntoIter<T, ()>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(value, ())| value)
    }
}

impl<T: Serialize> Serialize for SortedSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}
