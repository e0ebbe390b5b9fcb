//! The engine: the games of a program, how it runs builds, and its errors.

use std::error::Error;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use crate::build::condition::BadCondition;
use crate::build::git::GitError;
use crate::build::{BuildError, BuildRunner, StopSignal, UntestableBuild};
use crate::{Games, MissingSide};
use hitreg_analysis::diff::DiffError;
use hitreg_log::log::{self, LogError};
use hitreg_log::memory::{MemoryLimit, NeedsMemory};
use hitreg_log::merge::MergeError;
use hitreg_log::record::{Session, SessionHeader};
use hitreg_log::store::shown::naming_file;
use hitreg_log::store::{self, StoreError, StoreErrorKind};
use hitreg_log::trace::Digest;
use hitreg_netcode::replay::ReplayError;
use hitreg_netcode::settings::SettingError;

/// The games of this program, how it runs builds, and a callback for each log that it reads.
#[derive(Clone)]
pub struct Engine<'a> {
    /// The games.
    pub games: &'a Games,
    /// Called with the path and header of each log that is read. The command line uses it to report the parts that
    /// [`passed_over`](hitreg_netcode::info::passed_over) finds.
    pub on_read: &'a (dyn Fn(&Path, &SessionHeader) + Sync),
    /// Runs other builds.
    pub runner: BuildRunner,
}

hitreg_log::partial_debug!(Engine<'_> { games, runner });

impl<'a> Engine<'a> {
    /// Creates an engine whose `on_read` callback does nothing, and which caches no traces of builds.
    pub fn new(games: &'a Games) -> Engine<'a> {
        Engine { games, on_read: &|_, _| {}, runner: BuildRunner::own(games.memory()) }
    }

    /// The same engine with an `on_read` callback that does nothing.
    #[must_use]
    pub fn quiet(&self) -> Engine<'a> {
        Engine { on_read: &|_, _| {}, ..self.clone() }
    }

    /// The same engine, which never takes a trace of a build from the cache.
    pub(crate) fn uncached(&self) -> Engine<'a> {
        Engine { runner: BuildRunner { cache: None, ..self.runner.clone() }, ..self.clone() }
    }

    /// Passes on what a build made of the file at `path`, as [`EngineError::check_machine`] does.
    ///
    /// # Errors
    /// Fails if the job was stopped, or if the build is untestable because of this machine.
    pub(crate) fn check_outcome<T>(&self, path: &Path, outcome: Result<T, UntestableBuild>) -> BuildOutcome<T> {
        check(&self.runner.stop)?;
        EngineError::check_machine(path, outcome)
    }
}

/// Returns the message of a panic.
#[doc(hidden)]
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

/// Does a piece of work for one log. A panic is an error of the log: a world that a game makes wrongly ends its replay
/// with one, and the other logs go on.
pub(crate) fn for_one_log<T>(log: &Path, work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(EngineError::unsuitable(log, format!("the game panicked: {}", panic_text(&*panic))))
    })
}

/// Fails if the job was stopped. A result computed after the stop is invalid.
pub(crate) fn check(stop: &StopSignal) -> Result<(), EngineError> {
    if stop.is_stopped() { Err(EngineError::Stopped { resumes: false }) } else { Ok(()) }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The contents of a file are invalid.
    #[error("{}: {}", path.display(), naming_file(&source.to_string(), path))]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        source: LogError,
    },
    /// This build cannot replay a log.
    #[error("{}: {}", path.display(), naming_file(&source.to_string(), path))]
    Replay {
        /// The log.
        path: PathBuf,
        /// The reason.
        source: ReplayError,
    },
    /// A file or folder lacks what a job needs: a log's game is not of this build, or its records are too few; a trace is
    /// given in place of a log; or another process uses the folder.
    #[error("{}: {source}", path.display())]
    Unsuitable {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Logs do not belong to one session.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A file needs more memory than a command may use.
    #[error("{}: {source}", path.display())]
    NeedsMemory {
        /// The file.
        path: PathBuf,
        /// The memory needed and the limit.
        source: NeedsMemory,
    },
    /// A setting is unknown or out of range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A build does not exist or is not executable.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The traces cannot be compared with these options.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// A condition command cannot be run.
    #[error(transparent)]
    Condition(#[from] BadCondition),
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A side of a comparison has no trace, so nothing can be concluded.
    #[error("{}", .0.line())]
    Missing(Box<MissingSide>),
    /// A request that cannot be satisfied, or not by this machine; says what to do.
    #[error("{0}")]
    Request(String),
    /// The job was stopped.
    #[error("interrupted")]
    Stopped {
        /// Whether the same search resumes from here when it is run again.
        resumes: bool,
    },
}

/// What a build made, or why it cannot be judged. Other failures end the job.
pub(crate) type BuildOutcome<T> = Result<Result<T, UntestableBuild>, EngineError>;

impl From<MissingSide> for EngineError {
    fn from(missing: MissingSide) -> EngineError {
        EngineError::Missing(Box::new(missing))
    }
}

impl EngineError {
    /// The message without the path of the log that the error concerns, if it begins with that path.
    pub fn what(&self, log: &Path) -> String {
        let text = self.to_string();
        text.strip_prefix(&format!("{}: ", log.display())).map_or(text.clone(), str::to_owned)
    }

    /// Passes on the result of a build, unless the reason why it is untestable is this machine: the memory that this file
    /// needs, a full disk, or too many processes to start one.
    ///
    /// # Errors
    /// Fails if the reason is this machine.
    pub(crate) fn check_machine<T>(path: &Path, outcome: Result<T, UntestableBuild>) -> BuildOutcome<T> {
        match outcome {
            Err(UntestableBuild { needs_memory: Some(source), .. }) => Err(EngineError::needs_memory(path, source)),
            Err(UntestableBuild { is_of_machine: true, reason, .. }) => {
                Err(EngineError::Request(format!("the build cannot be run: {reason}")))
            }
            made => Ok(made),
        }
    }

    /// The error for a file that needs more memory than a command may use.
    pub(crate) fn needs_memory(path: &Path, source: NeedsMemory) -> EngineError {
        EngineError::NeedsMemory { path: path.to_owned(), source }
    }

    pub(crate) fn unsuitable(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> EngineError {
        EngineError::Unsuitable { path: path.to_owned(), source: source.into() }
    }

    /// The error for a trace in place of a log.
    pub fn already_replayed(path: &Path) -> EngineError {
        let what = "this is a trace, the result of a replay: give the log to use builds, presets, settings or modes";
        EngineError::unsuitable(path, what)
    }

    /// The error for a log of another game than the first of a sweep.
    pub fn other_game(path: &Path) -> EngineError {
        EngineError::unsuitable(path, "this log is of another game than the first: sweep each game separately")
    }

    /// The error for a thread that cannot be started.
    pub fn no_thread(error: std::io::Error) -> EngineError {
        EngineError::Request(format!("cannot start a thread: {error}"))
    }

    /// The error of a file's content. A need for memory says nothing against the content.
    pub(crate) fn content(path: &Path, source: LogError) -> EngineError {
        let path = path.to_owned();
        match source {
            LogError::NeedsMemory(source) => EngineError::NeedsMemory { path, source },
            source => EngineError::Content { path, source },
        }
    }

    /// Whether the error concerns one log of a corpus, so that the others can still be judged.
    pub(crate) fn is_about_one_log(&self) -> bool {
        match self {
            // A full disk, or a folder that cannot be written, says nothing about the log.
            EngineError::Store(error) => !error.is_about_output(),
            EngineError::Content { .. }
            | EngineError::Replay { .. }
            | EngineError::Unsuitable { .. }
            | EngineError::NeedsMemory { .. }
            | EngineError::Missing(_)
            | EngineError::Diff(DiffError::Unread(_)) => true,
            _ => false,
        }
    }

    /// Whether a file is refused because of its size in memory, and for no fault of its own.
    pub(crate) fn is_for_memory(&self) -> bool {
        match self {
            EngineError::NeedsMemory { .. } => true,
            EngineError::Store(error) => error.needs_memory().is_some(),
            _ => false,
        }
    }
}

/// A log in memory.
#[derive(Debug)]
pub struct LogFile {
    /// The session.
    pub session: Session,
    /// The digest of the file, for trace headers.
    pub digest: Digest,
}

impl Engine<'_> {
    /// Reads a complete log.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a complete log.
    pub fn read_log(&self, path: &Path) -> Result<LogFile, EngineError> {
        let log = LogFile::read(self.games.memory(), path)?;
        (self.on_read)(path, &log.session.header);
        Ok(log)
    }
}

impl LogFile {
    /// Reads a complete log.
    pub(crate) fn read(memory: MemoryLimit, path: &Path) -> Result<LogFile, EngineError> {
        let mut read = HashingReader::new(store::open(path)?);
        // The log reader reads to the end of the file, so the digest covers all of it.
        let session =
            log::read_session_within(memory, &mut read).map_err(|source| EngineError::content(path, source))?;
        Ok(LogFile { session, digest: read.digest() })
    }
}

/// The digest of a file's bytes.
pub(crate) fn file_digest(path: &Path) -> Result<Digest, StoreError> {
    let mut reader = HashingReader::new(store::open(path)?);
    let read = std::io::copy(&mut reader, &mut std::io::sink());
    read.map_err(|source| StoreError::new(path, StoreErrorKind::Unreadable(source)))?;
    Ok(reader.digest())
}

/// A reader that hashes everything it reads.
pub(crate) struct HashingReader<R> {
    from: R,
    hasher: Xxh3Default,
}

impl<R> HashingReader<R> {
    pub(crate) fn new(from: R) -> HashingReader<R> {
        HashingReader { from, hasher: Xxh3Default::new() }
    }

    /// The digest of all bytes read so far.
    pub(crate) fn digest(&self) -> Digest {
        Digest(self.hasher.digest128())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
