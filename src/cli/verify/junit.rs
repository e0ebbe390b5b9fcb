//! Writes the results as a JUnit report for CI systems.

use std::path::PathBuf;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::show;
use crate::cli::diff::write_junit;
use crate::cli::replay::exercised;
use crate::cli::trouble::CommandError;
use crate::corpus::{CorpusSummary, name_of};
use crate::store::Target;
use crate::verify::{LogReport, LogVerdict};

/// Writes the report. Every verdict that makes the command fail is a failure or an error. Logs that differ are failures;
/// broken and untestable logs are errors. A golden without a log is an error, because a test is missing. So is each of
/// the summary's problems besides the logs, such as a missing log of a manifest. An exceeded threshold is a failure, and
/// one without a measured value an error.
pub(super) fn write(
    target: &Target,
    logs: &[LogReport],
    orphans: &[PathBuf],
    summary: &CorpusSummary,
) -> Result<(), CommandError> {
    let mut suite = TestSuite::new("hitreg verify");
    for log in logs {
        let mut case = TestCase::new(log.path.display().to_string(), status(log));
        case.set_classname("hitreg.verify").set_time(Duration::from_secs_f64(log.seconds));
        case.set_system_out(exercised(&log.exercised));
        suite.add_test_case(case);
    }
    let orphans = orphans.iter().map(|golden| (golden.display().to_string(), LogVerdict::Untestable, show::ORPHAN));
    let problems = summary.problems.iter().map(|problem| (problem.clone(), LogVerdict::Broken, problem.as_str()));
    let mut add = |name: String, mut status: TestCaseStatus, kind: &str, message: &str| {
        status.set_type(kind).set_message(message);
        let mut case = TestCase::new(name, status);
        case.set_classname("hitreg.verify");
        suite.add_test_case(case);
    };
    for (name, verdict, message) in orphans.chain(problems) {
        add(name, TestCaseStatus::non_success(NonSuccessKind::Error), &name_of(verdict), message);
    }
    for result in &summary.thresholds {
        let status = match result.verdict {
            "same" => TestCaseStatus::success(),
            "differs" => TestCaseStatus::non_success(NonSuccessKind::Failure),
            _ => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        add(format!("--max {}", result.threshold.figure.name()), status, result.verdict, &result.text());
    }
    let mut report = Report::new("hitreg");
    report.add_test_suite(suite);
    write_junit(target, &report)
}

fn status(log: &LogReport) -> TestCaseStatus {
    let mut status = match log.verdict {
        LogVerdict::Same | LogVerdict::Accepted => return TestCaseStatus::success(),
        LogVerdict::Differs => TestCaseStatus::non_success(NonSuccessKind::Failure),
        LogVerdict::Untestable | LogVerdict::Broken => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let detail = log.detail.as_deref().unwrap_or_default();
    let difference = log.difference.as_ref().map_or(String::new(), |difference| format!("\n{difference}"));
    status.set_type(name_of(log.verdict)).set_message(detail).set_description(format!("{detail}{difference}"));
    status
}
