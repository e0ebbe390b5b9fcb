//! All that the commands do, as a library: the games of a build, both sides of a comparison, verifying, the searches of
//! `bisect`, what a shrunk log must still show, importing. The command line adds arguments, pages and exit codes.
//!
//! Nothing is printed here, no clock or environment is asked, and whoever calls may stop what runs by the
//! [`Stop`] of its [`Runner`](crate::build::Runner). Files are read and written through
//! [`store`](hitreg_log::store), and other builds are run through [`build`](crate::build).
//!
//! ```
//! use hitreg_engine::engine::{Games, MapFile};
//! use hitreg_log::record::Session;
//! use hitreg_netcode::replay::Options;
//! use hitreg_netcode::session::scenario::Scenario;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let games = Games::default().with(hitreg_arena::playable());
//! let scenario = Scenario { players: 2, seconds: 1.0, ..Scenario::default() };
//! let ready = games.recordable(Some("arena"))?.set_up(&scenario, None::<&MapFile<'_>>)?;
//! let mut session = Session::new(ready.header().clone());
//! ready.run(&mut session, &|| true)?;
//! let replayed = games.of(&session)?.replay(&session, &Options::default(), &mut |_| {})?;
//! assert!(replayed.first_difference.is_none() && replayed.hashes_compared > 0);
//! # Ok(())
//! # }
//! ```

pub mod bisect;
mod effects;
mod error;
mod excerpt;
mod games;
mod log_file;
mod looked;
mod merge;
mod rejudged;
mod shrink;
mod sides;
mod streamed;
mod verify;

pub use effects::look_for_effects;
pub use error::EngineError;
pub use excerpt::{Excerpt, ExcerptError};
pub use games::JoinError;
pub use games::{
    Bodies, Games, MapFile, NotRecordable, Playable, PlaysItself, ReadySession, RulesError, ScoreError, SetupError,
    StepError, UnknownGame, recording, replaying,
};
pub use log_file::LogFile;
pub use looked::Looked;
pub use merge::{MergedLog, NotMerged};
pub use rejudged::{NotRejudged, OfSide, rejudged};
pub use shrink::{Property, Recorder, shrink};
pub use sides::{Across, Held, Missing, Sides, Traces, Way, Ways};
pub use streamed::{ScoringError, StreamError, SurveyedLog, can_be_read_twice, until_whole};
pub use verify::{Golden, Keep, LogReport, Player, Proposal, Verify, proposals_below};

use std::path::Path;

use crate::build::Stop;
use hitreg_log::record::Header;

/// The games of this program, and who is told of the logs that are read.
#[derive(Clone, Copy, Debug)]
pub struct Engine<'a> {
    /// The games.
    pub games: &'a Games,
    /// Is told of each log that is read, so that it can say what [`passed_over`](hitreg_netcode::info::passed_over) finds in it.
    pub read: fn(&Path, &Header),
}

impl<'a> Engine<'a> {
    /// An engine that tells nobody what it reads.
    pub fn new(games: &'a Games) -> Engine<'a> {
        Engine { games, read: |_, _| {} }
    }
}

/// Fails when somebody has stopped what runs: what came of anything since is no result.
fn check(stop: &Stop) -> Result<(), EngineError> {
    if stop.is_stopped() { Err(EngineError::Stopped { resumes: false }) } else { Ok(()) }
}
