//! Recordings in progress: logs that are written while their session runs, and survive a crash.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::input::is_at;
use super::output::OutputDestination;
use super::output::Target;
use super::{StoreError, StoreErrorKind};
use crate::log::{BackgroundLogWriter, QueuePolicy, RecordCounter, WriteError, WriterOptions};
use crate::record::{Record, SessionHeader, Texts};

/// A recording in progress. Until [`Recording::finish`], its file ends in `.part`. After a kill or a
/// crash, this file holds everything except the last second.
#[derive(Debug)]
pub struct Recording {
    target: Target,
    path: PathBuf,
    unfinished: PathBuf,
    writer: BackgroundLogWriter<File>,
}

impl Recording {
    /// Starts a recording whose final path is `target`, with links resolved.
    ///
    /// # Errors
    /// When the file cannot be written, or when an unfinished recording exists there, whether its process still runs or
    /// was killed.
    pub fn begin(target: &Target, header: &SessionHeader) -> Result<Recording, StoreError> {
        RecordingClaim::new(target)?.begin(header, WriterOptions::live(), QueuePolicy::Wait)
    }

    /// Returns the path of an unfinished recording: `NAME.hitlog.part`.
    pub(crate) fn unfinished_path(path: &Path) -> PathBuf {
        path.with_added_extension("part")
    }

    /// Returns the path of one file of a recording in several files: `NAME-0001.hitlog`.
    pub fn numbered(path: &Path, number: u32) -> PathBuf {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{number:04}"));
        let numbered = path.with_file_name(name);
        path.extension().map(|extension| numbered.with_added_extension(extension)).unwrap_or(numbered)
    }

    /// Returns the highest number among the files of such a recording, finished or not; 0 when there are none.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn last_number(path: &Path) -> Result<u32, StoreError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fail = |source| StoreError::open(folder, source);
        let mut last = 0;
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            let whole = folder.join(&name);
            let finished = UnfinishedRecording::name(&whole).unwrap_or(whole);
            let stem = finished.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let number = stem.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            if Recording::numbered(path, number).file_name() == finished.file_name() {
                last = last.max(number);
            }
        }
        Ok(last)
    }

    /// Returns the number of bytes written to the file so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.writer.written_bytes()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When the record does not fit the header, or the recording can no longer be written.
    pub fn push(&mut self, record: Record) -> Result<(), StoreError> {
        self.writer.push(record).map_err(|source| stopped(&self.unfinished, &self.path, source))
    }

    /// Sets the texts of the records.
    pub(crate) fn set_texts(&mut self, texts: &Texts) {
        self.writer.set_texts(texts);
    }

    /// Returns the number of chunks dropped because the disk was too slow.
    pub fn dropped_chunks(&self) -> u64 {
        self.writer.dropped_chunks()
    }

    /// Counts written records in this counter.
    pub(crate) fn count_records(self, records: RecordCounter) -> Recording {
        Recording { writer: self.writer.count_records(records), ..self }
    }

    /// Adds the records that the file begins with. They do not count as written.
    ///
    /// # Errors
    /// As [`Recording::push`].
    pub(crate) fn begin_with(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut begun = records.into_iter().map(|record| self.writer.push_uncounted(record));
        begun.try_for_each(|pushed| pushed).map_err(|source| stopped(&self.unfinished, &self.path, source))
    }

    /// Writes all buffered records, so that they survive a kill.
    ///
    /// # Errors
    /// When the recording can no longer be written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.writer.flush().map_err(|source| stopped(&self.unfinished, &self.path, source))
    }

    /// Ends a recording that can be made again and failed: removes its file, and returns the error without advice on its
    /// recovery.
    pub fn discard(self, error: StoreError) -> StoreError {
        drop(self.writer);
        discard(&self.unfinished, error)
    }

    /// Ends a recording that can be made again like [`Recording::finish`], but leaves no file if that fails.
    ///
    /// # Errors
    /// As [`Recording::finish`].
    pub fn finish_or_discard(self) -> Result<(), StoreError> {
        let unfinished = self.unfinished.clone();
        self.finish().map_err(|error| discard(&unfinished, error))
    }

    /// Ends the recording and removes its file.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn abandon(self) -> Result<(), StoreError> {
        drop(self.writer);
        std::fs::remove_file(&self.unfinished).map_err(|source| StoreError::write(&self.unfinished, source.into()))
    }

    /// Ends the recording and gives the file its final name.
    ///
    /// # Errors
    /// When the file cannot be written or renamed. The part written so far stays in the unfinished file.
    pub fn finish(self) -> Result<(), StoreError> {
        let fail = |source: WriteError| stopped(&self.unfinished, &self.path, source);
        let file = self.writer.finish().map_err(fail)?;
        file.sync_data().map_err(|source| fail(source.into()))?;
        if !is_at(&file, &self.unfinished) {
            return Err(StoreError::new(self.unfinished, StoreErrorKind::Gone));
        }
        // If a log appeared at the final path in the meantime, both files stay where they are.
        self.target.check()?;
        std::fs::rename(&self.unfinished, &self.path).map_err(|source| fail(source.into()))
    }
}

/// The reserved place of a recording. Dropping it before the recording starts removes the file.
#[derive(Debug)]
pub struct RecordingClaim {
    target: Target,
    path: PathBuf,
    unfinished: PathBuf,
    /// `None` after the recording has started.
    file: Option<File>,
}

impl RecordingClaim {
    /// Reserves the place of a recording whose final path is `target`.
    ///
    /// # Errors
    /// As [`Recording::begin`].
    pub fn new(target: &Target) -> Result<RecordingClaim, StoreError> {
        let OutputDestination::File(file) = target.check()? else {
            return Err(StoreError::new(target.path(), StoreErrorKind::NoFile));
        };
        if UnfinishedRecording::name(&file.path).is_some() {
            return Err(StoreError::new(file.path, StoreErrorKind::UnfinishedName));
        }
        let unfinished = Recording::unfinished_path(&file.path);
        let out = claim(&unfinished, &file.path)?;
        let claimed = RecordingClaim { target: target.clone(), path: file.path, unfinished, file: Some(out) };
        if let (Some(permissions), Some(out)) = (file.permissions, &claimed.file) {
            out.set_permissions(permissions).map_err(|source| StoreError::write(&claimed.unfinished, source.into()))?;
        }
        Ok(claimed)
    }

    /// Starts the recording with these chunk options and this reaction to a slow disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(
        mut self,
        header: &SessionHeader,
        options: WriterOptions,
        when_full: QueuePolicy,
    ) -> Result<Recording, StoreError> {
        let (unfinished, path) = (self.unfinished.clone(), self.path.clone());
        let out = self.file.take().ok_or_else(|| StoreError::new(&path, StoreErrorKind::NoFile))?;
        let writer = BackgroundLogWriter::new(out, header, options);
        let writer = writer.map_err(|source| discard(&unfinished, StoreError::write(&path, source)))?;
        let writer = writer.when_full(when_full);
        Ok(Recording { target: self.target.clone(), path, unfinished, writer })
    }
}

impl Drop for RecordingClaim {
    fn drop(&mut self) {
        if self.file.is_some() {
            // A leftover empty file is harmless.
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

/// An unfinished recording whose process has ended.
#[derive(Debug)]
pub struct UnfinishedRecording {
    path: PathBuf,
    _lock: File,
}

impl UnfinishedRecording {
    /// Returns the final path of the unfinished recording at `path`; `None` when its name is not that of an unfinished
    /// recording.
    pub fn name(path: &Path) -> Option<PathBuf> {
        (path.extension()? == "part").then(|| path.with_extension(""))
    }

    /// Locks an unfinished recording for this process.
    ///
    /// # Errors
    /// When the file cannot be opened, or is still being written.
    pub fn take(path: &Path) -> Result<UnfinishedRecording, StoreError> {
        let file = File::open(path).map_err(|source| StoreError::open(path, source))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(StoreError::new(path, StoreErrorKind::StillRecorded));
        }
        Ok(UnfinishedRecording { path: path.to_owned(), _lock: file })
    }

    /// Removes the file. The caller must have saved its contents elsewhere.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(self) -> Result<(), StoreError> {
        std::fs::remove_file(&self.path).map_err(|source| StoreError::write(&self.path, source.into()))
    }
}

/// Opens and locks the file of an unfinished recording to `path`. An empty file holds no data and may be reused: its
/// process was killed before it wrote the header.
fn claim(unfinished: &Path, path: &Path) -> Result<File, StoreError> {
    let fail = |source: std::io::Error| StoreError::write(unfinished, source.into());
    let unfinished_exists = || StoreError::new(unfinished, StoreErrorKind::Unfinished(unfinished.into()));
    let (file, is_new) = match File::options().write(true).create_new(true).open(unfinished) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            (File::options().write(true).open(unfinished).map_err(fail)?, false)
        }
        // Nobody asked for the unfinished file.
        file => (file.map_err(|source| StoreError::write(path, source.into()))?, true),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::new(unfinished, StoreErrorKind::BeingRecorded)),
        // Some file systems have no locks. Without a lock, only a newly created file is safe.
        Err(TryLockError::Error(_)) if is_new => {}
        Err(TryLockError::Error(_)) => return Err(unfinished_exists()),
    }
    if !is_new && file.metadata().map_err(fail)?.len() > 0 {
        return Err(unfinished_exists());
    }
    Ok(file)
}

/// Removes the file of a recording that failed. Its error says more than one about the removal.
fn discard(unfinished: &Path, error: StoreError) -> StoreError {
    let _ = std::fs::remove_file(unfinished);
    match error.kind {
        StoreErrorKind::RecordingFull { log, .. } => StoreError::new(log, StoreErrorKind::DiskFull),
        StoreErrorKind::RecordingStopped { log, source, .. } => StoreError::write(&log, source.into()),
        kind => StoreError { kind, ..error },
    }
}

/// Returns the error of a recording that cannot continue. If the system refuses to write, the error says how to save the
/// data so far.
fn stopped(unfinished: &Path, path: &Path, source: WriteError) -> StoreError {
    let error = StoreError::write(unfinished, source);
    let kind = match error.kind {
        StoreErrorKind::DiskFull => StoreErrorKind::RecordingFull { unfinished: unfinished.into(), log: path.into() },
        StoreErrorKind::Unwritable(WriteError::Io(source)) => {
            StoreErrorKind::RecordingStopped { source, unfinished: unfinished.into(), log: path.into() }
        }
        kind => kind,
    };
    StoreError { kind, ..error }
}
