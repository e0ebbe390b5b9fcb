//! The model of a page: the output of a command in blocks, without a layout. It serializes as the list of its blocks.
//! Text from files goes through this model before it reaches a terminal, and its control characters are escaped: in a
//! name, they could clear the screen or imitate hitreg's own output.

use std::borrow::Cow;

use serde::Serialize;
use textwrap::core::display_width;

use super::figures::{clipped, count};
use super::layout::WIDTH;
use crate::text_diff::{DiffLine, LineOrigin, LinePart, TextDiff};

/// Blocks in reading order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Page {
    /// The blocks.
    pub blocks: Vec<PageBlock>,
}

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "block")]
pub enum PageBlock {
    /// The title of the following blocks.
    Heading {
        /// The text.
        text: String,
    },
    /// Space before the next block.
    Gap,
    /// One line, not wrapped.
    Line {
        /// The parts of the line.
        parts: Vec<TextSpan>,
    },
    /// Text that wraps.
    Paragraph {
        /// The indent, in columns.
        indent: usize,
        /// The text.
        text: TextSpan,
    },
    /// Values separated by commas. No value is broken across lines.
    List {
        /// The indent, in columns.
        indent: usize,
        /// The values.
        items: Vec<String>,
    },
    /// A label with its value.
    Pair {
        /// The column of the label.
        indent: usize,
        /// The column of the value.
        value_at: usize,
        /// The label.
        label: String,
        /// The value.
        value: String,
    },
    /// Rows and columns.
    Table(PageTable),
}

/// A table of rows and columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageTable {
    /// The title, in place of the first column's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The columns' names, which may be empty, and the alignment of their cells.
    pub columns: Vec<(String, Alignment)>,
    /// Rows with a cell for each column, or for the first few columns.
    pub rows: Vec<Vec<TextSpan>>,
}

/// Text with one mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TextSpan {
    /// The text.
    pub text: String,
    /// The meaning of the text.
    pub mark: TextStyle,
}

/// The meaning of text, from which a terminal chooses a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    /// No special meaning.
    #[default]
    Plain,
    /// Important text.
    Strong,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// An undecided result.
    Unsure,
    /// Less important text.
    Faint,
    /// A line of the first text that the second lacks.
    Removed,
    /// Changed words within such a line.
    RemovedWords,
    /// A line of the second text that the first lacks.
    Added,
    /// Changed words within such a line.
    AddedWords,
}

#[doc(no_inline)]
pub use TextStyle::{Bad, Faint, Good, Plain, Strong, Unsure};

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Alignment {
    /// For text, which wraps if the page is too narrow for the table.
    Left,
    /// For numbers.
    Right,
}

impl Page {
    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(PageBlock::Heading { text: printable(text).into_owned() });
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.blocks.push(PageBlock::Gap);
    }

    /// Adds a line.
    pub fn line(&mut self, text: &str) {
        self.styled(Plain, text);
    }

    /// Adds a line with a mark.
    pub fn styled(&mut self, mark: TextStyle, text: &str) {
        self.parts(vec![TextSpan::styled(mark, text)]);
    }

    /// Adds a line of parts with different marks.
    pub fn parts(&mut self, mut parts: Vec<TextSpan>) {
        parts.iter_mut().for_each(TextSpan::make_printable);
        self.blocks.push(PageBlock::Line { parts });
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, indent: usize, text: &str) {
        self.marked(indent, Plain, text);
    }

    /// Adds a paragraph of less important text.
    pub fn faint(&mut self, indent: usize, text: &str) {
        self.marked(indent, Faint, text);
    }

    /// Adds a paragraph with a mark.
    pub fn marked(&mut self, indent: usize, mark: TextStyle, text: &str) {
        self.blocks.push(PageBlock::Paragraph { indent, text: TextSpan::styled(mark, printable(text)) });
    }

    /// Adds a paragraph of text that may come from a file. Words longer than a line are cut.
    pub fn note(&mut self, indent: usize, text: &str) {
        let words: Vec<String> = text.split_whitespace().map(|word| clipped(word, WIDTH - indent)).collect();
        self.paragraph(indent, &words.join(" "));
    }

    /// Adds values separated by commas. A value longer than a line is cut.
    pub fn list(&mut self, indent: usize, items: Vec<String>) {
        let items = items.iter().map(|item| clipped(&printable(item), WIDTH - indent - 1)).collect();
        self.blocks.push(PageBlock::List { indent, items });
    }

    /// Adds a label in column 2 with its value in column 16.
    pub fn pair(&mut self, label: &str, value: &str) {
        self.labelled([2, 16], label, value);
    }

    /// Adds a label with its value, if there is a value.
    pub fn pair_if(&mut self, label: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.pair(label, value);
        }
    }

    /// Adds a label and its value in the given columns.
    pub fn labelled(&mut self, [indent, value_at]: [usize; 2], label: &str, value: &str) {
        let [label, value] = [label, value].map(|text| printable(text).into_owned());
        self.blocks.push(PageBlock::Pair { indent, value_at, label, value });
    }

    /// Adds a table. The cells of a column whose name begins with `>` are aligned to the right, as numbers are.
    pub fn table<R: IntoIterator<Item: Into<TextSpan>>>(
        &mut self,
        columns: &[&str],
        rows: impl IntoIterator<Item = R>,
    ) {
        self.blocks.push(PageBlock::Table(PageTable::new(None, columns, rows)));
    }

    /// Adds a table that is its own section, with `title` above its first column. `columns` are the others.
    pub fn section<R>(&mut self, title: &str, columns: &[&str], rows: impl IntoIterator<Item = R>)
    where
        R: IntoIterator<Item: Into<TextSpan>>,
    {
        self.blank();
        let title = Some(printable(title).into_owned());
        self.blocks.push(PageBlock::Table(PageTable::new(title, &[&[""], columns].concat(), rows)));
    }

    /// Adds the first lines of the diff. `rest` says where to find the other lines.
    pub fn text_diff(&mut self, diff: &TextDiff, most: usize, rest: &str) {
        for line in diff.lines.iter().take(most) {
            wrapped_spans(spans_of(line)).into_iter().for_each(|line| self.parts(line));
        }
        if let Some(more) = diff.lines.len().checked_sub(most).filter(|more| *more > 0) {
            self.paragraph(2, &format!("({} more lines {rest})", count(more as u64)));
        }
    }

    /// Adds all blocks of another page.
    pub fn append(&mut self, other: Page) {
        self.blocks.extend(other.blocks);
    }
}

impl PageTable {
    fn new<R>(title: Option<String>, columns: &[&str], rows: impl IntoIterator<Item = R>) -> PageTable
    where
        R: IntoIterator<Item: Into<TextSpan>>,
    {
        // Column names come from hitreg, not from files, and some have two lines.
        let column = |name: &&str| match name.strip_prefix('>') {
            Some(name) => (name.to_owned(), Alignment::Right),
            None => ((*name).to_owned(), Alignment::Left),
        };
        let mut rows: Vec<Vec<TextSpan>> =
            rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
        rows.iter_mut().flatten().for_each(TextSpan::make_printable);
        PageTable { title, columns: columns.iter().map(column).collect(), rows }
    }
}

impl TextSpan {
    /// Text with a mark.
    pub fn styled(mark: TextStyle, text: impl Into<String>) -> TextSpan {
        TextSpan { text: text.into(), mark }
    }

    fn make_printable(&mut self) {
        if let Cow::Owned(text) = printable(&self.text) {
            self.text = text;
        }
    }
}

impl<T: Into<String>> From<T> for TextSpan {
    fn from(text: T) -> TextSpan {
        TextSpan::styled(Plain, text)
    }
}

/// Escapes every control character: `a\nb` for a line break between a and b.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_control) { Cow::Owned(text.chars().map(shown).collect()) } else { Cow::Borrowed(text) }
}

/// Escapes all control characters except line breaks.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c != '\n' && is_control(c)) {
        Cow::Owned(text.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn shown(c: char) -> String {
    if is_control(c) { c.escape_default().to_string() } else { c.to_string() }
}

/// Whether a character is a control character, a line separator, or a change of the writing direction.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn spans_of(line: &DiffLine) -> Vec<TextSpan> {
    let [whole, words] = match line.of {
        LineOrigin::Neither => [Faint; 2],
        LineOrigin::Both => [Plain; 2],
        LineOrigin::Before => [TextStyle::Removed, TextStyle::RemovedWords],
        LineOrigin::After => [TextStyle::Added, TextStyle::AddedWords],
    };
    let part = |part: &LinePart| TextSpan::styled(if part.changed { words } else { whole }, &part.text);
    [TextSpan::styled(whole, format!("  {}", line.sign()))].into_iter().chain(line.words.iter().map(part)).collect()
}

/// Breaks a line at spaces where it would be wider than the page. Further lines are indented.
fn wrapped_spans(parts: Vec<TextSpan>) -> Vec<Vec<TextSpan>> {
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

/// Puts a name or value from a file on one line of the page.
pub(super) fn one_line(text: &str) -> String {
    clipped(&printable(text), WIDTH - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}é\u{9b}"), "a\\nb\\u{1b}[2J\\u{202e}é\\u{9b}");
        assert_eq!(printable_lines("one\ntwo\rthree"), "one\ntwo\\rthree");
    }

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
