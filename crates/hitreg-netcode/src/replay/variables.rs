//! The `variables` table: what a client drew of variables that have another category than the place of their body, whose
//! rows are in `views`. A row is there when such a variable has changed on that player's screen. What was not on it for long is new
//! again, so that a part of a session need not know what was long before it.

use std::collections::BTreeMap;

use super::columns::value;
use super::part::LOOKED_BACK;
use crate::game::{Body, Category, Field, Game, Placed};
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::variables::{Row, Writer};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Variables {
    rows: Writer,
    /// What is on each player's screen of each entity.
    shown: BTreeMap<(PlayerId, EntityId), OfTheirOwn>,
}

/// The cells of one entity that have another category than its place.
#[derive(Debug)]
struct OfTheirOwn {
    /// When it was on the screen last.
    seen: Micros,
    /// Since when it is the same thing.
    teleports: u32,
    place: Category,
    cells: Vec<(usize, Category)>,
    /// What was shown of each; nothing at first.
    last: Vec<Option<u32>>,
}

impl Variables {
    pub(super) fn push<G: Game>(
        &mut self,
        (player, at): (PlayerId, Micros),
        command: CommandSeq,
        entity: EntityId,
        fields: &[Field],
        placed: &Placed<G::Body>,
    ) {
        // What the client alone knows of is all of one category.
        let Some(by) = placed.by.filter(|by| by.category != Category::Reactive) else { return };
        let body = &placed.body;
        let same = |shown: &OfTheirOwn| {
            shown.teleports == body.teleports() && shown.place == by.category && at - shown.seen <= LOOKED_BACK
        };
        let shown = match self.shown.get_mut(&(player, entity)).filter(|shown| same(shown)) {
            Some(shown) => shown,
            None => {
                let new = OfTheirOwn::of::<G>(entity == player.entity(), fields, body, by.category);
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

    /// The rows so far; none where nothing was drawn by category.
    pub(super) fn take(&mut self) -> Option<Table> {
        (!self.shown.is_empty()).then(|| self.rows.take(Vec::new()))
    }
}

impl OfTheirOwn {
    fn of<G: Game>(own: bool, fields: &[Field], body: &G::Body, place: Category) -> OfTheirOwn {
        let categories = fields.iter().map(|field| G::category(body, own, field));
        let cells: Vec<_> = categories.enumerate().filter(|(_, category)| *category != place).collect();
        OfTheirOwn { seen: Micros::ZERO, teleports: body.teleports(), place, last: vec![None; cells.len()], cells }
    }
}
