//! Entities' states: which entity was sent to whom after which tick.

use std::collections::BTreeSet;

use super::{Class, ClassId, Field};
use crate::units::{EntityId, PlayerId, Tick};

/// An entity after a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRecord {
    /// The tick; in an imported recording, the number of the snapshot.
    pub tick: Tick,
    /// The only client who was sent this state; `None` for all who were sent the entity at all.
    pub viewer: Option<PlayerId>,
    /// The entity.
    pub entity: EntityId,
    /// Which cells there are.
    pub class: ClassId,
    /// The cells, as many as the class has fields; those that only clients know are 0.
    pub cells: Vec<u32>,
}

impl StateRecord {
    /// A state of the first class, the same for all who are sent it.
    pub fn shared(tick: Tick, entity: EntityId, cells: Vec<u32>) -> StateRecord {
        StateRecord { tick, entity, cells, ..StateRecord::default() }
    }

    /// Which state it is.
    pub fn key(&self) -> StateKey {
        StateKey { tick: self.tick, viewer: self.viewer, entity: self.entity, class: self.class }
    }
}

/// Which state of a session it is.
///
/// Ticks count from 1. States of tick 0, one for each player, are what a session begins with that was cut out of another;
/// without them it begins with what the game spawns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    /// The tick.
    pub tick: Tick,
    /// The only client who was sent it; `None` comes first, and is all who were sent the entity.
    pub viewer: Option<PlayerId>,
    /// The entity.
    pub entity: EntityId,
    /// The class.
    pub class: ClassId,
}

/// Entity states, held flat, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    keys: Vec<StateKey>,
    /// Where each row's cells end.
    ends: Vec<u32>,
    cells: Vec<u32>,
}

impl States {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The rows' keys, in order once [`States::put_in_order`] was called.
    pub fn keys(&self) -> &[StateKey] {
        &self.keys
    }

    /// All rows' cells, one after the other.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The cells, to be changed in place.
    pub fn cells_mut(&mut self) -> &mut [u32] {
        &mut self.cells
    }

    /// A row's cells, by its place; empty where there is no such row.
    pub fn cells_of(&self, index: usize) -> &[u32] {
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(begin);
        &self.cells[begin as usize..end as usize]
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (StateKey, &[u32])> {
        self.keys.iter().enumerate().map(|(index, key)| (*key, self.cells_of(index)))
    }

    /// Appends a row. Rows may come out of order; lookups need them [in order](States::put_in_order).
    pub fn push(&mut self, key: StateKey, cells: &[u32]) {
        self.keys.push(key);
        self.cells.extend_from_slice(cells);
        self.ends.push(self.cells.len() as u32);
    }

    /// Appends rows of another.
    pub fn append(&mut self, later: &States) {
        let begin = self.cells.len() as u32;
        self.keys.extend_from_slice(&later.keys);
        self.ends.extend(later.ends.iter().map(|end| begin + end));
        self.cells.extend_from_slice(&later.cells);
    }

    /// Forgets all rows, and keeps the room.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.cells.clear();
    }

    /// The states of one entity that a viewer was sent of a tick, its own before those for everyone. More than one where it was
    /// sent states of several classes.
    pub fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.own(tick, viewer, entity).chain(self.shared(tick, entity))
    }

    /// The states of one entity of a tick that one viewer alone was sent.
    pub fn own(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.at(tick, Some(viewer), entity)
    }

    /// The states of one entity that everyone was sent of a tick who was sent the entity.
    pub fn shared(&self, tick: Tick, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.at(tick, None, entity)
    }

    fn at(&self, tick: Tick, viewer: Option<PlayerId>, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        let first = StateKey { tick, viewer, entity, class: ClassId(0) };
        let begin = self.keys.partition_point(|key| *key < first);
        let of = move |key: &&StateKey| (key.tick, key.viewer, key.entity) == (tick, viewer, entity);
        let keys = self.keys[begin..].iter().take_while(of).enumerate();
        keys.map(move |(place, key)| (key.class, self.cells_of(begin + place)))
    }

    /// What a viewer was sent of an entity after a tick; of states of several classes, the first.
    pub fn row(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> Option<(ClassId, &[u32])> {
        self.sent(tick, viewer, entity).next()
    }

    /// The states of a tick.
    pub fn of_tick(&self, tick: Tick) -> impl Iterator<Item = (StateKey, &[u32])> {
        let begin = self.keys.partition_point(|key| key.tick < tick);
        let keys = self.keys[begin..].iter().take_while(move |key| key.tick == tick).enumerate();
        keys.map(move |(place, key)| (*key, self.cells_of(begin + place)))
    }

    /// Puts the rows into the order of their keys; equal ones stay as they came.
    pub fn put_in_order(&mut self) {
        if self.keys.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&row| self.keys[row]);
        let mut sorted = States::default();
        for row in order {
            sorted.push(self.keys[row], self.cells_of(row));
        }
        *self = sorted;
    }

    /// Forgets the first rows.
    pub(crate) fn drop_first(&mut self, rows: usize) {
        let Some(last) = rows.checked_sub(1).and_then(|last| self.ends.get(last)).copied() else { return };
        self.keys.drain(..rows);
        self.ends.drain(..rows);
        self.ends.iter_mut().for_each(|end| *end -= last);
        self.cells.drain(..last as usize);
    }

    /// Keeps the rows whose keys are wanted.
    pub fn retain(&mut self, keep: impl Fn(&StateKey) -> bool) {
        let was = std::mem::take(self);
        was.iter().filter(|(key, _)| keep(key)).for_each(|(key, cells)| self.push(key, cells));
    }

    /// What the rows take in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.ends[..]) + size_of_val(&self.cells[..])
    }
}

/// The fields of which one viewer was sent other values than others: what everyone was sent of them need not be the server's
/// state.
pub fn sent_differently<'c>(classes: &'c [Class], states: &States) -> BTreeSet<&'c str> {
    let fields = |class: ClassId| classes.get(usize::from(class.0)).map_or(&[][..], |class| &class.fields);
    let mut apart = BTreeSet::new();
    for (key, cells) in states.iter().filter(|(key, _)| key.viewer.is_some()) {
        for (class, shared) in states.shared(key.tick, key.entity) {
            let same = |field: &Field| fields(class).iter().position(|other| other.is_same_cell(field));
            let differs =
                |(field, cell): &(&Field, &u32)| same(field).is_some_and(|place| shared.get(place) != Some(*cell));
            let differing = fields(key.class).iter().zip(cells).filter(differs);
            apart.extend(differing.map(|(field, _)| field.name.as_str()));
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_shown_its_own_states_before_everyones() {
        let key = |tick, viewer: Option<u16>, entity, class| StateKey {
            tick: Tick(tick),
            viewer: viewer.map(PlayerId),
            entity: EntityId(entity),
            class: ClassId(class),
        };
        let mut states = States::default();
        states.push(key(2, None, 0, 1), &[20, 21]);
        states.push(key(1, None, 0, 1), &[10, 11]);
        states.push(key(2, Some(1), 0, 0), &[7]);
        states.push(key(2, None, 3, 1), &[30, 31]);
        states.put_in_order();
        let row = |viewer, entity| states.row(Tick(2), PlayerId(viewer), EntityId(entity));
        assert_eq!(row(0, 0), Some((ClassId(1), &[20, 21][..])));
        assert_eq!(row(1, 0), Some((ClassId(0), &[7][..])));
        assert_eq!(states.sent(Tick(2), PlayerId(1), EntityId(0)).count(), 2, "playerState and entityState");
        assert_eq!((row(1, 3), row(1, 2)), (Some((ClassId(1), &[30, 31][..])), None));
        assert_eq!(states.of_tick(Tick(2)).count(), 3);
        states.retain(|key| key.tick == Tick(2));
        assert_eq!((states.len(), states.cells_of(2)), (3, &[7][..]));
    }
}
