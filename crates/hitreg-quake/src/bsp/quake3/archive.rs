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
    let Some(mut archive) = archive_of(bytes)? else { return Quake3Map::parse(bytes) };
    let wanted = format!("maps/{name}.bsp");
    let found = archive.file_names().flatten().find(|file| file.eq_ignore_ascii_case(&wanted));
    let found = found.map(std::borrow::Cow::into_owned);
    let found = found.ok_or_else(|| Quake3MapError::NotInArchive { name: name.to_owned() })?;
    let file = archive.by_name(&found).map_err(|error| Quake3MapError::Archive(error.to_string()))?;
    let mut map = Vec::new();
    file.take(LARGEST_MAP).read_to_end(&mut map).map_err(|error| Quake3MapError::Archive(error.to_string()))?;
    Quake3Map::parse(&map)
}

/// Checks that a file is a map or an archive, before it is known which map is played.
///
/// # Errors
/// When it is neither, or cannot be read.
pub fn check_maps(bytes: &[u8]) -> Result<(), Quake3MapError> {
    match archive_of(bytes)? {
        Some(_) => Ok(()),
        None => Quake3Map::parse(bytes).map(|_| ()),
    }
}

/// Opens an archive; `None` if the file is none.
fn archive_of(bytes: &[u8]) -> Result<Option<zip::ZipArchive<Cursor<&[u8]>>>, Quake3MapError> {
    let opened = bytes.starts_with(ZIP).then(|| zip::ZipArchive::new(Cursor::new(bytes)));
    opened.transpose().map_err(|error| Quake3MapError::Archive(error.to_string()))
}
