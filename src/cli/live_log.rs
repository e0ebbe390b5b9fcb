//! The log of a session that is played in real time: writes it while the session runs, and reports on it.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::CommandError;
use super::figures::{bytes, count, counted, duration, share};
use super::output::FileSize;
use super::page::Page;
use super::progress::Progress;
use crate::live::{LatenessSummary, LiveReport, LiveSink, Perception, SessionRates, TrafficCounts};
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
    has_records: bool,
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
            has_records: false,
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

    /// Completes the log and returns its first and last time. Deletes the log if the session ended before it began.
    ///
    /// # Errors
    /// When the log cannot be written, or when a signal ended the command before the session began.
    pub(super) fn finish(self, went_well: bool) -> Result<Option<(Micros, Micros)>, CommandError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        // A client's log has no ticks.
        let span = self.ticks.or(self.frames);
        let has_session = if went_well { self.has_records } else { span.is_some() };
        match self.recording {
            Some(recording) if has_session => recording.finish()?,
            recording => {
                recording.map_or(Ok(()), Recording::abandon)?;
                return if went_well { Err(CommandError::Interrupted { resumes: false }) } else { Ok(span) };
            }
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

    fn record(&mut self, record: Record) -> ControlFlow<()> {
        let (span, at) = match &record {
            Record::Tick(tick) => (&mut self.ticks, Some(tick.at)),
            Record::Frame(_, frame) => (&mut self.frames, Some(frame.at)),
            _ => (&mut self.frames, None),
        };
        if let Some(at) = at {
            let first = span.map_or(at, |(first, _)| first);
            *span = Some((first, at));
        }
        self.has_records = true;
        let pushed = self.recording.as_mut().map_or(Ok(()), |recording| recording.push(record));
        self.note(pushed)
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        let flushed = self.recording.as_mut().map_or(Ok(()), Recording::flush);
        self.note(flushed)
    }

    fn show(&mut self, rates: &SessionRates) {
        let Some(at) = rates.at else {
            let message = match rates.slots {
                0 => "no answer yet".to_owned(),
                slots => format!("waiting: {} of {slots} players are ready", rates.ready),
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

/// A completed log, and figures of the session.
#[derive(Serialize)]
pub(super) struct FinishedLog<R = LiveReport> {
    pub(super) duration_us: i64,
    /// Whether Ctrl-C or a signal ended the session.
    pub(super) interrupted: bool,
    pub(super) size_bytes: FileSize,
    #[serde(flatten)]
    pub(super) figures: R,
}

/// A completed log of a session whose server ran here.
#[derive(Serialize)]
pub(super) struct HostedReport<R = LiveReport> {
    path: String,
    game: String,
    map: String,
    players: usize,
    #[serde(flatten)]
    pub(super) kept: FinishedLog<R>,
    /// The number of keyframes in the log; `None` for one side of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keyframes: Option<usize>,
}

impl<R> FinishedLog<R> {
    /// Describes the log at `path`, whose records span the times of `span`.
    pub(super) fn new(path: &Path, span: Option<(Micros, Micros)>, stop: &AtomicBool, figures: R) -> FinishedLog<R> {
        FinishedLog {
            duration_us: span.map_or(0, |(first, last)| (last - first).0),
            interrupted: stop.load(Ordering::Relaxed),
            size_bytes: FileSize::of(path),
            figures,
        }
    }

    /// The duration as text. `how` is the effect of a signal on the session, such as `ended` or `left`.
    pub(super) fn duration(&self, how: &str) -> String {
        let ended = if self.interrupted { format!(", {how} by Ctrl-C or a signal") } else { String::new() };
        format!("{}{ended}", duration(Micros(self.duration_us)))
    }
}

impl FinishedLog {
    /// The traffic as text, such as `15,360 datagrams, 1.20 MB (40.1 kB/s, 78 B each)`.
    pub(super) fn sent(&self, traffic: &TrafficCounts) -> String {
        let seconds = Micros(self.duration_us).as_s_f64().max(0.001);
        let per_s = bytes((traffic.bytes as f64 / seconds) as u64);
        let each = traffic.bytes / traffic.datagrams.max(1);
        format!("{} datagrams, {} ({per_s}/s, {each} B each)", count(traffic.datagrams), bytes(traffic.bytes))
    }

    /// The contents as text, such as `40,000 usercmds in 1.20 MB`.
    pub(super) fn holds(&self) -> String {
        let usercmds = self.figures.clients.as_ref().map_or(0, |clients| clients.usercmds);
        format!("{} usercmds in {}", count(usercmds), self.size_bytes)
    }
}

impl<R> HostedReport<R> {
    pub(super) fn new(path: &Path, header: &SessionHeader, kept: FinishedLog<R>) -> HostedReport<R> {
        HostedReport {
            path: path.display().to_string(),
            game: header.game.clone(),
            map: header.map.clone(),
            players: header.players.len(),
            kept,
            keyframes: None,
        }
    }

    /// Prints the session and its duration, followed by `more` about it.
    pub(super) fn print_session(&self, page: &mut Page, more: &str) {
        page.heading(&self.path);
        page.pair("session", &format!("{} on {}, {}", self.game, self.map, counted(self.players as u64, "player")));
        page.pair("duration", &format!("{}{more}", self.kept.duration("ended")));
    }

    pub(super) fn print_keyframes(&self, page: &mut Page) {
        if let Some(keyframes @ 1..) = self.keyframes {
            page.pair("keyframes", &count(keyframes as u64));
        }
    }
}

impl HostedReport {
    /// Prints the session, its duration, and the punctuality of its ticks.
    pub(super) fn print(&self, page: &mut Page) {
        self.print_session(page, "");
        let Some(live) = &self.kept.figures.server else { return };
        let left_out = match live.ticks_left_out {
            0 => String::new(),
            ticks => format!("; {} skipped, because the machine was too busy", count(ticks)),
        };
        page.pair("ticks", &format!("{}{left_out}", count(live.ticks)));
        if let Some(late) = &live.lateness {
            page.pair("lateness", &lateness(late));
        }
    }
}

/// The share of correctly perceived avatars, such as `98.2 % of 594 were where their players saw them`.
pub(super) fn avatars(perceived: &Perception) -> String {
    let right = share(perceived.right, perceived.compared);
    format!("{right} of {} were where their players saw them", count(perceived.compared))
}

/// The lateness of ticks as text.
fn lateness(late: &LatenessSummary) -> String {
    let ms = |us: u32| f64::from(us) / 1e3;
    let [p50, p95, p99, max] = [late.p50_us, late.p95_us, late.p99_us, late.max_us].map(ms);
    format!("median {p50:.2} ms, 95 % {p95:.2} ms, 99 % {p99:.2} ms, max {max:.2} ms")
}
