//! The model of a page: the output of a command in blocks, without a layout. It serializes as the list of its blocks.
//! Text from files goes through this model before it reaches a terminal, and its control characters are escaped.

use std::borrow::Cow;

use serde::Serialize;

use super::figures::clipped;
use super::layout::WIDTH;
use super::printable::printable;

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

/// Short for [`TextStyle::Plain`].
pub const PLAIN: TextStyle = TextStyle::Plain;
/// Short for [`TextStyle::Strong`].
pub const BOLD: TextStyle = TextStyle::Strong;
/// Short for [`TextStyle::Good`].
pub const GOOD: TextStyle = TextStyle::Good;
/// Short for [`TextStyle::Bad`].
pub const BAD: TextStyle = TextStyle::Bad;
/// Short for [`TextStyle::Unsure`].
pub const UNSURE: TextStyle = TextStyle::Unsure;
/// Short for [`TextStyle::Faint`].
pub const FAINT: TextStyle = TextStyle::Faint;

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
        self.styled(PLAIN, text);
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
        self.marked(indent, PLAIN, text);
    }

    /// Adds a paragraph of less important text.
    pub fn faint(&mut self, indent: usize, text: &str) {
        self.marked(indent, FAINT, text);
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
        TextSpan::styled(PLAIN, text)
    }
}
