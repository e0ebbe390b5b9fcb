//! Checks during a session that no client exceeds the documented bounds, whatever it claims:
//!
//! - No shot is judged farther in the past than `lag_compensation.max_unlag_ms`.
//! - No player's usercmds take more time than has passed, plus `server.command_credit_ms`.
//! - The time of a usercmd counts only within `lag_compensation.max_claim_error_ms` of what its round trip shows.

use super::plan::{PlannedFault, SoakPlan};
use super::play::RecordSequence;
use hitreg_arena::Arena;
use hitreg_log::record::Execution;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, Hz, Micros, PlayerId, Tick};
use hitreg_netcode::packet::ClientPacket;
use hitreg_netcode::pipeline::{Event, JudgedShot, Limit};
use hitreg_netcode::session::{Observer, SessionEvent, SessionRecorder};
use hitreg_netcode::settings::{ClockMode, Frames, Schedule, Settings};

/// The results of the checks.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundsCheck {
    /// The first violation, as text.
    pub(super) broken: Option<String>,
    /// The number of shots checked.
    pub(super) shots: u64,
    /// The number of usercmds checked.
    pub(super) usercmds: u64,
    /// The number of usercmds that the server refused for lack of time.
    pub(super) refused: u64,
}

/// An observer that checks bounds and passes all events to the recorder.
pub(super) struct BoundsObserver<'a> {
    recorder: SessionRecorder<'a, RecordSequence, Arena>,
    found: BoundsCheck,
    max_unlag: Micros,
    credit: Micros,
    /// The tick interval, which is the server's initial time budget.
    tick: Micros,
    players: Vec<SentUsercmds>,
    now: Micros,
    /// The bound on a false usercmd time; `None` when the truth is unknown.
    claim: Option<ClockClaim>,
    /// Usercmds executed since the last tick. The tick's time is known only when it ends.
    waiting: Vec<(PlayerId, CommandSeq, Execution)>,
}

/// The known timing of a lying client.
struct ClockClaim {
    /// The greatest accepted error.
    most: Micros,
    /// How far behind its clock its settings make it draw.
    behind: Micros,
    /// The real time on its clock and the claimed drawing delay, by usercmd.
    truth: SortedMap<CommandSeq, (Micros, Micros)>,
}

#[derive(Default)]
struct SentUsercmds {
    /// The usercmds sent, by number. A lying client may send a number twice.
    sent: SortedMap<CommandSeq, u8>,
    last: u8,
    ms: i64,
}

impl BoundsCheck {
    fn broken(&mut self, what: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some(what());
        }
    }
}

impl ClockClaim {
    /// Returns the bound when the round trip is constant, every snapshot arrives, and no frame is late.
    fn of(plan: &SoakPlan, settings: &Settings) -> Option<ClockClaim> {
        let known = [PlannedFault::Lies, PlannedFault::Settings, PlannedFault::Leaving];
        let is_known = plan.lie.is_some_and(|lie| lie.ack_back == 0)
            && plan.faults.iter().all(|fault| known.contains(fault))
            && settings.server.schedule == Schedule::Arrival
            && settings.client.clock == ClockMode::Adopt
            && settings.client.frames == Frames::Regular
            && settings.server.rate_bytes_per_s >= 100_000;
        // The server's knowledge has the resolution of a snapshot interval, a frame and a tick.
        let server = &settings.server;
        let intervals = [server.update_hz, server.tick_hz, server.tick_hz, settings.client.cmd_hz].map(Hz::interval);
        let unsure = intervals.into_iter().fold(Micros::ZERO, |sum, interval| sum + interval);
        is_known.then(|| ClockClaim {
            most: Micros::from_ms(settings.lag_compensation.max_claim_error_ms) + unsure,
            behind: Micros::from_ms(settings.drawn_behind_ms()),
            truth: SortedMap::new(),
        })
    }

    fn of_shot(&self, judged: &JudgedShot<Arena>, now: Micros) -> Option<Micros> {
        let counted = judged.shooter == PlayerId(0) && [Limit::None, Limit::Claim].contains(&judged.rewind.limit);
        let (clock, behind) = self.truth.get(&judged.command).filter(|_| counted && judged.rewind.by > Micros::ZERO)?;
        Some(now - judged.rewind.by + *behind - *clock)
    }
}

impl<'a> BoundsObserver<'a> {
    pub(super) fn new(tape: &'a mut RecordSequence, plan: &SoakPlan, settings: &Settings) -> BoundsObserver<'a> {
        BoundsObserver {
            recorder: SessionRecorder::new(tape).with_heard((0..).map(PlayerId).take(plan.players.len())),
            found: BoundsCheck::default(),
            max_unlag: Micros::from_ms(settings.lag_compensation.max_unlag_ms),
            credit: Micros::from_ms(settings.server.command_credit_ms),
            tick: settings.server.tick_hz.interval(),
            players: plan.players.iter().map(|_| SentUsercmds::default()).collect(),
            now: Micros::ZERO,
            claim: ClockClaim::of(plan, settings),
            waiting: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> BoundsCheck {
        self.found
    }

    fn spend(&mut self, player: PlayerId, command: CommandSeq, how: Execution) {
        let spent = &mut self.players[usize::from(player.0)];
        match how {
            Execution::Run => spent.last = spent.sent.get(&command).copied().unwrap_or(u8::MAX),
            Execution::StoodIn => {}
            Execution::OverBudget => {
                self.found.refused += 1;
                return;
            }
            Execution::Missing | Execution::Late => return,
        }
        spent.ms += i64::from(spent.last);
        self.found.usercmds += 1;
        let (ran, may) = (Micros::from_ms(spent.ms), self.now + self.tick + self.credit);
        if ran > may {
            let ms = (ran.as_ms_f64(), self.now.as_ms_f64(), self.credit.as_ms_f64());
            self.found.broken(|| {
                format!(
                    "player {player}'s usercmds up to {command} took {} ms by {:.0} ms with a credit of {} ms",
                    ms.0, ms.1, ms.2
                )
            });
        }
    }

    /// Notes the usercmds of a frame, and the truth about a lying client's clock.
    fn frame(&mut self, player: PlayerId, packet: &ClientPacket, drawn_at: Micros) {
        let spent = &mut self.players[usize::from(player.0)];
        spent.sent.extend(packet.commands.iter().map(|command| (command.seq, command.input.msec)));
        if let (Some(claim), Some(newest)) = (&mut self.claim, packet.commands.last())
            && player == PlayerId(0)
        {
            let behind = Micros::from_ms(newest.lerp_msec.into());
            claim.truth.insert(newest.seq, (drawn_at + claim.behind, behind));
        }
    }

    fn judged(&mut self, at: Micros, tick: Tick, judged: &JudgedShot<Arena>) {
        let by = judged.rewind.by;
        self.found.shots += 1;
        if by > self.max_unlag || by < Micros::ZERO {
            let (shooter, most) = (judged.shooter, self.max_unlag.as_ms_f64());
            self.found.broken(|| {
                format!(
                    "a shot of player {shooter} in tick {tick} was judged {} ms back, of {most} at most",
                    by.as_ms_f64()
                )
            });
        }
        if let Some(off) = self.claim.as_ref().and_then(|claim| claim.of_shot(judged, at))
            && let Some(claim) = &self.claim
            && off.0.saturating_abs() > claim.most.0
        {
            let (tick, most) = (tick, claim.most.as_ms_f64());
            self.found
                .broken(|| format!("a lie gained {} ms for a shot in tick {tick}, of {most} at most", off.as_ms_f64()));
        }
        if judged.rewind.limit == Limit::Off && by != Micros::ZERO {
            self.found.broken(|| format!("a shot in tick {tick} was rewound without lag compensation"));
        }
    }
}

impl Observer<Arena> for BoundsObserver<'_> {
    fn event(&mut self, at: Micros, event: SessionEvent<'_, Arena>) {
        match &event {
            SessionEvent::Frame { player, output, screen } => self.frame(*player, &output.packet, screen.drawn_at),
            SessionEvent::Server { event: Event::Executed { player, command, how }, .. } => {
                self.waiting.push((*player, *command, *how));
            }
            SessionEvent::Server { tick, event: Event::Judged(shot) } => self.judged(at, *tick, shot),
            SessionEvent::Ticked { .. } => {
                self.now = at;
                for (player, command, how) in std::mem::take(&mut self.waiting) {
                    self.spend(player, command, how);
                }
            }
            _ => {}
        }
        self.recorder.event(at, event);
    }
}
