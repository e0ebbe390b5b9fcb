//! Destinations of a recorder's records: a file, any writer, memory, or a trace.

use std::io::Write;

use super::FinishError;
use super::flight::FlightRecording;
use crate::log::BackgroundLogWriter;
use crate::record::{Record, Texts};
use crate::store::Recording;

/// A destination that receives records in time order.
pub(super) trait RecordOutput: Send {
    fn push(&mut self, record: &Record) -> Result<(), FinishError>;

    /// Receives the texts of the next records.
    fn texts(&mut self, texts: &Texts);

    /// Writes everything received so far.
    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(())
    }

    fn dropped_chunks(&self) -> u64 {
        0
    }

    /// Returns the records that a flight recorder holds in memory; `None` for outputs that write at once.
    fn kept(&self) -> Option<FlightRecording> {
        None
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError>;
}

impl RecordOutput for Recording {
    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        Ok(Recording::push(self, record)?)
    }

    fn texts(&mut self, texts: &Texts) {
        self.set_texts(texts);
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

impl<W: Write + Send + 'static> RecordOutput for BackgroundLogWriter<W> {
    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        Ok(BackgroundLogWriter::push(self, record)?)
    }

    fn texts(&mut self, texts: &Texts) {
        self.set_texts(texts);
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
