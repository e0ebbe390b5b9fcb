//! Quake III's player movement: pure functions of a state, a usercmd and the surroundings. The rules follow the public
//! OpenArena and ioquake3 sources (bg_pmove.c, bg_slidemove.c).
//!
//! A usercmd runs in steps of at most 66 ms. Each step finds the ground and the water, and moves the player accordingly.

#[cfg(test)]
mod tests;
mod walk;

use glam::Vec3;

use super::protocol::Quake3Usercmd;
use crate::bsp::SweepTrace;
use crate::bsp::quake3::{BoxSweep, Quake3Map, contents, surface};

/// Bits of [`Quake3PlayerState::flags`] (bg_public.h).
pub(crate) mod flag {
    pub(crate) const DUCKED: u32 = 1;
    pub(crate) const JUMP_HELD: u32 = 2;
    pub(crate) const TIME_LAND: u32 = 32;
    pub(crate) const TIME_KNOCKBACK: u32 = 64;
    pub(crate) const TIME_WATERJUMP: u32 = 256;
    pub(crate) const RESPAWNED: u32 = 512;
    pub(crate) const GRAPPLE_PULL: u32 = 2048;
    /// The state is that of another player, whom a spectator follows.
    pub(crate) const FOLLOW: u32 = 4096;
    pub(crate) const INVULNERABLE_WIDE: u32 = 16_384;
    /// The flags that end with [`Quake3PlayerState::time_ms`](super::Quake3PlayerState::time_ms).
    pub(crate) const ALL_TIMES: u32 = TIME_LAND | TIME_KNOCKBACK | TIME_WATERJUMP;
}

/// Values of [`Quake3PlayerState::kind`].
pub(crate) mod kind {
    pub(crate) const NOCLIP: u32 = 1;
    /// From this value on, nothing can hit the player.
    pub(crate) const SPECTATOR: u32 = 2;
    /// From this value on, the player cannot steer.
    pub(crate) const DEAD: u32 = 3;
    pub(crate) const FREEZE: u32 = 4;
}

/// Button that replaces all input while the player writes a message.
const BUTTON_TALK: u16 = 2;
const BUTTON_USE: u16 = 4;
const BUTTON_ATTACK: u16 = 1;

/// The part of a player's state that movement uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quake3PlayerState {
    /// Time of the last executed usercmd, in ms.
    pub(crate) command_time: i32,
    pub(crate) origin: Vec3,
    pub(crate) velocity: Vec3,
    /// View angles in degrees.
    pub(crate) viewangles: Vec3,
    /// Rotation that the server adds to the view, in 65,536ths of a turn.
    pub(crate) delta_angles: [u16; 3],
    pub(crate) kind: u32,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
    /// Remaining time of the timed flags, in ms.
    pub(crate) time_ms: i32,
    /// Running speed, in units/s.
    pub(crate) speed: i32,
    /// Gravity, in units/s².
    pub(crate) gravity: i32,
    /// The entity below the player.
    pub(crate) ground: u32,
    pub(crate) viewheight: i32,
    pub(crate) health: i32,
    pub(crate) flies: bool,
    pub(crate) is_invulnerable: bool,
    pub(crate) grapple: Vec3,
}

/// Entity numbers of the world and of no entity.
pub(crate) const WORLD: u32 = 1022;
pub(crate) const NO_ENTITY: u32 = 1023;

/// The shape of a solid entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SolidShape {
    /// A model of the map, by its number.
    Model(usize),
    /// A box relative to its origin.
    Body { mins: Vec3, maxs: Vec3 },
}

/// A solid entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EntitySolid {
    pub(crate) entity: u32,
    pub(crate) origin: Vec3,
    pub(crate) shape: SolidShape,
}

/// A trigger that acts on players who touch it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PushTrigger {
    pub(crate) entity: u32,
    pub(crate) origin: Vec3,
    pub(crate) model: usize,
    /// New velocity of the player; `None` for a teleporter.
    pub(crate) throws: Option<Vec3>,
}

/// Everything that a player collides with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveWorld<'a> {
    pub(crate) map: &'a Quake3Map,
    pub(crate) solids: &'a [EntitySolid],
    pub(crate) triggers: &'a [PushTrigger],
}

impl MoveWorld<'_> {
    /// Sweeps a box; returns the result and the entity that stopped it.
    pub(crate) fn sweep(&self, sweep: &BoxSweep) -> (SweepTrace, u32) {
        let mut nearest = sweep.through(self.map);
        let mut entity = if nearest.fraction < 1.0 { WORLD } else { NO_ENTITY };
        for solid in self.solids {
            if nearest.all_solid {
                break;
            }
            let trace = match solid.shape {
                SolidShape::Model(model) => sweep.through_model(self.map, model, solid.origin),
                SolidShape::Body { .. } if sweep.mask & contents::BODY == 0 => continue,
                SolidShape::Body { mins, maxs } => sweep.past_box(self.map, solid.origin + mins, solid.origin + maxs),
            };
            if trace.all_solid || trace.fraction < nearest.fraction {
                let starts_solid = trace.starts_solid || nearest.starts_solid;
                nearest = SweepTrace { starts_solid, ..trace };
                entity = solid.entity;
            } else {
                nearest.starts_solid |= trace.starts_solid;
            }
        }
        (nearest, entity)
    }

    /// Returns the triggers that a box touches.
    pub(crate) fn touched(&self, at: Vec3, mins: Vec3, maxs: Vec3) -> impl Iterator<Item = &PushTrigger> {
        let sweep = BoxSweep { start: at, end: at, mins, maxs, mask: u32::MAX };
        self.triggers.iter().filter(move |trigger| {
            let trace = sweep.through_model(self.map, trigger.model, trigger.origin);
            trace.starts_solid || trace.all_solid
        })
    }
}

/// The longest step, in ms.
const STEP_MS_MAX: i32 = 66;
/// The longest time of a usercmd, in ms; the rest is cut.
const USERCMD_MS_MAX: i32 = 1000;
/// Upward input of a usercmd while the jump key is held after a jump.
const HELD_UP: i8 = 20;
/// The steepest pitch, in 65,536ths of a turn.
const STEEPEST: i16 = 16_000;

const BOX_BELOW: f32 = -24.0;
const HALF_WIDTH: f32 = 15.0;
const STANDING: f32 = 32.0;
const DUCKED: f32 = 16.0;
const LYING: f32 = -8.0;
const INVULNERABLE: f32 = 42.0;

/// Server settings of player movement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PmoveSettings {
    /// Whether velocities keep their fractions; otherwise each step rounds them.
    pub(crate) float: bool,
    /// Fixed step length in ms; 0 for variable steps.
    pub(crate) fixed_ms: i32,
    /// Whether the server prevents speed gain by turning in the air.
    pub(crate) no_bunny: bool,
    /// Whether swimming is fast.
    pub(crate) fast_water: bool,
}

/// A player during a step.
struct MoveStep<'a> {
    pub(super) world: &'a MoveWorld<'a>,
    pub(super) settings: PmoveSettings,
    pub(super) state: Quake3PlayerState,
    pub(super) command: Quake3Usercmd,
    pub(super) seconds: f32,
    pub(super) mins: Vec3,
    pub(super) maxs: Vec3,
    pub(super) mask: u32,
    pub(super) forward: Vec3,
    pub(super) right: Vec3,
    /// The surface below, and whether it is walkable.
    pub(super) ground: Option<SweepTrace>,
    walks: bool,
    ground_surface: u32,
    falls_at: f32,
    /// Water level: 0 dry, 1 feet, 2 waist, 3 eyes.
    pub(super) water: u8,
    /// Entities that blocked the player.
    pub(super) met: &'a mut Vec<u32>,
}

/// Runs a usercmd. `met` receives the entities that the player touched.
pub(crate) fn run(
    world: &MoveWorld<'_>,
    settings: PmoveSettings,
    from: &Quake3PlayerState,
    command: &Quake3Usercmd,
    met: &mut Vec<u32>,
) -> Quake3PlayerState {
    let mut state = *from;
    let mut command = *command;
    if settings.fixed_ms > 0 {
        let ms = settings.fixed_ms;
        command.server_time = command.server_time.saturating_add(ms - 1).div_euclid(ms).saturating_mul(ms);
    }
    let end = command.server_time;
    let whole = i64::from(end) - i64::from(state.command_time);
    if whole <= 0 {
        return state;
    }
    if whole > i64::from(USERCMD_MS_MAX) {
        state.command_time = end - USERCMD_MS_MAX;
    }
    let longest = if settings.fixed_ms > 0 { settings.fixed_ms } else { STEP_MS_MAX };
    while state.command_time != end {
        let ms = (end - state.command_time).min(longest);
        state.command_time += ms;
        let mut step = MoveStep::new(world, settings, state, command, ms, met);
        step.run(ms);
        (state, command) = (step.state, step.command);
        if state.flags & flag::JUMP_HELD != 0 {
            command.up = HELD_UP;
        }
    }
    touch_triggers(world, &mut state, met);
    state
}

/// Applies jump pads, as the server does after a usercmd (g_active.c: `G_TouchTriggers`; bg_misc.c: `BG_TouchJumpPad`).
fn touch_triggers(world: &MoveWorld<'_>, state: &mut Quake3PlayerState, met: &mut Vec<u32>) {
    if state.kind != 0 || state.health <= 0 {
        return;
    }
    let top = if state.flags & flag::DUCKED != 0 { DUCKED } else { STANDING };
    let (mins, maxs) = (Vec3::new(-HALF_WIDTH, -HALF_WIDTH, BOX_BELOW), Vec3::new(HALF_WIDTH, HALF_WIDTH, top));
    for trigger in world.touched(state.origin, mins, maxs) {
        met.push(trigger.entity);
        if let (Some(throws), false) = (trigger.throws, state.flies) {
            state.velocity = throws;
        }
    }
}

impl<'a> MoveStep<'a> {
    fn new(
        world: &'a MoveWorld<'a>,
        settings: PmoveSettings,
        state: Quake3PlayerState,
        command: Quake3Usercmd,
        ms: i32,
        met: &'a mut Vec<u32>,
    ) -> MoveStep<'a> {
        // Dead players pass through others.
        let body = if state.health > 0 && state.kind != kind::DEAD { contents::BODY } else { 0 };
        MoveStep {
            world,
            settings,
            state,
            command,
            seconds: (f64::from(ms) * 0.001) as f32,
            mins: Vec3::new(-HALF_WIDTH, -HALF_WIDTH, BOX_BELOW),
            maxs: Vec3::new(HALF_WIDTH, HALF_WIDTH, STANDING),
            mask: contents::SOLID | contents::PLAYER_CLIP | body,
            forward: Vec3::X,
            right: -Vec3::Y,
            ground: None,
            walks: false,
            ground_surface: 0,
            falls_at: state.velocity.z,
            water: 0,
            met,
        }
    }

    fn run(&mut self, ms: i32) {
        self.take_command();
        match self.state.kind {
            kind::SPECTATOR => {
                self.shape();
                self.fly();
                return self.drop_time(ms);
            }
            kind::NOCLIP => {
                self.pass();
                return self.drop_time(ms);
            }
            kind if kind >= kind::FREEZE => return,
            _ => {}
        }
        self.look_for_water();
        self.shape();
        self.look_for_ground();
        if self.state.kind == kind::DEAD {
            self.slow_corpse();
        }
        self.drop_time(ms);
        if self.state.is_invulnerable {
            (self.command.forward, self.command.right, self.command.up) = (0, 0, 0);
            self.state.velocity = Vec3::ZERO;
        } else if self.state.flies {
            self.fly();
        } else if self.state.flags & flag::GRAPPLE_PULL != 0 {
            self.pull();
            self.fall();
        } else if self.state.flags & flag::TIME_WATERJUMP != 0 {
            self.jump_out_of_water();
        } else if self.water > 1 {
            self.swim();
        } else if self.walks {
            self.walk();
        } else {
            self.fall();
        }
        self.look_for_ground();
        self.look_for_water();
        let is_slick = self.ground_surface & surface::SLICK != 0;
        if !self.settings.float || is_slick {
            self.state.velocity = self.state.velocity.map(libm::rintf);
        }
    }

    /// Applies the parts of the usercmd that do not move the player: view, buttons, and whether the player may steer.
    fn take_command(&mut self) {
        let (state, command) = (&mut self.state, &mut self.command);
        if state.health > 0 && command.buttons & (BUTTON_ATTACK | BUTTON_USE) == 0 {
            state.flags &= !flag::RESPAWNED;
        }
        if command.buttons & BUTTON_TALK != 0 {
            *command = Quake3Usercmd { buttons: BUTTON_TALK, forward: 0, right: 0, up: 0, ..*command };
        }
        if state.kind < kind::FREEZE && (state.kind == kind::SPECTATOR || state.health > 0) {
            for axis in 0..3 {
                let mut angle = command.angles[axis].wrapping_add(state.delta_angles[axis]) as i16;
                if axis == 0 && !(-STEEPEST..=STEEPEST).contains(&angle) {
                    angle = if angle > 0 { STEEPEST } else { -STEEPEST };
                    state.delta_angles[0] = (angle as u16).wrapping_sub(command.angles[0]);
                }
                state.viewangles[axis] = f32::from(angle) * (360.0 / 65_536.0);
            }
        }
        (self.forward, self.right) = directions(state.viewangles);
        if command.up < 10 {
            state.flags &= !flag::JUMP_HELD;
        }
        if state.kind >= kind::DEAD {
            (command.forward, command.right, command.up) = (0, 0, 0);
        }
    }

    /// Sets the player's box. A ducked player stands up if there is room.
    fn shape(&mut self) {
        let wide = flag::INVULNERABLE_WIDE;
        if self.state.is_invulnerable {
            if self.state.flags & wide != 0 {
                (self.mins, self.maxs) = (Vec3::splat(-INVULNERABLE), Vec3::splat(INVULNERABLE));
            } else {
                self.maxs.z = DUCKED;
            }
            self.state.flags |= flag::DUCKED;
            self.state.viewheight = 12;
            return;
        }
        self.state.flags &= !wide;
        if self.state.kind == kind::DEAD {
            self.maxs.z = LYING;
            self.state.viewheight = -16;
            return;
        }
        if self.command.up < 0 {
            self.state.flags |= flag::DUCKED;
        } else if self.state.flags & flag::DUCKED != 0 {
            self.maxs.z = STANDING;
            if !self.sweep(self.state.origin, self.state.origin).0.all_solid {
                self.state.flags &= !flag::DUCKED;
            }
        }
        let is_ducked = self.state.flags & flag::DUCKED != 0;
        (self.maxs.z, self.state.viewheight) = if is_ducked { (DUCKED, 12) } else { (STANDING, 26) };
    }

    fn drop_time(&mut self, ms: i32) {
        if self.state.time_ms != 0 {
            if ms >= self.state.time_ms {
                self.state.flags &= !flag::ALL_TIMES;
                self.state.time_ms = 0;
            } else {
                self.state.time_ms -= ms;
            }
        }
    }

    pub(super) fn sweep(&self, start: Vec3, end: Vec3) -> (SweepTrace, u32) {
        self.world.sweep(&BoxSweep { start, end, mins: self.mins, maxs: self.maxs, mask: self.mask })
    }

    pub(super) fn meet(&mut self, entity: u32) {
        if entity != NO_ENTITY && !self.met.contains(&entity) {
            self.met.push(entity);
        }
    }
}

/// Returns the forward and right directions of pitch, yaw and roll in degrees (q_math.c: `AngleVectors`).
pub(crate) fn directions(angles: Vec3) -> (Vec3, Vec3) {
    let turn = |degrees: f32| libm::sincosf((f64::from(degrees) * (std::f64::consts::PI * 2.0 / 360.0)) as f32);
    let ((sy, cy), (sp, cp), (sr, cr)) = (turn(angles.y), turn(angles.x), turn(angles.z));
    let forward = Vec3::new(cp * cy, cp * sy, -sp);
    let right = Vec3::new(-sr * sp * cy + cr * sy, -sr * sp * sy - cr * cy, -sr * cp);
    (forward, right)
}

/// Largest distance to the ground, in units.
const REACH: f32 = 0.25;
/// Smallest z component of a walkable slope's normal.
const WALKABLE: f32 = 0.7;
/// Speed away from the ground, in units/s, above which a player leaves it.
const THROWN_OFF: f32 = 10.0;
/// Vertical speed, in units/s, below which a landing delays the next jump.
const HARD_LANDING: f32 = -200.0;
const LANDING_MS: i32 = 250;

impl MoveStep<'_> {
    fn look_for_ground(&mut self) {
        let below = self.state.origin - Vec3::new(0.0, 0.0, REACH);
        let (mut trace, mut entity) = self.sweep(self.state.origin, below);
        if trace.all_solid {
            let Some(freed) = self.free(below) else { return self.leave_ground() };
            (trace, entity) = freed;
        }
        self.ground_surface = trace.surface;
        if trace.fraction == 1.0 {
            return self.leave_ground();
        }
        if self.state.velocity.z > 0.0 && self.state.velocity.dot(trace.normal) > THROWN_OFF {
            return self.leave_ground();
        }
        self.ground = Some(trace);
        if trace.normal.z < WALKABLE {
            self.state.ground = NO_ENTITY;
            self.walks = false;
            return;
        }
        self.walks = true;
        if self.state.flags & flag::TIME_WATERJUMP != 0 {
            self.state.flags &= !(flag::TIME_WATERJUMP | flag::TIME_LAND);
            self.state.time_ms = 0;
        }
        if self.state.ground == NO_ENTITY && self.falls_at < HARD_LANDING {
            self.state.flags |= flag::TIME_LAND;
            self.state.time_ms = LANDING_MS;
        }
        self.state.ground = entity;
        self.meet(entity);
    }

    pub(super) fn leave_ground(&mut self) {
        self.state.ground = NO_ENTITY;
        self.ground = None;
        self.walks = false;
    }

    /// Finds the ground for a player stuck in something solid, if there is free space within one unit.
    fn free(&self, below: Vec3) -> Option<(SweepTrace, u32)> {
        let near = [-1.0, 0.0, 1.0];
        let mut places =
            near.iter().flat_map(|x| near.iter().flat_map(move |y| near.map(move |z| Vec3::new(*x, *y, z))));
        let has_room = |off: &Vec3| {
            let place = self.state.origin + *off;
            !self.sweep(place, place).0.all_solid
        };
        places.find(has_room).map(|_| self.sweep(self.state.origin, below))
    }

    fn look_for_water(&mut self) {
        let is_water = |above: f32| {
            let point = self.state.origin + Vec3::new(0.0, 0.0, BOX_BELOW + above);
            self.world.map.contents_at(point) & contents::WATER != 0
        };
        let eyes = self.state.viewheight - BOX_BELOW as i32;
        let depth = [1.0, (eyes / 2) as f32, eyes as f32].into_iter().take_while(|above| is_water(*above)).count();
        self.water = depth as u8;
    }
}
