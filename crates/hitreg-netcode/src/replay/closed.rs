//! Closed loop: server and clients run again on the recorded usercmds over the recorded links. Everything is read from
//! a feed: a file chunk by chunk, or a session in memory as one chunk.

use std::rc::Rc;
use std::sync::Arc;

use super::budget::{BudgetObserver, ReplayBudget};
use super::feed::{Feed, FeedLink, SharedFeed};
use super::keyframes::reach;
use super::network::NetworkTables;
use super::shots::ShotTable;
use super::tables::{FLUSH_INTERVAL, FlushScope, has_corrections};
use super::{
    HashDifference, KeyframeSchedule, LogSurvey, Part, ReplayAttempt, ReplayError, ReplayFindings, ReplayOptions,
    ReplayOutput, ReplaySource, TraceTables, TrafficBytes, keyframes,
};
use crate::game::{Bots, Game, StateRows};
use crate::pipeline::{Netcode, RejudgeSettings, Rollbacks, ServerPipeline, Setup, TickEvent, TickOutcome};
use crate::session::{AfterTick, BotInput, InputSource, Links, Machine, Observer, SessionEvent, TransportKind};
use crate::settings::Settings;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{
    Keyframe, PlayerRecords, Session, SessionChunk, SessionHeader, SnapshotRecord, StateKey, States,
};
use hitreg_log::trace::Table;
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};

/// A server and its clients on the links of a feed.
type ReplayMachine<'f, G> = Machine<G, FeedLink<'f>>;

/// One run of a closed loop: its log, its options, and what it may use.
struct ClosedRun<'a, 'f, G: Game> {
    feed: &'a SharedFeed<'f>,
    source: &'a ReplaySource<'a>,
    /// The session in memory, whose rows must fit beside it; `None` for a log that streams.
    session: Option<&'a Session>,
    setup: &'a Setup<G>,
    options: &'a ReplayOptions,
    budget: ReplayBudget,
}

/// Replays a session in memory. Its rows stay in memory, too.
pub(super) fn replay<G: Netcode>(
    session: &Session,
    setup: &Setup<G>,
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let mut attempt = |encodes| {
        run_in_memory(session, setup, options, |run| {
            let Some(machine) = run.machine(encodes)? else { return Ok(None) };
            run.run_into_tables(machine, &mut Rc::clone(run.feed), None, progress)
        })
    };
    let (findings, tables) = match attempt(false)? {
        Some(ran) => ran,
        None => attempt(true)?.ok_or(ReplayError::NotAsRead)?,
    };
    Ok(ReplayOutput { trace: tables.into_trace(), findings, jumps: Vec::new() })
}

/// Runs bots in place of the session's players, without comparing hashes.
pub(super) fn replay_with_bots<G: Bots + Netcode>(
    session: &Session,
    setup: &Setup<G>,
    memory: MemoryLimit,
) -> Result<ReplayOutput, ReplayError> {
    let options = ReplayOptions { memory, ..ReplayOptions::default() };
    let bots = G::bots(&setup.rules, setup.seed, session.players.len() as u16);
    let mut bots = BotInput::<G>::of(bots, setup.seed, Arc::clone(&setup.rules), &setup.settings);
    let ran = run_in_memory(session, setup, &options, |run| {
        let Some(machine) = run.machine(true)? else { return Ok(None) };
        run.run_into_tables(machine, &mut bots, None, &mut |_| {})
    })?;
    let (findings, tables) = ran.ok_or(ReplayError::NotAsRead)?;
    let findings = ReplayFindings { first_difference: None, hashes_compared: 0, ..findings };
    Ok(ReplayOutput { trace: tables.into_trace(), findings, jumps: Vec::new() })
}

/// Runs the recorded input of a session in memory over its links, with every datagram encoded, watched by `observer`.
pub(super) fn observe<G: Netcode>(
    session: &Session,
    setup: &Setup<G>,
    memory: MemoryLimit,
    observer: &mut dyn Observer<G>,
) -> Result<(), ReplayError> {
    let options = ReplayOptions { memory, ..ReplayOptions::default() };
    run_in_memory(session, setup, &options, |run| {
        let mut machine = run.machine(true)?.ok_or(ReplayError::NotAsRead)?;
        run.run(&mut machine, &mut Rc::clone(run.feed), observer)
    })
}

/// Makes a run on a feed of one chunk: a session in memory, beside its rows.
fn run_in_memory<G: Game, T>(
    session: &Session,
    setup: &Setup<G>,
    options: &ReplayOptions,
    run: impl FnOnce(&ClosedRun<'_, '_, G>) -> T,
) -> T {
    let (survey, mut chunk) = (&LogSurvey::of_connections(session), std::iter::once(input_of(session)));
    let (feed, source) = (
        &Feed::new(&mut chunk, survey),
        &ReplaySource { header: &session.header, survey, start: None, keyframes: None },
    );
    let budget = ReplayBudget::holding(session, options.tables, options.memory);
    run(&ClosedRun { feed, source, session: Some(session), setup, options, budget })
}

/// Replays a log from a feed. Rows go to `to` as tables fill up, and the rest at the end. Returns `None` if datagrams
/// might have made a difference. Then the rows so far are void, and the caller must make another attempt, which encodes
/// every datagram.
pub(super) fn stream<G: Netcode>(
    feed: &SharedFeed<'_>,
    source: &ReplaySource<'_>,
    setup: &Setup<G>,
    ReplayAttempt { options, encodes }: ReplayAttempt<'_>,
    to: &mut dyn FnMut(Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Option<ReplayFindings>, ReplayError> {
    let run = ClosedRun { feed, source, session: None, setup, options, budget: ReplayBudget::streaming() };
    let Some(machine) = run.machine(encodes)? else { return Ok(None) };
    let ran = run.run_into_tables(machine, &mut Rc::clone(feed), Some(to), progress)?;
    let Some((findings, mut tables)) = ran else { return Ok(None) };
    tables.flush(FlushScope::All, to);
    Ok(Some(findings))
}

/// The records of a session that a closed loop reads, as one chunk.
fn input_of(session: &Session) -> SessionChunk {
    let of = |records: &PlayerRecords| PlayerRecords {
        frames: records.frames.clone(),
        heard: records.heard.clone(),
        sent: records.sent.clone(),
        reached: records.reached.clone(),
        received: records.received.clone(),
        presence: records.presence.clone(),
        // The replay makes its own snapshots, and looks up only when the recorded ones were sent.
        snapshots: (records.snapshots.iter())
            .map(|sent| SnapshotRecord { seq: sent.seq, at: sent.at, ..SnapshotRecord::default() })
            .collect(),
        ..PlayerRecords::default()
    };
    let players = session.players.iter().map(of).collect();
    SessionChunk { ticks: session.ticks.clone(), players, ..SessionChunk::default() }
}

/// The time that a shot's usercmd may take to run, beyond the longest flight. A shot of a part without a verdict after
/// that counts as never judged.
const VERDICT_WAIT: Micros = Micros::from_s(1);

impl<'f, G: Netcode> ClosedRun<'_, 'f, G> {
    /// Creates a server and clients on the links of the feed, at the beginning of the log or at a keyframe. They encode
    /// every datagram with `encodes`, unless their settings ask for nominal sizes. Returns `None` if they must encode
    /// datagrams and `encodes` is false.
    fn machine(&self, encodes: bool) -> Result<Option<ReplayMachine<'f, G>>, ReplayError> {
        let ClosedRun { feed, source, setup, options, .. } = self;
        // A replay from a keyframe uses the transport of the replay that made the keyframe.
        let encodes = match source.start {
            Some(start) => start.transport != TransportKind::Unencoded,
            None => encodes || options.sizes,
        };
        let links = |player| Links::of(|direction| FeedLink::of(feed, player, direction));
        let links = (0..source.header.players.len()).map(links).collect();
        let machine = if encodes { Some(Machine::new(setup, links)) } else { Machine::unencoded(setup, links) };
        let Some(mut machine) = machine else { return Ok(None) };
        if let Some(every) = options.rollback_every
            && !machine.server().check_rollback(every)
        {
            return Err(ReplayError::NoRollback(G::NAME));
        }
        let reported = options.rejudge.clone().map(Arc::new);
        let added: Vec<Arc<Settings>> = options.rejudge_added.iter().cloned().map(Arc::new).collect();
        let is_rejudged = reported.is_some() || !added.is_empty();
        if is_rejudged && !machine.server().rejudge_under(RejudgeSettings { reported, added }) {
            return Err(ReplayError::NoRejudging(G::NAME));
        }
        // A keyframe holds counts of the search for causes.
        if !has_corrections(options.tables) && source.keyframes.is_none() {
            machine.skip_causes();
        }
        if let Some(world) = world::<G>(source, &setup.rules)? {
            machine.server().begin_from(world);
        }
        if let Some(start) = source.start {
            feed.borrow_mut().resume((start.tick, start.at), start.next_chunk + 1, &start.fed);
            let (_, near) = feed.borrow_mut().chunks_near(start.at, Micros(i64::MAX));
            start.put(&mut machine, source.header, &near)?;
        }
        Ok(Some(machine))
    }

    /// Runs a machine, fills the tables, and compares the hashes of ticks. With `to`, it passes rows on as tables fill
    /// up. Returns `None` if datagrams might have made a difference.
    fn run_into_tables<'r>(
        &self,
        mut machine: ReplayMachine<'_, G>,
        input: &mut dyn InputSource<G>,
        mut to: Option<&'r mut dyn FnMut(Table)>,
        progress: &'r mut dyn FnMut(Micros),
    ) -> Result<Option<(ReplayFindings, TraceTables)>, ReplayError> {
        let ClosedRun { feed, source, options, .. } = self;
        let mut tables = self.empty_tables();
        // Empty tables first, so that the order of tables does not depend on which one is full first.
        if let Some(to) = &mut to {
            tables.flush(FlushScope::All, to);
        }
        let part = options.part.unwrap_or(Part::WHOLE);
        let mut observer = ReplayObserver {
            tables,
            feed: Rc::clone(feed),
            to,
            part,
            phase: if part == Part::WHOLE { ReplayPhase::Within } else { ReplayPhase::Skipped },
            needed_from: source.survey.needed_from(part.from),
            compares_until: source.survey.first_gap().map_or(Micros(i64::MAX), |gap| gap.from),
            flushed_at: Micros::ZERO,
            findings: ReplayFindings::default(),
            traffic: TrafficBytes::default(),
            progress,
        };
        self.run(&mut machine, input, &mut observer)?;
        // The last tick may be before the part. Then no row is of the part.
        observer.advance(part.from);
        if machine.needs_encoding() {
            return Ok(None);
        }
        let ReplayObserver { mut tables, findings, traffic, .. } = observer;
        let Rollbacks { checked: rollbacks, failed: rollback_error } = machine.server().rollbacks().unwrap_or_default();
        let traffic = (machine.transport_kind() != TransportKind::Unencoded).then_some(traffic);
        tables.end_of_part::<G>(part);
        Ok(Some((ReplayFindings { traffic, rollbacks, rollback_error, ..findings }, tables)))
    }

    /// Returns the tables that the options ask for.
    fn empty_tables(&self) -> TraceTables {
        let ClosedRun { source, session, setup, options, .. } = self;
        let players = source.header.players.len();
        let mut tables = TraceTables::new::<G>(players, Arc::clone(&setup.rules));
        tables.wanted = options.tables;
        // A streamed replay passes rows on before there are many.
        if session.is_some() && options.part.is_none() {
            let (usercmds, ticks) = (source.survey.frames(), source.survey.ticks.count);
            tables.expect_rows(players, usercmds as usize, ticks as usize);
        }
        let draws_at_once = |player: &u16| setup.settings.of_player(PlayerId(*player)).drawn_behind_ms() == 0;
        // Without a client, nobody draws.
        let with_client = |player: &u16| !source.survey.is_heard_only(usize::from(*player));
        tables.views.has_teleports = (0..players as u16).filter(with_client).any(|player| draws_at_once(&player));
        if options.without_predicted_bodies {
            tables.frames.own = None;
        }
        tables.rejudged.resize_with(options.rejudge_added.len(), || ShotTable::new(players));
        if options.network {
            let (longest, gaps) = (source.survey.longest_flight(), &source.survey.gaps);
            tables.network = Some(NetworkTables::new(options.sizes, longest, gaps));
        }
        tables
    }

    /// Runs a machine until all ticks are over or a limit is exceeded.
    fn run(
        &self,
        machine: &mut ReplayMachine<'_, G>,
        input: &mut dyn InputSource<G>,
        observer: &mut dyn Observer<G>,
    ) -> Result<(), ReplayError> {
        let ClosedRun { feed, source, session, setup, options, budget } = self;
        if let Some(session) = session {
            budget.begin::<G>(session, source.survey.ticks.under(&session.header, &setup.settings)?)?;
        }
        match (source.keyframes, source.start) {
            (None, _) => feed.borrow_mut().kept_chunks = None,
            (Some(_), None) => feed.borrow_mut().keep_chunks(0),
            (Some(_), Some(_)) => {}
        }
        let other_rate = source.survey.ticks.at_another_rate(source.header, &setup.settings)?;
        if other_rate.is_some() {
            feed.borrow_mut().ignore_ticks();
        }
        let mut other_rate = other_rate.into_iter().flatten();
        let ticks = std::iter::from_fn(|| other_rate.next().or_else(|| feed.borrow_mut().next_tick()));
        // A packet sent in the part may still arrive after it, and a shot fired in it may still be judged.
        let end =
            options.part.zip(source.survey.longest_flight()).map(|(part, longest)| part.to + longest + VERDICT_WAIT);
        let mut ticks = ticks.take_while(|at| end.is_none_or(|end| *at < end) && !budget.is_exceeded());
        let tick = source.start.map_or(Tick(0), |start| start.tick);
        let mut keyframes = KeyframeWriter { source, feed, tick, next: None, failed: None };
        let mut counted = BudgetObserver::new(budget, observer);
        machine.run_with_state(&mut ticks, input, &mut counted, &mut |machine| {
            if let Some(to) = source.keyframes {
                keyframes.handle_tick(machine, to);
            }
        });
        budget.check()?;
        keyframes.failed.map_or(Ok(()), Err)
    }
}

/// Writes keyframes during a replay.
struct KeyframeWriter<'a, 'f> {
    source: &'a ReplaySource<'a>,
    feed: &'a SharedFeed<'f>,
    /// The last completed tick.
    tick: Tick,
    /// When the next keyframe is due; `None` if that is not known yet, or if none follows.
    next: Option<Micros>,
    failed: Option<ReplayError>,
}

impl KeyframeWriter<'_, '_> {
    fn handle_tick<G: Netcode>(
        &mut self,
        machine: &AfterTick<'_, G, FeedLink<'_>, G::Client>,
        (due, to): (&KeyframeSchedule, &dyn Fn(Keyframe)),
    ) {
        let (tick, at) = (self.tick.next(), machine.at);
        self.tick = tick;
        let is_due = match (due, self.next) {
            (KeyframeSchedule::Every(_), next) => next.is_some_and(|next| at >= next),
            (KeyframeSchedule::After(ticks), _) => ticks.binary_search_by_key(&tick, |(due, _)| *due).is_ok(),
        };
        if is_due && self.failed.is_none() {
            match self.make_keyframe(machine, tick, at) {
                Ok(keyframe) => keyframe.into_iter().for_each(to),
                Err(error) => self.failed = Some(error),
            }
        }
        if is_due || self.next.is_none() {
            self.next = due.next((tick, at));
            let never = Micros(i64::MAX);
            self.feed.borrow_mut().keep_chunks_since(
                self.next.map_or(never, |next| next - reach(self.source.survey, machine.transport_kind())),
            );
        }
    }

    /// Makes the keyframe of a tick; `None` if the state cannot be saved.
    fn make_keyframe<G: Netcode>(
        &self,
        machine: &AfterTick<'_, G, FeedLink<'_>, G::Client>,
        tick: Tick,
        at: Micros,
    ) -> Result<Option<Keyframe>, ReplayError> {
        let mut feed = self.feed.borrow_mut();
        let reach = reach(self.source.survey, machine.transport_kind());
        let (next_chunk, near) = feed.chunks_near(at, reach);
        let Some(fed) = feed.checkpoint(at, reach) else { return Ok(None) };
        let content = keyframes::content(machine, (self.source.header, self.source.survey, fed), &near)?;
        Ok(content.map(|content| Keyframe { tick, at, next_chunk, content }))
    }
}

/// Returns the initial world of a log; `None` for the one that the game spawns.
fn world<G: Game>(source: &ReplaySource<'_>, rules: &G::Rules) -> Result<Option<G::World>, ReplayError> {
    let bodies = bodies_at_the_beginning::<G>(source.header, &source.survey.beginning)?;
    if bodies.is_empty() {
        return Ok(None);
    }
    let everyone = (0..source.header.players.len()).map(|p| EntityId(p as u16));
    let is_of_everyone = bodies.iter().map(|(id, _)| *id).eq(everyone);
    let world = is_of_everyone.then(|| G::begin(rules, source.header.seed, &bodies));
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

/// The position of the replay relative to the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplayPhase {
    /// So long before the part that none of its rows depends on it.
    Skipped,
    /// Before the part: rows are made for later lookups, then discarded.
    Warmup,
    Within,
    /// After the part; its rows may still wait for arrivals or verdicts.
    After,
}

/// The observer of a closed loop: fills and flushes the tables, and compares each tick's hash with the recorded one.
struct ReplayObserver<'a, 'f> {
    tables: TraceTables,
    feed: SharedFeed<'f>,
    /// Receives the rows of full tables.
    to: Option<&'a mut dyn FnMut(Table)>,
    /// The replayed part of the session.
    part: Part,
    phase: ReplayPhase,
    /// Until this time, only tick hashes are compared.
    needed_from: Micros,
    /// The last time at which hashes are compared: after a missing part, no replay equals the recording.
    compares_until: Micros,
    /// When all rows were last passed on.
    flushed_at: Micros,
    findings: ReplayFindings,
    traffic: TrafficBytes,
    progress: &'a mut dyn FnMut(Micros),
}

impl ReplayObserver<'_, '_> {
    /// Advances the phase to `at`. Returns whether to record what happens then.
    #[inline]
    fn advance(&mut self, at: Micros) -> bool {
        if self.phase == ReplayPhase::Skipped && at >= self.needed_from {
            self.phase = ReplayPhase::Warmup;
        }
        if self.phase == ReplayPhase::Warmup && at >= self.part.from {
            self.tables.begin_part();
            (self.phase, self.flushed_at) = (ReplayPhase::Within, at);
        }
        if self.phase == ReplayPhase::Within && at >= self.part.to {
            self.phase = ReplayPhase::After;
        }
        matches!(self.phase, ReplayPhase::Warmup | ReplayPhase::Within)
    }

    /// Compares a tick's hash with the recorded one.
    fn compare_hash(&mut self, at: Micros, outcome: TickOutcome) {
        let hash = {
            let mut feed = self.feed.borrow_mut();
            feed.reached(at);
            feed.hash_of(outcome.tick)
        };
        if let Some(hash) = hash.filter(|_| self.phase != ReplayPhase::After && at <= self.compares_until) {
            self.findings.hashes_compared += 1;
            self.findings.hashes_before += u64::from(self.phase != ReplayPhase::Within);
            if hash != outcome.hash {
                let different = HashDifference { tick: outcome.tick, at, recorded: hash, replayed: Some(outcome.hash) };
                self.findings.first_difference.get_or_insert(different);
            }
        }
    }

    /// Passes on all rows from time to time, so that no table lags far behind the others.
    fn flush_after_interval(&mut self, at: Micros) {
        if let Some(to) = &mut self.to
            && self.phase == ReplayPhase::Within
            && at.0.saturating_sub(self.flushed_at.0) > FLUSH_INTERVAL.0
        {
            self.flushed_at = at;
            self.tables.flush(FlushScope::NonEmpty, to);
        }
    }

    /// Passes on the rows of full tables. Before the part, it discards them.
    fn flush_full(&mut self) {
        match &mut self.to {
            Some(_) if self.phase == ReplayPhase::Warmup => self.tables.flush_full(&mut |_| {}),
            Some(to) => self.tables.flush_full(to),
            None => {}
        }
    }
}

impl<G: Game> Observer<G> for ReplayObserver<'_, '_> {
    fn needs_drawing(&mut self, at: Micros) -> bool {
        self.advance(at) && Observer::<G>::needs_drawing(&mut self.tables, at)
    }

    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>) {
        let is_recorded = self.advance(at);
        match event {
            SessionEvent::PacketSent { packet, .. } => self.traffic.up_bytes += u64::from(packet.bytes),
            SessionEvent::SnapshotSent { size, .. } => self.traffic.down_bytes += u64::from(size.bytes),
            _ => {}
        }
        match *event {
            SessionEvent::Ticked { outcome, .. } => {
                (self.progress)(at);
                self.compare_hash(at, outcome);
                if is_recorded {
                    self.tables.event(at, event);
                    self.flush_full();
                }
                self.flush_after_interval(at);
            }
            SessionEvent::Frame { .. } if is_recorded => {
                self.tables.event(at, event);
                self.flush_full();
            }
            // A packet sent in the part may arrive after it.
            SessionEvent::PacketReached { .. } => self.tables.event(at, event),
            SessionEvent::Server { event: TickEvent::Judged(shot), .. } if !is_recorded => {
                self.tables.shots.drop_predicted(shot);
            }
            SessionEvent::SnapshotReceived { player, snapshot, .. } if !is_recorded => {
                self.tables.snapshot_reached(player, snapshot.seq, at);
            }
            _ if is_recorded => self.tables.event(at, event),
            _ => {}
        }
    }
}
