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
    /// The predicted bodies, if they are wanted.
    pub(super) own: Option<CellRows>,
    /// The usercmd fields that the game declares.
    input: CellRows,
}

impl FrameTable {
    pub(super) fn new<G: Game>() -> FrameTable {
        let (own, input) = (CellRows::new(G::Body::fields()), CellRows::new(G::Input::own_fields()));
        FrameTable { rows: Writer::default(), own: Some(own), input }
    }

    /// Adds a frame, with the cells of its predicted body.
    pub(super) fn push<G: Game>(
        &mut self,
        player: PlayerId,
        at: Micros,
        commanded: &ClientFrameOutput<G>,
        predicted: Option<&[u32]>,
    ) {
        self.rows.push(Row {
            ran: commanded.ran,
            first_effects: commanded.effects.len() as u32,
            has_body: predicted.is_some().into(),
            drawn: commanded.drawn_origin.unwrap_or(Vec3::ZERO),
            ..Row::of_usercmd(player, at, &commanded.command)
        });
        if let Some(own) = &mut self.own {
            own.push(predicted.unwrap_or_default());
        }
        self.input.push(commanded.command.input.own.stored());
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Takes the rows so far.
    pub(super) fn take(&mut self) -> Table {
        let take_own = |own: &mut CellRows| own.take(SCHEMA.fields.unwrap_or_default());
        let own = self.own.as_mut().map(take_own).unwrap_or_default();
        self.rows.take([own, self.input.take("")].concat())
    }
}
