//! Ducking, which takes time on the ground, and standing up, if there is room.

use glam::Vec3;

use super::{
    ArenaBody, BUTTON_DUCK, MoveEvent, PlayerMove, Solid, SolidHull, VIEW_HEIGHT_DUCKED_UNITS,
    VIEW_HEIGHT_STANDING_UNITS,
};

/// The start of the duck timer, and the time until the player is ducked.
const DUCK_TIMER_MS: u16 = 1_000;
const TIME_TO_DUCK_S: f64 = 0.4;

/// The factor of a ducked player's wished speed, in double precision as in the original.
const DUCKED_SPEED: f64 = 0.333;

/// How much lower the small hull's middle is than the large one's when the feet are at the same height, in units.
const HULL_CENTRE_DROP_UNITS: f32 = SolidHull::Standing.half_extent_units().z - SolidHull::Ducked.half_extent_units().z;

/// The most that a player stuck by ducking is moved up, in steps of one unit.
const UNSTICK_UP_UNITS: u32 = 36;

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    /// Starts, continues, ends or cancels ducking, as the button says.
    pub(super) fn duck(&mut self) {
        let held = self.buttons & BUTTON_DUCK != 0;
        let pressed = held && self.now.old_buttons & BUTTON_DUCK == 0;
        self.now.old_buttons = (self.now.old_buttons & !BUTTON_DUCK) | (self.buttons & BUTTON_DUCK);

        if self.now.ducked {
            self.forward_units_s = (f64::from(self.forward_units_s) * DUCKED_SPEED) as f32;
            self.side_units_s = (f64::from(self.side_units_s) * DUCKED_SPEED) as f32;
        }
        if !held {
            if self.now.in_duck || self.now.ducked {
                self.stand_up();
            }
            return;
        }
        if pressed && !self.now.ducked {
            self.now.duck_time_ms = DUCK_TIMER_MS;
            self.now.in_duck = true;
        }
        if self.now.in_duck {
            self.go_down();
        }
    }

    fn go_down(&mut self) {
        let timer_s = f64::from(self.now.duck_time_ms) / 1_000.0;
        if timer_s > 1.0 - TIME_TO_DUCK_S && self.now.on_ground {
            self.now.view_ofs_z = view_height_after((1.0 - timer_s) as f32);
            return;
        }
        self.now.ducked = true;
        self.now.in_duck = false;
        self.now.view_ofs_z = VIEW_HEIGHT_DUCKED_UNITS;
        if self.now.on_ground {
            // On the ground, the feet stay in place. In the air, the middle does, so that the feet move up.
            self.now.origin.z -= HULL_CENTRE_DROP_UNITS;
            self.unstick_upwards();
            self.find_ground();
        }
    }

    /// Stands up if there is room. On the ground, the feet stay in place; in the air, the middle does.
    fn stand_up(&mut self) {
        let mut origin = self.now.origin;
        if self.now.on_ground {
            origin += Vec3::new(0.0, 0.0, HULL_CENTRE_DROP_UNITS);
        }
        let above = self.world.sweep(SolidHull::Standing, origin, origin);
        if above.start_solid || !self.is_free(origin) {
            self.report_touch(above.touch);
            return;
        }
        self.now.ducked = false;
        self.now.in_duck = false;
        self.now.duck_time_ms = 0;
        self.now.view_ofs_z = VIEW_HEIGHT_STANDING_UNITS;
        self.now.origin = origin;
        self.find_ground();
    }

    fn unstick_upwards(&mut self) {
        let mut at = self.now.origin;
        for _ in 0..=UNSTICK_UP_UNITS {
            if self.is_free(at) {
                self.now.origin = at;
                return;
            }
            at.z += 1.0;
        }
    }
}

/// Returns the height of the eyes above the origin, from hull and duck timer alone. It equals
/// [`ArenaBody::view_ofs_z`] after a step, for a body that lacks this field.
pub(crate) fn eye_height_units(state: &ArenaBody) -> f32 {
    if state.ducked {
        VIEW_HEIGHT_DUCKED_UNITS
    } else if state.in_duck {
        let elapsed_ms = DUCK_TIMER_MS.saturating_sub(state.duck_time_ms);
        view_height_after((f64::from(elapsed_ms) / 1_000.0) as f32)
    } else {
        VIEW_HEIGHT_STANDING_UNITS
    }
}

/// Returns the height of the eyes at a time after ducking began. It eases down to its final height relative to the
/// large hull.
fn view_height_after(elapsed_s: f32) -> f32 {
    let progress = (1.0 / TIME_TO_DUCK_S) as f32 * elapsed_s;
    let squared = progress * progress;
    let eased = 3.0 * squared - 2.0 * squared * progress;
    (VIEW_HEIGHT_DUCKED_UNITS - HULL_CENTRE_DROP_UNITS) * eased + VIEW_HEIGHT_STANDING_UNITS * (1.0 - eased)
}
