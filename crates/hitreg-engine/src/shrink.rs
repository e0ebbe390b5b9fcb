//! Finds the smallest session that still shows a property. It applies delta debugging to every part of a session
//! (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
//!
//! The search removes chunks. If no chunk can be removed, it halves the chunk size, until no single thing can be
//! removed. Of ddmin's two reductions it uses the reduction to complements, which alone ensures that the result is
//! minimal. Every candidate is recorded again before it is tested, so it is a valid log whatever was removed.

mod edit;
mod log;
mod search;

use serde::Serialize;

pub use edit::{InputKey, PacketDirection, Removable, ShrinkEdit};
pub use log::{Rerecorder, ShrinkProperty, shrink_log};

use crate::engine::Playable;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::units::named;
use hitreg_netcode::replay::ReplayError;
use search::ShrinkSearch;

named! {
    /// What a session can be reduced by, in order of importance. A session with fewer players is the smaller one,
    /// whatever its other counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CostKind {
        /// Players. The numbers of later players move down by one, unless the session is only cut
        /// ([`ShrinkEdit::Cut`]).
        Players = "players",
        /// Ticks, each with the time span that it ends. Everything after a removed tick moves to an earlier time,
        /// unless the session is only cut.
        Ticks = "ticks",
        /// Usercmds with any input. A removed usercmd stays as an idle one, with its angles and its duration.
        Usercmds = "usercmds with input",
        /// Lost packets. A removed loss makes the packet arrive, as late as the packet before it. A packet that no
        /// later packet overtook does not count, because it may be in flight at the session's end.
        Losses = "lost packets",
        /// Packets that arrived twice. A removed duplicate arrives once.
        Duplicates = "duplicated packets",
        /// Packets whose delay differs from the median of their direction. A removed delay becomes the median. Packets
        /// that would then arrive after the session's end do not count.
        Delays = "uneven delays",
        /// Pressed buttons, and impulses.
        Buttons = "buttons",
        /// Usercmds with view angles other than zero.
        Angles = "angles",
        /// Forward, side and up moves that are not zero.
        Moves = "moves",
        /// Input fields that the game declares, with values other than zero.
        OwnInput = "own input fields",
    }
}

/// The number of things of each kind in a session. Compared kind by kind, in the order of [`CostKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostCounts([usize; CostKind::ALL.len()]);

impl CostCounts {
    /// Counts the things that can be removed from a session.
    pub fn of(session: &Session, edit: ShrinkEdit) -> CostCounts {
        CostCounts(CostKind::ALL.map(|kind| edit.things(session, kind).len()))
    }

    /// The count of one kind.
    pub fn of_kind(&self, kind: CostKind) -> usize {
        self.0[kind as usize]
    }
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct ShrinkResult {
    /// The smallest session. It shows the property, and no single thing can be removed.
    pub session: Session,
    /// The counts of each kind before and after, in the order of [`CostKind::ALL`].
    pub removed: Vec<RemovedCount>,
    /// How many candidates were tested. Candidates that other threads tested in vain do not count, so the number does
    /// not depend on the number of threads.
    pub probes: u64,
}

/// How much of one kind was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedCount {
    /// The kind.
    pub kind: CostKind,
    /// The count in the original session.
    pub before: usize,
    /// The count in the smallest session.
    pub after: usize,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrinkStep {
    /// The kind that the search is removing.
    pub kind: CostKind,
    /// The counts of the smallest session so far.
    pub left: CostCounts,
    /// How many candidates have been tested so far.
    pub probes: u64,
}

/// The error for a session that cannot be shrunk.
#[derive(Debug, thiserror::Error)]
pub enum ShrinkError<E: std::error::Error + 'static> {
    /// The build cannot replay the session.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The property could not be evaluated.
    #[error("a session cannot be judged: {0}")]
    Property(#[source] E),
    /// The session does not show the property.
    #[error(
        "the log does not show the problem, so there is nothing to shrink: check the command of --while, or the options of side B"
    )]
    NotShown,
    /// The recording shows the property, but a replay of its input by this build does not.
    #[error(
        "the log shows the problem, but not after recording its input again with this build: give --build with the build that recorded the log"
    )]
    NotReproduced,
}

/// Shrinks a session as long as `still` finds the property in it.
///
/// `still` receives sessions that the game recorded. It must give the same answer for the same session, and may be
/// called from several threads at once: `at_once` candidates are tested at a time. `progress` is called after each round
/// of candidates.
///
/// # Errors
/// When the session does not show the property, the game cannot replay it or a candidate closed loop within this memory
/// limit, or `still` fails.
pub fn shrink<E: std::error::Error + Send + 'static>(
    game: &dyn Playable,
    memory: MemoryLimit,
    session: &Session,
    (still, at_once): (&PropertyCheck<'_, E>, usize),
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<E>> {
    let record = |session: &Session| Ok(Some(game.rerecord(memory, session, None)?));
    shrink_by(session, (ShrinkEdit::Rerecorded, &record), (still, at_once), progress)
}

/// Records a candidate's input and links again; `None` if the candidate cannot be replayed.
type RecordCandidate<'a, E> = dyn Fn(&Session) -> Result<Option<Session>, ShrinkError<E>> + Sync + 'a;

/// Whether a session still shows the property.
pub type PropertyCheck<'a, E> = dyn Fn(&Session) -> Result<bool, E> + Sync + 'a;

/// Shrinks like [`shrink()`], with the caller's `record` in place of a game, for candidates made by `edit`. Tests
/// `at_once` candidates at a time; the result does not depend on that number.
///
/// # Errors
/// Under the conditions of [`shrink()`].
fn shrink_by<E: std::error::Error + Send + 'static>(
    session: &Session,
    (edit, record): (ShrinkEdit, &RecordCandidate<'_, E>),
    (still, at_once): (&PropertyCheck<'_, E>, usize),
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<E>> {
    if !still(session).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotShown);
    }
    let again = record(session)?.ok_or(ShrinkError::NotReproduced)?;
    if again != *session && !still(&again).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotReproduced);
    }
    let before = CostCounts::of(&again, edit);
    let mut search = ShrinkSearch::new(again, (edit, record), (still, at_once), progress);
    search.run()?;
    let ShrinkSearch { current: session, probes, .. } = search;
    let after = CostCounts::of(&session, edit);
    let removed =
        CostKind::ALL.map(|kind| RemovedCount { kind, before: before.of_kind(kind), after: after.of_kind(kind) });
    Ok(ShrinkResult { session, removed: removed.to_vec(), probes })
}
