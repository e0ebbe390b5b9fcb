//! One shot or correction of a log: the rows of its replay that explain it, and the log's own records around it. A log
//! with keyframes is replayed only around the moment.

use std::path::Path;

use crate::shown::OtherRules;
use crate::surveyed_log::{CollectedRows, collect_replayed, part_of_correction};
use crate::{Engine, EngineError, Playable, SurveyedLog};
use hitreg_analysis::why::{
    CorrectionRows, OtherCorrections, RejudgedShots, SEARCH_DISTANCE_MAX, ShotRows, WhyError, WhyQuery,
};
use hitreg_log::log::{KeyframeQuery, LogReader};
use hitreg_log::record::{GapRecord, PlayerRecords, Session, SessionChunk, SessionHeader};
use hitreg_log::recorded::{all_records, recorded_shots};
use hitreg_log::store;
use hitreg_log::trace::schema::{TableSet, corrections, shots};
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_netcode::replay::{Part, ReplayAttempt, ReplayMode, ReplayOptions};

/// A shot or a correction of a log.
#[derive(Debug)]
pub struct ExplainingRows {
    /// The replayed rows that explain it.
    pub trace: Trace,
    /// The log's records around it.
    pub session: Session,
    /// The results of the shot under other rules. Empty if this build cannot judge it under them.
    pub rejudged: Vec<RejudgedShots>,
    /// The numbers of corrections before and after those of `trace`.
    pub other_corrections: OtherCorrections,
}

impl Engine<'_> {
    /// The first missing part of a log's session.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn first_gap(&self, path: &Path) -> Result<Option<GapRecord>, EngineError> {
        store::open_indexed_log(path)?.first_gap().map_err(|source| EngineError::content(path, source))
    }

    /// The log's own records around a shot.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn records_around(&self, path: &Path, shot: &ShotRows) -> Result<Session, EngineError> {
        let (first, last) = shot.span().unwrap_or((i64::MIN, i64::MAX));
        self.records_of_span(path, first, last)
    }

    /// The log's own records from `AROUND` before a time until `AROUND` after another.
    fn records_of_span(&self, path: &Path, first: i64, last: i64) -> Result<Session, EngineError> {
        let [first, last] = [first.saturating_sub(AROUND.0), last.saturating_add(AROUND.0)].map(Micros);
        let records = store::open_indexed_log(path)?.records_between(first, last);
        records.map_err(|source| EngineError::content(path, source))
    }

    /// What explains one of a log's recorded shots or corrections, for a log that this build does not replay.
    ///
    /// # Errors
    /// Fails if the log cannot be read. If it does not contain the shot, the error names the nearest ones.
    pub fn recorded_shot(&self, path: &Path, fired: &Trace, query: &WhyQuery) -> Result<ExplainingRows, EngineError> {
        if let WhyQuery::Correction { player, number } = *query {
            return self.recorded_correction(path, player, number);
        }
        let shot = query.shot(fired).map_err(|error| EngineError::unsuitable(path, error))?;
        let rows = ShotRows::of(fired, shot);
        let session = self.records_around(path, &rows)?;
        let trace = select_in_tables(all_records(&session), &ShotRows::TABLES, |table| rows.select(table));
        let (rejudged, other_corrections) = (Vec::new(), OtherCorrections::default());
        Ok(ExplainingRows { trace: rows.with(trace), session, rejudged, other_corrections })
    }

    /// What explains a correction in the table `corrections` that a game records.
    fn recorded_correction(&self, path: &Path, player: u32, number: u32) -> Result<ExplainingRows, EngineError> {
        let fail = |source| EngineError::content(path, source);
        let mut reader = LogReader::new(store::open(path)?).map_err(fail)?;
        let mut session = Session::new(reader.header().clone());
        while let Some(mut chunk) = reader.next_chunk().map_err(fail)? {
            chunk.unknown.retain(|records| records.kind == corrections::NAME);
            session.append(SessionChunk { unknown: chunk.unknown, texts: chunk.texts, ..SessionChunk::default() });
        }
        session.put_in_order();
        let records = all_records(&session);
        let Some(recorded) = records.table(corrections::NAME) else {
            return Err(EngineError::unsuitable(path, WhyError::no_correction_table()));
        };
        let other_corrections = OtherCorrections::default();
        let corrected = CorrectionRows::corrected(recorded);
        let rows = CorrectionRows::of(corrected, &other_corrections, player, number)
            .map_err(|error| EngineError::unsuitable(path, error))?;
        let at = rows.ack().2.unwrap_or_default();
        let session = self.records_of_span(path, at, at)?;
        let trace = select_in_tables(all_records(&session), &CorrectionRows::TABLES, |table| rows.select(table));
        Ok(ExplainingRows { trace: rows.with(trace), session, rejudged: Vec::new(), other_corrections })
    }

    /// The shots among the records of a log.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn recorded_shots(&self, path: &Path) -> Result<Trace, EngineError> {
        let fail = |source| EngineError::content(path, source);
        let mut reader = LogReader::new(store::open(path)?).map_err(fail)?;
        let header = reader.header().clone();
        (self.on_read)(path, &header);
        let mut session = Session::new(header);
        while let Some(chunk) = reader.next_chunk().map_err(fail)? {
            let of_shots = |records: PlayerRecords| {
                let PlayerRecords { predicted, judged, executed, .. } = records;
                PlayerRecords { predicted, judged, executed, ..PlayerRecords::default() }
            };
            let players = chunk.players.into_iter().map(of_shots).collect();
            session.append(SessionChunk { players, ticks: chunk.ticks, texts: chunk.texts, ..SessionChunk::default() });
        }
        Ok(recorded_shots(&session))
    }
}

/// A log whose shots and corrections are explained from its replay.
#[derive(Debug)]
pub struct ExplainedLog<'a> {
    engine: Engine<'a>,
    path: &'a Path,
    game: &'a dyn Playable,
    options: ReplayOptions,
    header: SessionHeader,
    /// The survey of the whole log; `None` if its keyframes replace it.
    whole: Option<SurveyedLog>,
}

/// How much of the log is kept before and after a moment.
const AROUND: Micros = Micros::from_s(4);
/// The server judges a shot this long after its usercmd was made, or much sooner.
const JUDGED_WITHIN: Micros = Micros::from_s(4);
/// A projectile hits something within this time, or much sooner.
const FLIGHT: Micros = Micros::from_s(30);

impl<'a> ExplainedLog<'a> {
    /// Opens a log that is replayed with these options.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn new(
        engine: &Engine<'a>,
        path: &'a Path,
        game: &'a dyn Playable,
        options: ReplayOptions,
    ) -> Result<ExplainedLog<'a>, EngineError> {
        let mut log = store::open_indexed_log(path)?;
        let header = log.header().clone();
        (engine.on_read)(path, &header);
        let engine = engine.quiet();
        // A keyframe holds the state of a closed loop under the log's own settings.
        let continues = options.settings.is_none() && options.mode != ReplayMode::Open;
        let first = log.keyframe(KeyframeQuery::First).map_err(|source| EngineError::content(path, source))?;
        let whole = match first.filter(|_| continues) {
            Some(_) => None,
            None => Some(engine.survey(path)?),
        };
        Ok(ExplainedLog { engine, path, game, options, header, whole })
    }

    /// All shots of the replay.
    ///
    /// # Errors
    /// Fails if the log cannot be read or replayed.
    pub fn shots(&self) -> Result<Trace, EngineError> {
        self.shots_in(Part::WHOLE)
    }

    fn shots_in(&self, part: Part) -> Result<Trace, EngineError> {
        self.replay_part(part, &self.options, &[shots::NAME], &Table::clone)
    }

    /// Finds a shot or a correction, and what explains it.
    ///
    /// # Errors
    /// Fails if the log cannot be read or replayed. If the replay does not contain the shot or correction, the error
    /// names the nearest ones.
    pub fn find(&self, query: &WhyQuery) -> Result<ExplainingRows, EngineError> {
        if let WhyQuery::Correction { player, number } = *query {
            return self.correction(player, number);
        }
        let near = self.near(query)?.map(|part| self.shots_in(part)).transpose()?;
        let near = near.and_then(|near| Some((query.shot(&near).ok()?, near)));
        let (shot, fired) = match near {
            Some(found) => found,
            None => {
                let all = self.shots()?;
                (query.shot(&all).map_err(|error| EngineError::unsuitable(self.path, error))?, all)
            }
        };
        let mut rows = ShotRows::of(&fired, shot);
        let after = |time: Micros| Part { from: time, to: Micros(time.0.saturating_add(FLIGHT.0)) };
        if rows.lacks_impact()
            && let Some((first, _)) = rows.span()
        {
            let flown = self.shots_in(after(Micros(first)))?;
            let of_flight = ShotRows::of(&flown, shot);
            rows = if of_flight.lacks_impact() { ShotRows::of(&self.shots()?, shot) } else { of_flight };
        }
        let part = rows.span().map_or(Part::WHOLE, |(first, last)| Part { from: Micros(first), to: Micros(last) });
        let rules = OtherRules::of(&self.header, &self.options)?;
        let tables = [&ShotRows::TABLES[..], &[shots::NAME]].concat();
        let (mut selected, judges) = rules.replay_and_judge(&self.options, |options| {
            self.replay_part(part, options, &tables, &|table| rows.select(table))
        })?;
        let rejudged = match judges.is_err() || selected.header.is_open() && !self.game.judges_again() {
            true => Vec::new(),
            false => rules.take_judged(&mut selected, &self.options, |options| {
                self.replay_part(part, options, &[shots::NAME], &Table::clone)
            })?,
        };
        let session = self.engine.records_around(self.path, &rows)?;
        let other_corrections = OtherCorrections::default();
        Ok(ExplainingRows { trace: rows.with(selected), session, rejudged, other_corrections })
    }

    fn correction(&self, player: u32, number: u32) -> Result<ExplainingRows, EngineError> {
        let (table, other_corrections) = match self.corrections_near(player, number)? {
            Some(near) => near,
            None => {
                let all =
                    self.replay_part(Part::WHOLE, &self.options, &[corrections::NAME], &CorrectionRows::corrected)?;
                (correction_table(all), OtherCorrections::default())
            }
        };
        let rows = CorrectionRows::of(table, &other_corrections, player, number)
            .map_err(|error| EngineError::unsuitable(self.path, error))?;
        let (player, command, acked_us) = rows.ack();
        let made = self.made_at(player, command)?;
        let part = match made.zip(acked_us) {
            Some((made, acked_us)) => Part { from: made, to: Micros(acked_us.saturating_add(1)) },
            None => Part::WHOLE,
        };
        let trace = self.replay_part(part, &self.options, &CorrectionRows::TABLES, &|table| rows.select(table))?;
        let session = Session::new(self.header.clone());
        Ok(ExplainingRows { trace: rows.with(trace), session, rejudged: Vec::new(), other_corrections })
    }

    /// The corrections around the player's `number`-th, by the counts in keyframes, and how many lie before and after
    /// them. `None` if the keyframes do not tell.
    fn corrections_near(&self, player: u32, number: u32) -> Result<Option<(Table, OtherCorrections)>, EngineError> {
        let index = player as usize;
        if self.whole.is_some() || index >= self.header.players.len() {
            return Ok(None);
        }
        let (part, last) = part_of_correction(self.path, index, number)?;
        let Some((near, before)) = self.corrections_in(part)? else { return Ok(None) };
        let after = match last {
            None => Vec::new(),
            Some(last) => {
                let end = Part { from: last, to: Part::WHOLE.to };
                let Some((rows, before_end)) = self.corrections_in(end)? else { return Ok(None) };
                let until = |before: &[u32], rows: &Table| {
                    let counts = before.iter().zip(CorrectionRows::count(rows, before.len()));
                    counts.map(|(before, rows)| before.saturating_add(rows)).collect::<Vec<u32>>()
                };
                let (here, all) = (until(&before, &near), until(&before_end, &rows));
                all.iter().zip(here).map(|(all, here)| all.saturating_sub(here)).collect()
            }
        };
        Ok(Some((near, OtherCorrections { before, after })))
    }

    /// The corrections from a keyframe at or before `part.from` until `part.to`, and the number of each player before
    /// that keyframe. `None` if the replay depends on datagrams that the keyframe lacks.
    fn corrections_in(&self, part: Part) -> Result<Option<(Table, Vec<u32>)>, EngineError> {
        self.from(part.from, |log| {
            let is_until_end = log.survey.played().is_none_or(|(_, last)| part.to > last);
            let to = if is_until_end { Part::WHOLE.to } else { part.to };
            let options = limit_options(log, Part { from: Part::WHOLE.from, to }, &self.options, &[corrections::NAME]);
            let mut kept = CollectedRows::default();
            let mut put = |header: &TraceHeader, rows: Table| {
                let rows = if rows.name == corrections::NAME { CorrectionRows::corrected(&rows) } else { rows };
                kept.add(header, rows);
            };
            let ran = log.replay_rows(self.game, ReplayAttempt { options: &options, encodes: false }, &mut put)?;
            ran.map(|_| Ok((correction_table(kept.finish()?), log.corrections_before()))).transpose()
        })
    }

    /// The part of the log in which the replay has the shot, if there is such a shot; `None` if the log does not tell.
    fn near(&self, query: &WhyQuery) -> Result<Option<Part>, EngineError> {
        let part = |from: i64, to: i64| Some(Part { from: Micros(from), to: Micros(to) });
        Ok(match *query {
            WhyQuery::At { at_us, .. } => {
                part(at_us.saturating_sub(SEARCH_DISTANCE_MAX.0), at_us.saturating_add(SEARCH_DISTANCE_MAX.0 + 1))
            }
            WhyQuery::Shot(name) => self
                .made_at(name.shooter, name.command)?
                .and_then(|made| part(made.0, made.0.saturating_add(JUDGED_WITHIN.0))),
            WhyQuery::Correction { .. } => None,
        })
    }

    fn made_at(&self, player: u32, command: u32) -> Result<Option<Micros>, EngineError> {
        let Ok(player) = u16::try_from(player) else { return Ok(None) };
        let made = store::open_indexed_log(self.path)?.time_of_usercmd(PlayerId(player), CommandSeq(command));
        made.map_err(|source| EngineError::content(self.path, source))
    }

    /// Calls `with` with the log, whose replay begins early enough for rows from a time on.
    fn from<T>(&self, at: Micros, with: impl FnOnce(&SurveyedLog) -> Result<T, EngineError>) -> Result<T, EngineError> {
        match &self.whole {
            Some(log) => with(log),
            None => with(&self.engine.survey_from(self.path, at.max(Micros::ZERO))?),
        }
    }

    /// The selected rows of these tables in a part of the session. Replays with these options.
    fn replay_part(
        &self,
        part: Part,
        options: &ReplayOptions,
        tables: &[&str],
        select: &dyn Fn(&Table) -> Table,
    ) -> Result<Trace, EngineError> {
        self.from(part.from, |log| {
            let Some(part) = part_of_session(part, log.survey.played()) else {
                return Ok(Trace::default());
            };
            let options = limit_options(log, part, options, tables);
            collect_replayed(|encodes, put| {
                let mut put_selected = |header: &TraceHeader, rows: Table| {
                    put(header, if tables.contains(&&*rows.name) { select(&rows) } else { rows });
                };
                log.replay_rows(self.game, ReplayAttempt { options: &options, encodes }, &mut put_selected)
            })
        })
    }
}

/// A trace with the selected rows of these tables, and all rows of the others.
fn select_in_tables(mut trace: Trace, tables: &[&str], select: impl Fn(&Table) -> Table) -> Trace {
    for table in trace.tables.iter_mut().filter(|table| tables.contains(&&*table.name)) {
        *table = select(table);
    }
    trace
}

/// The options of a replay that makes only these tables, in a part if the log can be streamed.
fn limit_options(log: &SurveyedLog, part: Part, options: &ReplayOptions, tables: &[&str]) -> ReplayOptions {
    let part = Some(part).filter(|part| *part != Part::WHOLE && log.streams_closed(options));
    ReplayOptions { part, tables: TableSet::named(tables.iter().copied()), ..options.clone() }
}

/// The table of corrections.
fn correction_table(trace: Trace) -> Table {
    trace.tables.into_iter().find(|table| table.name == corrections::NAME).unwrap_or_default()
}

/// The part that lies within a session; open where the session ends before it. `None` if it lies outside.
fn part_of_session(part: Part, played: Option<(Micros, Micros)>) -> Option<Part> {
    let (first, last) = played?;
    let from = if part.from <= first { Part::WHOLE.from } else { part.from };
    let to = if part.to > last { Part::WHOLE.to } else { part.to };
    (part.from < last && part.to > first).then_some(Part { from, to })
}
