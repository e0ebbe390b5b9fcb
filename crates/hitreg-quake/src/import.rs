//! Imports recordings of real games as logs.

mod quake3;
mod qwd;

use std::path::PathBuf;

use hitreg_log::log::Lookalike;
use hitreg_log::store::StoreError;

pub use quake3::{Quake3Recording, import_quake3};
pub use qwd::{Maps, demos_below, import_qwd};

/// Why a recording could not be imported, with the file at fault.
#[derive(Debug, thiserror::Error)]
pub enum ImportFileError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is no recording of the wanted kind, but a known kind of file.
    #[error("{}: not a {wanted}: it looks like {kind}. `hitreg import {importer}` takes {takes}", path.display(), kind = looks.kind)]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What was expected.
        wanted: &'static str,
        /// What the file seems to be.
        looks: Lookalike,
        /// The subcommand of `hitreg import`.
        importer: &'static str,
        /// The files that it takes.
        takes: &'static str,
    },
    /// No map was given.
    #[error("{}: the demo was played on `{map}`: give this map with --map {map}.bsp, or a folder of maps with --maps", demo.display())]
    MapNeeded {
        /// The demo.
        demo: PathBuf,
        /// The name of the map.
        map: String,
    },
    /// The demo's map was not found in the folder of maps.
    #[error("{}: the demo was played on `{map}`, and there is no {map}.bsp below {}: add it there, or give it with --map", demo.display(), folder.display())]
    NoMap {
        /// The demo.
        demo: PathBuf,
        /// The name of the map.
        map: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A QuakeWorld demo or its map is invalid.
    #[error("{}: {source}", path.display())]
    Import {
        /// The file at fault.
        path: PathBuf,
        /// The problem.
        source: crate::quakeworld::DemoImportError,
    },
    /// A Quake III recording, its map or its server log is invalid.
    #[error("{}: {source}", path.display())]
    Quake3 {
        /// The file at fault.
        path: PathBuf,
        /// The problem.
        source: crate::quake3::Quake3ImportError,
    },
}
