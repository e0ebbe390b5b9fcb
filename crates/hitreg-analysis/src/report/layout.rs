//! Lays out a page as text of at most 80 columns, and as Markdown for summaries of CI systems.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

use super::page::{Alignment, Page, PageBlock, PageTable, TextSpan, TextStyle};

/// The width of all text, in columns. Only a single longer word, such as a path, exceeds it.
pub const WIDTH: usize = 80;

impl Page {
    /// The page for a terminal, with colours.
    pub fn styled_text(&self) -> String {
        self.lay_out(style)
    }

    /// The page without colours.
    pub fn text(&self) -> String {
        self.lay_out(|_| Style::new())
    }

    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let part = match block {
                PageBlock::Heading { text } => format!("### {}\n\n", markdown_text(text)),
                PageBlock::Gap => continue,
                PageBlock::Line { parts } => format!("{}\n\n", markdown_line(parts)),
                PageBlock::Paragraph { text, .. } => format!("{}\n\n", markdown_text(&text.text)),
                PageBlock::List { items, .. } => format!("{}\n\n", markdown_text(&items.join(", "))),
                PageBlock::Pair { label, value, .. } => {
                    format!("**{}** {}\n\n", markdown_text(label), markdown_text(value))
                }
                PageBlock::Table(table) => markdown_table(table),
            };
            text.push_str(&part);
        }
        text
    }

    fn lay_out(&self, style: fn(TextStyle) -> Style) -> String {
        let mut out = TextOutput { text: String::new(), style };
        for block in &self.blocks {
            out.block(block);
        }
        out.text
    }
}

fn style(mark: TextStyle) -> Style {
    match mark {
        TextStyle::Plain => Style::new(),
        TextStyle::Strong => Style::new().bold(),
        TextStyle::Good => AnsiColor::Green.on_default(),
        TextStyle::Bad => AnsiColor::Red.on_default().bold(),
        TextStyle::Unsure => AnsiColor::Yellow.on_default(),
        TextStyle::Faint => Style::new().dimmed(),
        TextStyle::Removed => AnsiColor::Red.on_default(),
        TextStyle::RemovedWords => AnsiColor::Red.on_default().bold().underline(),
        TextStyle::Added => AnsiColor::Green.on_default(),
        TextStyle::AddedWords => AnsiColor::Green.on_default().bold().underline(),
    }
}

struct TextOutput {
    text: String,
    style: fn(TextStyle) -> Style,
}

impl TextOutput {
    fn block(&mut self, block: &PageBlock) {
        match block {
            PageBlock::Heading { text } => {
                self.gap();
                for line in wrap(text, WIDTH) {
                    self.line(&[TextSpan::styled(TextStyle::Strong, line)]);
                }
            }
            PageBlock::Gap => self.gap(),
            PageBlock::Line { parts } => self.line(parts),
            PageBlock::Paragraph { indent, text: TextSpan { text, mark } } => {
                for line in wrap(text, WIDTH - indent) {
                    self.line(&[TextSpan::styled(*mark, format!("{:indent$}{line}", ""))]);
                }
            }
            PageBlock::List { indent, items } => {
                // The words of one item stay on one line.
                let text = items.join(",\n").replace(' ', STAYS).replace('\n', " ");
                for line in wrap(&text, WIDTH - indent) {
                    self.line(&[format!("{:indent$}{}", "", line.replace(STAYS, " ")).into()]);
                }
            }
            PageBlock::Pair { indent, value_at, label, value } => {
                for (index, line) in wrap(value, WIDTH - value_at).iter().enumerate() {
                    let label = if index == 0 { label } else { "" };
                    let width = value_at - indent;
                    self.line(&[format!("{:indent$}{label:width$}{line}", "").into()]);
                }
            }
            PageBlock::Table(table) => self.table(table),
        }
    }

    /// An empty line, unless the text is still empty.
    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    fn line(&mut self, parts: &[TextSpan]) {
        let blank = parts.iter().rev().take_while(|part| part.text.trim_end().is_empty()).count();
        let (last, before) = match parts[..parts.len() - blank].split_last() {
            Some((last, before)) => (last.text.trim_end(), before),
            None => ("", &[][..]),
        };
        for part in before {
            self.part(part.mark, &part.text);
        }
        let mark = before.len();
        self.part(parts.get(mark).map_or(TextStyle::Plain, |part| part.mark), last);
        self.text.push('\n');
    }

    fn part(&mut self, mark: TextStyle, text: &str) {
        let style = (self.style)(mark);
        self.text.push_str(&format!("{style}{text}{style:#}"));
    }

    /// A table, indented by two columns.
    fn table(&mut self, table: &PageTable) {
        let columns = ColumnWidths::of(table);
        let head = |(column, (name, _)): (usize, &(String, Alignment))| match &table.title {
            Some(title) if column == 0 => TextSpan::styled(TextStyle::Strong, title),
            _ => TextSpan::styled(TextStyle::Faint, name),
        };
        let head: Vec<TextSpan> = table.columns.iter().enumerate().map(head).collect();
        if head.iter().any(|cell| !cell.text.is_empty()) {
            self.row(table, &columns, &head, table.title.is_some());
        }
        for row in &table.rows {
            self.row(table, &columns, row, false);
        }
    }

    /// A row. The title in a head's first cell begins at the left edge, like a heading.
    fn row(&mut self, table: &PageTable, columns: &ColumnWidths, cells: &[TextSpan], titled: bool) {
        let place = |column: usize| match column {
            0 if titled => (0, MARGIN + columns.widths[0]),
            0 => (MARGIN, columns.widths[0]),
            _ => (columns.gap, columns.widths[column]),
        };
        let cell_lines = |(column, cell): (usize, &TextSpan)| lines(&cell.text, Options::new(place(column).1));
        let lines: Vec<Vec<String>> = cells.iter().enumerate().map(cell_lines).collect();
        for index in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
            let mut parts: Vec<TextSpan> = Vec::new();
            for (column, cell) in cells.iter().enumerate() {
                let text = lines[column].get(index).map_or("", String::as_str);
                let (gap, width) = place(column);
                let space = " ".repeat(width.saturating_sub(display_width(text)));
                let (gap, text) = (" ".repeat(gap).into(), TextSpan::styled(cell.mark, text));
                match table.columns[column].1 {
                    Alignment::Left => parts.extend([gap, text, space.into()]),
                    Alignment::Right => parts.extend([gap, space.into(), text]),
                }
            }
            self.line(&parts);
        }
    }
}

/// The widths of a table's columns, and the gap between them.
struct ColumnWidths {
    widths: Vec<usize>,
    gap: usize,
}

impl ColumnWidths {
    /// Makes each column as wide as its widest cell. If the page is too narrow, the widest text column becomes
    /// narrower, as long as it remains wide enough. If that column would become too narrow, the gaps between columns
    /// shrink first.
    fn of(table: &PageTable) -> ColumnWidths {
        let width = |column: usize| {
            let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.as_str());
            let name = table.columns[column].0.as_str();
            let title =
                table.title.iter().filter(|_| column == 0).map(|title| display_width(title).saturating_sub(MARGIN));
            cells.chain(name.lines()).map(display_width).chain(title).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
        let all = MARGIN + widths.iter().sum::<usize>();
        let beyond = |gap: usize| (all + gap * widths.len().saturating_sub(1)).saturating_sub(WIDTH);
        let [apart, together] = [beyond(2), beyond(1)];
        let words = table.columns.iter().zip(&mut widths).filter(|((_, align), _)| *align == Alignment::Left);
        let widest = words.map(|(_, width)| width).max();
        let gap = match &widest {
            _ if apart == 0 => 2,
            Some(widest) if widest.saturating_sub(apart) >= READABLE_WIDTH_MIN => 2,
            _ => 1,
        };
        if let Some(widest) = widest {
            let beyond = if gap == 2 { apart } else { together };
            *widest = widest.saturating_sub(beyond).max(TEXT_COLUMN_WIDTH_MIN.min(*widest));
        }
        ColumnWidths { widths, gap }
    }
}

/// A text column of at least this width is easy to read.
const READABLE_WIDTH_MIN: usize = 24;

/// The indent of tables.
const MARGIN: usize = 2;

/// No text column becomes narrower than this.
const TEXT_COLUMN_WIDTH_MIN: usize = 12;

/// A non-breaking space, which keeps words on one line.
const STAYS: &str = "\u{a0}";

/// Breaks text at spaces into lines of at most `width` columns. A longer word is not broken.
fn wrap(text: &str, width: usize) -> Vec<String> {
    lines(text, Options::new(width).break_words(false))
}

fn lines(text: &str, options: Options<'_>) -> Vec<String> {
    let options = options
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

fn markdown_line(parts: &[TextSpan]) -> String {
    // A line whose first part only indents is a command.
    match parts {
        [indent, command] if indent.text.trim().is_empty() => format!("```sh\n{}\n```", command.text.trim()),
        _ => markdown_text(parts.iter().map(|part| part.text.as_str()).collect::<String>().trim()),
    }
}

fn markdown_table(table: &PageTable) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let name = |(place, (name, _)): (usize, &(String, Alignment))| match &table.title {
        Some(title) if place == 0 => markdown_text(title),
        _ => markdown_text(name.replace('\n', " ").trim()),
    };
    let mut text = row(&mut table.columns.iter().enumerate().map(name));
    let rule = |(_, alignment): &(String, Alignment)| match alignment {
        Alignment::Left => "---".to_owned(),
        Alignment::Right => "---:".to_owned(),
    };
    text.push_str(&row(&mut table.columns.iter().map(rule)));
    for cells in &table.rows {
        text.push_str(&row(&mut cells.iter().map(|cell| markdown_text(&cell.text))));
    }
    text + "\n"
}

/// Text without meaning in Markdown or HTML.
fn markdown_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '`' | '[' | ']' | '#' | '\\' | '_' | '~' => out.extend(['\\', letter]),
            '\n' | '\r' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinarily so", 7), ["extraordinarily", "so"]);
        let mut page = Page::default();
        page.heading(&"word ".repeat(40));
        page.pair("label", &"word ".repeat(40));
        page.list(4, vec!["a few words".to_owned(); 30]);
        page.paragraph(6, &"word ".repeat(40));
        let text = page.text();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.contains("words,\n"), "an item stays together: {text}");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut page = Page::default();
        let rows = [["a", "1"], ["bcd", "1,000"]];
        page.table(&["", ">"], rows);
        assert_eq!(page.text(), "  a        1\n  bcd  1,000\n");
        let mut page = Page::default();
        page.section("title", &[">n"], rows);
        assert_eq!(page.text(), "title      n\n  a        1\n  bcd  1,000\n");
        let mut page = Page::default();
        page.section("a long title", &[">n"], rows);
        assert_eq!(page.text().lines().next(), Some("a long title      n"));
    }

    #[test]
    fn a_column_of_words_wraps_at_the_end_of_the_page() {
        let mut page = Page::default();
        page.table(&["", ">"], [["word ".repeat(30), "1,000".to_owned()]]);
        let text = page.text();
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().next().is_some_and(|line| line.ends_with("1,000")), "{text}");
    }

    #[test]
    fn colours_are_for_terminals() {
        let mut page = Page::default();
        page.styled(TextStyle::Bad, "wrong");
        assert_eq!((page.text().as_str(), page.styled_text().contains("\u{1b}[")), ("wrong\n", true));
        let json = serde_json::to_value(&page).expect("JSON");
        assert_eq!(json, serde_json::json!([{"block": "line", "parts": [{"text": "wrong", "mark": "bad"}]}]));
    }

    #[test]
    fn a_page_is_headings_paragraphs_and_tables() {
        let mut page = Page::default();
        page.line("2 logs: 1 ok, 1 differs");
        page.section("weapon", &[">hits\nA"], [["a|b", "3"]]);
        page.heading("logs <script>");
        page.parts(vec!["    ".into(), "hitreg diff a_b.hitlog".into()]);
        assert_eq!(
            page.markdown(),
            "2 logs: 1 ok, 1 differs\n\n| weapon | hits A |\n| --- | ---: |\n| a\\|b | 3 |\n\n\
             ### logs &lt;script>\n\n```sh\nhitreg diff a_b.hitlog\n```\n\n"
        );
    }
}
