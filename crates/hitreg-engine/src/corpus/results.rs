//! A folder that keeps results, and the reading of any set of results.
//!
//! `results.jsonl` has the rows of each log, appended at once when the log was judged. A row of a log completes the rows
//! before it, so that a process can end at any moment. `files.jsonl` remembers the digest of each log by absolute path,
//! size and time of modification; without it, every log is read again.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::share::CorpusShare;
use hitreg_analysis::corpus::{CorpusSummary, CorpusSummaryBuilder, LogRow, ResultRow, read_row, write_row};
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::{self, FileIdentity, LineFile, LineSpan, StoreError};
use hitreg_log::trace::Digest;

/// Why results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file is not one of results; says why.
    #[error("{}: {what}", path.display())]
    Content {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
}

/// A log at a path, as a results folder knows it: a hash, so that a million logs take little memory.
type PlaceKey = u128;

fn place_key(key: &str, log: &str) -> PlaceKey {
    Digest::of_bytes(format!("{key} {log}").as_bytes()).0
}

/// A folder of results, open for one run.
#[derive(Debug)]
pub struct ResultFolder {
    results: LineFile,
    files: LineFile,
    known: SortedMap<PlaceKey, LineSpan>,
    /// The run of the newest row of a log.
    newest: Option<RunKey>,
    digests: SortedMap<String, FileRow>,
}

/// What a file was when it was read. The digest holds as long as size and time are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FileRow {
    path: String,
    bytes: u64,
    modified_ns: u64,
    digest: String,
}

impl ResultFolder {
    /// Opens or creates the folder. Each share of a corpus has its own files in it.
    ///
    /// # Errors
    /// When a file cannot be opened, another process uses it, or its rows are of another version.
    pub fn open(folder: &Path, share: Option<CorpusShare>) -> Result<ResultFolder, ResultsError> {
        store::create_folder(folder)?;
        let name = |kind: &str| match share {
            Some(CorpusShare { k, n }) => folder.join(format!("{kind}-{k}-of-{n}.jsonl")),
            None => folder.join(format!("{kind}.jsonl")),
        };
        let (path, mut known, mut newest, mut digests) = (name(RESULTS), SortedMap::new(), None, SortedMap::new());
        let mut reader = RowReader::default();
        let results = LineFile::open(&path, &mut |line, span| {
            reader.read(line, |log| {
                known.insert(place_key(&log.key, &log.log), span);
                newest = Some(RunKey::of(log));
            })
        })?;
        reader.end(path)?;
        let files = LineFile::open(&name("files"), &mut |line, _| {
            if let Ok(row) = serde_json::from_str::<FileRow>(line) {
                digests.insert(row.path.clone(), row);
            }
            true
        })?;
        Ok(ResultFolder { results, files, known, newest, digests })
    }

    /// The digest of a log with this absolute path, size and time of modification, if it was read before.
    pub(super) fn digest(&self, log: &str, identity: &FileIdentity) -> Option<String> {
        let row = self.digests.get(log)?;
        let is_same = row.bytes == identity.bytes && row.modified_ns == identity.modified_ns;
        is_same.then(|| row.digest.clone())
    }

    /// Remembers the digest of a log at an absolute path.
    pub(super) fn note_digest(&mut self, log: &str, identity: &FileIdentity, digest: &str) -> Result<(), StoreError> {
        let (bytes, modified_ns) = (identity.bytes, identity.modified_ns);
        let row = FileRow { path: log.to_owned(), bytes, modified_ns, digest: digest.to_owned() };
        let line = serde_json::to_string(&row).unwrap_or_default() + "\n";
        self.digests.insert(log.to_owned(), row);
        self.files.append(&line)
    }

    /// The rows of an earlier verdict. If it is of another run than the newest rows, they are kept again, so that the
    /// newest rows are always those of the last run.
    pub(super) fn rows(&mut self, key: &str, log: &str) -> Option<Vec<ResultRow>> {
        let span = *self.known.get(&place_key(key, log))?;
        let text = self.results.read(span).ok()?;
        let rows: Vec<ResultRow> = text.lines().map(|line| read_row(line).ok()).collect::<Option<_>>()?;
        if run_of(&rows) != self.newest {
            self.keep(&rows).ok()?;
        }
        Some(rows)
    }

    /// Keeps the rows of a log. The last one is that of the log.
    pub(super) fn keep(&mut self, rows: &[ResultRow]) -> Result<(), StoreError> {
        self.newest = run_of(rows);
        self.results.append(&rows.iter().map(write_row).collect::<String>())
    }
}

/// Reads lines of rows. Keeps the first line that is no row.
#[derive(Default)]
struct RowReader {
    line: u64,
    broken: Option<(u64, String)>,
}

impl RowReader {
    /// Passes on the row of a log. Returns whether the line completes the rows before it.
    fn read(&mut self, line: &str, log: impl FnOnce(&LogRow)) -> bool {
        self.line += 1;
        match read_row(line) {
            Ok(ResultRow::Log(row)) => log(&row),
            Ok(_) => return false,
            // Nothing of a file that cannot be read may be removed.
            Err(source) => _ = self.broken.get_or_insert((self.line, source)),
        }
        true
    }

    fn end(self, path: PathBuf) -> Result<(), ResultsError> {
        let broken = |(line, what)| Err(ResultsError::Content { path, what: format!("line {line}: {what}") });
        self.broken.map_or(Ok(()), broken)
    }
}

/// Whether a file is Parquet.
pub fn is_parquet(path: &Path) -> bool {
    let mut head = [0; 4];
    store::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && &head == b"PAR1"
}

/// The beginning of the names of files with rows.
const RESULTS: &str = "results";

/// Any set of results: files of rows, and folders that [`ResultFolder`] has written.
#[derive(Debug, Default)]
pub struct ResultSet {
    files: Vec<PathBuf>,
    /// The commands, builds and options in the order of their first row, each with the last verdict on each log.
    runs: Vec<(RunKey, LastVerdicts)>,
    /// The index of the last run: that of the newest row.
    last: usize,
}

/// The last verdict on each log: the number of its file, and its rows there.
type LastVerdicts = SortedMap<PlaceKey, (usize, LineSpan)>;

/// A command with a build and options.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RunKey {
    command: String,
    build: String,
    options: String,
}

impl RunKey {
    fn of(row: &LogRow) -> RunKey {
        // The same build has the same digest under any path.
        let build = if row.build_digest.is_empty() { &row.build } else { &row.build_digest };
        RunKey { command: row.command.clone(), build: build.clone(), options: row.options.clone() }
    }
}

fn no_results(path: &Path) -> ResultsError {
    let what = "there are no results here: name a file of rows, or a folder that --results has written";
    ResultsError::Content { path: path.to_owned(), what: what.to_owned() }
}

/// The run of a log's rows.
fn run_of(rows: &[ResultRow]) -> Option<RunKey> {
    if let Some(ResultRow::Log(log)) = rows.last() { Some(RunKey::of(log)) } else { None }
}

impl ResultSet {
    /// Reads the index of results.
    ///
    /// # Errors
    /// When a file cannot be read, or a line is not a row of this version.
    pub fn read(paths: &[PathBuf]) -> Result<ResultSet, ResultsError> {
        let mut set = ResultSet::default();
        for path in paths {
            let before = set.files.len();
            if path.is_dir() {
                let is_results =
                    |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(RESULTS));
                set.files.extend(store::files_below(path, "jsonl")?.into_iter().filter(is_results));
            } else {
                set.files.push(path.clone());
            }
            if set.files.len() == before {
                return Err(no_results(path));
            }
        }
        for number in 0..set.files.len() {
            set.index(number)?;
        }
        match (set.runs.is_empty(), paths.first()) {
            (true, Some(path)) => Err(no_results(path)),
            _ => Ok(set),
        }
    }

    fn index(&mut self, number: usize) -> Result<(), ResultsError> {
        let path = self.files[number].clone();
        if is_parquet(&path) {
            let what =
                "this is Parquet: name the JSONL file with the same rows, or build hitreg with `--features parquet`";
            return Err(ResultsError::Content { path, what: what.to_owned() });
        }
        let mut reader = RowReader::default();
        store::read_lines(&path, &mut |line, span| {
            reader.read(line, |log| {
                let run = RunKey::of(log);
                let place = self.runs.iter().position(|(known, _)| *known == run).unwrap_or_else(|| {
                    self.runs.push((run, SortedMap::new()));
                    self.runs.len() - 1
                });
                self.runs[place].1.insert(place_key("", &log.log), (number, span));
                self.last = place;
            })
        })?;
        reader.end(path)
    }

    /// How many commands, builds and options there are.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The index of the run that was made last.
    pub fn last(&self) -> usize {
        self.last
    }

    /// Passes the rows of each log of a run to `to`: the last verdict on it.
    ///
    /// # Errors
    /// When a file cannot be read again.
    pub fn each_log(&self, run: usize, to: &mut dyn FnMut(&[ResultRow])) -> Result<(), ResultsError> {
        let Some((_, logs)) = self.runs.get(run) else { return Ok(()) };
        let mut spans: Vec<&(usize, LineSpan)> = logs.values().collect();
        spans.sort_unstable_by_key(|(file, span)| (*file, span.from));
        for (file, span) in spans {
            let text = store::read_line_span(&self.files[*file], *span)?;
            let rows: Vec<ResultRow> = text.lines().filter_map(|line| read_row(line).ok()).collect();
            to(&rows);
        }
        Ok(())
    }

    /// The summary of a run.
    ///
    /// # Errors
    /// When a file cannot be read again.
    pub fn summary(&self, run: usize) -> Result<CorpusSummary, ResultsError> {
        let mut builder = CorpusSummaryBuilder::default();
        self.each_log(run, &mut |rows| builder.add(rows))?;
        Ok(builder.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(log: &str, key: &str, build: &str) -> Vec<ResultRow> {
        let row = LogRow {
            key: key.into(),
            log: log.into(),
            build_digest: build.into(),
            verdict: "same".into(),
            ..LogRow::default()
        };
        vec![ResultRow::Log(Box::new(row))]
    }

    #[test]
    fn a_folder_gives_back_what_it_kept() {
        let folder = tempfile::tempdir().unwrap();
        let identity = FileIdentity { bytes: 3, modified_ns: 7, number: None };
        let mut results = ResultFolder::open(folder.path(), None).unwrap();
        results.keep(&rows("a", "1", "x")).unwrap();
        results.note_digest("a", &identity, "d").unwrap();
        drop(results);
        let mut again = ResultFolder::open(folder.path(), None).unwrap();
        assert_eq!(again.rows("1", "a"), Some(rows("a", "1", "x")));
        assert_eq!((again.rows("1", "b"), again.rows("2", "a")), (None, None));
        assert_eq!(again.digest("a", &identity).as_deref(), Some("d"));
        assert_eq!(again.digest("a", &FileIdentity { bytes: 4, ..identity }), None);
        drop(again);
        std::fs::write(folder.path().join("results.jsonl"), "{\"v\":9,\"row\":\"log\"}\n").unwrap();
        let other = ResultFolder::open(folder.path(), None).unwrap_err().to_string();
        assert!(other.contains("results.jsonl: line 1: it is of version 9"), "{other}");
    }

    #[test]
    fn the_last_run_is_the_one_that_used_the_folder_last() {
        let folder = tempfile::tempdir().unwrap();
        let last = || {
            let set = ResultSet::read(&[folder.path().to_owned()]).unwrap();
            (set.last(), set.summary(set.last()).unwrap().logs.total)
        };
        let bytes = || std::fs::metadata(folder.path().join("results.jsonl")).unwrap().len();
        let mut results = ResultFolder::open(folder.path(), None).unwrap();
        [("a", "1"), ("b", "2")].iter().for_each(|(log, key)| results.keep(&rows(log, key, "old")).unwrap());
        results.keep(&rows("a", "3", "new")).unwrap();
        assert_eq!(last(), (1, 1));
        drop(results);
        // The old build again, with a fresh process: nothing is judged again.
        let mut results = ResultFolder::open(folder.path(), None).unwrap();
        assert!(results.rows("1", "a").is_some());
        let after_first = bytes();
        assert!(results.rows("2", "b").is_some());
        assert_eq!((last(), bytes()), ((0, 2), after_first));
    }

    #[test]
    fn the_last_verdict_on_a_log_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, logs: &[Vec<ResultRow>]| {
            let text: String = logs.iter().flatten().map(write_row).collect();
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("results-1-of-2.jsonl", &[rows("a", "1", "x"), rows("a", "2", "x"), rows("a", "3", "y")]);
        write("results-2-of-2.jsonl", &[rows("b", "4", "x")]);
        write("files-1-of-2.jsonl", &[]);
        let set = ResultSet::read(&[folder.path().to_owned()]).unwrap();
        let mut keys = Vec::new();
        set.each_log(0, &mut |rows| keys.push(rows[0].key().to_owned())).unwrap();
        assert_eq!((set.runs(), keys), (2, vec!["2".to_owned(), "4".to_owned()]));
        assert_eq!(set.summary(1).unwrap().logs.total, 1);
        let none = folder.path().join("none");
        std::fs::create_dir(&none).unwrap();
        assert!(ResultSet::read(&[none]).unwrap_err().to_string().contains("there are no results here"));
    }
}
