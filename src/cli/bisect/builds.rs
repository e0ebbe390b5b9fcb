//! `hitreg bisect builds`: finds the first build in a list that plays a log differently.

use std::num::NonZero;
use std::path::PathBuf;

use super::found::CandidateKind;
use super::sought::SearchArgs;
use crate::cli::CommandResult;
use crate::cli::diff::running::{BuildArgs, parse_jobs};
use crate::cli::output::Output;
use crate::engine::Games;
use crate::engine::bisect::BuildSearch;

/// Find the first build in a list that plays a log differently from the first one
///
/// List the builds from oldest to newest. Like git bisect, hitreg assumes that the first build is good and the last is
/// bad. It runs an end only if the answer depends on it, or with --verify-ends. For 64 builds, it runs six besides the
/// first. It skips a build that crashes, hangs or writes no valid trace. If the answer lies among skipped builds, it
/// lists all candidates.
///
/// With more than one core, builds that the search may need next run in parallel.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect builds match.hitlog build-01 build-02 build-03 build-04
  hitreg bisect builds match.hitlog --on hits $(ls -tr builds/*)
  hitreg bisect builds match.hitlog builds/* --while '{build} verify {}'")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The builds, oldest first
    #[arg(value_name = "BUILD", required = true, num_args = 2..)]
    builds: Vec<PathBuf>,
    /// Check first that the first build is good and the last is bad
    #[arg(long)]
    verify_ends: bool,
    /// Number of builds to run in parallel [default: number of cores]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    sought: SearchArgs,
    #[command(flatten)]
    running: BuildArgs,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let jobs = args.jobs.map_or_else(rayon::current_num_threads, NonZero::get);
    let search = BuildSearch { builds: &args.builds, verify_ends: args.verify_ends, jobs };
    args.sought.search(games, (CandidateKind::Build, &args.log), &args.running, output, |judge, steps| {
        search.run(judge, steps)
    })
}
