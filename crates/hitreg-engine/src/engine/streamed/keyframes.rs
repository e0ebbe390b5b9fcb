//! Logs with keyframes: where a replay begins, when a tick was, and whether each keyframe is what the replay of its log has there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::{StreamError, Stretches, SurveyedLog, can_be_read_twice};
use crate::engine::{Engine, EngineError, Playable};
use hitreg_log::log::{Found, LogReader, Sought, find_keyframe};
use hitreg_log::record::{Keyframe, Stretch};
use hitreg_log::store;
use hitreg_log::trace::schema::TableSet;
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{Due, Options, Ran, Source, Start};

/// A keyframe as it stands in a log, or as a replay has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandsThere {
    pub(super) tick: Tick,
    pub(super) at: Micros,
    pub(super) stretch: usize,
    content: u128,
}

impl StandsThere {
    pub(super) fn of(keyframe: &Keyframe) -> StandsThere {
        let Keyframe { tick, at, stretch, content } = keyframe;
        StandsThere { tick: *tick, at: *at, stretch: *stretch, content: xxh3_128(content) }
    }

    /// Whether it says what a replay has there, and nothing that is needed to go on from it stands before it.
    fn is_like(&self, made: &StandsThere) -> bool {
        (self.tick, self.at, self.content) == (made.tick, made.at, made.content) && self.stretch <= made.stretch
    }
}

impl Engine<'_> {
    /// What must be known of a log that is to be replayed from some time on. Where it has keyframes, nothing is read but what
    /// leads to the last one at or before that time; where that is the beginning, the first keyframe tells what a pass over the
    /// log would.
    ///
    /// # Errors
    /// When it cannot be read, is not one, or its keyframe is damaged.
    pub fn survey_from(&self, path: &Path, at: Micros) -> Result<Option<SurveyedLog>, EngineError> {
        let find = |sought| find(path, sought);
        let found = match find(Sought::At(at))? {
            Some(found) => Some((true, found)),
            None => find(Sought::First)?.map(|found| (false, found)),
        };
        let Some((begins_there, Found { header, keyframe, .. })) = found else { return self.survey(path) };
        let start = Start::read(&keyframe, &header);
        let start = start.map_err(|source| EngineError::Keyframe { path: path.to_owned(), source })?;
        (self.read)(path, &header);
        let log = SurveyedLog {
            path: path.to_owned(),
            header,
            survey: start.survey.clone(),
            digest: None,
            session_bytes: 0,
            keyframes: Vec::new(),
            start: Some(start),
        };
        if begins_there { Ok(Some(log)) } else { log.from_its_beginning().map(Some) }
    }

    /// When a tick of a log was; `None` where it has no such tick, and of what cannot be read twice.
    ///
    /// # Errors
    /// When it cannot be read, or is not a log.
    pub fn time_of(&self, path: &Path, tick: Tick) -> Result<Option<Micros>, EngineError> {
        if !can_be_read_twice(path) {
            return Ok(None);
        }
        let fail = |source| EngineError::content(path, source);
        let mut reader: Box<dyn Stretches> = match find(path, Sought::Before(tick))? {
            Some(found) => Box::new(found.reader),
            None => Box::new(LogReader::new(store::open(path)?).map_err(fail)?),
        };
        while let Some(chunk) = reader.next().map_err(fail)? {
            if let Some(found) = chunk.ticks.iter().find(|record| record.tick == tick) {
                return Ok(Some(found.at));
            }
        }
        Ok(None)
    }

    /// Keyframes of a log, as its replay has them; none where its state cannot be written down. `progress` is called now and then with
    /// the session time reached.
    ///
    /// # Errors
    /// When it cannot be read again, or replayed.
    pub fn keyframes(
        &self,
        log: &SurveyedLog,
        due: &Due,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Vec<Keyframe>, StreamError> {
        let game = self.games.of_header(&log.header);
        let game = game.map_err(|source| EngineError::Game { path: log.path.clone(), source })?;
        let keyframes = RefCell::new(Vec::new());
        let take = |keyframe| keyframes.borrow_mut().push(keyframe);
        let source = Source { keyframes: Some((due, &take)), ..log.source() };
        let options = (&Options { tables: TableSet::NONE, ..Options::default() }, false);
        let ran = log.run(game, &source, options, &mut |_| {}, &mut |_, _| {}, progress)?;
        Ok(if ran.is_some() { keyframes.into_inner() } else { Vec::new() })
    }
}

/// `None` of what cannot be read twice, too.
pub(super) fn find(path: &Path, sought: Sought) -> Result<Option<Found<impl Read + Seek>>, EngineError> {
    if !can_be_read_twice(path) {
        return Ok(None);
    }
    find_keyframe(BufReader::new(store::open_file(path)?), sought).map_err(|source| EngineError::content(path, source))
}

impl SurveyedLog {
    /// The same log, to be replayed from its beginning.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn from_its_beginning(self) -> Result<SurveyedLog, EngineError> {
        let fail = |source| EngineError::content(&self.path, source);
        let mut survey = self.survey;
        let mut reader = LogReader::new(store::open(&self.path)?).map_err(fail)?;
        // The states that a log begins with stand before its first tick, or beside it.
        while let Some(chunk) = reader.next_chunk().map_err(fail)? {
            survey.begin_with(&chunk);
            if !chunk.ticks.is_empty() {
                break;
            }
        }
        survey.end();
        Ok(SurveyedLog { survey, start: None, ..self })
    }

    /// The same as [`SurveyedLog::attempt`], and the first tick after which a keyframe of the log is not the state that this replay
    /// has there. It costs next to nothing where there are none.
    pub(in crate::engine) fn attempt_beside_keyframes(
        &self,
        game: &dyn Playable,
        options: (&Options, bool),
        to: &mut dyn FnMut(&TraceHeader, Table),
    ) -> Result<Option<(Ran, Option<Tick>)>, StreamError> {
        self.run_beside(&self.keyframes, game, &self.source(), options, &mut |_| {}, to)
    }

    /// Replays from a source, and says the first tick after which one of these keyframes is not the state that this replay has there.
    pub(super) fn run_beside(
        &self,
        said: &[StandsThere],
        game: &dyn Playable,
        source: &Source<'_>,
        options: (&Options, bool),
        seen: &mut dyn FnMut(&Stretch),
        to: &mut dyn FnMut(&TraceHeader, Table),
    ) -> Result<Option<(Ran, Option<Tick>)>, StreamError> {
        let mut ticks: Vec<_> = said.iter().map(|keyframe| (keyframe.tick, keyframe.at)).collect();
        ticks.sort_unstable();
        let due = Due::After(ticks);
        let made = RefCell::new(BTreeMap::new());
        let take = |keyframe| {
            let made_there = StandsThere::of(&keyframe);
            made.borrow_mut().insert(made_there.tick, made_there);
        };
        let keyframes = (!said.is_empty()).then_some((&due, &take as &dyn Fn(Keyframe)));
        let ran = self.run(game, &Source { keyframes, ..*source }, options, seen, to, &mut |_| {})?;
        let made = made.into_inner();
        let is_like = |said: &StandsThere| made.get(&said.tick).is_some_and(|made| said.is_like(made));
        Ok(ran.map(|ran| (ran, said.iter().find(|said| !is_like(said)).map(|said| said.tick))))
    }
}
