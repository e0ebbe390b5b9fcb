//! Writes the rows of a table as lines of text.

use std::borrow::Cow;
use std::io;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hitreg_analysis::row_text::{CsvWriter, JsonlWriter, RowOutput};

use crate::trace::Table;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values under a line of column names.
    Csv,
    /// Columns in zstd pages, for DuckDB, pandas and their like.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// A parser of formats. Parquet is an optional feature.
pub(super) fn format() -> impl TypedValueParser<Value = RowFormat> {
    PossibleValuesParser::new(["jsonl", "csv", "parquet"]).try_map(|name| match &*name {
        "jsonl" => Ok(RowFormat::Jsonl),
        "csv" => Ok(RowFormat::Csv),
        #[cfg(feature = "parquet")]
        "parquet" => Ok(RowFormat::Parquet),
        _ => Err("this hitreg was built without Parquet: build it with `--features parquet`"),
    })
}

impl RowFormat {
    /// The file extension.
    pub(super) fn ending(self) -> &'static str {
        match self {
            RowFormat::Jsonl => "jsonl",
            RowFormat::Csv => "csv",
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => "parquet",
        }
    }
}

/// Writes a table in several groups of rows.
pub(super) enum RowWriter<'a> {
    Jsonl(JsonlWriter<'a>),
    Csv(Box<CsvWriter<'a>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<crate::parquet_file::ParquetWriter<RowOutput<'a>>>),
}

impl<'a> RowWriter<'a> {
    /// Writes the header for a table with these columns.
    pub(super) fn new(shape: &Table, format: RowFormat, out: RowOutput<'a>) -> io::Result<RowWriter<'a>> {
        match format {
            RowFormat::Csv => Ok(RowWriter::Csv(Box::new(CsvWriter::new(shape, out)?))),
            RowFormat::Jsonl => Ok(RowWriter::Jsonl(JsonlWriter::new(shape, out))),
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => {
                let writer = crate::parquet_file::ParquetWriter::new(shape, out).map_err(io::Error::other)?;
                Ok(RowWriter::Parquet(Box::new(writer)))
            }
        }
    }

    pub(super) fn write(&mut self, table: Cow<'_, Table>) -> io::Result<()> {
        match self {
            RowWriter::Jsonl(out) => out.write(&table),
            RowWriter::Csv(out) => out.write(&table),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(out) => out.rows(table.into_owned()).map_err(io::Error::other),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            RowWriter::Jsonl(out) => out.finish(),
            RowWriter::Csv(out) => out.finish(),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(out) => out.finish().map_err(io::Error::other),
        }
    }
}
