//! Finds the smallest session that still shows a property. It applies delta debugging to every part of a session
//! (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
//!
//! The search removes chunks. If no chunk can be removed, it halves the chunk size, until no single thing can be
//! removed. Of ddmin's two reductions it uses the reduction to complements, which alone ensures that the result is
//! minimal. Every candidate is recorded again before it is tested, so it is a valid log whatever was removed.

mod edit;
mod search;

pub use edit::{InputKey, Removable, ShrinkEdit};

use std::path::Path;

use serde::Serialize;

use crate::build::condition::{BuildAnswer, Condition};
use crate::build::{Build, BuildRequest};
use crate::{Engine, EngineError, Playable, ReplaySpecs, Traces, check};
use hitreg_analysis::diff::{DiffOptions, TraceDiff, TraceVerdict, diff};
use hitreg_log::log::WriterOptions as LogOptions;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{LogContents, Session};
use hitreg_log::store;
use hitreg_log::trace::{Digest, RECORD, TraceSource};
use hitreg_log::units::{Tick, named};
use hitreg_netcode::replay::{ReplayError, ReplayOptions};
use search::shrink_by;

named! {
    /// What a session can be reduced by, in order of importance. A session with fewer players is the smaller one,
    /// whatever its other counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CostKind {
        /// Players. The numbers of later players move down by one, unless the session is only cut
        /// ([`ShrinkEdit::Cut`]).
        Players = "players",
        /// Ticks, each with the time span that it ends. Everything after a removed tick moves to an earlier time,
        /// unless the session is only cut.
        Ticks = "ticks",
        /// Usercmds with any input. A removed usercmd stays as an idle one, with its angles and its duration.
        Usercmds = "usercmds with input",
        /// Lost packets. A removed loss makes the packet arrive, as late as the packet before it. A packet that no
        /// later packet overtook does not count, because it may be in flight at the session's end.
        Losses = "lost packets",
        /// Packets that arrived twice. A removed duplicate arrives once.
        Duplicates = "duplicated packets",
        /// Packets whose delay differs from the median of their direction. A removed delay becomes the median. Packets
        /// that would then arrive after the session's end do not count.
        Delays = "uneven delays",
        /// Pressed buttons, and impulses.
        Buttons = "buttons",
        /// Usercmds with view angles other than zero.
        Angles = "angles",
        /// Forward, side and up moves that are not zero.
        Moves = "moves",
        /// Input fields that the game declares, with values other than zero.
        OwnInput = "own input fields",
    }
}

/// The number of things of each kind in a session. Compared kind by kind, in the order of [`CostKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostCounts([usize; CostKind::ALL.len()]);

impl CostCounts {
    /// Counts the things that can be removed from a session.
    pub fn of(session: &Session, edit: ShrinkEdit) -> CostCounts {
        CostCounts(CostKind::ALL.map(|kind| edit.things(session, kind).len()))
    }

    /// The count of one kind.
    pub fn of_kind(&self, kind: CostKind) -> usize {
        self.0[kind as usize]
    }
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct ShrinkResult {
    /// The smallest session. It shows the property, and no single thing can be removed.
    pub session: Session,
    /// The counts of each kind before and after, in the order of [`CostKind::ALL`].
    pub removed: Vec<RemovedCount>,
    /// How many candidates were tested. Candidates that other threads tested in vain do not count, so the number does
    /// not depend on the number of threads.
    pub probes: u64,
}

/// How much of one kind was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedCount {
    /// The kind.
    pub kind: CostKind,
    /// The count in the original session.
    pub before: usize,
    /// The count in the smallest session.
    pub after: usize,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrinkStep {
    /// The kind that the search is removing.
    pub kind: CostKind,
    /// The counts of the smallest session so far.
    pub left: CostCounts,
    /// How many candidates have been tested so far.
    pub probes: u64,
}

/// The error for a session that cannot be shrunk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShrinkError<E: std::error::Error + 'static> {
    /// The build cannot replay the session.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The property could not be evaluated.
    #[error("a session cannot be judged: {0}")]
    Property(#[source] E),
    /// The session does not show the property.
    #[error(
        "the log does not show the problem, so there is nothing to shrink: check the command of --while, or the options of side B"
    )]
    NotShown,
    /// The recording shows the property, but a replay of its input by this build does not.
    #[error(
        "the log shows the problem, but not after recording its input again with this build: give --build with the build that recorded the log"
    )]
    NotReproduced,
}

/// Shrinks a session as long as `still` finds the property in it.
///
/// `still` receives sessions that the game recorded. It must give the same answer for the same session, and may be
/// called from several threads at once: `parallel` candidates are tested at a time. `progress` is called after each round
/// of candidates.
///
/// # Errors
/// When the session does not show the property, the game cannot replay it or a candidate closed loop within this memory
/// limit, or `still` fails.
pub fn shrink<E: std::error::Error + Send + 'static>(
    game: &dyn Playable,
    memory: MemoryLimit,
    session: &Session,
    still: &PropertyCheck<'_, E>,
    parallel: usize,
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<E>> {
    let record = |session: &Session| Ok(Some(game.rerecord(memory, session, None)?));
    shrink_by(session, ShrinkEdit::Rerecorded, &record, still, parallel, progress)
}

/// Records a candidate's input and links again; `None` if the candidate cannot be replayed.
type RecordCandidate<'a, E> = dyn Fn(&Session) -> Result<Option<Session>, ShrinkError<E>> + Sync + 'a;

/// Whether a session still shows the property.
pub type PropertyCheck<'a, E> = dyn Fn(&Session) -> Result<bool, E> + Sync + 'a;

/// The property that a shrunk session must still have.
#[derive(Debug)]
pub enum ShrinkProperty<'a> {
    /// A command decides, within the limits of the runner.
    Condition(Condition),
    /// Both sides play the session differently, and the same table and field is the first to differ.
    Differs {
        /// How the sides replay it.
        replays: &'a ReplaySpecs,
        /// What counts as a difference.
        options: DiffOptions,
        /// The table and field.
        first_field: String,
    },
}

impl<'a> ShrinkProperty<'a> {
    /// The property that the first difference of both sides stays in the same table and field.
    ///
    /// # Errors
    /// Fails if the sides do not differ, and with [`EngineError::Missing`] if a side has no trace or two different ones.
    pub fn first_difference(
        engine: &Engine<'_>,
        log: &Path,
        replays: &'a ReplaySpecs,
        options: DiffOptions,
    ) -> Result<ShrinkProperty<'a>, EngineError> {
        let sides = replays.of_log(log);
        let traces = sides.make_traces(engine);
        check(&engine.runner.stop)?;
        let Traces { sides: [a, b], overlap_only, .. } = traces?;
        if overlap_only {
            let what = "shrink compares two replays, because it removes records: give --a BUILD, too";
            return Err(EngineError::Request(what.to_owned()));
        }
        let traces = [a.source(), b.source()];
        let first_field = first_in(&diff(traces[0], traces[1], &options)?);
        let first_field = first_field.ok_or_else(|| {
            let what = "both sides play this log alike, so there is no difference to keep: check the options of side B with \
                        `diff`";
            EngineError::unsuitable(log, what)
        })?;
        let unsteady = sides.repeat(engine, traces, &options);
        check(&engine.runner.stop)?;
        unsteady?;
        Ok(ShrinkProperty::Differs { replays, options, first_field })
    }

    /// The table and field that must differ first; `None` if a command decides.
    pub fn first_field(&self) -> Option<&str> {
        match self {
            ShrinkProperty::Condition(..) => None,
            ShrinkProperty::Differs { first_field, .. } => Some(first_field),
        }
    }

    fn shows(&self, engine: &Engine<'_>, session: &Session) -> Result<bool, EngineError> {
        check(&engine.runner.stop)?;
        let folder = store::temporary_folder()?;
        let target = folder.file("candidate.hitlog");
        store::save_log(&target, session, LogOptions::whole())?;
        let path = target.path();
        match self {
            ShrinkProperty::Condition(condition) => {
                let answer = condition.ask(&engine.runner, path, None);
                check(&engine.runner.stop)?;
                Ok(answer? == BuildAnswer::Bad)
            }
            ShrinkProperty::Differs { replays, options, first_field } => {
                let [a, b] = match replays.of_log(path).make_traces(engine) {
                    Err(EngineError::Missing(_)) => return Ok(false),
                    traces => traces?.sides,
                };
                let found = diff(a.source(), b.source(), options)?;
                Ok(first_in(&found).is_some_and(|shown| shown == *first_field))
            }
        }
    }
}

/// What records a reduced session again.
#[derive(Clone, Copy, Debug)]
pub enum Rerecorder<'a> {
    /// A game of this build.
    Game(&'a dyn Playable),
    /// Another build, if it declares [`RECORD`]. Otherwise the session is only cut.
    Build(&'a Build),
    /// Nothing: the session is only cut ([`ShrinkEdit::Cut`]).
    Nothing,
}

/// Records a candidate of the log at `path` with another build; `None` if the build cannot record it.
fn record_candidate(
    engine: &Engine<'_>,
    build: &Build,
    path: &Path,
    session: &Session,
) -> Result<Option<Session>, EngineError> {
    let folder = store::temporary_folder()?;
    let (candidate, again) = (folder.file("candidate.hitlog"), folder.file("again.hitlog"));
    store::save_log(&candidate, session, LogOptions::whole())?;
    let log_digest = Digest::of_bytes(&store::read_bytes(candidate.path())?);
    let request = BuildRequest::of(candidate.path(), log_digest, session);
    let recorded = engine.runner.rerecord(build, &request, again.path());
    match engine.check_outcome(path, recorded)? {
        Ok(()) => Ok(Some(engine.read_log(again.path())?.session)),
        Err(_) => Ok(None),
    }
}

/// Whether a build declares in its trace of the log that it can record a replay.
fn can_record(engine: &Engine<'_>, build: &Build, path: &Path) -> Result<bool, EngineError> {
    store::check_regular(path)?;
    let log = engine.read_log(path)?;
    let request = BuildRequest::of(path, log.digest, &log.session);
    let traced = engine.runner.trace_file(build, &request);
    Ok(engine.check_outcome(path, traced)?.is_ok_and(|(trace, _)| trace.header().can(RECORD)))
}

/// Copies a candidate without the state hashes, which belong to the original session.
fn without_hashes(session: &Session) -> Session {
    let mut session = session.clone();
    for tick in &mut session.ticks {
        tick.hash = None;
    }
    session
}

/// Copies a cut session without what its server computed from the original input: bodies after ticks, and judged shots.
/// A log without a server has them as input of its replay.
fn without_results(session: &Session) -> Session {
    let mut session = session.clone();
    if session.header.holds() != LogContents::Clients {
        session.states.retain(|key| key.tick == Tick(0));
        session.players.iter_mut().for_each(|player| player.judged.clear());
    }
    session
}

/// The smallest session of the log at this path that still has the property. `progress` gets each step.
///
/// # Errors
/// Fails if `session` lacks the property, cannot be replayed, or cannot be tested.
pub fn shrink_log(
    engine: &Engine<'_>,
    recorder: Rerecorder<'_>,
    path: &Path,
    session: &Session,
    property: &ShrinkProperty<'_>,
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<EngineError>> {
    let still = |session: &Session| property.shows(engine, session);
    let parallel = candidates_at_once(engine, recorder, path, session, property).map_err(ShrinkError::Property)?;
    let shrunk = match recorder {
        Rerecorder::Game(game) => shrink(game, engine.games.memory(), session, &still, parallel, progress),
        Rerecorder::Build(build) if can_record(engine, build, path).map_err(ShrinkError::Property)? => {
            let record =
                |session: &Session| record_candidate(engine, build, path, session).map_err(ShrinkError::Property);
            shrink_by(session, ShrinkEdit::Rerecorded, &record, &still, parallel, progress)
        }
        Rerecorder::Build(..) | Rerecorder::Nothing => {
            let record = |session: &Session| Ok(Some(without_hashes(session)));
            shrink_by(session, ShrinkEdit::Cut, &record, &still, parallel, progress).and_then(|shrunk| {
                let session = without_results(&shrunk.session);
                let shows = still(&session).map_err(ShrinkError::Property)?;
                Ok(if shows { ShrinkResult { session, ..shrunk } } else { shrunk })
            })
        }
    };
    match shrunk {
        // An error after a stop is a consequence of the stop.
        Err(ShrinkError::Property(error)) => {
            Err(ShrinkError::Property(check(&engine.runner.stop).err().unwrap_or(error)))
        }
        other => other,
    }
}

/// The number of candidates, each at most as large as the session, that the memory limit allows to test at once.
///
/// # Errors
/// When it does not suffice for one.
fn candidates_at_once(
    engine: &Engine<'_>,
    recorder: Rerecorder<'_>,
    path: &Path,
    session: &Session,
    property: &ShrinkProperty<'_>,
) -> Result<usize, EngineError> {
    // The whole session, and the smallest one so far.
    const HELD: usize = 2;
    // A candidate, its recording, and the recording as the comparison reads it.
    const EACH: usize = 3;
    let (session_bytes, limit) = (session.bytes(), engine.games.memory());
    let of_property = match property {
        ShrinkProperty::Condition(..) => match recorder {
            Rerecorder::Game(game) => game.trace_memory(session, &ReplayOptions::default()).unwrap_or_default(),
            Rerecorder::Build(..) | Rerecorder::Nothing => 0,
        },
        ShrinkProperty::Differs { replays, .. } => replays.compared_bytes(engine, session)?,
    };
    let held = session_bytes.saturating_mul(HELD);
    let each = session_bytes.saturating_mul(EACH).saturating_add(of_property);
    limit.check(held.saturating_add(each)).map_err(|source| EngineError::needs_memory(path, source))?;
    let left = MemoryLimit::of_bytes(limit.bytes().saturating_sub(held));
    Ok(left.tasks_at_once(each, rayon::current_num_threads()))
}

/// The table and field that differ first, in any tick.
fn first_in(found: &TraceDiff) -> Option<String> {
    let first = found.first.as_ref().filter(|_| found.verdict == TraceVerdict::Differs)?;
    Some(format!("{} {}", first.table, first.field.as_deref().unwrap_or("rows")))
}
