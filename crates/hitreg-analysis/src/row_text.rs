//! Rows of a table as lines of text: JSON objects, or comma-separated values.

use std::borrow::Cow;
use std::fmt::{Display, LowerExp, Write as _};
use std::io::{self, BufWriter, Write};

use hitreg_log::trace::schema::MissingCells;
use hitreg_log::trace::{Column, ColumnData, Table};

/// The output of a writer, without its type: rows are formatted in optimized code of this crate.
pub type RowOutput<'a> = &'a mut (dyn Write + Send);

/// Writes a table in several groups of rows.
pub trait RowWriter {
    /// Writes rows. They must have all columns in order.
    ///
    /// # Errors
    /// When the columns differ, or the output cannot be written.
    fn write(&mut self, rows: Cow<'_, Table>) -> io::Result<()>;

    /// Writes what is buffered, and ends the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes rows as JSON objects, one a line. Missing values ([`MissingCells`]) are null. An infinite measurement is the
/// text `inf` or `-inf`. Hashes and ids are text, and so is any integer beyond 2^53, because many JSON readers keep only 53
/// bits of a number.
pub struct JsonlWriter<'a> {
    out: BufWriter<RowOutput<'a>>,
    /// The column names in JSON.
    keys: Vec<String>,
}

hitreg_log::partial_debug!(JsonlWriter<'_> { keys });

impl<'a> JsonlWriter<'a> {
    /// Returns a writer for tables with these columns.
    pub fn new(shape: &Table, out: RowOutput<'a>) -> JsonlWriter<'a> {
        let keys = shape.columns.iter().map(|column| json_text(&column.name)).collect();
        JsonlWriter { out: BufWriter::with_capacity(1 << 16, out), keys }
    }
}

impl RowWriter for JsonlWriter<'_> {
    fn write(&mut self, table: Cow<'_, Table>) -> io::Result<()> {
        let JsonlWriter { out, keys } = self;
        let mut text = String::new();
        let names: Vec<Vec<String>> = table.columns.iter().map(names_in_json).collect();
        let missing = MissingCells::of(&table);
        for row in 0..table.rows() {
            for (index, (column, key)) in table.columns.iter().zip(&*keys).enumerate() {
                out.write_all(if index == 0 { b"{" } else { b"," })?;
                out.write_all(key.as_bytes())?;
                out.write_all(b":")?;
                match &column.data {
                    _ if missing.has(column, row) => out.write_all(b"null")?,
                    data if is_text_in_json(data, row) => {
                        out.write_all(b"\"")?;
                        out.write_all(value(column, row, &mut text).as_bytes())?;
                        out.write_all(b"\"")?;
                    }
                    ColumnData::Name { codes, .. } => {
                        let name = names[index].get(codes[row] as usize).map_or("\"\"", String::as_str);
                        out.write_all(name.as_bytes())?;
                    }
                    _ => out.write_all(value(column, row, &mut text).as_bytes())?,
                }
            }
            out.write_all(b"}\n")?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes rows as comma-separated values under a line of column names. Missing values ([`MissingCells`]) are empty.
pub struct CsvWriter<'a>(csv::Writer<RowOutput<'a>>);

hitreg_log::partial_debug!(CsvWriter<'_> {});

impl<'a> CsvWriter<'a> {
    /// Writes the names of the columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(shape: &Table, out: RowOutput<'a>) -> io::Result<CsvWriter<'a>> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(shape.columns.iter().map(|column| &column.name)).map_err(io_error)?;
        Ok(CsvWriter(out))
    }
}

impl RowWriter for CsvWriter<'_> {
    fn write(&mut self, table: Cow<'_, Table>) -> io::Result<()> {
        let mut text = String::new();
        let missing = MissingCells::of(&table);
        for row in 0..table.rows() {
            for column in &table.columns {
                let field = if missing.has(column, row) { "" } else { value(column, row, &mut text) };
                self.0.write_field(field).map_err(io_error)?;
            }
            self.0.write_record(None::<&[u8]>).map_err(io_error)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the original I/O error, to distinguish a closed pipe or a full disk from other errors.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Formats a value, using `text` as the buffer if needed.
fn value<'t>(column: &'t Column, row: usize, text: &'t mut String) -> &'t str {
    text.clear();
    let _ = match &column.data {
        ColumnData::U32(values) => write!(text, "{}", values[row]),
        ColumnData::I64(values) => write!(text, "{}", values[row]),
        ColumnData::U64(values) if column.is_hash() => write!(text, "{:016x}", values[row]),
        ColumnData::U64(values) => write!(text, "{}", values[row]),
        ColumnData::Bool(values) => write!(text, "{}", values[row]),
        ColumnData::F64(values) => write_real(text, values[row], values[row]),
        ColumnData::F32(values) => write_real(text, values[row], values[row].into()),
        ColumnData::Name { names, codes } => return names.get(codes[row] as usize).map_or("", String::as_str),
    };
    text
}

/// The greatest integer up to which JSON readers that keep 53 bits of a number know all.
pub(crate) const EXACT_INTEGER_MAX: u64 = 1 << 53;

/// Writes a real number so that readers take it for one: -0 and numbers with more digits than an integer of 53 bits with
/// a dot or an exponent.
fn write_real(text: &mut String, value: impl Display + LowerExp, size: f64) -> std::fmt::Result {
    match size {
        _ if size == 0.0 && size.is_sign_negative() => write!(text, "-0.0"),
        _ if size.abs() > EXACT_INTEGER_MAX as f64 && size.is_finite() => write!(text, "{value:e}"),
        _ => write!(text, "{value}"),
    }
}

/// Returns whether a number is text in JSON, because JSON or its readers cannot hold it.
fn is_text_in_json(data: &ColumnData, row: usize) -> bool {
    match data {
        ColumnData::U64(_) => true,
        ColumnData::I64(values) => values[row].unsigned_abs() > EXACT_INTEGER_MAX,
        ColumnData::F32(values) => values[row].is_infinite(),
        ColumnData::F64(values) => values[row].is_infinite(),
        _ => false,
    }
}

/// Returns the names of a column in JSON; none for a column of another type.
fn names_in_json(column: &Column) -> Vec<String> {
    match &column.data {
        ColumnData::Name { names, .. } => names.iter().map(|name| json_text(name)).collect(),
        _ => Vec::new(),
    }
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
                column("hash", ColumnData::U64(vec![u64::MAX, 0])),
                column("error", ColumnData::F32(vec![0.1, f32::NAN])),
                column("speed", ColumnData::F64(vec![f64::NEG_INFINITY, 2.5])),
                column("reason", ColumnData::Name { names, codes: vec![0, 1] }),
            ],
        }
    }

    #[test]
    fn csv_quotes_values_with_commas() {
        let mut out = Vec::new();
        let mut rows = CsvWriter::new(&table(), &mut out).unwrap();
        rows.write(Cow::Owned(table())).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let expected = "tick,hash,error,speed,reason\n\
                        1,ffffffffffffffff,0.1,-inf,hit\n\
                        2,,,2.5,\"so, \"\"wide\"\"\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Only the server that judged a shot knows its rewind. A reported hit may have no damage.
    #[test]
    fn shots_that_the_server_of_the_trace_did_not_judge_have_no_rewind() {
        let names = |names: &[&str], codes: [u32; 4]| ColumnData::Name {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            codes: codes.into(),
        };
        let table = Table::new(
            "shots",
            vec![
                Column::new("rewind_us", ColumnData::I64(vec![5, 0, 0, 0])),
                Column::new("limit", names(&["none", "off"], [0, 1, 1, 1])),
                Column::new("damage", ColumnData::I64(vec![7, 0, 7, 0])),
                Column::new("reason", names(&["hit", "not run"], [0, 1, 0, 0])),
                Column::new("given_target", names(&["none", "p1"], [0, 0, 1, 1])),
                Column::new("given_damage", ColumnData::F32(vec![f32::NAN, f32::NAN, 7.0, f32::NAN])),
            ],
        );
        let mut out = Vec::new();
        let mut rows = CsvWriter::new(&table, &mut out).unwrap();
        rows.write(Cow::Borrowed(&table)).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["5,none,7,hit,none,", ",,0,not run,none,", ",,7,hit,p1,7", ",,,hit,p1,"]);
        let mut out = Vec::new();
        let mut rows = JsonlWriter::new(&table, &mut out);
        rows.write(Cow::Borrowed(&table)).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let last = String::from_utf8(out).unwrap().lines().last().map(str::to_owned).unwrap();
        assert_eq!(
            last,
            r#"{"rewind_us":null,"limit":null,"damage":null,"reason":"hit","given_target":"p1","given_damage":null}"#
        );
    }

    /// Integers of more than 53 bits and -0 are no numbers that all JSON readers take for a float.
    #[test]
    fn reals_are_written_so_that_readers_take_them_for_reals() {
        let values = vec![1e308, -0.0, 0.0, 5.0, -2.5, 9_007_199_254_740_992.0, -1e17];
        let narrow = vec![f32::MAX, -0.0, 0.0, 5.0, -2.5, 1e15, -1e17];
        let columns = vec![Column::new("f", ColumnData::F32(narrow)), Column::new("d", ColumnData::F64(values))];
        let table = Table::new("mine", columns);
        let mut out = Vec::new();
        let mut rows = JsonlWriter::new(&table, &mut out);
        rows.write(Cow::Borrowed(&table)).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r#"{"f":3.4028235e38,"d":1e308}"#);
        assert_eq!(lines[1], r#"{"f":-0.0,"d":-0.0}"#);
        assert_eq!(lines[2..4], [r#"{"f":0,"d":0}"#, r#"{"f":5,"d":5}"#]);
        assert_eq!(lines[5..], [r#"{"f":1000000000000000,"d":9007199254740992}"#, r#"{"f":-1e17,"d":-1e17}"#]);
    }

    /// Most times are numbers.
    #[test]
    fn integers_beyond_53_bits_are_text_in_json() {
        let values = vec![1 << 53, (1 << 53) + 1, -(1 << 53), i64::MIN];
        let table = Table::new("mine", vec![Column::new("at", ColumnData::I64(values))]);
        let mut out = Vec::new();
        let mut rows = JsonlWriter::new(&table, &mut out);
        rows.write(Cow::Borrowed(&table)).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let expected = "{\"at\":9007199254740992}\n{\"at\":\"9007199254740993\"}\n{\"at\":-9007199254740992}\n\
                        {\"at\":\"-9223372036854775808\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_line_of_jsonl_is_an_object() {
        let mut out = Vec::new();
        let mut rows = JsonlWriter::new(&table(), &mut out);
        rows.write(Cow::Owned(table())).unwrap();
        rows.finish().unwrap();
        drop(rows);
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["hash"], "ffffffffffffffff");
        assert_eq!([&rows[1]["hash"], &rows[1]["error"]], [&serde_json::Value::Null; 2]);
        assert_eq!([&rows[0]["speed"], &rows[1]["speed"]], [&serde_json::json!("-inf"), &serde_json::json!(2.5)]);
        assert_eq!(rows[1]["reason"], "so, \"wide\"");
    }
}
