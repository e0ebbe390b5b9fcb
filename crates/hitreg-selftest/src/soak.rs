//! A machine that looks for faults. One seed picks a session and everything that goes wrong with it (a [`Plan`]); it is played
//! in virtual time, recorded, replayed, torn, merged, compared, and held against what must be true of every session
//! ([`Property`]). The same seed comes to the same, on any machine.
//!
//! A plan that broke something is made smaller, for as long as it breaks the same.

mod agree;
mod bounds;
mod check;
mod disk;
mod drawn;
mod intruder;
mod lie;
mod plan;
mod play;
mod sides;
mod smaller;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hitreg_log::units::named;
use serde::Serialize;

pub use lie::Lie;
pub use plan::{Fault, Limits, Plan, PlayerPlan};
pub use play::Stage;
pub use smaller::smaller;

/// What must be true of every session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// Nothing panics, and every plan can be played.
    Plays,
    /// No client has more than the documented bounds give it, whatever it says.
    Bounds,
    /// A log holds what was recorded, to the bit.
    Log,
    /// A replay has every recorded state.
    Replay,
    /// The world can be saved, restored and run again at any tick.
    Rollback,
    /// Datagrams make no difference to a replay.
    Datagrams,
    /// The session recorded again from its own input is the same.
    Rerecord,
    /// `verify` finds nothing.
    Verify,
    /// Who lost nothing and interpolates is judged by what was on the screen.
    ViewError,
    /// Who is alone and lost nothing predicts without error.
    Prediction,
    /// A trace differs in nothing from itself.
    DiffSelf,
    /// B against A is A against B, the other way round.
    DiffMirror,
    /// A recorder that is killed loses at most a second.
    Crash,
    /// A full disk leaves a log that opens.
    FullDisk,
    /// A log that is cut anywhere gives back what is before, and says where it is cut.
    Torn,
    /// A bit that has flipped anywhere is found.
    Flipped,
    /// The server's log alone has every recorded state when it is replayed, whatever clients said.
    Heard,
    /// The sides of a session make the whole again.
    Merge,
    /// What a session was shrunk for it still shows.
    Shrink,
}

named!(Property {
    Plays = "plays",
    Bounds = "bounds",
    Log = "log",
    Replay = "replay",
    Rollback = "rollback",
    Datagrams = "datagrams",
    Rerecord = "rerecord",
    Verify = "verify",
    ViewError = "view_error",
    Prediction = "prediction",
    DiffSelf = "diff_self",
    DiffMirror = "diff_mirror",
    Crash = "crash",
    FullDisk = "full_disk",
    Torn = "torn",
    Flipped = "flipped",
    Heard = "heard",
    Merge = "merge",
    Shrink = "shrink",
});

impl Property {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Broken {
    /// Which.
    pub property: Property,
    /// How it shows.
    pub detail: String,
}

/// What sessions were held against.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exercised {
    /// How many sessions each property was held against, and found something to hold.
    pub held: BTreeMap<Property, u64>,
    /// Server ticks.
    pub ticks: u64,
    /// Usercmds.
    pub usercmds: u64,
    /// Shots.
    pub shots: u64,
    /// Shots whose view error had to be 0.
    pub view_errors: u64,
    /// Predictions that had to be exact.
    pub predictions: u64,
    /// The most session time that a crash lost, in µs.
    pub lost_us_most: i64,
}

impl Exercised {
    fn held(&mut self, property: Property) {
        *self.held.entry(property).or_default() += 1;
    }

    /// Adds what other sessions were held against.
    pub fn add(&mut self, other: &Exercised) {
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

/// Plays a plan, and holds what comes of it against every property, up to the first that does not hold.
///
/// # Errors
/// When one does not hold.
pub fn run(stage: &Stage, plan: &Plan) -> Result<Exercised, Broken> {
    match catch_unwind(AssertUnwindSafe(|| check::check(stage, plan))) {
        Ok(found) => found,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
            Err(Broken { property: Property::Plays, detail: format!("it panics: {said}") })
        }
    }
}
