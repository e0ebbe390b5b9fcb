//! Moving brush models carry players who stand on them and push players in their way, before the commands of a packet
//! run. Follows the public `SV_Push`.

use glam::Vec3;

use super::state::{MoveContacts, QuakeWorldPlayerState};
use super::world::{SolidHit, Surroundings, WorldSolid};
use crate::bsp::quake::trace::SweepRule;

/// Heights to try, in units: a brush model can be up to 1/8 unit from its sent position, so its rider may seem to be
/// inside.
const RAISES: [f32; 3] = [0.0, 0.125, 0.25];

/// Moves the player along with every solid that moved since `state`.
pub(crate) fn carry(
    world: &Surroundings<'_>,
    rule: SweepRule,
    state: &mut QuakeWorldPlayerState,
    touched: &mut MoveContacts,
) {
    for (index, solid) in world.solids.iter().enumerate() {
        let WorldSolid::Mover { model, origin, moved } = *solid else { continue };
        let by = Vec3::from_array(moved);
        if by == Vec3::ZERO {
            continue;
        }
        let at = Vec3::from_array(state.origin);
        let old = WorldSolid::Mover { model, origin: (Vec3::from_array(origin) - by).to_array(), moved: [0.0; 3] };
        let alone = [old];
        let before = Surroundings { map: world.map, solids: &alone };
        let rides = state.on_ground && before.sweep(rule, at, at - Vec3::Z * 2.0).1 == SolidHit::Solid(0);
        let now = [*solid];
        let after = Surroundings { map: world.map, solids: &now };
        if !rides && after.has_room(at) {
            continue;
        }
        touched.solids |= 1 << index.min(31);
        let mut raised = RAISES.iter().map(|&up| at + by + Vec3::new(0.0, 0.0, up));
        if let Some(free) = raised.find(|&p| after.has_room(p)) {
            state.origin = free.to_array();
        }
    }
}
