//! Player movement: runs whole usercmds on a player's state among the map and other bodies, as a server does. Moving brush
//! models first carry players. Each usercmd runs in steps, with the map's triggers after each.

mod pmove;
mod slide;
mod world;

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::bsp::quake::TriggerEffect;
use crate::bsp::quake::trace::SweepRule;
use pmove::step;
use world::SolidHit;

pub(crate) use pmove::LEAVES_GROUND_SPEED;
pub(crate) use world::{PLAYER_MAXS, PLAYER_MINS, SOLIDS_MAX, Surroundings, WorldSolid, offsets};

/// Movement settings as a server sends them. Speeds are in units/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuakeWorldMoveVars {
    /// Gravity, in units/s².
    pub gravity: f32,
    /// Speed below which friction acts as at this speed.
    pub stop_speed: f32,
    /// Limit of the wished speed; it can change in play (message 49).
    pub max_speed: f32,
    /// Limit of the wished speed for spectators.
    pub spectator_max_speed: f32,
    /// Acceleration in 1/s, as a multiple of the wished speed.
    pub accelerate: f32,
    /// Air acceleration, which servers send but none uses: air control uses [`QuakeWorldMoveVars::accelerate`].
    pub air_accelerate: f32,
    /// Acceleration under water, in 1/s.
    pub water_accelerate: f32,
    /// Friction on ground, in 1/s.
    pub friction: f32,
    /// Friction in water, in 1/s per water level.
    pub water_friction: f32,
    /// Factor on gravity for this player; it can change in play (message 50).
    pub entity_gravity: f32,
}

impl Default for QuakeWorldMoveVars {
    /// Returns the defaults of the public server sources.
    fn default() -> QuakeWorldMoveVars {
        QuakeWorldMoveVars {
            gravity: 800.0,
            stop_speed: 100.0,
            max_speed: 320.0,
            spectator_max_speed: 500.0,
            accelerate: 10.0,
            air_accelerate: 0.7,
            water_accelerate: 10.0,
            friction: 6.0,
            water_friction: 1.0,
            entity_gravity: 1.0,
        }
    }
}

/// The movement code of a server. Its variants differ in stairs, gravity on slopes and jumps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Dialect {
    /// id Software's server up to 2.40, and its descendants.
    Classic {
        /// Whether the game stops players who land hard, as KTeams and some of its descendants do.
        soft_landing: bool,
        /// Whether the game removes the falling speed from jumps, as KTeams and most of its descendants do.
        #[serde(default)]
        soft_jump: bool,
        /// Whether a move through the air that ends on ground loses its falling speed at once, a fix of QWExtended and
        /// QuakeForge.
        #[serde(default)]
        landing_fix: bool,
    },
    /// ZQuake's reworked movement, in every MVDSV and ezQuake.
    Reworked {
        /// `pm_ktjump`: how far a jump is raised towards 270 units/s, 0 to 1.
        jump_floor: f32,
        /// `pm_airstep`: players climb stairs in the air too.
        air_step: bool,
        /// `pm_slidefix`: gravity also acts on the ground.
        slide_fix: bool,
        /// `pm_bunnyspeedcap`: multiple of the maximum speed that air control cannot exceed; 0 for no cap.
        bunny_speed_cap: f32,
    },
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix: false }
    }
}

impl Dialect {
    fn sweep_rule(self) -> SweepRule {
        match self {
            Dialect::Classic { .. } => SweepRule::Classic,
            Dialect::Reworked { .. } => SweepRule::Reworked,
        }
    }
}

/// The jump button; under water it swims upwards.
pub(crate) const BUTTON_JUMP: u8 = 2;

/// Longest step in ms. Servers halve longer commands (public server sources, `SV_RunCmd`).
const STEP_MSEC_MAX: u8 = 50;

/// The input of one client frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuakeWorldUsercmd {
    /// Duration in milliseconds.
    pub msec: u8,
    /// Pitch, yaw and roll in degrees, in steps of 360/65536 from -180 on, as a server decodes them.
    pub angles: [f32; 3],
    /// Wished speed forward, in units/s.
    pub forward: i16,
    /// Wished speed to the right, in units/s.
    pub side: i16,
    /// Wished speed upwards, in units/s; only swimming uses it.
    pub up: i16,
    /// `BUTTON_ATTACK`, `BUTTON_JUMP` and game-defined buttons.
    pub buttons: u8,
    /// Weapon or other request; 0 for none.
    pub impulse: u8,
}

impl QuakeWorldUsercmd {
    /// Returns the steps that the server runs for this command. A command over 50 ms becomes two halves, each halved
    /// again while it is too long. Odd milliseconds are lost.
    pub fn steps(&self) -> impl Iterator<Item = QuakeWorldUsercmd> + use<> {
        let mut step = *self;
        let mut count = 1;
        while step.msec > STEP_MSEC_MAX {
            step.msec /= 2;
            count *= 2;
        }
        std::iter::repeat_n(step, count)
    }

    /// Returns the command that a server repeats when more packets are lost than there are backups. It is this command
    /// with its buttons released, so that one press does not fire several shots.
    pub fn repeated_by_server(&self) -> QuakeWorldUsercmd {
        QuakeWorldUsercmd { buttons: 0, ..*self }
    }
}

/// Returns an angle as the wire carries it: 16 bits of a turn, rounded to the nearest, decoded as a signed number.
pub(crate) fn wire_angle_degrees(degrees: f32) -> f32 {
    let turns = libm::rint(f64::from(degrees) * (65_536.0 / 360.0));
    let wrapped = (turns.clamp(-1e15, 1e15) as i64 & 0xffff) as u16 as i16;
    decode_angle16(wrapped)
}

pub(crate) fn decode_angle16(wire: i16) -> f32 {
    (f64::from(wire) * (360.0 / 65_536.0)) as f32
}

/// A player's state in the movement code. Origin and velocity are more precise than on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QuakeWorldPlayerState {
    /// Origin in units.
    pub(crate) origin: [f32; 3],
    /// Velocity in units/s.
    pub(crate) velocity: [f32; 3],
    /// Remaining time without steering in seconds, after a jump out of water or a teleport.
    pub(crate) water_jump_s: f32,
    /// Whether jump has been held since it was pressed.
    pub(crate) jump_held: bool,
    /// Whether the player is dead; dead players cannot steer.
    pub(crate) dead: bool,
    /// Whether the player is dead and has finished falling. The game slows such a body on the ground.
    pub(crate) corpse: bool,
    /// Whether the player stood on walkable ground after the last step.
    pub(crate) on_ground: bool,
    /// Whether the level is over. Nothing acts on the player then, and other players do not block.
    pub(crate) over: bool,
    /// Whether the server turned the view and has not told the client yet. id's servers then steer by the last
    /// command's view.
    pub(crate) view_fixed: bool,
    /// Upward speed at the end of the last packet, in units/s; the game judges landings by it.
    pub(crate) fall_speed: f32,
    /// Water level after the last step: 0 dry, 1 feet, 2 waist, 3 eyes.
    pub(crate) water_level: u8,
    /// Kind of liquid as a map's contents number; -1 for none.
    pub(crate) water_type: i32,
}

impl QuakeWorldPlayerState {
    /// Returns a body at rest in empty space at `origin`.
    pub(crate) fn at(origin: [f32; 3]) -> QuakeWorldPlayerState {
        QuakeWorldPlayerState { origin, water_type: crate::bsp::quake::EMPTY, ..QuakeWorldPlayerState::default() }
    }
}

/// The contacts and events of one or more steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MoveContacts {
    /// Bit `n`: the player touched or stood on the solid of index `n`.
    pub(crate) solids: u32,
    /// The water level changed, or the player entered or left a liquid.
    pub(crate) water_edge: bool,
    /// The start was inside something solid and was moved out.
    nudged: bool,
    /// The start was inside something solid and could not be moved out.
    pub(crate) stuck: bool,
    /// Index of the map trigger that acted.
    pub(crate) trigger: Option<u16>,
    /// The player jumped off the ground.
    pub(crate) jumped: bool,
}

impl MoveContacts {
    /// Adds the contacts of a later step.
    pub(crate) fn add(&mut self, later: &MoveContacts) {
        self.solids |= later.solids;
        self.water_edge |= later.water_edge;
        self.nudged |= later.nudged;
        self.stuck |= later.stuck;
        self.trigger = later.trigger.or(self.trigger);
        self.jumped |= later.jumped;
    }
}

/// Returns a vector's length, summed from x to z.
pub(crate) fn length(v: Vec3) -> f32 {
    crate::bsp::quake::trace::dot(v, v).sqrt()
}

/// Returns the unit vector and the length; zero stays zero.
pub(crate) fn normalize(v: Vec3) -> (Vec3, f32) {
    let length = length(v);
    if length == 0.0 { (v, 0.0) } else { (v * (1.0 / length), length) }
}

/// Time without steering after a teleport, in seconds. Servers set a time far in the future; it ends when the player
/// lands or falls.
const TELEPORT_LOCK_S: f32 = 1_000.0;
/// Vertical speed in units/s below which a landing is loud, and KTeams stops the player.
const HARD_LANDING: f32 = -300.0;
/// Speed that a corpse loses in each step, in units/s.
const CORPSE_SLOWING: f32 = 20.0;
const TELEPORT_SPEED: f32 = 300.0;

/// The result of commands, with the contacts on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MoveOutcome {
    /// State after the last command.
    pub(crate) state: QuakeWorldPlayerState,
    /// All contacts.
    pub(crate) touched: MoveContacts,
    /// View of the last command.
    view: [f32; 3],
}

impl MoveOutcome {
    /// Returns a run without any command yet.
    pub(crate) fn at(state: QuakeWorldPlayerState) -> MoveOutcome {
        MoveOutcome::after(state, [0.0; 3])
    }

    /// Returns a run after a command with this view.
    pub(crate) fn after(state: QuakeWorldPlayerState, view: [f32; 3]) -> MoveOutcome {
        MoveOutcome { state, touched: MoveContacts::default(), view }
    }
}

/// Runs one player's packets as a server does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveRunner<'a> {
    /// The movement code.
    pub(crate) dialect: Dialect,
    /// The movement settings in force.
    pub(crate) vars: &'a QuakeWorldMoveVars,
    /// The surroundings.
    pub(crate) world: Surroundings<'a>,
}

impl MoveRunner<'_> {
    /// Runs `commands` in order from `from`, each in its own packet.
    pub(crate) fn run(&self, from: &QuakeWorldPlayerState, commands: &[QuakeWorldUsercmd]) -> MoveOutcome {
        let mut run = self.start(from);
        self.packets(&mut run, commands);
        run
    }

    /// Runs commands, each in its own packet, in a world whose brush models do not move.
    pub(crate) fn packets(&self, run: &mut MoveOutcome, commands: &[QuakeWorldUsercmd]) {
        for command in commands {
            self.command(run, command);
            self.end_packet(run);
        }
    }

    /// Returns the state after the brush models have moved, before any command.
    pub(crate) fn start(&self, from: &QuakeWorldPlayerState) -> MoveOutcome {
        let mut run = MoveOutcome::at(*from);
        carry(&self.world, self.dialect.sweep_rule(), &mut run.state, &mut run.touched);
        run
    }

    /// Runs one command in as many steps as it needs.
    pub(crate) fn command(&self, run: &mut MoveOutcome, command: &QuakeWorldUsercmd) {
        for cmd in command.steps() {
            slow_corpse(&mut run.state);
            let is_stale = run.state.view_fixed && matches!(self.dialect, Dialect::Classic { .. });
            let steered = QuakeWorldUsercmd { angles: if is_stale { run.view } else { cmd.angles }, ..cmd };
            let (state, mut touched) = step(self.dialect, self.vars, &self.world, &run.state, &steered);
            run.view = cmd.angles;
            run.state = state;
            touch_triggers(&self.world, &mut run.state, &mut touched);
            run.touched.add(&touched);
        }
    }

    /// Applies what the game does after all commands of a packet.
    pub(crate) fn end_packet(&self, run: &mut MoveOutcome) {
        let state = &mut run.state;
        if state.dead {
            return;
        }
        let soft = matches!(self.dialect, Dialect::Classic { soft_landing: true, .. });
        if soft && state.on_ground && state.fall_speed < HARD_LANDING {
            state.velocity[2] = 0.0;
        }
        state.fall_speed = state.velocity[2];
    }
}

/// Slows a corpse on the ground, as the game does before each step.
fn slow_corpse(state: &mut QuakeWorldPlayerState) {
    if state.corpse && state.on_ground {
        let (direction, speed) = normalize(Vec3::from_array(state.velocity));
        state.velocity = (direction * (speed - CORPSE_SLOWING).max(0.0)).to_array();
    }
}

/// Applies the map's triggers to a living player at this position.
fn touch_triggers(world: &Surroundings<'_>, state: &mut QuakeWorldPlayerState, touched: &mut MoveContacts) {
    if state.dead || state.over {
        return;
    }
    for (index, trigger) in world.map.triggers.iter().enumerate() {
        let meets = |axis: usize| {
            let (low, high) =
                (state.origin[axis] + PLAYER_MINS[axis] - 1.0, state.origin[axis] + PLAYER_MAXS[axis] + 1.0);
            low <= trigger.maxs[axis] && high >= trigger.mins[axis]
        };
        if !(meets(0) && meets(1) && meets(2)) {
            continue;
        }
        touched.trigger = Some(index as u16);
        match trigger.effect {
            TriggerEffect::Push { velocity } => state.velocity = velocity,
            TriggerEffect::Teleport { to, angles } => {
                let (sin, cos) = libm::sincos(f64::from(angles[1]).to_radians());
                state.origin = to;
                state.velocity = [cos as f32 * TELEPORT_SPEED, sin as f32 * TELEPORT_SPEED, 0.0];
                state.on_ground = false;
                state.view_fixed = true;
                state.water_jump_s = TELEPORT_LOCK_S;
            }
        }
    }
}

/// Heights to try, in units: a brush model can be up to 1/8 unit from its sent position, so its rider may seem to be
/// inside.
const RAISES: [f32; 3] = [0.0, 0.125, 0.25];

/// Moves the player along with every solid that moved since `state`.
pub(crate) fn carry(
    world: &Surroundings<'_>,
    rule: SweepRule,
    state: &mut QuakeWorldPlayerState,
    touched: &mut MoveContacts,
) {
    for (index, solid) in world.solids.iter().enumerate() {
        let WorldSolid::Mover { model, origin, moved } = *solid else { continue };
        let by = Vec3::from_array(moved);
        if by == Vec3::ZERO {
            continue;
        }
        let at = Vec3::from_array(state.origin);
        let old = WorldSolid::Mover { model, origin: (Vec3::from_array(origin) - by).to_array(), moved: [0.0; 3] };
        let alone = [old];
        let before = Surroundings { map: world.map, solids: &alone };
        let rides = state.on_ground && before.sweep(rule, at, at - Vec3::Z * 2.0).1 == SolidHit::Solid(0);
        let now = [*solid];
        let after = Surroundings { map: world.map, solids: &now };
        if !rides && after.has_room(at) {
            continue;
        }
        touched.solids |= 1 << index.min(31);
        let mut raised = RAISES.iter().map(|&up| at + by + Vec3::new(0.0, 0.0, up));
        if let Some(free) = raised.find(|&p| after.has_room(p)) {
            state.origin = free.to_array();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::{STANDING_Z, quake_bytes};
    use crate::quakeworld::QuakeMap;

    #[test]
    fn a_long_command_is_halved_until_it_is_short() {
        let msecs = |msec| {
            QuakeWorldUsercmd { msec, ..QuakeWorldUsercmd::default() }.steps().map(|s| s.msec).collect::<Vec<_>>()
        };
        assert_eq!(msecs(50), [50]);
        assert_eq!(msecs(51), [25, 25]);
        assert_eq!(msecs(200), [50; 4]);
        assert_eq!(msecs(255), [31; 8]);
    }

    #[test]
    fn angles_keep_sixteen_bits() {
        assert_eq!(wire_angle_degrees(0.0), 0.0);
        assert_eq!(wire_angle_degrees(270.0), -90.0);
        assert_eq!(wire_angle_degrees(360.0 / 65_536.0), (360.0f64 / 65_536.0) as f32);
        assert_eq!(wire_angle_degrees(f32::NAN), 0.0);
    }

    const CLASSIC: Dialect = Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false };

    fn run(solids: &[WorldSolid], from: &QuakeWorldPlayerState, commands: &[QuakeWorldUsercmd]) -> MoveOutcome {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let vars = QuakeWorldMoveVars::default();
        MoveRunner { dialect: CLASSIC, vars: &vars, world: Surroundings { map: &map, solids } }.run(from, commands)
    }

    fn idle() -> QuakeWorldUsercmd {
        QuakeWorldUsercmd { msec: 10, ..QuakeWorldUsercmd::default() }
    }

    #[test]
    fn a_teleporter_moves_players_and_blocks_their_input() {
        let mut from = QuakeWorldPlayerState::at([0.0, 580.0, STANDING_Z]);
        from.velocity = [0.0, 300.0, 0.0];
        let there = run(&[], &from, &[QuakeWorldUsercmd { forward: 400, angles: [0.0, 90.0, 0.0], ..idle() }]);
        assert_eq!(there.touched.trigger, Some(0));
        assert_eq!(there.state.origin, [0.0, 0.0, 27.0]);
        assert!((there.state.velocity[1] - 300.0).abs() < 0.001 && there.state.water_jump_s > 0.0);
        let away = QuakeWorldUsercmd { forward: 400, angles: [0.0, -90.0, 0.0], ..idle() };
        let next = run(&[], &there.state, &[away]);
        assert!((next.state.velocity[1] - 300.0).abs() < 0.001, "{:?}", next.state);
        let dead = QuakeWorldPlayerState { dead: true, ..from };
        assert_eq!(run(&[], &dead, &[idle()]).touched.trigger, None);
    }

    #[test]
    fn a_lift_carries_standing_players() {
        let from =
            QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, 64.0 + STANDING_Z]) };
        let lift = WorldSolid::Mover { model: 1, origin: [0.0, 0.0, 66.0], moved: [0.0, 0.0, 2.0] };
        let up = run(&[lift], &from, &[idle()]);
        assert_eq!(up.state.origin[2], 66.0 + STANDING_Z);
        assert_eq!(up.touched.solids, 1);
        let beside = QuakeWorldPlayerState { origin: [300.0 - 216.0, 0.0, 64.0 + STANDING_Z], ..from };
        assert!(run(&[lift], &beside, &[idle()]).state.origin[2] < 64.0 + STANDING_Z);
    }

    #[test]
    fn a_hard_landing_loses_its_speed_on_such_servers() {
        let mut from = QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z + 3.9]);
        from.velocity = [0.0, 0.0, -310.0];
        from.fall_speed = -310.0;
        assert_eq!(run(&[], &from, &[idle()]).state.velocity[2], 0.0);
        from.fall_speed = -290.0;
        assert!(run(&[], &from, &[idle()]).state.velocity[2] < -300.0);
    }

    #[test]
    fn a_corpse_is_slowed() {
        let mut from =
            QuakeWorldPlayerState { dead: true, on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z]) };
        from.velocity = [0.0, 200.0, 0.0];
        let sliding = run(&[], &from, &[idle()]).state.velocity[1];
        let lying = run(&[], &QuakeWorldPlayerState { corpse: true, ..from }, &[idle()]).state.velocity[1];
        assert!((sliding - 188.0).abs() < 0.1 && (lying - 169.2).abs() < 0.1, "{sliding} {lying}");
    }

    #[test]
    fn after_the_level_nothing_triggers() {
        let mut from = QuakeWorldPlayerState { over: true, ..QuakeWorldPlayerState::at([0.0, 580.0, STANDING_Z]) };
        from.velocity = [0.0, 300.0, 0.0];
        let there = run(&[], &from, &[QuakeWorldUsercmd { forward: 400, angles: [0.0, 90.0, 0.0], ..idle() }]);
        assert_eq!((there.touched.trigger, there.state.origin[1] > 580.0), (None, true));
    }

    #[test]
    fn a_landing_fix_takes_the_fall_at_once() {
        let (map, vars) = (QuakeMap::parse(&quake_bytes()).expect("good"), QuakeWorldMoveVars::default());
        let mut from = QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z + 3.0]);
        from.velocity = [100.0, 0.0, -250.0];
        let landed = |landing_fix| {
            let dialect = Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix };
            MoveRunner { dialect, vars: &vars, world: Surroundings { map: &map, solids: &[] } }
                .run(&from, &[idle()])
                .state
        };
        let (fixed, plain) = (landed(true), landed(false));
        assert_eq!((fixed.origin, fixed.on_ground), (plain.origin, true));
        assert_eq!(fixed.velocity, [100.0, 0.0, 0.0]);
        assert_eq!(plain.velocity, [100.0, 0.0, -258.0]);
    }
}
