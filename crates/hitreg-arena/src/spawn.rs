//! Spawning and respawning.

use glam::Vec3;

use super::body::{Ammunition, ArenaBody, BodyKind};
use super::effect::ArenaEffect;
use super::map::SpawnPoint;
use super::pmove::VIEW_HEIGHT_STANDING_UNITS;
use super::prop;
use super::rules::ArenaRules;
use super::solid::SolidHull;
use super::state::ArenaWorld;
use super::weapon::WeaponId;
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros, Seed};
use hitreg_netcode::game::WorldSink;

/// Separates the random streams of respawns from those of usercmds, whose upper half is a player's number.
const RESPAWN_STREAM: u64 = 1 << 63;

/// A player who falls this far below the lowest spawn point dies, in units. This happens only on maps that leak.
const VOID_DEPTH_UNITS: f32 = 8_192.0;

/// Returns the world before the first tick. Players without a free spawn point wait for one as dead players.
pub(crate) fn spawn(rules: &ArenaRules, seed: Seed, players: u16) -> ArenaWorld {
    let mut world = ArenaWorld { players, ..ArenaWorld::empty(seed) };
    for number in 0..players {
        let id = EntityId(number);
        let waiting = ArenaBody { kind: BodyKind::Player, ..ArenaBody::default() };
        let body = match free_place(rules, &world, id, 0) {
            Some(place) => ArenaBody { teleports: 0, ..appearing(rules, &waiting, place) },
            None => ArenaBody { origin: rules.map.spawn_points()[0].origin, ..waiting },
        };
        world.entities.push((id, body));
    }
    prop::place(rules, &mut world);
    world
}

/// Respawns the dead whose time has come, as soon as a spawn point is free. Kills players who have fallen out of the
/// map.
pub(crate) fn respawn(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let lowest = rules.map.spawn_points().iter().map(|place| place.origin.z).fold(f32::INFINITY, f32::min);
    for number in 0..usize::from(world.players) {
        let (id, body) = &mut world.entities[number];
        let id = *id;
        if body.alive {
            if body.origin.z < lowest - VOID_DEPTH_UNITS {
                body.alive = false;
                body.health = 0;
                body.respawn_us = rules.respawn_ms.saturating_mul(1_000);
                body.frags = body.frags.saturating_sub(1);
                out.effect(ArenaEffect::Death.by(id, body.origin));
            }
            continue;
        }
        body.respawn_us = body.respawn_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        if body.respawn_us > 0 {
            continue;
        }
        let body = *body;
        if let Some(place) = free_place(rules, world, id, body.teleports) {
            world.entities[number].1 = appearing(rules, &body, place);
            out.effect(ArenaEffect::Respawn.by(id, place.origin));
        }
    }
}

/// Returns the first free spawn point, starting from one that the seed selects.
fn free_place(rules: &ArenaRules, world: &ArenaWorld, id: EntityId, life: u32) -> Option<SpawnPoint> {
    let places = rules.map.spawn_points();
    let stream = RESPAWN_STREAM | (u64::from(id.0) << 32) | u64::from(life);
    let start = Rng::new(world.seed, stream).below(places.len() as u64) as usize;
    let is_free = |place: &SpawnPoint| {
        let hulls = SolidHull::Standing.half_extent_units() * 2.0;
        world
            .player_bodies()
            .iter()
            .all(|(_, other)| !other.is_target() || (other.origin - place.origin).abs().cmpgt(hulls).any())
    };
    (0..places.len()).map(|turn| places[(start + turn) % places.len()]).find(is_free)
}

/// Returns a new life at a place, with full health and ammunition; the score is kept.
fn appearing(rules: &ArenaRules, before: &ArenaBody, place: SpawnPoint) -> ArenaBody {
    let [pistol, shotgun, launcher] = WeaponId::ALL.map(|weapon| rules.weapon(weapon));
    ArenaBody {
        kind: BodyKind::Player,
        origin: place.origin,
        viewangles: Vec3::new(0.0, place.yaw_deg, 0.0),
        view_ofs_z: VIEW_HEIGHT_STANDING_UNITS,
        clip: Ammunition { pistol: pistol.clip, shotgun: shotgun.clip, launcher: launcher.clip },
        reserve: Ammunition { pistol: pistol.reserve, shotgun: shotgun.reserve, launcher: launcher.reserve },
        health: rules.health,
        alive: true,
        frags: before.frags,
        teleports: before.teleports.wrapping_add(1),
        ..ArenaBody::default()
    }
}
