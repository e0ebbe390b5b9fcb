//! Checks during a session that no client exceeds the documented bounds, whatever it claims:
//!
//! - No shot is judged farther in the past than `lag_compensation.max_unlag_ms`.
//! - No player's usercmds take more time than has passed, plus `server.command_credit_ms`, and one usercmd.
//! - Where the round trip is constant and acks are true, a lie moves the time of a shot's targets by at most
//!   `lag_compensation.max_claim_error_ms` plus one client frame. The measured round trip includes the wait for a frame.
//!
//! A client that holds back acks makes its round trip longer, so only the first bound holds for it.

use super::plan::{PlannedFault, SoakPlan};
use super::play::RecordSequence;
use hitreg_arena::Arena;
use hitreg_log::record::Execution;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_netcode::pipeline::{ClientFrameOutput, Event, JudgedShot, Limit};
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
    /// The number of shots of a lying client whose gain was checked.
    pub(super) lies: u64,
}

/// An observer that checks bounds and passes all events to the recorder.
pub(super) struct BoundsObserver<'a> {
    recorder: SessionRecorder<'a, RecordSequence, Arena>,
    found: BoundsCheck,
    max_unlag: Micros,
    /// The most time that a client carries from tick to tick: the setting and one usercmd, in whole ms.
    credit: Micros,
    /// The tick interval, which is the server's initial time budget.
    tick: Micros,
    players: Vec<SentUsercmds>,
    now: Micros,
    /// The true times of a lying client; `None` when the bound on its gain is unknown.
    truth: Option<LiarTruth>,
    /// Usercmds executed since the last tick. The tick's time is known only when it ends.
    waiting: Vec<(PlayerId, CommandSeq, Execution)>,
}

/// The true times of a lying client.
struct LiarTruth {
    /// The most that a lie may move the time of a shot's targets.
    most: Micros,
    /// The time that an honest usercmd would name as drawn, by the number that the usercmd claims.
    drawn_at: SortedMap<CommandSeq, Micros>,
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

impl LiarTruth {
    /// Returns the bound when the round trip is constant, every snapshot arrives, and no frame is late.
    fn of(plan: &SoakPlan, settings: &Settings) -> Option<LiarTruth> {
        let known = [PlannedFault::Lies, PlannedFault::Settings, PlannedFault::Leaving];
        let is_known = plan.lie.is_some_and(|lie| lie.ack_back == 0)
            && plan.faults.iter().all(|fault| known.contains(fault))
            && settings.server.schedule == Schedule::Arrival
            && settings.client.clock == ClockMode::Adopt
            && settings.client.frames == Frames::Regular
            && settings.server.rate_bytes_per_s >= 100_000;
        let most = Micros::from_ms(settings.lag_compensation.max_claim_error_ms) + settings.client.cmd_hz.interval();
        is_known.then(|| LiarTruth { most, drawn_at: SortedMap::new() })
    }

    /// Returns how much earlier than drawn the targets of a shot were judged; `None` if the shot is not the liar's.
    fn gain(&self, judged: &JudgedShot<Arena>, now: Micros) -> Option<Micros> {
        let is_rewound = judged.rewind.limit != Limit::Off;
        let drawn_at = self.drawn_at.get(&judged.command).filter(|_| is_rewound && judged.shooter == PlayerId(0))?;
        Some(*drawn_at - (now - judged.rewind.by))
    }

    /// Returns whether a gain breaks the bound. A negative gain counts only where no limit on the rewind, nor the
    /// present, is its reason.
    fn is_broken_by(&self, gain: Micros, judged: &JudgedShot<Arena>) -> bool {
        let is_free = [Limit::None, Limit::Claim].contains(&judged.rewind.limit) && judged.rewind.by > Micros::ZERO;
        gain > self.most || is_free && gain < Micros::ZERO - self.most
    }
}

impl<'a> BoundsObserver<'a> {
    pub(super) fn new(tape: &'a mut RecordSequence, plan: &SoakPlan, settings: &Settings) -> BoundsObserver<'a> {
        BoundsObserver {
            recorder: SessionRecorder::new(tape).with_heard((0..).map(PlayerId).take(plan.players.len())),
            found: BoundsCheck::default(),
            max_unlag: Micros::from_ms(settings.lag_compensation.max_unlag_ms),
            credit: Micros::from_ms(settings.server.command_credit_ms + 1) + settings.client.cmd_hz.interval(),
            tick: settings.server.tick_hz.interval(),
            players: plan.players.iter().map(|_| SentUsercmds::default()).collect(),
            now: Micros::ZERO,
            truth: LiarTruth::of(plan, settings),
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

    /// Notes the usercmds of a frame, and when a lying client drew it.
    fn frame(&mut self, player: PlayerId, output: &ClientFrameOutput<Arena>) {
        let spent = &mut self.players[usize::from(player.0)];
        let sent = &output.packet.commands;
        spent.sent.extend(sent.iter().map(|command| (command.seq, command.input.msec)));
        // Before its first snapshot, a client has no clock.
        let has_clock = player == PlayerId(0) && output.packet.ack > SnapshotSeq(0);
        if let (Some(truth), Some(newest)) = (self.truth.as_mut().filter(|_| has_clock), sent.last()) {
            truth.drawn_at.insert(newest.seq, output.command.drawn_at());
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
        if let Some(truth) = &self.truth
            && let Some(gain) = truth.gain(judged, at)
        {
            self.found.lies += 1;
            if truth.is_broken_by(gain, judged) {
                let (gain, most) = (gain.as_ms_f64(), truth.most.as_ms_f64());
                self.found.broken(|| format!("a lie gained {gain} ms for a shot in tick {tick}, of {most} at most"));
            }
        }
        if judged.rewind.limit == Limit::Off && by != Micros::ZERO {
            self.found.broken(|| format!("a shot in tick {tick} was rewound without lag compensation"));
        }
    }
}

impl Observer<Arena> for BoundsObserver<'_> {
    fn event(&mut self, at: Micros, event: SessionEvent<'_, Arena>) {
        match &event {
            SessionEvent::Frame { player, output, .. } => self.frame(*player, output),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::{FalseClaims, PlanLimits, SoakMaps};

    /// Plays a duel with a client that lies so, under a server that believes `believed_ms` and a bound of 200 ms.
    fn duel(lie: FalseClaims, believed_ms: &'static str) -> BoundsCheck {
        let without = PlannedFault::ALL.into_iter().filter(|fault| *fault != PlannedFault::Lies).collect();
        let limits = PlanLimits { without, ..PlanLimits::default() };
        let mut plan = SoakPlan { preset: "half-life", lie: Some(lie), ..SoakPlan::of(1, &limits) };
        plan.faults.insert(PlannedFault::Lies);
        plan.length_ms = 8_000;
        let bounds = plan.settings();
        assert_eq!(bounds.lag_compensation.max_claim_error_ms, 200);
        plan.settings = vec![("lag_compensation.max_claim_error_ms", believed_ms)];
        SoakMaps::default().play_within(&plan, &bounds).expect("a plan can be played").bounds
    }

    #[test]
    fn a_server_that_believes_more_breaks_the_bound() {
        let clock = |clock_ms| FalseClaims { clock_ms, ..FalseClaims::default() };
        let lerp = |lerp_ms| FalseClaims { lerp_ms: Some(lerp_ms), ..FalseClaims::default() };
        for lie in [clock(-350), clock(80), lerp(450), lerp(1), lerp(60_000)] {
            let held = duel(lie, "200");
            assert!(held.lies > 0 && held.broken.is_none(), "{lie:?}: {held:?}");
        }
        for lie in [clock(-350), lerp(450)] {
            let broken = duel(lie, "1500").broken;
            assert!(broken.is_some_and(|text| text.starts_with("a lie gained")), "{lie:?}");
        }
    }
}
