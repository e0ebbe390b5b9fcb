//! Parts of a session that keep every kind of record, for builds that cannot record a log again.
//!
//! Only the first and the last ticks can be removed. Ticks, usercmds and players keep their numbers, because records of
//! the game's own may name them. The link is what was recorded: the ticks in which usercmds ran do not depend on it.

use std::collections::BTreeSet;

use super::super::CostKind;
use super::{Removable, hands};
use hitreg_log::record::Session;
use hitreg_log::units::Tick;

/// All things of one kind, in the order in which they are tried.
pub(super) fn things(session: &Session, kind: CostKind) -> Vec<Removable> {
    match kind {
        CostKind::Players => {
            let has_records = |(_, player): &(usize, &hitreg_log::record::PlayerRecords)| {
                player.streams().into_iter().any(|stream| !stream.is_empty())
            };
            session.players.iter().enumerate().filter(has_records).map(|(index, _)| Removable::Player(index)).collect()
        }
        CostKind::Ticks => (0..session.ticks.len()).rev().map(Removable::Tick).collect(),
        CostKind::Usercmds | CostKind::Buttons | CostKind::Angles | CostKind::Moves | CostKind::OwnInput => {
            hands::things(session, kind)
        }
        CostKind::Losses | CostKind::Duplicates | CostKind::Delays => Vec::new(),
    }
}

/// The session without some of its things. Ticks between others stay.
pub(super) fn without(session: &Session, things: &[Removable]) -> Session {
    let is_removed: BTreeSet<usize> = things
        .iter()
        .filter_map(|thing| if let Removable::Tick(index) = thing { Some(*index) } else { None })
        .collect();
    let mut kept = (0..session.ticks.len()).filter(|index| !is_removed.contains(index));
    let (first, last) = (kept.next().unwrap_or(session.ticks.len()), kept.next_back());
    let number = |index: usize| session.ticks.get(index).map_or(Tick(0), |tick| tick.tick);
    let after = first.checked_sub(1).map_or(Tick(0), number);
    let mut edited = session.part(after, number(last.unwrap_or(first)));
    for thing in things {
        match *thing {
            Removable::Player(player) => edited.empty_player(player),
            Removable::Tick(_) | Removable::Loss(..) | Removable::Duplicate(..) | Removable::Delay(..) => {}
            Removable::Usercmd(..)
            | Removable::Button(..)
            | Removable::Angles(..)
            | Removable::Move(..)
            | Removable::OwnInput(..) => hands::remove(&mut edited, *thing),
        }
    }
    edited
}
