//! Prints the result of a search, and chooses the exit code.

use crate::cli::CommandOutcome;
use crate::cli::diff::{print_contract, print_last_words};
use crate::cli::figures::counted;
use crate::cli::page::{BAD, GOOD, Page, UNSURE};
use crate::diff::DiffScope;
use crate::engine::bisect::{BisectResult, SearchVerdict, SkippedCandidate};
use crate::report::diff_answer;

pub(super) fn outcome(found: &BisectResult) -> CommandOutcome {
    match found.verdict {
        SearchVerdict::Found | SearchVerdict::Range | SearchVerdict::AllAreBad => CommandOutcome::Differs,
        SearchVerdict::NoneIsBad => CommandOutcome::Done,
        SearchVerdict::Untestable => CommandOutcome::Untestable,
    }
}

/// What a search tries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateKind {
    Build,
    Commit,
}

impl CandidateKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            CandidateKind::Build => "build",
            CandidateKind::Commit => "commit",
        }
    }
}

/// Prints the result. `bad_means` says what makes a candidate bad.
pub(super) fn print(found: &BisectResult, page: &mut Page, kind: CandidateKind, bad_means: &str) {
    let what = kind.name();
    let named = |name: &str| name_of(found, name);
    let first_bad = found.first_bad.as_deref().map_or("-".to_owned(), named);
    match found.verdict {
        SearchVerdict::Found => {
            let short = found.first_bad.as_deref().map_or("-", |name| short(found, name));
            page.styled(BAD, &format!("{short} is the first bad {what}"));
            page.pair_if("subject", found.subject.as_deref());
        }
        SearchVerdict::Range => {
            let among = found.candidates.len();
            page.styled(UNSURE, &format!("The first bad {what} is one of these {among}; some cannot be judged"));
            for name in &found.candidates {
                page.paragraph(2, &named(name));
            }
            page.pair("known bad", &first_bad);
        }
        SearchVerdict::NoneIsBad => page.styled(GOOD, &format!("No {what} is bad: the last plays like the first")),
        SearchVerdict::AllAreBad => page.styled(BAD, &format!("Every {what} is bad, also the first")),
        SearchVerdict::Untestable => page.styled(UNSURE, "untestable"),
    }
    if let Some(reason) = &found.untestable {
        page.paragraph(2, reason);
        print_last_words(page, &found.last_words);
        if kind == CandidateKind::Build {
            print_contract(page, "BUILD replay LOG -o test.hittrace");
        }
    }
    page.pair_if("last good", found.last_good.as_deref().map(named).as_deref());
    page.pair("bad means", bad_means);
    let resumed = found.resumed.map_or(String::new(), |before| format!(", {before} of them in an earlier run"));
    let skipped = found.skipped.len() as u64;
    if found.probes > 0 {
        page.pair("tried", &format!("{}{resumed}; {} untestable", counted(found.probes as u64, what), skipped));
    }
    for SkippedCandidate { name, why } in &found.skipped {
        page.paragraph(2, &format!("{}: {}", named(name), why.reason));
        print_last_words(page, &why.last_words);
    }
    if let Some(diff) = &found.diff {
        page.heading("What changed: A is the last good, B the first bad");
        page.append(diff_answer(diff, DiffScope::Any));
    }
}

/// The name of a build or commit in the output: for a commit, its short hash and its subject.
fn name_of(found: &BisectResult, name: &str) -> String {
    match found.subjects.get(name) {
        Some(subject) => format!("{} {subject}", short(found, name)),
        None => name.to_owned(),
    }
}

/// Shortens a commit's hash to 10 digits, as git does in a large repository.
fn short<'a>(found: &BisectResult, name: &'a str) -> &'a str {
    const DIGITS: usize = 10;
    match found.subjects.contains_key(name) {
        true => name.get(..DIGITS).unwrap_or(name),
        false => name,
    }
}
