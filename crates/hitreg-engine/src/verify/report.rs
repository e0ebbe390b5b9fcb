//! The report on one log: its verdict, the reason, and the figures of the replay.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::golden::Golden;
use hitreg_analysis::summary::Coverage;
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::stats::CountedValues;
use hitreg_log::units::Tick;

/// The result for one log.
#[derive(Debug, Default, Serialize)]
pub struct LogReport {
    /// The path of the log.
    #[serde(serialize_with = "hitreg_log::store::shown::path")]
    pub path: PathBuf,
    /// The verdict.
    pub verdict: LogVerdict,
    /// The subject of a verdict other than `same`.
    pub why: Option<VerdictReason>,
    /// The digest of the first replay's trace; `None` if no replay of the whole log succeeded.
    pub digest: Option<String>,
    /// The features that the session exercised.
    pub exercised: Coverage,
    /// The number of tick hashes in the log.
    pub hashes_recorded: u64,
    /// The number of recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Whether replays of the whole log differ from each other.
    #[serde(skip)]
    pub replays_differ: bool,
    /// The number of rollback checks.
    pub rollbacks: u32,
    /// The number of legs, if the log was replayed in legs. Each leg starts from a keyframe and is compared with the
    /// later keyframes that it reaches.
    pub legs: Option<usize>,
    /// The number of keyframes that the legs were compared with.
    pub keyframes: Option<usize>,
    /// Whether this program can replay the log's game, and so use the log in a comparison.
    #[serde(skip)]
    pub plays_here: bool,
    /// Whether the log cannot be replayed because it holds one side of a session.
    #[serde(skip)]
    pub is_one_sided: bool,
    /// Whether the build that replayed the log can record it again.
    #[serde(skip)]
    pub can_rerecord: bool,
    /// What was done with the golden.
    pub golden: Golden,
    /// The golden as this build would write it.
    #[serde(skip)]
    pub(super) golden_text: Option<String>,
    /// The reason for a verdict other than `same`.
    pub detail: Option<String>,
    /// The first tick whose state differs from the recorded state.
    pub tick: Option<Tick>,
    /// The view errors of all shots, in units; `None` if no replay of the whole log succeeded.
    #[serde(skip)]
    pub view_errors: Option<CountedValues>,
    /// The differences from the golden, whatever the verdict: outcomes first, digests last.
    pub difference: Option<TextDiff>,
    /// The duration in seconds. It is left out of the JSON, which is the same in every run.
    #[serde(skip)]
    pub seconds: f64,
}

/// The verdict on one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVerdict {
    /// Everything that was compared is equal, and something was compared.
    Same,
    /// The outcome was accepted as the new golden. It may differ from the golden before it.
    Accepted,
    /// The log cannot be judged.
    #[default]
    Untestable,
    /// Something differs.
    Differs,
    /// The log cannot be read, or contradicts itself.
    Broken,
}

/// The reason for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictReason {
    /// The world was restored and run again, with another result.
    Rollback,
    /// A replayed state differs from the recorded state.
    RecordedState,
    /// A keyframe differs from the replayed state, although the recorded state hashes agree.
    Keyframe,
    /// Replays differ from each other.
    Replays,
    /// The golden differs.
    Golden,
    /// A golden was required, and there is none.
    NoGolden,
    /// The log holds nothing to compare a replay with, so only a golden could decide.
    NeedsGolden,
    /// A part of the log could not be judged.
    Gap,
    /// The replay exercised nothing, or there is nothing to compare it with.
    NothingCompared,
    /// The log could not be replayed.
    NotReplayed,
    /// The log contradicts itself.
    Contradiction,
    /// The log or its golden cannot be read.
    Unreadable,
}

impl LogReport {
    pub(crate) fn new(verdict: LogVerdict) -> LogReport {
        LogReport { verdict, plays_here: true, ..LogReport::default() }
    }

    /// The result for a log that was not replayed.
    pub(super) fn not_replayed(why: impl Into<String>) -> LogReport {
        LogReport::new(LogVerdict::Untestable).but(LogVerdict::Untestable, VerdictReason::NotReplayed, why)
    }

    /// The result for a log that cannot be read.
    pub(super) fn unreadable(path: &Path, why: String) -> LogReport {
        let broken = LogReport::new(LogVerdict::Broken).but(LogVerdict::Broken, VerdictReason::Unreadable, why);
        LogReport { path: path.to_owned(), ..broken }
    }

    /// The same result with another verdict.
    #[must_use]
    pub(super) fn but(self, verdict: LogVerdict, why: VerdictReason, detail: impl Into<String>) -> LogReport {
        LogReport { verdict, why: Some(why), detail: Some(detail.into()), ..self }
    }
}
