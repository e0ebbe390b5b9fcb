//! Writing of whole files. A file has a temporary name until it is complete, so that the final name never holds half a
//! file.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use super::input::standard_output;
use super::target::{OutputDestination, Target};
use super::temporary::{UnnamedFile, anonymous_file};
use super::{StoreError, is_standard_stream};
use crate::log::{self, WriteError, WriterOptions};
use crate::record::Session;
use crate::trace::Trace;

/// Writes a whole session as a log.
///
/// # Errors
/// When it cannot be written. Nothing is then left under the final name.
pub fn save_log(target: &Target, session: &Session, options: WriterOptions) -> Result<(), StoreError> {
    save(target, |out| log::write_session(out, session, options).map(drop))
}

/// Writes a trace.
///
/// # Errors
/// When it cannot be written. Nothing is then left under the final name.
pub fn save_trace(target: &Target, trace: &Trace) -> Result<(), StoreError> {
    save(target, |out| log::write_trace(out, trace).map(drop))
}

/// Writes bytes, such as a golden or a report.
///
/// # Errors
/// When they cannot be written. Nothing is then left under the final name.
pub fn save_bytes(target: &Target, bytes: &[u8]) -> Result<(), StoreError> {
    save(target, |out| Ok(out.write_all(bytes)?))
}

/// Appends bytes to a file that other programs append to, too. Creates the file if necessary.
///
/// # Errors
/// When the file cannot be written.
pub fn append_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = File::options().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|source| StoreError::write(path, source.into()))
}

/// Writes a file atomically: its name holds either the complete new contents or the old ones. Pipes and devices are
/// written directly. Links are followed, and a replaced file passes on its permissions.
///
/// # Errors
/// When the file cannot be written, or `write` fails.
pub fn save(
    target: &Target,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), StoreError> {
    match target.check()? {
        OutputDestination::Stream => write_stream(target.path(), write),
        OutputDestination::File(_) => prepare(target, write)?.put(),
    }
}

/// Writes to a pipe or a device.
fn write_stream(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), StoreError> {
    let io = |source: std::io::Error| StoreError::write(path, source.into());
    let stream = match is_standard_stream(path) {
        true => standard_output(),
        false => File::options().append(true).open(path),
    };
    let mut out = BufWriter::new(stream.map_err(io)?);
    write(&mut out).map_err(|source| StoreError::write(path, source))?;
    out.flush().map_err(io)
}

/// A complete file without its final name.
pub struct PreparedFile<'a> {
    target: &'a Target,
    file: Prepared,
}

enum Prepared {
    /// The contents for a pipe or a device.
    Stream(File),
    /// A file beside its final path.
    File(UnnamedFile, PathBuf),
}

/// Writes a file that gets its final name later, together with others, or not at all. Nothing reaches a pipe before.
///
/// # Errors
/// As [`save`].
pub fn prepare<'a>(
    target: &'a Target,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<PreparedFile<'a>, StoreError> {
    let path = target.path();
    let io = |source: std::io::Error| StoreError::write(path, source.into());
    let fill = |file: &File| {
        let mut out = BufWriter::new(file);
        write(&mut out).map_err(|source| StoreError::write(path, source))?;
        out.flush().map_err(io)
    };
    let file = match target.check()? {
        OutputDestination::Stream => {
            let contents = anonymous_file().map_err(io)?;
            fill(&contents)?;
            Prepared::Stream(contents)
        }
        OutputDestination::File(file) => {
            let unfinished = UnnamedFile::in_folder(file.folder()).map_err(io)?;
            if let Some(permissions) = file.permissions {
                unfinished.file.set_permissions(permissions).map_err(io)?;
            }
            fill(&unfinished.file)?;
            if target.is_lasting {
                unfinished.file.sync_data().map_err(io)?;
            }
            Prepared::File(unfinished, file.path)
        }
    };
    Ok(PreparedFile { target, file })
}

impl PreparedFile<'_> {
    /// Gives the file its final name, or writes it to its pipe.
    ///
    /// # Errors
    /// When it cannot be renamed or written, or a file appeared there in the meantime that must not be replaced.
    pub fn put(self) -> Result<(), StoreError> {
        let PreparedFile { target, file } = self;
        let path = target.path();
        match file {
            Prepared::Stream(mut contents) => write_stream(path, |out| {
                contents.rewind()?;
                Ok(std::io::copy(&mut contents, out).map(drop)?)
            }),
            Prepared::File(unfinished, place) => {
                target.check()?;
                unfinished.put(&place).map_err(|error| StoreError::write(path, error.into()))
            }
        }
    }
}

/// Moves a file.
///
/// # Errors
/// When the existing file at the target must not be replaced, or the file cannot be renamed.
pub fn move_to(from: &Path, target: &Target) -> Result<(), StoreError> {
    super::check_regular(from)?;
    let mut file = super::open(from)?;
    save(target, |out| Ok(std::io::copy(&mut file, out).map(drop)?))?;
    std::fs::remove_file(from).map_err(|source| StoreError::write(from, source.into()))
}

/// Removes a file of the target's kind.
///
/// # Errors
/// When it cannot be removed, or a file of another kind is there.
pub fn remove(target: &Target) -> Result<(), StoreError> {
    target.check()?;
    std::fs::remove_file(target.path()).map_err(|source| StoreError::write(target.path(), source.into()))
}
