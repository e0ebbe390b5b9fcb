//! Plays a plan in virtual time, with an attacker on the network path, keeps all records in order, and checks that no
//! client exceeds the documented bounds.

use std::sync::Arc;

use crate::claims::partial::{ClientPart, PartialClient};
use crate::soak::plan::{PlannedFault, PlayerPlan, SoakPlan};
use hitreg_arena::bot::{ArenaBot, RouteGraph};
use hitreg_arena::{Arena, ArenaMap, ArenaRules};
use hitreg_log::record::{ClockOwner, Execution, PlayerRecords, Record, Session, SessionHeader};
use hitreg_log::rng::Rng;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, Hz, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg_log::usercmd::Input;
use hitreg_netcode::link::{LinkModel, LinkWithOutages, ModelledLink};
use hitreg_netcode::pipeline::{ClientFrameOutput, JudgedShot, RewindLimit, Setup, TickEvent};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{
    BotInput, InjectedDatagram, InputSource, Intruder, Links, Machine, Observer, PlayerScreen, RecordSink,
    SessionEvent, SessionRecorder, SynthError,
};
use hitreg_netcode::settings::{ClockMode, Frames, Schedule, Settings};

/// The data shared by all plans: the prepared maps.
pub struct SoakMaps {
    courtyard: PreparedMap,
    orchard: PreparedMap,
}

hitreg_log::partial_debug!(SoakMaps {});

/// A map with the routes of its bots. Computing the routes takes longer than playing most plans.
struct PreparedMap {
    rules: Arc<ArenaRules>,
    routes: Arc<RouteGraph>,
}

/// A played session, and its records in order.
pub(super) struct SoakSession {
    /// With the clients' own records, and the packets as the server received them.
    pub(super) session: Session,
    pub(super) tape: Vec<Record>,
    /// The result of the bounds checks.
    pub(super) bounds: BoundsCheck,
}

impl SoakSession {
    /// Returns the session as one program records both sides.
    pub(super) fn seen(&self) -> Session {
        let mut session = self.session.clone();
        session.players.iter_mut().for_each(|records| records.heard.clear());
        session
    }

    /// Returns the session as the server records it alone.
    pub(super) fn heard(&self) -> Session {
        let mut session = self.session.clone();
        session.players.iter_mut().for_each(|records| records.take(ClockOwner::Client, PlayerRecords::default()));
        session
    }
}

impl Default for SoakMaps {
    fn default() -> SoakMaps {
        let course = |map| {
            let rules = ArenaRules::new(map);
            PreparedMap { routes: Arc::new(RouteGraph::new(&rules)), rules: Arc::new(rules) }
        };
        SoakMaps { courtyard: course(ArenaMap::courtyard()), orchard: course(ArenaMap::orchard()) }
    }
}

impl SoakMaps {
    pub(super) fn play(&self, plan: &SoakPlan) -> Result<SoakSession, SynthError> {
        self.play_within(plan, &plan.settings())
    }

    /// Plays a plan. The clients must stay within the bounds of these settings.
    fn play_within(&self, plan: &SoakPlan, bounds: &Settings) -> Result<SoakSession, SynthError> {
        let PreparedMap { rules, routes } = if plan.in_orchard { &self.orchard } else { &self.courtyard };
        let settings = Arc::new(plan.settings());
        let scenario = Scenario {
            preset: plan.preset.to_owned(),
            players: plan.players.len() as u16,
            seconds: plan.length().as_s_f64(),
            seed: plan.seed,
            ..Scenario::default()
        };
        let header = SessionHeader { settings: settings.to_pairs(), ..scenario.header::<Arena>(rules)? };
        let seed = Seed(plan.seed);
        let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(&settings), seed };
        let links = (0..).zip(&plan.players).map(|(index, player)| links(player, seed, index)).collect();
        let client = |setup, player| {
            let lie = plan.lie.filter(|_| player == PlayerId(0));
            PartialClient::without(lie.map(ClientPart::Truth), setup, player)
        };
        let mut machine = Machine::<Arena, LinkWithOutages, PartialClient>::with_clients(&setup, links, client);
        if plan.lie.is_some() {
            machine.forge_acks(PlayerId(0));
        }
        if plan.intrusions > 0.0 {
            machine.add_intruder(Box::new(RandomIntruder::new(seed, plan.intrusions)));
        }
        let mut tape = RecordSequence(Vec::new());
        let mut bounds = BoundsObserver::new(&mut tape, plan, bounds);
        let crew = ArenaBot::crew_on(seed, plan.players.len() as u16, routes);
        let bots = BotInput::of(crew, seed, Arc::clone(rules), &settings);
        let mut input = PacedBots { bots, players: &plan.players };
        machine.run(ticks(plan, settings.server.tick_hz), &mut input, &mut bounds);
        let bounds = bounds.found;
        let mut session = Session::new(header);
        tape.0.iter().for_each(|record| session.record(record.clone()));
        session.put_in_order();
        Ok(SoakSession { session, tape: tape.0, bounds })
    }
}

/// A sink that keeps all records in order.
pub(super) struct RecordSequence(Vec<Record>);

impl RecordSink for RecordSequence {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

fn links(player: &PlayerPlan, seed: Seed, index: u64) -> Links<LinkWithOutages> {
    let link = |model: &LinkModel, direction| {
        LinkWithOutages::new(
            ModelledLink::new(model.clone(), seed, 0x736f_616b << 16 | index << 1 | direction),
            &player.outages_ms,
        )
    };
    Links { up: link(&player.up, 0), down: link(&player.down, 1) }
}

/// Returns the times of the ticks; some are late and some are left out.
fn ticks(plan: &SoakPlan, hz: Hz) -> impl Iterator<Item = Micros> {
    let mut rng = Rng::new(Seed(plan.seed), 0x7469_636b);
    let (late, left_out, end) = (u64::from(plan.late_ticks_us), plan.left_out_ticks, plan.length());
    // A tick never comes later than the next one.
    let late = late.min(hz.interval().0.unsigned_abs().saturating_sub(1));
    let ticks = (1..).map(move |n| hz.period_start(n)).take_while(move |at| *at <= end);
    ticks.filter_map(move |at| {
        let (by, is_left_out) = (rng.below(late + 1), rng.chance(left_out));
        (!is_left_out).then_some(at + Micros(by as i64))
    })
}

/// Bots whose clients run fast or slow, stall and leave.
struct PacedBots<'a> {
    bots: BotInput<Arena>,
    players: &'a [PlayerPlan],
}

impl InputSource<Arena> for PacedBots<'_> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let plan = &self.players[usize::from(player.0)];
        let ms = |ms: u32| Micros::from_ms(ms.into());
        loop {
            let nominal = self.bots.next_frame(player)?;
            let at = Micros(nominal.0 * 1_000_000 / (1_000_000 + i64::from(plan.drift_ppm)));
            if plan.leaves_ms.is_some_and(|leaves| at >= ms(leaves)) {
                return None;
            }
            if !plan.stall_ms.is_some_and(|[from, to]| (ms(from)..ms(to)).contains(&at)) {
                return Some(at);
            }
        }
    }

    fn input(&mut self, at: Micros, screen: &PlayerScreen<'_, Arena>) -> Input {
        self.bots.input(at, screen)
    }
}

/// An attacker on the network path, whose choices come from a seed. It sees every datagram and sends others: modified,
/// truncated, delayed, from another connection, or forged. Neither end may accept any of them as authentic.
pub(super) struct RandomIntruder {
    rng: Rng,
    chance: f64,
    /// A stored datagram to send in place of another, with its number. Datagrams that arrive at the same time are
    /// ordered by number.
    kept: (u32, Vec<u8>),
}

impl RandomIntruder {
    pub(super) fn new(seed: Seed, chance: f64) -> RandomIntruder {
        RandomIntruder { rng: Rng::new(seed, 0x696e_7472), chance, kept: (0, Vec::new()) }
    }

    fn worsened(&mut self, number: u32, datagram: &[u8]) -> (u32, Vec<u8>) {
        let mut bytes = datagram.to_vec();
        let place = self.rng.below(bytes.len().max(1) as u64) as usize;
        match self.rng.below(6) {
            0 => bytes.truncate(place),
            1 => bytes.extend((0..self.rng.below(40)).map(|n| n as u8)),
            2 => bytes.iter_mut().skip(1).for_each(|byte| *byte = self.rng.next_u64() as u8),
            3 => return std::mem::replace(&mut self.kept, (number, bytes)),
            // Unchanged: a duplicate.
            4 => {}
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << self.rng.below(8);
                }
            }
        }
        (number, bytes)
    }
}

impl Intruder for RandomIntruder {
    fn intercept(&mut self, _player: PlayerId, number: u32, datagram: &[u8]) -> Option<InjectedDatagram> {
        if !self.rng.chance(self.chance) {
            return None;
        }
        // Arrival must be later than sending, because clocks are set by it.
        let delay = Micros(1 + self.rng.below(200_000) as i64);
        let (number, bytes) = self.worsened(number, datagram);
        Some(InjectedDatagram { delay, number, bytes })
    }
}

/// The results of the checks.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundsCheck {
    /// The first violation, as text.
    pub(super) broken: Option<String>,
    /// The number of usercmds checked.
    pub(super) usercmds: u64,
    /// The number of shots of a lying client whose gain was checked.
    pub(super) lies: u64,
}

/// An observer that checks during a session that no client exceeds the documented bounds, whatever it claims, and passes
/// all events to the recorder:
///
/// - No shot is judged farther in the past than `lag_compensation.max_unlag_ms`.
/// - No player's usercmds take more time than has passed, plus `server.command_credit_ms`, and one usercmd.
/// - Where the round trip is constant and acks are true, a lie moves the time of a shot's targets by at most
///   `lag_compensation.max_claim_error_ms` plus one client frame. The measured round trip includes the wait for a frame.
///
/// A client that holds back acks makes its round trip longer, so only the first bound holds for it.
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
    /// The longest rewind.
    max_unlag: Micros,
    /// The server time of its first snapshot.
    oldest: Option<Micros>,
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
        let max_unlag = Micros::from_ms(settings.lag_compensation.max_unlag_ms);
        is_known.then(|| LiarTruth { most, max_unlag, oldest: None, drawn_at: SortedMap::new() })
    }

    /// Returns how much earlier than drawn the targets of a shot were judged; `None` if the shot is not the liar's.
    fn gain(&self, judged: &JudgedShot<Arena>, now: Micros) -> Option<Micros> {
        let is_rewound = judged.rewind.limit != RewindLimit::Off;
        let drawn_at = self.drawn_at.get(&judged.command).filter(|_| is_rewound && judged.shooter == PlayerId(0))?;
        Some(*drawn_at - (now - judged.rewind.by))
    }

    /// Returns whether a gain breaks the bound. A negative gain counts only where no limit on the rewind, nor the
    /// present, is its reason.
    fn is_broken_by(&self, gain: Micros, judged: &JudgedShot<Arena>, now: Micros) -> bool {
        let by = judged.rewind.by;
        let is_at_end =
            [Some(Micros::ZERO), Some(self.max_unlag), self.oldest.map(|oldest| now - oldest)].contains(&Some(by));
        let is_free = [RewindLimit::None, RewindLimit::Claim].contains(&judged.rewind.limit) && !is_at_end;
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

    fn spend(&mut self, player: PlayerId, command: CommandSeq, how: Execution) {
        let spent = &mut self.players[usize::from(player.0)];
        match how {
            Execution::Run => spent.last = spent.sent.get(&command).copied().unwrap_or(u8::MAX),
            Execution::StoodIn => {}
            Execution::OverBudget | Execution::Missing | Execution::Late => return,
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
            if truth.is_broken_by(gain, judged, at) {
                let (gain, most) = (gain.as_ms_f64(), truth.most.as_ms_f64());
                self.found.broken(|| format!("a lie gained {gain} ms for a shot in tick {tick}, of {most} at most"));
            }
        }
        if judged.rewind.limit == RewindLimit::Off && by != Micros::ZERO {
            self.found.broken(|| format!("a shot in tick {tick} was rewound without lag compensation"));
        }
    }
}

impl Observer<Arena> for BoundsObserver<'_> {
    fn event(&mut self, at: Micros, event: &SessionEvent<'_, Arena>) {
        match event {
            SessionEvent::Frame { player, output, .. } => self.frame(*player, output),
            SessionEvent::SnapshotSent { player: PlayerId(0), snapshot, .. } => {
                if let Some(truth) = &mut self.truth {
                    truth.oldest.get_or_insert(snapshot.frame.server_time);
                }
            }
            SessionEvent::Server { event: TickEvent::Executed { player, command, how }, .. } => {
                self.waiting.push((*player, *command, *how));
            }
            SessionEvent::Server { tick, event: TickEvent::Judged(shot) } => self.judged(at, *tick, shot),
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
    use crate::soak::{FalseClaims, PlanLimits, PlannedFault, SoakMaps};

    #[test]
    fn frames_are_as_irregular_as_the_plan() {
        let stage = SoakMaps::default();
        let longest = |frames: &'static str| {
            let settings = vec![("client.frames", frames)];
            let without = PlannedFault::ALL.into();
            let plan = SoakPlan { settings, ..SoakPlan::of(3, &PlanLimits { without, ..PlanLimits::default() }) };
            let session = stage.play(&plan).expect("a plan can be played").session;
            let made: Vec<Micros> = session.players[0].frames.iter().map(|frame| frame.at).collect();
            made.windows(2).map(|pair| pair[1] - pair[0]).max().expect("frames")
        };
        let regular = longest("regular");
        assert!(longest("hitches") > regular + Micros::from_ms(1));
        assert!(longest("loaded") > regular + Micros::from_ms(1));
    }

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
