//! A comparison as a JUnit report, with a test case for each table.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::diff::{diff_line, diff_page, judgement};
use super::divergence::place;
use crate::diff::{Status, TableDiff, TraceDiff, TraceVerdict};

/// Creates the report. `name` is the name of the suite, such as the paths of the traces. A table that differs is a
/// failure, and a table that cannot be judged an error. If the traces cannot be judged at all, one test case gives the
/// reason.
pub fn diff_junit(name: &str, diff: &TraceDiff) -> Report {
    let mut suite = TestSuite::new(name);
    for table in &diff.tables {
        suite.add_test_case(case(table));
    }
    if let (TraceVerdict::Untestable, Some(reason)) = (diff.verdict, &diff.untestable) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(reason.as_str());
        suite.add_test_case(TestCase::new("traces", status));
    }
    suite.set_system_out(diff_page(diff).text());
    suite.add_property(("summary", diff_line(diff).as_str()));
    let mut report = Report::new("hitreg diff");
    report.add_test_suite(suite);
    report
}

fn case(table: &TableDiff) -> TestCase {
    let (mut status, message) = match table.status {
        Status::Same if table.rows.compared == 0 => {
            (TestCaseStatus::skipped(), Some("neither side has rows".to_owned()))
        }
        Status::Same | Status::WithinTolerance => (TestCaseStatus::success(), None),
        Status::Differs | Status::OnlyInA | Status::OnlyInB => {
            (TestCaseStatus::non_success(NonSuccessKind::Failure), Some(table_line(table)))
        }
        Status::Untestable => {
            (TestCaseStatus::non_success(NonSuccessKind::Error), Some(table.untestable.clone().unwrap_or_default()))
        }
    };
    if let Some(message) = message {
        status.set_message(message);
    }
    let mut case = TestCase::new(table.name.as_str(), status);
    case.set_classname("hitreg.diff");
    case.set_assertions(usize::try_from(table.rows.compared).unwrap_or(usize::MAX));
    case
}

/// Where a table first differs, in one line.
fn table_line(table: &TableDiff) -> String {
    match &table.first {
        Some(first) => {
            let field = first.field.as_ref().map_or(String::new(), |field| format!(", {field}"));
            format!("{}{field}", place(&table.name, &first.place))
        }
        None => format!("{} {}", table.name, judgement(table)),
    }
}
