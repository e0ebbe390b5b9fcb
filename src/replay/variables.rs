//! The `variables` table: what a client drew of variables that have another category than the place of their body, whose
//! rows are in `views`. A row is there when such a variable has changed on that player's screen.

use std::collections::BTreeMap;

use super::columns::{Names, table};
use crate::game::{Body, Category, CellKind, Field, Game, Placed};
use crate::trace::{Data, Table};
use crate::units::{CommandSeq, EntityId, PlayerId};

#[derive(Debug)]
pub(super) struct Variables {
    player: Vec<u32>,
    command: Vec<u32>,
    entity: Vec<u32>,
    variable: Names,
    category: Names,
    value: Vec<f32>,
    /// What is on each player's screen of each entity.
    shown: BTreeMap<(PlayerId, EntityId), OfTheirOwn>,
}

/// The cells of one entity that have another category than its place.
#[derive(Debug)]
struct OfTheirOwn {
    /// Since when it is the same thing.
    teleports: u32,
    place: Category,
    cells: Vec<(usize, Category)>,
    /// What was shown of each; nothing at first.
    last: Vec<Option<u32>>,
}

impl Variables {
    pub(super) fn new(fields: &[Field]) -> Variables {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        Variables {
            player: Vec::new(),
            command: Vec::new(),
            entity: Vec::new(),
            variable: Names::known(&names),
            category: Names::known(&Category::NAMES),
            value: Vec::new(),
            shown: BTreeMap::new(),
        }
    }

    pub(super) fn push<G: Game>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        entity: EntityId,
        fields: &[Field],
        placed: &Placed<G::Body>,
    ) {
        // What the client alone knows of is all of one category.
        let Some(by) = placed.by.filter(|by| by.category != Category::Reactive) else { return };
        let body = &placed.body;
        let same = |shown: &OfTheirOwn| shown.teleports == body.teleports() && shown.place == by.category;
        let shown = match self.shown.get_mut(&(player, entity)).filter(|shown| same(shown)) {
            Some(shown) => shown,
            None => {
                let new = OfTheirOwn::of::<G>(entity == player.entity(), fields, body, by.category);
                let before = self.shown.entry((player, entity)).insert_entry(new);
                before.into_mut()
            }
        };
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
            self.player.push(u32::from(player.0));
            self.command.push(command.0);
            self.entity.push(u32::from(entity.0));
            // A body has far fewer cells than a code has values.
            self.variable.push_code((*cell).min(usize::from(u8::MAX)) as u8);
            self.category.push_code(*category as u8);
            self.value.push(match fields[*cell].kind {
                CellKind::F32 => f32::from_bits(word),
                CellKind::I32 => word as i32 as f32,
                CellKind::U32 => word as f32,
            });
        }
    }

    /// The table; none where nothing was drawn by category.
    pub(super) fn table(self) -> Option<Table> {
        let columns = vec![
            ("player", Data::U32(self.player)),
            ("command", Data::U32(self.command)),
            ("entity", Data::U32(self.entity)),
            ("variable", self.variable.data()),
            ("category", self.category.data()),
            ("value", Data::F32(self.value)),
        ];
        (!self.shown.is_empty()).then(|| table("variables", columns, Vec::new()))
    }
}

impl OfTheirOwn {
    fn of<G: Game>(own: bool, fields: &[Field], body: &G::Body, place: Category) -> OfTheirOwn {
        let categories = fields.iter().map(|field| G::category(body, own, field));
        let cells: Vec<_> = categories.enumerate().filter(|(_, category)| *category != place).collect();
        OfTheirOwn { teleports: body.teleports(), place, last: vec![None; cells.len()], cells }
    }
}
