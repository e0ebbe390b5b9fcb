//! What a file of Rust names: its words and signs, and the paths in them.

/// Words and signs of Rust, without comments, texts and characters. `::` is one token.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let rest_is = |pattern: &str| pattern.chars().enumerate().all(|(k, p)| at(i + k) == p);
        if rest_is("//") {
            i += chars[i..].iter().take_while(|c| **c != '\n').count();
        } else if rest_is("/*") {
            let close = (i + 2..chars.len()).find(|&k| at(k) == '*' && at(k + 1) == '/');
            i = close.map_or(chars.len(), |k| k + 2);
        } else if c == 'r' && (at(i + 1) == '"' || (at(i + 1) == '#' && matches!(at(i + 2), '"' | '#'))) {
            let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
            let ends = |k: &usize| at(*k) == '"' && (1..=hashes).all(|h| at(k + h) == '#');
            let close = (i + hashes + 2..chars.len()).find(ends);
            i = close.map_or(chars.len(), |k| k + hashes + 1);
        } else if c == '"' {
            i += 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' {
            // A lifetime has no closing quote two or more characters on.
            let is_char = at(i + 1) == '\\' || at(i + 2) == '\'';
            let close = if is_char {
                (i + 2..chars.len()).find(|&k| at(k) == '\'' && (at(k - 1) != '\\' || at(k - 2) == '\\'))
            } else {
                None
            };
            i = close.unwrap_or(i) + 1;
        } else if c.is_alphabetic() || c == '_' {
            let word: String = chars[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
            i += word.chars().count();
            tokens.push(word);
        } else if rest_is("::") {
            tokens.push("::".to_owned());
            i += 2;
        } else {
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            i += 1;
        }
    }
    tokens
}

/// Every path `a::b::c`, with the groups of `use` taken apart.
pub(crate) fn paths(tokens: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if is_word(&tokens[i]) {
            i = read_path(tokens, i, "", &mut found);
        } else {
            i += 1;
        }
    }
    found
}

/// Reads a path that begins at `i`, and the group at its end if it has one; says where it ends.
fn read_path(tokens: &[String], mut i: usize, prefix: &str, found: &mut Vec<String>) -> usize {
    let token = |i: usize| tokens.get(i).map_or("", String::as_str);
    let mut path = format!("{prefix}{}", token(i));
    i += 1;
    while token(i) == "::" {
        i += 1;
        if token(i) == "{" {
            i += 1;
            while i < tokens.len() && token(i) != "}" {
                i = if is_word(token(i)) { read_path(tokens, i, &format!("{path}::"), found) } else { i + 1 };
            }
            return i + 1;
        }
        if !is_word(token(i)) {
            break;
        }
        path = format!("{path}::{}", token(i));
        i += 1;
    }
    found.push(path);
    i
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
