//! Collects the content of a recording while it is read, and builds the demo.
//!
//! Bots without a client come as entities with a player's model. They block and are drawn like players, and get slots that no
//! client has.

use super::players::PLAYERS_MAX;
use super::svc::{PacketContent, SvcState};
use super::{
    DemoCut, DemoEnd, DemoLevel, Mover, OtherLevels, OtherPlayer, QuakeWorldDemo, QwdError, QwdResult, RecordedBy,
    ServerPacket,
};
use crate::quakeworld::movement::QuakeWorldMoveVars;
use hitreg_log::sorted::{SortedMap, SortedSet};

/// Limit of states or events, above those of a day of play. A few damaged bytes could ask for more.
const LISTED_MAX: usize = 4_000_000;

#[derive(Default)]
pub(super) struct DemoCollector {
    pub(super) client: SvcState,
    pub(super) demo: QuakeWorldDemo,
    /// The number of usercmds before each level.
    commands_before: Vec<usize>,
    listed: ListedCounts,
    bots: BotNumbers,
    /// Indices of the packets that ack usercmds which the demo does not have yet.
    pub(super) acks_ahead: Vec<u32>,
}

/// How much the packets list.
#[derive(Default)]
struct ListedCounts {
    others: usize,
    movers: usize,
    events: usize,
}

impl DemoCollector {
    /// Adds a packet that was read up to `offset`.
    pub(super) fn add(
        &mut self,
        time_s: f32,
        sequence: u32,
        ack: i32,
        content: PacketContent,
        offset: usize,
    ) -> QwdResult {
        self.note_level(content.levels_started);
        let listed = &mut self.listed;
        let lists = [listed.others, listed.movers, listed.events, self.demo.hits.len(), self.demo.executed.len()];
        if lists.into_iter().any(|len| len > LISTED_MAX) {
            let limit = LISTED_MAX as i64;
            return Err(QwdError::out_of_bounds(offset, "the number of states and events", limit + 1, limit));
        }
        let bots = self.client.entities.bots(sequence).map(|(number, origin)| self.bots.seen(number, origin));
        let others: Vec<OtherPlayer> = content.others.into_iter().chain(bots.flatten()).collect();
        let movers: Vec<Mover> = self.client.entities.movers(sequence).collect();
        let (own, events) = (content.own, content.events);
        listed.others += others.len();
        listed.movers += movers.len();
        listed.events += events.len();
        let move_vars = self.current_move_vars();
        let level = self.demo.levels.len().saturating_sub(1) as u16;
        self.client.is_played |= own.is_some() || !others.is_empty();
        self.demo.packets.push(ServerPacket { time_s, sequence, level, ack, own, others, movers, events, move_vars });
        if content.disconnected {
            self.demo.end = DemoEnd::Disconnect;
        }
        Ok(())
    }

    /// Ends the demo before a damaged frame.
    ///
    /// # Errors
    /// When play has not begun: the demo may be of another protocol. Also when a proxy recorded the demo.
    pub(super) fn end_at_damage(&mut self, error: QwdError, cut: DemoCut) -> QwdResult {
        if !self.client.is_played || matches!(error, QwdError::Proxy { .. }) {
            return Err(error);
        }
        (self.demo.cut, self.demo.damage) = (Some(cut), Some(error));
        Ok(())
    }

    fn note_level(&mut self, started: u32) {
        if let Some(level) = self.client.level {
            if started > 0 && self.demo.levels.len() < usize::from(u16::MAX) {
                self.demo.levels.push(DemoLevel { map: String::new(), player: level.player });
                self.commands_before.push(self.demo.commands.len());
            }
            if let Some(last) = self.demo.levels.last_mut().filter(|last| last.map.is_empty()) {
                last.map.clone_from(&self.client.map);
            }
        }
    }

    fn current_move_vars(&mut self) -> u16 {
        let now = self.client.level.map_or(QuakeWorldMoveVars::default(), |level| level.move_vars);
        if self.demo.move_vars.last() != Some(&now) && self.demo.move_vars.len() < usize::from(u16::MAX) {
            self.demo.move_vars.push(now);
        }
        (self.demo.move_vars.len() - 1) as u16
    }

    /// Drops the packets and usercmds of levels on other maps than the first played one.
    fn drop_other_maps(&mut self) -> OtherLevels {
        let is_play = |packet: &&ServerPacket| packet.own.is_some() || !packet.others.is_empty();
        let played = self.demo.packets.iter().find(is_play).map_or(0, |packet| usize::from(packet.level));
        let Some(map) = self.demo.levels.get(played).map(|level| level.map.clone()) else {
            return OtherLevels::default();
        };
        // A server that sends its data twice names the map only once.
        let is_same = |level: &DemoLevel| level.map.is_empty() || level.map == map;
        let first = self.demo.levels[..played].iter().rposition(|level| !is_same(level)).map_or(0, |other| other + 1);
        let kept = self.demo.levels[played..].iter().take_while(|level| level.map == map).count();
        let levels = first..played + kept;
        let place = |level: usize| self.demo.packets.partition_point(|packet| usize::from(packet.level) < level);
        let packets = place(levels.start)..place(levels.end);
        let commands_before = |level: usize| self.commands_before.get(level).copied();
        let after = commands_before(levels.end).unwrap_or(self.demo.commands.len());
        let commands = if levels.start == 0 { 0 } else { commands_before(levels.start).unwrap_or(0) }..after;
        let left_out = OtherLevels {
            levels: (self.demo.levels.len() - levels.len()) as u64,
            packets: (self.demo.packets.len() - packets.len()) as u64,
            usercmds: (self.demo.commands.len() - commands.len()) as u64,
        };
        let base = packets.start as u32;
        let is_kept = |packet: u32| packets.contains(&(packet as usize));
        self.acks_ahead.retain(|packet| is_kept(*packet));
        self.demo.hits.retain(|hit| is_kept(hit.packet));
        self.demo.hits.iter_mut().for_each(|hit| hit.packet -= base);
        self.demo.executed.retain(|usercmd| is_kept(usercmd.packet));
        self.demo.executed.iter_mut().for_each(|usercmd| usercmd.packet -= base);
        self.demo.commands = self.demo.commands.drain(commands).collect();
        self.demo.packets = self.demo.packets.drain(packets).collect();
        self.demo.packets.iter_mut().for_each(|packet| packet.level = packet.level.saturating_sub(levels.start as u16));
        if levels.end < self.demo.levels.len() {
            self.demo.end = DemoEnd::File;
        }
        self.demo.levels = self.demo.levels.drain(levels).collect();
        left_out
    }

    pub(super) fn finish(mut self) -> QwdResult<QuakeWorldDemo> {
        let level = self.client.level.ok_or(QwdError::Nothing { missing: "server data" })?;
        let last = (self.client.recorded_by, self.client.describe(level));
        let other_levels = self.drop_other_maps();
        let played = self.client.played.take().filter(|_| other_levels.levels > 0);
        let (recorded_by, server) = played.unwrap_or(last);
        let acks_ahead = self.acks_ahead.len() as u64;
        let mut demo = QuakeWorldDemo { recorded_by, server, other_levels, acks_ahead, ..self.demo };
        if demo.commands.is_empty() && recorded_by == RecordedBy::Player {
            return Err(QwdError::Nothing { missing: "usercmds" });
        }
        remove_markers(&mut demo.packets);
        give_slots(&mut demo.packets, &demo.levels);
        demo.packets.iter_mut().for_each(|packet| packet.others.sort_by_key(|other| other.slot));
        if recorded_by == RecordedBy::Server {
            add_velocities(&mut demo.packets);
            give_seat(&mut demo.levels, &demo.packets);
        }
        Ok(demo)
    }
}

/// Adds velocities to a server's recording, which lacks them. It derives them from consecutive positions, as players of
/// such demos do.
fn add_velocities(packets: &mut [ServerPacket]) {
    let mut last: SortedMap<u8, (f32, [f32; 3], bool)> = SortedMap::new();
    for packet in packets {
        for other in &mut packet.others {
            let before = last.insert(other.slot, (packet.time_s, other.origin, other.dead));
            let Some((at, origin, dead)) = before else { continue };
            let seconds = packet.time_s - at;
            if seconds > 0.0 && (other.dead || !dead) {
                let speed = |axis: usize| libm::roundf((other.origin[axis] - origin[axis]) / seconds) as i16;
                other.velocity = [0, 1, 2].map(speed);
            }
        }
    }
}

/// Gives the viewer of a server's recording a slot that no player ever has.
fn give_seat(levels: &mut [DemoLevel], packets: &[ServerPacket]) {
    let highest = packets.iter().flat_map(|packet| &packet.others).map(|other| other.slot).max();
    let seat = highest.map_or(0, |slot| (slot + 1).min(PLAYERS_MAX - 1));
    levels.iter_mut().for_each(|level| level.player = seat);
}

/// Entity numbers of the bots seen so far. Bots are numbered from beyond the players' slots until they get slots.
#[derive(Debug, Default)]
struct BotNumbers {
    numbers: Vec<u16>,
}

impl BotNumbers {
    /// Returns the bot of this entity as a player; `None` above the limit.
    fn seen(&mut self, number: u16, origin: [f32; 3]) -> Option<OtherPlayer> {
        let known = self.numbers.iter().position(|known| *known == number);
        let index = known.unwrap_or(self.numbers.len());
        if known.is_none() && index < usize::from(PLAYERS_MAX) {
            self.numbers.push(number);
        }
        let slot = PLAYERS_MAX.checked_add(u8::try_from(index).ok()?)?;
        let bot = OtherPlayer { slot, origin, bot: true, ..OtherPlayer::default() };
        (index < self.numbers.len()).then_some(bot)
    }
}

/// Removes entities with a player's model that never move. Practice servers mark spawn points with them, and players
/// can walk through them.
fn remove_markers(packets: &mut [ServerPacket]) {
    let mut seen: SortedMap<u8, ([f32; 3], bool)> = SortedMap::new();
    for bot in packets.iter().flat_map(|packet| &packet.others).filter(|other| other.bot) {
        let (first, moved) = seen.entry(bot.slot).or_insert((bot.origin, false));
        *moved |= bot.origin != *first;
    }
    let moves = |other: &OtherPlayer| !other.bot || seen.get(&other.slot).is_some_and(|(_, moved)| *moved);
    packets.iter_mut().for_each(|packet| packet.others.retain(moves));
}

/// Gives each bot a slot that no client ever has.
fn give_slots(packets: &mut [ServerPacket], levels: &[DemoLevel]) {
    let others = packets.iter().flat_map(|packet| &packet.others);
    let clients = others.filter(|other| !other.bot).map(|other| other.slot);
    let taken: SortedSet<u8> = clients.chain(levels.iter().map(|level| level.player)).collect();
    let free: Vec<u8> = (0..PLAYERS_MAX).filter(|slot| !taken.contains(slot)).collect();
    for bot in packets.iter_mut().flat_map(|packet| &mut packet.others).filter(|other| other.bot) {
        let index = usize::from(bot.slot - PLAYERS_MAX);
        // Bots beyond the free slots share the last one; of two states of one entity, the first counts.
        bot.slot = free.get(index).or(free.last()).copied().unwrap_or(PLAYERS_MAX - 1);
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
        assert_eq!(left, [[PLAYERS_MAX], [PLAYERS_MAX]]);
    }
}
