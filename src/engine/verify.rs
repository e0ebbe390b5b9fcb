//! Verifying log files: each is replayed more than once, held against itself and its golden, and the golden written anew
//! when that is asked for.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::{Engine, EngineError};
use crate::replay::Options;
use crate::store::{self, Kind, Targets};
use crate::summary::Exercised;
use crate::verify::{THREADS, Verdict, Verified, judge};

/// How logs are verified.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verify {
    /// Take what comes out as the new golden of each log.
    pub accept: bool,
    /// Every so many ticks restore the world as it was saved so many ticks before, run them again, and compare.
    pub rollback_every: Option<u32>,
    /// How many logs are verified at the same time; 0 for one on each core.
    pub threads: usize,
}

/// What was found about one log.
#[derive(Debug, Serialize)]
pub struct LogReport {
    /// The log.
    pub path: PathBuf,
    /// The judgement.
    pub verdict: Verdict,
    /// The digest of the first replay's trace; `None` when nothing could be replayed.
    pub digest: Option<String>,
    /// What was exercised.
    pub exercised: Exercised,
    /// Recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Rollbacks that were checked.
    pub rollbacks: u32,
    /// What was done with the golden.
    pub golden: Golden,
    /// The reason of any verdict but `same`, and what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What was done with the golden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Golden {
    /// There is none.
    None,
    /// The replay was compared with it.
    Compared,
    /// It was written.
    Accepted,
}

impl Verify {
    /// Verifies logs, and tells `done` of each one. What is wrong with a log is in its report.
    ///
    /// # Errors
    /// When a golden cannot be read or written, or there are no threads.
    pub fn logs(
        &self,
        engine: &Engine<'_>,
        logs: &[PathBuf],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<LogReport>, EngineError> {
        let goldens = Targets::new(logs.to_vec(), false);
        let verify = |path: &PathBuf| {
            let report = self.log(engine, path, &goldens);
            done();
            report
        };
        thread_pool(self.threads)?.install(|| logs.par_iter().map(verify).collect())
    }

    fn log(&self, engine: &Engine<'_>, path: &Path, goldens: &Targets) -> Result<LogReport, EngineError> {
        let log = match engine.read_log(path) {
            Ok(log) => log,
            Err(error) => {
                let broken = Verified::without_replay(Verdict::Broken, error.what());
                return Ok(LogReport::new(path, broken, Golden::None));
            }
        };
        let game = match engine.games.of(&log.session) {
            Ok(game) => game,
            Err(error) => {
                let unknown = Verified::without_replay(Verdict::Untestable, error.to_string());
                return Ok(LogReport::new(path, unknown, Golden::None));
            }
        };
        let golden_path = path.with_extension("golden");
        let target = if self.accept { Some(goldens.file(&golden_path, Kind::Golden)?) } else { None };
        let options = Options { rollback_every: self.rollback_every, ..Options::default() };
        let mut replays = Vec::with_capacity(THREADS.len());
        for threads in THREADS {
            replays.push(thread_pool(threads)?.install(|| game.replay(&log.session, &options, &mut |_| {})));
        }
        let golden = if self.accept { None } else { read_golden(&golden_path)? };
        let verified = judge(replays.into_iter().collect(), golden.as_deref());
        let mut used = if verified.golden_compared { Golden::Compared } else { Golden::None };
        // Nothing that differs from its own log, or exercised nothing, is worth accepting.
        if let (Some(target), Verdict::Same, Some(text)) = (&target, verified.verdict, &verified.golden) {
            store::save_bytes(target, text.as_bytes())?;
            used = Golden::Accepted;
        }
        Ok(LogReport::new(path, verified, used))
    }
}

fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|source| EngineError::Threads { threads, source })
}

fn read_golden(path: &Path) -> Result<Option<String>, EngineError> {
    if !path.exists() {
        return Ok(None);
    }
    let text = String::from_utf8(store::read_bytes(path)?);
    text.map(Some).map_err(|_| EngineError::GoldenText { path: path.to_owned() })
}

impl LogReport {
    fn new(path: &Path, verified: Verified, golden: Golden) -> LogReport {
        LogReport {
            path: path.to_owned(),
            verdict: verified.verdict,
            digest: verified.digest.map(|digest| digest.to_string()),
            exercised: verified.exercised,
            hashes_compared: verified.hashes_compared,
            rollbacks: verified.rollbacks,
            golden,
            detail: verified.detail,
        }
    }
}
