//! Time keeping between server and client, independent of the wire: how early input arrives ([`Calibration`], on the
//! server), the clock steered by it ([`Steering`], on the client), and how often each usercmd is sent ([`Redundancy`]).

mod calibration;
mod redundancy;
mod steering;

pub use calibration::{CALIBRATION_FRAMES, Calibration};
pub use redundancy::{Redundancy, RedundancyOptions};
pub use steering::{Steering, SteeringOptions};
