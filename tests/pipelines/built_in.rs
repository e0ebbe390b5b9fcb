//! The built-in games as their own crates compile them. A call such as `replay::<Arena>` would compile the pipelines
//! again in these tests, without optimization.

use std::error::Error;
use std::sync::Arc;

use hitreg::arena::{Arena, ArenaRules, record_synthetic};
use hitreg::engine::{Games, Playable};
use hitreg::memory::MemoryLimit;
use hitreg::record::Session;
use hitreg::registry::built_in;
use hitreg::replay::{ReplayError, ReplayOptions, ReplayOutput};
use hitreg::session::SessionRecorder;
use hitreg::session::scenario::Scenario;
use hitreg::shrink::{PropertyCheck, ShrinkError, ShrinkResult};

fn game<'g>(games: &'g Games, session: &Session) -> &'g dyn Playable {
    games.of(session).expect("a built-in game")
}

/// Records bots of the built-in arena.
pub(crate) fn record(scenario: &Scenario, rules: ArenaRules) -> Session {
    let rules = Arc::new(rules);
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    record_synthetic(scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    session
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
    let (built_in, parallel) = (built_in(), rayon::current_num_threads());
    hitreg::shrink::shrink(game(&built_in, session), MemoryLimit::default(), session, still, parallel, &mut |_| {})
}
