//! The `frames` table: every client frame, with its usercmd and the own body as far as it was predicted.

use glam::Vec3;

use super::columns::CellRows;
use crate::game::{Body, Field, Game};
use crate::pipeline::Commanded;
use crate::trace::Table;
use crate::trace::schema::frames::{Row, SCHEMA, Writer};
use crate::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Frames {
    rows: Writer,
    own: CellRows,
}

impl Frames {
    pub(super) fn new(fields: Vec<Field>) -> Frames {
        Frames { rows: Writer::default(), own: CellRows::new(fields) }
    }

    pub(super) fn push<G: Game>(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>) {
        self.rows.push(Row {
            ran: commanded.ran,
            first_effects: commanded.effects.len() as u32,
            has_body: commanded.predicted.is_some().into(),
            drawn: commanded.drawn_origin.unwrap_or(Vec3::ZERO),
            ..Row::of_usercmd(player, at, &commanded.command)
        });
        let row = self.own.next_row();
        if let Some(body) = &commanded.predicted {
            body.write(row);
        }
    }

    /// Where each of `players` players' frames are, in the order of time.
    pub(super) fn rows_by_player(&self, players: usize) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); players];
        for (row, player) in self.rows.player.iter().enumerate() {
            if let Some(rows) = rows.get_mut(*player as usize) {
                rows.push(row);
            }
        }
        rows
    }

    /// When a frame was, and the own body as its player saw it.
    pub(super) fn own<B: Body>(&self, row: usize) -> Option<(Micros, B)> {
        let cells = self.own.row(row).filter(|_| self.rows.has_body[row] == 1)?;
        Some((self.at(row), B::read(cells).ok()?))
    }

    pub(super) fn at(&self, row: usize) -> Micros {
        Micros(self.rows.at_us[row])
    }

    pub(super) fn table(self) -> Table {
        self.rows.finish(self.own.columns(SCHEMA.fields.unwrap_or_default()))
    }
}
