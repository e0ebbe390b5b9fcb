//! The searches of `hitreg bisect`: the first tick where two runs differ, and the build or commit that introduced it.

mod ahead;
mod builds;
mod found;
mod git;
mod judge;
mod search;
mod state;
mod step;
mod ticks;
mod workshop;

pub use builds::BuildSearch;
pub use found::{Found, Skipped, Tested, Verdict};
pub use git::GitSearch;
pub use judge::{Answer, Judge};
pub use step::{body_argument, step};
pub use ticks::{Bisected, bisect_ticks};

/// A progress callback: steps done, and about how many there will be.
pub type Steps<'a> = dyn Fn(u64, u64) + 'a;
