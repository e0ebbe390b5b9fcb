//! Values by owner: by the player or the entity whose row it is.

use hitreg_log::sorted::SortedMap;

/// The owners below this number have a place in a list.
const LOW: usize = 4096;

/// Values by owner. Owners are mostly small numbers, which are found without a search.
#[derive(Clone, Debug)]
pub(crate) struct OwnerMap<V> {
    low: Vec<Option<V>>,
    others: SortedMap<i64, V>,
}

impl<V> Default for OwnerMap<V> {
    fn default() -> OwnerMap<V> {
        OwnerMap { low: Vec::new(), others: SortedMap::new() }
    }
}

impl<V> OwnerMap<V> {
    #[inline]
    pub(crate) fn get(&self, owner: i64) -> Option<&V> {
        match place(owner) {
            Some(place) => self.low.get(place)?.as_ref(),
            None => self.others.get(&owner),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, owner: i64) -> Option<&mut V> {
        match place(owner) {
            Some(place) => self.low.get_mut(place)?.as_mut(),
            None => self.others.get_mut(&owner),
        }
    }

    /// The value of an owner, which is `first` for a new owner.
    #[inline]
    pub(crate) fn or_insert_with(&mut self, owner: i64, first: impl FnOnce() -> V) -> &mut V {
        let Some(place) = place(owner) else { return self.others.entry(owner).or_insert_with(first) };
        if place >= self.low.len() {
            self.low.resize_with(place + 1, || None);
        }
        self.low[place].get_or_insert_with(first)
    }

    /// Sets the value of an owner.
    #[inline]
    pub(crate) fn set(&mut self, owner: i64, value: V) {
        let Some(place) = place(owner) else {
            self.others.insert(owner, value);
            return;
        };
        if place >= self.low.len() {
            self.low.resize_with(place + 1, || None);
        }
        self.low[place] = Some(value);
    }

    /// The values of all owners.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.low.iter_mut().flatten().chain(self.others.values_mut())
    }

    /// All owners with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &V)> {
        let low = (0..).zip(&self.low).filter_map(|(owner, value)| Some((owner, value.as_ref()?)));
        low.chain(self.others.iter().map(|(owner, value)| (*owner, value)))
    }
}

#[inline]
fn place(owner: i64) -> Option<usize> {
    usize::try_from(owner).ok().filter(|place| *place < LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_of_any_number_have_values() {
        let owners = [0, 7, -1, 4095, 4096, i64::MAX, i64::MIN];
        let mut map = OwnerMap::default();
        for owner in owners {
            assert_eq!(map.get(owner), None);
            assert_eq!(*map.or_insert_with(owner, || owner), owner);
            assert_eq!(*map.or_insert_with(owner, || 5), owner);
            map.set(owner, owner / 2);
        }
        map.set(9, 1);
        map.set(-9, 2);
        assert!(owners.iter().all(|owner| map.get(*owner) == Some(&(owner / 2))));
        assert!(owners.iter().all(|owner| map.get_mut(*owner) == Some(&mut (owner / 2))));
        assert_eq!((map.get(9), map.get(-9), map.iter().count()), (Some(&1), Some(&2), owners.len() + 2));
    }
}
