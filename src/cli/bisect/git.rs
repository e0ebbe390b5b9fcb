//! `hitreg bisect git`: finds the commit after which a game plays a log differently.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::found::CandidateKind;
use super::sought::SearchArgs;
use crate::cli::CommandResult;
use crate::cli::diff::running::{BuildArgs, parse_jobs, parse_seconds};
use crate::cli::output::Output;
use crate::engine::Games;
use crate::engine::bisect::GitSearch;

/// The default time limit of a build command.
const BUILD_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Find the commit that changed how a game plays a log
///
/// Commits are built in separate worktrees in the cache folder. Your checkout, index and HEAD do not change, so you can
/// keep working. hitreg assumes that GOOD is good and BAD is bad, and builds about 7 of 100 commits. It skips a commit
/// that does not build, or whose build cannot play the log.
///
/// To resume an interrupted search, run the same command again.
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
    /// Shell command that builds a commit; it runs at the top of a worktree
    #[arg(long, value_name = "CMD")]
    build_cmd: String,
    /// Path of the built program, relative to the top of the worktree
    #[arg(long, value_name = "PATH")]
    artifact: OsString,
    /// The repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repo: PathBuf,
    /// Time limit of the build command; a commit that takes longer is untestable [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    build_time_limit: Option<Duration>,
    /// Number of commits to build in parallel, each in its own worktree. Most build commands already use all cores
    #[arg(long, value_name = "N", value_parser = parse_jobs, default_value = "1")]
    jobs: NonZero<usize>,
    /// Start over, without the results of an earlier run of this search
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    sought: SearchArgs,
    #[command(flatten)]
    running: BuildArgs,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let search = GitSearch {
        repository: &args.repo,
        range: &args.range,
        build_cmd: &args.build_cmd,
        artifact: Path::new(&args.artifact),
        build_time_limit: args.build_time_limit.unwrap_or(BUILD_TIME_LIMIT),
        jobs: args.jobs.get(),
        folder: &args.running.folder(),
        restart: args.restart,
        sought: &format!("{}, {}", args.sought.words(), args.running.words()),
    };
    args.sought.search(games, (CandidateKind::Commit, &args.log), &args.running, output, |judge, steps| {
        search.run(judge, steps)
    })
}
