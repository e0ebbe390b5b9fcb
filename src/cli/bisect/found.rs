//! What a search came to, as text and exit code.

use crate::cli::Outcome;
use crate::cli::diff::print_last_words;
use crate::cli::figures::counted;
use crate::cli::page::{BAD, GOOD, Page, UNSURE};
use crate::diff::On;
use crate::engine::bisect::{Found, Skipped, Verdict};
use crate::report::diff_answer;

pub(super) fn outcome(found: &Found) -> Outcome {
    match found.verdict {
        Verdict::Found | Verdict::Range | Verdict::AllAreBad => Outcome::Differs,
        Verdict::NoneIsBad => Outcome::Done,
        Verdict::Untestable => Outcome::Untestable,
    }
}

/// Prints it; `what` is `build` or `commit`.
pub(super) fn print(found: &Found, page: &mut Page, what: &str) {
    let (first_bad, last_good) = (found.first_bad.as_deref(), found.last_good.as_deref());
    match found.verdict {
        Verdict::Found => page.styled(BAD, &format!("{} is the first bad {what}", first_bad.unwrap_or("-"))),
        Verdict::Range => {
            let among = found.candidates.len();
            page.styled(UNSURE, &format!("The first bad {what} is one of {among}: those between cannot be judged"));
            for name in &found.candidates {
                page.line(&format!("  {name}"));
            }
            page.pair("known bad", first_bad.unwrap_or("-"));
        }
        Verdict::NoneIsBad => page.styled(GOOD, &format!("No {what} is bad: the last plays as the first does")),
        Verdict::AllAreBad => page.styled(BAD, &format!("Every {what} is bad: the first shows it already")),
        Verdict::Untestable => page.styled(UNSURE, "untestable"),
    }
    if let Some(reason) = &found.untestable {
        page.paragraph(2, reason);
        print_last_words(page, &found.last_words);
    }
    if let Some(subject) = &found.subject {
        page.pair("subject", subject);
    }
    if let Some(good) = last_good {
        page.pair("last good", good);
    }
    let resumed = found.resumed.map_or(String::new(), |before| format!(", {before} of them in an earlier run"));
    let skipped = found.skipped.len() as u64;
    if found.probes > 0 {
        page.pair("tried", &format!("{}{resumed}; {} untestable", counted(found.probes as u64, what), skipped));
    }
    for Skipped { name, why } in &found.skipped {
        page.paragraph(2, &format!("{name}: {}", why.reason));
        print_last_words(page, &why.last_words);
    }
    if let Some(diff) = &found.diff {
        page.heading("What changed, A the last good and B the first bad");
        page.append(diff_answer(diff, On::Any));
    }
}
