//! A shot: its origin, direction and pellets.

use glam::Vec3;

use super::body::ArenaBody;
use super::hitbox::Ray;
use super::rules::ArenaRules;
use super::state::ProjectileFlight;
use super::weapon::{Muzzle, WeaponId};
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, Seed};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::Scene;

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
    pub(crate) fn by(
        rules: &ArenaRules,
        scene: &Scene<'_, ArenaBody>,
        body: &ArenaBody,
        command: &Usercmd,
    ) -> ArenaFire {
        ArenaFire {
            shooter: scene.player,
            weapon: body.weapon,
            flies: matches!(rules.weapon(body.weapon).shot, Muzzle::Rocket { .. } | Muzzle::Arrow { .. }),
            muzzle: body.eye(),
            viewangles: body.viewangles,
            seed: scene.seed,
            command: command.seq,
        }
    }

    /// Returns the server-only state of the projectile that it launches.
    pub(crate) fn flight(&self, life_us: u32, target: Option<(EntityId, u32)>) -> ProjectileFlight {
        ProjectileFlight { shooter: self.shooter, command: self.command, weapon: self.weapon, life_us, target }
    }

    /// Returns the line of aim.
    pub(crate) fn centre(&self) -> Ray {
        Ray { from: self.muzzle, direction: axes(self.viewangles).forward }
    }

    /// Returns the line of each pellet. The spread follows from seed, player and usercmd. The shooter's client knows
    /// all of them, and so computes the same spread as the server.
    pub(crate) fn pellets(&self, rules: &ArenaRules) -> impl Iterator<Item = Ray> {
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
pub(crate) struct Axes {
    pub(crate) forward: Vec3,
    pub(crate) right: Vec3,
    pub(crate) up: Vec3,
}

/// Returns the axes for pitch (positive downward) and yaw in degrees. Shots ignore the roll.
pub(crate) fn axes(viewangles: Vec3) -> Axes {
    let (sin_pitch, cos_pitch) = libm::sincosf(viewangles.x.to_radians());
    let (sin_yaw, cos_yaw) = libm::sincosf(viewangles.y.to_radians());
    Axes {
        forward: Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, -sin_pitch),
        right: Vec3::new(sin_yaw, -cos_yaw, 0.0),
        up: Vec3::new(sin_pitch * cos_yaw, sin_pitch * sin_yaw, cos_pitch),
    }
}

/// Returns the yaw of a direction, in degrees.
pub(crate) fn yaw_of(direction: Vec3) -> f32 {
    libm::atan2f(direction.y, direction.x).to_degrees()
}
