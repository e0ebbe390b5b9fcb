//! Builds: executables that turn a log into a trace. This is the only room that starts child processes.
//!
//! `BUILD replay LOG -o TRACE` is the whole contract. Whatever goes wrong in it (a crash, a hang, rubbish, a refusal)
//! makes the build untestable, with the reason and its last words; it is never a verdict about what the build plays.

mod cache;
pub mod condition;
pub mod git;
mod identity;
mod process;
mod stop;
mod strays;
mod tail;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use cache::{Cache, CacheError};
pub use stop::Stop;

use hitreg_log::memory::NeedsMemory;
use hitreg_log::store::{self, StoreError, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Digest, Trace, TraceSource};
use hitreg_netcode::replay::ReplayError;
use identity::Identity;
use process::Ended;

/// What says in the environment of hitreg's commands where their defaults are.
pub const CONFIG_VARIABLE: &str = "HITREG_CONFIG";
/// In place of a file: nowhere. Builds get this, for they are to do what they are asked and nothing else.
pub const NO_CONFIG: &str = "none";

/// How long a build may take for one log when nothing else is asked for.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// An executable that plays logs.
#[derive(Clone, Debug)]
pub struct Build {
    path: PathBuf,
    identity: Identity,
}

/// A build that is not there, or is no program.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No such file.
    #[error("{}: there is no such build", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder, or a file that may not be run.
    #[error("{}: this is {what}; a build is a program that understands `replay LOG -o TRACE`", path.display())]
    NoProgram {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It cannot be read.
    #[error("{}: it cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A build that gave nothing to be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{reason}")]
pub struct Untestable {
    /// Why, in words.
    pub reason: String,
    /// The end of what it said on stderr, line by line; empty when it said nothing.
    pub last_words: Vec<String>,
    /// The memory that this program needs for what it gave: that is no fault of the build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_memory: Option<NeedsMemory>,
}

/// What a build is asked to replay.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The log.
    pub log: &'a Path,
    /// The digest of the log's bytes.
    pub log_digest: Digest,
    /// Options beyond the contract (`--set`, `--preset`, `--mode`): only builds made with hitreg need to know them.
    pub options: &'a [String],
}

/// Runs builds, each within a time limit, and keeps their traces.
#[derive(Clone, Debug)]
pub struct Runner {
    /// How long one replay may take.
    pub time_limit: Duration,
    /// Where traces are kept; `None` keeps none.
    pub cache: Option<Cache>,
    /// Ends the builds that are running.
    pub stop: Stop,
}

impl Build {
    /// The build at a path.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read, or may not be run.
    pub fn at(path: &Path) -> Result<Build, BuildError> {
        let fail = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => BuildError::Missing { path: path.into() },
            _ => BuildError::Unreadable { path: path.into(), source },
        };
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            return Err(BuildError::NoProgram { path: path.into(), what: "a folder" });
        }
        if !process::may_be_run(&meta) {
            return Err(BuildError::NoProgram { path: path.into(), what: "a file without the right to be run" });
        }
        let identity = Identity::of(path).map_err(fail)?;
        // A bare name would be looked for in PATH, and any other is taken from where the child runs.
        let path = std::path::absolute(path).map_err(fail)?;
        Ok(Build { path, identity })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Untestable {
    pub(crate) fn because(reason: impl Into<String>) -> Untestable {
        Untestable { reason: reason.into(), last_words: Vec::new(), needs_memory: None }
    }

    /// The same, with the end of what the build said.
    pub(crate) fn saying(self, last_words: Vec<String>) -> Untestable {
        Untestable { last_words, ..self }
    }

    /// A log that this build does not replay, for this reason.
    pub(crate) fn not_replayed(error: &ReplayError) -> Untestable {
        let needs_memory = if let ReplayError::NeedsMemory(needs) = error { Some(*needs) } else { None };
        Untestable { needs_memory, ..Untestable::because(error.to_string()) }
    }

    pub(crate) fn because_of(error: impl std::error::Error) -> Untestable {
        Untestable::because(error.to_string())
    }
}

impl Runner {
    /// The trace that a build makes of a log: out of the cache, or by running it.
    ///
    /// # Errors
    /// When the build gives no trace that can be read.
    pub fn trace(&self, build: &Build, request: &Request<'_>) -> Result<Trace, Untestable> {
        Ok(self.made(build, request, store::read_regular_trace)?.0)
    }

    /// The same where it stays in its file, and the folder of that if it is not in the cache.
    ///
    /// # Errors
    /// As [`Runner::trace`].
    pub fn trace_file(
        &self,
        build: &Build,
        request: &Request<'_>,
    ) -> Result<(TraceFile, Option<TemporaryFolder>), Untestable> {
        self.made(build, request, TraceFile::open)
    }

    fn made<T: TraceSource>(
        &self,
        build: &Build,
        request: &Request<'_>,
        take: impl Fn(&Path) -> Result<T, StoreError>,
    ) -> Result<(T, Option<TemporaryFolder>), Untestable> {
        let slot = self.cache.as_ref().and_then(|cache| Some((cache, key(build, request)?)));
        // What cannot be read any more is made again.
        if let Some(trace) = slot.as_ref().and_then(|(cache, key)| take(cache.file(*key).path()).ok()) {
            return Ok((trace, None));
        }
        let folder = store::temporary_folder().map_err(no_folder)?;
        let target = folder.file("trace.hittrace");
        let path = target.path();
        let words = self.run(build, "replay", request, &[OsStr::new("-o"), path.as_os_str()])?;
        let trace = read(path, take).and_then(|trace| check_log(trace, request.log_digest));
        let trace = trace.map_err(|untestable| untestable.saying(words))?;
        if let Some((cache, key)) = slot {
            cache.put(key, path);
        }
        Ok((trace, Some(folder)))
    }

    /// A build's own run of a log, as a log at `to`: what its server sends when it is fed that input.
    ///
    /// # Errors
    /// When the build gives no log that can be read.
    pub fn rerecord(&self, build: &Build, request: &Request<'_>, to: &Path) -> Result<(), Untestable> {
        let words = self.run(build, "replay", request, &[OsStr::new("--record"), to.as_os_str()])?;
        let read = store::read_log(to).map(drop);
        read.map_err(|error| unreadable("the log that it recorded", &error).saying(words))
    }

    /// What a build writes about a log with a command of its own beyond the contract: `BUILD COMMAND LOG OPTIONS -o FILE`.
    ///
    /// # Errors
    /// When it fails, as builds do that do not know the command, or writes nothing.
    pub fn answer(&self, build: &Build, command: &str, request: &Request<'_>) -> Result<Vec<u8>, Untestable> {
        let folder = tempfile::tempdir().map_err(no_folder)?;
        let path = folder.path().join("answer");
        let words = self.run(build, command, request, &[OsStr::new("-o"), path.as_os_str()])?;
        let bytes = store::read_regular(&path);
        bytes.map_err(|error| unreadable("its answer", &error).saying(words))
    }

    /// Runs `BUILD COMMAND LOG OUTPUT OPTIONS`, and gives back its last words when it ended well.
    fn run(
        &self,
        build: &Build,
        what: &str,
        request: &Request<'_>,
        output: &[&OsStr],
    ) -> Result<Vec<String>, Untestable> {
        let log = std::path::absolute(request.log).map_err(no_folder)?;
        let mut command = Command::new(&build.path);
        command.env(CONFIG_VARIABLE, NO_CONFIG);
        command.arg(what).arg(log).args(output).args(request.options);
        let ran = process::run(command, self.time_limit, &self.stop);
        let ran = ran.map_err(|error| Untestable::because(format!("it cannot be started: {error}")))?;
        match why_untestable(&ran.ended) {
            Some(reason) => Err(Untestable::because(reason).saying(ran.last_words)),
            None => Ok(ran.last_words),
        }
    }
}

/// What the end of a process means for a build; `None` when all is well.
fn why_untestable(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Exit(0) => None,
        Ended::Exit(code @ (125 | 128)) => Some(format!("it cannot play this log (exit code {code})")),
        Ended::Exit(code) => Some(format!("it failed (exit code {code})")),
        Ended::Signal(signal) => Some(format!("it crashed ({})", process::signal_name(*signal))),
        Ended::TimeLimit(limit) => Some(format!("it was still running after {} s", limit.as_secs_f64())),
        Ended::Stopped => Some("it was stopped".to_owned()),
    }
}

fn read<T>(path: &Path, take: impl Fn(&Path) -> Result<T, StoreError>) -> Result<T, Untestable> {
    if !path.exists() {
        return Err(Untestable::because("it ended well, but wrote no trace"));
    }
    take(path).map_err(|error| unreadable("what it wrote is no trace", &error))
}

/// A file of a build that cannot be read.
fn unreadable(what: &str, error: &StoreError) -> Untestable {
    Untestable { needs_memory: error.needs_memory(), ..Untestable::because(format!("{what}: {error}")) }
}

/// Refuses a trace that says that it is of another log. Builds in other languages need not say of which it is.
fn check_log<T: TraceSource>(trace: T, log: Digest) -> Result<T, Untestable> {
    match &trace.header().log_digest[..] {
        "" => Ok(trace),
        says if *says == log.to_string() => Ok(trace),
        says => {
            let what = format!("what it wrote is the trace of another log: of {says}, and not of {log}");
            Err(Untestable::because(what))
        }
    }
}

fn no_folder(error: impl std::fmt::Display) -> Untestable {
    Untestable::because(format!("there is no place to run it in: {error}"))
}

/// What a build makes of a log is known by the build's identity and name, the log's bytes, and the options.
fn key(build: &Build, request: &Request<'_>) -> Option<Digest> {
    let Identity::Content(content) = build.identity else { return None };
    let name = build.path.file_name().map(OsString::from).unwrap_or_default();
    let mut text = format!("trace\0{content}\0{}\0{}\0", name.display(), request.log_digest);
    for option in request.options {
        text.push_str(option);
        text.push('\0');
    }
    Some(Digest::of_bytes(text.as_bytes()))
}
