//! A weapon going off: where from, where to, and with which pellets.

use glam::Vec3;

use super::body::ArenaBody;
use super::hitbox::Ray;
use super::rules::ArenaRules;
use super::weapon::{Shot, WeaponId};
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::Scene;

/// One shot, with all that judging it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArenaFire {
    /// Who shot.
    pub shooter: PlayerId,
    /// What with.
    pub weapon: WeaponId,
    /// Whether it flies by itself, so that it is launched and not judged.
    pub flies: bool,
    /// Where the shot leaves, in units.
    pub muzzle: Vec3,
    /// Where the shooter looks, in degrees.
    pub viewangles: Vec3,
    /// The session's seed and the usercmd's number, which say how the pellets spread.
    pub seed: Seed,
    /// See [`ArenaFire::seed`].
    pub command: CommandSeq,
}

impl ArenaFire {
    pub(crate) fn by(
        rules: &ArenaRules,
        scene: &Scene<'_, ArenaBody>,
        body: &ArenaBody,
        command: &Usercmd,
    ) -> ArenaFire {
        ArenaFire {
            shooter: scene.player,
            weapon: body.weapon,
            flies: matches!(rules.weapon(body.weapon).shot, Shot::Rocket { .. } | Shot::Arrow { .. }),
            muzzle: body.eye(),
            viewangles: body.viewangles,
            seed: scene.seed,
            command: command.seq,
        }
    }

    /// The line along which it is aimed.
    pub(crate) fn centre(&self) -> Ray {
        Ray { from: self.muzzle, direction: axes(self.viewangles).forward }
    }

    /// The line of each pellet. Each is drawn from the seed, the player and the usercmd, so that the shooter's client, which knows
    /// them all, sees the very same spread as the server.
    pub(crate) fn pellets(&self, rules: &ArenaRules) -> impl Iterator<Item = Ray> {
        let (count, across_deg, upright_deg) = match rules.weapon(self.weapon).shot {
            Shot::Bullets { pellets, spread_across_deg, spread_upright_deg, .. } => {
                (pellets, spread_across_deg, spread_upright_deg)
            }
            Shot::Rocket { .. } | Shot::Arrow { .. } => (0, 0.0, 0.0),
        };
        let view = axes(self.viewangles);
        let (across, upright) = (libm::tanf(across_deg.to_radians()), libm::tanf(upright_deg.to_radians()));
        let mut rng = Rng::for_command(self.seed, self.shooter, self.command);
        let from = self.muzzle;
        (0..count).map(move |_| {
            // The sum of two draws gathers the pellets around the middle, as Half-Life's does.
            let mut draw = || (rng.signed_f32() + rng.signed_f32()) * 0.5;
            let (right, up) = (draw() * across, draw() * upright);
            Ray { from, direction: (view.forward + view.right * right + view.up * up).normalize() }
        })
    }
}

/// The axes of a view.
pub(crate) struct Axes {
    pub(crate) forward: Vec3,
    pub(crate) right: Vec3,
    pub(crate) up: Vec3,
}

/// The axes for pitch (down is positive) and yaw in degrees. Shots do not read the roll.
pub(crate) fn axes(viewangles: Vec3) -> Axes {
    let (sin_pitch, cos_pitch) = libm::sincosf(viewangles.x.to_radians());
    let (sin_yaw, cos_yaw) = libm::sincosf(viewangles.y.to_radians());
    Axes {
        forward: Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, -sin_pitch),
        right: Vec3::new(sin_yaw, -cos_yaw, 0.0),
        up: Vec3::new(sin_pitch * cos_yaw, sin_pitch * sin_yaw, cos_pitch),
    }
}
