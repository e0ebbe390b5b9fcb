//! What is known of a file without reading it, and the detection of inputs that change during a command.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::{READ_AHEAD, StoreError, read_start};
use crate::log::{self, FileKind};

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The size, in bytes.
    pub bytes: u64,
    /// The time of the last modification, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// The device and the number of the file on it, if the system has such numbers.
    pub number: Option<(u64, u64)>,
}

impl FileIdentity {
    /// The identity of the file at a path; `None` for a pipe, or if there is no file.
    pub fn of(path: &Path) -> Option<FileIdentity> {
        let meta = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let modified_ns = u64::try_from(since.as_nanos()).ok()?;
        Some(FileIdentity { bytes: meta.len(), modified_ns, number: number_of(&meta) })
    }
}

/// Returns whether an open file is still the one at a path. If the system has no file numbers, any file at the path counts.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let number = |meta: std::io::Result<Metadata>| meta.ok().map(|meta| number_of(&meta));
    let at_path = number(std::fs::metadata(path));
    at_path.is_some() && at_path == number(file.metadata())
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no such numbers")]
fn number_of(meta: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn number_of(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// The logs and traces that a command reads, each as it was at the beginning. A command may open a file several times, so
/// a file that changes between would give a result of two files.
#[derive(Clone, Debug, Default)]
pub struct WatchedInputs(Arc<[(PathBuf, FileIdentity)]>);

impl WatchedInputs {
    /// Watches the logs and traces among these paths. Unfinished recordings may grow.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> WatchedInputs {
        let watched = |path: &PathBuf| {
            let identity = FileIdentity::of(path)?;
            let head = read_start(path, READ_AHEAD as u64).ok()?;
            let is_watched = log::kind_of(&head) != FileKind::Other && path.extension() != Some("part".as_ref());
            is_watched.then(|| (path.clone(), identity))
        };
        WatchedInputs(paths.into_iter().filter_map(watched).collect())
    }

    /// Checks that the files are still the same. A file that was removed gave its content to those who had it open.
    ///
    /// # Errors
    /// When a file changed, or another file replaced it.
    pub fn check(&self) -> Result<(), StoreError> {
        let changed =
            |(path, before): &&(PathBuf, FileIdentity)| FileIdentity::of(path).is_some_and(|now| now != *before);
        match self.0.iter().find(changed) {
            Some((path, _)) => Err(StoreError::Changed { path: path.clone() }),
            None => Ok(()),
        }
    }
}
