//! Time keeping between server and client, independent of the wire. [`Calibration`] measures on the server how early
//! input arrives. [`Steering`] is the client clock that follows from it. [`Redundancy`] chooses how often each usercmd
//! is sent.

mod calibration;
mod redundancy;
mod steering;

pub use calibration::{CALIBRATION_FRAMES, Calibration};
pub use redundancy::Redundancy;
pub use steering::{Steering, SteeringOptions};
