//! Rows of results in a Parquet file: one table with the columns of all kinds of rows. A row has nulls in the columns of
//! other kinds.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Stored};
use ::parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::SerializedFileReader;
use ::parquet::record::reader::RowIter;
use ::parquet::record::{Field, Row};
use ::parquet::schema::types::Type;
use serde_json::{Map, Value};

use crate::cli::trouble::CommandError;
use crate::corpus::{read_row, sample_rows, write_row};
use crate::parquet_file::{self, write_known};
use hitreg_log::sorted::SortedMap;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    Whole,
    Real,
    Truth,
    Text,
}

/// The columns of all kinds of rows, by name.
fn columns() -> Result<SortedMap<String, ColumnType>, ParquetError> {
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
pub(super) fn write(lines: &[String], out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let columns = columns()?;
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
    let mut file = parquet_file::begin("results", fields, Vec::new(), out)?;
    for lines in lines.chunks(parquet_file::ROWS_IN_GROUP) {
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
pub(super) fn read(path: &Path) -> Result<Vec<String>, CommandError> {
    let unread = |error: ParquetError| CommandError::file(path, error);
    let file = std::fs::File::open(path).map_err(|error| unread(error.into()))?;
    let reader = SerializedFileReader::new(file).map_err(unread)?;
    let mut lines = Vec::new();
    for (number, row) in (1..).zip(RowIter::from_file_into(Box::new(reader))) {
        let text = line(&row.map_err(unread)?);
        let read = read_row(&text).map_err(|error| CommandError::file(path, format!("row {number}: {error}")))?;
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
        write(&lines, &mut bytes).expect("written");
        std::fs::write(&path, bytes).expect("written");
        assert!(crate::corpus::is_parquet(&path));
        assert_eq!(read(&path).expect("rows"), lines);
        assert!(!columns().expect("columns").is_empty());
    }
}
