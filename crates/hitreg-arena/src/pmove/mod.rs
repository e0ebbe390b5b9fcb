//! One player's movement for one usercmd, after Half-Life: a pure function of rules, world, state and input.
//!
//! The steps and their order follow Half-Life's movement in its public SDK (2024), including the use of single and
//! double precision. Recorded runs of Half-Life are therefore reproduced exactly. The rules are those of multiplayer,
//! without water, ladders, conveyors and punch angles, which the arena does not have.

#[cfg(test)]
mod tests;
mod travel;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::body::ArenaBody;
use crate::solid::{Solid, SolidHull, SweepContact, SweepHit};
use hitreg_log::units::EntityId;
pub use hitreg_log::usercmd::buttons::{DUCK as BUTTON_DUCK, JUMP as BUTTON_JUMP};
use hitreg_log::usercmd::{Input, buttons};

/// The eye height of a standing player above the origin, in units.
pub const VIEW_HEIGHT_STANDING_UNITS: f32 = 28.0;

/// The eye height of a ducked player above the origin, in units.
pub const VIEW_HEIGHT_DUCKED_UNITS: f32 = 12.0;

/// The smallest nudge, in units.
const NUDGE_UNITS: f32 = 0.125;

/// The larger nudges: the distance sideways, and the heights, in units.
const SHOVE_UNITS: f32 = 2.0;
const SHOVE_UP_UNITS: [f32; 3] = [0.0, 1.0, 6.0];

/// How far a player inside another is moved aside, and the heights, in units.
const STRUGGLE_UNITS: f32 = 8.0;
const STRUGGLE_UP_UNITS: [f32; 5] = [0.0, 18.0, 36.0, 54.0, 72.0];

const SIDES: [f32; 3] = [-1.0, 0.0, 1.0];

/// The start of the duck timer, and the time until the player is ducked.
const DUCK_TIMER_MS: u16 = 1_000;
const TIME_TO_DUCK_S: f64 = 0.4;

/// The factor of a ducked player's wished speed, in double precision as in the original.
const DUCKED_SPEED: f64 = 0.333;

/// How much lower the small hull's middle is than the large one's when the feet are at the same height, in units.
const HULL_CENTRE_DROP_UNITS: f32 = SolidHull::Standing.half_extent_units().z - SolidHull::Ducked.half_extent_units().z;

/// The most that a player stuck by ducking is moved up, in steps of one unit.
const UNSTICK_UP_UNITS: u32 = 36;

/// A surface whose normal has a smaller z is too steep to stand on. In double precision, as in the original.
const STEEPEST_GROUND_NORMAL_Z: f64 = 0.7;

/// A player who rises faster than this is not on the ground, in units per second.
const LEAVES_GROUND_AT_UNITS_S: f32 = 180.0;

/// How far below the hull the ground is searched, in units.
const GROUND_REACH_UNITS: f32 = 2.0;

/// How far ahead of the player, and how far below the feet, an edge is searched, in units.
const EDGE_AHEAD_UNITS: f32 = 16.0;
const EDGE_DEPTH_UNITS: f32 = 34.0;

/// Below this speed friction has no effect, in units per second.
const FRICTION_FROM_UNITS_S: f32 = 0.1;

/// A player during one usercmd.
struct PlayerMove<'a, W, F> {
    vars: &'a MoveVars,
    world: &'a W,
    on: &'a mut F,
    now: ArenaBody,
    buttons: u16,
    /// The wished forward speed in units per second, after limits and ducking.
    forward_units_s: f32,
    side_units_s: f32,
    pitch_deg: f32,
    yaw_deg: f32,
    frame_s: f32,
}

/// The rules of movement that a server may set. The defaults are those of Half-Life deathmatch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveVars {
    /// Downward acceleration, in units per second squared.
    pub gravity: f32,
    /// Below this speed, friction is as strong as at this speed, in units per second.
    pub stopspeed: f32,
    /// The greatest wished speed, in units per second.
    pub maxspeed: f32,
    /// The acceleration towards the wished speed on the ground, per second.
    pub accelerate: f32,
    /// The acceleration in the air, per second.
    pub airaccelerate: f32,
    /// The share of speed that friction takes, per second.
    pub friction: f32,
    /// The factor of friction before an edge.
    pub edgefriction: f32,
    /// The highest step that can be climbed without jumping, in units.
    pub stepsize: f32,
    /// The limit of velocity along each axis, in units per second.
    pub maxvelocity: f32,
}

impl Default for MoveVars {
    fn default() -> MoveVars {
        MoveVars {
            gravity: 800.0,
            stopspeed: 100.0,
            maxspeed: 270.0,
            accelerate: 10.0,
            airaccelerate: 10.0,
            friction: 4.0,
            edgefriction: 2.0,
            stepsize: 18.0,
            maxvelocity: 2000.0,
        }
    }
}

/// An event of movement, for sounds, effects and game rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MoveEvent {
    /// The player jumped.
    Jumped,
    /// The player landed.
    Landed {
        /// The fall speed in units per second.
        fall_speed: f32,
    },
    /// A footstep.
    Footstep {
        /// True for the left foot, false for the right.
        left: bool,
        /// True for running, which others can hear; false for walking.
        running: bool,
    },
    /// The player ran into an entity or stands on it. May occur more than once per step.
    Touched {
        /// The entity.
        entity: EntityId,
    },
}

/// Moves a player by one usercmd and returns the new state. Calls `on` for each event on the way. Of the state, it reads
/// and changes only origin, velocity, ground, stance, buttons, footsteps and the height of the eyes.
///
/// NaN in `state` or `input` becomes zero, as in the original, and never causes a panic.
pub fn pmove(
    vars: &MoveVars,
    world: &impl Solid,
    state: &ArenaBody,
    input: &Input,
    on: &mut impl FnMut(MoveEvent),
) -> ArenaBody {
    let (forward_units_s, side_units_s) = within_speed(input, vars.maxspeed);
    let msec = u16::from(input.msec);
    let now = ArenaBody {
        origin: without_nan(state.origin),
        velocity: without_nan(state.velocity),
        duck_time_ms: state.duck_time_ms.saturating_sub(msec),
        step_time_ms: state.step_time_ms.saturating_sub(msec),
        ..*state
    };
    let mut mover = PlayerMove {
        vars,
        world,
        on,
        now,
        buttons: input.buttons,
        forward_units_s,
        side_units_s,
        pitch_deg: input.viewangles.x,
        yaw_deg: yaw_within_half_turn(input.viewangles.y),
        frame_s: (f64::from(input.msec) * 0.001) as f32,
    };
    mover.run();
    mover.now
}

/// A horizontal unit direction (or zero), and the wished speed along it, in units per second.
struct WishMove {
    direction: Vec3,
    speed: f32,
}

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    fn run(&mut self) {
        let probe = self.probe_ground();
        if probe.is_some_and(|probe| !probe.start_solid) {
            // The player is not stuck, so the probe is valid.
            self.settle(probe);
        } else {
            if self.is_stuck() {
                // Ducking may free the player.
                self.duck();
                if self.is_stuck() {
                    return;
                }
            }
            self.find_ground();
        }
        if !self.now.on_ground {
            self.now.fall_velocity = -self.now.velocity.z;
        }
        self.make_footsteps();
        self.duck();
        self.fall_for_half_a_frame_before();
        self.jump_if_asked();
        if self.now.on_ground {
            self.now.velocity.z = 0.0;
            self.rub();
        }
        self.limit_velocity();
        if self.now.on_ground {
            self.walk();
        } else {
            self.fly();
        }
        self.find_ground();
        self.limit_velocity();
        self.fall_for_half_a_frame_after();
        if self.now.on_ground {
            self.now.velocity.z = 0.0;
        }
        self.land();
    }

    fn sweep(&self, from: Vec3, to: Vec3) -> SweepHit {
        self.world.sweep(self.now.hull(), from, to)
    }

    fn is_free(&self, at: Vec3) -> bool {
        self.world.inside(self.now.hull(), at) == SweepContact::Nothing
    }

    fn report_touch(&mut self, touch: SweepContact) {
        if let SweepContact::Entity(entity) = touch {
            (self.on)(MoveEvent::Touched { entity });
        }
    }

    fn wish(&self) -> WishMove {
        if self.forward_units_s == 0.0 && self.side_units_s == 0.0 {
            return WishMove { direction: Vec3::ZERO, speed: 0.0 };
        }
        let (mut forward, mut right) = self.level_axes();
        normalize(&mut forward);
        normalize(&mut right);
        let mut direction = forward * self.forward_units_s + right * self.side_units_s;
        let speed = normalize(&mut direction);
        WishMove { direction, speed: if speed > self.vars.maxspeed { self.vars.maxspeed } else { speed } }
    }

    /// Returns the view's forward and right axes without their vertical parts. The view never rolls in the arena.
    fn level_axes(&self) -> (Vec3, Vec3) {
        let radians = |degrees: f32| f64::from((f64::from(degrees) * (std::f64::consts::PI * 2.0 / 360.0)) as f32);
        let (sin_yaw, cos_yaw) = libm::sincos(radians(self.yaw_deg));
        let (sin_yaw, cos_yaw) = (sin_yaw as f32, cos_yaw as f32);
        let cos_pitch = libm::cos(radians(self.pitch_deg)) as f32;
        (Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, 0.0), Vec3::new(sin_yaw, -cos_yaw, 0.0))
    }

    /// Returns whether the player is inside something and stays there. If there is a free place nearby, the player is
    /// moved there: by at most two units sideways and six up. A player inside another body who presses a button is
    /// moved farther.
    ///
    /// All places are tried in one step, without a timer, so that client and server agree.
    fn is_stuck(&mut self) -> bool {
        let origin = self.now.origin;
        let holder = self.world.inside(self.now.hull(), origin);
        if holder == SweepContact::Nothing {
            return false;
        }
        self.report_touch(holder);
        let struggles = self.buttons & (buttons::ATTACK | BUTTON_JUMP | BUTTON_DUCK) != 0;
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

    /// Starts, continues, ends or cancels ducking, as the button says.
    fn duck(&mut self) {
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

    /// Decides whether the player is on the ground, and moves the player down to it.
    fn find_ground(&mut self) {
        let probe = self.probe_ground();
        self.settle(probe);
    }

    /// Searches for ground directly below, unless the player rises too fast.
    fn probe_ground(&self) -> Option<SweepHit> {
        let below = self.now.origin - Vec3::new(0.0, 0.0, GROUND_REACH_UNITS);
        let rises = self.now.velocity.z > LEAVES_GROUND_AT_UNITS_S;
        (!rises).then(|| self.sweep(self.now.origin, below))
    }

    /// Applies the result of a ground search.
    fn settle(&mut self, probe: Option<SweepHit>) {
        self.now.on_ground = probe.is_some_and(|probe| f64::from(probe.normal.z) >= STEEPEST_GROUND_NORMAL_Z);
        let Some(probe) = probe else { return };
        if self.now.on_ground && !probe.start_solid {
            self.now.origin = probe.end;
        }
        self.report_touch(probe.touch);
    }

    /// Slows the player by friction, which is stronger before an edge.
    fn rub(&mut self) {
        let velocity = self.now.velocity;
        let speed = velocity.length();
        if speed < FRICTION_FROM_UNITS_S {
            return;
        }
        let ahead = velocity / speed * EDGE_AHEAD_UNITS;
        let feet_z = self.now.origin.z - self.now.hull().half_extent_units().z;
        let from = Vec3::new(self.now.origin.x + ahead.x, self.now.origin.y + ahead.y, feet_z);
        let edge = self.sweep(from, from - Vec3::new(0.0, 0.0, EDGE_DEPTH_UNITS));
        let grip = if edge.fraction == 1.0 { self.vars.friction * self.vars.edgefriction } else { self.vars.friction };
        let control = if speed < self.vars.stopspeed { self.vars.stopspeed } else { speed };
        let kept = speed - control * grip * self.frame_s;
        self.now.velocity = velocity * (if kept < 0.0 { 0.0 } else { kept } / speed);
    }

    /// Makes footsteps at their times. The rhythm is hitreg's own; movement does not depend on it.
    fn make_footsteps(&mut self) {
        let (walk_units_s, run_units_s, slower_ms) =
            if self.now.ducked { (60.0, 80.0, 100) } else { (120.0, 210.0, 0) };
        let speed = self.now.velocity.length();
        if self.now.step_time_ms > 0 || !self.now.on_ground || speed < walk_units_s {
            return;
        }
        let running = speed >= run_units_s;
        self.now.step_time_ms = slower_ms + if running { 300 } else { 400 };
        self.put_foot_down(running);
    }

    fn put_foot_down(&mut self, running: bool) {
        self.now.step_left = !self.now.step_left;
        (self.on)(MoveEvent::Footstep { left: !self.now.step_left, running });
    }

    /// Ends a fall if the player has reached the ground.
    fn land(&mut self) {
        if !self.now.on_ground {
            return;
        }
        if self.now.fall_velocity > 0.0 {
            (self.on)(MoveEvent::Landed { fall_speed: self.now.fall_velocity });
        }
        self.now.fall_velocity = 0.0;
    }
}

/// Replaces NaN by zero, so that comparisons behave.
fn without_nan(vector: Vec3) -> Vec3 {
    vector.map(|number| if number.is_nan() { 0.0 } else { number })
}

/// Returns forward and side speed, scaled down if all three speeds together exceed `maxspeed`.
fn within_speed(input: &Input, maxspeed: f32) -> (f32, f32) {
    let asked = Vec3::new(input.forwardmove, input.sidemove, input.upmove).length();
    if asked != 0.0 && asked > maxspeed {
        let ratio = maxspeed / asked;
        (input.forwardmove * ratio, input.sidemove * ratio)
    } else {
        (input.forwardmove, input.sidemove)
    }
}

/// Converts yaws above 180 degrees to negative ones.
fn yaw_within_half_turn(yaw_deg: f32) -> f32 {
    if yaw_deg > 180.0 { yaw_deg - 360.0 } else { yaw_deg }
}

/// Scales a vector to length 1 by its reciprocal length, and returns its former length.
fn normalize(vector: &mut Vec3) -> f32 {
    let length = vector.length();
    if length != 0.0 {
        *vector *= 1.0 / length;
    }
    length
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
