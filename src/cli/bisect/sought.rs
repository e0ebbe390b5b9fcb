//! The search for a bad build or commit, and the options that define it.

use std::path::Path;

use super::found::{self, CandidateKind};
use crate::build::condition::Condition;
use crate::build::{BuildRequest, OneSidedLog};
use crate::cli::diff::looking::CompareArgs;
use crate::cli::diff::running::BuildArgs;
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::{CommandResult, files};
use crate::engine::bisect::{BisectResult, BuildJudge, StepProgress};
use crate::engine::{EngineError, Games};
use crate::replay::foreign_trace_memory;
use crate::store;

/// What is being looked for.
#[derive(clap::Args)]
pub(super) struct SearchArgs {
    /// Shell command that decides instead of comparing traces. {} is replaced by the log, {build} by the build. Exit
    /// code 0 means good, 1 bad, 2 to 125 untestable; others stop the search
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["on", "tolerance", "overlap"])]
    condition: Option<String>,
    #[command(flatten)]
    looking: CompareArgs,
}

impl SearchArgs {
    /// Runs a search for the first bad build or commit, and shows the result.
    pub(super) fn search(
        &self,
        games: &Games,
        (kind, log): (CandidateKind, &Path),
        running: &BuildArgs,
        output: &mut Output,
        run: impl FnOnce(&BuildJudge<'_>, &StepProgress<'_>) -> Result<BisectResult, EngineError>,
    ) -> CommandResult {
        store::check_regular(log)?;
        // The session is dropped before the search.
        let (log_digest, trace_bytes, side) = {
            let log = files::engine(games).read_log(log)?;
            (log.digest, foreign_trace_memory(&log.session), OneSidedLog::of(&log.session))
        };
        let request = BuildRequest { log, log_digest, options: &[], side };
        let condition = self.condition.as_deref().map(Condition::new);
        let runner = running.build_runner(games)?;
        let judge = BuildJudge::new(condition, self.looking.options(), runner, request, trace_bytes)?;
        let progress = Progress::of_things("bisecting", 0);
        let found = run(&judge, &|done, of| progress.done(done, of))?;
        drop(progress);
        output.show(&found, |page| found::print(&found, page, kind, &self.meaning(kind)))?;
        Ok(found::outcome(&found))
    }

    /// A text of these options that distinguishes one search from another.
    pub(super) fn words(&self) -> String {
        format!("{:?} {}", self.condition, self.looking.words())
    }

    /// The meaning of a bad build or commit, as text.
    fn meaning(&self, kind: CandidateKind) -> String {
        match &self.condition {
            Some(command) => format!("`{command}` exits with 1"),
            None => {
                format!("{} from the good {}'s (--on {})", self.looking.meaning(), kind.name(), self.looking.on_name())
            }
        }
    }
}
