//! Scheduling by tick, after the NeREIDS live protocol. A usercmd carries the time of its tick, waits for it on the
//! server, and is dropped when it arrives too late. A tick is never computed twice, so one player's lateness never
//! changes what the others have seen.

use super::Server;
use super::connection::PacketArrival;
use crate::game::Game;
use crate::packet::{ClientPacket, NO_CLOCK};
use crate::pipeline::Event;
use hitreg_log::record::{Execution, OutOfSequence};
use hitreg_log::units::{CommandSeq, Hz, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// Input farther ahead than this is not accepted: NeREIDS's 32 ticks of 32 ms. It exceeds every `client.lead_ms`.
const AHEAD_MAX: Micros = Micros::from_ms(1024);

/// Returns how many ticks after the next one accepted input may run: [`AHEAD_MAX`], rounded up to whole ticks.
fn ahead_max_ticks(tick_hz: Hz) -> i64 {
    tick_hz.turns_in(AHEAD_MAX - Micros(1)) + 1
}

/// Returns the most usercmds of one client that may wait: four times as many as it makes within [`AHEAD_MAX`].
fn waiting_max(cmd_hz: Hz) -> usize {
    4 * (cmd_hz.turns_in(AHEAD_MAX - Micros(1)) as usize + 1)
}

impl<G: Game> Server<G> {
    /// Takes a packet that arrived since the tick at `before`.
    pub(super) fn schedule(&mut self, player: PlayerId, arrived: PacketArrival, packet: &ClientPacket, before: Micros) {
        let Some(newest) = packet.commands.last() else { return };
        let tick_hz = self.setup.settings.server.tick_hz;
        let ahead_max = ahead_max_ticks(tick_hz);
        let ticks = TickTimer { before, now: self.now, interval: tick_hz.interval() };
        let ahead = |command: &Usercmd| ticks.ahead(command.server_time);
        let connection = &mut self.connections[usize::from(player.0)];
        let is_news = newest.seq > connection.last_command && !connection.waiting.contains_key(&newest.seq);
        let difference = ahead(newest);
        // Calibration uses the usercmd's own time. Its tick's time moves in whole ticks, which are too coarse for a
        // steered clock.
        if newest.server_time != NO_CLOCK {
            connection.calibration.handle_frame(arrived.at, newest.server_time);
        }
        if is_news && !(0..=ahead_max).contains(&difference) {
            let difference = difference.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
            connection.warn(OutOfSequence { command: newest.seq, difference });
        }
        for command in &packet.commands {
            match ahead(command) {
                _ if self.is_known(player, command.seq) => self.note_late(player, command.seq),
                ..0 => self.drop_late(player, command.seq),
                // It may arrive again in a later packet, when it is no longer too early.
                early if early > ahead_max => {}
                _ => {
                    let connection = &mut self.connections[usize::from(player.0)];
                    if connection.waiting.len() < waiting_max(connection.settings.client.cmd_hz) {
                        connection.waiting.insert(command.seq, (arrived, command.clone()));
                    }
                }
            }
        }
    }

    fn is_known(&self, player: PlayerId, seq: CommandSeq) -> bool {
        let connection = &self.connections[usize::from(player.0)];
        seq <= connection.last_command || connection.waiting.contains_key(&seq)
    }

    /// Drops a usercmd whose tick is over, and all before it.
    fn drop_late(&mut self, player: PlayerId, seq: CommandSeq) {
        let last = self.connections[usize::from(player.0)].last_command;
        self.replace_lost(player, last, seq);
        let connection = &mut self.connections[usize::from(player.0)];
        connection.last_command = seq;
        self.events.push_back(Event::Executed { player, command: seq, how: Execution::Late });
    }

    /// Runs the usercmds of a player that are due in this tick.
    pub(super) fn run_due(&mut self, player: PlayerId) {
        let now = self.now;
        while let Some(entry) = self.connections[usize::from(player.0)].waiting.first_entry() {
            if entry.get().1.server_time > now {
                break;
            }
            let (arrived, command) = entry.remove();
            let last = self.connections[usize::from(player.0)].last_command;
            if command.seq <= last {
                // Only usercmds whose times run backward get here, after a later one of the same client was dropped.
                self.events.push_back(Event::Executed { player, command: command.seq, how: Execution::Late });
                continue;
            }
            self.replace_lost(player, last, command.seq);
            self.run_or_refuse(player, arrived, &command);
        }
    }
}

/// The server's position in time.
#[derive(Clone, Copy)]
struct TickTimer {
    /// The time of the last tick computed.
    before: Micros,
    /// The time of the tick to compute next.
    now: Micros,
    /// The tick interval.
    interval: Micros,
}

impl TickTimer {
    /// Returns how many ticks after the next one an input for time `then` runs. It runs in the first tick at or after
    /// that time. A negative result means that this tick is already computed.
    fn ahead(self, then: Micros) -> i64 {
        if then > self.now {
            1 + (then - self.now - Micros(1)).0 / self.interval.0
        } else if then > self.before {
            0
        } else {
            -1 - (self.before - then).0 / self.interval.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_tick_runs_the_usercmds_since_the_previous_tick() {
        let [before, now, interval] = [288, 320, 32].map(Micros::from_ms);
        let ticks = TickTimer { before, now, interval };
        let ahead = |then_ms| ticks.ahead(Micros::from_ms(then_ms));
        assert_eq!([289, 320, 321, 352, 353].map(ahead), [0, 0, 1, 1, 2]);
        assert_eq!([288, 257, 256, 0].map(ahead), [-1, -1, -2, -10]);
    }

    #[test]
    fn the_limit_of_early_input_is_a_time() {
        let hz = |text| Hz::parse(text).expect("a rate");
        let limits = ["1", "31.25", "64", "128", "256", "300", "1000"].map(|rate| ahead_max_ticks(hz(rate)));
        assert_eq!(limits, [2, 32, 66, 132, 263, 308, 1024]);
        assert_eq!(["1", "31.25", "1000"].map(|rate| waiting_max(hz(rate))), [8, 128, 4096]);
        // The limit exceeds every lead.
        let set = |lead_ms| Settings::default().set("client.lead_ms", lead_ms);
        assert!(set("1000").is_ok() && set("1001").is_err());
    }

    #[test]
    fn early_and_late_ticks_leave_no_gap() {
        let [before, interval] = [288, 32].map(Micros::from_ms);
        for now_ms in [300, 320, 400] {
            let ticks = TickTimer { before, now: Micros::from_ms(now_ms), interval };
            assert_eq!([289, now_ms].map(|ms| ticks.ahead(Micros::from_ms(ms))), [0, 0], "{now_ms}");
            assert_eq!(ticks.ahead(before), -1);
        }
    }
}
