//! Frees players who are inside something: by rounding, a mover, or another player who spawned there.

use glam::Vec3;

use super::{BUTTON_ATTACK, BUTTON_DUCK, BUTTON_JUMP, MoveEvent, PlayerMove, Solid, SweepContact};

/// The smallest nudge, in units.
const NUDGE_UNITS: f32 = 0.125;

/// The larger nudges: the distance sideways, and the heights, in units.
const SHOVE_UNITS: f32 = 2.0;
const SHOVE_UP_UNITS: [f32; 3] = [0.0, 1.0, 6.0];

/// How far a player inside another is moved aside, and the heights, in units.
const STRUGGLE_UNITS: f32 = 8.0;
const STRUGGLE_UP_UNITS: [f32; 5] = [0.0, 18.0, 36.0, 54.0, 72.0];

const SIDES: [f32; 3] = [-1.0, 0.0, 1.0];

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    /// Returns whether the player is inside something and stays there. If there is a free place nearby, the player is
    /// moved there: by at most two units sideways and six up. A player inside another body who presses a button is
    /// moved farther.
    ///
    /// All places are tried in one step, without a timer, so that client and server agree.
    pub(super) fn is_stuck(&mut self) -> bool {
        let origin = self.now.origin;
        let holder = self.world.inside(self.now.hull(), origin);
        if holder == SweepContact::Nothing {
            return false;
        }
        self.report_touch(holder);
        let struggles = self.buttons & (BUTTON_ATTACK | BUTTON_JUMP | BUTTON_DUCK) != 0;
        let mut offsets = nudges().chain(shoves());
        let free = match holder {
            SweepContact::Entity(_) if struggles => {
                offsets.chain(around(STRUGGLE_UNITS, STRUGGLE_UP_UNITS)).find(|&by| self.is_free(origin + by))
            }
            _ => offsets.find(|&by| self.is_free(origin + by)),
        };
        if let Some(by) = free {
            self.now.origin = origin + by;
        }
        free.is_none()
    }
}

/// Returns the nudges: along one axis, vertical before horizontal, then towards the corners.
fn nudges() -> impl Iterator<Item = Vec3> {
    let along_axes = [Vec3::Z, Vec3::Y, Vec3::X].into_iter().flat_map(|axis| [-axis, axis]);
    let corners = grid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]);
    along_axes.chain(corners).map(|offset| offset * NUDGE_UNITS)
}

fn shoves() -> impl Iterator<Item = Vec3> {
    let up = SHOVE_UP_UNITS.into_iter().map(|z| Vec3::new(0.0, 0.0, z));
    let along_axes = [Vec3::NEG_Y, Vec3::Y, Vec3::NEG_X, Vec3::X].into_iter().map(|axis| axis * SHOVE_UNITS);
    up.chain(along_axes).chain(around(SHOVE_UNITS, SHOVE_UP_UNITS))
}

/// Returns the middle and the places around it at this distance along each axis, at each of the heights.
fn around<const N: usize>(units: f32, heights: [f32; N]) -> impl Iterator<Item = Vec3> {
    let at = move |z: f32| grid(SIDES, SIDES, [0.0]).map(move |side| side * units + Vec3::new(0.0, 0.0, z));
    heights.into_iter().flat_map(at)
}

/// Returns all points of a grid; the last coordinate changes fastest.
fn grid<const X: usize, const Y: usize, const Z: usize>(
    x: [f32; X],
    y: [f32; Y],
    z: [f32; Z],
) -> impl Iterator<Item = Vec3> {
    x.into_iter().flat_map(move |x| y.into_iter().flat_map(move |y| z.into_iter().map(move |z| Vec3::new(x, y, z))))
}
