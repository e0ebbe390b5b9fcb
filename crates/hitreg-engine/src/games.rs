//! The games that a build plays, behind the trait [`Playable`]. The log's header selects the game. The generic replay
//! code is compiled once for each game, not once per command.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hitreg_live::{JoinOptions, JoinResult, LiveError, LiveReport, LiveSink, ServeOptions};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Session, SessionChunk, SessionHeader};
use hitreg_log::serial::ReadError;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_netcode::game::{self, BadCells, Body, Bots, DiscardingSink, Game, GameInput as _, Scene, Simulate, Wall};
use hitreg_netcode::info::passed_over;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::replay::{
    self, LogPass, Part, ReorderWindow, ReplayAttempt, ReplayError, ReplayFindings, ReplayOptions, ReplayOutput,
    ReplaySource,
};
use hitreg_netcode::score::{self, DrawingScoreError, ModeScore};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{RecordSink, SessionRecorder, SynthError, record_synthetic_while};
use hitreg_netcode::settings::Settings;

/// A map file for a game that makes its rules from maps.
#[derive(Clone, Copy, Debug)]
pub struct MapFile<'a> {
    /// The path, for messages.
    pub path: &'a str,
    /// The contents of the file.
    pub bytes: &'a [u8],
}

/// Why no rules could be made from a map file.
pub type RulesError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the rules of a game, from a map file if there is one.
type RulesFactory<G> = fn(Option<&MapFile<'_>>) -> Result<<G as Simulate>::Rules, RulesError>;

/// The games of a build, and the most memory that its commands may use.
#[derive(Clone, Debug, Default)]
pub struct Games {
    games: Vec<Arc<dyn Playable>>,
    memory: MemoryLimit,
}

impl Games {
    /// Adds a game that [`replaying`] or [`recording`] created.
    #[must_use]
    pub fn with(mut self, game: Box<dyn Playable>) -> Games {
        self.games.push(game.into());
        self
    }

    /// Adds a game that can also record synthetic and live sessions. `rules` makes its rules.
    #[must_use]
    pub fn recording<G: Bots + Netcode>(self, rules: RulesFactory<G>) -> Games {
        self.with(recording::<G>(rules))
    }

    /// The same games within this memory limit.
    #[must_use]
    pub fn within(self, memory: MemoryLimit) -> Games {
        Games { memory, ..self }
    }

    /// The most memory that a command may use for whole sessions and traces.
    pub fn memory(&self) -> MemoryLimit {
        self.memory
    }

    /// The game of a log.
    ///
    /// # Errors
    /// Fails if this build does not have the game.
    pub fn of(&self, session: &Session) -> Result<&dyn Playable, GameError> {
        self.of_header(&session.header)
    }

    /// The game of a log with this header.
    ///
    /// # Errors
    /// Fails if this build does not have the game.
    pub fn of_header(&self, header: &SessionHeader) -> Result<&dyn Playable, GameError> {
        let name = &header.game;
        let found = self.games.iter().find(|game| game.name() == name);
        found.map(|game| &**game).ok_or_else(|| GameError::unknown(name, &self.names()))
    }

    /// The parts of a log that this build skips: data of a later format version, and entity classes or fields that the
    /// game does not know.
    pub fn passed_over(&self, header: &SessionHeader) -> Vec<String> {
        let mut parts = passed_over(header);
        parts.extend(self.of_header(header).map(|game| game.unknown_fields(header)).unwrap_or_default());
        parts
    }

    /// The recordable game of this name, or the first recordable game if `name` is `None`.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn recordable(&self, name: Option<&str>) -> Result<&dyn SelfPlaying, GameError> {
        let mut named = self.games.iter().filter(|game| name.is_none_or(|name| game.name() == name));
        match named.find_map(|game| game.bots()) {
            Some(bots) => Ok(bots),
            None => Err(GameError::Unsuitable(format!(
                "`{}` has no bots in this build, so it cannot record a session: bots exist for {}",
                name.unwrap_or("any"),
                self.names_with_bots()
            ))),
        }
    }

    fn names(&self) -> String {
        listed(&self.games.iter().map(|game| game.name()).collect::<Vec<_>>())
    }

    fn names_with_bots(&self) -> String {
        let able: Vec<_> = self.games.iter().filter(|game| game.bots().is_some()).map(|game| game.name()).collect();
        if able.is_empty() { "no game".to_owned() } else { listed(&able) }
    }
}

/// The bodies of entities, each as cells in the order of the log's fields.
pub type Bodies = SortedMap<EntityId, Vec<u32>>;

/// Names the implementations of the public traits, so that other crates cannot add any.
mod sealed {
    pub trait Sealed {}

    impl<G> Sealed for super::GameEntry<G> {}
    impl<G: super::Game> Sealed for super::BotGame<G> {}
    impl<G: super::Game> Sealed for super::ReadyGame<G> {}
}

/// The operations on a game, without its types. This trait is sealed: [`replaying`] and [`recording`] create one from any
/// [`Netcode`].
pub trait Playable: sealed::Sealed + Send + Sync {
    /// The game's name in log headers.
    fn name(&self) -> &'static str;

    /// The distances from the server's state at which a prediction counts as exact or near, as text.
    fn grades(&self) -> &'static str;

    /// The weapons of imported recordings that have no line of fire.
    fn melee_weapons(&self) -> &'static [&'static str];

    /// Replays a log of this game. `progress` is called regularly with the session time reached.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log.
    fn replay(
        &self,
        session: &Session,
        options: &ReplayOptions,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<ReplayOutput, ReplayError>;

    /// An estimate by counts of the bytes of memory that the trace of [`Playable::replay`] takes.
    ///
    /// # Errors
    /// When the session's settings are none of this build's, or its ticks are too far apart for the requested settings.
    fn trace_memory(&self, session: &Session, options: &ReplayOptions) -> Result<usize, ReplayError>;
    /// Streams a replay of a log of this game, as [`replay::stream`] does.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log.
    fn stream(
        &self,
        source: &ReplaySource<'_>,
        chunks: &mut dyn Iterator<Item = SessionChunk>,
        attempt: ReplayAttempt<'_>,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<ReplayFindings>, ReplayError>;

    /// Streams an open-loop replay of a log of this game, as [`replay::stream_clients`] does.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log.
    fn stream_clients(
        &self,
        source: &ReplaySource<'_>,
        pass: LogPass<'_>,
        options: &ReplayOptions,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<ReplayFindings, ReplayError>;

    /// Whether recorded shots are judged again: [`ImportedSessions::rejudge`](game::ImportedSessions::rejudge).
    fn judges_again(&self) -> bool;

    /// Runs the input and links of a log again, and records the result as a new session.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log closed loop within this memory limit.
    fn rerecord(
        &self,
        memory: MemoryLimit,
        session: &Session,
        settings: Option<&Settings>,
    ) -> Result<Session, ReplayError>;

    /// Runs one recorded usercmd on its player's body, and returns the body after it. `entities` must include that
    /// body.
    ///
    /// # Errors
    /// Fails if the log has no such usercmd, or if a body does not belong to this game.
    fn step(
        &self,
        session: &Session,
        who: PlayerId,
        which: CommandSeq,
        entities: &Bodies,
    ) -> Result<Vec<u32>, GameError>;

    /// Descriptions of the entity classes and fields in a log that this build of the game does not know.
    fn unknown_fields(&self, header: &SessionHeader) -> Vec<String>;

    /// Scores the interpolation modes on the snapshots that a session's players received, as [`score::score`] does.
    ///
    /// # Errors
    /// Fails if this build cannot read the log's rules or bodies.
    fn score(
        &self,
        header: &SessionHeader,
        near: ReorderWindow,
        pass: LogPass<'_, DrawingScoreError>,
        settings: &Settings,
        part: Part,
    ) -> Result<Vec<ModeScore>, GameError>;

    /// The walls of a log's map. Empty if the game has no outline or cannot read the log's rules.
    fn outline(&self, header: &SessionHeader) -> Vec<Wall>;

    /// The recording interface; `None` if the game has no bots.
    fn bots(&self) -> Option<&dyn SelfPlaying>;
}

impl std::fmt::Debug for dyn Playable + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Creates a game whose logs can be replayed. Its generic code is compiled in the calling crate.
pub fn replaying<G: Netcode>() -> Box<dyn Playable> {
    Box::new(GameEntry::<G> { game: PhantomData, bots: None })
}

/// Creates a game that can also record synthetic and live sessions. `rules` makes its rules.
pub fn recording<G: Bots + Netcode>(rules: RulesFactory<G>) -> Box<dyn Playable> {
    Box::new(GameEntry::<G> { game: PhantomData, bots: Some(Box::new(BotGame::<G> { rules })) })
}

/// One game, and its bots if it has any.
struct GameEntry<G> {
    game: PhantomData<fn() -> G>,
    bots: Option<Box<dyn SelfPlaying>>,
}

impl<G: Netcode> Playable for GameEntry<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn grades(&self) -> &'static str {
        G::GRADES
    }

    fn melee_weapons(&self) -> &'static [&'static str] {
        G::IMPORTED.map_or(&[], |imported| imported.melee)
    }

    fn replay(
        &self,
        session: &Session,
        options: &ReplayOptions,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<ReplayOutput, ReplayError> {
        replay::replay::<G>(session, options, progress)
    }

    fn trace_memory(&self, session: &Session, options: &ReplayOptions) -> Result<usize, ReplayError> {
        replay::trace_memory::<G>(session, options)
    }

    fn stream(
        &self,
        source: &ReplaySource<'_>,
        chunks: &mut dyn Iterator<Item = SessionChunk>,
        attempt: ReplayAttempt<'_>,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<ReplayFindings>, ReplayError> {
        replay::stream::<G>(source, chunks, attempt, to, progress)
    }

    fn stream_clients(
        &self,
        source: &ReplaySource<'_>,
        pass: LogPass<'_>,
        options: &ReplayOptions,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<ReplayFindings, ReplayError> {
        replay::stream_clients::<G>(source, pass, options, to, progress)
    }

    fn judges_again(&self) -> bool {
        G::IMPORTED.is_some_and(|imported| imported.rejudge.is_some())
    }

    fn rerecord(
        &self,
        memory: MemoryLimit,
        session: &Session,
        settings: Option<&Settings>,
    ) -> Result<Session, ReplayError> {
        replay::rerecord::<G>(memory, session, settings)
    }

    fn step(
        &self,
        session: &Session,
        who: PlayerId,
        which: CommandSeq,
        entities: &Bodies,
    ) -> Result<Vec<u32>, GameError> {
        let rules = rules_of::<G>(&session.header)?;
        let read = |(entity, cells): (&EntityId, &Vec<u32>)| G::Body::read(cells).map(|body| (*entity, body));
        let entities: Vec<_> = entities.iter().map(read).collect::<Result<_, _>>()?;
        let own = entities.iter().find(|(entity, _)| *entity == who.entity());
        let (_, body) = own.ok_or_else(|| GameError::Unsuitable(format!("--body of player {who} is missing")))?;
        let frames = session.players.get(usize::from(who.0)).map_or(&[][..], |player| &player.frames);
        let frame = frames.iter().find(|frame| frame.command.seq == which);
        let no_frame = || GameError::Unsuitable(format!("the log has no usercmd {which} of player {who}"));
        let frame = frame.ok_or_else(no_frame)?;
        let scene = Scene { seed: session.header.seed, player: who, entities: &entities, weapons: true };
        let after = G::step_body(&rules, &scene, body, &G::Input::read_usercmd(&frame.command), &mut DiscardingSink);
        Ok(after.to_cells())
    }

    fn unknown_fields(&self, header: &SessionHeader) -> Vec<String> {
        game::unknown_fields::<G>(header)
    }

    fn score(
        &self,
        header: &SessionHeader,
        near: ReorderWindow,
        pass: LogPass<'_, DrawingScoreError>,
        settings: &Settings,
        part: Part,
    ) -> Result<Vec<ModeScore>, GameError> {
        let rules = rules_of::<G>(header)?;
        Ok(score::score::<G>(header, near, pass, &rules, settings, part)?)
    }

    fn outline(&self, header: &SessionHeader) -> Vec<Wall> {
        header.rules.read().map_or(Vec::new(), |rules| G::outline(&rules))
    }

    fn bots(&self) -> Option<&dyn SelfPlaying> {
        self.bots.as_deref()
    }
}

fn rules_of<G: Netcode>(header: &SessionHeader) -> Result<Arc<G::Rules>, GameError> {
    header.rules.read().map_err(GameError::LogRules)
}

/// Names in a sentence: `arena, quakeworld and quake3`.
fn listed(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}

/// Why a game cannot do what is requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GameError {
    /// The game is not of this build, or lacks what is requested. Holds the reason.
    #[error("{0}")]
    Unsuitable(String),
    /// The game cannot use the map file.
    #[error("the game cannot use this map: {0}")]
    Map(#[source] RulesError),
    /// This build cannot read the log's rules.
    #[error("the rules in the log cannot be read: {0}")]
    LogRules(#[source] ReadError),
    /// A body is no state of the game.
    #[error(transparent)]
    Body(#[from] BadCells),
    /// The log's snapshots cannot be drawn.
    #[error(transparent)]
    Drawing(#[from] DrawingScoreError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] SynthError),
    /// A live session could not be joined, or ended with an error.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl GameError {
    /// The log is of a game that this build does not play.
    pub(crate) fn unknown(of_log: &str, of_build: &str) -> GameError {
        GameError::Unsuitable(format!(
            "the log is of the game `{of_log}`, and this build plays {of_build}. These work without a build: info, export, \
             report, why. These work with the game's build: verify, why and sweep with --build BUILD; diff, report and bisect \
             with --b BUILD; shrink with --a BUILD --b BUILD; check BUILD LOG; BUILD replay LOG -o TRACE (docs/builds.md). Others need \
             the game in Rust (docs/games.md)"
        ))
    }
}

/// A synthetic session that is ready to run. This trait is sealed: [`SelfPlaying::set_up`] creates one.
pub trait ReadySession: sealed::Sealed {
    /// The header of its log.
    fn header(&self) -> &SessionHeader;

    /// Runs it in virtual time, and writes each record to `sink`. It ends early when `may_continue` returns false.
    ///
    /// # Errors
    /// Fails if the scenario is out of bounds.
    fn run(&self, sink: &mut dyn RecordSink, may_continue: &dyn Fn() -> bool) -> Result<(), SynthError>;

    /// The header of its log for a live run.
    ///
    /// # Errors
    /// Fails if the scenario is out of bounds.
    fn live_header(&self) -> Result<SessionHeader, LiveError>;

    /// Runs its server and bots live, over UDP.
    ///
    /// # Errors
    /// Fails if sockets are not available or the log cannot be written.
    fn run_live(&self, port: u16, stop: &AtomicBool, sink: &mut dyn LiveSink) -> Result<LiveReport, LiveError>;

    /// Runs only its server, for remote clients.
    ///
    /// # Errors
    /// Fails if the address is not available, players are missing too long, or the log cannot be written.
    fn serve(&self, options: ServeOptions, stop: &AtomicBool, sink: &mut dyn LiveSink)
    -> Result<LiveReport, LiveError>;
}

/// The operations of a game that has bots. This trait is sealed: [`recording`] creates one.
pub trait SelfPlaying: sealed::Sealed + Send + Sync {
    /// Returns a built-in map of the game.
    ///
    /// # Errors
    /// Fails if it has no map of that name.
    fn map(&self, name: &str) -> Result<MapFile<'static>, GameError>;

    /// Prepares a synthetic session.
    ///
    /// # Errors
    /// Fails if the scenario is out of bounds, or if no rules can be made from the map.
    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn ReadySession>, GameError>;

    /// Plays a recorded session again with bots in place of its players, as [`replay::replay_with_bots`] does.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log closed loop within this memory limit.
    fn replay_with_bots(
        &self,
        memory: MemoryLimit,
        session: &Session,
        settings: &Settings,
        seed: Seed,
    ) -> Result<ReplayOutput, ReplayError>;

    /// Joins a server as a bot.
    ///
    /// # Errors
    /// Fails if no rules can be made from the map, or if the session ends with an error.
    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &JoinOptions<'_>,
        sink: &mut dyn LiveSink,
    ) -> Result<JoinResult, GameError>;
}

/// A game with bots, and the function that makes its rules.
struct BotGame<G: Game> {
    pub(crate) rules: RulesFactory<G>,
}

impl<G: Bots + Netcode> SelfPlaying for BotGame<G> {
    fn map(&self, name: &str) -> Result<MapFile<'static>, GameError> {
        let found = G::MAPS.iter().find(|(known, _)| *known == name);
        let known = || G::MAPS.iter().map(|(known, _)| *known).collect::<Vec<_>>();
        match found {
            Some((path, text)) => Ok(MapFile { path, bytes: text.as_bytes() }),
            None => Err(GameError::Unsuitable(format!("{name}: there is no such file, and {}", built_in(&known())))),
        }
    }

    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn ReadySession>, GameError> {
        scenario.check().map_err(SynthError::from)?;
        let named = match (map, &scenario.map) {
            (None, Some(name)) => Some(self.map(name)?),
            _ => None,
        };
        let rules = Arc::new((self.rules)(map.or(named.as_ref())).map_err(GameError::Map)?);
        let header = scenario.header::<G>(&rules)?;
        Ok(Box::new(ReadyGame::<G> { scenario: scenario.clone(), rules, header }))
    }

    fn replay_with_bots(
        &self,
        memory: MemoryLimit,
        session: &Session,
        settings: &Settings,
        seed: Seed,
    ) -> Result<ReplayOutput, ReplayError> {
        replay::replay_with_bots::<G>(memory, session, settings, seed)
    }

    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &JoinOptions<'_>,
        sink: &mut dyn LiveSink,
    ) -> Result<JoinResult, GameError> {
        let rules = Arc::new((self.rules)(map).map_err(GameError::Map)?);
        Ok(hitreg_live::join::<G>(joining, &rules, sink)?)
    }
}

fn built_in(known: &[&str]) -> String {
    match known {
        [] => "this game has no built-in maps".to_owned(),
        known => format!("no built-in map has this name: choose one of {}", known.join(", ")),
    }
}

/// A session of one game that is ready to run.
struct ReadyGame<G: Game> {
    scenario: Scenario,
    rules: Arc<G::Rules>,
    header: SessionHeader,
}

impl<G: Bots + Netcode> ReadySession for ReadyGame<G> {
    fn header(&self) -> &SessionHeader {
        &self.header
    }

    fn run(&self, sink: &mut dyn RecordSink, may_continue: &dyn Fn() -> bool) -> Result<(), SynthError> {
        record_synthetic_while::<G>(&self.scenario, &self.rules, &mut SessionRecorder::new(sink), may_continue)
    }

    fn live_header(&self) -> Result<SessionHeader, LiveError> {
        hitreg_live::live_header::<G>(&self.scenario, &self.rules)
    }

    fn run_live(&self, port: u16, stop: &AtomicBool, sink: &mut dyn LiveSink) -> Result<LiveReport, LiveError> {
        hitreg_live::record_live::<G>(&self.scenario, &self.rules, port, stop, sink)
    }

    fn serve(
        &self,
        options: ServeOptions,
        stop: &AtomicBool,
        sink: &mut dyn LiveSink,
    ) -> Result<LiveReport, LiveError> {
        hitreg_live::serve::<G>(&self.scenario, &self.rules, options, stop, sink)
    }
}
