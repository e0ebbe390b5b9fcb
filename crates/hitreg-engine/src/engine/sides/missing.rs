//! A side of a comparison that has no trace, and why.

use std::path::Path;

use serde::Serialize;

use super::ComparisonSpec;
use crate::build::UntestableBuild;
use crate::engine::repeated::only_once;
use hitreg_analysis::corpus::THIS_BUILD;
use hitreg_analysis::diff::TraceSide;
use hitreg_log::record::GapRecord;
use hitreg_log::store::shown::{shell_path, shell_word};
use hitreg_log::units::ClockTime;

/// A side without a trace, or two sides of different sessions.
#[derive(Debug, Serialize)]
pub struct MissingSide {
    verdict: &'static str,
    /// `a` or `b`; `None` if both traces exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<TraceSide>,
    /// The build of that side; `None` if the log is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<String>,
    #[serde(rename = "untestable")]
    reason: String,
    last_words: Vec<String>,
    #[serde(skip)]
    command: Option<String>,
}

impl MissingSide {
    pub(super) fn new(side: TraceSide, build: String, untestable: UntestableBuild) -> MissingSide {
        let UntestableBuild { reason, last_words, one_sided, .. } = untestable;
        // The log is the reason, so no build is named.
        let build = Some(build).filter(|_| one_sided.is_none());
        MissingSide { side: Some(side), build, last_words, ..MissingSide::because(reason) }
    }

    /// The same side, if it had a trace in an earlier replay.
    pub(super) fn only_once(self) -> MissingSide {
        MissingSide { reason: only_once(&self.reason), ..self }
    }

    pub(super) fn unrelated(difference: String) -> MissingSide {
        let reason = format!("these files are of different sessions, so nothing can be concluded: {difference}");
        MissingSide::because(reason)
    }

    fn because(reason: String) -> MissingSide {
        MissingSide { verdict: "untestable", side: None, build: None, reason, last_words: Vec::new(), command: None }
    }

    /// The recorded side of a log with a missing part. No replay equals the recording after it.
    pub(super) fn incomplete(path: &Path, hole: &GapRecord) -> MissingSide {
        let (from, to) = (ClockTime(hole.from), ClockTime(hole.to));
        let reason = format!(
            "a part of the log is missing, from {from} to {to}, so a replay cannot equal the rest: `hitreg verify {}` judges the part before it",
            shell_path(path)
        );
        MissingSide { side: Some(TraceSide::A), ..MissingSide::because(reason) }
    }

    /// Whether the two sides are of different sessions. [`ComparisonSpec::compare_unrelated`] compares them.
    pub fn is_unrelated(&self) -> bool {
        self.side.is_none()
    }

    /// The verdict and its reason in one line.
    pub fn line(&self) -> String {
        format!("untestable: {}", self.untestable_text())
    }

    /// The build, if one has no trace, and the reason.
    pub fn untestable_text(&self) -> String {
        match &self.build {
            Some(build) => format!("{build}: {}", self.reason),
            None => self.reason.clone(),
        }
    }

    /// The same side, as a side of this comparison.
    pub(super) fn of(self, compared: &ComparisonSpec) -> MissingSide {
        let log = compared.second.as_ref().filter(|_| self.side == Some(TraceSide::B)).unwrap_or(&compared.first);
        let build = self.build.as_deref().filter(|build| *build != THIS_BUILD);
        let command = build.map(|build| format!("{} replay {} -o test.hittrace", shell_word(build), shell_path(log)));
        MissingSide { command, ..self }
    }

    /// The command that shows how the build plays the log of its side of a comparison; `None` if the side has no build
    /// of its own.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The last lines that the build wrote to stderr.
    pub fn last_words(&self) -> &[String] {
        &self.last_words
    }
}

pub(super) fn build_name(build: Option<&Path>) -> String {
    build.map_or(THIS_BUILD.to_owned(), |path| path.display().to_string())
}
