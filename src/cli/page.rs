//! Text that fits 80 columns: headings, labelled values, tables, paragraphs.

use anstyle::Style;

/// The width that all text output keeps to.
pub(super) const WIDTH: usize = 80;

/// Headings and what matters.
pub(super) const BOLD: Style = Style::new().bold();
/// What is as it should be.
pub(super) const GOOD: Style = anstyle::AnsiColor::Green.on_default();
/// What is not.
pub(super) const BAD: Style = anstyle::AnsiColor::Red.on_default().bold();
/// What cannot be said.
pub(super) const UNSURE: Style = anstyle::AnsiColor::Yellow.on_default();
/// What may be skipped.
pub(super) const FAINT: Style = Style::new().dimmed();

/// Text under construction.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

/// One cell of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

impl Page {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A bold line, with an empty one before it unless it is the first.
    pub(super) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.blank();
        }
        self.styled(BOLD, text);
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.blank();
    }

    pub(super) fn styled(&mut self, style: Style, text: &str) {
        self.line(&format!("{style}{text}{style:#}"));
    }

    /// A label, and what it labels from column 16 on; long text goes on below its own beginning.
    pub(super) fn pair(&mut self, label: &str, value: &str) {
        const INDENT: usize = 16;
        for (index, line) in wrap(value, WIDTH - INDENT).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.line(format!("  {label:<width$}{line}", width = INDENT - 2).trim_end());
        }
    }

    /// A paragraph, wrapped and indented.
    pub(super) fn paragraph(&mut self, indent: usize, text: &str) {
        for line in wrap(text, WIDTH - indent) {
            self.line(format!("{:indent$}{line}", "").trim_end());
        }
    }

    /// A paragraph of what may be skipped.
    pub(super) fn faint(&mut self, indent: usize, text: &str) {
        for line in wrap(text, WIDTH - indent) {
            self.styled(FAINT, &format!("{:indent$}{line}", ""));
        }
    }

    /// A table with faint headings, indented by two.
    pub(super) fn table(&mut self, head: &[(&str, Align)], rows: &[Vec<Cell>]) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
            cells.chain([head[column].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let head_row: Vec<Cell> = head.iter().map(|(text, _)| Cell::styled(FAINT, *text)).collect();
        let any_heading = head.iter().any(|(text, _)| !text.is_empty());
        for row in any_heading.then_some(&head_row).into_iter().chain(rows) {
            let mut line = String::new();
            for ((cell, (_, align)), width) in row.iter().zip(head).zip(&widths) {
                let space = " ".repeat(width - cell.text.chars().count());
                let Cell { text, style } = cell;
                let filled = match align {
                    Align::Left => format!("  {style}{text}{style:#}{space}"),
                    Align::Right => format!("  {space}{style}{text}{style:#}"),
                };
                line.push_str(&filled);
            }
            self.line(line.trim_end());
        }
    }
}

impl Cell {
    pub(super) fn styled(style: Style, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::styled(Style::new(), text)
    }
}

/// Breaks text into lines of at most `width` characters where it has spaces; a longer word stays whole.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinarily so", 7), ["extraordinarily", "so"]);
        let mut page = Page::default();
        page.pair("label", &"word ".repeat(40));
        assert!(page.as_str().lines().all(|line| line.len() <= WIDTH), "{}", page.as_str());
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut page = Page::default();
        let rows = vec![vec!["a".into(), "1".into()], vec!["bcd".into(), "1,000".into()]];
        page.table(&[("", Align::Left), ("", Align::Right)], &rows);
        assert_eq!(anstream::adapter::strip_str(page.as_str()).to_string(), "  a        1\n  bcd  1,000\n");
    }
}
