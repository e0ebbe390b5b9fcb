//! Execution of usercmds: which ones run, when and in what order, and how missing, late and excess ones are treated.

use std::collections::VecDeque;

use super::connection::{PacketArrival, PlayerConnection};
use super::{RollbackStep, Server};
use crate::game::{Effect, Game, GameInput, PlayerCommand, ShotVerdict, Sink, Touch, WorldSink};
use crate::packet::{ClientPacket, NO_CLOCK};
use crate::pipeline::TickEvent;
use crate::settings::{OnLost, Schedule};
use hitreg_log::record::{Execution, OutOfSequence};
use hitreg_log::units::{CommandSeq, Hz, Micros, PlayerId};
use hitreg_log::usercmd::{Input, Usercmd};

/// The most consecutive lost usercmds that are replaced. Half-Life and Source repeat none after 24 dropped packets. After
/// a longer gap, the player counts as absent for that time.
const STAND_INS_MAX: u32 = 24;
/// The shortest time in which a client makes a usercmd. A hostile client's numbers can jump by thousands per packet.
/// Therefore each lost usercmd costs the server no more than this time of the session.
const USERCMD_TIME_MIN: Micros = Micros::from_ms(1);
/// The time of lost usercmds that a client has from the beginning. Packets of its first usercmds may come in any order.
pub(super) const LOST_TIME_FIRST: Micros = Micros(64 * USERCMD_TIME_MIN.0);
/// The most time of lost usercmds that a client saves up: that of all 16-bit numbers.
pub(super) const LOST_TIME_MAX: Micros = Micros((1 << 16) * USERCMD_TIME_MIN.0);
/// A usercmd that is older by more numbers than this gets no outcome `late`. A client keeps as many usercmds.
const LATE_MAX: u32 = 2048;
/// Input farther ahead than this is not accepted: NeREIDS's 32 ticks of 32 ms. It exceeds every `client.lead_ms`.
const AHEAD_MAX: Micros = Micros::from_ms(1024);

/// Returns how many ticks after the next one accepted input may run: [`AHEAD_MAX`], rounded up to whole ticks.
fn ahead_max_ticks(tick_hz: Hz) -> i64 {
    tick_hz.periods_in(AHEAD_MAX - Micros(1)) + 1
}

/// Returns the most usercmds of one client that may wait: four times as many as it makes within [`AHEAD_MAX`].
fn waiting_max(cmd_hz: Hz) -> usize {
    4 * (cmd_hz.periods_in(AHEAD_MAX - Micros(1)) as usize + 1)
}

impl<G: Game> Server<G> {
    /// Takes the packets that arrived since the tick at `before`, and runs the usercmds that are due.
    pub(super) fn run_inbox(&mut self, before: Micros) {
        let schedule = self.setup.settings.server.schedule;
        let mut inbox = std::mem::take(&mut self.inbox);
        for (player, arrived, packet) in inbox.drain(..) {
            match schedule {
                Schedule::Arrival => self.run_packet(player, arrived, &packet),
                Schedule::Tick => self.schedule(player, arrived, &packet, before),
            }
        }
        self.inbox = inbox;
        if schedule == Schedule::Tick {
            (0..self.connections.len()).for_each(|index| self.run_due(PlayerId(index as u16)));
        }
    }

    fn run_packet(&mut self, player: PlayerId, arrived: PacketArrival, packet: &ClientPacket) {
        let Some(oldest) = packet.commands.first() else { return };
        let last = self.connections[usize::from(player.0)].last_command;
        if oldest.seq > last.next() {
            self.replace_lost(player, last, arrived, oldest);
        }
        for command in &packet.commands {
            if command.seq > last {
                self.run_or_refuse(player, arrived, command);
            } else {
                self.note_late(player, command.seq);
            }
        }
    }

    /// Handles a usercmd that is older than the last one. It either ran already, or it was missing and arrives late.
    fn note_late(&mut self, player: PlayerId, seq: CommandSeq) {
        let missing = &mut self.connections[usize::from(player.0)].missing;
        if let Ok(index) = missing.binary_search(&seq) {
            missing.remove(index);
            self.events.push_back(TickEvent::Executed { player, command: seq, how: Execution::Late });
        }
    }

    /// Handles the usercmds between `last` and `next`, which will not arrive in time. Their stand-ins run with the view
    /// of `next`, whose packet shows the loss: Half-Life rewinds for all usercmds of a packet by the packet's latency.
    fn replace_lost(&mut self, player: PlayerId, last: CommandSeq, arrived: PacketArrival, next: &Usercmd) {
        let lost = next.seq.0 - last.0 - 1;
        let repeat =
            self.setup.settings.server.on_lost_command == OnLost::Repeat && last.0 > 0 && lost <= STAND_INS_MAX;
        let connection = &mut self.connections[usize::from(player.0)];
        // A restored state may hold any time.
        let time = connection.lost_time.0.clamp(0, LOST_TIME_MAX.0);
        let noted = lost.min((time / USERCMD_TIME_MIN.0) as u32);
        connection.lost_time = connection.lost_time - Micros(i64::from(noted) * USERCMD_TIME_MIN.0);
        let forgotten = next.seq.0.saturating_sub(LATE_MAX);
        while connection.missing.front().is_some_and(|oldest| oldest.0 < forgotten) {
            connection.missing.pop_front();
        }
        for seq in next.seq.0 - noted..next.seq.0 {
            let connection = &mut self.connections[usize::from(player.0)];
            let (number, seq) = (seq, CommandSeq(seq));
            connection.last_command = seq;
            if number >= forgotten {
                connection.missing.push_back(seq);
            }
            // A client must not gain time by skipping numbers.
            let stands_in = repeat && connection.spend(connection.last_input.msec);
            let how = if stands_in { Execution::StoodIn } else { Execution::Missing };
            self.events.push_back(TickEvent::Executed { player, command: seq, how });
            if stands_in {
                let last = &self.connections[usize::from(player.0)].last_input;
                let input = Input { impulse: 0, ..last.clone() };
                self.run(player, arrived, &Usercmd { seq, input, ..*next });
            }
        }
    }

    fn run_or_refuse(&mut self, player: PlayerId, arrived: PacketArrival, command: &Usercmd) {
        let connection = &mut self.connections[usize::from(player.0)];
        connection.last_command = command.seq;
        let affordable = connection.spend(command.input.msec);
        let how = if affordable { Execution::Run } else { Execution::OverBudget };
        self.events.push_back(TickEvent::Executed { player, command: command.seq, how });
        if affordable {
            connection.last_input = command.input.clone();
            self.run(player, arrived, command);
        }
    }

    /// Runs one usercmd on its player's body and judges its shots.
    fn run(&mut self, player: PlayerId, arrived: PacketArrival, command: &Usercmd) {
        let mut sink = ServerSink { connections: &mut self.connections, events: &mut self.events, fires: Vec::new() };
        let game_command = G::Input::read_usercmd(command);
        let run = PlayerCommand { rules: &*self.setup.rules, seed: self.setup.seed, player, command: &game_command };
        G::run(&run, &mut self.world, &mut sink);
        let fires = sink.fires;
        if let Some(rollback) = &mut self.rollback {
            rollback.steps.push(RollbackStep::Command(player, game_command));
        }
        for (index, fire) in fires.into_iter().enumerate() {
            self.shoot(player, arrived, command, index as u8, fire);
        }
    }

    /// Takes a packet that arrived since the tick at `before`.
    fn schedule(&mut self, player: PlayerId, arrived: PacketArrival, packet: &ClientPacket, before: Micros) {
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
            let connection = &mut self.connections[usize::from(player.0)];
            let is_known = command.seq <= connection.last_command || connection.waiting.contains_key(&command.seq);
            match ahead(command) {
                _ if is_known => self.note_late(player, command.seq),
                ..0 => self.drop_late(player, arrived, command),
                // It may arrive again in a later packet, when it is no longer too early.
                early if early > ahead_max => {}
                _ if connection.waiting.len() < waiting_max(connection.settings.client.cmd_hz) => {
                    connection.waiting.insert(command.seq, (arrived, command.clone()));
                }
                _ => {}
            }
        }
    }

    /// Drops a usercmd whose tick is over, and all before it.
    fn drop_late(&mut self, player: PlayerId, arrived: PacketArrival, command: &Usercmd) {
        let last = self.connections[usize::from(player.0)].last_command;
        self.replace_lost(player, last, arrived, command);
        self.connections[usize::from(player.0)].last_command = command.seq;
        self.events.push_back(TickEvent::Executed { player, command: command.seq, how: Execution::Late });
    }

    /// Runs the usercmds of a player that are due in this tick.
    fn run_due(&mut self, player: PlayerId) {
        let now = self.now;
        while let Some(entry) = self.connections[usize::from(player.0)].waiting.first_entry() {
            if entry.get().1.server_time > now {
                break;
            }
            let (arrived, command) = entry.remove();
            let last = self.connections[usize::from(player.0)].last_command;
            if command.seq <= last {
                // Only usercmds whose times run backward get here, after a later one of the same client was dropped.
                self.events.push_back(TickEvent::Executed { player, command: command.seq, how: Execution::Late });
                continue;
            }
            self.replace_lost(player, last, arrived, &command);
            self.run_or_refuse(player, arrived, &command);
        }
    }
}

/// Takes what happens while a usercmd or the world runs. The shots of a usercmd wait until it has run.
pub(super) struct ServerSink<'s, G: Game> {
    pub(super) connections: &'s mut [PlayerConnection<G>],
    pub(super) events: &'s mut VecDeque<TickEvent<G>>,
    pub(super) fires: Vec<G::Fire>,
}

impl<G: Game> ServerSink<'_, G> {
    /// Keeps an effect for the next snapshot of every client that has not predicted it.
    fn tell(&mut self, effect: Effect) {
        for (index, connection) in self.connections.iter_mut().enumerate() {
            if connection.has_left {
                continue;
            }
            let predicted = effect.predictable && connection.settings.predicts_weapons();
            if !(predicted && index == usize::from(effect.entity.0)) {
                connection.effects.push(effect);
            }
        }
    }
}

impl<G: Game> Sink<G::Fire> for ServerSink<'_, G> {
    fn effect(&mut self, effect: Effect) {
        self.tell(effect);
    }
    fn fire(&mut self, fire: G::Fire) {
        self.fires.push(fire);
    }
    fn touch(&mut self, _touch: Touch) {}
}

impl<G: Game> WorldSink for ServerSink<'_, G> {
    fn effect(&mut self, effect: Effect) {
        self.tell(effect);
    }
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: ShotVerdict) {
        self.events.push_back(TickEvent::Impact { shooter, command, weapon, verdict });
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
        let hz = |text: &str| text.parse::<Hz>().expect("a rate");
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
