//! Logs that are read chunk by chunk, twice: once to look through them, and again as their replay uses them up. However long
//! one is, it takes the same memory.

mod keyframes;
mod legs;

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use keyframes::StandsThere;
pub(in crate::engine) use legs::Leg;

use super::log_file::Digested;
use super::{Engine, EngineError, Playable, games};
use hitreg_log::log::{LogError, LogReader, Sought, find_keyframe, write_trace_meanwhile};
use hitreg_log::record::{Header, Stretch};
use hitreg_log::store::{self, Target, is_standard_stream};
use hitreg_log::trace::schema::TableSet;
use hitreg_log::trace::{Digest, Table, TraceHeader};
use hitreg_log::units::Micros;
use hitreg_netcode::replay::{Options, Ran, ReplayError, Source, Start, Survey};
use hitreg_netcode::score::{ModeScore, ScoreError};
use hitreg_netcode::settings::Settings;

/// A log that is read once for each of its players may unpack so many bytes of empty chunks by that. A log of more players and
/// chunks is read once, as a whole.
const MAX_PASS_BYTES: u64 = 4 << 30;
/// A log that takes up to so many bytes in memory with its trace is read as a whole: that is soon done.
const SHORT_BYTES: usize = 64 << 20;

/// A log that has been looked through.
#[derive(Debug)]
pub struct SurveyedLog {
    path: PathBuf,
    /// Its header.
    pub header: Header,
    /// What it holds.
    pub survey: Survey,
    /// Identifies the very file, in the headers of traces; `None` where not all of it was read.
    pub digest: Option<Digest>,
    /// How many bytes its records take in memory as a whole.
    session_bytes: usize,
    /// The keyframes that stand in it.
    keyframes: Vec<StandsThere>,
    /// The keyframe that it is replayed from; `None` where it is replayed from its beginning.
    start: Option<Start>,
}

/// Why a log was not replayed as it was read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It cannot be read again.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// It is not one that this build can replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Why drawing could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoringError {
    /// It cannot be read again.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// It is not one of this game.
    #[error(transparent)]
    Score(#[from] games::ScoreError),
}

/// Whether a file is one that is looked through before it is replayed, and no pipe.
pub fn can_be_read_twice(path: &Path) -> bool {
    !is_standard_stream(path) && store::check_regular(path).is_ok()
}

impl Engine<'_> {
    /// Looks through a log that must be whole. `None` of what cannot be read twice, such as a pipe.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn survey(&self, path: &Path) -> Result<Option<SurveyedLog>, EngineError> {
        if !can_be_read_twice(path) {
            return Ok(None);
        }
        let log = SurveyedLog::of(path)?;
        (self.read)(path, &log.header);
        Ok(Some(log))
    }
}

impl SurveyedLog {
    fn of(path: &Path) -> Result<SurveyedLog, EngineError> {
        let fail = |source| EngineError::content(path, source);
        let mut read = Digested::new(store::open(path)?);
        let mut reader = LogReader::new(&mut read).map_err(fail)?;
        let header = reader.header().clone();
        let (mut survey, mut keyframes, mut session_bytes) = (Survey::new(&header), Vec::new(), 0_usize);
        loop {
            let chunks =
                reader.next_chunks(&mut |keyframe| keyframes.push(StandsThere::of(&keyframe))).map_err(fail)?;
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
        Ok(SurveyedLog { path: path.to_owned(), header, survey, digest, session_bytes, keyframes, start: None })
    }

    fn source(&self) -> Source<'_> {
        let (header, survey, start) = (&self.header, &self.survey, self.start.as_ref());
        Source { header, survey, start, keyframes: None }
    }

    /// How many bytes its records take in memory as a whole.
    pub fn session_bytes(&self) -> usize {
        self.session_bytes
    }

    /// Whether it takes little enough memory, with its trace, to be read as a whole.
    pub fn is_short(&self) -> bool {
        self.session_bytes.saturating_add(self.survey.trace_bytes(TableSet::ALL)) <= SHORT_BYTES
    }

    /// Whether it can be replayed as it is read; what cannot is replayed as a whole.
    pub fn streams(&self, game: &dyn Playable, options: &Options) -> bool {
        self.streams_closed(options) || self.streams_clients(game, options)
    }

    /// Whether it can be replayed closed loop as it is read.
    pub fn streams_closed(&self, options: &Options) -> bool {
        self.source().streams(options)
    }

    /// Whether it is replayed open loop, and can be as it is read.
    pub(crate) fn streams_clients(&self, game: &dyn Playable, options: &Options) -> bool {
        let is_soon_read = self.survey.pass_bytes() <= MAX_PASS_BYTES;
        is_soon_read && !game.judges_again() && self.source().streams_clients(options)
    }

    /// Whether what it is replayed from says what these options ask for: a keyframe is of the log's own settings.
    pub fn starts(&self, options: &Options) -> bool {
        let of_its_own = options.settings.is_none() && options.rollback_every.is_none() && !options.sizes;
        self.start.is_none() || of_its_own
    }

    /// Replays it as it is read. `seen` gets each chunk before it is used, `to` the header and the rows. `None` where datagrams may
    /// have made a difference, of which `encoded` makes every one: then all that `to` got is void.
    ///
    /// # Errors
    /// When it cannot be read again, or is not one that this build can replay.
    pub fn attempt(
        &self,
        game: &dyn Playable,
        options: (&Options, bool),
        seen: &mut dyn FnMut(&Stretch),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<Ran>, StreamError> {
        // A keyframe says nothing of datagrams.
        if options.1 && self.start.is_some() {
            let whole = SurveyedLog::of(&self.path)?;
            return whole.run(game, &whole.source(), options, seen, to, progress);
        }
        self.run(game, &self.source(), options, seen, to, progress)
    }

    fn run(
        &self,
        game: &dyn Playable,
        source: &Source<'_>,
        options: (&Options, bool),
        seen: &mut dyn FnMut(&Stretch),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<Ran>, StreamError> {
        if source.start.is_none() && self.streams_clients(game, options.0) {
            return self.run_clients(game, source, options.0, seen, to, progress).map(Some);
        }
        let fail = |source| EngineError::content(&self.path, source);
        let mut reader: Box<dyn Stretches> = match source.start {
            None => Box::new(self.reader()?),
            Some(start) => {
                let file = BufReader::new(store::open_file(&self.path).map_err(EngineError::from)?);
                let found = find_keyframe(file, Sought::At(start.at)).map_err(fail)?;
                Box::new(found.ok_or(ReplayError::NoKeyframe)?.reader)
            }
        };
        let mut broken: Option<LogError> = None;
        let mut chunks = std::iter::from_fn(|| match reader.next() {
            Ok(chunk) => {
                chunk.iter().for_each(&mut *seen);
                chunk
            }
            Err(error) => {
                broken = Some(error);
                None
            }
        });
        let mut labelled = |header: &TraceHeader, table| to(&self.labelled(header), table);
        let ran = game.stream(source, &mut chunks, options, &mut labelled, progress);
        match broken {
            Some(error) => Err(fail(error).into()),
            None => Ok(ran?),
        }
    }

    /// Its clients alone: the log is read for each of them.
    fn run_clients(
        &self,
        game: &dyn Playable,
        source: &Source<'_>,
        options: &Options,
        seen: &mut dyn FnMut(&Stretch),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Ran, StreamError> {
        let (mut broken, mut is_first) = (None, true);
        let mut pass = |take: &mut dyn FnMut(Stretch) -> Result<(), ReplayError>| {
            // Who looks at the log besides is told of all of it, once.
            match std::mem::take(&mut is_first) {
                true => self.go_through(&mut broken, LogReader::next_chunk, &mut |chunk| {
                    seen(&chunk);
                    take(chunk)
                }),
                false => self.go_through(&mut broken, LogReader::next_chunk_of_clients, take),
            }
        };
        let mut labelled = |header: &TraceHeader, table| to(&self.labelled(header), table);
        let ran = game.stream_clients(source, &mut pass, options, &mut labelled, progress);
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(ran?),
        }
    }

    /// How well each way of drawing the others does; `None` where that asks for the log as a whole.
    ///
    /// # Errors
    /// When it cannot be read again, or a recorded state is not one of this game.
    pub fn score(&self, game: &dyn Playable, settings: &Settings) -> Result<Option<Vec<ModeScore>>, ScoringError> {
        let mut broken = None;
        let mut pass = |take: &mut dyn FnMut(Stretch) -> Result<(), ScoreError>| {
            self.go_through(&mut broken, LogReader::next_chunk_of_clients, take)
        };
        let scores = game.score_as_read((&self.header, &self.survey), &mut pass, settings);
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(scores?),
        }
    }

    /// Hands on each of its chunks, and says what was wrong where it cannot be read on: then all that comes of it is void.
    fn go_through<E>(
        &self,
        broken: &mut Option<EngineError>,
        next: fn(&mut Reader) -> Result<Option<Stretch>, LogError>,
        take: &mut dyn FnMut(Stretch) -> Result<(), E>,
    ) -> Result<(), E> {
        let fail = |source| EngineError::content(&self.path, source);
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
                    *broken = Some(fail(error));
                    return Ok(());
                }
            }
        }
    }

    fn reader(&self) -> Result<Reader, EngineError> {
        {
            let file: Box<dyn std::io::Read + Send> = Box::new(store::open(&self.path)?);
            LogReader::new(file).map_err(|source| EngineError::content(&self.path, source))
        }
    }

    /// The header of a trace of it.
    fn labelled(&self, header: &TraceHeader) -> TraceHeader {
        let log_digest = self.digest.map_or(String::new(), |digest| digest.to_string());
        TraceHeader { log_digest, ..header.clone() }
    }
}

impl SurveyedLog {
    /// Replays it as it is read, and writes the trace as it is made.
    ///
    /// # Errors
    /// When it cannot be read again or written, or is not one that this build can replay.
    pub fn replay_into(&self, game: &dyn Playable, options: &Options, target: &Target) -> Result<(), StreamError> {
        until_whole(&AtomicBool::new(false), |encoded| {
            let mut ran = Ok(None);
            let written = store::prepare(target, |out| {
                ran = write_trace_meanwhile(out, |write| {
                    self.attempt(game, (options, encoded), &mut |_| {}, write, &mut |_| {})
                })?;
                Ok(())
            });
            let (written, ran) = (written.map_err(EngineError::from)?, ran?);
            if ran.is_some() {
                written.put().map_err(EngineError::from)?;
            }
            Ok(ran.map(|_| ()))
        })
    }
}

type Reader = LogReader<Box<dyn std::io::Read + Send>>;

/// Gives the stretches of a log.
trait Stretches {
    fn next(&mut self) -> Result<Option<Stretch>, LogError>;
}

impl<R: std::io::Read> Stretches for LogReader<R> {
    fn next(&mut self) -> Result<Option<Stretch>, LogError> {
        self.next_chunk()
    }
}

/// Replays a log until that is not void: without datagrams, and where they may have made a difference, with every one of them.
/// `encoded` is whether that is known already, and is known then.
///
/// # Errors
/// Those of `attempt`.
pub fn until_whole<T, E>(encoded: &AtomicBool, mut attempt: impl FnMut(bool) -> Result<Option<T>, E>) -> Result<T, E> {
    loop {
        if let Some(whole) = attempt(encoded.load(Ordering::Relaxed))? {
            return Ok(whole);
        }
        encoded.store(true, Ordering::Relaxed);
    }
}
