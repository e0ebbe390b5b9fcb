//! Bots without a client. A server sends them as entities with a player's model. They block and are drawn like players,
//! and get slots that no client has.

use std::collections::{BTreeMap, BTreeSet};

use super::players::MOST_PLAYERS;
use super::recording::{DemoLevel, OtherPlayer, ServerPacket, Span};

/// Entity numbers of the bots seen so far. Bots are numbered from beyond the players' slots until they get slots.
#[derive(Debug, Default)]
pub(crate) struct BotNumbers {
    numbers: Vec<u16>,
}

impl BotNumbers {
    /// Returns the bot of this entity as a player; `None` above the limit.
    pub(crate) fn seen(&mut self, number: u16, origin: [f32; 3]) -> Option<OtherPlayer> {
        let known = self.numbers.iter().position(|known| *known == number);
        let index = known.unwrap_or(self.numbers.len());
        if known.is_none() && index < usize::from(MOST_PLAYERS) {
            self.numbers.push(number);
        }
        let slot = MOST_PLAYERS.checked_add(u8::try_from(index).ok()?)?;
        let bot = OtherPlayer {
            slot,
            origin,
            velocity: [0; 3],
            angles: [0.0; 3],
            age_ms: 0,
            dead: false,
            gib: false,
            command: None,
            bot: true,
        };
        (index < self.numbers.len()).then_some(bot)
    }
}

/// Removes entities with a player's model that never move. Practice servers mark spawn points with them, and players
/// can walk through them.
pub(crate) fn without_markers(others: &[OtherPlayer], packets: &mut [ServerPacket]) -> Vec<OtherPlayer> {
    let mut seen: BTreeMap<u8, ([f32; 3], bool)> = BTreeMap::new();
    for bot in others.iter().filter(|other| other.bot) {
        let (first, moved) = seen.entry(bot.slot).or_insert((bot.origin, false));
        *moved |= bot.origin != *first;
    }
    let moves = |other: &&OtherPlayer| !other.bot || seen.get(&other.slot).is_some_and(|(_, moved)| *moved);
    let mut left = Vec::with_capacity(others.len());
    for packet in packets {
        let start = left.len() as u32;
        left.extend(packet.others.of(others).iter().filter(moves).copied());
        packet.others = Span { start, end: left.len() as u32 };
    }
    left
}

/// Gives each bot a slot that no client ever has.
pub(crate) fn give_slots(others: &mut [OtherPlayer], levels: &[DemoLevel]) {
    let clients = others.iter().filter(|other| !other.bot).map(|other| other.slot);
    let taken: BTreeSet<u8> = clients.chain(levels.iter().map(|level| level.player)).collect();
    let free: Vec<u8> = (0..MOST_PLAYERS).filter(|slot| !taken.contains(slot)).collect();
    for bot in others.iter_mut().filter(|other| other.bot) {
        let index = usize::from(bot.slot - MOST_PLAYERS);
        // Bots beyond the free slots share the last one; of two states of one entity, the first counts.
        bot.slot = free.get(index).or(free.last()).copied().unwrap_or(MOST_PLAYERS - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_take_slots_that_no_client_has() {
        let mut bots = BotNumbers::default();
        let client = OtherPlayer { slot: 0, bot: false, ..bots.seen(140, [1.0; 3]).expect("room") };
        let first = bots.seen(138, [2.0; 3]).expect("room");
        let mut others = [client, first, bots.seen(140, [3.0; 3]).expect("room")];
        give_slots(&mut others, &[DemoLevel { map: String::new(), player: 1 }]);
        assert_eq!(others.map(|other| other.slot), [0, 3, 2]);
        assert!((0..100).all(|number| bots.seen(number, [0.0; 3]).is_none_or(|bot| bot.slot < 64)));
    }

    fn packet(others: Span) -> ServerPacket {
        let none = Span { start: 0, end: 0 };
        let (movers, events) = (none, none);
        ServerPacket { time_s: 0.0, sequence: 1, level: 0, ack: 0, own: None, others, movers, events, move_vars: 0 }
    }

    #[test]
    fn entities_that_never_move_are_not_bots() {
        let mut bots = BotNumbers::default();
        let mut others = Vec::new();
        for x in [1.0, 2.0] {
            others.push(bots.seen(140, [x, 0.0, 0.0]).expect("room"));
            others.push(bots.seen(141, [7.0; 3]).expect("room"));
        }
        let mut packets = [0, 2].map(|start| packet(Span { start, end: start + 2 }));
        let left = without_markers(&others, &mut packets);
        assert_eq!(packets.each_ref().map(|packet| packet.others.of(&left).len()), [1, 1]);
        assert!(left.iter().all(|other| other.slot == MOST_PLAYERS));
    }
}
