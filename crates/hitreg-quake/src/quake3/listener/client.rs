//! The player of a slot: its usercmds without repeats, its packets, and the snapshots that it received.

use std::collections::VecDeque;

use super::hits::SeenEvents;
use super::{DeliveryTime, NewestTicks};
use crate::quake3::body::input_of;
use crate::quake3::protocol::{Quake3Snapshot, Quake3Usercmd, player};
use hitreg_log::record::{ArrivalRecord, FrameRecord, PacketRecord, Record};
use hitreg_log::units::{CommandSeq, Micros, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::{Usercmd, buttons};

/// Number of usercmds to remember for acks: over two seconds at 500 per second.
const USERCMDS_KEPT: usize = 1024;

/// The player of a slot, with its present client.
#[derive(Debug, Default)]
pub(crate) struct HeardClient {
    pub(super) player: PlayerId,
    packets: ContinuedNumbers,
    messages: ContinuedNumbers,
    /// Number of earlier clients in the slot, and their last usercmd.
    pub(super) previous_clients: u32,
    previous: CommandSeq,
    /// Times of the newest usercmds in ms of server time, with their numbers and whether they fire.
    recent: VecDeque<(i32, CommandSeq, bool)>,
    /// The newest executed usercmd that fires.
    fired: CommandSeq,
    /// Numbers of the newest snapshots without an ack.
    sent: VecDeque<u32>,
    newest_ack: u32,
    /// Number of hits in the newest snapshot, and its server time; `None` if it has another player's state.
    pub(super) hits: Option<(u32, i32)>,
    pub(super) events: SeenEvents,
    /// The newest usercmd with hits, and the number of its hits.
    hitting: (CommandSeq, u8),
}

/// Numbers of packets or messages in a log. Each connection counts from 1, and the log goes on from the last number.
#[derive(Clone, Copy, Debug)]
struct ContinuedNumbers {
    /// Number in the log minus number of this connection; `None` before its first record.
    offset: Option<i64>,
    /// The last number of the previous connection.
    previous: u32,
    newest: u32,
}

/// The numbers of the first connection, which are those of the log.
impl Default for ContinuedNumbers {
    fn default() -> ContinuedNumbers {
        ContinuedNumbers { offset: Some(0), previous: 0, newest: 0 }
    }
}

impl ContinuedNumbers {
    /// Returns the number in the log. Numbers before the connection's first record become the last of the previous one.
    fn of(self, number: u32) -> u32 {
        let in_log = i64::from(number) + self.offset.unwrap_or(i64::MIN / 2);
        in_log.clamp(self.previous.into(), u32::MAX.into()) as u32
    }

    /// Notes a record of this number, and returns its number in the log.
    fn pass(&mut self, number: u32) -> u32 {
        self.offset.get_or_insert(i64::from(self.newest) + 1 - i64::from(number));
        self.newest = self.newest.max(self.of(number));
        self.of(number)
    }

    /// Returns the numbers for the next connection.
    fn next_connection(self) -> ContinuedNumbers {
        ContinuedNumbers { offset: None, previous: self.newest, newest: self.newest }
    }
}

impl HeardClient {
    pub(super) fn new(player: PlayerId) -> HeardClient {
        HeardClient { player, ..HeardClient::default() }
    }

    /// Returns the player of the slot with its next client. All numbers go on.
    pub(super) fn succeeded(self) -> HeardClient {
        HeardClient {
            packets: self.packets.next_connection(),
            messages: self.messages.next_connection(),
            previous_clients: self.previous_clients + 1,
            previous: self.recent.back().map_or(self.previous, |(_, seq, _)| *seq),
            ..HeardClient::new(self.player)
        }
    }

    /// Processes a packet, with its time and its delivery. Returns the number of new usercmds.
    pub(super) fn input(
        &mut self,
        (at, onward): (Micros, DeliveryTime),
        (number, message_ack): (u32, u32),
        commands: &[Quake3Usercmd],
        ticks: &NewestTicks,
        bytes: usize,
        out: &mut dyn FnMut(Record),
    ) -> u64 {
        let message_ack = self.messages.of(message_ack);
        // Messages count as acked once; only snapshots are acked.
        if message_ack > self.newest_ack {
            self.newest_ack = message_ack;
            while let Some(sent) = self.sent.front().copied().filter(|sent| *sent <= message_ack) {
                self.sent.pop_front();
                if sent == message_ack && onward == DeliveryTime::Unknown {
                    out(Record::Received(self.player, ArrivalRecord { number: sent, at }));
                }
            }
        }
        let mut new = 0;
        for cmd in commands {
            let last = self.recent.back();
            if last.is_some_and(|(time, ..)| cmd.server_time <= *time) {
                continue;
            }
            let seq = last.map_or(self.previous, |(_, seq, _)| *seq).next();
            let msec = last.map_or(0, |(time, ..)| i64::from(cmd.server_time) - i64::from(*time));
            let server_time = ticks.time(cmd.server_time);
            let command = Usercmd { seq, lerp_msec: 0, server_time, input: input_of(cmd, msec) };
            out(Record::Frame(self.player, FrameRecord { at, command, ..FrameRecord::default() }));
            if self.recent.len() == USERCMDS_KEPT {
                self.recent.pop_front();
            }
            self.recent.push_back((cmd.server_time, seq, cmd.buttons & buttons::ATTACK != 0));
            new += 1;
        }
        if let (Some((_, newest, _)), false) = (self.recent.back(), commands.is_empty()) {
            let (count, bytes) = (commands.len().min(255) as u8, bytes.min(usize::from(u16::MAX)) as u16);
            let (number, newest, ack) = (self.packets.pass(number), *newest, SnapshotSeq(message_ack));
            out(Record::Sent(self.player, PacketRecord { number, at, newest, count, ack, bytes }));
            if let DeliveryTime::At(at) = onward {
                out(Record::Reached(self.player, ArrivalRecord { number, at }));
            }
        }
        new
    }

    /// Returns the number of a snapshot in the log, the newest usercmd that had run before it, and whether its time
    /// equals the player's `commandTime`. The server sets `commandTime` itself when it spawns a player.
    pub(super) fn ack(&mut self, snapshot: &Quake3Snapshot) -> (SnapshotSeq, CommandSeq, bool) {
        let number = self.messages.pass(snapshot.message);
        if self.sent.len() == USERCMDS_KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back(number);
        let time = snapshot.player[player("command_time")] as i32;
        let ran = self.recent.partition_point(|(of, ..)| *of <= time);
        self.fired =
            self.recent.iter().take(ran).rev().find(|(.., fires)| *fires).map_or(self.fired, |(_, seq, _)| *seq);
        let newest = ran.checked_sub(1).and_then(|place| self.recent.get(place));
        let (ack, is_known) = newest.map_or((self.previous, false), |(of, seq, _)| (*seq, *of == time));
        (SnapshotSeq(number), ack, is_known)
    }

    /// Returns the newest executed usercmd that fires, as of the newest snapshot, and the index of its next hit.
    pub(super) fn hit(&mut self) -> (CommandSeq, u8) {
        let (command, hits) = self.hitting;
        let index = if command == self.fired { hits } else { 0 };
        self.hitting = (self.fired, index.saturating_add(1));
        (self.fired, index)
    }
}
