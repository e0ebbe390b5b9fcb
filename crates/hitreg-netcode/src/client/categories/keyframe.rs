//! The keyframe state of drawing by category.

use super::{CategoryDrawer, DrawnEntity, Reaction, categories_of};
use crate::game::Game;
use crate::history::Frame;
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::{EntityId, Micros, PlayerId};

impl<G: Game> CategoryDrawer<G> {
    /// Saves the state. Most of it is coded against `newest`, the newest update. Field categories are not saved,
    /// because the game derives them again.
    pub(in crate::client) fn save(&self, newest: Option<&Frame<G::Body>>, to: &mut StateWriter<'_, G::Body>) {
        let CategoryDrawer { fields: _, origin: _, known, known_at, reactions, local_bodies, easing } = self;
        (*known_at, *local_bodies).put(to);
        to.number(known.len() as u64);
        for DrawnEntity { entity, category: _, others: _, defined, defined_at, start, met_own, met_local } in known {
            entity.put(to);
            if let Some(body) = newest.and_then(|newest| newest.get(*entity)) {
                to.near(body);
            }
            defined.put(to);
            start.put(to);
            (*defined_at, *met_own, *met_local).put(to);
        }
        to.number(reactions.len() as u64);
        for Reaction { entity, command, body, left } in reactions {
            (*entity, *command, *left).put(to);
            body.put(to);
        }
        easing.save(to);
    }

    pub(in crate::client) fn restore(
        &mut self,
        player: PlayerId,
        newest: Option<&Frame<G::Body>>,
        from: &mut Restorer<'_, G::Body>,
    ) -> Result<(), StateError> {
        (self.known_at, self.local_bodies) = StateValue::<G::Body>::get(from)?;
        self.known.clear();
        for _ in 0..from.count(size_of::<DrawnEntity<G::Body>>())? {
            let entity: EntityId = StateValue::<G::Body>::get(from)?;
            if let Some(body) = newest.and_then(|newest| newest.get(entity)) {
                from.near(body);
            }
            let defined: G::Body = from.body()?;
            let start = from.body()?;
            let (defined_at, met_own, met_local): (Micros, Micros, Micros) = StateValue::<G::Body>::get(from)?;
            let own = entity == player.entity();
            let (category, others) = categories_of::<G>(&self.fields, self.origin, &defined, own);
            self.known.push(DrawnEntity { entity, category, others, defined, defined_at, start, met_own, met_local });
        }
        self.reactions.clear();
        for _ in 0..from.count(size_of::<Reaction<G::Body>>())? {
            let (entity, command, left) = StateValue::<G::Body>::get(from)?;
            self.reactions.push(Reaction { entity, command, left, body: from.body()? });
        }
        self.easing.restore(from)
    }
}
