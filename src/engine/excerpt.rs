//! An excerpt of a log: the replay of a part of it, and what the log says of that part besides. The log is read as it is used up,
//! from the keyframe before that part where it has one.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::rejudged::rejudged_by;
use super::streamed::{StreamError, SurveyedLog, until_whole};
use super::{Engine, EngineError, Playable};
use crate::game::Wall;
use crate::record::{Session, Stretch};
use crate::replay::{Options, Part, ReplayError};
use crate::settings::SettingError;
use crate::trace::{Trace, TraceHeader};
use crate::units::Micros;
use crate::why::Rejudged;

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
    /// An excerpt of a log. `progress` is called now and then with the session time reached, of how much.
    ///
    /// # Errors
    /// When it cannot be read, has no such part, or is not one that this build can replay.
    pub fn excerpt(
        &self,
        path: &Path,
        part: Part,
        progress: &mut dyn FnMut(Micros, Micros),
    ) -> Result<Excerpt, ExcerptError> {
        let log = self.survey_from(path, Part::needs_from(part.from))?.ok_or(ExcerptError::Pipe)?;
        let game = self.games.of_header(&log.header)?;
        let options = Options { part: Some(part), ..Options::default() };
        let length = log.survey.duration();
        let progress = &mut |at| progress(at, length);
        if !log.streams(game, &options) {
            return self.excerpt_of_whole(path, game, &options, progress);
        }
        let [from, to] = [part.from.0.saturating_sub(AROUND.0), part.to.0.saturating_add(AROUND.0)].map(Micros);
        let (trace, mut session) = played(game, &log, &options, Some(Part { from, to }), progress)?;
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

/// All rows of a replay, and what the log has around a part that is to be kept.
fn played(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: &Options,
    kept: Option<Part>,
    progress: &mut dyn FnMut(Micros),
) -> Result<(Trace, Session), ExcerptError> {
    until_whole(&AtomicBool::new(false), |encoded| {
        let (mut trace, mut session) = (Trace::default(), Session::new(log.header.clone()));
        let mut seen = |chunk: &Stretch| {
            if kept.is_some_and(|kept| chunk.times().any(|at| kept.has(at))) {
                session.append(chunk.clone());
            }
        };
        let mut put = |header: &TraceHeader, rows| {
            trace.header = header.clone();
            // Rows of one replay have the same columns.
            trace.append(rows).unwrap_or_default();
        };
        let ran = log.attempt(game, (options, encoded), &mut seen, &mut put, progress)?;
        Ok(ran.map(|_| (trace, session)))
    })
}
