//! The games that a build plays, behind one face: a log says which one it is of.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::shrink::CannotTell;
use crate::arena::{Arena, ArenaMap, ArenaRules};
use crate::game::{BadCells, Body, Bots, Effect, Game, Scene, Sink, Touch};
use crate::link::LinkModel;
use crate::live::{self, Joined, Keeper, LiveError, LiveReport};
use crate::pipeline::Netcode;
use crate::quakeworld::QuakeWorld;
use crate::record::{Header, Record, Session};
use crate::replay::{self, Imported, Options, ReplayError, Replayed};
use crate::score::{self, ModeScore};
use crate::session::scenario::Scenario;
use crate::session::{RecordSink, Recorder, SynthError, record_synthetic};
use crate::settings::Settings;
use crate::shrink::{self, ShrinkError, Shrunk};
use crate::sweep::{self, Plan, Sweep, SweepError};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};
use crate::wire::Networked;

/// A map file, as it is handed to a game that makes its rules from it.
#[derive(Clone, Copy, Debug)]
pub struct MapFile<'a> {
    /// Where it was, for messages.
    pub path: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
}

/// Why no rules could be made from a map file.
pub type RulesError = Box<dyn std::error::Error + Send + Sync>;

/// Makes a game's rules: its own, or those for a map file.
type MakeRules<G> = fn(Option<&MapFile<'_>>) -> Result<<G as Game>::Rules, RulesError>;

/// The games of a build.
#[derive(Default)]
pub struct Games {
    games: Vec<Box<dyn Playable>>,
}

impl Games {
    /// The games that `hitreg` has built in.
    pub fn built_in() -> Games {
        let arena = |map: Option<&MapFile<'_>>| match map {
            None => Ok(ArenaRules::default()),
            Some(map) => {
                let name = Path::new(map.path).file_stem().unwrap_or_default().to_string_lossy();
                Ok(ArenaRules::new(ArenaMap::parse(&name, map.bytes)?))
            }
        };
        Games::default().recording::<Arena>(arena).replaying::<QuakeWorld>()
    }

    /// Adds a game whose logs can be replayed.
    #[must_use]
    pub fn replaying<G: Imported>(mut self) -> Games {
        self.games.push(Box::new(Of::<G> { game: PhantomData, bots: None }));
        self
    }

    /// Adds a game that can also record synthetic and live sessions, under rules that `rules` makes.
    #[must_use]
    pub fn recording<G: Bots + Imported>(
        mut self,
        rules: fn(Option<&MapFile<'_>>) -> Result<G::Rules, RulesError>,
    ) -> Games
    where
        G::Body: Networked,
    {
        self.games.push(Box::new(Of::<G> { game: PhantomData, bots: Some(Box::new(WithBots::<G> { rules })) }));
        self
    }

    /// The game of a log.
    pub(super) fn of(&self, session: &Session) -> Result<&dyn Playable, UnknownGame> {
        let name = &session.header.game;
        let found = self.games.iter().find(|game| game.name() == name);
        found.map(|game| &**game).ok_or_else(|| UnknownGame { log: name.clone(), build: self.names() })
    }

    /// The game of this name that can record; or the first that can, when none is named.
    pub(super) fn recordable(&self, name: Option<&str>) -> Result<&dyn Playable, NotRecordable> {
        let mut able = self.games.iter().filter(|game| game.records());
        match able.find(|game| name.is_none_or(|name| game.name() == name)) {
            Some(game) => Ok(&**game),
            None => Err(NotRecordable { name: name.unwrap_or("any").to_owned(), able: self.able() }),
        }
    }

    fn names(&self) -> String {
        self.games.iter().map(|game| game.name()).collect::<Vec<_>>().join(" and ")
    }

    fn able(&self) -> String {
        let able: Vec<_> = self.games.iter().filter(|game| game.records()).map(|game| game.name()).collect();
        if able.is_empty() { "no game".to_owned() } else { able.join(" and ") }
    }
}

/// A log of a game that this build does not play.
#[derive(Debug, thiserror::Error)]
#[error("the log is of the game `{log}`, and this build plays {build}: replay it with the build that recorded it")]
pub(super) struct UnknownGame {
    log: String,
    build: String,
}

/// A game that has no bots.
#[derive(Debug, thiserror::Error)]
#[error("no synthetic session of `{name}` can be recorded: this build has bots for {able}")]
pub(super) struct NotRecordable {
    name: String,
    able: String,
}

/// Why a synthetic session could not be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    /// The game has no bots.
    #[error("this game has no bots to play it")]
    NoBots,
    /// There is no such map.
    #[error("no map `{name}` is built in, and there is no such file: give one of {known}, or a .map file")]
    NoMap {
        /// The name that was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The map file gives no rules.
    #[error("no rules can be made from this map: {0}")]
    Rules(RulesError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] SynthError),
}

/// Why a client could not join, or had to leave.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    /// The game cannot be played here.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The session.
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// Why drawing could not be scored.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScoreError {
    /// The rules in the log are not this build's.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] rmp_serde::decode::Error),
    /// A recorded body is not one.
    #[error(transparent)]
    State(#[from] BadCells),
}

/// The bodies of entities, in cells.
pub(super) type Cells = BTreeMap<EntityId, Vec<u32>>;

/// What the command line does with a game, whichever it is.
pub(super) trait Playable: Send + Sync {
    fn name(&self) -> &'static str;

    /// Replays a log of this game.
    fn replay(
        &self,
        session: &Session,
        options: &Options,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Replayed, ReplayError>;

    /// Runs a log's input and links again, and records what comes of it as a new session.
    fn rerecord(&self, session: &Session, settings: Option<&Settings>) -> Result<Session, ReplayError>;

    /// Runs one recorded usercmd on its player's body among `entities`, that body among them, and gives the body after it.
    fn step(&self, session: &Session, who: PlayerId, which: CommandSeq, entities: &Cells) -> Result<Vec<u32>, String>;

    /// The smallest session that `still` says shows it.
    fn shrink(
        &self,
        session: &Session,
        still: &(dyn Fn(&Session) -> Result<bool, CannotTell> + Sync),
        progress: &mut dyn FnMut(&shrink::Step),
    ) -> Result<Shrunk, ShrinkError<CannotTell>>;

    /// Replays sessions under every combination of settings.
    fn sweep(&self, sessions: &[Session], plan: &Plan, done: &(dyn Fn() + Sync)) -> Result<Sweep, SweepError>;

    /// Scores the ways of drawing the others on what a session's players received.
    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, ScoreError>;

    /// Whether it can record synthetic sessions.
    fn records(&self) -> bool;

    /// A map of the game's own.
    fn map(&self, name: &str) -> Result<MapFile<'static>, SetupError>;

    /// Gets a synthetic session ready to be run.
    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn Staged>, SetupError>;

    /// Plays as a bot on a server.
    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &Joining<'_>,
        keeper: &mut dyn Keeper,
    ) -> Result<Joined, JoinError>;
}

/// Where to play, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining<'a> {
    pub(super) server: SocketAddr,
    /// What is done to datagrams of both directions.
    pub(super) link: Option<&'a LinkModel>,
    /// Set when the client is to leave.
    pub(super) stop: &'a AtomicBool,
}

/// A synthetic session that is ready to be run.
pub(super) trait Staged {
    /// What its log begins with.
    fn header(&self) -> &Header;

    /// Runs it, record by record.
    fn run(&self, sink: &mut dyn RecordSink) -> Result<(), SynthError>;

    /// What its log begins with when it is run live.
    fn live_header(&self) -> Result<Header, LiveError>;

    /// Runs it live, over UDP.
    fn run_live(&self, port: u16, stop: &AtomicBool, keeper: &mut dyn Keeper) -> Result<LiveReport, LiveError>;

    /// Serves it, for clients elsewhere.
    fn serve(&self, at: SocketAddr, stop: &AtomicBool, keeper: &mut dyn Keeper) -> Result<LiveReport, LiveError>;
}

/// One game, and its bots if it has any.
struct Of<G> {
    game: PhantomData<fn() -> G>,
    bots: Option<Box<dyn PlaysItself>>,
}

/// What a game can do that has bots.
trait PlaysItself: Send + Sync {
    fn map(&self, name: &str) -> Result<MapFile<'static>, SetupError>;

    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn Staged>, SetupError>;

    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &Joining<'_>,
        keeper: &mut dyn Keeper,
    ) -> Result<Joined, JoinError>;
}

/// A game with bots, and how its rules are made.
struct WithBots<G: Game> {
    rules: MakeRules<G>,
}

impl<G: Bots + Netcode> PlaysItself for WithBots<G>
where
    G::Body: Networked,
{
    fn map(&self, name: &str) -> Result<MapFile<'static>, SetupError> {
        let found = G::MAPS.iter().find(|(known, _)| *known == name);
        let known = || G::MAPS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        match found {
            Some((path, text)) => Ok(MapFile { path, bytes: text.as_bytes() }),
            None => Err(SetupError::NoMap { name: name.to_owned(), known: known() }),
        }
    }

    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn Staged>, SetupError> {
        scenario.check().map_err(SynthError::from)?;
        let named = match (map, &scenario.map) {
            (None, Some(name)) => Some(self.map(name)?),
            _ => None,
        };
        let rules = Arc::new((self.rules)(map.or(named.as_ref())).map_err(SetupError::Rules)?);
        let header = scenario.header::<G>(&rules)?;
        Ok(Box::new(Ready::<G> { scenario: scenario.clone(), rules, header }))
    }

    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &Joining<'_>,
        keeper: &mut dyn Keeper,
    ) -> Result<Joined, JoinError> {
        let rules = Arc::new((self.rules)(map).map_err(SetupError::Rules)?);
        Ok(live::join::<G>(joining.server, &rules, joining.link, joining.stop, keeper)?)
    }
}

impl<G: Imported> Playable for Of<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn replay(
        &self,
        session: &Session,
        options: &Options,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Replayed, ReplayError> {
        replay::replay::<G>(session, options, progress)
    }

    fn rerecord(&self, session: &Session, settings: Option<&Settings>) -> Result<Session, ReplayError> {
        replay::rerecord::<G>(session, settings)
    }

    fn step(&self, session: &Session, who: PlayerId, which: CommandSeq, entities: &Cells) -> Result<Vec<u32>, String> {
        let rules: G::Rules = rmp_serde::from_slice(&session.header.rules).map_err(|error| error.to_string())?;
        let read = |(entity, cells): (&EntityId, &Vec<u32>)| G::Body::read(cells).map(|body| (*entity, body));
        let entities: Vec<_> =
            entities.iter().map(read).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let own = entities.iter().find(|(entity, _)| *entity == who.entity());
        let (_, body) = own.ok_or_else(|| format!("there is no body of player {who}"))?;
        let frames = session.players.get(usize::from(who.0)).map_or(&[][..], |player| &player.frames);
        let frame = frames.iter().find(|frame| frame.command.seq == which);
        let frame = frame.ok_or_else(|| format!("the log has no usercmd {which} of player {who}"))?;
        let scene = Scene { seed: session.header.seed, player: who, entities: &entities, weapons: true };
        let after = G::step_body(&rules, &scene, body, &frame.command, &mut Unheard);
        let mut cells = vec![0; G::Body::CELLS];
        after.write(&mut cells);
        Ok(cells)
    }

    fn shrink(
        &self,
        session: &Session,
        still: &(dyn Fn(&Session) -> Result<bool, CannotTell> + Sync),
        progress: &mut dyn FnMut(&shrink::Step),
    ) -> Result<Shrunk, ShrinkError<CannotTell>> {
        shrink::shrink::<G, CannotTell>(session, still, progress)
    }

    fn sweep(&self, sessions: &[Session], plan: &Plan, done: &(dyn Fn() + Sync)) -> Result<Sweep, SweepError> {
        sweep::sweep::<G>(sessions, plan, done)
    }

    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, ScoreError> {
        let rules: G::Rules = rmp_serde::from_slice(&session.header.rules)?;
        Ok(score::score::<G>(session, &rules, settings)?)
    }

    fn records(&self) -> bool {
        self.bots.is_some()
    }

    fn map(&self, name: &str) -> Result<MapFile<'static>, SetupError> {
        self.bots.as_ref().ok_or(SetupError::NoBots)?.map(name)
    }

    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn Staged>, SetupError> {
        self.bots.as_ref().ok_or(SetupError::NoBots)?.set_up(scenario, map)
    }

    fn join(
        &self,
        map: Option<&MapFile<'_>>,
        joining: &Joining<'_>,
        keeper: &mut dyn Keeper,
    ) -> Result<Joined, JoinError> {
        self.bots.as_ref().ok_or(SetupError::NoBots)?.join(map, joining, keeper)
    }
}

struct Ready<G: Game> {
    scenario: Scenario,
    rules: Arc<G::Rules>,
    header: Header,
}

impl<G: Bots + Netcode> Staged for Ready<G>
where
    G::Body: Networked,
{
    fn header(&self) -> &Header {
        &self.header
    }

    fn run(&self, sink: &mut dyn RecordSink) -> Result<(), SynthError> {
        let mut sink = Passed(sink);
        record_synthetic::<G>(&self.scenario, &self.rules, &mut Recorder::new(&mut sink))
    }

    fn live_header(&self) -> Result<Header, LiveError> {
        live::live_header::<G>(&self.scenario, &self.rules)
    }

    fn run_live(&self, port: u16, stop: &AtomicBool, keeper: &mut dyn Keeper) -> Result<LiveReport, LiveError> {
        live::record_live::<G>(&self.scenario, &self.rules, port, stop, keeper)
    }

    fn serve(&self, at: SocketAddr, stop: &AtomicBool, keeper: &mut dyn Keeper) -> Result<LiveReport, LiveError> {
        live::serve::<G>(&self.scenario, &self.rules, at, stop, keeper)
    }
}

/// Takes what a usercmd gives off when only the body after it matters.
struct Unheard;

impl<F> Sink<F> for Unheard {
    fn effect(&mut self, _: Effect) {}
    fn fire(&mut self, _: F) {}
    fn touch(&mut self, _: Touch) {}
}

/// A sink that is known by its face alone.
struct Passed<'a>(&'a mut dyn RecordSink);

impl RecordSink for Passed<'_> {
    fn record(&mut self, record: Record) {
        self.0.record(record);
    }
}
