//! Recording with a game that has bots: sessions in virtual time, over sockets, as a server, or as a client.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{GameError, MapFile, RulesFactory};
use hitreg_live::{JoinOptions, JoinResult, LiveError, LiveReport, LiveSink, ServeOptions};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Session, SessionHeader};
use hitreg_log::units::Seed;
use hitreg_netcode::game::{Bots, Game};
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::replay::{self, ReplayError, ReplayOutput};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{RecordSink, SessionRecorder, SynthError, record_synthetic_while};
use hitreg_netcode::settings::Settings;

/// A synthetic session that is ready to run.
pub trait ReadySession {
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

/// The operations of a game that has bots.
pub trait SelfPlaying: Send + Sync {
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
pub(super) struct BotGame<G: Game> {
    pub(super) rules: RulesFactory<G>,
}

impl<G: Bots + Netcode> SelfPlaying for BotGame<G> {
    fn map(&self, name: &str) -> Result<MapFile<'static>, GameError> {
        let found = G::MAPS.iter().find(|(known, _)| *known == name);
        let known = || G::MAPS.iter().map(|(known, _)| *known).collect::<Vec<_>>();
        match found {
            Some((path, text)) => Ok(MapFile { path, bytes: text.as_bytes() }),
            None => Err(GameError::of(format!("{name}: there is no such file, and {}", built_in(&known())))),
        }
    }

    fn set_up(&self, scenario: &Scenario, map: Option<&MapFile<'_>>) -> Result<Box<dyn ReadySession>, GameError> {
        scenario.check().map_err(GameError::of)?;
        let named = match (map, &scenario.map) {
            (None, Some(name)) => Some(self.map(name)?),
            _ => None,
        };
        let rules = Arc::new((self.rules)(map.or(named.as_ref())).map_err(GameError::no_rules)?);
        let header = scenario.header::<G>(&rules).map_err(GameError::of)?;
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
        let rules = Arc::new((self.rules)(map).map_err(GameError::no_rules)?);
        hitreg_live::join::<G>(joining, &rules, sink).map_err(GameError::of)
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
