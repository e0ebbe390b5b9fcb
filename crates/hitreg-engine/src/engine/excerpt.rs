//! An excerpt of a log: the replay of a part of it, and what the log says of that part besides. The log is read as it is used up,
//! from the keyframe before that part where it has one.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::rejudged::rejudged_by;
use super::streamed::{StreamError, SurveyedLog, until_whole};
use super::{Engine, EngineError, Playable};
use hitreg_analysis::why::Rejudged;
use hitreg_log::record::{Session, Stretch};
use hitreg_log::trace::schema::views;
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::{ClockTime, Micros};
use hitreg_netcode::game::Wall;
use hitreg_netcode::replay::{Options, Part, ReplayError};
use hitreg_netcode::settings::SettingError;

/// A part of a log.
#[derive(Debug)]
pub struct Excerpt {
    /// The rows of its replay that are of that part.
    pub trace: Trace,
    /// What the log has of it, and a little around it: what was on its way as it began and ended.
    pub session: Session,
    /// The walls of its map, where the game says where they are.
    pub walls: Vec<Wall>,
    /// What other rules make of its shots.
    pub rejudged: Vec<Rejudged>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ExcerptError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] EngineError),
    /// It cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Its settings are none of this build's.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// It is of a game that is not played here.
    #[error(transparent)]
    Game(#[from] super::UnknownGame),
    /// More than whoever asks has room for.
    #[error("it has more than {most} views of players by {}", ClockTime(*.by))]
    TooLong {
        /// How many there may be.
        most: usize,
        /// The session's time that was reached by then.
        by: Micros,
    },
    /// It is read more than once.
    #[error("a part of it is found by reading it more than once: give a file")]
    Pipe,
}

impl From<StreamError> for ExcerptError {
    fn from(error: StreamError) -> ExcerptError {
        match error {
            StreamError::Read(error) => error.into(),
            StreamError::Replay(error) => error.into(),
        }
    }
}

/// So much of the log is kept around the part.
const AROUND: Micros = Micros::from_s(4);

impl Engine<'_> {
    /// An excerpt of a log, which may have so many views of players: they are most of what takes memory. `progress` is called now and
    /// then with the session time reached, of how much.
    ///
    /// # Errors
    /// When it cannot be read, has no such part or more views, or is not one that this build can replay.
    pub fn excerpt(
        &self,
        path: &Path,
        part: Part,
        most_views: usize,
        progress: &mut dyn FnMut(Micros, Micros),
    ) -> Result<Excerpt, ExcerptError> {
        let log = match part {
            Part::WHOLE => self.survey(path)?,
            _ => self.survey_from(path, Part::needs_from(part.from))?,
        };
        let log = log.ok_or(ExcerptError::Pipe)?;
        let game = self.games.of_header(&log.header)?;
        let options = Options { part: Some(part), network: true, ..Options::default() };
        let length = log.survey.duration();
        let progress = &mut |at| progress(at, length);
        if !log.streams(game, &options) {
            return self.excerpt_of_whole(path, game, &options, progress);
        }
        let [from, to] = [part.from.0.saturating_sub(AROUND.0), part.to.0.saturating_add(AROUND.0)].map(Micros);
        let kept = Some((Part { from, to }, most_views));
        let (trace, mut session) = played(game, &log, &options, kept, progress)?;
        session.put_in_order();
        let rejudged = rejudged_by(&log.header, &options, &trace, |options| {
            Ok::<_, ExcerptError>(played(game, &log, options, None, &mut |_| {})?.0)
        })?;
        Ok(Excerpt { trace, walls: game.outline(&session), session, rejudged })
    }

    /// Of a log that cannot be replayed as it is read.
    fn excerpt_of_whole(
        &self,
        path: &Path,
        game: &dyn Playable,
        options: &Options,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Excerpt, ExcerptError> {
        let log = self.read_log_quietly(path, true)?;
        let mut trace = game.replay(&log.session, options, progress)?.trace;
        trace.header.log_digest = log.digest.to_string();
        let rejudged = rejudged_by(&log.session.header, options, &trace, |options| {
            Ok::<_, ExcerptError>(game.replay(&log.session, options, &mut |_| {})?.trace)
        })?;
        Ok(Excerpt { trace, walls: game.outline(&log.session), session: log.session, rejudged })
    }
}

/// All rows of a replay, and what the log has around a part that is to be kept, with how many views there may be.
fn played(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: &Options,
    kept: Option<(Part, usize)>,
    progress: &mut dyn FnMut(Micros),
) -> Result<(Trace, Session), ExcerptError> {
    let most = kept.map_or(usize::MAX, |(_, most)| most);
    until_whole(&AtomicBool::new(false), |encoded| {
        let (mut trace, mut session) = (Trace::default(), Session::new(log.header.clone()));
        let (reached, mut views, too_long_by) = (Cell::new(Micros::ZERO), 0, Cell::new(None));
        let mut seen = |chunk: &Stretch| {
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
                // Rows of one replay have the same columns.
                trace.append(rows).unwrap_or_default();
            }
        };
        let mut progress = |at| {
            reached.set(at);
            progress(at);
        };
        let ran = log.attempt(game, (options, encoded), &mut seen, &mut put, &mut progress)?;
        match too_long_by.get() {
            Some(by) if ran.is_some() => Err(ExcerptError::TooLong { most, by }),
            _ => Ok(ran.map(|_| (trace, session))),
        }
    })
}
