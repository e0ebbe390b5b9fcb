//! Recordings of real games become sessions.

use std::path::Path;

use super::EngineError;
use crate::quakeworld::{self, ImportError, ImportOptions};
use crate::record::Session;
use crate::store;

/// Imports a QuakeWorld client demo with the map that it was played on, or, by `force`, with any map. Gives the session and
/// the demo's size in bytes.
///
/// # Errors
/// When a file cannot be read, or demo and map do not fit; names the file at fault.
pub fn import_qwd(demo: &Path, map: &Path, force: bool) -> Result<(Session, usize), EngineError> {
    let (demo_bytes, map_bytes) = (store::read_bytes(demo)?, store::read_bytes(map)?);
    let map_name = map.file_name().map(|name| name.to_string_lossy().into_owned());
    let options = ImportOptions { map_name, force_map: force };
    let session = quakeworld::import(&demo_bytes, &map_bytes, &options).map_err(|source| {
        let path = if is_the_maps_fault(&source) { map } else { demo };
        EngineError::Import { path: path.to_owned(), source }
    })?;
    Ok((session, demo_bytes.len()))
}

fn is_the_maps_fault(error: &ImportError) -> bool {
    match error {
        ImportError::Map(_) | ImportError::Unpack { file: "map", .. } => true,
        ImportError::OtherMap { .. } | ImportError::InWalls { .. } | ImportError::NoSuchModel { .. } => true,
        _ => false,
    }
}
