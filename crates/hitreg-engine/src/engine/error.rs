//! Errors of the engine, with the file concerned.

use std::error::Error;
use std::path::{Path, PathBuf};

use super::MissingSide;
use crate::build::condition::BadCondition;
use crate::build::git::GitError;
use crate::build::{BuildError, UntestableBuild};
use hitreg_analysis::diff::DiffError;
use hitreg_log::log::LogError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::merge::MergeError;
use hitreg_log::store::StoreError;
use hitreg_log::store::shown::naming_file;
use hitreg_netcode::replay::ReplayError;
use hitreg_netcode::settings::SettingError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The contents of a file are invalid.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        source: LogError,
    },
    /// This build cannot replay a log.
    #[error("{}: {source}", path.display())]
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
    /// The message without the path of the file.
    pub fn what(&self) -> String {
        match self {
            EngineError::Content { path, source } => naming_file(&source.to_string(), path),
            EngineError::Replay { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }

    /// Passes on the result of a build, unless the reason why it is untestable is this machine: the memory that this file
    /// needs, a full disk, or a process that cannot be started.
    ///
    /// # Errors
    /// Fails if the reason is this machine.
    pub(crate) fn check_machine<T>(path: &Path, made: Result<T, UntestableBuild>) -> BuildOutcome<T> {
        match made {
            Err(UntestableBuild { needs_memory: Some(source), .. }) => {
                Err(EngineError::NeedsMemory { path: path.to_owned(), source })
            }
            Err(UntestableBuild { is_of_machine: true, reason, .. }) => {
                Err(EngineError::Request(format!("the build cannot be run: {reason}")))
            }
            made => Ok(made),
        }
    }

    pub(crate) fn unsuitable(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> EngineError {
        EngineError::Unsuitable { path: path.to_owned(), source: source.into() }
    }

    /// The error for a trace in place of a log.
    pub fn replayed(path: &Path) -> EngineError {
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
    pub(super) fn content(path: &Path, source: LogError) -> EngineError {
        let path = path.to_owned();
        match source {
            LogError::NeedsMemory(source) => EngineError::NeedsMemory { path, source },
            source => EngineError::Content { path, source },
        }
    }

    /// Whether the error concerns one log of a corpus, so that the others can still be judged.
    pub(crate) fn is_about_one_log(&self) -> bool {
        matches!(
            self,
            EngineError::Store(_)
                | EngineError::Content { .. }
                | EngineError::Replay { .. }
                | EngineError::Unsuitable { .. }
                | EngineError::NeedsMemory { .. }
                | EngineError::Diff(DiffError::Unread(_))
        )
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
