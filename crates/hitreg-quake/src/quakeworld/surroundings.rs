//! Finds the positions of other bodies while usercmds run. A server moves brush models and other players, then runs a
//! player's usercmds, then sends. So the packet that acks the usercmds shows the bodies that they met.

use glam::Vec3;

use super::body::{FIRST_MODEL, QuakeWorldBody};
use super::demo::OriginWire;
use super::movement::WorldSolid;
use crate::bsp::quake::QuakeMap;
use hitreg_log::units::EntityId;

/// Distance along an axis beyond which a server ignores bodies, in units.
const REACH: f32 = 256.0;
/// Overlap of two players' boxes above which it is more than rounding, in units: half of both boxes, less two steps of
/// the wire.
const OVERLAP: [f32; 3] = [31.75, 31.75, 55.75];
/// Distance between the origins of players whose boxes touch, in units: half of both boxes, plus the stop distance of
/// movement.
const TOUCHING: [f32; 3] = [32.031_25, 32.031_25, 56.031_25];
/// Distance from a rest position within which a brush model is at rest, in units: the wire's rounding.
const AT_REST: f32 = 0.126;

/// Returns the solids around the player `own`, whose usercmds start from `start`. They are the brush models among
/// `entities`, the unsent models sunk in walls, and the other living players. A brush model has moved since its
/// position in `before`.
///
/// Players cannot be inside each other. A player who seems to overlap with the start moved there afterwards. Dead
/// players do not block, and other players can be inside them.
pub(crate) fn solids(
    map: &QuakeMap,
    entities: &[(EntityId, QuakeWorldBody)],
    before: &[(EntityId, QuakeWorldBody)],
    own: EntityId,
    start: &QuakeWorldBody,
) -> Vec<WorldSolid> {
    let wire = start.origin_wire();
    let mut solids = Vec::with_capacity(entities.len());
    for (entity, body) in entities {
        let Some(model) = entity.0.checked_sub(FIRST_MODEL.0) else { continue };
        let was = before.binary_search_by_key(entity, |(id, _)| *id).map_or(body.origin, |at| before[at].1.origin);
        let [origin, was] = [body.origin, was].map(|at| within_rounding(map, model, at, wire));
        solids.push(WorldSolid::Mover { model, origin: origin.to_array(), moved: (origin - was).to_array() });
    }
    for (model, origin) in map.sunk_near(start.origin.to_array(), REACH) {
        if entities.binary_search_by_key(&(FIRST_MODEL.0 + model), |(entity, _)| entity.0).is_err() {
            solids.push(WorldSolid::Mover { model, origin, moved: [0.0; 3] });
        }
    }
    let walls = map.walls.iter().filter(|wall| wall.is_near(start.origin.to_array(), REACH));
    solids.extend(walls.map(|wall| WorldSolid::Wall(*wall)));
    if start.over() {
        return solids;
    }
    let players = entities.iter().take_while(|(entity, _)| *entity < FIRST_MODEL);
    for (entity, body) in players.filter(|(entity, body)| *entity != own && body.alive) {
        let off = (body.origin - start.origin).abs().to_array();
        let came_later = start.alive && (0..3).all(|axis| off[axis] < OVERLAP[axis]);
        if !came_later {
            let origin = if start.alive { beside(body.origin, start.origin) } else { body.origin };
            solids.push(WorldSolid::Player { slot: entity.0 as u8, origin: origin.to_array() });
        }
    }
    solids
}

/// Returns the position of another player whose box overlaps by no more than rounding: beside the own box.
fn beside(other: Vec3, own: Vec3) -> Vec3 {
    let off = (other - own).to_array();
    let over = [0, 1, 2].map(|axis| TOUCHING[axis] - off[axis].abs());
    let least = (0..3).min_by(|a, b| over[*a].total_cmp(&over[*b])).unwrap_or(0);
    let mut origin = other.to_array();
    if over[least] > 0.0 {
        origin[least] += if off[least] < 0.0 { -over[least] } else { over[least] };
    }
    Vec3::from_array(origin)
}

/// Returns the position of a brush model: as sent when it is at rest, otherwise the centre of the rounding cell.
fn within_rounding(map: &QuakeMap, model: u16, at: Vec3, wire: OriginWire) -> Vec3 {
    let near = |rest: &[f32; 3]| (at - Vec3::from_array(*rest)).abs().max_element() < AT_REST;
    let moving = map.moving.iter().find(|moving| moving.model == model);
    if moving.is_none_or(|moving| moving.rests.iter().any(near)) {
        return at;
    }
    at.map(|value| {
        let (low, high) = wire.cell(value);
        if value == 0.0 { value } else { (low + high) * 0.5 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::quake_bytes;

    fn at(entity: u16, x: f32) -> (EntityId, QuakeWorldBody) {
        (EntityId(entity), QuakeWorldBody { origin: Vec3::new(x, 0.0, 0.0), alive: true, ..QuakeWorldBody::default() })
    }

    #[test]
    fn moved_brush_models_come_first_and_dead_players_are_skipped() {
        let mut dead = at(7, 3.0);
        dead.1.alive = false;
        let now = [at(3, 0.0), at(5, 40.0), at(6, 10.0), dead, at(33, 4.0), at(34, 2.0)];
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let solids = solids(&map, &now, &[at(5, 1.0), at(6, 50.0), at(33, 1.5)], EntityId(3), &now[0].1);
        let mover = |model, x, moved| WorldSolid::Mover { model, origin: [x, 0.0, 0.0], moved: [moved, 0.0, 0.0] };
        let player = WorldSolid::Player { slot: 5, origin: [40.0, 0.0, 0.0] };
        // While moving, the lift is at the centre of the rounding cell. Player 6 moved into the box afterwards.
        assert_eq!(solids, [mover(1, 4.0 + 0.0624375, 2.5), mover(2, 2.0, 0.0), player]);
    }

    #[test]
    fn players_that_overlap_by_rounding_are_moved_apart() {
        let own = Vec3::new(10.0, 20.0, 24.0);
        assert_eq!(beside(own + Vec3::new(3.0, -31.9, 5.0), own), own + Vec3::new(3.0, -32.031_25, 5.0));
        assert_eq!(beside(own + Vec3::new(3.0, 20.0, -55.9), own), own + Vec3::new(3.0, 20.0, -56.031_25));
        let apart = own + Vec3::new(40.0, 1.0, 1.0);
        assert_eq!(beside(apart, own), apart);
    }

    #[test]
    fn players_never_block_after_the_level_but_sunk_models_do() {
        let mut map = QuakeMap::parse(&quake_bytes()).expect("good");
        map.moving[0].sunk = Some([0.0; 3]);
        let mut start = at(3, 0.0);
        let around = |start: &QuakeWorldBody| solids(&map, &[at(5, 40.0)], &[], EntityId(3), start);
        let lift = WorldSolid::Mover { model: 1, origin: [0.0; 3], moved: [0.0; 3] };
        assert_eq!(around(&start.1), [lift, WorldSolid::Player { slot: 5, origin: [40.0, 0.0, 0.0] }]);
        start.1.flags |= crate::quakeworld::body::flag::OVER;
        assert_eq!(around(&start.1), [lift]);
        start.1.origin.x = 900.0;
        assert_eq!(around(&start.1), [], "out of reach");
    }
}
