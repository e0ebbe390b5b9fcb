//! Replays of log files. A first pass surveys the log; a second pass feeds its replay, chunk by chunk in constant
//! memory. The few logs for which that is impossible are read as one chunk.

mod keyframes;

pub(crate) use keyframes::{KeyframedRun, Leg, part_of_correction};

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::build::{BuildRequest, OneSidedLog, UntestableBuild};
use crate::verify::LogFacts;
use crate::{BuildOutcome, Engine, EngineError, HashingReader, LogFile, Playable};
use hitreg_analysis::diff::DiffError;
use hitreg_log::log::{KeyframeQuery, LogError, LogReader, TraceLayout, WriterOptions, write_trace_meanwhile};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Session, SessionChunk, SessionHeader};
use hitreg_log::recorded::recorded_network;
use hitreg_log::store::{self, InputFile, Target};
use hitreg_log::trace::schema::TableSet;
use hitreg_log::trace::{Digest, Table, Trace, TraceHeader, TraceReadError};
use hitreg_log::units::Micros;
use hitreg_netcode::replay::{
    LogSurvey, Part, ReorderWindow, ReplayAttempt, ReplayError, ReplayFindings, ReplayOptions, ReplaySource,
    ReplayStart, other_keyframe_version,
};
use hitreg_netcode::score::{DrawingScoreError, ModeScore};
use hitreg_netcode::settings::Settings;
use keyframes::KeyframeRef;

/// The limit for open-loop streaming, in unpacked bytes over all passes. Open-loop streaming reads the log once per
/// player. A log above this limit is loaded into memory instead.
const PASSES_BYTES_MAX: u64 = 4 << 30;
/// A log that needs at most this many bytes of memory, together with its trace, is loaded as a whole. The trace of a
/// part that needs no more stays in memory.
const SHORT_LOG_BYTES: usize = 16 << 20;

/// A log after its survey pass.
#[derive(Debug)]
pub struct SurveyedLog {
    /// The file.
    pub path: PathBuf,
    /// The header of the log.
    pub header: SessionHeader,
    /// The result of the survey pass.
    pub survey: LogSurvey,
    /// The digest of the file, for trace headers; `None` if the file was not read to its end.
    pub digest: Option<Digest>,
    /// The memory that all records need, in bytes.
    pub(crate) session_bytes: usize,
    /// The keyframes in the log that this build reads.
    pub(crate) keyframes: Vec<KeyframeRef>,
    /// The keyframe from which the replay starts; `None` for the beginning of the log.
    start: Option<ReplayStart>,
    /// The most memory for the log and its rows as a whole.
    pub(crate) memory: MemoryLimit,
}

impl Engine<'_> {
    /// Surveys a complete log.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a log.
    pub fn survey(&self, path: &Path) -> Result<SurveyedLog, EngineError> {
        let log = SurveyedLog::of(self.games.memory(), path)?;
        (self.on_read)(path, &log.header);
        Ok(log)
    }
}

impl SurveyedLog {
    fn of(memory: MemoryLimit, path: &Path) -> Result<SurveyedLog, EngineError> {
        let fail = |source| EngineError::content(path, source);
        let mut read = HashingReader::new(store::open(path)?);
        let mut reader = LogReader::new(&mut read).map_err(fail)?;
        let header = reader.header().clone();
        let (mut survey, mut keyframes, mut session_bytes) = (LogSurvey::new(&header), Vec::new(), 0_usize);
        loop {
            let mut keep = |keyframe| {
                if other_keyframe_version(&keyframe).is_none() {
                    keyframes.push(KeyframeRef::of(&keyframe));
                }
            };
            let chunks = reader.next_chunks(&mut keep).map_err(fail)?;
            if chunks.is_empty() {
                break;
            }
            for mut chunk in chunks {
                session_bytes = session_bytes.saturating_add(chunk.bytes());
                survey.add(&header, &mut chunk);
            }
        }
        survey.end();
        drop(reader);
        let digest = Some(read.digest());
        Ok(SurveyedLog { path: path.to_owned(), header, survey, digest, session_bytes, keyframes, start: None, memory })
    }

    fn source(&self) -> ReplaySource<'_> {
        let (header, survey, start) = (&self.header, &self.survey, self.start.as_ref());
        ReplaySource { header, survey, start, keyframes: None }
    }

    /// The number of corrections of each player before the replay starts.
    pub(crate) fn corrections_before(&self) -> Vec<u32> {
        let none = || vec![0; self.header.players.len()];
        self.start.as_ref().map_or_else(none, |start| start.corrections.clone())
    }

    /// Whether the trace of the log, or of a part by its share of the time, needs little enough memory to keep it there.
    /// A whole log also counts with its own records.
    pub(crate) fn is_short(&self, part: Option<Part>) -> bool {
        let trace_bytes = self.survey.trace_bytes(TableSet::ALL);
        let is_short_part = |part: Part| {
            let length = |Part { from, to }: Part| i128::from(to.0.saturating_sub(from.0));
            let [part, whole] = [part, Part::WHOLE].map(|part| length(part.within(self.survey.played())));
            trace_bytes as i128 * part / whole.max(1) <= SHORT_LOG_BYTES as i128
        };
        self.session_bytes.saturating_add(trace_bytes) <= SHORT_LOG_BYTES || part.is_some_and(is_short_part)
    }

    /// Whether the log can be streamed. A log that cannot be streamed must be loaded as a whole.
    pub fn streams(&self, game: &dyn Playable, options: &ReplayOptions) -> bool {
        self.streams_closed(options) || self.streams_clients(game, options)
    }

    /// Whether a closed-loop replay of the log can be streamed.
    pub fn streams_closed(&self, options: &ReplayOptions) -> bool {
        self.source().streams(options)
    }

    /// Whether the log is replayed open loop, and that replay can be streamed.
    fn streams_clients(&self, game: &dyn Playable, options: &ReplayOptions) -> bool {
        let is_soon_read = self.survey.pass_bytes() <= PASSES_BYTES_MAX;
        is_soon_read && !game.judges_again() && self.source().streams_clients(options)
    }

    /// Whether the start of this replay supports these options. A keyframe holds state under the log's own settings
    /// only, without rollback checks, and with datagram sizes only where its own replay had them.
    pub fn starts(&self, options: &ReplayOptions) -> bool {
        let of_its_own = options.settings.is_none() && options.rollback_every.is_none();
        self.start.as_ref().is_none_or(|start| of_its_own && (start.has_sizes() || !options.sizes))
    }

    /// Replays the log while reading it, or as one chunk if it [does not stream](Self::streams).
    ///
    /// Without [`ReplayAttempt::encodes`], the result is `None` if datagrams may have affected the outcome. The caller must
    /// then discard everything that the sinks received.
    ///
    /// # Errors
    /// Fails if the log cannot be read again, or if this build cannot replay it.
    pub fn replay_once(
        &self,
        game: &dyn Playable,
        attempt: ReplayAttempt<'_>,
        sinks: ReplaySinks<'_>,
    ) -> Result<Option<ReplayFindings>, EngineError> {
        // A keyframe of a replay without datagrams holds no state of theirs.
        if attempt.encodes && self.start.as_ref().is_some_and(|start| !start.has_sizes()) {
            let whole = SurveyedLog::of(self.memory, &self.path)?;
            return whole.run(game, &whole.source(), attempt, sinks);
        }
        self.run(game, &self.source(), attempt, sinks)
    }

    /// Replays the log as [`SurveyedLog::replay_once`] does. `to` gets the header and the rows.
    ///
    /// # Errors
    /// Fails as [`SurveyedLog::replay_once`] does.
    pub fn replay_rows(
        &self,
        game: &dyn Playable,
        attempt: ReplayAttempt<'_>,
        to: &mut dyn FnMut(&TraceHeader, Table),
    ) -> Result<Option<ReplayFindings>, EngineError> {
        self.replay_once(game, attempt, ReplaySinks { seen: &mut |_| {}, to, progress: &mut |_| {} })
    }

    fn run(
        &self,
        game: &dyn Playable,
        source: &ReplaySource<'_>,
        attempt: ReplayAttempt<'_>,
        sinks: ReplaySinks<'_>,
    ) -> Result<Option<ReplayFindings>, EngineError> {
        if source.start.is_none() && self.streams_clients(game, attempt.options) {
            return self.run_clients(game, source, attempt.options, sinks).map(Some);
        }
        if source.start.is_none() && !self.streams_closed(attempt.options) {
            return self.run_whole(game, attempt.options, sinks).map(Some);
        }
        let ReplaySinks { seen, to, progress } = sinks;
        let mut reader = match source.start {
            None => self.reader()?,
            Some(start) => {
                let found = store::open_indexed_log(&self.path)?.seek(KeyframeQuery::At(start.at));
                let found = found.map_err(|source| self.unreadable(source))?;
                found.ok_or_else(|| self.not_replayed(ReplayError::NoKeyframe))?.reader
            }
        };
        let mut broken: Option<LogError> = None;
        let mut chunks = std::iter::from_fn(|| match reader.next_chunk() {
            Ok(chunk) => {
                chunk.iter().for_each(&mut *seen);
                chunk
            }
            Err(error) => {
                broken = Some(error);
                None
            }
        });
        let mut to = |header: &TraceHeader, table| to(&self.with_digest(header), table);
        let ran = game.stream(source, &mut chunks, attempt, &mut to, progress);
        broken.map_or_else(|| ran.map_err(|source| self.not_replayed(source)), |error| Err(self.unreadable(error)))
    }

    /// Replays the log as one chunk, which `seen` gets.
    fn run_whole(
        &self,
        game: &dyn Playable,
        options: &ReplayOptions,
        ReplaySinks { seen, to, progress }: ReplaySinks<'_>,
    ) -> Result<ReplayFindings, EngineError> {
        let session = self.session()?;
        let options = ReplayOptions { memory: self.memory, ..options.clone() };
        let replayed = game.replay(&session, &options, progress).map_err(|source| self.not_replayed(source))?;
        seen(&session.without_header());
        let header = self.with_digest(&replayed.trace.header);
        replayed.trace.tables.into_iter().for_each(|table| to(&header, table));
        Ok(replayed.findings)
    }

    /// The request to another build to replay the log.
    ///
    /// # Errors
    /// Fails if the build cannot open the log, because it is not a regular file.
    pub(crate) fn request(&self) -> Result<BuildRequest<'_>, EngineError> {
        store::check_regular(&self.path)?;
        let log_digest = match self.digest {
            Some(digest) => digest,
            None => LogFile::read(self.memory, &self.path)?.digest,
        };
        let side = OneSidedLog::of_header(&self.header, self.survey.usercmds() > 0);
        Ok(BuildRequest { log: &self.path, log_digest, options: &[], side })
    }

    /// The error of a replay of the log by this build.
    pub(crate) fn not_replayed(&self, source: ReplayError) -> EngineError {
        EngineError::Replay { path: self.path.clone(), source }
    }

    /// The error of a log that cannot be read again.
    fn unreadable(&self, source: LogError) -> EngineError {
        EngineError::content(&self.path, source)
    }

    /// Whether the log has a server to run. Without one, only its clients run, in open loop.
    pub fn has_server(&self) -> bool {
        self.source().has_server()
    }

    /// Returns the packets and snapshots of the log's own records, see [`recorded_network`].
    ///
    /// # Errors
    /// Fails if the log cannot be read again.
    pub fn recorded_network(&self) -> Result<Vec<Table>, EngineError> {
        let mut reader = self.reader()?;
        let mut session = Session::new(self.header.clone());
        while let Some(chunk) = reader.next_chunk().map_err(|source| self.unreadable(source))? {
            for (kept, mut records) in session.players.iter_mut().zip(chunk.players) {
                kept.sent.append(&mut records.sent);
                kept.reached.append(&mut records.reached);
                kept.snapshots.append(&mut records.snapshots);
                kept.received.append(&mut records.received);
            }
        }
        Ok(recorded_network(&session))
    }

    /// Reads the log into memory.
    pub(crate) fn session(&self) -> Result<Session, EngineError> {
        Ok(LogFile::read(self.memory, &self.path)?.session)
    }

    /// Returns the facts against which replays of the log are judged.
    ///
    /// # Errors
    /// Fails if the log has a missing part and cannot be read again.
    pub fn facts(&self) -> Result<LogFacts, EngineError> {
        let mut ticks_before = 0;
        if let Some(gap) = self.survey.first_gap() {
            let mut reader = self.reader()?;
            while let Some(chunk) = reader.next_chunk().map_err(|source| self.unreadable(source))? {
                ticks_before += chunk.ticks.iter().filter(|tick| tick.at <= gap.from).count() as u64;
            }
        }
        Ok(LogFacts::of_log(&self.header, &self.survey, ticks_before))
    }

    /// Replays only the clients. The log is read once per client.
    fn run_clients(
        &self,
        game: &dyn Playable,
        source: &ReplaySource<'_>,
        options: &ReplayOptions,
        ReplaySinks { seen, to, progress }: ReplaySinks<'_>,
    ) -> Result<ReplayFindings, EngineError> {
        let (mut broken, mut is_first) = (None, true);
        let mut pass = |take: &mut dyn FnMut(SessionChunk) -> Result<(), ReplayError>| {
            // `seen` gets every chunk, during the first pass only.
            match std::mem::take(&mut is_first) {
                true => self.pass_chunks(&mut broken, LogReader::next_chunk, &mut |chunk| {
                    seen(&chunk);
                    take(chunk)
                }),
                false => self.pass_chunks(&mut broken, LogReader::next_chunk_of_clients, take),
            }
        };
        let mut to = |header: &TraceHeader, table| to(&self.with_digest(header), table);
        let ran = game.stream_clients(source, &mut pass, options, &mut to, progress);
        broken.map_or_else(|| ran.map_err(|source| self.not_replayed(source)), Err)
    }

    /// Scores each interpolation mode on one part of the session.
    ///
    /// # Errors
    /// Fails if the log cannot be read again, or if a recorded state does not belong to this game.
    pub fn score(&self, game: &dyn Playable, settings: &Settings, part: Part) -> Result<Vec<ModeScore>, EngineError> {
        let unscored = |source| EngineError::unsuitable(&self.path, source);
        let Some(reorder) = self.survey.reorder_window() else {
            let mut whole = self.session()?.without_header();
            let mut pass = |take: &mut dyn FnMut(SessionChunk) -> _| take(std::mem::take(&mut whole));
            return game.score(&self.header, ReorderWindow::default(), &mut pass, settings, part).map_err(unscored);
        };
        let mut broken = None;
        let mut pass = |take: &mut dyn FnMut(SessionChunk) -> Result<(), DrawingScoreError>| {
            self.pass_chunks(&mut broken, LogReader::next_chunk_of_clients, take)
        };
        let scores = game.score(&self.header, reorder, &mut pass, settings, part);
        broken.map_or_else(|| scores.map_err(unscored), Err)
    }

    /// Passes on each chunk of the log. A read error goes into `broken`; the results of the pass are then invalid.
    fn pass_chunks<E>(
        &self,
        broken: &mut Option<EngineError>,
        next: fn(&mut LogSource) -> Result<Option<SessionChunk>, LogError>,
        take: &mut dyn FnMut(SessionChunk) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = match self.reader() {
            Ok(reader) if broken.is_none() => reader,
            Ok(_) => return Ok(()),
            Err(error) => {
                *broken = Some(error);
                return Ok(());
            }
        };
        loop {
            match next(&mut reader) {
                Ok(Some(chunk)) => take(chunk)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    *broken = Some(self.unreadable(error));
                    return Ok(());
                }
            }
        }
    }

    fn reader(&self) -> Result<LogSource, EngineError> {
        LogReader::new(store::open(&self.path)?).map_err(|source| self.unreadable(source))
    }

    /// Adds the log's digest to the header of its trace.
    fn with_digest(&self, header: &TraceHeader) -> TraceHeader {
        let log_digest = self.digest.map_or(String::new(), |digest| digest.to_string());
        TraceHeader { log_digest, ..header.clone() }
    }

    /// Records the log's input and links again with this program, under its own settings or others.
    ///
    /// # Errors
    /// Fails if the log cannot be read again, or if the recording cannot be written.
    pub(crate) fn rerecord(&self, engine: &Engine<'_>, settings: Option<&Settings>, to: &Target) -> BuildOutcome<()> {
        let game = match engine.games.of_header(&self.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(UntestableBuild::because_of(unknown))),
        };
        match game.rerecord(engine.games.memory(), &self.session()?, settings) {
            Ok(again) => Ok(Ok(store::save_log(to, &again, WriterOptions::whole())?)),
            Err(error) => Ok(Err(UntestableBuild::not_replayed(&error))),
        }
    }
}

/// What a replay passes on while it runs.
pub struct ReplaySinks<'s> {
    /// Gets each chunk before the replay uses it.
    pub seen: &'s mut dyn FnMut(&SessionChunk),
    /// Gets the header and the rows.
    pub to: &'s mut dyn FnMut(&TraceHeader, Table),
    /// Gets the session time reached.
    pub progress: &'s mut dyn FnMut(Micros),
}

hitreg_log::partial_debug!(ReplaySinks<'_> {});

type LogSource = LogReader<BufReader<InputFile>>;

/// The rows of one replay, collected in memory.
#[derive(Debug, Default)]
pub struct CollectedRows {
    trace: Trace,
    /// Why rows do not fit the rows before them.
    misfit: Option<TraceReadError>,
}

impl CollectedRows {
    /// Adds rows, with the header of their trace.
    pub fn add(&mut self, header: &TraceHeader, rows: Table) {
        if self.misfit.is_none() {
            self.trace.header.clone_from(header);
            self.misfit = self.trace.append(rows).err();
        }
    }

    /// Returns the trace of all rows.
    ///
    /// # Errors
    /// Fails if rows of a table had other columns than the rows before them.
    pub fn finish(self) -> Result<Trace, EngineError> {
        self.misfit.map_or(Ok(self.trace), |misfit| Err(DiffError::Unread(misfit).into()))
    }
}

/// Collects the rows that `attempt` makes in memory, as [`retry_with_encoding`] runs it.
///
/// # Errors
/// Fails as `attempt` does, and if its rows do not fit each other.
pub(crate) fn collect_replayed<T>(
    mut attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
) -> Result<Trace, EngineError> {
    retry_with_encoding(&AtomicBool::new(false), |encodes| {
        let mut rows = CollectedRows::default();
        let ran = attempt(encodes, &mut |header, more| rows.add(header, more))?;
        ran.map(|_| rows.finish()).transpose()
    })
}

/// Writes a trace while `attempt` makes it, as [`retry_with_encoding`] runs it.
///
/// # Errors
/// Fails if the trace cannot be written, and as `attempt` does.
pub fn write_replayed<T>(
    target: &Target,
    layout: TraceLayout,
    mut attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
) -> Result<T, EngineError> {
    retry_with_encoding(&AtomicBool::new(false), |encodes| {
        let mut ran = Ok(None);
        let written = store::prepare(target, |out| {
            ran = write_trace_meanwhile(layout, out, |write| attempt(encodes, write))?;
            Ok(())
        })?;
        let ran = ran?;
        if ran.is_some() {
            written.put()?;
        }
        Ok(ran)
    })
}

/// Runs `attempt` without encoding datagrams, and again with encoding if the first result is `None`. `encodes` carries
/// that decision: callers that share it skip the first attempt.
///
/// # Errors
/// Fails as `attempt` does.
pub fn retry_with_encoding<T, E>(
    encodes: &AtomicBool,
    mut attempt: impl FnMut(bool) -> Result<Option<T>, E>,
) -> Result<T, E> {
    loop {
        if let Some(whole) = attempt(encodes.load(Ordering::Relaxed))? {
            return Ok(whole);
        }
        encodes.store(true, Ordering::Relaxed);
    }
}
