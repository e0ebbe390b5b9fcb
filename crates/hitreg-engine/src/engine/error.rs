//! Why the engine could not do something, with the file that it is about.

use std::path::{Path, PathBuf};

use super::games::UnknownGame;
use crate::build::condition::BadCondition;
use crate::build::git::GitError;
use crate::build::{BuildError, CacheError, Untestable};
use hitreg_analysis::diff::DiffError;
use hitreg_log::log::LogError;
use hitreg_log::memory::NeedsMemory;
use hitreg_log::recorded::NoStates;
use hitreg_log::store::StoreError;
use hitreg_netcode::replay::ReplayError;
use hitreg_netcode::settings::SettingError;

/// Why the engine could not do something. What a build cannot play is no such error, but untestable.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A file that cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file that is not what it should be.
    #[error("{}: {source}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        source: LogError,
    },
    /// A file that needs more memory than a command may use.
    #[error("{}: {source}", path.display())]
    NeedsMemory {
        /// Which.
        path: PathBuf,
        /// How much.
        source: NeedsMemory,
    },
    /// A keyframe that a replay cannot begin with.
    #[error("{}: {source}", path.display())]
    Keyframe {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        source: ReplayError,
    },
    /// A log of a game that is not played here.
    #[error("{}: {source}", path.display())]
    Game {
        /// The log.
        path: PathBuf,
        /// Which game it is of.
        source: UnknownGame,
    },
    /// A log that says too little to be held against a replay of it.
    #[error("{}: {source}", path.display())]
    NoStates {
        /// The log.
        path: PathBuf,
        /// What it lacks.
        source: NoStates,
    },
    /// Shots of a game that does not judge recorded shots again, without a server that does.
    #[error("{}: {source}", path.display())]
    NoJudge {
        /// The log.
        path: PathBuf,
        /// The reason.
        source: ReplayError,
    },
    /// A trace, where something is to be replayed.
    #[error("{}: this is a trace, which has been replayed already: builds, presets, settings and modes need a log", path.display())]
    Replayed {
        /// The trace.
        path: PathBuf,
    },
    /// A trace, where a server is to be run.
    #[error("{}: this is a trace: --server-build and --client-build need a log", path.display())]
    NoServer {
        /// The trace.
        path: PathBuf,
    },
    /// A client on another build's server, and two files.
    #[error("--server-build and --client-build need one log, not two files")]
    TwoFiles,
    /// Nothing to compare with.
    #[error("a single trace has nothing to be compared with: name a second one")]
    SingleTrace,
    /// Nothing to shrink to.
    #[error("{}: the two sides play it alike, or one cannot play it: there is nothing to keep", path.display())]
    Alike {
        /// The log.
        path: PathBuf,
    },
    /// A setting that is not available.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A build that is not there, or is no program.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A cache that is not available.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Two traces that cannot be compared as asked.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// A command that cannot be run.
    #[error(transparent)]
    Condition(#[from] BadCondition),
    /// A command that judges builds and is never told which.
    #[error("the command of --while never names the build: write {{build}} where its path belongs")]
    NamesNoBuild,
    /// Git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An artifact that would be the same file for every commit.
    #[error("--artifact is a path from the top of the worktree, such as target/release/game")]
    AbsoluteArtifact,
    /// What is found out in a search cannot be kept.
    #[error("{}: the search cannot be kept here ({source}); name another folder with --cache", folder.display())]
    SearchFolder {
        /// Where it is kept.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another process is at it.
    #[error("{}: the same search is running already", folder.display())]
    SearchRuns {
        /// Where it is kept.
        folder: PathBuf,
    },
    /// Threads that the system does not give.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many; 0 for one on each core.
        threads: usize,
        /// Why.
        source: rayon::ThreadPoolBuildError,
    },
    /// A thread that the system does not give.
    #[error("cannot start a thread: {0}")]
    NoThread(#[source] std::io::Error),
    /// A golden that is no text.
    #[error("{}: this golden is not text; `--accept` writes a new one", path.display())]
    GoldenText {
        /// The golden.
        path: PathBuf,
    },
    /// Somebody has stopped it.
    #[error("interrupted")]
    Stopped {
        /// Whether the same search, begun again, goes on from here.
        resumes: bool,
    },
}

impl EngineError {
    /// What is wrong, without the file that it is wrong with.
    pub(super) fn what(&self) -> String {
        match self {
            EngineError::Content { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }

    /// The need for memory that kept a log from being replayed or a trace from being read, as an error of this file.
    ///
    /// # Errors
    /// When that is why.
    pub(super) fn check_memory(path: &Path, untestable: &Untestable) -> Result<(), EngineError> {
        match untestable.needs_memory {
            Some(source) => Err(EngineError::NeedsMemory { path: path.to_owned(), source }),
            None => Ok(()),
        }
    }

    pub(super) fn content(path: &Path, source: LogError) -> EngineError {
        EngineError::Content { path: path.to_owned(), source }
    }
}
