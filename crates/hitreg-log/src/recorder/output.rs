//! Destinations of a recorder's records: a file, any writer, memory, or a trace.

use std::io::Write;

use super::FinishError;
use super::flight::FlightRecording;
use crate::log::BackgroundLogWriter;
use crate::record::{CustomRow, EventTime, Record, Texts};
use crate::store::Recording;
use crate::units::Micros;

/// One item in an output's input: a record, or a row of a custom kind.
#[derive(Clone, Debug)]
pub(super) enum RecorderInput {
    Record(Record),
    /// A row of a custom kind at a time.
    Row(Micros, CustomRow),
}

impl RecorderInput {
    pub(super) fn when(&self) -> EventTime {
        match self {
            RecorderInput::Record(record) => record.when(),
            RecorderInput::Row(at, _) => EventTime::At(*at),
        }
    }
}

/// A destination that receives items in time order.
pub(super) trait RecordOutput: Send {
    fn told(&mut self, told: &RecorderInput) -> Result<(), FinishError>;

    /// Receives the texts of the next items.
    fn texts(&mut self, texts: &Texts);

    /// Writes everything received so far.
    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(())
    }

    fn dropped_chunks(&self) -> u64 {
        0
    }

    /// Returns the items that a flight recorder holds in memory; `None` for outputs that write at once.
    fn kept(&self) -> Option<FlightRecording> {
        None
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError>;
}

impl RecordOutput for Recording {
    fn told(&mut self, told: &RecorderInput) -> Result<(), FinishError> {
        match told {
            RecorderInput::Record(record) => self.push(record)?,
            RecorderInput::Row(at, row) => self.push_row(*at, row)?,
        }
        Ok(())
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
    fn told(&mut self, told: &RecorderInput) -> Result<(), FinishError> {
        match told {
            RecorderInput::Record(record) => self.push(record)?,
            RecorderInput::Row(at, row) => self.push_row(*at, row)?,
        }
        Ok(())
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
