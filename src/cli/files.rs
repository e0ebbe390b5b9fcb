//! Files, as the command line reads and writes them. Output never stands half-written under its final name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::trouble::Trouble;
use crate::log::{self, FileKind, Torn};
use crate::record::Session;
use crate::trace::Trace;

/// A log in memory.
pub(super) struct Log {
    pub(super) session: Session,
    /// Identifies the very file, in a trace's header.
    pub(super) digest: crate::trace::Digest,
}

/// Reads a file whole.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Trouble> {
    if path.is_dir() {
        return Err(Trouble::file(path, "this is a directory, and a file is wanted here"));
    }
    fs::read(path).map_err(|error| Trouble::file(path, format!("it cannot be read: {error}")))
}

/// What a file is, from its first bytes.
pub(super) fn kind_of(bytes: &[u8]) -> FileKind {
    log::kind_of(&bytes[..bytes.len().min(128 << 10)])
}

/// Reads a log that is whole.
pub(super) fn read_log(path: &Path) -> Result<Log, Trouble> {
    let bytes = read(path)?;
    let session = log::read_session(&bytes[..]).map_err(|error| Trouble::file(path, error))?;
    Ok(Log { session, digest: crate::trace::Digest::of_bytes(&bytes) })
}

/// Reads what there is of a log that may be cut off.
pub(super) fn read_log_prefix(path: &Path, bytes: &[u8]) -> Result<(Session, Option<Torn>), Trouble> {
    log::read_prefix(bytes).map_err(|error| Trouble::file(path, error))
}

/// Reads a trace.
pub(super) fn read_trace(path: &Path, bytes: &[u8]) -> Result<Trace, Trouble> {
    log::read_trace(bytes).map_err(|error| Trouble::file(path, error))
}

/// Writes a trace.
pub(super) fn write_trace(path: &Path, trace: &Trace) -> Result<(), Trouble> {
    let file = Unfinished::create(path)?;
    log::write_trace(file, trace).map_err(|error| Trouble::file(path, error))?.finish()
}

/// Writes a whole session as a log, and says how large it is.
pub(super) fn write_session(path: &Path, session: &Session) -> Result<u64, Trouble> {
    let file = Unfinished::create(path)?;
    let written = log::write_session(file, session, log::Options::whole());
    let file = written.map_err(|error| Trouble::file(path, error))?;
    let bytes = file.written;
    file.finish().map(|()| bytes)
}

/// Writes bytes.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Trouble> {
    let mut file = Unfinished::create(path)?;
    file.write_all(bytes).map_err(|error| cannot_write(path, &error))?;
    file.finish()
}

/// A file that gets its name when it is finished. Dropped before that, it leaves nothing behind; killed, it leaves what
/// was written under a hidden name beside it.
pub(super) struct Unfinished {
    path: PathBuf,
    to: Target,
    written: u64,
}

enum Target {
    /// A new file beside the final name.
    Beside(BufWriter<NamedTempFile>, PathBuf),
    /// A device or pipe, which cannot be renamed over.
    Stream(Box<dyn Write + Send>),
}

impl Unfinished {
    /// Begins a file that will be called `path`.
    pub(super) fn create(path: &Path) -> Result<Unfinished, Trouble> {
        let to = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(Trouble::file(path, "this is a directory: give the output a file's name"));
            }
            Ok(found) if !found.is_file() => {
                let stream = fs::OpenOptions::new().write(true).open(path);
                Target::Stream(Box::new(stream.map_err(|error| cannot_write(path, &error))?))
            }
            // What a symbolic link leads to is replaced, not the link.
            Ok(_) => beside(path, fs::canonicalize(path).map_err(|error| cannot_write(path, &error))?)?,
            Err(_) => beside(path, path.to_owned())?,
        };
        Ok(Unfinished { path: path.to_owned(), to, written: 0 })
    }

    /// How many bytes have been written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Trouble> {
        let Unfinished { path, to, .. } = self;
        let finished = match to {
            Target::Stream(mut stream) => stream.flush(),
            Target::Beside(file, name) => file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| {
                file.as_file().sync_all()?;
                file.persist(name).map(drop).map_err(|error| error.error)
            }),
        };
        finished.map_err(|error| cannot_write(&path, &error))
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.to {
            Target::Beside(file, _) => file.write(bytes)?,
            Target::Stream(stream) => stream.write(bytes)?,
        };
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Beside(file, _) => file.flush(),
            Target::Stream(stream) => stream.flush(),
        }
    }
}

fn beside(shown: &Path, name: PathBuf) -> Result<Target, Trouble> {
    let directory = match name.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    };
    let prefix = format!(".{}.", name.file_name().unwrap_or_default().to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".unfinished");
    #[cfg(unix)]
    let readable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666);
    #[cfg(unix)]
    builder.permissions(readable);
    let file = builder.tempfile_in(directory).map_err(|error| cannot_write(shown, &error))?;
    Ok(Target::Beside(BufWriter::new(file), name))
}

fn cannot_write(path: &Path, error: &io::Error) -> Trouble {
    Trouble::file(path, format!("it cannot be written: {error}"))
}

/// How the program was called, shortened so that it works when it is typed again in this directory.
pub(super) fn as_typed(program: &OsStr) -> String {
    let path = Path::new(program);
    let here = std::env::current_dir().unwrap_or_default();
    let near = path.strip_prefix(&here).unwrap_or(path);
    near.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.hitlog");
        fs::write(&path, "old").unwrap();
        let mut file = Unfinished::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(names(directory.path()), ["a.hitlog"]);
        write(&path, b"new").unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(directory.path())), (b"new".to_vec(), vec!["a.hitlog".into()]));
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (link, real) = (directory.path().join("link"), directory.path().join("real"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn a_directory_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let trouble = write(directory.path(), b"x").unwrap_err().to_string();
        assert!(trouble.contains("this is a directory"), "{trouble}");
        assert!(names(directory.path()).is_empty());
    }
}
