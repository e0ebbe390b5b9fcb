//! The games that a build plays, behind the trait [`Playable`]. The log's header selects the game. The generic replay
//! code is compiled once for each game, not once per command.

mod bots;
mod error;

use std::marker::PhantomData;

use hitreg_log::sorted::SortedMap;

pub use bots::{ReadySession, SelfPlaying};
pub use error::GameError;

use bots::BotGame;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Session, SessionHeader, SessionStretch};
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_netcode::game::{self, Body, Bots, DiscardingSink, GameInput as _, Scene, Simulate, Wall};
use hitreg_netcode::info::passed_over;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::replay::{
    self, LogPass, LogSurvey, ReplayError, ReplayFindings, ReplayOptions, ReplayOutput, ReplaySource,
};
use hitreg_netcode::score::{self, ModeScore};
use hitreg_netcode::settings::Settings;
use std::sync::Arc;

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
#[derive(Clone, Default)]
pub struct Games {
    games: Vec<Arc<dyn Playable>>,
    memory: MemoryLimit,
}

impl std::fmt::Debug for Games {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.games.iter().map(|game| game.name())).finish()
    }
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
            None => Err(GameError::of(format!(
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

/// The operations on a game, without its types. [`replaying`] creates one from any [`Netcode`].
pub trait Playable: Send + Sync {
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
    /// When the session's settings are none of this build's, or its ticks are too far apart for those asked for.
    fn trace_memory(&self, session: &Session, options: &ReplayOptions) -> Result<usize, ReplayError>;
    /// Streams a replay of a log of this game, as [`replay::stream`] does.
    ///
    /// # Errors
    /// Fails if this build cannot replay the log.
    fn stream(
        &self,
        source: &ReplaySource<'_>,
        chunks: &mut dyn Iterator<Item = SessionStretch>,
        options: (&ReplayOptions, bool),
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

    /// Scores the interpolation modes on the snapshots that a session's players received.
    ///
    /// # Errors
    /// Fails if this build cannot read the log's rules or bodies.
    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, GameError>;

    /// Scores the interpolation modes while the log is read, as [`score::score_streamed`] does.
    ///
    /// # Errors
    /// Fails if a recorded state does not belong to this game.
    fn score_streamed(
        &self,
        log: (&SessionHeader, &LogSurvey),
        pass: LogPass<'_, score::DrawingScoreError>,
        settings: &Settings,
    ) -> Result<Option<Vec<ModeScore>>, GameError>;

    /// The walls of a log's map. Empty if the game has no outline or cannot read the log's rules.
    fn outline(&self, header: &SessionHeader) -> Vec<Wall>;

    /// The recording interface; `None` if the game has no bots.
    fn bots(&self) -> Option<&dyn SelfPlaying>;
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
        chunks: &mut dyn Iterator<Item = SessionStretch>,
        options: (&ReplayOptions, bool),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<ReplayFindings>, ReplayError> {
        replay::stream::<G>(source, chunks, options, to, progress)
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
        let entities: Vec<_> = entities.iter().map(read).collect::<Result<_, _>>().map_err(GameError::of)?;
        let own = entities.iter().find(|(entity, _)| *entity == who.entity());
        let (_, body) = own.ok_or_else(|| GameError::of(format!("--body of player {who} is missing")))?;
        let frames = session.players.get(usize::from(who.0)).map_or(&[][..], |player| &player.frames);
        let frame = frames.iter().find(|frame| frame.command.seq == which);
        let frame = frame.ok_or_else(|| GameError::of(format!("the log has no usercmd {which} of player {who}")))?;
        let scene = Scene { seed: session.header.seed, player: who, entities: &entities, weapons: true };
        let after = G::step_body(&rules, &scene, body, &G::Input::read_usercmd(&frame.command), &mut DiscardingSink);
        Ok(after.to_cells())
    }

    fn unknown_fields(&self, header: &SessionHeader) -> Vec<String> {
        game::unknown_fields::<G>(header)
    }

    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, GameError> {
        let rules = rules_of::<G>(&session.header)?;
        score::score::<G>(session, &rules, settings).map_err(GameError::of)
    }

    fn score_streamed(
        &self,
        (header, survey): (&SessionHeader, &LogSurvey),
        pass: LogPass<'_, score::DrawingScoreError>,
        settings: &Settings,
    ) -> Result<Option<Vec<ModeScore>>, GameError> {
        let rules = rules_of::<G>(header)?;
        score::score_streamed::<G>((header, survey), pass, &rules, settings).map_err(GameError::of)
    }

    fn outline(&self, header: &SessionHeader) -> Vec<Wall> {
        header.rules.read().map_or(Vec::new(), |rules| G::outline(&rules))
    }

    fn bots(&self) -> Option<&dyn SelfPlaying> {
        self.bots.as_deref()
    }
}

fn rules_of<G: Netcode>(header: &SessionHeader) -> Result<Arc<G::Rules>, GameError> {
    let unread = |error| GameError::of(format!("the rules in the log cannot be read: {error}"));
    header.rules.read().map_err(unread)
}

/// Names in a sentence: `arena, quakeworld and quake3`.
fn listed(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.concat(),
    }
}
