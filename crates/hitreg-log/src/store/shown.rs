//! Paths in JSON. A name that is no Unicode is shown as well as it can be: a result is not lost because of it.

use std::path::Path;

use serde::{Serialize, Serializer};

/// One.
pub fn path<S: Serializer>(path: &impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

/// One, or none.
pub fn path_if<S: Serializer>(path: &Option<impl AsRef<Path>>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.as_ref().display().to_string()).serialize(to)
}

/// Several.
pub fn paths<S: Serializer>(paths: &[impl AsRef<Path>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.as_ref().display().to_string()))
}
