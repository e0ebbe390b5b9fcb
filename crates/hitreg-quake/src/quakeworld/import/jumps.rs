//! Finds teleports of players. The protocol does not mark them: they show as ways that no speed explains. A teleporter
//! flash or a return to life lowers the threshold.

use glam::Vec3;

use crate::quakeworld::body::QuakeWorldBody;
use crate::quakeworld::demo::{DemoEvent, EffectKind};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros};

/// A way longer than speed allows by this much, in units, is a jump if there is a flash or a return to life.
const MARKED_SLACK: f32 = 32.0;
/// Without such a sign, it must exceed twice the way by this much, in units.
const UNMARKED_SLACK: f32 = 256.0;
/// Largest distance of a teleporter flash from the player's new position, in units.
const FLASH_REACH: f32 = 64.0;

/// Number of jumps of each player.
#[derive(Debug, Default)]
pub(crate) struct JumpCounts {
    last: SortedMap<EntityId, PlayerSample>,
}

#[derive(Clone, Copy, Debug)]
struct PlayerSample {
    at: Micros,
    origin: Vec3,
    velocity: Vec3,
    alive: bool,
    jumps: u32,
}

impl JumpCounts {
    /// Returns how often a player has jumped, given its state and the events in a packet of time `at`.
    pub(crate) fn count(&mut self, entity: EntityId, at: Micros, now: &QuakeWorldBody, events: &[DemoEvent]) -> u32 {
        let before = self.last.get(&entity).copied();
        let jumps = before.map_or(0, |before| before.jumps + u32::from(has_jumped(&before, at, now, events)));
        let seen = PlayerSample { at, origin: now.origin, velocity: now.velocity, alive: now.alive, jumps };
        self.last.insert(entity, seen);
        jumps
    }
}

fn has_jumped(before: &PlayerSample, at: Micros, now: &QuakeWorldBody, events: &[DemoEvent]) -> bool {
    let way = now.origin.distance(before.origin);
    let speed = before.velocity.length().max(now.velocity.length());
    let reachable = speed * (at - before.at).as_s_f64() as f32;
    let flash = |event: &DemoEvent| match *event {
        DemoEvent::Effect { kind: EffectKind::Teleport, origin } => now.origin.distance(origin.into()) < FLASH_REACH,
        _ => false,
    };
    let marked = (now.alive && !before.alive) || events.iter().any(flash);
    way > if marked { reachable + MARKED_SLACK } else { 2.0 * reachable + UNMARKED_SLACK }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(x: f32, speed: f32) -> QuakeWorldBody {
        QuakeWorldBody {
            origin: Vec3::new(x, 0.0, 0.0),
            velocity: Vec3::new(speed, 0.0, 0.0),
            alive: true,
            ..QuakeWorldBody::default()
        }
    }

    #[test]
    fn running_is_not_a_jump_and_a_teleport_is() {
        let mut jumps = JumpCounts::default();
        let mut count = |ms, row, events: &[DemoEvent]| jumps.count(EntityId(1), Micros::from_ms(ms), &row, events);
        assert_eq!(count(0, row(0.0, 320.0), &[]), 0);
        assert_eq!(count(100, row(40.0, 320.0), &[]), 0);
        assert_eq!(count(200, row(140.0, 320.0), &[]), 0, "farther than it should be, but not marked");
        let flash = DemoEvent::Effect { kind: EffectKind::Teleport, origin: [230.0, 0.0, 10.0] };
        assert_eq!(count(300, row(240.0, 320.0), &[flash]), 1);
        assert_eq!(count(400, row(900.0, 320.0), &[]), 2);
        assert_eq!(count(500, row(901.0, 320.0), &[flash]), 2);
    }
}
