//! The zone of knowledge: what of the world one client is told of (`server.zone`, `server.zone_units`). Bernier's server packages
//! the "visible objects" for each client; in NeREIDS an entity comes into range of a client's zone of knowledge, and goes out
//! of scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::game::{Body, Game};
use crate::history::Frame;
use crate::settings::{self, Zone};
use crate::state::{BadState, Restorer, Saver, Value};
use hitreg_log::units::{EntityId, Micros};

/// For so long after it was in the zone last an entity is told of: who leans in and out of sight is not defined anew each time.
const LINGERS: Micros = Micros::from_ms(250);

/// One client's.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneOfKnowledge {
    /// When each entity that is told of was in it last.
    seen: BTreeMap<EntityId, Micros>,
}

impl ZoneOfKnowledge {
    pub(super) fn save<B: Body>(&self, to: &mut Saver<'_, B>) {
        let ZoneOfKnowledge { seen } = self;
        seen.put(to);
    }

    pub(super) fn restore<B: Body>(&mut self, from: &mut Restorer<'_, B>) -> Result<(), BadState> {
        *self = ZoneOfKnowledge { seen: Value::<B>::get(from)? };
        Ok(())
    }

    /// A frame without what the client is not to know. The client's own avatar is always in it, and where there is none yet,
    /// everything: there is nobody to see or not to see.
    pub(super) fn within<G: Game>(
        &mut self,
        rules: &G::Rules,
        settings: &settings::Server,
        own: EntityId,
        all: Arc<Frame<G::Body>>,
    ) -> Arc<Frame<G::Body>> {
        let is_wide = settings.zone_units as f32;
        let viewer = all.get(own).filter(|_| settings.bounds_zones()).cloned();
        let Some(viewer) = viewer else { return all };
        let now = all.server_time;
        let is_within = |body: &G::Body| {
            let is_near = body.origin().distance(viewer.origin()) <= is_wide;
            is_near && (settings.zone == Zone::Everything || is_visible::<G>(rules, &viewer, body))
        };
        let within = all.entities.iter().filter(|(id, body)| *id == own || is_within(body)).map(|(id, _)| (*id, now));
        self.seen.extend(within);
        self.seen.retain(|id, last| now - *last <= LINGERS && all.get(*id).is_some());
        let known = |(id, _): &&(EntityId, G::Body)| self.seen.contains_key(id);
        let entities = all.entities.iter().filter(known).cloned().collect();
        Arc::new(Frame { tick: all.tick, server_time: now, entities })
    }
}

/// Whether either sees any part of the other: the eyes are somewhere in their body. What a game does not say is visible.
fn is_visible<G: Game>(rules: &G::Rules, viewer: &G::Body, body: &G::Body) -> bool {
    let sees = |from: &G::Body, to: &G::Body| G::sees(rules, from.origin(), to).unwrap_or(true);
    sees(viewer, body) || sees(body, viewer)
}
