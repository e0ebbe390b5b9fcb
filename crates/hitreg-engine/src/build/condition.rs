//! A user's command that says whether a log still shows a problem.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize, Serializer};

use super::process::{self, ProcessEnd};
use super::{BuildRunner, UntestableBuild};
use hitreg_analysis::corpus::command_line;

/// A shell command in which `{}` is replaced by a log and `{build}` by a build.
#[derive(Clone, Debug)]
pub struct Condition {
    template: String,
}

/// The judgement of a build, or of a log that a command judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildAnswer {
    /// The build plays as the good build does, or the command answers that the problem is gone (exit code 0).
    Good,
    /// The build plays differently, or the command answers that the problem shows (exit code 1).
    Bad,
    /// It cannot be judged, or the command could not decide (exit code 125 and others, a crash, the time limit).
    Untestable(UntestableBuild),
}

impl BuildAnswer {
    pub(crate) fn serialize_word<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            BuildAnswer::Good => "good",
            BuildAnswer::Bad => "bad",
            BuildAnswer::Untestable(_) => "untestable",
        })
    }
}

/// The error for a command that cannot be run, or that reports trouble.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{command}` gives no answer: {reason}. --while needs a command that exits 1 while the log shows the problem, and 0 without it"
)]
pub struct BadCondition {
    command: String,
    reason: String,
}

impl Condition {
    /// Creates a condition from the user's command.
    pub fn new(template: &str) -> Condition {
        Condition { template: template.to_owned() }
    }

    /// Whether the command contains the build.
    pub(crate) fn names_build(&self) -> bool {
        self.template.contains("{build}") || self.template.contains("HITREG_BUILD")
    }

    /// Asks about a log and a build, within the limits of `runner`. The command's environment also has the build's path,
    /// in `HITREG_BUILD`.
    ///
    /// # Errors
    /// When the command does not exist or reports a failure (exit code 126 and above).
    pub fn ask(&self, runner: &BuildRunner, log: &Path, build: Option<&Path>) -> Result<BuildAnswer, BadCondition> {
        let mut text = self.template.replace("{}", &command_line(&[log.display().to_string()]));
        let mut command = Command::new("sh");
        if let Some(build) = build {
            text = text.replace("{build}", &command_line(&[build.display().to_string()]));
            command.env("HITREG_BUILD", build);
        }
        let bad = |reason: String| BadCondition { command: self.template.clone(), reason };
        command.arg("-c").arg(&text);
        let ran = process::run(command, runner.time_limit, &runner.stop);
        let ran = ran.map_err(|e| bad(e.to_string()))?;
        let reason = match ran.ended {
            ProcessEnd::Exit(0) => return Ok(BuildAnswer::Good),
            ProcessEnd::Exit(1) => return Ok(BuildAnswer::Bad),
            ProcessEnd::Exit(125) => "the command cannot tell (exit code 125)".to_owned(),
            ProcessEnd::Exit(code @ 2..=124) => format!("the command failed (exit code {code})"),
            ProcessEnd::Exit(code) => {
                let quoted = ran.last_words.last().map(|line| format!(" ({line})")).unwrap_or_default();
                return Err(bad(format!("exit code {code}{quoted}")));
            }
            ProcessEnd::Signal(n) => format!("the command crashed ({})", process::signal_name(n)),
            ProcessEnd::TimeLimit(limit) => format!("the command was still running after {} s", limit.as_secs_f64()),
            ProcessEnd::Stopped => "the command was stopped".to_owned(),
        };
        Ok(BuildAnswer::Untestable(UntestableBuild::because(reason).with_last_words(ran.last_words)))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use hitreg_log::memory::MemoryLimit;

    fn ask(command: &str) -> Result<BuildAnswer, BadCondition> {
        let runner = BuildRunner::own(MemoryLimit::default());
        Condition::new(command).ask(&runner, Path::new("a log's.hitlog"), Some(Path::new("/b")))
    }

    #[test]
    fn exit_codes_are_answers() {
        assert_eq!(ask("exit 0").unwrap(), BuildAnswer::Good);
        assert_eq!(ask("exit 1").unwrap(), BuildAnswer::Bad);
        for code in ["125", "2", "77"] {
            assert!(matches!(ask(&format!("exit {code}")).unwrap(), BuildAnswer::Untestable(_)), "{code}");
        }
        let missing = ask("no-such-command-at-all {}").unwrap_err().to_string();
        assert!(missing.contains("exit code 127") && missing.contains("not found"), "{missing}");
    }

    #[test]
    fn paths_are_one_word_each() {
        assert_eq!(
            ask(r#"test {} = "a log's.hitlog" || exit 9; test {build} = $HITREG_BUILD && exit 1"#).unwrap(),
            BuildAnswer::Bad
        );
    }
}
