//! What can go wrong with a file, named with it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Recording;
use crate::log::{LogError, WriteError};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no place for a temporary folder.
    #[error("no temporary folder: {0}")]
    NoTemporaryFolder(#[source] std::io::Error),
    /// It is not there.
    #[error("{}: there is no such file", path.display())]
    NotFound {
        /// Which.
        path: PathBuf,
    },
    /// It was never finished.
    #[error("{}: there is only {}, an unfinished recording: `hitreg recover {}` makes a log of it", path.display(), unfinished.display(), unfinished.display())]
    OnlyUnfinished {
        /// Which.
        path: PathBuf,
        /// What is there of it.
        unfinished: PathBuf,
    },
    /// It cannot be opened or read.
    #[error("{}: it cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It goes on and on.
    #[error("{}: this is larger than any file of its kind ({} MiB)", path.display(), super::LARGEST_OTHER >> 20)]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// A pipe or a device where a file is meant, which nobody waits for.
    #[error("{}: this is no regular file", path.display())]
    NotRegular {
        /// Which.
        path: PathBuf,
    },
    /// What is in it is not what it should be.
    #[error("{}: {source}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: LogError,
    },
    /// A directory where a file is meant.
    #[error("{}: this is a directory; name a file in it", path.display())]
    IsDirectory {
        /// Which.
        path: PathBuf,
    },
    /// The folder to write into is not there.
    #[error("{}: there is no directory {}; make it first", path.display(), parent.display())]
    NoParent {
        /// The file.
        path: PathBuf,
        /// The folder.
        parent: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk is full; nothing was left under this name", path.display())]
    DiskFull {
        /// Which.
        path: PathBuf,
    },
    /// The disk is full, in the middle of a recording.
    #[error(
        "{}: the disk is full; all but the last second is here: make room, then `hitreg recover {}` makes {} of it",
        unfinished.display(),
        unfinished.display(),
        path.display()
    )]
    RecordingFull {
        /// Where the recording stands.
        unfinished: PathBuf,
        /// Where it was to be in the end.
        path: PathBuf,
    },
    /// Whoever was reading has stopped.
    #[error("{}: the program reading this pipe has closed it", path.display())]
    ClosedPipe {
        /// Which.
        path: PathBuf,
    },
    /// Links that lead to each other.
    #[error("{}: these links lead in a circle", path.display())]
    Circle {
        /// Where they begin.
        path: PathBuf,
    },
    /// A pipe or device where a file is needed, which is renamed when it is whole.
    #[error("{}: this is a pipe or device, and this log needs a file: it is written piece by piece, and renamed when it is whole", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
    },
    /// It is read by the command that would write it.
    #[error("{}: this is an input of the command{}; give its output another name", path.display(), by_name(path, input))]
    IsInput {
        /// The output.
        path: PathBuf,
        /// The input that is the same file.
        input: PathBuf,
    },
    /// Two outputs of a command.
    #[error("{}: this is to be written twice; give each output a name of its own", path.display())]
    WrittenTwice {
        /// Which.
        path: PathBuf,
    },
    /// Something else stands there.
    #[error("{}: what is here is no {wanted} of hitreg's, and is not replaced: name another file, or move it away", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What would be written.
        wanted: &'static str,
    },
    /// A recording stands there.
    #[error("{}: there is a {what} here already: name another file, or replace it with --force", path.display())]
    WouldReplace {
        /// Which.
        path: PathBuf,
        /// What stands there.
        what: &'static str,
    },
    /// An earlier recording was not finished.
    #[error("{}: an unfinished recording is here; `hitreg recover {}` makes a log of it and the way free; where one was made of it already, move it away", path.display(), path.display())]
    Unfinished {
        /// Which.
        path: PathBuf,
    },
    /// Another process is at it.
    #[error("{}: another recording is being written here; give this one another name", path.display())]
    BeingRecorded {
        /// Which.
        path: PathBuf,
    },
    /// It is not unfinished yet.
    #[error("{}: this is still being recorded: end it first, or name another file with -o for what there is by now", path.display())]
    StillRecorded {
        /// Which.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{}: {source}", path.display())]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: WriteError,
    },
}

/// The input's own name, where it is another.
fn by_name(path: &Path, input: &Path) -> String {
    if path == input { String::new() } else { format!(", as {}", input.display()) }
}

impl StoreError {
    pub(super) fn open(path: &Path, source: std::io::Error) -> StoreError {
        match source.kind() {
            ErrorKind::NotFound => {
                let unfinished = Recording::unfinished_path(path);
                match std::fs::metadata(&unfinished).is_ok_and(|meta| meta.len() > 0) {
                    true => StoreError::OnlyUnfinished { path: path.into(), unfinished },
                    false => StoreError::NotFound { path: path.into() },
                }
            }
            ErrorKind::IsADirectory => StoreError::IsDirectory { path: path.into() },
            _ => StoreError::Unreadable { path: path.into(), source },
        }
    }

    pub(super) fn content(path: &Path, source: LogError) -> StoreError {
        match source {
            LogError::Io(source) => StoreError::open(path, source),
            source => StoreError::Content { path: path.into(), source },
        }
    }

    pub(super) fn write(path: &Path, source: WriteError) -> StoreError {
        let kind = if let WriteError::Io(error) = &source { Some(error.kind()) } else { None };
        match kind {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => StoreError::DiskFull { path: path.into() },
            Some(ErrorKind::BrokenPipe) => StoreError::ClosedPipe { path: path.into() },
            _ => StoreError::Unwritable { path: path.into(), source },
        }
    }
}
