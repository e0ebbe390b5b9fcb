//! Replays a log through the pipelines of this build and produces a trace.
//!
//! Closed loop runs the server and all clients on the recorded usercmds over the recorded links. Open loop runs each
//! client pipeline on the recorded snapshots at their recorded times, and needs no server.

mod budget;
mod closed;
mod corrections;
mod feed;
mod keyframes;
mod network;
mod open;
mod output;
mod shots;
mod survey;
mod tables;
mod views;

use std::sync::Arc;

use crate::game::{Body, Bots, Game, GameInput, RejudgeRules, StateRows, check_own_fields};
use crate::pipeline::{ClientPipeline, Netcode, Setup};
use crate::session::SessionRecorder;
use crate::settings::{SettingError, Settings};
use budget::check_work;
use feed::Feed;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{
    GapRecord, Keyframe, LogContents, Origin, PlayerRecords, Session, SessionChunk, SessionHeader, StateKey, TakenName,
    TickRecord, split_of_player,
};
pub use hitreg_log::record::{REJUDGED, WhatIf};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{NO_HASH, TableSchema, TableSet, ticks};
use hitreg_log::trace::{RECORD, STEP, SessionSource, Table, Trace, TraceHeader};
use hitreg_log::units::{Micros, PlayerId, Seed, Tick};
pub use keyframes::{BadKeyframe, KeyframeSchedule, ReplayStart, keyframe_has_sizes, other_keyframe_version};
pub use output::{HashDifference, Jump, Part, PlayerJumps, ReplayError, ReplayFindings, ReplayOutput, TrafficBytes};
pub use survey::{LogSurvey, ReorderWindow, TickCounts};
pub use tables::TraceTables;

/// Options of one replay. Change fields of the default, because later versions add options.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Which pipelines run.
    pub mode: ReplayMode,
    /// Settings that replace the log's own; `None` for the log's own.
    pub settings: Option<Settings>,
    /// Rollback check: restores the world and runs it again every this many ticks, and compares the hashes. 0 counts as 1.
    pub rollback_every: Option<u32>,
    /// Rejudging: the session runs under its own settings, and the trace holds the verdicts under these. Only the
    /// settings in [`REJUDGED`] may differ from the session's. The consequences of a shot are those of the session's
    /// own verdict.
    pub rejudge: Option<Settings>,
    /// Further settings that a closed loop judges each shot under, as [`ReplayOptions::rejudge`] does. The verdicts
    /// under each of them are a table of their own, see [`rejudged_table`].
    pub rejudge_added: Vec<Settings>,
    /// Whether to measure datagram sizes, see [`ReplayFindings::traffic`]. Without them, the replay encodes no datagrams
    /// unless another result depends on them. The trace is the same, and the replay is several times as fast.
    pub sizes: bool,
    /// Whether a closed loop fills the network tables, `packets` and `snapshots`. Their byte columns also need
    /// [`ReplayOptions::sizes`].
    pub network: bool,
    /// The tables of the trace. The replay makes no other rows, and draws and explains nothing that no table needs, so
    /// fewer tables make a closed loop faster.
    pub tables: TableSet,
    /// Whether a closed loop leaves the predicted bodies out of the `frames` table. No log records them.
    pub without_predicted_bodies: bool,
    /// The part of the session whose rows go into the trace; `None` for the whole session. The replay also runs what
    /// precedes the part. A streamed replay ([`stream`]) stops after the part, once it has completed the part's rows.
    pub part: Option<Part>,
    /// The most memory for a session and its rows. A streamed replay ([`stream`]) needs less and ignores it.
    pub memory: MemoryLimit,
}

impl ReplayOptions {
    /// Sets the settings of the replay, `None` for the log's own. With [`WhatIf::Rejudge`], the session keeps its own
    /// settings and these only judge its shots.
    #[must_use]
    pub fn under(self, settings: Option<Settings>, what_if: WhatIf) -> ReplayOptions {
        let (settings, rejudge) = if what_if == WhatIf::Rejudge { (None, settings) } else { (settings, None) };
        ReplayOptions { settings, rejudge, ..self }
    }
}

/// One attempt at a streamed replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayAttempt<'a> {
    /// The options of the replay.
    pub options: &'a ReplayOptions,
    /// Whether every datagram is encoded. An attempt without encoding is several times as fast, and void if encoding
    /// might have made a difference.
    pub encodes: bool,
}

/// The name of the table with the verdicts under the settings at this place in [`ReplayOptions::rejudge_added`]. It has
/// the columns of `shots`, without what the shooter's screen showed.
pub fn rejudged_table(place: usize) -> String {
    format!("{REJUDGED_TABLES}{place}")
}

/// Whether a table has a name of [`rejudged_table`].
pub fn is_rejudged_table(name: &str) -> bool {
    name.starts_with(REJUDGED_TABLES)
}

const REJUDGED_TABLES: &str = "rejudged.";

/// Which pipelines run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// Closed if the log holds what a closed loop needs, else open.
    #[default]
    Auto,
    /// Server and clients.
    Closed,
    /// Clients alone, on their recorded snapshots.
    Open,
}

/// An estimate by counts of the bytes of memory that the trace of a session's replay takes.
///
/// # Errors
/// When the log's settings are none of this build's, or its ticks are too far apart for these settings.
pub fn trace_memory<G: Game>(session: &Session, options: &ReplayOptions) -> Result<usize, ReplayError> {
    let recorded = log_settings(&session.header)?;
    let settings = options.settings.as_ref().unwrap_or(&recorded);
    let ticks = TickCounts::of(&session.ticks).under(&session.header, settings)?;
    Ok(budget::trace_bytes_of(session, ticks, <G::Body as Body>::CELLS, options.tables))
}

/// The same of a session of a game that this build does not play, and under its own settings.
pub fn foreign_trace_memory(session: &Session) -> usize {
    budget::trace_bytes_of(session, session.ticks.len(), TYPICAL_CELLS, TableSet::ALL)
}

/// About as many cells as the bodies of the built-in games have.
const TYPICAL_CELLS: usize = 40;

/// Replays a session through this build's pipelines. `progress` gets the session time reached, from time to time.
///
/// # Errors
/// When this build cannot replay the log.
pub fn replay<G: Netcode>(
    session: &Session,
    options: &ReplayOptions,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let setup = setup::<G>(&session.header, options.settings.as_ref())?;
    let has_server = check_session(session);
    let closed = match (options.mode, has_server) {
        (_, Err(error @ ReplayError::ServerSide)) | (ReplayMode::Closed, Err(error)) => return Err(error),
        (ReplayMode::Open, _) | (ReplayMode::Auto, Err(_)) => false,
        (ReplayMode::Closed | ReplayMode::Auto, Ok(())) => true,
    };
    check_rejudge(&session.header, &setup.settings, options)?;
    if options.rejudge.is_some() && !closed && G::IMPORTED.is_none_or(|imported| imported.rejudge.is_none()) {
        return Err(ReplayError::NoJudge);
    }
    check_input(session)?;
    if let Some(part) = options.part {
        part.check(session.played())?;
    }
    let mut replayed = if closed {
        let mut replayed = closed::replay::<G>(session, &setup, options, progress)?;
        replayed.trace.header = closed_header((&session.header, session.gaps_after_start()), &setup, options);
        replayed
    } else {
        replay_open::<G, G::Client>(session, &setup, options.rejudge.as_ref(), options.memory, progress)?
    };
    let wanted = |table: &Table| TableSchema::of(&table.name).is_none_or(|schema| options.tables.has(schema));
    replayed.trace.tables.retain(wanted);
    if let Some(part) = options.part {
        if !closed {
            part.cut(&mut replayed.trace);
        }
        part.narrow(&mut replayed.trace.header, session.played());
        replayed.jumps.retain(|jump| part.has(jump.at));
        replayed.findings.jumps = PlayerJumps::of(&replayed.jumps);
    }
    Ok(replayed)
}

/// Replays each client of a session alone, in a client pipeline of type `C`, on its recorded input and received
/// snapshots. `settings` replace the log's own.
///
/// # Errors
/// When this build cannot replay the log.
pub fn replay_clients<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    settings: Option<&Settings>,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let setup = setup::<G>(&session.header, settings)?;
    check_input(session)?;
    replay_open::<G, C>(session, &setup, None, MemoryLimit::default(), progress)
}

fn replay_open<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    setup: &Setup<G>,
    rejudge: Option<&Settings>,
    memory: MemoryLimit,
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayOutput, ReplayError> {
    let judged = Arc::new(rejudge.unwrap_or(&setup.settings).clone());
    let recorded = Arc::new(log_settings(&session.header)?);
    let unlag = &judged.lag_compensation;
    let behind = |settings: &Arc<Settings>, player| settings.of_player(player).drawn_behind_ms();
    let players = (0..session.players.len() as u16).map(PlayerId);
    let rules = RejudgeRules {
        furthest: unlag.enabled.then(|| Micros::from_ms(unlag.max_unlag_ms)),
        drawn_later: players.map(|of| Micros::from_ms(behind(&judged, of) - behind(&recorded, of))).collect(),
    };
    let mut replayed = open::replay::<G, C>(session, setup, &rules, memory, progress)?;
    let mode = if rejudge.is_some() { "open, rejudged" } else { "open" };
    replayed.trace.header = trace_header(mode, (&session.header, session.gaps_after_start()), &judged);
    Ok(replayed)
}

/// Returns the header of a closed loop's trace. It holds the settings that judge the shots.
fn closed_header<G: Game>(
    log: (&SessionHeader, Vec<GapRecord>),
    setup: &Setup<G>,
    options: &ReplayOptions,
) -> TraceHeader {
    match &options.rejudge {
        Some(other) => trace_header("closed, rejudged", log, other),
        None => trace_header("closed", log, &setup.settings),
    }
}

/// Returns the header of a trace of the whole session, whose log has these gaps. A game with a server has all optional
/// commands of builds.
fn trace_header(mode: &str, (header, gaps): (&SessionHeader, Vec<GapRecord>), settings: &Settings) -> TraceHeader {
    let capabilities = if mode.starts_with("closed") { &[STEP, RECORD][..] } else { &[] };
    TraceHeader {
        game: header.game.clone(),
        mode: mode.to_owned(),
        log_digest: String::new(),
        settings: settings.to_pairs(),
        part: None,
        session: Some(SessionSource::of(header)),
        gaps,
        capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Checks that `options.rejudge` differs from the session's settings only in settings that affect judging, and has
/// no settings of players who are not in the session.
fn check_rejudge(header: &SessionHeader, settings: &Settings, options: &ReplayOptions) -> Result<(), ReplayError> {
    let Some(other) = &options.rejudge else { return Ok(()) };
    other.check_players(settings, header.players.len()).map_err(ReplayError::NotOfSession)?;
    let may = |key: &str| {
        let of_all = split_of_player(key).map_or(key, |(_, of_all)| of_all);
        REJUDGED.iter().any(|start| of_all.starts_with(start))
    };
    let mut changes = other.changes_from(settings).into_iter();
    changes.find(|(key, _)| !may(key)).map_or(Ok(()), |(key, _)| Err(ReplayError::NotForJudging { key }))
}

/// Returns the session's rules and seed, with these settings or those of the log.
fn setup<G: Game>(header: &SessionHeader, settings: Option<&Settings>) -> Result<Setup<G>, ReplayError> {
    check_game::<G>(header)?;
    let rules = header.rules.read::<G::Rules>()?;
    let recorded = log_settings(header)?;
    if let Some(settings) = settings {
        settings.check_players(&recorded, header.players.len()).map_err(ReplayError::NotOfSession)?;
    }
    Ok(Setup { rules, settings: Arc::new(settings.cloned().unwrap_or(recorded)), seed: header.seed })
}

/// Returns the settings that a log carries. An imported log without `prediction.among` gets `acking-packet`, so that
/// its predictions run as the server ran them.
///
/// # Errors
/// When this build does not know a setting.
pub fn log_settings(header: &SessionHeader) -> Result<Settings, SettingError> {
    let mut settings = Settings::from_pairs(&header.settings)?;
    let says = header.settings.iter().any(|(key, _)| key == AMONG);
    if matches!(header.origin, Origin::Imported { .. }) && !says {
        settings.set(AMONG, "acking-packet")?;
    }
    Ok(settings)
}

const AMONG: &str = "prediction.among";

/// Checks that the session has input. A spectator of an imported session has no usercmds, but received snapshots.
fn check_input(session: &Session) -> Result<(), ReplayError> {
    let imported = matches!(session.header.origin, Origin::Imported { .. });
    let has_snapshots = |player: &PlayerRecords| imported && !player.received.is_empty();
    let has = |player: &PlayerRecords| !(player.frames.is_empty() && player.heard.is_empty()) || has_snapshots(player);
    if session.players.iter().any(has) { Ok(()) } else { Err(ReplayError::NoInput) }
}

/// Compares a trace that another build made of a session with the recorded tick hashes. A trace whose ticks end before those
/// of the session differs from it. A trace without ticks has nothing to compare.
pub fn compare_hashes(session: &Session, trace: &Trace) -> ReplayFindings {
    let ticks = ticks::Columns::of(trace);
    let played = ticks.tick.iter().copied().zip(ticks.hash.iter().copied()).collect::<SortedMap<u32, u64>>();
    let (mut hashes_compared, mut first_difference) = (0, None);
    let with_hash = session.ticks.iter().filter_map(|record| Some((record, record.hash?)));
    for (&TickRecord { tick, at, .. }, recorded) in with_hash {
        let replayed = played.get(&tick.0).copied().filter(|hash| *hash != NO_HASH);
        let has_ended = || played.last_key_value().is_some_and(|(last, _)| *last < tick.0);
        hashes_compared += u64::from(replayed.is_some());
        if replayed.map_or_else(has_ended, |replayed| replayed != recorded) {
            first_difference.get_or_insert(HashDifference { tick, at, recorded, replayed });
        }
    }
    ReplayFindings { first_difference, hashes_compared, ..ReplayFindings::default() }
}

/// Runs a session's input over its links and records the result as a new session. The new session is consistent even
/// if the old session or its settings were changed.
///
/// # Errors
/// When this build cannot replay the log in closed loop, or not within this memory limit.
pub fn rerecord<G: Netcode>(
    memory: MemoryLimit,
    session: &Session,
    settings: Option<&Settings>,
) -> Result<Session, ReplayError> {
    let setup = setup::<G>(&session.header, settings)?;
    check_session(session)?;
    let unknown = Settings::unknown(&session.header.settings).cloned();
    let header = SessionHeader {
        settings: setup.settings.to_pairs().into_iter().chain(unknown).collect(),
        // Unknown records of a later version, and bytes of usercmds, do not result from this build's replay of the input.
        unknown: Vec::new(),
        usercmd_bytes: false,
        classes: G::classes(),
        usercmd: G::Input::usercmd_fields(),
        ..session.header.clone()
    };
    let mut again = Session::new(header);
    for (entity, body) in closed::bodies_at_the_beginning::<G>(&session.header, &session.states)? {
        let mut cells = Vec::new();
        let class = StateRows::own::<G>().write::<G>(&body, &mut cells);
        again.states.push(StateKey { tick: Tick(0), viewer: None, entity, class }, &cells);
    }
    let heard = (0..).map(PlayerId).zip(&session.players).filter(|(_, records)| records.is_heard_only());
    let mut recorder = SessionRecorder::new(&mut again).with_heard(heard.map(|(player, _)| player));
    closed::observe(session, &setup, memory, &mut recorder)?;
    again.put_in_order();
    Ok(again)
}

/// Lets bots play the session again ([`WhatIf::Rerecord`]): same map, links and duration, with these settings and
/// another random seed.
///
/// # Errors
/// When this build cannot replay the log in closed loop, or not within this memory limit.
pub fn replay_with_bots<G: Bots + Netcode>(
    memory: MemoryLimit,
    session: &Session,
    settings: &Settings,
    seed: Seed,
) -> Result<ReplayOutput, ReplayError> {
    let setup = Setup { seed, ..setup::<G>(&session.header, Some(settings))? };
    check_session(session)?;
    let mut replayed = closed::replay_with_bots::<G>(session, &setup, memory)?;
    let header = SessionHeader { seed, ..session.header.clone() };
    replayed.trace.header = trace_header("closed", (&header, Vec::new()), &setup.settings);
    Ok(replayed)
}

/// Refuses sessions that do not hold a server and its clients.
fn check_session(session: &Session) -> Result<(), ReplayError> {
    check_server(&session.header, session.players.iter().any(PlayerRecords::is_heard_only))
}

/// Refuses logs that do not hold a server and its clients. A server alone is enough if it recorded the packets of its
/// clients.
fn check_server(header: &SessionHeader, hears: bool) -> Result<(), ReplayError> {
    match (header.holds(), header.side) {
        (LogContents::Whole, _) => Ok(()),
        // A server that recorded the packets it received needs no client logs.
        (LogContents::Server, _) if hears => Ok(()),
        (LogContents::Server, _) => Err(ReplayError::ServerSide),
        (LogContents::Clients, Some(_)) => Err(ReplayError::ClientSide),
        (LogContents::Clients, None) => Err(ReplayError::NoServer),
    }
}

/// Refuses logs of another game, and logs with other entity fields than this build's.
fn check_game<G: Game>(header: &SessionHeader) -> Result<(), ReplayError> {
    if header.game != G::NAME {
        return Err(ReplayError::OtherGame { log: header.game.clone(), build: G::NAME });
    }
    TakenName::check(&G::classes(), &G::Input::own_fields())?;
    StateRows::new::<G>(&header.classes)?;
    Ok(check_own_fields::<G::Input>(&header.own_usercmd_fields())?)
}

/// A log to replay while it is read, for [`stream`] and [`stream_clients`].
///
/// A pass over the log first collects what the replay must know in advance ([`LogSurvey`]): the end of the log and the
/// longest flight time. The replay reads ahead by the longest flight time. It keeps only what pipelines and incomplete
/// rows still need: a packet until it arrives, a shot until the frames of its time are known. Memory use therefore does
/// not depend on the log's length.
pub struct ReplaySource<'a> {
    /// The log's header.
    pub header: &'a SessionHeader,
    /// The results of a pass over the log.
    pub survey: &'a LogSurvey,
    /// The keyframe at which the replay begins; `None` for the beginning of the log. The chunks then begin after the
    /// keyframe's chunk.
    pub start: Option<&'a ReplayStart>,
    /// When keyframes are due, and the function that receives them.
    pub keyframes: Option<(&'a KeyframeSchedule, &'a dyn Fn(Keyframe))>,
}

hitreg_log::partial_debug!(ReplaySource<'_> { header, start });

/// Reads a log from beginning to end and passes on each of its chunks.
pub type LogPass<'a, E = ReplayError> =
    &'a mut dyn FnMut(&mut dyn FnMut(SessionChunk) -> Result<(), E>) -> Result<(), E>;

impl ReplaySource<'_> {
    /// Checks that its replay does not go through more than a session can hold. What begins in the middle was checked when its
    /// keyframes were made.
    fn check_work(&self) -> Result<(), ReplayError> {
        match self.start {
            None => check_work(self.header.players.len(), self.survey.frames(), self.survey.ticks.count),
            Some(_) => Ok(()),
        }
    }

    /// Whether the log has a server to run. Without one, only its clients run, in open loop.
    pub fn has_server(&self) -> bool {
        let found = check_server(self.header, self.survey.first_heard_player().is_some());
        !matches!(found, Err(ReplayError::NoServer | ReplayError::ClientSide))
    }

    /// Whether a closed loop can replay the log while reading it. Any other log must be in memory as a whole.
    pub fn streams(&self, options: &ReplayOptions) -> bool {
        self.survey.streams() && options.mode != ReplayMode::Open
    }

    /// Whether the replay is an open loop that [`stream_clients`] can run while reading the log. Rejudging, parts and
    /// keyframe starts need the log in memory.
    pub fn streams_clients(&self, options: &ReplayOptions) -> bool {
        let is_open = match options.mode {
            ReplayMode::Closed => false,
            ReplayMode::Open => true,
            ReplayMode::Auto => !self.has_server(),
        };
        let is_of_all = options.part.is_none() && options.rejudge.is_none() && self.start.is_none();
        is_open && is_of_all && self.survey.reorder_window().is_some()
    }
}

/// Replays a log in closed loop from its `chunks`. `to` gets the trace header with each piece of a table: first every
/// table in table order, possibly empty, then more rows in any order.
///
/// Returns `None` if encoding datagrams might have made a difference. Then everything that `to` got is void, and the
/// caller must make another attempt, which encodes every datagram.
///
/// # Errors
/// When this build cannot replay the log.
pub fn stream<G: Netcode>(
    source: &ReplaySource<'_>,
    chunks: &mut dyn Iterator<Item = SessionChunk>,
    attempt: ReplayAttempt<'_>,
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<Option<ReplayFindings>, ReplayError> {
    source.check_work()?;
    let options = attempt.options;
    let setup = setup::<G>(source.header, options.settings.as_ref())?;
    check_rejudge(source.header, &setup.settings, options)?;
    if !source.survey.has_input() {
        return Err(ReplayError::NoInput);
    }
    if let Some(part) = options.part {
        part.check(source.survey.played())?;
    }
    let mut header = closed_header((source.header, source.survey.gaps.clone()), &setup, options);
    if let Some(part) = options.part {
        part.narrow(&mut header, source.survey.played());
    }
    let feed = Feed::new(chunks, source.survey);
    closed::stream::<G>(&feed, source, &setup, attempt, &mut |table| to(&header, table), progress)
}

/// Replays each client of a log alone, as [`replay`](replay()) does in open loop. `pass` reads the log once,
/// and runs once for each player. `to` gets the same as in [`stream`].
///
/// # Errors
/// When this build cannot replay the log, or not [while reading it](ReplaySource::streams_clients).
pub fn stream_clients<G: Netcode>(
    source: &ReplaySource<'_>,
    pass: LogPass<'_>,
    options: &ReplayOptions,
    to: &mut dyn FnMut(&TraceHeader, Table),
    progress: &mut dyn FnMut(Micros),
) -> Result<ReplayFindings, ReplayError> {
    source.check_work()?;
    let setup = setup::<G>(source.header, options.settings.as_ref())?;
    let imported = matches!(source.header.origin, Origin::Imported { .. });
    if !(source.survey.has_input() || (imported && source.survey.has_snapshots())) {
        return Err(ReplayError::NoInput);
    }
    let reorder = source.survey.reorder_window().ok_or(ReplayError::NotAsRead)?;
    let header = trace_header("open", (source.header, source.survey.gaps.clone()), &setup.settings);
    let to = &mut |table| to(&header, table);
    open::stream::<G, G::Client>(source, &setup, options.tables, reorder, pass, to, progress)
}
