//! Recordings of real games become logs.

#[cfg(feature = "quake3")]
mod quake3_udp;
#[cfg(feature = "quakeworld")]
mod qwd;

#[cfg(feature = "quake3")]
pub use quake3_udp::{Quake3Capture, import_quake3_udp};
#[cfg(feature = "quakeworld")]
pub use qwd::{Maps, demos_below, import_qwd};
