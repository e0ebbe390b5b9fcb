//! Writes a live session to a log while it runs. The log is complete, however the session ends.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use super::figures::bytes;
use super::progress::Progress;
use super::trouble::CommandError;
use crate::live::{LiveSink, SessionRates};
use crate::log::{QueuePolicy, WriterOptions};
use crate::record::{Record, SessionHeader};
use crate::store::{Recording, RecordingClaim, StoreError, Target};
use crate::units::Micros;

/// Writes records as they arrive, and keeps the first error until the end.
pub(super) struct LogSink {
    target: Target,
    /// Reserves the log's path until the session's header is known.
    claim: Option<RecordingClaim>,
    recording: Option<Recording>,
    error: Option<StoreError>,
    /// The times of the first and the last tick.
    ticks: Option<(Micros, Micros)>,
    /// The times of the first and the last client frame.
    frames: Option<(Micros, Micros)>,
    progress: Progress,
}

impl LogSink {
    /// Prepares a log at `target` and reserves its path. Writing starts with the session. `length` is the expected
    /// duration, for the progress bar.
    pub(super) fn new(target: Target, what: &str, length: Micros) -> Result<LogSink, StoreError> {
        Ok(LogSink {
            claim: Some(RecordingClaim::new(&target)?),
            target,
            recording: None,
            error: None,
            ticks: None,
            frames: None,
            progress: Progress::of_session(what, length),
        })
    }

    fn note(&mut self, done: Result<(), StoreError>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Completes the log and returns its first and last time. Deletes the log if the session failed before it began.
    pub(super) fn finish(self, went_well: bool) -> Result<Option<(Micros, Micros)>, CommandError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        // A client's log has no ticks.
        let span = self.ticks.or(self.frames);
        let Some(recording) = self.recording else { return Ok(span) };
        if span.is_none() && !went_well {
            recording.abandon()?;
        } else {
            recording.finish()?;
        }
        if !went_well && span.is_some() {
            use std::io::Write;
            // The caller reports the error; this note says that the recording so far is kept.
            let _ = writeln!(
                anstream::stderr(),
                "note: the recording up to the error is in {}",
                self.target.path().display()
            );
        }
        Ok(span)
    }
}

impl LiveSink for LogSink {
    fn begin(&mut self, header: &SessionHeader) -> ControlFlow<()> {
        let claimed = self.claim.take().map_or_else(|| RecordingClaim::new(&self.target), Ok);
        let begun = claimed.and_then(|claim| claim.begin(header, WriterOptions::live(), QueuePolicy::Wait));
        let begun = begun.map(|recording| self.recording = Some(recording));
        self.note(begun)
    }

    fn listening(&mut self, address: SocketAddr) {
        self.progress.say(&format!("listening at {address}"));
    }

    fn expecting(&mut self, length: Micros) {
        self.progress.set_length(length);
    }

    fn record(&mut self, record: &Record) -> ControlFlow<()> {
        let (span, at) = match record {
            Record::Tick(tick) => (&mut self.ticks, Some(tick.at)),
            Record::Frame(_, frame) => (&mut self.frames, Some(frame.at)),
            _ => (&mut self.frames, None),
        };
        if let Some(at) = at {
            let first = span.map_or(at, |(first, _)| first);
            *span = Some((first, at));
        }
        let pushed = self.recording.as_mut().map_or(Ok(()), |recording| recording.push(record));
        self.note(pushed)
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        let flushed = self.recording.as_mut().map_or(Ok(()), Recording::flush);
        self.note(flushed)
    }

    fn show(&mut self, rates: &SessionRates) {
        let Some(at) = rates.at else {
            let message = match rates.places {
                0 => "no answer yet".to_owned(),
                places => format!("waiting: {} of {places} players are ready", rates.ready),
            };
            return self.progress.reached_with(Micros::ZERO, message);
        };
        let rate = bytes(rates.bytes_per_s as u64);
        // A client records no ticks, and a server without clients no usercmds.
        let turns = match rates.ticks_per_s {
            ticks if ticks > 0.0 => format!("{ticks:.0} ticks/s"),
            _ => format!("{:.0} usercmds/s", rates.usercmds_per_s),
        };
        let message = format!("{turns}, {:.0} datagrams/s, {rate}/s", rates.datagrams_per_s);
        self.progress.reached_with(at, message);
    }
}
