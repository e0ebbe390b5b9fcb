//! Bots without a client. A server sends them as entities with a player's model. They block and are drawn like players,
//! and get slots that no client has.

use hitreg_log::sorted::{SortedMap, SortedSet};

use super::players::MOST_PLAYERS;
use super::recording::{DemoLevel, OtherPlayer, ServerPacket};

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
pub(crate) fn remove_markers(packets: &mut [ServerPacket]) {
    let mut seen: SortedMap<u8, ([f32; 3], bool)> = SortedMap::new();
    for bot in packets.iter().flat_map(|packet| &packet.others).filter(|other| other.bot) {
        let (first, moved) = seen.entry(bot.slot).or_insert((bot.origin, false));
        *moved |= bot.origin != *first;
    }
    let moves = |other: &OtherPlayer| !other.bot || seen.get(&other.slot).is_some_and(|(_, moved)| *moved);
    packets.iter_mut().for_each(|packet| packet.others.retain(moves));
}

/// Gives each bot a slot that no client ever has.
pub(crate) fn give_slots(packets: &mut [ServerPacket], levels: &[DemoLevel]) {
    let others = packets.iter().flat_map(|packet| &packet.others);
    let clients = others.filter(|other| !other.bot).map(|other| other.slot);
    let taken: SortedSet<u8> = clients.chain(levels.iter().map(|level| level.player)).collect();
    let free: Vec<u8> = (0..MOST_PLAYERS).filter(|slot| !taken.contains(slot)).collect();
    for bot in packets.iter_mut().flat_map(|packet| &mut packet.others).filter(|other| other.bot) {
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
        let mut packets = [packet(vec![client, first, bots.seen(140, [3.0; 3]).expect("room")])];
        give_slots(&mut packets, &[DemoLevel { map: String::new(), player: 1 }]);
        assert_eq!(packets[0].others.iter().map(|other| other.slot).collect::<Vec<_>>(), [0, 3, 2]);
        assert!((0..100).all(|number| bots.seen(number, [0.0; 3]).is_none_or(|bot| bot.slot < 64)));
    }

    fn packet(others: Vec<OtherPlayer>) -> ServerPacket {
        let (movers, events) = (Vec::new(), Vec::new());
        ServerPacket { time_s: 0.0, sequence: 1, level: 0, ack: 0, own: None, others, movers, events, move_vars: 0 }
    }

    #[test]
    fn entities_that_never_move_are_not_bots() {
        let mut bots = BotNumbers::default();
        let mut seen = |number, origin| bots.seen(number, origin).expect("room");
        let mut packets = [1.0, 2.0].map(|x| packet(vec![seen(140, [x, 0.0, 0.0]), seen(141, [7.0; 3])]));
        remove_markers(&mut packets);
        let left = packets.each_ref().map(|packet| packet.others.iter().map(|other| other.slot).collect::<Vec<_>>());
        assert_eq!(left, [[MOST_PLAYERS], [MOST_PLAYERS]]);
    }
}
