//! Compares two sides over every log of a corpus.

use std::path::Path;

use super::run::CorpusJudge;
use crate::engine::{Engine, EngineError, ReplaySpecs, Traces};
use hitreg_analysis::corpus::{LogRow, ResultRow, compared_rows};
use hitreg_analysis::diff::{DiffError, DiffOptions, diff};

/// A comparison of two sides, for any log.
pub struct ComparedCorpus<'a> {
    /// The games, and how builds run.
    pub engine: &'a Engine<'a>,
    /// How both sides replay a log.
    pub replays: &'a ReplaySpecs,
    /// What counts as a difference.
    pub diff: &'a DiffOptions,
    /// The command, the build and the options.
    pub about: LogRow,
    /// The digest of side A's build; `None` if files do not determine both builds, so that no verdict is reused.
    pub depends_on: Option<String>,
    /// Returns the command line that compares one log, by its path.
    pub command: &'a (dyn Fn(&str) -> String + Sync),
}

impl CorpusJudge for ComparedCorpus<'_> {
    type Report = ();

    fn about(&self) -> LogRow {
        self.about.clone()
    }

    fn depends_on(&self, _: &Path) -> Option<String> {
        self.depends_on.clone()
    }

    fn may_reuse(&self, row: &LogRow) -> bool {
        row.verdict != "untestable" || !self.replays.run_builds()
    }

    fn judge(&self, log: &Path, about: LogRow) -> Result<(Vec<ResultRow>, ()), EngineError> {
        let sides = self.replays.of_log(log);
        let Traces { made: [a, b], overlap_only, .. } = match sides.traces_in_files(self.engine) {
            Err(EngineError::Missing(missing)) => {
                let (detail, next) = (missing.untestable_text(), missing.command().unwrap_or_default().to_owned());
                let row = LogRow { verdict: "untestable".to_owned(), detail, next, ..about };
                return Ok((vec![ResultRow::Log(Box::new(row))], ()));
            }
            traces => traces?,
        };
        let traces = [a.source(), b.source()];
        let options = DiffOptions { overlap_only: overlap_only || self.diff.overlap_only, ..self.diff.clone() };
        let found = diff(traces[0], traces[1], &options)?;
        let command = (self.command)(&about.log);
        Ok((compared_rows((about, &command), traces, &found).map_err(DiffError::Unread)?, ()))
    }
}
