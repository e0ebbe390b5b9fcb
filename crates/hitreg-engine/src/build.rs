//! Builds: executables that turn a log into a trace. This is the only module that starts child processes.
//!
//! The contract is `BUILD replay LOG -o TRACE`. Any failure (a crash, a hang, an invalid trace, a refusal) makes the
//! build untestable. The result then has the reason and the last lines of the build's stderr. A failure is never a
//! verdict about the build's behaviour. A build that refuses a log because of the memory limit is no failure of the
//! build: [`UntestableBuild::needs_memory`] has the need.

pub mod condition;
pub mod git;
mod process;

pub(crate) use process::ProcessEnd;
pub use process::StopSignal;

use std::ffi::{OsStr, OsString};
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hitreg_log::memory::{MemoryLimit, NeedsMemory};
use hitreg_log::record::{LogContents, PlayerRecords, Session, SessionHeader};
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::{self, FileIdentity, OwnFolder, StoreError, Target, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Digest, Trace, TraceHeader, TraceSource};
use hitreg_netcode::replay::{ReplayError, ReplayFindings};
use process::ProcessResult;

/// The environment variable with the path of the config file, which holds the defaults of hitreg's commands.
pub const CONFIG_VARIABLE: &str = "HITREG_CONFIG";
/// The value of [`CONFIG_VARIABLE`] for "no config file". hitreg sets it for builds, so that a config file cannot
/// change what they do.
pub const NO_CONFIG: &str = "none";

/// The default time limit for one log.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The option that sets the time limit for one log.
pub(crate) const TIME_LIMIT_OPTION: &str = "--time-limit";

/// An executable that replays logs.
#[derive(Clone, Debug)]
pub struct Build {
    path: PathBuf,
}

/// The error for a path without a usable build.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct BuildError {
    path: PathBuf,
    /// What is there instead, and what to do.
    what: String,
}

/// The error for a build without a usable result.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{reason}")]
pub struct UntestableBuild {
    /// The reason, as a text.
    pub reason: String,
    /// The last lines of its stderr; empty if it wrote none.
    pub last_words: Vec<String>,
    /// The memory that this program or the build would need, if it exceeds the limit. In this case the build itself did
    /// not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_memory: Option<NeedsMemory>,
    /// Whether the build itself refused the log: exit code 125.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refusal: bool,
    /// The side of a session that the log holds, if the log is the reason and not the build.
    #[serde(skip)]
    pub one_sided: Option<OneSidedLog>,
    /// Whether this machine, and not the build, is the reason: a full disk, or too many processes to start one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_machine: bool,
}

/// What a build should replay.
#[derive(Clone, Debug)]
pub struct BuildRequest<'a> {
    /// The log.
    pub log: &'a Path,
    /// The digest of the log's bytes.
    pub log_digest: Digest,
    /// Options beyond the contract (`--set`, `--preset`, `--mode`). Only builds made with hitreg need to support them.
    pub options: &'a [String],
    /// The side of a session that the log holds, if it lacks the other sides.
    pub side: Option<OneSidedLog>,
}

impl<'a> BuildRequest<'a> {
    /// The request to replay the log of a session that is in memory.
    pub(crate) fn of(log: &'a Path, log_digest: Digest, session: &Session) -> BuildRequest<'a> {
        BuildRequest { log, log_digest, options: &[], side: OneSidedLog::of(session) }
    }

    /// Rejects a log that no build can replay.
    fn check_log(&self) -> Result<(), UntestableBuild> {
        match self.side {
            Some(OneSidedLog::Server) => Err(UntestableBuild::one_sided(OneSidedLog::Server)),
            Some(OneSidedLog::Client) | None => Ok(()),
        }
    }

    /// Rejects the trace of a client's log that claims to hold the server.
    fn check_trace(&self, trace: &TraceHeader) -> Result<(), UntestableBuild> {
        match self.side {
            Some(side) if !trace.is_open() => Err(UntestableBuild::one_sided(side)),
            _ => Ok(()),
        }
    }
}

/// Runs builds, each within a time limit, and caches their traces.
#[derive(Clone, Debug)]
pub struct BuildRunner {
    /// The time limit for one replay.
    pub time_limit: Duration,
    /// The cache of traces; `None` caches nothing.
    pub cache: Option<Cache>,
    /// Stops the running builds.
    pub stop: StopSignal,
    /// The most memory for a trace or log that a build writes.
    pub memory: MemoryLimit,
}

impl Build {
    /// Opens the build at a path.
    ///
    /// # Errors
    /// When the file does not exist, cannot be read or may not be executed.
    pub fn at(path: &Path) -> Result<Build, BuildError> {
        let no_build = |what: String| BuildError { path: path.into(), what };
        let no_program =
            |what: &str| no_build(format!("this is {what}: give a program that runs `replay LOG -o TRACE`"));
        let fail = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                no_build("there is no such build: give the path of an executable, without arguments".to_owned())
            }
            _ => no_build(format!("cannot be read: {error}")),
        };
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            return Err(no_program("a folder"));
        }
        if !process::is_executable(&meta) {
            return Err(no_program("a file that is not executable"));
        }
        // An absolute path, because a bare name would be searched in PATH and a relative path depends on the child's
        // folder.
        let path = std::path::absolute(path).map_err(fail)?;
        Ok(Build { path })
    }

    /// The digest of the files that determine the build; `None` if its files do not determine it, as with a script, or
    /// cannot be read. The program reads each file once, unless it changes.
    pub fn digest(&self) -> Option<Digest> {
        identity(&self.path).ok().flatten()
    }

    /// The absolute path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl UntestableBuild {
    pub(crate) fn because(reason: impl Into<String>) -> UntestableBuild {
        UntestableBuild { reason: reason.into(), ..UntestableBuild::default() }
    }

    /// The result for a log that holds one side of a session.
    fn one_sided(side: OneSidedLog) -> UntestableBuild {
        UntestableBuild { one_sided: Some(side), ..UntestableBuild::because_of(side) }
    }

    /// The reason, with the last line of the build's stderr.
    pub(crate) fn detail(&self) -> String {
        with_last_output(&self.reason, &self.last_words)
    }

    /// Adds the last lines of the build's stderr.
    pub(crate) fn with_last_words(self, last_words: Vec<String>) -> UntestableBuild {
        UntestableBuild { last_words, ..self }
    }

    /// The result for a log that needs more memory than the limit.
    fn over_limit(needs: NeedsMemory) -> UntestableBuild {
        UntestableBuild { needs_memory: Some(needs), ..UntestableBuild::because(needs.to_string()) }
    }

    /// The result for a log that this program cannot replay.
    pub(crate) fn not_replayed(error: &ReplayError) -> UntestableBuild {
        let needs_memory = if let ReplayError::NeedsMemory(needs) = error { Some(*needs) } else { None };
        UntestableBuild { needs_memory, ..UntestableBuild::because(error.to_string()) }
    }

    pub(crate) fn because_of(error: impl std::error::Error) -> UntestableBuild {
        UntestableBuild::because(error.to_string())
    }
}

impl BuildRunner {
    /// For replays by this program alone: no build runs.
    pub fn own(memory: MemoryLimit) -> BuildRunner {
        BuildRunner { time_limit: TIME_LIMIT, cache: None, stop: StopSignal::default(), memory }
    }

    /// Returns a build's trace of a log, from the cache or by running the build.
    ///
    /// # Errors
    /// When the build gives no readable trace.
    pub fn trace(&self, build: &Build, request: &BuildRequest<'_>) -> Result<Trace, UntestableBuild> {
        Ok(self.take_trace(build, request, |path| store::read_regular_trace(self.memory, path))?.0)
    }

    /// Returns a build's trace as [`BuildRunner::trace`] does, but leaves the trace in its file. If the file is not in the
    /// cache, the result includes its temporary folder.
    ///
    /// # Errors
    /// Under the conditions of [`BuildRunner::trace`].
    pub fn trace_file(
        &self,
        build: &Build,
        request: &BuildRequest<'_>,
    ) -> Result<(TraceFile, Option<TemporaryFolder>), UntestableBuild> {
        self.take_trace(build, request, |path| {
            store::check_regular(path)?;
            TraceFile::open_checked(path)
        })
    }

    fn take_trace<T: TraceSource>(
        &self,
        build: &Build,
        request: &BuildRequest<'_>,
        take: impl Fn(&Path) -> Result<T, StoreError>,
    ) -> Result<(T, Option<TemporaryFolder>), UntestableBuild> {
        request.check_log()?;
        let slot = self.cache.as_ref().and_then(|cache| Some((cache, key(build, request)?)));
        // A cached trace that cannot be read is made again.
        if let Some((cache, key)) = &slot
            && let Ok(trace) = take(cache.file(*key).path())
        {
            request.check_trace(trace.header())?;
            (cache.on_reuse)();
            return Ok((trace, None));
        }
        let folder = store::temporary_folder().map_err(no_folder)?;
        let target = folder.file("trace.hittrace");
        let path = target.path();
        let words = self.run(build, "replay", request, &[OsStr::new("-o"), path.as_os_str()])?;
        let trace = read(path, take).and_then(|trace| check_log(trace, request.log_digest));
        let trace = trace.map_err(|untestable| untestable.with_last_words(words))?;
        request.check_trace(trace.header())?;
        if let Some((cache, key)) = slot {
            cache.put(key, path);
        }
        Ok((trace, Some(folder)))
    }

    /// Writes a build's own run of a log to `to`, as a log: what its server sends for the recorded input.
    ///
    /// # Errors
    /// When the build gives no readable log.
    pub fn rerecord(&self, build: &Build, request: &BuildRequest<'_>, to: &Path) -> Result<(), UntestableBuild> {
        let words = self.run(build, "replay", request, &[OsStr::new("--record"), to.as_os_str()])?;
        let read = store::read_log_within(self.memory, to).map(drop);
        read.map_err(|error| unreadable("the log that it recorded", &error).with_last_words(words))
    }

    /// Runs one of a build's commands beyond the contract, and returns what it writes:
    /// `BUILD COMMAND LOG OPTIONS -o FILE`.
    ///
    /// # Errors
    /// When the build fails, for example because it does not know the command, or writes no file.
    pub fn answer(&self, build: &Build, command: &str, request: &BuildRequest<'_>) -> Result<Vec<u8>, UntestableBuild> {
        let folder = store::temporary_folder().map_err(no_folder)?;
        let target = folder.file("answer");
        let words = self.run(build, command, request, &[OsStr::new("-o"), target.path().as_os_str()])?;
        let bytes = store::read_regular(target.path());
        bytes.map_err(|error| unreadable("its answer", &error).with_last_words(words))
    }

    /// Runs a build with any arguments, and returns how it ended.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn run_to_end(
        &self,
        build: &Build,
        args: &[&OsStr],
        limit: Duration,
    ) -> Result<ProcessEnd, UntestableBuild> {
        let mut command = Command::new(&build.path);
        command.env(CONFIG_VARIABLE, NO_CONFIG).args(args);
        Ok(process::run(command, limit, &self.stop).map_err(|error| not_started("it", &error))?.ended)
    }

    /// Runs `BUILD COMMAND LOG OUTPUT OPTIONS`, and returns the last lines of its stderr on success.
    fn run(
        &self,
        build: &Build,
        what: &str,
        request: &BuildRequest<'_>,
        output: &[&OsStr],
    ) -> Result<Vec<String>, UntestableBuild> {
        request.check_log()?;
        let log = std::path::absolute(request.log).map_err(no_folder)?;
        let mut command = Command::new(&build.path);
        command.env(CONFIG_VARIABLE, NO_CONFIG);
        command.arg(what).arg(log).args(output).args(request.options);
        let ran = process::run(command, self.time_limit, &self.stop);
        let ran = ran.map_err(|error| not_started("it", &error))?;
        let ProcessResult { ended, last_words } = ran;
        let Some(reason) = why_untestable(&ended, TIME_LIMIT_OPTION) else { return Ok(last_words) };
        // A build made with hitreg prints why its exit code is 128.
        let output = if ended == ProcessEnd::Exit(128) { &last_words[..] } else { &[] };
        let full = output.iter().find(|line| line.contains(store::DISK_FULL)).cloned();
        let untestable = match output.iter().find_map(|line| NeedsMemory::in_line(line)) {
            Some(needs) => UntestableBuild::over_limit(needs),
            None => UntestableBuild {
                is_refusal: ended == ProcessEnd::Exit(125),
                is_of_machine: full.is_some(),
                ..UntestableBuild::because(full.unwrap_or(reason))
            },
        };
        Err(untestable.with_last_words(last_words))
    }
}

/// Why the end of a process makes a build untestable; `None` on success. `limit_option` sets its time limit.
pub(crate) fn why_untestable(ended: &ProcessEnd, limit_option: &str) -> Option<String> {
    match ended {
        ProcessEnd::Exit(0) => None,
        ProcessEnd::Exit(code @ (125 | 128)) => Some(format!("cannot play this log (exit code {code})")),
        ProcessEnd::Exit(code) => Some(format!("failed (exit code {code})")),
        ProcessEnd::Signal(signal) => Some(format!("crashed ({})", process::signal_name(*signal))),
        ProcessEnd::TimeLimit(limit) => {
            Some(format!("still running after {} s; {limit_option} allows more", limit.as_secs_f64()))
        }
        ProcessEnd::Stopped => Some("stopped".to_owned()),
    }
}

fn read<T>(path: &Path, take: impl Fn(&Path) -> Result<T, StoreError>) -> Result<T, UntestableBuild> {
    if !path.exists() {
        return Err(UntestableBuild::because("exited 0 but wrote no trace: a build must run `replay LOG -o TRACE`"));
    }
    take(path).map_err(|error| unreadable("wrote a file that is not a trace", &error))
}

/// A file of a build that cannot be read. The file is temporary, so its damage matters, and neither its path nor its
/// recovery.
fn unreadable(what: &str, error: &StoreError) -> UntestableBuild {
    match error.needs_memory() {
        Some(needs) => UntestableBuild::over_limit(needs),
        None => UntestableBuild::because(format!("{what}: {}", error.damage())),
    }
}

/// Rejects a trace that names another log. Builds in other languages may leave the log's digest empty.
fn check_log<T: TraceSource>(trace: T, log: Digest) -> Result<T, UntestableBuild> {
    match &trace.header().log_digest[..] {
        "" => Ok(trace),
        digest if *digest == log.to_string() => Ok(trace),
        digest => {
            let what = format!("wrote the trace of another log: {digest}, not {log}");
            Err(UntestableBuild::because(what))
        }
    }
}

fn no_folder(error: impl std::fmt::Display) -> UntestableBuild {
    let untestable = UntestableBuild::because(format!("no temporary folder can be created: {error}"));
    UntestableBuild { is_of_machine: true, ..untestable }
}

/// The result of a build or a build command that the system does not start.
fn not_started(what: &str, error: &std::io::Error) -> UntestableBuild {
    let untestable = UntestableBuild::because(format!("{what} cannot be started: {error}"));
    UntestableBuild { is_of_machine: is_of_machine(error), ..untestable }
}

/// Whether a process was not started because of this machine: it has too many processes or open files, or too little
/// memory.
fn is_of_machine(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    let is_full = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory | ErrorKind::StorageFull);
    is_full || process::has_too_many_files(error)
}

/// The cache key of a trace: the build's identity and file name, the log's bytes, and the options. `None` if the build
/// cannot be cached.
fn key(build: &Build, request: &BuildRequest<'_>) -> Option<Digest> {
    let content = build.digest()?;
    let name = build.path.file_name().map(OsString::from).unwrap_or_default();
    let mut text = format!("trace\0{content}\0{}\0{}\0", name.display(), request.log_digest);
    for option in request.options {
        text.push_str(option);
        text.push('\0');
    }
    Some(Digest::of_bytes(text.as_bytes()))
}

/// The size limit for the libraries beside a build. A build with more is never cached.
const LIBRARIES_BYTES_MAX: u64 = 256 << 20;
/// Environment variables that choose the libraries of a program.
const LOADERS: [&str; 5] = ["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"];

/// The digest of the build in a file: of the executable, the shared libraries in its folder, and the library search
/// variables. `None` if these do not determine the build: it is a script, or has too many libraries.
#[expect(clippy::disallowed_methods, reason = "the environment says where a program's libraries are")]
fn identity(path: &Path) -> Result<Option<Digest>, Error> {
    let Some(program) = digest_of_file(path)? else { return Ok(None) };
    let mut all = program.to_string();
    for loader in LOADERS {
        let value = std::env::var_os(loader).unwrap_or_default();
        all.push_str(&format!(" {}", Digest::of_bytes(value.as_encoded_bytes())));
    }
    let mut left = LIBRARIES_BYTES_MAX;
    for library in libraries_beside(path)? {
        let Some(less) = left.checked_sub(std::fs::metadata(&library)?.len()) else { return Ok(None) };
        left = less;
        let name = library.file_name().unwrap_or_default().as_encoded_bytes();
        let Some(content) = digest_of_file(&library)? else { return Ok(None) };
        all.push_str(&format!(" {} {content}", Digest::of_bytes(name)));
    }
    Ok(Some(Digest::of_bytes(all.as_bytes())))
}

/// The digest of a file's bytes; `None` for a script. A file that has not changed since is not read again.
fn digest_of_file(path: &Path) -> Result<Option<Digest>, Error> {
    static KNOWN: Mutex<SortedMap<PathBuf, (FileIdentity, Option<Digest>)>> = Mutex::new(SortedMap::new());
    // The lock is held while the file is read, so that another thread does not read it too.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let identity = FileIdentity::of(path);
    if let Some((of, digest)) = known.get(path)
        && identity == Some(*of)
    {
        return Ok(*digest);
    }
    let bytes = std::fs::read(path)?;
    let digest = (!bytes.starts_with(b"#!")).then(|| Digest::of_bytes(&bytes));
    if let Some(identity) = identity {
        known.insert(path.to_owned(), (identity, digest));
    }
    Ok(digest)
}

/// The shared libraries in the executable's folder, in the order of their names.
fn libraries_beside(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut libraries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_library(&entry.file_name()) && entry.path().is_file() {
            libraries.push(entry.path());
        }
    }
    libraries.sort_unstable();
    Ok(libraries)
}

/// Whether a file is a shared library: `libgame.so`, `libgame.so.3`, `game.dll`, `libgame.dylib`.
fn is_library(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    [".so", ".dll", ".dylib"].iter().any(|ending| name.ends_with(ending)) || name.contains(".so.")
}

/// Adds the last line that a build wrote to stderr to a reason.
pub(crate) fn with_last_output(reason: &str, last_words: &[String]) -> String {
    let last = last_words.last().map_or(String::new(), |last| format!("; last output: {last}"));
    format!("{reason}{last}")
}

/// A log that holds one side of a session, and lacks what a closed loop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OneSidedLog {
    /// The server's log, without usercmds of all or some players.
    #[error(
        "this is the server's side of a session, which lacks usercmds: merge all sides with `hitreg merge` first. If no client sent any, there is nothing to replay"
    )]
    Server,
    /// One client's log. A build can only replay it in open loop.
    #[error("this is one client's side of a session, without the server: merge all sides with `hitreg merge` first")]
    Client,
}

impl OneSidedLog {
    /// Returns the missing side of a log in memory; `None` if a build can replay the log in closed loop.
    pub fn of(session: &Session) -> Option<OneSidedLog> {
        OneSidedLog::of_header(&session.header, session.players.iter().any(PlayerRecords::has_usercmds))
    }

    /// Returns the missing side of a log that a build replayed with this result. A build may run bots without usercmds. If
    /// no state agrees from the first usercmd of a player on, and the server's log lacks all of them, no build can replay
    /// it.
    pub fn of_replayed(session: &Session, ran: &ReplayFindings) -> Option<OneSidedLog> {
        let differs_from = ran.first_difference.map(|difference| difference.tick)?;
        let mut lacking = session.players.iter().filter_map(PlayerRecords::lacks_usercmds_from);
        let is_lacking = session.header.holds() == LogContents::Server && lacking.any(|from| differs_from <= from);
        is_lacking.then_some(OneSidedLog::Server)
    }

    /// Returns the missing side of a log with this header.
    pub(crate) fn of_header(header: &SessionHeader, has_usercmds: bool) -> Option<OneSidedLog> {
        match (header.holds(), header.side) {
            (LogContents::Server, _) if !has_usercmds => Some(OneSidedLog::Server),
            (LogContents::Clients, Some(_)) => Some(OneSidedLog::Client),
            _ => None,
        }
    }
}

/// The size limit of a cache; the oldest traces are removed first.
const CACHE_BYTES_MAX: u64 = 1 << 30;

/// A folder of cached traces.
#[derive(Clone)]
pub struct Cache {
    folder: OwnFolder,
    /// Called when a trace comes from the cache.
    on_reuse: Arc<dyn Fn() + Send + Sync>,
}

hitreg_log::partial_debug!(Cache { folder });

/// The error for a cache folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: traces cannot be cached here ({source}): name another folder with --cache, or use --no-cache", folder.display())]
pub struct CacheError {
    folder: PathBuf,
    source: std::io::Error,
}

impl Cache {
    /// Opens the cache in a folder, and creates the folder if needed. Removes the oldest traces if the cache is larger
    /// than 1 GiB. `on_reuse` is called when a trace comes from the cache.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(folder: &Path, on_reuse: impl Fn() + Send + Sync + 'static) -> Result<Cache, CacheError> {
        let traces = OwnFolder::open(&folder.join("traces"));
        let folder = traces.map_err(|source| CacheError { folder: folder.to_owned(), source })?;
        let cache = Cache { folder, on_reuse: Arc::new(on_reuse) };
        cache.forget_oldest(CACHE_BYTES_MAX);
        Ok(cache)
    }

    /// The default folder: `$XDG_CACHE_HOME/hitreg`, `~/.cache/hitreg`, or a folder in the system's temporary folder.
    /// A home folder that does not exist is not created.
    #[expect(clippy::disallowed_methods, reason = "the environment says where caches are")]
    pub fn usual_folder() -> PathBuf {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").filter(|home| home.is_dir()).map(|home| home.join(".cache"));
        absolute("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("hitreg")
    }

    /// Stores a trace. A failure is ignored: the next run only has to make the trace again.
    pub(crate) fn put(&self, key: Digest, trace: &Path) {
        if let Ok(mut from) = store::open(trace) {
            let _ = store::save(&self.file(key), |out| Ok(std::io::copy(&mut from, out).map(drop)?));
        }
    }

    pub(crate) fn file(&self, key: Digest) -> Target {
        self.folder.file(&format!("{key}.hittrace"))
    }

    fn forget_oldest(&self, most_bytes: u64) {
        let Ok(entries) = std::fs::read_dir(self.folder.path()) else { return };
        let kept = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let meta = entry.metadata().ok()?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path(), meta.len()))
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, _, length)| length).sum();
        for (_, path, length) in kept {
            if bytes <= most_bytes {
                break;
            }
            // Another process may have removed it already.
            let _ = std::fs::remove_file(path);
            bytes -= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_beside_a_program_is_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (game, library) = (folder.path().join("game"), folder.path().join("libgame.so.2"));
        std::fs::write(&game, "\x7fELF").unwrap();
        let alone = identity(&game).unwrap();
        assert!(alone.is_some());
        std::fs::write(folder.path().join("notes.txt"), "not loaded").unwrap();
        assert_eq!(identity(&game).unwrap(), alone);
        std::fs::write(&library, "one").unwrap();
        let one = identity(&game).unwrap();
        std::fs::write(&library, "other").unwrap();
        let two = identity(&game).unwrap();
        assert!(alone != one && one != two && two != alone, "{alone:?} {one:?} {two:?}");
        std::fs::write(&game, "#!/bin/sh").unwrap();
        assert_eq!(identity(&game).unwrap(), None);
    }

    #[test]
    fn a_file_is_read_again_only_if_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let game = folder.path().join("game");
        let write = |bytes: &str| {
            std::fs::write(&game, bytes).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(&game).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
            digest_of_file(&game).unwrap().unwrap()
        };
        let [first, same, longer] = ["one", "two", "three"].map(write);
        assert_eq!([first, same, longer], [b"one", b"one", &b"three"[..]].map(Digest::of_bytes));
    }

    #[cfg(unix)]
    #[test]
    fn too_many_open_files_are_no_fault_of_a_build() {
        let [denied, too_many] = [rustix::io::Errno::ACCESS, rustix::io::Errno::MFILE].map(Error::from);
        assert_eq!([&denied, &too_many].map(is_of_machine), [false, true]);
    }

    #[expect(clippy::disallowed_methods, reason = "the age of a file is about real time")]
    #[test]
    fn the_oldest_entries_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), || {}).unwrap();
        for (n, age_s) in [(1u128, 30), (2, 20), (3, 10)] {
            let file = cache.file(Digest(n));
            let path = file.path();
            std::fs::write(path, [0u8; 100]).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age_s)).unwrap();
        }
        cache.forget_oldest(250);
        let there = [1u128, 2, 3].map(|n| cache.file(Digest(n)).path().exists());
        assert_eq!(there, [false, true, true]);
    }
}
