//! File access: the only module that opens, writes and renames files. Every error names its file.
//!
//! An output has a temporary name in the same folder until it is complete, so that the final name never holds half a
//! file. [`Targets`] decides which files may be written. A recording in progress is `NAME.hitlog.part`; `recover` can
//! read it after a kill.

#![expect(clippy::disallowed_types, reason = "this module opens files")]

mod error;
mod folder;
mod input;
mod lines;
mod output;
mod recording;
pub mod shown;

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{DISK_FULL, StoreError, StoreErrorKind, reason};
pub use folder::{
    FolderError, LockedFolder, OwnFolder, create_folder, files_below, listed_files_below, temporary_folder,
};
pub use folder::{TemporaryFolder, remove_unnamed};
pub use input::{FileIdentity, InputFile, WatchedInputs, is_standard_stream};
pub use lines::{LineFile, LineSpan, read_line_span, read_lines};
pub use output::{FileType, PARQUET_WRITER, Target, Targets};
pub use output::{PreparedFile, append_bytes, move_to, prepare, remove, save, save_bytes, save_log, save_trace};
pub use recording::{Recording, RecordingClaim, UnfinishedRecording};

use crate::log::{self, FileKind, IndexedLog, IndexedTrace, LogReader, Lookalike, TraceReader};
use crate::memory::{BadMemoryLimit, MemoryLimit};
use crate::record::Session;
use crate::trace::{ColumnSpan, NextRows, SharedTrace, Table, Trace, TraceHeader, TraceReadError, TraceSource};
use shown::naming_file;

/// The size of a read, in bytes.
const READ_AHEAD: usize = 256 << 10;

/// The largest file other than logs and traces, in bytes.
pub const OTHER_FILE_BYTES_MAX: u64 = 64 << 20;

/// Opens a file for reading; `-` is standard input. A pipe can be opened again: it is copied to a temporary file while
/// it is read.
///
/// # Errors
/// When the file cannot be opened, or is a directory.
pub fn open(path: &Path) -> Result<BufReader<InputFile>, StoreError> {
    Ok(BufReader::with_capacity(READ_AHEAD, open_file(path)?))
}

/// Opens a file unbuffered, for random access.
///
/// # Errors
/// As [`open`].
pub fn open_file(path: &Path) -> Result<InputFile, StoreError> {
    let file = InputFile::open(path).map_err(|source| StoreError::open(path, source))?;
    if file.is_directory() {
        return Err(StoreError::new(path, StoreErrorKind::IsDirectory));
    }
    Ok(file)
}

/// Reads a whole file of at most [`OTHER_FILE_BYTES_MAX`] bytes, such as a map, a scenario or a golden. The limit exists
/// because a device may be endless.
///
/// # Errors
/// When the file cannot be opened or read, or is larger.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    let bytes = read_start(path, OTHER_FILE_BYTES_MAX + 1)?;
    match bytes.len() as u64 > OTHER_FILE_BYTES_MAX {
        true => Err(StoreError::new(path, StoreErrorKind::TooLarge)),
        false => Ok(bytes),
    }
}

/// Reads the first bytes of a file.
fn read_start(path: &Path, most: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes).map_err(|source| StoreError::open(path, source))?;
    Ok(bytes)
}

/// Reads the last bytes of a file.
fn read_end(path: &Path, most: u64) -> Result<Vec<u8>, StoreError> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::End(0)).and_then(|end| {
        file.seek(SeekFrom::Start(end.saturating_sub(most)))?;
        file.read_to_end(&mut bytes)
    });
    read.map_err(|source| StoreError::open(path, source))?;
    Ok(bytes)
}

/// Reads a whole file like [`read_bytes`], but refuses pipes and devices, because opening a pipe can block forever.
///
/// # Errors
/// As [`read_bytes`]; also when the path is a pipe or a device.
pub fn read_regular(path: &Path) -> Result<Vec<u8>, StoreError> {
    check_regular(path)?;
    read_bytes(path)
}

/// Refuses a path that exists but is not a regular file, and standard input. Another program can open only a file.
///
/// # Errors
/// When the path is `-`, a pipe or a device.
pub fn check_regular(path: &Path) -> Result<(), StoreError> {
    if is_standard_stream(path) {
        return Err(StoreError::new(path, StoreErrorKind::NotRegular));
    }
    match path.metadata() {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(StoreError::new(path, StoreErrorKind::NotRegular)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the absolute path of a file, with links resolved.
///
/// # Errors
/// When the file does not exist, or cannot be reached.
pub fn canonical(path: &Path) -> Result<std::path::PathBuf, StoreError> {
    path.canonicalize().map_err(|source| StoreError::open(path, source))
}

/// Detects the kind of a file from its first bytes.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn kind_of(path: &Path) -> Result<FileKind, StoreError> {
    Ok(open_either(path)?.0)
}

/// Returns whether a file is of this kind, by its first or last bytes. A missing file is of no kind.
///
/// # Errors
/// When the file cannot be opened or read, or is a pipe or a device.
pub fn is_of(path: &Path, kind: &FileType) -> Result<bool, StoreError> {
    check_regular(path)?;
    Ok(path.exists() && kind.is_of(&kind.read_sign(path)?))
}

/// Describes what a file that is neither a log nor a trace seems to be; `None` if unrecognized.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn looks_like(path: &Path) -> Result<Option<Lookalike>, StoreError> {
    Ok(log::looks_like(&read_start(path, log::START_BYTES as u64)?))
}

/// Returns the size of a file in bytes. A pipe is read to its end.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn size_bytes(path: &Path) -> Result<u64, StoreError> {
    open_file(path)?.seek(SeekFrom::End(0)).map_err(|source| StoreError::open(path, source))
}

/// Returns the memory limit that the environment variable `HITREG_MEMORY_MIB` sets, in MiB. Without it, the limit is that
/// of the machine's memory ([`MemoryLimit::of_machine`]). Builds that this program starts inherit the variable.
///
/// # Errors
/// When the variable is no number.
#[expect(clippy::disallowed_methods, reason = "the limit bounds memory and does not affect results")]
pub fn memory_limit() -> Result<MemoryLimit, BadMemoryLimit> {
    let Some(text) = std::env::var_os("HITREG_MEMORY_MIB") else {
        return Ok(MemoryLimit::of_machine(physical_memory()));
    };
    match text.to_str().and_then(|text| text.parse::<usize>().ok()) {
        Some(mib) => Ok(MemoryLimit::of_bytes(mib.saturating_mul(1 << 20))),
        None => Err(BadMemoryLimit { text }),
    }
}

/// Returns the machine's physical memory in bytes, if the system reports it.
fn physical_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.split_whitespace().next()?.parse::<u64>().ok()?;
    kib.checked_mul(1 << 10)
}

/// Opens a log or a trace and returns its kind. For any other file, the reader holds only the first bytes, which are
/// enough for an error message.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn open_either(path: &Path) -> Result<(FileKind, impl Read + use<>), StoreError> {
    let (mut file, mut head) = (open(path)?, Vec::new());
    let read = file.by_ref().take(READ_AHEAD as u64).read_to_end(&mut head);
    read.map_err(|source| StoreError::open(path, source))?;
    let kind = log::kind_of(&head);
    let rest = if kind == FileKind::Other { 0 } else { u64::MAX };
    Ok((kind, Cursor::new(head).chain(file.take(rest))))
}

/// Reads a whole log or trace and returns its kind. For any other file, returns only the first bytes.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read_either(path: &Path) -> Result<(FileKind, Vec<u8>), StoreError> {
    let (kind, mut file) = open_either(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| StoreError::open(path, source))?;
    Ok((kind, bytes))
}

/// Reads a whole, undamaged log.
///
/// # Errors
/// When the file cannot be opened, or is not an undamaged log.
pub fn read_log(path: &Path) -> Result<Session, StoreError> {
    read_log_within(MemoryLimit::default(), path)
}

/// Reads a whole log within another memory limit.
///
/// # Errors
/// As [`read_log`].
pub fn read_log_within(limit: MemoryLimit, path: &Path) -> Result<Session, StoreError> {
    log::read_session_within(limit, open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Opens a log for reading by chunk.
///
/// # Errors
/// When the file cannot be opened, or does not start like a log.
pub fn open_log(path: &Path) -> Result<LogReader<BufReader<InputFile>>, StoreError> {
    LogReader::new(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Opens a log with its index, for reading in any order.
///
/// # Errors
/// When the file cannot be opened, is not a log, or what is read of it is damaged.
pub fn open_indexed_log(path: &Path) -> Result<IndexedLog<BufReader<InputFile>>, StoreError> {
    IndexedLog::open(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Reads a whole trace.
///
/// # Errors
/// When the file cannot be opened, or is not an undamaged trace.
pub fn read_trace(path: &Path) -> Result<Trace, StoreError> {
    read_trace_within(MemoryLimit::default(), path)
}

/// Reads a whole trace within another memory limit.
///
/// # Errors
/// As [`read_trace`].
pub fn read_trace_within(limit: MemoryLimit, path: &Path) -> Result<Trace, StoreError> {
    log::read_trace_within(limit, open(path)?).map_err(|source| StoreError::trace_content(path, source))
}

/// Reads a whole trace like [`read_trace_within`], but refuses pipes and devices, because opening a pipe can block
/// forever.
///
/// # Errors
/// As [`read_trace_within`]; also when the path is a pipe or a device.
pub fn read_regular_trace(limit: MemoryLimit, path: &Path) -> Result<Trace, StoreError> {
    check_regular(path)?;
    read_trace_within(limit, path)
}

/// Opens a trace for reading by chunk.
///
/// # Errors
/// When the file cannot be opened, or does not start like a trace.
pub fn open_trace(path: &Path) -> Result<TraceReader<BufReader<InputFile>>, StoreError> {
    TraceReader::new(open(path)?).map_err(|source| StoreError::trace_content(path, source))
}

/// The most bytes of a table's rows that wait for matching rows. Rows of a replay are in order within seconds: for 64
/// players that is a few MiB.
const WAITING_ROW_BYTES_MAX: usize = 64 << 20;

/// A trace in a file that can be read repeatedly.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    trace: Arc<IndexedTrace>,
}

impl TraceFile {
    /// Opens a trace in a file, and reads its index.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a trace, or what is read of it is damaged.
    pub fn open(path: &Path) -> Result<TraceFile, StoreError> {
        let trace = IndexedTrace::open(open(path)?).map_err(|source| StoreError::trace_content(path, source))?;
        Ok(TraceFile { path: path.to_owned(), trace: Arc::new(trace) })
    }

    /// Reads the trace once to its end, as a check that nothing in it is damaged, and opens it.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a trace, or any part of it is damaged.
    pub fn open_checked(path: &Path) -> Result<TraceFile, StoreError> {
        let mut reader = open_trace(path)?;
        while reader.next_rows().map_err(|source| StoreError::trace_content(path, source))?.is_some() {}
        TraceFile::open(path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a table has the same rows in another trace, by the packed bytes of their chunks. `false` does not
    /// mean that the rows differ.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn has_same_rows(&self, other: &TraceFile, table: &str) -> Result<bool, StoreError> {
        let (mut a, mut b) = (open_file(&self.path)?, open_file(&other.path)?);
        let same = self.trace.has_same_chunks(&other.trace, table, [&mut a, &mut b]);
        same.map_err(|source| StoreError::trace_content(&self.path, source))
    }

    /// Returns the next rows of a table, as [`TraceSource::rows_between`] does.
    pub fn parts<'s>(
        &'s self,
        table: &str,
        only: &'s [&'s str],
        span: Option<ColumnSpan<'s>>,
    ) -> impl Iterator<Item = Result<Table, StoreError>> + use<'s> {
        let chunks: Vec<u32> = self.trace.chunks_of(table, span).collect();
        chunks.into_iter().map(move |chunk| {
            self.trace
                .chunk(open_file(&self.path)?, chunk, only)
                .map_err(|source| StoreError::trace_content(&self.path, source))
        })
    }
}

impl TraceSource for TraceFile {
    fn header(&self) -> &TraceHeader {
        self.trace.header()
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.trace.tables().collect()
    }

    fn rows_between<'s>(&'s self, table: &'s str, only: &'s [&'s str], span: Option<ColumnSpan<'s>>) -> NextRows<'s> {
        let mut parts = self.parts(table, only, span);
        let named = |error: StoreError| TraceReadError(naming_file(&error.to_string(), &self.path));
        Box::new(move || parts.next().transpose().map_err(named))
    }

    fn in_file(&self) -> Option<&TraceFile> {
        Some(self)
    }

    /// Valid as long as the file exists unchanged.
    fn shared(&self) -> Option<SharedTrace> {
        Some(Arc::new(self.clone()))
    }

    fn most_waiting(&self) -> usize {
        WAITING_ROW_BYTES_MAX
    }
}

#[cfg(test)]
mod tests;
