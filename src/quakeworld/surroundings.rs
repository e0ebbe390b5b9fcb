//! Where other bodies stand while usercmds run. A server moves brush models and other players first, then runs one's
//! usercmds, then sends: so the packet that acks them shows the bodies that they met.

use super::body::{BodyRow, FIRST_MODEL};
use super::movement::Solid;
use crate::units::EntityId;

/// The brush models among `entities`, then the living among the players but `own`. A brush model has moved since it stood
/// as `before` has it.
pub(crate) fn solids(entities: &[(EntityId, BodyRow)], before: &[(EntityId, BodyRow)], own: EntityId) -> Vec<Solid> {
    let mut solids = Vec::with_capacity(entities.len());
    for (entity, body) in entities {
        let Some(model) = entity.0.checked_sub(FIRST_MODEL.0) else { continue };
        let was = before.binary_search_by_key(entity, |(id, _)| *id).map_or(body.origin, |at| before[at].1.origin);
        solids.push(Solid::Mover { model, origin: body.origin.to_array(), moved: (body.origin - was).to_array() });
    }
    let players = entities.iter().take_while(|(entity, _)| *entity < FIRST_MODEL);
    for (entity, body) in players.filter(|(entity, body)| *entity != own && body.alive) {
        solids.push(Solid::Player { slot: entity.0 as u8, origin: body.origin.to_array() });
    }
    solids
}

#[cfg(test)]
mod tests {
    use glam::Vec3;

    use super::*;

    fn at(entity: u16, x: f32) -> (EntityId, BodyRow) {
        (EntityId(entity), BodyRow { origin: Vec3::new(x, 0.0, 0.0), alive: true, ..BodyRow::default() })
    }

    #[test]
    fn brush_models_come_first_and_have_moved_and_the_dead_are_passed() {
        let mut dead = at(7, 3.0);
        dead.1.alive = false;
        let now = [at(3, 0.0), at(5, 10.0), dead, at(33, 4.0), at(34, 2.0)];
        let solids = solids(&now, &[at(5, 1.0), at(33, 1.5)], EntityId(3));
        let mover = |model, x, moved| Solid::Mover { model, origin: [x, 0.0, 0.0], moved: [moved, 0.0, 0.0] };
        let player = Solid::Player { slot: 5, origin: [10.0, 0.0, 0.0] };
        assert_eq!(solids, [mover(1, 4.0, 2.5), mover(2, 2.0, 0.0), player]);
    }
}
