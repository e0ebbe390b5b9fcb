//! Writes a session from stretches that overlap in time, with the same layout as
//! [`write_session`](super::write_session).

use std::io::Write;

use super::{WriterOptions, begin, check, write_part, write_rest};
use crate::log::container::ChunkSink;
use crate::log::error::WriteError;
use crate::log::timeline::Timeline;
use crate::record::{SessionHeader, SessionStretch, UnknownRecords};
use crate::units::{Micros, Tick};

/// Writes a session from the stretches of several sources, each in the order of its lists.
///
/// The caller says up to which time all sources have delivered. The writer writes and drops the records before that
/// time. The file is the same as [`write_session`](super::write_session) makes of all stretches together.
pub struct StretchWriter<W> {
    header: SessionHeader,
    /// The added records that are not in a chunk yet.
    held: SessionStretch,
    timeline: Timeline,
    sink: ChunkSink<W>,
}

impl<W: Write> StretchWriter<W> {
    /// Writes the header of a new log. `unknown` holds the kinds of
    /// [`Session::unknown`](crate::record::Session::unknown) that will follow, in their order and without rows.
    ///
    /// # Errors
    /// When writing fails, or the header does not fit into a chunk.
    pub fn new(
        out: W,
        header: &SessionHeader,
        unknown: Vec<UnknownRecords>,
        options: WriterOptions,
    ) -> Result<StretchWriter<W>, WriteError> {
        let sink = begin(out, header, options)?;
        let held = SessionStretch { unknown, ..SessionStretch::of(header) };
        let timeline = Timeline::growing(&held, &header.unknown, options);
        Ok(StretchWriter { header: header.clone(), held, timeline, sink })
    }

    /// Adds the next stretch of a source. Ticks must be in order. A state or execution must not refer to a tick that
    /// was left out.
    ///
    /// # Errors
    /// When it does not fit the header.
    pub fn add(&mut self, stretch: SessionStretch) -> Result<(), WriteError> {
        check(&stretch, &self.header)?;
        let ticks: Vec<(Tick, Micros)> = stretch.ticks.iter().map(|tick| (tick.tick, tick.at)).collect();
        self.held.append(stretch);
        self.held.put_lists_in_order();
        self.timeline.enqueue_added(&self.held, &ticks);
        Ok(())
    }

    /// Writes full chunks of records before `until`. The caller must not add earlier records afterwards.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_until(&mut self, until: Micros) -> Result<(), WriteError> {
        let mut has_written = false;
        while let Some(part) = self.timeline.next(&self.held, Some(until))? {
            write_part(&mut self.sink, &part, &self.header)?;
            has_written = true;
        }
        if has_written {
            self.timeline.forget(&mut self.held, until);
        }
        Ok(())
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When writing fails; the log is then cut off.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.timeline.finish_input(&self.held);
        write_rest(&mut self.sink, &mut self.timeline, &self.held, &self.header)?;
        self.sink.finish()
    }

    /// Returns the memory of the held records, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes()
    }
}
