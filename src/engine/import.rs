//! Recordings of real games become logs.

#[cfg(feature = "quake3")]
mod quake3;
#[cfg(feature = "quakeworld")]
mod qwd;

#[cfg(feature = "quake3")]
pub use quake3::{Quake3Recording, import_quake3};
#[cfg(feature = "quakeworld")]
pub use qwd::{Maps, demos_below, import_qwd};
