//! Recordings in progress: logs that are written while their session runs, and survive a crash.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::destination::Destination;
use super::target::Target;
use crate::log::{BackgroundLogWriter, Options, WhenFull, WriteError};
use crate::record::{Header, OwnRow, Record};
use crate::units::Micros;

/// A recording in progress. Until [`Recording::finish`] it stands under [`Recording::unfinished_path`], where a kill
/// or a crash leaves all of it but the last second.
pub struct Recording {
    target: Target,
    path: PathBuf,
    unfinished: PathBuf,
    writer: BackgroundLogWriter<File>,
}

impl Recording {
    /// Begins a recording that will be at `target`; where that is a link, the file that it leads to.
    ///
    /// # Errors
    /// When it cannot be written, or an unfinished recording is there already, by a process that runs or by one that was
    /// killed.
    pub fn begin(target: &Target, header: &Header) -> Result<Recording, StoreError> {
        Recording::begin_with(target, header, Options::live(), WhenFull::Wait)
    }

    /// The same with other chunks, and another answer to a slow disk.
    ///
    /// # Errors
    /// As [`Recording::begin`].
    pub fn begin_with(
        target: &Target,
        header: &Header,
        options: Options,
        when_full: WhenFull,
    ) -> Result<Recording, StoreError> {
        Claim::new(target)?.begin(header, options, when_full)
    }

    /// Where a recording stands until it is finished: `NAME.hitlog.part`.
    pub fn unfinished_path(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    /// Where the file of this number stands of a recording in many files: `NAME-0001.hitlog`.
    pub fn numbered(path: &Path, number: u32) -> PathBuf {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{number:04}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    }

    /// The highest number that a file of such a recording has, finished or not; 0 where there is none.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn last_number(path: &Path) -> Result<u32, StoreError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fail = |source| StoreError::open(folder, source);
        let mut last = 0;
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let whole = folder.join(&name);
            let finished = Unfinished::name(&whole).unwrap_or(whole);
            let stem = finished.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let number = stem.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            if Recording::numbered(path, number).file_name() == finished.file_name() {
                last = last.max(number);
            }
        }
        Ok(last)
    }

    /// How many bytes of it are in the file by now.
    ///
    /// # Errors
    /// When the file system does not tell.
    pub fn written_bytes(&self) -> Result<u64, StoreError> {
        let file = std::fs::metadata(&self.unfinished);
        Ok(file.map_err(|source| StoreError::open(&self.unfinished, source))?.len())
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When it does not fit the header, or the recording cannot be written any more.
    pub fn push(&mut self, record: &Record) -> Result<(), StoreError> {
        self.writer.push(record).map_err(|source| stopped(&self.unfinished, &self.path, source))
    }

    /// Adds a row of a kind or column that only the header knows, along with the record that it belongs to.
    pub(crate) fn push_row(&mut self, at: Micros, row: &OwnRow, of: Option<&Record>) -> Result<(), StoreError> {
        self.writer.push_row(at, row, of).map_err(|source| stopped(&self.unfinished, &self.path, source))
    }

    /// How many chunks were dropped because the disk was too slow.
    pub fn dropped_chunks(&self) -> u64 {
        self.writer.dropped_chunks()
    }

    /// Writes what is still in memory, so that it survives a kill.
    ///
    /// # Errors
    /// When the recording cannot be written any more.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.writer.flush().map_err(|source| stopped(&self.unfinished, &self.path, source))
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
        let fail = |source: WriteError| stopped(&self.unfinished, &self.path, source);
        let file = self.writer.finish().map_err(fail)?;
        file.sync_data().map_err(|source| fail(source.into()))?;
        // A log that came there meanwhile stays, and this one where it was.
        self.target.check()?;
        std::fs::rename(&self.unfinished, &self.path).map_err(|source| fail(source.into()))
    }
}

/// The place of a recording that is to begin. Nothing is left there when none does.
pub struct Claim {
    target: Target,
    path: PathBuf,
    unfinished: PathBuf,
    /// `None` once the recording has begun.
    file: Option<File>,
}

impl Claim {
    /// Takes the place of a recording that will be at `target`.
    ///
    /// # Errors
    /// As [`Recording::begin`].
    pub fn new(target: &Target) -> Result<Claim, StoreError> {
        let Destination::File(file) = target.check()? else {
            return Err(StoreError::NoFile { path: target.path().into() });
        };
        let unfinished = Recording::unfinished_path(&file.path);
        let out = claim(&unfinished)?;
        let claimed = Claim { target: target.clone(), path: file.path, unfinished, file: Some(out) };
        if let (Some(permissions), Some(out)) = (file.permissions, &claimed.file) {
            out.set_permissions(permissions).map_err(|source| StoreError::write(&claimed.unfinished, source.into()))?;
        }
        Ok(claimed)
    }

    /// Begins the recording.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(mut self, header: &Header, options: Options, when_full: WhenFull) -> Result<Recording, StoreError> {
        let (unfinished, path) = (self.unfinished.clone(), self.path.clone());
        let out = self.file.take().ok_or_else(|| StoreError::NoFile { path: path.clone() })?;
        let writer = BackgroundLogWriter::new(out, header, options);
        let writer = writer.map_err(|source| StoreError::write(&unfinished, source))?.when_full(when_full);
        Ok(Recording { target: self.target.clone(), path, unfinished, writer })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.file.is_some() {
            // An empty file that stays is in nobody's way.
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

/// A recording that was not finished, and that nobody writes any more.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    _lock: File,
}

impl Unfinished {
    /// The name that a recording at `path` was to have; `None` for what is no unfinished one by its name.
    pub fn name(path: &Path) -> Option<PathBuf> {
        (path.extension()? == "part").then(|| path.with_extension(""))
    }

    /// Takes an unfinished recording, so that nobody else begins with it.
    ///
    /// # Errors
    /// When it cannot be opened, or is still being written.
    pub fn take(path: &Path) -> Result<Unfinished, StoreError> {
        let file = File::open(path).map_err(|source| StoreError::open(path, source))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(StoreError::StillRecorded { path: path.into() });
        }
        Ok(Unfinished { path: path.to_owned(), _lock: file })
    }

    /// Removes it, after all that was whole of it has been saved elsewhere.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(self) -> Result<(), StoreError> {
        std::fs::remove_file(&self.path).map_err(|source| StoreError::write(&self.path, source.into()))
    }
}

/// Opens the file of an unfinished recording for this process alone. An empty one has nothing to be lost: whoever began it was
/// killed before its header was written.
fn claim(unfinished: &Path) -> Result<File, StoreError> {
    let fail = |source: std::io::Error| StoreError::write(unfinished, source.into());
    let (file, is_new) = match File::options().write(true).create_new(true).open(unfinished) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            (File::options().write(true).open(unfinished).map_err(fail)?, false)
        }
        file => (file.map_err(fail)?, true),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::BeingRecorded { path: unfinished.into() }),
        // Not every file system has locks. Without one only the name tells who was first.
        Err(TryLockError::Error(_)) if is_new => {}
        Err(TryLockError::Error(_)) => return Err(StoreError::Unfinished { path: unfinished.into() }),
    }
    if !is_new && file.metadata().map_err(fail)?.len() > 0 {
        return Err(StoreError::Unfinished { path: unfinished.into() });
    }
    Ok(file)
}

/// Why a recording cannot go on. What was written until then is not lost when the disk is full, and the error says so.
fn stopped(unfinished: &Path, path: &Path, source: WriteError) -> StoreError {
    match StoreError::write(unfinished, source) {
        StoreError::DiskFull { path: unfinished } => StoreError::RecordingFull { unfinished, path: path.into() },
        error => error,
    }
}
