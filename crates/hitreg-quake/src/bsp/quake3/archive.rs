//! Reads a map from a `.bsp`, or from a `.pk3`, which is a zip archive.

use std::io::{Cursor, Read as _};

use super::{Map, MapError};

const ZIP: &[u8] = b"PK";
/// Larger than any map, in bytes.
const LARGEST_MAP: u64 = 64 << 20;

/// Reads a map from a `.bsp`, or from a `.pk3` that holds `maps/NAME.bsp`.
///
/// # Errors
/// When the archive does not hold this map, or the map cannot be read.
pub fn map_from(bytes: &[u8], name: &str) -> Result<Map, MapError> {
    if !bytes.starts_with(ZIP) {
        return Map::parse(bytes);
    }
    let damaged = |error: String| MapError::Archive(error);
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(error.to_string()))?;
    let wanted = format!("maps/{name}.bsp");
    let found = archive.file_names().flatten().find(|file| file.eq_ignore_ascii_case(&wanted));
    let found = found.map(std::borrow::Cow::into_owned);
    let found = found.ok_or_else(|| MapError::NotInArchive { name: name.to_owned() })?;
    let file = archive.by_name(&found).map_err(|error| damaged(error.to_string()))?;
    let mut map = Vec::new();
    file.take(LARGEST_MAP).read_to_end(&mut map).map_err(|error| damaged(error.to_string()))?;
    Map::parse(&map)
}
