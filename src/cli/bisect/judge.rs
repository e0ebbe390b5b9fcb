//! What makes a build a bad one: it plays the log otherwise than the good one does, or a command says so.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::build::condition::{self, Condition};
use crate::build::{Build, Request, Runner, Stop, Untestable};
use crate::cli::diff::looking::Looking;
use crate::cli::diff::running::Running;
use crate::cli::interrupt;
use crate::cli::trouble::Trouble;
use crate::diff::{DiffOptions, Verdict, diff};
use crate::trace::Trace;

/// What is being looked for.
#[derive(clap::Args)]
pub(super) struct Sought {
    /// Ask a shell command in place of comparing traces: {} stands for the log, {build} for the build; exit code 1
    /// means that it shows, 0 that it does not, 125 that it cannot be told
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["on", "tolerance", "overlap"])]
    condition: Option<String>,
    #[command(flatten)]
    looking: Looking,
}

/// What a build is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It plays as the good one does.
    Good,
    /// It does not.
    Bad,
    /// It cannot be judged.
    Untestable(Untestable),
}

/// Judges builds.
#[derive(Clone)]
pub(super) struct Judge<'a> {
    condition: Option<Condition>,
    options: DiffOptions,
    runner: Runner,
    request: Request<'a>,
}

impl Sought {
    pub(super) fn judge<'a>(&self, running: &Running, request: Request<'a>) -> Result<Judge<'a>, Trouble> {
        let stop = interrupt::stop()?;
        let condition = self.condition.as_ref().map(|command| Condition::new(command, running.time_limit(), stop));
        if condition.as_ref().is_some_and(|condition| !condition.names_build()) {
            let what = "the command of --while never names the build: write {build} where its path belongs";
            return Err(Trouble::Request(what.to_owned()));
        }
        Ok(Judge { condition, options: self.looking.options(), runner: running.runner()?, request })
    }

    /// The words of these options, to tell one search from another.
    pub(super) fn words(&self) -> String {
        format!("{:?} {}", self.condition, self.looking.words())
    }
}

impl Judge<'_> {
    /// What ends everything that judges run.
    pub(super) fn stop(&self) -> &Stop {
        &self.runner.stop
    }

    /// A judge like this one, whom another hand stops.
    pub(super) fn under(&self, stop: &Stop) -> Self {
        Judge {
            condition: self.condition.as_ref().map(|condition| condition.under(stop.clone())),
            runner: Runner { stop: stop.clone(), ..self.runner.clone() },
            ..self.clone()
        }
    }

    /// Whether builds are compared with the good one, so that its trace is needed.
    pub(super) fn compares(&self) -> bool {
        self.condition.is_none()
    }

    pub(super) fn trace(&self, build: &Build) -> Result<Trace, Untestable> {
        self.runner.trace(build, &self.request)
    }

    /// What a build is, when its trace is compared with the good one's.
    pub(super) fn compare(&self, good: &Trace, trace: &Trace) -> Result<Answer, Trouble> {
        let found = diff(good, trace, &self.options).map_err(|error| Trouble::Request(error.to_string()))?;
        Ok(match found.verdict {
            Verdict::Same => Answer::Good,
            Verdict::Differs => Answer::Bad,
            Verdict::Untestable => Answer::Untestable(Untestable {
                reason: found.untestable.unwrap_or_else(|| "its trace cannot be compared".to_owned()),
                last_words: Vec::new(),
            }),
        })
    }

    /// What a build is, when a command says it. `None` when there is no command.
    pub(super) fn ask(&self, build: &Path) -> Result<Option<Answer>, Trouble> {
        let Some(condition) = &self.condition else { return Ok(None) };
        let answer = condition.ask(self.request.log, Some(build));
        Ok(Some(match answer.map_err(|error| Trouble::Request(error.to_string()))? {
            condition::Answer::Gone => Answer::Good,
            condition::Answer::Shows => Answer::Bad,
            condition::Answer::Unknown(untestable) => Answer::Untestable(untestable),
        }))
    }
}

impl Answer {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Answer::Good => "good",
            Answer::Bad => "bad",
            Answer::Untestable(_) => "untestable",
        }
    }
}
