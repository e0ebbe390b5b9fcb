//! The built-in games as their own crates compile them. A call such as `replay::<Arena>` would compile the pipelines
//! again in these tests, without optimization.

use std::error::Error;

use hitreg::engine::{Games, Playable};
use hitreg::memory::MemoryLimit;
use hitreg::record::Session;
use hitreg::registry::built_in;
use hitreg::replay::{ReplayError, ReplayOptions, ReplayOutput};
use hitreg::shrink::{PropertyCheck, ShrinkEdit, ShrinkError, ShrinkResult, shrink_by};

fn game<'g>(games: &'g Games, session: &Session) -> &'g dyn Playable {
    games.of(session).expect("a built-in game")
}

/// Replays a session of a built-in game.
pub(crate) fn replay(session: &Session, options: &ReplayOptions) -> Result<ReplayOutput, ReplayError> {
    game(&built_in(), session).replay(session, options, &mut |_| {})
}

/// Records the input and links of a session again.
pub(crate) fn rerecord(session: &Session) -> Result<Session, ReplayError> {
    game(&built_in(), session).rerecord(MemoryLimit::default(), session, None)
}

/// Shrinks a session to what `still` needs.
pub(crate) fn shrink<E: Error + Send + 'static>(
    session: &Session,
    still: &PropertyCheck<'_, E>,
) -> Result<ShrinkResult, ShrinkError<E>> {
    let record = |session: &Session| Ok(Some(rerecord(session)?));
    shrink_by(session, (ShrinkEdit::Rerecorded, &record), (still, rayon::current_num_threads()), &mut |_| {})
}
