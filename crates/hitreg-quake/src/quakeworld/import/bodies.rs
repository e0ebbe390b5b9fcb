//! Converts one packet of a demo to bodies.

use crate::quakeworld::body::{QuakeWorldBody, flag};
use crate::quakeworld::demo::{Mover, OwnState, ServerPacket};
use crate::quakeworld::rules::{QuakeWorldRules, entity_of_model};
use hitreg_log::units::EntityId;

/// Returns the bodies of a packet, ascending by entity; of two states of one entity, the first. It omits brush models
/// that the map lacks, and includes the `unsent` ones.
pub(super) fn bodies_of(
    rules: &QuakeWorldRules,
    packet: &ServerPacket,
    own: Option<&OwnState>,
    unsent: &[Mover],
) -> Vec<(EntityId, QuakeWorldBody)> {
    let models = rules.map.model_count();
    let entity = |slot: u8| EntityId(u16::from(rules.swap_slot(packet.level, slot)));
    let others = packet.others.iter();
    let own = own.map(|own| (rules.player.entity(), QuakeWorldBody::of_own(own, rules.server.origin_wire())));
    let mut bodies: Vec<(EntityId, QuakeWorldBody)> = own.into_iter().collect();
    bodies.extend(others.map(|other| (entity(other.slot), QuakeWorldBody::of_other(other))));
    for (_, row) in &mut bodies {
        row.move_vars = packet.move_vars;
    }
    let row = |mover: &Mover, flag| {
        let entity = entity_of_model(mover.model).filter(|_| usize::from(mover.model) < models)?;
        let sent = QuakeWorldBody::of_mover(mover);
        Some((entity, QuakeWorldBody { flags: sent.flags | flag, ..sent }))
    };
    bodies.extend(packet.movers.iter().filter_map(|mover| row(mover, 0)));
    bodies.extend(unsent.iter().filter_map(|mover| row(mover, flag::UNSENT)));
    bodies.sort_by_key(|(entity, _)| *entity);
    bodies.dedup_by_key(|(entity, _)| *entity);
    bodies
}
