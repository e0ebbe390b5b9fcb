//! Options for running builds, and `hitreg check`, which tests a build against the contract of builds.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::figures::counted;
use super::page::{Bad, Faint, Good, Page, TextSpan};
use super::trouble::{engine_with_notes, note_reuse};
use super::{CommandError, CommandOutcome, CommandResult, Output, process};
use crate::build::{Build, BuildRunner, Cache, TIME_LIMIT};
use crate::engine::{ContractPoint, Engine, EngineError, Games, PointResult, check_contract};

/// How long builds may run.
#[derive(clap::Args)]
#[command(next_help_heading = "Running builds")]
pub(super) struct TimeLimitArgs {
    /// Time limit of a build for one log; a build that takes longer is untestable [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time_limit: Option<Duration>,
}

/// How builds are run.
#[derive(clap::Args)]
#[command(next_help_heading = "Running builds")]
pub(super) struct BuildArgs {
    #[command(flatten)]
    pub(super) limit: TimeLimitArgs,
    /// Cache folder for traces of builds [default: hitreg in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Run every build again, and use no kept verdict. The cache compares the bytes of a build and of the libraries beside
    /// it: use this for a build that reads other files. Scripts always run
    #[arg(long, conflicts_with = "cache")]
    pub(super) no_cache: bool,
}

/// Refuses an option about builds that was typed where no build runs.
pub(super) fn check_build_options(runs_builds: bool, output: &Output) -> Result<(), CommandError> {
    match ["time-limit", "cache", "no-cache"].into_iter().find(|name| !runs_builds && output.is_typed(name)) {
        Some(name) => {
            Err(CommandError::request(format!("--{name} has no effect without a build: name a build, or leave it out")))
        }
        None => Ok(()),
    }
}

impl TimeLimitArgs {
    /// A runner of builds within the limit, which caches nothing.
    pub(super) fn runner(&self, games: &Games) -> Result<BuildRunner, CommandError> {
        let (stop, memory) = (process::stop()?, games.memory());
        Ok(BuildRunner { time_limit: self.get(), cache: None, stop, memory })
    }

    /// These options, as on the command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let limit = self.time_limit.map(|limit| ["--time-limit".to_owned(), limit.as_secs_f64().to_string()]);
        limit.into_iter().flatten().collect()
    }

    /// The limit for one log.
    pub(super) fn get(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

impl BuildArgs {
    /// A runner of builds. Without builds (`runs_builds`), it caches nothing.
    pub(super) fn runner(
        &self,
        games: &Games,
        runs_builds: bool,
        output: &Output,
    ) -> Result<BuildRunner, CommandError> {
        check_build_options(runs_builds, output)?;
        // Without a build, Ctrl-C ends this program's own replays at once.
        if runs_builds { self.build_runner(games) } else { Ok(BuildRunner::own(games.memory())) }
    }

    /// A runner of builds, with the cache.
    pub(super) fn build_runner(&self, games: &Games) -> Result<BuildRunner, CommandError> {
        let cache = match &self.cache {
            _ if self.no_cache => None,
            Some(folder) => Some(Cache::open(folder, note_reuse).map_err(CommandError::request)?),
            // A user without a folder for caches runs every build again.
            None => Cache::open(&Cache::usual_folder(), note_reuse).ok(),
        };
        Ok(BuildRunner { cache, ..self.limit.runner(games)? })
    }
}

pub(super) fn parse_jobs(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "write a number from 1".to_owned())
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=1e6).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) | Err(_) => Err("write a number of seconds from 0.001 to 1000000".to_owned()),
    }
}

/// Test whether a program is a build that hitreg can use
///
/// It runs the program on a log that the program should replay, on changed and damaged copies of it, and with arguments
/// that the program does not know. For each point, it shows what the program did.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg check ./game match.hitlog

A point is ok, wrong, or absent: something optional that some commands need.
The exit code is 1 if a point is wrong. docs/builds.md has the contract.")]
pub(super) struct Args {
    /// The build
    #[arg(value_name = "BUILD")]
    build: PathBuf,
    /// A log that the build should replay as recorded
    #[arg(value_name = "LOG")]
    log: PathBuf,
    #[command(flatten)]
    limit: TimeLimitArgs,
}

#[derive(Serialize)]
struct ContractReport {
    build: String,
    log: String,
    ok: usize,
    wrong: usize,
    absent: usize,
    points: Vec<ContractPoint>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let build = Build::at(&args.build).map_err(EngineError::from)?;
    let engine = Engine { runner: args.limit.runner(games)?, ..engine_with_notes(games) };
    let points = check_contract(&engine, &build, &args.log)?;
    let of = |result| points.iter().filter(|point| point.result == result).count();
    let [ok, wrong, absent] = [PointResult::Ok, PointResult::Wrong, PointResult::Absent].map(of);
    let report = ContractReport {
        build: args.build.display().to_string(),
        log: args.log.display().to_string(),
        ok,
        wrong,
        absent,
        points,
    };
    output.show(&report, |page| print(page, &report))?;
    Ok(if wrong > 0 { CommandOutcome::Differs } else { CommandOutcome::Done })
}

fn print(page: &mut Page, report: &ContractReport) {
    let build = &report.build;
    match report.wrong {
        0 => page.styled(Good, &format!("{build} keeps the contract of builds")),
        wrong => {
            page.styled(Bad, &format!("{build} breaks the contract of builds in {}", counted(wrong as u64, "point")))
        }
    }
    page.blank();
    for point in &report.points {
        let (style, word) = match point.result {
            PointResult::Ok => (Good, "ok"),
            PointResult::Wrong => (Bad, "wrong"),
            PointResult::Absent => (Faint, "absent"),
        };
        page.parts(vec![TextSpan::styled(style, format!("  {word:<8}")), point.point.into()]);
        page.paragraph(10, &point.what);
    }
}
