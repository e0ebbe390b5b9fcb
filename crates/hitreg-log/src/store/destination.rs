//! What a path that is to be written to leads to: a pipe or device, or a file, perhaps through links.

use std::fs::Permissions;
use std::path::{Path, PathBuf};

use super::StoreError;

/// More links in a row are a circle; Linux's own bound.
const LINKS_MAX: usize = 40;

/// Where what is written to a path ends up.
pub(super) enum Destination {
    /// A pipe, a device, or whatever a process has open: it is written to as it is.
    Stream,
    /// A file that is, or will be, here.
    File(FileDestination),
}

/// A file to be written.
pub(super) struct FileDestination {
    /// With all links followed, so that writing it leaves them.
    pub(super) path: PathBuf,
    /// Those of the file that stands there.
    pub(super) permissions: Option<Permissions>,
}

impl Destination {
    /// Follows `path`.
    ///
    /// # Errors
    /// When it is a directory or is to be in none, or its links lead in a circle.
    pub(super) fn of(path: &Path) -> Result<Destination, StoreError> {
        if super::standard::is_meant(path) {
            return Ok(Destination::Stream);
        }
        let Some(path) = follow(path)? else { return Ok(Destination::Stream) };
        let permissions = match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => return Err(StoreError::IsDirectory { path }),
            Ok(meta) if !meta.is_file() => return Ok(Destination::Stream),
            Ok(meta) => Some(meta.permissions()),
            Err(_) => None,
        };
        let file = FileDestination { path, permissions };
        if file.path.file_name().is_none() {
            return Err(StoreError::IsDirectory { path: file.path });
        }
        if !file.folder().is_dir() {
            let parent = file.folder().to_owned();
            return Err(StoreError::NoParent { path: file.path, parent });
        }
        Ok(Destination::File(file))
    }
}

impl FileDestination {
    /// The folder that it is in.
    pub(super) fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        }
    }
}

/// Where the links at `path` end; `None` where they lead to what a process has open, such as `/dev/stdout`, which must be
/// written to and not replaced even when a file is behind it.
fn follow(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut end = path.to_owned();
    for _ in 0..LINKS_MAX {
        if end.starts_with("/proc") || end.starts_with("/dev/fd") {
            return Ok(None);
        }
        let Ok(link) = std::fs::read_link(&end) else { return Ok(Some(end)) };
        end = end.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(StoreError::Circle { path: path.to_owned() })
}
