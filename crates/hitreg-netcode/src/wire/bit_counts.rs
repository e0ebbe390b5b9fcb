//! Counts of a snapshot's bits by purpose, taken while they are written.

use crate::game::{Body, Category, FieldSchema, fields_by_cell};
use crate::state::state;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::EntityId;

/// The number of categories.
const CATEGORIES: usize = Category::ALL.len();

/// The bits of a snapshot's datagrams by purpose. The parts add up to all bits of the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotBitCounts {
    /// Values of fields, by the field's category for the receiving client.
    pub values: [u32; CATEGORIES],
    /// The naming of entities and fields: types, ids, controllers, bases, bitfields and masks.
    pub naming: u32,
    /// Effects, warnings, notices and the packet echo.
    pub events: u32,
    /// Headers, `FRAME`, seals and the padding of the last byte.
    pub headers: u32,
}

impl SnapshotBitCounts {
    /// The number of parts.
    pub const PARTS: usize = CATEGORIES + 3;

    /// Returns all parts: categories in their order, then `naming`, `events` and `headers`.
    pub fn parts(&self) -> [u32; SnapshotBitCounts::PARTS] {
        let SnapshotBitCounts { values, naming, events, headers } = self;
        let mut parts = [0; SnapshotBitCounts::PARTS];
        parts[..CATEGORIES].copy_from_slice(values);
        parts[CATEGORIES..].copy_from_slice(&[*naming, *events, *headers]);
        parts
    }

    /// Returns the bits for values of one category.
    pub fn of(&self, category: Category) -> u32 {
        self.values[category as usize]
    }

    /// Returns the total number of bits: eight times the bytes of the datagrams.
    pub fn bits(&self) -> u64 {
        self.parts().iter().map(|bits| u64::from(*bits)).sum()
    }

    pub(super) fn add(&mut self, more: &SnapshotBitCounts) {
        let SnapshotBitCounts { values, naming, events, headers } = more;
        self.values.iter_mut().zip(values).for_each(|(sum, bits)| *sum += bits);
        self.naming += naming;
        self.events += events;
        self.headers += headers;
    }
}

/// A function that returns the category of a game's field; `own` is true for the client's own body.
pub(super) type CategoryOf<B> = fn(&B, own: bool, &FieldSchema) -> Category;

/// The categories of the fields of all entities that a client receives.
#[derive(Clone, Debug)]
pub(super) struct CategoryCounter<B> {
    /// The field of each cell.
    fields: Vec<FieldSchema>,
    avatar: EntityId,
    of: CategoryOf<B>,
    /// The number of teleports when the entry was made, and the categories by cell.
    known: SortedMap<EntityId, (u32, Vec<Category>)>,
}

state!(CategoryCounter<B: Body> { known } but { fields, avatar, of } if is_valid);

impl<B: Body> CategoryCounter<B> {
    fn is_valid(&self) -> bool {
        self.known.values().all(|(_, categories)| categories.len() == self.fields.len())
    }

    /// Creates the categories for the client whose own body is `avatar`. A field's category follows from its scope
    /// until [`CategoryCounter::count_by`] sets another function.
    pub(super) fn new(avatar: EntityId) -> CategoryCounter<B> {
        let by_scope = |_: &B, own: bool, field: &FieldSchema| Category::by_default(own, field.scope);
        CategoryCounter { fields: fields_by_cell::<B>(), avatar, of: by_scope, known: SortedMap::new() }
    }

    pub(super) fn count_by(&mut self, of: CategoryOf<B>) {
        self.of = of;
        self.known.clear();
    }

    /// Returns the categories of one entity's cells. A teleport recomputes them.
    pub(super) fn of(&mut self, id: EntityId, body: &B) -> &[Category] {
        let CategoryCounter { fields, avatar, of, known } = self;
        let teleports = body.teleports();
        let all = || fields.iter().map(|field| of(body, id == *avatar, field)).collect();
        let entry = known.entry(id).or_insert_with(|| (teleports, all()));
        if entry.0 != teleports {
            *entry = (teleports, all());
        }
        &entry.1
    }

    pub(super) fn forget(&mut self, id: EntityId) {
        self.known.remove(&id);
    }
}
