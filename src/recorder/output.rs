//! Where a recorder's records go: a file, or anything that takes bytes.

use std::io::Write;

use super::FinishError;
use crate::log::BackgroundLogWriter;
use crate::record::{OwnRow, Record};
use crate::store::Recording;
use crate::units::Micros;

/// Takes records in the order of their times.
pub(super) trait Output: Send {
    fn record(&mut self, record: &Record) -> Result<(), FinishError>;
    /// Takes a row of the team's own, with the record that it belongs to.
    fn row(&mut self, at: Micros, row: &OwnRow, of: Option<&Record>) -> Result<(), FinishError>;
    /// Writes what has come so far.
    fn flush(&mut self) -> Result<(), FinishError>;
    fn dropped_chunks(&self) -> u64;
    fn finish(self: Box<Self>) -> Result<(), FinishError>;
}

impl Output for Recording {
    fn record(&mut self, record: &Record) -> Result<(), FinishError> {
        Ok(self.push(record)?)
    }

    fn row(&mut self, at: Micros, row: &OwnRow, of: Option<&Record>) -> Result<(), FinishError> {
        Ok(self.push_row(at, row, of)?)
    }

    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(Recording::flush(self)?)
    }

    fn dropped_chunks(&self) -> u64 {
        Recording::dropped_chunks(self)
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        Ok(Recording::finish(*self)?)
    }
}

impl<W: Write + Send + 'static> Output for BackgroundLogWriter<W> {
    fn record(&mut self, record: &Record) -> Result<(), FinishError> {
        Ok(self.push(record)?)
    }

    fn row(&mut self, at: Micros, row: &OwnRow, of: Option<&Record>) -> Result<(), FinishError> {
        Ok(self.push_row(at, row, of)?)
    }

    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(BackgroundLogWriter::flush(self)?)
    }

    fn dropped_chunks(&self) -> u64 {
        BackgroundLogWriter::dropped_chunks(self)
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        BackgroundLogWriter::finish(*self)?;
        Ok(())
    }
}
