//! An input file. Pipes, devices and standard input are copied to a temporary file while they are read, so that every
//! input can be read more than once.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use super::folder::anonymous_file;
use super::{READ_AHEAD, StoreError, StoreErrorKind, read_start};
use crate::log::{self, FileKind};
use crate::sorted::SortedMap;

/// An open input.
#[derive(Debug)]
pub struct InputFile(OpenInput);

#[derive(Debug)]
enum OpenInput {
    Regular(File),
    Stream(StreamReader),
}

/// A position in a stream.
#[derive(Debug)]
struct StreamReader {
    stream: Arc<Mutex<SpooledStream>>,
    at: u64,
}

/// A stream, and the copy of what was read of it.
#[derive(Debug)]
struct SpooledStream {
    stream: File,
    copy: File,
    /// How many bytes were read so far.
    length: u64,
    has_ended: bool,
}

/// The streams that this process reads, by path. The system removes their copies when the process ends.
static STREAMS: Mutex<SortedMap<PathBuf, Arc<Mutex<SpooledStream>>>> = Mutex::new(SortedMap::new());

impl InputFile {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(path: &Path) -> std::io::Result<InputFile> {
        let is_stream = is_standard_stream(path) || path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if !is_stream {
            return Ok(InputFile(OpenInput::Regular(File::open(path)?)));
        }
        let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = match streams.get(path) {
            Some(known) => Arc::clone(known),
            None => {
                let stream = if is_standard_stream(path) { stream_file(std::io::stdin())? } else { File::open(path)? };
                let spooled = SpooledStream { stream, copy: anonymous_file()?, length: 0, has_ended: false };
                let spooled = Arc::new(Mutex::new(spooled));
                streams.insert(path.to_owned(), Arc::clone(&spooled));
                spooled
            }
        };
        Ok(InputFile(OpenInput::Stream(StreamReader { stream, at: 0 })))
    }

    /// Whether this is a directory.
    pub(super) fn is_directory(&self) -> bool {
        let InputFile(OpenInput::Regular(file)) = self else { return false };
        file.metadata().is_ok_and(|meta| meta.is_dir())
    }
}

impl SpooledStream {
    /// Reads at a position that is at most `length`.
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        if at < self.length {
            let known = usize::try_from(self.length - at).unwrap_or(usize::MAX).min(buffer.len());
            self.copy.seek(SeekFrom::Start(at))?;
            return self.copy.read(&mut buffer[..known]);
        }
        if self.has_ended {
            return Ok(0);
        }
        let read = self.stream.read(buffer)?;
        self.has_ended = read == 0 && !buffer.is_empty();
        self.copy.seek(SeekFrom::Start(self.length))?;
        self.copy.write_all(&buffer[..read])?;
        self.length += read as u64;
        Ok(read)
    }

    /// Reads until `at`, or to the end of the stream.
    fn read_until(&mut self, at: u64) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while self.length < at && !self.has_ended {
            let most = usize::try_from(at - self.length).unwrap_or(usize::MAX).min(buffer.len());
            self.read_at(self.length, &mut buffer[..most])?;
        }
        Ok(())
    }
}

impl Read for InputFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.0 {
            OpenInput::Regular(file) => file.read(buffer),
            OpenInput::Stream(StreamReader { stream, at }) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                let read = stream.read_at(*at, buffer)?;
                *at += read as u64;
                Ok(read)
            }
        }
    }
}

impl Seek for InputFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match &mut self.0 {
            OpenInput::Regular(file) => file.seek(to),
            OpenInput::Stream(StreamReader { stream, at }) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                let (from, by) = match to {
                    SeekFrom::Start(start) => (start, 0),
                    SeekFrom::Current(by) => (*at, by),
                    SeekFrom::End(by) => {
                        stream.read_until(u64::MAX)?;
                        (stream.length, by)
                    }
                };
                let sought = from.checked_add_signed(by).ok_or(std::io::ErrorKind::InvalidInput)?;
                stream.read_until(sought)?;
                *at = sought.min(stream.length);
                Ok(*at)
            }
        }
    }
}

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
#[doc(hidden)]
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
            Some((path, _)) => Err(StoreError::new(path, StoreErrorKind::Changed)),
            None => Ok(()),
        }
    }
}

// Standard input and output under the name `-`. A file of that name is `./-`.

/// Returns whether a path is `-`.
pub fn is_standard_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns a standard stream as a file.
#[cfg(unix)]
pub(super) fn stream_file(stream: impl std::os::fd::AsFd) -> std::io::Result<File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

/// Returns a standard stream as a file.
#[cfg(windows)]
pub(super) fn stream_file(stream: impl std::os::windows::io::AsHandle) -> std::io::Result<File> {
    Ok(stream.as_handle().try_clone_to_owned()?.into())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A stream that gives these bytes.
    fn stream(bytes: &[u8]) -> InputFile {
        let (read, mut write) = std::io::pipe().expect("a pipe");
        write.write_all(bytes).expect("room for a few bytes");
        let stream = File::from(std::os::fd::OwnedFd::from(read));
        let copy = anonymous_file().expect("a temporary file");
        let stream = Arc::new(Mutex::new(SpooledStream { stream, copy, length: 0, has_ended: false }));
        InputFile(OpenInput::Stream(StreamReader { stream, at: 0 }))
    }

    fn again(input: &InputFile) -> InputFile {
        let InputFile(OpenInput::Stream(StreamReader { stream, .. })) = input else { panic!("a file") };
        InputFile(OpenInput::Stream(StreamReader { stream: Arc::clone(stream), at: 0 }))
    }

    #[test]
    fn a_stream_can_be_read_again_during_its_arrival() {
        let mut first = stream(b"hitreg reads pipes");
        let mut second = again(&first);
        let mut head = [0; 6];
        first.read_exact(&mut head).expect("six bytes");
        let (mut text, mut rest) = (String::new(), String::new());
        second.read_to_string(&mut text).expect("all of it");
        first.read_to_string(&mut rest).expect("the rest");
        assert_eq!((&head, text.as_str(), rest.as_str()), (b"hitreg", "hitreg reads pipes", " reads pipes"));
    }

    #[test]
    fn a_stream_has_positions() {
        let mut input = stream(b"0123456789");
        let mut at = |to| {
            let place = input.seek(to).expect("a position");
            let mut byte = [0];
            input.read_exact(&mut byte).expect("a byte");
            (place, char::from(byte[0]))
        };
        assert_eq!(at(SeekFrom::Start(3)), (3, '3'));
        assert_eq!(at(SeekFrom::End(-2)), (8, '8'));
        assert_eq!(at(SeekFrom::Current(-4)), (5, '5'));
        assert_eq!(input.seek(SeekFrom::Start(99)).expect("the end"), 10);
        assert!(input.seek(SeekFrom::Current(-11)).is_err());
    }
}
