//! The page of a corpus: verdicts, figures of both sides, groups of shots, and the logs that changed most.

use super::figures::{count, counted, share};
use super::page::{Bad, Faint, Good, Page, TextSpan, Unsure};
use crate::corpus::{
    CHANGED_LOGS_MIN, CorpusSummary, CorrectionCause, ShotGroup, SideCounts, ThresholdResult, VerdictCounts,
    WeaponChange, three_digits,
};
use crate::diff::TraceVerdict;

/// The numbers of logs and of problems besides them in one line: `3 logs: 2 ok, 1 different, 1 problem`.
pub fn verdict_line(summary: &CorpusSummary) -> String {
    let VerdictCounts { total, same, accepted, differs, untestable, broken } = summary.logs;
    let numbers =
        [(same, "ok"), (accepted, "accepted"), (differs, "different"), (untestable, "untestable"), (broken, "broken")];
    let parts = numbers.into_iter().filter(|(number, _)| *number > 0);
    let parts = parts.map(|(number, verdict)| format!("{} {verdict}", count(number)));
    let problems = (!summary.problems.is_empty()).then(|| counted(summary.problems.len() as u64, "problem"));
    let parts: Vec<String> = parts.chain(problems).collect();
    format!("{}: {}", counted(total, "log"), parts.join(", "))
}

/// The page of a corpus.
pub fn corpus_page(summary: &CorpusSummary) -> Page {
    let mut page = Page::default();
    page.line(&verdict_line(summary));
    page.faint(0, &corpus_subject(summary));
    print_problems(&mut page, &summary.problems);
    print_thresholds(&mut page, &summary.thresholds);
    if summary.b.usercmds > 0 {
        figures(&mut page, summary);
    }
    if summary.a.is_some() {
        groups(&mut page, "weapon", &summary.weapons);
        groups(&mut page, "latency", &summary.latencies);
        groups(&mut page, "players", &summary.players);
        groups(&mut page, "map", &summary.maps);
        causes(&mut page, summary);
        page.blank();
        weapon_changed(&mut page, summary);
        copies_note(summary).iter().for_each(|note| page.faint(2, note));
    }
    worst(&mut page, summary);
    unjudged(&mut page, summary);
    page
}

/// The page of several builds, with a row for each in the order of their results. If commands or options differ, too,
/// they are in the rows.
pub fn builds_page(builds: &[CorpusSummary]) -> Page {
    let mut page = Page::default();
    let question = |of: &CorpusSummary| (of.command.clone(), of.options.clone());
    let is_one = builds.iter().all(|of| question(of) == question(&builds[0]));
    let (what, name): (_, fn(&CorpusSummary) -> String) =
        if is_one { ("build", build_name) } else { ("command", corpus_subject) };
    page.line(&format!("{} over their logs", counted(builds.len() as u64, what)));
    let columns = [">logs", ">same", ">differ", ">hit\n%", ">changed\nhits", ">corr.\n%", ">view error\np95, units"];
    let row = |of: &CorpusSummary| {
        let percent = |(part, all): (u64, u64)| share(part, all).trim_end_matches(" %").to_owned();
        [
            name(of),
            count(of.logs.total),
            count(of.logs.same),
            count(of.logs.differs),
            of.b.hit_share().map_or("-".to_owned(), percent),
            of.hits_changed.map_or("-".to_owned(), count),
            of.b.correction_share().map_or("-".to_owned(), percent),
            of.view_errors.b.map_or("-".to_owned(), |spread| three_digits(spread.p95).to_string()),
        ]
    };
    page.section(what, &columns, builds.iter().map(row));
    page
}

/// The build with the beginning of its digest, which tells builds of one path apart.
fn build_name(summary: &CorpusSummary) -> String {
    format!("{}{}", summary.build, short_digest(summary))
}

fn short_digest(summary: &CorpusSummary) -> String {
    summary.build_digest.get(..8).map_or(String::new(), |start| format!(" ({start})"))
}

/// The command with its build, unless an option names the build, and its options.
pub(crate) fn corpus_subject(summary: &CorpusSummary) -> String {
    let options = if summary.options.is_empty() { String::new() } else { format!(" {}", summary.options) };
    match summary.options.split(' ').any(|word| word == summary.build) {
        true => format!("{}{options}{}", summary.command, short_digest(summary)),
        false => format!("{} of {}{options}", summary.command, build_name(summary)),
    }
}

/// Adds a paragraph for each problem besides the logs.
pub fn print_problems(page: &mut Page, problems: &[String]) {
    for problem in problems {
        page.marked(0, Bad, &format!("problem  {problem}"));
    }
}

/// Adds a line for each threshold with the measured value.
pub fn print_thresholds(page: &mut Page, results: &[ThresholdResult]) {
    for result in results {
        let (mark, word) = match result.verdict {
            TraceVerdict::Same => (Good, "ok"),
            TraceVerdict::Differs => (Bad, "exceeded"),
            TraceVerdict::Untestable => (Unsure, "unknown"),
        };
        page.parts(vec![TextSpan::styled(mark, format!("{word:<10} ")), result.text().into()]);
    }
}

fn figures(page: &mut Page, summary: &CorpusSummary) {
    let (a, b) = (summary.a.as_ref(), &summary.b);
    let both = |of_a: Option<String>, of_b: String| of_a.into_iter().chain([of_b]).collect::<Vec<_>>();
    let errors = |part: fn(hitreg_log::stats::Spread) -> f32| {
        let text = |spread: Option<hitreg_log::stats::Spread>| {
            spread.map_or("-".to_owned(), |spread| three_digits(part(spread)).to_string())
        };
        both(a.map(|_| text(summary.view_errors.a)), text(summary.view_errors.b))
    };
    let percent = |part: Option<(u64, u64)>| part.map_or("-".to_owned(), |(part, all)| share(part, all));
    let shots = |of: &SideCounts| of.shots.map_or("-".to_owned(), count);
    let hits = |of: &SideCounts| percent(of.hit_share());
    let corrected = |of: &SideCounts| percent(of.correction_share());
    let rows = [
        ("shots", both(a.map(shots), shots(b))),
        ("hits, share of shots", both(a.map(hits), hits(b))),
        ("corrections, share of usercmds", both(a.map(corrected), corrected(b))),
        ("view error, median, units", errors(|spread| spread.p50)),
        ("view error, p95, units", errors(|spread| spread.p95)),
    ];
    let columns: &[&str] = if a.is_some() { &[">A", ">B"] } else { &[">replay"] };
    let rows = rows.into_iter().map(|(name, values)| [name.to_owned()].into_iter().chain(values).collect::<Vec<_>>());
    page.section("", columns, rows);
    if let Some(changed) = summary.hits_changed {
        let judged = summary.shots_judged.unwrap_or_default();
        let text = format!(
            "{} with another outcome ({} of {} that A or B judged, impacts included)",
            counted(changed, "shot"),
            share(changed, judged),
            count(judged)
        );
        page.note(2, &text);
    }
}

/// The columns of [`group_cells`] after the name.
pub(crate) const GROUP_COLUMNS: [&str; 5] = ["shots A", "shots B", "hits A", "hits B", "changed"];

/// The row of a group of shots.
pub(crate) fn group_cells(group: &ShotGroup) -> [String; 6] {
    let name = if group.name.is_empty() { "(no name)".to_owned() } else { group.name.clone() };
    let [shots_a, hits_a, changed] = [group.shots_a, group.hits_a, group.changed].map(Option::unwrap_or_default);
    let [of_a, of_b] = [share(hits_a, shots_a), share(group.hits_b, group.shots_b)];
    [name, count(shots_a), count(group.shots_b), of_a, of_b, count(changed)]
}

/// A cause with its corrections on side A and B.
pub(crate) fn cause_cells(cause: &CorrectionCause) -> [String; 3] {
    [cause.cause.replace('_', " "), count(cause.a), count(cause.b)]
}

fn groups(page: &mut Page, title: &str, groups: &[ShotGroup]) {
    // One map says nothing beside the totals.
    if title == "map" && groups.len() < 2 || !groups.iter().any(ShotGroup::has_shots) {
        return;
    }
    let columns = GROUP_COLUMNS.map(|name| format!(">{name}"));
    page.section(
        title,
        &columns.each_ref().map(String::as_str),
        groups.iter().filter(|group| group.has_shots()).map(group_cells),
    );
}

fn causes(page: &mut Page, summary: &CorpusSummary) {
    if summary.causes.is_empty() {
        return;
    }
    let row = |cause: &CorrectionCause| {
        let [name, a, b] = cause_cells(cause);
        [name, a, b, format!("{:+}", cause.b as i64 - cause.a as i64)]
    };
    page.section("corrections", &[">A", ">B", ">change"], summary.causes.iter().map(row));
}

/// A note on logs that are copies of others; `None` without any.
pub(crate) fn copies_note(summary: &CorpusSummary) -> Option<String> {
    let copies = (summary.copies > 0).then(|| counted(summary.copies, "copied log"))?;
    Some(format!("{copies}: in all figures, but not in the test for chance."))
}

fn weapon_changed(page: &mut Page, summary: &CorpusSummary) {
    let Some(change) = &summary.weapon_changed else {
        let words = match summary.weapons_tested {
            0 => "No weapon was tested for a change of its hit rate.".to_owned(),
            tested => format!("No hit rate changed beyond chance: {} tested.", counted(tested, "weapon")),
        };
        page.paragraph(0, &words);
        let least = format!("Only weapons whose hit rate changed in at least {CHANGED_LOGS_MIN} logs are tested.");
        page.faint(2, &least);
        return;
    };
    let WeaponChange { weapon, rate_a, rate_b, interval, first_in, changed_logs } = change;
    let points = |share: f64| format!("{:+.1}", 100.0 * share);
    let text = format!(
        "{weapon}: its hit rate changed most, from {:.2} % to {:.2} %: {} points, 95 % confidence {} to {}. It has the \
         first changed shot in {} of {}.",
        100.0 * rate_a,
        100.0 * rate_b,
        points(rate_b - rate_a),
        points(interval[0]),
        points(interval[1]),
        count(*first_in),
        counted(*changed_logs, "changed log"),
    );
    page.paragraph(0, &text);
}

fn worst(page: &mut Page, summary: &CorpusSummary) {
    if summary.worst.is_empty() {
        return;
    }
    let title = if summary.a.is_some() { "logs that changed most" } else { "logs that differ" };
    page.heading(title);
    for log in &summary.worst {
        let place = match (log.tick, log.field.is_empty()) {
            (Some(tick), false) => format!(", first at tick {tick}: {}", log.field),
            (Some(tick), true) => format!(", first at tick {tick}"),
            (None, false) => format!(", first in {}", log.field),
            (None, true) => String::new(),
        };
        let figures = match summary.a.is_some() {
            true => {
                let corrections = log.corrections_changed.filter(|change| *change != 0).map(|change| {
                    let word = if change < 0 { "fewer" } else { "more" };
                    format!(", {} {word}", counted(change.unsigned_abs(), "correction"))
                });
                format!(
                    ": {}{}",
                    counted(log.hits_changed.unwrap_or_default(), "changed shot"),
                    corrections.unwrap_or_default()
                )
            }
            false => String::new(),
        };
        page.note(2, &format!("{}{figures}{place}", log.log));
        if !log.next.is_empty() {
            page.parts(vec![TextSpan::styled(Faint, "    "), log.next.as_str().into()]);
        }
    }
}

fn unjudged(page: &mut Page, summary: &CorpusSummary) {
    if summary.unjudged.is_empty() {
        return;
    }
    page.heading("logs that could not be judged");
    for log in &summary.unjudged {
        page.note(2, &format!("{} ({}): {}", log.log, log.verdict, log.detail));
        if !log.next.is_empty() {
            page.parts(vec![TextSpan::styled(Faint, "    "), log.next.as_str().into()]);
        }
    }
    let all = summary.logs.untestable + summary.logs.broken;
    let more = all.saturating_sub(summary.unjudged.len() as u64);
    if more > 0 {
        page.faint(2, &format!("and {}", counted(more, "more log")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::WorstLog;

    #[test]
    fn view_errors_have_three_digits_and_changes_a_direction() {
        let mut summary = CorpusSummary { a: Some(SideCounts::default()), ..CorpusSummary::default() };
        summary.b.usercmds = 1;
        summary.view_errors.b = Some(hitreg_log::stats::Spread { p50: 23.04, p95: 0.0512, max: 123.0 });
        for change in [-1, 0, 2] {
            let log = format!("log{change}");
            summary.worst.push(WorstLog { log, corrections_changed: Some(change), ..WorstLog::default() });
        }
        let page = corpus_page(&summary).text();
        assert!(page.contains(" 23\n") && page.contains("0.0512\n"), "{page}");
        for line in ["log-1: 0 changed shots, 1 correction fewer", "log0: 0 changed shots", "2 corrections more"] {
            assert!(page.lines().any(|shown| shown.ends_with(line)), "{line}: {page}");
        }
    }

    #[test]
    fn rows_of_one_build_name_command_and_options() {
        let of = |command: &str, options: &str| CorpusSummary {
            command: command.to_owned(),
            build: "./game".to_owned(),
            options: options.to_owned(),
            ..CorpusSummary::default()
        };
        let page = builds_page(&[of("verify", ""), of("diff", "--b-set x=1")]).text();
        for line in ["2 commands over their logs\n", "  verify of ./game ", "  diff of ./game --b-set "] {
            assert!(page.contains(line), "{line}: {page}");
        }
        let page = builds_page(&[of("verify", ""), CorpusSummary { build: "./new".into(), ..of("verify", "") }]).text();
        assert!(page.starts_with("2 builds over their logs\n") && !page.contains("verify"), "{page}");
    }

    #[test]
    fn a_build_is_named_once() {
        let of = |command: &str, build: &str, options: &str| {
            let [command, build, options] = [command, build, options].map(str::to_owned);
            corpus_subject(&CorpusSummary {
                command,
                build,
                options,
                build_digest: "0123456789".to_owned(),
                ..CorpusSummary::default()
            })
        };
        assert_eq!(of("verify", "this build", ""), "verify of this build (01234567)");
        assert_eq!(of("diff", "this build", "--b-set x=1"), "diff of this build (01234567) --b-set x=1");
        assert_eq!(of("diff", "./new", "--b ./new"), "diff --b ./new (01234567)");
    }
}
