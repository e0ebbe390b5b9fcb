//! A shot: its origin, direction and pellets, the parts of bodies that it hits, its judgement, and its effects on the
//! present world: damage, knockback and death.

use glam::Vec3;

use crate::body::ArenaBody;
use crate::game::{Arena, ArenaEffect};
use crate::projectile;
use crate::rules::{ArenaRules, Muzzle, WeaponId};
use crate::solid::{Solid, SolidHull};
use crate::state::ArenaWorld;
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{DamageShare, HitResult, Judge, ShotVerdict, WorldSink};

/// One shot, with everything that judging it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArenaFire {
    /// The shooter.
    pub shooter: PlayerId,
    /// The weapon.
    pub weapon: WeaponId,
    /// Whether the shot is a projectile, which is launched instead of judged.
    pub flies: bool,
    /// The origin of the shot, in units.
    pub muzzle: Vec3,
    /// The shooter's view, in degrees.
    pub viewangles: Vec3,
    /// The session's seed. Together with the usercmd's number it determines the spread.
    pub seed: Seed,
    /// The usercmd's number.
    pub command: CommandSeq,
}

impl ArenaFire {
    /// Returns the line of aim.
    pub(crate) fn centre(&self) -> Ray {
        Ray { from: self.muzzle, direction: axes(self.viewangles).forward }
    }

    /// Returns the line of each pellet. The spread follows from seed, player and usercmd. The shooter's client knows
    /// all of them, and so computes the same spread as the server.
    fn pellets(&self, rules: &ArenaRules) -> impl Iterator<Item = Ray> {
        let (count, across_deg, upright_deg) = match rules.weapon(self.weapon).shot {
            Muzzle::Bullets { pellets, spread_across_deg, spread_upright_deg, .. } => {
                (pellets, spread_across_deg, spread_upright_deg)
            }
            Muzzle::Rocket { .. } | Muzzle::Arrow { .. } => (0, 0.0, 0.0),
        };
        let view = axes(self.viewangles);
        let (across, upright) = (libm::tanf(across_deg.to_radians()), libm::tanf(upright_deg.to_radians()));
        let mut rng = Rng::for_command(self.seed, self.shooter, self.command);
        let from = self.muzzle;
        (0..count).map(move |_| {
            // The sum of two draws concentrates the pellets around the middle, as in Half-Life.
            let mut draw = || (rng.signed_f32() + rng.signed_f32()) * 0.5;
            let (right, up) = (draw() * across, draw() * upright);
            Ray { from, direction: (view.forward + view.right * right + view.up * up).normalize() }
        })
    }
}

/// The axes of a view.
pub(crate) struct ViewAxes {
    pub(crate) forward: Vec3,
    pub(crate) right: Vec3,
    pub(crate) up: Vec3,
}

/// Returns the axes for pitch (positive downward) and yaw in degrees. Shots ignore the roll.
pub(crate) fn axes(viewangles: Vec3) -> ViewAxes {
    let (sin_pitch, cos_pitch) = libm::sincosf(viewangles.x.to_radians());
    let (sin_yaw, cos_yaw) = libm::sincosf(viewangles.y.to_radians());
    ViewAxes {
        forward: Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, -sin_pitch),
        right: Vec3::new(sin_yaw, -cos_yaw, 0.0),
        up: Vec3::new(sin_pitch * cos_yaw, sin_pitch * sin_yaw, cos_pitch),
    }
}

/// Returns the yaw of a direction, in degrees.
pub(crate) fn yaw_of(direction: Vec3) -> f32 {
    libm::atan2f(direction.y, direction.x).to_degrees()
}

hitreg_log::named! {
    /// A part of a body. The numbers up to the stomach are Half-Life's; the legs are one part here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Hitgroup {
        /// No specific part, for explosions.
        Generic = "generic",
        /// The head.
        Head = "head",
        /// Shoulders and chest.
        Chest = "chest",
        /// The stomach.
        Stomach = "stomach",
        /// The legs.
        Legs = "legs",
    }
}

/// The box of one part, centred on the vertical through the body's origin.
struct HitboxPart {
    hitgroup: Hitgroup,
    /// Half of its width and depth, in units.
    half_width: f32,
    /// Its lowest and highest points above the origin, in units.
    span: (f32, f32),
}

const fn part(hitgroup: Hitgroup, half_width: f32, low: f32, high: f32) -> HitboxPart {
    HitboxPart { hitgroup, half_width, span: (low, high) }
}

const STANDING: [HitboxPart; 4] = [
    part(Hitgroup::Head, 6.0, 22.0, 36.0),
    part(Hitgroup::Chest, 12.0, 4.0, 22.0),
    part(Hitgroup::Stomach, 11.0, -8.0, 4.0),
    part(Hitgroup::Legs, 10.0, -36.0, -8.0),
];

const DUCKED: [HitboxPart; 4] = [
    part(Hitgroup::Head, 6.0, 6.0, 18.0),
    part(Hitgroup::Chest, 13.0, -4.0, 6.0),
    part(Hitgroup::Stomach, 13.0, -10.0, -4.0),
    part(Hitgroup::Legs, 14.0, -18.0, -10.0),
];

/// Returns the parts of a body, from the head down.
fn parts_of(body: &ArenaBody) -> &'static [HitboxPart; 4] {
    if body.ducked { &DUCKED } else { &STANDING }
}

/// A ray, prepared for many box tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ray {
    pub(crate) from: Vec3,
    /// The unit direction.
    pub(crate) direction: Vec3,
}

impl Ray {
    /// Returns the nearest part of a body on the ray, and its distance in units. Of two equally near parts, returns the
    /// upper one.
    fn first_part(&self, body: &ArenaBody) -> Option<(Hitgroup, f32)> {
        const HALF_DIAGONAL_UNITS: f32 = 43.0;
        let to_body = body.origin - self.from;
        let along = to_body.dot(self.direction).max(0.0);
        let off_squared = (to_body - self.direction * along).length_squared();
        // Most bodies are farther from the line than a hull's half diagonal.
        let is_near = off_squared <= HALF_DIAGONAL_UNITS * HALF_DIAGONAL_UNITS;
        if !is_near {
            return None;
        }
        let mut first: Option<(Hitgroup, f32)> = None;
        for part in parts_of(body) {
            let min = body.origin + Vec3::new(-part.half_width, -part.half_width, part.span.0);
            let max = body.origin + Vec3::new(part.half_width, part.half_width, part.span.1);
            let away = self.enters(min, max);
            if let Some(away) = away.filter(|away| first.is_none_or(|(_, nearest)| *away < nearest)) {
                first = Some((part.hitgroup, away));
            }
        }
        first
    }

    /// Returns the distance at which the ray enters a box: 0 from inside, `None` when it misses.
    fn enters(&self, min: Vec3, max: Vec3) -> Option<f32> {
        let (mut enter, mut leave) = (0.0_f32, f32::INFINITY);
        for axis in 0..3 {
            let (from, direction) = (self.from[axis], self.direction[axis]);
            if direction == 0.0 {
                if from < min[axis] || from > max[axis] {
                    return None;
                }
                continue;
            }
            let (a, b) = ((min[axis] - from) / direction, (max[axis] - from) / direction);
            enter = enter.max(a.min(b));
            leave = leave.min(a.max(b));
        }
        (enter <= leave).then_some(enter)
    }
}

impl Judge for Arena {
    fn judge(rules: &ArenaRules, fire: &ArenaFire, targets: &[(EntityId, ArenaBody)]) -> ShotVerdict {
        let Muzzle::Bullets { damage, reach_units, .. } = rules.weapon(fire.weapon).shot else {
            return ShotVerdict::miss(HitResult::Launched);
        };
        let mut wounds: Vec<DamageShare> = Vec::new();
        let mut reason = HitResult::Missed;
        for pellet in fire.pellets(rules) {
            match follow(rules, fire, targets, &pellet, reach_units) {
                Ok((target, hitgroup)) => {
                    let factor = rules.hitgroup_factors[hitgroup as usize];
                    let damage = (damage as f32 * factor) as i32;
                    add_wound(&mut wounds, DamageShare { target, hitgroup: hitgroup as u8, damage, pellets: 1 });
                    reason = HitResult::Hit;
                }
                Err(HitResult::HitWorld) if wounds.is_empty() => reason = HitResult::HitWorld,
                Err(_) => {}
            }
        }
        ShotVerdict { reason, wounds }
    }

    fn is_target(body: &ArenaBody) -> bool {
        body.is_target()
    }

    /// Returns whether a bullet from `from` could reach the middle or a side of any part of a body. Other players are
    /// ignored.
    fn sees(rules: &ArenaRules, from: Vec3, body: &ArenaBody) -> Option<bool> {
        let towards = (body.origin - from).truncate().normalize_or_zero();
        let across = Vec3::new(-towards.y, towards.x, 0.0);
        let is_seen = parts_of(body).iter().any(|part| {
            let middle = body.origin + Vec3::Z * ((part.span.0 + part.span.1) * 0.5);
            // Slightly inside the part, so that a wall that touches the part hides it only from behind.
            let edge = across * (part.half_width - 1.0);
            [middle, middle + edge, middle - edge].into_iter().any(|to| {
                let way = rules.map.solid().sweep(SolidHull::Point, from, to);
                way.fraction >= 1.0 && !way.all_solid
            })
        });
        Some(is_seen)
    }

    fn aim(fire: &ArenaFire) -> (Vec3, Vec3) {
        let line = fire.centre();
        (line.from, line.direction)
    }

    fn is_projectile(fire: &ArenaFire) -> bool {
        fire.flies
    }

    fn apply(
        rules: &ArenaRules,
        world: &mut ArenaWorld,
        shooter: PlayerId,
        command: &Usercmd,
        fire: &ArenaFire,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        match rules.weapon(fire.weapon).shot {
            Muzzle::Rocket { .. } => {
                let fire = ArenaFire { shooter, command: command.seq, ..*fire };
                projectile::launch(rules, world, &fire);
            }
            Muzzle::Arrow { .. } => projectile::launch(rules, world, fire),
            Muzzle::Bullets { .. } => {
                let direction = fire.centre().direction;
                for wound in &verdict.wounds {
                    hurt(rules, world, shooter, wound.target, wound.damage, direction, out);
                }
            }
        }
    }

    fn hitgroup_name(hitgroup: u8) -> &'static str {
        Hitgroup::NAMES.get(usize::from(hitgroup)).copied().unwrap_or("unknown")
    }

    fn weapon_name(fire: &ArenaFire) -> &'static str {
        fire.weapon.name()
    }
}

/// Returns the part of a player that a pellet hits. [`HitResult::HitWorld`] means that the map was in the way of a hit.
fn follow(
    rules: &ArenaRules,
    fire: &ArenaFire,
    targets: &[(EntityId, ArenaBody)],
    ray: &Ray,
    reach_units: f32,
) -> Result<(EntityId, Hitgroup), HitResult> {
    let mut first: Option<(EntityId, Hitgroup, f32)> = None;
    for (id, body) in targets {
        if *id == fire.shooter.entity() || !body.is_target() {
            continue;
        }
        let Some((hitgroup, away)) = ray.first_part(body) else { continue };
        if away <= reach_units && first.is_none_or(|(.., nearest)| away < nearest) {
            first = Some((*id, hitgroup, away));
        }
    }
    let (target, hitgroup, away) = first.ok_or(HitResult::Missed)?;
    // Only the way to the target must be free. The sweep's surface gap before a wall just behind the target must not
    // count.
    let way = rules.map.solid().sweep(SolidHull::Point, ray.from, ray.from + ray.direction * away);
    if way.fraction < 1.0 || way.all_solid { Err(HitResult::HitWorld) } else { Ok((target, hitgroup)) }
}

/// Adds a pellet to the wound of its target. The wound's part is that of the most damaging pellet.
fn add_wound(wounds: &mut Vec<DamageShare>, new: DamageShare) {
    match wounds.binary_search_by_key(&new.target, |wound| wound.target) {
        Err(at) => wounds.insert(at, new),
        Ok(at) => {
            let wound = &mut wounds[at];
            let share = wound.damage / i32::from(wound.pellets).max(1);
            if new.damage > share {
                wound.hitgroup = new.hitgroup;
            }
            wound.damage = wound.damage.saturating_add(new.damage);
            wound.pellets = wound.pellets.saturating_add(1);
        }
    }
}

/// Damages and pushes a living player. A kill of another player scores one frag, a suicide costs one.
pub(crate) fn hurt(
    rules: &ArenaRules,
    world: &mut ArenaWorld,
    shooter: PlayerId,
    target: EntityId,
    damage: i32,
    direction: Vec3,
    out: &mut impl WorldSink,
) {
    let Some(victim) = world.entity_mut(target).filter(|victim| victim.is_target()) else {
        return;
    };
    let push_units_s = (damage as f32 * rules.knockback_units_s).min(rules.knockback_limit_units_s);
    victim.velocity += direction * push_units_s;
    victim.health = victim.health.saturating_sub(damage);
    let (at, dies) = (victim.origin, victim.health <= 0);
    if dies {
        victim.alive = false;
        victim.respawn_us = rules.respawn_ms.saturating_mul(1_000);
    }
    out.effect(if dies { ArenaEffect::Death } else { ArenaEffect::Pain }.by(target, at));
    let own = target == shooter.entity();
    if !own {
        out.effect(ArenaEffect::HitTone.by(shooter.entity(), at));
    }
    if let Some(killer) = world.entity_mut(shooter.entity()).filter(|_| dies) {
        killer.frags = killer.frags.saturating_add(if own { -1 } else { 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_ray(z: f32) -> Ray {
        Ray { from: Vec3::new(-100.0, 0.0, z), direction: Vec3::X }
    }

    #[test]
    fn parts_follow_the_stance() {
        let standing = ArenaBody { alive: true, ..ArenaBody::default() };
        let ducked = ArenaBody { ducked: true, ..standing };
        let hit = |body: &ArenaBody, z| level_ray(z).first_part(body).map(|(part, _)| part);
        assert_eq!(hit(&standing, 30.0), Some(Hitgroup::Head));
        assert_eq!(hit(&standing, 10.0), Some(Hitgroup::Chest));
        assert_eq!(hit(&standing, 0.0), Some(Hitgroup::Stomach));
        assert_eq!(hit(&standing, -30.0), Some(Hitgroup::Legs));
        assert_eq!(hit(&ducked, 30.0), None);
        assert_eq!(hit(&ducked, 10.0), Some(Hitgroup::Head));
        assert_eq!(hit(&ducked, -15.0), Some(Hitgroup::Legs));
    }

    #[test]
    fn distances_are_to_the_hit_side() {
        let body = ArenaBody::default();
        assert_eq!(level_ray(10.0).first_part(&body), Some((Hitgroup::Chest, 88.0)));
        let away = Ray { from: Vec3::new(-100.0, 0.0, 10.0), direction: Vec3::NEG_X };
        assert_eq!(away.first_part(&body), None);
        let within = Ray { from: Vec3::new(0.0, 0.0, 10.0), direction: Vec3::Y };
        assert_eq!(within.first_part(&body), Some((Hitgroup::Chest, 0.0)));
    }
}
