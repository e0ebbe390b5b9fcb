//! Log in, trace out: the recorded input through the pipelines of this build.
//!
//! Closed loop runs the server and all clients, fed by the recorded usercmds over the recorded links. Open loop runs one
//! client pipeline on the recorded snapshots at their recorded times, and needs no server.

mod budget;
mod closed;
mod columns;
mod corrections;
mod cover;
mod error;
mod feed;
mod frames;
mod keyframes;
mod network;
mod open;
mod part;
mod replayed;
mod shots;
mod streamed;
mod survey;
mod tables;
mod variables;
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use error::ReplayError;
pub use keyframes::{BadKeyframe, Due, Start};
pub use part::Part;
pub use replayed::{HashDifference, Jump, Jumped, Replayed, Traffic};
pub use streamed::{Pass, Ran, Source, stream, stream_clients};
pub(crate) use survey::Near;
pub use survey::{Survey, Ticks};
pub use tables::Tables;

pub use hitreg_log::record::{REJUDGED, WhatIf};

use crate::game::{Body, Bots, Game, StateRows};
use crate::pipeline::{ClientPipeline, Netcode, Setup};
use crate::session::Recorder;
use crate::settings::{SettingError, Settings};
use hitreg_log::record::{Header, Holds, Origin, PlayerRecords, Session, StateKey, usercmd_fields};
use hitreg_log::trace::schema::{TableSchema, TableSet, ticks};
use hitreg_log::trace::{SessionSource, Table, Trace};
use hitreg_log::units::{Micros, PlayerId, Seed, Tick};

/// How to replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which pipelines run.
    pub mode: Mode,
    /// Settings in place of the log's own.
    pub settings: Option<Settings>,
    /// Checks every so many ticks that the world can be restored and run again to the same hash.
    pub rollback_every: Option<u32>,
    /// Re-judging: the session runs under its own settings, and what the trace says of each shot is what these settings
    /// would have made of it ([`REJUDGED`] may differ from the session's). What follows from a shot is as it was.
    pub judged_under: Option<Settings>,
    /// Whether sizes are asked for, [`Replayed::traffic`] that is. Where they are not, and nothing else depends on them,
    /// no datagrams are made: the trace is the same, and there several times as soon.
    pub sizes: bool,
    /// Whether the trace is to say what went over the network: the tables `packets` and `snapshots`, in closed loop. Bytes stand in
    /// them where [`Options::sizes`] asks, too.
    pub network: bool,
    /// Which tables the trace is to have. What is in none of them is not made, and what no table asks for is not drawn: a closed loop
    /// takes less time the fewer they are.
    pub tables: TableSet,
    /// Of which part of the session rows are put out. What comes before it runs as well; what comes after does not where the log is
    /// replayed as it is read ([`stream`]), but for what is yet to be known of those rows.
    pub part: Option<Part>,
}

impl Options {
    /// The same under other settings, `None` for the log's own: those that the session runs under, or those that its shots are
    /// judged under besides.
    #[must_use]
    pub fn under(self, settings: Option<Settings>, rejudge: bool) -> Options {
        let (settings, judged_under) = if rejudge { (None, settings) } else { (settings, None) };
        Options { settings, judged_under, ..self }
    }
}

/// Which pipelines run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Closed where the log has a server to replay, else open.
    #[default]
    Auto,
    /// Server and clients.
    Closed,
    /// Clients alone, on the recorded snapshots.
    Open,
}

/// An estimate of the bytes of memory that a session and the trace of its replay take together.
pub fn needed_memory<G: Game>(session: &Session) -> usize {
    budget::needed_bytes(session, session.ticks.len(), <G::Body as Body>::CELLS)
}

/// Replays a session through this build's pipelines. `progress` is called now and then with the session time reached.
///
/// # Errors
/// When the log is not one that this build can replay.
pub fn replay<G: Netcode>(
    session: &Session,
    options: &Options,
    progress: &mut dyn FnMut(Micros),
) -> Result<Replayed, ReplayError> {
    let setup = setup::<G>(session, options.settings.as_ref())?;
    let has_server = check_session(session);
    let closed = match (options.mode, has_server) {
        (_, Err(error @ ReplayError::ServerSide)) | (Mode::Closed, Err(error)) => return Err(error),
        (Mode::Open, _) | (Mode::Auto, Err(_)) => false,
        (Mode::Closed | Mode::Auto, Ok(())) => true,
    };
    may_be_judged(&setup.settings, options)?;
    if options.judged_under.is_some() && !closed && !G::JUDGES_AGAIN {
        return Err(ReplayError::NoJudge);
    }
    check_input(session)?;
    if let Some(part) = options.part {
        let (first, last) = session.played().unwrap_or_default();
        part.check(first, last)?;
    }
    let mut replayed = match (closed, &options.judged_under) {
        (false, judged_under) => replay_open::<G, G::Client>(session, &setup, judged_under.as_ref(), progress)?,
        // What a trace says of a shot, it says under the settings that judged it.
        (true, judged_under) => {
            let replayed = closed::replay::<G>(session, &setup, options, progress)?;
            match judged_under {
                Some(other) => labelled(replayed, "closed, rejudged", &session.header, other),
                None => labelled(replayed, "closed", &session.header, &setup.settings),
            }
        }
    };
    let wanted = |table: &Table| TableSchema::of(&table.name).is_none_or(|schema| options.tables.has(schema));
    replayed.trace.tables.retain(wanted);
    if let Some(part) = options.part {
        part.cut(&mut replayed.trace);
        replayed.trace.header.part = part.told(session.played());
        replayed.jumps.retain(|jump| part.has(jump.at));
    }
    Ok(replayed)
}

/// Replays the clients of a session alone, each by a client pipeline of this type, on its recorded input and the snapshots
/// that it received. `settings` are in place of the log's own.
///
/// # Errors
/// When the log is not one that this build can replay.
pub fn replay_clients<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    settings: Option<&Settings>,
    progress: &mut dyn FnMut(Micros),
) -> Result<Replayed, ReplayError> {
    let setup = setup::<G>(session, settings)?;
    check_input(session)?;
    replay_open::<G, C>(session, &setup, None, progress)
}

fn replay_open<G: Game, C: ClientPipeline<G>>(
    session: &Session,
    setup: &Setup<G>,
    judged_under: Option<&Settings>,
    progress: &mut dyn FnMut(Micros),
) -> Result<Replayed, ReplayError> {
    let judged = judged_under.unwrap_or(&setup.settings);
    let unlag = &judged.lag_compensation;
    let furthest = unlag.enabled.then(|| Micros::from_ms(unlag.max_unlag_ms));
    let replayed = open::replay::<G, C>(session, setup, furthest, progress)?;
    let mode = if judged_under.is_some() { "open, rejudged" } else { "open" };
    Ok(labelled(replayed, mode, &session.header, judged))
}

fn labelled(mut replayed: Replayed, mode: &str, header: &Header, settings: &Settings) -> Replayed {
    replayed.trace.header.game.clone_from(&header.game);
    replayed.trace.header.session = Some(SessionSource::of(header));
    replayed.trace.header.mode = mode.to_owned();
    replayed.trace.header.settings = settings.to_pairs();
    replayed
}

/// Whether shots may be judged under the settings that they are to be judged under.
fn may_be_judged(settings: &Settings, options: &Options) -> Result<(), ReplayError> {
    let may = |key: &String| REJUDGED.iter().any(|start| key.starts_with(start));
    let keys = options.judged_under.as_ref().map(|other| settings.keys_unlike(other)).unwrap_or_default();
    keys.into_iter().find(|key| !may(key)).map_or(Ok(()), |key| Err(ReplayError::NotForJudging { key }))
}

/// The rules that a session carries, under these settings or its own.
fn setup<G: Game>(session: &Session, settings: Option<&Settings>) -> Result<Setup<G>, ReplayError> {
    setup_of::<G>(&session.header, settings)
}

fn setup_of<G: Game>(header: &Header, settings: Option<&Settings>) -> Result<Setup<G>, ReplayError> {
    check_game::<G>(header)?;
    let rules = header.rules.read::<G::Rules>()?;
    let settings = match settings {
        Some(settings) => {
            let own = own_settings(header)?;
            settings.check_players(&own, header.players.len()).map_err(ReplayError::NotOfSession)?;
            settings.clone()
        }
        None => own_settings(header)?,
    };
    Ok(Setup { rules, settings: Arc::new(settings), seed: header.seed })
}

/// The settings that a log carries. One that was imported before `prediction.among` was a setting has its predictions run
/// as the server ran them, as they were then.
///
/// # Errors
/// When a setting is none of this build's.
pub fn own_settings(header: &Header) -> Result<Settings, SettingError> {
    let mut settings = Settings::from_pairs(&header.settings)?;
    let says = header.settings.iter().any(|(key, _)| key == AMONG);
    if matches!(header.origin, Origin::Imported { .. }) && !says {
        settings.set(AMONG, "acking-packet")?;
    }
    Ok(settings)
}

const AMONG: &str = "prediction.among";

/// Who only watched made no usercmds, and was shown something.
fn check_input(session: &Session) -> Result<(), ReplayError> {
    let imported = matches!(session.header.origin, Origin::Imported { .. });
    let was_shown = |player: &PlayerRecords| imported && !player.received.is_empty();
    let has = |player: &PlayerRecords| !(player.frames.is_empty() && player.heard.is_empty()) || was_shown(player);
    if session.players.iter().any(has) { Ok(()) } else { Err(ReplayError::NoInput) }
}

/// A trace that another build made of a session, held against the recorded tick hashes.
pub fn held_against(session: &Session, trace: Trace) -> Replayed {
    let ticks = ticks::Columns::of(&trace);
    let played = ticks.tick.iter().copied().zip(ticks.hash.iter().copied()).collect::<BTreeMap<u32, u64>>();
    let (mut hashes_compared, mut first_difference) = (0, None);
    let with_hash = session.ticks.iter().filter_map(|record| Some((record.tick, record.hash?)));
    for (tick, recorded) in with_hash {
        let Some(replayed) = played.get(&tick.0).copied() else { continue };
        hashes_compared += 1;
        if replayed != recorded && first_difference.is_none() {
            first_difference = Some(HashDifference { tick, recorded, replayed: Some(replayed) });
        }
    }
    Replayed {
        trace,
        first_difference,
        hashes_compared,
        traffic: None,
        rollbacks: 0,
        rollback_error: None,
        jumps: Vec::new(),
    }
}

/// Runs a session's input and links again and records what comes of it: a new session that is valid in itself, whatever was
/// changed in the old one or its settings.
///
/// # Errors
/// When the log is not one that this build can replay closed loop.
pub fn rerecord<G: Netcode>(session: &Session, settings: Option<&Settings>) -> Result<Session, ReplayError> {
    let setup = setup::<G>(session, settings)?;
    check_session(session)?;
    let unknown = Settings::unknown(&session.header.settings).cloned();
    let header = Header {
        settings: setup.settings.to_pairs().into_iter().chain(unknown).collect(),
        // What a later version recorded besides is none of what this build makes of the input.
        unknown: Vec::new(),
        ..own_classes::<G>(&session.header)
    };
    let mut again = Session::new(header);
    for (entity, body) in closed::bodies_at_the_beginning::<G>(&session.header, &session.states)? {
        let mut cells = Vec::new();
        let class = StateRows::own::<G>().write::<G>(&body, &mut cells);
        again.states.push(StateKey { tick: Tick(0), viewer: None, entity, class }, &cells);
    }
    let mut machine = closed::machine::<G>(session, &setup, &Options::default())?;
    let heard = (0..).map(PlayerId).zip(&session.players).filter(|(_, records)| records.is_heard_only());
    let mut recorder = Recorder::new(&mut again).hearing(heard.map(|(player, _)| player));
    closed::run(&mut machine, session, &setup, &mut recorder)?;
    again.put_in_order();
    Ok(again)
}

/// Bots play a session anew, [`WhatIf::Rerecord`]: on its map, over its links and for as long, under these settings, all chances
/// from another seed.
///
/// # Errors
/// When the log is not one that this build can replay closed loop.
pub fn play_anew<G: Bots + Netcode>(
    session: &Session,
    settings: &Settings,
    seed: Seed,
) -> Result<Replayed, ReplayError> {
    let setup = Setup { seed, ..setup::<G>(session, Some(settings))? };
    check_session(session)?;
    let replayed = closed::play_anew::<G>(session, &setup)?;
    let header = Header { seed, ..session.header.clone() };
    Ok(labelled(replayed, "closed", &header, &setup.settings))
}

/// Refuses sessions that do not hold a server and its clients.
fn check_session(session: &Session) -> Result<(), ReplayError> {
    check_server(&session.header, session.players.iter().any(PlayerRecords::is_heard_only))
}

/// Refuses logs that do not hold a server and its clients, or a server that hears some of them.
fn check_server(header: &Header, hears: bool) -> Result<(), ReplayError> {
    match (header.holds(), header.side) {
        (Holds::Whole, _) => Ok(()),
        // A server that wrote down what it heard needs no client's log.
        (Holds::Server, _) if hears => Ok(()),
        (Holds::Server, _) => Err(ReplayError::ServerSide),
        (Holds::Clients, Some(_)) => Err(ReplayError::ClientSide),
        (Holds::Clients, None) => Err(ReplayError::NoServer),
    }
}

/// A header with the classes and usercmd fields that this build records.
fn own_classes<G: Game>(header: &Header) -> Header {
    Header { classes: G::classes(), usercmd: usercmd_fields(), ..header.clone() }
}

/// Refuses logs of another game, or of another version of it.
fn check_game<G: Game>(header: &Header) -> Result<(), ReplayError> {
    if header.game != G::NAME {
        return Err(ReplayError::OtherGame { log: header.game.clone(), build: G::NAME });
    }
    StateRows::new::<G>(&header.classes)?;
    Ok(())
}
