//! The first states of a session whose first ticks were removed.

use super::{Removable, removed_ticks};
use hitreg_log::record::{Session, StateKey, States};
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::{EntityId, Tick};

/// The states of tick 0 for a session without some of its ticks. They are the last recorded states of the players
/// before the first remaining tick, or else the session's own first states.
pub(super) fn states(session: &Session, removed: &[Removable]) -> States {
    let ticks = removed_ticks(removed);
    // Indices count from 0 and ticks from 1, so the number of removed ticks is the number of the last removed tick.
    let gone = (0..).take_while(|place| ticks.contains(place)).count();
    let players = session.players.len();
    let whole = |tick: &Tick| players_of(session, *tick).count() == players;
    let last = session.states.keys().partition_point(|key| key.tick.0 as usize <= gone);
    let recorded = session.states.keys()[..last].iter().rev().map(|key| key.tick).find(whole);
    let mut states = States::default();
    for (key, cells) in recorded.into_iter().flat_map(|tick| players_of(session, tick)) {
        states.push(StateKey { tick: Tick(0), ..key }, cells);
    }
    states
}

/// The recorded players of a tick, in the states for all viewers. Other entities (projectiles) cannot be restored at a
/// session's beginning.
fn players_of(session: &Session, tick: Tick) -> impl Iterator<Item = (StateKey, &[u32])> {
    let is_player = |key: &StateKey| key.viewer.is_none() && usize::from(key.entity.0) < session.players.len();
    session.states.of_tick(tick).filter(move |(key, _)| is_player(key))
}

/// Removes players from the first states. The numbers of later players move down.
pub(super) fn remove_players(states: &mut States, removed: &SortedSet<usize>) {
    let was = std::mem::take(states);
    for (key, cells) in was.of_tick(Tick(0)).filter(|(key, _)| !removed.contains(&usize::from(key.entity.0))) {
        let before = removed.range(..usize::from(key.entity.0)).count() as u16;
        states.push(StateKey { entity: EntityId(key.entity.0 - before), ..key }, cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(rows: &[(u32, u16, u32)]) -> States {
        let mut states = States::default();
        for &(tick, entity, cell) in rows {
            let key = StateKey { tick: Tick(tick), entity: EntityId(entity), ..StateKey::default() };
            states.push(key, &[cell]);
        }
        states
    }

    #[test]
    fn players_are_renumbered_after_a_removal() {
        let mut begin = states(&[(0, 0, 10), (0, 1, 11), (0, 2, 12)]);
        remove_players(&mut begin, &SortedSet::from([1]));
        assert_eq!(begin, states(&[(0, 0, 10), (0, 1, 12)]));
    }
}
