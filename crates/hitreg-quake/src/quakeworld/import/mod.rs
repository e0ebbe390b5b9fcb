//! Converts a demo and its map to a session.

mod bodies;
mod convert;
mod error;
mod follow;
mod jumps;
mod packed;
mod sessions;
#[cfg(test)]
mod tests;
mod unsent;
mod variant;
mod walls;

#[cfg(test)]
pub(crate) use convert::prepared;
pub use convert::{ImportOptions, ImportResult, import, played_map};
pub use error::DemoImportError;
#[cfg(test)]
pub(crate) use follow::{AckedUsercmds, follow};
pub use packed::{UnpackError, unpacked};
pub use variant::{ServerTrait, TraitFinding};
