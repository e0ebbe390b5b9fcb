//! The contents of a trace: its tables and their numbers of rows.

use std::path::Path;

use serde::Serialize;

use crate::cli::CommandResult;
use crate::cli::figures::{bytes, count, replay_mode};
use crate::cli::output::Output;
use crate::golden::ReplaySummary;
use crate::store::{self, StoreError, TraceFile};
use crate::trace::{Table, TraceSource};
use crate::units::Micros;

#[derive(Serialize)]
struct TraceInfo<'a> {
    path: String,
    kind: &'static str,
    format_version: String,
    game: &'a str,
    mode: &'a str,
    log_digest: &'a str,
    /// The session times that the trace covers; `None` for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_us: Option<[Micros; 2]>,
    digest: String,
    size_bytes: u64,
    tables: Vec<TableInfo<'a>>,
}

#[derive(Serialize)]
struct TableInfo<'a> {
    name: &'a str,
    rows: u64,
    columns: Vec<ColumnInfo<'a>>,
}

#[derive(Serialize)]
struct ColumnInfo<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    data: &'static str,
}

pub(super) fn show(path: &Path, output: &mut Output) -> CommandResult {
    let fail = |source| StoreError::trace_content(path, source);
    let mut reader = store::open_trace(path)?;
    let (header, version) = (reader.header().clone(), reader.format());
    let mut summary = ReplaySummary::new(header.clone(), false);
    while let Some(rows) = reader.next_rows().map_err(fail)? {
        summary.add(&rows);
    }
    let trace = TraceFile::open(path)?;
    let shown = TraceInfo {
        path: path.display().to_string(),
        kind: "trace",
        format_version: version.to_string(),
        game: &header.game,
        mode: &header.mode,
        log_digest: &header.log_digest,
        part_us: header.part,
        digest: summary.digest().to_string(),
        size_bytes: store::size_bytes(path)?,
        tables: trace.tables().into_iter().map(|(table, rows)| TableInfo::of(table, rows)).collect(),
    };
    output.show(&shown, |page| {
        page.heading(&shown.path);
        page.pair("trace", &format!("{}, {}", shown.game, replay_mode(shown.mode)));
        page.pair("digest", &shown.digest);
        if !shown.log_digest.is_empty() {
            page.pair("of the log", shown.log_digest);
        }
        if let Some(part) = header.part_shown() {
            page.pair("part", &format!("{part} alone"));
        }
        page.pair("size", &bytes(shown.size_bytes));
        page.blank();
        let row = |t: &TableInfo<'_>| [t.name.to_owned(), count(t.rows), t.columns.len().to_string()];
        page.table(&["table", ">rows", ">columns"], shown.tables.iter().map(row));
    })
}

impl TableInfo<'_> {
    fn of(table: &Table, rows: u64) -> TableInfo<'_> {
        let column = |c: &'_ crate::trace::Column| c.data.type_name();
        TableInfo {
            name: &table.name,
            rows,
            columns: table.columns.iter().map(|c| ColumnInfo { name: &c.name, data: column(c) }).collect(),
        }
    }
}
