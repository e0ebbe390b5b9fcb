//! A body for the tests of this room: no game's, and as small as one can be.

use glam::Vec3;

use crate::game::body;

body! {
    /// Something that moves and shoots.
    pub(super) struct Dot {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Weapons shots: u32,
    }
}
