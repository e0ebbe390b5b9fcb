//! Shows the differences of two texts on a page. Lines that only one text has are signed and coloured, and changed
//! words are highlighted.

use super::figures::count;
use super::page::{FAINT, PLAIN, Page, TextSpan, TextStyle};
use crate::diff::TraceDiff;
use crate::text_diff::{DiffLine, LineOrigin, LineSpan, TextDiff};
use crate::why::CorrectionExplanation;

impl Page {
    /// Adds the first lines of the diff, without wrapping. `rest` says where to find the other lines.
    pub fn text_diff(&mut self, diff: &TextDiff, most: usize, rest: &str) {
        for line in diff.lines.iter().take(most) {
            self.parts(parts(line));
        }
        if let Some(more) = diff.lines.len().checked_sub(most).filter(|more| *more > 0) {
            self.paragraph(2, &format!("({} more lines {rest})", count(more as u64)));
        }
    }
}

fn parts(line: &DiffLine) -> Vec<TextSpan> {
    let [whole, words] = match line.of {
        LineOrigin::Neither => [FAINT; 2],
        LineOrigin::Both => [PLAIN; 2],
        LineOrigin::Before => [TextStyle::Removed, TextStyle::RemovedWords],
        LineOrigin::After => [TextStyle::Added, TextStyle::AddedWords],
    };
    let part = |part: &LineSpan| TextSpan::styled(if part.changed { words } else { whole }, &part.text);
    [TextSpan::styled(whole, format!("  {}", line.sign()))].into_iter().chain(line.words.iter().map(part)).collect()
}

/// The settings of both sides if some differ, with `context` equal settings around each difference.
pub(super) fn settings(page: &mut Page, diff: &TraceDiff, context: usize, most: usize) {
    let [a, b] = &diff.settings;
    let text = |settings: &[(String, String)]| -> String {
        settings.iter().map(|(key, value)| format!("{}\n", one_line(&format!("{key} = {value}")))).collect()
    };
    let mut found = TextDiff::default();
    found.add(["@@ settings @@", "@@"], &text(a), &text(b), context);
    page.text_diff(&found, most, "with --verbose");
}

/// The predicted body, and the actual values of the corrected fields, if the whole predicted body is known. The trace
/// does not have the actual values of the other fields; not all of them were compared.
pub(super) fn body(page: &mut Page, correction: &CorrectionExplanation) {
    let text = |came: bool| -> String {
        let error = |field: &str| correction.errors.iter().find(|error| came && error.field == field);
        let line = |(field, value): &(String, String)| {
            let value = error(field).map_or(value.clone(), |error| error.authoritative.to_string());
            format!("{}\n", one_line(&format!("{field} = {value}")))
        };
        correction.predicted.iter().map(line).collect()
    };
    let mut found = TextDiff::default();
    found.add(["@@ body: predicted (-), actual (+), predicted only ( ) @@", "@@"], &text(false), &text(true), 2);
    if !found.is_empty() {
        page.blank();
        page.text_diff(&found, MOST_BODY_LINES, "in the table `frames`");
    }
}

const MOST_BODY_LINES: usize = 40;

/// Puts a name or value from a file on one line of the page.
fn one_line(text: &str) -> String {
    super::figures::clipped(&super::printable::printable(text), super::layout::WIDTH - 3)
}
