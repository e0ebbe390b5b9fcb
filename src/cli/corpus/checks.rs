//! Thresholds of a corpus or a sweep, and the summary and annotations for CI systems.
#![expect(clippy::disallowed_methods, reason = "CI systems name files in the environment")]

use std::path::PathBuf;

use crate::cli::CommandOutcome;
use crate::cli::output::Output;
use crate::cli::outputs::OutputPath;
use crate::cli::page::Page;
use crate::cli::trouble::CommandError;
use crate::corpus::{CorpusSummary, MeasuredFigures, Threshold, ThresholdFigure, ThresholdResult};
use crate::report::corpus_page;
use crate::store::{self, FileType, Target};

/// Thresholds, and the summary for CI systems.
#[derive(clap::Args)]
#[command(next_help_heading = "Corpus")]
pub(in crate::cli) struct CheckArgs {
    /// Fail if a figure exceeds a number: corrections=3%, view-error-p95=5 (units) or hits-changed=0; repeatable
    #[arg(long, value_name = "FIGURE=NUMBER")]
    max: Vec<Threshold>,
    /// Write the summary as Markdown; `$GITHUB_STEP_SUMMARY` always gets it
    #[arg(long, value_name = "FILE")]
    markdown: Option<OutputPath>,
}

/// Makes `--max` that of a command that compares no sides.
pub(in crate::cli) fn of_one_side(max: clap::Arg) -> clap::Arg {
    max.help("Fail if a figure exceeds a number: corrections=3% or view-error-p95=5 (units); repeatable")
        .value_parser(|text: &str| Threshold::of(text, &ThresholdFigure::OF_ONE_SIDE))
}

impl CheckArgs {
    /// The options, and whether each is given.
    pub(in crate::cli) fn given(&self) -> [(&'static str, bool); 2] {
        [("max", self.have_thresholds()), ("markdown", self.markdown.is_some())]
    }

    /// The target of `--markdown`.
    pub(in crate::cli) fn target(&self, output: &Output) -> Result<Option<Target>, CommandError> {
        output.files.target_if(&self.markdown, FileType::Markdown)
    }

    /// Whether thresholds decide, and no difference alone.
    pub(in crate::cli) fn have_thresholds(&self) -> bool {
        !self.max.is_empty()
    }

    /// Compares the figures with the thresholds, and returns the results with the worst outcome. A sweep has figures for
    /// each row.
    pub(in crate::cli) fn apply(&self, measured: &[MeasuredFigures]) -> (Vec<ThresholdResult>, CommandOutcome) {
        let results: Vec<ThresholdResult> = self.max.iter().map(|threshold| threshold.check(measured)).collect();
        let has = |verdict| results.iter().any(|result| result.verdict == verdict);
        let outcome = match (has("differs"), has("untestable")) {
            (true, _) => CommandOutcome::Differs,
            (false, true) => CommandOutcome::Untestable,
            (false, false) => CommandOutcome::Done,
        };
        (results, outcome)
    }

    /// Writes the summary for CI systems, and annotations.
    pub(in crate::cli) fn report(
        &self,
        target: Option<&Target>,
        page: &dyn Fn() -> Page,
        annotations: &dyn Fn() -> String,
    ) -> Result<(), CommandError> {
        let markdown = || format!("{MARKDOWN_START}\n\n{}", page().markdown());
        if let Some(target) = target {
            store::save_bytes(target, markdown().as_bytes())?;
        }
        if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
            store::append_bytes(&PathBuf::from(path), markdown().as_bytes())?;
        }
        if std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true") {
            use std::io::Write;
            // The runner reads annotations from stderr, too. A closed stderr does not stop the command.
            let _ = write!(std::io::stderr(), "{}", annotations());
        }
        Ok(())
    }

    /// Checks and reports a corpus. Returns the outcome of the thresholds.
    pub(in crate::cli) fn report_corpus(
        &self,
        target: Option<&Target>,
        summary: &mut CorpusSummary,
    ) -> Result<CommandOutcome, CommandError> {
        let (thresholds, outcome) = self.apply(&[(&*summary).into()]);
        summary.thresholds = thresholds;
        self.report(target, &|| corpus_page(summary), &|| corpus_annotations(summary))?;
        Ok(outcome)
    }
}

/// The first line of a summary in Markdown, by which hitreg recognises its own file.
const MARKDOWN_START: &str = "<!-- hitreg summary -->";

/// An annotation for GitHub about a log, or without one.
fn annotation(level: &str, log: &str, what: &str) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let file = if log.is_empty() { String::new() } else { format!(" file={},title=hitreg", property(log)) };
    format!("::{level}{file}::{}\n", escaped(what))
}

/// Annotations about thresholds and problems besides the logs.
pub(in crate::cli) fn annotations(thresholds: &[ThresholdResult], problems: &[String]) -> String {
    let of_threshold = |result: &ThresholdResult| annotation("error", "", &format!("hitreg: {}", result.text()));
    let of_thresholds = thresholds.iter().filter(|result| result.verdict != "same").map(of_threshold);
    of_thresholds.chain(problems.iter().map(|problem| annotation("error", "", problem))).collect()
}

/// Annotations of a corpus: each names log, tick and field.
fn corpus_annotations(summary: &CorpusSummary) -> String {
    let mut text = String::new();
    let mut add = |level: &str, log: &str, what: &str| text.push_str(&annotation(level, log, what));
    for log in &summary.worst {
        let tick = log.tick.map_or(String::new(), |tick| format!(" at tick {tick}"));
        let field = if log.field.is_empty() { String::new() } else { format!(": {}", log.field) };
        let next = if log.next.is_empty() { String::new() } else { format!(". Run: {}", log.next) };
        let level = if summary.a.is_some() { "warning" } else { "error" };
        add(level, &log.log, &format!("{} differs{tick}{field}{next}", log.log));
    }
    for log in &summary.unjudged {
        let level = if log.verdict == "broken" { "error" } else { "warning" };
        add(level, &log.log, &format!("{} is {}: {}", log.log, log.verdict, log.detail));
    }
    text + &annotations(&summary.thresholds, &summary.problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_name_log_tick_and_field() {
        let summary = CorpusSummary {
            worst: vec![crate::corpus::WorstLog {
                log: "a,b.hitlog".to_owned(),
                tick: Some(7),
                field: "bodies.yaw".to_owned(),
                next: "hitreg why 1%".to_owned(),
                ..Default::default()
            }],
            ..CorpusSummary::default()
        };
        let expected =
            "::error file=a%2Cb.hitlog,title=hitreg::a,b.hitlog differs at tick 7: bodies.yaw. Run: hitreg why 1%25\n";
        assert_eq!(corpus_annotations(&summary), expected);
    }
}
