//! The inputs of a predicted usercmd apart from the body.

use crate::game::{Game, GameInput, Scene, Sink};
use crate::pipeline::Setup;
use hitreg_log::units::{EntityId, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// The inputs of prediction apart from the window.
pub(super) struct PredictionContext<'a, G: Game> {
    pub(super) setup: &'a Setup<G>,
    pub(super) player: PlayerId,
    pub(super) entities: &'a [(EntityId, G::Body)],
}

impl<G: Game> Clone for PredictionContext<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G: Game> Copy for PredictionContext<'_, G> {}

impl<G: Game> PredictionContext<'_, G> {
    pub(super) fn run(&self, body: &G::Body, command: &Usercmd, sink: &mut impl Sink<G::Fire>) -> G::Body {
        G::step_body(&self.setup.rules, &self.scene(), body, &G::Input::read_usercmd(command), sink)
    }

    pub(super) fn scene(&self) -> Scene<'_, G::Body> {
        let weapons = self.setup.settings.predicts_weapons();
        Scene { seed: self.setup.seed, player: self.player, entities: self.entities, weapons }
    }
}
