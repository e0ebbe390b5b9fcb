//! Entity states: which state of an entity the server sent to which viewer after which tick.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Class, ClassId, EventTime, FieldSchema, RecordStream, cells_of};
use crate::sorted::SortedSet;
use crate::units::{EntityId, Micros, PlayerId, Tick};

/// The state of an entity after a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRecord {
    /// The tick; in an imported recording, the number of the snapshot.
    pub tick: Tick,
    /// The only client who was sent this state; `None` for a state that all viewers of the entity share.
    pub viewer: Option<PlayerId>,
    /// The entity.
    pub entity: EntityId,
    /// The class, which defines the cells.
    pub class: ClassId,
    /// The cells of the fields of the class, in order ([`CellKind::cells`](super::CellKind::cells)). Fields that only
    /// clients know are 0.
    pub cells: Vec<u32>,
}

impl StateRecord {
    /// Returns a state of class 0 that all viewers share.
    pub fn shared(tick: Tick, entity: EntityId, cells: Vec<u32>) -> StateRecord {
        StateRecord { tick, entity, cells, ..StateRecord::default() }
    }

    /// Returns the key of the state.
    pub fn key(&self) -> StateKey {
        StateKey { tick: self.tick, viewer: self.viewer, entity: self.entity, class: self.class }
    }
}

/// The key of a state in a session.
///
/// Ticks count from 1. A session that was cut out of another begins with states of tick 0, one for each entity that had a
/// state after the tick before it. Without them it begins with the states that the game spawns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    /// The tick.
    pub tick: Tick,
    /// The only client who was sent the state; `None` (shared by all viewers) sorts first.
    pub viewer: Option<PlayerId>,
    /// The entity.
    pub entity: EntityId,
    /// The class.
    pub class: ClassId,
}

/// Entity states in flat arrays, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    keys: Vec<StateKey>,
    /// End of each row's cells in `cells`.
    ends: Vec<u32>,
    cells: Vec<u32>,
}

impl States {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the keys of all rows, sorted once [`States::put_in_order`] was called.
    pub fn keys(&self) -> &[StateKey] {
        &self.keys
    }

    /// Returns the cells of all rows, concatenated.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Returns the cells of all rows for changes in place.
    pub fn cells_mut(&mut self) -> &mut [u32] {
        &mut self.cells
    }

    /// Returns the cells of a row by its index; empty if there is no such row.
    pub fn cells_of(&self, index: usize) -> &[u32] {
        if index < self.len() { &self.cells[self.cells_before(index)..self.cells_before(index + 1)] } else { &[] }
    }

    /// Returns the number of cells of the first `rows` rows.
    fn cells_before(&self, rows: usize) -> usize {
        rows.checked_sub(1).map_or(0, |last| self.ends[last] as usize)
    }

    /// Iterates over all rows.
    pub fn iter(&self) -> impl Iterator<Item = (StateKey, &[u32])> {
        self.keys.iter().enumerate().map(|(index, key)| (*key, self.cells_of(index)))
    }

    /// Appends a row. Rows may be pushed in any order, but lookups need them [in order](States::put_in_order).
    pub fn push(&mut self, key: StateKey, cells: &[u32]) {
        self.keys.push(key);
        self.cells.extend_from_slice(cells);
        self.ends.push(self.cells.len() as u32);
    }

    /// Appends the rows of another table.
    pub fn append(&mut self, later: &States) {
        let begin = self.cells.len() as u32;
        self.keys.extend_from_slice(&later.keys);
        self.ends.extend(later.ends.iter().map(|end| begin + end));
        self.cells.extend_from_slice(&later.cells);
    }

    /// Returns the states of one entity that the server sent a viewer for a tick: the viewer's own states first, then
    /// the shared ones. There are several if the server sent states of several classes.
    pub fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.own(tick, viewer, entity).chain(self.shared(tick, entity))
    }

    /// Returns the states of one entity and tick that only this viewer was sent.
    pub fn own(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.at(tick, Some(viewer), entity)
    }

    /// Returns the states of one entity and tick that all viewers of the entity share.
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

    /// Returns the states of a tick.
    pub fn of_tick(&self, tick: Tick) -> impl Iterator<Item = (StateKey, &[u32])> {
        let begin = self.keys.partition_point(|key| key.tick < tick);
        let keys = self.keys[begin..].iter().take_while(move |key| key.tick == tick).enumerate();
        keys.map(move |(place, key)| (*key, self.cells_of(begin + place)))
    }

    /// Sorts the rows by key; the sort is stable.
    pub fn put_in_order(&mut self) {
        if self.keys.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&row| (self.keys[row], row));
        let mut sorted = States::default();
        for row in order {
            sorted.push(self.keys[row], self.cells_of(row));
        }
        *self = sorted;
    }

    /// Keeps only the rows whose keys satisfy `keep`.
    pub fn retain(&mut self, keep: impl Fn(&StateKey) -> bool) {
        let was = std::mem::take(self);
        was.iter().filter(|(key, _)| keep(key)).for_each(|(key, cells)| self.push(key, cells));
    }
}

/// The time of a state is its tick.
impl RecordStream for States {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn when(&self, index: usize) -> Option<EventTime> {
        self.keys.get(index).map(|key| EventTime::In(key.tick))
    }

    fn span(&self, _: Range<usize>) -> Option<(Micros, Micros)> {
        None
    }

    fn bytes(&self, range: Range<usize>) -> usize {
        let cells = self.cells_before(range.end) - self.cells_before(range.start);
        range.len() * (size_of::<StateKey>() + size_of::<u32>()) + cells * size_of::<u32>()
    }

    fn drop_first(&mut self, count: usize) {
        let cells = self.cells_before(count);
        self.keys.drain(..count);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= cells as u32);
        self.cells.drain(..cells);
    }

    fn retain(&mut self, keep: &dyn Fn(EventTime) -> bool) {
        States::retain(self, |key| keep(EventTime::In(key.tick)));
    }

    fn move_by(&mut self, _: Micros) {}

    fn sort_by_time(&mut self) {}
}

/// Returns the names of the fields whose values differed between one viewer's state and the shared state of the same
/// entity and tick. For these fields the shared value need not be the server's state.
pub fn viewer_specific_fields<'c>(classes: &'c [Class], states: &States) -> SortedSet<&'c str> {
    let fields = |class: ClassId| classes.get(usize::from(class.0)).map_or(&[][..], |class| &class.fields);
    let mut apart = SortedSet::new();
    for (key, cells) in states.iter().filter(|(key, _)| key.viewer.is_some()) {
        for (class, shared) in states.shared(key.tick, key.entity) {
            let same = |field: &FieldSchema| cells_of(fields(class)).find(|(other, _)| other.is_same_cell(field));
            let differs = |(field, place): &(&FieldSchema, Range<usize>)| {
                same(field).is_some_and(|(_, there)| shared.get(there) != cells.get(place.clone()))
            };
            let differing = cells_of(fields(key.class)).filter(differs);
            apart.extend(differing.map(|(field, _)| field.name.as_str()));
        }
    }
    apart
}

/// A source of the states of a session or of part of one.
pub trait StateSource {
    /// Returns the states of one entity that a viewer was sent for a tick, as [`States::sent`].
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])>;
}

impl StateSource for States {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.sent(tick, viewer, entity)
    }
}

impl<S: StateSource> StateSource for &S {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        S::sent(self, tick, viewer, entity)
    }
}

/// The states of the most recent chunks, each sorted by key.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct RecentChunkStates {
    chunks: VecDeque<States>,
    /// Number of chunks dropped before the first in `chunks`.
    forgotten: u32,
}

impl RecentChunkStates {
    /// Adds the states of the next chunk.
    pub fn add(&mut self, mut states: States) {
        states.put_in_order();
        self.chunks.push_back(states);
    }

    /// Drops the states of all chunks before this one.
    pub fn forget_before(&mut self, chunk: u32) {
        while self.forgotten < chunk && self.chunks.pop_front().is_some() {
            self.forgotten += 1;
        }
    }
}

impl StateSource for RecentChunkStates {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        let has = |states: &&States| {
            let keys = states.keys();
            keys.first().is_some_and(|first| first.tick <= tick) && keys.last().is_some_and(|last| tick <= last.tick)
        };
        let mut of_tick = self.chunks.iter().filter(has);
        let (first, others) = (of_tick.next(), of_tick);
        let mut cut = Vec::new();
        // A chunk boundary can split a tick's states.
        for states in others {
            if cut.is_empty() {
                cut.extend(first);
            }
            cut.push(states);
        }
        let of_classes = |mut sent: Vec<(ClassId, _)>| {
            sent.sort_by_key(|(class, _)| *class);
            sent
        };
        let own = cut.iter().flat_map(|states| states.own(tick, viewer, entity)).collect();
        let shared = cut.iter().flat_map(|states| states.shared(tick, entity)).collect();
        let whole =
            first.filter(|_| cut.is_empty()).into_iter().flat_map(move |states| states.sent(tick, viewer, entity));
        whole.chain(of_classes(own)).chain(of_classes(shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StateKey;

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
        let row = |viewer, entity| states.sent(Tick(2), PlayerId(viewer), EntityId(entity)).next();
        assert_eq!(row(0, 0), Some((ClassId(1), &[20, 21][..])));
        assert_eq!(row(1, 0), Some((ClassId(0), &[7][..])));
        assert_eq!(states.sent(Tick(2), PlayerId(1), EntityId(0)).count(), 2, "playerState and entityState");
        assert_eq!((row(1, 3), row(1, 2)), (Some((ClassId(1), &[30, 31][..])), None));
        assert_eq!(states.of_tick(Tick(2)).count(), 3);
        states.retain(|key| key.tick == Tick(2));
        assert_eq!((states.len(), states.cells_of(2)), (3, &[7][..]));
    }

    /// Builds states from ticks, viewers, entities, classes and one cell each.
    fn states(rows: &[(u32, Option<u16>, u16, u8, u32)]) -> States {
        let mut states = States::default();
        for &(tick, viewer, entity, class, cell) in rows {
            let (tick, viewer) = (Tick(tick), viewer.map(PlayerId));
            let key = StateKey { tick, viewer, entity: EntityId(entity), class: ClassId(class.into()) };
            states.push(key, &[cell]);
        }
        states
    }

    #[test]
    fn a_tick_split_over_chunks_is_given_as_one() {
        let first = [(7, None, 1, 0, 10), (8, None, 1, 1, 11), (8, Some(0), 2, 0, 12)];
        let second = [(8, None, 1, 0, 13), (8, Some(0), 1, 1, 14), (9, None, 1, 0, 15)];
        let mut kept = RecentChunkStates::default();
        kept.add(states(&first));
        kept.add(states(&second));
        let mut whole = states(&[&first[..], &second].concat());
        whole.put_in_order();
        for tick in 6..=10 {
            for (viewer, entity) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
                let of = (Tick(tick), PlayerId(viewer), EntityId(entity));
                let recent: Vec<_> = StateSource::sent(&kept, of.0, of.1, of.2).collect();
                assert_eq!(recent, whole.sent(of.0, of.1, of.2).collect::<Vec<_>>(), "{of:?}");
            }
        }
        let sent =
            |kept: &RecentChunkStates, tick| StateSource::sent(kept, Tick(tick), PlayerId(1), EntityId(1)).count();
        assert_eq!([7, 8, 9].map(|tick| sent(&kept, tick)), [1, 2, 1]);
        kept.forget_before(1);
        assert_eq!([7, 8, 9].map(|tick| sent(&kept, tick)), [0, 1, 1]);
        kept.forget_before(9);
        assert_eq!(sent(&kept, 9), 0);
    }
}
