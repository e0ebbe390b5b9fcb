//! Judges the shots of bullets against the other players, and applies judged shots.

use glam::Vec3;

use super::body::ArenaBody;
use super::fire::ArenaFire;
use super::harm::hurt;
use super::hitbox::{self, Hitgroup, Ray};
use super::rules::ArenaRules;
use super::solid::{Solid, SolidHull};
use super::state::ArenaWorld;
use super::weapon::Muzzle;
use super::{Arena, arrow, rocket};
use hitreg_log::units::{EntityId, PlayerId};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{DamageShare, Judge, Reason, ShotVerdict, WorldSink};

impl Judge for Arena {
    fn judge(rules: &ArenaRules, fire: &ArenaFire, targets: &[(EntityId, ArenaBody)]) -> ShotVerdict {
        let Muzzle::Bullets { damage, reach_units, .. } = rules.weapon(fire.weapon).shot else {
            return ShotVerdict::miss(Reason::Launched);
        };
        let mut wounds: Vec<DamageShare> = Vec::new();
        let mut hit_world = false;
        for pellet in fire.pellets(rules) {
            match follow(rules, fire, targets, &pellet, reach_units) {
                PelletFate::Met(target, hitgroup) => {
                    let factor = rules.hitgroup_factors[hitgroup as usize];
                    let damage = (damage as f32 * factor) as i32;
                    add_wound(&mut wounds, DamageShare { target, hitgroup: hitgroup as u8, damage, pellets: 1 });
                }
                PelletFate::HitWorld => hit_world = true,
                PelletFate::Missed => {}
            }
        }
        let reason = match (wounds.is_empty(), hit_world) {
            (false, _) => Reason::Hit,
            (true, true) => Reason::HitWorld,
            (true, false) => Reason::Missed,
        };
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
        let is_seen = hitbox::parts(body).any(|(middle, half_width)| {
            // Slightly inside the part, so that a wall that touches the part hides it only from behind.
            let edge = across * (half_width - 1.0);
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
                rocket::launch(rules, world, &fire);
            }
            Muzzle::Arrow { .. } => arrow::launch(rules, world, fire),
            Muzzle::Bullets { .. } => {
                let direction = fire.centre().direction;
                for wound in &verdict.wounds {
                    hurt(rules, world, shooter, wound.target, wound.damage, direction, out);
                }
            }
        }
    }

    fn hitgroup_name(hitgroup: u8) -> &'static str {
        Hitgroup::name_of(hitgroup)
    }

    fn weapon_name(fire: &ArenaFire) -> &'static str {
        fire.weapon.name()
    }
}

/// The outcome of one pellet.
enum PelletFate {
    Met(EntityId, Hitgroup),
    /// The map was in the way of a hit.
    HitWorld,
    Missed,
}

fn follow(
    rules: &ArenaRules,
    fire: &ArenaFire,
    targets: &[(EntityId, ArenaBody)],
    ray: &Ray,
    reach_units: f32,
) -> PelletFate {
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
    let Some((target, hitgroup, away)) = first else { return PelletFate::Missed };
    // Only the way to the target must be free. The sweep's surface gap before a wall just behind the target must not
    // count.
    let way = rules.map.solid().sweep(SolidHull::Point, ray.from, ray.from + ray.direction * away);
    if way.fraction < 1.0 || way.all_solid { PelletFate::HitWorld } else { PelletFate::Met(target, hitgroup) }
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
