//! The errors of file access. Each names its file.

use super::shown::shell_path;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Recording;
use crate::log::{LogError, WriteError};
use crate::memory::NeedsMemory;

/// The reason why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system has no place for a temporary folder.
    #[error("cannot create a temporary folder ({0}): set TMPDIR to a folder that can be written")]
    NoTemporaryFolder(#[source] std::io::Error),
    /// The file does not exist.
    #[error("{}: there is no such file", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// Only an unfinished recording exists.
    #[error("{}: there is only an unfinished recording. Run: hitreg recover {}", path.display(), shell_path(unfinished))]
    OnlyUnfinished {
        /// The recording's final path.
        path: PathBuf,
        /// The unfinished file.
        unfinished: PathBuf,
    },
    /// The file cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("{}: larger than the limit for such a file ({} MiB)", path.display(), super::LARGEST_OTHER >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The path is a pipe or a device, but must be a file.
    #[error("{}: not a regular file: copy it to a file first", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The contents are invalid.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The error in the contents.
        source: LogError,
    },
    /// A trace is damaged. Unlike a log, it can be made again.
    #[error("{}: {}. To make the trace again, run: hitreg replay LOG -o TRACE", path.display(), source.damage())]
    DamagedTrace {
        /// The file.
        path: PathBuf,
        /// The damage.
        source: LogError,
    },
    /// The path is a directory, but must be a file.
    #[error("{}: this is a directory: name a file in it", path.display())]
    IsDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The path is not a directory, but must be one.
    #[error("{}: this is not a directory: name a directory, or a path where one can be created", path.display())]
    NotDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory cannot be created.
    #[error("{}: this directory cannot be created: {}", path.display(), reason(source))]
    Uncreatable {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder of the output does not exist.
    #[error("{}: there is no directory {}. Run: mkdir -p {}", path.display(), parent.display(), shell_path(parent))]
    NoParent {
        /// The file.
        path: PathBuf,
        /// The folder.
        parent: PathBuf,
    },
    /// The disk is full.
    #[error("{}: the disk is full: free some space and run the command again. No partial file was left", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The disk became full during a recording.
    #[error(
        "{}: the disk is full. This file has all but the last second. Free some space, then run: hitreg recover {} -o {}",
        unfinished.display(),
        shell_path(unfinished),
        shell_path(path)
    )]
    RecordingFull {
        /// The unfinished recording.
        unfinished: PathBuf,
        /// The recording's final path.
        path: PathBuf,
    },
    /// The reader of the pipe closed it.
    #[error("{}: the reader of this pipe closed it before the end", path.display())]
    ClosedPipe {
        /// The pipe.
        path: PathBuf,
    },
    /// The links form a cycle.
    #[error("{}: symbolic links form a cycle: name a file", path.display())]
    Circle {
        /// The first link.
        path: PathBuf,
    },
    /// The path is a pipe or a device, but the output needs a file that can be renamed when it is complete.
    #[error("{}: this is a pipe or device, and a live recording needs a file: use the path of a file", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The output is an input of the same command.
    #[error("{}: this is an input of the command{}: give the output another name", path.display(), by_name(path, input))]
    IsInput {
        /// The output.
        path: PathBuf,
        /// The input that is the same file.
        input: PathBuf,
    },
    /// Two outputs of the command have the same path.
    #[error("{}: two outputs have this path: give each output its own name", path.display())]
    WrittenTwice {
        /// The path.
        path: PathBuf,
    },
    /// The existing file is of another kind.
    #[error("{}: exists and is not a hitreg {wanted}; not overwritten: name another file, or move this one", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The kind of the output.
        wanted: &'static str,
    },
    /// The path holds a recording.
    #[error("{}: this {what} exists already: name another file", path.display())]
    WouldReplace {
        /// The file.
        path: PathBuf,
        /// The kind of the existing file.
        what: &'static str,
    },
    /// The path holds an unfinished recording.
    #[error("{}: an unfinished recording has this name. Run: hitreg recover {}; if it was recovered already, delete it", path.display(), shell_path(path))]
    Unfinished {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The recording is still written, by this or another process.
    #[error("{}: a recording to this file is running: finish it, or use another name", path.display())]
    BeingRecorded {
        /// The path.
        path: PathBuf,
    },
    /// The file changed, or another file replaced it, while a command read it.
    #[error("{}: the file changed while it was read: run the command again when it is complete", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Another process appends to the file.
    #[error("{}: another process writes to this file: wait for it, or use another folder", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The recording is still in progress.
    #[error("{}: this recording is still running: end it first, or save its part so far under another name", path.display())]
    StillRecorded {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The file of a recording is gone, or another file has its name.
    #[error("{}: this file was deleted, renamed or replaced during the recording: if it was renamed, run `hitreg recover` on it", path.display())]
    Gone {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("{}: {source}{}", path.display(), other_place(source))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: WriteError,
    },
}

/// The words of each error about a full disk.
pub const DISK_FULL: &str = "the disk is full";

/// Returns the reason of an I/O error in plain words, or in the system's words.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        ErrorKind::StorageFull => DISK_FULL.to_owned(),
        _ => error.to_string(),
    }
}

/// Returns a suffix with what to do, if the system refuses to write.
fn other_place(source: &WriteError) -> &'static str {
    match source {
        // Another folder has no more threads or memory.
        WriteError::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) => "",
        WriteError::Io(_) => ": name a file in a folder that you can write to",
        _ => "",
    }
}

/// Returns a suffix with the input's name, if it differs from the output's.
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

    /// The error of a trace's content.
    pub fn trace_content(path: &Path, source: LogError) -> StoreError {
        match source {
            LogError::Torn(_) | LogError::Corrupt { .. } => StoreError::DamagedTrace { path: path.into(), source },
            source => StoreError::content(path, source),
        }
    }

    /// Whether the error is about a file to write.
    pub fn is_about_output(&self) -> bool {
        matches!(
            self,
            StoreError::Uncreatable { .. }
                | StoreError::NoParent { .. }
                | StoreError::DiskFull { .. }
                | StoreError::RecordingFull { .. }
                | StoreError::ClosedPipe { .. }
                | StoreError::NoFile { .. }
                | StoreError::WrittenTwice { .. }
                | StoreError::Unwritable { .. }
        )
    }

    /// Returns what is wrong with the file, without advice on its recovery.
    pub fn damage(&self) -> String {
        match self {
            StoreError::Content { source, .. } | StoreError::DamagedTrace { source, .. } => source.damage(),
            other => other.to_string(),
        }
    }

    /// Returns the memory need, if the file exceeds the memory limit.
    pub fn needs_memory(&self) -> Option<NeedsMemory> {
        match self {
            StoreError::Content { source: LogError::NeedsMemory(needs), .. } => Some(*needs),
            _ => None,
        }
    }

    /// Returns the error of a file that could not be written. A full disk and a closed pipe have errors of their own.
    pub fn write(path: &Path, source: WriteError) -> StoreError {
        let kind = if let WriteError::Io(error) = &source { Some(error.kind()) } else { None };
        match kind {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => StoreError::DiskFull { path: path.into() },
            Some(ErrorKind::BrokenPipe) => StoreError::ClosedPipe { path: path.into() },
            _ => StoreError::Unwritable { path: path.into(), source },
        }
    }
}
