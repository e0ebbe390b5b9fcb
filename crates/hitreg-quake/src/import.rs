//! Recordings of real games become logs.

mod quake3;
mod qwd;

use std::path::PathBuf;

use hitreg_log::store::StoreError;

pub use quake3::{Quake3Recording, import_quake3};
pub use qwd::{Maps, demos_below, import_qwd};

/// Why a recording did not become a log, with the file at fault.
#[derive(Debug, thiserror::Error)]
pub enum ImportFileError {
    /// A file that cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A demo whose map is not at hand.
    #[error("{}: the demo was played on `{map}`, and there is no {map}.bsp below {}", demo.display(), folder.display())]
    NoMap {
        /// The demo.
        demo: PathBuf,
        /// The map's name.
        map: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A recording that does not become a log.
    #[error("{}: {source}", path.display())]
    Import {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong.
        source: crate::quakeworld::ImportError,
    },
    /// A capture that does not become a log.
    #[error("{}: {source}", path.display())]
    Quake3 {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong.
        source: crate::quake3::ImportError,
    },
}
