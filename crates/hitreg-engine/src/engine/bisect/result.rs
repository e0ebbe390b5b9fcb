//! The result of a search.

use serde::Serialize;

use crate::build::UntestableBuild;
use crate::build::condition::BuildAnswer;
use hitreg_analysis::diff::{DiffOptions, TraceDiff, diff};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;

/// The outcome of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchVerdict {
    /// The first bad candidate was found.
    Found,
    /// The first bad candidate is one of several, because those in between could not be judged.
    Range,
    /// None is bad, including the last.
    NoneIsBad,
    /// All are bad, including the first.
    AllAreBad,
    /// The good or bad end cannot be judged, so there is no answer.
    #[default]
    Untestable,
}

/// The result of a search.
#[derive(Debug, Default, Serialize)]
pub struct BisectResult {
    /// The judgement.
    pub verdict: SearchVerdict,
    /// The first candidate that is known to be bad.
    pub first_bad: Option<String>,
    /// The last candidate that is known to be good.
    pub last_good: Option<String>,
    /// The first bad commit's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The subject lines of all commits in this result.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub subjects: SortedMap<String, String>,
    /// All candidates that may be the first bad one.
    pub candidates: Vec<String>,
    /// The number of candidates that were tried and used.
    pub probes: usize,
    /// The number of speculative probes that were started but not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculative: Option<usize>,
    /// How many of `probes` come from an earlier, interrupted run of this search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<usize>,
    /// Candidates that could not be judged.
    pub skipped: Vec<SkippedCandidate>,
    /// All candidates that were tried, in order.
    pub tested: Vec<TestedCandidate>,
    /// The reason why the search has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The last lines on stderr of the build that could not be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
    /// The difference between the last good and the first bad candidate.
    pub diff: Option<TraceDiff>,
}

/// A candidate that could not be judged.
#[derive(Debug, Serialize)]
pub struct SkippedCandidate {
    /// Its path or commit.
    pub name: String,
    /// Why it could not be judged.
    #[serde(flatten)]
    pub why: UntestableBuild,
}

/// A candidate that was tried.
#[derive(Debug, Serialize)]
pub struct TestedCandidate {
    /// Its path or commit.
    pub name: String,
    /// `good`, `bad` or `untestable`.
    pub answer: &'static str,
}

impl BisectResult {
    /// Creates a result from the answers, in the order of the trials.
    pub(super) fn of<'a>(
        verdict: SearchVerdict,
        tried: impl Iterator<Item = (String, &'a BuildAnswer)>,
    ) -> BisectResult {
        let (mut tested, mut skipped) = (Vec::new(), Vec::new());
        for (name, answer) in tried {
            if let BuildAnswer::Untestable(why) = answer {
                skipped.push(SkippedCandidate { name: name.clone(), why: why.clone() });
            }
            tested.push(TestedCandidate { name, answer: answer.word() });
        }
        BisectResult { verdict, probes: tested.len(), skipped, tested, ..BisectResult::default() }
    }

    /// Adds the reason why an end of the search could not be judged.
    pub(super) fn with_untestable_end(self, name: &str, what: &str, why: &UntestableBuild) -> BisectResult {
        let UntestableBuild { reason, last_words, .. } = why.clone();
        BisectResult { untestable: Some(format!("{name}, {what}: {reason}")), last_words, ..self }
    }

    /// Adds the difference between the good and the bad trace.
    pub(super) fn compare(&mut self, good: &Trace, bad: &Trace) {
        // Default options have no tolerances, so they are valid for every pair of traces.
        self.diff = diff(good, bad, &DiffOptions::default()).ok();
    }
}
