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
    pub blocks: Vec<Block>,
}

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "block")]
pub enum Block {
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
        parts: Vec<Part>,
    },
    /// Text that wraps.
    Paragraph {
        /// The indent, in columns.
        indent: usize,
        /// The text.
        text: Part,
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
    Table(Table),
}

/// A table of rows and columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The title, in place of the first column's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The columns' names, which may be empty, and the alignment of their cells.
    pub columns: Vec<(String, Align)>,
    /// Rows with a cell for each column, or for the first few columns.
    pub rows: Vec<Vec<Cell>>,
}

/// Text with one mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// The text.
    pub text: String,
    /// The meaning of the text.
    pub mark: Mark,
}

/// A cell of a table.
pub type Cell = Part;

/// The meaning of text, from which a terminal chooses a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
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

/// Short for [`Mark::Plain`].
pub const PLAIN: Mark = Mark::Plain;
/// Short for [`Mark::Strong`].
pub const BOLD: Mark = Mark::Strong;
/// Short for [`Mark::Good`].
pub const GOOD: Mark = Mark::Good;
/// Short for [`Mark::Bad`].
pub const BAD: Mark = Mark::Bad;
/// Short for [`Mark::Unsure`].
pub const UNSURE: Mark = Mark::Unsure;
/// Short for [`Mark::Faint`].
pub const FAINT: Mark = Mark::Faint;

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// For text, which wraps if the page is too narrow for the table.
    Left,
    /// For numbers.
    Right,
}

impl Page {
    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading { text: printable(text).into_owned() });
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Adds a line.
    pub fn line(&mut self, text: &str) {
        self.styled(PLAIN, text);
    }

    /// Adds a line with a mark.
    pub fn styled(&mut self, mark: Mark, text: &str) {
        self.parts(vec![Part::styled(mark, text)]);
    }

    /// Adds a line of parts with different marks.
    pub fn parts(&mut self, mut parts: Vec<Part>) {
        parts.iter_mut().for_each(Part::make_printable);
        self.blocks.push(Block::Line { parts });
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
    pub fn marked(&mut self, indent: usize, mark: Mark, text: &str) {
        self.blocks.push(Block::Paragraph { indent, text: Part::styled(mark, printable(text)) });
    }

    /// Adds a paragraph of text that may come from a file. Words longer than a line are cut.
    pub fn note(&mut self, indent: usize, text: &str) {
        let words: Vec<String> = text.split_whitespace().map(|word| clipped(word, WIDTH - indent)).collect();
        self.paragraph(indent, &words.join(" "));
    }

    /// Adds values separated by commas. A value longer than a line is cut.
    pub fn list(&mut self, indent: usize, items: Vec<String>) {
        let items = items.iter().map(|item| clipped(&printable(item), WIDTH - indent - 1)).collect();
        self.blocks.push(Block::List { indent, items });
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
        self.blocks.push(Block::Pair { indent, value_at, label, value });
    }

    /// Adds a table.
    pub fn table(&mut self, columns: &[(&str, Align)], rows: &[Vec<Cell>]) {
        // Column names come from hitreg, not from files, and some have two lines.
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        let mut rows = rows.to_vec();
        rows.iter_mut().flatten().for_each(Part::make_printable);
        self.blocks.push(Block::Table(Table { title: None, columns, rows }));
    }

    /// Adds a table that is its own section, with `title` above its first column.
    pub fn section(&mut self, title: &str, columns: &[(&str, Align)], rows: &[Vec<Cell>]) {
        self.blank();
        self.table(&[&[("", Align::Left)], columns].concat(), rows);
        if let Some(Block::Table(table)) = self.blocks.last_mut() {
            table.title = Some(printable(title).into_owned());
        }
    }

    /// Adds all blocks of another page.
    pub fn append(&mut self, other: Page) {
        self.blocks.extend(other.blocks);
    }
}

impl Part {
    /// Text with a mark.
    pub fn styled(mark: Mark, text: impl Into<String>) -> Part {
        Part { text: text.into(), mark }
    }

    fn make_printable(&mut self) {
        if let Cow::Owned(text) = printable(&self.text) {
            self.text = text;
        }
    }
}

impl<T: Into<String>> From<T> for Part {
    fn from(text: T) -> Part {
        Part::styled(PLAIN, text)
    }
}
