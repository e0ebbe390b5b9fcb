//! The model of a page: what a command has to say, in pieces, with their layout left to whoever shows them. It
//! serializes as the list of its blocks. What files say goes through here on its way to a terminal, and loses its control
//! characters.

use std::borrow::Cow;

use serde::Serialize;

use super::figures::clipped;
use super::layout::WIDTH;
use super::printable::printable;

/// Pieces in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Page {
    /// The pieces.
    pub blocks: Vec<Block>,
}

/// A piece of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "block")]
pub enum Block {
    /// What comes next is about this.
    Heading {
        /// The words.
        text: String,
    },
    /// What comes next stands apart.
    Gap,
    /// One line, as it is.
    Line {
        /// Its parts.
        parts: Vec<Part>,
    },
    /// Words that flow.
    Paragraph {
        /// How far from the left edge, in columns.
        indent: usize,
        /// The words.
        text: Part,
    },
    /// A few values with commas between them, none of which is broken in two.
    List {
        /// How far from the left edge, in columns.
        indent: usize,
        /// The values.
        items: Vec<String>,
    },
    /// A label and what it labels.
    Pair {
        /// How far from the left edge the label is, in columns.
        indent: usize,
        /// How far the value is.
        value_at: usize,
        /// The label.
        label: String,
        /// The value.
        value: String,
    },
    /// Rows and columns.
    Table(Table),
}

/// Rows and columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What the table is about, in place of the first column's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The columns' names, which may be empty, and how their cells stand.
    pub columns: Vec<(String, Align)>,
    /// A cell for each column, or for the first few.
    pub rows: Vec<Vec<Cell>>,
}

/// Words of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Part {
    /// The words.
    pub text: String,
    /// What they are.
    pub mark: Mark,
}

/// A cell of a table.
pub type Cell = Part;

/// What words are, for whoever has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Nothing in particular.
    #[default]
    Plain,
    /// What matters.
    Strong,
    /// What is as it should be.
    Good,
    /// What is not.
    Bad,
    /// What cannot be said.
    Unsure,
    /// What may be skipped.
    Faint,
    /// What the first of two texts has, and not the second.
    Removed,
    /// What of that is another's in a line that else is the same.
    RemovedWords,
    /// What the second has, and not the first.
    Added,
    /// The same of that.
    AddedWords,
}

/// Nothing in particular.
pub const PLAIN: Mark = Mark::Plain;
/// What matters.
pub const BOLD: Mark = Mark::Strong;
/// What is as it should be.
pub const GOOD: Mark = Mark::Good;
/// What is not.
pub const BAD: Mark = Mark::Bad;
/// What cannot be said.
pub const UNSURE: Mark = Mark::Unsure;
/// What may be skipped.
pub const FAINT: Mark = Mark::Faint;

/// How a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// Words; they wrap where the page is too narrow for the table.
    Left,
    /// Numbers.
    Right,
}

impl Page {
    /// Something new begins.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading { text: printable(text).into_owned() });
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// One line.
    pub fn line(&mut self, text: &str) {
        self.styled(PLAIN, text);
    }

    /// One line of a kind.
    pub fn styled(&mut self, mark: Mark, text: &str) {
        self.parts(vec![Part::styled(mark, text)]);
    }

    /// One line of words of several kinds.
    pub fn parts(&mut self, mut parts: Vec<Part>) {
        parts.iter_mut().for_each(Part::make_printable);
        self.blocks.push(Block::Line { parts });
    }

    /// A paragraph.
    pub fn paragraph(&mut self, indent: usize, text: &str) {
        self.marked(indent, PLAIN, text);
    }

    /// A paragraph of what may be skipped.
    pub fn faint(&mut self, indent: usize, text: &str) {
        self.marked(indent, FAINT, text);
    }

    /// A paragraph of a kind.
    pub fn marked(&mut self, indent: usize, mark: Mark, text: &str) {
        self.blocks.push(Block::Paragraph { indent, text: Part::styled(mark, printable(text)) });
    }

    /// A paragraph of words that a file may have chosen: one that is longer than a line is cut.
    pub fn note(&mut self, indent: usize, text: &str) {
        let words: Vec<String> = text.split_whitespace().map(|word| clipped(word, WIDTH - indent)).collect();
        self.paragraph(indent, &words.join(" "));
    }

    /// Values with commas between them; one that is longer than a line is cut.
    pub fn list(&mut self, indent: usize, items: Vec<String>) {
        let items = items.iter().map(|item| clipped(&printable(item), WIDTH - indent - 1)).collect();
        self.blocks.push(Block::List { indent, items });
    }

    /// A label, and what it labels from column 16 on.
    pub fn pair(&mut self, label: &str, value: &str) {
        self.labelled([2, 16], label, value);
    }

    /// The same, where there is something to say.
    pub fn pair_if(&mut self, label: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.pair(label, value);
        }
    }

    /// A label in one column, and what it labels in another.
    pub fn labelled(&mut self, [indent, value_at]: [usize; 2], label: &str, value: &str) {
        let [label, value] = [label, value].map(|text| printable(text).into_owned());
        self.blocks.push(Block::Pair { indent, value_at, label, value });
    }

    /// A table.
    pub fn table(&mut self, columns: &[(&str, Align)], rows: &[Vec<Cell>]) {
        // The heads of columns are hitreg's own, and some have two lines.
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        let mut rows = rows.to_vec();
        rows.iter_mut().flatten().for_each(Part::make_printable);
        self.blocks.push(Block::Table(Table { title: None, columns, rows }));
    }

    /// A table that is a section of its own: `title` stands over its first column.
    pub fn section(&mut self, title: &str, columns: &[(&str, Align)], rows: &[Vec<Cell>]) {
        self.blank();
        self.table(&[&[("", Align::Left)], columns].concat(), rows);
        if let Some(Block::Table(table)) = self.blocks.last_mut() {
            table.title = Some(printable(title).into_owned());
        }
    }

    /// All that another page says.
    pub fn append(&mut self, other: Page) {
        self.blocks.extend(other.blocks);
    }
}

impl Part {
    /// Words of a kind.
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
