//! Reading MessagePack and TOML. Both readers are compiled once and not again for each type that is read, which would be
//! a tenth of all code.

use erased_serde::Deserializer;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Bytes or a text that do not hold what was to be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

/// What MessagePack bytes hold; bytes after it are left alone.
///
/// # Errors
/// When they are not MessagePack, or hold something else.
pub fn from_msgpack<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    read(&mut <dyn Deserializer<'a>>::erase(&mut reader))
}

/// What a TOML text holds.
///
/// # Errors
/// When it is not TOML, or holds something else; says where.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let reader = toml::Deserializer::parse(text).map_err(|error| ReadError(error.to_string()))?;
    read(&mut <dyn Deserializer<'_>>::erase(reader))
}

fn read<'a, T: Deserialize<'a>>(reader: &mut dyn Deserializer<'a>) -> Result<T, ReadError> {
    erased_serde::deserialize(reader).map_err(|error| ReadError(error.to_string()))
}
