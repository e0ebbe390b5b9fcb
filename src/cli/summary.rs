//! `hitreg summary`: the page of any set of results.

use std::path::{Path, PathBuf};

use super::corpus::{CheckArgs, corpus_annotations, corpus_outcome};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::corpus::{CorpusSummary, ResultRow, ResultSet, write_row};
use crate::page::corpus_html;
use crate::report::{builds_page, corpus_page};
use crate::store::{self, FileType, Target};

/// Print the page of results that `verify` and `diff` have kept
///
/// Results are folders that --results has written, or files of rows. Those of several machines or nights concatenate:
/// the last verdict on each log counts. If there are results of several builds, the page is that of the build that ran
/// last, for `verify` and `diff` each. The exit code is that of the worst verdict on the page.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg verify corpus --results nightly && hitreg summary nightly
  hitreg summary shard-1 shard-2 shard-3 shard-4
  hitreg summary nightly --by build
  hitreg summary nightly --html summary.html --max hits-changed=0")]
pub(super) struct Args {
    /// Folders of results, or files of rows
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,
    /// Print a row for each build instead, in the order of their results
    #[arg(long, value_name = "build", value_parser = ["build"], hide_possible_values = true, conflicts_with_all = ["html", "max", "markdown", "rows"])]
    by: Option<String>,
    /// Write an HTML page with charts of the newest run
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Write all rows of the page in one file, sorted by log: JSONL, or Parquet if its name ends in .parquet
    #[arg(long, value_name = "FILE")]
    rows: Option<OutputPath>,
    #[command(flatten)]
    checks: CheckArgs,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let html = output.files.target_if(&args.html, FileType::Page)?;
    let rows = match &args.rows {
        Some(path) => {
            let kind = row_file(path)?;
            Some((output.files.target(path, kind.clone())?, kind))
        }
        None => None,
    };
    let markdown = args.checks.target(output)?;
    #[cfg(feature = "parquet")]
    let folder = store::temporary_folder()?;
    #[cfg(feature = "parquet")]
    let files = &converted(&args.results, &folder)?;
    #[cfg(not(feature = "parquet"))]
    let files = &args.results;
    let results = ResultSet::read(files).map_err(CommandError::request)?;
    if args.by.is_some() {
        let summaries = (0..results.runs()).map(|run| results.summary(run));
        let summaries = summaries.collect::<Result<Vec<CorpusSummary>, _>>().map_err(CommandError::request)?;
        output.show(&summaries, |page| page.append(builds_page(&summaries)))?;
        let outcomes: Vec<CommandOutcome> = summaries.iter().map(|summary| corpus_outcome(summary, &[])).collect();
        return Ok(CommandOutcome::worst(&outcomes));
    }
    let runs = results.last_of_commands();
    let summaries = runs.iter().map(|run| results.summary(*run));
    let mut summaries = summaries.collect::<Result<Vec<CorpusSummary>, _>>().map_err(CommandError::request)?;
    if let Some((target, kind)) = &rows {
        save_rows(target, kind, &row_lines(&results, &runs)?)?;
    }
    if let Some(target) = &html {
        let exists = |page: &str| target.path().with_file_name(page).is_file();
        store::save_bytes(target, corpus_html(&summaries[0], &exists).as_bytes())?;
    }
    summaries[0].thresholds = args.checks.apply(&[(&summaries[0]).into()]).0;
    let newest = &summaries[0];
    let text = || {
        let mut page = corpus_page(newest);
        for summary in &summaries[1..] {
            page.blank();
            page.append(corpus_page(summary));
        }
        page
    };
    let annotations = || summaries.iter().map(corpus_annotations).collect();
    args.checks.report(markdown.as_ref(), &text, &annotations)?;
    output.show(newest, |page| {
        page.append(text());
        if results.runs() > runs.len() {
            page.blank();
            page.faint(0, "These results have other builds or options, too: use --by build to see all.");
        }
    })?;
    let outcomes: Vec<CommandOutcome> =
        summaries.iter().map(|summary| corpus_outcome(summary, &newest.thresholds)).collect();
    Ok(CommandOutcome::worst(&outcomes))
}

/// All rows of these runs as lines, sorted by log.
fn row_lines(results: &ResultSet, runs: &[usize]) -> Result<Vec<String>, CommandError> {
    let mut logs: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |rows: &[ResultRow]| {
        // The row of a log is the last of its rows.
        if let Some(ResultRow::Log(log)) = rows.last() {
            logs.push((log.log.clone(), rows.iter().map(write_row).collect()));
        }
    };
    runs.iter().try_for_each(|run| results.each_log(*run, &mut add)).map_err(CommandError::request)?;
    logs.sort_unstable();
    Ok(logs.into_iter().flat_map(|(_, lines)| lines).collect())
}

/// The kind of a file of rows, by its name.
fn row_file(path: &Path) -> Result<FileType, CommandError> {
    let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    match is_parquet {
        true if cfg!(feature = "parquet") => Ok(FileType::Parquet),
        true => Err(CommandError::request(
            "--rows: this hitreg was built without Parquet: build it with `--features parquet`, or write JSONL",
        )),
        false => Ok(FileType::Table(["v", "row", "key"].map(str::to_owned).to_vec())),
    }
}

fn save_rows(target: &Target, kind: &FileType, lines: &[String]) -> Result<(), CommandError> {
    #[cfg(feature = "parquet")]
    if *kind == FileType::Parquet {
        let mut bytes = Vec::new();
        crate::parquet_file::write_rows(lines, &mut bytes).map_err(|error| CommandError::file(target.path(), error))?;
        return Ok(store::save_bytes(target, &bytes)?);
    }
    let _ = kind;
    Ok(store::save_bytes(target, lines.concat().as_bytes())?)
}

/// The results with Parquet files as JSONL files in a temporary folder.
#[cfg(feature = "parquet")]
fn converted(results: &[PathBuf], folder: &store::TemporaryFolder) -> Result<Vec<PathBuf>, CommandError> {
    let file = |(number, path): (usize, &PathBuf)| {
        if !(path.is_file() && crate::corpus::is_parquet(path)) {
            return Ok(path.clone());
        }
        let target = folder.file(&format!("{number}.jsonl"));
        let rows = crate::parquet_file::read_rows(path).map_err(|error| CommandError::file(path, error))?;
        store::save_bytes(&target, rows.concat().as_bytes())?;
        Ok(target.path().to_owned())
    };
    results.iter().enumerate().map(file).collect()
}
