//! The world that a player collides with: the map and the entities in it.

use glam::Vec3;

use crate::bsp::quake3::{BoxSweep, Quake3Map, SubmodelIndex, SweepTrace, contents};

/// Entity numbers of the world and of no entity.
pub(crate) const WORLD: u32 = 1022;
pub(crate) const NO_ENTITY: u32 = 1023;

/// The shape of a solid entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SolidShape {
    /// A model of the map.
    Model(SubmodelIndex),
    /// A box relative to its origin.
    Body { mins: Vec3, maxs: Vec3 },
}

/// A solid entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntitySolid {
    pub(crate) entity: u32,
    pub(crate) origin: Vec3,
    pub(crate) shape: SolidShape,
}

/// A trigger that acts on players who touch it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PushTrigger {
    pub(crate) entity: u32,
    pub(crate) origin: Vec3,
    pub(crate) model: SubmodelIndex,
    /// New velocity of the player; `None` for a teleporter.
    pub(crate) throws: Option<Vec3>,
}

/// Everything that a player collides with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveWorld<'a> {
    pub(crate) map: &'a Quake3Map,
    pub(crate) solids: &'a [EntitySolid],
    pub(crate) triggers: &'a [PushTrigger],
}

impl MoveWorld<'_> {
    /// Sweeps a box; returns the result and the entity that stopped it.
    pub(crate) fn sweep(&self, sweep: &BoxSweep) -> (SweepTrace, u32) {
        let mut nearest = sweep.through(self.map);
        let mut entity = if nearest.fraction < 1.0 { WORLD } else { NO_ENTITY };
        for solid in self.solids {
            if nearest.all_solid {
                break;
            }
            let trace = match solid.shape {
                SolidShape::Model(model) => sweep.through_model(self.map, model, solid.origin),
                SolidShape::Body { .. } if sweep.mask & contents::BODY == 0 => continue,
                SolidShape::Body { mins, maxs } => sweep.past_box(self.map, solid.origin + mins, solid.origin + maxs),
            };
            if trace.all_solid || trace.fraction < nearest.fraction {
                let starts_solid = trace.starts_solid || nearest.starts_solid;
                nearest = SweepTrace { starts_solid, ..trace };
                entity = solid.entity;
            } else {
                nearest.starts_solid |= trace.starts_solid;
            }
        }
        (nearest, entity)
    }

    /// Returns the triggers that a box touches.
    pub(crate) fn touched(&self, at: Vec3, mins: Vec3, maxs: Vec3) -> impl Iterator<Item = &PushTrigger> {
        let sweep = BoxSweep { start: at, end: at, mins, maxs, mask: u32::MAX };
        self.triggers.iter().filter(move |trigger| {
            let trace = sweep.through_model(self.map, trigger.model, trigger.origin);
            trace.starts_solid || trace.all_solid
        })
    }
}
