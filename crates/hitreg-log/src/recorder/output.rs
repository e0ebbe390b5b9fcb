//! Destinations of a recorder's records: a file, any writer, memory, or a trace.

use std::io::Write;

use super::FinishError;
use super::flight::FlightRecording;
use crate::log::BackgroundLogWriter;
use crate::record::{Record, Texts};
use crate::store::Recording;

/// A destination of records. They come in time order, except those that are older than the reorder window.
pub(super) trait RecordOutput: Send {
    /// Returns whether the output takes records that are older than the reorder window.
    fn takes_late_records(&self) -> bool {
        false
    }

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

/// Implements the trait for writers of logs, which have methods of the same names.
macro_rules! output {
    ($($writer:ty),*) => { $(
        impl RecordOutput for $writer {
            fn push(&mut self, record: &Record) -> Result<(), FinishError> {
                Ok(<$writer>::push(self, record)?)
            }

            fn texts(&mut self, texts: &Texts) {
                self.set_texts(texts);
            }

            fn flush(&mut self) -> Result<(), FinishError> {
                Ok(<$writer>::flush(self)?)
            }

            fn dropped_chunks(&self) -> u64 {
                <$writer>::dropped_chunks(self)
            }

            fn finish(self: Box<Self>) -> Result<(), FinishError> {
                <$writer>::finish(*self)?;
                Ok(())
            }
        }
    )* };
}
output!(Recording, BackgroundLogWriter<Box<dyn Write + Send>>);
