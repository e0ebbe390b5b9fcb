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
use crate::trace::Trace;
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
        let mut session = Session::new(log.header.clone());
        let trace = played(game, &log, &options, &mut |chunk| keep(&mut session, chunk, part), progress)?;
        session.put_in_order();
        let rejudged = rejudged_by(&log.header, &options, &trace, |options| {
            played(game, &log, options, &mut |_| {}, &mut |_| {})
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

/// All rows of a replay.
fn played(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: &Options,
    seen: &mut dyn FnMut(&Stretch),
    progress: &mut dyn FnMut(Micros),
) -> Result<Trace, ExcerptError> {
    // A second attempt sees the same chunks.
    let mut is_first = true;
    until_whole(&AtomicBool::new(false), |encoded| {
        let mut trace = Trace::default();
        let mut look = |chunk: &Stretch| {
            if is_first {
                seen(chunk);
            }
        };
        let ran = log.attempt(
            game,
            (options, encoded),
            &mut look,
            &mut |header, rows| {
                trace.header = header.clone();
                match trace.tables.iter_mut().find(|table| table.name == rows.name) {
                    // Rows of one replay have the same columns.
                    Some(table) => table.append(rows).unwrap_or_default(),
                    None => trace.tables.push(rows),
                }
            },
            progress,
        )?;
        is_first = false;
        Ok(ran.map(|_| trace))
    })
}

/// So much is kept around the part.
const AROUND: Micros = Micros::from_s(4);

fn keep(session: &mut Session, chunk: &Stretch, part: Part) {
    let [from, to] = [part.from.0.saturating_sub(AROUND.0), part.to.0.saturating_add(AROUND.0)];
    let times = chunk.times().fold(None, |span: Option<(i64, i64)>, at| {
        let (first, last) = span.unwrap_or((at.0, at.0));
        Some((first.min(at.0), last.max(at.0)))
    });
    if times.is_some_and(|(first, last)| first < to && from <= last) {
        session.append(chunk.clone());
    }
}
