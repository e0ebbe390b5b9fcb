//! The commands of the `hitreg` program as a library: the games of a program behind one trait ([`Playable`]), other builds
//! as processes ([`build`]), [`verify`], [`shrink`], [`mod@sweep`], and the searches of `hitreg bisect` ([`bisect`]). The
//! command line adds arguments, pages and exit codes.
//!
//! Nothing here prints or reads the clock or the environment. The caller can stop a running job through the
//! [`StopSignal`](build::StopSignal) of its [`BuildRunner`](build::BuildRunner). Files are read and written through
//! [`hitreg_log::store`].
//!
//! ```
//! use hitreg_engine::{Games, MapFile};
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
pub mod build;
mod comparison;
mod contract;
pub mod corpus;
mod effects;
mod engine;
mod games;
mod merge;
mod moment;
mod shown;
pub mod shrink;
mod surveyed_log;
pub mod sweep;
pub mod verify;

pub use comparison::{ComparisonSpec, CrossBuild, MissingSide, ReplaySpec, ReplaySpecs, SideTrace, Traces};
pub use contract::{ContractPoint, PointResult, check_contract};
pub use effects::look_for_effects;
pub(crate) use engine::{BuildOutcome, HashingReader, check, file_digest, for_one_log};
pub use engine::{Engine, EngineError, LogFile, panic_text};
pub use games::{
    Bodies, GameError, Games, MapFile, Playable, ReadySession, RulesError, SelfPlaying, recording, replaying,
};
pub use merge::MergedLog;
pub use moment::{ExplainedLog, ExplainingRows};
pub use shown::{LogRecords, ShownReplay, SideRejudgement};
pub use surveyed_log::{CollectedRows, ReplaySinks, SurveyedLog, retry_with_encoding, write_replayed};
pub use sweep::{SweptLog, sweep};

/// Runs numbered jobs, at most `at_once` at a time, and returns their results in order. A free thread takes the next
/// job, so the jobs may take different times.
pub(crate) fn in_order<T: Send>(jobs: usize, at_once: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    use rayon::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let next = AtomicUsize::new(0);
    let some = |_| -> Vec<(usize, T)> {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|number| *number < jobs).map(|number| (number, run(number))).collect()
    };
    let mut all: Vec<_> = (0..at_once.max(1)).into_par_iter().with_max_len(1).flat_map_iter(some).collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, made)| made).collect()
}
