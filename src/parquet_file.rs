//! Writes a table as a Parquet file, with zstd pages and dictionaries of names. A missing measurement or hash is null.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use ::parquet::basic::{Compression, IntType, LogicalType, Repetition, Type as Stored, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};

use crate::trace::{Column, ColumnData, Table};
use hitreg_log::sorted::SortedMap;

/// How many rows form a group, which a reader can skip as a whole.
pub(crate) const ROWS_IN_GROUP: usize = 1 << 17;

/// Writes all rows of a table.
///
/// # Errors
/// When two columns have the same name, or the output cannot be written.
pub fn write(table: &Table, out: impl Write + Send) -> Result<(), ParquetError> {
    let mut writer = ParquetWriter::new(table, out)?;
    writer.groups(table, true)?;
    writer.finish()
}

/// Writes a table in several parts.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Rows that do not fill a group yet.
    waiting: Table,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file for a table with these columns.
    ///
    /// # Errors
    /// When two columns have the same name, or the output cannot be written.
    pub fn new(shape: &Table, out: W) -> Result<ParquetWriter<W>, ParquetError> {
        let fields = shape.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        Ok(ParquetWriter { file: begin("table", fields, metadata_of(shape)?, out)?, waiting: shape.without_rows() })
    }

    /// Adds rows. They must have all columns in order.
    ///
    /// # Errors
    /// When the columns differ, or the output cannot be written.
    pub fn rows(&mut self, rows: Table) -> Result<(), ParquetError> {
        self.waiting.append(rows).map_err(ParquetError::General)?;
        if self.waiting.rows() < ROWS_IN_GROUP {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.groups(&waiting, false)?;
        self.waiting = waiting.select(&(written as u32..waiting.rows() as u32).collect::<Vec<_>>());
        Ok(())
    }

    /// Writes the remaining rows and ends the file.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        let waiting = std::mem::take(&mut self.waiting);
        self.groups(&waiting, true)?;
        self.file.close().map(drop)
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
        for column in &table.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match &column.data {
                ColumnData::U32(values) => {
                    let values: Vec<i32> = values[rows.clone()].iter().map(|value| *value as i32).collect();
                    writer.typed::<Int32Type>().write_batch(&values, None, None)?;
                }
                ColumnData::U64(values) => {
                    let value = |row: usize| (!column.is_missing(row)).then(|| values[row] as i64);
                    write_known::<Int64Type>(&mut writer, rows.clone().map(value), column.is_hash())?;
                }
                ColumnData::I64(values) => {
                    writer.typed::<Int64Type>().write_batch(&values[rows.clone()], None, None)?;
                }
                ColumnData::F32(values) => {
                    let values = values[rows.clone()].iter().map(|value| Some(*value).filter(|value| !value.is_nan()));
                    write_known::<FloatType>(&mut writer, values, true)?;
                }
                ColumnData::F64(values) => {
                    let values = values[rows.clone()].iter().map(|value| Some(*value).filter(|value| !value.is_nan()));
                    write_known::<DoubleType>(&mut writer, values, true)?;
                }
                ColumnData::Bool(values) => {
                    writer.typed::<BoolType>().write_batch(&values[rows.clone()], None, None)?;
                }
                ColumnData::Name { names, codes } => {
                    let name = |code: &u32| names.get(*code as usize).map_or("", String::as_str);
                    let values: Vec<ByteArray> =
                        codes[rows.clone()].iter().map(|code| ByteArray::from(name(code))).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close().map(drop)
    }
}

/// Begins a file with these columns.
pub(crate) fn begin<W: Write + Send>(
    name: &str,
    fields: Vec<TypePtr>,
    metadata: Vec<KeyValue>,
    out: W,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(metadata))
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
pub(crate) fn write_known<T: DataType>(
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

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
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
    let repetition = match column.data {
        ColumnData::F32(_) | ColumnData::F64(_) => Repetition::OPTIONAL,
        ColumnData::U64(_) if column.is_hash() => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    let field = Type::primitive_type_builder(&column.name, stored).with_repetition(repetition);
    Ok(Arc::new(field.with_logical_type(meaning).build()?))
}
