//! Plays a plan in virtual time, and keeps all records in order.

use std::sync::Arc;

use super::bounds::{BoundsCheck, BoundsObserver};
use super::intruder::RandomIntruder;
use super::plan::{PlayerPlan, SoakPlan};
use crate::claims::without::{ClientPart, PartialClient};
use hitreg_arena::bot::{ArenaBot, RouteGraph};
use hitreg_arena::{Arena, ArenaMap, ArenaRules};
use hitreg_log::record::{ClockOwner, PlayerRecords, Record, Session, SessionHeader};
use hitreg_log::rng::Rng;
use hitreg_log::units::{Hz, Micros, PlayerId, Seed};
use hitreg_log::usercmd::Input;
use hitreg_netcode::link::{LinkModel, LinkWithOutages, ModelledLink};
use hitreg_netcode::pipeline::{ClientPipeline as _, Setup};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{BotInput, InputSource, Links, Machine, PlayerScreen, RecordSink, SynthError};
use hitreg_netcode::settings::Settings;

/// The data shared by all plans: the prepared maps.
pub struct SoakMaps {
    courtyard: PreparedMap,
    orchard: PreparedMap,
}

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
    pub(super) fn play_within(&self, plan: &SoakPlan, bounds: &Settings) -> Result<SoakSession, SynthError> {
        let PreparedMap { rules, routes } = if plan.in_orchard { &self.orchard } else { &self.courtyard };
        let settings = Arc::new(plan.settings());
        let header = header(plan, rules, &settings)?;
        let seed = Seed(plan.seed);
        let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(&settings), seed };
        let links = (0..).zip(&plan.players).map(|(index, player)| links(player, seed, index)).collect();
        let client = |setup, player| {
            let client = PartialClient::new(setup, player);
            match plan.lie {
                Some(lie) if player == PlayerId(0) => client.leave_out(ClientPart::Truth(lie)),
                Some(_) | None => client,
            }
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
        let mut input = PacedBots::new(plan, rules, routes, &settings);
        machine.run(ticks(plan, settings.server.tick_hz), &mut input, &mut bounds);
        let bounds = bounds.finish();
        let mut session = Session::new(header);
        tape.0.iter().for_each(|record| session.record(record.clone()));
        session.put_in_order();
        Ok(SoakSession { session, tape: tape.0, bounds })
    }
}

fn header(plan: &SoakPlan, rules: &ArenaRules, settings: &Settings) -> Result<SessionHeader, SynthError> {
    let scenario = Scenario {
        preset: plan.preset.to_owned(),
        players: plan.players.len() as u16,
        seconds: plan.length().as_s_f64(),
        seed: plan.seed,
        ..Scenario::default()
    };
    Ok(SessionHeader { settings: settings.to_pairs(), ..scenario.header::<Arena>(rules)? })
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
    let ticks = (1..).map(move |n| hz.turn(n)).take_while(move |at| *at <= end);
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

impl PacedBots<'_> {
    fn new<'a>(
        plan: &'a SoakPlan,
        rules: &Arc<ArenaRules>,
        routes: &Arc<RouteGraph>,
        settings: &Arc<Settings>,
    ) -> PacedBots<'a> {
        let seed = Seed(plan.seed);
        let crew = ArenaBot::crew_on(seed, plan.players.len() as u16, routes);
        PacedBots { bots: BotInput::of(crew, seed, Arc::clone(rules), settings), players: &plan.players }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::{PlanLimits, PlannedFault};

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
}
