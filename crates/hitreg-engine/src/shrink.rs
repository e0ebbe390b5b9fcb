//! The smallest session that still shows something: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002) over all that a session is made of.
//!
//! Chunks are taken away, halved when none can go, until no single thing can go; of ddmin's two reductions it is the one
//! to complements, which alone decides about the result's minimality. Every candidate is recorded anew before anyone
//! sees it, so it is a valid log whatever was taken out of it.

mod cost;
mod edit;
mod search;

use serde::Serialize;

pub use cost::Counts;
pub use edit::{Direction, Key, Thing, things, without};

use hitreg_log::record::Session;
use hitreg_netcode::replay::ReplayError;
use hitreg_netcode::{pipeline::Netcode, replay};
use search::Search;

/// What a session can be made smaller by, in the order in which being smaller counts: a session with fewer players is the
/// smaller one, whatever else it has more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Players: one that is removed was never there, and those after it move up by a number.
    Players,
    /// The span of time that a tick ends: what came after it comes sooner.
    Ticks,
    /// Usercmds that do anything: one that is removed stays as an idle one, with its angles and its time.
    Usercmds,
    /// Lost packets: one that is removed arrives, as late as the packet before it. What nothing later overtook does not
    /// count, for it may just be on its way when the session ends.
    Losses,
    /// Packets that came twice: one that is removed comes once.
    Duplicates,
    /// Packets that took another time than the median of their direction, and would come with that too before the session
    /// ends: one that is removed takes the median.
    Delays,
    /// Pressed buttons, and impulses.
    Buttons,
    /// Usercmds that look anywhere but straight ahead.
    Angles,
    /// Forward, side and up moves that are not zero.
    Moves,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 9] = [
        Kind::Players,
        Kind::Ticks,
        Kind::Usercmds,
        Kind::Losses,
        Kind::Duplicates,
        Kind::Delays,
        Kind::Buttons,
        Kind::Angles,
        Kind::Moves,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Players => "players",
            Kind::Ticks => "ticks",
            Kind::Usercmds => "usercmds",
            Kind::Losses => "lost packets",
            Kind::Duplicates => "duplicated packets",
            Kind::Delays => "uneven delays",
            Kind::Buttons => "buttons",
            Kind::Angles => "angles",
            Kind::Moves => "moves",
        }
    }
}

/// A shrunk session.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The session. It shows what it was shrunk for, and no single thing can be taken out of it.
    pub session: Session,
    /// How much of each kind there was and is, in the order of [`Kind::ALL`].
    pub removed: Vec<Removed>,
    /// How many candidates were held against the property. Those that were tried ahead in vain do not count: the number
    /// does not depend on how many threads there are.
    pub probes: u64,
}

/// How much of one kind was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Of what.
    pub kind: Kind,
    /// How many there were.
    pub before: usize,
    /// How many are left.
    pub after: usize,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is being taken out.
    pub kind: Kind,
    /// Whether something of it just was.
    pub smaller: bool,
    /// What there still is.
    pub left: Counts,
    /// Candidates held against the property so far.
    pub probes: u64,
}

/// A session that cannot be shrunk.
#[derive(Debug, thiserror::Error)]
pub enum ShrinkError<E: std::error::Error + 'static> {
    /// The build cannot replay it.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The property could not be judged.
    #[error("whether a session still shows it cannot be said: {0}")]
    Property(#[source] E),
    /// There is nothing to keep.
    #[error("the session does not show it, so there is nothing to shrink")]
    NotShown,
    /// The recording shows it, but its input, played again by this build, does not.
    #[error(
        "the session shows it, but not when its input is recorded again with this build: shrink with the build that recorded it"
    )]
    NotReproduced,
}

/// Shrinks a session for as long as `still` says that it shows what is looked for.
///
/// `still` is asked about sessions that `G` recorded; it has to give the same answer to the same session, and may be asked
/// from several threads at once. `progress` is told after each round of candidates.
///
/// # Errors
/// When the session does not show it to begin with, cannot be replayed closed loop by `G`, or `still` fails.
pub fn shrink<G: Netcode, E: std::error::Error + Send + 'static>(
    session: &Session,
    still: &Still<'_, E>,
    progress: &mut dyn FnMut(&Step),
) -> Result<Shrunk, ShrinkError<E>> {
    shrink_by(session, &|session| Ok(Some(replay::rerecord::<G>(session, None)?)), still, progress)
}

/// Records a candidate's input and links anew; `None` where nothing can be made of what is left of it.
pub type Record<'a, E> = dyn Fn(&Session) -> Result<Option<Session>, ShrinkError<E>> + Sync + 'a;

/// Says whether a session still shows what is looked for.
pub type Still<'a, E> = dyn Fn(&Session) -> Result<bool, E> + Sync + 'a;

/// The same, where `record` knows the game.
///
/// # Errors
/// As [`shrink`].
pub fn shrink_by<E: std::error::Error + Send + 'static>(
    session: &Session,
    record: &Record<'_, E>,
    still: &Still<'_, E>,
    progress: &mut dyn FnMut(&Step),
) -> Result<Shrunk, ShrinkError<E>> {
    if !still(session).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotShown);
    }
    let again = record(session)?.ok_or(ShrinkError::NotReproduced)?;
    if again != *session && !still(&again).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotReproduced);
    }
    let before = Counts::of(&again);
    let mut search = Search::new(again, record, still, progress);
    search.run()?;
    let (session, probes) = search.finish();
    let after = Counts::of(&session);
    let removed = Kind::ALL.map(|kind| Removed { kind, before: before.of_kind(kind), after: after.of_kind(kind) });
    Ok(Shrunk { session, removed: removed.to_vec(), probes })
}
