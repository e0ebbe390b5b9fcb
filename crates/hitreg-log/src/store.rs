//! Files: the only room that opens, writes and renames them. Every error names its file.
//!
//! What is written stands under a temporary name in the same folder until it is complete, so that the final name
//! never holds half a file. What may be written where is for [`Targets`] to say. A recording in progress is `NAME.hitlog.part`, which `recover` can read if it is killed.

#![expect(clippy::disallowed_types, reason = "this is the room that opens files")]

mod destination;
mod error;
mod folder;
mod recording;
mod saving;
pub mod shown;
mod standard;
mod target;
mod trace_file;
mod unnamed;

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

pub use error::StoreError;
pub use folder::{FolderError, LockedFolder, OwnFolder, TemporaryFolder};
pub use folder::{files_below, temporary_folder};
pub use recording::{Claim, Recording, Unfinished};
pub use saving::{Prepared, remove, save, save_log, save_trace};
pub use saving::{move_to, prepare, save_bytes};
pub use standard::is_meant as is_standard_stream;
pub use target::{Kind, Target, Targets};
pub use trace_file::TraceFile;
pub use unnamed::remove_unnamed;

use crate::log::{self, Damage, FileKind, LogReader, Torn, TraceReader};
use crate::record::Session;
use crate::trace::Trace;

/// How much a file is read at a time.
const READ_AHEAD: usize = 256 << 10;

/// The most bytes that a file may have that is neither log nor trace.
pub const LARGEST_OTHER: u64 = 64 << 20;

/// Opens a file for reading; `-` is standard input.
///
/// # Errors
/// When it cannot be opened, or is a directory.
pub fn open(path: &Path) -> Result<impl Read + use<>, StoreError> {
    Ok(BufReader::with_capacity(READ_AHEAD, open_file(path)?))
}

/// The same as it is, to be read here and there.
///
/// # Errors
/// As [`open`].
pub fn open_file(path: &Path) -> Result<File, StoreError> {
    let file = if standard::is_meant(path) { standard::input() } else { File::open(path) };
    let file = file.map_err(|source| StoreError::open(path, source))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(StoreError::IsDirectory { path: path.into() });
    }
    Ok(file)
}

/// Reads a whole file of any kind but logs and traces, such as a map, a scenario or a golden: of at most
/// [`LARGEST_OTHER`] bytes, for a device may have no end.
///
/// # Errors
/// When it cannot be opened or read, or is larger.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(LARGEST_OTHER + 1).read_to_end(&mut bytes);
    let length = read.map_err(|source| StoreError::open(path, source))?;
    match length as u64 > LARGEST_OTHER {
        true => Err(StoreError::TooLarge { path: path.into() }),
        false => Ok(bytes),
    }
}

/// Reads a whole file of any kind but logs and traces that must be a regular one: whoever opens a pipe may wait for ever.
///
/// # Errors
/// As [`read_bytes`]; also for a pipe or a device.
pub fn read_regular(path: &Path) -> Result<Vec<u8>, StoreError> {
    check_regular(path)?;
    read_bytes(path)
}

/// Refuses what is there but is no regular file.
///
/// # Errors
/// For a pipe or a device.
pub fn check_regular(path: &Path) -> Result<(), StoreError> {
    match path.metadata() {
        Ok(meta) if !meta.is_file() && !meta.is_dir() => Err(StoreError::NotRegular { path: path.into() }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// What a file is, from its first bytes.
///
/// # Errors
/// When it cannot be opened or read.
pub fn kind_of(path: &Path) -> Result<FileKind, StoreError> {
    Ok(open_either(path)?.0)
}

/// What a regular file is that is no small one; `None` of any other, and of what cannot be read.
pub fn kind_of_long(path: &Path) -> Option<FileKind> {
    // Of a pipe nothing may be read here: it cannot be read again.
    let is_long = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > log::SMALL_FILE);
    if is_long { kind_of(path).ok() } else { None }
}

/// Opens a log or a trace, and says which it is. Of anything else only the first bytes are there to be read, so that
/// what is wrong with it can be said.
///
/// # Errors
/// When it cannot be opened or read.
pub fn open_either(path: &Path) -> Result<(FileKind, impl Read + use<>), StoreError> {
    let (mut file, mut head) = (open(path)?, Vec::new());
    let read = file.by_ref().take(READ_AHEAD as u64).read_to_end(&mut head);
    read.map_err(|source| StoreError::open(path, source))?;
    let kind = log::kind_of(&head);
    let rest = if kind == FileKind::Other { 0 } else { u64::MAX };
    Ok((kind, Cursor::new(head).chain(file.take(rest))))
}

/// Reads a whole log or trace, and says which it is; of anything else the first bytes.
///
/// # Errors
/// When it cannot be opened or read.
pub fn read_either(path: &Path) -> Result<(FileKind, Vec<u8>), StoreError> {
    let (kind, mut file) = open_either(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| StoreError::open(path, source))?;
    Ok((kind, bytes))
}

/// Reads a whole log that must be sound.
///
/// # Errors
/// When it cannot be opened, or is not a sound log.
pub fn read_log(path: &Path) -> Result<Session, StoreError> {
    log::read_session(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Reads a log that may be cut off, and says where.
///
/// # Errors
/// When it cannot be opened, or is damaged otherwise.
pub fn read_log_prefix(path: &Path) -> Result<(Session, Option<Torn>), StoreError> {
    log::read_prefix(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Opens a log to be read chunk by chunk.
///
/// # Errors
/// When it cannot be opened, or does not begin like a log.
pub fn open_log(path: &Path) -> Result<LogReader<impl Read + use<>>, StoreError> {
    LogReader::new(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Reads what is whole of a damaged log.
///
/// # Errors
/// When it cannot be opened, or nothing of it can be read.
pub fn recover_log(path: &Path) -> Result<(Session, Damage), StoreError> {
    log::recover(&read_either(path)?.1).map_err(|source| StoreError::content(path, source))
}

/// Reads a whole trace.
///
/// # Errors
/// When it cannot be opened, or is not a sound trace.
pub fn read_trace(path: &Path) -> Result<Trace, StoreError> {
    log::read_trace(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Reads a whole trace that must be a regular file: whoever opens a pipe may wait for ever.
///
/// # Errors
/// As [`read_trace`]; also for a pipe or a device.
pub fn read_regular_trace(path: &Path) -> Result<Trace, StoreError> {
    check_regular(path)?;
    read_trace(path)
}

/// Opens a trace to be read chunk by chunk.
///
/// # Errors
/// When it cannot be opened, or does not begin like a trace.
pub fn open_trace(path: &Path) -> Result<TraceReader<impl Read + use<>>, StoreError> {
    TraceReader::new(open(path)?).map_err(|source| StoreError::content(path, source))
}

#[cfg(test)]
mod tests;
