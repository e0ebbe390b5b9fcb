//! The outputs of a command: which files it may write, and how it writes whole files.
//!
//! Every output goes through a [`Target`]. A target comes from [`Targets`], which knows the command's inputs, or from a
//! folder that hitreg owns. No command can therefore skip the checks.
//!
//! A target is created before the work begins, so that a refusal comes immediately. It is checked again before the file
//! is replaced.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::folder::{UnnamedFile, anonymous_file};
use super::input::stream_file;
use super::{READ_AHEAD, StoreError, StoreErrorKind, WatchedInputs, is_standard_stream};
use crate::log::{self, FileKind, WriteError, WriterOptions};
use crate::record::Session;
use crate::sorted::SortedSet;
use crate::trace::Trace;
use crate::trace::schema::TableSchema;

/// The kind of an output. Only a file of the same kind is ever replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A recording.
    Log,
    /// The output of a replay.
    Trace,
    /// The expected outcome beside a log.
    Golden,
    /// A report for CI systems.
    Junit,
    /// Rows as CSV or JSONL, with these columns in this order. They may have others, too.
    Table(Vec<String>),
    /// Rows of a trace's table as CSV or JSONL. Only a table with the same columns is of the same kind. Optional columns
    /// do not count.
    TraceTable {
        /// The name of the table.
        name: String,
        /// The names of its columns.
        columns: Vec<String>,
    },
    /// A manual page.
    Manual,
    /// A drawing of `why`.
    Svg,
    /// A table in a Parquet file.
    Parquet,
    /// Events for Perfetto.
    Events,
    /// A page of `report`.
    Page,
    /// A summary for a CI system.
    Markdown,
    /// The answer to a request of another process, written only where no file exists.
    Answer,
}

/// The writer that a Parquet file of hitreg names in its last bytes. The format has no other sign of its own.
pub const PARQUET_WRITER: &str = "hitreg version ";

/// The outputs of a command.
#[derive(Debug, Default)]
pub struct Targets {
    inputs: Arc<[PathBuf]>,
    watched: WatchedInputs,
    may_replace_recordings: bool,
    given: Mutex<SortedSet<PathBuf>>,
}

/// An output path that is free, or holds a file that may be replaced.
#[derive(Clone, Debug)]
pub struct Target {
    path: PathBuf,
    guard: Option<Guard>,
    /// Whether the file must survive a power failure.
    is_lasting: bool,
}

/// The checks of a target.
#[derive(Clone, Debug)]
struct Guard {
    kind: FileType,
    inputs: Arc<[PathBuf]>,
    watched: WatchedInputs,
    may_replace_recordings: bool,
}

impl Targets {
    /// Creates the targets of a command that reads `inputs`. They replace no logs and traces.
    pub fn new(inputs: impl IntoIterator<Item = PathBuf>) -> Targets {
        Targets { inputs: inputs.into_iter().collect(), ..Targets::default() }
    }

    /// Also replaces logs and traces.
    #[must_use]
    pub fn replacing_recordings(self) -> Targets {
        Targets { may_replace_recordings: true, ..self }
    }

    /// Also refuses to write after an input changed.
    #[must_use]
    pub fn watching(self, watched: WatchedInputs) -> Targets {
        Targets { watched, ..self }
    }

    /// Adds inputs, such as the logs in a folder that the command reads.
    pub fn add_inputs(&mut self, inputs: &[PathBuf]) {
        self.inputs = self.inputs.iter().chain(inputs).cloned().collect();
    }

    /// Returns a target for a file of this kind.
    ///
    /// # Errors
    /// When the path cannot be written, or is an input of the command (by any spelling or link) or another of its
    /// outputs. Also when the path holds a file of another kind, or a recording that must not be replaced.
    pub fn file(&self, path: &Path, kind: FileType) -> Result<Target, StoreError> {
        self.guarded(path, kind, self.may_replace_recordings)
    }

    /// Like [`Targets::file`], for a recording that can be created again and may be replaced.
    ///
    /// # Errors
    /// As [`Targets::file`].
    pub fn replaceable_file(&self, path: &Path, kind: FileType) -> Result<Target, StoreError> {
        self.guarded(path, kind, true)
    }

    /// Returns a target for an input that is to be created again, as the command requested.
    ///
    /// # Errors
    /// As [`Targets::file`], except that the path may be an input.
    pub fn file_over_input(&self, path: &Path, kind: FileType) -> Result<Target, StoreError> {
        let (inputs, watched) = Default::default();
        let guard = Guard { kind, inputs, watched, may_replace_recordings: true };
        let target = Target { path: path.to_owned(), guard: Some(guard), is_lasting: true };
        target.check().map(|_| target)
    }

    fn guarded(&self, path: &Path, kind: FileType, may_replace_recordings: bool) -> Result<Target, StoreError> {
        let (inputs, watched) = (self.inputs.clone(), self.watched.clone());
        let guard = Guard { kind, inputs, watched, may_replace_recordings };
        if let OutputDestination::File(file) = OutputDestination::of(path)? {
            let whole = file.folder().canonicalize().unwrap_or_else(|_| file.folder().to_owned());
            let whole = whole.join(file.path.file_name().unwrap_or_default());
            let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            if !given.insert(whole) {
                return Err(StoreError::new(path, StoreErrorKind::WrittenTwice));
            }
        }
        let target = Target { path: path.to_owned(), guard: Some(guard), is_lasting: true };
        target.check().map(|_| target)
    }
}

impl Target {
    /// Returns the same target for a file of this kind, which was not known before.
    #[must_use]
    pub fn with_kind(&self, kind: FileType) -> Target {
        let guard = self.guard.clone().map(|guard| Guard { kind, ..guard });
        Target { guard, ..self.clone() }
    }

    /// Returns a target in a folder that hitreg owns.
    pub(super) fn own(path: PathBuf) -> Target {
        Target { path, guard: None, is_lasting: true }
    }

    /// Returns a target in a temporary folder.
    pub(super) fn temporary(path: PathBuf) -> Target {
        Target { path, guard: None, is_lasting: false }
    }

    /// Returns the same target for a second write, which may replace what the command itself has written.
    #[must_use]
    pub fn replaceable(&self) -> Target {
        let guard = self.guard.clone().map(|guard| Guard { may_replace_recordings: true, ..guard });
        Target { guard, ..self.clone() }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the path is a pipe or a device, which is written directly.
    pub fn is_stream(&self) -> bool {
        matches!(OutputDestination::of(&self.path), Ok(OutputDestination::Stream))
    }

    /// Checks the inputs and the existing file, and returns the destination.
    pub(super) fn check(&self) -> Result<OutputDestination, StoreError> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard.watched.check())?;
        let destination = OutputDestination::of(&self.path)?;
        if let (OutputDestination::File(file), Some(guard)) = (&destination, &self.guard)
            && file.permissions.is_some()
        {
            guard.look_at(&self.path, &file.path)?;
        }
        Ok(destination)
    }
}

impl Guard {
    /// Checks whether the file at `end` may be replaced. `asked` is the path that led there.
    fn look_at(&self, asked: &Path, end: &Path) -> Result<(), StoreError> {
        for input in &*self.inputs {
            // Opening a pipe to inspect it would wait for its writer.
            let is_file = std::fs::metadata(input).is_ok_and(|meta| meta.is_file());
            if is_file && same_file::is_same_file(input, end).unwrap_or(false) {
                let name = (asked != input).then(|| input.clone());
                return Err(StoreError::new(asked, StoreErrorKind::IsInput(name)));
            }
        }
        let sign = self.kind.read_sign(end)?;
        if sign.is_empty() {
            return Ok(());
        }
        if !self.kind.is_of(&sign) {
            return Err(StoreError::new(asked, StoreErrorKind::Foreign(self.kind.name())));
        }
        if matches!(self.kind, FileType::Log | FileType::Trace) && !self.may_replace_recordings {
            return Err(StoreError::new(asked, StoreErrorKind::WouldReplace(self.kind.name())));
        }
        Ok(())
    }
}

impl FileType {
    fn name(&self) -> &'static str {
        match self {
            FileType::Log => "log",
            FileType::Trace => "trace",
            FileType::Golden => "golden",
            FileType::Junit => "JUnit report",
            FileType::Table(_) | FileType::TraceTable { .. } => "table with the same columns",
            FileType::Manual => "manual page",
            FileType::Svg => "`why` drawing",
            FileType::Parquet => "Parquet file of hitreg",
            FileType::Events => "Perfetto timeline",
            FileType::Page => "report",
            FileType::Markdown => "summary",
            FileType::Answer => "answer of a build",
        }
    }

    /// Reads the part of a file by which [`FileType::is_of`] knows this kind: the last bytes of Parquet, or the first.
    pub(super) fn read_sign(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        match self {
            FileType::Parquet => super::read_end(path, READ_AHEAD as u64),
            _ => super::read_start(path, READ_AHEAD as u64),
        }
    }

    /// Returns whether a file with these first bytes is of this kind. For Parquet, they are the last bytes.
    pub fn is_of(&self, head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        match self {
            FileType::Log => log::kind_of(head) == FileKind::Log,
            FileType::Trace => log::kind_of(head) == FileKind::Trace,
            FileType::Golden => text.starts_with("hitreg golden "),
            FileType::Junit => text.starts_with("<?xml") && text.contains("<testsuites name=\"hitreg"),
            FileType::Table(columns) => {
                let mut names = column_names(&text).into_iter();
                columns.iter().all(|column| names.any(|name| name == column))
            }
            FileType::TraceTable { name, columns } => {
                let schema = TableSchema::of(name);
                let is_optional =
                    |name: &str| schema.and_then(|schema| schema.column(name)).is_some_and(|column| column.optional);
                let counts = |name: &&str| !is_optional(name);
                let columns = columns.iter().map(String::as_str).filter(counts);
                column_names(&text).into_iter().filter(counts).eq(columns)
            }
            FileType::Manual => text.lines().take(3).any(|line| line.starts_with(".TH ")),
            FileType::Svg => text.starts_with("<svg ") && text.contains("<title>hitreg why: "),
            FileType::Parquet => head.ends_with(b"PAR1") && text.contains(PARQUET_WRITER),
            FileType::Events => text.starts_with("{\"displayTimeUnit\":\"ms\",\"traceEvents\":["),
            FileType::Page => text.starts_with("<!doctype html>") && text.contains("<title>hitreg report</title>"),
            FileType::Markdown => text.starts_with("<!-- hitreg summary -->"),
            FileType::Answer => false,
        }
    }
}

/// Returns the names of the columns in the first line of a table: the header of CSV, or a JSON object without inner
/// objects. Declared columns have plain names.
fn column_names(text: &str) -> Vec<&str> {
    let line = text.lines().next().unwrap_or_default();
    if !line.starts_with('{') {
        return line.split(',').map(|name| name.trim_matches('"')).collect();
    }
    let (mut names, mut rest) = (Vec::new(), line);
    while let Some((_, text)) = rest.split_once('"') {
        let mut escaped = false;
        let end = text.find(|c| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        });
        let Some((word, after)) = end.map(|end| (&text[..end], &text[end + 1..])) else { break };
        if after.trim_start().starts_with(':') {
            names.push(word);
        }
        rest = after;
    }
    names
}

/// The most links to follow; more count as a cycle. This is Linux's own limit.
const LINKS_MAX: usize = 40;

/// The destination of an output path.
pub(super) enum OutputDestination {
    /// A pipe, a device, or a file that a process has open. It is written directly.
    Stream,
    /// A file at this path, existing or new.
    File(FileDestination),
}

/// An output file.
pub(super) struct FileDestination {
    /// The path with all links resolved, so that writing keeps the links.
    pub(super) path: PathBuf,
    /// The permissions of the existing file.
    pub(super) permissions: Option<Permissions>,
}

impl OutputDestination {
    /// Resolves `path`.
    ///
    /// # Errors
    /// When the path is a directory, its parent does not exist, or its links form a cycle.
    pub(super) fn of(path: &Path) -> Result<OutputDestination, StoreError> {
        if super::is_standard_stream(path) {
            return Ok(OutputDestination::Stream);
        }
        if path.as_os_str().is_empty() {
            return Err(StoreError::new(path, StoreErrorKind::EmptyPath));
        }
        let Some(path) = follow(path)? else { return Ok(OutputDestination::Stream) };
        let permissions = match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => return Err(StoreError::new(path, StoreErrorKind::IsDirectory)),
            Ok(meta) if !meta.is_file() => return Ok(OutputDestination::Stream),
            Ok(meta) => Some(meta.permissions()),
            Err(_) => None,
        };
        let file = FileDestination { path, permissions };
        if file.path.file_name().is_none() {
            return Err(StoreError::new(file.path, StoreErrorKind::IsDirectory));
        }
        if !file.folder().is_dir() {
            let parent = file.folder().to_owned();
            return Err(StoreError::new(file.path, StoreErrorKind::NoParent(parent)));
        }
        Ok(OutputDestination::File(file))
    }
}

impl FileDestination {
    /// Returns the folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        }
    }
}

/// Returns the end of the links at `path`. Returns `None` when it is a file that a process has open, such as
/// `/dev/stdout`. Such a file must be written directly, not replaced.
fn follow(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut end = path.to_owned();
    for _ in 0..LINKS_MAX {
        if end.starts_with("/proc") || end.starts_with("/dev/fd") {
            return Ok(None);
        }
        let Ok(link) = std::fs::read_link(&end) else { return Ok(Some(end)) };
        end = end.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(StoreError::new(path, StoreErrorKind::Circle))
}

// Writing of whole files. A file has a temporary name until it is complete, so that the final name never holds half a
// file.

/// Writes a whole session as a log.
///
/// # Errors
/// When it cannot be written. Nothing is then left under the final name.
pub fn save_log(target: &Target, session: &Session, options: WriterOptions) -> Result<(), StoreError> {
    save(target, |out| log::write_session(out, session, options).map(drop))
}

/// Writes a trace.
///
/// # Errors
/// When it cannot be written. Nothing is then left under the final name.
pub fn save_trace(target: &Target, trace: &Trace) -> Result<(), StoreError> {
    save(target, |out| log::write_trace(out, trace).map(drop))
}

/// Writes bytes, such as a golden or a report.
///
/// # Errors
/// When they cannot be written. Nothing is then left under the final name.
pub fn save_bytes(target: &Target, bytes: &[u8]) -> Result<(), StoreError> {
    save(target, |out| Ok(out.write_all(bytes)?))
}

/// Appends bytes to a file that other programs append to, too. Creates the file if necessary.
///
/// # Errors
/// When the file cannot be written.
pub fn append_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = File::options().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.map_err(|source| StoreError::write(path, source.into()))
}

/// Writes a file atomically: its name holds either the complete new contents or the old ones. Pipes and devices are
/// written directly. Links are followed, and a replaced file passes on its permissions.
///
/// # Errors
/// When the file cannot be written, or `write` fails.
pub fn save(
    target: &Target,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), StoreError> {
    match target.check()? {
        OutputDestination::Stream => write_stream(target.path(), write),
        OutputDestination::File(_) => prepare(target, write)?.put(),
    }
}

/// Writes to a pipe or a device.
fn write_stream(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), StoreError> {
    let io = |source: std::io::Error| StoreError::write(path, source.into());
    let is_standard = is_standard_stream(path);
    let stream = if is_standard { stream_file(std::io::stdout()) } else { File::options().append(true).open(path) };
    let mut out = BufWriter::new(stream.map_err(io)?);
    write(&mut out).map_err(|source| StoreError::write(path, source))?;
    out.flush().map_err(io)
}

/// A complete file without its final name.
#[derive(Debug)]
pub struct PreparedFile<'a> {
    target: &'a Target,
    file: Prepared,
}

#[derive(Debug)]
enum Prepared {
    /// The contents for a pipe or a device.
    Stream(File),
    /// A file beside its final path.
    File(UnnamedFile, PathBuf),
}

/// Writes a file that gets its final name later, together with others, or not at all. Nothing reaches a pipe before.
///
/// # Errors
/// As [`save`].
pub fn prepare<'a>(
    target: &'a Target,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<PreparedFile<'a>, StoreError> {
    let path = target.path();
    let io = |source: std::io::Error| StoreError::write(path, source.into());
    let fill = |file: &File| {
        let mut out = BufWriter::new(file);
        write(&mut out).map_err(|source| StoreError::write(path, source))?;
        out.flush().map_err(io)
    };
    let file = match target.check()? {
        OutputDestination::Stream => {
            let contents = anonymous_file().map_err(io)?;
            fill(&contents)?;
            Prepared::Stream(contents)
        }
        OutputDestination::File(file) => {
            let unfinished = UnnamedFile::in_folder(file.folder()).map_err(io)?;
            if let Some(permissions) = file.permissions {
                unfinished.file.set_permissions(permissions).map_err(io)?;
            }
            fill(&unfinished.file)?;
            if target.is_lasting {
                unfinished.file.sync_data().map_err(io)?;
            }
            Prepared::File(unfinished, file.path)
        }
    };
    Ok(PreparedFile { target, file })
}

impl PreparedFile<'_> {
    /// Gives the file its final name, or writes it to its pipe.
    ///
    /// # Errors
    /// When it cannot be renamed or written, or a file appeared there in the meantime that must not be replaced.
    pub fn put(self) -> Result<(), StoreError> {
        let PreparedFile { target, file } = self;
        let path = target.path();
        match file {
            Prepared::Stream(mut contents) => write_stream(path, |out| {
                contents.rewind()?;
                Ok(std::io::copy(&mut contents, out).map(drop)?)
            }),
            Prepared::File(unfinished, place) => {
                target.check()?;
                unfinished.put(&place).map_err(|error| StoreError::write(path, error.into()))
            }
        }
    }
}

/// Moves a file.
///
/// # Errors
/// When the existing file at the target must not be replaced, or the file cannot be renamed.
pub fn move_to(from: &Path, target: &Target) -> Result<(), StoreError> {
    super::check_regular(from)?;
    let mut file = super::open(from)?;
    save(target, |out| Ok(std::io::copy(&mut file, out).map(drop)?))?;
    std::fs::remove_file(from).map_err(|source| StoreError::write(from, source.into()))
}

/// Removes a file of the target's kind.
///
/// # Errors
/// When it cannot be removed, or a file of another kind is there.
pub fn remove(target: &Target) -> Result<(), StoreError> {
    target.check()?;
    std::fs::remove_file(target.path()).map_err(|source| StoreError::write(target.path(), source.into()))
}
