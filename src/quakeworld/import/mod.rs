//! From a demo and its map to a session.

mod convert;
mod error;
mod jumps;
mod packed;
#[cfg(test)]
mod recorded;
mod sessions;
#[cfg(test)]
mod tests;

pub use convert::{ImportOptions, Imported, import};
pub use error::ImportError;
pub use packed::{LARGEST_UNPACKED, UnpackError, unpacked};
