//! Prints the results of a verification: first one line for each log that passed, then the others with the problem and
//! the next command.

use std::path::Path;

use super::VerifyReport;
use crate::cli::figures::{count, counted};
use crate::cli::page::{BAD, FAINT, GOOD, Page, TextSpan, UNSURE};
use crate::cli::replay::exercised;
use crate::corpus::name_of;
use crate::report::{corpus_page, verdict_line};
use crate::store::is_standard_stream;
use crate::store::shown::shell_path;
use crate::text_diff::{LineOrigin, TextDiff};
use crate::verify::{Golden, LogReport, LogVerdict, VerdictReason};

/// The level of detail.
pub(super) struct Verbosity<'a> {
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    /// The command line name of this program.
    pub(super) program: &'a str,
    /// The build that replayed the logs; `None` for this build.
    pub(super) build: Option<&'a Path>,
}

/// The problem of a golden without a log.
pub(super) const ORPHAN: &str = "this golden has no log beside it: delete it, or restore the log";

/// Prints the logs, and then the page of the corpus, or only its first line. A quiet run prints it only if something failed.
pub(super) fn print(
    page: &mut Page,
    report: &VerifyReport,
    style: &Verbosity<'_>,
    (has_page, has_passed): (bool, bool),
) {
    let mut logs: Vec<&LogReport> = report.logs.iter().collect();
    logs.sort_by_key(|log| log.verdict);
    let is_long = style.verbose || logs.len() == 1;
    for log in logs {
        match log.verdict {
            LogVerdict::Same if style.quiet || has_page && !style.verbose => {}
            LogVerdict::Same if !is_long => print_line(page, log),
            _ => print_log(page, log, style),
        }
    }
    for golden in &report.orphans {
        page.parts(vec![TextSpan::styled(UNSURE, "orphan     "), golden.display().to_string().into()]);
        page.paragraph(11, ORPHAN);
    }
    if !style.quiet || !has_passed {
        page.blank();
        match has_page {
            true => page.append(corpus_page(&report.summary)),
            false => page.line(&verdict_line(&report.summary.logs)),
        }
    }
    if !has_page {
        for problem in &report.summary.problems {
            page.parts(vec![TextSpan::styled(BAD, "problem    "), problem.as_str().into()]);
        }
    }
}

fn head(log: &LogReport) -> Vec<TextSpan> {
    let style = match log.verdict {
        LogVerdict::Same | LogVerdict::Accepted => GOOD,
        LogVerdict::Untestable => UNSURE,
        LogVerdict::Differs | LogVerdict::Broken => BAD,
    };
    // JSON and JUnit reports always have the verdict's name.
    let word = if log.verdict == LogVerdict::Same { "ok".to_owned() } else { name_of(log.verdict) };
    vec![TextSpan::styled(style, format!("{word:<11}")), log.path.display().to_string().into()]
}

fn print_line(page: &mut Page, log: &LogReport) {
    let mut parts = head(log);
    let hits = log.exercised.hits.map_or("hits not known".to_owned(), |hits| counted(hits, "hit"));
    let figures = format!("  {}, {hits}", counted(log.exercised.ticks, "tick"));
    parts.push(TextSpan::styled(FAINT, figures));
    page.parts(parts);
}

fn print_log(page: &mut Page, log: &LogReport, style: &Verbosity<'_>) {
    page.parts(head(log));
    if log.digest.is_some() || log.legs.is_some() {
        page.paragraph(11, &exercised(&log.exercised));
        page.paragraph(11, &compared(log));
    }
    if let Some(detail) = &log.detail {
        page.paragraph(11, detail);
    }
    if let Some(difference) = &log.difference {
        page.text_diff(difference, MOST_LINES, "in --format json");
    }
    for (label, next) in next(log, style) {
        page.parts(vec![TextSpan::styled(FAINT, format!("           {label}: ")), next.into()]);
    }
}

fn compared(log: &LogReport) -> String {
    let golden = match log.golden {
        Golden::None if is_standard_stream(&log.path) => "no golden",
        Golden::None => "no golden (create one with --accept)",
        Golden::Compared if log.why == Some(VerdictReason::Golden) || log.difference.is_some() => "golden compared",
        Golden::Compared => "golden matches",
        Golden::Accepted => "golden written",
        Golden::Rerecorded => "log and golden written",
        Golden::Proposed => "golden proposed",
    };
    let replays = match (log.legs, log.keyframes) {
        (Some(legs), Some(keyframes)) => {
            let keyframes = counted(keyframes as u64, "keyframe");
            format!("replayed once in {}, {keyframes} compared", counted(legs as u64, "part"))
        }
        _ if log.replays_differ || log.why == Some(VerdictReason::Replays) => {
            "replayed twice, with different results".to_owned()
        }
        _ => "replayed twice, identical".to_owned(),
    };
    let is_other =
        matches!(log.why, Some(VerdictReason::RecordedState | VerdictReason::Keyframe | VerdictReason::Replays));
    let outcome = if log.tick.is_some() || is_other { "compared" } else { "match the recording" };
    let states = match log.hashes_recorded {
        0 => "no tick hashes in the log".to_owned(),
        recorded => format!("{} of {} tick hashes {outcome}", count(log.hashes_compared), count(recorded)),
    };
    let rollbacks = (log.rollbacks > 0).then(|| counted(u64::from(log.rollbacks), "rollback"));
    let parts = [replays, states].into_iter().chain(rollbacks).chain([golden.to_owned()]);
    parts.collect::<Vec<_>>().join("; ")
}

/// The maximum number of lines of a golden's difference.
pub(in crate::cli) const MOST_LINES: usize = 30;

/// The commands to run next, in order, each with its label.
pub(super) fn next(log: &LogReport, style: &Verbosity<'_>) -> Vec<(&'static str, String)> {
    if log.is_one_sided {
        return Vec::new();
    }
    if let (Some(VerdictReason::NotReplayed), Some(build)) = (log.why, style.build) {
        return vec![("next", format!("{} replay {} -o test.hittrace", shell_path(build), shell_path(&log.path)))];
    }
    let Some(why) = log.why.filter(|why| log.verdict == LogVerdict::Differs || *why == VerdictReason::NeedsGolden)
    else {
        return Vec::new();
    };
    let (program, path) = (style.program, shell_path(&log.path));
    let with = |option: &str| style.build.map_or(String::new(), |build| format!(" {option} {}", shell_path(build)));
    let accept = |label| (label, format!("{program} verify {path}{} --accept", with("--build")));
    const INTENDED: &str = "if intended";
    match why {
        VerdictReason::Golden if log.golden == Golden::Proposed => vec![("next", format!("{program} review {path}"))],
        // Side A of these comparisons is this program, so it must play the game.
        VerdictReason::Golden if !log.plays_here => vec![accept(INTENDED)],
        VerdictReason::RecordedState if !log.plays_here => Vec::new(),
        // A golden has no rows, so the commands show the changes in the shots of the replay. Without a build and a changed
        // shot, a comparison of the log with its replay would find nothing: the states are as recorded.
        VerdictReason::Golden => {
            let shot = log.difference.as_ref().and_then(changed_shot);
            let look = match (shot, style.build) {
                (Some(shot), None) => ("why", format!("{program} why {path} {shot}")),
                (None, None) => ("to review", format!("{program} verify {path} --propose")),
                (_, Some(_)) => ("why", format!("{program} diff {path}{}", with("--b"))),
            };
            vec![look, accept(INTENDED)]
        }
        VerdictReason::NeedsGolden => vec![accept("next")],
        VerdictReason::RecordedState => vec![("why", format!("{program} bisect ticks {path}{}", with("--b")))],
        VerdictReason::Keyframe => {
            vec![("to write new keyframes", format!("{program} keyframes {path} -o new.hitlog"))]
        }
        VerdictReason::Rollback => vec![("next", format!("{program} verify {path} --rollback 1"))],
        VerdictReason::Replays
        | VerdictReason::NoGolden
        | VerdictReason::Gap
        | VerdictReason::NothingCompared
        | VerdictReason::NotReplayed
        | VerdictReason::Contradiction
        | VerdictReason::Unreadable => Vec::new(),
    }
}

/// The first changed shot of the replay in a golden's difference, named as in `hitreg why`: `p1#197`.
fn changed_shot(difference: &TextDiff) -> Option<String> {
    let replayed = difference.lines.iter().filter(|line| line.of == LineOrigin::After);
    let mut names = replayed.filter_map(|line| {
        let text: String = line.words.iter().map(|words| words.text.as_str()).collect();
        let mut words = text.strip_prefix("tick ")?.split_whitespace().skip(1);
        let (player, command) = (words.next()?, words.next()?);
        (player.starts_with('p') && command.starts_with('#')).then(|| format!("{player}{command}"))
    });
    names.next()
}
