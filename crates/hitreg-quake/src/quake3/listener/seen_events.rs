//! Finds victims from event entities that all clients in sight receive: bullet impacts on players, and deaths
//! (OpenArena's bg_public.h, g_weapon.c and g_combat.c).

use std::sync::Arc;

use crate::quake3::protocol::{EntityCells, Quake3Snapshot, entity};
use hitreg_log::units::{EntityId, PlayerId};

/// The `kind` of an entity with event 0; further events follow.
const EVENTS: u32 = 13;
const BULLET_MET_FLESH: u32 = EVENTS + 48;
const OBITUARY: u32 = EVENTS + 60;

/// The event entities of the newest snapshot. Servers send each for several snapshots.
#[derive(Debug, Default)]
pub(super) struct SeenEvents {
    shown: Vec<(u16, Arc<EntityCells>)>,
}

impl SeenEvents {
    /// Returns the victims of a shooter that a snapshot reports for the first time, one for each bullet; deaths come
    /// last.
    pub(super) fn victims(&mut self, shooter: PlayerId, snapshot: &Quake3Snapshot) -> Vec<EntityId> {
        let is_event = |(_, cells): &&(u16, Arc<EntityCells>)| cells[entity("kind")] >= EVENTS;
        let now: Vec<(u16, Arc<EntityCells>)> = snapshot.entities.iter().filter(is_event).cloned().collect();
        let before = std::mem::replace(&mut self.shown, now);
        let new = self.shown.iter().filter(|event| !before.contains(event)).map(|(_, cells)| cells);
        let by_shooter = |cells: &&Arc<EntityCells>, attacker: usize| cells[attacker] == u32::from(shooter.0);
        let of_kind = |kind: u32, attacker: &'static str, victim: &'static str| {
            let (attacker, victim) = (entity(attacker), entity(victim));
            let matching =
                new.clone().filter(move |cells| cells[entity("kind")] == kind && by_shooter(cells, attacker));
            matching.map(move |cells| EntityId(cells[victim] as u16))
        };
        let bullets = of_kind(BULLET_MET_FLESH, "other_entity_num", "event_parm");
        let mut victims: Vec<EntityId> = bullets.collect();
        for dead in of_kind(OBITUARY, "other_entity_num2", "other_entity_num") {
            // A victim killed by a bullet has both events.
            if dead.0 != shooter.0 && !victims.contains(&dead) {
                victims.push(dead);
            }
        }
        victims
    }
}
