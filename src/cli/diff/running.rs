//! Options for running builds: the time limit, and the cache of their traces.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use crate::build::{BuildRunner, Cache, TIME_LIMIT};
use crate::cli::interrupt;
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::engine::Games;

/// How long builds may run.
#[derive(clap::Args)]
#[command(next_help_heading = "Running builds")]
pub(in crate::cli) struct TimeLimitArgs {
    /// Time limit of a build for one log; a build that takes longer is untestable [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time_limit: Option<Duration>,
}

/// How builds are run.
#[derive(clap::Args)]
#[command(next_help_heading = "Running builds")]
pub(in crate::cli) struct BuildArgs {
    #[command(flatten)]
    pub(in crate::cli) limit: TimeLimitArgs,
    /// Cache folder for traces of builds [default: hitreg in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Run every build again, and use no kept verdict. Scripts always run, because the programs that they start can change
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
}

/// Refuses an option about builds that was typed where no build runs.
fn check(output: &Output, name: &str, is_given: bool) -> Result<(), CommandError> {
    match output.is_typed(name, is_given) {
        true => {
            Err(CommandError::request(format!("--{name} has no effect without a build: name a build, or leave it out")))
        }
        false => Ok(()),
    }
}

impl TimeLimitArgs {
    /// Refuses a time limit that was typed where no build runs.
    pub(in crate::cli) fn check(&self, runs_builds: bool, output: &Output) -> Result<(), CommandError> {
        check(output, "time-limit", !runs_builds && self.time_limit.is_some())
    }

    /// Runs builds within the limit, and caches nothing.
    pub(in crate::cli) fn runner(&self, games: &Games) -> Result<BuildRunner, CommandError> {
        let (stop, memory) = (interrupt::stop()?, games.memory());
        Ok(BuildRunner { time_limit: self.get(), cache: None, stop, memory })
    }

    /// The limit for one log.
    pub(in crate::cli) fn get(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

impl BuildArgs {
    /// Refuses options about builds that were typed where no build runs.
    pub(in crate::cli) fn check(&self, runs_builds: bool, output: &Output) -> Result<(), CommandError> {
        self.limit.check(runs_builds, output)?;
        check(output, "cache", !runs_builds && self.cache.is_some())?;
        check(output, "no-cache", !runs_builds && self.no_cache)
    }

    /// Whether every build runs again, whatever is known of it.
    pub(in crate::cli) fn runs_again(&self) -> bool {
        self.no_cache
    }

    /// Runs builds, if `runs_builds` says that there are any.
    pub(in crate::cli) fn runner(
        &self,
        games: &Games,
        runs_builds: bool,
        output: &Output,
    ) -> Result<BuildRunner, CommandError> {
        self.check(runs_builds, output)?;
        // Without a build, Ctrl-C ends this program's own replays at once.
        if runs_builds { self.build_runner(games) } else { Ok(BuildRunner::own(games.memory())) }
    }

    /// Runs builds.
    pub(in crate::cli) fn build_runner(&self, games: &Games) -> Result<BuildRunner, CommandError> {
        let cache = match &self.cache {
            _ if self.no_cache => None,
            Some(folder) => Some(Cache::open(folder).map_err(CommandError::request)?),
            // A user without a folder for caches runs every build again.
            None => Cache::open(&Cache::usual_folder()).ok(),
        };
        Ok(BuildRunner { cache, ..self.limit.runner(games)? })
    }

    /// A text of these options that distinguishes one search from another.
    pub(in crate::cli) fn words(&self) -> String {
        let cached = if self.no_cache { "without a cache" } else { "with a cache" };
        format!("{} s for a log, {cached}", self.limit.get().as_secs_f64())
    }

    /// The folder for caches and saved searches.
    pub(in crate::cli) fn folder(&self) -> PathBuf {
        self.cache.clone().unwrap_or_else(Cache::usual_folder)
    }
}

pub(in crate::cli) fn parse_jobs(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "write a number from 1".to_owned())
}

pub(in crate::cli) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=1e6).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) | Err(_) => Err("write a number of seconds from 0.001 to 1000000".to_owned()),
    }
}
