//! An excerpt of a log: the rows of its replay for a part of the session, and the log's own records of that part. The
//! replay streams the log, and starts from the last keyframe before the part.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::rejudge::rejudged_by;
use super::streamed::{SurveyedLog, retry_with_encoding};
use super::{Engine, EngineError, Playable};
use hitreg_analysis::page::page_memory;
use hitreg_analysis::why::RejudgedShots;
use hitreg_log::record::{Session, SessionStretch};
use hitreg_log::trace::schema::{TableSet, views};
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::Micros;
use hitreg_netcode::game::Wall;
use hitreg_netcode::replay::{Part, ReplayOptions};

/// An excerpt of a log.
#[derive(Debug)]
pub struct Excerpt {
    /// The replayed rows of the part.
    pub trace: Trace,
    /// The log's records of the part, and a few seconds around it. They include datagrams in flight at its ends.
    pub session: Session,
    /// The walls of the map; empty if the game has no outline.
    pub walls: Vec<Wall>,
    /// The results of its shots under other rules.
    pub rejudged: Vec<RejudgedShots>,
}

/// How much of the log is kept before and after the part.
const AROUND: Micros = Micros::from_s(4);

/// The memory of one player while a log is replayed, and its shots are judged again at the same time.
const REPLAYED_PLAYER: usize = 2 << 20;
/// The same for all players. In a session of more players, few are there at once.
const REPLAYED_PLAYERS: usize = 256 << 20;

impl Engine<'_> {
    /// Makes an excerpt of a log with at most `most_views` views of players, which take most of the memory. An excerpt
    /// of the whole log must fit into the memory limit together with its page. `progress` is called regularly with the
    /// session time reached and the end time.
    ///
    /// # Errors
    /// Fails if the log cannot be read or replayed, if it lacks the part, or if the part has too many views.
    pub fn excerpt(
        &self,
        path: &Path,
        part: Part,
        most_views: usize,
        progress: &mut dyn FnMut(Micros, Micros),
    ) -> Result<Excerpt, EngineError> {
        let log = match part {
            Part::WHOLE => self.survey(path)?,
            _ => self.survey_from(path, part.from)?,
        };
        let unknown = |source| EngineError::unsuitable(path, source);
        let game = self.games.of_header(&log.header).map_err(unknown)?;
        let options = ReplayOptions { part: Some(part), network: true, ..ReplayOptions::default() };
        if part == Part::WHOLE {
            let held = log.session_bytes().saturating_add(log.survey.trace_bytes(TableSet::ALL));
            let running = log.header.players.len().saturating_mul(REPLAYED_PLAYER).min(REPLAYED_PLAYERS);
            let needed = held.saturating_add(running).saturating_add(page_memory(log.survey.trace_rows()));
            self.games.memory().check(needed).map_err(|source| log.needs_memory(source))?;
        }
        let length = log.survey.duration();
        let progress = &mut |at| progress(at, length);
        let [from, to] = [part.from.0.saturating_sub(AROUND.0), part.to.0.saturating_add(AROUND.0)].map(Micros);
        let kept = Some((Part { from, to }, most_views));
        let (trace, mut session) = played(game, &log, &options, kept, progress)?;
        session.put_in_order();
        let rejudged = rejudged_by(&log.header, &options, &trace, |options| {
            Ok::<_, EngineError>(played(game, &log, options, None, &mut |_| {})?.0)
        })?;
        Ok(Excerpt { trace, walls: game.outline(&session), session, rejudged })
    }
}

/// Replays the log and returns all rows. `kept` is the part of the log to keep, with the maximum number of views.
fn played(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: &ReplayOptions,
    kept: Option<(Part, usize)>,
    progress: &mut dyn FnMut(Micros),
) -> Result<(Trace, Session), EngineError> {
    let most = kept.map_or(usize::MAX, |(_, most)| most);
    retry_with_encoding(&AtomicBool::new(false), |encoded| {
        let (mut trace, mut session) = (Trace::default(), Session::new(log.header.clone()));
        let (reached, mut views, too_long_by) = (Cell::new(Micros::ZERO), 0, Cell::new(None));
        let mut seen = |chunk: &SessionStretch| {
            let is_near = kept.is_some_and(|(part, _)| chunk.times().any(|at| part.has(at)));
            if is_near && too_long_by.get().is_none() {
                session.append(chunk.clone());
            }
        };
        let mut put = |header: &TraceHeader, rows: Table| {
            trace.header = header.clone();
            views += if rows.name == views::NAME { rows.rows() } else { 0 };
            if views > most && too_long_by.get().is_none() {
                too_long_by.set(Some(reached.get()));
                trace.tables.clear();
            }
            if views <= most {
                // All rows of one replay have the same columns.
                trace.append(rows).unwrap_or_default();
            }
        };
        let mut progress = |at| {
            reached.set(at);
            progress(at);
        };
        let ran = log.attempt(game, (options, encoded), &mut seen, &mut put, &mut progress)?;
        match too_long_by.get() {
            Some(by) if ran.is_some() => Err(EngineError::TooLong { path: log.path().to_owned(), most, by }),
            _ => Ok(ran.map(|_| (trace, session))),
        }
    })
}
