//! The searches of `hitreg bisect`: the first tick where two runs differ, and the build or commit that introduced it.

mod ahead;
mod builds;
mod git;
mod judge;
mod result;
mod search;
mod state;
mod step;
mod ticks;
mod workshop;

pub use builds::BuildSearch;
pub use git::GitSearch;
pub use judge::BuildJudge;
pub use result::{BisectResult, SearchVerdict, SkippedCandidate, TestedCandidate};
pub use step::{body_argument, step};
pub use ticks::{TickBisectionResult, bisect_ticks};

/// A progress callback: steps done, and about how many there will be.
pub type StepProgress<'a> = dyn Fn(u64, u64) + 'a;
