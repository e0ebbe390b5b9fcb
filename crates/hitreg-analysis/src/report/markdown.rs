//! Lays out a page as Markdown, for summaries of CI systems.

use super::page::{Alignment, Page, PageBlock, PageTable, TextSpan};

impl Page {
    /// The page as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let part = match block {
                PageBlock::Heading { text } => format!("### {}\n\n", escaped(text)),
                PageBlock::Gap => continue,
                PageBlock::Line { parts } => format!("{}\n\n", line(parts)),
                PageBlock::Paragraph { text, .. } => format!("{}\n\n", escaped(&text.text)),
                PageBlock::List { items, .. } => format!("{}\n\n", escaped(&items.join(", "))),
                PageBlock::Pair { label, value, .. } => format!("**{}** {}\n\n", escaped(label), escaped(value)),
                PageBlock::Table(table) => self::table(table),
            };
            text.push_str(&part);
        }
        text
    }
}

fn line(parts: &[TextSpan]) -> String {
    // A line whose first part only indents is a command.
    match parts {
        [indent, command] if indent.text.trim().is_empty() => format!("```sh\n{}\n```", command.text.trim()),
        _ => escaped(parts.iter().map(|part| part.text.as_str()).collect::<String>().trim()),
    }
}

fn table(table: &PageTable) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let name = |(place, (name, _)): (usize, &(String, Alignment))| match &table.title {
        Some(title) if place == 0 => escaped(title),
        _ => escaped(&name.replace('\n', " ")),
    };
    let mut text = row(&mut table.columns.iter().enumerate().map(name));
    let rule = |(_, alignment): &(String, Alignment)| match alignment {
        Alignment::Left => "---".to_owned(),
        Alignment::Right => "---:".to_owned(),
    };
    text.push_str(&row(&mut table.columns.iter().map(rule)));
    for cells in &table.rows {
        text.push_str(&row(&mut cells.iter().map(|cell| escaped(&cell.text))));
    }
    text + "\n"
}

/// Text without meaning in Markdown or HTML.
fn escaped(text: &str) -> String {
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
