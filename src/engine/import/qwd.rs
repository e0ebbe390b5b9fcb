//! QuakeWorld client demos.

use std::path::Path;

use crate::engine::EngineError;
use crate::quakeworld::{self, ImportError, ImportOptions, Imported};
use crate::store;

/// Imports a QuakeWorld client demo with the map that it was played on, or, by `force`, with any map. Gives what came of
/// it and the demo's size in bytes.
///
/// # Errors
/// When a file cannot be read, or demo and map do not fit; names the file at fault.
pub fn import_qwd(demo: &Path, map: &Path, force: bool) -> Result<(Imported, usize), EngineError> {
    let (demo_bytes, map_bytes) = (store::read_bytes(demo)?, store::read_bytes(map)?);
    let map_name = map.file_name().map(|name| name.to_string_lossy().into_owned());
    let options = ImportOptions { map_name, force_map: force };
    let imported = quakeworld::import(&demo_bytes, &map_bytes, &options).map_err(|source| {
        let path = if is_the_maps_fault(&source) { map } else { demo };
        EngineError::Import { path: path.to_owned(), source }
    })?;
    Ok((imported, demo_bytes.len()))
}

fn is_the_maps_fault(error: &ImportError) -> bool {
    matches!(
        error,
        ImportError::Map(_)
            | ImportError::Unpack { file: "map", .. }
            | ImportError::OtherMap { .. }
            | ImportError::InWalls { .. }
            | ImportError::NoSuchModel { .. }
    )
}
