//! A file of lines to which one process appends while it runs. Whatever ends the process, the file keeps every group of
//! lines that was complete.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{StoreError, StoreErrorKind};

/// A group of lines in a [`LineFile`]: its first byte and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSpan {
    /// The offset of the first byte.
    pub from: u64,
    /// The length, in bytes.
    pub length: u64,
}

/// An open file of lines, locked against other processes.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl LineFile {
    /// Opens or creates the file. `ends` gets each line with the span of its group so far, and returns whether the line
    /// ends the group. Lines after the last end, such as a torn line, are removed.
    ///
    /// # Errors
    /// When the file cannot be opened or read, or another process appends to it.
    pub fn open(path: &Path, ends: &mut dyn FnMut(&str, LineSpan) -> bool) -> Result<LineFile, StoreError> {
        let fail = |source| StoreError::open(path, source);
        let cannot_append = |source: std::io::Error| match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::write(path, source.into()),
            _ => fail(source),
        };
        let file = File::options().read(true).append(true).create(true).open(path).map_err(cannot_append)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::new(path, StoreErrorKind::InUse)),
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(StoreError::new(path, StoreErrorKind::NotRegular));
        }
        let length = groups(&file, ends).map_err(fail)?;
        file.set_len(length).map_err(fail)?;
        Ok(LineFile { path: path.to_owned(), file, length })
    }

    /// Appends a group of lines. If that fails, none of them is left.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, lines: &str) -> Result<(), StoreError> {
        if let Err(source) = self.file.write_all(lines.as_bytes()) {
            // Opening the file again would remove the rest of the group, too.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::write(&self.path, source.into()));
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Reads a group of lines.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self, span: LineSpan) -> Result<String, StoreError> {
        read_span(&mut self.file, span).map_err(|source| StoreError::open(&self.path, source))
    }
}

/// Passes the lines of a file that another process may append to, as [`LineFile::open`] does, but changes nothing. `-` is
/// standard input.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read_lines(path: &Path, ends: &mut dyn FnMut(&str, LineSpan) -> bool) -> Result<(), StoreError> {
    groups(super::open_file(path)?, ends).map(drop).map_err(|source| StoreError::open(path, source))
}

/// Reads a group of lines of a file that [`read_lines`] has read.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read_line_span(path: &Path, span: LineSpan) -> Result<String, StoreError> {
    read_span(&mut super::open_file(path)?, span).map_err(|source| StoreError::open(path, source))
}

fn read_span(file: &mut (impl Read + Seek), span: LineSpan) -> std::io::Result<String> {
    file.seek(SeekFrom::Start(span.from))?;
    let mut text = String::new();
    file.take(span.length).read_to_string(&mut text)?;
    Ok(text)
}

/// Passes all complete lines to `ends`, and returns the length of all complete groups.
fn groups(file: impl Read + Seek, ends: &mut dyn FnMut(&str, LineSpan) -> bool) -> std::io::Result<u64> {
    let mut reader = BufReader::with_capacity(super::READ_AHEAD, file);
    reader.seek(SeekFrom::Start(0))?;
    let (mut line, mut span) = (Vec::new(), LineSpan { from: 0, length: 0 });
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else { return Ok(span.from) };
        span.length += read as u64;
        if ends(&String::from_utf8_lossy(text), span) {
            span = LineSpan { from: span.from + span.length, length: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_groups_survive_and_others_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        let open = |lines: &mut Vec<(String, LineSpan)>| {
            LineFile::open(&path, &mut |line, span| {
                lines.push((line.to_owned(), span));
                line.starts_with("end")
            })
        };
        let mut file = open(&mut Vec::new()).expect("a new file");
        file.append("one\nend 1\n").expect("written");
        file.append("end 2\n").expect("written");
        let taken = open(&mut Vec::new()).expect_err("it is locked").to_string();
        assert!(taken.contains("another process"), "{taken}");
        drop(file);
        for torn in ["two\nthr", "two\n", "en"] {
            std::fs::write(&path, format!("one\nend 1\nend 2\n{torn}")).expect("written");
            let mut lines = Vec::new();
            let mut file = open(&mut lines).expect("the file");
            let group = LineSpan { from: 0, length: 10 };
            assert_eq!((lines[1].0.as_str(), lines[1].1), ("end 1", group));
            assert_eq!(file.read(group).expect("readable"), "one\nend 1\n");
            file.append("end 3\n").expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("readable"), "one\nend 1\nend 2\nend 3\n");
        }
    }

    /// Some devices give bytes without end.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_refused() {
        let error = LineFile::open(Path::new("/dev/null"), &mut |_, _| true).expect_err("no file");
        assert!(matches!(error.kind, StoreErrorKind::NotRegular), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_sentence() {
        let path = PathBuf::from("/dev/full");
        let file = File::options().append(true).open(&path).expect("a device");
        let error = LineFile { path, file, length: 0 }.append("end\n").expect_err("no space").to_string();
        assert!(error.contains("the disk is full"), "{error}");
    }
}
