//! The soak test: a search for faults. A seed determines a session and everything that goes wrong in it (a [`SoakPlan`]).
//! The session is played in virtual time, recorded, replayed, cut, merged and compared. Every [`SoakProperty`] that must
//! hold for all sessions is checked. The same seed gives the same result on any machine.
//!
//! A plan that breaks a property is reduced as long as it breaks the same property.

mod check;
mod disk;
mod plan;
mod play;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;

pub use crate::soak::plan::{FalseClaims, PlanLimits, PlannedFault, PlayerPlan, SoakPlan};
pub use crate::soak::play::SoakMaps;
use hitreg_engine::panic_text;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::named;

named! {
    /// The properties that must hold for every session.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SoakProperty {
        /// Every plan can be played, without a panic.
        Plays = "plays",
        /// No client exceeds the documented bounds, whatever it claims.
        Bounds = "bounds",
        /// A log holds exactly what was recorded.
        Log = "log",
        /// A replay reproduces every recorded state.
        Replay = "replay",
        /// The world can be saved, restored and run again at any tick.
        Rollback = "rollback",
        /// A replay with encoded datagrams equals one without.
        Datagrams = "datagrams",
        /// A session recorded again from its own input is the same.
        Rerecord = "rerecord",
        /// `verify` finds no difference.
        Verify = "verify",
        /// A player who interpolates and lost no snapshot is judged by its own view.
        ViewError = "view_error",
        /// A player who is alone and lost nothing predicts without error.
        Prediction = "prediction",
        /// A trace does not differ from itself.
        DiffSelf = "diff_self",
        /// The diff of B and A mirrors the diff of A and B.
        DiffMirror = "diff_mirror",
        /// A killed recorder loses at most one second.
        Crash = "crash",
        /// A full disk leaves a log that can be opened.
        FullDisk = "full_disk",
        /// A log that is cut anywhere gives back the part before the cut and names the place.
        Torn = "torn",
        /// A flipped bit is detected, wherever it is.
        Flipped = "flipped",
        /// A replay of the server's log alone reproduces every recorded state, whatever the clients claimed.
        Heard = "heard",
        /// The logs of a session's sides can be merged into the whole.
        Merge = "merge",
        /// A shrunk session still shows what it was shrunk for.
        Shrink = "shrink",
    }
}

/// A broken property.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BrokenProperty {
    /// The property.
    pub property: SoakProperty,
    /// A description of the failure.
    pub detail: String,
}

/// Counts of what the checks exercised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SoakCoverage {
    /// For each property, the number of sessions in which it had something to check.
    pub held: SortedMap<SoakProperty, u64>,
    /// Server ticks.
    pub ticks: u64,
    /// Usercmds.
    pub usercmds: u64,
    /// Shots.
    pub shots: u64,
    /// Shots whose view error had to be 0 units.
    pub view_errors: u64,
    /// Predictions that had to be exact.
    pub predictions: u64,
    /// The most session time that a crash lost, in µs.
    pub lost_us_most: i64,
}

impl SoakCoverage {
    fn held(&mut self, property: SoakProperty) {
        *self.held.entry(property).or_default() += 1;
    }

    /// Adds the counts of other sessions.
    pub fn add(&mut self, other: &SoakCoverage) {
        for (property, sessions) in &other.held {
            *self.held.entry(*property).or_default() += sessions;
        }
        self.ticks += other.ticks;
        self.usercmds += other.usercmds;
        self.shots += other.shots;
        self.view_errors += other.view_errors;
        self.predictions += other.predictions;
        self.lost_us_most = self.lost_us_most.max(other.lost_us_most);
    }
}

/// Plays a plan and checks every property, up to the first that is broken.
///
/// # Errors
/// When a property is broken.
pub fn run(stage: &SoakMaps, plan: &SoakPlan) -> Result<SoakCoverage, BrokenProperty> {
    match catch_unwind(AssertUnwindSafe(|| check::check(stage, plan))) {
        Ok(found) => found,
        Err(panic) => {
            Err(BrokenProperty { property: SoakProperty::Plays, detail: format!("it panics: {}", panic_text(&*panic)) })
        }
    }
}

/// The shortest session, in ms.
pub const SESSION_MS_MIN: u32 = 100;

/// Returns restrictions under which a seed's plan breaks the same property, and the failure. It removes faults that are
/// not needed, reduces players to the minimum, and halves the length as often as possible.
pub fn smaller(
    breaks: &dyn Fn(&SoakPlan) -> Option<BrokenProperty>,
    seed: u64,
    limits: &PlanLimits,
    broken: BrokenProperty,
) -> (PlanLimits, BrokenProperty) {
    let (mut limits, mut broken) = (limits.clone(), broken);
    loop {
        let before = limits.clone();
        for candidate in candidates(seed, &limits) {
            let found = breaks(&SoakPlan::of(seed, &candidate)).filter(|found| found.property == broken.property);
            if let Some(found) = found {
                (limits, broken) = (candidate, found);
                break;
            }
        }
        if limits == before {
            return (limits, broken);
        }
    }
}

/// Returns the next restrictions to try, the most informative first.
fn candidates(seed: u64, limits: &PlanLimits) -> Vec<PlanLimits> {
    let plan = SoakPlan::of(seed, limits);
    let without = |fault: &PlannedFault| {
        let mut less = limits.clone();
        less.without.insert(*fault);
        less
    };
    let mut candidates: Vec<PlanLimits> = plan.faults.iter().map(without).collect();
    let players = plan.players.len();
    candidates.extend((1..players).map(|fewer| PlanLimits { players: Some(fewer), ..limits.clone() }));
    let shorter = [plan.length_ms / 2, plan.length_ms * 3 / 4].into_iter().filter(|ms| *ms >= SESSION_MS_MIN);
    candidates.extend(shorter.map(|ms| PlanLimits { length_ms: Some(ms), ..limits.clone() }));
    candidates
}
