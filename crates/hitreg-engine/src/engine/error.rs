//! Errors of the engine, with the file concerned.

use std::error::Error;
use std::path::{Path, PathBuf};

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

/// An error of the engine. A log that a build cannot play is untestable, not an error.
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
    /// A log lacks what a job needs: its game is not of this build, or has no judge; its records are too few, or not
    /// of its game; or a replay cannot start from its keyframe.
    #[error("{}: {source}", path.display())]
    Unsuitable {
        /// The log.
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
    /// The file is a trace, but a log is needed to replay.
    #[error("{}: this is a trace, the result of a replay: give the log to use builds, presets, settings or modes", path.display())]
    Replayed {
        /// The trace.
        path: PathBuf,
    },
    /// The file is a trace, but a log is needed to run a server.
    #[error("{}: this is a trace: give a log to --server-build and --client-build", path.display())]
    NoServer {
        /// The trace.
        path: PathBuf,
    },
    /// Options for client and server builds were given with two files.
    #[error("--server-build and --client-build need one log, not two files")]
    TwoFiles,
    /// Logs of several games were given to one sweep.
    #[error("{}: this log is of another game than the first: sweep each game separately", path.display())]
    OtherGame {
        /// The log.
        path: PathBuf,
    },
    /// A single trace was given, with nothing to compare it with.
    #[error("a single trace has nothing to compare with: name a second trace")]
    SingleTrace,
    /// Both sides play the log alike, so there is no difference to shrink to.
    #[error("{}: both sides play this log alike, so there is no difference to keep: check the options of side B with `hitreg diff`", path.display())]
    Alike {
        /// The log.
        path: PathBuf,
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
    /// A condition command that judges builds has no placeholder for the build.
    #[error("the command of --while does not use the build: write {{build}} for its path")]
    NamesNoBuild,
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The artifact path is absolute, so every commit would use the same file.
    #[error("--artifact must be relative to the top of the worktree, such as target/release/game")]
    AbsoluteArtifact,
    /// The state of a search cannot be saved.
    #[error("{}: the search cannot be saved here ({source}): name another folder with --cache", folder.display())]
    SearchFolder {
        /// The folder of the search.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another process runs the same search.
    #[error("{}: the same search is already running in another process: wait for it, or name another folder with --cache", folder.display())]
    SearchRuns {
        /// The folder of the search.
        folder: PathBuf,
    },
    /// This machine cannot run a build.
    #[error("the build cannot be run: {0}")]
    Machine(String),
    /// The threads of a pool cannot be started.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// The number of threads; 0 for one per core.
        threads: usize,
        /// The reason.
        source: rayon::ThreadPoolBuildError,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    NoThread(#[source] std::io::Error),
    /// The file in the place of a golden is not one.
    #[error("{}: this is no golden of hitreg: move it away, and write one with `hitreg verify LOG --accept`", path.display())]
    NoGolden {
        /// The file.
        path: PathBuf,
    },
    /// A golden of a log from standard input is to be written.
    #[error("a log from standard input has no place for a golden: save it as a file, and verify that")]
    NoPlaceForGolden,
    /// The job was stopped.
    #[error("interrupted")]
    Stopped {
        /// Whether the same search resumes from here when it is run again.
        resumes: bool,
    },
}

/// What a build made, or why it cannot be judged. Other failures end the job.
pub(crate) type BuildOutcome<T> = Result<Result<T, UntestableBuild>, EngineError>;

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
            Err(UntestableBuild { is_of_machine: true, reason, .. }) => Err(EngineError::Machine(reason)),
            made => Ok(made),
        }
    }

    pub(super) fn unsuitable(path: &Path, source: impl Error + Send + Sync + 'static) -> EngineError {
        EngineError::Unsuitable { path: path.to_owned(), source: Box::new(source) }
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
                | EngineError::Replayed { .. }
                | EngineError::Diff(DiffError::Unread(_))
                | EngineError::NoGolden { .. }
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
