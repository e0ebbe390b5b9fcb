//! Options that define a bad build.

use crate::build::BuildRequest;
use crate::build::condition::Condition;
use crate::cli::diff::looking::CompareArgs;
use crate::cli::diff::running::BuildArgs;
use crate::cli::interrupt;
use crate::cli::trouble::CommandError;
use crate::engine::Games;
use crate::engine::bisect::BuildJudge;

/// What is being looked for.
#[derive(clap::Args)]
pub(super) struct SearchArgs {
    /// Shell command that decides instead of comparing traces. {} is replaced by the log, {build} by the build. Exit
    /// code 1 means bad, 0 good, 125 untestable
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["on", "tolerance", "overlap"])]
    condition: Option<String>,
    #[command(flatten)]
    looking: CompareArgs,
}

impl SearchArgs {
    pub(super) fn judge<'a>(
        &self,
        games: &Games,
        running: &BuildArgs,
        request: BuildRequest<'a>,
        trace_bytes: usize,
    ) -> Result<BuildJudge<'a>, CommandError> {
        let stop = interrupt::stop()?;
        let condition = self.condition.as_ref().map(|command| Condition::new(command, running.time_limit(), stop));
        Ok(BuildJudge::new(condition, self.looking.options(), running.build_runner(games)?, request, trace_bytes)?)
    }

    /// A text of these options that distinguishes one search from another.
    pub(super) fn words(&self) -> String {
        format!("{:?} {}", self.condition, self.looking.words())
    }

    /// The meaning of a bad build or commit, as text.
    pub(super) fn meaning(&self, what: &str) -> String {
        match &self.condition {
            Some(command) => format!("`{command}` exits with 1"),
            None => format!("{} from the good {what}'s (--on {})", self.looking.meaning(), self.looking.on_name()),
        }
    }
}
