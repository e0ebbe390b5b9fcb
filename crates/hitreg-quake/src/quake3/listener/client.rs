//! One client in the game: its usercmds, each once, its packets, and what it has had of the server's.

use std::collections::VecDeque;

use glam::Vec3;

use super::ticks::Ticks;
use super::told::Events;
use crate::quake3::protocol::{Snapshot, UserCmd, player};
use hitreg_log::record::{ArrivalRecord, FrameRecord, PacketRecord, Record};
use hitreg_log::units::{CommandSeq, Micros, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::{Input, Usercmd, buttons};

/// How many usercmds are remembered for their acks: more than two seconds at 500 a second.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
pub(super) struct Client {
    pub(super) player: PlayerId,
    /// The times of the newest usercmds, in ms of the server, with their numbers and whether they fire.
    recent: VecDeque<(i32, CommandSeq, bool)>,
    /// The newest usercmd that fires of those that have run.
    fired: CommandSeq,
    /// The newest snapshots, until they are acked.
    sent: VecDeque<u32>,
    newest_ack: u32,
    /// Whether nobody but its acks says which snapshots it has.
    pub(super) acks_tell: bool,
    /// The hits that the newest snapshot tells, and its server time.
    pub(super) hits: Option<(u32, i32)>,
    pub(super) events: Events,
    /// The newest usercmd that has hits, and how many.
    hitting: (CommandSeq, u8),
}

impl Client {
    pub(super) fn new(player: PlayerId) -> Client {
        Client {
            player,
            recent: VecDeque::new(),
            fired: CommandSeq(0),
            sent: VecDeque::new(),
            newest_ack: 0,
            acks_tell: true,
            hits: None,
            events: Events::default(),
            hitting: (CommandSeq(0), 0),
        }
    }

    /// Hears a packet; how many usercmds are new.
    pub(super) fn input(
        &mut self,
        at: Micros,
        (number, message_ack): (u32, u32),
        commands: &[UserCmd],
        ticks: &Ticks,
        bytes: usize,
        out: &mut dyn FnMut(Record),
    ) -> u64 {
        // Only snapshots are acked, and each once.
        if message_ack > self.newest_ack {
            self.newest_ack = message_ack;
            while let Some(sent) = self.sent.front().copied().filter(|sent| *sent <= message_ack) {
                self.sent.pop_front();
                if sent == message_ack && self.acks_tell {
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
            let seq = last.map_or(CommandSeq(1), |(_, seq, _)| seq.next());
            let msec = last.map_or(0, |(time, ..)| i64::from(cmd.server_time) - i64::from(*time));
            let server_time = ticks.time(cmd.server_time);
            let command = Usercmd { seq, lerp_msec: 0, server_time, input: input_of(cmd, msec) };
            out(Record::Frame(self.player, FrameRecord { at, command }));
            if self.recent.len() == REMEMBERED {
                self.recent.pop_front();
            }
            self.recent.push_back((cmd.server_time, seq, cmd.buttons & buttons::ATTACK != 0));
            new += 1;
        }
        if let (Some((_, newest, _)), false) = (self.recent.back(), commands.is_empty()) {
            let (count, bytes) = (commands.len().min(255) as u8, bytes.min(usize::from(u16::MAX)) as u16);
            let (newest, ack) = (*newest, SnapshotSeq(message_ack));
            out(Record::Sent(self.player, PacketRecord { number, at, newest, count, ack, bytes }));
        }
        new
    }

    /// The newest usercmd that had run when the snapshot was made, and whether its time is the player's `commandTime`: the server
    /// sets that itself where it puts a player into the world.
    pub(super) fn ack(&mut self, snapshot: &Snapshot) -> (CommandSeq, bool) {
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(snapshot.message);
        let time = snapshot.player[player("command_time")] as i32;
        let ran = self.recent.partition_point(|(of, ..)| *of <= time);
        self.fired =
            self.recent.iter().take(ran).rev().find(|(.., fires)| *fires).map_or(self.fired, |(_, seq, _)| *seq);
        let newest = ran.checked_sub(1).and_then(|place| self.recent.get(place));
        newest.map_or((CommandSeq(0), false), |(of, seq, _)| (*seq, *of == time))
    }

    /// The newest usercmd that fires of those that had run when the newest snapshot was made, and which of its hits the next is.
    pub(super) fn hit(&mut self) -> (CommandSeq, u8) {
        let (command, hits) = self.hitting;
        let index = if command == self.fired { hits } else { 0 };
        self.hitting = (self.fired, index.saturating_add(1));
        (self.fired, index)
    }
}

/// Angles are sent in 65,536ths of a turn, of which degrees hold every one. `extra` is the usercmd's time as it was sent.
fn input_of(cmd: &UserCmd, msec: i64) -> Input {
    Input {
        msec: msec.clamp(0, 255) as u8,
        viewangles: Vec3::from_array(cmd.angles.map(|angle| f32::from(angle as i16) * (360.0 / 65_536.0))),
        forwardmove: f32::from(cmd.forward),
        sidemove: f32::from(cmd.right),
        upmove: f32::from(cmd.up),
        buttons: cmd.buttons,
        impulse: cmd.weapon,
        extra: cmd.server_time as u32,
    }
}
