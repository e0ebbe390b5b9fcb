//! The errors of file access. Each names its file.

use std::error::Error;
use std::fmt::{Display, Formatter};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Recording;
use super::shown::{naming_file, shell_path};
use crate::log::{LogError, WriteError};
use crate::memory::NeedsMemory;

/// The error of a file that could not be read or written.
#[derive(Debug)]
pub struct StoreError {
    /// The file or folder; for [`StoreErrorKind::NoTemporaryFolder`], the system's folder for temporary files.
    pub path: PathBuf,
    /// The reason.
    pub kind: StoreErrorKind,
}

impl Display for StoreError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            kind @ (StoreErrorKind::NoTemporaryFolder(_) | StoreErrorKind::EmptyPath) => write!(f, "{kind}"),
            kind => write!(f, "{}: {}", self.path.display(), naming_file(&kind.to_string(), &self.path)),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

/// The reason why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The system has no place for a temporary folder.
    #[error("cannot create a temporary folder ({0}): set TMPDIR to a folder that can be written")]
    NoTemporaryFolder(#[source] std::io::Error),
    /// The file does not exist.
    #[error("there is no such file")]
    NotFound,
    /// The file is a symbolic link to this path, where no file exists.
    #[error("this symbolic link leads to {}, which does not exist", .0.display())]
    DanglingLink(PathBuf),
    /// Only an unfinished recording, which is given, exists.
    #[error("there is only an unfinished recording. Run: hitreg recover {}", shell_path(.0))]
    OnlyUnfinished(PathBuf),
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The file is too large.
    #[error("larger than the limit for such a file ({} MiB)", super::OTHER_FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// The path is a pipe or a device, but must be a file.
    #[error("not a regular file: copy it to a file first")]
    NotRegular,
    /// The contents are invalid.
    #[error("{0}")]
    Content(#[source] LogError),
    /// A trace is damaged. Unlike a log, it can be made again.
    #[error("{}. To make the trace again, run: hitreg replay LOG -o TRACE", .0.damage())]
    DamagedTrace(#[source] LogError),
    /// The path is empty.
    #[error("the path of a file is empty: name a file")]
    EmptyPath,
    /// The path is a directory, but must be a file.
    #[error("this is a directory: name a file in it")]
    IsDirectory,
    /// The path is not a directory, but must be one.
    #[error("this is not a directory: name a directory, or a path where one can be created")]
    NotDirectory,
    /// The directory cannot be created.
    #[error("this directory cannot be created: {}", reason(.0))]
    Uncreatable(#[source] std::io::Error),
    /// The folder of the output, which is given, does not exist.
    #[error("there is no directory {}. Run: mkdir -p {}", .0.display(), shell_path(.0))]
    NoParent(PathBuf),
    /// The disk is full.
    #[error("the disk is full: free some space and try again. No partial file was left")]
    DiskFull,
    /// The disk became full during a recording.
    #[error(
        "the disk is full. This file has everything that was written until then. Free some space, then run: hitreg recover {} -o {}",
        shell_path(unfinished),
        shell_path(log)
    )]
    RecordingFull {
        /// The unfinished recording.
        unfinished: PathBuf,
        /// The recording's final path.
        log: PathBuf,
    },
    /// The system refused to write during a recording.
    #[error(
        "cannot be written: {}. This file has everything that was written until then. To get the log, run: hitreg recover {} -o {}",
        reason(source),
        shell_path(unfinished),
        shell_path(log)
    )]
    RecordingStopped {
        /// The refusal.
        source: std::io::Error,
        /// The unfinished recording.
        unfinished: PathBuf,
        /// The recording's final path.
        log: PathBuf,
    },
    /// The path of a new recording has the ending of an unfinished one.
    #[error("only an unfinished recording has a name that ends in .part: give the log another name")]
    UnfinishedName,
    /// The reader of the pipe closed it.
    #[error("the reader of this pipe closed it before the end")]
    ClosedPipe,
    /// The links form a cycle.
    #[error("symbolic links form a cycle: name a file")]
    Circle,
    /// The path is a pipe or a device, but the output needs a file that can be renamed when it is complete.
    #[error("this is a pipe or device, and a live recording needs a file: use the path of a file")]
    NoFile,
    /// The output is an input of the same command, with the input's name if it differs from the output's.
    #[error("this is an input of the command{}: give the output another name", by_name(.0.as_deref()))]
    IsInput(Option<PathBuf>),
    /// Two outputs of the command have the same path.
    #[error("two outputs have this path: give each output its own name")]
    WrittenTwice,
    /// The existing file is of another kind than the output, which is given.
    #[error("exists and is not a hitreg {0}; not overwritten: name another file, or move this one")]
    Foreign(&'static str),
    /// The path holds a recording of the given kind.
    #[error("this {0} exists already: name another file")]
    WouldReplace(&'static str),
    /// The path holds an unfinished recording, which is given.
    #[error("an unfinished recording has this name. Run: hitreg recover {}; if it was recovered already, delete it", shell_path(.0))]
    Unfinished(PathBuf),
    /// The recording is still written, by this or another process.
    #[error("a recording to this file is running: finish it, or use another name")]
    BeingRecorded,
    /// The file changed, or another file replaced it, while a command read it.
    #[error("the file changed while it was read: run the command again when it is complete")]
    Changed,
    /// Another process appends to the file.
    #[error("another process writes to this file: wait for it, or use another folder")]
    InUse,
    /// The recording is still in progress.
    #[error("this recording is still running: end it first, or save its part so far under another name")]
    StillRecorded,
    /// The file of a recording is gone, or another file has its name.
    #[error(
        "this file was deleted, renamed or replaced during the recording: if it was renamed, run `hitreg recover` on it"
    )]
    Gone,
    /// The file cannot be written.
    #[error("{}{}", unwritten(.0), other_place(.0))]
    Unwritable(#[source] WriteError),
}

/// The words of each error about a full disk.
pub const DISK_FULL: &str = "the disk is full";

/// Returns the reason of an I/O error in plain words, or in the system's words.
pub fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        ErrorKind::StorageFull => DISK_FULL.to_owned(),
        _ => {
            let text = error.to_string();
            text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text).to_owned()
        }
    }
}

/// Returns what the system or the format refuses.
fn unwritten(source: &WriteError) -> String {
    match source {
        WriteError::Io(error) => format!("cannot be written: {}", reason(error)),
        source => source.to_string(),
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
fn by_name(input: Option<&Path>) -> String {
    input.map(|input| format!(", as {}", input.display())).unwrap_or_default()
}

impl StoreError {
    /// Creates the error of a file or folder.
    pub fn new(path: impl Into<PathBuf>, kind: StoreErrorKind) -> StoreError {
        StoreError { path: path.into(), kind }
    }

    pub(super) fn open(path: &Path, source: std::io::Error) -> StoreError {
        let kind = match source.kind() {
            ErrorKind::NotFound => return StoreError::not_found(path),
            ErrorKind::IsADirectory => StoreErrorKind::IsDirectory,
            _ => StoreErrorKind::Unreadable(source),
        };
        StoreError::new(path, kind)
    }

    /// Creates the error of a file that does not exist.
    pub fn not_found(path: &Path) -> StoreError {
        let unfinished = Recording::unfinished_path(path);
        let kind = match (std::fs::read_link(path), std::fs::metadata(&unfinished)) {
            (Ok(target), _) => StoreErrorKind::DanglingLink(target),
            (Err(_), Ok(meta)) if meta.len() > 0 => StoreErrorKind::OnlyUnfinished(unfinished),
            _ => StoreErrorKind::NotFound,
        };
        StoreError::new(path, kind)
    }

    pub(super) fn content(path: &Path, source: LogError) -> StoreError {
        match source {
            LogError::Io(source) => StoreError::open(path, source),
            source => StoreError::new(path, StoreErrorKind::Content(source)),
        }
    }

    /// The error of a trace's content.
    pub fn trace_content(path: &Path, source: LogError) -> StoreError {
        match source {
            LogError::Torn(_) | LogError::Corrupt { .. } => StoreError::new(path, StoreErrorKind::DamagedTrace(source)),
            source => StoreError::content(path, source),
        }
    }

    /// Whether the error is about a file to write.
    pub fn is_about_output(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::NoTemporaryFolder(_)
                | StoreErrorKind::Uncreatable(_)
                | StoreErrorKind::NoParent(_)
                | StoreErrorKind::DiskFull
                | StoreErrorKind::RecordingFull { .. }
                | StoreErrorKind::RecordingStopped { .. }
                | StoreErrorKind::UnfinishedName
                | StoreErrorKind::ClosedPipe
                | StoreErrorKind::NoFile
                | StoreErrorKind::WrittenTwice
                | StoreErrorKind::Unwritable(_)
        )
    }

    /// Returns what is wrong with the file, without advice on its recovery.
    pub fn damage(&self) -> String {
        match &self.kind {
            StoreErrorKind::Content(source) | StoreErrorKind::DamagedTrace(source) => source.damage(),
            _ => self.to_string(),
        }
    }

    /// Returns the memory need, if the file exceeds the memory limit.
    pub fn needs_memory(&self) -> Option<NeedsMemory> {
        match &self.kind {
            StoreErrorKind::Content(LogError::NeedsMemory(needs)) => Some(*needs),
            _ => None,
        }
    }

    /// Returns the error of a file that could not be written. A full disk and a closed pipe have errors of their own.
    pub fn write(path: &Path, source: WriteError) -> StoreError {
        let kind = if let WriteError::Io(error) = &source { Some(error.kind()) } else { None };
        let kind = match kind {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => StoreErrorKind::DiskFull,
            Some(ErrorKind::BrokenPipe) => StoreErrorKind::ClosedPipe,
            _ => StoreErrorKind::Unwritable(source),
        };
        StoreError::new(path, kind)
    }
}
