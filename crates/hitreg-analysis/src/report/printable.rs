//! Words out of files as a terminal may see them: a name that holds control characters could clear the screen, or make
//! lines that look like our own.

use std::borrow::Cow;

/// The same words, with every control character written out: `a\nb` for a line's end between a and b.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_control) { Cow::Owned(text.chars().map(shown).collect()) } else { Cow::Borrowed(text) }
}

/// The same for a message of several lines.
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

/// Control characters, separators of lines, and those that turn the direction of writing.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}é\u{9b}"), "a\\nb\\u{1b}[2J\\u{202e}é\\u{9b}");
        assert_eq!(printable_lines("one\ntwo\rthree"), "one\ntwo\\rthree");
    }
}
