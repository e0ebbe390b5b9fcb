//! Data of a later version: record kinds, and columns of known kinds. It is decoded as numbers and encoded again
//! unchanged.

use std::collections::BTreeMap;

use serde_bytes::ByteBuf;

use super::map::{ChunkTables, DecodedTables};
use super::table::PackedTable;
use super::{ColumnReader, SessionSlice, TableWriter};
use crate::log::column;
use crate::log::kinds::RecordLayout;
use crate::log::limits::Budget;
use crate::log::schema::Schema;
use crate::record::{SessionHeader, UnknownColumn, UnknownKind, UnknownRecords};

/// Encodes the unknown columns of a known kind, for the records that still exist.
pub(super) fn encode_columns<T: RecordLayout, H>(
    name: &str,
    rows: &mut TableWriter<'_, T>,
    part: &SessionSlice<'_, H>,
    header: &SessionHeader,
) {
    let Some(kind) = header.unknown.iter().find(|kind| kind.name == name) else { return };
    let records = part.session.unknown.iter().find(|records| records.kind == name);
    let by_key: BTreeMap<(u32, i64), usize> =
        records.iter().flat_map(|r| (0..r.len()).map(|i| ((r.series[i], r.keys[i]), i))).collect();
    let key = T::COLUMNS.first().map(|first| first.get);
    let places: Vec<Option<usize>> = rows.with_ids().map(|(id, r)| by_key.get(&(id, key?(r))).copied()).collect();
    for column in 0..kind.columns.len() {
        let of = records.and_then(|records| records.columns.get(column));
        let value = |place: &Option<usize>| of.zip(*place).map_or(0, |(column, place)| column.values[place]);
        let values: Vec<i64> = places.iter().map(value).collect();
        match of {
            Some(column) if column.is_float => {
                rows.floats(&values.into_iter().map(|bits| bits as u32).collect::<Vec<_>>())
            }
            _ => rows.numbers(&values),
        }
    }
}

/// Decodes the unknown columns of a known kind.
pub(super) fn decode_columns<T: RecordLayout>(
    columns: &ColumnReader<'_>,
    records: &[T],
    header: &SessionHeader,
    unknown: &mut Vec<UnknownRecords>,
    budget: &mut Budget,
) -> Result<(), String> {
    let Some(kind) = header.unknown.iter().find(|kind| kind.name == columns.name) else { return Ok(()) };
    let mut read = decode_all(columns, kind, budget)?;
    if let Some(first) = T::COLUMNS.first() {
        read.keys = records.iter().map(first.get).collect();
    }
    unknown.push(read);
    Ok(())
}

/// Encodes the tables of unknown kinds.
pub(super) fn encode<H>(part: &SessionSlice<'_, H>, header: &SessionHeader, tables: &mut ChunkTables) {
    for (records, range) in part.session.unknown.iter().zip(&part.unknown) {
        let kind = header.unknown.iter().find(|kind| kind.name == records.kind);
        if kind.is_none_or(UnknownKind::is_known_kind) || range.is_empty() {
            continue;
        }
        let mut by_series: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        range.clone().for_each(|row| by_series.entry(records.series[row]).or_default().push(row));
        let order: Vec<usize> = by_series.values().flatten().copied().collect();
        let series: Vec<usize> = by_series.values().map(Vec::len).collect();
        let encode = |column: &UnknownColumn| {
            let values: Vec<i64> = order.iter().map(|&row| column.values[row]).collect();
            ByteBuf::from(match column.is_float {
                true => column::encode_f32(&values.into_iter().map(|bits| bits as u32).collect::<Vec<_>>(), &series),
                false => column::encode(&values, &series),
            })
        };
        let columns = records.columns.iter().map(encode).collect();
        tables.add(&*records.kind, Some(PackedTable::trimmed(by_series.keys().copied().collect(), &series, columns)));
    }
}

/// Decodes the tables of unknown kinds.
pub(super) fn decode_kinds(
    tables: &DecodedTables<'_>,
    schema: &Schema,
    header: &SessionHeader,
    unknown: &mut Vec<UnknownRecords>,
    budget: &mut Budget,
) -> Result<(), String> {
    for kind in header.unknown.iter().filter(|kind| !kind.is_known_kind()) {
        if let Some(table) = tables.of(&kind.name) {
            let columns = ColumnReader::new(&kind.name, schema.columns(&kind.name).unwrap_or_default(), table);
            unknown.push(decode_all(&columns, kind, budget)?);
        }
    }
    Ok(())
}

fn decode_all(columns: &ColumnReader<'_>, kind: &UnknownKind, budget: &mut Budget) -> Result<UnknownRecords, String> {
    budget.take(columns.rows, size_of::<i64>() * (4 + kind.columns.len()))?;
    let decode = |name: &String| match column::decode_any(columns.raw(name), &columns.series) {
        Ok((is_float, values)) => Ok(UnknownColumn { is_float, values }),
        Err(what) => Err(columns.bad(name, what)),
    };
    Ok(UnknownRecords {
        kind: kind.name.clone(),
        series: columns.row_counts().into_iter().flat_map(|(id, rows)| std::iter::repeat_n(id, rows)).collect(),
        keys: vec![0; columns.rows],
        columns: kind.columns.iter().map(decode).collect::<Result<_, _>>()?,
    })
}
