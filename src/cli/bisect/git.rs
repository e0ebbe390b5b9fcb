//! `hitreg bisect git`: finds the commit after which a game plays a log differently.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use super::found;
use super::sought::SearchArgs;
use crate::build::BuildRequest;
use crate::cli::diff::running::{BuildArgs, parse_jobs, parse_seconds};
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::trouble::CommandError;
use crate::cli::{CommandOutcome, files};
use crate::engine::bisect::GitSearch;
use crate::replay::foreign_trace_memory;

/// The default time limit of a build command.
const BUILD_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Find the commit from which on a game plays a log otherwise
///
/// Commits are built in a worktree of their own in the cache folder: your checkout, your index and HEAD stay as they
/// are, so you may go on working. GOOD is taken for good and BAD for bad; of 100 commits about 7 are built. A commit that
/// does not build, or whose build cannot play the log, is skipped.
///
/// A run that was killed or interrupted goes on where it was when it is started again in the same words.
#[derive(clap::Args)]
#[command(
    override_usage = "hitreg bisect git [OPTIONS] --build-cmd <CMD> --artifact <PATH>\n       <LOG> <GOOD..BAD>",
    after_long_help = "\
Examples:
  hitreg bisect git match.hitlog v1.0..HEAD \\
      --build-cmd 'cargo build --release' --artifact target/release/game
  hitreg bisect git match.hitlog v1.0..HEAD --on hits \\
      --build-cmd make --artifact game
  hitreg bisect git match.hitlog v1.0.. --build-cmd make --artifact game \\
      --while '{build} verify {}'"
)]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The range of commits
    #[arg(value_name = "GOOD..BAD")]
    range: String,
    /// The shell command that builds a commit; it runs at the top of a worktree
    #[arg(long, value_name = "CMD")]
    build_cmd: String,
    /// Where the build is then, from the top of the worktree
    #[arg(long, value_name = "PATH")]
    artifact: PathBuf,
    /// The repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repo: PathBuf,
    /// A build command that takes longer makes the commit untestable [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    build_time_limit: Option<Duration>,
    /// Build so many commits at the same time, in a worktree each: the one that the search waits for, and those that
    /// it may need next. Most build commands keep all cores busy by themselves
    #[arg(long, value_name = "N", value_parser = parse_jobs, default_value = "1")]
    jobs: NonZero<usize>,
    /// Forget what an earlier run of this search had found
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    sought: SearchArgs,
    #[command(flatten)]
    running: BuildArgs,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<CommandOutcome, CommandError> {
    let log = files::read_log(&args.log)?;
    let (log_digest, trace_bytes) = (log.digest, foreign_trace_memory(&log.session));
    drop(log);
    let request = BuildRequest { log: &args.log, log_digest, options: &[] };
    let judge = args.sought.judge(&args.running, request, trace_bytes)?;
    let search = GitSearch {
        repository: &args.repo,
        range: &args.range,
        build_cmd: &args.build_cmd,
        artifact: &args.artifact,
        build_time_limit: args.build_time_limit.unwrap_or(BUILD_TIME_LIMIT),
        jobs: args.jobs.get(),
        folder: &args.running.folder(),
        restart: args.restart,
        sought: &args.sought.words(),
    };
    let progress = Progress::of_things("bisecting", 0);
    let found = search.run(&judge, &|done, of| progress.done(done, of))?;
    drop(progress);
    output.show(&found, |page| found::print(&found, page, "commit", &args.sought.meaning("commit")))?;
    Ok(found::outcome(&found))
}
