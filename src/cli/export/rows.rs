//! Writes the rows of a table as lines of text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::trace::{Column, ColumnData, Table};

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

/// Writes all rows of a table.
pub(super) fn write(table: &Table, format: RowFormat, out: &mut (dyn Write + Send)) -> io::Result<()> {
    #[cfg(feature = "parquet")]
    if format == RowFormat::Parquet {
        return crate::parquet_file::write(table, out).map_err(io::Error::other);
    }
    let mut rows = RowWriter::new(table, format, out)?;
    rows.write(Cow::Borrowed(table))?;
    rows.finish()
}

/// Writes a table in several groups of rows.
pub(super) enum RowWriter<'a> {
    Jsonl {
        out: BufWriter<&'a mut (dyn Write + Send)>,
        keys: Vec<String>,
    },
    Csv(Box<csv::Writer<&'a mut (dyn Write + Send)>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<crate::parquet_file::ParquetWriter<&'a mut (dyn Write + Send)>>),
}

impl<'a> RowWriter<'a> {
    /// Writes the header for a table with these columns.
    pub(super) fn new(shape: &Table, format: RowFormat, out: &'a mut (dyn Write + Send)) -> io::Result<RowWriter<'a>> {
        match format {
            RowFormat::Csv => {
                let mut out = csv::Writer::from_writer(out);
                out.write_record(shape.columns.iter().map(|column| &column.name)).map_err(of_csv)?;
                Ok(RowWriter::Csv(Box::new(out)))
            }
            RowFormat::Jsonl => {
                let keys = shape.columns.iter().map(|column| json_text(&column.name)).collect();
                Ok(RowWriter::Jsonl { out: BufWriter::with_capacity(1 << 16, out), keys })
            }
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => {
                let writer = crate::parquet_file::ParquetWriter::new(shape, out).map_err(io::Error::other)?;
                Ok(RowWriter::Parquet(Box::new(writer)))
            }
        }
    }

    pub(super) fn write(&mut self, table: Cow<'_, Table>) -> io::Result<()> {
        match self {
            RowWriter::Jsonl { out, keys } => write_jsonl(&table, keys, out),
            RowWriter::Csv(out) => write_csv(&table, out),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(out) => out.rows(table.into_owned()).map_err(io::Error::other),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            RowWriter::Jsonl { mut out, .. } => out.flush(),
            RowWriter::Csv(mut out) => out.flush(),
            #[cfg(feature = "parquet")]
            RowWriter::Parquet(out) => out.finish().map_err(io::Error::other),
        }
    }
}

fn write_jsonl(table: &Table, keys: &[String], out: &mut impl Write) -> io::Result<()> {
    let mut text = String::new();
    for row in 0..table.rows() {
        for (index, (column, key)) in table.columns.iter().zip(keys).enumerate() {
            write!(out, "{}{key}:", if index == 0 { '{' } else { ',' })?;
            match &column.data {
                ColumnData::F32(values) if !values[row].is_finite() => out.write_all(b"null")?,
                ColumnData::F64(values) if !values[row].is_finite() => out.write_all(b"null")?,
                // Hashes and ids are text, because many JSON readers keep only 53 bits of a number.
                ColumnData::U64(_) | ColumnData::Name { .. } => {
                    out.write_all(json_text(value(column, row, &mut text)).as_bytes())?;
                }
                _ => out.write_all(value(column, row, &mut text).as_bytes())?,
            }
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}

fn write_csv<W: Write>(table: &Table, out: &mut csv::Writer<W>) -> io::Result<()> {
    let mut text = String::new();
    for row in 0..table.rows() {
        for column in &table.columns {
            out.write_field(value(column, row, &mut text)).map_err(of_csv)?;
        }
        out.write_record(None::<&[u8]>).map_err(of_csv)?;
    }
    Ok(())
}

/// Returns the original I/O error, to distinguish a closed pipe or a full disk from other errors.
fn of_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Formats a value, using `text` as the buffer if needed. A missing measurement is empty.
fn value<'t>(column: &'t Column, row: usize, text: &'t mut String) -> &'t str {
    text.clear();
    let _ = match &column.data {
        ColumnData::U32(values) => write!(text, "{}", values[row]),
        ColumnData::I64(values) => write!(text, "{}", values[row]),
        ColumnData::U64(values) if column.is_hash() => write!(text, "{:016x}", values[row]),
        ColumnData::U64(values) => write!(text, "{}", values[row]),
        ColumnData::Bool(values) => write!(text, "{}", values[row]),
        ColumnData::F64(values) if values[row].is_finite() => write!(text, "{}", values[row]),
        ColumnData::F32(values) if values[row].is_finite() => write!(text, "{}", values[row]),
        ColumnData::F32(_) | ColumnData::F64(_) => Ok(()),
        ColumnData::Name { names, codes } => return names.get(codes[row] as usize).map_or("", String::as_str),
    };
    text
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |name: &str, data| Column::new(name, data);
        let names = vec!["hit".to_owned(), "so, \"wide\"".to_owned()];
        Table {
            name: "t".into(),
            key: Vec::new(),
            columns: vec![
                column("tick", ColumnData::U32(vec![1, 2])),
                column("hash", ColumnData::U64(vec![u64::MAX, 1])),
                column("error", ColumnData::F32(vec![0.1, f32::NAN])),
                column("reason", ColumnData::Name { names, codes: vec![0, 1] }),
            ],
        }
    }

    fn text(format: RowFormat) -> String {
        let mut out = Vec::new();
        write(&table(), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_quotes_values_with_commas() {
        let expected = "tick,hash,error,reason\n\
                        1,ffffffffffffffff,0.1,hit\n\
                        2,0000000000000001,,\"so, \"\"wide\"\"\"\n";
        assert_eq!(text(RowFormat::Csv), expected);
    }

    #[test]
    fn every_line_of_jsonl_is_an_object() {
        let rows: Vec<serde_json::Value> =
            text(RowFormat::Jsonl).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["hash"], "ffffffffffffffff");
        assert_eq!(rows[1]["error"], serde_json::Value::Null);
        assert_eq!(rows[1]["reason"], "so, \"wide\"");
    }
}
