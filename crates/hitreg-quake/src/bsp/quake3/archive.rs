//! Reads a map from a `.bsp`, or from a `.pk3`, which is a zip archive.

use std::io::{Cursor, Read as _};

use super::{Quake3Map, Quake3MapError};

const ZIP: &[u8] = b"PK";
/// Larger than any map, in bytes.
const LARGEST_MAP: u64 = 64 << 20;

/// Reads a map from a `.bsp`, or from a `.pk3` that holds `maps/NAME.bsp`.
///
/// # Errors
/// When the archive does not hold this map, or the map cannot be read.
pub fn map_from(bytes: &[u8], name: &str) -> Result<Quake3Map, Quake3MapError> {
    if !bytes.starts_with(ZIP) {
        return Quake3Map::parse(bytes);
    }
    let damaged = |error: String| Quake3MapError::Archive(error);
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(error.to_string()))?;
    let wanted = format!("maps/{name}.bsp");
    let found = archive.file_names().flatten().find(|file| file.eq_ignore_ascii_case(&wanted));
    let found = found.map(std::borrow::Cow::into_owned);
    let found = found.ok_or_else(|| Quake3MapError::NotInArchive { name: name.to_owned() })?;
    let file = archive.by_name(&found).map_err(|error| damaged(error.to_string()))?;
    let mut map = Vec::new();
    file.take(LARGEST_MAP).read_to_end(&mut map).map_err(|error| damaged(error.to_string()))?;
    Quake3Map::parse(&map)
}
