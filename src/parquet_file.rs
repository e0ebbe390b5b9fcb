//! Parquet files, with zstd pages and dictionaries of names: tables, and rows of results. A missing value is null.
//!
//! Rows of results are one table with the columns of all kinds of rows. A row has nulls in the columns of other kinds.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, IntType, LogicalType, Repetition, Type as Stored, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::SerializedFileReader;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::record::reader::RowIter;
use ::parquet::record::{Field, Row};
use ::parquet::schema::types::{Type, TypePtr};

use serde_json::{Map, Value};

use crate::corpus::{read_row, sample_rows, write_row};
use crate::trace::schema::MissingCells;
use crate::trace::{Column, ColumnData, Table};
use hitreg_analysis::row_text::RowWriter;
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::PARQUET_WRITER;

/// How many rows form a group, which a reader can skip as a whole.
const ROWS_IN_GROUP: usize = 1 << 17;

/// Writes a table in several parts.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Rows that do not fill a group yet.
    waiting: Table,
}

hitreg_log::partial_debug!([W: Write + Send] ParquetWriter<W> {});

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file for a table with these columns.
    ///
    /// # Errors
    /// When two columns have the same name, or the output cannot be written.
    pub fn new(shape: &Table, out: W) -> Result<ParquetWriter<W>, ParquetError> {
        let missing = MissingCells::of(shape);
        let fields = shape.columns.iter().map(|column| field(column, missing.may_have(column)));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        Ok(ParquetWriter { file: begin("table", fields, metadata_of(shape)?, out)?, waiting: shape.without_rows() })
    }

    /// Writes the rows in groups and returns how many were written. The last, incomplete group is written only if `all`
    /// is true.
    fn groups(&mut self, table: &Table, all: bool) -> Result<usize, ParquetError> {
        let rows = if all { table.rows() } else { table.rows() / ROWS_IN_GROUP * ROWS_IN_GROUP };
        for from in (0..rows).step_by(ROWS_IN_GROUP) {
            self.group(table, from..rows.min(from + ROWS_IN_GROUP))?;
        }
        Ok(rows)
    }

    fn group(&mut self, table: &Table, rows: Range<usize>) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        let missing = MissingCells::of(table);
        for column in &table.columns {
            let nulls = missing.may_have(column);
            let known = rows.clone().map(|row| (!nulls || !missing.has(column, row)).then_some(row));
            let Some(mut writer) = group.next_column()? else { break };
            match &column.data {
                ColumnData::U32(values) => {
                    let values = known.map(|row| row.map(|row| values[row] as i32));
                    write_known::<Int32Type>(&mut writer, values, nulls)?;
                }
                ColumnData::U64(values) => {
                    let values = known.map(|row| row.map(|row| values[row] as i64));
                    write_known::<Int64Type>(&mut writer, values, nulls)?;
                }
                ColumnData::I64(values) => {
                    write_known::<Int64Type>(&mut writer, known.map(|row| row.map(|row| values[row])), nulls)?;
                }
                ColumnData::F32(values) => {
                    write_known::<FloatType>(&mut writer, known.map(|row| row.map(|row| values[row])), nulls)?;
                }
                ColumnData::F64(values) => {
                    write_known::<DoubleType>(&mut writer, known.map(|row| row.map(|row| values[row])), nulls)?;
                }
                ColumnData::Bool(values) => {
                    write_known::<BoolType>(&mut writer, known.map(|row| row.map(|row| values[row])), nulls)?;
                }
                ColumnData::Name { names, codes } => {
                    let name = |row: usize| ByteArray::from(names.get(codes[row] as usize).map_or("", String::as_str));
                    write_known::<ByteArrayType>(&mut writer, known.map(|row| row.map(name)), nulls)?;
                }
            }
            writer.close()?;
        }
        group.close().map(drop)
    }
}

impl<W: Write + Send> RowWriter for ParquetWriter<W> {
    fn write(&mut self, rows: Cow<'_, Table>) -> io::Result<()> {
        self.waiting.append(rows.into_owned()).map_err(|error| ParquetError::General(error.to_string()))?;
        if self.waiting.rows() < ROWS_IN_GROUP {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.groups(&waiting, false)?;
        self.waiting = waiting.select(&(written as u32..waiting.rows() as u32).collect::<Vec<_>>());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.groups(&waiting, true)?;
        self.file.finish()?;
        Ok(())
    }
}

/// Begins a file with these columns.
fn begin<W: Write + Send>(
    name: &str,
    fields: Vec<TypePtr>,
    metadata: Vec<KeyValue>,
    out: W,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(metadata))
        .set_created_by(format!("{PARQUET_WRITER}{}", env!("CARGO_PKG_VERSION")))
        .build();
    SerializedFileWriter::new(out, schema, Arc::new(properties))
}

/// Describes a table in its file: its name, its key columns, and the units of its columns as a JSON object.
fn metadata_of(table: &Table) -> Result<Vec<KeyValue>, ParquetError> {
    let units: SortedMap<&str, &str> = (table.columns.iter())
        .filter(|column| !column.unit.is_empty())
        .map(|column| (&*column.name, &*column.unit))
        .collect();
    let units = serde_json::to_string(&units).map_err(|error| ParquetError::External(Box::new(error)))?;
    let pairs = [("hitreg.table", table.name.clone()), ("hitreg.key", table.key.join(",")), ("hitreg.units", units)];
    Ok(pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value)).into())
}

/// Writes the known values of a column. A column with `nulls` says where the others are.
fn write_known<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
    nulls: bool,
) -> Result<(), ParquetError> {
    let (mut known, mut is_there) = (Vec::new(), Vec::new());
    for value in values {
        is_there.push(i16::from(value.is_some()));
        known.extend(value);
    }
    writer.typed::<T>().write_batch(&known, nulls.then_some(&is_there[..]), None).map(drop)
}

fn field(column: &Column, nulls: bool) -> Result<TypePtr, ParquetError> {
    let whole = |bit_width| LogicalType::Integer(IntType { bit_width, is_signed: false });
    let (stored, meaning) = match &column.data {
        ColumnData::U32(_) => (Stored::INT32, Some(whole(32))),
        ColumnData::U64(_) => (Stored::INT64, Some(whole(64))),
        ColumnData::I64(_) => (Stored::INT64, None),
        ColumnData::F32(_) => (Stored::FLOAT, None),
        ColumnData::F64(_) => (Stored::DOUBLE, None),
        ColumnData::Bool(_) => (Stored::BOOLEAN, None),
        ColumnData::Name { .. } => (Stored::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if nulls { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(&column.name, stored).with_repetition(repetition);
    Ok(Arc::new(field.with_logical_type(meaning).build()?))
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    Whole,
    Real,
    Truth,
    Text,
}

/// The columns of all kinds of rows, by name.
fn columns_of_rows() -> Result<SortedMap<String, ColumnType>, ParquetError> {
    let mut columns = SortedMap::new();
    for row in sample_rows() {
        for (name, value) in object(&write_row(&row))? {
            let of_type = match value {
                Value::Number(number) if number.is_f64() => ColumnType::Real,
                Value::Number(_) => ColumnType::Whole,
                Value::Bool(_) => ColumnType::Truth,
                _ => ColumnType::Text,
            };
            columns.insert(name, of_type);
        }
    }
    Ok(columns)
}

fn object(line: &str) -> Result<Map<String, Value>, ParquetError> {
    serde_json::from_str(line).map_err(|error| ParquetError::External(Box::new(error)))
}

/// Writes lines of rows as Parquet.
pub(crate) fn write_rows(lines: &[String], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let columns = columns_of_rows()?;
    let field = |(name, of_type): (&String, &ColumnType)| {
        let (stored, meaning) = match of_type {
            ColumnType::Whole => (Stored::INT64, None),
            ColumnType::Real => (Stored::DOUBLE, None),
            ColumnType::Truth => (Stored::BOOLEAN, None),
            ColumnType::Text => (Stored::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, stored).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(field.with_logical_type(meaning).build()?))
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, ParquetError>>()?;
    let mut file = begin("results", fields, Vec::new(), out)?;
    for lines in lines.chunks(ROWS_IN_GROUP) {
        let rows = lines.iter().map(|line| object(line)).collect::<Result<Vec<_>, _>>()?;
        let mut group = file.next_row_group()?;
        for (name, of_type) in &columns {
            let Some(mut writer) = group.next_column()? else { break };
            let values = rows.iter().map(|row| row.get(name).filter(|value| !value.is_null()));
            let (to, nulls) = (&mut writer, true);
            match of_type {
                ColumnType::Whole => {
                    let whole = |value: &Value| value.as_i64().unwrap_or_default();
                    write_known::<Int64Type>(to, values.map(|value| value.map(whole)), nulls)?;
                }
                ColumnType::Real => {
                    let real = |value: &Value| value.as_f64().unwrap_or_default();
                    write_known::<DoubleType>(to, values.map(|value| value.map(real)), nulls)?;
                }
                ColumnType::Truth => {
                    let truth = |value: &Value| value.as_bool().unwrap_or_default();
                    write_known::<BoolType>(to, values.map(|value| value.map(truth)), nulls)?;
                }
                ColumnType::Text => {
                    let text = |value: &Value| value.as_str().unwrap_or_default().into();
                    write_known::<ByteArrayType>(to, values.map(|value| value.map(text)), nulls)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
    }
    file.close().map(drop)
}

/// Reads the rows of a Parquet file as lines of JSON.
#[expect(clippy::disallowed_types, reason = "the reader of Parquet seeks in a file of its own")]
pub(crate) fn read_rows(path: &Path) -> Result<Vec<String>, String> {
    let unread = |error: ParquetError| error.to_string();
    let file = std::fs::File::open(path).map_err(|error| unread(error.into()))?;
    let reader = SerializedFileReader::new(file).map_err(unread)?;
    let mut lines = Vec::new();
    for (number, row) in (1..).zip(RowIter::from_file_into(Box::new(reader))) {
        let text = line(&row.map_err(unread)?);
        let read = read_row(&text).map_err(|error| format!("row {number}: {error}"))?;
        lines.push(write_row(&read));
    }
    Ok(lines)
}

fn line(row: &Row) -> String {
    let mut object = Map::new();
    for (name, field) in row.get_column_iter() {
        let value = match field {
            Field::Bool(value) => Value::from(*value),
            Field::Int(value) => Value::from(*value),
            Field::Long(value) => Value::from(*value),
            Field::UInt(value) => Value::from(*value),
            Field::ULong(value) => Value::from(*value),
            Field::Float(value) => Value::from(*value),
            Field::Double(value) => Value::from(*value),
            Field::Str(value) => Value::from(value.as_str()),
            _ => continue,
        };
        object.insert(name.clone(), value);
    }
    Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_parquet() {
        let mut lines: Vec<String> = sample_rows().iter().map(write_row).collect();
        lines.push(write_row(&crate::corpus::ResultRow::Log(Box::default())));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.parquet");
        let mut bytes = Vec::new();
        write_rows(&lines, &mut bytes).expect("written");
        std::fs::write(&path, bytes).expect("written");
        assert!(crate::corpus::is_parquet(&path));
        assert_eq!(read_rows(&path).expect("rows"), lines);
        assert!(!columns_of_rows().expect("columns").is_empty());
    }
}
