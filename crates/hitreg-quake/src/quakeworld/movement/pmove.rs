//! QuakeWorld's player movement as a pure function: one step of one usercmd. The rules follow the public `pmove` sources of
//! both families of servers; see [`Dialect`].

use glam::Vec3;

use super::world::SolidHit;
use super::{
    BUTTON_JUMP, Dialect, MoveContacts, PLAYER_MINS, QuakeWorldMoveVars, QuakeWorldPlayerState, QuakeWorldUsercmd,
    Surroundings, length, normalize, offsets, slide,
};
use crate::bsp::SweepTrace;
use crate::bsp::quake::trace::{SweepRule, dot};
use crate::bsp::quake::{EMPTY, SLIME, SOLID, WATER};

/// Smallest z component of a walkable plane's normal.
pub(crate) const WALKABLE: f32 = 0.7;
/// Upward speed above which a player does not stand on ground, in units/s.
pub(crate) const LEAVES_GROUND_SPEED: f32 = 180.0;
/// Velocity into the ground that is clipped before a jump, in units/s (reworked movement).
const JUMP_FIX: f32 = -0.1;

/// Runs one step of `cmd` (at most 50 ms: see [`QuakeWorldUsercmd::steps`]) from `from`.
pub(crate) fn step(
    dialect: Dialect,
    vars: &QuakeWorldMoveVars,
    world: &Surroundings<'_>,
    from: &QuakeWorldPlayerState,
    cmd: &QuakeWorldUsercmd,
) -> (QuakeWorldPlayerState, MoveContacts) {
    let mut mover = Pmove {
        dialect,
        vars,
        world,
        cmd,
        seconds: f32::from(cmd.msec) * 0.001,
        origin: Vec3::from_array(from.origin),
        velocity: Vec3::from_array(from.velocity),
        state: *from,
        rule: dialect.sweep_rule(),
        stood_before: from.on_ground,
        ground_normal: Vec3::ZERO,
        axes: axes(cmd.angles),
        touched: MoveContacts::default(),
    };
    mover.run();
    let state =
        QuakeWorldPlayerState { origin: mover.origin.to_array(), velocity: mover.velocity.to_array(), ..mover.state };
    (state, mover.touched)
}

/// The working state of a step.
pub(crate) struct Pmove<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) vars: &'a QuakeWorldMoveVars,
    pub(crate) world: &'a Surroundings<'a>,
    pub(crate) cmd: &'a QuakeWorldUsercmd,
    pub(crate) seconds: f32,
    pub(crate) origin: Vec3,
    pub(crate) velocity: Vec3,
    pub(crate) state: QuakeWorldPlayerState,
    rule: SweepRule,
    /// Whether the previous step ended on ground, according to the game.
    stood_before: bool,
    ground_normal: Vec3,
    pub(crate) axes: [Vec3; 2],
    pub(crate) touched: MoveContacts,
}

impl Pmove<'_> {
    fn run(&mut self) {
        self.nudge();
        self.categorize();
        if self.state.water_level == 2 {
            self.check_water_jump();
        }
        if self.velocity.z < 0.0 || (self.state.dead && self.is_reworked()) {
            self.state.water_jump_s = 0.0;
        }
        let was_in = self.state.water_level;
        if self.is_reworked() {
            self.state.water_jump_s = (self.state.water_jump_s - self.seconds).max(0.0);
            self.jump_reworked();
        } else {
            self.jump_classic();
        }
        self.friction();
        if self.state.water_level >= 2 {
            self.swim();
        } else {
            self.walk_or_fly();
        }
        self.categorize();
        self.touched.water_edge = self.state.water_level != was_in;
        if self.is_reworked() && self.state.on_ground && self.velocity.z < -300.0 {
            self.clip_into_ground();
        }
    }

    pub(crate) fn is_reworked(&self) -> bool {
        matches!(self.dialect, Dialect::Reworked { .. })
    }

    fn clip_into_ground(&mut self) {
        if dot(self.velocity, self.ground_normal) < JUMP_FIX {
            self.velocity = slide::clip(self.velocity, self.ground_normal);
        }
    }

    pub(crate) fn sweep(&self, start: Vec3, end: Vec3) -> (SweepTrace, SolidHit) {
        self.world.sweep(self.rule, start, end)
    }

    pub(crate) fn touch(&mut self, hit: SolidHit) {
        if let SolidHit::Solid(index) = hit {
            self.touched.solids |= 1 << index;
        }
    }

    /// Moves a start inside something solid by up to 1/8 unit, the wire's precision, to get out.
    fn nudge(&mut self) {
        const STEPS: [f32; 3] = [0.0, -0.125, 0.125];
        if self.world.has_room(self.origin) {
            return;
        }
        // id's servers vary y fastest.
        let nudges = offsets(STEPS).map(|off| if self.is_reworked() { off } else { Vec3::new(off.y, off.x, off.z) });
        let raises = (1..=18u8).filter(|_| self.is_reworked()).map(|up| Vec3::new(0.0, 0.0, f32::from(up)));
        let free = nudges.chain(raises).map(|off| self.origin + off).find(|place| self.world.has_room(*place));
        match free {
            Some(place) => (self.origin, self.touched.nudged) = (place, true),
            None => self.touched.stuck = true,
        }
    }

    /// Determines what the player stands on and the depth in liquid.
    pub(crate) fn categorize(&mut self) {
        let mut below = None;
        if self.velocity.z > LEAVES_GROUND_SPEED {
            self.state.on_ground = false;
        } else {
            let (sweep, hit) = self.sweep(self.origin, self.origin - Vec3::Z);
            self.state.on_ground = hit != SolidHit::Nothing && sweep.normal.z >= WALKABLE;
            if self.state.on_ground {
                self.ground_normal = sweep.normal;
                self.state.water_jump_s = 0.0;
                if !sweep.starts_solid {
                    below = Some(sweep.end);
                }
            }
            self.touch(hit);
        }
        if let (Some(end), false) = (below, self.is_reworked()) {
            self.origin = end;
        }
        self.find_water();
        if let (Some(end), true) = (below, self.is_reworked() && self.state.water_level < 2) {
            self.origin = end;
        }
    }

    fn find_water(&mut self) {
        self.state.water_level = 0;
        self.state.water_type = EMPTY;
        for (level, height) in [(1, PLAYER_MINS[2] + 1.0), (2, 4.0), (3, 22.0)] {
            let contents = self.world.contents(self.origin + Vec3::new(0.0, 0.0, height));
            if contents > WATER {
                break;
            }
            if level == 1 {
                self.state.water_type = contents;
            }
            self.state.water_level = level;
        }
    }
}

/// Returns the forward and right directions of a view, computed in 32-bit steps as on servers.
fn axes(angles: [f32; 3]) -> [Vec3; 2] {
    let turn = |degrees: f32| {
        if degrees == 0.0 {
            return (0.0, 1.0); // what the functions give, and nearly always the roll
        }
        let radians = (f64::from(degrees) * (std::f64::consts::TAU / 360.0)) as f32;
        let (sin, cos) = libm::sincos(f64::from(radians));
        (sin as f32, cos as f32)
    };
    let ((sp, cp), (sy, cy), (sr, cr)) = (turn(angles[0]), turn(angles[1]), turn(angles[2]));
    let forward = Vec3::new(cp * cy, cp * sy, -sp);
    let right = Vec3::new(-sr * sp * cy + cr * sy, -sr * sp * sy - cr * cy, -sr * cp);
    [forward, right]
}

/// Largest speed along the wished direction that air control can add up to, in units/s.
const AIR_WISH_SPEED: f32 = 30.0;

impl Pmove<'_> {
    pub(crate) fn friction(&mut self) {
        if self.state.water_jump_s != 0.0 {
            return;
        }
        let speed = length(self.velocity);
        if speed < 1.0 {
            (self.velocity.x, self.velocity.y) = (0.0, 0.0);
            return;
        }
        let drop = if self.state.water_level >= 2 {
            speed * self.vars.water_friction * f32::from(self.state.water_level) * self.seconds
        } else if self.state.on_ground {
            let lead = self.origin + Vec3::new(self.velocity.x, self.velocity.y, 0.0) / speed * 16.0;
            let start = Vec3::new(lead.x, lead.y, self.origin.z + PLAYER_MINS[2]);
            let over_edge = self.sweep(start, start - Vec3::new(0.0, 0.0, 34.0)).0.fraction == 1.0;
            let friction = self.vars.friction * if over_edge { 2.0 } else { 1.0 };
            speed.max(self.vars.stop_speed) * friction * self.seconds
        } else {
            return;
        };
        self.velocity *= (speed - drop).max(0.0) / speed;
    }

    fn steers(&self) -> bool {
        !self.state.dead && self.state.water_jump_s == 0.0
    }

    fn accelerate(&mut self, wish_dir: Vec3, wish_speed: f32, accelerate: f32) {
        if !self.steers() {
            return;
        }
        let missing = wish_speed - dot(self.velocity, wish_dir);
        if missing > 0.0 {
            self.velocity += (accelerate * self.seconds * wish_speed).min(missing) * wish_dir;
        }
    }

    fn air_accelerate(&mut self, wish_dir: Vec3, wish_speed: f32) {
        if !self.steers() {
            return;
        }
        let missing = wish_speed.min(AIR_WISH_SPEED) - dot(self.velocity, wish_dir);
        if missing <= 0.0 {
            return;
        }
        let before = Vec3::new(self.velocity.x, self.velocity.y, 0.0);
        self.velocity += (self.vars.accelerate * wish_speed * self.seconds).min(missing) * wish_dir;
        if let Dialect::Reworked { bunny_speed_cap, .. } = self.dialect
            && bunny_speed_cap > 0.0
        {
            let after = length(Vec3::new(self.velocity.x, self.velocity.y, 0.0));
            let cap = self.vars.max_speed * bunny_speed_cap;
            if after > length(before) && after > cap {
                let scale = length(before).max(cap) / after;
                (self.velocity.x, self.velocity.y) = (self.velocity.x * scale, self.velocity.y * scale);
            }
        }
    }

    pub(crate) fn swim(&mut self) {
        let QuakeWorldUsercmd { forward, side, up, .. } = *self.cmd;
        let mut wish = f32::from(forward) * self.axes[0] + f32::from(side) * self.axes[1];
        wish.z += if (forward, side, up) == (0, 0, 0) { -60.0 } else { f32::from(up) };
        let (wish_dir, wish_speed) = normalize(wish);
        self.accelerate(wish_dir, wish_speed.min(self.vars.max_speed) * 0.7, self.vars.water_accelerate);
        slide::swim(self);
    }

    fn walk_or_fly(&mut self) {
        let flat = |axis: Vec3| normalize(Vec3::new(axis.x, axis.y, 0.0)).0;
        let wish = flat(self.axes[0]) * f32::from(self.cmd.forward) + flat(self.axes[1]) * f32::from(self.cmd.side);
        let (wish_dir, wish_speed) = normalize(wish);
        let wish_speed = wish_speed.min(self.vars.max_speed);
        let fall = self.vars.entity_gravity * self.vars.gravity * self.seconds;
        if !self.state.on_ground {
            self.air_accelerate(wish_dir, wish_speed);
            self.velocity.z -= fall;
            return slide::fly(self);
        }
        match self.dialect {
            Dialect::Reworked { slide_fix: true, .. } => {
                self.velocity.z = self.velocity.z.min(0.0);
                self.accelerate(wish_dir, wish_speed, self.vars.accelerate);
                self.velocity.z -= fall;
            }
            _ => {
                self.velocity.z = 0.0;
                self.accelerate(wish_dir, wish_speed, self.vars.accelerate);
            }
        }
        slide::walk(self);
    }
}

const JUMP_SPEED: f32 = 270.0;

impl Pmove<'_> {
    /// Starts a hop out of waist-deep water, if there is a wall ahead with free space above.
    fn check_water_jump(&mut self) {
        if self.state.water_jump_s != 0.0 || self.velocity.z < -LEAVES_GROUND_SPEED {
            return;
        }
        let (ahead, _) = normalize(Vec3::new(self.axes[0].x, self.axes[0].y, 0.0));
        let contents = |p| if self.is_reworked() { self.world.contents_with_movers(p) } else { self.world.contents(p) };
        let waist = self.origin + 24.0 * ahead + Vec3::new(0.0, 0.0, 8.0);
        if contents(waist) != SOLID || contents(waist + Vec3::new(0.0, 0.0, 24.0)) != EMPTY {
            return;
        }
        self.velocity = 50.0 * ahead;
        self.velocity.z = 310.0;
        self.state.water_jump_s = 2.0;
        self.state.jump_held = true;
    }

    fn jump_classic(&mut self) {
        if self.cmd.buttons & BUTTON_JUMP == 0 {
            self.state.jump_held = false;
        } else if self.state.dead {
            self.state.jump_held = true;
        } else if self.state.water_jump_s != 0.0 {
            self.state.water_jump_s = (self.state.water_jump_s - self.seconds).max(0.0);
        } else if self.state.water_level >= 2 {
            self.swim_up();
        } else if self.state.on_ground && !self.state.jump_held {
            if self.stood_before && matches!(self.dialect, Dialect::Classic { soft_jump: true, .. }) {
                self.velocity.z = self.velocity.z.max(0.0);
            }
            self.leave_ground();
        }
    }

    fn jump_reworked(&mut self) {
        if self.state.dead {
            self.state.jump_held = true;
        } else if self.cmd.buttons & BUTTON_JUMP == 0 {
            self.state.jump_held = false;
        } else if self.state.water_jump_s == 0.0 && self.state.water_level >= 2 {
            self.swim_up();
        } else if self.state.water_jump_s == 0.0 && self.state.on_ground && !self.state.jump_held {
            if self.velocity.z < 0.0 {
                self.clip_into_ground();
            }
            self.leave_ground();
            if let Dialect::Reworked { jump_floor, .. } = self.dialect
                && self.velocity.z < JUMP_SPEED
                && jump_floor > 0.0
            {
                self.velocity.z = self.velocity.z * (1.0 - jump_floor) + JUMP_SPEED * jump_floor;
            }
        }
    }

    fn leave_ground(&mut self) {
        self.state.on_ground = false;
        self.velocity.z += JUMP_SPEED;
        self.state.jump_held = true;
        self.touched.jumped = true;
    }

    fn swim_up(&mut self) {
        self.state.on_ground = false;
        self.velocity.z = match self.state.water_type {
            WATER => 100.0,
            SLIME => 80.0,
            _ => 50.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::{STANDING_Z, quake_bytes};
    use crate::quakeworld::QuakeMap;

    const DIALECTS: [Dialect; 2] = [
        Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix: false },
        Dialect::Reworked { jump_floor: 1.0, air_step: false, slide_fix: false, bunny_speed_cap: 0.0 },
    ];

    fn run(
        dialect: Dialect,
        from: QuakeWorldPlayerState,
        cmd: QuakeWorldUsercmd,
        steps: usize,
    ) -> QuakeWorldPlayerState {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let world = Surroundings { map: &map, solids: &[] };
        let vars = QuakeWorldMoveVars::default();
        (0..steps).fold(from, |state, _| step(dialect, &vars, &world, &state, &cmd).0)
    }

    fn standing() -> QuakeWorldPlayerState {
        QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z]) }
    }

    #[test]
    fn running_settles_at_the_highest_speed() {
        for dialect in DIALECTS {
            let cmd =
                QuakeWorldUsercmd { msec: 10, angles: [0.0, 90.0, 0.0], forward: 400, ..QuakeWorldUsercmd::default() };
            let state = run(dialect, standing(), cmd, 100);
            assert!((state.velocity[1] - 320.0).abs() < 0.1, "{:?}", state.velocity);
            assert_eq!(state.origin[2], STANDING_Z);
            assert!(state.on_ground);
        }
    }

    #[test]
    fn a_jump_peaks_at_the_height_of_gravity_and_needs_a_release() {
        for dialect in DIALECTS {
            let cmd = QuakeWorldUsercmd { msec: 10, buttons: BUTTON_JUMP, ..QuakeWorldUsercmd::default() };
            let first = run(dialect, standing(), cmd, 1);
            assert!(!first.on_ground && first.jump_held);
            assert_eq!(first.velocity[2], 270.0 - 8.0);
            let peak = (1..60).map(|steps| run(dialect, standing(), cmd, steps).origin[2]).fold(0.0, f32::max);
            assert!((peak - STANDING_Z - 44.2).abs() < 0.2, "{peak}");
            let landed = run(dialect, standing(), cmd, 90);
            assert!(landed.on_ground, "still held, so no second jump");
        }
    }

    #[test]
    fn the_wall_stops_and_water_carries() {
        for dialect in DIALECTS {
            let east = QuakeWorldUsercmd { msec: 13, forward: 400, ..QuakeWorldUsercmd::default() };
            let state = run(dialect, standing(), east, 200);
            assert!((state.origin[0] - 99.968_75).abs() < 0.01, "{:?}", state.origin);
            let swimmer = QuakeWorldPlayerState::at([-300.0, 0.0, -8.0]);
            let up = QuakeWorldUsercmd { msec: 13, buttons: BUTTON_JUMP, ..QuakeWorldUsercmd::default() };
            let state = run(dialect, swimmer, up, 1);
            assert_eq!(state.water_level, 2);
            assert!(state.velocity[2] > 80.0);
        }
    }

    #[test]
    fn the_dead_do_not_steer() {
        for dialect in DIALECTS {
            let cmd =
                QuakeWorldUsercmd { msec: 13, forward: 400, buttons: BUTTON_JUMP, ..QuakeWorldUsercmd::default() };
            let state = run(dialect, QuakeWorldPlayerState { dead: true, ..standing() }, cmd, 20);
            assert_eq!((state.velocity, state.jump_held), ([0.0; 3], true));
        }
    }

    #[test]
    fn a_start_in_the_floor_is_nudged_out() {
        for dialect in DIALECTS {
            let map = QuakeMap::parse(&quake_bytes()).expect("good");
            let world = Surroundings { map: &map, solids: &[] };
            let sunk = QuakeWorldPlayerState::at([0.0, 0.0, 23.9]);
            let cmd = QuakeWorldUsercmd { msec: 13, ..QuakeWorldUsercmd::default() };
            let (state, touched) = step(dialect, &QuakeWorldMoveVars::default(), &world, &sunk, &cmd);
            assert!(touched.nudged && state.origin[2] > 24.0, "{:?}", state.origin);
        }
    }
}
