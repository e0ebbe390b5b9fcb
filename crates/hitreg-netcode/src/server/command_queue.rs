//! Running usercmds: which ones, in what order, and what happens to those that are missing, late or too many.

use super::Server;
use crate::game::{Body, Effect, Game, Reason, Sink, Touch, Verdict, WorldSink};
use crate::packet::ClientPacket;
use crate::pipeline::{Event, Judged, Rewind};
use crate::settings::{OnLost, Settings};
use hitreg_log::record::Execution;
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// Half-Life runs at most this many commands in place of lost ones; beyond it the player was simply gone.
const STAND_INS_MAX: u32 = 24;
/// Of more usercmds in a row it is not noted that they never came: a hostile client's numbers jump by thousands in each packet,
/// and what a packet costs must not depend on them. Quake's `UPDATE_BACKUP`; a client does not remember older ones either.
const NOTED_MAX: u32 = 64;

impl<G: Game> Server<G> {
    pub(super) fn run_inbox(&mut self) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for (player, arrived, packet) in inbox.drain(..) {
            self.run_packet(player, arrived, &packet);
        }
        self.inbox = inbox;
    }

    fn run_packet(&mut self, player: PlayerId, arrived: Micros, packet: &ClientPacket) {
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

    /// A command that is older than the last one ran before, in an earlier packet, or it was given up and comes late.
    pub(super) fn note_late(&mut self, player: PlayerId, seq: CommandSeq) {
        let missing = &mut self.connections[usize::from(player.0)].missing;
        if let Some(index) = missing.iter().position(|m| *m == seq) {
            missing.remove(index);
            self.events.push_back(Event::Executed { player, command: seq, how: Execution::Late });
        }
    }

    /// Deals with the commands between `last` and `next`, none of which will come any more.
    pub(super) fn replace_lost(&mut self, player: PlayerId, last: CommandSeq, next: CommandSeq) {
        let lost = next.0 - last.0 - 1;
        let repeat = self.settings.server.on_lost_command == OnLost::Repeat && last.0 > 0 && lost <= STAND_INS_MAX;
        for seq in next.0 - lost.min(NOTED_MAX)..next.0 {
            let seq = CommandSeq(seq);
            let connection = &mut self.connections[usize::from(player.0)];
            connection.last_command = seq;
            connection.remember_missing(seq);
            // Who leaves numbers out has no more time than who sends them all.
            let stands_in = repeat && connection.spend(connection.last_input.msec);
            let how = if stands_in { Execution::StoodIn } else { Execution::Missing };
            self.events.push_back(Event::Executed { player, command: seq, how });
            if stands_in {
                let mut input = self.connections[usize::from(player.0)].last_input;
                input.impulse = 0;
                // A stand-in saw nothing: what it shoots is judged in the present.
                let command = Usercmd { seq, lerp_msec: 0, server_time: self.now, input };
                self.run(player, self.now, &command);
            }
        }
    }

    pub(super) fn run_or_refuse(&mut self, player: PlayerId, arrived: Micros, command: &Usercmd) {
        let connection = &mut self.connections[usize::from(player.0)];
        connection.last_command = command.seq;
        let affordable = connection.spend(command.input.msec);
        let how = if affordable { Execution::Run } else { Execution::OverBudget };
        self.events.push_back(Event::Executed { player, command: command.seq, how });
        if affordable {
            connection.last_input = command.input;
            self.run(player, arrived, command);
        }
    }

    /// Runs one command on its player's body, and judges what it fires.
    fn run(&mut self, player: PlayerId, arrived: Micros, command: &Usercmd) {
        let mut output = CommandOutput { effects: Vec::new(), fires: Vec::new() };
        G::run(&self.rules, self.seed, &mut self.world, player, command, &mut output);
        if let Some(rollback) = &mut self.rollback {
            rollback.command_ran(player, *command);
        }
        for effect in output.effects {
            self.tell(effect);
        }
        for (index, fire) in output.fires.into_iter().enumerate() {
            self.shoot(player, arrived, command, index as u8, fire);
        }
    }

    fn shoot(&mut self, player: PlayerId, arrived: Micros, command: &Usercmd, index: u8, fire: G::Fire) {
        let (rewind, verdict) = self.judge(player, arrived, command, &fire, &self.settings);
        // What other rules make of the shot is for the record alone: the world goes on as it did.
        let other = self.judged_under.as_ref().map(|other| {
            let own = &self.connections[usize::from(player.0)].settings;
            let command = as_drawn_under(command, own, &other.of_player(player));
            self.judge(player, arrived, &command, &fire, other)
        });
        let mut happened = Happened { effects: Vec::new(), impacts: Vec::new() };
        G::apply(&self.rules, &mut self.world, player, command, &fire, &verdict, &mut happened);
        if let Some(rollback) = &mut self.rollback {
            rollback.shot_applied(fire.clone(), verdict.clone());
        }
        self.take(happened);
        let (rewind, verdict) = other.unwrap_or((rewind, verdict));
        let judged = Judged { shooter: player, command: command.seq, index, fire, verdict, rewind };
        self.events.push_back(Event::Judged(judged));
    }

    fn judge(
        &self,
        shooter: PlayerId,
        arrived: Micros,
        command: &Usercmd,
        fire: &G::Fire,
        settings: &Settings,
    ) -> (Rewind<G::Body>, Verdict) {
        let rewind = self.rewind(shooter, arrived, command, fire, settings);
        let verdict = self.without_the_dead(G::judge(&self.rules, fire, &rewind.targets));
        (rewind, verdict)
    }

    /// Nobody dies twice: who is dead at present takes no wound from a shot at his past.
    fn without_the_dead(&self, mut verdict: Verdict) -> Verdict {
        if verdict.reason != Reason::Hit {
            return verdict;
        }
        let now = G::entities(&self.world);
        verdict.wounds.retain(|wound| {
            now.binary_search_by_key(&wound.target, |(id, _)| *id).is_ok_and(|index| now[index].1.is_alive())
        });
        if verdict.wounds.is_empty() { Verdict::miss(Reason::AlreadyDead) } else { verdict }
    }

    pub(super) fn run_world(&mut self, dt: Micros) {
        let mut happened = Happened { effects: Vec::new(), impacts: Vec::new() };
        G::step_world(&self.rules, &mut self.world, dt, &mut happened);
        self.take(happened);
    }

    fn take(&mut self, happened: Happened) {
        for effect in happened.effects {
            self.tell(effect);
        }
        for (shooter, command, weapon, verdict) in happened.impacts {
            self.events.push_back(Event::Impact { shooter, command, weapon, verdict });
        }
    }
}

/// A usercmd as a client would have sent it that draws the others as far behind its clock as these settings say. One of a
/// client that drew elsewhere than its settings had it stays as it is.
fn as_drawn_under(command: &Usercmd, settings: &Settings, other: &Settings) -> Usercmd {
    let is_as_set = i64::from(command.lerp_msec) == settings.drawn_behind_ms();
    let lerp_msec = u16::try_from(other.drawn_behind_ms()).ok().filter(|_| is_as_set);
    Usercmd { lerp_msec: lerp_msec.unwrap_or(command.lerp_msec), ..*command }
}

/// The effects, shots and touches of a command.
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

/// What happened in the world.
struct Happened {
    effects: Vec<Effect>,
    impacts: Vec<(PlayerId, CommandSeq, &'static str, Verdict)>,
}

impl WorldSink for Happened {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: Verdict) {
        self.impacts.push((shooter, command, weapon, verdict));
    }
}
