//! The inputs of a predicted usercmd apart from the body.

use crate::game::{Game, GameInput, Scene, Sink};
use crate::settings::Settings;
use hitreg_log::units::{EntityId, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;

/// The inputs of prediction apart from the window.
pub(super) struct PredictionContext<'a, G: Game> {
    pub(super) rules: &'a G::Rules,
    pub(super) settings: &'a Settings,
    pub(super) seed: Seed,
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
        G::step_body(self.rules, &self.scene(), body, &G::Input::read_usercmd(command), sink)
    }

    pub(super) fn scene(&self) -> Scene<'_, G::Body> {
        let weapons = self.settings.predicts_weapons();
        Scene { seed: self.seed, player: self.player, entities: self.entities, weapons }
    }
}
