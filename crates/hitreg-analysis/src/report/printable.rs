//! Makes text from files safe for a terminal. Control characters in a name could clear the screen or imitate hitreg's
//! own output.

use std::borrow::Cow;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}é\u{9b}"), "a\\nb\\u{1b}[2J\\u{202e}é\\u{9b}");
        assert_eq!(printable_lines("one\ntwo\rthree"), "one\ntwo\\rthree");
    }
}
