//! The replay side of an engine: reads a log in the order in which a server runs it, and writes the trace.
//!
//! A build is the engine's own loop, driven by [`Playback::next`] in place of the network. The engine pushes ticks and
//! bodies with the function that also records them.

use std::ffi::OsString;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Description, FinishError, PushError, Recorder, Stream};
use crate::log::{self, LogError};
use crate::memory::BadMemoryLimit;
use crate::record::{Execution, FrameRecord, PlayerRecords, Presence, Record, Session, TickRecord};
use crate::store::{self, StoreError};
use crate::trace::Digest;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// What a server does next in a recorded session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaybackStep {
    /// Restore a body: a state of tick 0 of [`Session::states`], by its index. Only at the beginning of a log that
    /// begins within a session, after the players who are present have joined.
    Restore(usize),
    /// A row of a custom kind, for games that record what else happens, in its order.
    Row {
        /// Index of the kind in [`SessionHeader::unknown`](crate::record::SessionHeader::unknown).
        kind: usize,
        /// Index of the row in its [`UnknownRecords`](crate::record::UnknownRecords).
        row: usize,
    },
    /// A player joins.
    Join(PlayerId),
    /// A player leaves.
    Leave(PlayerId),
    /// Run a usercmd of a player.
    Input {
        /// The player.
        player: PlayerId,
        /// Index in [`PlayerRecords::frames`].
        frame: usize,
        /// `Run`, or `StoodIn` for a usercmd that runs again in place of one that never arrived.
        how: Execution,
    },
    /// End the tick: simulate, then push the tick and its bodies.
    Tick,
}

/// The steps of a session, in order: rows of custom kinds by their times, joins and leaves, usercmds by player, the end of
/// the tick; then the next tick.
///
/// In a log that begins within a session, the players who joined before its first tick join first, and then their bodies
/// are restored. So a game may spawn a body when its player joins.
///
/// Usercmds run in the ticks in which they were recorded as executed. If the session records no execution, they run in
/// the first tick that is not earlier than they are.
#[derive(Debug)]
struct PlaybackSteps {
    restored: Range<usize>,
    /// The next tick to end.
    tick: usize,
    /// The tick of the last step.
    now: TickRecord,
    /// For each custom kind with rows: its index, the index of its records, and the next row.
    rows: Vec<(usize, usize, usize)>,
    players: Vec<PlayerCursor>,
    has_executions: bool,
}

#[derive(Debug, Default)]
struct PlayerCursor {
    presence: usize,
    executed: usize,
    /// Usercmds that the trace has.
    frames: usize,
    /// The usercmds by number and time, with their indices.
    by_number: Vec<(CommandSeq, Micros, usize)>,
    last_run: Option<usize>,
}

impl PlayerCursor {
    fn new(player: &PlayerRecords) -> PlayerCursor {
        let usercmds = player.frames.iter().zip(0..).map(|(frame, index)| (frame.command.seq, frame.at, index));
        let mut by_number: Vec<(CommandSeq, Micros, usize)> = usercmds.collect();
        by_number.sort_unstable();
        PlayerCursor { by_number, ..PlayerCursor::default() }
    }

    /// Returns the index of the usercmd that runs in a tick at `at`. If several have the number, this is the newest one
    /// that is not later than the tick. The usercmds of a player who rejoins may begin with number 1 again.
    fn usercmd(&self, number: CommandSeq, at: Micros) -> Option<usize> {
        let later = self.by_number.partition_point(|(of, then, _)| (*of, *then) <= (number, at));
        let candidates = [later.checked_sub(1), Some(later)].into_iter().flatten();
        let mut candidates = candidates.filter_map(|place| self.by_number.get(place));
        candidates.find(|(of, ..)| *of == number).map(|(.., index)| *index)
    }
}

impl PlaybackSteps {
    /// Returns the steps of a session.
    fn new(session: &Session) -> PlaybackSteps {
        let rows = session.header.unknown.iter().enumerate().filter_map(|(index, kind)| {
            let records = session.unknown.iter().position(|records| records.kind == kind.name)?;
            session.unknown[records].times().map(|_| (index, records, 0))
        });
        PlaybackSteps {
            rows: rows.collect(),
            restored: 0..session.states.keys().partition_point(|key| key.tick == Tick(0)),
            tick: 0,
            now: TickRecord::default(),
            players: session.players.iter().map(PlayerCursor::new).collect(),
            has_executions: session.players.iter().any(|player| !player.executed.is_empty()),
        }
    }

    /// The tick in which the last step happens.
    fn now(&self) -> TickRecord {
        self.now
    }

    /// Returns the next step, and passes the usercmds and executions before it to `copy`.
    ///
    /// # Errors
    /// Those of `copy`.
    fn next<E>(
        &mut self,
        session: &Session,
        copy: &mut dyn FnMut(Record) -> Result<(), E>,
    ) -> Result<Option<PlaybackStep>, E> {
        self.now = session.ticks.get(self.tick).copied().unwrap_or(self.now);
        let first = self.now.tick;
        if self.tick == 0
            && let Some(step) = self.next_change(session, |tick| tick < first)
        {
            return Ok(Some(step));
        }
        if let Some(state) = self.restored.next() {
            return Ok(Some(PlaybackStep::Restore(state)));
        }
        let Some(end) = session.ticks.get(self.tick) else { return Ok(None) };
        let times =
            |&mut (_, records, _): &mut (usize, usize, usize)| session.unknown[records].times().unwrap_or_default();
        let next_rows = self.rows.iter_mut().filter_map(|next| Some((*times(next).get(next.2)?, next)));
        if let Some((at, next)) = next_rows.min_by_key(|(at, _)| *at)
            && at <= end.at.0
        {
            next.2 += 1;
            return Ok(Some(PlaybackStep::Row { kind: next.0, row: next.2 - 1 }));
        }
        if let Some(step) = self.next_change(session, |tick| tick <= end.tick) {
            return Ok(Some(step));
        }
        for (player, (cursor, records)) in (0..).map(PlayerId).zip(self.players.iter_mut().zip(&session.players)) {
            while let Some(frame) = records.frames.get(cursor.frames).filter(|frame| frame.at <= end.at) {
                // A trace has no bytes of usercmds.
                let (at, command) = (frame.at, frame.command.clone());
                copy(Record::Frame(player, FrameRecord { at, command, ..FrameRecord::default() }))?;
                cursor.frames += 1;
                if !self.has_executions {
                    return Ok(Some(PlaybackStep::Input { player, frame: cursor.frames - 1, how: Execution::Run }));
                }
            }
            while let Some(done) = records.executed.get(cursor.executed).filter(|done| done.tick <= end.tick) {
                copy(Record::Executed(player, *done))?;
                cursor.executed += 1;
                let frame = match done.how {
                    Execution::Run => cursor.usercmd(done.command, end.at),
                    Execution::StoodIn => cursor.last_run,
                    Execution::Missing | Execution::Late | Execution::OverBudget => None,
                };
                cursor.last_run = frame.or(cursor.last_run);
                if let Some(frame) = frame {
                    return Ok(Some(PlaybackStep::Input { player, frame, how: done.how }));
                }
            }
        }
        self.tick += 1;
        Ok(Some(PlaybackStep::Tick))
    }

    /// Returns the next join or leave in one of the ticks that are due.
    fn next_change(&mut self, session: &Session, is_due: impl Fn(Tick) -> bool) -> Option<PlaybackStep> {
        for (player, (cursor, records)) in (0..).map(PlayerId).zip(self.players.iter_mut().zip(&session.players)) {
            if let Some(change) = records.presence.get(cursor.presence).filter(|change| is_due(change.tick)) {
                cursor.presence += 1;
                return Some(match change.change {
                    Presence::Joined => PlaybackStep::Join(player),
                    Presence::Left => PlaybackStep::Leave(player),
                });
            }
        }
        None
    }
}

/// A log that a build replays into a trace.
///
/// ```no_run
/// use hitreg_log::recorder::{Description, Playback, PlaybackError, PlaybackStep};
/// # fn describe() -> Description { Description::new("mygame") }
/// # struct World; impl World { fn restore(&mut self, _: &[u32]) {} fn run(&mut self, _: u16, _: &hitreg_log::usercmd::Usercmd) {}
/// # fn end_tick(&mut self, _: &mut hitreg_log::recorder::Stream, _: hitreg_log::record::TickRecord) -> Result<(), hitreg_log::recorder::PushError> { Ok(()) } }
///
/// fn replay(mut world: World) -> Result<(), PlaybackError> {
///     let mut play = Playback::from_args(std::env::args_os().skip(1), "mygame")?;
///     let mut stream = play.begin(describe())?;
///     while let Some(step) = play.next(&mut stream)? {
///         match step {
///             PlaybackStep::Restore(state) => world.restore(play.session().states.cells_of(state)),
///             PlaybackStep::Input { player, frame, .. } => {
///                 world.run(player.0, &play.session().players[usize::from(player.0)].frames[frame].command);
///             }
///             PlaybackStep::Tick => world.end_tick(&mut stream, play.now())?,
///             // Joins, leaves and rows change nothing in this game.
///             _ => {}
///         }
///     }
///     drop(stream);
///     play.finish()
/// }
/// ```
#[derive(Debug)]
pub struct Playback {
    session: Arc<Session>,
    digest: Digest,
    to: PathBuf,
    changed: Vec<(String, String)>,
    steps: PlaybackSteps,
    recorder: Option<Recorder>,
}

/// Why a build cannot replay a log. [`PlaybackError::exit_code`] is what the process should exit with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaybackError {
    /// The arguments are not those of a replay.
    #[error("this build knows only: replay LOG -o TRACE [--set KEY=VALUE]...; it does not know `{argument}`")]
    Unknown {
        /// The argument.
        argument: String,
    },
    /// The arguments name no log or no trace.
    #[error("{missing} is missing: replay LOG -o TRACE [--set KEY=VALUE]...")]
    Missing {
        /// What is missing.
        missing: &'static str,
    },
    /// The log is of another game.
    #[error("{}: the log is of `{found}`, and this build plays `{game}`", path.display())]
    OtherGame {
        /// The log.
        path: PathBuf,
        /// Its game.
        found: String,
        /// The game of this build.
        game: String,
    },
    /// The session has no setting of this name.
    #[error("the session has no setting called `{key}`")]
    NoSetting {
        /// The name.
        key: String,
    },
    /// The log begins within a session, and this build cannot restore an entity of it.
    #[error("the log begins within a session, and this build cannot restore entity {entity}")]
    NotRestored {
        /// The entity.
        entity: u16,
    },
    /// The log runs a usercmd of a player who has not joined, and this build replays only players who join.
    #[error(
        "the log runs a usercmd of p{player} in tick {tick}, and has no record that this player joined: a client's log does not replay. Replay the server's log"
    )]
    NotJoined {
        /// The player.
        player: PlayerId,
        /// The tick.
        tick: Tick,
    },
    /// The environment sets no valid memory limit.
    #[error(transparent)]
    MemoryLimit(#[from] BadMemoryLimit),
    /// The log cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log cannot be read.
    #[error("{}: {source}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The reason.
        source: LogError,
    },
    /// The trace was started before.
    #[error("this playback has begun: its trace has one stream, which the first call of `begin` returned")]
    Begun,
    /// No trace was started.
    #[error("this playback has no trace: call `begin`, and then `next` until it returns no more steps")]
    NotBegun,
    /// A record does not fit the description.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The trace cannot be written.
    #[error(transparent)]
    Finish(#[from] FinishError),
}

impl PlaybackError {
    /// Returns 125 if the arguments or the log name no replay that this build can run, and 128 for other errors.
    pub fn exit_code(&self) -> u8 {
        match self {
            PlaybackError::Unknown { .. }
            | PlaybackError::Missing { .. }
            | PlaybackError::OtherGame { .. }
            | PlaybackError::NoSetting { .. }
            | PlaybackError::NotRestored { .. }
            | PlaybackError::NotJoined { .. } => 125,
            PlaybackError::MemoryLimit(_)
            | PlaybackError::Store(_)
            | PlaybackError::Log { .. }
            | PlaybackError::Begun
            | PlaybackError::NotBegun
            | PlaybackError::Push(_)
            | PlaybackError::Finish(_) => 128,
        }
    }
}

impl Playback {
    /// Opens the log that the arguments name: `replay LOG -o TRACE`, and any number of `--set KEY=VALUE`. `args` does not
    /// include the program's name.
    ///
    /// # Errors
    /// When the arguments are others, or the log cannot be read, is of another game, or lacks a setting.
    pub fn from_args(args: impl IntoIterator<Item = OsString>, game: &str) -> Result<Playback, PlaybackError> {
        let mut args = args.into_iter();
        let unknown = |argument: Option<OsString>| {
            let argument = argument.unwrap_or_default().to_string_lossy().into_owned();
            PlaybackError::Unknown { argument }
        };
        let command = args.next();
        match command {
            None => return Err(PlaybackError::Missing { missing: "the command" }),
            Some(command) if command != "replay" => return Err(unknown(Some(command))),
            Some(_) => {}
        }
        let (mut log, mut to, mut changed) = (None, None, Vec::new());
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("-o") => to = args.next(),
                Some("--set") => {
                    let pair = args.next().unwrap_or_default();
                    let known = pair.to_str().and_then(|pair| pair.split_once('='));
                    let (key, value) = known.ok_or_else(|| unknown(Some(pair.clone())))?;
                    changed.push((key.to_owned(), value.to_owned()));
                }
                Some(option) if option.starts_with('-') => return Err(unknown(Some(arg))),
                Some(_) | None if log.is_none() => log = Some(arg),
                Some(_) | None => return Err(unknown(Some(arg))),
            }
        }
        let log = log.ok_or(PlaybackError::Missing { missing: "the log" })?;
        let to = to.ok_or(PlaybackError::Missing { missing: "`-o TRACE`" })?;
        Playback::open(Path::new(&log), PathBuf::from(to), game, changed)
    }

    /// Opens a log for a replay into a trace at `to`, with changed settings.
    ///
    /// # Errors
    /// When the log cannot be read, is of another game, or lacks a setting.
    pub fn open(
        path: &Path,
        to: PathBuf,
        game: &str,
        changed: Vec<(String, String)>,
    ) -> Result<Playback, PlaybackError> {
        let mut bytes = Vec::new();
        let log_error = |source| PlaybackError::Log { path: path.to_owned(), source };
        store::open(path)?.read_to_end(&mut bytes).map_err(|error| log_error(error.into()))?;
        let session = log::read_session_within(store::memory_limit()?, &bytes[..]).map_err(log_error)?;
        if session.header.game != game {
            let (found, game) = (session.header.game, game.to_owned());
            return Err(PlaybackError::OtherGame { path: path.to_owned(), found, game });
        }
        let is_known = |key: &String| session.header.settings.iter().any(|(known, _)| known == key);
        if let Some((key, _)) = changed.iter().find(|(key, _)| !is_known(key)) {
            return Err(PlaybackError::NoSetting { key: key.clone() });
        }
        let (digest, steps) = (Digest::of_bytes(&bytes), PlaybackSteps::new(&session));
        Ok(Playback { session: Arc::new(session), digest, to, changed, steps, recorder: None })
    }

    /// The recorded session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The recorded session, shared, and the digest of the log's bytes.
    pub fn shared(&self) -> (Arc<Session>, Digest) {
        (Arc::clone(&self.session), self.digest)
    }

    /// The settings that differ from the recorded ones.
    pub fn changed(&self) -> &[(String, String)] {
        &self.changed
    }

    /// Returns a setting of this replay: as changed, or as recorded.
    pub fn setting(&self, key: &str) -> Option<&str> {
        let all = self.changed.iter().rev().chain(&self.session.header.settings);
        all.into_iter().find(|(known, _)| known == key).map(|(_, value)| &**value)
    }

    /// Starts the trace with the description that the engine also records with. Call it once.
    ///
    /// # Errors
    /// When the trace has begun, the description is invalid or the trace cannot be created.
    pub fn begin(&mut self, about: Description) -> Result<Stream, PlaybackError> {
        if self.has_begun() {
            return Err(PlaybackError::Begun);
        }
        let about = self.changed.iter().fold(about, |about, (key, value)| about.setting(key, value));
        let recorder = Recorder::trace(&self.to, about, self.digest)?;
        let mut stream = recorder.stream();
        for (_, text) in self.session.texts.iter() {
            stream.text(text)?;
        }
        self.recorder = Some(recorder);
        Ok(stream)
    }

    /// Whether [`Playback::begin`] has started the trace.
    pub fn has_begun(&self) -> bool {
        self.recorder.is_some()
    }

    /// Returns the next step; `None` after the last tick. It pushes the recorded usercmds and executions into `stream`, which
    /// [`Playback::begin`] returned.
    ///
    /// # Errors
    /// When a recorded usercmd does not fit the description, or the stream is another one.
    pub fn next(&mut self, stream: &mut Stream) -> Result<Option<PlaybackStep>, PushError> {
        if !self.recorder.as_ref().is_some_and(|recorder| stream.is_of(recorder)) {
            return Err(PushError::ForeignStream);
        }
        self.steps.next(&self.session, &mut |record| stream.push(record))
    }

    /// The tick in which the last step happens.
    pub fn now(&self) -> TickRecord {
        self.steps.now()
    }

    /// Writes the trace of the steps so far.
    ///
    /// # Errors
    /// When [`Playback::begin`] has not started a trace, or the trace cannot be written.
    pub fn finish(self) -> Result<(), PlaybackError> {
        self.recorder.ok_or(PlaybackError::NotBegun)?.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
