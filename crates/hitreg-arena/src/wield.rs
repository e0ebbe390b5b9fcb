//! The weapons' part of a usercmd: timers, switching, reloading, firing.

use super::body::ArenaBody;
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::rules::ArenaRules;
use super::weapon::WeaponId;
use hitreg_log::usercmd::{Usercmd, buttons};
use hitreg_netcode::game::{Scene, Sink};

/// The time between dry-fire clicks in ms, as in Half-Life.
const DRY_FIRE_MS: u16 = 200;

pub(crate) fn wield(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    body: &mut ArenaBody,
    command: &Usercmd,
    out: &mut impl Sink<ArenaFire>,
) {
    let me = scene.player.entity();
    run_timers(rules, body, command.input.msec);
    if let Some(wanted) = WeaponId::selected_by(command.input.impulse).filter(|wanted| *wanted != body.next_weapon) {
        select(rules, body, wanted);
        out.effect(ArenaEffect::Switch.by(me, body.origin));
    }
    if body.switch_ms == 0 && body.next_weapon != body.weapon {
        body.weapon = body.next_weapon;
        body.switch_ms = rules.weapon(body.weapon).deploy_ms;
    }
    if body.switch_ms > 0 || body.reload_ms > 0 || body.next_attack_ms > 0 {
        return;
    }
    let loaded = body.clip.of(body.weapon);
    let attacks = command.input.buttons & buttons::ATTACK != 0;
    let asks_to_reload = command.input.buttons & buttons::RELOAD != 0;
    if attacks && loaded > 0 {
        *body.clip.of_mut(body.weapon) -= 1;
        body.next_attack_ms = rules.weapon(body.weapon).interval_ms;
        out.effect(shot_effect(body.weapon).by(me, body.origin));
        out.fire(ArenaFire::by(rules, scene, body, command));
    } else if (asks_to_reload || loaded == 0) && can_reload(rules, body) {
        body.reload_ms = rules.weapon(body.weapon).reload_ms;
        out.effect(ArenaEffect::Reload.by(me, body.origin));
    } else if attacks {
        body.next_attack_ms = DRY_FIRE_MS;
        out.effect(ArenaEffect::DryFire.by(me, body.origin));
    }
}

fn run_timers(rules: &ArenaRules, body: &mut ArenaBody, msec: u8) {
    let msec = u16::from(msec);
    body.switch_ms = body.switch_ms.saturating_sub(msec);
    body.next_attack_ms = body.next_attack_ms.saturating_sub(msec);
    let was_reloading = body.reload_ms > 0;
    body.reload_ms = body.reload_ms.saturating_sub(msec);
    if was_reloading && body.reload_ms == 0 {
        fill_clip(rules, body);
    }
}

fn fill_clip(rules: &ArenaRules, body: &mut ArenaBody) {
    let room = rules.weapon(body.weapon).clip.saturating_sub(body.clip.of(body.weapon));
    let moved = room.min(body.reserve.of(body.weapon));
    *body.clip.of_mut(body.weapon) += moved;
    *body.reserve.of_mut(body.weapon) -= moved;
}

/// Starts to put the weapon in hand away, or keeps it if it is the requested one. Cancels a reload.
fn select(rules: &ArenaRules, body: &mut ArenaBody, wanted: WeaponId) {
    let in_hand = rules.weapon(body.weapon);
    body.switch_ms = if wanted == body.weapon { in_hand.deploy_ms } else { in_hand.holster_ms };
    body.reload_ms = 0;
    body.next_weapon = wanted;
}

fn can_reload(rules: &ArenaRules, body: &ArenaBody) -> bool {
    body.clip.of(body.weapon) < rules.weapon(body.weapon).clip && body.reserve.of(body.weapon) > 0
}

fn shot_effect(weapon: WeaponId) -> ArenaEffect {
    match weapon {
        WeaponId::Pistol => ArenaEffect::Pistol,
        WeaponId::Shotgun => ArenaEffect::Shotgun,
        WeaponId::Launcher => ArenaEffect::Launcher,
    }
}
