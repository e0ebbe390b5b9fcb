//! Finds the solids and triggers around a player in a snapshot: moving map parts, other players and jump pads.
//! OpenArena's cg_predict.c builds the same lists for prediction.

use glam::Vec3;

use super::body::Quake3Body;
use super::movement::{EntitySolid, PushTrigger, SolidShape};
use super::protocol::entity;
use crate::bsp::quake3::SubmodelIndex;
use hitreg_log::units::EntityId;
use hitreg_netcode::game::Body as _;

/// Values of an entity's `kind` (bg_public.h: `entityType_t`).
const ITEM: u32 = 2;
const MISSILE: u32 = 3;
const PUSH_TRIGGER: u32 = 8;
const TELEPORT_TRIGGER: u32 = 9;

/// Value of an entity's `solid` for a map model; `modelindex` has its number.
const PART_OF_MAP: u32 = 0xff_ffff;

/// Returns everything except the player `own`.
pub(crate) fn around(entities: &[(EntityId, Quake3Body)], own: EntityId) -> (Vec<EntitySolid>, Vec<PushTrigger>) {
    let (mut solids, mut triggers) = (Vec::new(), Vec::new());
    for (id, body) in entities.iter().filter(|(id, body)| *id != own && !body.is_own()) {
        let (solid, kind) = (body.entity(entity("solid")), body.entity(entity("kind")));
        let (number, origin) = (u32::from(id.0), body.origin());
        let model = SubmodelIndex(body.entity(entity("modelindex")) as usize);
        match kind {
            ITEM | MISSILE => {}
            PUSH_TRIGGER | TELEPORT_TRIGGER => {
                let throws = [entity("origin2.x"), entity("origin2.y"), entity("origin2.z")];
                let throws = Vec3::from_array(throws.map(|cell| f32::from_bits(body.entity(cell))));
                let throws = (kind == PUSH_TRIGGER).then_some(throws);
                triggers.push(PushTrigger { entity: number, origin, model, throws });
            }
            _ if solid == PART_OF_MAP => {
                solids.push(EntitySolid { entity: number, origin, shape: SolidShape::Model(model) })
            }
            _ if solid != 0 => {
                let (mins, maxs) = box_of(solid);
                solids.push(EntitySolid { entity: number, origin, shape: SolidShape::Body { mins, maxs } });
            }
            _ => {}
        }
    }
    (solids, triggers)
}

/// Decodes a box from one number: its sideways extent, its downward extent, and its upward extent plus 32 (sv_world.c).
pub(crate) fn box_of(solid: u32) -> (Vec3, Vec3) {
    let byte = |shift: u32| (solid >> shift & 255) as f32;
    let (aside, down, up) = (byte(0), byte(8), byte(16) - 32.0);
    (Vec3::new(-aside, -aside, -down), Vec3::new(aside, aside, up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_packed_into_one_number() {
        let (mins, maxs) = box_of(15 | 24 << 8 | 64 << 16);
        assert_eq!((mins, maxs), (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, 32.0)));
    }
}
