//! Logs that are read chunk by chunk, twice: once to look through them, and again as their replay uses them up. However long
//! one is, it takes the same memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_128;

use super::log_file::Digested;
use super::{Engine, EngineError, Playable};
use crate::log::{
    Found, LogError, LogReader, SMALL_FILE, find_keyframe, keyframes_of, replay_budget, write_trace_meanwhile,
};
use crate::record::{Allowance, Header, Keyframe, Stretch};
use crate::replay::{Due, Options, Ran, ReplayError, Source, Start, Survey};
use crate::store::{self, Target, is_standard_stream};
use crate::trace::{Digest, Table, TraceHeader};
use crate::units::{Micros, Tick};

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
    allowance: Allowance,
    bytes: u64,
    has_keyframes: bool,
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

impl Engine<'_> {
    /// Looks through a log that must be whole. `None` of what cannot be read twice, such as a pipe.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn survey(&self, path: &Path) -> Result<Option<SurveyedLog>, EngineError> {
        if is_standard_stream(path) || store::check_regular(path).is_err() {
            return Ok(None);
        }
        let log = SurveyedLog::of(path)?;
        (self.read)(path, &log.header);
        Ok(Some(log))
    }

    /// The same of a log that is to be replayed from some time on: where it has a keyframe at or before that time, nothing is read
    /// but what leads to the keyframe.
    ///
    /// # Errors
    /// When it cannot be read, is not one, or its keyframe is damaged.
    pub fn survey_from(&self, path: &Path, at: Option<Micros>) -> Result<Option<SurveyedLog>, EngineError> {
        let Some(at) = at.filter(|_| !is_standard_stream(path) && store::check_regular(path).is_ok()) else {
            return self.survey(path);
        };
        let fail = |source| EngineError::content(path, source);
        let found = find_keyframe(BufReader::new(store::open_file(path)?), at).map_err(fail)?;
        let Some(Found { header, keyframe, bytes, .. }) = found else { return self.survey(path) };
        let start = Start::read(&keyframe, &header);
        let start = start.map_err(|source| EngineError::Keyframe { path: path.to_owned(), source })?;
        (self.read)(path, &header);
        let allowance = Allowance { bytes: replay_budget(bytes, 0) };
        let (survey, digest) = (start.survey.clone(), None);
        Ok(Some(SurveyedLog {
            path: path.to_owned(),
            header,
            survey,
            digest,
            allowance,
            bytes,
            has_keyframes: true,
            start: Some(start),
        }))
    }

    /// The first tick after which a keyframe of the log is not the state that its replay has there.
    pub(super) fn unlike_keyframe(&self, log: &SurveyedLog) -> Result<Option<Tick>, StreamError> {
        if !log.has_keyframes {
            return Ok(None);
        }
        let of = |content: &[u8]| xxh3_128(content);
        let mut said = Vec::new();
        let read = store::open(&log.path).map_err(EngineError::from)?;
        keyframes_of(read, &mut |keyframe| said.push((keyframe.tick, of(&keyframe.content))))
            .map_err(|source| EngineError::content(&log.path, source))?;
        let due = Due::After(said.iter().map(|(tick, _)| *tick).collect());
        let played: BTreeMap<Tick, u128> =
            self.keyframes(log, &due)?.into_iter().map(|keyframe| (keyframe.tick, of(&keyframe.content))).collect();
        Ok(said.into_iter().find(|(tick, content)| played.get(tick) != Some(content)).map(|(tick, _)| tick))
    }

    /// What keyframes of a log are as its replay has them; none where its state cannot be written down.
    ///
    /// # Errors
    /// When it cannot be read again, or replayed.
    pub fn keyframes(&self, log: &SurveyedLog, due: &Due) -> Result<Vec<Keyframe>, StreamError> {
        let game = self.games.of_header(&log.header);
        let game = game.map_err(|source| EngineError::Game { path: log.path.clone(), source })?;
        let keyframes = RefCell::new(Vec::new());
        let source = Source { keyframes: Some((due, &keyframes)), ..log.source() };
        let options = (&Options::default(), false);
        let ran = log.run(game, &source, options, &mut |_| {}, &mut |_, _| {}, &mut |_| {})?;
        Ok(if ran.is_some() { keyframes.into_inner() } else { Vec::new() })
    }
}

impl SurveyedLog {
    fn of(path: &Path) -> Result<SurveyedLog, EngineError> {
        let fail = |source| EngineError::content(path, source);
        let mut read = Digested::new(store::open(path)?);
        let mut reader = LogReader::new(&mut read).map_err(fail)?;
        let (header, has_keyframes) = (reader.header().clone(), reader.may_have_keyframes());
        let mut survey = Survey::new(&header);
        loop {
            let chunks = reader.next_chunks().map_err(fail)?;
            if chunks.is_empty() {
                break;
            }
            chunks.into_iter().for_each(|mut chunk| survey.add(&header, &mut chunk));
        }
        survey.end();
        drop(reader);
        let bytes = read.bytes();
        let allowance = Allowance { bytes: replay_budget(bytes, 0) };
        let digest = Some(read.digest());
        Ok(SurveyedLog { path: path.to_owned(), header, survey, digest, allowance, bytes, has_keyframes, start: None })
    }

    fn source(&self) -> Source<'_> {
        let (header, survey, start) = (&self.header, &self.survey, self.start.as_ref());
        Source { header, survey, allowance: self.allowance, start, keyframes: None }
    }

    /// Whether it is so short that nobody waits for two of its replays: they run one after the other then, so that what a small file
    /// may take in memory is not taken twice.
    pub(crate) fn is_short(&self) -> bool {
        self.bytes <= SMALL_FILE
    }

    /// When a tick was; `None` where the log has no such tick.
    ///
    /// # Errors
    /// When it cannot be read again.
    pub fn time_of(&self, tick: Tick) -> Result<Option<Micros>, EngineError> {
        let fail = |source| EngineError::content(&self.path, source);
        let mut reader = LogReader::new(store::open(&self.path)?).map_err(fail)?;
        while let Some(chunk) = reader.next_chunk().map_err(fail)? {
            if let Some(found) = chunk.ticks.iter().find(|record| record.tick == tick) {
                return Ok(Some(found.at));
            }
        }
        Ok(None)
    }

    /// Whether it can be replayed as it is read; what cannot is replayed as a whole.
    pub fn streams(&self, options: &Options) -> bool {
        self.source().streams(options)
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
        let fail = |source| EngineError::content(&self.path, source);
        let mut reader: Box<dyn Stretches> = match source.start {
            None => Box::new(LogReader::new(store::open(&self.path).map_err(EngineError::from)?).map_err(fail)?),
            Some(start) => {
                let file = BufReader::new(store::open_file(&self.path).map_err(EngineError::from)?);
                let found = find_keyframe(file, start.at).map_err(fail)?;
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
        let mut labelled = |header: &TraceHeader, table| {
            let log_digest = self.digest.map_or(String::new(), |digest| digest.to_string());
            to(&TraceHeader { log_digest, ..header.clone() }, table);
        };
        let ran = game.stream(source, &mut chunks, options, &mut labelled, progress);
        match broken {
            Some(error) => Err(fail(error).into()),
            None => Ok(ran?),
        }
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
