//! A corpus: any number of logs, judged one by one on all cores. Each log gives rows of results
//! ([`hitreg_analysis::corpus`]), which a results folder keeps, so that a later run judges only what changed.

mod judge;
mod results;

pub use judge::{ComparedCorpus, CorpusJudge, CorpusRun, JudgedCorpus, JudgedLog, VerifiedCorpus, for_each_log};
pub use results::{ResultFolder, ResultSet, is_parquet};

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::EngineError;
use hitreg_log::rng::Rng;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::store::{self, StoreError};
use hitreg_log::units::Seed;

/// The logs of a corpus, each once, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// The paths of the logs.
    pub logs: Vec<PathBuf>,
    /// What a manifest names that is no log, and folders that cannot be read, one sentence each. The rest of the corpus is
    /// judged.
    pub problems: Vec<String>,
}

/// Whether a path names several logs: a folder, a pattern or a manifest (`@FILE`).
pub fn is_corpus(path: &Path) -> bool {
    path.is_dir() || manifest(path).is_some() || is_pattern(path)
}

/// The file of a manifest that is named as `@FILE`.
fn manifest(path: &Path) -> Option<&Path> {
    if path.exists() {
        return None;
    }
    path.to_str()?.strip_prefix('@').filter(|file| !file.is_empty()).map(Path::new)
}

/// Whether a path is a pattern. An existing file is none, whatever its name is.
fn is_pattern(path: &Path) -> bool {
    !path.exists() && path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

impl Corpus {
    /// The logs that these paths name: a log, all `*.hitlog` in a folder or below it, the files that match a pattern,
    /// or the paths in a manifest (`@FILE`). A manifest has one path on each line, relative to the manifest's folder;
    /// lines that begin with `#` are comments.
    ///
    /// # Errors
    /// When a file or folder cannot be read. [`EngineError::Request`] when a path names no log, or is no pattern.
    pub fn of(paths: &[PathBuf]) -> Result<Corpus, EngineError> {
        let mut corpus = Corpus::default();
        for path in paths {
            if let Some(file) = manifest(path) {
                corpus.add_manifest(file)?;
            } else if is_pattern(path) {
                corpus.add_pattern(&path.to_string_lossy())?;
            } else {
                corpus.add_path(path)?;
            }
        }
        // A log counts once, even if it is named twice, by two paths, or is also in a named directory. Of its paths, one
        // with a golden counts, and rather a file than a link.
        let (mut known, mut logs): (_, Vec<PathBuf>) = (SortedMap::new(), Vec::new());
        let rank = |log: &Path| (log.with_extension("golden").exists(), !log.is_symlink());
        for log in corpus.logs {
            let place = *known.entry(store::canonical(&log).unwrap_or_else(|_| log.clone())).or_insert(logs.len());
            match logs.get_mut(place) {
                Some(other) if rank(&log) > rank(other) => *other = log,
                Some(_) => {}
                None => logs.push(log),
            }
        }
        Ok(Corpus { logs, ..corpus })
    }

    fn add_path(&mut self, path: &Path) -> Result<(), EngineError> {
        if path.is_dir() {
            if !self.add_folder(path)? {
                let path = path.display();
                return Err(EngineError::Request(format!(
                    "{path}: there is no *.hitlog in this directory or below it: name a log, or another directory"
                )));
            }
            return Ok(());
        }
        if !store::is_standard_stream(path) && !path.exists() {
            store::open(path)?;
        }
        self.logs.push(path.to_owned());
        Ok(())
    }

    /// Adds the logs in a folder or below it. A folder below it that cannot be read is a problem. Returns whether there was
    /// anything to add.
    fn add_folder(&mut self, folder: &Path) -> Result<bool, EngineError> {
        let mut unread = Vec::new();
        let below = store::listed_files_below(folder, &["hitlog"], &mut unread)?;
        let found = !(below.is_empty() && unread.is_empty());
        self.logs.extend(below);
        self.problems.extend(unread.iter().map(StoreError::to_string));
        Ok(found)
    }

    fn add_pattern(&mut self, pattern: &str) -> Result<(), EngineError> {
        let no_pattern = |error| EngineError::Request(format!("{pattern}: this is no pattern: {error}"));
        let matches = glob::glob(pattern).map_err(no_pattern)?;
        let before = self.logs.len();
        for path in matches {
            match path {
                Ok(path) if path.is_dir() => {
                    if let Err(unread) = self.add_folder(&path) {
                        self.problems.push(unread.to_string());
                    }
                }
                Ok(path) => self.logs.push(path),
                Err(unread) => self.problems.push(format!(
                    "{}: this folder cannot be read: {}",
                    unread.path().display(),
                    unread.error()
                )),
            }
        }
        if self.logs.len() == before && self.problems.is_empty() {
            store::open(Path::new(pattern))?;
        }
        Ok(())
    }

    fn add_manifest(&mut self, file: &Path) -> Result<(), EngineError> {
        let bytes = store::read_bytes(file)?;
        let folder = if store::is_standard_stream(file) { None } else { file.parent() };
        let before = self.logs.len();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let mut add = || {
                let line = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?.trim();
                if line.is_empty() || line.starts_with('#') {
                    return Ok(());
                }
                let path = folder.unwrap_or(Path::new("")).join(line);
                if !path.exists() {
                    return Err(format!("there is no such file: {}", path.display()));
                }
                self.add_path(&path).map_err(|error| error.to_string())
            };
            let added = add();
            if let Err(problem) = added {
                self.problems.push(format!("{}: line {number}: {problem}", file.display()));
            }
        }
        match self.logs.len() == before {
            true if self.problems.is_empty() => Err(EngineError::Request(format!(
                "{}: this manifest names no log: write one path on each line",
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Draws logs. Each preset and number of players has its share of the sample, and each log has the same chance. The
    /// seed and the paths of the logs decide the draw, in whatever order the logs are. They stay in that order.
    #[must_use]
    pub fn sample(self, count: usize, seed: u64) -> Corpus {
        if count >= self.logs.len() {
            return self;
        }
        // Logs that cannot be read are a stratum, so that the sample shows them.
        let stratum = |path: &PathBuf| {
            let log = store::open_log(path).ok()?;
            let header = log.header();
            Some((header.preset.clone().unwrap_or_default(), header.players.len()))
        };
        let mut logs: Vec<(&PathBuf, usize)> = self.logs.iter().zip(0..).collect();
        logs.sort_unstable();
        let (places, strata): (Vec<usize>, Vec<_>) =
            logs.into_iter().map(|(path, place)| (place, stratum(path))).unzip();
        let drawn: SortedSet<usize> = draw(&strata, count, seed).into_iter().map(|number| places[number]).collect();
        let logs = self.logs.into_iter().enumerate().filter(|(place, _)| drawn.contains(place));
        Corpus { logs: logs.map(|(_, log)| log).collect(), problems: self.problems }
    }
}

/// Draws `count` of these items, named by their stratum. The sample is systematic: the items are sorted by stratum, and
/// by chance within it, and every n-th item from a random start is drawn. So each item has the same chance, and each
/// stratum its share, rounded up or down.
fn draw<S: Ord>(strata: &[S], count: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(Seed(seed), 0);
    let mut order: Vec<(&S, u64, usize)> =
        strata.iter().zip(0..).map(|(of, item)| (of, rng.next_u64(), item)).collect();
    order.sort_unstable();
    let (all, start) = (order.len(), rng.below(order.len() as u64) as usize);
    (0..count).map(|number| order[(start + number * all) / count].2).collect()
}

/// One of several equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorpusShare {
    /// From 1 to `count`.
    number: usize,
    count: usize,
}

/// The error for a text that names no [`CorpusShare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write slice:K/N with K from 1 to N, such as slice:2/4")]
pub struct BadShare;

impl FromStr for CorpusShare {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<CorpusShare, BadShare> {
        let numbers = text.strip_prefix("slice:").and_then(|rest| rest.split_once('/'));
        let share = numbers.and_then(|(k, n)| CorpusShare::new(k.parse().ok()?, n.parse().ok()?));
        share.ok_or(BadShare)
    }
}

impl CorpusShare {
    /// Returns the share of this number, counted from 1, of `count` shares; `None` if there is no such share.
    pub fn new(number: usize, count: usize) -> Option<CorpusShare> {
        (1..=count).contains(&number).then_some(CorpusShare { number, count })
    }

    /// The number of this share, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// The number of shares.
    pub fn count(self) -> usize {
        self.count
    }

    /// Every n-th item, beginning with the k-th. Neighbouring logs are often alike, so they go to different machines.
    pub fn of<T>(self, items: Vec<T>) -> Vec<T> {
        items.into_iter().skip(self.number - 1).step_by(self.count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(corpus: &Corpus) -> Vec<String> {
        corpus.logs.iter().map(|log| log.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn folders_patterns_and_manifests_name_logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("day/night")).unwrap();
        for name in ["day/a.hitlog", "day/night/b.hitlog", "c[1].hitlog", "notes.txt"] {
            std::fs::write(path(name), "-").unwrap();
        }
        let manifest = "# logs\n\n day/a.hitlog \nabsent.hitlog\nday/night\nday/a.hitlog\n\u{1}\n";
        std::fs::write(path("list"), manifest).unwrap();
        let of = |name: &str| Corpus::of(&[PathBuf::from(name.replace("DIR", folder.path().to_str().unwrap()))]);
        assert_eq!(names(&of("DIR").unwrap()), ["c[1].hitlog", "a.hitlog", "b.hitlog"]);
        assert_eq!(names(&of("DIR/day/**/*.hitlog").unwrap()), ["a.hitlog", "b.hitlog"]);
        assert_eq!(names(&of("DIR/c[1].hitlog").unwrap()), ["c[1].hitlog"], "an existing file is no pattern");
        let twice = ["day/a.hitlog", "day/night/../a.hitlog", "day/./night/b.hitlog", "day"].map(path);
        assert_eq!(names(&Corpus::of(&twice).unwrap()), ["a.hitlog", "b.hitlog"]);
        // A link beside a log, in any order, and a link that alone has a golden.
        std::os::unix::fs::symlink("a.hitlog", path("day/Link.hitlog")).unwrap();
        for linked in [["day/Link.hitlog", "day/a.hitlog"], ["day/a.hitlog", "day/Link.hitlog"]] {
            assert_eq!(names(&Corpus::of(&linked.map(path)).unwrap()), ["a.hitlog"]);
            std::fs::write(path("day/Link.golden"), "-").unwrap();
            assert_eq!(names(&Corpus::of(&linked.map(path)).unwrap()), ["Link.hitlog"]);
            std::fs::write(path("day/a.golden"), "-").unwrap();
            assert_eq!(names(&Corpus::of(&linked.map(path)).unwrap()), ["a.hitlog"]);
            for golden in ["day/Link.golden", "day/a.golden"] {
                std::fs::remove_file(path(golden)).unwrap();
            }
        }
        std::fs::remove_file(path("day/Link.hitlog")).unwrap();
        let listed = of("@DIR/list").unwrap();
        assert_eq!(names(&listed), ["a.hitlog", "b.hitlog"]);
        assert_eq!(listed.problems.len(), 2);
        assert!(listed.problems[0].contains("list: line 4: there is no such file"), "{:?}", listed.problems);
        for (wrong, sentence) in [
            ("DIR/*.log", "there is no such file"),
            ("DIR/[", "this is no pattern"),
            ("@DIR/absent", "there is no such file"),
            ("DIR/absent.hitlog", "there is no such file"),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains(sentence), "{wrong}: {error}");
        }
        std::fs::write(path("empty"), "# nothing\n").unwrap();
        assert!(of("@DIR/empty").unwrap_err().to_string().contains("names no log"));
        std::fs::create_dir(path("none")).unwrap();
        // A pipe is no log, and reading it might not end.
        let made = std::process::Command::new("mkfifo").arg(path("none/pipe.hitlog")).status();
        assert!(made.is_ok_and(|made| made.success()) && path("none/pipe.hitlog").exists());
        assert!(of("DIR/none").unwrap_err().to_string().contains("there is no *.hitlog"));
    }

    #[test]
    fn a_sample_has_its_size_and_follows_its_seed() {
        // None of these can be read, so they are one stratum.
        let corpus = Corpus { logs: (0..50).map(|n| PathBuf::from(format!("{n}"))).collect(), ..Corpus::default() };
        let drawn = corpus.clone().sample(7, 1);
        assert_eq!((drawn.logs.len(), &drawn), (7, &corpus.clone().sample(7, 1)));
        assert_ne!(drawn, corpus.clone().sample(7, 2));
        assert!(drawn.logs.is_sorted_by_key(|log| corpus.logs.iter().position(|known| known == log)));
        assert_eq!(corpus.clone().sample(50, 1), corpus);
        // The order of the logs plays no part.
        let sorted = |mut sample: Corpus| {
            sample.logs.sort();
            sample.logs
        };
        let back = Corpus { logs: corpus.logs.iter().rev().cloned().collect(), ..Corpus::default() };
        assert_eq!(sorted(back.sample(7, 1)), sorted(drawn));
    }

    #[test]
    fn each_stratum_has_its_share_of_a_sample_and_each_item_the_same_chance() {
        // More strata of two items than the sample has items.
        let strata: Vec<usize> = (0..44).map(|item| item % 22).collect();
        let mut drawn = [0; 44];
        for seed in 0..440 {
            let sample = draw(&strata, 5, seed);
            assert_eq!(sample.iter().map(|item| strata[*item]).collect::<SortedSet<_>>().len(), 5);
            sample.into_iter().for_each(|item| drawn[item] += 1);
        }
        // Each item is expected 50 times, with a standard deviation of 6.7.
        assert!(drawn.iter().all(|times| (25..75).contains(times)), "{drawn:?}");
        let shares = |count| {
            let sample = draw(&[vec![0; 30], vec![1; 20], vec![2; 10]].concat(), count, 1);
            [30, 50].map(|end| sample.iter().filter(|item| **item < end).count())
        };
        assert_eq!((shares(6), shares(60)), ([3, 5], [30, 50]));
    }

    #[test]
    fn shares_are_disjoint_and_complete() {
        let logs: Vec<u32> = (0..10).collect();
        let mut all: Vec<u32> = (1..=3).flat_map(|k| CorpusShare::new(k, 3).unwrap().of(logs.clone())).collect();
        all.sort_unstable();
        assert_eq!(all, logs);
        assert_eq!(CorpusShare::new(2, 3).unwrap().of(logs).len(), 3);
    }

    #[test]
    fn a_share_is_a_slice() {
        assert_eq!([(0, 1), (1, 0), (3, 2)].map(|(number, count)| CorpusShare::new(number, count)), [None; 3]);
        assert_eq!("slice:2/4".parse(), Ok(CorpusShare { number: 2, count: 4 }));
        for wrong in ["2/4", "slice:0/4", "slice:5/4", "slice:1", "hash:1/2", "slice:1/0"] {
            assert!(wrong.parse::<CorpusShare>().is_err(), "{wrong}");
        }
    }
}
