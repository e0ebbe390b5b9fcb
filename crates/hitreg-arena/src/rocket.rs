//! Rockets. They fly through the present world and hit what they meet there.

use glam::Vec3;

use super::arrow::launch_of;
use super::body::{ArenaBody, BodyKind};
use super::crowd::sweep_projectile;
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::harm::{generic_wound, hurt};
use super::rules::ArenaRules;
use super::solid::{SweepContact, SweepHit};
use super::state::{ArenaWorld, ProjectileFlight};
use super::weapon::{Muzzle, WeaponId};
use hitreg_log::units::{EntityId, Micros};
use hitreg_netcode::game::{Reason, ShotVerdict, WorldSink};

/// How far before an obstacle a rocket explodes, in units, so that the surface itself does not shield anyone.
const BURST_GAP_UNITS: f32 = 1.0;

/// Returns the rocket of a shot at launch; `None` for weapons that shoot no rockets.
pub(crate) fn loose(rules: &ArenaRules, fire: &ArenaFire) -> Option<ArenaBody> {
    let Muzzle::Rocket { speed_units_s, .. } = rules.weapon(fire.weapon).shot else { return None };
    let line = fire.centre();
    Some(ArenaBody {
        kind: BodyKind::Rocket,
        origin: line.from,
        velocity: line.direction * speed_units_s,
        viewangles: fire.viewangles,
        alive: true,
        teleports: launch_of(fire.shooter, fire.command),
        ..ArenaBody::default()
    })
}

/// Launches a rocket.
pub(crate) fn launch(rules: &ArenaRules, world: &mut ArenaWorld, fire: &ArenaFire) {
    let Muzzle::Rocket { life_ms, .. } = rules.weapon(fire.weapon).shot else { return };
    let Some(rocket) = loose(rules, fire) else { return };
    world.launch(fire.flight(u32::from(life_ms) * 1_000, None), rocket);
}

/// Moves all rockets. A rocket explodes when it hits something, or at the end of its lifetime.
pub(crate) fn fly(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let first = world.first_flight();
    let mut bursts: Vec<(EntityId, ProjectileFlight, RocketBurst)> = Vec::new();
    for at in 0..world.flights.len() {
        let (id, rocket) = world.entities[first + at];
        let mut flight = world.flights[at];
        if rocket.kind != BodyKind::Rocket {
            continue;
        }
        let to = rocket.origin + rocket.velocity * dt.as_s_f64() as f32;
        let way = [rocket.origin, to];
        let SweepHit { end, touch: met, .. } =
            sweep_projectile(rules, world.player_bodies(), flight.shooter.entity(), way);
        flight.life_us = flight.life_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        world.flights[at] = flight;
        world.entities[first + at].1.origin = end;
        if met != SweepContact::Nothing || flight.life_us == 0 {
            let centre = end - rocket.velocity.normalize_or_zero() * BURST_GAP_UNITS;
            bursts.push((id, flight, RocketBurst { centre, met }));
        }
    }
    for (id, flight, burst) in bursts {
        if let Ok(at) = world.entities.binary_search_by_key(&id, |(id, _)| *id) {
            world.entities.remove(at);
            world.flights.remove(at - first);
        }
        out.effect(ArenaEffect::Explosion.by(id, burst.centre));
        let verdict = burst.hurt_all(rules, world, flight, out);
        out.impact(flight.shooter, flight.command, flight.weapon.name(), verdict);
    }
}

struct RocketBurst {
    centre: Vec3,
    met: SweepContact,
}

impl RocketBurst {
    /// Damages every player within the radius. The verdict covers other players; damage to the shooter is not a hit.
    fn hurt_all(
        &self,
        rules: &ArenaRules,
        world: &mut ArenaWorld,
        flight: ProjectileFlight,
        out: &mut impl WorldSink,
    ) -> ShotVerdict {
        let shooter = flight.shooter.entity();
        let mut verdict = ShotVerdict::miss(Reason::Missed);
        for number in 0..usize::from(world.players) {
            let (target, body) = world.entities[number];
            match self.damage_to(rules, flight.weapon, target, &body) {
                BlastDamage::None => {}
                BlastDamage::Shielded => {
                    if target != shooter && verdict.wounds.is_empty() {
                        verdict.reason = Reason::HitWorld;
                    }
                }
                BlastDamage::Takes(damage) => {
                    let own = target == shooter;
                    let damage = if own { (damage as f32 * rules.own_burst_factor) as i32 } else { damage };
                    let direction = (body.origin - self.centre).normalize_or_zero();
                    hurt(rules, world, flight.shooter, target, damage, direction, out);
                    if !own {
                        verdict.reason = Reason::Hit;
                        verdict.wounds.push(generic_wound(target, damage));
                    }
                }
            }
        }
        verdict
    }

    fn damage_to(&self, rules: &ArenaRules, weapon: WeaponId, id: EntityId, body: &ArenaBody) -> BlastDamage {
        let Muzzle::Rocket { damage, radius_units, .. } = rules.weapon(weapon).shot else {
            return BlastDamage::None;
        };
        if !body.is_target() {
            return BlastDamage::None;
        }
        if self.met == SweepContact::Entity(id) {
            return BlastDamage::Takes(damage);
        }
        let half = body.hull().half_extent_units();
        let nearest = self.centre.clamp(body.origin - half, body.origin + half);
        let left = 1.0 - nearest.distance(self.centre) / radius_units;
        let worth = (damage as f32 * left) as i32;
        if worth <= 0 {
            return BlastDamage::None;
        }
        let is_hit = |at: Vec3| rules.map.is_clear(self.centre, at);
        if is_hit(body.origin) || is_hit(body.eye()) { BlastDamage::Takes(worth) } else { BlastDamage::Shielded }
    }
}

/// The effect of an explosion on one player.
enum BlastDamage {
    /// Out of the radius, or dead.
    None,
    /// Within the radius, but behind a part of the map.
    Shielded,
    /// The damage in health points.
    Takes(i32),
}
