//! What a search came to, as text and JSON.

use serde::Serialize;

use super::judge::Answer;
use crate::build::Untestable;
use crate::cli::Outcome;
use crate::cli::diff::print_last_words;
use crate::cli::figures::counted;
use crate::cli::page::{BAD, GOOD, Page, UNSURE};
use crate::diff::{DiffOptions, TraceDiff, diff};
use crate::report::diff_page;
use crate::trace::Trace;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
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
pub(super) struct Found {
    pub(super) verdict: Verdict,
    /// The first that is known to be bad.
    pub(super) first_bad: Option<String>,
    /// The last that is known to be good.
    pub(super) last_good: Option<String>,
    /// A commit's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    /// All that may be the first bad one.
    pub(super) candidates: Vec<String>,
    /// How many were tried, of which the search used the answer.
    pub(super) probes: usize,
    /// How many were begun beside those and not needed after all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speculative: Option<usize>,
    /// How many of those an earlier run of this search had tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resumed: Option<usize>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) tested: Vec<Tested>,
    /// Why nothing can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) untestable: Option<String>,
    /// What the build said last on which everything rests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) last_words: Vec<String>,
    /// What differs between the last good and the first bad one.
    pub(super) diff: Option<TraceDiff>,
}

/// One that could not be judged.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) why: Untestable,
}

/// One that was tried.
#[derive(Debug, Serialize)]
pub(super) struct Tested {
    pub(super) name: String,
    pub(super) answer: &'static str,
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
        let Untestable { reason, last_words } = why.clone();
        Found { untestable: Some(format!("{name}, {what}: {reason}")), last_words, ..self }
    }

    /// Adds the difference between two outcomes.
    pub(super) fn compare(&mut self, good: &Trace, bad: &Trace) {
        // Without tolerances, which alone can be wrong for a pair of traces.
        self.diff = diff(good, bad, &DiffOptions::default()).ok();
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.verdict {
            Verdict::Found | Verdict::Range | Verdict::AllAreBad => Outcome::Differs,
            Verdict::NoneIsBad => Outcome::Done,
            Verdict::Untestable => Outcome::Untestable,
        }
    }

    /// Prints it; `what` is `build` or `commit`.
    pub(super) fn print(&self, page: &mut Page, what: &str) {
        let (first_bad, last_good) = (self.first_bad.as_deref(), self.last_good.as_deref());
        match self.verdict {
            Verdict::Found => page.styled(BAD, &format!("{} is the first bad {what}", first_bad.unwrap_or("-"))),
            Verdict::Range => {
                let among = self.candidates.len();
                page.styled(UNSURE, &format!("The first bad {what} is one of {among}: those between cannot be judged"));
                for name in &self.candidates {
                    page.line(&format!("  {name}"));
                }
                page.pair("known bad", first_bad.unwrap_or("-"));
            }
            Verdict::NoneIsBad => page.styled(GOOD, &format!("No {what} is bad: the last plays as the first does")),
            Verdict::AllAreBad => page.styled(BAD, &format!("Every {what} is bad: the first shows it already")),
            Verdict::Untestable => page.styled(UNSURE, "untestable"),
        }
        if let Some(reason) = &self.untestable {
            page.paragraph(2, reason);
            print_last_words(page, &self.last_words);
        }
        if let Some(subject) = &self.subject {
            page.pair("subject", subject);
        }
        if let Some(good) = last_good {
            page.pair("last good", good);
        }
        let resumed = self.resumed.map_or(String::new(), |before| format!(", {before} of them in an earlier run"));
        let skipped = self.skipped.len() as u64;
        if self.probes > 0 {
            page.pair("tried", &format!("{}{resumed}; {} untestable", counted(self.probes as u64, what), skipped));
        }
        for Skipped { name, why } in &self.skipped {
            page.paragraph(2, &format!("{name}: {}", why.reason));
            print_last_words(page, &why.last_words);
        }
        if let Some(diff) = &self.diff {
            page.heading("What changed, A the last good and B the first bad");
            page.append(diff_page(diff));
        }
    }
}
