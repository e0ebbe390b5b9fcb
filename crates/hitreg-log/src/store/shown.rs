//! Paths in JSON and in commands. Names that are not Unicode are shown lossily, so that the result is not lost.

use std::path::Path;

use serde::{Serialize, Serializer};

/// Serialises a path.
pub fn path<S: Serializer>(path: &impl AsRef<Path>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.as_ref().display())
}

/// Serialises an optional path.
pub fn path_if<S: Serializer>(path: &Option<impl AsRef<Path>>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.as_ref().display().to_string()).serialize(to)
}

/// Serialises a list of paths.
pub fn paths<S: Serializer>(paths: &[impl AsRef<Path>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.as_ref().display().to_string()))
}

/// A word of a command as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A path in a command as a shell takes it.
pub fn shell_path(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Puts the name of a file into the command that an error of its contents suggests with `FILE`. The content of a pipe
/// (`-`) must become a file first.
pub fn naming_file(message: &str, path: &Path) -> String {
    match message.contains("hitreg ") {
        true if path == Path::new("-") => message.replace(", run: ", ", write the log to FILE, then run: "),
        true => message.replace(" FILE ", &format!(" {} ", shell_path(path))),
        false => message.to_owned(),
    }
}
