//! Files, as the command line names and reads them. Opening, writing and renaming are [`store`]'s.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figures::bytes;
use super::trouble::Trouble;
use crate::engine::{Engine, Games, LogFile};
use crate::info::passed_over;
use crate::log::{self, FileKind, Torn};
use crate::record::{Header, Session};
use crate::report::printable::printable;
use crate::store;
use crate::trace::Trace;
use crate::units::ClockTime;

/// The engine, which tells people what it passes over in the logs that it reads.
pub(super) fn engine(games: &Games) -> Engine<'_> {
    Engine { games, read: note_passed_over }
}

/// A file's bytes, and what they are.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, FileKind), Trouble> {
    let (kind, bytes) = store::read_either(path)?;
    Ok((bytes, kind))
}

/// Reads a log that must be whole.
pub(super) fn read_log(path: &Path) -> Result<LogFile, Trouble> {
    log_in(path, store::open(path)?)
}

/// The same of a log of which it has been told what is passed over.
pub(super) fn read_log_again(path: &Path) -> Result<LogFile, Trouble> {
    LogFile::read(store::open(path)?).map_err(|error| Trouble::file(path, error))
}

/// The log that is read from a file, which must be whole.
pub(super) fn log_in(path: &Path, from: impl Read) -> Result<LogFile, Trouble> {
    let log = LogFile::read(from).map_err(|error| Trouble::file(path, error))?;
    note_passed_over(path, &log.session.header);
    Ok(log)
}

/// What there is of a log that may be cut off.
pub(super) fn log_prefix_in(path: &Path, bytes: impl Read) -> Result<(Session, Option<Torn>), Trouble> {
    let (session, torn) = log::read_prefix(bytes).map_err(|error| Trouble::file(path, error))?;
    note_passed_over(path, &session.header);
    Ok((session, torn))
}

/// Says what of a log this build does not know, so that nobody takes it for all there is.
pub(super) fn note_passed_over(path: &Path, header: &Header) {
    use std::io::Write;
    let what = passed_over(header);
    if !what.is_empty() {
        let text =
            format!("note: {}: passed over, as this build does not know it: {}", path.display(), what.join(", "));
        // What follows does not depend on whether anybody reads this.
        let _ = writeln!(anstream::stderr(), "{}", printable(&text));
    }
}

/// What there is to say where a part of a session is missing.
pub(super) fn hole(session: &Session) -> Option<String> {
    let gap = session.first_hole()?;
    let [from, to] = [gap.from, gap.to].map(ClockTime);
    Some(format!("a part is missing, from {from} to {to}: what is shown of the time after it is not what was played"))
}

/// Says that a part of a session is missing, where one is, so that nobody takes what is told for what was played.
pub(super) fn note_hole(path: &Path, session: &Session) {
    use std::io::Write;
    if let Some(hole) = hole(session) {
        // What follows does not depend on whether anybody reads this.
        let _ = writeln!(anstream::stderr(), "note: {}: {hole}", printable(&path.display().to_string()));
    }
}

/// The trace in a file's bytes.
pub(super) fn trace_in(path: &Path, bytes: &[u8]) -> Result<Trace, Trouble> {
    log::read_trace(bytes).map_err(|error| Trouble::file(path, error))
}

/// How large a file is that was written; what went into a pipe or device is not there to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Size(Option<u64>);

impl Size {
    /// Of the file that is at this path now.
    pub(super) fn of(path: &Path) -> Size {
        Size(std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len()))
    }

    /// In bytes, where it is known.
    pub(super) fn known(self) -> Option<u64> {
        self.0
    }

    /// `58.3 kB (11.4 bytes per usercmd)`.
    pub(super) fn per_usercmd(self, usercmds: u64) -> String {
        let each = self.0.map(|bytes| format!(" ({:.1} bytes per usercmd)", bytes as f64 / usercmds.max(1) as f64));
        format!("{self}{}", each.unwrap_or_default())
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(size) => f.write_str(&bytes(size)),
            None => f.write_str("a stream of bytes"),
        }
    }
}

/// How many bytes a file has; none for a pipe or device.
pub(super) fn size_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 })
}

/// How the program was called, shortened so that it works when it is typed again: its name alone where the shell finds it
/// by that, else its path from here.
pub(super) fn as_typed(program: &OsStr) -> String {
    let path = Path::new(program);
    let found_by_name = path.parent().is_some_and(|folder| search_path().any(|searched| searched == folder));
    let here = std::env::current_dir().unwrap_or_default();
    match path.file_name() {
        Some(name) if found_by_name => Path::new(name).display().to_string(),
        Some(_) | None => path.strip_prefix(&here).unwrap_or(path).display().to_string(),
    }
}

#[expect(clippy::disallowed_methods, reason = "how a command is typed depends on the shell that it is typed into")]
fn search_path() -> impl Iterator<Item = PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect::<Vec<_>>().into_iter()
}
