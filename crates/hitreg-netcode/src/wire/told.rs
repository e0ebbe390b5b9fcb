//! What the bits of a snapshot's datagrams are for, counted as they are written.

use std::collections::BTreeMap;

use crate::game::{Body, Category, Field};
use hitreg_log::units::EntityId;

/// How many categories there are.
const CATEGORIES: usize = Category::ALL.len();

/// How many bits of a snapshot's datagrams are for what. Together they are all of the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Values of variables, by the category that a variable has for the client which is told.
    pub values: [u32; CATEGORIES],
    /// Of which entities and which variables they are: types, ids, controllers, bases, bitfields and masks.
    pub naming: u32,
    /// Effects, warnings, notices, and the echo of packets.
    pub events: u32,
    /// Headers, `FRAME`, seals, and what fills the last byte.
    pub headers: u32,
}

impl Told {
    /// How many parts there are.
    pub const PARTS: usize = CATEGORIES + 3;

    /// All parts: categories in their order, then `naming`, `events` and `headers`.
    pub fn parts(&self) -> [u32; Told::PARTS] {
        let Told { values, naming, events, headers } = self;
        let mut parts = [0; Told::PARTS];
        parts[..CATEGORIES].copy_from_slice(values);
        parts[CATEGORIES..].copy_from_slice(&[*naming, *events, *headers]);
        parts
    }

    /// The bits of values of one category.
    pub fn of(&self, category: Category) -> u32 {
        self.values[category as usize]
    }

    /// All bits: eight times the bytes of the datagrams.
    pub fn bits(&self) -> u64 {
        self.parts().iter().map(|bits| u64::from(*bits)).sum()
    }

    pub(super) fn add(&mut self, more: &Told) {
        let Told { values, naming, events, headers } = more;
        self.values.iter_mut().zip(values).for_each(|(sum, bits)| *sum += bits);
        self.naming += naming;
        self.events += events;
        self.headers += headers;
    }
}

/// By which category a game's variable is drawn.
pub(super) type CategoryOf<B> = fn(&B, own: bool, &Field) -> Category;

/// The categories of the variables of all entities that a client is told of.
#[derive(Clone, Debug)]
pub(super) struct Categories<B> {
    fields: Vec<Field>,
    avatar: EntityId,
    of: CategoryOf<B>,
    /// By cell, since the entity became known or became another.
    known: BTreeMap<EntityId, (u32, Vec<Category>)>,
}

impl<B: Body> Categories<B> {
    /// For the client whose own body is `avatar`; by scopes, as long as no game says otherwise.
    pub(super) fn new(avatar: EntityId) -> Categories<B> {
        let by_scope = |_: &B, own: bool, field: &Field| Category::by_default(own, field.scope);
        Categories { fields: B::fields(), avatar, of: by_scope, known: BTreeMap::new() }
    }

    pub(super) fn go_by(&mut self, of: CategoryOf<B>) {
        self.of = of;
        self.known.clear();
    }

    /// Those of one entity's cells, as the client has them: what has been teleported is met anew.
    pub(super) fn of(&mut self, id: EntityId, body: &B) -> &[Category] {
        let Categories { fields, avatar, of, known } = self;
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
