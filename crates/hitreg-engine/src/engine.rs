//! The commands of the `hitreg` program as a library: the games of a build, comparison, verification, bisection,
//! shrinking, merging and pages. The command line adds arguments, pages and exit codes.
//!
//! Nothing here prints or reads the clock or the environment. The caller can stop a running job through the [`StopSignal`] of
//! its [`BuildRunner`]. Files are read and written through [`store`](hitreg_log::store), and other
//! builds run through [`build`](crate::build).
//!
//! ```
//! use hitreg_engine::engine::{Games, MapFile};
//! use hitreg_log::record::Session;
//! use hitreg_netcode::replay::ReplayOptions;
//! use hitreg_netcode::session::scenario::Scenario;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let games = Games::default().with(hitreg_arena::playable());
//! let scenario = Scenario { players: 2, seconds: 1.0, ..Scenario::default() };
//! let ready = games.recordable(Some("arena"))?.set_up(&scenario, None::<&MapFile<'_>>)?;
//! let mut session = Session::new(ready.header().clone());
//! ready.run(&mut session, &|| true)?;
//! let replayed = games.of(&session)?.replay(&session, &ReplayOptions::default(), &mut |_| {})?;
//! assert!(replayed.findings.first_difference.is_none() && replayed.findings.hashes_compared > 0);
//! # Ok(())
//! # }
//! ```

pub mod bisect;
mod contract;
mod effects;
mod error;
mod games;
mod log_file;
mod merge;
mod moment;
mod rejudge;
mod repeated;
mod shown;
mod sides;
mod streamed;

pub use contract::{ContractPoint, PointResult, check_contract};
pub use effects::look_for_effects;
pub(crate) use error::BuildOutcome;
pub use error::EngineError;
pub use games::{
    Bodies, GameError, Games, MapFile, Playable, ReadySession, RulesError, SelfPlaying, recording, replaying,
};
pub(crate) use log_file::HashingReader;
pub use log_file::LogFile;
pub use merge::MergedLog;
pub use moment::{ExplainedLog, ExplainingRows, RecordedShots};
pub use rejudge::SideRejudgement;
pub use shown::{LogRecords, ShownReplay};
pub use sides::{ComparisonSpec, CrossBuild, MissingSide, ReplaySpec, ReplaySpecs, SideTrace, Traces};
pub(crate) use streamed::Leg;
pub use streamed::{SurveyedLog, SweepError, retry_with_encoding, sweep, write_replayed};

use std::path::Path;

use crate::build::{BuildRunner, StopSignal};
use hitreg_log::record::SessionHeader;

/// The games of this program, how it runs builds, and a callback for each log that it reads.
#[derive(Clone, Debug)]
pub struct Engine<'a> {
    /// The games.
    pub games: &'a Games,
    /// Called with the path and header of each log that is read. The command line uses it to report the parts that
    /// [`passed_over`](hitreg_netcode::info::passed_over) finds.
    pub read: fn(&Path, &SessionHeader),
    /// Runs other builds.
    pub runner: BuildRunner,
}

impl<'a> Engine<'a> {
    /// Creates an engine whose `read` callback does nothing, and which caches no traces of builds.
    pub fn new(games: &'a Games) -> Engine<'a> {
        Engine { games, read: |_, _| {}, runner: BuildRunner::own(games.memory()) }
    }

    /// The same engine with a `read` callback that does nothing.
    #[must_use]
    pub fn quiet(&self) -> Engine<'a> {
        Engine { read: |_, _| {}, ..self.clone() }
    }

    /// The same engine, which never takes a trace of a build from the cache.
    pub(crate) fn uncached(&self) -> Engine<'a> {
        Engine { runner: BuildRunner { cache: None, ..self.runner.clone() }, ..self.clone() }
    }
}

/// Fails if the job was stopped. A result computed after the stop is invalid.
pub(crate) fn check(stop: &StopSignal) -> Result<(), EngineError> {
    if stop.is_stopped() { Err(EngineError::Stopped { resumes: false }) } else { Ok(()) }
}
