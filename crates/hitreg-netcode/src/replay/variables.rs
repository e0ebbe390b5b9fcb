//! The `variables` table: what a client drew of variables whose category differs from the category of their body's
//! position. `views` has the rows of positions. The table gets a row when such a variable changes on a player's
//! screen. An entity that was off screen for longer than [`LOOKED_BACK`] counts as new, so a part of a session does
//! not depend on earlier screens.

use std::collections::BTreeMap;

use super::columns::value;
use super::part::LOOKED_BACK;
use crate::game::{Body, Category, FieldSchema, Game, PlacedBody};
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::variables::{Row, Writer};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Variables {
    rows: Writer,
    /// What each player's screen shows of each entity.
    shown: BTreeMap<(PlayerId, EntityId), OwnCategoryCells>,
}

/// The cells of one entity whose category differs from the category of its position.
#[derive(Debug)]
struct OwnCategoryCells {
    /// When the entity was on the screen last.
    seen: Micros,
    /// The body's teleport count; a change means a new appearance.
    teleports: u32,
    place: Category,
    cells: Vec<(usize, Category)>,
    /// The last shown value of each cell; `None` before the first.
    last: Vec<Option<u32>>,
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
        let same = |shown: &OwnCategoryCells| {
            shown.teleports == body.teleports() && shown.place == by.category && at - shown.seen <= LOOKED_BACK
        };
        let shown = match self.shown.get_mut(&(player, entity)).filter(|shown| same(shown)) {
            Some(shown) => shown,
            None => {
                let new = OwnCategoryCells::of::<G>(entity == player.entity(), fields, body, by.category);
                let before = self.shown.entry((player, entity)).insert_entry(new);
                before.into_mut()
            }
        };
        shown.seen = at;
        if shown.cells.is_empty() {
            return;
        }
        let mut words = vec![0; G::Body::CELLS];
        body.write(&mut words);
        for ((cell, category), last) in shown.cells.iter().zip(&mut shown.last) {
            let word = words[*cell];
            if last.replace(word) == Some(word) {
                continue;
            }
            self.rows.push(Row {
                player: player.0.into(),
                command: command.0,
                entity: entity.0.into(),
                variable: &fields[*cell].name,
                category: *category as u8,
                value: value(fields[*cell].kind, word),
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

impl OwnCategoryCells {
    fn of<G: Game>(own: bool, fields: &[FieldSchema], body: &G::Body, place: Category) -> OwnCategoryCells {
        let categories = fields.iter().map(|field| G::category(body, own, field));
        let cells: Vec<_> = categories.enumerate().filter(|(_, category)| *category != place).collect();
        OwnCategoryCells {
            seen: Micros::ZERO,
            teleports: body.teleports(),
            place,
            last: vec![None; cells.len()],
            cells,
        }
    }
}
