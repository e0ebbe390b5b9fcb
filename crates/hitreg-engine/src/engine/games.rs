//! The games that a build plays, behind one trait: a log says which one it is of. What is done with a game is compiled here
//! once for each, and nowhere again for each command.

mod bots;
mod error;

use std::collections::BTreeMap;
use std::marker::PhantomData;

pub use bots::JoinError;
pub use bots::{PlaysItself, ReadySession, SetupError};
pub use error::{NotRecordable, ScoreError, StepError, UnknownGame};

use super::EngineError;
use crate::shrink::{self, ShrinkError, Shrunk};
use crate::sweep::{self, Plan, Sweep, SweepError};
use bots::WithBots;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Header, Session, Stretch};
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_netcode::game::{self, Body, Bots, Effect, Scene, Simulate, Sink, Touch, Wall};
use hitreg_netcode::info::passed_over;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::replay::{self, Options, Pass, Ran, ReplayError, Replayed, Source, Survey, WhatIf};
use hitreg_netcode::score::{self, ModeScore};
use hitreg_netcode::settings::Settings;

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
type MakeRules<G> = fn(Option<&MapFile<'_>>) -> Result<<G as Simulate>::Rules, RulesError>;

/// The games of a build.
#[derive(Default)]
pub struct Games {
    games: Vec<Box<dyn Playable>>,
}

impl std::fmt::Debug for Games {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.games.iter().map(|game| game.name())).finish()
    }
}

impl Games {
    /// Adds a game that [`replaying`] or [`recording`] has made.
    #[must_use]
    pub fn with(mut self, game: Box<dyn Playable>) -> Games {
        self.games.push(game);
        self
    }

    /// Adds a game whose logs can be replayed.
    #[must_use]
    pub fn replaying<G: Netcode>(self) -> Games {
        self.with(replaying::<G>())
    }

    /// Adds a game that can also record synthetic and live sessions, under rules that `rules` makes.
    #[must_use]
    pub fn recording<G: Bots + Netcode>(
        self,
        rules: fn(Option<&MapFile<'_>>) -> Result<G::Rules, RulesError>,
    ) -> Games {
        self.with(recording::<G>(rules))
    }

    /// The game of a log.
    ///
    /// # Errors
    /// When it is none of these games.
    pub fn of(&self, session: &Session) -> Result<&dyn Playable, UnknownGame> {
        self.of_header(&session.header)
    }

    /// The game of a log with this header.
    ///
    /// # Errors
    /// When it is none of these games.
    pub fn of_header(&self, header: &Header) -> Result<&dyn Playable, UnknownGame> {
        let name = &header.game;
        let found = self.games.iter().find(|game| game.name() == name);
        found.map(|game| &**game).ok_or_else(|| UnknownGame { log: name.clone(), build: self.names() })
    }

    /// What of a log this build does not know: what a later version of the format recorded, and of its entities what the
    /// game does not know.
    pub fn passed_over(&self, header: &Header) -> Vec<String> {
        let mut parts = passed_over(header);
        parts.extend(self.of_header(header).map(|game| game.unknown_states(header)).unwrap_or_default());
        parts
    }

    /// The game of this name that can record; or the first that can, when none is named.
    ///
    /// # Errors
    /// When there is none.
    pub fn recordable(&self, name: Option<&str>) -> Result<&dyn PlaysItself, NotRecordable> {
        let mut named = self.games.iter().filter(|game| name.is_none_or(|name| game.name() == name));
        match named.find_map(|game| game.bots()) {
            Some(bots) => Ok(bots),
            None => Err(NotRecordable { name: name.unwrap_or("any").to_owned(), able: self.able() }),
        }
    }

    fn names(&self) -> String {
        self.games.iter().map(|game| game.name()).collect::<Vec<_>>().join(" and ")
    }

    fn able(&self) -> String {
        let able: Vec<_> = self.games.iter().filter(|game| game.bots().is_some()).map(|game| game.name()).collect();
        if able.is_empty() { "no game".to_owned() } else { able.join(" and ") }
    }
}

/// The bodies of entities, in cells.
pub type Bodies = BTreeMap<EntityId, Vec<u32>>;

/// What is done with a game, whichever it is. [`Games`] makes it of any [`Netcode`].
pub trait Playable: Send + Sync {
    /// The name that its logs carry.
    fn name(&self) -> &'static str;

    /// How near to the server's word a prediction is that is called exact or near.
    fn grades(&self) -> &'static str;

    /// Replays a log of this game. `progress` is called now and then with the session time reached.
    ///
    /// # Errors
    /// When the log is not one that this build can replay.
    fn replay(
        &self,
        session: &Session,
        options: &Options,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Replayed, ReplayError>;

    /// An estimate by counts of the bytes of memory that the trace of [`Playable::replay`] takes.
    ///
    /// # Errors
    /// When the session's settings are none of this build's, or its ticks are too far apart for those asked for.
    fn trace_memory(&self, session: &Session, options: &Options) -> Result<usize, ReplayError>;

    /// Replays a log of this game that is read meanwhile, as [`replay::stream`].
    ///
    /// # Errors
    /// When the log is not one that this build can replay.
    fn stream(
        &self,
        source: &Source<'_>,
        chunks: &mut dyn Iterator<Item = Stretch>,
        options: (&Options, bool),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<Ran>, ReplayError>;

    /// Replays the clients of a log of this game that is read meanwhile, as [`replay::stream_clients`].
    ///
    /// # Errors
    /// When the log is not one that this build can replay.
    fn stream_clients(
        &self,
        source: &Source<'_>,
        pass: Pass<'_>,
        options: &Options,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Ran, ReplayError>;

    /// Whether shots of a recording are judged again: [`Judge::JUDGES_AGAIN`](game::Judge::JUDGES_AGAIN).
    fn judges_again(&self) -> bool;

    /// Runs a log's input and links again, and records what comes of it as a new session.
    ///
    /// # Errors
    /// When the log is not one that this build can replay closed loop.
    fn rerecord(&self, session: &Session, settings: Option<&Settings>) -> Result<Session, ReplayError>;

    /// Runs one recorded usercmd on its player's body among `entities`, that body among them, and gives the body after it.
    ///
    /// # Errors
    /// When the log has no such usercmd, or a body is not one of this game.
    fn step(
        &self,
        session: &Session,
        who: PlayerId,
        which: CommandSeq,
        entities: &Bodies,
    ) -> Result<Vec<u32>, StepError>;

    /// The smallest session that `still` says shows it; so many candidates are tested at once.
    ///
    /// # Errors
    /// When the session does not show it, cannot be replayed, or `still` cannot tell.
    fn shrink(
        &self,
        session: &Session,
        still: (&(dyn Fn(&Session) -> Result<bool, EngineError> + Sync), usize),
        progress: &mut dyn FnMut(&shrink::Step),
    ) -> Result<Shrunk, ShrinkError<EngineError>>;

    /// Runs sessions under every combination of settings, as the plan asks.
    ///
    /// # Errors
    /// When a session cannot be run under one of them.
    fn sweep(&self, sessions: &[Session], plan: &Plan, done: &(dyn Fn() + Sync)) -> Result<Sweep, SweepError>;

    /// The classes and fields of a log that this build of the game does not know, in words.
    fn unknown_states(&self, header: &Header) -> Vec<String>;

    /// Scores the ways of drawing the others on what a session's players received.
    ///
    /// # Errors
    /// When the log's rules or bodies are not this build's.
    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, ScoreError>;

    /// The same of a log that is read meanwhile, as [`score::score_as_read`].
    ///
    /// # Errors
    /// When a recorded state is not one of this game.
    fn score_as_read(
        &self,
        log: (&Header, &Survey),
        pass: Pass<'_, score::ScoreError>,
        settings: &Settings,
    ) -> Result<Option<Vec<ModeScore>>, ScoreError>;

    /// The walls of a log's map; none where the game does not say, or the rules in the log are not this build's.
    fn outline(&self, session: &Session) -> Vec<Wall>;

    /// What it can do by itself; `None` where it has no bots.
    fn bots(&self) -> Option<&dyn PlaysItself>;
}

/// A game whose logs can be replayed. It is compiled in the crate that calls this.
pub fn replaying<G: Netcode>() -> Box<dyn Playable> {
    Box::new(Of::<G> { game: PhantomData, bots: None })
}

/// A game that can also record synthetic and live sessions, under rules that `rules` makes.
pub fn recording<G: Bots + Netcode>(
    rules: fn(Option<&MapFile<'_>>) -> Result<G::Rules, RulesError>,
) -> Box<dyn Playable> {
    Box::new(Of::<G> { game: PhantomData, bots: Some(Box::new(WithBots::<G> { rules })) })
}

/// One game, and its bots if it has any.
struct Of<G> {
    game: PhantomData<fn() -> G>,
    bots: Option<Box<dyn PlaysItself>>,
}

impl<G: Netcode> Playable for Of<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn grades(&self) -> &'static str {
        G::GRADES
    }

    fn replay(
        &self,
        session: &Session,
        options: &Options,
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Replayed, ReplayError> {
        replay::replay::<G>(session, options, progress)
    }

    fn trace_memory(&self, session: &Session, options: &Options) -> Result<usize, ReplayError> {
        replay::trace_memory::<G>(session, options)
    }

    fn stream(
        &self,
        source: &Source<'_>,
        chunks: &mut dyn Iterator<Item = Stretch>,
        options: (&Options, bool),
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Option<Ran>, ReplayError> {
        replay::stream::<G>(source, chunks, options, to, progress)
    }

    fn stream_clients(
        &self,
        source: &Source<'_>,
        pass: Pass<'_>,
        options: &Options,
        to: &mut dyn FnMut(&TraceHeader, Table),
        progress: &mut dyn FnMut(Micros),
    ) -> Result<Ran, ReplayError> {
        replay::stream_clients::<G>(source, pass, options, to, progress)
    }

    fn judges_again(&self) -> bool {
        G::JUDGES_AGAIN
    }

    fn rerecord(&self, session: &Session, settings: Option<&Settings>) -> Result<Session, ReplayError> {
        replay::rerecord::<G>(session, settings)
    }

    fn step(
        &self,
        session: &Session,
        who: PlayerId,
        which: CommandSeq,
        entities: &Bodies,
    ) -> Result<Vec<u32>, StepError> {
        let rules = session.header.rules.read::<G::Rules>()?;
        let read = |(entity, cells): (&EntityId, &Vec<u32>)| G::Body::read(cells).map(|body| (*entity, body));
        let entities: Vec<_> = entities.iter().map(read).collect::<Result<_, _>>()?;
        let own = entities.iter().find(|(entity, _)| *entity == who.entity());
        let (_, body) = own.ok_or(StepError::NoBody(who))?;
        let frames = session.players.get(usize::from(who.0)).map_or(&[][..], |player| &player.frames);
        let frame = frames.iter().find(|frame| frame.command.seq == which);
        let frame = frame.ok_or(StepError::NoUsercmd(which, who))?;
        let scene = Scene { seed: session.header.seed, player: who, entities: &entities, weapons: true };
        let after = G::step_body(&rules, &scene, body, &frame.command, &mut Unheard);
        let mut cells = vec![0; G::Body::CELLS];
        after.write(&mut cells);
        Ok(cells)
    }

    fn shrink(
        &self,
        session: &Session,
        (still, at_once): (&(dyn Fn(&Session) -> Result<bool, EngineError> + Sync), usize),
        progress: &mut dyn FnMut(&shrink::Step),
    ) -> Result<Shrunk, ShrinkError<EngineError>> {
        shrink::shrink_by(
            session,
            &|session| Ok(Some(replay::rerecord::<G>(session, None)?)),
            (still, at_once),
            progress,
        )
    }

    fn sweep(&self, sessions: &[Session], plan: &Plan, done: &(dyn Fn() + Sync)) -> Result<Sweep, SweepError> {
        let run = |session: &Session, settings: Settings, repeat: u16| {
            if plan.what_if() == WhatIf::Rerecord {
                let bots = self.bots.as_ref().ok_or(ReplayError::NoBots(G::NAME))?;
                let seed = Seed(session.header.seed.0.wrapping_add(u64::from(repeat)));
                return bots.play_anew(session, &settings, seed);
            }
            let rejudge = plan.what_if() == WhatIf::Rejudge;
            let options = Options { sizes: true, ..Options::default() }.under(Some(settings), rejudge);
            replay::replay::<G>(session, &options, &mut |_| {})
        };
        let held = sessions.iter().map(Session::bytes).fold(0, usize::saturating_add);
        let left = MemoryLimit::of_bytes(MemoryLimit::current().bytes().saturating_sub(held));
        let mut at_once = rayon::current_num_threads();
        for (log, session) in sessions.iter().enumerate() {
            for point in plan.points() {
                let settings = plan.settings(session, &point).map_err(|source| SweepError::Settings { log, source })?;
                let options = Options::default().under(Some(settings), plan.what_if() == WhatIf::Rejudge);
                let of_replay = replay::trace_memory::<G>(session, &options);
                let of_replay = of_replay.map_err(|source| SweepError::Run { log, source })?;
                let checked = MemoryLimit::current().check(held.saturating_add(of_replay));
                checked.map_err(|needs| SweepError::Run { log, source: needs.into() })?;
                at_once = left.tasks_at_once(of_replay, at_once);
            }
        }
        sweep::sweep(sessions, plan, (&run, at_once), done)
    }

    fn unknown_states(&self, header: &Header) -> Vec<String> {
        game::unknown_states::<G>(&header.classes)
    }

    fn score(&self, session: &Session, settings: &Settings) -> Result<Vec<ModeScore>, ScoreError> {
        let rules = session.header.rules.read::<G::Rules>()?;
        Ok(score::score::<G>(session, &rules, settings)?)
    }

    fn score_as_read(
        &self,
        (header, survey): (&Header, &Survey),
        pass: Pass<'_, score::ScoreError>,
        settings: &Settings,
    ) -> Result<Option<Vec<ModeScore>>, ScoreError> {
        let rules = header.rules.read::<G::Rules>()?;
        Ok(score::score_as_read::<G>((header, survey), pass, &rules, settings)?)
    }

    fn outline(&self, session: &Session) -> Vec<Wall> {
        session.header.rules.read().map_or(Vec::new(), |rules| G::outline(&rules))
    }

    fn bots(&self) -> Option<&dyn PlaysItself> {
        self.bots.as_deref()
    }
}

/// Takes the effects of a usercmd when only the body after it matters.
struct Unheard;

impl<F> Sink<F> for Unheard {
    fn effect(&mut self, _: Effect) {}
    fn fire(&mut self, _: F) {}
    fn touch(&mut self, _: Touch) {}
}
