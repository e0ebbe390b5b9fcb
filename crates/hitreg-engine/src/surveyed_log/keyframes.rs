//! Logs with keyframes: finds the start of a replay and the time of a tick, and compares keyframes with the replayed
//! state.

use std::cell::RefCell;
use std::io::{Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::xxh3_128;

use super::{ReplaySinks, SurveyedLog, retry_with_encoding};
use crate::{Engine, EngineError, Playable};
use hitreg_log::log::{IndexedLog, KeyframeQuery, LogReader};
use hitreg_log::record::Keyframe;
use hitreg_log::sorted::SortedMap;
use hitreg_log::store;
use hitreg_log::trace::schema::{TableSet, bodies, corrections, executed, frames, shots, ticks};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{
    KeyframeSchedule, Part, ReplayAttempt, ReplayError, ReplayFindings, ReplayOptions, ReplaySource, ReplayStart,
    keyframe_has_sizes, other_keyframe_version,
};

/// The identity of a keyframe, from a log or from a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyframeRef {
    pub(crate) tick: Tick,
    pub(crate) at: Micros,
    pub(crate) next_chunk: usize,
    content: u128,
    /// Whether a replay must encode its datagrams to come to the same state.
    has_sizes: bool,
}

impl KeyframeRef {
    pub(crate) fn of(keyframe: &Keyframe) -> KeyframeRef {
        let &Keyframe { tick, at, next_chunk, ref content } = keyframe;
        let (content, has_sizes) = (xxh3_128(content), keyframe_has_sizes(keyframe));
        KeyframeRef { tick, at, next_chunk, content, has_sizes }
    }

    /// Whether this keyframe equals the replayed one, and skips no records that a replay from it needs.
    fn is_like(&self, made: &KeyframeRef) -> bool {
        (self.tick, self.at, self.content) == (made.tick, made.at, made.content) && self.next_chunk <= made.next_chunk
    }
}

/// The start of a replay at a keyframe; `None` if the log has no such keyframe, or one that only another build reads.
fn start_at<R: Read + Seek>(
    path: &Path,
    log: &mut IndexedLog<R>,
    sought: KeyframeQuery,
) -> Result<Option<ReplayStart>, EngineError> {
    let found = log.keyframe(sought).map_err(|source| EngineError::content(path, source))?;
    let readable = found.filter(|(keyframe, _)| other_keyframe_version(keyframe).is_none());
    let start = readable.map(|(keyframe, _)| ReplayStart::read(&keyframe, log.header()));
    start.transpose().map_err(|source| EngineError::Replay { path: path.to_owned(), source })
}

/// Finds the keyframes between which a player's `number`-th correction lies, by the counts in keyframes. Returns the part
/// between them, and the time of the last keyframe if the part ends before it. Without keyframes that this build reads,
/// the part is the whole log.
///
/// # Errors
/// Fails if the file cannot be read, is not a log, or has a damaged keyframe.
pub(crate) fn part_of_correction(
    path: &Path,
    player: usize,
    number: u32,
) -> Result<(Part, Option<Micros>), EngineError> {
    let mut log = store::open_indexed_log(path)?;
    let times = log.keyframe_times();
    let (mut low, mut high) = (0, times.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(start) = start_at(path, &mut log, KeyframeQuery::At(times[middle]))? else {
            return Ok((Part::WHOLE, None));
        };
        if start.corrections[player] < number { low = middle + 1 } else { high = middle }
    }
    let from = low.checked_sub(1).map_or(Part::WHOLE.from, |before| times[before]);
    let Some(end) = times.get(low) else { return Ok((Part { from, to: Part::WHOLE.to }, None)) };
    Ok((Part { from, to: Micros(end.0.saturating_add(1)) }, times.last().copied()))
}

impl Engine<'_> {
    /// Surveys a log for a replay whose rows begin at a given time.
    ///
    /// With keyframes, the first keyframe replaces the survey pass. The replay starts from the last keyframe before
    /// everything that the rows depend on, if there is one.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not a log, or has a damaged keyframe.
    pub fn survey_from(&self, path: &Path, from: Micros) -> Result<SurveyedLog, EngineError> {
        let mut log = store::open_indexed_log(path)?;
        let Some(first) = start_at(path, &mut log, KeyframeQuery::First)? else { return self.survey(path) };
        let start = start_at(path, &mut log, KeyframeQuery::At(first.survey.needed_from(from)))?;
        let header = log.header().clone();
        (self.on_read)(path, &header);
        let begins_there = start.is_some();
        let start = start.unwrap_or(first);
        let log = SurveyedLog {
            path: path.to_owned(),
            header,
            survey: start.survey.clone(),
            digest: None,
            session_bytes: 0,
            keyframes: Vec::new(),
            start: Some(start),
            memory: self.games.memory(),
        };
        if begins_there { Ok(log) } else { log.from_its_beginning() }
    }

    /// The time of a tick in a log; `None` if the log has no such tick.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a log.
    pub fn time_of(&self, path: &Path, tick: Tick) -> Result<Option<Micros>, EngineError> {
        store::open_indexed_log(path)?.time_of(tick).map_err(|source| EngineError::content(path, source))
    }

    /// Computes the keyframes of a log by replaying it. Returns none if the game does not save its world, or if the log
    /// knows a player only by what the server received. `progress` is called regularly with the session time reached.
    ///
    /// # Errors
    /// Fails if the log cannot be read again or replayed.
    pub fn keyframes(
        &self,
        log: &SurveyedLog,
        due: &KeyframeSchedule,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Vec<Keyframe>, EngineError> {
        let game = self.games.of_header(&log.header);
        let game = game.map_err(|source| EngineError::unsuitable(&log.path, source))?;
        let options = ReplayOptions { tables: TableSet::NONE, ..ReplayOptions::default() };
        retry_with_encoding(&AtomicBool::new(false), |encodes| {
            let keyframes = RefCell::new(Vec::new());
            let take = |keyframe| keyframes.borrow_mut().push(keyframe);
            let source = ReplaySource { keyframes: Some((due, &take)), ..log.source() };
            let sinks = ReplaySinks { seen: &mut |_| {}, to: &mut |_, _| {}, progress: &mut *progress };
            let ran = log.run(game, &source, ReplayAttempt { options: &options, encodes }, sinks)?;
            // Keyframes of a replay whose datagrams may have mattered are void, as its rows are.
            Ok(ran.map(|_| keyframes.into_inner()))
        })
    }
}

impl SurveyedLog {
    /// Resets the log to be replayed from its beginning.
    ///
    /// # Errors
    /// Fails if the beginning of the log cannot be read.
    pub fn from_its_beginning(self) -> Result<SurveyedLog, EngineError> {
        if self.start.is_none() {
            return Ok(self);
        }
        let fail = |source| EngineError::content(&self.path, source);
        let mut survey = self.survey;
        let mut reader = LogReader::new(store::open(&self.path)?).map_err(fail)?;
        // The initial states come before the first tick, or in the same chunk.
        while let Some(chunk) = reader.next_chunk().map_err(fail)? {
            survey.begin_with(&chunk.states);
            if !chunk.ticks.is_empty() {
                break;
            }
        }
        survey.end();
        Ok(SurveyedLog { survey, start: None, ..self })
    }

    /// Replays the log from `start`, `None` for its beginning, and compares the states with the `recorded` keyframes.
    /// Without keyframes, the comparison costs almost nothing.
    pub(crate) fn run_to_keyframes(
        &self,
        recorded: &[KeyframeRef],
        game: &dyn Playable,
        start: Option<&ReplayStart>,
        attempt: ReplayAttempt<'_>,
        sinks: ReplaySinks<'_>,
    ) -> Result<Option<KeyframedRun>, EngineError> {
        let mut ticks: Vec<_> = recorded.iter().map(|keyframe| (keyframe.tick, keyframe.at)).collect();
        ticks.sort_unstable();
        let due = KeyframeSchedule::After(ticks);
        let replayed = RefCell::new(SortedMap::new());
        let take = |keyframe| {
            let keyframe = KeyframeRef::of(&keyframe);
            replayed.borrow_mut().insert(keyframe.tick, keyframe);
        };
        let keyframes = (!recorded.is_empty()).then_some((&due, &take as &dyn Fn(Keyframe)));
        // A part of a log may not show that its datagrams matter, but the states are compared with those of a replay
        // that encoded them.
        let encodes = attempt.encodes || recorded.first().is_some_and(|keyframe| keyframe.has_sizes);
        let source = ReplaySource { start, keyframes, ..self.source() };
        let findings = self.run(game, &source, ReplayAttempt { encodes, ..attempt }, sinks)?;
        let replayed = replayed.into_inner();
        let differs =
            |keyframe: &&KeyframeRef| !replayed.get(&keyframe.tick).is_some_and(|made| keyframe.is_like(made));
        let differing_keyframe = recorded.iter().find(differs).map(|keyframe| keyframe.tick);
        Ok(findings.map(|findings| KeyframedRun { findings, differing_keyframe }))
    }
}

/// The result of a replay whose states were compared with keyframes.
pub(crate) struct KeyframedRun {
    pub(crate) findings: ReplayFindings,
    /// The tick of the first keyframe that differs from the replayed state.
    pub(crate) differing_keyframe: Option<Tick>,
}

/// A part of a log from one keyframe to a later one, which is replayed independently. It starts from the state of its
/// keyframe and is compared with the later keyframes that it reaches. If all of them match, each leg starts where the one
/// before it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// The keyframe that the replay starts from; `None` for the beginning of the log.
    from: Option<usize>,
    /// The keyframes that the leg reaches.
    to: Range<usize>,
    /// The part whose rows the leg writes. The replay starts earlier, because its rows may depend on earlier records.
    part: Part,
}

impl Leg {
    /// The number of keyframes that the leg reaches.
    pub(crate) fn keyframes(&self) -> usize {
        self.to.len()
    }
}

/// The number of legs in a log with enough keyframes. They run at once, and each takes about 65 MB for its pipelines and
/// rows. Each also replays some time before its own part, so more legs cost more.
const LEGS: usize = 2;
/// The fewest keyframes of a leg.
const LEG_KEYFRAMES_MIN: usize = 4;
/// The tables that a log records itself, and the tables that show which features were exercised.
const TABLES: [&str; 6] = [ticks::NAME, bodies::NAME, executed::NAME, frames::NAME, corrections::NAME, shots::NAME];

impl SurveyedLog {
    /// The legs of the log, in order. Empty if it has no keyframes or they are out of order.
    pub(crate) fn legs(&self) -> Vec<Leg> {
        let in_order = |pair: &[KeyframeRef]| pair[0].tick < pair[1].tick && pair[0].at < pair[1].at;
        if self.keyframes.is_empty() || !self.keyframes.windows(2).all(in_order) {
            return Vec::new();
        }
        let last = self.survey.played().map_or(Micros::ZERO, |(_, last)| last);
        let keyframes: Vec<Micros> = self.keyframes.iter().map(|keyframe| keyframe.at).collect();
        legs(&keyframes, last, &|at| self.survey.needed_from(at))
    }

    /// Replays a leg while reading it, and compares the states with the keyframes that it reaches. Returns `None` if
    /// datagrams may have affected the outcome.
    ///
    /// # Errors
    /// Fails if the log cannot be read again, or if this build cannot continue from the leg's first keyframe.
    pub(crate) fn run_leg(
        &self,
        game: &dyn Playable,
        leg: &Leg,
        sinks: ReplaySinks<'_>,
    ) -> Result<Option<KeyframedRun>, EngineError> {
        let start = leg.from.map(|from| self.start_at(&self.keyframes[from])).transpose()?;
        let recorded = &self.keyframes[leg.to.clone()];
        let (part, tables) = (Some(leg.part), TableSet::named(TABLES));
        let options = ReplayOptions { part, tables, without_predicted_bodies: true, ..ReplayOptions::default() };
        self.run_to_keyframes(
            recorded,
            game,
            start.as_ref(),
            ReplayAttempt { options: &options, encodes: false },
            sinks,
        )
    }

    /// Reads a keyframe from the log to start a replay from it.
    fn start_at(&self, there: &KeyframeRef) -> Result<ReplayStart, EngineError> {
        let found = store::open_indexed_log(&self.path)?.keyframe(KeyframeQuery::At(there.at));
        let keyframe = found.map_err(|source| self.unreadable(source))?.map(|(keyframe, _)| keyframe);
        let keyframe = keyframe.filter(|found| (found.tick, found.at) == (there.tick, there.at));
        let keyframe = keyframe.ok_or_else(|| self.not_replayed(ReplayError::NoKeyframe))?;
        let start = ReplayStart::read(&Keyframe { next_chunk: there.next_chunk, ..keyframe }, &self.header);
        start.map_err(|source| self.not_replayed(source))
    }
}

/// Plans the legs of a log that has keyframes at these times and ends at `last`. Rows from a time on depend on records
/// since `needed_from` that time.
fn legs(keyframes: &[Micros], last: Micros, needed_from: &dyn Fn(Micros) -> Micros) -> Vec<Leg> {
    // With these keyframes, a log has one more chunk than keyframes.
    let each = (keyframes.len() + 1).div_ceil(LEGS).max(LEG_KEYFRAMES_MIN);
    let ends = (0..keyframes.len()).skip(each - 1).step_by(each).filter(|end| keyframes[*end] < last);
    let bounds: Vec<Option<usize>> = std::iter::once(None).chain(ends.map(Some)).chain([None]).collect();
    let leg = |bounds: &[Option<usize>]| {
        let [begin, end] = [bounds[0], bounds[1]];
        let from = begin.map_or(Part::WHOLE.from, |begin| keyframes[begin]);
        let since = needed_from(from);
        Leg {
            from: begin.and_then(|_| keyframes.partition_point(|at| *at <= since).checked_sub(1)),
            to: begin.map_or(0, |begin| begin + 1)..end.map_or(keyframes.len(), |end| end + 1),
            part: Part { from, to: end.map_or(Part::WHOLE.to, |end| keyframes[end]) },
        }
    };
    bounds.windows(2).map(leg).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leg_begins_where_an_earlier_leg_ends() {
        for (count, every_s) in [(1, 10), (3, 10), (4, 10), (5, 2), (29, 10), (359, 10), (900, 1)] {
            let keyframes: Vec<Micros> = (1..=count).map(|n| Micros::from_s(n * every_s)).collect();
            let needed_from = |at| at - Micros::from_s(4);
            let legs = legs(&keyframes, Micros::from_s(count * every_s + 5), &needed_from);
            let come_to = legs.iter().flat_map(|leg| leg.to.clone());
            assert!(come_to.eq(0..keyframes.len()), "each is held against once");
            assert_eq!((legs[0].from, legs[0].part.from), (None, Part::WHOLE.from));
            assert_eq!(legs[legs.len() - 1].part.to, Part::WHOLE.to);
            for (before, leg) in legs.iter().zip(&legs[1..]) {
                assert_eq!(before.part.to, leg.part.from);
                assert_eq!(keyframes[leg.to.start - 1], leg.part.from, "it ends with the keyframe that it goes up to");
                let Some(from) = leg.from else { continue };
                assert!(from < leg.to.start && keyframes[from] <= needed_from(leg.part.from));
                assert!(keyframes[from + 1] > needed_from(leg.part.from), "no sooner than it must");
            }
            assert!(count < 29 || legs.len() == LEGS, "{} legs", legs.len());
        }
        // There is nothing after a keyframe at the very end.
        let keyframes = [10, 20, 30, 40].map(Micros::from_s);
        assert_eq!(legs(&keyframes, Micros::from_s(40), &|at| at).len(), 1);
    }
}
