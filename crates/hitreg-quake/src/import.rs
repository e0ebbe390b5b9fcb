//! Recordings of real games become logs.

mod quake3;
mod qwd;

pub use quake3::{Quake3Recording, import_quake3};
pub use qwd::{Maps, demos_below, import_qwd};
