//! Suggestions for mistyped names.

/// Returns ` (did you mean ...?)` with the nearest of `names`, or an empty text when none is near.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
