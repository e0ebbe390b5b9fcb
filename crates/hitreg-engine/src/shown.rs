//! What a page shows of a log: the trace of its replay, in memory or in a temporary file, and its own records, which are
//! read when they are needed. Shots are also judged under other rules: with lag compensation switched, and with the
//! longest rewind limit.

use std::cell::RefCell;
use std::io::BufReader;
use std::path::Path;

use crate::surveyed_log::{CollectedRows, ReplaySinks, collect_replayed};
use crate::{Engine, EngineError, Playable, SideTrace, SurveyedLog};
use hitreg_analysis::page::{PageLog, only_shown};
use hitreg_analysis::why::{RejudgeRules, RejudgedShots};
use hitreg_log::log::IndexedLog;
use hitreg_log::record::{GapRecord, Session, SessionChunk, SessionHeader, Wall};
use hitreg_log::recorded::all_records;
use hitreg_log::store::{self, InputFile};
use hitreg_log::trace::schema::{TableSet, shots};
use hitreg_log::trace::{Table, Trace, TraceHeader, TraceReadError};
use hitreg_log::units::Micros;
use hitreg_netcode::replay::{
    Part, ReplayAttempt, ReplayError, ReplayOptions, is_rejudged_table, log_settings, rejudged_table,
};
use hitreg_netcode::settings::{SettingError, Settings};

/// The replay of a log for a page.
#[derive(Debug)]
pub struct ShownReplay {
    /// The replayed rows.
    pub trace: SideTrace,
    /// The results of its shots under other rules, or why they could not be judged.
    pub rejudged: SideRejudgement,
}

impl From<SideTrace> for ShownReplay {
    fn from(trace: SideTrace) -> ShownReplay {
        ShownReplay { trace, rejudged: Ok(Vec::new()) }
    }
}

/// The records of a part of a log, read one chunk after the other.
#[derive(Debug)]
pub struct LogRecords<'a> {
    path: &'a Path,
    header: SessionHeader,
    log: RefCell<IndexedLog<BufReader<InputFile>>>,
    /// The shown part.
    part: Part,
}

/// How much of the log is read before and after a part. It includes the arrivals of packets that were sent in the part.
const AROUND: Micros = Micros::from_s(4);

impl Engine<'_> {
    /// Replays a log for a page. `progress` is called regularly with the session time reached and the end time.
    ///
    /// # Errors
    /// Fails if the log cannot be read or replayed, or if it lacks the part.
    pub fn shown_replay(
        &self,
        path: &Path,
        part: Part,
        progress: &mut dyn FnMut(Micros, Micros),
    ) -> Result<ShownReplay, EngineError> {
        let log = match part {
            Part::WHOLE => self.survey(path)?,
            _ => self.survey_from(path, part.from)?,
        };
        let game = self.games.of_header(&log.header).map_err(|source| EngineError::unsuitable(path, source))?;
        let part = Some(part).filter(|part| *part != Part::WHOLE);
        let options = ReplayOptions { part, network: true, memory: self.games.memory(), ..ReplayOptions::default() };
        let length = log.survey.duration();
        log.replay_and_rejudge(game, &options, only_shown, &mut |at| progress(at, length))
    }

    /// The trace of a log's own records, for a game that this build does not play.
    ///
    /// # Errors
    /// Fails if the log cannot be read, or if it lacks the part.
    pub fn shown_records(&self, path: &Path, part: Part) -> Result<Trace, EngineError> {
        let session = self.read_log(path)?.session;
        let mut trace = all_records(&session);
        if part != Part::WHOLE {
            part.check(session.played()).map_err(|source| EngineError::Replay { path: path.to_owned(), source })?;
            part.cut(&mut trace);
            part.narrow(&mut trace.header, session.played());
        }
        Ok(trace)
    }

    /// The walls of a log's map; empty if the game has no outline or is not of this build.
    pub fn walls(&self, header: &SessionHeader) -> Vec<Wall> {
        self.games.of_header(header).map_or(Vec::new(), |game| game.outline(header))
    }
}

impl SurveyedLog {
    /// Replays the log, and judges its shots under other rules. `shape` is applied to all rows.
    pub(crate) fn replay_and_rejudge(
        &self,
        game: &dyn Playable,
        options: &ReplayOptions,
        shape: fn(Table) -> Table,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<ShownReplay, EngineError> {
        let rules = OtherRules::of(&self.header, options)?;
        let mut judged = CollectedRows::default();
        let (trace, judges) = rules.replay_and_judge(options, |options| {
            self.replay_into_trace(options.part, |encodes, write| {
                judged = CollectedRows::default();
                let mut put = |header: &TraceHeader, rows: Table| match is_rejudged_table(&rows.name) {
                    true => judged.add(header, rows),
                    false => write(header, shape(rows)),
                };
                self.replay_once(
                    game,
                    ReplayAttempt { options, encodes },
                    ReplaySinks { seen: &mut |_| {}, to: &mut put, progress },
                )
            })
        })?;
        if let Err(source) = judges {
            return Ok(ShownReplay { trace, rejudged: Err(source) });
        }
        if trace.source().tables().iter().all(|(table, rows)| table.name != shots::NAME || *rows == 0) {
            return Ok(ShownReplay::from(trace));
        }
        let again = |options: &ReplayOptions| {
            let options = ReplayOptions { tables: TableSet::named([shots::NAME]), ..options.clone() };
            collect_replayed(|encodes, put| self.replay_rows(game, ReplayAttempt { options: &options, encodes }, put))
        };
        let rejudged = match rules.take_judged(&mut judged.finish()?, options, again) {
            Err(EngineError::Replay { source, .. }) => Err(source),
            rejudged => Ok(rejudged?),
        };
        Ok(ShownReplay { trace, rejudged })
    }
}

impl<'a> LogRecords<'a> {
    /// Opens a log, of which a part is shown.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn open(path: &'a Path, part: Part) -> Result<LogRecords<'a>, EngineError> {
        let log = store::open_indexed_log(path)?;
        Ok(LogRecords { path, header: log.header().clone(), log: RefCell::new(log), part })
    }

    /// The first missing part of the session.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn first_gap(&self) -> Result<Option<GapRecord>, EngineError> {
        let gap = self.log.borrow_mut().first_gap();
        gap.map_err(|source| EngineError::content(self.path, source))
    }

    /// Returns how many packets of the part were lost, to and from the server: later packets of the log arrived.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn lost_packets(&self) -> Result<[u64; 2], EngineError> {
        let mut lost = [0; 2];
        let read = self.each_packet(&mut |_| (), &mut |packet| {
            if packet.is_missing {
                lost[usize::from(!packet.is_up)] += 1;
            }
        });
        read.map_err(|error| EngineError::Request(error.to_string()))?;
        Ok(lost)
    }

    fn named(&self, error: impl std::fmt::Display) -> TraceReadError {
        TraceReadError(format!("{}: {error}", self.path.display()))
    }
}

impl PageLog for LogRecords<'_> {
    fn header(&self) -> &SessionHeader {
        &self.header
    }

    fn each(&self, to: &mut dyn FnMut(&SessionChunk) -> bool) -> Result<(), TraceReadError> {
        let [first, last] =
            [self.part.from.0.saturating_sub(AROUND.0), self.part.to.0.saturating_add(AROUND.0)].map(Micros);
        let mut log = self.log.borrow_mut();
        let (shown, mut goes_on) = (log.chunks_between(first, last), true);
        for chunk in log.chunks_between(first, Micros(i64::MAX)) {
            if goes_on || shown.contains(&chunk) {
                goes_on = to(&log.chunk(chunk).map_err(|error| self.named(error))?);
            }
        }
        Ok(())
    }

    fn shows(&self, at: Micros) -> bool {
        self.part.has(at)
    }

    fn between(&self, first: Micros, last: Micros) -> Result<Session, TraceReadError> {
        self.log.borrow_mut().records_between(first, last).map_err(|error| self.named(error))
    }
}

/// The value of the `limit` column for shots whose rewind was limited.
const MAX_UNLAG: &str = "max_unlag";
/// The setting of the rewind limit.
const MAX_UNLAG_MS: &str = "lag_compensation.max_unlag_ms";

/// The shots of one side's trace under other rules, or the reason why they could not be judged.
pub type SideRejudgement = Result<Vec<RejudgedShots>, ReplayError>;

/// The rules under which the shots of a replay are judged again.
#[derive(Clone, Debug)]
pub(crate) struct OtherRules(Vec<(RejudgeRules, Settings)>);

impl OtherRules {
    /// The rules that differ from those of a replay with these options.
    ///
    /// # Errors
    /// Fails if the settings of the session are invalid.
    pub(crate) fn of(header: &SessionHeader, options: &ReplayOptions) -> Result<OtherRules, SettingError> {
        let own = log_settings(header)?;
        let under = options.rejudge.as_ref().or(options.settings.as_ref()).unwrap_or(&own);
        let is_on = under.lag_compensation.enabled;
        let what = if is_on { "without lag compensation" } else { "with lag compensation" };
        let mut rules = vec![(what, format!("lag_compensation.enabled={}", !is_on), None)];
        let (key, now_ms) = (MAX_UNLAG_MS, under.lag_compensation.max_unlag_ms);
        let longest = Settings::nearest(key, &i64::MAX.to_string()).filter(|longest| *longest != now_ms.to_string());
        if let Some(longest) = longest.filter(|_| is_on) {
            rules.push(("with the longest rewind limit", format!("{key}={longest}"), Some(MAX_UNLAG)));
        }
        let with_settings = |(what, setting, limit): (&'static str, String, Option<&'static str>)| {
            let mut other = under.clone();
            other.set_pair(&setting)?;
            Ok((RejudgeRules { what, setting, limit }, other))
        };
        Ok(OtherRules(rules.into_iter().map(with_settings).collect::<Result<_, SettingError>>()?))
    }

    /// Replays with these options, and also judges under these rules. If the game's server cannot, the result is a replay
    /// without them, and the reason.
    ///
    /// # Errors
    /// Fails as `replay` does.
    pub(crate) fn replay_and_judge<T>(
        &self,
        options: &ReplayOptions,
        mut replay: impl FnMut(&ReplayOptions) -> Result<T, EngineError>,
    ) -> Result<(T, Result<(), ReplayError>), EngineError> {
        let rejudge_added = self.0.iter().map(|(_, settings)| settings.clone()).collect();
        match replay(&ReplayOptions { rejudge_added, ..options.clone() }) {
            Err(EngineError::Replay { source: source @ ReplayError::NoRejudging(_), .. }) => {
                Ok((replay(options)?, Err(source)))
            }
            replayed => Ok((replayed?, Ok(()))),
        }
    }

    /// Takes the shots under these rules out of the trace of a [replay](OtherRules::replay_and_judge) that judged them. An open
    /// loop judges under one set of rules, so `replay` runs it again under each of the others, for its `shots`.
    ///
    /// # Errors
    /// Fails as `replay` does.
    pub(crate) fn take_judged(
        &self,
        trace: &mut Trace,
        options: &ReplayOptions,
        replay: impl Fn(&ReplayOptions) -> Result<Trace, EngineError>,
    ) -> Result<Vec<RejudgedShots>, EngineError> {
        let mut taken = Vec::new();
        for (place, (rules, settings)) in self.0.iter().enumerate() {
            let name = rejudged_table(place);
            let table = match trace.tables.iter().position(|table| table.name == name) {
                Some(place) => trace.tables.remove(place),
                None => {
                    let options = ReplayOptions { rejudge: Some(settings.clone()), ..options.clone() };
                    let tables = replay(&options)?.tables;
                    tables.into_iter().find(|table| table.name == shots::NAME).unwrap_or_default()
                }
            };
            taken.push(RejudgedShots::of(rules.clone(), &table));
        }
        Ok(taken)
    }
}
