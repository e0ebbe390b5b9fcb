//! Files: the only room that opens, writes and renames them. Every error names its file.
//!
//! What is written stands under a temporary name in the same folder until it is complete, so that the final name
//! never holds half a file. A recording in progress is `NAME.hitlog.part`, which `recover` can read if it is killed.

#![expect(clippy::disallowed_types, reason = "this is the room that opens files")]

mod error;

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

pub use error::StoreError;

use crate::log::{self, BackgroundLogWriter, Damage, FileKind, LogReader, Options, Torn, TraceReader, WriteError};
use crate::record::{Header, Record, Session};
use crate::trace::Trace;

/// How much a file is read at a time.
const READ_AHEAD: usize = 256 << 10;

/// Opens a file for reading.
///
/// # Errors
/// When it cannot be opened, or is a directory.
pub fn open(path: &Path) -> Result<impl Read + use<>, StoreError> {
    let file = File::open(path).map_err(|source| StoreError::open(path, source))?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(StoreError::IsDirectory { path: path.into() });
    }
    Ok(BufReader::with_capacity(READ_AHEAD, file))
}

/// Reads a whole file of any kind.
///
/// # Errors
/// When it cannot be opened or read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(|source| StoreError::open(path, source))?;
    Ok(bytes)
}

/// What a file is, from its first bytes.
///
/// # Errors
/// When it cannot be opened or read.
pub fn kind_of(path: &Path) -> Result<FileKind, StoreError> {
    let mut head = Vec::new();
    open(path)?.take(READ_AHEAD as u64).read_to_end(&mut head).map_err(|source| StoreError::open(path, source))?;
    Ok(log::kind_of(&head))
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
    log::recover(&read_bytes(path)?).map_err(|source| StoreError::content(path, source))
}

/// Reads a whole trace.
///
/// # Errors
/// When it cannot be opened, or is not a sound trace.
pub fn read_trace(path: &Path) -> Result<Trace, StoreError> {
    log::read_trace(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Opens a trace to be read chunk by chunk.
///
/// # Errors
/// When it cannot be opened, or does not begin like a trace.
pub fn open_trace(path: &Path) -> Result<TraceReader<impl Read + use<>>, StoreError> {
    TraceReader::new(open(path)?).map_err(|source| StoreError::content(path, source))
}

/// Writes a whole session.
///
/// # Errors
/// When it cannot be written; nothing is left under that name then.
pub fn save_log(path: &Path, session: &Session, options: Options) -> Result<(), StoreError> {
    save(path, |out| log::write_session(out, session, options).map(drop))
}

/// Writes a trace.
///
/// # Errors
/// When it cannot be written; nothing is left under that name then.
pub fn save_trace(path: &Path, trace: &Trace) -> Result<(), StoreError> {
    save(path, |out| log::write_trace(out, trace).map(drop))
}

/// Writes bytes: a golden, a report.
///
/// # Errors
/// When they cannot be written; nothing is left under that name then.
pub fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    save(path, |out| Ok(out.write_all(bytes)?))
}

/// Writes a file so that its name holds all of it or what it held before. A pipe or device is written to as it is.
///
/// # Errors
/// When it cannot be written, or `write` says so.
pub fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>) -> Result<(), StoreError> {
    let fail = |source: WriteError| StoreError::write(path, source);
    let io = |source: std::io::Error| StoreError::write(path, source.into());
    if is_stream(path)? {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(io)?);
        write(&mut out).map_err(fail)?;
        return out.flush().map_err(io);
    }
    let mut unfinished = unfinished_in(parent(path)?).map_err(io)?;
    let mut out = BufWriter::new(unfinished.as_file_mut());
    write(&mut out).map_err(fail)?;
    out.flush().map_err(io)?;
    drop(out);
    unfinished.as_file().sync_data().map_err(io)?;
    unfinished.persist(path).map_err(|error| io(error.error))?;
    Ok(())
}

/// Whether a path is something other than a file to be replaced.
fn is_stream(path: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(StoreError::IsDirectory { path: path.into() }),
        Ok(meta) => Ok(!meta.is_file()),
        Err(_) => Ok(false),
    }
}

/// The folder that a file is to be written into.
fn parent(path: &Path) -> Result<&Path, StoreError> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(StoreError::IsDirectory { path: path.into() }),
    };
    if parent.is_dir() { Ok(parent) } else { Err(StoreError::NoParent { path: path.into(), parent: parent.into() }) }
}

/// A file without a final name, readable by whoever may read other files there.
fn unfinished_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hitreg-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// A recording in progress. Until [`Recording::finish`] it stands under [`Recording::unfinished_path`], where a kill
/// or a crash leaves all of it but the last second.
pub struct Recording {
    path: PathBuf,
    unfinished: PathBuf,
    writer: BackgroundLogWriter<File>,
}

impl Recording {
    /// Begins a recording that will be `path`.
    ///
    /// # Errors
    /// When `path` cannot be written, or an unfinished recording is there already.
    pub fn begin(path: &Path, header: &Header) -> Result<Recording, StoreError> {
        let unfinished = Recording::unfinished_path(path);
        is_stream(path)?;
        parent(path)?;
        let file = match File::options().write(true).create_new(true).open(&unfinished) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Unfinished { path: unfinished });
            }
            file => file.map_err(|source| StoreError::write(&unfinished, source.into()))?,
        };
        let writer = BackgroundLogWriter::new(file, header, Options::live());
        let writer = writer.map_err(|source| StoreError::write(&unfinished, source))?;
        Ok(Recording { path: path.into(), unfinished, writer })
    }

    /// Where a recording stands until it is finished: `NAME.hitlog.part`.
    pub fn unfinished_path(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When it does not fit the header, or the recording cannot be written any more.
    pub fn push(&mut self, record: &Record) -> Result<(), StoreError> {
        self.writer.push(record).map_err(|source| StoreError::write(&self.unfinished, source))
    }

    /// Writes what is still in memory, so that it survives a kill.
    ///
    /// # Errors
    /// When the recording cannot be written any more.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.writer.flush().map_err(|source| StoreError::write(&self.unfinished, source))
    }

    /// Ends a recording that is not worth keeping, and leaves nothing of it.
    ///
    /// # Errors
    /// When it could not be removed.
    pub fn abandon(self) -> Result<(), StoreError> {
        drop(self.writer);
        std::fs::remove_file(&self.unfinished).map_err(|source| StoreError::write(&self.unfinished, source.into()))
    }

    /// Ends the recording and gives it its name.
    ///
    /// # Errors
    /// When it could not be written or renamed; what is whole of it stays where it was.
    pub fn finish(self) -> Result<(), StoreError> {
        let fail = |source: WriteError| StoreError::write(&self.unfinished, source);
        let file = self.writer.finish().map_err(fail)?;
        file.sync_data().map_err(|source| fail(source.into()))?;
        std::fs::rename(&self.unfinished, &self.path).map_err(|source| fail(source.into()))
    }
}

#[cfg(test)]
mod tests;
