//! Writes a session that comes in stretches which overlap in time, laid out as [`write_session`](super::write_session) lays out a
//! whole one.

use std::io::Write;

use super::{Options, check, write_end, write_part};
use crate::log::container::ChunkSink;
use crate::log::error::WriteError;
use crate::log::header;
use crate::log::timeline::Timeline;
use crate::record::{Header, Stretch, UnknownRecords};
use crate::units::{Micros, Tick};

/// Writes a session of which stretches come from several sources, each in the order of its lists.
///
/// Whoever adds them says up to which time all has come. What is before that is written, and forgotten: the file is the one that
/// [`write_session`](super::write_session) makes of all of them together.
pub struct StretchWriter<W> {
    header: Header,
    /// What has been added and does not stand in a chunk yet.
    held: Stretch,
    timeline: Timeline,
    sink: ChunkSink<W>,
}

impl<W: Write> StretchWriter<W> {
    /// Begins a log: writes its header. `unknown` has, without rows, the kinds of [`Session::unknown`](crate::record::Session::unknown)
    /// that will come, in their order.
    ///
    /// # Errors
    /// When that cannot be written, or does not fit into a chunk.
    pub fn new(
        out: W,
        header: &Header,
        unknown: Vec<UnknownRecords>,
        options: Options,
    ) -> Result<StretchWriter<W>, WriteError> {
        let mut sink = ChunkSink::new(out, options.level)?;
        sink.header(&header::encode_log(header)?, options.header_level)?;
        let held = Stretch { unknown, ..Stretch::of(header) };
        let timeline = Timeline::growing(&held, options);
        Ok(StretchWriter { header: header.clone(), held, timeline, sink })
    }

    /// Adds what comes next of one of the sources. Ticks come in their order, and no state or execution of one that has been left
    /// out.
    ///
    /// # Errors
    /// When it does not fit the header.
    pub fn add(&mut self, stretch: Stretch) -> Result<(), WriteError> {
        check(&stretch, &self.header)?;
        let ticks: Vec<(Tick, Micros)> = stretch.ticks.iter().map(|tick| (tick.tick, tick.at)).collect();
        self.held.append(stretch);
        self.held.put_in_order_of(&self.header.unknown);
        self.timeline.grown(&self.held, &self.header.unknown, &ticks);
        Ok(())
    }

    /// Nothing is added any more that is before this time: whatever of it fills chunks is written.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn write_until(&mut self, until: Micros) -> Result<(), WriteError> {
        if self.write(Some(until))? {
            self.timeline.forget(&mut self.held, until);
        }
        Ok(())
    }

    /// Whether there was anything to write.
    fn write(&mut self, until: Option<Micros>) -> Result<bool, WriteError> {
        let mut written = false;
        while let Some(part) = self.timeline.next(&self.held, &self.header.unknown, until)? {
            write_part(&mut self.sink, &part, &self.header)?;
            written = true;
        }
        Ok(written)
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When they could not be written: then the log is torn.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.timeline.grown_up(&self.held, &self.header.unknown);
        self.write(None)?;
        if let Some(part) = self.timeline.last(&self.held) {
            write_part(&mut self.sink, &part, &self.header)?;
        }
        write_end(self.sink)
    }

    /// What it holds in memory, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes()
    }
}
