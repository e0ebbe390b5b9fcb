//! Serialisation of paths as JSON. Names that are not Unicode are shown lossily, so that the result is not lost.

use std::path::Path;

use serde::{Serialize, Serializer};

/// Serialises a path.
pub fn path<S: Serializer>(path: &impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

/// Serialises an optional path.
pub fn path_if<S: Serializer>(path: &Option<impl AsRef<Path>>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.as_ref().display().to_string()).serialize(to)
}

/// Serialises a list of paths.
pub fn paths<S: Serializer>(paths: &[impl AsRef<Path>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.as_ref().display().to_string()))
}
