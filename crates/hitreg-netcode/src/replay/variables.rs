//! The `variables` table: what a client drew of variables whose category differs from the category of their body's
//! position. `views` has the rows of positions. The table gets a row when such a variable changes on a player's
//! screen. An entity that was off screen for longer than [`LOOKED_BACK`] counts as new, so a part of a session does
//! not depend on earlier screens.

use std::ops::Range;

use super::columns::value;
use super::part::LOOKED_BACK;
use crate::game::{Body, Category, FieldSchema, Game, PlacedBody};
use hitreg_log::record::cells_of;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::variables::{Row, Writer};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Variables {
    rows: Writer,
    /// What each player's screen shows of each entity.
    shown: SortedMap<(PlayerId, EntityId), OwnCategoryFields>,
}

/// The fields of one entity whose category differs from the category of its position.
#[derive(Debug)]
struct OwnCategoryFields {
    /// When the entity was on the screen last.
    seen: Micros,
    /// The body's teleport count; a change means a new appearance.
    teleports: u32,
    place: Category,
    /// The index and cells of each field, and its category.
    fields: Vec<(usize, Range<usize>, Category)>,
    /// The last shown number of each field; `None` before the first.
    last: Vec<Option<i64>>,
}

impl Variables {
    pub(super) fn push<G: Game>(
        &mut self,
        (player, at): (PlayerId, Micros),
        command: CommandSeq,
        entity: EntityId,
        fields: &[FieldSchema],
        placed: &PlacedBody<G::Body>,
    ) {
        // The client's own reactive entities have one category for all their variables.
        let Some(by) = placed.by.filter(|by| by.category != Category::Reactive) else { return };
        let body = &placed.body;
        let same = |shown: &OwnCategoryFields| {
            shown.teleports == body.teleports() && shown.place == by.category && at - shown.seen <= LOOKED_BACK
        };
        let new = || OwnCategoryFields::of::<G>((entity == player.entity(), at), fields, body, by.category);
        let shown = self.shown.entry((player, entity)).or_insert_with(new);
        if !same(shown) {
            *shown = new();
        }
        shown.seen = at;
        if shown.fields.is_empty() {
            return;
        }
        let cells = body.to_cells();
        for ((index, place, category), last) in shown.fields.iter().zip(&mut shown.last) {
            let field = &fields[*index];
            let number = field.kind.number(&cells[place.clone()]);
            if last.replace(number) == Some(number) {
                continue;
            }
            self.rows.push(Row {
                player: player.0.into(),
                command: command.0,
                entity: entity.0.into(),
                variable: &field.name,
                category: *category as u8,
                value: value(field.kind, number),
            });
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Takes the rows so far; `None` if nothing was drawn by category.
    pub(super) fn take(&mut self) -> Option<Table> {
        (!self.shown.is_empty()).then(|| self.rows.take(Vec::new()))
    }
}

impl OwnCategoryFields {
    fn of<G: Game>(
        (own, seen): (bool, Micros),
        fields: &[FieldSchema],
        body: &G::Body,
        place: Category,
    ) -> OwnCategoryFields {
        let categories =
            (0..).zip(cells_of(fields)).map(|(index, (field, cells))| (index, cells, G::category(body, own, field)));
        let fields: Vec<_> = categories.filter(|(_, _, category)| *category != place).collect();
        OwnCategoryFields { seen, teleports: body.teleports(), place, last: vec![None; fields.len()], fields }
    }
}
