//! The zone of knowledge: the part of the world that one client receives (`server.zone`, `server.zone_units`).
//! Bernier's server packages the "visible objects" for each client. In NeREIDS an entity comes into range of a client's
//! zone of knowledge, and goes out of scope.

use std::sync::Arc;

use crate::game::{Body, Game};
use crate::history::Frame;
use crate::settings::{self, Zone};
use crate::state::value;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros};

/// An entity stays in a client's snapshots for this long after it left the zone. It is thus not defined again each time
/// it leaves and enters the view.
const LINGERS: Micros = Micros::from_ms(250);

/// One client's zone of knowledge.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneOfKnowledge {
    /// The time at which each known entity was last in the zone.
    seen: SortedMap<EntityId, Micros>,
}

value!(ZoneOfKnowledge { seen });

impl ZoneOfKnowledge {
    /// Returns the frame without the entities that the client must not know. The client's own avatar is always
    /// included. A client without an avatar receives every entity.
    pub(super) fn within<G: Game>(
        &mut self,
        rules: &G::Rules,
        settings: &settings::ServerSettings,
        own: EntityId,
        all: Arc<Frame<G::Body>>,
    ) -> Arc<Frame<G::Body>> {
        let is_wide = settings.zone_units as f32;
        let viewer = all.get(own).filter(|_| settings.bounds_zones()).cloned();
        let Some(viewer) = viewer else { return all };
        let now = all.server_time;
        let is_within = |body: &G::Body| {
            let is_near = body.offset_from(&viewer).length() <= is_wide;
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

/// Returns whether either body sees any part of the other; the eyes are somewhere in the body. Bodies are visible when
/// the game does not define sight.
fn is_visible<G: Game>(rules: &G::Rules, viewer: &G::Body, body: &G::Body) -> bool {
    let sees = |from: &G::Body, to: &G::Body| G::sees(rules, from.origin(), to).unwrap_or(true);
    sees(viewer, body) || sees(body, viewer)
}
