//! The state of a player that movement reads and writes, and what a step touched on its way.

use glam::Vec3;
use serde::{Deserialize, Serialize};

/// A player as the movement code knows it. Origin and velocity hold more than the wire does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerState {
    /// Units.
    pub origin: [f32; 3],
    /// Units/s.
    pub velocity: [f32; 3],
    /// While above 0 the player cannot steer: jumping out of water, or fresh from a teleporter. In seconds.
    pub water_jump_s: f32,
    /// Jump was pressed and not let go since.
    pub jump_held: bool,
    /// No health left: no steering.
    pub dead: bool,
    /// Dead and done falling: the game slows the body on the ground.
    pub corpse: bool,
    /// Stood on something walkable after the last step.
    pub on_ground: bool,
    /// The level is over: nothing acts on the player any more, and nobody stands in the way.
    pub over: bool,
    /// The server turned the view and has not told the client yet; id's servers then steer by the last command's view.
    pub view_fixed: bool,
    /// Upward speed at the end of the last packet, in units/s; the game judges landings by it.
    pub fall_speed: f32,
    /// How deep in liquid after the last step: 0 not, 1 feet, 2 waist, 3 eyes.
    pub water_level: u8,
    /// What the liquid is, as a map's contents number; -1 is none.
    pub water_type: i32,
}

impl PlayerState {
    /// A body at rest in empty space at `origin`.
    pub fn at(origin: [f32; 3]) -> PlayerState {
        PlayerState {
            origin,
            velocity: [0.0; 3],
            water_jump_s: 0.0,
            jump_held: false,
            dead: false,
            corpse: false,
            on_ground: false,
            over: false,
            view_fixed: false,
            fall_speed: 0.0,
            water_level: 0,
            water_type: crate::bsp::quake::EMPTY,
        }
    }
}

/// What happened on the way of one or more steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// Bit `n`: the solid of index `n` was run into or stood on.
    pub solids: u32,
    /// The water level changed, or a liquid was entered or left.
    pub water_edge: bool,
    /// The start lay in solid and had to be moved out.
    pub nudged: bool,
    /// The start lay in solid and could not be moved out.
    pub stuck: bool,
    /// A trigger of the map acted: its index.
    pub trigger: Option<u16>,
    /// The player jumped off the ground.
    pub jumped: bool,
    /// Some wall, step or floor changed the way.
    pub bumped: bool,
}

impl Touched {
    /// Adds what a later step touched.
    pub fn add(&mut self, later: &Touched) {
        self.solids |= later.solids;
        self.water_edge |= later.water_edge;
        self.nudged |= later.nudged;
        self.stuck |= later.stuck;
        self.trigger = later.trigger.or(self.trigger);
        self.jumped |= later.jumped;
        self.bumped |= later.bumped;
    }
}

/// A vector's length, summed from x to z.
pub(crate) fn length(v: Vec3) -> f32 {
    crate::bsp::quake::trace::dot(v, v).sqrt()
}

/// The unit vector and the length; zero stays zero.
pub(crate) fn normalize(v: Vec3) -> (Vec3, f32) {
    let length = length(v);
    if length == 0.0 { (v, 0.0) } else { (v * (1.0 / length), length) }
}
