//! Shows the differences of two texts on a page. Lines that only one text has are signed and coloured, and changed
//! words are highlighted.

use super::figures::count;
use super::layout::WIDTH;
use super::page::{FAINT, PLAIN, Page, TextSpan, TextStyle};
use crate::diff::TraceDiff;
use crate::text_diff::{DiffLine, LineOrigin, LinePart, TextDiff};
use crate::why::CorrectionExplanation;
use textwrap::core::display_width;

impl Page {
    /// Adds the first lines of the diff. `rest` says where to find the other lines.
    pub fn text_diff(&mut self, diff: &TextDiff, most: usize, rest: &str) {
        for line in diff.lines.iter().take(most) {
            wrapped(parts(line)).into_iter().for_each(|line| self.parts(line));
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
    let part = |part: &LinePart| TextSpan::styled(if part.changed { words } else { whole }, &part.text);
    [TextSpan::styled(whole, format!("  {}", line.sign()))].into_iter().chain(line.words.iter().map(part)).collect()
}

/// Breaks a line at spaces where it would be wider than the page. Further lines are indented.
fn wrapped(parts: Vec<TextSpan>) -> Vec<Vec<TextSpan>> {
    let (mut lines, mut width) = (vec![Vec::new()], 0);
    for part in parts {
        for word in part.text.split_inclusive(' ') {
            let text = TextSpan::styled(part.mark, word);
            let is_full = width > INDENT.len() && width + display_width(word.trim_end()) > WIDTH;
            if is_full {
                lines.push(vec![TextSpan::styled(part.mark, INDENT)]);
                width = INDENT.len();
            }
            width += display_width(word);
            lines.last_mut().expect("a line").push(text);
        }
    }
    lines
}

/// The beginning of a line that continues the one before.
const INDENT: &str = "       ";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_continue_on_the_next() {
        let golden = |rewound: &str| {
            format!(
                "tick 197 p1 #194 shotgun: hit p0 stomach 40; on screen: hit p0; rewound {rewound} ms, view error 0.000\n"
            )
        };
        let mut diff = TextDiff::default();
        diff.add(["@@ shots @@", "@@"], &golden("173.696"), &golden("180.000"), 2);
        let mut page = Page::default();
        page.text_diff(&diff, 9, "");
        let text = page.text();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words(&text).ends_with(&words(&golden("180.000"))[1..]), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}
