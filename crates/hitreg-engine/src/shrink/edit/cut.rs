//! Parts of a session that keep every kind of record, for builds that cannot record a log again.
//!
//! Only the first and the last ticks can be removed. Ticks, usercmds and players keep their numbers, because records of
//! the game's own may name them. The link is what was recorded: the ticks in which usercmds ran do not depend on it.

use super::{Removable, hands, removed_ticks};
use hitreg_log::record::Session;
use hitreg_log::units::Tick;

/// The players that have records.
pub(super) fn players(session: &Session) -> Vec<Removable> {
    let players = session.players.iter().enumerate().filter(|(_, player)| !player.is_empty());
    players.map(|(index, _)| Removable::Player(index)).collect()
}

/// The session without some of its things. Ticks between others stay.
pub(super) fn without(session: &Session, things: &[Removable]) -> Session {
    let is_removed = removed_ticks(things);
    let mut kept = (0..session.ticks.len()).filter(|index| !is_removed.contains(index));
    let (first, last) = (kept.next().unwrap_or(session.ticks.len()), kept.next_back());
    let number = |index: usize| session.ticks.get(index).map_or(Tick(0), |tick| tick.tick);
    let after = first.checked_sub(1).map_or(Tick(0), number);
    let mut edited = session.part(after, number(last.unwrap_or(first)));
    things.iter().for_each(|thing| hands::remove(&mut edited, *thing));
    things.iter().filter_map(Removable::player).for_each(|player| edited.empty_player(player));
    edited
}
