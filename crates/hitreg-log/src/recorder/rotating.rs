//! A recording as a series of files, each a complete log, for servers that run for weeks.

use std::path::{Path, PathBuf};

use super::FinishError;
use super::cut::{FlightCut, PartStart};
use super::output::RecordOutput;
use crate::log::{self, QueuePolicy, WriteError};
use crate::record::{EventTime, Record, SessionHeader, Texts};
use crate::store::{FileType, Recording, RecordingClaim, Targets};
use crate::units::Micros;

/// Limits of one file. The recorder starts a new file after the first tick that reaches either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The longest session time in one file.
    pub after: Micros,
    /// The size at which a file is full, in bytes.
    pub bytes: u64,
}

impl Default for Rotation {
    /// One hour or 1 GiB.
    fn default() -> Rotation {
        Rotation { after: Micros::from_s(3600), bytes: 1 << 30 }
    }
}

pub(super) struct RotatingFiles {
    path: PathBuf,
    header: SessionHeader,
    how: (log::WriterOptions, QueuePolicy),
    rotation: Rotation,
    cut: FlightCut,
    /// `None` only while the recorder replaces one file by the next.
    file: Option<Recording>,
    number: u32,
    texts: Texts,
    /// Time of the first record in this file.
    begun: Option<Micros>,
    is_full: bool,
    /// Number of chunks dropped in the earlier files.
    dropped: u64,
}

impl RotatingFiles {
    /// Starts the first file, numbered after the existing ones.
    pub(super) fn begin(
        path: PathBuf,
        header: SessionHeader,
        cut: FlightCut,
        rotation: Rotation,
        how: (log::WriterOptions, QueuePolicy),
    ) -> Result<RotatingFiles, FinishError> {
        let number = Recording::last_number(&path)? + 1;
        let file = Some(begin(&path, number, &PartStart::default(), &header, how)?);
        let (texts, begun, is_full, dropped) = (Texts::default(), None, false, 0);
        Ok(RotatingFiles { path, header, how, rotation, cut, file, number, texts, begun, is_full, dropped })
    }

    /// Finishes the current file and starts the next one.
    fn start_next(&mut self) -> Result<(), FinishError> {
        if let Some(file) = self.file.take() {
            self.dropped += file.dropped_chunks();
            file.finish()?;
        }
        self.number += 1;
        let beginning = self.cut.beginning();
        let mut file = begin(&self.path, self.number, &beginning, &self.header, self.how)?;
        RecordOutput::texts(&mut file, &self.texts);
        beginning.records.iter().try_for_each(|record| file.push(record))?;
        (self.file, self.begun, self.is_full) = (Some(file), None, false);
        Ok(())
    }

    fn file(&mut self) -> Result<&mut Recording, FinishError> {
        Ok(self.file.as_mut().ok_or(WriteError::Abandoned)?)
    }
}

fn begin(
    path: &Path,
    number: u32,
    beginning: &PartStart,
    header: &SessionHeader,
    (chunks, when_full): (log::WriterOptions, QueuePolicy),
) -> Result<Recording, FinishError> {
    let target = Targets::new([], false).file(&Recording::numbered(path, number), FileType::Log)?;
    Ok(RecordingClaim::new(&target)?.begin(&beginning.header(header, number), chunks, when_full)?)
}

impl RecordOutput for RotatingFiles {
    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        if self.is_full && self.cut.may_split_before(record) {
            self.start_next()?;
        }
        if let EventTime::At(at) = record.when() {
            let begun = *self.begun.get_or_insert(at);
            self.is_full |= at - begun >= self.rotation.after;
        }
        self.cut.update(record);
        Ok(self.file()?.push(record)?)
    }

    fn texts(&mut self, texts: &Texts) {
        self.texts.clone_from(texts);
        if let Some(file) = &mut self.file {
            RecordOutput::texts(file, texts);
        }
    }

    fn flush(&mut self) -> Result<(), FinishError> {
        let most = self.rotation.bytes;
        let file = self.file()?;
        file.flush()?;
        self.is_full |= file.written_bytes()? >= most;
        Ok(())
    }

    fn dropped_chunks(&self) -> u64 {
        self.dropped + self.file.as_ref().map_or(0, Recording::dropped_chunks)
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        self.file.map_or(Ok(()), |file| Ok(file.finish()?))
    }
}
