//! Errors and notes of the command line, on stderr. Each message names the file and says what to do.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Once;

use super::CommandOutcome;
use crate::corpus::CorpusShare;
use crate::engine::{Engine, EngineError, Games};
use crate::import::ImportFileError;
use crate::info::passed_over;
use crate::memory::BadMemoryLimit;
use crate::record::{GapRecord, SessionHeader};
use crate::report::figures::counted;
use crate::report::page::{printable, printable_lines};
use crate::store::shown::naming_file;
use crate::store::{StoreError, StoreErrorKind, is_standard_stream, reason};
use crate::units::ClockTime;

/// Why a command failed. The exit code is 128, 125 for a side without a trace, or 130 for an interruption.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// A file cannot be opened, written or renamed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of the engine.
    #[error(transparent)]
    Engine(EngineError),
    /// A recording cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportFileError),
    /// The contents of a file are invalid.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        what: Box<dyn Error + Send + Sync>,
    },
    /// A request cannot be satisfied.
    #[error("{0}")]
    Request(String),
    /// A setting is unknown, or its value is invalid.
    #[error(transparent)]
    Setting(#[from] crate::settings::SettingError),
    /// A scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] crate::session::scenario::ScenarioError),
    /// Bots cannot play the session.
    #[error(transparent)]
    Synth(#[from] crate::session::SynthError),
    /// A session over UDP failed.
    #[error(transparent)]
    Live(#[from] crate::live::LiveError),
    /// The reader of the output closed the pipe.
    #[error("the output was closed before the end, for example by `| head`")]
    ClosedPipe,
    /// The command was interrupted.
    #[error("interrupted{}", if *resumes { ": run the same command again to resume" } else { "" })]
    Interrupted {
        /// Whether the same command resumes from here.
        resumes: bool,
    },
    /// A share of a corpus has no logs, because there are more shares than logs.
    #[error("--partition slice:{}/{} is empty: there {} {}", share.number(), share.count(), if *logs == 1 { "is" } else { "are" }, counted(*logs as u64, "log"))]
    EmptyShare {
        /// The share.
        share: CorpusShare,
        /// How many logs the corpus has.
        logs: usize,
    },
    /// The output cannot be written.
    #[error("standard output cannot be written: {}", reason(.0))]
    Output(#[source] std::io::Error),
}

impl CommandError {
    /// An error about a file.
    pub(super) fn file(path: &Path, what: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        CommandError::File { path: path.to_owned(), what: what.into() }
    }

    /// A request cannot be satisfied.
    pub(super) fn request(why: impl ToString) -> CommandError {
        CommandError::Request(why.to_string())
    }

    /// Whether the error concerns every log of a corpus, because it is about the options or the output.
    pub(super) fn is_about_all_logs(&self) -> bool {
        match self {
            CommandError::Engine(error) => matches!(error, EngineError::Setting(_)),
            CommandError::Setting(_)
            | CommandError::ClosedPipe
            | CommandError::Interrupted { .. }
            | CommandError::Output(_) => true,
            _ => false,
        }
    }

    /// The exit code of the command.
    pub(super) fn outcome(&self) -> CommandOutcome {
        match self {
            CommandError::Interrupted { .. } => CommandOutcome::Interrupted,
            CommandError::EmptyShare { .. } => CommandOutcome::Done,
            CommandError::Engine(EngineError::Missing(_)) => CommandOutcome::Untestable,
            CommandError::Engine(EngineError::Replay { source, .. }) if source.is_about_judging() => {
                CommandOutcome::Untestable
            }
            _ => CommandOutcome::Trouble,
        }
    }

    /// Prints the error on stderr, or a note if nothing failed. A closed output pipe is not reported, because it is normal
    /// for `| head`; only the exit code shows it.
    pub(super) fn print(&self) {
        if self.outcome() == CommandOutcome::Done {
            return self.print_note();
        }
        let red = anstyle::AnsiColor::Red.on_default().bold();
        self.print_as("error", red);
    }

    /// Prints a note on stderr about an error that was already reported.
    pub(super) fn print_note(&self) {
        self.print_as("note", anstyle::Style::new().bold());
    }

    /// Whether a file is in the way that `--force` would replace.
    fn is_about_replacing(&self) -> bool {
        match self {
            CommandError::Store(error) | CommandError::Engine(EngineError::Store(error)) => {
                matches!(error.kind, StoreErrorKind::WouldReplace(_))
            }
            _ => false,
        }
    }

    /// Whether the error is about a file to write.
    fn is_about_output(&self) -> bool {
        match self {
            CommandError::Store(error) | CommandError::Engine(EngineError::Store(error)) => error.is_about_output(),
            _ => false,
        }
    }

    fn print_as(&self, what: &str, style: anstyle::Style) {
        match self {
            CommandError::ClosedPipe => return,
            CommandError::Store(StoreError { path, kind: StoreErrorKind::ClosedPipe }) if is_standard_stream(path) => {
                return;
            }
            _ => {}
        }
        use std::io::Write;
        let mut stderr = anstream::stderr().lock();
        // The library's error cannot name this option.
        let hint = if self.is_about_replacing() { ", or replace it with --force" } else { "" };
        let message = self.to_string();
        let is_of_file = matches!(
            self,
            CommandError::Store(_) | CommandError::Engine(_) | CommandError::Import(_) | CommandError::File { .. }
        );
        let message = match message.split_once(": ").filter(|_| is_of_file) {
            None => message,
            Some(("-", what)) if self.is_about_output() => format!("standard output: {what}"),
            Some(("-", what)) => naming_file(&format!("standard input: {what}"), Path::new("-")),
            Some((file, _)) => naming_file(&message, Path::new(file)),
        };
        // If stderr is closed, only the exit code reports the error.
        let _ = writeln!(stderr, "{style}{what}:{style:#} {}{hint}{}", printable_lines(&message), self.files_nearby());
    }

    /// What to use instead of a file that does not exist: the files of its kind in its folder.
    fn files_nearby(&self) -> String {
        const NAMES_MAX: usize = 4;
        let path = match self {
            CommandError::Store(StoreError { path, kind: StoreErrorKind::NotFound })
            | CommandError::Engine(EngineError::Store(StoreError { path, kind: StoreErrorKind::NotFound }))
            | CommandError::Import(ImportFileError::Store(StoreError { path, kind: StoreErrorKind::NotFound })) => path,
            _ => return String::new(),
        };
        let is_pattern = path.to_string_lossy().contains(['*', '?', '[']);
        let pattern =
            if is_pattern { ". The shell did not expand this pattern: it is quoted, or no file matches" } else { "" };
        let extension = path.extension().unwrap_or("hitlog".as_ref());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|file| file.extension() == Some(extension));
        let mut names: Vec<String> =
            paths.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
        names.sort_unstable();
        let rest = if names.len() > NAMES_MAX { ", ..." } else { "" };
        names.truncate(NAMES_MAX);
        if !names.is_empty() {
            return format!("{pattern}; this folder has {}{rest}", printable_lines(&names.join(", ")));
        }
        match (is_pattern, folder.is_dir()) {
            (true, _) => pattern.to_owned(),
            (false, true) => {
                format!(
                    "; its folder has no file with the extension .{}",
                    printable_lines(&extension.to_string_lossy())
                )
            }
            (false, false) => format!("; its folder {} does not exist", printable_lines(&folder.to_string_lossy())),
        }
    }
}

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> CommandError {
        match error {
            EngineError::Stopped { resumes } => CommandError::Interrupted { resumes },
            error => CommandError::Engine(error),
        }
    }
}

impl From<BadMemoryLimit> for CommandError {
    fn from(error: BadMemoryLimit) -> CommandError {
        CommandError::request(error.to_string())
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            CommandError::ClosedPipe
        } else {
            CommandError::Output(error)
        }
    }
}

/// An engine that prints a note about the parts of a log that this build skips.
pub(super) fn engine_with_notes(games: &Games) -> Engine<'_> {
    Engine { on_read: &note_passed_over, ..Engine::new(games) }
}

/// Notes the parts of a log that this build does not know, because the results lack them.
pub(super) fn note_passed_over(path: &Path, header: &SessionHeader) {
    let what = passed_over(header);
    if !what.is_empty() {
        note(path, &format!("skipped, because this build does not know it: {}", what.join(", ")));
    }
}

/// A message about the first missing part of a session; `None` if it is complete.
pub(super) fn describe_gap(gap: Option<&GapRecord>) -> Option<String> {
    let [from, to] = gap.map(|gap| [gap.from, gap.to].map(ClockTime))?;
    Some(format!("a part is missing, from {from} to {to}: results after it do not match the played session"))
}

/// Notes that a part of a session is missing, because later results do not match the played session.
pub(super) fn note_gap(path: &Path, gap: Option<&GapRecord>) {
    if let Some(what) = describe_gap(gap) {
        note(path, &what);
    }
}

fn note(path: &Path, what: &str) {
    print_note(&format!("{}: {what}", path.display()));
}

fn print_note(what: &str) {
    use std::io::Write;
    // A closed stderr does not stop the command.
    let _ = writeln!(anstream::stderr(), "{}", printable(&format!("note: {what}")));
}

/// Notes once that traces come from the cache, because a build may read files that the cache does not know.
pub(super) fn note_reuse() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| print_note("traces come from the cache: if a build reads other files, add --no-cache"));
}

/// Notes the missing parts of replayed logs.
pub(super) fn note_gaps(gaps: &[(PathBuf, GapRecord)]) {
    gaps.iter().for_each(|(path, gap)| note_gap(path, Some(gap)));
}
