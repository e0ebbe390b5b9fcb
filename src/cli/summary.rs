//! `hitreg summary`: the page of any set of results.

use std::path::PathBuf;

use super::corpus::{CheckArgs, finish};
use super::output::Output;
use super::outputs::OutputPath;
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult};
use crate::corpus::{CorpusSummary, ResultRow, ResultSet, write_row};
use crate::page::corpus_html;
use crate::report::{builds_page, corpus_page};
use crate::store::{self, FileType};

/// Print the page of results that `verify` and `diff` have kept
///
/// Results are folders that --results has written, or files of rows. Those of several machines or nights concatenate:
/// the last verdict on each log counts. If there are results of several builds, the page is that of the last one.
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
    /// Random seed of the confidence interval
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Write all rows of the page in one file, sorted, as JSONL
    #[arg(long, value_name = "FILE")]
    rows: Option<OutputPath>,
    #[command(flatten)]
    checks: CheckArgs,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let html = output.files.target_if(&args.html, FileType::Page)?;
    let columns = ["v", "row", "key"].map(str::to_owned).to_vec();
    let rows = output.files.target_if(&args.rows, FileType::Table(columns))?;
    let markdown = args.checks.target(output)?;
    let results = ResultSet::read(&args.results).map_err(CommandError::request)?;
    if args.by.is_some() {
        let summaries = (0..results.runs()).map(|run| results.summary(run, args.seed));
        let summaries = summaries.collect::<Result<Vec<CorpusSummary>, _>>().map_err(CommandError::request)?;
        output.show(&summaries, |page| page.append(builds_page(&summaries)))?;
        return Ok(CommandOutcome::Done);
    }
    let last = results.runs() - 1;
    let summary = results.summary(last, args.seed).map_err(CommandError::request)?;
    if let Some(target) = &rows {
        let mut lines = Vec::new();
        let mut add = |rows: &[ResultRow]| lines.extend(rows.iter().map(write_row));
        results.each_log(last, &mut add).map_err(CommandError::request)?;
        lines.sort_unstable();
        store::save_bytes(target, lines.concat().as_bytes())?;
    }
    if let Some(target) = &html {
        store::save_bytes(target, corpus_html(&summary).as_bytes())?;
    }
    let others = last;
    finish(summary, &args.checks, markdown.as_ref(), output, |page, summary| {
        page.append(corpus_page(summary));
        if others > 0 {
            page.blank();
            page.faint(0, "These results have other builds or options, too: use --by build to see all.");
        }
    })
}
