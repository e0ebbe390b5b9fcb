//! The pieces that reports are put together from.

/// The widest line of any report.
pub(crate) const WIDTH: usize = 80;

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A session time in seconds: `12.688 s`.
pub(crate) fn seconds(at_us: i64) -> String {
    format!("{:.3} s", at_us as f64 / 1e6)
}

/// So many of something: `1 row`, `2 rows`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// A measure short enough for a table: three decimals where they tell something, else powers of ten.
pub(crate) fn measure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (0.001..1e3).contains(&size) => format!("{value:.3}"),
        size if (1e3..1e7).contains(&size) => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// A text of at most so many columns.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of words, each at most [`WIDTH`] wide and indented; what does not fit a line by itself is clipped.
pub(crate) fn wrapped(indent: &str, text: &str) -> String {
    filled(indent, text.split_whitespace().map(str::to_owned))
}

/// Lines of items with commas between them; none is broken in two.
pub(crate) fn listed(indent: &str, items: &[String]) -> String {
    let last = items.len().saturating_sub(1);
    filled(indent, items.iter().enumerate().map(|(n, item)| if n < last { format!("{item},") } else { item.clone() }))
}

fn filled(indent: &str, words: impl Iterator<Item = String>) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in words {
        let is_empty = line.len() == indent.len();
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = indent.to_owned();
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(&clipped(&word, WIDTH - indent.len()));
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_come_out_readable() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.5, 1e-5, 21500.0, 2e7].map(measure), ["0", "0.500", "1.00e-5", "21500", "2.00e7"]);
        assert_eq!(clipped("abcdef", 4), "abc…");
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        let text = wrapped("    ", &format!("{} {}", "word ".repeat(40), "x".repeat(200)));
        assert!(text.lines().count() > 3);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && line.starts_with("    ")));
    }
}
