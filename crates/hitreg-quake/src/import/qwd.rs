//! Imports QuakeWorld demos as sessions.

use std::path::{Path, PathBuf};

use super::ImportFileError;
use crate::quakeworld::{self, DemoImportError, ImportOptions, ImportResult, map_stem, unpacked};
use hitreg_log::log::{FileKind, Lookalike, kind_of, looks_like};
use hitreg_log::store;

/// The place of the demos' maps.
#[derive(Clone, Debug)]
pub enum Maps {
    /// This file, for every demo.
    File(PathBuf),
    /// This folder or a folder below it, by the map name in the demo.
    Folder(PathBuf),
    /// Nowhere. Then the error names the map that is needed.
    NotGiven,
}

/// The endings of demo files.
const DEMO_ENDINGS: [&str; 6] = ["qwd", "qwd.xz", "qwd.gz", "mvd", "mvd.xz", "mvd.gz"];
/// The endings of map files.
const MAP_ENDINGS: [&str; 3] = ["bsp", "bsp.gz", "bsp.xz"];

/// Imports a QuakeWorld demo with its map; `force` accepts any map. Returns the import and the demo's size in bytes.
///
/// # Errors
/// When a file cannot be read, when the map is missing, or when demo and map do not fit. The error names the file.
pub fn import_qwd(demo: &Path, maps: &Maps, force: bool) -> Result<(ImportResult, usize), ImportFileError> {
    let demo_bytes = store::read_bytes(demo)?;
    let map = match maps {
        Maps::File(map) => map.clone(),
        Maps::Folder(folder) => played_map(demo, &demo_bytes, folder)?,
        Maps::NotGiven => {
            let map = name_of_map(demo, &demo_bytes)?;
            return Err(ImportFileError::MapNeeded { demo: demo.to_owned(), map });
        }
    };
    let map_bytes = store::read_bytes(&map)?;
    let map_name = map.file_name().map(|name| name.to_string_lossy().into_owned());
    let options = ImportOptions { map_name, force_map: force };
    let imported =
        quakeworld::import(&demo_bytes, &map_bytes, &options).map_err(|source| match is_the_maps_fault(&source) {
            true => ImportFileError::Import { path: map, source },
            false => fault_of_demo(demo, &demo_bytes, source),
        })?;
    Ok((imported, demo_bytes.len()))
}

/// Returns all demos below a folder, sorted.
///
/// # Errors
/// When a folder cannot be listed.
pub fn demos_below(folder: &Path) -> Result<Vec<PathBuf>, ImportFileError> {
    files_below(folder, &DEMO_ENDINGS)
}

fn files_below(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ImportFileError> {
    let mut files = Vec::new();
    for ending in endings {
        files.extend(store::files_below(folder, ending)?);
    }
    files.sort_unstable();
    Ok(files)
}

/// Finds the file of the map on which a demo was played.
fn played_map(demo: &Path, bytes: &[u8], folder: &Path) -> Result<PathBuf, ImportFileError> {
    let map = name_of_map(demo, bytes)?;
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| map_stem(&name.to_string_lossy()).eq_ignore_ascii_case(&map))
    };
    let found = files_below(folder, &MAP_ENDINGS)?.into_iter().find(is_it);
    found.ok_or_else(|| ImportFileError::NoMap { demo: demo.to_owned(), map, folder: folder.to_owned() })
}

/// Returns the name of the map on which a demo was played.
fn name_of_map(demo: &Path, bytes: &[u8]) -> Result<String, ImportFileError> {
    quakeworld::played_map(bytes).map_err(|source| fault_of_demo(demo, bytes, source))
}

/// The error of a demo. If the file is of another known kind, the error says so.
fn fault_of_demo(demo: &Path, bytes: &[u8], source: DemoImportError) -> ImportFileError {
    let path = demo.to_owned();
    let looks = match (&source, kind_of(bytes)) {
        (DemoImportError::Demo(_), FileKind::Other) => unpacked(bytes).ok().and_then(|bytes| looks_like(&bytes)),
        (DemoImportError::Demo(_), FileKind::Log) => Some(Lookalike { kind: "a log of hitreg", advice: "" }),
        (DemoImportError::Demo(_), FileKind::Trace) => Some(Lookalike { kind: "a trace of hitreg", advice: "" }),
        _ => None,
    };
    match looks.filter(|looks| *looks != Lookalike::QUAKEWORLD_DEMO) {
        Some(looks) => ImportFileError::OtherFile {
            path,
            wanted: "QuakeWorld demo",
            looks,
            importer: "qwd",
            takes: ".qwd and .mvd demos of QuakeWorld, also as .xz and .gz",
        },
        None => ImportFileError::Import { path, source },
    }
}

fn is_the_maps_fault(error: &DemoImportError) -> bool {
    matches!(
        error,
        DemoImportError::Map(_)
            | DemoImportError::Unpack { file: "map", .. }
            | DemoImportError::OtherMap { .. }
            | DemoImportError::InWalls { .. }
            | DemoImportError::NoSuchModel { .. }
    )
}
