//! Runs a command for each log of a corpus, on all cores. A log that fails does not stop the rest.

use std::path::{Path, PathBuf};

use super::corpus::CorpusBar;
use super::trouble::CommandError;
use super::{CommandOutcome, corpus};
use crate::corpus::{Corpus, for_each_log, is_corpus};

/// Whether paths are to be treated as a corpus: several paths, or a folder, a pattern or a manifest.
pub(super) fn are_several(paths: &[PathBuf]) -> bool {
    paths.len() > 1 || paths.iter().any(|path| is_corpus(path))
}

/// The result for each log, in the order of the corpus.
pub(super) struct EachLog<R> {
    results: Vec<Result<R, CommandError>>,
    problems: Vec<String>,
}

impl<R: Send> EachLog<R> {
    /// Runs `work` for each log, by its index, on this many workers; 0 for one on each core.
    ///
    /// # Errors
    /// When an error is about the options or the output, and so concerns every log.
    pub(super) fn run(
        what: &str,
        corpus: &Corpus,
        threads: usize,
        work: &(dyn Fn(usize, &Path) -> Result<R, CommandError> + Sync),
    ) -> Result<EachLog<R>, CommandError> {
        let bar = CorpusBar::new(what, corpus.logs.len());
        let results = for_each_log(&corpus.logs, threads, &|number| {
            let result = work(number, &corpus.logs[number]);
            bar.log_done(result.is_err());
            match result {
                Err(error) if error.is_about_all_logs() => Err(error),
                result => Ok(result),
            }
        })?;
        Ok(EachLog { results, problems: corpus.problems.clone() })
    }
}

impl<R> EachLog<R> {
    /// The results of the logs that did not fail.
    pub(super) fn done(&self) -> impl Iterator<Item = &R> {
        self.results.iter().filter_map(|result| result.as_ref().ok())
    }

    fn errors(&self) -> impl Iterator<Item = &CommandError> {
        self.results.iter().filter_map(|result| result.as_ref().err())
    }

    /// One sentence for each log that failed, and for each bad line of a manifest.
    pub(super) fn problems(&self) -> Vec<String> {
        self.errors().map(CommandError::to_string).chain(self.problems.iter().cloned()).collect()
    }

    /// Prints the problems on stderr, and returns the outcome.
    pub(super) fn report(&self) -> CommandOutcome {
        self.errors().for_each(CommandError::print);
        corpus::print_problems(&self.problems);
        match self.problems.is_empty() && self.errors().next().is_none() {
            true => CommandOutcome::Done,
            false => CommandOutcome::Trouble,
        }
    }
}
