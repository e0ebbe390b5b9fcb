//! Getting out of what one should not be in: rounding on the way, a mover, another player who spawned here.

use glam::Vec3;

use super::{BUTTON_ATTACK, BUTTON_DUCK, BUTTON_JUMP, MoveEvent, Mover, Solid, Touch};

/// The smallest nudge, in units.
const NUDGE_UNITS: f32 = 0.125;

/// The larger nudges: sideways, and up to each of these heights, in units.
const SHOVE_UNITS: f32 = 2.0;
const SHOVE_UP_UNITS: [f32; 3] = [0.0, 1.0, 6.0];

/// How far a player who struggles inside another is set aside, and up to each of these heights, in units.
const STRUGGLE_UNITS: f32 = 8.0;
const STRUGGLE_UP_UNITS: [f32; 5] = [0.0, 18.0, 36.0, 54.0, 72.0];

const SIDES: [f32; 3] = [-1.0, 0.0, 1.0];

impl<W: Solid, F: FnMut(MoveEvent)> Mover<'_, W, F> {
    /// Whether the player is inside of something and stays there. Where there is a free spot close by they are put
    /// there: by at most two units sideways and six up, or, out of another body, farther if they press a button.
    ///
    /// All spots are tried at once, with no clock between tries, so that client and server agree.
    pub(super) fn is_stuck(&mut self) -> bool {
        let origin = self.now.origin;
        let holder = self.world.inside(self.hull(), origin);
        if holder == Touch::Nothing {
            return false;
        }
        self.report_touch(holder);
        let struggles = self.buttons & (BUTTON_ATTACK | BUTTON_JUMP | BUTTON_DUCK) != 0;
        let mut offsets = nudges().chain(shoves());
        let free = match holder {
            Touch::Entity(_) if struggles => offsets.chain(struggle()).find(|&by| self.is_free(origin + by)),
            _ => offsets.find(|&by| self.is_free(origin + by)),
        };
        if let Some(by) = free {
            self.now.origin = origin + by;
        }
        free.is_none()
    }
}

/// Along one axis first, upright before sideways; then towards the corners.
fn nudges() -> impl Iterator<Item = Vec3> {
    let along_axes = [Vec3::Z, Vec3::Y, Vec3::X].into_iter().flat_map(|axis| [-axis, axis]);
    let corners = grid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]);
    along_axes.chain(corners).map(|offset| offset * NUDGE_UNITS)
}

fn shoves() -> impl Iterator<Item = Vec3> {
    let up = SHOVE_UP_UNITS.into_iter().map(|z| Vec3::new(0.0, 0.0, z));
    let along_axes = [Vec3::NEG_Y, Vec3::Y, Vec3::NEG_X, Vec3::X].into_iter().map(|axis| axis * SHOVE_UNITS);
    let around = SHOVE_UP_UNITS
        .into_iter()
        .flat_map(|z| grid(SIDES, SIDES, [0.0]).map(move |side| side * SHOVE_UNITS + Vec3::new(0.0, 0.0, z)));
    up.chain(along_axes).chain(around)
}

fn struggle() -> impl Iterator<Item = Vec3> {
    STRUGGLE_UP_UNITS
        .into_iter()
        .flat_map(|z| grid(SIDES, SIDES, [0.0]).map(move |side| side * STRUGGLE_UNITS + Vec3::new(0.0, 0.0, z)))
}

/// All points with one of each coordinate; the last coordinate changes first.
fn grid<const X: usize, const Y: usize, const Z: usize>(
    x: [f32; X],
    y: [f32; Y],
    z: [f32; Z],
) -> impl Iterator<Item = Vec3> {
    x.into_iter().flat_map(move |x| y.into_iter().flat_map(move |y| z.into_iter().map(move |z| Vec3::new(x, y, z))))
}
