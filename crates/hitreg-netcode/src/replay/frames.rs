//! The `frames` table: each client frame, with its usercmd and the predicted body of the player.

use glam::Vec3;

use super::columns::CellRows;
use crate::game::{Body, Game, GameInput};
use crate::pipeline::ClientFrameOutput;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::frames::{Row, SCHEMA, Writer};
use hitreg_log::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct FrameTable {
    rows: Writer,
    own: CellRows,
    /// The usercmd fields that the game declares.
    input: CellRows,
}

impl FrameTable {
    pub(super) fn new<G: Game>() -> FrameTable {
        let (own, input) = (CellRows::new(G::Body::fields()), CellRows::new(G::Input::own_fields()));
        FrameTable { rows: Writer::default(), own, input }
    }

    pub(super) fn push<G: Game>(&mut self, player: PlayerId, at: Micros, commanded: &ClientFrameOutput<G>) {
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
        commanded.command.input.own.write(self.input.next_row());
    }

    /// The cells of the player's own body in the newest frame.
    pub(super) fn newest(&self) -> Option<&[u32]> {
        self.own.newest_row()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Takes the rows so far.
    pub(super) fn take(&mut self) -> Table {
        let own = self.own.take(SCHEMA.fields.unwrap_or_default());
        self.rows.take([own, self.input.take("")].concat())
    }
}
