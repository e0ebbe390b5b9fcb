//! A table as a Parquet file: zstd pages, names in dictionaries, and nothing where a measure is not there.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, IntType, LogicalType, Repetition, Type as Stored, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};

use crate::trace::{Column, Data, Table};

/// Rows of which a reader needs not read all to find some.
const ROWS_IN_GROUP: usize = 1 << 17;

/// Writes every row of a table.
///
/// # Errors
/// When two columns have one name, or it cannot be written.
pub fn write(table: &Table, out: impl Write + Send) -> Result<(), ParquetError> {
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let rows = table.rows();
    for from in (0..rows).step_by(ROWS_IN_GROUP) {
        let to = rows.min(from + ROWS_IN_GROUP);
        let mut group = file.next_row_group()?;
        for column in &table.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match &column.data {
                Data::U32(values) => {
                    let values: Vec<i32> = values[from..to].iter().map(|value| *value as i32).collect();
                    writer.typed::<Int32Type>().write_batch(&values, None, None)?;
                }
                Data::U64(values) => {
                    let values: Vec<i64> = values[from..to].iter().map(|value| *value as i64).collect();
                    writer.typed::<Int64Type>().write_batch(&values, None, None)?;
                }
                Data::I64(values) => {
                    writer.typed::<Int64Type>().write_batch(&values[from..to], None, None)?;
                }
                Data::F32(values) => {
                    let is_there: Vec<i16> = values[from..to].iter().map(|value| i16::from(!value.is_nan())).collect();
                    let known: Vec<f32> = values[from..to].iter().copied().filter(|value| !value.is_nan()).collect();
                    writer.typed::<FloatType>().write_batch(&known, Some(&is_there), None)?;
                }
                Data::Name { names, codes } => {
                    let name = |code: &u32| names.get(*code as usize).map_or("", String::as_str);
                    let values: Vec<ByteArray> =
                        codes[from..to].iter().map(|code| ByteArray::from(name(code))).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let whole = |bit_width| LogicalType::Integer(IntType { bit_width, is_signed: false });
    let (stored, meaning) = match &column.data {
        Data::U32(_) => (Stored::INT32, Some(whole(32))),
        Data::U64(_) => (Stored::INT64, Some(whole(64))),
        Data::I64(_) => (Stored::INT64, None),
        Data::F32(_) => (Stored::FLOAT, None),
        Data::Name { .. } => (Stored::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if matches!(column.data, Data::F32(_)) { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(&column.name, stored).with_repetition(repetition);
    Ok(Arc::new(field.with_logical_type(meaning).build()?))
}
