//! What goes wrong on the command line: one or two sentences that name the file and say what to do.

use std::error::Error;
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::engine::EngineError;
use crate::import::ImportFileError;
use crate::live::LiveError;
use crate::report::printable::printable_lines;
use crate::session::SynthError;
use crate::session::scenario::ScenarioError;
use crate::settings::SettingError;
use crate::store::{StoreError, is_standard_stream};

/// Why a command could not do its work. All of these end with exit code 128, but for an interruption.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// A file that cannot be opened, written or renamed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that the engine could not do.
    #[error(transparent)]
    Engine(EngineError),
    /// A recording that did not become a log.
    #[error(transparent)]
    Import(#[from] ImportFileError),
    /// A file that cannot be understood.
    #[error("{}: {what}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it, and where.
        what: Box<dyn Error + Send + Sync>,
    },
    /// Something was asked for that is not available.
    #[error("{0}")]
    Request(String),
    /// Whoever read the output has stopped.
    #[error("the output was closed before all of it was written (a pipe into `head`, say)")]
    ClosedPipe,
    /// Ctrl-C.
    #[error("interrupted{}", if *resumes { "; the same command, given again, goes on where it was" } else { "" })]
    Interrupted {
        /// Whether the same command goes on from here.
        resumes: bool,
    },
    /// The output cannot be written.
    #[error("standard output cannot be written: {}", reason(.0))]
    Output(#[source] std::io::Error),
}

impl Trouble {
    /// Trouble with a file.
    pub(super) fn file(path: &Path, what: impl Into<Box<dyn Error + Send + Sync>>) -> Trouble {
        Trouble::File { path: path.to_owned(), what: what.into() }
    }

    /// How the command ends.
    pub(super) fn outcome(&self) -> Outcome {
        if let Trouble::Interrupted { .. } = self { Outcome::Interrupted } else { Outcome::Trouble }
    }

    /// Says it on stderr, as long as somebody listens there. That a reader of the output has read enough is no news to whoever
    /// wrote `| head`; the exit code alone says that not all was written.
    pub(super) fn print(&self) {
        let red = anstyle::AnsiColor::Red.on_default().bold();
        self.print_as("error", red);
    }

    /// Says on stderr what one should know of an error that was said already.
    pub(super) fn print_note(&self) {
        self.print_as("note", anstyle::Style::new().bold());
    }

    /// Whether a file is in the way that `--force` replaces.
    fn is_about_replacing(&self) -> bool {
        match self {
            Trouble::Store(error) | Trouble::Engine(EngineError::Store(error)) => {
                matches!(error, StoreError::WouldReplace { .. })
            }
            _ => false,
        }
    }

    fn print_as(&self, what: &str, style: anstyle::Style) {
        match self {
            Trouble::ClosedPipe => return,
            Trouble::Store(StoreError::ClosedPipe { path }) if is_standard_stream(path) => return,
            _ => {}
        }
        use std::io::Write;
        let mut stderr = anstream::stderr().lock();
        // The library has no options, so its error does not name this one.
        let hint = if self.is_about_replacing() { ", or replace it with --force" } else { "" };
        // Nothing is left to tell it to when stderr is closed too; the exit code still says it.
        let _ = writeln!(stderr, "{style}{what}:{style:#} {}{hint}", printable_lines(&self.to_string()));
    }
}

/// Why, in the words that people know; the system's own where there are no better ones.
pub(super) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => error.to_string(),
    }
}

impl From<EngineError> for Trouble {
    fn from(error: EngineError) -> Trouble {
        match error {
            EngineError::Stopped { resumes } => Trouble::Interrupted { resumes },
            error => Trouble::Engine(error),
        }
    }
}

impl From<SettingError> for Trouble {
    fn from(error: SettingError) -> Trouble {
        Trouble::Request(error.to_string())
    }
}

impl From<ScenarioError> for Trouble {
    fn from(error: ScenarioError) -> Trouble {
        Trouble::Request(error.to_string())
    }
}

impl From<SynthError> for Trouble {
    fn from(error: SynthError) -> Trouble {
        Trouble::Request(error.to_string())
    }
}

impl From<LiveError> for Trouble {
    fn from(error: LiveError) -> Trouble {
        Trouble::Request(error.to_string())
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Trouble {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Trouble::ClosedPipe } else { Trouble::Output(error) }
    }
}
