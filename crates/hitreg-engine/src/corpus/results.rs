//! A folder that keeps results, and the reading of any set of results.
//!
//! `results.jsonl` has the rows of each log, appended at once when the log was judged. A row of a log completes the rows
//! before it, so that a process can end at any moment. `files.jsonl` remembers the digest of each log by absolute path,
//! size and time of modification; without it, every log is read again.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CorpusShare;
use crate::EngineError;
use hitreg_analysis::corpus::{CorpusSummary, CorpusSummaryBuilder, LogRow, ResultRow, read_row, write_row};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::store::{self, FileIdentity, LineFile, LineSpan, StoreError};
use hitreg_log::trace::Digest;

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
    /// The verdicts that this run may reuse, by key and log.
    known: SortedMap<PlaceKey, LineSpan>,
    /// The key of the newest verdict on each log, by run and absolute path.
    newest: SortedMap<PlaceKey, String>,
    /// Whether this run has kept a verdict.
    has_kept: bool,
    /// The first rows that this run reused without keeping them again.
    reused: Option<Vec<ResultRow>>,
    digests: SortedMap<String, FileRow>,
    /// The time in milliseconds since 1970 (UTC).
    now_ms: fn() -> u64,
}

/// What a file was when it was read. The digest holds as long as size and time are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FileRow {
    path: String,
    bytes: u64,
    modified_ns: u64,
    digest: String,
}

/// The absolute path of a log, with links resolved if it still exists.
fn absolute_path(log: &str) -> String {
    let path = store::canonical(Path::new(log)).or_else(|_| std::path::absolute(log));
    path.map_or_else(|_| log.to_owned(), |path| path.display().to_string())
}

impl ResultFolder {
    /// Opens or creates the folder. Each share of a corpus has its own files in it. `now_ms` returns the time in
    /// milliseconds since 1970 (UTC).
    ///
    /// # Errors
    /// When a file cannot be opened, another process uses it, or its rows are of another version.
    pub fn open(folder: &Path, share: Option<CorpusShare>, now_ms: fn() -> u64) -> Result<ResultFolder, EngineError> {
        store::create_folder(folder)?;
        let name = |kind: &str| match share {
            Some(share) => folder.join(format!("{kind}-{}-of-{}.jsonl", share.number(), share.count())),
            None => folder.join(format!("{kind}.jsonl")),
        };
        let (mut known, mut newest, mut digests) = (SortedMap::new(), SortedMap::new(), SortedMap::new());
        let (path, mut reader) = (name(RESULTS), RowReader::default());
        let results = LineFile::open(&path, &mut |line, span| {
            reader.read(line, |log| {
                if log.is_reusable {
                    known.insert(place_key(&log.key, &log.log), span);
                }
                newest.insert(place_key(&run_key(log), &log.absolute_path), log.key.clone());
            })
        })?;
        reader.end(&path)?;
        let files = LineFile::open(&name("files"), &mut |line, _| {
            if let Ok(row) = serde_json::from_str::<FileRow>(line) {
                digests.insert(row.path.clone(), row);
            }
            true
        })?;
        Ok(ResultFolder { results, files, known, newest, has_kept: false, reused: None, digests, now_ms })
    }

    /// The digest of a log with this absolute path, size and time of modification, if it was read before.
    pub(crate) fn digest(&self, log: &str, identity: &FileIdentity) -> Option<String> {
        let row = self.digests.get(log)?;
        let is_same = row.bytes == identity.bytes && row.modified_ns == identity.modified_ns;
        is_same.then(|| row.digest.clone())
    }

    /// Remembers the digest of a log at an absolute path.
    pub(crate) fn note_digest(&mut self, log: &str, identity: &FileIdentity, digest: &str) -> Result<(), StoreError> {
        let (bytes, modified_ns) = (identity.bytes, identity.modified_ns);
        let row = FileRow { path: log.to_owned(), bytes, modified_ns, digest: digest.to_owned() };
        let line = serde_json::to_string(&row).unwrap_or_default() + "\n";
        self.digests.insert(log.to_owned(), row);
        self.files.append(&line)
    }

    /// The rows of an earlier verdict. They are kept again if the newest verdict on the log is another one.
    pub(crate) fn rows(&mut self, key: &str, log: &str) -> Option<Vec<ResultRow>> {
        let span = *self.known.get(&place_key(key, log))?;
        let text = self.results.read(span).ok()?;
        let mut rows: Vec<ResultRow> = text.lines().map(|line| read_row(line).ok()).collect::<Option<_>>()?;
        let Some(ResultRow::Log(row)) = rows.last() else { return None };
        match self.newest.get(&place_key(&run_key(row), &absolute_path(log))) {
            Some(newest) if newest == key => _ = self.reused.get_or_insert_with(|| rows.clone()),
            _ => self.keep(&mut rows).ok()?,
        }
        Some(rows)
    }

    /// Ends the run. If it kept nothing, the first reused verdict is kept again, so that the newest rows are those of the
    /// last run.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        self.reused.take().filter(|_| !self.has_kept).map_or(Ok(()), |mut rows| self.keep(&mut rows))
    }

    /// Keeps the rows of a log, and sets its absolute path and the time of its verdict. The last row is that of the log.
    pub(crate) fn keep(&mut self, rows: &mut [ResultRow]) -> Result<(), StoreError> {
        if let Some(ResultRow::Log(row)) = rows.last_mut() {
            (row.absolute_path, row.judged_at_ms) = (absolute_path(&row.log), (self.now_ms)());
            self.newest.insert(place_key(&run_key(row), &row.absolute_path), row.key.clone());
            self.has_kept = true;
        }
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

    fn end(self, path: &Path) -> Result<(), EngineError> {
        let broken = |(line, what)| Err(EngineError::unsuitable(path, format!("line {line}: {what}")));
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
    /// The runs in the order of their first row.
    runs: Vec<KeptRun>,
}

/// The results of one command with one build and one set of options.
#[derive(Debug)]
struct KeptRun {
    /// As [`run_key`] gives it.
    key: String,
    command: String,
    /// The time and the place of the newest row: its file, and its start there.
    newest: (u64, usize, u64),
    verdicts: LastVerdicts,
}

/// The last verdict on each log, by absolute path.
type LastVerdicts = SortedMap<PlaceKey, LastVerdict>;

/// The last verdict on a log.
#[derive(Debug)]
struct LastVerdict {
    at_ms: u64,
    /// The number of its file, and its rows there.
    rows: (usize, LineSpan),
    absolute_path: String,
    /// The name of the file with the digest of its bytes; the absolute path if the digest is not known.
    content: PlaceKey,
}

impl LastVerdict {
    /// Orders verdicts by time. Of equal times, the later row is newer.
    fn order(&self) -> (u64, usize, u64) {
        (self.at_ms, self.rows.0, self.rows.1.from)
    }
}

/// Removes verdicts on logs that are no longer there, if a newer one is on a file of the same name and content: the log
/// was moved to another folder.
fn without_moved(verdicts: LastVerdicts) -> LastVerdicts {
    let mut newest = SortedMap::new();
    for verdict in verdicts.values() {
        let known = newest.entry(verdict.content).or_insert_with(|| verdict.order());
        *known = verdict.order().max(*known);
    }
    let is_last =
        |of: &LastVerdict| newest.get(&of.content) == Some(&of.order()) || Path::new(&of.absolute_path).exists();
    verdicts.into_iter().filter(|(_, verdict)| is_last(verdict)).collect()
}

/// Identifies a command with a build and options, in memory.
fn run_key(row: &LogRow) -> String {
    // The same build has the same digest under any path.
    let build = if row.build_digest.is_empty() { &row.build } else { &row.build_digest };
    [&*row.command, build, &row.options].join("\0")
}

fn no_results(path: &Path) -> EngineError {
    let what = "there are no results here: name a file of rows, or a folder that --results has written";
    EngineError::unsuitable(path, what)
}

impl ResultSet {
    /// Reads the index of results.
    ///
    /// # Errors
    /// When a file cannot be read, or a line is not a row of this version.
    pub fn read(paths: &[PathBuf]) -> Result<ResultSet, EngineError> {
        let mut set = ResultSet::default();
        for path in paths {
            let before = set.files.len();
            if path.is_dir() {
                let is_results =
                    |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(RESULTS));
                set.files.extend(store::files_below(path, &["jsonl"])?.into_iter().filter(is_results));
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
        for run in &mut set.runs {
            run.verdicts = without_moved(std::mem::take(&mut run.verdicts));
        }
        match (set.runs.is_empty(), paths.first()) {
            (true, Some(path)) => Err(no_results(path)),
            _ => Ok(set),
        }
    }

    fn index(&mut self, number: usize) -> Result<(), EngineError> {
        let path = self.files[number].clone();
        if is_parquet(&path) {
            let what =
                "this is Parquet: name the JSONL file with the same rows, or build hitreg with `--features parquet`";
            return Err(EngineError::unsuitable(&path, what));
        }
        let mut reader = RowReader::default();
        store::read_lines(&path, &mut |line, span| {
            reader.read(line, |log| {
                let (key, newest) = (run_key(log), (log.judged_at_ms, number, span.from));
                let place = self.runs.iter().position(|known| known.key == key).unwrap_or_else(|| {
                    let (command, verdicts) = (log.command.clone(), SortedMap::new());
                    self.runs.push(KeptRun { key, command, newest, verdicts });
                    self.runs.len() - 1
                });
                let run = &mut self.runs[place];
                run.newest = run.newest.max(newest);
                let of_log = place_key("", &log.absolute_path);
                if run.verdicts.get(&of_log).is_none_or(|last| last.at_ms <= log.judged_at_ms) {
                    let absolute_path = log.absolute_path.clone();
                    let name = Path::new(&absolute_path).file_name().unwrap_or_default().to_string_lossy();
                    let name = if log.log_digest.is_empty() { &*absolute_path } else { &*name };
                    let content = place_key(&log.log_digest, name);
                    let last = LastVerdict { at_ms: log.judged_at_ms, rows: (number, span), absolute_path, content };
                    run.verdicts.insert(of_log, last);
                }
            })
        })?;
        reader.end(&path)
    }

    /// How many commands, builds and options there are.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// The index of the last run of each command, which is at least one. The newest run comes first.
    pub fn last_of_commands(&self) -> Vec<usize> {
        let mut newest_first: Vec<(usize, &KeptRun)> = self.runs.iter().enumerate().collect();
        newest_first.sort_by_key(|(_, run)| std::cmp::Reverse(run.newest));
        let mut commands = SortedSet::new();
        newest_first.retain(|(_, run)| commands.insert(&run.command));
        newest_first.into_iter().map(|(place, _)| place).collect()
    }

    /// Passes the rows of each log of a run to `to`: the last verdict on it.
    ///
    /// # Errors
    /// When a file cannot be read again.
    pub fn each_log(&self, run: usize, to: &mut dyn FnMut(&[ResultRow])) -> Result<(), EngineError> {
        let Some(run) = self.runs.get(run) else { return Ok(()) };
        let mut spans: Vec<(usize, LineSpan)> = run.verdicts.values().map(|last| last.rows).collect();
        spans.sort_unstable_by_key(|(file, span)| (*file, span.from));
        for (file, span) in spans {
            let text = store::read_line_span(&self.files[file], span)?;
            let rows: Vec<ResultRow> = text.lines().filter_map(|line| read_row(line).ok()).collect();
            to(&rows);
        }
        Ok(())
    }

    /// The summary of a run.
    ///
    /// # Errors
    /// When a file cannot be read again.
    pub fn summary(&self, run: usize) -> Result<CorpusSummary, EngineError> {
        let mut builder = CorpusSummaryBuilder::default();
        self.each_log(run, &mut |rows| builder.add(rows))?;
        Ok(builder.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that shows another time whenever it is read.
    fn now_ms() -> u64 {
        static READ: AtomicU64 = AtomicU64::new(1);
        READ.fetch_add(1, Ordering::Relaxed)
    }

    fn open(folder: &Path, share: Option<CorpusShare>) -> ResultFolder {
        ResultFolder::open(folder, share, now_ms).unwrap()
    }

    fn rows(log: &str, key: &str, build: &str) -> Vec<ResultRow> {
        let row = LogRow {
            key: key.into(),
            log: log.into(),
            absolute_path: absolute_path(log),
            is_reusable: true,
            build_digest: build.into(),
            verdict: "same".into(),
            ..LogRow::default()
        };
        vec![ResultRow::Log(Box::new(row))]
    }

    /// The index of the last run, and the keys of its verdicts.
    fn last(folder: &Path) -> (usize, Vec<String>) {
        let set = ResultSet::read(&[folder.to_owned()]).unwrap();
        let (last, mut keys) = (set.last_of_commands()[0], Vec::new());
        set.each_log(last, &mut |rows| keys.push(rows[0].key().to_owned())).unwrap();
        keys.sort();
        (last, keys)
    }

    #[test]
    fn a_folder_gives_back_what_it_kept() {
        let folder = tempfile::tempdir().unwrap();
        let identity = FileIdentity { bytes: 3, modified_ns: 7, number: None };
        let mut results = open(folder.path(), None);
        let mut kept = rows("a", "1", "x");
        results.keep(&mut kept).unwrap();
        let mut once = rows("c", "3", "x");
        let ResultRow::Log(row) = &mut once[0] else { panic!("not a log") };
        row.is_reusable = false;
        results.keep(&mut once).unwrap();
        results.note_digest("a", &identity, "d").unwrap();
        drop(results);
        let mut again = open(folder.path(), None);
        assert_eq!(again.rows("1", "a"), Some(kept));
        assert_eq!([("1", "b"), ("2", "a"), ("3", "c")].map(|(key, log)| again.rows(key, log)), [None, None, None]);
        assert_eq!(again.digest("a", &identity).as_deref(), Some("d"));
        assert_eq!(again.digest("a", &FileIdentity { bytes: 4, ..identity }), None);
        drop(again);
        assert_eq!(last(folder.path()).1, ["1", "3"], "a verdict that is not reused counts, too");
        std::fs::write(folder.path().join("results.jsonl"), "{\"v\":9,\"row\":\"log\"}\n").unwrap();
        let other = ResultFolder::open(folder.path(), None, now_ms).unwrap_err().to_string();
        assert!(other.contains("results.jsonl: line 1: it is of version 9"), "{other}");
    }

    #[test]
    fn the_last_run_is_the_one_that_used_the_folder_last() {
        let folder = tempfile::tempdir().unwrap();
        let last = || last(folder.path());
        let lines = || std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap().lines().count();
        let mut results = open(folder.path(), None);
        [("a", "1"), ("b", "2")].iter().for_each(|(log, key)| results.keep(&mut rows(log, key, "old")).unwrap());
        results.keep(&mut rows("a", "3", "new")).unwrap();
        assert_eq!(last(), (1, vec!["3".to_owned()]));
        drop(results);
        // The old build again, with a fresh process: nothing is judged again.
        let mut results = open(folder.path(), None);
        assert!(results.rows("1", "a").is_some() && results.rows("2", "b").is_some());
        assert_eq!((last().0, lines()), (1, 3));
        results.finish().unwrap();
        assert_eq!((last(), lines()), ((0, vec!["1".to_owned(), "2".to_owned()]), 4));
        drop(results);
        // A share of another build is newer, although the name of its file comes first, until the old build runs again.
        open(folder.path(), CorpusShare::new(1, 2)).keep(&mut rows("a", "3", "new")).unwrap();
        assert_eq!(last(), (0, vec!["3".to_owned()]), "files are read in the order of their names");
        let mut results = open(folder.path(), None);
        assert!(results.rows("2", "b").is_some());
        results.finish().unwrap();
        assert_eq!(last(), (1, vec!["1".to_owned(), "2".to_owned()]));
    }

    /// A log that was damaged and then restored has its first verdict again.
    #[test]
    fn a_reused_verdict_is_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = open(folder.path(), None);
        results.keep(&mut rows("b", "0", "x")).unwrap();
        ["1", "2"].iter().for_each(|key| results.keep(&mut rows("a", key, "x")).unwrap());
        assert_eq!(last(folder.path()).1, ["0", "2"]);
        drop(results);
        let mut results = open(folder.path(), None);
        assert!(results.rows("0", "b").is_some() && results.rows("1", "a").is_some());
        assert_eq!(last(folder.path()).1, ["0", "1"]);
        // An older file does not hide it, whatever its name is.
        std::fs::write(folder.path().join("results-9-of-9.jsonl"), write_row(&rows("a", "3", "x")[0])).unwrap();
        assert_eq!(last(folder.path()).1, ["0", "1"]);
    }

    /// A log is moved if its old path is gone, and a newer verdict is on the same bytes under the same file name.
    #[test]
    fn a_moved_log_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("0.hitlog");
        std::fs::write(&there, "").unwrap();
        let there = there.to_str().unwrap();
        let logs = |logs: &[(&str, &str)]| {
            let results = tempfile::tempdir().unwrap();
            let mut kept = open(results.path(), None);
            for (key, (log, digest)) in logs.iter().enumerate() {
                let mut rows = rows(log, &key.to_string(), "x");
                let ResultRow::Log(row) = &mut rows[0] else { panic!("not a log") };
                row.log_digest = (*digest).to_owned();
                kept.keep(&mut rows).unwrap();
            }
            drop(kept);
            last(results.path()).1
        };
        assert_eq!(logs(&[("x/0.hitlog", "d"), ("y/0.hitlog", "d")]), ["1"]);
        assert_eq!(logs(&[(there, "d"), ("y/0.hitlog", "d")]), ["0", "1"], "a copy");
        assert_eq!(logs(&[("x/0.hitlog", "d"), ("y/1.hitlog", "d")]), ["0", "1"], "another name");
        assert_eq!(logs(&[("x/0.hitlog", "d"), ("y/0.hitlog", "e")]), ["0", "1"], "another content");
        assert_eq!(logs(&[("x/0.hitlog", ""), ("y/0.hitlog", "")]), ["0", "1"], "unknown content");
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
