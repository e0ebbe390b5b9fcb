//! Execution of usercmds: which ones run, when and in what order, and how missing, late and excess ones are treated.

use std::sync::Arc;

use super::Server;
use super::connection::PacketArrival;
use super::lag_compensation::ShotClaim;
use crate::game::{Body, Effect, Game, GameInput, PlayerCommand, Reason, ShotVerdict, Sink, Touch, WorldSink};
use crate::history::{FRAMES_KEPT, body_of};
use crate::packet::{ClientPacket, NO_CLOCK};
use crate::pipeline::{Event, JudgedShot, Rewind};
use crate::push_bounded;
use crate::settings::{OnLost, Schedule, Settings};
use hitreg_log::record::{Execution, OutOfSequence};
use hitreg_log::units::{CommandSeq, Hz, Micros, PlayerId};
use hitreg_log::usercmd::{Input, Usercmd};

/// Half-Life replaces at most this many lost usercmds. After a longer gap, the player counts as absent for that time.
const STAND_INS_MAX: u32 = 24;
/// The most consecutive missing usercmds that are recorded; Quake's `UPDATE_BACKUP`. A hostile client's numbers can
/// jump by thousands per packet, and the cost of a packet must not depend on that.
const NOTED_MAX: u32 = 64;

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
            self.replace_lost(player, last, oldest.seq);
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
    pub(super) fn note_late(&mut self, player: PlayerId, seq: CommandSeq) {
        let missing = &mut self.connections[usize::from(player.0)].missing;
        if let Some(index) = missing.iter().position(|m| *m == seq) {
            missing.remove(index);
            self.events.push_back(Event::Executed { player, command: seq, how: Execution::Late });
        }
    }

    /// Handles the usercmds between `last` and `next`, which will not arrive in time.
    pub(super) fn replace_lost(&mut self, player: PlayerId, last: CommandSeq, next: CommandSeq) {
        let lost = next.0 - last.0 - 1;
        let repeat =
            self.setup.settings.server.on_lost_command == OnLost::Repeat && last.0 > 0 && lost <= STAND_INS_MAX;
        for seq in next.0 - lost.min(NOTED_MAX)..next.0 {
            let seq = CommandSeq(seq);
            let connection = &mut self.connections[usize::from(player.0)];
            connection.last_command = seq;
            push_bounded(&mut connection.missing, seq, FRAMES_KEPT);
            // A client must not gain time by skipping numbers.
            let stands_in = repeat && connection.spend(connection.last_input.msec);
            let how = if stands_in { Execution::StoodIn } else { Execution::Missing };
            self.events.push_back(Event::Executed { player, command: seq, how });
            if stands_in {
                let last = &self.connections[usize::from(player.0)].last_input;
                let input = Input { impulse: 0, ..last.clone() };
                let command = Usercmd { seq, lerp_msec: 0, server_time: self.now, input };
                self.run(player, None, &command);
            }
        }
    }

    pub(super) fn run_or_refuse(&mut self, player: PlayerId, arrived: PacketArrival, command: &Usercmd) {
        let connection = &mut self.connections[usize::from(player.0)];
        connection.last_command = command.seq;
        let affordable = connection.spend(command.input.msec);
        let how = if affordable { Execution::Run } else { Execution::OverBudget };
        self.events.push_back(Event::Executed { player, command: command.seq, how });
        if affordable {
            connection.last_input = command.input.clone();
            self.run(player, Some(arrived), command);
        }
    }

    /// Runs one usercmd on its player's body and judges its shots. A stand-in has no arrival.
    fn run(&mut self, player: PlayerId, arrived: Option<PacketArrival>, command: &Usercmd) {
        let mut output = CommandOutput { effects: Vec::new(), fires: Vec::new() };
        let own = G::Input::read_usercmd(command);
        let run = PlayerCommand { rules: &*self.setup.rules, seed: self.setup.seed, player, command: &own };
        G::run(&run, &mut self.world, &mut output);
        if let Some(rollback) = &mut self.rollback {
            rollback.command_ran(player, own);
        }
        for effect in output.effects {
            self.tell(effect);
        }
        for (index, fire) in output.fires.into_iter().enumerate() {
            self.shoot(player, arrived, command, index as u8, fire);
        }
    }

    fn shoot(&mut self, player: PlayerId, arrived: Option<PacketArrival>, command: &Usercmd, index: u8, fire: G::Fire) {
        let own = &self.connections[usize::from(player.0)].settings;
        let claim = ShotClaim::of(arrived, command, own);
        let (rewind, verdict) = self.judge(player, &claim, &fire, own);
        // The verdict under other settings is only recorded; it does not affect the world.
        let judge_under = |other: &Arc<Settings>| {
            let own = other.of_player(player);
            self.judge(player, &claim.as_drawn_under(&own), &fire, &own)
        };
        let other = self.judged_under.as_ref().map(judge_under);
        let also = self.also_judged.iter().map(|other| judge_under(other).1).collect();
        let mut happened = WorldEvents { effects: Vec::new(), impacts: Vec::new() };
        let own = G::Input::read_usercmd(command);
        G::apply(&self.setup.rules, &mut self.world, player, &own, &fire, &verdict, &mut happened);
        if let Some(rollback) = &mut self.rollback {
            rollback.shot_applied(fire.clone(), verdict.clone());
        }
        self.take(happened);
        let (rewind, verdict) = other.unwrap_or((rewind, verdict));
        let judged = JudgedShot { shooter: player, command: command.seq, index, fire, verdict, rewind, also };
        self.events.push_back(Event::Judged(judged));
    }

    fn judge(
        &self,
        shooter: PlayerId,
        claim: &ShotClaim,
        fire: &G::Fire,
        settings: &Settings,
    ) -> (Rewind<G::Body>, ShotVerdict) {
        let rewind = self.rewind(shooter, claim, fire, settings);
        let verdict = self.without_dead_targets(ShotVerdict::of::<G>(&self.setup.rules, fire, &rewind.targets));
        (rewind, verdict)
    }

    /// A player who is already dead takes no damage from a shot that hit an earlier position.
    fn without_dead_targets(&self, mut verdict: ShotVerdict) -> ShotVerdict {
        if verdict.reason != Reason::Hit {
            return verdict;
        }
        let now = G::entities(&self.world);
        verdict.wounds.retain(|wound| body_of(now, wound.target).is_some_and(Body::is_alive));
        if verdict.wounds.is_empty() { ShotVerdict::miss(Reason::AlreadyDead) } else { verdict }
    }

    pub(super) fn run_world(&mut self, dt: Micros) {
        let mut happened = WorldEvents { effects: Vec::new(), impacts: Vec::new() };
        G::step_world(&self.setup.rules, &mut self.world, dt, &mut happened);
        self.take(happened);
    }

    fn take(&mut self, happened: WorldEvents) {
        for effect in happened.effects {
            self.tell(effect);
        }
        for (shooter, command, weapon, verdict) in happened.impacts {
            self.events.push_back(Event::Impact { shooter, command, weapon, verdict });
        }
    }
}

/// The effects, shots and touches of a usercmd.
struct CommandOutput<F> {
    effects: Vec<Effect>,
    fires: Vec<F>,
}

impl<F> Sink<F> for CommandOutput<F> {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn fire(&mut self, fire: F) {
        self.fires.push(fire);
    }
    fn touch(&mut self, _touch: Touch) {}
}

/// The output of a step of the world.
struct WorldEvents {
    effects: Vec<Effect>,
    impacts: Vec<(PlayerId, CommandSeq, &'static str, ShotVerdict)>,
}

impl WorldSink for WorldEvents {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: ShotVerdict) {
        self.impacts.push((shooter, command, weapon, verdict));
    }
}

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
