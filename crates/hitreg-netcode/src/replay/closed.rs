//! Closed loop: server and clients run again on the recorded usercmds over the recorded links. The session is in
//! memory, or its log is read during the replay.

mod input;
mod watch;

use std::rc::Rc;
use std::sync::Arc;

use super::budget::{BudgetObserver, ReplayBudget};
use super::feed::{FeedLink, SharedFeed};
use super::keyframes::{self, REACH};
use super::streamed::{ReplaySource, StreamReport};
use super::{KeyframeSchedule, Part, ReplayError, ReplayOptions, ReplayOutput, TraceTables};
use crate::game::{Bots, Game, StateRows};
use crate::link::{Fate, Link, RecordedLink};
use crate::pipeline::{Netcode, ServerPipeline, Setup};
use crate::session::{AfterTick, BotInput, InputSource, Links, Machine, Observer};
use crate::settings::Settings;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Keyframe, Session, SessionHeader, StateKey, States};
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::TableSet;
use hitreg_log::units::{EntityId, Micros, Tick};
use input::{FeedInput, RecordedInput};
use watch::{HashChecker, HashSource};

pub(super) fn replay<G: Netcode>(
    session: &Session,
    setup: &Setup<G>,
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    if !options.sizes
        && let Some(machine) = Machine::unencoded(setup, links(session))
    {
        let mut machine = prepared(machine, beginning::<G>(session, &setup.rules)?, options)?;
        let replayed = watched(&mut machine, session, setup, &mut RecordedInput::of(session), options, progress)?;
        if !machine.bytes_matter() {
            return Ok(ReplayOutput { traffic: None, ..replayed });
        }
    }
    let mut machine = machine(session, setup, options)?;
    watched(&mut machine, session, setup, &mut RecordedInput::of(session), options, progress)
}

/// Runs bots in place of the session's players, without comparing hashes.
pub(super) fn play_anew<G: Bots + Netcode>(session: &Session, setup: &Setup<G>) -> Result<ReplayOutput, ReplayError> {
    let mut machine = machine(session, setup, &ReplayOptions::default())?;
    let players = session.players.len() as u16;
    let mut bots = BotInput::<G>::new(setup.seed, players, Arc::clone(&setup.rules), &setup.settings);
    let replayed = watched(&mut machine, session, setup, &mut bots, &ReplayOptions::default(), &mut |_| {})?;
    Ok(ReplayOutput { first_difference: None, hashes_compared: 0, ..replayed })
}

/// Runs a session with this input on a machine, and records its tables.
fn watched<G: Netcode>(
    machine: &mut Machine<G, RecordedLinkSource<'_>>,
    session: &Session,
    setup: &Setup<G>,
    input: &mut impl InputSource<G>,
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let mut tables = TraceTables::new::<G>(session.players.len(), Arc::clone(&setup.rules)).only(options.tables);
    if options.network {
        tables.watch_network(options.sizes, None);
    }
    let mut watch = HashChecker::new(tables, HashSource::Of(session), (Part::WHOLE, None), progress);
    run_by(machine, (session, options.tables), setup, input, &mut watch)?;
    let ran = watch.ran::<G>(machine);
    Ok(ReplayOutput {
        trace: watch.tables.finish::<G>(),
        first_difference: ran.first_difference,
        hashes_compared: ran.hashes_compared,
        traffic: Some(ran.traffic),
        rollbacks: ran.rollbacks,
        rollback_error: ran.rollback_error,
        jumps: Vec::new(),
    })
}

/// The time that a shot's usercmd may take to run, beyond the longest flight. A shot of a part without a verdict after
/// that counts as never judged.
const SETTLED: Micros = Micros::from_s(1);

/// Replays a log while reading it. Rows go to `to` as tables fill up, and the rest at the end. Returns `None` if
/// datagrams might have made a difference. Then the rows so far are void, and the caller must run the replay again
/// with `encoded`.
pub(super) fn stream<G: Netcode>(
    feed: &SharedFeed<'_>,
    source: &ReplaySource<'_>,
    setup: &Setup<G>,
    (options, encoded): (&ReplayOptions, bool),
    to: &mut dyn FnMut(Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Option<StreamReport>, ReplayError> {
    let players = source.header.players.len();
    let of = |player| Links {
        up: RecordedLinkSource::Fed(FeedLink::up(feed, player)),
        down: RecordedLinkSource::Fed(FeedLink::down(feed, player)),
    };
    let links = (0..players).map(of).collect();
    let machine = match encoded || options.sizes {
        true => Some(Machine::new(setup, links)),
        false => Machine::unencoded(setup, links),
    };
    let Some(machine) = machine else { return Ok(None) };
    let world = world::<G>(source.header, &source.survey.beginning, players, &setup.rules)?;
    let mut machine = prepared(machine, world, options)?;
    if let Some(start) = source.start {
        feed.borrow_mut().resume((start.tick, start.at), start.stretch + 1, &start.fed);
        let (_, near) = feed.borrow_mut().near(start.at, Micros(i64::MAX));
        start.put(&mut machine, source.header, &near)?;
    }
    match (source.keyframes, source.start) {
        (None, _) => feed.borrow_mut().forget_near(),
        (Some(_), None) => feed.borrow_mut().keep_near(0),
        (Some(_), Some(_)) => {}
    }
    let mut tables = TraceTables::new::<G>(players, Arc::clone(&setup.rules)).only(options.tables);
    if options.network {
        tables.watch_network(options.sizes, Some(source.survey.longest()));
    }
    // Empty tables first, so that the order of tables does not depend on which one is full first.
    tables.take(0, to);
    let budget = ReplayBudget::streaming();
    let part = options.part.unwrap_or(Part::WHOLE);
    // A packet sent in the part may still arrive after it, and a shot fired in it may still be judged.
    let over = part.to + source.survey.longest() + SETTLED;
    let ticks = std::iter::from_fn(|| feed.borrow_mut().next_tick());
    let ticks = ticks.take_while(|at| *at < over && !budget.is_exceeded());
    let mut watch = HashChecker::new(tables, HashSource::Fed(Rc::clone(feed)), (part, Some(to)), progress);
    watch.look_away_until(Part::needs_from(part.from));
    let mut input = FeedInput(Rc::clone(feed));
    let tick = source.start.map_or(Tick(0), |start| start.tick);
    let mut keyframes = Keyframes { source, feed, tick, next: None, failed: None };
    let (mut bound, mut counted) = (budget.bound(&mut input), BudgetObserver::new(&budget, &mut watch));
    match source.keyframes {
        Some(to) => machine.run_watched(ticks, &mut bound, &mut counted, &mut |machine| keyframes.after(machine, to)),
        None => machine.run(ticks, &mut bound, &mut counted),
    }
    budget.check()?;
    if let Some(error) = keyframes.failed {
        return Err(error);
    }
    if machine.bytes_matter() {
        return Ok(None);
    }
    let ran = watch.ran::<G>(&mut machine);
    let HashChecker { mut tables, to, .. } = watch;
    tables.end_of_part::<G>(part);
    to.into_iter().for_each(|to| tables.take(0, to));
    Ok(Some(ran))
}

/// Writes keyframes during a replay.
struct Keyframes<'a, 'f> {
    source: &'a ReplaySource<'a>,
    feed: &'a SharedFeed<'f>,
    /// The last completed tick.
    tick: Tick,
    /// When the next keyframe is due; `None` if that is not known yet, or if none follows.
    next: Option<Micros>,
    failed: Option<ReplayError>,
}

impl Keyframes<'_, '_> {
    fn after<G: Netcode>(
        &mut self,
        machine: &AfterTick<'_, G, RecordedLinkSource<'_>, G::Client>,
        (due, to): (&KeyframeSchedule, &dyn Fn(Keyframe)),
    ) {
        let (tick, at) = (self.tick.next(), machine.at);
        self.tick = tick;
        let is_due = match (due, self.next) {
            (KeyframeSchedule::Every(_), next) => next.is_some_and(|next| at >= next),
            (KeyframeSchedule::After(ticks), _) => ticks.binary_search_by_key(&tick, |(due, _)| *due).is_ok(),
        };
        if is_due && self.failed.is_none() {
            match self.made(machine, tick, at) {
                Ok(keyframe) => keyframe.into_iter().for_each(to),
                Err(error) => self.failed = Some(error),
            }
        }
        if is_due || self.next.is_none() {
            self.next = due.next((tick, at));
            let never = Micros(i64::MAX);
            self.feed.borrow_mut().keep_since(self.next.map_or(never, |next| next - REACH));
        }
    }

    /// Makes the keyframe of a tick; `None` if the state cannot be saved.
    fn made<G: Netcode>(
        &self,
        machine: &AfterTick<'_, G, RecordedLinkSource<'_>, G::Client>,
        tick: Tick,
        at: Micros,
    ) -> Result<Option<Keyframe>, ReplayError> {
        let mut feed = self.feed.borrow_mut();
        let (stretch, near) = feed.near(at, REACH);
        let Some(fed) = feed.fed(at, REACH) else { return Ok(None) };
        let content = keyframes::content(machine, (self.source.header, self.source.survey, fed), &near)?;
        Ok(content.map(|content| Keyframe { tick, at, stretch, content }))
    }
}

/// Returns a new server and new clients on the recorded links, with datagrams where the settings require them.
pub(super) fn machine<'l, G: Netcode>(
    session: &Session,
    setup: &Setup<G>,
    options: &ReplayOptions,
) -> Result<Machine<G, RecordedLinkSource<'l>>, ReplayError> {
    prepared(Machine::new(setup, links(session)), beginning::<G>(session, &setup.rules)?, options)
}

/// Runs the recorded input on a machine, watched by `observer`.
pub(super) fn run<G: Netcode>(
    machine: &mut Machine<G, RecordedLinkSource<'_>>,
    session: &Session,
    setup: &Setup<G>,
    observer: &mut impl Observer<G>,
) -> Result<(), ReplayError> {
    run_by(machine, (session, TableSet::ALL), setup, &mut RecordedInput::of(session), observer)
}

/// Some input through a machine, until all ticks are over or too much has been made of them. The observer keeps these tables.
fn run_by<G: Netcode>(
    machine: &mut Machine<G, RecordedLinkSource<'_>>,
    (session, tables): (&Session, TableSet),
    setup: &Setup<G>,
    input: &mut impl InputSource<G>,
    observer: &mut impl Observer<G>,
) -> Result<(), ReplayError> {
    let budget = ReplayBudget::holding(session, tables, MemoryLimit::current());
    budget.begin::<G>(session, tick_times(session, &setup.settings)?.count())?;
    let ticks = tick_times(session, &setup.settings)?.take_while(|_| !budget.is_exceeded());
    machine.run(ticks, &mut budget.bound(input), &mut BudgetObserver::new(&budget, observer));
    budget.check()
}

fn links<'l>(session: &Session) -> Vec<Links<RecordedLinkSource<'l>>> {
    let links = session.players.iter().map(|player| Links {
        up: RecordedLinkSource::Whole(RecordedLink::up(&player.sent, &player.reached)),
        down: RecordedLinkSource::Whole(RecordedLink::down(&player.snapshots, &player.received)),
    });
    links.collect()
}

/// A recorded link, in memory or in a feed.
pub(super) enum RecordedLinkSource<'a> {
    Whole(RecordedLink),
    Fed(FeedLink<'a>),
}

impl Link for RecordedLinkSource<'_> {
    fn send(&mut self, at: Micros, bytes: u16) -> Fate {
        match self {
            RecordedLinkSource::Whole(link) => link.send(at, bytes),
            RecordedLinkSource::Fed(link) => link.send(at, bytes),
        }
    }
}

/// Applies the options to a machine, and sets its initial world; `None` leaves the world that the game spawns.
fn prepared<'l, G: Netcode>(
    mut machine: Machine<G, RecordedLinkSource<'l>>,
    world: Option<G::World>,
    options: &ReplayOptions,
) -> Result<Machine<G, RecordedLinkSource<'l>>, ReplayError> {
    if let Some(every) = options.rollback_every
        && !machine.server().check_rollback(every)
    {
        return Err(ReplayError::NoRollback(G::NAME));
    }
    if let Some(other) = &options.judged_under
        && !machine.server().judge_under(Arc::new(other.clone()))
    {
        return Err(ReplayError::NoRejudging(G::NAME));
    }
    if let Some(world) = world {
        machine.server().begin_from(world);
    }
    Ok(machine)
}

/// Returns the initial world of a session; `None` for the one that the game spawns.
fn beginning<G: Game>(session: &Session, rules: &G::Rules) -> Result<Option<G::World>, ReplayError> {
    world::<G>(&session.header, &session.states, session.players.len(), rules)
}

fn world<G: Game>(
    header: &SessionHeader,
    states: &States,
    players: usize,
    rules: &G::Rules,
) -> Result<Option<G::World>, ReplayError> {
    let bodies = bodies_at_the_beginning::<G>(header, states)?;
    if bodies.is_empty() {
        return Ok(None);
    }
    let everyone = (0..players).map(|p| EntityId(p as u16));
    let world = bodies.iter().map(|(id, _)| *id).eq(everyone).then(|| G::begin(rules, header.seed, &bodies));
    world.flatten().map(Some).ok_or(ReplayError::NoBeginning)
}

/// Returns the initial bodies of a session cut from another one; empty for a session that begins at the spawn.
pub(super) fn bodies_at_the_beginning<G: Game>(
    header: &SessionHeader,
    states: &States,
) -> Result<Vec<(EntityId, G::Body)>, ReplayError> {
    let rows = StateRows::new::<G>(&header.classes)?;
    let read = |(key, cells): (StateKey, &[u32])| {
        let body =
            rows.read::<G>(key.class, cells).map_err(|source| ReplayError::BadState { tick: Tick(0), source })?;
        Ok((key.entity, body.ok_or(ReplayError::NoBeginning)?))
    };
    states.of_tick(Tick(0)).map(read).collect()
}

/// The most ticks of another rate, as a multiple of the recorded ticks converted to that rate. An overloaded server
/// leaves ticks out, so this may exceed 1.
const LEFT_OUT_MOST: i64 = 16;
/// The number of ticks that the replay always accepts, however few were recorded.
const TICKS_FEW: i64 = 4096;

/// Returns the recorded tick times; under another tick rate, times at that rate over the same span.
pub(super) fn tick_times<'a>(
    session: &'a Session,
    settings: &'a Settings,
) -> Result<impl Iterator<Item = Micros> + 'a, ReplayError> {
    let recorded = Settings::from_pairs(&session.header.settings).map(|s| s.server.tick_hz);
    let times = session.ticks.iter().map(|t| t.at);
    let (first, last) = (times.clone().next(), times.clone().next_back());
    let hz = settings.server.tick_hz;
    let (recorded_ones, at_rate) = match (recorded, first, last) {
        (Ok(recorded), Some(first), Some(last)) if recorded != hz => {
            let (wanted, ticks) = (hz.turns_in(last - first), session.ticks.len());
            let in_step = ticks as i128 * i128::from(hz.milli()) / i128::from(recorded.milli().max(1));
            if wanted > TICKS_FEW && i128::from(wanted) > in_step * i128::from(LEFT_OUT_MOST) {
                return Err(ReplayError::FarApart { ticks, wanted });
            }
            (None, Some((0..).map(move |n| first + hz.turn(n)).take_while(move |at| *at <= last)))
        }
        _ => (Some(times), None),
    };
    Ok(recorded_ones.into_iter().flatten().chain(at_rate.into_iter().flatten()))
}
