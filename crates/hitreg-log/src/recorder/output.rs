//! Where a recorder's records go: a file, or anything that takes bytes.

use std::io::Write;

use super::FinishError;
use super::flight::Kept;
use crate::log::BackgroundLogWriter;
use crate::record::{OwnRow, Record, When};
use crate::store::Recording;
use crate::units::Micros;

/// One thing that the recorder was told.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Record(Record),
    /// A row of the team's own, with the record that it belongs to.
    Row(Micros, OwnRow, Option<Record>),
}

impl Told {
    pub(super) fn when(&self) -> When {
        match self {
            Told::Record(record) => record.when(),
            Told::Row(at, ..) => When::At(*at),
        }
    }
}

/// Takes records in the order of their times.
pub(super) trait Output: Send {
    fn told(&mut self, told: &Told) -> Result<(), FinishError>;

    /// Writes what has come so far.
    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(())
    }

    fn dropped_chunks(&self) -> u64 {
        0
    }

    /// All that is kept to be saved when it is asked for; `None` where everything is written as it comes.
    fn kept(&self) -> Option<Kept> {
        None
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError>;
}

impl Output for Recording {
    fn told(&mut self, told: &Told) -> Result<(), FinishError> {
        match told {
            Told::Record(record) => self.push(record)?,
            Told::Row(at, row, of) => self.push_row(*at, row, of.as_ref())?,
        }
        Ok(())
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
    fn told(&mut self, told: &Told) -> Result<(), FinishError> {
        match told {
            Told::Record(record) => self.push(record)?,
            Told::Row(at, row, of) => self.push_row(*at, row, of.as_ref())?,
        }
        Ok(())
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
