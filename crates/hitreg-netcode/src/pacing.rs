//! What server and client need to keep time with each other, free of how it is said on the wire: how early input arrives
//! ([`Calibration`], the server's), the clock that follows from it ([`Steering`], the client's), and how often each usercmd
//! is sent ([`Redundancy`]).

mod calibration;
mod redundancy;
mod steering;

pub use calibration::{CALIBRATION_FRAMES, Calibration};
pub use redundancy::{Redundancy, RedundancyOptions};
pub use steering::{Steering, SteeringOptions};
