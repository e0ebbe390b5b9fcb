//! Data of a later version: record kinds, and columns of known kinds. It is decoded as numbers and encoded again
//! unchanged.

use super::map::{ChunkTables, DecodedTables};
use super::table::ColumnWriter;
use super::texts::{ChunkTexts, TextPlaces};
use super::{ColumnReader, SessionSlice};
use crate::log::column;
use crate::log::index::{ChunkRows, PartRows};
use crate::log::kinds::RecordLayout;
use crate::log::limits::Budget;
use crate::log::schema::Schema;
use crate::record::{CellKind, NumberForm, RecordStream, SessionHeader, UnknownColumn, UnknownKind, UnknownRecords};
use crate::sorted::SortedMap;

/// Returns an unknown kind, or the unknown columns of a known one; `None` if the header has none.
pub(super) fn kind_of<'h>(header: &'h SessionHeader, name: &str) -> Option<&'h UnknownKind> {
    header.unknown.iter().find(|kind| kind.name == name)
}

/// Encodes the unknown columns of a known kind, for the records that still exist. `keys` has each row's series and key.
pub(super) fn encode_columns(
    kind: &UnknownKind,
    (keys, rows): (&[(u32, i64)], &mut ColumnWriter),
    part: &SessionSlice<'_>,
    texts: &ChunkTexts<'_>,
) {
    let records = part.session.unknown.iter().find(|records| records.kind == kind.name);
    let by_key: SortedMap<(u32, i64), usize> =
        records.iter().flat_map(|r| (0..r.len()).map(|i| ((r.series[i], r.keys[i]), i))).collect();
    let places: Vec<Option<usize>> = keys.iter().map(|key| by_key.get(key).copied()).collect();
    for column in 0..kind.columns.len() {
        let of = records.and_then(|records| records.columns.get(column));
        let value = |place: &Option<usize>| of.zip(*place).map_or(0, |(column, place)| column.values[place]);
        let form = of.map_or(NumberForm::Integer, |column| column.form);
        rows.numbers_as(form, places.iter().map(value).collect(), is_text(kind, column).then_some(texts));
    }
}

/// Returns whether a column holds texts.
fn is_text(kind: &UnknownKind, column: usize) -> bool {
    let name = kind.columns.get(column);
    name.and_then(|name| kind.field(name)).is_some_and(|field| field.kind == CellKind::Text)
}

/// Decodes the unknown columns of a known kind.
pub(super) fn decode_columns<T: RecordLayout>(
    columns: &ColumnReader<'_>,
    records: &[T],
    (header, texts): (&SessionHeader, &TextPlaces),
    unknown: &mut Vec<UnknownRecords>,
    budget: &mut Budget,
) -> Result<(), String> {
    let Some(kind) = kind_of(header, columns.name) else { return Ok(()) };
    let mut read = decode_all(columns, kind, texts, budget)?;
    if let Some(first) = T::COLUMNS.first() {
        read.keys = records.iter().map(first.get).collect();
    }
    unknown.push(read);
    Ok(())
}

/// Encodes the tables of unknown kinds.
pub(super) fn encode(
    part: &SessionSlice<'_>,
    header: &SessionHeader,
    texts: &ChunkTexts<'_>,
    tables: &mut ChunkTables,
) {
    for (records, range) in part.unknown() {
        let Some(kind) = kind_of(header, &records.kind).filter(|kind| !kind.is_known_kind() && !range.is_empty())
        else {
            continue;
        };
        let mut by_series: SortedMap<u32, Vec<usize>> = SortedMap::new();
        range.clone().for_each(|row| by_series.entry(records.series[row]).or_default().push(row));
        let order: Vec<usize> = by_series.values().flatten().copied().collect();
        let mut columns = ColumnWriter::of_series(&by_series);
        for (place, column) in records.columns.iter().enumerate() {
            let values = order.iter().map(|&row| column.values[row]).collect();
            columns.numbers_as(column.form, values, is_text(kind, place).then_some(texts));
        }
        tables.add(&*records.kind, Some(columns.finish()));
    }
}

/// Returns what a part of a session has of unknown kinds.
pub(super) fn rows_by_table(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let of = |kind: &UnknownKind| {
        let (records, range) =
            part.unknown().find(|(records, range)| records.kind == kind.name && !range.is_empty())?;
        let times = records.span(range.clone()).map(|(first, last)| (first.0, last.0));
        Some(PartRows::of_log(&kind.name, range.len(), times))
    };
    header.unknown.iter().filter(|kind| !kind.is_known_kind()).filter_map(of).collect()
}

/// Decodes the tables of unknown kinds.
pub(super) fn decode_kinds(
    tables: &DecodedTables<'_>,
    schema: &Schema,
    (header, texts): (&SessionHeader, &TextPlaces),
    unknown: &mut Vec<UnknownRecords>,
    budget: &mut Budget,
) -> Result<(), String> {
    for kind in header.unknown.iter().filter(|kind| !kind.is_known_kind()) {
        if let Some(columns) = tables.columns(&kind.name, schema) {
            unknown.push(decode_all(&columns, kind, texts, budget)?);
        }
    }
    Ok(())
}

fn decode_all(
    columns: &ColumnReader<'_>,
    kind: &UnknownKind,
    texts: &TextPlaces,
    budget: &mut Budget,
) -> Result<UnknownRecords, String> {
    budget.take(columns.rows, size_of::<i64>() * (4 + kind.columns.len()))?;
    let decode = |name: &String| -> Result<UnknownColumn, String> {
        let (form, mut values) =
            column::decode_any(columns.raw(name), &columns.series).map_err(|what| columns.bad(name, what))?;
        let field = kind.field(name);
        if field.is_some_and(|field| field.kind == CellKind::Text) {
            texts.codes(&mut values).map_err(|what| columns.bad(name, what))?;
        }
        // A column of zeros does not show its form.
        let form = field.filter(|_| form == NumberForm::Integer).map_or(form, |f| f.kind.form());
        Ok(UnknownColumn { form, values })
    };
    Ok(UnknownRecords {
        kind: kind.name.clone(),
        series: columns.row_counts().into_iter().flat_map(|(id, rows)| std::iter::repeat_n(id, rows)).collect(),
        keys: vec![0; columns.rows],
        columns: kind.columns.iter().map(decode).collect::<Result<_, _>>()?,
        time_column: kind.time_column(),
    })
}
