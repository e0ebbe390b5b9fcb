//! Options for running builds: the time limit, and the cache of their traces.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use crate::build::{BuildRunner, Cache, TIME_LIMIT};
use crate::cli::interrupt;
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;

/// How builds are run.
#[derive(clap::Args)]
#[command(next_help_heading = "Running builds")]
pub(in crate::cli) struct BuildArgs {
    /// Time limit of a build for one log; a build that takes longer is untestable [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time_limit: Option<Duration>,
    /// Cache folder for traces of builds [default: hitreg in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Run every build again. Scripts are never cached, because the programs that they start can change
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
}

impl BuildArgs {
    /// Refuses options about builds that were typed where no build runs.
    pub(in crate::cli) fn check(&self, runs_builds: bool, output: &Output) -> Result<(), CommandError> {
        let given =
            [("time-limit", self.time_limit.is_some()), ("cache", self.cache.is_some()), ("no-cache", self.no_cache)];
        match given.iter().find(|(name, is_given)| *is_given && !output.files.is_by_default(name)) {
            Some((name, _)) if !runs_builds => Err(CommandError::Request(format!(
                "--{name} has no effect without a build: add --a or --b, or leave it out"
            ))),
            _ => Ok(()),
        }
    }

    /// Runs builds, if `runs_builds` says that there are any.
    pub(in crate::cli) fn runner(&self, runs_builds: bool, output: &Output) -> Result<BuildRunner, CommandError> {
        self.check(runs_builds, output)?;
        match runs_builds {
            true => self.build_runner(),
            false => Ok(BuildRunner { time_limit: self.time_limit(), cache: None, stop: interrupt::stop()? }),
        }
    }

    /// Runs builds.
    pub(in crate::cli) fn build_runner(&self) -> Result<BuildRunner, CommandError> {
        let cache = match self.no_cache {
            true => None,
            false => Some(Cache::open(&self.folder()).map_err(|error| CommandError::Request(error.to_string()))?),
        };
        Ok(BuildRunner { time_limit: self.time_limit(), cache, stop: interrupt::stop()? })
    }

    pub(in crate::cli) fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
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
