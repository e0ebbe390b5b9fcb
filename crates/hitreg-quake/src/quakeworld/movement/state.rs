//! The player state that movement reads and writes, and the contacts of a step.

use glam::Vec3;

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
    pub(crate) nudged: bool,
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
