//! The place of one key in a [`SortedMap`], found with one search.

use super::{Place, SortedMap};

/// The place of one key, for [`SortedMap::entry`].
pub enum Entry<'a, K, V> {
    /// The map has no such key.
    Vacant(VacantEntry<'a, K, V>),
    /// The map has the key.
    Occupied(OccupiedEntry<'a, K, V>),
}

/// A key that the map does not have.
pub struct VacantEntry<'a, K, V> {
    pub(super) map: &'a mut SortedMap<K, V>,
    pub(super) place: Place,
    pub(super) key: K,
}

/// An entry of the map.
pub struct OccupiedEntry<'a, K, V> {
    pub(super) map: &'a mut SortedMap<K, V>,
    pub(super) place: Place,
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
    #[must_use]
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
    #[must_use]
    pub fn key(&self) -> &K {
        &self.map.buckets[self.place.bucket][self.place.row].0
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.map.buckets[self.place.bucket][self.place.row].1
    }

    /// The value, to change it.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.map.buckets[self.place.bucket][self.place.row].1
    }

    /// The value, for as long as the map is borrowed.
    #[must_use]
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
