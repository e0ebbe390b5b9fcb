//! A minimal body for the client's unit tests.

use glam::Vec3;

use crate::game::body;

body! {
    /// A point that moves and shoots.
    pub(super) struct DotBody {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Weapons shots: u32,
    }
}
