//! Input files of the command line. Opening, writing and renaming are in [`store`](crate::store).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figures::bytes;
use crate::engine::{Engine, Games};
use crate::info::passed_over;
use crate::record::{GapRecord, SessionHeader};
use crate::report::printable::printable;
use crate::store::shown::shell_path;
use crate::units::ClockTime;

/// An engine that prints a note about the parts of a log that this build skips.
pub(super) fn engine(games: &Games) -> Engine<'_> {
    Engine { read: note_passed_over, ..Engine::new(games) }
}

/// Notes the parts of a log that this build does not know, because the results lack them.
pub(super) fn note_passed_over(path: &Path, header: &SessionHeader) {
    let what = passed_over(header);
    if !what.is_empty() {
        note(path, &format!("skipped, because this build does not know it: {}", what.join(", ")));
    }
}

/// A message about the first missing part of a session; `None` if it is complete.
pub(super) fn hole(gap: Option<&GapRecord>) -> Option<String> {
    let [from, to] = gap.map(|gap| [gap.from, gap.to].map(ClockTime))?;
    Some(format!("a part is missing, from {from} to {to}: results after it do not match the played session"))
}

/// Notes that a part of a session is missing, because later results do not match the played session.
pub(super) fn note_hole(path: &Path, gap: Option<&GapRecord>) {
    if let Some(hole) = hole(gap) {
        note(path, &hole);
    }
}

fn note(path: &Path, what: &str) {
    use std::io::Write;
    // A closed stderr does not stop the command.
    let _ = writeln!(anstream::stderr(), "{}", printable(&format!("note: {}: {what}", path.display())));
}

/// Notes the missing parts of replayed logs.
pub(super) fn note_gaps(gaps: &[(PathBuf, GapRecord)]) {
    gaps.iter().for_each(|(path, gap)| note_hole(path, Some(gap)));
}

/// The size of a written file; unknown for a pipe or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct FileSize(Option<u64>);

impl FileSize {
    /// The size of the file at this path.
    pub(super) fn of(path: &Path) -> FileSize {
        FileSize(std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len()))
    }

    /// The size in bytes; `None` if it is unknown.
    pub(super) fn known(self) -> Option<u64> {
        self.0
    }

    /// The size as text, such as `58.3 kB (11.4 bytes per usercmd)`.
    pub(super) fn per_usercmd(self, usercmds: u64) -> String {
        let each = self.0.map(|bytes| format!(" ({:.1} bytes per usercmd)", bytes as f64 / usercmds.max(1) as f64));
        format!("{self}{}", each.unwrap_or_default())
    }
}

impl std::fmt::Display for FileSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(size) => f.write_str(&bytes(size)),
            None => f.write_str("a stream of bytes"),
        }
    }
}

/// The shortest way to call this program again: its name if the shell finds it in `PATH`, or else its path relative to
/// the working folder. It is one word of a command.
pub(super) fn as_typed(program: &OsStr) -> String {
    let path = Path::new(program);
    let found_by_name = path.parent().is_some_and(|folder| search_path().any(|searched| searched == folder));
    let here = std::env::current_dir().unwrap_or_default();
    match path.file_name() {
        Some(name) if found_by_name => shell_path(Path::new(name)),
        Some(_) | None => shell_path(path.strip_prefix(&here).unwrap_or(path)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the way to type a command depends on the shell's environment")]
fn search_path() -> impl Iterator<Item = PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect::<Vec<_>>().into_iter()
}
