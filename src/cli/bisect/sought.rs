//! Options that define a bad build.

use crate::build::Request;
use crate::build::condition::Condition;
use crate::cli::diff::looking::Looking;
use crate::cli::diff::running::Running;
use crate::cli::interrupt;
use crate::cli::trouble::Trouble;
use crate::engine::bisect::Judge;

/// What is being looked for.
#[derive(clap::Args)]
pub(super) struct Sought {
    /// Shell command that decides instead of comparing traces. {} is replaced by the log, {build} by the build. Exit
    /// code 1 means bad, 0 good, 125 untestable
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["on", "tolerance", "overlap"])]
    condition: Option<String>,
    #[command(flatten)]
    looking: Looking,
}

impl Sought {
    pub(super) fn judge<'a>(
        &self,
        running: &Running,
        request: Request<'a>,
        trace_bytes: usize,
    ) -> Result<Judge<'a>, Trouble> {
        let stop = interrupt::stop()?;
        let condition = self.condition.as_ref().map(|command| Condition::new(command, running.time_limit(), stop));
        Ok(Judge::new(condition, self.looking.options(), running.build_runner()?, request, trace_bytes)?)
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
