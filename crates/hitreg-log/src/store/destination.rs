//! The destination of an output path: a stream (pipe or device) or a file, with links resolved.

use std::fs::Permissions;
use std::path::{Path, PathBuf};

use super::StoreError;

/// The most links to follow; more count as a cycle. This is Linux's own limit.
const LINKS_MAX: usize = 40;

/// The destination of an output path.
pub(super) enum OutputDestination {
    /// A pipe, a device, or a file that a process has open. It is written directly.
    Stream,
    /// A file at this path, existing or new.
    File(FileDestination),
}

/// An output file.
pub(super) struct FileDestination {
    /// The path with all links resolved, so that writing keeps the links.
    pub(super) path: PathBuf,
    /// The permissions of the existing file.
    pub(super) permissions: Option<Permissions>,
}

impl OutputDestination {
    /// Resolves `path`.
    ///
    /// # Errors
    /// When the path is a directory, its parent does not exist, or its links form a cycle.
    pub(super) fn of(path: &Path) -> Result<OutputDestination, StoreError> {
        if super::standard::is_standard_stream(path) {
            return Ok(OutputDestination::Stream);
        }
        let Some(path) = follow(path)? else { return Ok(OutputDestination::Stream) };
        let permissions = match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => return Err(StoreError::IsDirectory { path }),
            Ok(meta) if !meta.is_file() => return Ok(OutputDestination::Stream),
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
        Ok(OutputDestination::File(file))
    }
}

impl FileDestination {
    /// Returns the folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        }
    }
}

/// Returns the end of the links at `path`. Returns `None` when it is a file that a process has open, such as
/// `/dev/stdout`. Such a file must be written directly, not replaced.
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
