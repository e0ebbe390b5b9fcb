//! The effects of hits on the present world: damage, knockback, death.

use glam::Vec3;

use super::effect::ArenaEffect;
use super::hitbox::Hitgroup;
use super::rules::ArenaRules;
use super::state::ArenaWorld;
use hitreg_log::units::{EntityId, PlayerId};
use hitreg_netcode::game::{DamageShare, WorldSink};

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

/// Returns a wound of no specific part of the body.
pub(crate) fn generic_wound(target: EntityId, damage: i32) -> DamageShare {
    DamageShare { target, hitgroup: Hitgroup::Generic as u8, damage, pellets: 1 }
}
