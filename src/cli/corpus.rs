//! Options and outputs of commands over a corpus: which logs, where results are kept, and the outcome.
#![expect(clippy::disallowed_methods, reason = "schedulers name shares in the environment")]

mod checks;
mod partition;

use std::path::PathBuf;

pub(super) use checks::{CheckArgs, annotations, of_one_side};
use partition::{PartitionArg, share_of};

use super::output::Output;
use super::outputs::OutputPath;
use super::page::Page;
use super::progress::{Progress, now_ms};
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult};
use crate::build::Build;
use crate::corpus::{
    Corpus, CorpusError, CorpusShare, CorpusSummary, CorpusSummaryBuilder, JudgedCorpus, LogRow, ResultFolder,
    THIS_BUILD,
};
use crate::engine::EngineError;
use crate::page::corpus_html;
use crate::store::{self, FileType, Target};

/// Which logs of a corpus a command takes.
#[derive(clap::Args)]
#[command(next_help_heading = "Corpus")]
pub(super) struct CorpusArgs {
    /// Draw N logs; each preset and number of players has its share
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Random seed of --sample [default: 1]
    #[arg(long, value_name = "N", requires = "sample")]
    seed: Option<u64>,
    /// Only part K of N, to distribute logs over machines; `env` takes K and N from Slurm, Kubernetes or a CI system
    #[arg(long, value_name = "slice:K/N|env")]
    partition: Option<PartitionArg>,
}

/// How many workers take the logs of a corpus.
#[derive(clap::Args)]
#[command(next_help_heading = "Corpus")]
pub(super) struct WorkerArgs {
    /// Number of logs in parallel [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Where results go, and what they are checked for.
#[derive(clap::Args)]
#[command(next_help_heading = "Corpus")]
pub(super) struct ResultArgs {
    /// Keep verdicts in this folder; a later run judges only logs that changed since
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Write summary.html and a report page of each log that changed most into this folder
    #[arg(long, value_name = "FOLDER")]
    reports: Option<OutputPath>,
    #[command(flatten)]
    pub(super) checks: CheckArgs,
}

impl CorpusArgs {
    /// Whether an option needs a corpus.
    pub(super) fn is_given(&self) -> bool {
        self.given().into_iter().any(|(_, is_given)| is_given)
    }

    /// The options, and whether each is given.
    pub(super) fn given(&self) -> [(&'static str, bool); 3] {
        [("sample", self.sample.is_some()), ("seed", self.seed.is_some()), ("partition", self.partition.is_some())]
    }

    /// Whether only a part of the logs is judged.
    pub(super) fn takes_a_part(&self) -> bool {
        self.sample.is_some() || self.partition.is_some()
    }

    /// The share of the corpus.
    pub(super) fn share(&self) -> Result<Option<CorpusShare>, CommandError> {
        Ok(match self.partition {
            None => None,
            Some(PartitionArg::Share(share)) => Some(share),
            Some(PartitionArg::Environment) => Some(share_of(&|name| std::env::var(name).ok())?),
        })
    }

    /// The logs to judge.
    pub(super) fn corpus(&self, paths: &[PathBuf]) -> Result<Corpus, CommandError> {
        let mut corpus = corpus(paths)?;
        if let Some(count) = self.sample {
            corpus = corpus.sample(count as usize, self.seed.unwrap_or(1));
        }
        let Some(share) = self.share()? else { return Ok(corpus) };
        let all = corpus.logs.len();
        let logs = share.of(corpus.logs);
        if logs.is_empty() {
            let CorpusShare { k, n } = share;
            return Err(CommandError::request(format!("--partition slice:{k}/{n} is empty: there are {all} logs")));
        }
        Ok(Corpus { logs, ..corpus })
    }
}

impl WorkerArgs {
    /// The option, and whether it is given.
    pub(super) fn given(&self) -> (&'static str, bool) {
        ("threads", self.threads.is_some())
    }

    /// The number of workers; 0 for one on each core.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

/// The logs that paths name.
pub(super) fn corpus(paths: &[PathBuf]) -> Result<Corpus, CommandError> {
    Corpus::of(paths).map_err(|error| match error {
        CorpusError::Store(error) => CommandError::Store(error),
        error => CommandError::request(error),
    })
}

impl ResultArgs {
    /// Whether an option asks for the page of the corpus.
    pub(super) fn is_given(&self) -> bool {
        self.given().into_iter().any(|(_, is_given)| is_given)
    }

    /// The options, and whether each is given.
    pub(super) fn given(&self) -> [(&'static str, bool); 4] {
        let [max, markdown] = self.checks.given();
        [("results", self.results.is_some()), ("reports", self.reports.is_some()), max, markdown]
    }

    /// Whether verdicts are kept.
    pub(super) fn keep(&self) -> bool {
        self.results.is_some()
    }

    /// The target of the page with charts. Its folder is created.
    pub(super) fn reports(&self, output: &Output) -> Result<Option<Target>, CommandError> {
        let Some(folder) = &self.reports else { return Ok(None) };
        store::create_folder(folder)?;
        output.files.target_at(&folder.join("summary.html"), FileType::Page).map(Some)
    }

    /// Writes the page with charts, and the report pages beside it. Each page is one more run of this program. Returns a
    /// sentence for each page that could not be written.
    pub(super) fn write_reports(
        &self,
        target: Option<&Target>,
        summary: &CorpusSummary,
    ) -> Result<Vec<String>, CommandError> {
        let (Some(target), Some(folder)) = (target, &self.reports) else { return Ok(Vec::new()) };
        let (thresholds, _) = self.checks.apply(&[summary.into()]);
        let page = corpus_html(&CorpusSummary { thresholds, ..summary.clone() });
        store::save_bytes(target, page.as_bytes())?;
        let mut problems = Vec::new();
        for log in &summary.worst {
            let page = folder.join(&log.page);
            let written = std::env::current_exe().and_then(|program| {
                let mut command = std::process::Command::new(program);
                // The first word is the name of this program.
                command.args(shlex::split(&log.report).unwrap_or_default().iter().skip(1));
                command.arg("-o").arg(&page).args(["--config", "none"]).stdin(std::process::Stdio::null()).output()
            });
            let why = match written {
                Ok(output) if output.status.success() => continue,
                Ok(output) => String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned(),
                Err(error) => error.to_string(),
            };
            problems.push(format!("{}: this page was not written: {why}", page.display()));
        }
        Ok(problems)
    }

    /// Opens the folder of results.
    pub(super) fn folder(&self, share: Option<CorpusShare>) -> Result<Option<ResultFolder>, CommandError> {
        let open = |folder: &PathBuf| ResultFolder::open(folder, share, now_ms).map_err(CommandError::request);
        self.results.as_ref().map(open).transpose()
    }

    /// The build of a side and its digest, which is empty if no results are kept. `None` if the build's files do not
    /// determine it, so that its verdicts are not reused: it is a script, or `runs_again` says so.
    pub(super) fn build(
        &self,
        build: Option<&Build>,
        runs_again: bool,
    ) -> Result<(String, Option<String>), CommandError> {
        let name = build.map_or(THIS_BUILD.to_owned(), |build| build.path().display().to_string());
        if self.results.is_none() {
            return Ok((name, Some(String::new())));
        }
        let digest = match build {
            Some(_) if runs_again => None,
            Some(build) => build.digest(),
            None => {
                let own = std::env::current_exe().map_err(|error| {
                    CommandError::request(format!("this program cannot be found, so --results cannot name it: {error}"))
                })?;
                Build::at(&own).map_err(EngineError::from)?.digest()
            }
        };
        Ok((name, digest.map(|digest| digest.to_string())))
    }
}

/// A bar with the number of logs done, those that differ or failed, the rate and the time left.
pub(super) struct CorpusBar {
    bar: Progress,
    counted: std::sync::atomic::AtomicU64,
}

impl CorpusBar {
    pub(super) fn new(what: &str, logs: usize) -> CorpusBar {
        CorpusBar { bar: Progress::of_logs(what, logs as u64), counted: Default::default() }
    }

    /// Counts a log that no verdict is given on.
    pub(super) fn log_done(&self, failed: bool) {
        self.add(failed, "failed");
    }

    /// Counts a log that was judged.
    pub(super) fn log_judged(&self, log: &LogRow) {
        self.add(log.verdict == "differs", "differ");
    }

    fn add(&self, is_counted: bool, word: &str) {
        use std::sync::atomic::Ordering;
        let more = u64::from(is_counted);
        let all = self.counted.fetch_add(more, Ordering::Relaxed) + more;
        self.bar.one_log_done(&format!("{all} {word}"));
    }
}

/// Prints problems besides the logs on stderr.
pub(super) fn print_problems(problems: &[String]) {
    problems.iter().for_each(|problem| CommandError::request(problem).print());
}

/// The summary of what was judged.
pub(super) fn summary_of<R>(judged: &JudgedCorpus<R>, problems: &[String]) -> CorpusSummary {
    let mut builder = CorpusSummaryBuilder::default();
    judged.logs.iter().for_each(|log| builder.add(&log.rows));
    problems.iter().for_each(|problem| builder.add_problem(problem.clone()));
    if let Some(problem) = &judged.problem {
        builder.add_problem(format!("results are no longer kept: {problem}"));
    }
    builder.summary()
}

/// The outcome of a corpus: its worst verdict. With `thresholds`, a difference alone is no failure.
pub(super) fn outcome(summary: &CorpusSummary, thresholds: Option<CommandOutcome>) -> CommandOutcome {
    let logs = &summary.logs;
    let differs = match thresholds {
        Some(outcome) => outcome == CommandOutcome::Differs,
        None => logs.differs > 0,
    };
    if logs.broken > 0 || !summary.problems.is_empty() {
        CommandOutcome::Trouble
    } else if differs {
        CommandOutcome::Differs
    } else if logs.untestable > 0 || logs.total == 0 || thresholds == Some(CommandOutcome::Untestable) {
        CommandOutcome::Untestable
    } else {
        CommandOutcome::Done
    }
}

/// Shows the page of a corpus, writes the requested files, and returns the outcome.
pub(super) fn finish(
    mut summary: CorpusSummary,
    checks: &CheckArgs,
    target: Option<&Target>,
    output: &mut Output,
    page: impl FnOnce(&mut Page, &CorpusSummary),
) -> CommandResult {
    let thresholds = checks.report_corpus(target, &mut summary)?;
    output.show(&summary, |text| page(text, &summary))?;
    Ok(outcome(&summary, checks.have_thresholds().then_some(thresholds)))
}
