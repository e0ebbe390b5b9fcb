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
    shown: BTreeMap<(PlayerId, EntityId), Vec<OfItsOwn>>,
}

/// A cell with its category, if that is another than the place's.
type OfItsOwn = Option<(Category, u32)>;

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
        let mut cells = vec![0; G::Body::CELLS];
        placed.body.write(&mut cells);
        let now = fields.iter().zip(&cells).map(|(field, cell)| {
            let category = G::category(&placed.body, entity == player.entity(), field);
            (category != by.category).then_some((category, *cell))
        });
        let now: Vec<OfItsOwn> = now.collect();
        let before = self.shown.insert((player, entity), now.clone()).unwrap_or_else(|| vec![None; now.len()]);
        for (at, (before, now)) in before.into_iter().zip(now).enumerate() {
            if let Some((category, cell)) = now.filter(|now| before != Some(*now)) {
                self.player.push(u32::from(player.0));
                self.command.push(command.0);
                self.entity.push(u32::from(entity.0));
                // A body has far fewer cells than a code has values.
                self.variable.push_code(at.min(usize::from(u8::MAX)) as u8);
                self.category.push_code(category as u8);
                self.value.push(match fields[at].kind {
                    CellKind::F32 => f32::from_bits(cell),
                    CellKind::I32 => cell as i32 as f32,
                    CellKind::U32 => cell as f32,
                });
            }
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
