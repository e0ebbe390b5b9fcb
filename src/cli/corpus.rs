//! Options and outputs of commands over a corpus: which logs, where results are kept, thresholds, and the outcome.
#![expect(clippy::disallowed_methods, reason = "schedulers name shares, and CI systems files, in the environment")]

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::diff::trace_outcome;
use super::page::Page;
use super::progress::{Progress, now_ms};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::build::Build;
use crate::corpus::{
    BadShare, Corpus, CorpusJudge, CorpusRun, CorpusShare, CorpusSummary, CorpusSummaryBuilder, JudgedCorpus, LogRow,
    MeasuredFigures, ResultFolder, ResultRow, THIS_BUILD, Threshold, ThresholdFigure, ThresholdResult, for_each_log,
    is_corpus, name_of,
};
use crate::diff::TraceVerdict;
use crate::engine::EngineError;
use crate::page::corpus_html;
use crate::report::corpus_page;
use crate::store::{self, FileType, Target};
use crate::verify::LogVerdict;

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
    pub(super) results: Option<PathBuf>,
    /// Write summary.html and a report page of each log that changed most into this folder
    #[arg(long, value_name = "FOLDER")]
    reports: Option<OutputPath>,
    #[command(flatten)]
    pub(super) checks: CheckArgs,
}

impl CorpusArgs {
    /// Whether only a part of the logs is taken.
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
        let of_all = corpus.logs.len();
        let logs = share.of(corpus.logs);
        if logs.is_empty() && corpus.problems.is_empty() {
            return Err(CommandError::EmptyShare { share, logs: of_all });
        }
        Ok(Corpus { logs, ..corpus })
    }
}

impl WorkerArgs {
    /// The number of workers; 0 for one on each core.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}

/// The logs that paths name.
pub(super) fn corpus(paths: &[PathBuf]) -> Result<Corpus, CommandError> {
    Corpus::of(paths).map_err(|error| match error {
        EngineError::Request(what) => CommandError::Request(what),
        error => error.into(),
    })
}

impl ResultArgs {
    /// Whether an option asks for the page of the corpus.
    pub(super) fn ask_for_page(&self) -> bool {
        let CheckArgs { max, markdown } = &self.checks;
        self.results.is_some() || self.reports.is_some() || !max.is_empty() || markdown.is_some()
    }

    /// The target of the page with charts. Its folder is created.
    pub(super) fn reports(&self, output: &Output) -> Result<Option<Target>, CommandError> {
        let Some(folder) = &self.reports else { return Ok(None) };
        store::create_folder(folder)?;
        output.files.target_at(&folder.join("summary.html"), FileType::Page).map(Some)
    }

    /// Judges the logs of a corpus behind a bar labelled `what`, and writes the page with charts to `reports`. Goldens
    /// without a log are untestable. Returns the verdicts and their summary.
    pub(super) fn judge<J: CorpusJudge>(
        &self,
        what: &str,
        run: CorpusRun<'_>,
        judge: &J,
        corpus: &Corpus,
        orphans: &[PathBuf],
        reports: Option<&Target>,
    ) -> Result<(JudgedCorpus<J::Report>, CorpusSummary), CommandError> {
        let bar = CorpusBar::new(what, corpus.logs.len());
        let judged = run.judge(&corpus.logs, judge, &|log| bar.add(log.verdict == "differs", "differ"))?;
        drop(bar);
        let mut builder = CorpusSummaryBuilder::default();
        judged.logs.iter().for_each(|log| builder.add(&log.rows));
        for golden in orphans {
            let (log, verdict) = (golden.display().to_string(), name_of(LogVerdict::Untestable));
            let row = LogRow { log, verdict, detail: ORPHAN.to_owned(), ..judge.about() };
            builder.add(&[ResultRow::Log(Box::new(row))]);
        }
        corpus.problems.iter().for_each(|problem| builder.add_problem(problem.clone()));
        if let Some(problem) = &judged.problem {
            builder.add_problem(format!("results are no longer kept: {problem}"));
        }
        let mut summary = builder.summary();
        summary.problems.extend(self.write_reports(reports, &summary)?);
        Ok((judged, summary))
    }

    /// Writes the report pages, and the page with charts and links to them. Each report page is one more run of this
    /// program. Returns a sentence for each page that could not be written.
    fn write_reports(&self, target: Option<&Target>, summary: &CorpusSummary) -> Result<Vec<String>, CommandError> {
        let (Some(target), Some(folder)) = (target, &self.reports) else { return Ok(Vec::new()) };
        let (thresholds, _) = self.checks.apply(&[summary.into()]);
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
                // An error is on stderr; a verdict, such as untestable, is on stdout.
                Ok(output) => {
                    let text = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
                    let words = text.iter().flat_map(|text| text.split_whitespace());
                    format!("{}: {}", output.status, words.collect::<Vec<_>>().join(" "))
                }
                Err(error) => error.to_string(),
            };
            problems.push(format!("{}: this page was not written: {why}", page.display()));
        }
        let exists = |page: &str| folder.join(page).is_file();
        let page = corpus_html(&CorpusSummary { thresholds, ..summary.clone() }, &exists);
        store::save_bytes(target, page.as_bytes())?;
        Ok(problems)
    }

    /// Opens the folder of results.
    pub(super) fn folder(&self, share: Option<CorpusShare>) -> Result<Option<ResultFolder>, CommandError> {
        let open = |folder: &PathBuf| ResultFolder::open(folder, share, now_ms).map_err(CommandError::request);
        self.results.as_ref().map(open).transpose()
    }

    /// The build of a side and its digest, which is empty if no results are kept. `None` if the build's files do not
    /// determine it, so that its verdicts are not reused: it is a script, or always runs again (`runs_again`).
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

/// The problem of a golden without a log.
pub(super) const ORPHAN: &str = "this golden has no log beside it: delete it, or restore the log";

/// A bar with the number of logs done, those that differ or failed, the rate and the time left.
struct CorpusBar {
    bar: Progress,
    counted: std::sync::atomic::AtomicU64,
}

impl CorpusBar {
    fn new(what: &str, logs: usize) -> CorpusBar {
        CorpusBar { bar: Progress::of_logs(what, logs as u64), counted: Default::default() }
    }

    /// Counts a log that is done, and those of which `word` is true.
    fn add(&self, is_counted: bool, word: &str) {
        use std::sync::atomic::Ordering;
        let more = u64::from(is_counted);
        let all = self.counted.fetch_add(more, Ordering::Relaxed) + more;
        self.bar.step(format!("{all} {word}"));
        self.bar.one_done();
    }
}

/// Prints problems besides the logs on stderr.
pub(super) fn print_problems(problems: &[String]) {
    problems.iter().for_each(|problem| CommandError::request(problem).print());
}

/// The outcome of a corpus: its worst verdict or threshold.
pub(super) fn corpus_outcome(summary: &CorpusSummary, thresholds: &[ThresholdResult]) -> CommandOutcome {
    let logs = &summary.logs;
    let has = |verdict| thresholds.iter().any(|result| result.verdict == verdict);
    // With thresholds, a difference between the sides of `diff` alone is no failure.
    let differs = logs.differs > 0 && (summary.command != "diff" || thresholds.is_empty());
    if logs.broken > 0 || !summary.problems.is_empty() {
        CommandOutcome::Trouble
    } else if differs || has(TraceVerdict::Differs) {
        CommandOutcome::Differs
    } else if logs.untestable > 0 || logs.total == 0 || has(TraceVerdict::Untestable) {
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
    checks.report_corpus(target, &mut summary)?;
    output.show(&summary, |text| page(text, &summary))?;
    Ok(corpus_outcome(&summary, &summary.thresholds))
}

/// Thresholds, and the summary for CI systems.
#[derive(clap::Args)]
#[command(next_help_heading = "Corpus")]
pub(super) struct CheckArgs {
    /// Fail if a figure exceeds a number: corrections=3%, view-error-p95=5 (units) or hits-changed=0; repeatable
    #[arg(long, value_name = "FIGURE=NUMBER")]
    max: Vec<Threshold>,
    /// Write the summary as Markdown; `$GITHUB_STEP_SUMMARY` always gets it
    #[arg(long, value_name = "FILE")]
    markdown: Option<OutputPath>,
}

/// Makes `--max` that of a command that compares no sides.
pub(super) fn of_one_side(max: clap::Arg) -> clap::Arg {
    max.help("Fail if a figure exceeds a number: corrections=3% or view-error-p95=5 (units); repeatable")
        .value_parser(|text: &str| Threshold::of(text, &ThresholdFigure::OF_ONE_SIDE))
}

impl CheckArgs {
    /// The target of `--markdown`.
    pub(super) fn target(&self, output: &Output) -> Result<Option<Target>, CommandError> {
        output.files.target_if(&self.markdown, FileType::Markdown)
    }

    /// Compares the figures with the thresholds, and returns the results with the worst outcome. A sweep has figures for
    /// each row.
    pub(super) fn apply(&self, measured: &[MeasuredFigures]) -> (Vec<ThresholdResult>, CommandOutcome) {
        let results: Vec<ThresholdResult> = self.max.iter().map(|threshold| threshold.check(measured)).collect();
        let worst = results.iter().map(|result| result.verdict).max();
        let outcome = worst.map_or(CommandOutcome::Done, trace_outcome);
        (results, outcome)
    }

    /// Writes the summary for CI systems, and annotations.
    pub(super) fn report(
        &self,
        target: Option<&Target>,
        page: &dyn Fn() -> Page,
        annotations: &dyn Fn() -> String,
    ) -> Result<(), CommandError> {
        let markdown = || format!("{MARKDOWN_START}\n\n{}", page().markdown());
        if let Some(target) = target {
            store::save_bytes(target, markdown().as_bytes())?;
        }
        if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
            store::append_bytes(&PathBuf::from(path), markdown().as_bytes())?;
        }
        if std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true") {
            use std::io::Write;
            // The runner reads annotations from stderr, too. A closed stderr does not stop the command.
            let _ = write!(std::io::stderr(), "{}", annotations());
        }
        Ok(())
    }

    /// Checks and reports a corpus.
    pub(super) fn report_corpus(
        &self,
        target: Option<&Target>,
        summary: &mut CorpusSummary,
    ) -> Result<(), CommandError> {
        summary.thresholds = self.apply(&[(&*summary).into()]).0;
        self.report(target, &|| corpus_page(summary), &|| corpus_annotations(summary))
    }
}

/// The first line of a summary in Markdown, by which hitreg recognises its own file.
const MARKDOWN_START: &str = "<!-- hitreg summary -->";

/// An annotation for GitHub about a log, or without one.
fn annotation(level: &str, log: &str, what: &str) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let file = if log.is_empty() { String::new() } else { format!(" file={},title=hitreg", property(log)) };
    format!("::{level}{file}::{}\n", escaped(what))
}

/// Annotations about thresholds and problems besides the logs.
pub(super) fn annotations(thresholds: &[ThresholdResult], problems: &[String]) -> String {
    let of_threshold = |result: &ThresholdResult| annotation("error", "", &format!("hitreg: {}", result.text()));
    let of_thresholds = thresholds.iter().filter(|result| result.verdict != TraceVerdict::Same).map(of_threshold);
    of_thresholds.chain(problems.iter().map(|problem| annotation("error", "", problem))).collect()
}

/// Annotations of a corpus: each names log, tick and field.
pub(super) fn corpus_annotations(summary: &CorpusSummary) -> String {
    let mut text = String::new();
    let mut add = |level: &str, log: &str, what: &str| text.push_str(&annotation(level, log, what));
    for log in &summary.worst {
        let tick = log.tick.map_or(String::new(), |tick| format!(" at tick {tick}"));
        let field = if log.field.is_empty() { String::new() } else { format!(": {}", log.field) };
        let next = if log.next.is_empty() { String::new() } else { format!(". Run: {}", log.next) };
        let level = if summary.a.is_some() { "warning" } else { "error" };
        add(level, &log.log, &format!("{} differs{tick}{field}{next}", log.log));
    }
    for log in &summary.unjudged {
        let level = if log.verdict == "broken" { "error" } else { "warning" };
        add(level, &log.log, &format!("{} is {}: {}", log.log, log.verdict, log.detail));
    }
    text + &annotations(&summary.thresholds, &summary.problems)
}

/// A share of a corpus, or where to find it.
#[derive(Clone, Copy, Debug)]
enum PartitionArg {
    Share(CorpusShare),
    Environment,
}

impl FromStr for PartitionArg {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<PartitionArg, BadShare> {
        match text {
            "env" => Ok(PartitionArg::Environment),
            text => Ok(PartitionArg::Share(text.parse()?)),
        }
    }
}

/// The variables of a scheduler: the number of a share and how many shares there are.
struct ShareVariables {
    number: &'static str,
    numbering: Numbering,
    count: &'static str,
}

/// How a scheduler numbers its shares.
enum Numbering {
    From(usize),
    /// From the first variable's value, in steps of the second one's; 1 if it is not set.
    By(&'static str, &'static str),
}

/// Slurm arrays, Kubernetes indexed Jobs, GitLab and others, CircleCI, Buildkite. Kubernetes sets no number of shares,
/// so a Job sets `JOB_COMPLETIONS` itself.
const SHARES: [ShareVariables; 5] = [
    ShareVariables {
        number: "SLURM_ARRAY_TASK_ID",
        numbering: Numbering::By("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"),
        count: "SLURM_ARRAY_TASK_COUNT",
    },
    ShareVariables { number: "JOB_COMPLETION_INDEX", numbering: Numbering::From(0), count: "JOB_COMPLETIONS" },
    ShareVariables { number: "CI_NODE_INDEX", numbering: Numbering::From(1), count: "CI_NODE_TOTAL" },
    ShareVariables { number: "CIRCLE_NODE_INDEX", numbering: Numbering::From(0), count: "CIRCLE_NODE_TOTAL" },
    ShareVariables {
        number: "BUILDKITE_PARALLEL_JOB",
        numbering: Numbering::From(0),
        count: "BUILDKITE_PARALLEL_JOB_COUNT",
    },
];

/// The share that the environment names.
fn share_of(variable: &dyn Fn(&str) -> Option<String>) -> Result<CorpusShare, CommandError> {
    let Some(names) = SHARES.iter().find(|names| variable(names.number).is_some()) else {
        let known = SHARES.iter().map(|names| names.number).collect::<Vec<_>>().join(", ");
        let what = format!("--partition env: the environment names no share: set one of {known}, or write slice:K/N");
        return Err(CommandError::request(what));
    };
    let number = |name: &str| {
        let value = variable(name).and_then(|value| value.parse::<usize>().ok());
        value.ok_or_else(|| {
            CommandError::request(format!("--partition env: {name} is no number: set it, or write slice:K/N"))
        })
    };
    let (first, step) = match names.numbering {
        Numbering::From(first) => (first, 1),
        Numbering::By(first, step) => (number(first)?, if variable(step).is_some() { number(step)?.max(1) } else { 1 }),
    };
    let (number, n) = (number(names.number)?, number(names.count)?);
    let distance = number.checked_sub(first).filter(|distance| distance % step == 0);
    distance.and_then(|distance| CorpusShare::new((distance / step).checked_add(1)?, n)).ok_or_else(|| {
        CommandError::request(format!(
            "--partition env: {} is {number}, which is no share of {n}: number shares without gaps, or write slice:K/N",
            names.number
        ))
    })
}

/// Whether paths are to be treated as a corpus: several paths, or a folder, a pattern or a manifest.
pub(super) fn are_several(paths: &[PathBuf]) -> bool {
    paths.len() > 1 || paths.iter().any(|path| is_corpus(path))
}

/// The result for each log, in the order of the corpus.
pub(super) struct EachLog<R> {
    results: Vec<Result<R, CommandError>>,
    problems: Vec<String>,
}

impl<R: Send> EachLog<R> {
    /// Runs `work` for each log, by its index, on this many workers; 0 for one on each core.
    ///
    /// # Errors
    /// When an error is about the options or the output, and so concerns every log.
    pub(super) fn run(
        what: &str,
        corpus: &Corpus,
        threads: usize,
        work: &(dyn Fn(usize, &Path) -> Result<R, CommandError> + Sync),
    ) -> Result<EachLog<R>, CommandError> {
        let bar = CorpusBar::new(what, corpus.logs.len());
        let results = for_each_log(&corpus.logs, threads, &|number| {
            let result = work(number, &corpus.logs[number]);
            bar.add(result.is_err(), "failed");
            match result {
                Err(error) if error.is_about_all_logs() => Err(error),
                result => Ok(result),
            }
        })?;
        Ok(EachLog { results, problems: corpus.problems.clone() })
    }
}

impl<R> EachLog<R> {
    /// The results of the logs that did not fail.
    pub(super) fn done(&self) -> impl Iterator<Item = &R> {
        self.results.iter().filter_map(|result| result.as_ref().ok())
    }

    fn errors(&self) -> impl Iterator<Item = &CommandError> {
        self.results.iter().filter_map(|result| result.as_ref().err())
    }

    /// One sentence for each log that failed, and for each bad line of a manifest.
    pub(super) fn problems(&self) -> Vec<String> {
        self.errors().map(CommandError::to_string).chain(self.problems.iter().cloned()).collect()
    }

    /// Prints the problems on stderr, and returns the outcome.
    pub(super) fn report(&self) -> CommandOutcome {
        self.errors().for_each(CommandError::print);
        print_problems(&self.problems);
        match self.problems.is_empty() && self.errors().next().is_none() {
            true => CommandOutcome::Done,
            false => CommandOutcome::Trouble,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use hitreg_log::sorted::SortedMap;

    #[test]
    fn annotations_name_log_tick_and_field() {
        let summary = CorpusSummary {
            worst: vec![crate::corpus::WorstLog {
                log: "a,b.hitlog".to_owned(),
                tick: Some(7),
                field: "bodies.yaw".to_owned(),
                next: "hitreg why 1%".to_owned(),
                ..Default::default()
            }],
            ..CorpusSummary::default()
        };
        let expected =
            "::error file=a%2Cb.hitlog,title=hitreg::a,b.hitlog differs at tick 7: bodies.yaw. Run: hitreg why 1%25\n";
        assert_eq!(corpus_annotations(&summary), expected);
    }

    #[test]
    fn schedulers_name_shares() {
        let share = |pairs: &[(&str, &str)]| {
            let variables: SortedMap<&str, &str> = pairs.iter().copied().collect();
            share_of(&|name| variables.get(name).map(|value| (*value).to_owned())).map_err(|error| error.to_string())
        };
        let of_four = |number| CorpusShare::new(number, 4).expect("a share");
        let slurm = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5"), ("SLURM_ARRAY_TASK_COUNT", "4")];
        assert_eq!(share(&slurm), Ok(of_four(3)));
        let stepped = |number| {
            let of_task = [("SLURM_ARRAY_TASK_ID", number), ("SLURM_ARRAY_TASK_STEP", "2")];
            share(&[&slurm[1..], &of_task].concat())
        };
        assert_eq!(["5", "7", "11"].map(stepped), [1, 2, 4].map(|number| Ok(of_four(number))));
        assert!(stepped("6").is_err_and(|error| error.contains("which is no share of 4")));
        assert_eq!(share(&[("JOB_COMPLETION_INDEX", "0"), ("JOB_COMPLETIONS", "4")]), Ok(of_four(1)));
        assert_eq!(share(&[("CI_NODE_INDEX", "4"), ("CI_NODE_TOTAL", "4")]), Ok(of_four(4)));
        let wrong = |pairs: &[(&str, &str)], sentence: &str| {
            let error = share(pairs).expect_err(sentence);
            assert!(error.contains(sentence), "{error}");
        };
        wrong(&[], "the environment names no share");
        wrong(&[("JOB_COMPLETION_INDEX", "0")], "JOB_COMPLETIONS is no number");
        wrong(&[("CI_NODE_INDEX", "5"), ("CI_NODE_TOTAL", "4")], "CI_NODE_INDEX is 5, which is no share of 4");
        wrong(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "4")], "which is no share of 4");
    }
}
