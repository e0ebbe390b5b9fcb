//! What a search came to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::judge::Answer;
use crate::build::Untestable;
use hitreg_analysis::diff::{DiffOptions, TraceDiff, diff};
use hitreg_log::trace::Trace;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first bad one.
    Found,
    /// It is one of several, because those between could not be judged.
    Range,
    /// None is bad, the last included.
    NoneIsBad,
    /// All are bad, the first included.
    AllAreBad,
    /// An end on which everything rests cannot be judged.
    Untestable,
}

/// The result of a search.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The judgement.
    pub verdict: Verdict,
    /// The first that is known to be bad.
    pub first_bad: Option<String>,
    /// The last that is known to be good.
    pub last_good: Option<String>,
    /// The first bad commit's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The subjects of all commits that are named here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, String>,
    /// All that may be the first bad one.
    pub candidates: Vec<String>,
    /// How many were tried, of which the search used the answer.
    pub probes: usize,
    /// How many were begun beside those and not needed after all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculative: Option<usize>,
    /// How many of those an earlier run of this search had tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<usize>,
    /// Those that could not be judged.
    pub skipped: Vec<Skipped>,
    /// All that were tried, in that order.
    pub tested: Vec<Tested>,
    /// Why nothing can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// What the build said last on which everything rests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
    /// What differs between the last good and the first bad one.
    pub diff: Option<TraceDiff>,
}

/// One that could not be judged.
#[derive(Debug, Serialize)]
pub struct Skipped {
    /// Its path or commit.
    pub name: String,
    /// Why.
    #[serde(flatten)]
    pub why: Untestable,
}

/// One that was tried.
#[derive(Debug, Serialize)]
pub struct Tested {
    /// Its path or commit.
    pub name: String,
    /// `good`, `bad` or `untestable`.
    pub answer: &'static str,
}

impl Found {
    /// A result of these trials, in their order.
    pub(super) fn of(verdict: Verdict, tried: &[(String, Answer)]) -> Found {
        let tested = |(name, answer): &(String, Answer)| Tested { name: name.clone(), answer: answer.word() };
        let skipped = |(name, answer): &(String, Answer)| match answer {
            Answer::Untestable(why) => Some(Skipped { name: name.clone(), why: why.clone() }),
            Answer::Good | Answer::Bad => None,
        };
        Found {
            verdict,
            first_bad: None,
            last_good: None,
            subject: None,
            subjects: BTreeMap::new(),
            candidates: Vec::new(),
            probes: tried.len(),
            speculative: None,
            resumed: None,
            skipped: tried.iter().filter_map(skipped).collect(),
            tested: tried.iter().map(tested).collect(),
            untestable: None,
            last_words: Vec::new(),
            diff: None,
        }
    }

    /// The same when what everything rests on cannot be judged.
    pub(super) fn rests_on(self, name: &str, what: &str, why: &Untestable) -> Found {
        let Untestable { reason, last_words, .. } = why.clone();
        Found { untestable: Some(format!("{name}, {what}: {reason}")), last_words, ..self }
    }

    /// Adds the difference between two outcomes.
    pub(super) fn compare(&mut self, good: &Trace, bad: &Trace) {
        // Without tolerances, which alone can be wrong for a pair of traces.
        self.diff = diff(good, bad, &DiffOptions::default()).ok();
    }
}
