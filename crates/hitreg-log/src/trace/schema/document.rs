//! Generates the documentation of the trace tables in docs/tables.md.

use std::fmt::Write;

use super::kinds::NONE;
use super::{ColumnSchema, TABLES, TableSchema};

/// Returns all tables with their columns in Markdown.
pub fn document() -> String {
    let mut text = String::new();
    for table in TABLES {
        let keys: Vec<String> = table.key.iter().map(|key| format!("`{key}`")).collect();
        let _ = write!(text, "### `{}`\n\n{}\nKey: {}.", table.name, table.doc.trim(), keys.join(", "));
        if table.repeats {
            text.push_str(" Several rows may have one key.");
        }
        text.push_str(&fields(table));
        if !table.in_digest {
            text.push_str(" Not part of a trace's digest.");
        }
        text.push_str("\n\n| column | type | unit | |\n| --- | --- | --- | --- |\n");
        for column in table.columns {
            text.push_str(&row(column));
        }
        text.push('\n');
    }
    text
}

fn fields(table: &TableSchema) -> String {
    match table.fields {
        Some("") => " The fields of the game's bodies follow, as columns of their own names.".to_owned(),
        Some(prefix) => format!(" The fields of the game's bodies follow, each after `{prefix}`."),
        None => String::new(),
    }
}

fn row(column: &ColumnSchema) -> String {
    let names: Vec<String> = column.parts.iter().map(|part| format!("`{}{part}`", column.name)).collect();
    let mut known: Vec<String> = column.names.iter().map(|name| format!("`{name}`")).collect();
    let none = format!("`{NONE}`");
    if column.optional && !known.is_empty() && !known.contains(&none) {
        // A missing value of an optional column.
        known.push(none);
    }
    let doc = column.doc.trim().trim_end_matches('.');
    let doc = if known.is_empty() { doc.to_owned() } else { format!("{doc}: {}", known.join(", ")) };
    let optional = if column.optional { "; optional" } else { "" };
    format!("| {} | {} | {} | {doc}{optional} |\n", names.join(", "), column.kind, column.unit.name())
}
